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
#include "client/dirs.h"
#include "client/run-setup.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "os/pty.h"
#include "os/spawn.h"
#include "policy/decide.h"
#include "prog/atoll/doctor/self-test-targets.h"
#include "prog/atoll/verb/say.h"

enum { OUTPUT_MAX = 4 << 20, ARGUMENTS_MAX = 80, SHOWN_MAX = 32, SHOWN_SIZE = 160 };

/* A sandbox of the doctor's: its project, and the policy that it runs under. */
struct stand {
	char directory[64]; /* the project is project/ in it */
	char project[96], policy[96];
	struct dirs dirs;
	char secret[PATH_MAX]; /* a file in the state directory, which no sandbox sees */
	struct self_test_targets targets;
};

/* What would end us ends the sandbox and what was made for it first. */
static const int ending_signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
static volatile sig_atomic_t ended_by;

static void on_ending_signal(int number)
{
	ended_by = number;
}

static void handle_ending_signals(void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler };

	for (size_t i = 0; i < ARRAY_SIZE(ending_signals); i++) {
		struct sigaction before;

		/* nohup: what is ignored stays so. */
		if (sigaction(ending_signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(ending_signals[i], &action, NULL);
	}
}

/* /tmp may be a tmpfs, of which root cannot give a sandbox anything to write before Linux 6.3 (no idmapped mounts). */
static int make_directory(struct stand *stand)
{
	static const char *const paths[] = { "/var/tmp/atoll-doctor-XXXXXX", "/tmp/atoll-doctor-XXXXXX" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		memcpy(stand->directory, paths[i], strlen(paths[i]) + 1);
		if (mkdtemp(stand->directory))
			return 0;
	}
	stand->directory[0] = 0;
	return -errno;
}

static int stand_open(struct stand *stand, struct err *err)
{
	int r;

	*stand = (struct stand){ 0 };
	self_test_targets_init(&stand->targets);
	handle_ending_signals(on_ending_signal);
	r = make_directory(stand);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "doctor", "no directory can be made in /var/tmp or /tmp: %s",
			       strerror(-r));
	r = str_format(stand->project, sizeof stand->project, "%s/project", stand->directory);
	if (r == 0)
		r = str_format(stand->policy, sizeof stand->policy, "%s/policy.yaml", stand->directory);
	if (r == 0 && mkdir(stand->project, 0755) < 0)
		r = -errno;
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "doctor", "no project can be made in %s: %s", stand->directory,
			       strerror(-r));
	return dirs_find(&stand->dirs, stand->project, NULL, err);
}

static void stand_close(struct stand *stand)
{
	/* What cannot be removed is an empty directory and no reason to fail. */
	if (stand->directory[0] && path_remove_tree(AT_FDCWD, stand->directory) < 0)
		rmdir(stand->directory);
	if (stand->secret[0])
		unlink(stand->secret);
	self_test_targets_remove(&stand->targets);
	handle_ending_signals(SIG_DFL);
	if (ended_by)
		raise(ended_by);
}

/* In the child: the captured stream becomes the pipe; stdin is empty. Does not return. */
static void stand_child(const struct run_setup *setup, char **command, int captured, int pipe_fd)
{
	struct err err = { 0 };
	int null = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
	int status = 125;

	handle_ending_signals(SIG_DFL);
	if (null >= 0 && dup2(null, 0) == 0 && (captured == 1 || dup2(null, 1) == 1) &&
	    dup2(pipe_fd, captured) == captured)
		status = run_setup_start(setup, command, clock_monotonic_ns(), &err);
	if (status < 0) {
		say_error(&err);
		status = err_exit_status(&err);
	}
	_exit(status);
}

/* The child that writes to fd is told of a signal that came to us alone. */
static int read_all(int fd, pid_t child, struct buf *out)
{
	for (;;) {
		uint8_t bytes[4096];
		ssize_t n = read(fd, bytes, sizeof bytes);

		if (n == 0)
			return buf_error(out);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n < 0 && ended_by)
			kill(child, ended_by);
		if (n > 0)
			buf_put(out, bytes, (size_t)n);
	}
}

