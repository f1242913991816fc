/* SPDX-License-Identifier: Apache-2.0 */
#include "os/keyring.h"

#include <linux/keyctl.h>
#include <sys/syscall.h>

static const char type[] = "user";

/*
 * What lies in the user's keyring may be read by who possesses it, and a login without pam_keyinit does not link it
 * to its session: linking it to the keyring of this process makes it ours whatever the login did.
 */
static int possess(void)
{
	return syscall(SYS_keyctl, KEYCTL_LINK, KEY_SPEC_USER_KEYRING, KEY_SPEC_PROCESS_KEYRING) < 0 ? -errno : 0;
}

static int find(const char *description, long *ret_key)
{
	int r = possess();

	if (r < 0)
		return r;
	*ret_key = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, type, description, 0);
	return *ret_key < 0 ? -errno : 0;
}

int keyring_put(const char *description, const void *bytes, size_t size, unsigned timeout_s)
{
	long key;
	int r = possess();

	if (r < 0)
		return r;
	key = syscall(SYS_add_key, type, description, bytes, size, KEY_SPEC_USER_KEYRING);
	if (key < 0)
		return -errno;
	if (syscall(SYS_keyctl, KEYCTL_SET_TIMEOUT, key, timeout_s) == 0)
		return 0;
	/* Without an end it would be no cache. */
	r = -errno;
	syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING);
	return r;
}

int keyring_get(const char *description, void *bytes, size_t size)
{
	long key, used;
	int r = find(description, &key);

	if (r < 0)
		return r;
	used = syscall(SYS_keyctl, KEYCTL_READ, key, bytes, size);
	if (used < 0)
		return -errno;
	return (size_t)used == size ? 0 : -EMSGSIZE;
}

int keyring_drop(const char *description)
{
	long key;
	int r = find(description, &key);

	if (r < 0)
		return r;
	return syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING) < 0 ? -errno : 0;
}
