/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An archive or an image of any bytes, unpacked into a directory with a neighbour. Whatever becomes of it, the
 * neighbour has what it had, nothing beside the two is made, and nothing in it has a set-id bit or is a device.
 */

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image/bundle.h"
#include "os/fd.h"
#include "os/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char place[] = "/tmp/atolltest-image-XXXXXX";
static bool is_made;

static void remove_place(void)
{
	(void)!path_remove_tree(AT_FDCWD, place);
}

/* Once for all inputs. */
static void make_place(void)
{
	int fd;

	if (is_made)
		return;
	is_made = true;
	if (!mkdtemp(place) || chdir(place) < 0 || atexit(remove_place) != 0 || mkdir("outside", 0755) < 0)
		abort();
	fd = open("outside/kept", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, "kept", 4) != 4)
		abort();
	close(fd);
}

static int check_entry(const char *path, const struct stat *st, int kind, struct FTW *level)
{
	if (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode) && !S_ISLNK(st->st_mode))
		abort();
	return !S_ISLNK(st->st_mode) && st->st_mode & 06000 ? -1 : 0;
}

static size_t entries_in(const char *path)
{
	DIR *directory = opendir(path);
	size_t count = 0;

	if (!directory)
		abort();
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct image_target target;
	struct err err = { 0 };
	char kept[8] = "";
	int source, root, fd, r;

	make_place();
	source = fd_memfd_new("image");
	if (source < 0 || fd_write_full(source, bytes, size) < 0 || mkdir("root", 0755) < 0)
		abort();
	root = open("root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	image_target_init(&target, root);
	r = bundle_unpack(&target, source, &err);
	if (r < 0 ? err.code == ERR_NONE : image_complete(&target) < 0 && target.counts.files < IMAGE_ENTRIES_MAX - 4)
		abort();
	fd = open("outside/kept", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, kept, sizeof kept) != 4 || memcmp(kept, "kept", 4) != 0)
		abort();
	/* With "." and "..". */
	if (entries_in(".") != 4 || entries_in("outside") != 3 || nftw("root", check_entry, 16, FTW_PHYS) != 0)
		abort();
	close(fd);
	close(root);
	close(source);
	if (path_remove_tree(AT_FDCWD, "root") < 0)
		abort();
	return 0;
}
