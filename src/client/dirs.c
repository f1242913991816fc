/* SPDX-License-Identifier: Apache-2.0 */
#include "client/dirs.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/path.h"
#include "session/directories.h"
#include "session/record.h"

int dirs_cwd(char out[PATH_MAX], struct err *err)
{
	if (getcwd(out, PATH_MAX))
		return 0;
	if (errno == ENOENT) {
		err_set(err, ERR_USAGE, ENOENT, "cwd", "the working directory does not exist any more");
		err_hint(err, "change to a directory that exists");
	} else if (errno == ERANGE || errno == ENAMETOOLONG) {
		err_set(err, ERR_USAGE, ENAMETOOLONG, "cwd",
			"the path of the working directory is longer than %d bytes", PATH_MAX - 1);
		err_hint(err, "change to a directory with a shorter path");
	} else {
		err_set(err, ERR_USAGE, errno, "cwd", "the working directory cannot be read: %s",
			strerror(errno));
		err_hint(err, "change to a directory that you can read");
	}
	return -err->errnum;
}

int dirs_absolute(const char *text, const char *what, char out[PATH_MAX], struct err *err)
{
	char cwd[PATH_MAX];
	int r;

	if (text[0] == '/') {
		r = str_copy(out, PATH_MAX, text);
	} else {
		r = dirs_cwd(cwd, err);
		if (r < 0)
			return r;
		r = str_format(out, PATH_MAX, "%s/%s", str_equal(cwd, "/") ? "" : cwd, text);
	}
	return r < 0 ? err_set(err, ERR_USAGE, -r, "options", "the path of the %s is too long", what) : 0;
}

int dirs_programs(char out[PATH_MAX], struct err *err)
{
	ssize_t length = readlink("/proc/self/exe", out, PATH_MAX);

	if (length < 0) {
		err_set(err, ERR_STATE, errno, "programs", "/proc/self/exe cannot be read: %s",
			strerror(errno));
		err_hint(err, "atoll needs /proc: mount -t proc proc /proc");
		return -err->errnum;
	}
	if (length == PATH_MAX)
		return err_set(err, ERR_STATE, ENAMETOOLONG, "programs",
			       "the path of atoll's programs is too long");
	out[length] = 0;
	strrchr(out, '/')[out[1] && strrchr(out, '/') == out ? 1 : 0] = 0;
	return 0;
}

/* A directory that the user named: real, and one that can be entered. */
static int named_directory(const char *given, const char *option, char out[PATH_MAX], struct err *err)
{
	char shown[ERR_QUOTE_SIZE];
	struct stat st;
	int r = path_real(given, out, PATH_MAX);

	if (r == 0 && stat(out, &st) < 0)
		r = -errno;
	if (r == 0 && !S_ISDIR(st.st_mode))
		r = -ENOTDIR;
	if (r == 0 && access(out, X_OK) < 0)
		r = -errno;
	if (r < 0) {
		err_set(err, ERR_USAGE, -r, "options", "%s %s cannot be used: %s", option,
			err_quote(shown, given), strerror(-r));
		err_hint(err, "name a directory that you can enter");
	}
	return r;
}

static int find_project(struct dirs *dirs, const char *given, const char *start, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];
	int r;

	if (given)
		return named_directory(given, "--project", dirs->project, err);
	r = session_project_of(start, dirs->project, sizeof dirs->project, err);
	if (r < 0 || !session_project_is_refused(dirs->project))
		return r;
	err_set(err, ERR_USAGE, EPERM, "project",
		"%s is no project: the sandbox would get nearly all of your files",
		err_quote(shown, dirs->project));
	err_hint(err, "change to your project, or confirm it with --project %s",
		 err_quote(shown, dirs->project));
	return -EPERM;
}

/*
 * Where the command starts: where the user stands, unless that is outside a project that was named, which the
 * sandbox probably cannot see.
 */
static int find_cwd(struct dirs *dirs, const char *given, const char *project_given, struct err *err)
{
	int r;

	if (given)
		return named_directory(given, "--cwd", dirs->cwd, err);
	if (project_given) {
		/* A deleted or too long working directory does not matter when the project was named. */
		if (getcwd(dirs->cwd, sizeof dirs->cwd) && path_is_below(dirs->cwd, dirs->project))
			return 0;
		return str_copy(dirs->cwd, sizeof dirs->cwd, dirs->project);
	}
	r = dirs_cwd(dirs->cwd, err);
	if (r == 0 && access(dirs->cwd, X_OK) < 0) {
		err_set(err, ERR_USAGE, errno, "cwd", "the working directory cannot be entered: %s",
			strerror(errno));
		err_hint(err, "change to a directory that you can read");
		return -err->errnum;
	}
	return r;
}

int dirs_config_home(const char *home, char out[PATH_MAX])
{
	const char *given = getenv("XDG_CONFIG_HOME");

	out[0] = 0;
	if (given && given[0] == '/')
		return path_normalise(out, PATH_MAX, given);
	return home[0] ? path_join(out, PATH_MAX, home, ".config") : 0;
}

int dirs_config(const char *stage, const char *what, const char *name, char out[PATH_MAX], struct err *err)
{
	char home[PATH_MAX], config[PATH_MAX];
	int r = session_home_dir(home, sizeof home);

	if (r == 0)
		r = dirs_config_home(home, config);
	if (r == 0 && !config[0]) {
		err_set(err, ERR_STATE, ENOENT, stage, "there is no place for %s: you have no home directory", what);
		err_hint(err, "set HOME or XDG_CONFIG_HOME to a directory that you can write");
		return -ENOENT;
	}
	if (r == 0)
		r = path_join(out, PATH_MAX, config, name);
	return r < 0 ? err_set(err, ERR_USAGE, -r, stage, "a directory's path is too long") : 0;
}

int dirs_find(struct dirs *dirs, const char *project, const char *cwd, struct err *err)
{
	int r = 0;

	if (project)
		r = find_project(dirs, project, NULL, err);
	if (r == 0)
		r = find_cwd(dirs, cwd, project, err);
	if (r == 0 && !project)
		r = find_project(dirs, NULL, dirs->cwd, err);
	if (r == 0)
		r = dirs_programs(dirs->programs, err);
	if (r == 0)
		r = session_state_dir(dirs->state, sizeof dirs->state, true, err);
	if (r == 0)
		r = session_runtime_dir(dirs->runtime, sizeof dirs->runtime, true, err);
	if (r < 0)
		return r;
	if (faccessat(AT_FDCWD, dirs->state, W_OK | X_OK, AT_EACCESS) < 0) {
		err_set(err, ERR_STATE, errno, "state", "the state directory %s cannot be written: %s",
			dirs->state, strerror(errno));
		err_hint(err, "every run keeps its log there; make it writable, or set XDG_STATE_HOME");
		return -err->errnum;
	}
	r = session_home_dir(dirs->home, sizeof dirs->home);
	if (r == 0)
		r = dirs_config_home(dirs->home, dirs->config_home);
	return r < 0 ? err_set(err, ERR_USAGE, -r, "home", "the path of the home directory is too long") : 0;
}

int dirs_find_root(const struct dirs *dirs, const char *name, char out[PATH_MAX], struct err *err)
{
	char shown[ERR_QUOTE_SIZE];
	int r = session_root_path(dirs->state, name, out, PATH_MAX);

	if (r == 0)
		return 0;
	err_set(err, ERR_NOT_FOUND, -r, "root", "there is no root with the name %s", err_quote(shown, name));
	err_hint(err, "`atoll template import SOURCE NAME` makes one; `atoll template list` shows them");
	return r;
}
