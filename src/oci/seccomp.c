/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/seccomp.h"

#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/names.h"
#include "base/str.h"

#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#define CAP_BPF 39
#endif

static int fail(struct err *err, const char *what, const char *name)
{
	return err_set(err, ERR_USAGE, EINVAL, "seccomp", "config.json: linux.seccomp: %s \"%s\" is not known", what,
		       name);
}

/* An action, or 0 with r = -EINVAL: KILL_THREAD is 0. */
static int action_of(const char *name, int64_t errno_code, uint32_t *ret, struct err *err)
{
	static const struct {
		const char *name;
		uint32_t action;
	} actions[] = {
		{ "SCMP_ACT_KILL", SCMP_ACT_KILL_THREAD }, { "SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_THREAD },
		{ "SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS }, { "SCMP_ACT_TRAP", SCMP_ACT_TRAP },
		{ "SCMP_ACT_ALLOW", SCMP_ACT_ALLOW }, { "SCMP_ACT_LOG", SCMP_ACT_LOG },
	};
	unsigned code = errno_code == FIELD_NONE ? EPERM : (unsigned)errno_code;

	if (str_equal(name, "SCMP_ACT_ERRNO"))
		*ret = SCMP_ACT_ERRNO(code);
	else if (str_equal(name, "SCMP_ACT_TRACE"))
		*ret = SCMP_ACT_TRACE(code);
	else {
		for (size_t i = 0; i < ARRAY_SIZE(actions); i++)
			if (str_equal(actions[i].name, name)) {
				*ret = actions[i].action;
				return 0;
			}
		return fail(err, "action", name);
	}
	return 0;
}

static int compare_of(const struct oci_seccomp_arg *arg, struct scmp_arg_cmp *ret, struct err *err)
{
	static const char *const ops[] = {
		[SCMP_CMP_NE] = "SCMP_CMP_NE", [SCMP_CMP_LT] = "SCMP_CMP_LT", [SCMP_CMP_LE] = "SCMP_CMP_LE",
		[SCMP_CMP_EQ] = "SCMP_CMP_EQ", [SCMP_CMP_GE] = "SCMP_CMP_GE", [SCMP_CMP_GT] = "SCMP_CMP_GT",
		[SCMP_CMP_MASKED_EQ] = "SCMP_CMP_MASKED_EQ",
	};
	int op = names_find(ops, ARRAY_SIZE(ops), arg->op);

	if (op < 0)
		return fail(err, "operator", arg->op);
	*ret = (struct scmp_arg_cmp){ (unsigned)arg->index, (enum scmp_compare)op, (scmp_datum_t)arg->value,
				      (scmp_datum_t)arg->value_two };
	return 0;
}

/* Several conditions on one argument are one of them each, as other runtimes read it: libseccomp takes one only. */
static int add_rules(scmp_filter_ctx filter, uint32_t action, int number, const struct scmp_arg_cmp *compares,
		     size_t count)
{
	unsigned seen = 0, twice = 0;
	int r = 0;

	for (size_t i = 0; i < count; i++) {
		twice |= seen & 1U << compares[i].arg;
		seen |= 1U << compares[i].arg;
	}
	if (!twice)
		return seccomp_rule_add_array(filter, action, number, (unsigned)count, compares);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = seccomp_rule_add_array(filter, action, number, 1, &compares[i]);
	return r;
}

static int add_call(scmp_filter_ctx filter, const struct oci_seccomp_call *call, uint32_t otherwise, struct err *err)
{
	struct scmp_arg_cmp compares[6];
	const struct oci_seccomp_arg *args = call->args.items;
	uint32_t action;
	int r = action_of(call->action, call->errno_code, &action, err);

	if (r == 0 && call->args.count > ARRAY_SIZE(compares))
		return err_set(err, ERR_USAGE, EINVAL, "seccomp",
			       "config.json: linux.seccomp: too many args of a call");
	for (size_t i = 0; r == 0 && i < call->args.count; i++)
		r = compare_of(&args[i], &compares[i], err);
	/* What says the same as the default is no rule (libseccomp: EACCES). */
	if (r < 0 || action == otherwise)
		return r;
	for (size_t i = 0; r == 0 && i < call->names.count; i++) {
		int number = seccomp_syscall_resolve_name(call->names.items[i]);

		/* A call that this kernel's headers do not know: the filter's default answers it. */
		if (number == __NR_SCMP_ERROR)
			continue;
		r = add_rules(filter, action, number, compares, call->args.count);
		if (r < 0)
			return err_set(err, ERR_USAGE, -r, "seccomp", "config.json: linux.seccomp: %s: %s",
				       call->names.items[i], strerror(-r));
	}
	return r;
}

static int add_architectures(scmp_filter_ctx filter, const struct field_texts *names, struct err *err)
{
	for (size_t i = 0; i < names->count; i++) {
		char name[32] = "";
		uint32_t arch;
		int r;

		(void)!str_format(name, sizeof name, "%s",
				  str_has_prefix(names->items[i], "SCMP_ARCH_") ? names->items[i] + 10 : "");
		for (char *at = name; *at; at++)
			*at |= *at >= 'A' && *at <= 'Z' ? 0x20 : 0;
		arch = seccomp_arch_resolve_name(name);
		if (!arch)
			return fail(err, "architecture", names->items[i]);
		r = seccomp_arch_add(filter, arch);
		if (r < 0 && r != -EEXIST)
			return err_set(err, ERR_USAGE, -r, "seccomp", "%s: %s", names->items[i], strerror(-r));
	}
	return 0;
}

static int set_flags(scmp_filter_ctx filter, const struct field_texts *flags, struct err *err)
{
	int r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);

	(void)!seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	for (size_t i = 0; r == 0 && i < flags->count; i++) {
		if (str_equal(flags->items[i], "SECCOMP_FILTER_FLAG_LOG"))
			r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);
		else if (str_equal(flags->items[i], "SECCOMP_FILTER_FLAG_SPEC_ALLOW"))
			continue; /* ours is stricter: speculation controls stay */
		else if (!str_equal(flags->items[i], "SECCOMP_FILTER_FLAG_TSYNC"))
			return fail(err, "flag", flags->items[i]);
	}
	return r;
}

