/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stands in the place of a program while tests/escape/test_breach.py has the attacker's code in it: takes the lines
 * "NAME=VALUE" of the file beside it, which ends in .env, into the environment, and becomes the program, which ends in
 * .real. The box starts programs by a descriptor and with an environment of its own, so a script could not do it.
 */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char own[PATH_MAX], path[PATH_MAX + 8], line[PATH_MAX + 64];
	ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
	FILE *file;

	(void)argc;
	own[length > 0 ? length : 0] = 0;
	snprintf(path, sizeof path, "%s.env", own);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		char *value = strchr(line, '=');

		line[strcspn(line, "\n")] = 0;
		if (value) {
			*value = 0;
			setenv(line, value + 1, 1);
		}
	}
	snprintf(path, sizeof path, "%s.real", own);
	execv(path, argv);
	return 125;
}
