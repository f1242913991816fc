/* SPDX-License-Identifier: Apache-2.0 */
/* X13 and its neighbours: changing what is mounted where, by the old and the new interface, and the root directory. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "numbers.h"
#include "probe.h"

/* From linux/mount.h and sys/mount.h, which cannot be included together. */
enum { OLD_MS_REMOUNT = 32, OLD_MS_BIND = 4096, OLD_MS_MOVE = 8192, OLD_MS_REC = 16384, OLD_MS_SHARED = 1 << 20,
	OLD_MNT_DETACH = 2 };

/*
 * Where these succeed they would change the machine's mounts, so the attempt asks for what a privileged caller
 * is refused later than an unprivileged one: an absent target (ENOENT) or an unknown type (ENODEV).
 */
static enum outcome try_mount(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	return outcome_of_reach(note, syscall(SYS_mount, attempt->text, attempt->arguments[0], attempt->arguments[1],
					      attempt->number, 0));
}

static enum outcome try_mount_attr(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_NOSUID };

	/* The size is wrong on purpose behind a valid flag: E2BIG or EINVAL only once the call is reached. */
	return outcome_of_reach(note, syscall(attempt->number, AT_FDCWD, attempt->text, 0x8000, &attr, sizeof attr));
}

static enum outcome try_clear_readonly(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };
	long ret;

	if (!targets->readonly)
		return outcome_no_target(note, "--readonly");
	/* Not a mount point outside (EINVAL behind the privilege check). */
	ret = syscall(SYS_mount_setattr, AT_FDCWD, targets->readonly, 0x8000, &attr, sizeof attr);
	return outcome_of_reach(note, ret);
}

static enum outcome try_fsopen(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	return outcome_of_call(note, syscall(SYS_fsopen, attempt->text, 0), "a file system context");
}

static enum outcome try_open_tree(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	return outcome_of_call(note, syscall(SYS_open_tree, AT_FDCWD, attempt->text, attempt->number),
		"a detached copy of a tree");
}

static enum outcome try_fspick(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	return outcome_of_call(note, syscall(SYS_fspick, AT_FDCWD, "/", 0), "a context of a mounted file system");
}

static enum outcome try_chroot(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	return outcome_of_call(note, syscall(SYS_chroot, attempt->text), "another root directory");
}

/* The classic way out of a chroot: keep the cwd outside of a new root and walk up. */
static enum outcome try_chroot_walk(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const char *directory = joined(targets->scratch ? targets->scratch : "/tmp", "/chroot-walk");

	syscall(SYS_mkdirat, AT_FDCWD, directory, 0700);
	if (syscall(SYS_chroot, directory) < 0)
		return outcome(note, OUTCOME_HELD, "%s", err_errno_name(errno));
	return outcome(note, OUTCOME_BROKE, "a root below the cwd: the way up is free");
}

/* Does any mount of this view propagate from or to the host? */
static enum outcome try_propagation(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	static char text[256 << 10];
	cleanup_fd int fd = raw_open("/proc/self/mountinfo", O_RDONLY, 0);
	size_t at = 0;
	ssize_t size;

	if (fd < 0)
		return outcome(note, OUTCOME_HELD, "mountinfo: %s", err_errno_name(errno));
	while ((size = read(fd, text + at, sizeof text - 1 - at)) > 0)
		at += (size_t)size;
	text[at] = '\0';
	for (size_t i = 0; i + 8 < at; i++) {
		if (__builtin_memcmp(text + i, " shared:", 8) == 0)
			return outcome(note, OUTCOME_BROKE, "a shared mount: changes spread");
	}
	return outcome(note, OUTCOME_HELD, "no shared mount");
}

#define PATH(text) ((long)(text))

