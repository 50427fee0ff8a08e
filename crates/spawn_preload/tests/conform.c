/* What POSIX and glibc say of popen, pclose and system. Run with and without libsshoal_preload: all of it must hold in
 * both. Called by itself with an option it is the program that is started.
 *
 *     conform           all checks; the last line is "all is so"
 *     conform --fds     prints the numbers of its open descriptors
 *     conform --signals prints its ignored and blocked signals
 *     conform --parent  prints those of the one who began ($CONFORM_PID)
 *     conform --sleep   waits for the end of its standard input
 *     conform --forever tells its number and waits for ever
 *     conform --unread  closes its standard input and ends
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) check((what) ? 1 : 0, #what, __LINE__)

static char self[512];

static void check(int holds, const char *what, int line)
{
	if (!holds) {
		fprintf(stderr, "conform.c:%d: %s (errno %d)\n", line, what, errno);
		exit(1);
	}
}

/* ---- what is started ---- */

static void print_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(folder))
			printf("<%s>", entry->d_name);
	printf("\n");
}

static void print_signals(pid_t pid)
{
	char path[64], line[256];
	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	FILE *status = fopen(path, "r");
	while (status && fgets(line, sizeof line, status))
		if (strncmp(line, "SigBlk", 6) == 0 || strncmp(line, "SigIgn", 6) == 0 || strncmp(line, "SigCgt", 6) == 0)
			printf("%s", line);
}

static int be_started(const char *how)
{
	char piece[64];
	if (strcmp(how, "--fds") == 0)
		print_descriptors();
	else if (strcmp(how, "--signals") == 0)
		print_signals(getpid());
	else if (strcmp(how, "--parent") == 0)
		print_signals((pid_t)atoi(getenv("CONFORM_PID")));
	else if (strcmp(how, "--unread") == 0)
		close(0);
	else if (strcmp(how, "--sleep") == 0)
		while (read(0, piece, sizeof piece) > 0)
			;
	else if (strcmp(how, "--forever") == 0) {
		dprintf(7, "%d\n", (int)getpid());
		for (;;)
			pause();
	}
	return 0;
}

/* ---- help for the checks ---- */

static const char *command(const char *option, const char *more)
{
	static char line[1024];
	snprintf(line, sizeof line, "%s %s%s", self, option, more);
	return line;
}

static char *output_of(const char *line)
{
	static char text[4096];
	FILE *stream = popen(line, "r");
	CHECK(stream != NULL);
	size_t length = fread(text, 1, sizeof text - 1, stream);
	text[length] = 0;
	CHECK(pclose(stream) == 0);
	return text;
}

/* A bit of a set as /proc tells it: hexadecimal, after its name. */
static int has_signal(const char *text, const char *set, int number)
{
	const char *found = strstr(text, set);
	CHECK(found != NULL);
	return (strtoull(found + strlen(set) + 1, NULL, 16) >> (number - 1)) & 1;
}

static int has_descriptor(const char *text, int number)
{
	char wanted[32];
	snprintf(wanted, sizeof wanted, "<%d>", number);
	return strstr(text, wanted) != NULL;
}

static char *system_output(const char *line)
{
	static char text[4096];
	int saved = dup(1), file = open(".", O_TMPFILE | O_RDWR, 0600);
	CHECK(file >= 0);
	dup2(file, 1);
	CHECK(system(line) == 0);
	dup2(saved, 1);
	ssize_t length = pread(file, text, sizeof text - 1, 0);
	CHECK(length >= 0);
	text[length] = 0;
	close(file);
	close(saved);
	return text;
}

static void noted(int number)
{
	(void)number;
}

/* ---- the checks ---- */

static void check_modes(void)
{
	const char *bad[] = {"", "x", "rw", "r+", "rb"};
	for (size_t at = 0; at < sizeof bad / sizeof bad[0]; at++) {
		errno = 0;
		CHECK(popen("true", bad[at]) == NULL && errno == EINVAL);
	}
	FILE *open_one = popen(command("--sleep", ""), "w"), *closed_one = popen(command("--sleep", ""), "ew");
	CHECK(fcntl(fileno(open_one), F_GETFD) == 0);
	CHECK(fcntl(fileno(closed_one), F_GETFD) == FD_CLOEXEC);
	CHECK(pclose(open_one) == 0 && pclose(closed_one) == 0);
}