static int load(scmp_filter_ctx filter, int r, struct err *err)
{
	if (r == 0) {
		r = seccomp_load(filter);
		if (r < 0)
			err_set(err, ERR_WALL, -r, "seccomp", "the filter of system calls cannot be loaded: %s",
				strerror(-r));
	}
	seccomp_release(filter);
	return r;
}

static int load_bundle(const struct oci_seccomp *seccomp, struct err *err)
{
	const struct oci_seccomp_call *calls = seccomp->calls.items;
	scmp_filter_ctx filter;
	uint32_t otherwise;
	int r = action_of(seccomp->default_action, seccomp->default_errno, &otherwise, err);

	if (r < 0)
		return r;
	filter = seccomp_init(otherwise);
	if (!filter)
		return err_set(err, ERR_USAGE, EINVAL, "seccomp", "config.json: linux.seccomp: defaultAction %s",
			       seccomp->default_action);
	r = set_flags(filter, &seccomp->flags, err);
	if (r == 0)
		r = add_architectures(filter, &seccomp->architectures, err);
	for (size_t i = 0; r == 0 && i < seccomp->calls.count; i++)
		r = add_call(filter, &calls[i], otherwise, err);
	return load(filter, r, err);
}

static bool has(const struct oci_capabilities *capabilities, int capability)
{
	return strv_has(capabilities->bounding.items, oci_capability_name(capability));
}

struct floor_row {
	const char *call;
	int capability, other; /* who has either is not kept from it; -1: nobody */
};

/*
 * What programs in containers do not need and attacks on the kernel begin with. Calls that no capability stands for
 * (-1) reach large parts of the kernel for every user.
 */
