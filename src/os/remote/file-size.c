/* SPDX-License-Identifier: Apache-2.0 */
#include "os/remote/file-size.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "os/pidref.h"
#include "os/proc.h"

enum { PASSES_MAX = 16 };

/* Which soft limits become which. */
struct change {
	rlim_t above;  /* all beyond this one, */
	rlim_t equal;  /* or exactly this one */
	bool is_equal;
	rlim_t wanted;
};

static bool is_meant(const struct change *change, const struct rlimit *now)
{
	return change->is_equal ? now->rlim_cur == change->equal : now->rlim_cur > change->above;
}

/*
 * 1: it was changed, or must be looked at again; 0: there was nothing to change, or it is gone. The number could be
 * another's by now, so whose child it is is asked again once a reference keeps it.
 */
static int change_one(const struct proc_list *list, const struct proc_stat *seen, const struct change *change)
{
	cleanup_pidref struct pidref ref = PIDREF_NONE;
	struct proc_stat stat;
	struct rlimit now;
	int r;

	if (prlimit(seen->pid, RLIMIT_FSIZE, NULL, &now) < 0)
		return errno == ESRCH ? 0 : -errno;
	if (!is_meant(change, &now))
		return 0;
	r = pidref_open(&ref, seen->pid);
	if (r == 0)
		r = proc_stat_read(list->proc_fd, seen->pid, &stat);
	if (r < 0)
		return r == -ESRCH || r == -ENOENT || r == -EINVAL ? 0 : r;
	/* Another process, or one whose parent ended: the next pass knows. */
	if (stat.parent != seen->parent)
		return 1;
	now.rlim_cur = change->wanted < now.rlim_max ? change->wanted : now.rlim_max;
	if (prlimit(seen->pid, RLIMIT_FSIZE, &now, NULL) < 0)
		return errno == ESRCH ? 0 : -errno;
	return 1;
}

static int change_all(pid_t init_pid, const struct change *change)
{
	for (int i = 0; i < PASSES_MAX; i++) {
		cleanup_proc_list struct proc_list list = { .proc_fd = FD_NONE };
		int changed = 0, r = proc_list_descendants(init_pid, &list);

		for (size_t j = 0; r >= 0 && j < list.count; j++) {
			r = change_one(&list, &list.stats[j], change);
			changed += r > 0;
		}
		if (r < 0 || !changed)
			return r < 0 ? r : 0;
	}
	return -EAGAIN;
}

int file_size_lower(pid_t init_pid, uint64_t size)
{
	const struct change change = { .above = size, .wanted = size };

	return change_all(init_pid, &change);
}

int file_size_restore(pid_t init_pid, uint64_t size, uint64_t before)
{
	const struct change change = {
		.is_equal = true,
		.equal = size,
		.wanted = before == UINT64_MAX ? RLIM_INFINITY : before,
	};

	return change_all(init_pid, &change);
}