static void check_statuses(void)
{
	CHECK(system(NULL) != 0);
	CHECK(system("") == 0 && system("exit 3") == 3 << 8 && system("kill -TERM $$") == SIGTERM);
	/* Some, such as Lua, take an errno for a failure. */
	errno = 0;
	CHECK(system("exit 4") == 4 << 8 && system(command("--unread", "")) == 0 && pclose(popen("true", "r")) == 0);
	CHECK(errno == 0);
	CHECK(system("/no/such/program 2>/dev/null") == 127 << 8);
	int errors = dup(2), null = open("/dev/null", O_WRONLY);
	dup2(null, 2);
	int missing = system("/no/such/program"), refused = system("/dev/null");
	int nowhere = pclose(popen("no-such-program-anywhere", "r"));
	dup2(errors, 2);
	close(errors);
	close(null);
	CHECK(missing == 127 << 8 && refused == 126 << 8 && nowhere == 127 << 8);
}

static void check_closing(void)
{
	FILE *file = fopen("/dev/null", "r");
	CHECK(pclose(file) == 0);
	FILE *stream = popen("exit 5", "r");
	CHECK(fclose(stream) == 5 << 8);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);

	FILE *gone = popen(command("--sleep", ""), "w");
	CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	CHECK(pclose(gone) == -1 && errno == ECHILD);
	CHECK(system(command("--unread", "")) == -1 && errno == ECHILD);
	CHECK(signal(SIGCHLD, SIG_DFL) == SIG_IGN);
}

static void check_unwritten(void)
{
	CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	FILE *stream = popen(command("--unread", ""), "w");
	siginfo_t ended;
	CHECK(waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT) == 0);
	fputs("nobody reads this", stream);
	CHECK(pclose(stream) == -1 && errno == EPIPE);
	CHECK(signal(SIGPIPE, SIG_DFL) == SIG_IGN);
}

static void check_descriptors(const char *more)
{
	int kept = fcntl(0, F_DUPFD, 40), lost = fcntl(0, F_DUPFD_CLOEXEC, 50);
	FILE *earlier = popen(command("--sleep", ""), "w");
	int stream = fileno(earlier);
	const char *popens = output_of(command("--fds", more));
	CHECK(has_descriptor(popens, kept) && !has_descriptor(popens, lost) && !has_descriptor(popens, stream));
	const char *systems = system_output(command("--fds", more));
	CHECK(has_descriptor(systems, kept) && !has_descriptor(systems, lost) && has_descriptor(systems, stream));
	/* A later child that held the earlier stream would keep its reader from ending. */
	FILE *later = popen(command("--sleep", more), "w");
	CHECK(pclose(earlier) == 0 && pclose(later) == 0);
	close(kept);
	close(lost);
}

static void check_low_descriptors(void)
{
	int input = dup(0), output = dup(1);
	close(0);
	close(1);
	FILE *reads = popen(command("--fds", ""), "r"), *writes = popen(command("--sleep", ""), "w");
	char line[256] = "";
	int read_one = fgets(line, sizeof line, reads) != NULL;
	int ended = pclose(reads), ended_too = pclose(writes);
	dup2(input, 0);
	dup2(output, 1);
	close(input);
	close(output);
	CHECK(read_one && has_descriptor(line, 1) && ended == 0 && ended_too == 0);
}

static void check_limits(void)
{
	struct rlimit before, none_left;
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	none_left = before;
	none_left.rlim_cur = 3;
	CHECK(setrlimit(RLIMIT_NOFILE, &none_left) == 0);
	errno = 0;
	FILE *refused = popen(command("--unread", ""), "r");
	int number = errno;
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	CHECK(refused == NULL && number == EMFILE);
}