/* What a child (negative: there is none, and why) writes into the pipe, which is closed. 0 and *ret_status; -errno. */
static int hear_child(pid_t pid, const int ends[2], struct buf *out, int *ret_status)
{
	int r = pid < 0 ? pid : 0;

	close(ends[1]);
	if (r == 0)
		r = read_all(ends[0], pid, out);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, ret_status, 0) < 0)
		if (errno != EINTR)
			r = -errno;
	return r;
}

/* Runs command in a sandbox; what it writes to captured (1 or 2) goes to out. The wait status, or -errno with
 * *err. */
static int stand_run(const struct run_setup *setup, char **command, int captured, struct buf *out,
		     struct err *err)
{
	int ends[2], status = -1, r;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, ERR_INTERNAL, errno, "doctor", "no pipe can be made: %s",
			       strerror(errno));
	pid = fork();
	if (pid == 0)
		stand_child(setup, command, captured, ends[1]);
	r = hear_child(pid < 0 ? -errno : pid, ends, out, &status);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "doctor", "the sandbox cannot be watched: %s",
			       strerror(-r));
	return status;
}

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
	r = hear_child(r < 0 ? r : pid, ends, out, &status);
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

struct counts {
	size_t held, broke, other;
};

/* "NAME\tCASES\tOUTCOME\tNOTE\tWHAT" becomes "held   NAME  WHAT (NOTE)". */
static void put_row(struct buf *out, char *line, struct counts *counts, bool has_colour)
{
	char *fields[5];
	const char *colour;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		fields[i] = line;
		line = strchrnul(line, '\t');
		if (*line)
			*line++ = 0;
	}
	counts->held += str_equal(fields[2], "held");
	counts->broke += str_equal(fields[2], "broke");
	counts->other += !str_equal(fields[2], "held") && !str_equal(fields[2], "broke");
	colour = !has_colour			 ? ""
		 : str_equal(fields[2], "broke") ? "\033[1;31m"
		 : str_equal(fields[2], "held")	 ? "\033[32m"
						 : "";
	buf_printf(out, "%s%-6s%s %-28s %s", colour, fields[2], *colour ? "\033[0m" : "", fields[0],
		   fields[4]);
	if (*fields[3])
		buf_printf(out, " (%s)", fields[3]);
	buf_put_char(out, '\n');
}

/* What comes out of a sandbox is hostile, even the doctor's own: tabs and lines are ours, the rest is
 * escaped. */
static void put_table(struct buf *out, struct buf *text, struct counts *counts)
{
	bool has_colour = pty_has_colour(STDOUT_FILENO, getenv("TERM"), getenv("NO_COLOR"));
	char *line = (char *)(uintptr_t)buf_text(text);

	while (*line) {
		char *end = strchrnul(line, '\n');
		char *next = *end ? end + 1 : end;

		*end = 0;
		for (char *at = line; *at; at++)
			if ((unsigned char)*at < 0x20 && *at != '\t')
				*at = '?';
		put_row(out, line, counts, has_colour);
		line = next;
	}
	buf_printf(out, "%zu tried: %zu held, %zu broke, %zu could not be tried here\n",
		   counts->held + counts->broke + counts->other, counts->held, counts->broke, counts->other);
}

static int show(struct buf *text, bool json, int status, struct err *err)
{
	cleanup_buf struct buf out = { 0 };
	struct counts counts = { 0 };
	int r;

	/* 125 to 127 are ours, and the reason is on stderr already. */
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
		return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
	buf_init(&out, OUTPUT_MAX * 2);
	if (json)
		buf_put(&out, text->bytes, text->size);
	else
		put_table(&out, text, &counts);
	if (!json && !counts.held)
		return err_set(err, ERR_INTERNAL, ENODATA, "doctor", "atoll-probe tried nothing");
	r = say_out(&out, err);
	return r < 0 ? r : WEXITSTATUS(status);
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
	return r < 0 ? r : show(&text, json, r, err);
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
