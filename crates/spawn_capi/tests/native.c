/* Uses every function of sshoal_spawn.h. Ends with the number of the line that was wrong, or 0. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sshoal_spawn.h"

#define CHECK(what)                                                                                                    \
	do {                                                                                                               \
		if (!(what)) {                                                                                                 \
			fprintf(stderr, "line %d: not so: %s (errno %d)\n", __LINE__, #what, errno);                              \
			_exit(1);                                                                                                  \
		}                                                                                                              \
	} while (0)


/* Runs a shell script as prepared, and compares its output. */
static sshoal_spawn *script(const char *text)
{
	const char *argv[] = {"sh", "-c", text, NULL};
	sshoal_spawn *spawn = sshoal_spawn_new("/bin/sh", argv);
	CHECK(spawn != NULL);
	CHECK(sshoal_spawn_stream(spawn, 1, SSHOAL_PIPE) == 0);
	return spawn;
}

static void gives(sshoal_spawn *spawn, const char *wanted)
{
	char text[4096];
	size_t length = 0;
	ssize_t count;
	int status = -1;
	sshoal_process *process = sshoal_spawn_start(spawn, NULL);
	CHECK(process != NULL);
	int out = sshoal_process_take(process, 1);
	CHECK(out >= 0);
	CHECK(sshoal_process_take(process, 1) == -1 && errno == EBADF);
	while ((count = read(out, text + length, sizeof text - 1 - length)) > 0)
		length += (size_t)count;
	text[length] = 0;
	if (strcmp(text, wanted) != 0)
		fprintf(stderr, "got %s", text);
	CHECK(strcmp(text, wanted) == 0);
	CHECK(sshoal_process_wait(process, &status) == 0 && status == 0);
	CHECK(close(out) == 0);
	sshoal_process_free(process);
	sshoal_spawn_free(spawn);
}

static void surroundings(const char *folder)
{
	struct rlimit limit = {20, 20};
	sshoal_spawn *spawn = script("pwd; umask; ulimit -n; echo \"$ONE-${TWO-none}\"; read line <&9; echo \"$line\"");
	CHECK(sshoal_spawn_directory(spawn, folder) == 0);
	sshoal_spawn_umask(spawn, 027);
	CHECK(sshoal_spawn_limit(spawn, RLIMIT_NOFILE, &limit) == 0);
	CHECK(sshoal_spawn_limit(spawn, 12345, &limit) == -1 && errno == EINVAL);
	CHECK(sshoal_spawn_setenv(spawn, "ONE", "1") == 0);
	CHECK(sshoal_spawn_setenv(spawn, "TWO", "2") == 0);
	CHECK(sshoal_spawn_setenv(spawn, "A=B", "2") == -1 && errno == EINVAL);
	CHECK(sshoal_spawn_unsetenv(spawn, "TWO") == 0);
	int pipe_ends[2];
	CHECK(pipe(pipe_ends) == 0 && write(pipe_ends[1], "nine\n", 5) == 5);
	CHECK(sshoal_spawn_descriptor(spawn, 9, pipe_ends[0]) == 0);
	CHECK(sshoal_spawn_descriptor(spawn, 9, 999) == -1 && errno == EBADF);
	CHECK(close(pipe_ends[0]) == 0 && close(pipe_ends[1]) == 0);
	char wanted[8192];
	snprintf(wanted, sizeof wanted, "%s\n0027\n20\n1-none\nnine\n", folder);
	gives(spawn, wanted);

	const char *env_argv[] = {"env", NULL};
	spawn = sshoal_spawn_new("/usr/bin/env", env_argv);
	CHECK(sshoal_spawn_stream(spawn, 1, SSHOAL_PIPE) == 0);
	sshoal_spawn_clearenv(spawn);
	CHECK(sshoal_spawn_setenv(spawn, "ONLY", "this") == 0);
	gives(spawn, "ONLY=this\n");

	spawn = script("test $$ = \"$(cut -d' ' -f5,6 /proc/$$/stat | cut -d' ' -f2)\" && echo session");
	sshoal_spawn_new_session(spawn);
	gives(spawn, "session\n");
	spawn = script("test $$ = \"$(cut -d' ' -f5 /proc/$$/stat)\" && echo group");
	CHECK(sshoal_spawn_process_group(spawn, 0) == 0);
	CHECK(sshoal_spawn_process_group(spawn, -5) == -1 && errno == EINVAL);
	gives(spawn, "group\n");

	gid_t groups[] = {getgid()};
	spawn = script("id -u");
	char uid[32];
	snprintf(uid, sizeof uid, "%u\n", getuid());
	sshoal_spawn_user(spawn, getuid());
	sshoal_spawn_group(spawn, getgid());
	if (getuid() == 0)
		sshoal_spawn_groups(spawn, 1, groups);
	gives(spawn, uid);
}

