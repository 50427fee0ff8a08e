/* A name service (nss(5)) that knows no user and takes its time, as a directory far away does.
   MILLISECONDS, RUNS (where each lookup is written down) and NAME come from the command line. */
#include <errno.h>
#include <fcntl.h>
#include <nss.h>
#include <pwd.h>
#include <time.h>
#include <unistd.h>

static enum nss_status look(int *error)
{
    struct timespec left = { MILLISECONDS / 1000, MILLISECONDS % 1000 * 1000000L };
    int runs = open(RUNS, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (runs >= 0) {
        if (write(runs, NAME "\n", sizeof NAME) < 0)
            errno = 0; /* the lookup matters more than its trace */
        close(runs);
    }
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    *error = ENOENT;
    return NSS_STATUS_NOTFOUND;
}

enum nss_status _nss_directory_getpwnam_r(const char *name, struct passwd *user, char *text, size_t length, int *error)
{
    (void)name, (void)user, (void)text, (void)length;
    return look(error);
}

enum nss_status _nss_directory_getpwuid_r(uid_t id, struct passwd *user, char *text, size_t length, int *error)
{
    (void)id, (void)user, (void)text, (void)length;
    return look(error);
}
