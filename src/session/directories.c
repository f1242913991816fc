/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where things are: the state and run-time directories, the home, the project. What these directories
 * hold (cached policies, logs, control sockets) is trusted later, so each must belong to this user and be
 * writable by nobody else. Root follows XDG_* only into directories that root owns: `sudo -E` hands root the
 * variables of a user, who could then swap one root-owned file for another.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "session/directories.h"
#include "session/record.h"

enum { ROOT_CONFIG_MAX = 64 << 10 };

static const char *absolute_env(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] == '/' ? value : NULL;
}

static bool is_private_dir(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && st->st_uid == geteuid() && !(st->st_mode & 022);
}

/* An XDG variable that this user may follow, or NULL. */
static const char *trusted_env(const char *name)
{
	const char *value = absolute_env(name);
	struct stat st;

	if (value && geteuid() == 0 && (stat(value, &st) < 0 || !is_private_dir(&st)))
		return NULL;
	return value;
}

const char *session_ignored_state_home(void)
{
	const char *value = getenv("XDG_STATE_HOME");

	return value && *value && geteuid() == 0 && !trusted_env("XDG_STATE_HOME") ? value : NULL;
}

int session_home_dir(char *out, size_t size)
{
	const char *home = absolute_env("HOME");
	const struct passwd *entry;

	if (!home) {
		entry = getpwuid(geteuid());
		home = entry && entry->pw_dir && entry->pw_dir[0] == '/' ? entry->pw_dir : "";
	}
	if (!*home)
		return str_copy(out, size, "");
	return path_normalise(out, size, home);
}

static int check_dir(const char *path, bool make, const char *what, struct err *err)
{
	struct stat st;
	int r;

	if (stat(path, &st) < 0) {
		if (errno != ENOENT || !make)
			return errno == ENOENT ? 0
					       : err_set(err, ERR_STATE, errno, "state",
							 "the %s directory %s cannot be read: %s", what, path,
							 strerror(errno));
		r = path_make_directories(AT_FDCWD, path, 0700);
		if (r < 0 || stat(path, &st) < 0) {
			r = r < 0 ? r : -errno;
			err_set(err, ERR_STATE, -r, "state", "the %s directory %s cannot be made: %s", what,
				path, strerror(-r));
			err_hint(err, "make it, or set %s to a directory that you can write",
				 str_equal(what, "state") ? "XDG_STATE_HOME" : "XDG_RUNTIME_DIR");
			return r;
		}
	}
	if (!is_private_dir(&st)) {
		err_set(err, ERR_STATE, EPERM, "state", "the %s directory %s can be written by others",
			what, path);
		err_hint(err, "its owner must be uid %u and nobody else may write to it (chmod 700)",
			 (unsigned)geteuid());
		return -EPERM;
	}
	return 0;
}

int session_state_dir(char *out, size_t size, bool make, struct err *err)
{
	const char *state_home = trusted_env("XDG_STATE_HOME");
	char home[PATH_MAX];
	int r;

	if (state_home) {
		r = path_join(out, size, state_home, "atoll");
	} else if (geteuid() == 0) {
		r = str_copy(out, size, "/var/lib/atoll");
	} else {
		r = session_home_dir(home, sizeof home);
		if (r == 0 && !*home) {
			err_set(err, ERR_STATE, ENOENT, "state",
				"there is no place for session records: HOME is not set and uid %u has no "
				"home directory",
				(unsigned)geteuid());
			err_hint(err, "set HOME or XDG_STATE_HOME to a directory that you can write");
			return -ENOENT;
		}
		if (r == 0)
			r = path_join(out, size, home, ".local/state/atoll");
	}
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "state", "the path of the state directory is too long");
	return check_dir(out, make, "state", err);
}

/* A run-time directory of the system's own for this user, made by the login; 0 when there is none. */
static int login_runtime_dir(char *out, size_t size)
{
	const char *given = absolute_env("XDG_RUNTIME_DIR");
	char found[64];
	struct stat st;
	int r = str_format(found, sizeof found, "/run/user/%u", (unsigned)geteuid());

	if (r < 0)
		return r;
	if (!given || stat(given, &st) < 0 || !is_private_dir(&st))
		given = found; /* su and cron set no variable, yet must find the sessions of the login */
	if (stat(given, &st) < 0 || !is_private_dir(&st))
		return 0;
	r = path_join(out, size, given, "atoll");
	return r < 0 ? r : 1;
}

int session_runtime_dir(char *out, size_t size, bool make, struct err *err)
{
	char state[PATH_MAX];
	int r;

	/* Root's own logins have an XDG_RUNTIME_DIR and its services have none: one place for both. */
	if (geteuid() == 0 && !trusted_env("XDG_STATE_HOME")) {
		r = str_copy(out, size, "/run/atoll");
		return r < 0 ? r : check_dir(out, make, "run-time", err);
	}
	r = geteuid() == 0 && !absolute_env("XDG_RUNTIME_DIR") ? 0 : login_runtime_dir(out, size);
	if (r == 0) {
		r = session_state_dir(state, sizeof state, make, err);
		if (r < 0)
			return r;
		r = path_join(out, size, state, "run");
	}
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "state", "the path of the run-time directory is too long");
	return check_dir(out, make, "run-time", err);
}

/* The home as it is named and as it really is; both "" where there is none. */
struct homes {
	char named[PATH_MAX], real[PATH_MAX];
};

/* What a real path begins with is real: nearly always that answers for the home, without a look at it. */
static void find_homes(struct homes *homes, const char *real_path)
{
	homes->real[0] = 0;
	if (session_home_dir(homes->named, sizeof homes->named) < 0)
		homes->named[0] = 0;
	if (homes->named[0] && !path_is_below(real_path, homes->named) &&
	    path_real(homes->named, homes->real, sizeof homes->real) < 0)
		homes->real[0] = 0;
}

