/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/policy/subverbs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/str.h"
#include "client/dirs.h"
#include "client/program.h"
#include "client/session-policy.h"
#include "learn/learn.h"
#include "os/fd.h"
#include "os/path.h"
#include "prog/atoll/policy/test.h"
#include "session/directories.h"

/*
 * Everything is made in a directory of its own below the state directory: the policy that observes (the user's, with
 * every file call recorded), the report of the run, and the proposal, which is compiled and tried on what was recorded
 * before anybody sees it.
 */

enum { EXIT_FAILED = 125 };

struct learning {
	const struct learn_request *request;
	char state[PATH_MAX];
	char directory[PATH_MAX], observing[PATH_MAX], report[PATH_MAX], proposal[PATH_MAX];
	char name[64];                   /* of the session, until it is found */
	struct session_record record;
};

static int fail(struct err *err, int r, const char *what)
{
	return err_set(err, ERR_STATE, -r, "learn", "%s: %s", what, strerror(-r));
}

static int make_places(struct learning *learning, struct err *err)
{
	struct { char *out; const char *name; } files[] = {
		{ learning->observing, "observing.yaml" }, { learning->report, "report.json" },
		{ learning->proposal, "proposal.yaml" },
	};
	int r = session_state_dir(learning->state, sizeof learning->state, true, err);

	if (r < 0)
		return r;
	r = path_join(learning->directory, PATH_MAX, learning->state, "learn-XXXXXX");
	if (r == 0 && !mkdtemp(learning->directory))
		return fail(err, -errno, learning->state);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
		r = path_join(files[i].out, PATH_MAX, learning->directory, files[i].name);
	if (r == 0)
		r = str_format(learning->name, sizeof learning->name, "learn-%s",
			       learning->directory + strlen(learning->directory) - 6);
	return r < 0 ? fail(err, r, "the state directory's path is too long") : 0;
}

/* What the user would run it under: -p, -t, the policy of their own, or the default level. */
static int find_base(const struct learn_request *request, char out[PATH_MAX], struct err *err)
{
	char home[PATH_MAX], config[PATH_MAX];
	const char *name = request->policy ? request->policy : request->trust;
	int r;

	if (request->policy && strchr(request->policy, '/'))
		return dirs_absolute(request->policy, "policy", out, err);
	if (name)
		return str_copy(out, PATH_MAX, name);
	r = session_home_dir(home, sizeof home);
	if (r == 0)
		r = dirs_config_home(home, config);
	if (r == 0 && *config)
		r = path_join(out, PATH_MAX, config, "atoll/policy.yaml");
	if (r < 0)
		return fail(err, r, "a directory's path is too long");
	return *config && access(out, F_OK) == 0 ? 0 : str_copy(out, PATH_MAX, "medium");
}

/* JSON's strings are YAML's too. */
static int write_observing(const struct learning *learning, struct err *err)
{
	char base[PATH_MAX];
	cleanup_buf struct buf text;
	cleanup_fd int fd = FD_NONE;
	struct json json;
	int r = find_base(learning->request, base, err);

	buf_init(&text, 2 * PATH_MAX);
	if (r < 0)
		return r;
	json_init(&json, &text);
	json_object_begin(&json, NULL);
	json_u64(&json, "atoll", 1);
	json_string(&json, "extends", base);
	json_object_begin(&json, "audit");
	json_string(&json, "files", "all");
	json_string(&json, "exec", "all");
	json_string(&json, "network", "all");
	json_object_end(&json);
	json_object_end(&json);
	buf_put_char(&text, '\n');
	fd = fd_open_at(AT_FDCWD, learning->observing, O_WRONLY | O_CREAT | O_EXCL, 0600);
	r = fd < 0 ? fd : buf_error(&text) ? buf_error(&text) : fd_write_full(fd, text.bytes, text.size);
	return r < 0 ? fail(err, r, learning->observing) : 0;
}

/* Its exit status is the command's: what a command did before it failed is worth knowing as well. */
static int run(struct learning *learning, struct err *err)
{
	cleanup_words struct words words = { 0 };
	int r;

	words_add(&words, "atoll");
	words_add(&words, "run");
	words_add_option(&words, "-p", learning->observing);
	words_add_option(&words, "--report", learning->report);
	words_add_option(&words, "--name", learning->name);
	words_add(&words, "--");
	words_add_all(&words, (const char *const *)learning->request->command);
	r = program_check_words(&words, err);
	if (r == 0)
		r = program_run(&(struct program){ .name = "atoll", .argv = (const char *const *)words.list }, err);
	if (r < 0)
		return r;
	r = session_find(learning->state, NULL, learning->name, NULL, &learning->record, err);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "learn", "nothing was run, so nothing was learnt");
	return 0;
}

