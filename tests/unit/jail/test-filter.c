/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The seccomp programs are what the tables say: an interpreter runs them for every number that a call can have
 * and for the arguments around which a table decides, on both architectures and both profiles.
 * What must be refused whatever the tables say stands here once more, by hand.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include <cmocka.h>
#include <linux/audit.h>
#include <linux/seccomp.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "jail/filter.h"
#include "seccomp-programs.h"

/* Of the arguments of each call sanitizers see a part: the whole space is the other builds'. */
#ifdef ATOLL_SANITIZED
enum { STRIDE = 5 };
#else
enum { STRIDE = 1 };
#endif

#ifdef __x86_64__
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#else
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#endif

enum { POOL_MAX = 64, DEFAULT_ANSWER = SECCOMP_RET_ERRNO | ENOSYS };

struct subject {
	const char *name;
	uint32_t audit_arch;
	const struct sock_filter *program;
	size_t count;
	const struct seccomp_rule *rules;
	size_t rule_count;
};

#define SUBJECT(profile, suffix, audit)                                                            \
	{ #profile " " #suffix, audit, seccomp_##profile##_##suffix, ARRAY_SIZE(seccomp_##profile##_##suffix), \
	  seccomp_##profile##_##suffix##_rules, ARRAY_SIZE(seccomp_##profile##_##suffix##_rules) }

static const struct subject subjects[] = {
	SUBJECT(strict, x86_64, AUDIT_ARCH_X86_64),
	SUBJECT(strict, aarch64, AUDIT_ARCH_AARCH64),
	SUBJECT(nested, x86_64, AUDIT_ARCH_X86_64),
	SUBJECT(nested, aarch64, AUDIT_ARCH_AARCH64),
	SUBJECT(strict_noexec, x86_64, AUDIT_ARCH_X86_64),
	SUBJECT(strict_noexec, aarch64, AUDIT_ARCH_AARCH64),
	SUBJECT(nested_noexec, x86_64, AUDIT_ARCH_X86_64),
	SUBJECT(nested_noexec, aarch64, AUDIT_ARCH_AARCH64),
	SUBJECT(strict_moves, x86_64, AUDIT_ARCH_X86_64),
	SUBJECT(nested_noexec_moves, aarch64, AUDIT_ARCH_AARCH64),
	SUBJECT(strict_writes, x86_64, AUDIT_ARCH_X86_64),
	SUBJECT(strict_all, x86_64, AUDIT_ARCH_X86_64),
	SUBJECT(strict_all, aarch64, AUDIT_ARCH_AARCH64),
	SUBJECT(nested_all, x86_64, AUDIT_ARCH_X86_64),
	SUBJECT(nested_noexec_writes, aarch64, AUDIT_ARCH_AARCH64),
	SUBJECT(mounts, x86_64, AUDIT_ARCH_X86_64),
	SUBJECT(mounts_moves, x86_64, AUDIT_ARCH_X86_64),
	SUBJECT(mounts_moves, aarch64, AUDIT_ARCH_AARCH64),
};

/* Classic BPF as seccomp(2) has it; *ret_steps counts instructions. An invalid program fails the test. */
static uint32_t run(const struct subject *subject, const struct seccomp_data *data, size_t *ret_steps)
{
	uint32_t a = 0;

	*ret_steps = 0;
	for (size_t pc = 0; pc < subject->count; pc++) {
		const struct sock_filter *insn = &subject->program[pc];
		bool is_true;

		++*ret_steps;
		switch (insn->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(insn->k % 4 == 0 && insn->k + 4 <= sizeof *data);
			memcpy(&a, (const char *)data + insn->k, 4);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= insn->k;
			continue;
		case BPF_RET | BPF_K:
			return insn->k;
		case BPF_JMP | BPF_JA:
			pc += insn->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			is_true = a == insn->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			is_true = a >= insn->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			is_true = a & insn->k;
			break;
		default:
			fail_msg("instruction %zu has code 0x%x", pc, insn->code);
			return 0;
		}
		pc += is_true ? insn->jt : insn->jf;
	}
	fail_msg("%s runs past its end", subject->name);
	return 0;
}

static bool holds(const struct seccomp_condition *condition, const struct seccomp_data *data)
{
	uint32_t half = (uint32_t)(data->args[condition->word / 2] >> 32 * (condition->word % 2));
	uint32_t value = half & condition->mask;

	for (unsigned i = 0; i < condition->value_count; i++)
		if (condition->values[i] == value)
			return !condition->negate;
	return condition->negate;
}

static uint32_t expected(const struct subject *subject, const struct seccomp_data *data)
{
	for (size_t i = 0; i < subject->rule_count; i++) {
		const struct seccomp_rule *rule = &subject->rules[i];
		unsigned held = 0;

		if (rule->number != data->nr)
			continue;
		while (held < rule->condition_count && holds(&rule->conditions[held], data))
			held++;
		if (held == rule->condition_count)
			return rule->value;
	}
	return DEFAULT_ANSWER;
}

static void check_one(const struct subject *subject, const struct seccomp_data *data)
{
	size_t steps;
	uint32_t is = run(subject, data, &steps), should = expected(subject, data);

	if (is != should)
		fail_msg("%s: call %d (0x%llx, 0x%llx, 0x%llx, 0x%llx) gives 0x%x, not 0x%x", subject->name, data->nr,
			 (unsigned long long)data->args[0], (unsigned long long)data->args[1],
			 (unsigned long long)data->args[2], (unsigned long long)data->args[3], is, should);
}

/* Values around which the rules of this call decide, with and without upper bits. */
static size_t fill_pool(const struct subject *subject, int number, uint64_t pool[POOL_MAX])
{
	size_t count = 0;

	pool[count++] = 0;
	pool[count++] = ~0ull;
	for (size_t i = 0; i < subject->rule_count; i++)
		for (unsigned c = 0; subject->rules[i].number == number && c < subject->rules[i].condition_count; c++) {
			const struct seccomp_condition *condition = &subject->rules[i].conditions[c];

			for (unsigned v = 0; v < condition->value_count && count + 4 < POOL_MAX; v++) {
				pool[count++] = condition->values[v];
				pool[count++] = condition->values[v] | 1ull << 32;
				pool[count++] = condition->values[v] + 1u;
			}
			if (condition->mask != UINT32_MAX && count + 4 < POOL_MAX) {
				pool[count++] = condition->mask;
				pool[count++] = condition->mask & -condition->mask;
				pool[count++] = ~condition->mask;
			}
		}
	return count;
}

static void check_arguments(const struct subject *subject, int number)
{
	struct seccomp_data data = { .nr = number, .arch = subject->audit_arch };
	uint64_t pool[POOL_MAX];
	size_t count = fill_pool(subject, number, pool);

	/* No rule looks at more than three arguments, and none beyond the fourth. */
	for (size_t i = 0; i < count; i += STRIDE)
		for (size_t j = 0; j < count; j++)
			for (size_t k = 0; k < count; k++) {
				data.args[0] = pool[i], data.args[1] = pool[j], data.args[2] = pool[k],
					data.args[3] = pool[i];
				check_one(subject, &data);
				data.args[3] = pool[k];
				check_one(subject, &data);
			}
}

static void test_programs_are_the_tables(void **state)
{
	for (size_t s = 0; s < ARRAY_SIZE(subjects); s++) {
		for (int number = 0; number < 1024; number++)
			check_arguments(&subjects[s], number);
		check_arguments(&subjects[s], -1);
		check_arguments(&subjects[s], INT32_MAX);
	}
}

static void test_x32_numbers_do_not_exist(void **state)
{
	for (int number = 0; number < 1024; number++) {
		struct seccomp_data data = { .nr = number | 0x40000000, .arch = AUDIT_ARCH_X86_64 };
		size_t steps;

		assert_int_equal(run(&subjects[0], &data, &steps), DEFAULT_ANSWER);
		assert_int_equal(run(&subjects[2], &data, &steps), DEFAULT_ANSWER);
	}
}

static void test_foreign_architectures_die(void **state)
{
	static const uint32_t foreign[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, 0, ~0u };

	for (size_t s = 0; s < ARRAY_SIZE(subjects); s++)
		for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
			for (int number = 0; number < 1024; number++) {
				struct seccomp_data data = { .nr = number, .arch = foreign[i] };
				size_t steps;

				assert_int_equal(run(&subjects[s], &data, &steps), SECCOMP_RET_KILL_PROCESS);
			}
}

/* What the tables must say, whoever edits them. Numbers are this build's architecture's. */
static const struct {
	int number;
	uint64_t args[4];
	uint32_t strict, nested;
} by_hand[] = {
#define NOTIFY SECCOMP_RET_USER_NOTIF
#define ALLOW SECCOMP_RET_ALLOW
#define BOTH(value) value, value
	{ SYS_mount, { 0 }, BOTH(NOTIFY) },
	{ SYS_umount2, { 0 }, BOTH(NOTIFY) },
	{ SYS_pivot_root, { 0 }, BOTH(NOTIFY) },
	{ SYS_move_mount, { 0 }, BOTH(NOTIFY) },
	{ SYS_open_tree, { 0 }, BOTH(NOTIFY) },
	{ SYS_chroot, { 0 }, NOTIFY, ALLOW },
	{ SYS_unshare, { 0x10000000 }, NOTIFY, ALLOW },
	{ SYS_unshare, { 0x10000000 | 1ull << 32 }, NOTIFY, ALLOW },
	{ SYS_unshare, { 0x80 }, NOTIFY, ALLOW },
	{ SYS_unshare, { 0x400 }, BOTH(ALLOW) },
	{ SYS_setns, { 3, 0 }, NOTIFY, ALLOW },
	{ SYS_clone, { 0x10000011 }, NOTIFY, ALLOW },
	{ SYS_clone, { 0x20011 }, NOTIFY, ALLOW },
	{ SYS_clone, { 0x11 }, BOTH(ALLOW) },
	{ SYS_clone, { 0x2011 }, BOTH(NOTIFY) }, /* CLONE_PTRACE */
	{ SYS_clone, { 0x3d0f00 }, BOTH(ALLOW) }, /* pthread_create */
	{ SYS_clone3, { 0 }, BOTH(DEFAULT_ANSWER) },
	{ SYS_bpf, { 0 }, BOTH(NOTIFY) },
	{ SYS_perf_event_open, { 0 }, BOTH(NOTIFY) },
	{ SYS_userfaultfd, { 0 }, BOTH(NOTIFY) },
	{ SYS_keyctl, { 0 }, BOTH(NOTIFY) },
	{ SYS_add_key, { 0 }, BOTH(NOTIFY) },
	{ SYS_request_key, { 0 }, BOTH(NOTIFY) },
	{ SYS_kexec_load, { 0 }, BOTH(NOTIFY) },
	{ SYS_init_module, { 0 }, BOTH(NOTIFY) },
	{ SYS_finit_module, { 0 }, BOTH(NOTIFY) },
	{ SYS_acct, { 0 }, BOTH(NOTIFY) },
	{ SYS_quotactl, { 0 }, BOTH(NOTIFY) },
	{ SYS_swapon, { 0 }, BOTH(NOTIFY) },
	{ SYS_open_by_handle_at, { 0 }, BOTH(NOTIFY) },
	{ SYS_io_uring_setup, { 0 }, BOTH(DEFAULT_ANSWER) },
	{ SYS_io_uring_enter, { 0 }, BOTH(DEFAULT_ANSWER) },
	{ SYS_io_uring_register, { 0 }, BOTH(DEFAULT_ANSWER) },
	{ SYS_ioctl, { 0, 0x5412 }, BOTH(NOTIFY) },
	{ SYS_ioctl, { 0, 0x5412 | 1ull << 32 }, BOTH(NOTIFY) },
	{ SYS_ioctl, { 0, 0x5412 | 0xdeadbeefull << 32 }, BOTH(NOTIFY) },
	{ SYS_ioctl, { 0, 0x541c }, BOTH(NOTIFY) },
	{ SYS_ioctl, { 0, 0x5401 }, BOTH(ALLOW) },
	{ SYS_socket, { 1, 1, 0 }, BOTH(ALLOW) },
	{ SYS_socket, { 1, 5 | 02000000 | 04000, 0 }, BOTH(ALLOW) },
	{ SYS_socket, { 1, 2 | 02000000 | 04000, 0 }, BOTH(NOTIFY) },
	{ SYS_socket, { 1, 3, 0 }, BOTH(NOTIFY) },
	{ SYS_socketpair, { 1, 1 | 02000000, 0 }, BOTH(ALLOW) },
	{ SYS_socketpair, { 1, 5, 0 }, BOTH(ALLOW) },
	{ SYS_socketpair, { 1, 2 | 04000, 0 }, BOTH(NOTIFY) },
	{ SYS_socketpair, { 1, 3, 0 }, BOTH(NOTIFY) },
	{ SYS_socket, { 2, 1 | 02000000 | 04000, 6 }, BOTH(ALLOW) },
	{ SYS_socket, { 10, 2, 17 }, BOTH(ALLOW) },
	{ SYS_socket, { 2, 1, 262 }, BOTH(SECCOMP_RET_ERRNO | EPROTONOSUPPORT) },
	{ SYS_socket, { 2, 1, 132 }, BOTH(SECCOMP_RET_ERRNO | EPROTONOSUPPORT) },
	{ SYS_socket, { 2, 3, 1 }, BOTH(NOTIFY) },
	{ SYS_socket, { 2, 2, 1 }, BOTH(NOTIFY) },
	{ SYS_socket, { 2, 5, 132 }, BOTH(NOTIFY) },
	{ SYS_socket, { 16, 3, 0 }, BOTH(ALLOW) },
	{ SYS_socket, { 16, 3, 9 }, BOTH(NOTIFY) },
	{ SYS_socket, { 17, 3, 0 }, BOTH(NOTIFY) },
	{ SYS_socket, { 38, 5, 0 }, BOTH(NOTIFY) },
	{ SYS_socket, { 40, 1, 0 }, BOTH(NOTIFY) },
	{ SYS_socket, { 1ull << 32 | 40, 1, 0 }, BOTH(NOTIFY) },
	{ SYS_personality, { 0x400000 }, BOTH(NOTIFY) },
	{ SYS_personality, { 0x40000 }, BOTH(ALLOW) },
	{ SYS_personality, { 0xffffffff }, BOTH(ALLOW) },
	{ SYS_mknodat, { 0, 0, 0020644 }, BOTH(NOTIFY) },
	{ SYS_mknodat, { 0, 0, 0060644 }, BOTH(NOTIFY) },
	{ SYS_mknodat, { 0, 0, 0010644 }, BOTH(ALLOW) },
	{ SYS_fchmodat, { 0, 0, 04755 }, BOTH(NOTIFY) },
	{ SYS_fchmodat, { 0, 0, 0755 }, BOTH(ALLOW) },
	{ SYS_openat, { 0, 0, 0x41, 04755 }, BOTH(NOTIFY) },
	{ SYS_openat, { 0, 0, 0x41, 0644 }, BOTH(ALLOW) },
	{ SYS_openat, { 0, 0, 0, 04755 }, BOTH(ALLOW) },
	{ SYS_openat2, { 0 }, BOTH(DEFAULT_ANSWER) },
	{ SYS_fchmod, { 0, 02755 }, BOTH(NOTIFY) },
	{ SYS_fchmod, { 0, 01777 }, BOTH(ALLOW) },
	{ SYS_openat, { 0, 0, 0x41, 02755 }, BOTH(NOTIFY) },
	{ SYS_mknodat, { 0, 0, 0102755 }, BOTH(NOTIFY) },
	{ 447 /* memfd_secret */, { 0 }, BOTH(DEFAULT_ANSWER) },
	{ SYS_setxattr, { 0 }, ALLOW, SECCOMP_RET_ERRNO | EOPNOTSUPP },
	{ SYS_lsetxattr, { 0 }, ALLOW, SECCOMP_RET_ERRNO | EOPNOTSUPP },
	{ SYS_fsetxattr, { 0 }, ALLOW, SECCOMP_RET_ERRNO | EOPNOTSUPP },
	{ 463 /* setxattrat */, { 0 }, ALLOW, SECCOMP_RET_ERRNO | EOPNOTSUPP },
	{ SYS_setrlimit, { 4 }, BOTH(SECCOMP_RET_ERRNO) },
	{ SYS_setrlimit, { 7 }, BOTH(ALLOW) },
	{ SYS_prlimit64, { 0, 4, 0 }, BOTH(ALLOW) },
	{ SYS_prlimit64, { 0, 4, 0x1000 }, BOTH(SECCOMP_RET_ERRNO) },
	{ SYS_prlimit64, { 0, 4, 1ull << 32 }, BOTH(SECCOMP_RET_ERRNO) },
	{ SYS_prlimit64, { 0, 7, 1ull << 32 }, BOTH(ALLOW) },
	{ SYS_seccomp, { 1, 8 }, BOTH(NOTIFY) },
	{ SYS_seccomp, { 1, 0 }, BOTH(ALLOW) },
	{ SYS_execve, { 0 }, BOTH(NOTIFY) },
	{ SYS_execveat, { 0 }, BOTH(NOTIFY) },
	{ SYS_connect, { 0 }, BOTH(NOTIFY) },
	{ SYS_bind, { 0 }, BOTH(NOTIFY) },
	{ SYS_listen, { 0 }, BOTH(NOTIFY) },
	{ SYS_read, { 0 }, BOTH(ALLOW) },
	{ 600, { 0 }, BOTH(DEFAULT_ANSWER) },
};

static void test_what_must_be_refused(void **state)
{
#ifdef __x86_64__
	const struct subject *strict = &subjects[0], *nested = &subjects[2];
#else
	const struct subject *strict = &subjects[1], *nested = &subjects[3];
#endif

	for (size_t i = 0; i < ARRAY_SIZE(by_hand); i++) {
		struct seccomp_data data = { .nr = by_hand[i].number, .arch = strict->audit_arch };
		size_t steps;

		memcpy(data.args, by_hand[i].args, sizeof by_hand[i].args);
		if (run(strict, &data, &steps) != by_hand[i].strict || run(nested, &data, &steps) != by_hand[i].nested)
			fail_msg("entry %zu (call %d): 0x%x, 0x%x", i, by_hand[i].number, run(strict, &data, &steps),
				 run(nested, &data, &steps));
	}
}

/* Where programs have mounts of their own: what names no file system goes on, everything else is the supervisor's. */
static void test_mounts_of_programs_own(void **state)
{
	static const struct {
		int number;
		uint64_t flags;
		uint32_t answer;
	} cases[] = {
		{ SYS_mount, MS_BIND, ALLOW }, { SYS_mount, MS_BIND | MS_REC, ALLOW },
		{ SYS_mount, MS_BIND | MS_REMOUNT | MS_RDONLY, ALLOW }, { SYS_mount, MS_REC | MS_SLAVE, ALLOW },
		{ SYS_mount, MS_PRIVATE, ALLOW }, { SYS_mount, 0, NOTIFY }, { SYS_mount, MS_NOSUID | MS_NODEV, NOTIFY },
		{ SYS_mount, MS_REMOUNT, NOTIFY }, { SYS_mount, MS_MOVE, NOTIFY },
		/* The kernel forgets the upper half of these: new mounts that look like another propagation. */
		{ SYS_mount, 0xc0ed0000, NOTIFY }, { SYS_mount, 0xc0ed0000 | MS_NOSUID, NOTIFY },
		{ SYS_mount, 0xc0ed0000 | 1ull << 32, NOTIFY }, { SYS_mount, 0xc0ed0000 | MS_BIND, ALLOW },
		{ SYS_mount, 1ull << 44, NOTIFY },
		{ SYS_umount2, 0, ALLOW }, { SYS_pivot_root, 0, ALLOW }, { SYS_unlinkat, 0, NOTIFY },
		{ SYS_renameat2, 0, NOTIFY }, { SYS_fsopen, 0, NOTIFY }, { SYS_open_tree, 0, NOTIFY },
		{ SYS_move_mount, 0, NOTIFY }, { SYS_fsmount, 0, NOTIFY }, { SYS_mount_setattr, 0, NOTIFY },
		{ SYS_setxattr, 0, SECCOMP_RET_ERRNO | EOPNOTSUPP },
	};

	for (size_t s = 0; s < ARRAY_SIZE(subjects); s++)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct seccomp_data data = { .nr = cases[i].number, .arch = NATIVE_ARCH,
						     .args = { 0, 0, 0, cases[i].flags } };
			size_t steps;

			if (!strstr(subjects[s].name, "mounts") || subjects[s].audit_arch != NATIVE_ARCH)
				continue;
			if (run(&subjects[s], &data, &steps) != cases[i].answer)
				fail_msg("%s: call %d, flags 0x%llx", subjects[s].name, cases[i].number,
					 (unsigned long long)cases[i].flags);
		}
}

