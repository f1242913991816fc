/* SPDX-License-Identifier: Apache-2.0 */
/* F18, F19, X17: /proc and /sys as doors: other processes, the kernel's settings, its memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "numbers.h"
#include "probe.h"

/* Opening for writing is the whole attempt: nothing is written. */
static enum outcome try_open_write(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	cleanup_fd int fd = raw_open(attempt->text, O_WRONLY, 0);

	return outcome_of_call(note, fd, "opened for writing");
}

static enum outcome try_read(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	char bytes[256];
	ssize_t size = raw_read_file(attempt->text, bytes, sizeof bytes);

	if (size == 0)
		return outcome(note, OUTCOME_HELD, "empty");
	if (size < 0 && errno == EAGAIN)
		return outcome(note, OUTCOME_BROKE, "opened");
	return outcome_of_call(note, size, "read");
}

static enum outcome try_link(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	char text[256] = "";
	cleanup_fd int fd = raw_open(attempt->text, O_PATH, 0);

	if (fd >= 0)
		return outcome(note, OUTCOME_BROKE, "opened");
	return outcome_of_call(note, readlink(attempt->text, text, sizeof text - 1), "link read");
}

/* Through a link of another process (its root, cwd) to a file. */
static enum outcome try_read_below(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	char bytes[64];

	if (!targets->secret)
		return outcome_no_target(note, "--secret");
	return outcome_of_call(note, raw_read_file(joined(attempt->text, targets->secret), bytes, sizeof bytes),
			       "the secret was read");
}

static enum outcome try_host_root(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	char prefix[64], bytes[64];

	if (!targets->host_pid || !targets->secret)
		return outcome_no_target(note, "--host-pid or --secret");
	snprintf(prefix, sizeof prefix, attempt->number ? "/proc/%ld/task/%ld/root" : "/proc/%ld/root",
		targets->host_pid,
		 targets->host_pid);
	return outcome_of_call(note, raw_read_file(joined(prefix, targets->secret), bytes, sizeof bytes),
		"the secret was read");
}

static enum outcome try_host_memory(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	char path[64];
	cleanup_fd int fd = FD_NONE;

	if (!targets->host_pid)
		return outcome_no_target(note, "--host-pid");
	snprintf(path, sizeof path, "/proc/%ld/mem", targets->host_pid);
	fd = raw_open(path, O_RDWR, 0);
	return outcome_of_call(note, fd, "opened for reading and writing");
}

static enum outcome try_symbols(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	char bytes[64];
	ssize_t size = raw_read_file(attempt->text, bytes, sizeof bytes);
	size_t digits = (size_t)attempt->number;

	if (size < 16)
		return outcome(note, OUTCOME_HELD, "%s", size < 0 ? err_errno_name(errno) : "empty");
	if (strspn(bytes, "0") >= digits)
		return outcome(note, OUTCOME_HELD, "addresses are zero");
	return outcome(note, OUTCOME_BROKE, "kernel addresses are readable");
}

/* A cgroup of one's own, or one's own limits, would undo the resource boundary. */
static enum outcome try_cgroup(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	static const char *const places[] = {
		"/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified",
			"/sys/fs/cgroup/freezer",
	};
	int last = ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		const char *directory = joined(places[i], "/atolltest-probe");

		if (syscall(SYS_mkdirat, AT_FDCWD, directory, 0755) == 0) {
			syscall(SYS_unlinkat, AT_FDCWD, directory, AT_REMOVEDIR);
			return outcome(note, OUTCOME_BROKE, "made %s", directory);
		}
		last = errno;
	}
	return outcome(note, OUTCOME_HELD, "%s", err_errno_name(last));
}

#define WRITE(path) { "write" path, "X17 F30", "open " path " for writing", try_open_write, 0, { 0 }, path }
#define READ(path) { "read" path, "F19 X17", "read " path, try_read, 0, { 0 }, path }
#define LINK(path) { "link" path, "F19", "follow " path, try_link, 0, { 0 }, path }
#define BELOW(path) { "below" path, "F18", "read the secret below " path, try_read_below, 0, { 0 }, path }

