/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/process.h"

#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "oci/seccomp.h"
#include "os/caps.h"
#include "os/fd.h"
#include "os/path.h"

enum { GROUPS_MAX = 1024, PASSWD_MAX = 1 << 20 };

static int fail(int r, const char *what, struct err *err)
{
	return err_set(err, ERR_WALL, -r, "process", "%s: %s", what, strerror(-r));
}

static int enter_directory(const char *path, struct err *err)
{
	char seen[PATH_MAX], quoted[ERR_QUOTE_SIZE];
	int r = chdir(path) < 0 ? -errno : 0;

	if (r == -ENOENT) {
		r = path_make_directories(AT_FDCWD, path, 0755);
		r = r == 0 && chdir(path) < 0 ? -errno : r;
	}
	if (r < 0)
		return err_set(err, ERR_WALL, -r, "process", "chdir to cwd (\"%s\") set in config.json failed: %s",
			       err_quote(quoted, path), strerror(-r));
	/* A way out by a descriptor of the host's that was left open: the kernel then says "(unreachable)". */
	if (syscall(SYS_getcwd, seen, sizeof seen) < 0 || seen[0] != '/')
		return err_set(err, ERR_WALL, EPERM, "process",
			       "current working directory is outside of container mount namespace root");
	return 0;
}

/* As execvp(3): a name that is found and not executable is remembered while others are tried. */
static int check_program(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode) || !(st.st_mode & 0111))
		return -EACCES;
	return 0;
}

int oci_process_find(const struct oci_process *process, char program[OCI_PROGRAM_SIZE], struct err *err)
{
	const char *name = process->args.items[0], *at = env_find((char *const *)process->env.items, "PATH");
	char quoted[ERR_QUOTE_SIZE];
	int r = enter_directory(process->cwd, err), worst = -ENOENT;

	if (r < 0)
		return r;
	if (strchr(name, '/')) {
		r = str_copy(program, OCI_PROGRAM_SIZE, name);
		r = r == 0 ? check_program(program) : r;
		return r == 0 ? 0
			      : err_set(err, r == -ENOENT ? ERR_NOT_FOUND : ERR_NOT_RUNNABLE, -r, "process",
					r == -EACCES ? "exec: \"%s\": permission denied"
						     : "exec: \"%s\": stat: no such file or directory",
					err_quote(quoted, name));
	}
	for (at = at ? at : "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"; at;) {
		size_t length = strcspn(at, ":");

		if (str_format(program, OCI_PROGRAM_SIZE, "%.*s/%s", length ? (int)length : 1, length ? at : ".",
			       name) == 0) {
			r = check_program(program);
			if (r == 0)
				return 0;
			worst = r == -EACCES ? r : worst;
		}
		at = at[length] ? at + length + 1 : NULL;
	}
	return err_set(err, worst == -ENOENT ? ERR_NOT_FOUND : ERR_NOT_RUNNABLE, -worst, "process",
		       worst == -EACCES ? "exec: \"%s\": permission denied"
					: "exec: \"%s\": executable file not found in $PATH",
		       err_quote(quoted, name));
}

static uint64_t mask_of(const struct field_texts *names)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < names->count; i++) {
		int capability = oci_capability_find(names->items[i]);

		mask |= capability >= 0 ? CAPS_BIT(capability) : 0;
	}
	return mask;
}

/* What the kernel does not have, or the caller may not give, is left out: capabilities are never wider than asked. */
static int set_capabilities(const struct oci_capabilities *capabilities, uint64_t held, struct err *err)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	uint64_t effective = mask_of(&capabilities->effective) & held, ambient = mask_of(&capabilities->ambient) & held;
	uint64_t permitted = (mask_of(&capabilities->permitted) & held) | effective;
	uint64_t inheritable = mask_of(&capabilities->inheritable) & held;
	struct __user_cap_data_struct data[2] = {
		{ (uint32_t)effective, (uint32_t)permitted, (uint32_t)inheritable },
		{ (uint32_t)(effective >> 32), (uint32_t)(permitted >> 32), (uint32_t)(inheritable >> 32) },
	};

	if (syscall(SYS_capset, &header, data) < 0)
		return fail(-errno, "capabilities", err);
	for (unsigned long cap = 0; cap < 64; cap++)
		if (ambient >> cap & 1 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0) < 0)
			return fail(-errno, "ambient capabilities", err);
	return 0;
}

static uint64_t held_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	return syscall(SYS_capget, &header, data) < 0 ? 0 : data[0].permitted | (uint64_t)data[1].permitted << 32;
}

static int set_user(const struct oci_user *user, struct err *err)
{
	gid_t groups[GROUPS_MAX];
	size_t count = json_array_size(user->additional_gids);

	if (count > GROUPS_MAX)
		return fail(-E2BIG, "additionalGids", err);
	for (size_t i = 0; i < count; i++)
		groups[i] = (gid_t)json_integer_value(json_array_get(user->additional_gids, i));
	/* A user's own namespace has no setgroups(2): the groups of the caller stay, which are none of its ids. */
	if (setgroups(count, groups) < 0 && (count || errno != EPERM))
		return fail(-errno, "setgroups", err);
	if (setresgid((gid_t)user->gid, (gid_t)user->gid, (gid_t)user->gid) < 0)
		return fail(-errno, "setgid", err);
	if (setresuid((uid_t)user->uid, (uid_t)user->uid, (uid_t)user->uid) < 0)
		return fail(-errno, "setuid", err);
	if (user->umask != FIELD_NONE)
		umask((mode_t)user->umask);
	return 0;
}

