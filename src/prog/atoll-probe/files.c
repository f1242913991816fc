/* SPDX-License-Identifier: Apache-2.0 */
/* F1, F9, F18, F30: reading a secret by every spelling, and the sandbox's own files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "numbers.h"
#include "probe.h"

enum way {
	WAY_OPEN,
	WAY_OPENAT2,
	WAY_OLD_OPEN,
	WAY_RELATIVE,
	WAY_DOT_DOT,
	WAY_SLASHES,
	WAY_SYMLINK,
	WAY_SYMLINK_CHAIN,
	WAY_HARD_LINK,
	WAY_PROC_FD,
	WAY_DEV_FD,
	WAY_CHDIR,
	WAY_HANDLE,
	WAY_OPEN_TREE,
	WAY_DIRECTORY,
	WAY_WRITE,
	WAY_SYMLINK_WRITE,
};

static int by_symlink(const struct attempt *attempt, const struct targets *targets, int flags)
{
	const char *link = joined(joined(targets->scratch, "/link-"), attempt->name);

	syscall(SYS_unlinkat, AT_FDCWD, link, 0);
	if (syscall(SYS_symlinkat, targets->secret, AT_FDCWD, link) < 0)
		return -1;
	return raw_open(link, flags, 0);
}

static int by_symlink_chain(const struct attempt *attempt, const struct targets *targets)
{
	const char *first = joined(joined(targets->scratch, "/chain-"), attempt->name);
	const char *second = joined(first, "-2");

	syscall(SYS_unlinkat, AT_FDCWD, first, 0);
	syscall(SYS_unlinkat, AT_FDCWD, second, 0);
	if (syscall(SYS_symlinkat, "/", AT_FDCWD, first) < 0)
		return -1;
	if (syscall(SYS_symlinkat, joined(first, targets->secret), AT_FDCWD, second) < 0)
		return -1;
	return raw_open(second, O_RDONLY, 0);
}

static int by_hard_link(const struct attempt *attempt, const struct targets *targets)
{
	const char *link = joined(joined(targets->scratch, "/hard-"), attempt->name);

	syscall(SYS_unlinkat, AT_FDCWD, link, 0);
	if (syscall(SYS_linkat, AT_FDCWD, targets->secret, AT_FDCWD, link, 0) < 0)
		return -1;
	return raw_open(link, O_RDONLY, 0);
}

static int by_descriptor(const struct targets *targets, const char *format)
{
	char alias[64];
	int fd = raw_open(targets->secret, O_PATH, 0);

	if (fd < 0)
		return -1;
	snprintf(alias, sizeof alias, format, fd);
	return raw_open(alias, O_RDONLY, 0);
}

static int by_handle(const struct targets *targets)
{
	struct {
		unsigned size;
		int type;
		unsigned char bytes[128];
	} handle = { .size = 128 };
	int mount_id, mount_fd;

	if (syscall(SYS_name_to_handle_at, AT_FDCWD, targets->secret, &handle, &mount_id, 0) < 0)
		return -1;
	mount_fd = raw_open("/", O_RDONLY | O_DIRECTORY, 0);
	return (int)syscall(SYS_open_by_handle_at, mount_fd, &handle, O_RDONLY);
}

/* A handle does not need a path: the usual file systems have their root at inode 2, and others can be
 * guessed. */
static enum outcome try_guessed_handle(const struct attempt *attempt, const struct targets *targets,
				       struct note *note)
{
	struct {
		unsigned size;
		int type;
		unsigned words[2];
	} handle = { .size = 8, .type = 1, .words = { 2, 0 } };
	static const char *const places[] = { "/", "/usr", "/etc", "/tmp" };
	long fd = -1;

	for (size_t i = 0; fd < 0 && i < ARRAY_SIZE(places); i++)
		fd = syscall(SYS_open_by_handle_at, raw_open(places[i], O_RDONLY, 0), &handle, O_RDONLY);
	return outcome_of_call(note, fd, "opened the root inode of a host file system");
}

