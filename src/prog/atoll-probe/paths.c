/* SPDX-License-Identifier: Apache-2.0 */
/* F10 and its neighbours: every system call that changes a tree, on a read-only directory and on a hidden one. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "numbers.h"
#include "probe.h"

/* The directory that this row attacks: text "readonly" or "hidden". */
static const char *place(const struct attempt *attempt, const struct targets *targets)
{
	return strcmp(attempt->text, "hidden") == 0 ? targets->hidden : targets->readonly;
}

/* Which call, in attempt->number. */
enum change {
	OPEN_WRITE, OPEN_APPEND, OPEN_READ_TRUNCATE, OPEN_CREATE, OPEN_TMPFILE, OPEN_BY_PROC_FD, OPENAT2_WRITE, CREAT,
		TRUNCATE,
	FTRUNCATE, FALLOCATE, UNLINK, UNLINKAT, RENAME, RENAMEAT2, RENAME_IN, RENAME_SWAP, LINK_FROM, LINK_TO,
		SYMLINK_TO, MKNOD_FIFO,
	MKDIR, RMDIR, UTIMENSAT, FUTIMENS, CHMOD, FCHMODAT2, FCHMOD, CHOWN, LCHOWN, SETXATTR, LSETXATTR, SETXATTRAT,
		FSETXATTR,
	REMOVEXATTR, SOCKET_TO, CHMOD_DIRECTORY, FSETATTR, FILE_SETATTR,
};

static long on_new_fd(int fd)
{
	if (fd >= 0)
		close(fd);
	return fd;
}

