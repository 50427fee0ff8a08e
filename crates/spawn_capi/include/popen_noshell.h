/* popen_noshell.h: the functions of the library popen_noshell, by libsshoal_spawn. Programs written for that library
 * are built again with this header and -lsshoal_spawn, unchanged. Differences: sshoal_spawn(3).
 */
#ifndef POPEN_NOSHELL_H
#define POPEN_NOSHELL_H

#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The size of the stack that popen_noshell_vmfork gives its child. */
#define POPEN_NOSHELL_STACK_SIZE (8 * 1024 * 1024)

/* For popen_noshell_set_fork_mode. */
#define POPEN_NOSHELL_MODE_CLONE 0
#define POPEN_NOSHELL_MODE_FORK 1
#define POPEN_NOSHELL_MODE_POSIX_SPAWN 2

/* What popen_noshell keeps for pclose_noshell. Only fp and pid are for others to read. */
struct popen_noshell_pass_to_pclose {
	FILE *fp;
	pid_t pid;
	void *process;
	void *reserved;
};

/* The program `file`, searched in PATH, with these arguments. type "r": its standard output is read, and its standard
 * input is /dev/null. "w": its standard input is written to, and its standard output is /dev/null. stderr_mode 0: its
 * standard error is the caller's; 1: /dev/null; 2: where its standard output goes. */
FILE *popen_noshell(const char *file, const char *const *argv, const char *type,
                    struct popen_noshell_pass_to_pclose *pclose_arg, int stderr_mode);

/* The same with a command line, divided at blanks, with quotes; errno is EINVAL where it needs a shell. */
FILE *popen_noshell_compat(const char *command, const char *type, struct popen_noshell_pass_to_pclose *pclose_arg);

/* Closes the stream and waits. Returns the status as waitpid(2) gives it, or -1 with errno set. */
int pclose_noshell(struct popen_noshell_pass_to_pclose *arg);

/* A process that runs fn(arg) in the caller's memory, while the caller's thread sleeps until it calls exec or ends. It
 * is waited for with waitpid(pid, &status, __WALL); then *memory_to_free_on_child_exit is to be freed. */
pid_t popen_noshell_vmfork(int (*fn)(void *), void *arg, void **memory_to_free_on_child_exit);

/* How popen_noshell makes processes, for the whole program. */
void popen_noshell_set_fork_mode(int mode);
int popen_noshell_get_fork_mode(void);

#ifdef __cplusplus
}
#endif

#endif
