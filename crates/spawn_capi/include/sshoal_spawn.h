/* sshoal_spawn.h: starts programs as fast as vfork does, from any thread, and says which step failed.
 *
 * Manual page: sshoal_spawn(3). Link with -lsshoal_spawn, or as `pkg-config --cflags --libs sshoal_spawn` says.
 *
 * Functions that return int return 0, or -1 with errno set; those that return a pointer return NULL with errno set.
 * All may be called from any thread; one object belongs to one thread at a time.
 */
#ifndef SSHOAL_SPAWN_H
#define SSHOAL_SPAWN_H

#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
/* Not <signal.h>: with -std=c99 and the like that has no sigset_t. */
#include <sys/select.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A program to start, and how. */
typedef struct sshoal_spawn sshoal_spawn;
/* A program that was started. */
typedef struct sshoal_process sshoal_process;

/* What a standard stream is connected to. */
enum sshoal_stream {
	SSHOAL_INHERIT = 0, /* the caller's own: so it is unless something else is asked for */
	SSHOAL_NULL = 1,    /* /dev/null */
	SSHOAL_PIPE = 2,    /* a new pipe: sshoal_process_take() gives its other end */
	SSHOAL_STDOUT = 3   /* standard error only: where the standard output goes */
};

/* How a file is opened for a standard stream, when the program is started. */
enum sshoal_file {
	SSHOAL_READ = 0,
	SSHOAL_CREATE = 1, /* made, or emptied if it is there */
	SSHOAL_APPEND = 2  /* made if it is not there, written to at its end */
};

/* How a process is made. */
enum sshoal_method {
	SSHOAL_AUTOMATIC = 0,  /* by clone, sharing memory; by posix_spawn where that is not possible */
	SSHOAL_CLONE = 1,      /* by clone, or not at all */
	SSHOAL_FORK = 2,       /* by a copy of the caller's memory */
	SSHOAL_POSIX_SPAWN = 3 /* by posix_spawn(3) */
};

/* A program, searched in PATH unless there is a slash in its name. argv[0] is its name for itself; the array ends with
 * NULL. Strings are copied. */
sshoal_spawn *sshoal_spawn_new(const char *file, const char *const argv[]);
void sshoal_spawn_free(sshoal_spawn *spawn);

/* Standard streams: number is 0, 1 or 2. */
int sshoal_spawn_stream(sshoal_spawn *spawn, int number, enum sshoal_stream stream);
int sshoal_spawn_stream_file(sshoal_spawn *spawn, int number, const char *path, enum sshoal_file how);
/* The program's descriptor `number` is a copy of the caller's `fd` as it is now; the caller may close its own. */
int sshoal_spawn_descriptor(sshoal_spawn *spawn, int number, int fd);
/* 1: the program also has all descriptors that are not close-on-exec. 0: only those given to it. 0 unless called. */
void sshoal_spawn_inherit_descriptors(sshoal_spawn *spawn, int inherit);

/* Variables: those of the caller, unless these are called. */
void sshoal_spawn_clearenv(sshoal_spawn *spawn);
int sshoal_spawn_setenv(sshoal_spawn *spawn, const char *name, const char *value);
int sshoal_spawn_unsetenv(sshoal_spawn *spawn, const char *name);

int sshoal_spawn_directory(sshoal_spawn *spawn, const char *path);
void sshoal_spawn_new_session(sshoal_spawn *spawn);
/* 0: a new group, led by the program. */
int sshoal_spawn_process_group(sshoal_spawn *spawn, pid_t group);
void sshoal_spawn_umask(sshoal_spawn *spawn, mode_t mask);
int sshoal_spawn_limit(sshoal_spawn *spawn, int resource, const struct rlimit *limit);
/* The program's signal mask: an empty one unless this is called. NULL: its caller's. */
void sshoal_spawn_signal_mask(sshoal_spawn *spawn, const sigset_t *mask);
/* Signals that get their default disposition even if the caller ignores them: SIGPIPE unless this is called. */
void sshoal_spawn_default_signals(sshoal_spawn *spawn, const sigset_t *signals);
void sshoal_spawn_ignore_signals(sshoal_spawn *spawn, const sigset_t *signals);
/* Who the program is. Memory is then copied, as fork does it. */
void sshoal_spawn_user(sshoal_spawn *spawn, uid_t user);
void sshoal_spawn_group(sshoal_spawn *spawn, gid_t group);
void sshoal_spawn_groups(sshoal_spawn *spawn, size_t count, const gid_t *groups);
/* Makes the process's descriptor with the process: needed where SIGCHLD is ignored, or other code waits for any child. */
void sshoal_spawn_with_pidfd(sshoal_spawn *spawn);
int sshoal_spawn_method(sshoal_spawn *spawn, enum sshoal_method method);

/* Starts the program. When this returns it has been executed. On failure nothing is left of the attempt, errno says
 * what the step answered, and *step, unless step is NULL, which step it was: words that live for ever. The same
 * sshoal_spawn may be started again. */
sshoal_process *sshoal_spawn_start(const sshoal_spawn *spawn, const char **step);

pid_t sshoal_process_pid(const sshoal_process *process);
/* Readable for poll(2) when the process has ended; made at the first call. -1: ENOSYS before Linux 5.3, ECHILD or ESRCH
 * once the process was waited for. It is closed by sshoal_process_free(). */
int sshoal_process_pidfd(const sshoal_process *process);
/* The other end of the pipe of stream 0, 1 or 2: from now on the caller's to close. */
int sshoal_process_take(sshoal_process *process, int number);
/* Waits. A pipe to the standard input that was not taken is closed first. *status is as waitpid(2) gives it. */
int sshoal_process_wait(sshoal_process *process, int *status);
/* Does not wait: 1 if it has ended, 0 if not, -1 on error. */
int sshoal_process_try_wait(sshoal_process *process, int *status);
/* Never reaches another process than this one. */
int sshoal_process_signal(const sshoal_process *process, int signal);
/* Closes what was not taken. Neither waits nor ends the process. */
void sshoal_process_free(sshoal_process *process);

/* popen(3) and pclose(3), with arguments in place of a shell's command line. type is "r" or "w"; the stream is
 * close-on-exec in any case. The program has all its caller's descriptors that are not close-on-exec, its signal mask
 * and ignored signals. A program that cannot be executed is an error of sshoal_popen. */
FILE *sshoal_popen(const char *file, const char *const argv[], const char *type);
int sshoal_pclose(FILE *stream);

#ifdef __cplusplus
}
#endif

#endif
