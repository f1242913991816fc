/* SPDX-License-Identifier: Apache-2.0 */
#include "build/stage-backend.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/str.h"
#include "build/fuse.h"
#include "os/fd.h"
#include "os/mount-list.h"
#include "os/path.h"
#include "policy/decide.h"

enum { GROUPS_MAX = 1024 };

/* Why no overlay can have its layers in the state directory; NULL: nothing speaks against it. */
static const char *state_trouble(const struct run_request *request)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, request->state_dir, O_RDONLY | O_DIRECTORY, 0);
	struct statfs fs;
	char value;

	if (str_equal(request->tests.broken_wall, "overlay"))
		return "a test says so";
	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return NULL; /* it cannot be used at all, which says more */
	/* As in most containers: an overlay takes neither whiteouts nor the upper layer of another one. */
	if (fs.f_type == OVERLAYFS_SUPER_MAGIC)
		return "it is an overlay itself";
	if (fgetxattr(fd, "user.overlay.opaque", &value, 1) < 0 && errno == EOPNOTSUPP)
		return "its file system takes no user.* attributes";
	return NULL;
}

/* As a user the kernel makes no layer of a tree in which something is mounted. */
static bool has_locked_mounts(const struct policy *policy)
{
	bool found = false;

	if (geteuid() == 0)
		return false;
	for (size_t i = 0; !found && i < policy->files.plan_count; i++) {
		char **points;

		if (policy->files.plan[i].class != FILE_STAGE ||
		    mount_points_below(policy->files.plan[i].path, &points) < 0)
			continue;
		found = points[0] != NULL;
		strv_free(points);
	}
	return found;
}

/* ---- files of others ---- */

struct who {
	uid_t uid;
	gid_t gid, groups[GROUPS_MAX];
	int group_count;
};

static bool is_in_group(const struct who *who, gid_t gid)
{
	for (int i = 0; i < who->group_count; i++)
		if (who->groups[i] == gid)
			return true;
	return gid == who->gid;
}

/* What the user may change outside, and the kernel's overlay could not copy up. */
static bool needs_ids(const struct who *who, const struct stat *st)
{
	if (st->st_uid == who->uid)
		return st->st_gid != who->gid;
	if (S_ISLNK(st->st_mode))
		return false;
	return st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && is_in_group(who, st->st_gid));
}

/* Looks at what lies right in a directory, whose descriptor it takes. */
static bool finds_needs_in(const struct who *who, int dir_fd)
{
	DIR *dir = path_list(dir_fd);
	const struct dirent *entry;
	bool found = false;
	struct stat st;

	if (!dir)
		return false;
	for (int looks = 0; !found && looks < BACKEND_LOOKS && (entry = readdir(dir)); looks++)
		found = !str_equal(entry->d_name, "..") &&
			fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && needs_ids(who, &st);
	closedir(dir);
	return found;
}

static bool has_others_files(const struct who *who, const char *tree)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, tree, O_RDONLY | O_DIRECTORY, 0);

	return fd >= 0 && (finds_needs_in(who, fd_duplicate(fd)) ||
			   finds_needs_in(who, fd_open_at(fd, ".git", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)));
}

/* Root's trees are idmapped. Of a whole system a user can change nothing but what is his. */
static bool has_files_of_others(const struct policy *policy)
{
	struct who who = { .uid = geteuid(), .gid = getegid() };
	bool found = false;

	if (!who.uid)
		return false;
	who.group_count = getgroups(GROUPS_MAX, who.groups);
	for (size_t i = 0; !found && i < policy->files.plan_count; i++)
		found = policy->files.plan[i].class == FILE_STAGE && !str_equal(policy->files.plan[i].path, "/") &&
			has_others_files(&who, policy->files.plan[i].path);
	return found;
}

/* ---- the choice ---- */

static bool is_fuse_there(void)
{
	return fuse_is_installed() && access("/dev/fuse", R_OK | W_OK) == 0;
}

static enum backend_reason choose(const struct run_request *request, const struct policy *policy, bool has_trouble)
{
	if (!policy_stages_any(policy))
		return BACKEND_OVERLAY;
	if (policy->stage.backend == STAGE_BY_FUSE)
		return BACKEND_FUSE;
	/* The list of mounts comes last: to read it takes the kernel longer than all the rest here. */
	if (policy->stage.backend == STAGE_BY_AUTO && is_fuse_there() && (has_trouble || has_locked_mounts(policy)))
		return BACKEND_FUSE;
	/* A fork stands on layers of the kernel's overlay, or it has been refused; snapshots need those. */
	if (has_trouble || request->fork.origin || !has_files_of_others(policy))
		return BACKEND_OVERLAY;
	return policy->stage.backend == STAGE_BY_AUTO && policy->stage.snapshots == STAGE_AUTO_OFF && is_fuse_there() ?
		       BACKEND_FUSE_FOR_OTHERS : BACKEND_OVERLAY_NO_FUSE;
}

bool backend_is_fuse(enum backend_reason reason)
{
	return reason == BACKEND_FUSE || reason == BACKEND_FUSE_FOR_OTHERS;
}

int backend_choose(const struct run_request *request, const struct policy *policy, enum backend_reason *ret_reason,
		   struct err *err)
{
	const char *trouble = policy_stages_any(policy) ? state_trouble(request) : NULL;

	*ret_reason = choose(request, policy, trouble);
	if (*ret_reason == BACKEND_FUSE && policy->stage.snapshots == STAGE_AUTO_EXEC) {
		err_set(err, ERR_POLICY, EOPNOTSUPP, "stage",
			"`stage.auto` needs snapshots, and fuse-overlayfs (`stage.backend`) has none");
		err_hint(err, "take `stage: {auto: off}`, or `backend: overlay` with XDG_STATE_HOME on ext4, xfs, "
			      "btrfs or tmpfs");
		return -EOPNOTSUPP;
	}
	if (backend_is_fuse(*ret_reason) || !trouble)
		return 0;
	err_set(err, ERR_WALL, EINVAL, wall_names[WALL_MOUNTS],
		"nothing can be staged, because the state directory %s lies on an overlay or a similar file system: "
		"%s", request->state_dir,
		trouble);
	err_hint(err,
		 "point XDG_STATE_HOME at another file system (a volume, a tmpfs); or have fuse-overlayfs stage, with "
		 "`stage: {backend: fuse}` in the policy (it needs the package fuse-overlayfs and /dev/fuse); or write "
		 "the tree in place (`files.write`)");
	return -EINVAL;
}
