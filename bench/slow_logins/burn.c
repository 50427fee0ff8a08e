/* Uses up so many milliseconds of CPU time of its own, given as the only argument: what waits for it waits for a processor. */
#include <stdlib.h>
#include <time.h>

int main(int count, char **words)
{
    long limit = count > 1 ? atol(words[1]) : 0;
    struct timespec used;
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    while (used.tv_sec * 1000 + used.tv_nsec / 1000000 < limit);
    return 0;
}
