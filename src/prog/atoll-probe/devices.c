/* SPDX-License-Identifier: Apache-2.0 */
/* F11 and device nodes: making them, and those that are there. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "numbers.h"
#include "probe.h"

static enum outcome try_mknod(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const char *path = joined(joined(targets->scratch ? targets->scratch : "/tmp", "/node-"), attempt->name);
	long ret;

	ret = syscall(SYS_mknodat, AT_FDCWD, path, attempt->number | 0600, makedev(attempt->arguments[0],
		attempt->arguments[1]));
	if (ret == 0)
		syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	return outcome_of_call(note, ret, "made");
}

#ifdef SYS_mknod
static enum outcome try_old_mknod(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const char *path = joined(joined(targets->scratch ? targets->scratch : "/tmp", "/node-"), attempt->name);
	long ret = syscall(SYS_mknod, path, S_IFCHR | 0600, makedev(1, 1));

	if (ret == 0)
		syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	return outcome_of_call(note, ret, "made");
}
#endif

/* O_NONBLOCK and reading only: an open by itself must not start anything. ENXIO: a node without its device. */
static enum outcome try_device(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	cleanup_fd int fd = raw_open(attempt->text, O_RDONLY | O_NONBLOCK, 0);

	if (fd < 0 && (errno == ENXIO || errno == ENODEV || errno == EBUSY))
		return outcome(note, OUTCOME_BROKE, "the node is there: %s", err_errno_name(errno));
	return outcome_of_call(note, fd, "opened");
}

/* Anything in /dev beyond the minimal set is a surprise. */
static enum outcome try_extra_nodes(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	static const char *const expected[] = {
		".", "..", "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd", "stdin",
			"stdout", "stderr",
		"console", "mqueue",
	};
	DIR *directory = opendir("/dev");
	struct dirent *entry;
	char name[64] = "";

	if (!directory)
		return outcome(note, OUTCOME_HELD, "%s", err_errno_name(errno));
	while (!*name && (entry = readdir(directory))) {
		size_t i = 0;

		while (i < ARRAY_SIZE(expected) && strcmp(expected[i], entry->d_name) != 0)
			i++;
		if (i == ARRAY_SIZE(expected))
			snprintf(name, sizeof name, "%.60s", entry->d_name);
	}
	closedir(directory);
	if (*name)
		return outcome(note, OUTCOME_BROKE, "/dev/%s", name);
	return outcome(note, OUTCOME_HELD, "only the minimal set");
}

static enum outcome try_make_in_dev(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	long ret = syscall(SYS_mkdirat, AT_FDCWD, "/dev/atolltest-probe", 0700);

	if (ret == 0)
		syscall(SYS_unlinkat, AT_FDCWD, "/dev/atolltest-probe", AT_REMOVEDIR);
	return outcome_of_call(note, ret, "made a name in /dev");
}

#define NODE(path) { "device" path, "F11", "open " path, try_device, 0, { 0 }, path }

static const struct attempt attempts[] = {
	{ "mknod.mem", "F11", "mknod of the memory device", try_mknod, S_IFCHR, { 1, 1 }, NULL },
	{ "mknod.null", "F11", "mknod of a harmless character device", try_mknod, S_IFCHR, { 1, 3 }, NULL },
	{ "mknod.disk", "F11", "mknod of a disk", try_mknod, S_IFBLK, { 8, 0 }, NULL },
	{ "mknod.virtio-disk", "F11", "mknod of a virtual disk", try_mknod, S_IFBLK, { 254, 0 }, NULL },
	{ "mknod.loop", "F11", "mknod of a loop device", try_mknod, S_IFBLK, { 7, 0 }, NULL },
#ifdef SYS_mknod
	{ "mknod.old-call", "F11", "mknod by the old system call", try_old_mknod, 0, { 0 }, NULL },
#endif
	{ "device.extra", "F11", "device nodes beyond the minimal set", try_extra_nodes, 0, { 0 }, NULL },
	{ "device.make-name", "F11", "make a name in /dev", try_make_in_dev, 0, { 0 }, NULL },
	NODE("/dev/mem"),
	NODE("/dev/port"),
	NODE("/dev/kmsg"),
	NODE("/dev/console"),
	NODE("/dev/tty0"),
	NODE("/dev/tty1"),
	NODE("/dev/ttyS0"),
	NODE("/dev/vda"),
	NODE("/dev/loop-control"),
	NODE("/dev/loop0"),
	NODE("/dev/fuse"),
	NODE("/dev/kvm"),
	NODE("/dev/vsock"),
	NODE("/dev/vhost-vsock"),
	NODE("/dev/net/tun"),
	NODE("/dev/userfaultfd"),
	NODE("/dev/uinput"),
	NODE("/dev/hwrng"),
	NODE("/dev/btrfs-control"),
	NODE("/dev/autofs"),
	NODE("/dev/mapper/control"),
	NODE("/dev/snapshot"),
	NODE("/dev/cpu_dma_latency"),
	NODE("/dev/cpu/0/msr"),
	NODE("/dev/cpu/0/cpuid"),
	NODE("/dev/dri/card0"),
	NODE("/dev/input/event0"),
	NODE("/dev/rtc0"),
	NODE("/dev/ptp0"),
	NODE("/dev/nvram"),
	NODE("/dev/vcs"),
	NODE("/dev/vfio/vfio"),
};

const struct attempt_group probe_devices = { attempts, ARRAY_SIZE(attempts) };
