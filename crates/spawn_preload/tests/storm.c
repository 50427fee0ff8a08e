/* 64 threads use popen and system while a timer's signals arrive and one thread forks: nothing hangs, nothing is left. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 64
#define ROUNDS 25
#define CHECK(what) check((what) ? 1 : 0, #what, __LINE__)

static const char *probe;
static atomic_long arrived;
static atomic_int over;

static void check(int holds, const char *what, int line)
{
	if (!holds) {
		fprintf(stderr, "storm.c:%d: %s (errno %d)\n", line, what, errno);
		exit(1);
	}
}

static void count(int number)
{
	(void)number;
	arrived++;
}

static int open_descriptors(void)
{
	int found = 0;
	DIR *folder = opendir("/proc/self/fd");
	while (readdir(folder))
		found++;
	closedir(folder);
	return found;
}

static void read_by_popen(const char *line, const char *kind, const char *wanted, int status)
{
	char text[1024];
	FILE *stream = popen(line, kind);
	CHECK(stream != NULL);
	size_t length = fread(text, 1, sizeof text - 1, stream);
	text[length] = 0;
	CHECK(strcmp(text, wanted) == 0);
	CHECK(pclose(stream) == status);
}

static void *use_all(void *number)
{
	char line[512], wanted[512];
	for (int round = 0; round < ROUNDS; round++) {
		int status = (int)((size_t)number + (size_t)round) % 100;
		snprintf(line, sizeof line, "%s exit %d", probe, status);
		snprintf(wanted, sizeof wanted, "[%s][exit][%d]\n", probe, status);
		read_by_popen(line, round % 2 ? "r" : "re", wanted, status << 8);
		snprintf(line, sizeof line, "echo %d; exit %d", status, status);
		snprintf(wanted, sizeof wanted, "%d\n", status);
		read_by_popen(line, "r", wanted, status << 8);
		snprintf(line, sizeof line, "%s exit %d", probe, status);
		CHECK(system(line) == status << 8);
		FILE *sink = popen("cat", "w");
		CHECK(sink != NULL && fputs("written\n", sink) >= 0 && pclose(sink) == 0);
	}
	return NULL;
}

/* A child of fork may use popen at once, whatever other threads were doing. */
static void *fork_and_start(void *unused)
{
	while (!over) {
		pid_t pid = fork();
		if (pid == 0) {
			FILE *stream = popen("true", "r");
			_exit(stream && pclose(stream) == 0 && system("true") == 0 ? 0 : 1);
		}
		int status;
		while (waitpid(pid, &status, 0) < 0)
			CHECK(errno == EINTR);
		CHECK(status == 0);
	}
	return unused;
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	probe = argv[1];
	struct sigaction counts = {.sa_handler = count, .sa_flags = SA_RESTART}, found;
	struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
	pthread_t threads[THREADS], forks;
	/* What is made at the first use stays. */
	read_by_popen("true", "r", "", 0);
	int descriptors = open_descriptors();
	CHECK(sigaction(SIGALRM, &counts, NULL) == 0 && sigaction(SIGINT, &counts, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	CHECK(pthread_create(&forks, NULL, fork_and_start, NULL) == 0);
	for (size_t at = 0; at < THREADS; at++)
		CHECK(pthread_create(&threads[at], NULL, use_all, (void *)at) == 0);
	for (size_t at = 0; at < THREADS; at++)
		CHECK(pthread_join(threads[at], NULL) == 0);
	over = 1;
	CHECK(pthread_join(forks, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	CHECK(arrived > THREADS);
	CHECK(open_descriptors() == descriptors);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	CHECK(sigaction(SIGINT, NULL, &found) == 0 && found.sa_handler == count);
	CHECK(sigaction(SIGQUIT, NULL, &found) == 0 && found.sa_handler == SIG_DFL);
	fprintf(stderr, "all is so\n");
	return 0;
}
