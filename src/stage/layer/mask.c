/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/layer/attributes.h"
#include "stage/layer/layer.h"
#include "stage/record/store.h"

/*
 * The mask layer lies right above the host's tree, so a name that is whited out in it is gone from the merge whatever
 * the host puts there later. A directory of the mask wins over the host's in the merge; therefore each takes the
 * attributes of the host's, and gets its times back after every name that is made in it.
 */

enum { NAME_SIZE = 64 };

/* Where the walk along a path stands: the same directory in the mask and on the host. */
struct place {
	int mask_fd;           /* owned */
	int host_fd;           /* owned but for that of the root */
	struct stat host;      /* of host_fd */
	bool is_root;          /* what the merge shows of the root are the attributes of the live layer */
	int stage_fd;          /* borrowed */
	enum stage_form form;
};

static void place_done(struct place *place)
{
	close_fd(&place->mask_fd);
	if (!place->is_root)
		close_fd(&place->host_fd);
}

static int restore_times(const struct place *place)
{
	struct timespec times[2] = { place->host.st_atim, place->host.st_mtim };

	if (place->is_root)
		return 0;
	return futimens(place->mask_fd, times) < 0 ? -errno : 0;
}

/*
 * All whiteouts of a session are links of one inode, as the overlay's own are: each new inode costs a file system more
 * than a name, and ext4 most of all where the runs before have just given theirs back.
 */
static int make_device(const struct place *place, const char *name)
{
	static const char shared[] = STAGE_DIRECTORY_MASK "/whiteout";

	if (linkat(place->stage_fd, shared, place->mask_fd, name, 0) == 0)
		return 0;
	if (errno != ENOENT && errno != EMLINK)
		return -errno;
	if (mknodat(place->mask_fd, name, S_IFCHR, makedev(0, 0)) < 0)
		return -errno;
	/* Without it the next one is a new inode, and nothing else. */
	(void)!linkat(place->mask_fd, name, place->stage_fd, shared, 0);
	return 0;
}

