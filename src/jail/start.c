/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/jail.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "jail/filter.h"
#include "jail/job.h"
#include "os/vmfork.h"
#include "os/clock.h"
#include "os/clone.h"
#include "os/fd.h"

/* What the mounts of a jail, and the masks behind them, may take of the memory shared with its child: reserved. */
enum { PLAN_MAX = 3 << 20, MASKS_MAX = 1 << 20, SHARED_MAX = PLAN_MAX + MASKS_MAX };

const char *const jail_stage_names[JAIL_STAGE_COUNT] = {
	[JAIL_STAGE_CLONE] = "jail.clone",
	[JAIL_STAGE_NAMESPACES] = "jail.namespaces",
	[JAIL_STAGE_IDS] = "jail.ids",
	[JAIL_STAGE_MOUNTS] = "jail.mounts",
	[JAIL_STAGE_PIVOT] = "jail.pivot",
	[JAIL_STAGE_LANDLOCK] = "jail.landlock",
	[JAIL_STAGE_EXEC] = "jail.exec",
};

/* 1: the child has closed its end, so it has an error to tell. Any other failure would leave it waiting for ever. */
static int tell_child(const struct jail_job *job, struct err *err)
{
	if (send(job->parent_socket, "x", 1, MSG_NOSIGNAL) == 1)
		return 0;
	if (errno == EPIPE || errno == ECONNRESET)
		return 1;
	return err_set(err, ERR_INTERNAL, errno, "jail", "cannot talk to the sandbox's first process: %s",
		       err_errno_name(errno));
}

/* The mounts, made known to the child. */
static int plan_mounts(struct jail_job *job, struct err *err)
{
	struct jail_spec *planned = &job->planned;
	const struct jail_calls *calls = &planned->calls;
	int r = calls->plan ? calls->plan(calls->context, &planned->mounts, &planned->mount_count, err) : 0;

	if (r == 0)
		r = jail_spec_check(planned, err);
	if (r < 0)
		return r;
	job->report->mount_count = planned->mount_count;
	r = mounts_pack(planned->mounts, planned->mount_count, job->report + 1, PLAN_MAX, &job->report->mounts);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "spec", "the mounts take more than %u MiB of memory",
			       PLAN_MAX >> 20) : 0;
}

/* Of the preparer, whose user namespace the child shares. */
static int write_ids(const struct jail_job *job, pid_t pid, struct err *err)
{
	const struct jail_spec *spec = job->spec;
	struct clone_ids ids = {
		.uid = spec->uid, .gid = spec->gid,
		.host_uid = spec->run_as_root ? spec->host_uid : geteuid(),
		.host_gid = spec->run_as_root ? spec->host_gid : getegid(),
		.others = spec->run_as_root ? CLONE_OTHERS_SHOWN : CLONE_OTHERS_NONE,
		.deny_setgroups = !spec->run_as_root,
	};
	int r = clone_write_ids(pid, &ids);

	if (r == 0)
		return 0;
	err_set(err, ERR_WALL, -r, wall_names[WALL_USERNS], "cannot write the id maps: %s", err_errno_name(-r));
	if (r == -EACCES)
		err_hint(err, "atoll-box must be dumpable (readable by its user) until the sandbox has started");
	return r;
}

static bool has_late(const struct jail_spec *spec, bool by_fuse)
{
	for (size_t i = 0; i < spec->mount_count; i++)
		if (spec->mounts[i].flags & JAIL_LATE && (!by_fuse || spec->mounts[i].kind == JAIL_FUSE))
			return true;
	return false;
}

static int all_are_masks(const struct jail_mount *masks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (masks[i].kind != JAIL_MASK || masks[i].flags & JAIL_LATE)
			return -EINVAL;
	return 0;
}

/* The masks that come behind all mounts, made known to the child. */
static int plan_masks(struct jail_job *job, struct err *err)
{
	struct jail_report *report = job->report;
	struct jail_spec spec = job->planned;
	int r = spec.calls.masks(spec.calls.context, &spec.mounts, &spec.mount_count, err);

	if (r == 0)
		r = jail_spec_check(&spec, err);
	if (r < 0)
		return r;
	r = all_are_masks(spec.mounts, spec.mount_count);
	report->mask_count = spec.mount_count;
	if (r == 0)
		r = mounts_pack(spec.mounts, spec.mount_count, (char *)(report + 1) + PLAN_MAX, MASKS_MAX,
				&report->masks);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "spec", "the data after the mounts is too large, or is no mask");
	return tell_child(job, err);
}

