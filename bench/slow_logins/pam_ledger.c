/* A PAM module of nobody's (pam(8)): it waits so many milliseconds as its argument says, as one that asks a server does. Where it
   stands in no stack of a kind, its function of that kind is not called. RUNS (where each run is written down) and NAME come from the
   command line. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PAM_SUCCESS = 0 };

static int look(int count, const char **words)
{
    long milliseconds = count > 0 ? atol(words[0]) : 0;
    struct timespec left = { milliseconds / 1000, milliseconds % 1000 * 1000000L };
    int runs = open(RUNS, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (runs >= 0) {
        if (write(runs, NAME "\n", sizeof NAME) < 0)
            errno = 0; /* the module matters more than its trace */
        close(runs);
    }
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    return PAM_SUCCESS;
}

int pam_sm_acct_mgmt(void *pam, int flags, int count, const char **words)
{
    (void)pam, (void)flags;
    return look(count, words);
}

int pam_sm_open_session(void *pam, int flags, int count, const char **words)
{
    (void)pam, (void)flags;
    return look(count, words);
}

int pam_sm_close_session(void *pam, int flags, int count, const char **words)
{
    (void)pam, (void)flags, (void)count, (void)words;
    return PAM_SUCCESS;
}
