/* SPDX-License-Identifier: Apache-2.0 */

/* What all that fills the new root shares: file systems of the sandbox's own, and what covers a name. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jail/root.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/path.h"

int root_format_number(char *out, size_t size, uint64_t value)
{
	char digits[24];
	size_t count = 0;

	do {
		digits[count++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	if (count >= size)
		return -ENAMETOOLONG;
	for (size_t i = 0; i < count; i++)
		out[i] = digits[count - 1 - i];
	out[count] = 0;
	return 0;
}

int root_new_tmpfs(uint64_t size_bytes, uint64_t inodes, const char *mode, uint64_t attributes)
{
	char size[24], nodes[24];
	struct mount_option options[3] = { { "mode", mode } };
	size_t count = 1;

	if (size_bytes && root_format_number(size, sizeof size, size_bytes) == 0)
		options[count++] = (struct mount_option){ "size", size };
	if (inodes && root_format_number(nodes, sizeof nodes, inodes) == 0)
		options[count++] = (struct mount_option){ "nr_inodes", nodes };
	return mount_new("tmpfs", options, count, attributes);
}

static int mask_source(struct root *root, bool is_directory)
{
	int *fd = is_directory ? &root->mask_directory : &root->mask_file;
	const char *name = is_directory ? ".mask-directory" : ".mask-file";

	if (*fd >= 0)
		return *fd;
	/* In an empty directory every name is absent; an empty file that can be read would be taken for real. */
	if (is_directory ? mkdirat(root->fd, name, 0555) < 0 : mknodat(root->fd, name, S_IFREG, 0) < 0)
		return -errno;
	return *fd = path_open2(root->fd, name, O_PATH, 0, ROOT_INSIDE);
}

int root_cover(struct root *root, int target_fd)
{
	cleanup_fd int tree = FD_NONE;
	int is_directory = root_is_directory(target_fd), source, r;

	if (is_directory < 0)
		return is_directory;
	source = mask_source(root, is_directory);
	if (source < 0)
		return source;
	tree = mount_clone(source, "", false);
	if (tree < 0)
		return tree;
	r = mount_seal(tree, false, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
		       FD_NONE);
	return r < 0 ? r : mount_attach(tree, target_fd);
}
