/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. clone3 makes the user and the PID namespace, which must be there from the first moment; the
 * network namespace is made ahead (preparer.c), and the rest by the child itself, while the parent does its own work on
 * another CPU. Each is asked for alone, so that the one that cannot be had is named.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "jail/job.h"
#include "os/fd.h"
#include "os/netlink.h"

struct wanted {
	enum wall wall;
	int flag;
	const char *failure;
};

static const struct wanted mounts = { WALL_MOUNTS, CLONE_NEWNS, "cannot make a mount namespace" };
static const struct wanted network = { WALL_NETNS, CLONE_NEWNET, "cannot make a network namespace" };
static const struct wanted others[] = {
	{ WALL_IPC, CLONE_NEWIPC, "cannot make an IPC namespace" },
	{ WALL_UTS, CLONE_NEWUTS, "cannot make a UTS namespace" },
	{ WALL_CGROUPNS, CLONE_NEWCGROUP, "cannot make a cgroup namespace" },
};

/* The first acts that need a capability: Ubuntu's AppArmor gives out user namespaces, but without any. */
static int no_capabilities(int r, struct err *err, const char *what)
{
	err_set(err, ERR_WALL, -r, wall_names[WALL_USERNS], "the user namespace has no capabilities (%s: %s)", what,
		err_errno_name(-r));
	err_hint(err, "a security module restricts user namespaces here (AppArmor on Ubuntu does): install atoll's "
		      "profile, see `atoll doctor`");
	return r;
}

static int make_mount_namespace(const struct jail_job *job, struct err *err)
{
	int r;

	/* A broken "mounts" is shown where mounts are made. */
	if (unshare(mounts.flag) == 0) {
		job->report->namespaces |= (unsigned)mounts.flag;
		return 0;
	}
	r = -errno;
	return r == -EPERM || r == -EACCES ? no_capabilities(r, err, mounts.failure) :
					     jail_wall_demanded(job->spec, mounts.wall, -r, err, mounts.failure);
}

static int make_namespace(const struct jail_job *job, const struct wanted *wanted, uint64_t *namespaces,
			  uint32_t *missing, struct err *err)
{
	int r = jail_wall_is_broken(job->spec, wanted->wall) ? -EPERM : unshare(wanted->flag) < 0 ? -errno : 0;

	if (r < 0)
		return jail_wall_failed(job->spec, wanted->wall, -r, missing, err, wanted->failure);
	*namespaces |= (unsigned)wanted->flag;
	return 0;
}

int child_network(struct jail_job *job, struct err *err)
{
	struct jail_prepared *prepared = &job->report->prepared;
	cleanup_fd int fd = FD_NONE;
	int r = job->spec->share_network ? 0 :
		make_namespace(job, &network, &prepared->namespaces, &prepared->missing, err);

	if (r < 0)
		return r;
	if (prepared->namespaces & CLONE_NEWNET) {
		r = fd = netlink_open();
		if (r >= 0)
			r = netlink_loopback_up(fd);
	}
	if (r == -EPERM || r == -EACCES)
		return no_capabilities(r, err, "the loopback interface stays down");
	if (r < 0)
		return err_set(err, ERR_WALL, -r, wall_names[WALL_NETNS], "cannot bring up the loopback interface: %s",
			       err_errno_name(-r));
	return job->spec->gate_sockets ? child_gate(job, fd, err) : 0;
}

int child_namespaces(struct jail_job *job, struct err *err)
{
	const char *hostname = job->spec->hostname;
	struct jail_report *report = job->report;
	int r = make_mount_namespace(job, err);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(others); i++)
		r = make_namespace(job, &others[i], &report->namespaces, &report->missing, err);
	if (r == 0 && report->namespaces & CLONE_NEWUTS && sethostname(hostname, strlen(hostname)) < 0)
		return err_set(err, ERR_WALL, errno, wall_names[WALL_UTS], "cannot set the host name: %s",
			       err_errno_name(errno));
	return r;
}