static long by_openat2(const char *path)
{
	struct open_how how = { .flags = O_WRONLY | O_CLOEXEC };

	return on_new_fd((int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}

/* Read-only at first, then the same file again for writing through its link in /proc. */
static long by_proc_fd(const char *path)
{
	char alias[64];
	int fd = raw_open(path, O_PATH, 0);
	long ret;

	if (fd < 0)
		return -1;
	snprintf(alias, sizeof alias, "/proc/self/fd/%d", fd);
	ret = on_new_fd(raw_open(alias, O_WRONLY, 0));
	close(fd);
	return ret;
}

static long by_socket(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = (int)syscall(SYS_socket, AF_UNIX, SOCK_DGRAM, 0);

	if (fd < 0 || strlen(path) >= sizeof address.sun_path)
		return -1;
	memcpy(address.sun_path, path, strlen(path) + 1);
	return syscall(SYS_bind, fd, &address, sizeof address);
}

/* Changes of metadata through a descriptor that was opened for reading only. */
static long by_read_fd(enum change change, const char *path)
{
	cleanup_fd int fd = raw_open(path, O_RDONLY, 0);
	long flags = 0;

	if (fd < 0)
		return -1;
	switch (change) {
	case FCHMOD:
		return syscall(SYS_fchmod, fd, 0600);
	case FUTIMENS:
		return syscall(SYS_utimensat, fd, NULL, NULL, 0);
	case FSETXATTR:
		return syscall(SYS_fsetxattr, fd, "user.atoll", "x", 1, 0);
	case FALLOCATE:
		return syscall(SYS_fallocate, fd, 0, 0, 4096);
	case FTRUNCATE:
		return syscall(SYS_ftruncate, fd, 0);
	default:
		if (syscall(SYS_ioctl, fd, 0x80086601 /* FS_IOC_GETFLAGS */, &flags) < 0)
			return -1;
		flags ^= 0x80; /* FS_NOATIME_FL */
		return syscall(SYS_ioctl, fd, 0x40086602 /* FS_IOC_SETFLAGS */, &flags);
	}
}

/* A file of our own that is moved or linked into the place (F7). */
static const char *own_file(const struct attempt *attempt, const struct targets *targets)
{
	const char *path = joined(joined(targets->scratch, "/own-"), attempt->name);
	int fd = raw_open(path, O_WRONLY | O_CREAT, 0600);

	on_new_fd(fd);
	return path;
}

static long attributes_at(enum change change, const char *path)
{
	struct { uint64_t value; uint32_t size, flags; } xattr = { (uintptr_t)"x", 1, 0 };
	struct { uint64_t flags; uint32_t words[4]; } file_attr = { 0 };

	switch (change) {
	case UTIMENSAT:
		return syscall(SYS_utimensat, AT_FDCWD, path, NULL, 0);
	case CHMOD:
	case CHMOD_DIRECTORY:
		return syscall(SYS_fchmodat, AT_FDCWD, path, change == CHMOD ? 0600 : 0755);
	case FCHMODAT2:
		return syscall(SYS_fchmodat2, AT_FDCWD, path, 0600, AT_SYMLINK_NOFOLLOW);
	case CHOWN:
		return syscall(SYS_fchownat, AT_FDCWD, path, getuid(), getgid(), 0);
	case LCHOWN:
		return syscall(SYS_fchownat, AT_FDCWD, path, -1, -1, AT_SYMLINK_NOFOLLOW);
	case SETXATTR:
		return syscall(SYS_setxattr, path, "user.atoll", "x", 1, 0);
	case LSETXATTR:
		return syscall(SYS_lsetxattr, path, "user.atoll", "x", 1, 0);
	case SETXATTRAT:
		return syscall(SYS_setxattrat, AT_FDCWD, path, 0, "user.atoll", &xattr, sizeof xattr);
	case REMOVEXATTR:
		return syscall(SYS_removexattr, path, "user.atollset");
	default:
		return syscall(SYS_file_setattr, AT_FDCWD, path, &file_attr, sizeof file_attr, 0);
	}
}

static long names_at(enum change change, const char *victim, const char *fresh, const char *own)
{
	switch (change) {
	case UNLINK:
#ifdef SYS_unlink
		return syscall(SYS_unlink, victim);
#endif
	case UNLINKAT:
		return syscall(SYS_unlinkat, AT_FDCWD, victim, 0);
	case RENAME:
#ifdef SYS_rename
		return syscall(SYS_rename, victim, fresh);
#endif
	case RENAMEAT2:
		return syscall(SYS_renameat2, AT_FDCWD, victim, AT_FDCWD, fresh, 1);
	case RENAME_IN:
		return syscall(SYS_renameat2, AT_FDCWD, own, AT_FDCWD, fresh, 0);
	case RENAME_SWAP:
		return syscall(SYS_renameat2, AT_FDCWD, own, AT_FDCWD, victim, 2);
	case LINK_FROM:
		return syscall(SYS_linkat, AT_FDCWD, victim, AT_FDCWD, joined(own, "-link"), 0);
	case LINK_TO:
		return syscall(SYS_linkat, AT_FDCWD, own, AT_FDCWD, fresh, 0);
	case SYMLINK_TO:
		return syscall(SYS_symlinkat, own, AT_FDCWD, fresh);
	case MKNOD_FIFO:
		return syscall(SYS_mknodat, AT_FDCWD, fresh, S_IFIFO | 0600, 0);
	case MKDIR:
		return syscall(SYS_mkdirat, AT_FDCWD, fresh, 0700);
	default:
		return syscall(SYS_unlinkat, AT_FDCWD, joined(victim, ".d"), AT_REMOVEDIR);
	}
}

static long content_at(enum change change, const char *victim, const char *fresh, const char *directory)
{
	switch (change) {
	case OPEN_WRITE:
		return on_new_fd(raw_open(victim, O_WRONLY, 0));
	case OPEN_APPEND:
		return on_new_fd(raw_open(victim, O_RDWR | O_APPEND, 0));
	case OPEN_READ_TRUNCATE:
		return on_new_fd(raw_open(victim, O_RDONLY | O_TRUNC, 0));
	case OPEN_CREATE:
		return on_new_fd(raw_open(fresh, O_WRONLY | O_CREAT | O_EXCL, 0600));
	case OPEN_TMPFILE:
		return on_new_fd(raw_open(directory, O_WRONLY | O_TMPFILE, 0600));
	case OPEN_BY_PROC_FD:
		return by_proc_fd(victim);
	case OPENAT2_WRITE:
		return by_openat2(victim);
	case CREAT:
#ifdef SYS_creat
		return on_new_fd((int)syscall(SYS_creat, fresh, 0600));
#else
		return on_new_fd(raw_open(fresh, O_WRONLY | O_CREAT | O_TRUNC, 0600));
#endif
	case TRUNCATE:
		return syscall(SYS_truncate, victim, 0);
	default:
		return by_socket(fresh);
	}
}

static enum outcome try_change(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const char *directory = place(attempt, targets), *own;
	char victim[4096], fresh[4096];
	enum change change = (enum change)attempt->number;
	long ret;

	if (!directory || !targets->scratch)
		return outcome_no_target(note, directory ? "--scratch" : "--readonly or --hidden");
	snprintf(victim, sizeof victim, "%s", victim_path(directory, attempt, ""));
	snprintf(fresh, sizeof fresh, "%s", victim_path(directory, attempt, "-new"));
	own = own_file(attempt, targets);
	if (change <= TRUNCATE || change == SOCKET_TO)
		ret = content_at(change, victim, fresh, directory);
	else if (change == FCHMOD || change == FUTIMENS || change == FSETXATTR || change == FSETATTR)
		ret = by_read_fd(change, victim);
	else if (change >= UNLINK && change <= RMDIR)
		ret = names_at(change, victim, fresh, own);
	else
		ret = attributes_at(change, change == CHMOD_DIRECTORY ? directory : victim);
	return outcome_of_call(note, ret, "accepted");
}

#define ROW(name, what, change) \
	{ "readonly." name, "F10", what " in a read-only directory", try_change, change, { 0 }, "readonly" }, \
	{ "hidden." name, "F10", what " in a hidden directory", try_change, change, { 0 }, "hidden" }

static const struct attempt attempts[] = {
	ROW("open-write", "open a file for writing", OPEN_WRITE),
	ROW("open-append", "open a file for appending", OPEN_APPEND),
	ROW("open-read-truncate", "open with O_RDONLY|O_TRUNC", OPEN_READ_TRUNCATE),
	ROW("open-create", "create a file", OPEN_CREATE),
	ROW("open-tmpfile", "create an unnamed file", OPEN_TMPFILE),
	ROW("open-by-proc-fd", "reopen an O_PATH descriptor for writing", OPEN_BY_PROC_FD),
	ROW("openat2-write", "openat2 for writing", OPENAT2_WRITE),
	ROW("creat", "creat", CREAT),
	ROW("truncate", "truncate a file", TRUNCATE),
	ROW("unlink", "unlink a file", UNLINK),
	ROW("unlinkat", "unlinkat a file", UNLINKAT),
	ROW("rename", "rename a file", RENAME),
	ROW("renameat2", "renameat2(RENAME_NOREPLACE)", RENAMEAT2),
	ROW("rename-in", "rename an own file to a name", RENAME_IN),
	ROW("rename-exchange", "renameat2(RENAME_EXCHANGE) with an own file", RENAME_SWAP),
	ROW("link-from", "hard link to a file", LINK_FROM),
	ROW("link-to", "hard link of an own file", LINK_TO),
	ROW("symlink-to", "make a symbolic link", SYMLINK_TO),
	ROW("mknod-fifo", "make a FIFO", MKNOD_FIFO),
	ROW("mkdir", "make a directory", MKDIR),
	ROW("rmdir", "remove a directory", RMDIR),
	ROW("utimensat", "utimensat", UTIMENSAT),
	ROW("futimens", "utimensat through a descriptor", FUTIMENS),
	ROW("chmod", "fchmodat", CHMOD),
	ROW("fchmodat2", "fchmodat2", FCHMODAT2),
	ROW("fchmod", "fchmod", FCHMOD),
	ROW("chmod-directory", "chmod of the directory itself", CHMOD_DIRECTORY),
	ROW("chown", "fchownat", CHOWN),
	ROW("lchown", "fchownat without following", LCHOWN),
	ROW("setxattr", "setxattr", SETXATTR),
	ROW("lsetxattr", "lsetxattr", LSETXATTR),
	ROW("setxattrat", "setxattrat", SETXATTRAT),
	ROW("fsetxattr", "fsetxattr", FSETXATTR),
	ROW("removexattr", "removexattr", REMOVEXATTR),
	ROW("bind-socket", "bind a unix socket", SOCKET_TO),
	ROW("inode-flags", "change inode flags", FSETATTR),
	ROW("file_setattr", "file_setattr", FILE_SETATTR),
};

const struct attempt_group probe_paths = { attempts, ARRAY_SIZE(attempts) };
