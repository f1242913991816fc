/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The whole system, staged ("let it install and see"). The root of a sandbox is a file system of its own, on which
 * /proc, /dev, /run and /tmp are its own as well; so `/` becomes a tree for each other directory in it, and its links
 * are links. A new name in `/` itself cannot be made. What is mounted below and no layer can lie on is left out: a
 * /proc in somebody's chroot, a network share, the trees of other containers; and of a user the directories that hold a
 * mount.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/str.h"
#include "build/mount-plan-parts.h"

/* Made by the jail, or for nobody but the kernel and fsck. */
static const char *const own[] = { "/proc", "/sys", "/dev", "/run", "/tmp", "/lost+found" };

static bool is_own(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (str_equal(path, own[i]))
			return true;
	return false;
}

/* target: where it is inside. */
static int add_link(struct plan *plan, const char *path, const char *target, const char *rule)
{
	char text[PATH_MAX];
	ssize_t size = readlink(path, text, sizeof text - 1);
	const char *kept = size > 0 ? plan_keep(plan, strndup(text, (size_t)size)) : NULL;

	if (size <= 0)
		return 0;
	if (!kept)
		return -ENOMEM;
	return plan_add(plan, (struct jail_mount){ .kind = JAIL_SYMLINK,
						   .target = target,
						   .content = kept,
						   .content_size = (size_t)size,
						   .rule = rule });
}

bool plan_can_stage(const struct plan *plan, const char *path)
{
	static const long kinds[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC };
	struct statfs fs;

	if (!plan->input.run_as_root || plan->input.by_fuse || statfs(path, &fs) < 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if ((long)fs.f_type == kinds[i])
			return true;
	return false;
}

/* To a user the kernel gives no layer of a tree in which something is mounted. */
static bool is_locked(struct plan *plan, const char *path)
{
	char *const *points;

	return !plan->input.run_as_root && !plan->input.by_fuse && plan_points_below(plan, path, &points) > 0;
}

static int add_directory(struct plan *plan, const struct policy *policy, size_t index,
			 const struct plan_tree_request *request, bool is_mount)
{
	int r;

	/* What this user may not even list (/root) is not there, nor a file system that no layer can lie on. */
	if (!plan->input.run_as_root && access(request->path, R_OK | X_OK) < 0)
		return 0;
	if (is_mount && !plan_can_stage(plan, request->path))
		return 0;
	/* Without the one that holds the project nothing could run: there the kernel's refusal is told. */
	if (!path_is_below(policy->project, request->path) && is_locked(plan, request->path))
		return 0;
	r = plan_add_tree(plan, request);
	if (r == 0 && plan->input.has_mounts_below)
		r = plan_add_mounts_below(plan, policy, index, request);
	return r;
}

static int add_name(struct plan *plan, const struct policy *policy, size_t index, const char *name,
		    const struct plan_tree_request *like)
{
	struct plan_tree_request request = *like;
	struct stat st, root;

	request.is_system = true;
	request.path = plan_keep(plan, str_printf("/%s", name));
	if (!request.path)
		return -ENOMEM;
	if (is_own(request.path) || plan_has_own_entry(policy, index, request.path) || lstat(request.path, &st) < 0 ||
	    stat("/", &root) < 0)
		return 0;
	if (S_ISLNK(st.st_mode))
		return add_link(plan, request.path, request.path, request.rule);
	return S_ISDIR(st.st_mode) ? add_directory(plan, policy, index, &request, st.st_dev != root.st_dev) : 0;
}

int plan_add_system(struct plan *plan, const struct policy *policy, size_t index,
		    const struct plan_tree_request *like, struct err *err)
{
	struct dirent **names = NULL;
	int count = scandir("/", &names, NULL, alphasort), r = count < 0 ? -errno : 0;

	for (int i = 0; i < count; i++) {
		if (r == 0 && !str_equal(names[i]->d_name, ".") && !str_equal(names[i]->d_name, ".."))
			r = add_name(plan, policy, index, names[i]->d_name, like);
		free(names[i]);
	}
	free(names);
	return r < 0 ? err_set(err, ERR_POLICY, -r, "stage", "/ (%s) cannot be staged: %s", like->rule,
			       err_errno_name(-r)) : 0;
}

/* ---- a root of its own ---- */

/*
 * Each directory of it is a staged tree at its own place, each link a link. Its /home is left out, for there the host's
 * user has his. Where the policy lets no new program run, it is read-only: in a staged tree what is written would be as
 * good as what was there.
 */

static const char root_rule[] = "root";

static bool is_left_out(const struct policy *policy, const char *target)
{
	if (is_own(target) || str_equal(target, "/home"))
		return true;
	/* A home of the sandbox's own, or the project itself. */
	for (size_t i = 0; i < policy->files.plan_count; i++)
		if (policy->files.plan[i].class != FILE_READ && str_equal(target, policy->files.plan[i].path))
			return true;
	return false;
}

static int add_root_directory(struct plan *plan, const struct plan_tree_request *request)
{
	if (plan->new_binaries)
		return plan_add_tree(plan, request);
	return plan_add(plan, (struct jail_mount){ .kind = JAIL_BIND,
						   .flags = JAIL_RDONLY | JAIL_OWNED,
						   .target = request->target,
						   .source = request->path,
						   .rule = request->rule });
}

/* Something directly below the root that is neither directory nor link is left out. */
static int add_root_name(struct plan *plan, const char *name)
{
	struct plan_tree_request request = { .rule = root_rule };
	struct stat st;

	request.path = plan_keep(plan, str_printf("%s/%s", plan->input.root_from, name));
	request.target = plan_keep(plan, str_printf("/%s", name));
	if (!request.path || !request.target)
		return -ENOMEM;
	if (is_left_out(plan->input.policy, request.target))
		return 0;
	if (lstat(request.path, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return add_link(plan, request.path, request.target, root_rule);
	return S_ISDIR(st.st_mode) ? add_root_directory(plan, &request) : 0;
}

int plan_add_root(struct plan *plan, struct err *err)
{
	struct dirent **names = NULL;
	int count = scandir(plan->input.root_from, &names, NULL, alphasort), r = count < 0 ? -errno : 0;

	for (int i = 0; i < count; i++) {
		if (r == 0 && !str_equal(names[i]->d_name, ".") && !str_equal(names[i]->d_name, ".."))
			r = add_root_name(plan, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	if (r == 0)
		return 0;
	err_set(err, ERR_STATE, -r, "root", "the root %s cannot be taken: %s", plan->input.root_from,
		r == -E2BIG ? "too many directories" : err_errno_name(-r));
	err_hint(err, "`atoll template list` shows which there are");
	return r;
}
