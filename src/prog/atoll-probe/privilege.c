/* SPDX-License-Identifier: Apache-2.0 */
/* X21: capabilities, ids, setuid programs, no_new_privs, the filter's own presence, speculation controls. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "numbers.h"
#include "probe.h"

static enum outcome try_status_zero(const struct attempt *attempt, const struct targets *targets,
				    struct note *note)
{
	char status[4096];
	ssize_t size = raw_read_file("/proc/self/status", status, sizeof status - 1);
	const char *value;

	if (size < 0)
		return outcome(note, OUTCOME_BROKE, "cannot read the own status: %s", err_errno_name(errno));
	status[size] = '\0';
	value = strstr(status, attempt->text);
	if (!value)
		return outcome(note, OUTCOME_BROKE, "%s is not there", attempt->text);
	value += strlen(attempt->text);
	if (strtoull(value, NULL, 16) != (unsigned long long)attempt->number)
		return outcome(note, OUTCOME_BROKE, "%.16s", value);
	return outcome(note, OUTCOME_HELD, "%.*s", (int)strcspn(value, "\n"), value);
}

/*
 * A full bounding set gives nothing where no exec can raise capabilities: with no_new_privs, and with root's
 * own rules (SECBIT_NOROOT, SECBIT_NO_SETUID_FIXUP) switched off and locked.
 */
static enum outcome try_bounding(const struct attempt *attempt, const struct targets *targets,
				 struct note *note)
{
	int bits = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);

	if (try_status_zero(attempt, targets, note) == OUTCOME_HELD)
		return OUTCOME_HELD;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 && bits >= 0 && (bits & 0xf) == 0xf)
		return outcome(note, OUTCOME_HELD,
			       "not empty, but out of reach: no_new_privs, securebits 0x%x", (unsigned)bits);
	return outcome(note, OUTCOME_BROKE, "not empty, securebits 0x%x", (unsigned)bits);
}

static enum outcome try_no_new_privs(const struct attempt *attempt, const struct targets *targets,
				     struct note *note)
{
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return outcome(note, OUTCOME_HELD, "set");
	return outcome(note, OUTCOME_BROKE, "not set");
}

static enum outcome try_capset(const struct attempt *attempt, const struct targets *targets,
			       struct note *note)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	data[0].effective = data[0].permitted = 1u << CAP_SYS_CHROOT | 1u << CAP_NET_RAW;
	return outcome_of_call(note, syscall(SYS_capset, &header, data), "gained capabilities");
}

static enum outcome try_ambient(const struct attempt *attempt, const struct targets *targets,
				struct note *note)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) == 0) {
		data[0].inheritable = data[0].permitted;
		data[1].inheritable = data[1].permitted;
		syscall(SYS_capset, &header, data);
	}
	return outcome_of_call(note, prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0),
			       "raised");
}

static enum outcome try_setgroups(const struct attempt *attempt, const struct targets *targets,
				  struct note *note)
{
	gid_t groups[2] = { 0, 42 };

	return outcome_of_call(note, syscall(SYS_setgroups, 2, groups), "groups 0 and 42");
}

/* setfsuid() has no error: the second call tells whether the first had an effect. */
static enum outcome try_setfsuid(const struct attempt *attempt, const struct targets *targets,
				 struct note *note)
{
	uid_t other = getuid() + 1;

	syscall(SYS_setfsuid, other);
	if ((uid_t)syscall(SYS_setfsuid, -1) == other)
		return outcome(note, OUTCOME_BROKE, "files are opened as uid %u", (unsigned)other);
	return outcome(note, OUTCOME_HELD, "no effect");
}

