/* Runs command lines, each by popen or by system in turn, and writes what they print and how they end to its standard
 * output:
 *
 *     replay FILE       the lines of FILE, each ended by a NUL
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *contents(const char *path, long *size)
{
	FILE *file = fopen(path, "r");
	struct stat found;
	if (file == NULL || fstat(fileno(file), &found) != 0)
		abort();
	*size = (long)found.st_size;
	char *text = malloc((size_t)*size + 1);
	if (text == NULL || fread(text, 1, (size_t)*size, file) != (size_t)*size)
		abort();
	fclose(file);
	return text;
}

static int by_popen(const char *line)
{
	char piece[512];
	size_t length;
	FILE *stream = popen(line, "r");
	if (stream == NULL)
		return -2;
	while ((length = fread(piece, 1, sizeof piece, stream)) > 0)
		fwrite(piece, 1, length, stdout);
	return pclose(stream);
}

int main(int argc, char **argv)
{
	long size, number = 0;
	char digits[32];
	if (argc != 2)
		return 2;
	char *lines = contents(argv[1], &size);
	unsetenv("PWD");
	for (char *line = lines; line < lines + size; line += strlen(line) + 1, number++) {
		snprintf(digits, sizeof digits, "%ld", number);
		setenv("LINE", digits, 1);
		int status = number % 2 ? system(line) : by_popen(line);
		printf("\n== %ld: wait status %d\n", number, status);
		fflush(stdout);
	}
	free(lines);
	return 0;
}