static const struct attempt attempts[] = {
	{ "mount.tmpfs", "X13", "mount a tmpfs", try_mount, 0, { PATH("/nonexistent/target"), PATH("tmpfs") }, "none" },
	{ "mount.bind", "X13", "bind mount", try_mount, OLD_MS_BIND, { PATH("/nonexistent/target"), 0 }, "/" },
	{ "mount.proc", "X13", "mount another proc", try_mount, 0, { PATH("/nonexistent/target"), PATH("proc") },
		"none" },
	{ "mount.overlay", "X13", "mount an overlay", try_mount, 0, { PATH("/nonexistent/target"), PATH("overlay") },
		"none" },
	{ "mount.unknown-type", "X13", "mount with an unknown type", try_mount, 0, { PATH("/"), PATH("atollnone") },
		"none" },
	{ "mount.remount", "X13", "remount read-only trees writable", try_mount, OLD_MS_REMOUNT | OLD_MS_BIND,
		{ PATH("/nonexistent/target"), 0 }, "none" },
	{ "mount.move", "X13", "move a mount", try_mount, OLD_MS_MOVE, { PATH("/nonexistent/target"), 0 }, "/proc" },
	{ "mount.shared", "X13", "make mounts shared", try_mount, OLD_MS_SHARED | OLD_MS_REC,
		{ PATH("/nonexistent/target"), 0 }, "none" },
	{ "umount", "X13", "lazy unmount of an absent mount", try_reach, SYS_umount2, { PATH("/nonexistent"),
		OLD_MNT_DETACH }, NULL },
	{ "umount.proc-mask", "X13", "unmount a mask of /proc with wrong flags", try_reach, SYS_umount2,
		{ PATH("/proc/kcore"), 0x4000 }, NULL },
	{ "fsopen.tmpfs", "X13", "fsopen(tmpfs)", try_fsopen, 0, { 0 }, "tmpfs" },
	{ "fsopen.proc", "X13", "fsopen(proc)", try_fsopen, 0, { 0 }, "proc" },
	{ "fsconfig", "X13", "fsconfig", try_reach, SYS_fsconfig, { -1, 6, 0, 0, 0 }, NULL },
	{ "fsmount", "X13", "fsmount", try_reach, SYS_fsmount, { -1, 0, 0 }, NULL },
	{ "fspick", "X13", "fspick of the root", try_fspick, 0, { 0 }, NULL },
	{ "open_tree.clone", "X13", "open_tree(OPEN_TREE_CLONE|AT_RECURSIVE): below the masks", try_open_tree, 0x8001,
		{ 0 }, "/" },
	{ "open_tree.clone-one", "X13", "open_tree(OPEN_TREE_CLONE) without what is mounted below", try_open_tree, 1,
		{ 0 }, "/" },
	{ "move_mount", "X13", "move_mount", try_reach, SYS_move_mount, { -1, PATH(""), -1, PATH(""), 4 }, NULL },
	{ "mount_setattr", "X13", "mount_setattr", try_mount_attr, SYS_mount_setattr, { 0 }, "/nonexistent" },
	{ "open_tree_attr", "X13", "open_tree_attr", try_mount_attr, SYS_open_tree_attr, { 0 }, "/nonexistent" },
	{ "mount_setattr.writable", "X13 F10", "clear the read-only flag of a tree", try_clear_readonly, 0, { 0 },
		NULL },
	{ "pivot_root", "X13", "pivot_root", try_reach, SYS_pivot_root, { PATH("/nonexistent"), PATH("/nonexistent") },
		NULL },
	{ "chroot.tmp", "X13", "chroot(/tmp)", try_chroot, 0, { 0 }, "/tmp" },
	{ "chroot.root", "X13", "chroot(/)", try_chroot, 0, { 0 }, "/" },
	{ "chroot.walk", "X13", "chroot below the cwd and walk up", try_chroot_walk, 0, { 0 }, NULL },
	{ "mount.propagation", "X13", "a mount that spreads to or from the host", try_propagation, 0, { 0 }, NULL },
};

const struct attempt_group probe_mounts = { attempts, ARRAY_SIZE(attempts) };
