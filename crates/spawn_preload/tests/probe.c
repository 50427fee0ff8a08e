/* What the command lines of the tests start. It prints its arguments, and ends as they say:
 *
 *     probe exit N      with status N
 *     probe kill N      by signal N
 *     probe err WORD    after printing the word on the standard error, too
 *
 * To the file $EVIDENCE it adds a line: the number of the command line ($LINE), and whether a shell has started it. A
 * shell hands on PWD in any case; the caller of these command lines has no such variable.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void leave_evidence(void)
{
	const char *path = getenv("EVIDENCE"), *line = getenv("LINE");
	if (path == NULL || line == NULL)
		return;
	FILE *evidence = fopen(path, "a");
	if (evidence == NULL)
		abort();
	fprintf(evidence, "%s %s\n", line, getenv("PWD") ? "shell" : "direct");
	fclose(evidence);
}

int main(int argc, char **argv)
{
	leave_evidence();
	for (int at = 0; at < argc; at++)
		printf("[%s]", argv[at]);
	printf("\n");
	fflush(stdout);
	if (argc > 2 && strcmp(argv[1], "err") == 0)
		fprintf(stderr, "err: %s\n", argv[2]);
	if (argc > 2 && strcmp(argv[1], "kill") == 0)
		raise(atoi(argv[2]));
	if (argc > 2 && strcmp(argv[1], "exit") == 0)
		return atoi(argv[2]);
	return 0;
}