/* The line of a signal set in the status of a program that is started as prepared; freed with it. */
static unsigned long long set_of(sshoal_spawn *spawn, const char *name)
{
	char line[256];
	unsigned long long set = ~0ull;
	sshoal_process *process = sshoal_spawn_start(spawn, NULL);
	CHECK(process != NULL);
	FILE *status = fdopen(sshoal_process_take(process, 1), "r");
	while (fgets(line, sizeof line, status))
		if (strncmp(line, name, strlen(name)) == 0)
			set = strtoull(line + strlen(name), NULL, 16);
	CHECK(fclose(status) == 0 && sshoal_process_wait(process, NULL) == 0);
	sshoal_process_free(process);
	sshoal_spawn_free(spawn);
	return set;
}

static void signal_sets(void)
{
	const char *argv[] = {"cat", "/proc/self/status", NULL};
	sigset_t set;
	for (int part = 0; part < 4; part++) {
		sshoal_spawn *spawn = sshoal_spawn_new("cat", argv);
		CHECK(sshoal_spawn_stream(spawn, 1, SSHOAL_PIPE) == 0);
		sigemptyset(&set);
		if (part == 0) {
			sigaddset(&set, SIGUSR1);
			sshoal_spawn_signal_mask(spawn, &set);
			CHECK(set_of(spawn, "SigBlk:") == 1ull << (SIGUSR1 - 1));
		} else if (part == 1) {
			sigaddset(&set, SIGUSR2);
			CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
			sshoal_spawn_signal_mask(spawn, NULL);
			CHECK(set_of(spawn, "SigBlk:") == 1ull << (SIGUSR2 - 1));
			CHECK(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
		} else if (part == 2) {
			sigaddset(&set, SIGHUP);
			sshoal_spawn_ignore_signals(spawn, &set);
			CHECK(set_of(spawn, "SigIgn:") & 1ull << (SIGHUP - 1));
		} else {
			CHECK(signal(SIGHUP, SIG_IGN) != SIG_ERR);
			sigaddset(&set, SIGHUP);
			sshoal_spawn_default_signals(spawn, &set);
			CHECK(!(set_of(spawn, "SigIgn:") & 1ull << (SIGHUP - 1)));
			CHECK(signal(SIGHUP, SIG_DFL) != SIG_ERR);
		}
	}
}

static void streams(const char *folder)
{
	char file[4096];
	snprintf(file, sizeof file, "%s/out", folder);
	const int ways[] = {SSHOAL_CREATE, SSHOAL_APPEND};
	for (int way = 0; way < 2; way++) {
		sshoal_spawn *spawn = script("echo line >&2");
		CHECK(sshoal_spawn_stream_file(spawn, 2, file, (enum sshoal_file)ways[way]) == 0);
		gives(spawn, "");
	}
	sshoal_spawn *spawn = script("cat; echo error >&2");
	CHECK(sshoal_spawn_stream_file(spawn, 0, file, SSHOAL_READ) == 0);
	CHECK(sshoal_spawn_stream_file(spawn, 3, file, SSHOAL_READ) == -1 && errno == EINVAL);
	CHECK(sshoal_spawn_stream(spawn, 2, SSHOAL_STDOUT) == 0);
	CHECK(sshoal_spawn_stream(spawn, 1, SSHOAL_STDOUT) == -1 && errno == EINVAL);
	gives(spawn, "line\nline\nerror\n");
	for (int method = SSHOAL_AUTOMATIC; method <= SSHOAL_POSIX_SPAWN; method++) {
		spawn = script("cat; echo end");
		CHECK(sshoal_spawn_stream(spawn, 0, SSHOAL_NULL) == 0);
		CHECK(sshoal_spawn_method(spawn, (enum sshoal_method)method) == 0);
		gives(spawn, "end\n");
	}
	/* A descriptor that is not close-on-exec. */
	int leaky = fcntl(open("/dev/null", O_RDONLY | O_CLOEXEC), F_DUPFD, 7);
	CHECK(leaky >= 7 && leaky < 10);
	char text[64];
	for (int inherit = 0; inherit < 2; inherit++) {
		snprintf(text, sizeof text, "test -e /proc/$$/fd/%d && echo yes || echo no", leaky);
		spawn = script(text);
		sshoal_spawn_inherit_descriptors(spawn, inherit);
		gives(spawn, inherit ? "yes\n" : "no\n");
	}
}

static void life(void)
{
	const char *step = NULL;
	const char *missing[] = {"missing", NULL};
	sshoal_spawn *spawn = sshoal_spawn_new("/no/such/program", missing);
	CHECK(sshoal_spawn_start(spawn, &step) == NULL && errno == ENOENT && strcmp(step, "executing it") == 0);
	sshoal_spawn_free(spawn);
	CHECK(sshoal_spawn_new(NULL, missing) == NULL && errno == EINVAL);

	const char *cat[] = {"cat", NULL};
	int status = 0;
	spawn = sshoal_spawn_new("cat", cat);
	CHECK(sshoal_spawn_stream(spawn, 0, SSHOAL_PIPE) == 0);
	sshoal_spawn_with_pidfd(spawn);
	sshoal_process *process = sshoal_spawn_start(spawn, &step);
	CHECK(process != NULL && sshoal_process_pid(process) > 0);
	CHECK(sshoal_process_try_wait(process, &status) == 0);
	CHECK(sshoal_process_signal(process, 0) == -1 && errno == EINVAL);
	CHECK(sshoal_process_signal(process, SIGTERM) == 0);
	struct pollfd ended = {sshoal_process_pidfd(process), POLLIN, 0};
	CHECK(poll(&ended, 1, -1) == 1);
	CHECK(sshoal_process_try_wait(process, &status) == 1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	sshoal_process_free(process);
	sshoal_spawn_free(spawn);
}

static void popen_and_pclose(void)
{
	char line[64];
	const char *echo[] = {"echo", "a b;c", NULL};
	FILE *stream = sshoal_popen("echo", echo, "r");
	CHECK(stream != NULL && fgets(line, sizeof line, stream) && strcmp(line, "a b;c\n") == 0);
	CHECK(sshoal_pclose(stream) == 0);
	const char *reads[] = {"sh", "-c", "read word; exit $word", NULL};
	stream = sshoal_popen("/bin/sh", reads, "w");
	CHECK(stream != NULL && fputs("7\n", stream) >= 0);
	/* An earlier stream is not the next program's: the first would never end otherwise. */
	FILE *second = sshoal_popen("/bin/sh", reads, "we");
	CHECK(second != NULL);
	int status = sshoal_pclose(stream);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	CHECK(fputs("8\n", second) >= 0);
	CHECK(WEXITSTATUS(sshoal_pclose(second)) == 8);
	CHECK(sshoal_pclose(stdin) == -1 && errno == ECHILD);
	CHECK(sshoal_popen("echo", echo, "x") == NULL && errno == EINVAL);
	const char *missing[] = {"missing", NULL};
	CHECK(sshoal_popen("/no/such/program", missing, "r") == NULL && errno == ENOENT);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	surroundings(argv[1]);
	signal_sets();
	streams(argv[1]);
	life();
	popen_and_pclose();
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	puts("all is so");
	return 0;
}
