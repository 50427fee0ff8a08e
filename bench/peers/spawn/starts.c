/* Starts a program in many ways, each as one would write it with that call, and says what each start cost.
 *
 *     starts PROGRAM MEMORY_MIB ROUNDS STARTS WAY...
 *
 * Touches so much memory first. In each round every way makes up to STARTS starts, in an order that is drawn anew, so that
 * none always follows the same one; a way that needs more than BATCH_SECONDS for them makes fewer. One line of JSON each. CPU is that of this process and of the
 * children it has waited for. Each start is checked: the program ends with 7.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "popen_noshell.h"
#include "sshoal_spawn.h"

#define EXPECTED_STATUS 7
#define BATCH_SECONDS 0.2
#define NOSHELL_STACK_BYTES (8 * 1024 * 1024)

extern char **environ;

static const char *program;
static const char *arguments[2];

static void fail(const char *what)
{
	fprintf(stderr, "starts: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int reap(pid_t pid)
{
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		fail("waitpid");
	return status;
}

static void read_to_end(int fd)
{
	char buffer[256];
	while (read(fd, buffer, sizeof buffer) > 0)
		;
	close(fd);
}

static int close_stream(FILE *stream, int (*closes)(FILE *))
{
	char buffer[256];
	if (stream == NULL)
		fail("popen");
	while (fread(buffer, 1, sizeof buffer, stream) > 0)
		;
	return closes(stream);
}

static int by_vfork(void)
{
	pid_t pid = vfork();
	if (pid == 0) {
		execve(program, (char *const *)arguments, environ);
		_exit(127);
	}
	return reap(pid);
}

static int by_vfork_pipe(void)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		fail("pipe2");
	pid_t pid = vfork();
	if (pid == 0) {
		dup2(ends[1], 1);
		execve(program, (char *const *)arguments, environ);
		_exit(127);
	}
	close(ends[1]);
	read_to_end(ends[0]);
	return reap(pid);
}

/* What of the above is the pipe's alone: nobody writes to it or reads from it. */
static int by_vfork_unused_pipe(void)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		fail("pipe2");
	close(ends[0]);
	close(ends[1]);
	return by_vfork();
}

static int by_fork(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		execve(program, (char *const *)arguments, environ);
		_exit(127);
	}
	return reap(pid);
}

static int by_posix_spawn(void)
{
	pid_t pid;
	if (posix_spawn(&pid, program, NULL, NULL, (char *const *)arguments, environ) != 0)
		fail("posix_spawn");
	return reap(pid);
}

static int by_posix_spawn_pipe(void)
{
	pid_t pid;
	int ends[2];
	posix_spawn_file_actions_t actions;
	if (pipe2(ends, O_CLOEXEC) != 0)
		fail("pipe2");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	if (posix_spawn(&pid, program, &actions, NULL, (char *const *)arguments, environ) != 0)
		fail("posix_spawn");
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	read_to_end(ends[0]);
	return reap(pid);
}

static int by_sshoal(void)
{
	int status;
	sshoal_spawn *spawn = sshoal_spawn_new(program, arguments);
	sshoal_process *process = sshoal_spawn_start(spawn, NULL);
	if (process == NULL || sshoal_process_wait(process, &status) != 0)
		fail("sshoal_spawn");
	sshoal_process_free(process);
	sshoal_spawn_free(spawn);
	return status;
}

static int by_sshoal_pipe(void)
{
	int status;
	sshoal_spawn *spawn = sshoal_spawn_new(program, arguments);
	sshoal_spawn_stream(spawn, 1, SSHOAL_PIPE);
	sshoal_process *process = sshoal_spawn_start(spawn, NULL);
	if (process == NULL)
		fail("sshoal_spawn");
	read_to_end(sshoal_process_take(process, 1));
	if (sshoal_process_wait(process, &status) != 0)
		fail("sshoal_process_wait");
	sshoal_process_free(process);
	sshoal_spawn_free(spawn);
	return status;
}

static int by_sshoal_popen(void)
{
	return close_stream(sshoal_popen(program, arguments, "r"), sshoal_pclose);
}

static int by_popen(void)
{
	return close_stream(popen(program, "r"), pclose);
}

static int by_system(void)
{
	return system(program);
}

static int by_noshell_header(void)
{
	char buffer[256];
	struct popen_noshell_pass_to_pclose pass;
	FILE *stream = popen_noshell(program, arguments, "r", &pass, 0);
	if (stream == NULL)
		fail("popen_noshell");
	while (fread(buffer, 1, sizeof buffer, stream) > 0)
		;
	return pclose_noshell(&pass);
}

