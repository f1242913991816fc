/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/str.h"
#include "stage/layer/layer.h"

/*
 * What the kernel writes on its own accord with userxattr, redirect_dir=off, metacopy=off, index=off. Anything else in
 * this namespace was put there by somebody who is not the overlay.
 */
static const char *const known[] = {
	"impure", "nlink", "upper", "uuid", "protattr",
};

#define PREFIX "user.overlay."
#define FUSE_PREFIX "user.fuseoverlayfs."

enum { LIST_MAX = 64 << 10, LINK_SIZE = 32 + 256 + sizeof STAGE_OPAQUE_NAME };

bool stage_xattr_is_overlay(const char *name)
{
	return str_has_prefix(name, PREFIX) || str_has_prefix(name, FUSE_PREFIX) ||
	       str_has_prefix(name, "trusted.overlay.");
}

/* A file or directory by its fd, or by a name: there are no *at calls for attributes before Linux 6.13. */
struct target {
	int fd;
	const char *path; /* NULL: fd */
	enum stage_form form;
};

static ssize_t list(const struct target *target, char *out, size_t size)
{
	return target->path ? llistxattr(target->path, out, size) : flistxattr(target->fd, out, size);
}

static ssize_t get(const struct target *target, const char *name, char *out, size_t size)
{
	return target->path ? lgetxattr(target->path, name, out, size) : fgetxattr(target->fd, name, out, size);
}

static void note(const struct target *target, const char *name, struct stage_marks *marks)
{
	bool is_fuse = target->form == STAGE_FORM_FUSE && str_has_prefix(name, FUSE_PREFIX);
	const char *rest = name + (is_fuse ? sizeof FUSE_PREFIX : sizeof PREFIX) - 1;
	char value[2];

	if (!is_fuse && !str_has_prefix(name, PREFIX)) {
		marks->has_user |= str_has_prefix(name, "user.");
		return;
	}
	if (str_equal(rest, "opaque")) {
		/* "x" would mean whiteouts that are attributes, which this overlay never makes. */
		if (get(target, name, value, sizeof value) == 1 && value[0] == 'y')
			marks->is_opaque = true;
		else
			marks->is_forged = true;
		return;
	}
	if (str_equal(rest, "origin")) {
		marks->is_copied_up = true;
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (str_equal(rest, known[i]))
			return;
	/* What the sandbox sets as user.overlay.X arrives as user.overlay.overlay.X: its own, if an odd one. */
	marks->is_forged |= !str_has_prefix(rest, "overlay.");
}

/* It writes the file as well as the attribute, which the sandbox may take off. */
static bool has_opaque_file(const struct target *target)
{
	struct stat st;
	char path[LINK_SIZE];

	if (target->form != STAGE_FORM_FUSE)
		return false;
	if (!target->path)
		return fstatat(target->fd, STAGE_OPAQUE_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0;
	return str_format(path, sizeof path, "%s/" STAGE_OPAQUE_NAME, target->path) == 0 && lstat(path, &st) == 0;
}

static int read_marks(const struct target *target, struct stage_marks *ret_marks)
{
	char small[512];
	cleanup_free char *large = NULL;
	struct stage_marks marks = { 0 };
	char *names = small;
	ssize_t size = list(target, small, sizeof small);

	if (size < 0 && errno == ERANGE) {
		names = large = malloc(LIST_MAX);
		if (!large)
			return -ENOMEM;
		size = list(target, large, LIST_MAX);
	}
	if (size < 0 && (errno == EOPNOTSUPP || errno == ENODATA))
		size = 0;
	if (size < 0)
		return -errno;
	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1)
		note(target, names + at, &marks);
	marks.is_opaque |= has_opaque_file(target);
	*ret_marks = marks;
	return 0;
}

int stage_marks_of_fd(int fd, enum stage_form form, struct stage_marks *ret_marks)
{
	return read_marks(&(struct target){ .fd = fd, .form = form }, ret_marks);
}

int stage_marks_at(int dir_fd, const char *name, enum stage_form form, struct stage_marks *ret_marks)
{
	char path[LINK_SIZE];
	int r = str_format(path, sizeof path, "/proc/self/fd/%d/%s", dir_fd, name);

	return r < 0 ? r : read_marks(&(struct target){ .path = path, .form = form }, ret_marks);
}
