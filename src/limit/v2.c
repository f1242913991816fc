/* SPDX-License-Identifier: Apache-2.0 */
#include "limit/group.h"

#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"
#include "os/fd.h"

/*
 * Where a v2 group can stand (cgroup-v2.rst, "Delegation" and "No Internal Process Constraint"):
 *
 *   - its parent must be an ancestor of our own group (or that group itself), because moving a process needs
 *     write access to cgroup.procs of the common ancestor;
 *   - the parent must hand its controllers down in cgroup.subtree_control, which it can do only while it has no
 *     processes itself. Our own group has one (us), so the place is beside us, not below, unless no controller
 *     is asked for. The kernel refuses only half of it: pids and cpu alone can be turned on above processes, but
 *     that silently makes a threaded domain, below which no process can be started. So we look ourselves;
 *   - the parent must be an ordinary domain for the same reason.
 *
 * The nearest ancestor that fits is taken, so that the limits that hold us hold the sandbox too. For a user,
 * that an ancestor is writable is the delegation. Root can write everywhere, also into what a service manager
 * owns and cleans up: for it only groups that are marked as delegated count, else the top of the tree.
 *
 * Enabled controllers stay enabled: other sandboxes may have come to use them.
 */

enum { CONTROLLERS_TEXT_MAX = 512 };

static const enum cgroup_kind controller_kinds[] = { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU };

static unsigned parse_controllers(const char *text)
{
	unsigned bits = 0;

	for (size_t i = 0; i < ARRAY_SIZE(controller_kinds); i++) {
		const char *name = cgroup_kind_names[controller_kinds[i]];
		size_t length = strlen(name);

		for (const char *at = strstr(text, name); at; at = strstr(at + 1, name))
			if ((at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\n' || !at[length]))
				bits |= kind_bit(controller_kinds[i]);
	}
	return bits;
}

static int read_controllers(int dir_fd, const char *file, unsigned *ret_bits)
{
	char text[CONTROLLERS_TEXT_MAX];
	int r = cgroup_read_text(dir_fd, file, text, sizeof text);

	if (r == 0)
		*ret_bits = parse_controllers(text);
	return r;
}

static int enable(int dir_fd, unsigned bits)
{
	char text[64];
	struct buf buf;

	buf_init_fixed(&buf, text, sizeof text);
	for (size_t i = 0; i < ARRAY_SIZE(controller_kinds); i++)
		if (bits & kind_bit(controller_kinds[i])) {
			buf_put_text(&buf, buf.size ? " +" : "+");
			buf_put_text(&buf, cgroup_kind_names[controller_kinds[i]]);
		}
	return fd_write_file_at(dir_fd, "cgroup.subtree_control", buf_text(&buf));
}

static bool has_processes(int dir_fd)
{
	cleanup_fd int fd = fd_open_at(dir_fd, "cgroup.procs", O_RDONLY, 0);
	char byte;

	return fd < 0 || read(fd, &byte, 1) != 0;
}

/*
 * The controllers that a group below this one has, after turning on the wanted ones where that is possible.
 * One by one when not all can be had together: the cpu controller is refused while realtime processes exist.
 */
static int offered_controllers(int dir_fd, bool is_real_root, unsigned wanted, unsigned *ret_bits)
{
	unsigned have = 0, available = 0, missing;
	int r = read_controllers(dir_fd, "cgroup.subtree_control", &have);

	if (r < 0)
		return r;
	*ret_bits = have;
	missing = wanted & ~have;
	if (!missing || (!is_real_root && has_processes(dir_fd)))
		return 0;
	r = read_controllers(dir_fd, "cgroup.controllers", &available);
	missing &= available;
	if (r < 0 || !missing)
		return r;
	if (enable(dir_fd, missing) == 0) {
		*ret_bits |= missing;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(controller_kinds); i++) {
		unsigned bit = kind_bit(controller_kinds[i]);

		if (missing & bit && enable(dir_fd, bit) == 0)
			*ret_bits |= bit;
	}
	return 0;
}

static bool is_delegated(const char *path)
{
	char value[4];

	return getxattr(path, "trusted.delegate", value, sizeof value) > 0 ||
	       getxattr(path, "user.delegate", value, sizeof value) > 0;
}

struct place {
	char path[PATH_MAX];
	unsigned controllers;
};

static unsigned count_bits(unsigned bits)
{
	return (unsigned)__builtin_popcount(bits);
}

/* Looks at one ancestor; 1 when it has all that is wanted. */
static int try_place(const char *path, unsigned wanted, struct place *best)
{
	unsigned offered = 0;
	cleanup_fd int fd = fd_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	bool is_real_root;
	char type[32];
	int r;

	if (fd < 0)
		return fd;
	if (faccessat(fd, "cgroup.procs", W_OK, 0) < 0 || faccessat(fd, ".", W_OK, 0) < 0)
		return -errno;
	/* Only the root of the whole tree has no type (that of a namespace has one), and no constraint. */
	r = cgroup_read_text(fd, "cgroup.type", type, sizeof type);
	is_real_root = r == -ENOENT;
	if (r < 0 && !is_real_root)
		return r;
	if (!is_real_root && !str_equal(type, "domain\n"))
		return -EOPNOTSUPP;
	r = offered_controllers(fd, is_real_root, wanted, &offered);
	if (r < 0)
		return r;
	if (!best->path[0] || count_bits(offered & wanted) > count_bits(best->controllers & wanted)) {
		r = str_copy(best->path, sizeof best->path, path);
		if (r < 0)
			return r;
		best->controllers = offered;
	}
	return (offered & wanted) == wanted;
}

/* Walks from own (whose part up to top is the root that can be seen) upwards. */
static int find_place(struct limit_group *group, char *own, size_t top, unsigned wanted, struct place *best)
{
	bool is_root = geteuid() == 0;
	int first = 0;

	best->path[0] = 0;
	for (;;) {
		bool is_top = strlen(own) <= top;
		int r = 0;

		if (!wanted || !is_root || is_top || is_delegated(own)) {
			r = try_place(own, wanted, best);
			if (r == 1)
				return 0;
		}
		if (r < 0 && !group_is_refusal(r))
			return r;
		if (r < 0 && !first) {
			first = r;
			group_note(group, "cgroup %s cannot be used by uid %u (%s)", own, (unsigned)geteuid(),
				   err_errno_name(-r));
		}
		if (is_top)
			return 0;
		*strrchr(own, '/') = 0;
	}
}

static int set_memory(const struct limit_group *group, int fd)
{
	int r = cgroup_write_u64(fd, "memory.max", group->request.memory_bytes);

	if (r == 0)
		r = cgroup_limit_swap(fd, "memory.swap.max", 0);
	if (r < 0)
		return r;
	/* All die together, or what is left goes on with half its processes. Missing before Linux 4.19. */
	r = fd_write_file_at(fd, "memory.oom.group", "1");
	return r == -ENOENT ? 0 : r;
}

static int set_cpu(const struct limit_group *group, int fd)
{
	uint64_t quota, period;
	struct buf buf;
	char text[64];

	cpu_quota(group->request.millicpus, &quota, &period);
	buf_init_fixed(&buf, text, sizeof text);
	buf_put_u64_decimal(&buf, quota);
	buf_put_char(&buf, ' ');
	buf_put_u64_decimal(&buf, period);
	return fd_write_file_at(fd, "cpu.max", buf_text(&buf));
}

static int set_limit(const struct limit_group *group, enum cgroup_kind kind)
{
	int fd = group->dirs[CGROUP_V2].fd;

	switch (kind) {
	case CGROUP_MEMORY:
		return set_memory(group, fd);
	case CGROUP_PIDS:
		return cgroup_write_u64(fd, "pids.max", group->request.processes + 1);
	default:
		return set_cpu(group, fd);
	}
}

int v2_set_limits(struct limit_group *group, unsigned controllers)
{
	for (size_t i = 0; i < ARRAY_SIZE(controller_kinds); i++) {
		enum cgroup_kind kind = controller_kinds[i];
		int r;

		if (!(controllers & kind_bit(kind)))
			continue;
		r = set_limit(group, kind);
		if (r < 0) {
			group_note(group, "the %s limit cannot be set in %s (%s)", cgroup_kind_names[kind],
				   group->dirs[CGROUP_V2].path, err_errno_name(-r));
			if (!group_is_refusal(r))
				return r;
			continue;
		}
		group->v2_set |= kind_bit(kind);
	}
	return 0;
}

int v2_make(struct limit_group *group, struct cgroup_layout *layout, unsigned wanted)
{
	struct place best = { 0 };
	char own[PATH_MAX];
	size_t top;
	int r = cgroup_layout_own(layout, CGROUP_V2, own, &top);

	if (r < 0)
		return group_is_refusal(r) ? 0 : r;
	r = find_place(group, own, top, wanted, &best);
	if (r < 0 || !best.path[0])
		return r;
	r = group_make_dir(group, CGROUP_V2, best.path);
	if (r < 0) {
		group_note(group, "no group can be made in %s (%s)", best.path, err_errno_name(-r));
		return group_is_refusal(r) ? 0 : r;
	}
	group->v2_controllers = best.controllers;
	group->detail[0] = 0; /* that places further up are foreign is no reason any more */
	if ((best.controllers & wanted) != wanted)
		group_note(group, "%s cannot hand down all of the memory, pids and cpu controllers", best.path);
	return v2_set_limits(group, best.controllers & wanted);
}

/*
 * A service manager that shares the parent may turn a controller off again, and the limits would be gone
 * without a word. Whoever reads usage and finds the files missing asks for them back.
 */
int v2_restore(struct limit_group *group)
{
	const struct limit_dir *dir = &group->dirs[CGROUP_V2];
	cleanup_fd int parent_fd = fd_open_at(dir->fd, "..", O_PATH | O_DIRECTORY, 0);
	unsigned had = group->v2_set;
	int r = !had ? -ENOENT : parent_fd < 0 ? parent_fd : enable(parent_fd, had);

	if (r < 0)
		return -EIO;
	group->v2_controllers = had; /* what no limit hangs on may stay away */
	group->v2_set = 0;
	r = v2_set_limits(group, had);
	if (r < 0 || group->v2_set != had) {
		group->v2_set = had;
		return -EIO;
	}
	return 0;
}
