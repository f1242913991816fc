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

#define PROGRAM(profile) { NATIVE(profile, ), ARRAY_SIZE(NATIVE(profile, )) }
#define PROGRAMS(suffix)                                                                                             \
	PROGRAM(strict##suffix), PROGRAM(nested##suffix), PROGRAM(strict_noexec##suffix),                             \
		PROGRAM(nested_noexec##suffix), PROGRAM(mounts##suffix)
#define NAMES(suffix)                                                                                                \
	"strict" suffix, "nested" suffix, "strict-noexec" suffix, "nested-noexec" suffix, "mounts" suffix

/* In the order of enum jail_seccomp_profile, for each of enum jail_mediation. */
static const struct {
	const struct sock_filter *program;
	size_t count;
} profiles[JAIL_SECCOMP_COUNT] = { PROGRAMS(), PROGRAMS(_moves), PROGRAMS(_writes), PROGRAMS(_all) };

const char *const jail_seccomp_names[JAIL_SECCOMP_COUNT] = { NAMES(""), NAMES("+moves"), NAMES("+writes"),
							      NAMES("+all") };

enum jail_seccomp_profile jail_seccomp_profile(enum jail_seccomp_profile base, enum jail_mediation mediation)
{
	return (enum jail_seccomp_profile)((unsigned)base + (unsigned)mediation * JAIL_SECCOMP_BASES);
}

bool jail_seccomp_is_nested(enum jail_seccomp_profile profile)
{
	unsigned base = (unsigned)profile % JAIL_SECCOMP_BASES;

	return base == JAIL_SECCOMP_NESTED || base == JAIL_SECCOMP_NESTED_NOEXEC || base == JAIL_SECCOMP_MOUNTS;
}

bool jail_seccomp_has_mounts(enum jail_seccomp_profile profile)
{
	return (unsigned)profile % JAIL_SECCOMP_BASES == JAIL_SECCOMP_MOUNTS;
}

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
