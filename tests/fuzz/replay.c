/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver of a fuzz target that is not built for fuzzing: every file of the directories (or every file)
 * on the command line goes through the target once, so that a corpus is also a regression test.
 */

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "os/fd.h"

enum { REPLAY_SIZE_MAX = 32 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int replay_file(const char *path)
{
	cleanup_free char *bytes = NULL;
	uint8_t *exact;
	size_t size;
	int r = fd_read_file_at(AT_FDCWD, path, REPLAY_SIZE_MAX, &bytes, &size);

	if (r < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
		return r;
	}
	/* A copy of the exact size: a read beyond the end is then seen by the address sanitizer. */
	exact = malloc(size ? size : 1);
	if (!exact)
		return -ENOMEM;
	memcpy(exact, bytes, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
	return 0;
}

static int replay_directory(const char *path, unsigned *count)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -errno;
	}
	while (r == 0 && (entry = readdir(dir))) {
		char file[4096];

		if (entry->d_name[0] == '.')
			continue;
		r = str_format(file, sizeof file, "%s/%s", path, entry->d_name);
		if (r == 0)
			r = replay_file(file);
		++*count;
	}
	closedir(dir);
	return r;
}

int main(int argc, char **argv)
{
	unsigned count = 0;
	struct stat st;

	for (int i = 1; i < argc; i++) {
		int r;

		if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode)) {
			r = replay_directory(argv[i], &count);
		} else {
			r = replay_file(argv[i]);
			count++;
		}
		if (r < 0)
			return 1;
	}
	/* An empty corpus proves nothing. */
	if (!count)
		fprintf(stderr, "no inputs\n");
	return count ? 0 : 1;
}