/* The root, the home and what lies above it: as a project these would hand over nearly everything. */
static bool is_refused(const struct homes *homes, const char *project)
{
	return str_equal(project, "/") || (homes->named[0] && path_is_below(homes->named, project)) ||
	       (homes->real[0] && path_is_below(homes->real, project));
}

bool session_project_is_refused(const char *project)
{
	struct homes homes;

	find_homes(&homes, project);
	return is_refused(&homes, project);
}

/* .atoll.yaml or .git that this user, root or the owner of the working directory put there. */
static bool has_marker(const char *directory, uid_t cwd_owner)
{
	static const char *const markers[] = { ".atoll.yaml", ".git" };
	char path[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(markers); i++) {
		if (path_join(path, sizeof path, directory, markers[i]) < 0 || lstat(path, &st) < 0)
			continue;
		/* Someone else's /tmp/.git must not turn all of /tmp into the project. */
		if (st.st_uid == geteuid() || st.st_uid == 0 || st.st_uid == cwd_owner)
			return true;
	}
	return false;
}

int session_project_of(const char *cwd, char *out, size_t size, struct err *err)
{
	char at[PATH_MAX];
	struct homes homes;
	struct stat st;
	int r = str_copy(out, size, cwd);

	if (r == 0)
		r = stat(cwd, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
	if (r < 0)
		return err_set(err, ERR_USAGE, -r, "project", "the directory %s cannot be used: %s", cwd,
			       strerror(-r));
	find_homes(&homes, cwd);
	r = str_copy(at, sizeof at, out);
	/* Upwards until there is nothing left that may be a project without being asked for by name. */
	while (r == 0 && !is_refused(&homes, at)) {
		if (has_marker(at, st.st_uid))
			return str_copy(out, size, at);
		*strrchr(at, '/') = 0;
		if (!*at)
			break;
	}
	return r;
}

bool session_root_name_is_valid(const char *text)
{
	static const char first[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	size_t length = strlen(text);

	return length >= 1 && length < ROOT_NAME_SIZE && strchr(first, text[0]) &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789._:-") == length;
}

int session_root_path(const char *state_dir, const char *name, char *out, size_t size)
{
	char path[PATH_MAX];
	int r = session_root_name_is_valid(name) ?
			str_format(path, sizeof path, "%s/" ROOTS_NAMES "/%s/" ROOTS_TREE, state_dir, name) : -ENOENT;

	return r < 0 ? r : path_real(path, out, size);
}

static int read_beside_root(const char *state_dir, const char *name, const char *file, char **ret_text,
			    size_t *ret_size)
{
	char path[PATH_MAX];
	int r = session_root_name_is_valid(name) ?
			str_format(path, sizeof path, "%s/" ROOTS_NAMES "/%s/%s", state_dir, name, file) : -ENOENT;

	return r < 0 ? r : fd_read_file_at(AT_FDCWD, path, ROOT_CONFIG_MAX, ret_text, ret_size);
}

int session_root_config(const char *state_dir, const char *name, char **ret_env, size_t *ret_size,
			char ret_cwd[PATH_MAX])
{
	char *env = NULL, *cwd = NULL;
	size_t size = 0, cwd_size;
	int r = read_beside_root(state_dir, name, ROOT_ENV, &env, &size);

	ret_cwd[0] = 0;
	if (r == 0 || r == -ENOENT)
		r = read_beside_root(state_dir, name, ROOT_CWD, &cwd, &cwd_size);
	if (r == 0)
		r = str_copy(ret_cwd, PATH_MAX, cwd);
	free(cwd);
	if (r == 0 || r == -ENOENT) {
		*ret_env = env;
		*ret_size = size;
		return 0;
	}
	free(env);
	return r;
}

int session_root_of(const char *state_dir, const char *session, char *out, size_t size)
{
	char path[PATH_MAX], target[PATH_MAX], trees[PATH_MAX];
	ssize_t length;
	int r = str_format(path, sizeof path, "%s/sessions/%s/" SESSION_ROOT, state_dir, session);

	if (r < 0)
		return r;
	length = readlink(path, target, sizeof target - 1);
	if (length < 0)
		return -errno;
	target[length] = 0;
	/* What the link says is real; the state directory may be named by way of another link. */
	r = str_format(path, sizeof path, "%s/" ROOTS_TREES, state_dir);
	if (r == 0)
		r = path_real(path, trees, sizeof trees);
	if (r < 0)
		return r;
	return path_is_below(target, trees) ? str_copy(out, size, target) : -EBADMSG;
}

const char *session_root_inside(const char *root, const char *path)
{
	size_t length = strlen(root);

	return length && path_is_below(path, root) && path[length] ? path + length : path;
}

int session_each_root(const char *state_dir, int (*each)(void *context, const char *name, uint64_t made_ms),
		      void *context)
{
	struct dirent **names = NULL;
	char path[PATH_MAX];
	int count, r = str_format(path, sizeof path, "%s/" ROOTS_NAMES, state_dir);

	if (r < 0)
		return r;
	count = scandir(path, &names, NULL, alphasort);
	r = count < 0 && errno != ENOENT ? -errno : 0;
	for (int i = 0; i < count; i++) {
		const char *name = names[i]->d_name;
		struct stat st;

		if (r >= 0 && session_root_name_is_valid(name) &&
		    str_format(path, sizeof path, "%s/" ROOTS_NAMES "/%s", state_dir, name) == 0 &&
		    lstat(path, &st) == 0)
			r = each(context, name, (uint64_t)st.st_mtim.tv_sec * 1000);
		free(names[i]);
	}
	free(names);
	return r < 0 ? r : 0;
}