static int by_directory(const struct targets *targets)
{
	const char *name = strrchr(targets->secret, '/');
	char directory[4096];
	int fd;

	snprintf(directory, sizeof directory, "%.*s", (int)(name - targets->secret), targets->secret);
	fd = raw_open(directory, O_PATH | O_DIRECTORY, 0);
	return fd < 0 ? -1 : (int)syscall(SYS_openat, fd, name + 1, O_RDONLY | O_CLOEXEC, 0);
}

static int by_spelling(enum way way, const struct targets *targets)
{
	char path[4096];

	switch (way) {
	case WAY_RELATIVE:
		snprintf(path, sizeof path, "../../../../../../../../../../../..%s", targets->secret);
		break;
	case WAY_DOT_DOT:
		snprintf(path, sizeof path, "/usr/../etc/..%s", targets->secret);
		break;
	default:
		snprintf(path, sizeof path, "//.//%s", targets->secret);
		break;
	}
	return raw_open(path, O_RDONLY, 0);
}

static int by_other_calls(enum way way, const struct targets *targets)
{
	struct open_how how = { .flags = O_RDONLY, .resolve = 0 };
	char name[4096];

	switch (way) {
	case WAY_OPENAT2:
		return (int)syscall(SYS_openat2, AT_FDCWD, targets->secret, &how, sizeof how);
	case WAY_OPEN_TREE:
		snprintf(name, sizeof name, "/proc/self/fd/%ld",
			 syscall(SYS_open_tree, AT_FDCWD, targets->secret, 0));
		return raw_open(name, O_RDONLY, 0);
	case WAY_CHDIR:
		snprintf(name, sizeof name, "%s", targets->secret);
		*strrchr(name, '/') = '\0';
		if (syscall(SYS_chdir, name) < 0)
			return -1;
		return raw_open(name + strlen(name) + 1, O_RDONLY, 0);
	default:
#ifdef SYS_open
		return (int)syscall(SYS_open, targets->secret, O_RDONLY, 0);
#else
		return raw_open(targets->secret, O_RDONLY, 0);
#endif
	}
}

static int open_secret(const struct attempt *attempt, const struct targets *targets)
{
	switch ((enum way)attempt->number) {
	case WAY_OPEN:
		return raw_open(targets->secret, O_RDONLY, 0);
	case WAY_WRITE:
		return raw_open(targets->secret, O_RDWR, 0);
	case WAY_SYMLINK:
		return by_symlink(attempt, targets, O_RDONLY);
	case WAY_SYMLINK_WRITE:
		return by_symlink(attempt, targets, O_RDWR);
	case WAY_SYMLINK_CHAIN:
		return by_symlink_chain(attempt, targets);
	case WAY_HARD_LINK:
		return by_hard_link(attempt, targets);
	case WAY_PROC_FD:
		return by_descriptor(targets, "/proc/self/fd/%d");
	case WAY_DEV_FD:
		return by_descriptor(targets, "/dev/fd/%d");
	case WAY_HANDLE:
		return by_handle(targets);
	case WAY_DIRECTORY:
		return by_directory(targets);
	case WAY_RELATIVE:
	case WAY_DOT_DOT:
	case WAY_SLASHES:
		return by_spelling((enum way)attempt->number, targets);
	default:
		return by_other_calls((enum way)attempt->number, targets);
	}
}

/* The content counts, not the name: a mask shows an empty file. */
static enum outcome try_secret(const struct attempt *attempt, const struct targets *targets,
			       struct note *note)
{
	char byte;
	cleanup_fd int fd = FD_NONE;

	if (!targets->secret || !targets->scratch)
		return outcome_no_target(note, targets->secret ? "--scratch" : "--secret");
	fd = open_secret(attempt, targets);
	if (fd < 0)
		return outcome(note, OUTCOME_HELD, "%s", err_errno_name(errno));
	if (read(fd, &byte, 1) == 1)
		return outcome(note, OUTCOME_BROKE, "its content was read");
	return outcome(note, OUTCOME_HELD, "empty");
}

static enum outcome try_list_hidden(const struct attempt *attempt, const struct targets *targets,
				    struct note *note)
{
	char entries[1024];
	long size;
	cleanup_fd int fd = FD_NONE;

