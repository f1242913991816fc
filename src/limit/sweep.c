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
 * in an uninterruptible call may have outlived both. They stand where limit_group_new() puts them: below the group of
 * who started the sandbox or one of its ancestors. That was our own group as a rule, but another login or service has
 * one beside ours (v1 hierarchies of service managers have one for each): who looks for what is dead for long looks
 * through the whole tree.
 */

enum { SWEEP_WAIT_MS = 100, SWEEP_DEPTH_MAX = 16, SWEEP_DIRECTORIES_MAX = 16384 };

struct sweep {
	bool (*is_alive)(const char *session, const void *context);
	const void *context;
	unsigned directories; /* looked through, of one hierarchy */
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

/* levels: how far to go down into groups that are not ours. */
static void sweep_directory(struct sweep *sweep, const char *parent, const char *own, unsigned levels)
{
	DIR *dir = opendir(parent);
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		const char *session = session_of(entry->d_name);
		char path[PATH_MAX];

		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
		    str_format(path, sizeof path, "%s/%s", parent, entry->d_name) < 0)
			continue;
		if (!session && levels && sweep->directories++ < SWEEP_DIRECTORIES_MAX)
			sweep_directory(sweep, path, own, levels - 1);
		/* Never the group that holds ourselves, whatever the caller believes of its session. */
		if (session && !sweep->is_alive(session, sweep->context) && !path_is_below(own, path))
			remove_dead(sweep, parent, entry->d_name);
	}
	closedir(dir);
}

static void sweep_ancestors(struct sweep *sweep, char *at, size_t top, const char *own)
{
	for (;;) {
		sweep_directory(sweep, at, own, 0);
		if (strlen(at) <= top)
			break;
		*strrchr(at, '/') = 0;
	}
}

static int sweep_all(const char *cgroup_root, struct sweep *sweep, bool is_everywhere)
{
	cleanup_cgroup_layout struct cgroup_layout layout = { 0 };

	if (cgroup_layout_load(&layout, cgroup_root) < 0)
		return 0;
	for (enum cgroup_kind kind = 0; kind < CGROUP_KIND_COUNT; kind++) {
		char own[PATH_MAX], at[PATH_MAX];
		size_t top;

		if (cgroup_layout_own(&layout, kind, own, &top) < 0 || str_copy(at, sizeof at, own) < 0)
			continue;
		sweep->directories = 0;
		if (!is_everywhere) {
			sweep_ancestors(sweep, at, top, own);
			continue;
		}
		at[top] = 0;
		sweep_directory(sweep, at, own, SWEEP_DEPTH_MAX);
	}
	return sweep->left ? -EBUSY : sweep->removed;
}

int limit_sweep(const char *cgroup_root, bool (*is_alive)(const char *session, const void *context),
		const void *context)
{
	return sweep_all(cgroup_root, &(struct sweep){ .is_alive = is_alive, .context = context }, false);
}

int limit_sweep_everywhere(const char *cgroup_root, bool (*is_alive)(const char *session, const void *context),
			   const void *context)
{
	return sweep_all(cgroup_root, &(struct sweep){ .is_alive = is_alive, .context = context }, true);
}
