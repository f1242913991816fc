/* SPDX-License-Identifier: Apache-2.0 */
#include "session/agent-start.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "policy/decide.h"
#include "session/dropped-variables.h"
#include "session/host-program.h"
#include "session/run-request.h"

enum { SHOWN_MAX = 300, TOLD_SIZE = 16 << 10 };

struct making {
	const struct policy *policy;
	struct buf *told;
	const char *made[2 * AGENT_FILES_MAX]; /* borrowed: the outermost */
	size_t made_count;
};

/* Of root's runs for somebody else, and of homes that are none, nothing is made. */
static bool is_own_home(const struct policy *policy)
{
	struct stat st;

	return policy->home[0] && stat(policy->home, &st) == 0 && st.st_uid == geteuid();
}

/* A class that a lower level has in its place says that nothing of it shall reach the host. */
static bool is_in_place(const struct policy *policy, const char *path)
{
	size_t rule;
	enum file_class class = policy_classify(policy, path, &rule);

	return class == FILE_WRITE || class == FILE_READ;
}

static int make_file(const char *path, const char *content)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);

	return fd < 0 ? fd : fd_write_full(fd, content, strlen(content));
}

/* content NULL: a directory. */
static int make_place(const char *path, const char *content)
{
	char parent[PATH_MAX];
	const char *name = path_basename(path);
	int r;

	if (!content)
		return path_make_directories(AT_FDCWD, path, 0700);
	r = str_format(parent, sizeof parent, "%.*s", (int)(name - path - 1), path);
	if (r == 0)
		r = path_make_directories(AT_FDCWD, parent, 0700);
	return r == 0 ? make_file(path, content) : r;
}

static void put_path(const struct policy *policy, const char *path, struct buf *out)
{
	size_t home = strlen(policy->home);

	if (path_is_below(path, policy->home))
		buf_put_char(out, '~');
	else
		home = 0;
	buf_put_escaped(out, path + home, strlen(path + home), SHOWN_MAX);
}

static void tell_failure(struct making *making, const char *path, bool is_directory, int r)
{
	buf_put_text(making->told, "atoll: ");
	put_path(making->policy, path, making->told);
	buf_printf(making->told,
		   " cannot be made (%s): what the agent keeps there is thrown away at the end; make it: %s ",
		   err_errno_name(-r), is_directory ? "mkdir -p" : "touch");
	put_path(making->policy, path, making->told);
	buf_put_char(making->told, '\n');
}

static void make_missing(struct making *making, const char *path, const char *content)
{
	struct stat st;
	int r;

	if (lstat(path, &st) == 0 || !is_in_place(making->policy, path))
		return;
	r = make_place(path, content);
	if (r < 0) {
		tell_failure(making, path, !content, r);
		return;
	}
	for (size_t i = 0; i < making->made_count; i++)
		if (path_is_below(path, making->made[i]))
			return;
	making->made[making->made_count++] = path;
}

/* A machine without the agent keeps nothing of it: whoever tries its policy gets no directories in the home. */
static bool is_installed(const struct policy *policy, const struct run_request *request)
{
	char path[PATH_MAX];

	if (!policy->agent.command)
		return true;
	host_program_find(request, policy->agent.command[0], path);
	return *path;
}

static bool lacks_state(const struct policy *policy)
{
	struct stat st;

	for (const char *const *path = policy->agent.directories; path && *path; path++)
		if (lstat(*path, &st) < 0 && is_in_place(policy, *path))
			return true;
	return false;
}

static void make_state(const struct policy *policy, const struct run_request *request, struct buf *told)
{
	const struct agent_settings *agent = &policy->agent;
	struct making making = { .policy = policy, .told = told };

	if (!is_own_home(policy))
		return;
	if (!is_installed(policy, request)) {
		if (request->command.argv != (char **)agent->command && lacks_state(policy)) {
			buf_put_text(told, "atoll: there is no ");
			buf_put_escaped(told, agent->command[0], strlen(agent->command[0]), SHOWN_MAX);
			buf_put_text(told, " in your PATH, so nothing is made in your home for it: what it keeps there "
					   "is thrown away at the end\n");
		}
		return;
	}
	for (const char *const *path = agent->directories; path && *path; path++)
		make_missing(&making, *path, NULL);
	for (const char *const *file = agent->files; file && *file; file += 2)
		make_missing(&making, file[0], file[1]);
	for (size_t i = 0; i < making.made_count; i++) {
		buf_put_text(told, i ? ", " : "atoll: made in your home, so that what the agent keeps stays: ");
		put_path(policy, making.made[i], told);
	}
	buf_put_text(told, making.made_count ? "\n" : "");
}

static int choose_command(const struct policy *policy, struct run_request *request, struct err *err)
{
	if (request->command.argv[0] || request->flags & (REQUEST_DETACH | REQUEST_CHECK))
		return 0;
	if (policy->agent.command) {
		request->command.argv = (char **)policy->agent.command;
		return 0;
	}
	err_set(err, ERR_USAGE, EINVAL, "run", "there is no command to run");
	err_hint(err,
		 "write: atoll run -- CMD ARG…; or use an agent's policy, which names its command: atoll run -p "
		 "claude");
	return -EINVAL;
}

int agent_prepare(const struct policy *policy, struct run_request *request, struct err *err)
{
	const struct dropped_variables dropped = { policy, request->command.env, request->command.env_added,
						   request->secrets.placeholders, request->state_dir };
	bool is_told = request->notice && !(request->flags & REQUEST_QUIET);
	cleanup_buf struct buf told = { 0 };
	int r = choose_command(policy, request, err);

	if (r < 0 || request->flags & (REQUEST_TRIAL | REQUEST_CHECK))
		return r;
	buf_init(&told, TOLD_SIZE);
	make_state(policy, request, &told);
	if (is_told)
		dropped_variables_tell(&dropped, &told);
	if (is_told && told.size)
		run_request_tell(request, &told);
	return 0;
}