static const struct floor_row floor_rows[] = {
	{ "init_module", CAP_SYS_MODULE, -1 }, { "finit_module", CAP_SYS_MODULE, -1 },
	{ "delete_module", CAP_SYS_MODULE, -1 }, { "kexec_load", CAP_SYS_BOOT, -1 },
	{ "kexec_file_load", CAP_SYS_BOOT, -1 }, { "open_by_handle_at", CAP_DAC_READ_SEARCH, -1 },
	{ "bpf", CAP_BPF, CAP_SYS_ADMIN }, { "perf_event_open", CAP_PERFMON, CAP_SYS_ADMIN },
	{ "mount", CAP_SYS_ADMIN, -1 }, { "umount2", CAP_SYS_ADMIN, -1 }, { "pivot_root", CAP_SYS_ADMIN, -1 },
	{ "fsopen", CAP_SYS_ADMIN, -1 }, { "fsconfig", CAP_SYS_ADMIN, -1 }, { "fsmount", CAP_SYS_ADMIN, -1 },
	{ "fspick", CAP_SYS_ADMIN, -1 }, { "open_tree", CAP_SYS_ADMIN, -1 }, { "move_mount", CAP_SYS_ADMIN, -1 },
	{ "mount_setattr", CAP_SYS_ADMIN, -1 }, { "setns", CAP_SYS_ADMIN, -1 },
	{ "swapon", CAP_SYS_ADMIN, -1 }, { "swapoff", CAP_SYS_ADMIN, -1 },
	{ "quotactl", CAP_SYS_ADMIN, -1 }, { "lookup_dcookie", CAP_SYS_ADMIN, -1 },
	{ "iopl", CAP_SYS_RAWIO, -1 }, { "ioperm", CAP_SYS_RAWIO, -1 },
	{ "userfaultfd", CAP_SYS_PTRACE, -1 }, { "add_key", CAP_SYS_ADMIN, -1 }, { "request_key", CAP_SYS_ADMIN, -1 },
	{ "keyctl", CAP_SYS_ADMIN, -1 }, { "nfsservctl", -1, -1 }, { "uselib", -1, -1 },
	{ "io_uring_setup", CAP_SYS_ADMIN, -1 },
};

static int add_floor(scmp_filter_ctx filter, const struct oci_capabilities *capabilities)
{
	const uint32_t refuse = SCMP_ACT_ERRNO(EPERM);
	int r = set_flags(filter, &(struct field_texts){ 0 }, NULL);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(floor_rows); i++) {
		const struct floor_row *row = &floor_rows[i];
		int number = seccomp_syscall_resolve_name(row->call);

		if (number != __NR_SCMP_ERROR && !has(capabilities, row->capability) && !has(capabilities, row->other))
			r = seccomp_rule_add(filter, refuse, number, 0);
	}
	/* Bits above the 32nd of a request are none to the kernel: they must not hide it. */
	if (r == 0)
		r = seccomp_rule_add(filter, refuse, SCMP_SYS(ioctl), 1,
				     SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffU, TIOCSTI));
	if (r < 0 || has(capabilities, CAP_SYS_ADMIN))
		return r;
	/* A new user namespace has every capability over what it owns. clone3(2) hides its flags: libraries go back. */
	r = seccomp_rule_add(filter, refuse, SCMP_SYS(unshare), 1,
			     SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER));
	if (r == 0)
		r = seccomp_rule_add(filter, refuse, SCMP_SYS(clone), 1,
				     SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER));
	return r == 0 ? seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) : r;
}

int oci_seccomp_load(const struct oci_seccomp *seccomp, const struct oci_capabilities *capabilities, struct err *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int r;

	if (!filter)
		return -ENOMEM;
	/* Programs of 32 bits have numbers of their own for the same calls. */
	r = seccomp_arch_native() == SCMP_ARCH_X86_64 ? seccomp_arch_add(filter, SCMP_ARCH_X86) : 0;
	if (r == 0)
		r = add_floor(filter, capabilities);
	r = load(filter, r, err);
	return r == 0 && seccomp->default_action ? load_bundle(seccomp, err) : r;
}