/* An environment with which nothing can be executed, be it a program or a shell. */
static void check_too_much(void)
{
	char *huge = malloc(200001);
	CHECK(huge != NULL);
	memset(huge, 'x', 200000);
	huge[200000] = 0;
	CHECK(setenv("CONFORM_HUGE", huge, 1) == 0);
	free(huge);
	const char *more[] = {"", "; :"};
	for (int way = 0; way < 2; way++) {
		errno = 0;
		CHECK(popen(command("--unread", more[way]), "r") == NULL && errno == ENOMEM);
		CHECK(system(command("--unread", more[way])) == 127 << 8);
	}
	CHECK(unsetenv("CONFORM_HUGE") == 0);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

static void check_signals(const char *more)
{
	struct sigaction handled = {.sa_handler = noted}, found;
	sigset_t blocked, before, after;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	CHECK(pthread_sigmask(SIG_BLOCK, &blocked, &before) == 0);
	CHECK(sigaction(SIGINT, &handled, NULL) == 0 && signal(SIGQUIT, SIG_IGN) != SIG_ERR);

	const char *child = system_output(command("--signals", more));
	CHECK(!has_signal(child, "SigIgn:", SIGINT) && !has_signal(child, "SigCgt:", SIGINT));
	CHECK(has_signal(child, "SigIgn:", SIGQUIT));
	CHECK(!has_signal(child, "SigBlk:", SIGCHLD) && !has_signal(child, "SigBlk:", SIGINT));
	int blocks = has_signal(child, "SigBlk:", SIGUSR1);
	child = output_of(command("--signals", more));
	CHECK(!has_signal(child, "SigIgn:", SIGINT) && has_signal(child, "SigIgn:", SIGQUIT));
	/* dash blocks nothing, bash what its caller does: the same by popen and by system. */
	CHECK(has_signal(child, "SigBlk:", SIGUSR1) == blocks);

	if (*more == 0) {
		const char *parent = system_output(command("--parent", ""));
		CHECK(has_signal(parent, "SigIgn:", SIGINT) && has_signal(parent, "SigIgn:", SIGQUIT));
		CHECK(has_signal(parent, "SigBlk:", SIGCHLD));
	}
	CHECK(sigaction(SIGINT, NULL, &found) == 0 && found.sa_handler == noted);
	CHECK(pthread_sigmask(SIG_SETMASK, &before, &after) == 0);
	CHECK(sigismember(&after, SIGUSR1) == 1 && sigismember(&after, SIGCHLD) == 0);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
}

/* dash has a handler for it, bash hands it on: a program alone finds what one in a longer line finds. */
static void check_ignored_child_signal(void)
{
	const char *more[] = {"", "; :"};
	int ignored[2] = {-1, -1};
	char line[64];
	CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	for (int way = 0; way < 2; way++) {
		FILE *stream = popen(command("--signals", more[way]), "r");
		while (fgets(line, sizeof line, stream))
			if (strncmp(line, "SigIgn", 6) == 0)
				ignored[way] = has_signal(line, "SigIgn:", SIGCHLD);
		pclose(stream);
	}
	signal(SIGCHLD, SIG_DFL);
	CHECK(ignored[0] != -1 && ignored[0] == ignored[1]);
}

static void check_interruptions(void)
{
	struct sigaction handled = {.sa_handler = noted};
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	CHECK(sigaction(SIGALRM, &handled, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
	CHECK(system("sleep 0.05; exit 4") == 4 << 8 && system("sleep 0.05") == 0);
	CHECK(pclose(popen("sleep 0.05", "r")) == 0);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

static void *run_for_ever(void *line)
{
	system(line);
	return NULL;
}

/* Descriptor 7 is the pipe by which the child tells its number. */
static void check_cancellation(const char *more)
{
	int ends[2];
	char number[32] = "", line[1024];
	void *outcome;
	pthread_t thread;
	CHECK(pipe2(ends, O_CLOEXEC) == 0 && dup2(ends[1], 7) == 7);
	snprintf(line, sizeof line, "%s", command("--forever", more));
	CHECK(pthread_create(&thread, NULL, run_for_ever, line) == 0);
	CHECK(read(ends[0], number, sizeof number - 1) > 0);
	CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &outcome) == 0 && outcome == PTHREAD_CANCELED);
	/* glibc ends the shell, and leaves what it has started. */
	int left = kill((pid_t)atoi(number), SIGKILL) == 0;
	CHECK(!left || *more != 0 || getenv("LD_PRELOAD") == NULL);
	struct sigaction found;
	CHECK(sigaction(SIGINT, NULL, &found) == 0 && found.sa_handler == SIG_DFL);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	close(ends[0]);
	close(ends[1]);
	close(7);
}

static void check_environment(void)
{
	CHECK(setenv("CONFORM", "was set", 1) == 0);
	CHECK(strstr(output_of("env"), "CONFORM=was set\n") != NULL);
	CHECK(unsetenv("CONFORM") == 0);
	char *path = strdup(getenv("PATH"));
	CHECK(unsetenv("PATH") == 0 && system("cat /dev/null") == 0);
	CHECK(setenv("PATH", "", 1) == 0 && system("cat /dev/null 2>/dev/null") == 127 << 8);
	CHECK(setenv("PATH", path, 1) == 0 && system("cat /dev/null") == 0);
	free(path);
	if (geteuid() == 0 && seteuid(65534) == 0) {
		/* A shell gives up what is not its real user's. */
		CHECK(strcmp(output_of("id -u"), "0\n") == 0 && seteuid(0) == 0);
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return be_started(argv[1]);
	char number[32];
	snprintf(number, sizeof number, "%d", (int)getpid());
	CHECK(setenv("CONFORM_PID", number, 1) == 0);
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	CHECK(length > 0);
	check_modes();
	check_statuses();
	check_closing();
	check_unwritten();
	check_low_descriptors();
	check_interruptions();
	check_ignored_child_signal();
	check_limits();
	check_too_much();
	check_environment();
	/* Each by a program alone, and by a line that needs a shell. */
	const char *ways[] = {"", "; true"};
	for (int way = 0; way < 2; way++) {
		check_descriptors(ways[way]);
		check_signals(ways[way]);
		check_cancellation(ways[way]);
	}
	puts("all is so");
	return 0;
}