/* All that the mounts need of the parent. 1: the child has an error to tell. */
static int serve_mounts(struct jail_job *job, struct err *err)
{
	/* Who serves a tree needs its layers. */
	int r = has_late(job->spec, true) ? sources_make_late(job, err) : 0;

	if (r == 0)
		r = fuse_receive(job, err);
	if (r == 0 && job->spec->run_as_root)
		r = sources_send(job, err);
	if (r == 0)
		r = sources_make_late(job, err);
	if (r == 0 && !job->spec->run_as_root && has_late(job->spec, false))
		r = tell_child(job, err);
	return r == 0 && job->spec->calls.masks ? plan_masks(job, err) : r;
}

/* The sockets of the gate, which were made in the network namespace: they are in our table. */
static void take_gate(struct jail_job *job)
{
	int *fds = job->report->prepared.gate;

	for (size_t i = 0; i < JAIL_GATE_SOCKETS; i++)
		job->spec->gate_sockets[i] = take_fd(&fds[i]);
}

/* Everything up to the child that goes its own way. Where the plan fails there is one as well. */
static int make_child(struct jail *jail, struct pidref *ret_child, struct err *err)
{
	struct jail_job *job = &jail->job;
	int r = write_ids(job, jail->process.pid, err), failed, joined;

	if (r == 0)
		r = tell_child(job, err);
	if (r < 0) {
		preparer_stop(jail);
		/* What it has failed with explains more than what then fails here. */
		failed = preparer_failure(jail, err);
		return failed < 0 ? failed : r;
	}
	r = plan_mounts(job, err);
	joined = preparer_join(jail, ret_child, err);
	return joined < 0 ? joined : r;
}

/* What the parent does while the child builds. */
static int serve_child(struct jail_job *job, struct err *err)
{
	const struct jail_spec *spec = job->spec;
	int r = tell_child(job, err);

	if (r == 0)
		r = serve_mounts(job, err);
	if (r != 0)
		return r < 0 ? r : 0;
	return spec->calls.meanwhile ? spec->calls.meanwhile(spec->calls.context, err) : 0;
}

/* 0 when the child has executed init (its end of the socket closed at exec), else its error. */
static int await_exec(const struct jail_job *job, struct err *err)
{
	struct err told;
	ssize_t size;

	/* A child that fails leaves messages unread, which the kernel reports once, before its error: ECONNRESET. */
	do {
		size = recv(job->parent_socket, &told, sizeof told, 0);
	} while (size < 0 && (errno == EINTR || errno == ECONNRESET));
	if (size == sizeof told)
		return child_error(&told, err);
	if (size != 0 || !job->report->is_complete)
		return err_set(err, ERR_INTERNAL, size < 0 ? errno : ECHILD, "jail",
			       "the sandbox's first process died while the jail was built");
	return 0;
}

static void reap(const struct pidref *child)
{
	siginfo_t info;

	/* It may be gone already; waiting settles both cases. Not reaped yet, so its number is its own. */
	if (pidref_signal(child, SIGKILL) < 0)
		(void)!kill(child->pid, SIGKILL);
	(void)!pidref_wait(child, WEXITED, &info, NULL);
}

static void fill_enforcement(const struct jail_job *job, uint64_t start_ns, struct jail_enforcement *enforcement)
{
	const struct jail_report *report = job->report;
	uint64_t before = report->prepared.cloned_ns, ends[JAIL_STAGE_COUNT];

	*enforcement = (struct jail_enforcement){
		.user = true,                            .pid = true,
		.mount = report->namespaces & CLONE_NEWNS, .net = report->prepared.namespaces & CLONE_NEWNET,
		.ipc = report->namespaces & CLONE_NEWIPC,  .uts = report->namespaces & CLONE_NEWUTS,
		.cgroup = report->namespaces & CLONE_NEWCGROUP,
		.landlock_abi = report->landlock_abi,    .seccomp = jail_seccomp_names[job->spec->seccomp],
		.speculation = report->speculation,      .core_sched = report->core_sched,
		.missing = report->missing | report->prepared.missing,
		.own_device_count = report->own_device_count,
	};
	memcpy(enforcement->own_devices, report->own_devices, sizeof report->own_devices);
	memcpy(ends, report->stage_end_ns, sizeof ends);
	ends[JAIL_STAGE_EXEC] = clock_monotonic_ns();
	enforcement->stage_ns[JAIL_STAGE_CLONE] = before > start_ns ? before - start_ns : 0;
	for (int stage = JAIL_STAGE_CLONE + 1; stage < JAIL_STAGE_COUNT; stage++) {
		enforcement->stage_ns[stage] = ends[stage] > before ? ends[stage] - before : 0;
		before = ends[stage];
	}
}