	if (!targets->hidden)
		return outcome_no_target(note, "--hidden");
	fd = raw_open(targets->hidden, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return outcome(note, OUTCOME_HELD, "%s", err_errno_name(errno));
	size = syscall(SYS_getdents64, fd, entries, sizeof entries);
	if (size <= 64) /* "." and ".." alone */
		return outcome(note, OUTCOME_HELD, "empty");
	return outcome(note, OUTCOME_BROKE, "its names were listed");
}

static bool is_shown(const struct attempt *attempt, const struct targets *targets)
{
	for (size_t i = 0; i < targets->shown.count; i++)
		if (strcmp(targets->shown.values[i], attempt->name) == 0)
			return true;
	return false;
}

/* What every machine has and no job needs. */
static enum outcome try_read_system(const struct attempt *attempt, const struct targets *targets,
				    struct note *note)
{
	char byte;
	ssize_t size = raw_read_file(attempt->text, &byte, 1);

	if (size > 0 && is_shown(attempt, targets))
		return outcome(note, OUTCOME_NOT_APPLICABLE, "the policy shows it");
	if (size == 0)
		return outcome(note, OUTCOME_HELD, "empty");
	return outcome_of_call(note, size, "read");
}

static enum outcome try_home(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const char *home = getenv("HOME");
	char bytes[64];
	ssize_t size;

	if (!home)
		return outcome(note, OUTCOME_NOT_APPLICABLE, "HOME is not set");
	size = raw_read_file(joined(home, attempt->text), bytes, sizeof bytes);
	if ((size > 0 || (size < 0 && errno == EISDIR)) && is_shown(attempt, targets))
		return outcome(note, OUTCOME_NOT_APPLICABLE, "the policy shows it");
	if (size == 0)
		return outcome(note, OUTCOME_HELD, "empty");
	if (size < 0 && errno == EISDIR)
		return outcome(note, OUTCOME_BROKE, "the directory is visible");
	return outcome_of_call(note, size, "read");
}

/* F30: policy, state, log, control sockets of the sandbox itself. */
/* Whether a directory holds a control socket: root's run-time directory has the name of the sandbox's own
 * /run/atoll. */
static bool has_socket(int fd)
{
	enum { ID_LENGTH = 12, NAME_AT = offsetof(struct dirent, d_name) };
	char entries[4096];
	long size;

	/* "<session's id>.sock"; the sandbox's own ask.sock is for whoever is inside. */
	while ((size = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
		for (long at = 0; at + NAME_AT < size;) {
			unsigned short length;

			memcpy(&length, entries + at + offsetof(struct dirent, d_reclen), sizeof length);
			if (strlen(entries + at + NAME_AT) == ID_LENGTH + 5 &&
			    strcmp(entries + at + NAME_AT + ID_LENGTH, ".sock") == 0)
				return true;
			at += length;
		}
	return false;
}

static enum outcome try_own_files(const struct attempt *attempt, const struct targets *targets,
				  struct note *note)
{
	const char *directory = attempt->number ? targets->control : targets->state;
	cleanup_fd int fd = FD_NONE;

	if (!directory)
		return outcome_no_target(note, attempt->number ? "--control" : "--state");
	fd = raw_open(directory, O_RDONLY | O_DIRECTORY, 0);
	if (fd >= 0 && (!attempt->number || has_socket(fd)))
		return outcome(note, OUTCOME_BROKE, "visible");
	if (syscall(SYS_mkdirat, AT_FDCWD, joined(directory, "/atolltest-planted"), 0700) == 0)
		return outcome(note, OUTCOME_BROKE, "writable");
	return outcome(note, OUTCOME_HELD, "%s", err_errno_name(errno));
}

/* The files that atoll shows inside must not be the agent's to change. */
static enum outcome try_write_inside(const struct attempt *attempt, const struct targets *targets,
				     struct note *note)
{
	cleanup_fd int fd = raw_open(attempt->text, O_WRONLY | O_APPEND, 0);
	long removed;

	if (fd >= 0)
		return outcome(note, OUTCOME_BROKE, "opened for writing");
	if (errno == ENOENT)
		return outcome(note, OUTCOME_NOT_APPLICABLE, "not in a sandbox of atoll");
	removed = syscall(SYS_unlinkat, AT_FDCWD, attempt->text, 0);
	return outcome_of_call(note, removed, "removed");
}

#define SECRET(name, what, way)                                                                              \
	{                                                                                                    \
		"secret." name, "F1 F10", "read a secret: " what, try_secret, way, { 0 }, NULL               \
	}
#define SYSTEM(path)                                                                                         \
	{                                                                                                    \
		"system" path, "F1", "read " path, try_read_system, 0, { 0 }, path                           \
	}
#define HOME(path)                                                                                           \
	{                                                                                                    \
		"home" path, "F26", "read ~" path, try_home, 0, { 0 }, path                                  \
	}
#define INSIDE(path)                                                                                         \
	{                                                                                                    \
		"inside" path, "F30", "change " path, try_write_inside, 0, { 0 }, path                       \
	}

static const struct attempt attempts[] = {
	SECRET("open", "openat", WAY_OPEN),
	SECRET("old-open", "open", WAY_OLD_OPEN),
	SECRET("openat2", "openat2", WAY_OPENAT2),
	SECRET("write", "openat for writing", WAY_WRITE),
	SECRET("relative", "up from the cwd", WAY_RELATIVE),
	SECRET("dot-dot", "through .. in the path", WAY_DOT_DOT),
	SECRET("slashes", "through // and .", WAY_SLASHES),
	SECRET("symlink", "through an own symbolic link", WAY_SYMLINK),
	SECRET("symlink-write", "write through an own symbolic link", WAY_SYMLINK_WRITE),
	SECRET("symlink-chain", "through a link to / and a link through it", WAY_SYMLINK_CHAIN),
	SECRET("hard-link", "through an own hard link", WAY_HARD_LINK),
	SECRET("proc-fd", "O_PATH, then /proc/self/fd", WAY_PROC_FD),
	SECRET("dev-fd", "O_PATH, then /dev/fd", WAY_DEV_FD),
	SECRET("chdir", "chdir, then the bare name", WAY_CHDIR),
	SECRET("directory-fd", "relative to a directory descriptor", WAY_DIRECTORY),
	SECRET("handle", "by file handle", WAY_HANDLE),
	SECRET("open_tree", "open_tree", WAY_OPEN_TREE),
	{ "handle.guessed",
	  "F10",
	  "open a host inode by a guessed file handle",
	  try_guessed_handle,
	  0,
	  { 0 },
	  NULL },
	{ "hidden.list", "F1", "list a hidden directory", try_list_hidden, 0, { 0 }, NULL },
	{ "state.reach", "F30", "the state directory of atoll", try_own_files, 0, { 0 }, NULL },
	{ "control.reach", "F30 N17", "the control sockets of atoll", try_own_files, 1, { 0 }, NULL },
	SYSTEM("/etc/shadow"),
	SYSTEM("/etc/gshadow"),
	SYSTEM("/etc/sudoers"),
	SYSTEM("/etc/shadow-"),
	SYSTEM("/boot/grub/grub.cfg"),
	SYSTEM("/var/log/dpkg.log"),
	SYSTEM("/root/.bashrc"),
	HOME("/.ssh/id_rsa"),
	HOME("/.ssh/authorized_keys"),
	HOME("/.aws/credentials"),
	HOME("/.gnupg/private.key"),
	HOME("/.netrc"),
	HOME("/.npmrc"),
	HOME("/.docker/config.json"),
	HOME("/.kube/config"),
	HOME("/.git-credentials"),
	HOME("/.bash_history"),
	HOME("/.config/gh/hosts.yml"),
	HOME("/.mozilla"),
	INSIDE("/run/atoll/limits.md"),
	INSIDE("/run/atoll/denials.jsonl"),
};

const struct attempt_group probe_files = { attempts, ARRAY_SIZE(attempts) };
