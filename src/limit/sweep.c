/* SPDX-License-Identifier: Apache-2.0 */
#include "limit/group.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"

/*
 * After a crash of box and guardian groups stay: empty as a rule (the sandbox dies with its PID 1), but a process
 * in an uninterruptible call may have outlived both. They stand where limit_group_new() puts them: below our own
 * group or one of its ancestors.
 */

enum { SWEEP_WAIT_MS = 100 };

struct sweep {
	bool (*is_alive)(const char *session, const void *context);
	const void *context;
	int removed, left;
};

/* The session of "atoll-<session>", or NULL. */
static const char *session_of(const char *name)
{
	const char *session = name + sizeof GROUP_PREFIX - 1;
	size_t length;

	if (!str_has_prefix(name, GROUP_PREFIX))
		return NULL;
	length = strlen(session);
	return length && strspn(session, GROUP_SESSION_CHARACTERS) == length ? session : NULL;
}

static void remove_dead(struct sweep *sweep, const char *parent, const char *name)
{
	cleanup_fd int fd = FD_NONE;
	char path[PATH_MAX];
	int r;

	if (str_format(path, sizeof path, "%s/%s", parent, name) < 0)
		return;
	fd = fd_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return;
	if (rmdir(path) == 0) {
		sweep->removed++;
		return;
	}
	/* Frozen processes do not die; without a freezer here these fail, which is fine. */
	r = fd_write_file_at(fd, "freezer.state", "THAWED");
	r = group_kill_dir(fd);
	if (r == 0)
		r = group_rmdir(path, clock_monotonic_ns() + (uint64_t)SWEEP_WAIT_MS * 1000000);
	sweep->removed += r == 0;
	sweep->left += r < 0;
}

static void sweep_directory(struct sweep *sweep, const char *parent, const char *own)
{
	DIR *dir = opendir(parent);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		const char *session = session_of(entry->d_name);
		char path[PATH_MAX];

		if (!session || sweep->is_alive(session, sweep->context))
			continue;
		/* Never the group that holds ourselves, whatever the caller believes of its session. */
		if (str_format(path, sizeof path, "%s/%s", parent, entry->d_name) < 0 || path_is_below(own, path))
			continue;
		remove_dead(sweep, parent, entry->d_name);
	}
	closedir(dir);
}

int limit_sweep(const char *cgroup_root, bool (*is_alive)(const char *session, const void *context),
		const void *context)
{
	cleanup_cgroup_layout struct cgroup_layout layout = { 0 };
	struct sweep sweep = { .is_alive = is_alive, .context = context };

	if (cgroup_layout_load(&layout, cgroup_root) < 0)
		return 0;
	for (enum cgroup_kind kind = 0; kind < CGROUP_KIND_COUNT; kind++) {
		char own[PATH_MAX], at[PATH_MAX];
		size_t top;

		if (cgroup_layout_own(&layout, kind, own, &top) < 0 || str_copy(at, sizeof at, own) < 0)
			continue;
		for (;;) {
			sweep_directory(&sweep, at, own);
			if (strlen(at) <= top)
				break;
			*strrchr(at, '/') = 0;
		}
	}
	return sweep.left ? -EBUSY : sweep.removed;
}