/* The file systems that fuse-overlayfs stands in for take no such devices. */
static int make_prefixed(const struct place *place, const char *name)
{
	cleanup_fd int fd = FD_NONE;
	char prefixed[NAME_MAX + 1];
	int r = str_format(prefixed, sizeof prefixed, STAGE_WHITEOUT_PREFIX "%s", name);

	if (r == 0)
		r = fd = fd_open_at(place->mask_fd, prefixed, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
	return r < 0 ? r : path_remove_tree(place->mask_fd, name);
}

static int make_whiteout(const struct place *place, const char *name)
{
	return place->form == STAGE_FORM_FUSE ? make_prefixed(place, name) : make_device(place, name);
}

static bool is_whited_out(const struct place *place, const char *name)
{
	char prefixed[NAME_MAX + 1];
	struct stat st;

	if (place->form == STAGE_FORM_FUSE)
		return str_format(prefixed, sizeof prefixed, STAGE_WHITEOUT_PREFIX "%s", name) == 0 &&
		       fstatat(place->mask_fd, prefixed, &st, AT_SYMLINK_NOFOLLOW) == 0;
	return fstatat(place->mask_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && stage_is_whiteout(&st);
}

/* 1: it stands in the mask already, as a whiteout. */
static int white_out(const struct place *place, const char *name)
{
	int r = make_whiteout(place, name);

	if (r == 0)
		return restore_times(place);
	if (r != -EEXIST)
		return r;
	/* A directory that an earlier, deeper name needed: the whole goes now. */
	if (is_whited_out(place, name))
		return 0;
	if (path_remove_tree(place->mask_fd, name) < 0 || make_whiteout(place, name) < 0)
		return -EEXIST;
	return restore_times(place);
}

/* It stands in for the host's, so its attributes are what the sandbox sees, and what a change is told by. */
static int take_xattrs(int mask_fd, int host_path_fd)
{
	cleanup_fd int host_fd = path_open2(host_path_fd, ".", O_RDONLY | O_DIRECTORY, 0, STAGE_RESOLVE_BENEATH);

	/* A directory that may not be read shows none. */
	return host_fd < 0 ? 0 : attributes_match(host_fd, mask_fd, attributes_is_content);
}

/*
 * One component further. 1: nothing more to do, for it is whited out (or was): the host has no such
 * directory, so that nothing can be below it.
 */
static int step(struct place *place, const char *name, const struct stage_tree *tree)
{
	struct place next = { .mask_fd = FD_NONE, .host_fd = FD_NONE, .stage_fd = place->stage_fd,
			      .form = place->form };
	int r;

	/* A link as the last component is opened as such, to be told from a file. */
	next.host_fd = path_open2(place->host_fd, name, O_PATH | O_NOFOLLOW, 0,
				  STAGE_RESOLVE_BENEATH & ~(uint64_t)RESOLVE_NO_SYMLINKS);
	if (next.host_fd == -ENOENT) {
		r = white_out(place, name);
		return r < 0 ? r : 1;
	}
	r = next.host_fd < 0 ? next.host_fd : 0;
	if (r == 0 && fstat(next.host_fd, &next.host) < 0)
		r = -errno;
	if (r == 0 && !S_ISDIR(next.host.st_mode))
		r = S_ISLNK(next.host.st_mode) ? -ELOOP : -ENOTDIR;
	if (r == 0 && is_whited_out(place, name)) {
		place_done(&next);
		return 1;
	}
	if (r == 0 && mkdirat(place->mask_fd, name, 0700) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0)
		next.mask_fd = r = fd_open_at(place->mask_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r >= 0)
		r = take_xattrs(next.mask_fd, next.host_fd);
	if (r == 0)
		r = stage_take_attributes(next.mask_fd, &next.host, tree);
	if (r == 0)
		r = restore_times(place);
	if (r < 0) {
		place_done(&next);
		return r;
	}
	place_done(place);
	*place = next;
	return 0;
}

static int make_root(const struct stage_mask *mask, const char *path, const struct stat *host)
{
	cleanup_fd int fd = FD_NONE;
	int r = path_make_directories(mask->stage_fd, path, 0700);

	if (r == 0)
		r = fd = fd_open_at(mask->stage_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r >= 0)
		r = stage_take_attributes(fd, host, mask->tree);
	return r < 0 ? r : take_fd(&fd);
}

/* The root of the mask layer, made where it is missing. Most policies mask a dozen names in it, and do nothing else. */
static int open_root(const struct stage_mask *mask, struct place *place)
{
	char path[NAME_SIZE];
	int r = str_format(path, sizeof path, STAGE_DIRECTORY_MASK "/%zu", mask->tree_index);

	*place = (struct place){
		.host_fd = mask->host_fd, .mask_fd = FD_NONE, .is_root = true, .stage_fd = mask->stage_fd,
		.form = mask->form,
	};
	if (r == 0)
		r = fstat(place->host_fd, &place->host) < 0 ? -errno : 0;
	if (r == 0)
		place->mask_fd = r = fd_open_at(mask->stage_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r == -ENOENT)
		place->mask_fd = r = make_root(mask, path, &place->host);
	return r < 0 ? r : 0;
}

static int make_opaque_file(const struct place *place)
{
	cleanup_fd int fd = fd_open_at(place->mask_fd, STAGE_OPAQUE_NAME, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);

	return fd < 0 ? fd : restore_times(place);
}

/* After the names that look absent: the file may be in the place of one. */
static int write_file(const struct place *place, const char *name, const struct stage_mask *mask)
{
	struct stat like = place->host;
	cleanup_fd int fd = FD_NONE;
	char prefixed[NAME_MAX + 1];
	int r = str_format(prefixed, sizeof prefixed, "%s%s",
			   place->form == STAGE_FORM_FUSE ? STAGE_WHITEOUT_PREFIX : "", name);

	like.st_mode = 0600;
	if (r == 0 && is_whited_out(place, name) && unlinkat(place->mask_fd, prefixed, 0) < 0)
		r = -errno;
	if (r == 0)
		r = fd = fd_open_at(place->mask_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (r >= 0)
		r = fd_write_full(fd, mask->content, mask->content_size);
	if (r == 0)
		r = stage_take_attributes(fd, &like, mask->tree);
	return r < 0 ? r : restore_times(place);
}

static int finish(struct place *place, const char *name, enum stage_mask_kind kind, const struct stage_mask *mask)
{
	int r;

	if (kind == STAGE_MASK_NAME)
		return white_out(place, name);
	if (kind == STAGE_MASK_FILE)
		return write_file(place, name, mask);
	r = *name ? step(place, name, mask->tree) : 0;
	if (r != 0)
		return r < 0 ? r : 0;
	if (place->form == STAGE_FORM_FUSE)
		return make_opaque_file(place);
	/* user.*: the overlay is mounted with userxattr, as in a user's own namespace it must be. */
	if (fsetxattr(place->mask_fd, "user.overlay.opaque", "y", 1, 0) < 0)
		return -errno;
	return 0;
}

static int add(const struct stage_mask *mask, const char *path, enum stage_mask_kind kind)
{
	struct place place;
	char component[NAME_MAX + 1];
	int r = open_root(mask, &place);

	while (r == 0) {
		const char *slash = strchrnul(path, '/');
		size_t length = (size_t)(slash - path);

		if (length > NAME_MAX || (!length && (*path || kind != STAGE_MASK_CONTENT))) {
			r = length ? -ENAMETOOLONG : -EINVAL;
			break;
		}
		memcpy(component, path, length);
		component[length] = 0;
		if (str_equal(component, "..") || str_equal(component, ".")) {
			r = -EINVAL;
			break;
		}
		if (!*slash) {
			r = finish(&place, component, kind, mask);
			break;
		}
		r = step(&place, component, mask->tree);
		path = slash + 1;
	}
	place_done(&place);
	return r < 0 ? r : 0;
}

int stage_mask_add(const struct stage_mask *mask, const char *path, enum stage_mask_kind kind, struct err *err)
{
	int r = add(mask, path, kind);

	if (r == -ELOOP || r == -ENOTDIR) {
		err_set(err, ERR_POLICY, -r, "stage", "the masked path %s/%s leads through %s", mask->tree->path, path,
			r == -ELOOP ? "a symbolic link" : "a file");
		err_hint(err, "mask the real path");
	} else if (r < 0) {
		err_set(err, ERR_STATE, -r, "stage", "the masked path %s/%s cannot be hidden: %s", mask->tree->path,
			path, err_errno_name(-r));
	}
	return r;
}
