/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/doctor/self-test.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "client/compiled.h"
#include "client/run-setup.h"
#include "os/fd.h"
#include "os/path.h"
#include "os/spawn.h"
#include "policy/decide.h"
#include "prog/atoll/doctor/self-test-show.h"
#include "prog/atoll/doctor/self-test-stand.h"
#include "prog/atoll/verb/say.h"

enum { OUTPUT_MAX = 4 << 20, ARGUMENTS_MAX = 80, SHOWN_MAX = 32, SHOWN_SIZE = 160 };

/* The last line that is ours: warnings may stand before it, and atoll-policy may have said more than one
 * line. */
static void copy_reason(char *why, size_t size, struct buf *text)
{
	const char *all = buf_text(text), *found = all;

	for (const char *at = all; (at = strstr(at, "atoll: ")); at++)
		if (at == all || at[-1] == '\n')
			found = at + strlen("atoll: ");
	snprintf(why, size, "%.*s", (int)strcspn(found, "\n"), found);
	if (!*why)
		snprintf(why, size, "the sandbox ended without a reason");
}

int self_test_check(const struct self_test_request *request, char *why, size_t size)
{
	struct run_setup setup = {
		.flags = REQUEST_CHECK | REQUEST_QUIET,
		.notice = say_notice,
		.policy = request->policy,
		.trust = request->trust,
	};
	char *command[] = { NULL };
	cleanup_buf struct buf text;
	struct stand stand;
	struct err err;
	int r = stand_open(&stand, &err);

	buf_init(&text, OUTPUT_MAX);
	setup.project = stand.project;
	if (r == 0)
		r = stand_run(&setup, command, 2, &text, &err);
	stand_close(&stand);
	if (r < 0)
		snprintf(why, size, "%s", err.message);
	else if (r > 0)
		copy_reason(why, size, &text);
	return r;
}

/* The names of all attempts, a line each. */
static int list_attempts(const struct stand *stand, struct buf *out, struct err *err)
{
	char program[PATH_MAX];
	const char *argv[] = { program, "--list", NULL };
	int ends[2], status = -1, r = path_join(program, sizeof program, stand->dirs.programs, "atoll-probe");
	pid_t pid;

	if (r < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, ERR_INTERNAL, r < 0 ? -r : errno, "doctor", "no pipe can be made");
	r = spawn_start(&(struct spawn){ .program = program, .argv = argv, .fds = { { ends[1], 1 } }, .fd_count = 1 },
			&pid);
	r = stand_hear(r < 0 ? r : pid, ends, out, &status);
	if (r == 0 && (status != 0 || !out->size))
		r = -ENOENT;
	return r < 0 ? err_not_started("doctor", program, -r, err) : 0;
}

/* The policy asked for, and atoll's own directory in view: else the probe could not be started in most
 * places. */
static int write_policy(const struct stand *stand, const struct self_test_request *request, struct err *err)
{
	const char *base = request->policy ? request->policy : request->trust ? request->trust : "medium";
	char absolute[PATH_MAX];
	cleanup_buf struct buf text = { 0 };
	struct json json;
	int r = 0;

	if (strchr(base, '/')) {
		r = dirs_absolute(base, "policy", absolute, err);
		if (r < 0)
			return r;
		base = absolute;
	}
	buf_init(&text, 64 << 10);
	json_init(&json, &text); /* JSON is YAML, and quotes what needs it */
	json_object_begin(&json, NULL);
	json_u64(&json, "atoll", 1);
	json_string(&json, "extends", base);
	json_object_begin(&json, "files");
	json_array_begin(&json, "read");
	json_string(&json, NULL, stand->dirs.programs);
	json_string(&json, NULL, stand->targets.readonly);
	json_array_end(&json);
	json_object_end(&json);
	json_object_end(&json);
	r = buf_error(&text);
	if (r == 0)
		r = fd_replace_file_at(AT_FDCWD, stand->policy, text.bytes, text.size, 0600);
	return r < 0 ? err_set(err, ERR_STATE, -r, "doctor", "%s cannot be written: %s", stand->policy,
			       strerror(-r))
		     : 0;
}

static int make_secret(struct stand *stand, struct err *err)
{
	int r = str_format(stand->secret, sizeof stand->secret, "%s/doctor-%d", stand->dirs.state,
			   (int)getpid());

	if (r == 0)
		r = fd_replace_file_at(AT_FDCWD, stand->secret, "secret\n", 7, 0600);
	return r < 0 ? err_set(err, ERR_STATE, -r, "doctor", "%s cannot be written: %s", stand->secret,
			       strerror(-r))
		     : 0;
}

struct arguments {
	char *argv[ARGUMENTS_MAX];
	size_t count;
	char program[PATH_MAX], host_pid[16];
	char shown[SHOWN_MAX][SHOWN_SIZE]; /* names of attempts on what the policy itself shows */
	size_t shown_count;
};

static void add(struct arguments *arguments, const char *option, const char *value)
{
	arguments->argv[arguments->count++] = (char *)(uintptr_t)option;
	if (value)
		arguments->argv[arguments->count++] = (char *)(uintptr_t)value;
}

/* Not in view, or something private in its place. */
static bool is_hidden_by(const struct policy *policy, const char *path)
{
	size_t rule;
	enum file_class class = policy_classify(policy, path, &rule);

	return class == FILE_HIDDEN || class == FILE_MASK || class == FILE_SCRATCH;
}