/* The way of the library popen_noshell, written anew: a stack by malloc, the standard input from /dev/null, a stream. */
static int noshell_child(void *ends)
{
	int null = open("/dev/null", O_RDWR);
	dup2(null, 0);
	close(null);
	dup2(((int *)ends)[1], 1);
	execvp(program, (char *const *)arguments);
	_exit(127);
}

static int last_pclose(FILE *stream)
{
	return fclose(stream);
}

static int by_noshell_way(void)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		fail("pipe2");
	char *stack = malloc(NOSHELL_STACK_BYTES + 15);
	char *top = (char *)(((size_t)stack + NOSHELL_STACK_BYTES) & ~(size_t)15);
	pid_t pid = clone(noshell_child, top, CLONE_VM | CLONE_VFORK | SIGCHLD, ends);
	close(ends[1]);
	close_stream(fdopen(ends[0], "r"), last_pclose);
	int status = reap(pid);
	free(stack);
	return status;
}

static const struct {
	const char *name;
	int (*start)(void);
} WAYS[] = {
	{"vfork", by_vfork},
	{"sshoal", by_sshoal},
	{"posix_spawn", by_posix_spawn},
	{"fork", by_fork},
	{"system", by_system},
	{"vfork unused pipe", by_vfork_unused_pipe},
	{"vfork pipe", by_vfork_pipe},
	{"sshoal pipe", by_sshoal_pipe},
	{"posix_spawn pipe", by_posix_spawn_pipe},
	{"sshoal_popen", by_sshoal_popen},
	{"popen_noshell of sshoal", by_noshell_header},
	{"popen_noshell's way", by_noshell_way},
	{"popen", by_popen},
};
#define WAY_COUNT (sizeof WAYS / sizeof WAYS[0])

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static double cpu(void)
{
	struct rusage own, children;
	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &children);
	return seconds(own.ru_utime) + seconds(own.ru_stime) + seconds(children.ru_utime) + seconds(children.ru_stime);
}

static double wall(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void batch(size_t way, int round, int starts)
{
	int done = 0;
	double cpu_before = cpu(), began = wall();
	while (done < starts && wall() - began < BATCH_SECONDS) {
		int status = WAYS[way].start();
		if (!WIFEXITED(status) || WEXITSTATUS(status) != EXPECTED_STATUS) {
			fprintf(stderr, "starts: %s: wait status %d\n", WAYS[way].name, status);
			exit(1);
		}
		done++;
	}
	printf("{\"client\": \"%s\", \"round\": %d, \"starts\": %d, \"cpu_us_a_start\": %.3f, \"wall_us_a_start\": %.3f}\n",
	       WAYS[way].name, round, done, (cpu() - cpu_before) / done * 1e6, (wall() - began) / done * 1e6);
	fflush(stdout);
}

/* In pages of the small size: with huge ones fork would look cheaper here than in a program with many small objects. */
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

static size_t way_of(const char *name)
{
	for (size_t way = 0; way < WAY_COUNT; way++)
		if (strcmp(WAYS[way].name, name) == 0)
			return way;
	fprintf(stderr, "starts: no way is called %s\n", name);
	exit(2);
}

/* The same orders in each run. */
static void shuffle(size_t *ways, int count)
{
	static unsigned long state = 1;
	for (int left = count; left > 1; left--) {
		state = state * 6364136223846793005UL + 1442695040888963407UL;
		int other = (int)((state >> 33) % (unsigned long)left);
		size_t last = ways[left - 1];
		ways[left - 1] = ways[other];
		ways[other] = last;
	}
}

int main(int argc, char **argv)
{
	size_t chosen[WAY_COUNT];
	if (argc < 6 || (size_t)argc - 5 > WAY_COUNT) {
		fprintf(stderr, "usage: starts PROGRAM MEMORY_MIB ROUNDS STARTS WAY...\n");
		return 2;
	}
	program = argv[1];
	arguments[0] = program;
	touch((size_t)atol(argv[2]) << 20);
	int rounds = atoi(argv[3]), starts = atoi(argv[4]), count = argc - 5;
	for (int way = 0; way < count; way++)
		chosen[way] = way_of(argv[5 + way]);
	for (int round = 0; round < rounds; round++) {
		shuffle(chosen, count);
		for (int turn = 0; turn < count; turn++)
			batch(chosen[turn], round, starts);
	}
	return 0;
}
