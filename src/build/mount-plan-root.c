/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A sandbox whose system is not the host's. What stands for it is a directory that was imported (src/image); what the
 * policy says of the host's system is not said of it, for nothing of the host lies there. What it says of other paths
 * (the project, the home, private directories) holds as ever. mount-plan-system.c has its mounts.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>

#include "base/str.h"
#include "build/mount-plan-parts.h"
#include "os/fd.h"
#include "os/path.h"

/* Where a Linux system keeps what it consists of: hier(7). */
static const char *const system_names[] = {
	"/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/sbin", "/srv", "/usr", "/var",
};

bool plan_is_of_root(const struct plan *plan, const char *path)
{
	const struct policy *policy = plan->input.policy;

	if (!plan->input.root_from || (policy->project[0] && path_is_below(path, policy->project)) ||
	    (policy->home[0] && path_is_below(path, policy->home)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(system_names); i++)
		if (path_is_below(path, system_names[i]))
			return true;
	return false;
}

int plan_real(const struct plan *plan, const char *path, char out[PATH_MAX])
{
	const char *root = plan->input.root_from;
	cleanup_fd int root_fd = FD_NONE, fd = FD_NONE;
	char real[PATH_MAX];
	size_t length;
	int r;

	if (!plan_is_of_root(plan, path))
		return path_real(path, out, PATH_MAX);
	r = root_fd = fd_open_at(AT_FDCWD, root, O_PATH | O_DIRECTORY, 0);
	if (r >= 0)
		r = fd = path_open2(root_fd, path, O_PATH, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
	if (r >= 0)
		r = path_of_fd(fd, real, sizeof real);
	length = strlen(root);
	if (r >= 0 && (strncmp(real, root, length) != 0 || real[length] != '/'))
		r = -ESTALE;
	return r < 0 ? r : str_copy(out, PATH_MAX, real + length);
}
