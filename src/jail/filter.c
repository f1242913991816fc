/* SPDX-License-Identifier: Apache-2.0 */
#include "jail/filter.h"

#include "base/hash.h"
#include "os/seccomp.h"
#include "seccomp-programs.h"

#if defined(__x86_64__)
#define NATIVE(profile, suffix) seccomp_##profile##_x86_64##suffix
#elif defined(__aarch64__)
#define NATIVE(profile, suffix) seccomp_##profile##_aarch64##suffix
#else
#error "tools/seccomp has no numbers for this architecture"
#endif

static const struct {
	const struct sock_filter *program;
	size_t count;
} profiles[JAIL_SECCOMP_COUNT] = {
	[JAIL_SECCOMP_STRICT] = { NATIVE(strict, ), ARRAY_SIZE(NATIVE(strict, )) },
	[JAIL_SECCOMP_NESTED] = { NATIVE(nested, ), ARRAY_SIZE(NATIVE(nested, )) },
	[JAIL_SECCOMP_STRICT_NOEXEC] = { NATIVE(strict_noexec, ), ARRAY_SIZE(NATIVE(strict_noexec, )) },
	[JAIL_SECCOMP_NESTED_NOEXEC] = { NATIVE(nested_noexec, ), ARRAY_SIZE(NATIVE(nested_noexec, )) },
};

const char *const jail_seccomp_names[JAIL_SECCOMP_COUNT] = {
	[JAIL_SECCOMP_STRICT] = "strict",
	[JAIL_SECCOMP_NESTED] = "nested",
	[JAIL_SECCOMP_STRICT_NOEXEC] = "strict-noexec",
	[JAIL_SECCOMP_NESTED_NOEXEC] = "nested-noexec",
};

const struct sock_filter *jail_filter_program(enum jail_seccomp_profile profile, size_t *ret_count)
{
	*ret_count = profiles[profile].count;
	return profiles[profile].program;
}

int jail_filter_load(enum jail_seccomp_profile profile)
{
	return seccomp_load_with_listener(profiles[profile].program, profiles[profile].count);
}

static const struct seccomp_refusal *find_refusal(int number)
{
	/* The strict profile notifies of all that any other does. */
	for (size_t i = 0; i < ARRAY_SIZE(NATIVE(strict, _refusals)); i++)
		if (NATIVE(strict, _refusals)[i].number == number)
			return &NATIVE(strict, _refusals)[i];
	return NULL;
}

const char *jail_filter_syscall_name(int number)
{
	const struct seccomp_refusal *refusal = find_refusal(number);

	return refusal ? refusal->name : NULL;
}

int jail_filter_syscall_errno(int number)
{
	const struct seccomp_refusal *refusal = find_refusal(number);

	return refusal ? refusal->errnum : 0;
}

void jail_filter_hash(enum jail_seccomp_profile profile, struct hash *ret_hash)
{
	hash_bytes(ret_hash, profiles[profile].program, profiles[profile].count * sizeof *profiles[profile].program);
}
