/* SPDX-License-Identifier: Apache-2.0 */
#include "os/identity.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/caps.h"

/*
 * Raw calls: those of a libc change every thread by signals. The real and the saved id stay, so that the way back is
 * open and nobody else counts our processes; nobody of that user may signal or trace us, since we are not dumpable.
 */

static const unsigned keep = ~0u;

/* What we are ourselves. Asked for once: a program that needs this does so a hundred thousand times a second. */
static struct {
	bool is_known, is_taken;
	uid_t uid, taken_uid;
	gid_t gid, taken_gid;
	struct __user_cap_data_struct capabilities[2];
} own;

int identity_drop_groups(void)
{
	return geteuid() == 0 && syscall(SYS_setgroups, 0, NULL) < 0 ? -errno : 0;
}

static int know_own(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	if (own.is_known)
		return 0;
	own.uid = geteuid();
	own.gid = getegid();
	if (syscall(SYS_capget, &header, own.capabilities) < 0)
		return -errno;
	own.is_known = true;
	return 0;
}

/*
 * Of what the kernel has just taken away, this comes back: whoever is in another user namespace needs it to look at
 * /proc/PID/fd and its like of a process that has the same uid (cap_ptrace_access_check()).
 */
static int keep_ptrace(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { own.capabilities[0], own.capabilities[1] };

	data[0].effective = data[0].permitted & 1u << CAP_SYS_PTRACE;
	data[1].effective = 0;
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int become(uid_t uid, gid_t gid)
{
	int r = syscall(SYS_setresgid, keep, gid, keep) < 0 ? -errno : 0;

	own.is_taken = true;
	if (r == 0 && syscall(SYS_setresuid, keep, uid, keep) < 0)
		r = -errno;
	if (r == 0)
		r = keep_ptrace();
	own.taken_uid = uid;
	own.taken_gid = gid;
	if (r < 0)
		identity_return();
	return r;
}

int identity_leave(uid_t uid)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[2] = { { 0 } };
	bool is_root = getuid() == 0 || geteuid() == 0;
	int r = caps_bound(0);

	/* Who has no CAP_SETPCAP cannot: a user without capabilities, mostly. */
	if (r < 0 && (is_root || r != -EPERM))
		return r;
	if (is_root && (!uid || syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, uid, uid, uid) < 0 ||
			syscall(SYS_setresuid, uid, uid, uid) < 0))
		return uid ? -errno : -EINVAL;
	/* The ambient set follows: it is always within the permitted one. */
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

int identity_take(uid_t uid, gid_t gid)
{
	int r = know_own();

	if (r < 0 || (own.is_taken && uid == own.taken_uid && gid == own.taken_gid))
		return r;
	if (uid == own.uid && gid == own.gid) {
		identity_return();
		return 0;
	}
	return become(uid, gid);
}

void identity_return(void)
{
	if (!own.is_taken)
		return;
	/* The uid first: with it come the capabilities that the gid needs. */
	if (syscall(SYS_setresuid, keep, own.uid, keep) < 0 || syscall(SYS_setresgid, keep, own.gid, keep) < 0)
		abort();
	own.is_taken = false;
}

void identity_take_files(uid_t uid, gid_t gid)
{
	if (geteuid() != 0)
		return;
	/* The group first: to change it needs root. Neither call tells whether it worked; what is made then does. */
	setfsgid(gid);
	setfsuid(uid);
}

void identity_return_files(void)
{
	identity_take_files(0, 0);
}