/* Everything between the preparation and the result. */
static int build(struct jail *jail, struct pidref *ret_init, struct jail_enforcement *enforcement, struct err *err)
{
	uint64_t start_ns = clock_monotonic_ns();
	struct pidref child = PIDREF_NONE;
	int r = make_child(jail, &child, err);

	close_fd(&jail->job.child_socket);
	if (r == 0)
		r = serve_child(&jail->job, err);
	if (r == 0)
		r = await_exec(&jail->job, err);
	if (r < 0) {
		if (child.pid)
			reap(&child);
		pidref_done(&child);
		return r;
	}
	if (jail->job.spec->gate_sockets)
		take_gate(&jail->job);
	fill_enforcement(&jail->job, start_ns, enforcement);
	*ret_init = child;
	return 0;
}

/* Descriptors that the child needs must not stand where init's own are put (0 to 3). */
static int open_channel(struct jail_job *job)
{
	int sockets[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		return -errno;
	job->parent_socket = sockets[0];
	job->child_socket = sockets[1];
	if (job->child_socket <= 3) {
		r = fd_move_above(job->child_socket, 4);
		if (r < 0)
			return r;
		job->child_socket = r;
	}
	r = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (r < 0)
		return -errno;
	job->parent_pidfd = r;
	if (r <= 3)
		job->parent_pidfd = r = fd_move_above(r, 4);
	return r < 0 ? r : 0;
}

static int check_walls(const struct jail_spec *spec, struct err *err)
{
	if (!spec->run_as_root && geteuid() == 0)
		return err_set(err, ERR_INTERNAL, EINVAL, "spec", "a sandbox must not run as the host's root");
	if (spec->init_fd <= 3)
		return err_set(err, ERR_INTERNAL, EINVAL, "spec", "init's descriptor must be above 3");
	/* The filter is loaded by init, which has no hook. Without it there is no audit: nothing lets it be missing. */
	if (jail_wall_is_broken(spec, WALL_SECCOMP))
		return jail_wall_demanded(spec, WALL_SECCOMP, EINVAL, err, "seccomp filters are not available");
	return 0;
}

static int make_report(struct jail_job *job, struct err *err)
{
	job->report = mmap(NULL, sizeof *job->report + SHARED_MAX, PROT_READ | PROT_WRITE,
			   (vmfork_shares_memory ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (job->report == MAP_FAILED) {
		job->report = NULL;
		return err_set(err, ERR_INTERNAL, errno, "jail", "cannot map memory: %s", err_errno_name(errno));
	}
	for (size_t i = 0; i < JAIL_GATE_SOCKETS; i++)
		job->report->prepared.gate[i] = FD_NONE;
	return 0;
}

int jail_begin(const struct jail_spec *spec, struct jail **ret_jail, struct err *err)
{
	struct jail *jail = malloc(sizeof *jail);
	int r;

	if (!jail)
		return err_set(err, ERR_INTERNAL, ENOMEM, "jail", "not enough memory");
	jail->job = (struct jail_job){
		.planned = *spec, .child_socket = FD_NONE, .parent_socket = FD_NONE, .parent_pidfd = FD_NONE,
	};
	jail->process = PIDREF_NONE;
	r = make_report(&jail->job, err);
	if (r == 0) {
		r = open_channel(&jail->job);
		if (r < 0)
			err_set(err, ERR_INTERNAL, -r, "jail", "cannot make a channel to the child: %s",
				err_errno_name(-r));
	}
	/* Where the processes share no memory it could not see what comes to stand there later. */
	if (r == 0 && vmfork_shares_memory)
		r = preparer_start(jail, err);
	if (r < 0) {
		jail_free(jail);
		return r;
	}
	*ret_jail = jail;
	return 0;
}

pid_t jail_waiting(const struct jail *jail)
{
	return jail->process.pid;
}

int jail_start(struct jail *jail, const struct jail_spec *spec, struct pidref *ret_init,
	       struct jail_enforcement *ret_enforcement, struct err *err)
{
	int r = check_walls(spec, err);

	if (r < 0)
		return r;
	jail->job.planned = *spec;
	jail->job.spec = &jail->job.planned;
	jail->first = jail->job;
	jail->first.spec = &jail->first.planned;
	if (!vmfork_shares_memory)
		r = preparer_start(jail, err);
	return r < 0 ? r : build(jail, ret_init, ret_enforcement, err);
}

void jail_free(struct jail *jail)
{
	struct jail_job *job;

	if (!jail)
		return;
	preparer_stop(jail);
	job = &jail->job;
	for (size_t i = 0; job->report && i < JAIL_GATE_SOCKETS; i++)
		close_fd(&job->report->prepared.gate[i]);
	close_fd(&job->child_socket);
	close_fd(&job->parent_socket);
	close_fd(&job->parent_pidfd);
	if (job->report)
		munmap(job->report, sizeof *job->report + SHARED_MAX);
	free(jail);
}
