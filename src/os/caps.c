/* SPDX-License-Identifier: Apache-2.0 */
#include "os/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/prctl.h>
#include <linux/securebits.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif
#ifndef PR_SCHED_CORE_CREATE
#define PR_SCHED_CORE_CREATE 1
#endif

int prctl(int option, ...);   /* <sys/prctl.h> of musl repeats <linux/prctl.h> */

enum { SCOPE_THREAD_GROUP = 1 };

int caps_drop_all(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
			     SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			     SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	/* The ambient set follows by itself: it is always within permitted and inheritable. */
	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0 || syscall(SYS_capset, &header, data) < 0)
		return -errno;
	return 0;
}

int caps_bound(uint64_t kept)
{
	int held = 1;

	/* Each drop makes the process a new set of credentials, a look does not. Beyond the last one: EINVAL. */
	for (unsigned long cap = 0; cap < 64 && held >= 0; cap++) {
		held = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		if ((held < 0 && cap <= CAP_LAST_CAP) ||
		    (held > 0 && !(kept >> cap & 1) && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0))
			return -errno;
	}
	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ? -errno : 0;
}

int caps_no_new_privs(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int caps_limit_speculation(void)
{
	int state = prctl(PR_GET_SPECULATION_CTRL, PR_SPEC_INDIRECT_BRANCH, 0, 0, 0);

	if (state < 0)
		return errno == ENODEV || errno == EINVAL ? -EOPNOTSUPP : -errno;
	/* Without PR_SPEC_PRCTL the state is the machine's, not ours: off for all, or on because the owner said so. */
	if (!(state & PR_SPEC_PRCTL))
		return state & PR_SPEC_ENABLE ? -EOPNOTSUPP : 1;
	if (state & PR_SPEC_FORCE_DISABLE)
		return 1;
	return prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_INDIRECT_BRANCH, PR_SPEC_FORCE_DISABLE, 0, 0) < 0 ? -errno : 0;
}

int caps_core_cookie(void)
{
	if (prctl(PR_SCHED_CORE, PR_SCHED_CORE_CREATE, 0, SCOPE_THREAD_GROUP, 0) == 0)
		return 0;
	if (errno == ENODEV)
		return 1;
	return errno == EINVAL || errno == ENOSYS ? -EOPNOTSUPP : -errno;
}

int caps_new_keyring(void)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) < 0 && errno != ENOSYS)
		return -errno;
	return 0;
}