/* Labels of security modules: what the host does not have cannot be in force. */
static int set_labels(const struct oci_process *process, struct err *err)
{
	const char *profile = process->apparmor_profile, *label = process->selinux_label;
	cleanup_free char *text = NULL;
	int r;

	if (label && *label)
		return err_set(err, ERR_WALL, EOPNOTSUPP, "process",
			       "selinux label is specified in config, but selinux is "
								     "disabled or not supported");
	if (!profile || !*profile || str_equal(profile, "unconfined"))
		return 0;
	text = str_printf("exec %s", profile);
	if (!text)
		return -ENOMEM;
	r = path_is_there("/sys/module/apparmor/parameters/enabled")
		    ? fd_write_file_at(AT_FDCWD, "/proc/thread-self/attr/apparmor/exec", text) : -EOPNOTSUPP;
	return r < 0 ? fail(r, "apparmor profile", err) : 0;
}

/* "HOME=…" of the user by the container's own list, which is hostile: a file of bounded size. Owned. */
static char *home_of(uid_t uid)
{
	cleanup_free char *text = NULL;
	struct passwd *entry = NULL;
	char *home = NULL;
	size_t size;
	FILE *list;

	if (fd_read_regular_at(AT_FDCWD, "/etc/passwd", PASSWD_MAX, &text, &size) == 0 && size) {
		list = fmemopen(text, size, "r");
		while (list && (entry = fgetpwent(list)) && entry->pw_uid != uid)
			;
		if (entry && entry->pw_dir && *entry->pw_dir == '/')
			home = str_printf("HOME=%s", entry->pw_dir);
		if (list)
			fclose(list);
	}
	return home ? home : str_dup("HOME=/");
}

/* What programs have always had stands there too where the bundle does not say it. For a process that executes next. */
static const char **environment_of(const struct oci_process *process)
{
	const char **env = calloc(process->env.count + 2, sizeof *env);
	size_t count = process->env.count;

	if (!env)
		return NULL;
	for (size_t i = 0; i < count; i++)
		env[i] = process->env.items[i];
	if (!strv_has_name(env, "HOME="))
		env[count] = home_of((uid_t)process->user.uid);
	return env;
}

int oci_process_exec(const struct oci_process *process, const struct oci_seccomp *seccomp, const char *program,
		     unsigned kept_fds, struct err *err)
{
	const char **env = environment_of(process);
	uint64_t held = held_capabilities();
	int r = env ? set_labels(process, err) : -ENOMEM;

	/* Before anything that the program could see of the host is left open to it. */
	if (r == 0 && syscall(SYS_close_range, 3 + kept_fds, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */) < 0)
		r = fail(-errno, "closing descriptors", err);
	if (r == 0 && process->no_new_privileges)
		r = caps_no_new_privs();
	/* Without no_new_privs a filter needs CAP_SYS_ADMIN, which goes below. With it, it comes last. */
	if (r == 0 && !process->no_new_privileges)
		r = oci_seccomp_load(seccomp, &process->capabilities, err);
	if (r == 0)
		r = caps_bound(mask_of(&process->capabilities.bounding));
	if (r == 0 && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		r = fail(-errno, "keeping capabilities", err);
	if (r == 0)
		r = set_user(&process->user, err);
	if (r == 0)
		r = set_capabilities(&process->capabilities, held, err);
	if (r == 0)
		r = enter_directory(process->cwd, err);
	if (r == 0 && process->no_new_privileges)
		r = oci_seccomp_load(seccomp, &process->capabilities, err);
	if (r < 0)
		return r;
	execve(program, (char *const *)process->args.items, (char *const *)env);
	r = -errno;
	return err_set(err, r == -ENOENT ? ERR_NOT_FOUND : ERR_NOT_RUNNABLE, -r, "process", "exec %s: %s", program,
		       r == -EACCES ? "permission denied" : r == -ENOENT ? "no such file or directory" : strerror(-r));
}

int oci_process_limit(const struct oci_process *process, pid_t pid, struct err *err)
{
	const struct oci_rlimit *limits = process->rlimits.items;
	char path[64], text[32];
	int r = 0;

	for (size_t i = 0; i < process->rlimits.count; i++) {
		struct rlimit limit = { (rlim_t)limits[i].soft, (rlim_t)limits[i].hard };

		limit.rlim_cur = limits[i].soft == INT64_MAX ? RLIM_INFINITY : limit.rlim_cur;
		limit.rlim_max = limits[i].hard == INT64_MAX ? RLIM_INFINITY : limit.rlim_max;
		if (prlimit(pid, (__rlimit_resource_t)oci_rlimit_find(limits[i].type), &limit, NULL) < 0)
			return err_set(err, ERR_WALL, errno, "process", "error setting rlimit %s: %s", limits[i].type,
				       strerror(errno));
	}
	if (process->oom_score_adj == FIELD_NONE)
		return 0;
	(void)!str_format(path, sizeof path, "/proc/%d/oom_score_adj", (int)pid);
	(void)!str_format(text, sizeof text, "%lld", (long long)process->oom_score_adj);
	r = fd_write_file_at(AT_FDCWD, path, text);
	return r < 0 ? fail(r, "oom_score_adj", err) : 0;
}
