/* A program written for the library popen_noshell: all its functions, all its modes. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "popen_noshell.h"

#define CHECK(what)                                                                                                    \
	do {                                                                                                               \
		if (!(what)) {                                                                                                 \
			fprintf(stderr, "line %d: not so: %s (errno %d)\n", __LINE__, #what, errno);                              \
			_exit(1);                                                                                                  \
		}                                                                                                              \
	} while (0)

static char text[4096];

/* Reads a stream to its end and closes it; returns the status. */
static int rest(FILE *stream, struct popen_noshell_pass_to_pclose *pass)
{
	CHECK(stream != NULL && stream == pass->fp);
	size_t length = fread(text, 1, sizeof text - 1, stream);
	text[length] = 0;
	return pclose_noshell(pass);
}

static void reads_and_writes(void)
{
	struct popen_noshell_pass_to_pclose pass;
	const char *echo[] = {"echo", "one two", NULL};
	CHECK(rest(popen_noshell("echo", echo, "r", &pass, 0), &pass) == 0 && strcmp(text, "one two\n") == 0);

	/* Standard input is /dev/null, standard error as its mode says. */
	const char *both[] = {"sh", "-c", "cat; echo out; echo err >&2; exit 3", NULL};
	CHECK(WEXITSTATUS(rest(popen_noshell("sh", both, "r", &pass, 1), &pass)) == 3 && strcmp(text, "out\n") == 0);
	CHECK(WEXITSTATUS(rest(popen_noshell("sh", both, "r", &pass, 2), &pass)) == 3 && strcmp(text, "out\nerr\n") == 0);

	/* Standard output is /dev/null. */
	const char *takes[] = {"sh", "-c", "read line; [ /proc/$$/fd/1 -ef /dev/null ] && exit $line", NULL};
	FILE *stream = popen_noshell("sh", takes, "w", &pass, 0);
	CHECK(stream != NULL && pass.pid > 0 && fputs("9\n", stream) >= 0);
	CHECK(WEXITSTATUS(pclose_noshell(&pass)) == 9);

	CHECK(popen_noshell("echo", echo, "rw", &pass, 0) == NULL && errno == EINVAL);
}

static void failures(const char *script)
{
	struct popen_noshell_pass_to_pclose pass;
	const char *missing[] = {"/no/such/program", NULL};
	CHECK(WEXITSTATUS(rest(popen_noshell(missing[0], missing, "r", &pass, 1), &pass)) == 255 && text[0] == 0);
	CHECK(WEXITSTATUS(rest(popen_noshell(missing[0], missing, "r", &pass, 2), &pass)) == 255);
	CHECK(strstr(text, "/no/such/program") && strstr(text, "No such file"));
	const char *echo[] = {"echo", NULL};
	CHECK(WEXITSTATUS(rest(popen_noshell("echo", echo, "r", &pass, 5), &pass)) == 254);
	/* The child that could not execute its program is a child like others: it can be waited for by its number. */
	siginfo_t ended = {0};
	CHECK(popen_noshell(missing[0], missing, "r", &pass, 1) == pass.fp && pass.pid > 0);
	CHECK(waitid(P_PID, pass.pid, &ended, WEXITED | WNOWAIT) == 0);
	CHECK(ended.si_pid == pass.pid && ended.si_code == CLD_EXITED && ended.si_status == 255);
	CHECK(WEXITSTATUS(pclose_noshell(&pass)) == 255);
	/* So is that of a stream that would have been written to. */
	CHECK(popen_noshell(missing[0], missing, "w", &pass, 1) == pass.fp && kill(pass.pid, 0) == 0);
	CHECK(WEXITSTATUS(pclose_noshell(&pass)) == 255 && waitpid(pass.pid, NULL, 0) == -1 && errno == ECHILD);
	/* execvp(3) gives a file without a first line of its own to the shell. */
	const char *words[] = {"script", "word", NULL};
	CHECK(rest(popen_noshell(script, words, "r", &pass, 0), &pass) == 0 && strcmp(text, "script: word\n") == 0);
}

static void command_lines(void)
{
	struct popen_noshell_pass_to_pclose pass;
	CHECK(rest(popen_noshell_compat("echo 'a  b'\t\"c d\" e", "r", &pass), &pass) == 0);
	CHECK(strcmp(text, "a  b c d e\n") == 0);
	CHECK(popen_noshell_compat("echo $HOME", "r", &pass) == NULL && errno == EINVAL);
	CHECK(popen_noshell_compat("", "r", &pass) == NULL && errno == EINVAL);
}

static int child(void *argument)
{
	*(int *)argument = 42;
	execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
	return 1;
}

static int returns(void *argument)
{
	return *(int *)argument;
}

static void vmfork(void)
{
	int seen = 0, status = 0;
	void *memory = NULL;
	pid_t pid = popen_noshell_vmfork(child, &seen, &memory);
	CHECK(pid > 0 && memory != NULL && seen == 42);
	CHECK(waitpid(pid, &status, __WALL) == pid && WEXITSTATUS(status) == 5);
	free(memory);
	pid = popen_noshell_vmfork(returns, &seen, &memory);
	CHECK(waitpid(pid, &status, __WALL) == pid && WEXITSTATUS(status) == 42);
	free(memory);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	CHECK(popen_noshell_get_fork_mode() == POPEN_NOSHELL_MODE_CLONE);
	const int modes[] = {POPEN_NOSHELL_MODE_CLONE, POPEN_NOSHELL_MODE_FORK, POPEN_NOSHELL_MODE_POSIX_SPAWN};
	for (int mode = 0; mode < 3; mode++) {
		popen_noshell_set_fork_mode(modes[mode]);
		CHECK(popen_noshell_get_fork_mode() == modes[mode]);
		reads_and_writes();
		failures(argv[1]);
		command_lines();
	}
	vmfork();
	CHECK(waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD);
	puts("all is so");
	return 0;
}