/* Runs `program --print-identity` and looks at what it gained over us. */
static enum outcome try_gain(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const char *program = attempt->number ? targets->capable_program : targets->setuid_program;
	char text[128] = "", mine[64];
	ssize_t size;
	int ends[2];
	pid_t pid;

	if (!program)
		return outcome_no_target(note, attempt->number ? "--capable-program" : "--setuid-program");
	if (pipe(ends) < 0)
		return outcome(note, OUTCOME_NOT_APPLICABLE, "pipe: %s", err_errno_name(errno));
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		execl(program, program, "--print-identity", (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	size = read(ends[0], text, sizeof text - 1);
	close(ends[0]);
	if (wait_for(pid) != 0 || size <= 0)
		return outcome(note, OUTCOME_HELD, "the program did not run");
	text[strcspn(text, "\n")] = '\0';
	snprintf(mine, sizeof mine, "%u 0000000000000000", (unsigned)geteuid());
	if (strcmp(text, mine) == 0)
		return outcome(note, OUTCOME_HELD, "ran as %s", text);
	return outcome(note, OUTCOME_BROKE, "ran as %s", text);
}

static enum outcome try_speculation(const struct attempt *attempt, const struct targets *targets,
				    struct note *note)
{
	int state = prctl(PR_GET_SPECULATION_CTRL, attempt->number, 0, 0, 0);

	if (state < 0 || state == PR_SPEC_NOT_AFFECTED || !(state & PR_SPEC_PRCTL))
		return outcome(note, OUTCOME_NOT_APPLICABLE, "no control on this processor (%d)", state);
	if (state & (PR_SPEC_DISABLE | PR_SPEC_FORCE_DISABLE | PR_SPEC_DISABLE_NOEXEC)) {
		if (prctl(PR_SET_SPECULATION_CTRL, attempt->number, PR_SPEC_ENABLE, 0, 0) == 0)
			return outcome(note, OUTCOME_BROKE, "was off, could be switched on again");
		return outcome(note, OUTCOME_HELD, "off for good");
	}
	/* A decision, stated in SECURITY.md: it reads within one process only, and its mitigation slows all
	 * programs. */
	if (attempt->number == PR_SPEC_STORE_BYPASS)
		return outcome(note, OUTCOME_NOT_APPLICABLE, "left on (SECURITY.md)");
	return outcome(note, OUTCOME_BROKE, "speculation is on");
}

static enum outcome try_raise_limit(const struct attempt *attempt, const struct targets *targets,
				    struct note *note)
{
	struct rlimit limit, now;

	if (getrlimit((int)attempt->number, &limit) < 0)
		return outcome(note, OUTCOME_NOT_APPLICABLE, "%s", err_errno_name(errno));
	if (limit.rlim_max == RLIM_INFINITY)
		return outcome(note, OUTCOME_NOT_APPLICABLE, "there is no limit");
	limit.rlim_max++;
	if (setrlimit((int)attempt->number, &limit) < 0)
		return outcome_of_call(note, -1, "");
	/* A filter may answer without doing it: only what holds afterwards counts. */
	if (getrlimit((int)attempt->number, &now) == 0 && now.rlim_max < limit.rlim_max)
		return outcome(note, OUTCOME_HELD, "answered, and not done");
	return outcome_of_call(note, 0, "raised the hard limit");
}

static enum outcome try_secure_bits(const struct attempt *attempt, const struct targets *targets,
				    struct note *note)
{
	return outcome_of_call(note, prctl(PR_SET_SECUREBITS, 0, 0, 0, 0), "changed");
}

/*
 * A set-user-ID or capable file left on the host runs as the owner of the tree for whoever executes it there:
 * by chmod, at creation, or by attribute. number: which call.
 */
enum {
	MARK_FCHMODAT,
	MARK_FCHMOD,
	MARK_FCHMODAT2,
	MARK_OPENAT,
	MARK_OPENAT2,
	MARK_CREAT,
	MARK_MKNODAT,
	MARK_XATTR,
	MARK_FXATTR
};

static long mark_file(const struct attempt *attempt, const char *path)
{
	static const unsigned char capability[20] = { 1, 0, 0, 2, 0xff, 0xff, 0xff, 0xff };
	uint64_t how[3] = { O_WRONLY | O_CREAT | O_EXCL, 04755, 0 };
	int fd;

	switch (attempt->number) {
	case MARK_OPENAT:
		return raw_open(path, O_WRONLY | O_CREAT | O_EXCL, 04755);
	case MARK_OPENAT2:
		return syscall(SYS_openat2, AT_FDCWD, path, how, sizeof how);
	case MARK_MKNODAT:
		return syscall(SYS_mknodat, AT_FDCWD, path, S_IFREG | 04755, 0);
	case MARK_CREAT:
#ifdef SYS_creat
		return syscall(SYS_creat, path, 04755);
#else
		return raw_open(path, O_WRONLY | O_CREAT | O_EXCL, 04755);
#endif
	default:
		break;
	}
	fd = raw_open(path, O_WRONLY | O_CREAT | O_EXCL, 0755);
	switch (attempt->number) {
	case MARK_FCHMODAT:
		return syscall(SYS_fchmodat, AT_FDCWD, path, 04755);
	case MARK_FCHMODAT2:
		return syscall(SYS_fchmodat2, AT_FDCWD, path, 04755, 0);
	case MARK_FCHMOD:
		return syscall(SYS_fchmod, fd, 04755);
	case MARK_XATTR:
		return syscall(SYS_setxattr, path, "security.capability", capability, sizeof capability, 0);
	default:
		return syscall(SYS_fsetxattr, fd, "security.capability", capability, sizeof capability, 0);
	}
}

static enum outcome try_mark(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const char *path =
		joined(joined(targets->scratch ? targets->scratch : "/tmp", "/marked-"), attempt->name);
	struct stat now;
	char value[32];
	long ret;

	syscall(SYS_unlinkat, AT_FDCWD, path, 0);
	ret = mark_file(attempt, path);
	if (ret >= 0 && stat(path, &now) == 0 && (now.st_mode & S_ISUID))
		return outcome(note, OUTCOME_BROKE, "the file has the set-user-ID bit");
	if (syscall(SYS_getxattr, path, "security.capability", value, sizeof value) > 0)
		return outcome(note, OUTCOME_BROKE, "the file has capabilities");
	return outcome(note, OUTCOME_HELD, "%s", ret < 0 ? err_errno_name(errno) : "the bit was dropped");
}

static enum outcome try_environment(const struct attempt *attempt, const struct targets *targets,
				    struct note *note)
{
	const char *value = getenv(attempt->text);

	if (!value)
		return outcome(note, OUTCOME_HELD, "absent");
	return outcome(note, OUTCOME_BROKE, "present, %zu bytes", strlen(value));
}

static enum outcome try_fds(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	for (unsigned fd = 3; fd < sizeof targets->open_fds; fd++) {
		if (targets->open_fds[fd])
			return outcome(note, OUTCOME_BROKE, "fd %u was inherited", fd);
	}
	return outcome(note, OUTCOME_HELD, "only 0, 1, 2");
}

#define SECRET(name)                                                                                         \
	{                                                                                                    \
		"env." name, "I14", "environment variable " name, try_environment, 0, { 0 }, name            \
	}

static const struct attempt attempts[] = {
	{ "status.cap-effective",
	  "X21",
	  "effective capabilities are none",
	  try_status_zero,
	  0,
	  { 0 },
	  "CapEff:\t" },
	{ "status.cap-permitted",
	  "X21",
	  "permitted capabilities are none",
	  try_status_zero,
	  0,
	  { 0 },
	  "CapPrm:\t" },
	{ "status.cap-inheritable",
	  "X21",
	  "inheritable capabilities are none",
	  try_status_zero,
	  0,
	  { 0 },
	  "CapInh:\t" },
	{ "status.cap-ambient",
	  "X21",
	  "ambient capabilities are none",
	  try_status_zero,
	  0,
	  { 0 },
	  "CapAmb:\t" },
	{ "status.cap-bounding",
	  "X21",
	  "the bounding set gives nothing",
	  try_bounding,
	  0,
	  { 0 },
	  "CapBnd:\t" },
	{ "status.seccomp", "X21", "a seccomp filter is in force", try_status_zero, 2, { 0 }, "Seccomp:\t" },
	{ "no_new_privs", "X21", "no_new_privs is set", try_no_new_privs, 0, { 0 }, NULL },
	{ "capset", "X21", "capset", try_capset, 0, { 0 }, NULL },
	{ "ambient", "X21", "raise an ambient capability", try_ambient, 0, { 0 }, NULL },
	{ "securebits", "X21", "change securebits", try_secure_bits, 0, { 0 }, NULL },
	{ "setuid.0", "X21", "setresuid(0)", try_syscall, SYS_setresuid, { 0, 0, 0 }, NULL },
	{ "setuid.other",
	  "X21",
	  "setresuid to another user",
	  try_syscall,
	  SYS_setresuid,
	  { 4242, 4242, 4242 },
	  NULL },
	{ "setgid.0", "X21", "setresgid(0)", try_syscall, SYS_setresgid, { 0, 0, 0 }, NULL },
	{ "setgid.other",
	  "X21",
	  "setresgid to group 42 (shadow)",
	  try_syscall,
	  SYS_setresgid,
	  { 42, 42, 42 },
	  NULL },
	{ "setgroups", "X21", "setgroups", try_setgroups, 0, { 0 }, NULL },
	{ "setfsuid", "X21", "setfsuid", try_setfsuid, 0, { 0 }, NULL },
	{ "setuid-program", "X21", "a setuid-root program gains nothing", try_gain, 0, { 0 }, NULL },
	{ "capable-program",
	  "X21",
	  "a program with file capabilities gains nothing",
	  try_gain,
	  1,
	  { 0 },
	  NULL },
	{ "mark.fchmodat",
	  "X21",
	  "leave a set-user-ID file, by fchmodat",
	  try_mark,
	  MARK_FCHMODAT,
	  { 0 },
	  NULL },
	{ "mark.fchmodat2",
	  "X21",
	  "leave a set-user-ID file, by fchmodat2",
	  try_mark,
	  MARK_FCHMODAT2,
	  { 0 },
	  NULL },
	{ "mark.fchmod", "X21", "leave a set-user-ID file, by fchmod", try_mark, MARK_FCHMOD, { 0 }, NULL },
	{ "mark.openat", "X21", "leave a set-user-ID file, by openat", try_mark, MARK_OPENAT, { 0 }, NULL },
	{ "mark.openat2",
	  "X21",
	  "leave a set-user-ID file, by openat2",
	  try_mark,
	  MARK_OPENAT2,
	  { 0 },
	  NULL },
	{ "mark.creat", "X21", "leave a set-user-ID file, by creat", try_mark, MARK_CREAT, { 0 }, NULL },
	{ "mark.mknodat",
	  "X21",
	  "leave a set-user-ID file, by mknodat",
	  try_mark,
	  MARK_MKNODAT,
	  { 0 },
	  NULL },
	{ "mark.setxattr",
	  "X21",
	  "leave a file with capabilities, by setxattr",
	  try_mark,
	  MARK_XATTR,
	  { 0 },
	  NULL },
	{ "mark.fsetxattr",
	  "X21",
	  "leave a file with capabilities, by fsetxattr",
	  try_mark,
	  MARK_FXATTR,
	  { 0 },
	  NULL },
	{ "speculation.store-bypass",
	  "X21",
	  "speculative store bypass is off",
	  try_speculation,
	  PR_SPEC_STORE_BYPASS,
	  { 0 },
	  NULL },
	{ "speculation.indirect-branch",
	  "X21",
	  "indirect branch speculation is off",
	  try_speculation,
	  PR_SPEC_INDIRECT_BRANCH,
	  { 0 },
	  NULL },
	{ "rlimit.nofile",
	  "R3",
	  "raise the hard limit of open files",
	  try_raise_limit,
	  RLIMIT_NOFILE,
	  { 0 },
	  NULL },
	{ "rlimit.nproc",
	  "R3",
	  "raise the hard limit of processes",
	  try_raise_limit,
	  RLIMIT_NPROC,
	  { 0 },
	  NULL },
	{ "rlimit.core",
	  "R3",
	  "raise the hard limit of core files",
	  try_raise_limit,
	  RLIMIT_CORE,
	  { 0 },
	  NULL },
	{ "rlimit.memlock",
	  "R3",
	  "raise the hard limit of locked memory",
	  try_raise_limit,
	  RLIMIT_MEMLOCK,
	  { 0 },
	  NULL },
	{ "inherited-fds", "I4", "descriptors that the caller left open", try_fds, 0, { 0 }, NULL },
	SECRET("AWS_ACCESS_KEY_ID"),
	SECRET("AWS_SECRET_ACCESS_KEY"),
	SECRET("AWS_SESSION_TOKEN"),
	SECRET("GITHUB_TOKEN"),
	SECRET("GH_TOKEN"),
	SECRET("NPM_TOKEN"),
	SECRET("GOOGLE_APPLICATION_CREDENTIALS"),
	SECRET("SSH_AUTH_SOCK"),
	SECRET("GPG_AGENT_INFO"),
	SECRET("DBUS_SESSION_BUS_ADDRESS"),
	SECRET("XDG_RUNTIME_DIR"),
	SECRET("DISPLAY"),
	SECRET("WAYLAND_DISPLAY"),
	SECRET("TMUX"),
	SECRET("DOCKER_HOST"),
	SECRET("KUBECONFIG"),
	SECRET("LD_PRELOAD"),
	SECRET("LD_LIBRARY_PATH"),
	SECRET("LD_AUDIT"),
	SECRET("NODE_OPTIONS"),
	SECRET("BUN_OPTIONS"),
	SECRET("PYTHONSTARTUP"),
	SECRET("PYTHONPATH"),
	SECRET("PERL5OPT"),
	SECRET("RUBYOPT"),
	SECRET("BASH_ENV"),
	SECRET("ENV"),
	SECRET("PROMPT_COMMAND"),
	SECRET("BASH_FUNC_ls%%"),
	SECRET("GIT_SSH_COMMAND"),
	SECRET("GIT_CONFIG_GLOBAL"),
	SECRET("SUDO_ASKPASS"),
	SECRET("PLANTED_SECRET"),
};

const struct attempt_group probe_privilege = { attempts, ARRAY_SIZE(attempts) };