/* Without new programs the profiles differ in memory files alone. */
static void test_no_executable_memory_files(void **state)
{
	enum { APART = 4, MEMFD_X86_64 = 319, MEMFD_AARCH64 = 279 };

	for (size_t s = 0; s < APART; s++) {
		const struct subject *plain = &subjects[s], *noexec = &subjects[s + APART];
		int memfd = plain->audit_arch == AUDIT_ARCH_X86_64 ? MEMFD_X86_64 : MEMFD_AARCH64;
		struct seccomp_data data = { .arch = plain->audit_arch };
		size_t steps;

		for (data.nr = 0; data.nr < 1024; data.nr++)
			if (data.nr != memfd)
				assert_int_equal(run(noexec, &data, &steps), run(plain, &data, &steps));
		data.nr = memfd;
		for (data.args[1] = 0; data.args[1] < 64; data.args[1]++) {
			assert_int_equal(run(plain, &data, &steps), SECCOMP_RET_ALLOW);
			assert_int_equal(run(noexec, &data, &steps),
					 data.args[1] & 8 ? SECCOMP_RET_ALLOW : DEFAULT_ANSWER);
		}
	}
}

/* The kernel walks the program once for every number when it is loaded: that is the cost of a start. */
static void test_programs_are_short(void **state)
{
	for (size_t s = 0; s < ARRAY_SIZE(subjects); s++) {
		size_t sum = 0;

		for (int number = 0; number < 470; number++) {
			struct seccomp_data data = { .nr = number, .arch = subjects[s].audit_arch };
			size_t steps;

			run(&subjects[s], &data, &steps);
			sum += steps;
		}
		print_message("%s: %zu instructions, %zu steps to load\n", subjects[s].name, subjects[s].count, sum);
		assert_true(subjects[s].count <= 256);
		assert_true(sum < 470 * 12);
	}
}

static void test_refusals_have_names(void **state)
{
	struct hash a, b;

	assert_string_equal(jail_filter_syscall_name(SYS_mount), "mount");
	assert_int_equal(jail_filter_syscall_errno(SYS_mount), EPERM);
	assert_int_equal(jail_filter_syscall_errno(SYS_socket), EAFNOSUPPORT);
	assert_null(jail_filter_syscall_name(SYS_execve));
	assert_null(jail_filter_syscall_name(SYS_read));
	assert_null(jail_filter_syscall_name(-1));
	jail_filter_hash(JAIL_SECCOMP_STRICT, &a);
	jail_filter_hash(JAIL_SECCOMP_NESTED, &b);
	assert_memory_not_equal(&a, &b, sizeof a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_programs_are_the_tables),
		cmocka_unit_test(test_x32_numbers_do_not_exist),
		cmocka_unit_test(test_foreign_architectures_die),
		cmocka_unit_test(test_what_must_be_refused), cmocka_unit_test(test_mounts_of_programs_own),
		cmocka_unit_test(test_no_executable_memory_files),
		cmocka_unit_test(test_programs_are_short),
		cmocka_unit_test(test_refusals_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
