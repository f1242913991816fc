/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/refusals.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

/* Younger than the headers that we are built with; numbers above 423 are the same on every architecture. */
#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd 443
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef SYS_open_tree_attr
#define SYS_open_tree_attr 467
#endif

#define CALL(name, errnum) { SYS_##name, errnum, #name }

static const struct watch_refused_call refused_calls[] = {
	/* mounts and roots */
	CALL(mount, EPERM), CALL(umount2, EPERM), CALL(pivot_root, EPERM), CALL(chroot, EPERM), CALL(fsopen, EPERM),
	CALL(fsconfig, EPERM), CALL(fsmount, EPERM), CALL(fspick, EPERM), CALL(open_tree, EPERM),
	CALL(open_tree_attr, EPERM), CALL(move_mount, EPERM), CALL(mount_setattr, EPERM),
	/* namespaces */
	CALL(clone, EPERM), CALL(unshare, EPERM), CALL(setns, EPERM),
	/* the kernel's own machinery */
	CALL(bpf, EPERM), CALL(perf_event_open, EPERM), CALL(userfaultfd, EPERM), CALL(fanotify_init, EPERM),
	CALL(keyctl, EPERM), CALL(add_key, EPERM), CALL(request_key, EPERM), CALL(personality, EPERM),
	/* EBUSY is what a second listener gets from the kernel itself */
	CALL(seccomp, EBUSY),
	/* the machine */
	CALL(kexec_load, EPERM), CALL(init_module, EPERM), CALL(finit_module, EPERM), CALL(delete_module, EPERM),
	CALL(reboot, EPERM), CALL(acct, EPERM), CALL(quotactl, EPERM), CALL(quotactl_fd, EPERM), CALL(swapon, EPERM),
	CALL(swapoff, EPERM), CALL(settimeofday, EPERM), CALL(clock_settime, EPERM), CALL(sethostname, EPERM),
	CALL(setdomainname, EPERM),
#ifdef SYS_kexec_file_load
	CALL(kexec_file_load, EPERM),
#endif
#ifdef SYS_iopl
	CALL(iopl, EPERM), CALL(ioperm, EPERM),
#endif
	/* files: set-user-ID bits, device nodes, handles that go around the path */
	CALL(fchmod, EPERM), CALL(fchmodat, EPERM), CALL(fchmodat2, EPERM), CALL(openat, EPERM), CALL(mknodat, EPERM),
	CALL(open_by_handle_at, EPERM), CALL(name_to_handle_at, EPERM),
#ifdef SYS_open
	CALL(chmod, EPERM), CALL(creat, EPERM), CALL(open, EPERM), CALL(mknod, EPERM),
#endif
	/* terminals: TIOCSTI and its like; sockets: families without a use inside */
	CALL(ioctl, EPERM), CALL(socket, EAFNOSUPPORT), CALL(socketpair, EPROTONOSUPPORT),
};

const struct watch_refused_call *watch_refused_call_find(int number)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused_calls); i++)
		if (refused_calls[i].number == number)
			return &refused_calls[i];
	return NULL;
}