static const struct attempt attempts[] = {
	READ("/proc/1/environ"),
	READ("/proc/1/maps"),
	READ("/proc/1/smaps"),
	READ("/proc/1/auxv"),
	READ("/proc/1/syscall"),
	READ("/proc/1/stack"),
	READ("/proc/1/io"),
	READ("/proc/1/task/1/environ"),
	READ("//proc/./1/../1/environ"),
	WRITE("/proc/1/mem"),
	WRITE("/proc/1/task/1/mem"),
	WRITE("/proc/1/clear_refs"),
	WRITE("/proc/1/oom_score_adj"),
	LINK("/proc/1/root"),
	LINK("/proc/1/cwd"),
	LINK("/proc/1/exe"),
	LINK("/proc/1/fd/0"),
	LINK("/proc/1/fd/3"),
	LINK("/proc/1/ns/mnt"),
	LINK("/proc/1/task/1/root"),
	BELOW(""),
	BELOW("/proc/self/root"),
	BELOW("/proc/thread-self/root"),
	BELOW("/proc/1/root"),
	BELOW("/proc/1/task/1/root"),
	BELOW("/proc/self/cwd/../../../../../../../.."),
	BELOW("/dev/fd/../root"),
	BELOW("/proc/self/task/../root"),
	BELOW("/.."),
	{ "proc.host.root", "F19", "read the secret through the root of a host process", try_host_root, 0, { 0 },
		NULL },
	{ "proc.host.task-root", "F19", "the same through its task directory", try_host_root, 1, { 0 }, NULL },
	{ "proc.host.mem", "F19", "open the memory of a host process", try_host_memory, 0, { 0 }, NULL },
	READ("/proc/kcore"),
	READ("/proc/kmsg"),
	READ("/proc/keys"),
	READ("/proc/timer_list"),
	READ("/proc/sched_debug"),
	READ("/proc/latency_stats"),
	READ("/proc/slabinfo"),
	READ("/proc/vmallocinfo"),
	READ("/proc/kpagecount"),
	{ "read/proc/kallsyms", "X17", "kernel addresses in /proc/kallsyms", try_symbols, 16, { 0 },
		"/proc/kallsyms" },
	{ "read/proc/iomem", "X17", "physical addresses in /proc/iomem", try_symbols, 8, { 0 }, "/proc/iomem" },
	WRITE("/proc/sysrq-trigger"),
	WRITE("/proc/sys/kernel/core_pattern"),
	WRITE("/proc/sys/kernel/modprobe"),
	WRITE("/proc/sys/kernel/hostname"),
	WRITE("/proc/sys/kernel/domainname"),
	WRITE("/proc/sys/kernel/sysrq"),
	WRITE("/proc/sys/kernel/ns_last_pid"),
	WRITE("/proc/sys/kernel/randomize_va_space"),
	WRITE("/proc/sys/kernel/shmmax"),
	WRITE("/proc/sys/kernel/msgmax"),
	WRITE("/proc/sys/fs/mqueue/queues_max"),
	WRITE("/proc/sys/vm/overcommit_memory"),
	WRITE("/proc/sys/vm/drop_caches"),
	WRITE("/proc/sys/vm/panic_on_oom"),
	WRITE("/proc/sys/fs/file-max"),
	WRITE("/proc/sys/fs/suid_dumpable"),
	WRITE("/proc/sys/fs/protected_symlinks"),
	WRITE("/proc/sys/fs/binfmt_misc/register"),
	WRITE("/proc/sys/user/max_user_namespaces"),
	WRITE("/proc/sys/net/ipv4/ip_forward"),
	WRITE("/proc/sys/net/ipv4/ping_group_range"),
	WRITE("/proc/sys/net/ipv4/ip_unprivileged_port_start"),
	WRITE("/proc/irq/default_smp_affinity"),
	WRITE("/proc/mtrr"),
	WRITE("/sys/kernel/uevent_helper"),
	WRITE("/sys/kernel/mm/ksm/run"),
	WRITE("/sys/kernel/mm/transparent_hugepage/enabled"),
	WRITE("/sys/power/state"),
	WRITE("/sys/kernel/profiling"),
	WRITE("/sys/module/kernel/parameters/panic"),
	WRITE("/sys/devices/system/cpu/cpu1/online"),
	WRITE("/sys/fs/cgroup/memory/release_agent"),
	WRITE("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
	WRITE("/sys/fs/cgroup/pids/cgroup.procs"),
	WRITE("/sys/fs/cgroup/cgroup.procs"),
	WRITE("/sys/fs/cgroup/unified/cgroup.procs"),
	READ("/sys/kernel/debug/kprobes/list"),
	READ("/sys/firmware/dmi/tables/DMI"),
	READ("/sys/class/dmi/id/product_serial"),
	{ "cgroup.mkdir", "F30", "make a cgroup", try_cgroup, 0, { 0 }, NULL },
};

const struct attempt_group probe_procfs = { attempts, ARRAY_SIZE(attempts) };
