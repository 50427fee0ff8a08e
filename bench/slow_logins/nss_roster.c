/* A name service for groups (nss(5)) that knows none and takes its time. MILLISECONDS comes from the command line. */
#include <errno.h>
#include <grp.h>
#include <nss.h>
#include <time.h>

static enum nss_status look(int *error)
{
    struct timespec left = { MILLISECONDS / 1000, MILLISECONDS % 1000 * 1000000L };
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    *error = ENOENT;
    return NSS_STATUS_NOTFOUND;
}

enum nss_status _nss_roster_getgrgid_r(gid_t id, struct group *group, char *text, size_t length, int *error)
{
    (void)id, (void)group, (void)text, (void)length;
    return look(error);
}

enum nss_status _nss_roster_initgroups_dyn(const char *user, gid_t own, long *start, long *size, gid_t **groups, long limit, int *error)
{
    (void)user, (void)own, (void)start, (void)size, (void)groups, (void)limit;
    return look(error);
}
