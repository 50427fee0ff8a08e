/* The start of checks in a monitoring server, replayed: threads that run each check by popen and read what it says.
 *
 *     monitor CHECKS THREADS MEMORY_MIB WAY COMMAND
 *
 * WAY is `popen`, or `noshell` for popen_noshell_compat, with which the server would be built again. The server touches so much
 * memory first, as one that knows many services does. Prints one line of JSON; a check that does not say "OK" ends it.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "popen_noshell.h"

#define MOST_THREADS 256

static atomic_long left;
static const char *command;
static int without_shell;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void expect_ok(FILE *stream)
{
	char line[512];
	if (stream == NULL)
		fail("popen");
	if (fgets(line, sizeof line, stream) == NULL || strncmp(line, "OK", 2) != 0)
		fail("a check did not answer");
	while (fgets(line, sizeof line, stream) != NULL)
		;
}

static void *run_checks(void *unused)
{
	while (atomic_fetch_sub(&left, 1) > 0) {
		int status;
		if (without_shell) {
			struct popen_noshell_pass_to_pclose pass;
			expect_ok(popen_noshell_compat(command, "r", &pass));
			status = pclose_noshell(&pass);
		} else {
			FILE *stream = popen(command, "r");
			expect_ok(stream);
			status = pclose(stream);
		}
		if (status != 0)
			fail("a check's status");
	}
	return unused;
}

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Small pages, as a heap of many small objects has them. */
static void touch(size_t bytes)
{
	if (bytes == 0)
		return;
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fail("mmap");
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	memset(memory, 1, bytes);
}

int main(int argc, char **argv)
{
	pthread_t threads[MOST_THREADS];
	struct rusage before, after, started;
	if (argc != 6 || atoi(argv[2]) < 1 || atoi(argv[2]) > MOST_THREADS) {
		fprintf(stderr, "usage: monitor CHECKS THREADS MEMORY_MIB popen|noshell COMMAND\n");
		return 2;
	}
	long checks = atol(argv[1]);
	int count = atoi(argv[2]);
	left = checks;
	without_shell = strcmp(argv[4], "noshell") == 0;
	command = argv[5];
	touch((size_t)atol(argv[3]) << 20);
	getrusage(RUSAGE_SELF, &before);
	double began = now();
	for (int at = 0; at < count; at++)
		if (pthread_create(&threads[at], NULL, run_checks, NULL) != 0)
			fail("pthread_create");
	for (int at = 0; at < count; at++)
		pthread_join(threads[at], NULL);
	double wall = now() - began;
	getrusage(RUSAGE_SELF, &after);
	getrusage(RUSAGE_CHILDREN, &started);
	double own = seconds(after.ru_utime) + seconds(after.ru_stime) - seconds(before.ru_utime) - seconds(before.ru_stime);
	double theirs = seconds(started.ru_utime) + seconds(started.ru_stime);
	printf("{\"checks\": %ld, \"wall_s\": %.4f, \"own_cpu_s\": %.4f, \"started_cpu_s\": %.4f, \"checks_a_second\": %.1f}\n",
	       checks, wall, own, theirs, (double)checks / wall);
	return 0;
}
