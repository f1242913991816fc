/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. clone3 makes the user and the PID namespace, which must be there from the first moment;
 * the rest the child makes itself. An empty network namespace is the dearest part of a start (0.4 ms), and here the
 * parent does its own work on another CPU meanwhile. Each is asked for alone, so that the one that cannot be had
 * is named.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "jail/job.h"
#include "os/netlink.h"

static const struct {
	enum wall wall;
	int flag;
	const char *failure;
} unshared[] = {
	{ WALL_MOUNTS, CLONE_NEWNS, "cannot make a mount namespace" },
	{ WALL_NETNS, CLONE_NEWNET, "cannot make a network namespace" },
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

static int make_namespace(const struct jail_job *job, size_t index, struct err *err)
{
	const struct jail_spec *spec = job->spec;
	enum wall wall = unshared[index].wall;
	bool is_mounts = wall == WALL_MOUNTS; /* a broken "mounts" is shown where mounts are made */
	int r;

	if (!is_mounts && jail_wall_is_broken(spec, wall))
		return jail_wall_failed(spec, wall, EPERM, &job->report->missing, err, unshared[index].failure);
	if (unshare(unshared[index].flag) == 0) {
		job->report->namespaces |= (unsigned)unshared[index].flag;
		return 0;
	}
	r = -errno;
	if (is_mounts && (r == -EPERM || r == -EACCES))
		return no_capabilities(r, err, unshared[index].failure);
	return is_mounts ? jail_wall_demanded(spec, wall, -r, err, unshared[index].failure) :
			   jail_wall_failed(spec, wall, -r, &job->report->missing, err, unshared[index].failure);
}

int child_namespaces(struct jail_job *job, struct err *err)
{
	const char *hostname = job->spec->hostname;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(unshared); i++)
		if (unshared[i].wall != WALL_NETNS || !job->spec->share_network)
			r = make_namespace(job, i, err);
	if (r == 0 && job->report->namespaces & CLONE_NEWNET)
		r = netlink_loopback_up();
	else if (r < 0)
		return r;
	if (r == -EPERM || r == -EACCES)
		return no_capabilities(r, err, "the loopback interface stays down");
	if (r < 0)
		return err_set(err, ERR_WALL, -r, wall_names[WALL_NETNS], "cannot bring up the loopback interface: %s",
			       err_errno_name(-r));
	if (job->spec->gate_sockets) {
		r = child_gate(job, err);
		if (r < 0)
			return r;
	}
	if (job->report->namespaces & CLONE_NEWUTS && sethostname(hostname, strlen(hostname)) < 0)
		return err_set(err, ERR_WALL, errno, wall_names[WALL_UTS], "cannot set the host name: %s",
			       err_errno_name(errno));
	return 0;
}