static int write_proposal(struct learning *learning, const struct compiled *base, struct err *err)
{
	char log[PATH_MAX], before[PATH_MAX];
	const char *argv[] = { "atoll-learn", "learn", learning->report, log, before, learning->record.id, "none",
			       NULL };
	struct program program = { .name = "atoll-learn", .argv = argv, .fd_count = 2 };
	cleanup_fd int policy_fd = FD_NONE, out_fd = FD_NONE;
	int r = session_path(learning->state, learning->record.id, "audit.jsonl", log, sizeof log);

	if (r == 0)
		r = session_path(learning->state, learning->record.id, "policy.bin", before, sizeof before);
	if (r == 0)
		r = policy_fd = policy_hand_over(base);
	if (r >= 0)
		r = out_fd = fd_open_at(AT_FDCWD, learning->proposal, O_WRONLY | O_CREAT | O_EXCL, 0600);
	if (r >= 0)
		r = out_fd = fd_move_above(take_fd(&out_fd), LEARN_POLICY_FD + 1);
	if (r < 0)
		return fail(err, r, "the proposal cannot be written");
	program.fds[0].from = policy_fd;
	program.fds[0].to = LEARN_POLICY_FD;
	program.fds[1].from = out_fd;
	program.fds[1].to = STDOUT_FILENO;
	return program_run(&program, err);
}

static int show(const struct learning *learning, struct err *err)
{
	const char *output = learning->request->output;
	cleanup_fd int fd = FD_NONE;
	size_t size;
	char *bytes;
	int r = fd_read_file_at(AT_FDCWD, learning->proposal, SIZE_MAX / 2, &bytes, &size);

	if (r < 0)
		return fail(err, r, learning->proposal);
	if (output)
		fd = fd_open_at(AT_FDCWD, output, O_WRONLY | O_CREAT | O_EXCL, 0644);
	r = output && fd < 0 ? fd : fd_write_full(output ? fd : STDOUT_FILENO, bytes, size);
	free(bytes);
	return r < 0 ? fail(err, r, output ? output : "stdout") : 0;
}

/* A proposal that would have decided anything otherwise is shown all the same, and said to be wanting. */
static int check(const struct learning *learning, struct err *err)
{
	cleanup_compiled struct compiled compiled = { 0 };
	const struct policy_trial trial = { .state = learning->state, .record = &learning->record,
					    .compiled = &compiled, .policy = "the proposal", .is_told = true };
	int r = session_policy_compile(&learning->record, learning->proposal, &compiled, err);

	return r != 0 ? r : policy_try(&trial, err);
}

static int learn(struct learning *learning, struct err *err)
{
	cleanup_compiled struct compiled base = { 0 };
	int r = make_places(learning, err);

	if (r == 0)
		r = write_observing(learning, err);
	if (r == 0)
		r = run(learning, err);
	if (r == 0)
		r = session_policy_compile(&learning->record, "none", &base, err);
	if (r == 0)
		r = write_proposal(learning, &base, err);
	if (r == 0)
		r = show(learning, err);
	return r == 0 ? check(learning, err) : r > 0 ? EXIT_FAILED : r;
}

int policy_learn(const struct learn_request *request, struct err *err)
{
	struct learning learning = { .request = request };
	int r;

	if (request->policy && request->trust)
		return err_set(err, ERR_USAGE, EINVAL, "learn", "learn takes a policy or a level, not both");
	if (!request->command[0]) {
		err_set(err, ERR_USAGE, EINVAL, "learn", "there is no command to learn from");
		err_hint(err, "atoll policy learn [-p POLICY | -t LEVEL] [-o FILE] -- COMMAND…");
		return -EINVAL;
	}
	if (request->output && faccessat(AT_FDCWD, request->output, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		err_set(err, ERR_USAGE, EEXIST, "learn", "%s exists already", request->output);
		err_hint(err, "name a file that does not exist, or leave -o out");
		return -EEXIST;
	}
	r = learn(&learning, err);
	if (*learning.directory && path_remove_tree(AT_FDCWD, learning.directory) < 0 && r == 0)
		r = err_set(err, ERR_STATE, errno, "learn", "%s cannot be removed", learning.directory);
	session_record_done(&learning.record);
	return r;
}