/* "system/var/log/x" and "home/.x" are attempts to read /var/log/x and ~/.x: what the policy shows is no breach. */
static int add_shown(struct arguments *arguments, const struct stand *stand, const struct policy *policy,
		     const char *names)
{
	char path[PATH_MAX];

	for (const char *at = names; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		int size = (int)strcspn(at, "\n");
		bool is_home = strncmp(at, "home/", 5) == 0;
		char *name = arguments->shown[arguments->shown_count];
		int r;

		if (!is_home && strncmp(at, "system/", 7) != 0)
			continue;
		r = is_home ? str_format(path, sizeof path, "%s/%.*s", stand->dirs.home, size - 5, at + 5)
			    : str_format(path, sizeof path, "%.*s", size - 6, at + 6);
		if (r < 0)
			return r;
		if (is_hidden_by(policy, path))
			continue;
		if (arguments->shown_count == SHOWN_MAX)
			return -E2BIG;
		r = str_format(name, SHOWN_SIZE, "%.*s", size, at);
		if (r < 0)
			return r;
		arguments->shown_count++;
		add(arguments, "--shown", name);
	}
	return 0;
}

static void add_targets(struct arguments *arguments, const struct stand *stand, const struct policy *policy)
{
	const struct self_test_targets *targets = &stand->targets;

	if (is_hidden_by(policy, targets->hidden))
		add(arguments, "--hidden", targets->hidden);
	add(arguments, "--readonly", targets->readonly);
	add(arguments, "--socket", targets->stream);
	add(arguments, "--datagram", targets->datagram);
	add(arguments, "--abstract", targets->abstract_name);
	add(arguments, "--port", targets->port);
	if (targets->shm_path[0])
		add(arguments, "--shm-file", targets->shm_path + strlen("/dev/shm/"));
}

static int make_arguments(struct arguments *arguments, const struct stand *stand, const struct policy *policy,
			  const char *names, bool json)
{
	int r = path_join(arguments->program, sizeof arguments->program, stand->dirs.programs,
			  "atoll-probe");

	if (r == 0)
		r = str_format(arguments->host_pid, sizeof arguments->host_pid, "%d", (int)getpid());
	if (r < 0)
		return r;
	add(arguments, arguments->program, NULL);
	if (json)
		add(arguments, "--json", NULL);
	add(arguments, "--scratch", "/tmp");
	add(arguments, "--secret", stand->secret);
	add_targets(arguments, stand, policy);
	add(arguments, "--state", stand->dirs.state);
	add(arguments, "--control", stand->dirs.runtime);
	add(arguments, "--host-pid", arguments->host_pid);
	if (!policy->exec.new_binaries)
		add(arguments, "--noexec", "1");
	if (policy->exec.namespaces)
		add(arguments, "--user-namespaces", "1");
	if (policy->network.mode == NETWORK_HOST)
		add(arguments, "--shared-network", "1");
	return add_shown(arguments, stand, policy, names);
}

/* What the policy itself allows is not to be reported as broken: the probe is told. 1: atoll-policy has
 * complained. */
static int find_policy(const struct stand *stand, const struct self_test_request *request,
		       struct compiled *ret_compiled, struct err *err)
{
	const struct compiled_request compile = {
		.level = request->trust,
		.policy = stand->policy,
		.project = stand->dirs.project,
		.home = stand->dirs.home,
		.config_home = stand->dirs.config_home,
		.programs_dir = stand->dirs.programs,
		.state_dir = stand->dirs.state,
		.runtime_dir = stand->dirs.runtime,
	};

	return compiled_get(&compile, ret_compiled, err);
}

static int probe_in(struct stand *stand, const struct self_test_request *request, bool json, struct err *err)
{
	struct run_setup setup = {
		.flags = REQUEST_QUIET | REQUEST_NO_TTY,
		.notice = say_notice,
		.policy = stand->policy,
		.trust = request->trust,
		.project = stand->project,
	};
	cleanup_compiled struct compiled compiled = { 0 };
	struct arguments arguments = { .count = 0 };
	cleanup_buf struct buf text, names;
	int r;

	buf_init(&text, OUTPUT_MAX);
	buf_init(&names, OUTPUT_MAX);
	r = list_attempts(stand, &names, err);
	if (r == 0)
		r = self_test_targets_make(&stand->targets, stand->directory, stand->project, buf_text(&names), err);
	if (r == 0)
		r = write_policy(stand, request, err);
	if (r == 0)
		r = make_secret(stand, err);
	if (r == 0)
		r = find_policy(stand, request, &compiled, err);
	if (r != 0)
		return r == 1 ? 125 : r;
	r = make_arguments(&arguments, stand, snapshot_policy(compiled.snapshot),
			   buf_text(&names), json);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "doctor", "the arguments of atoll-probe are too long");
	r = stand_run(&setup, arguments.argv, 1, &text, err);
	return r < 0 ? r : self_test_show(&text, json, r, err);
}

int self_test_probe(const struct self_test_request *request, bool json, struct err *err)
{
	struct stand stand;
	int r = stand_open(&stand, err);

	if (r == 0)
		r = probe_in(&stand, request, json, err);
	stand_close(&stand);
	return r;
}
