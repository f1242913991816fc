/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/dry-run-state.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "learn/learn.h"
#include "os/fd.h"
#include "prog/atoll/beside.h"
#include "prog/atoll/fork.h"
#include "prog/atoll/places.h"
#include "prog/atoll/say.h"

enum { FDS_ABOVE = 8, WORDS_MAX = 4096 };

static int fail(struct err *err, int r, const char *what)
{
	return err_set(err, ERR_INTERNAL, -r, "dry-run", "%s: %s", what, strerror(-r));
}

/* ---- one run ---- */

/*
 * Bytes that come through a pipe or a terminal can be had once: they are kept for the time when it is done for real. In
 * their place the trial has one byte of a file, and whether that was read tells whether it would have read more.
 */
static int prepare_stdin(struct dry_run *dry, bool is_trial, int *ret_probe_fd)
{
	cleanup_fd int fd = FD_NONE;
	struct stat st;

	*ret_probe_fd = FD_NONE;
	if (fstat(STDIN_FILENO, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode) && is_trial)
		dry->input_offset = lseek(STDIN_FILENO, 0, SEEK_CUR);
	else if (S_ISREG(st.st_mode))
		return lseek(STDIN_FILENO, dry->input_offset, SEEK_SET) < 0 ? -errno : 0;
	if (!is_trial || S_ISREG(st.st_mode))
		return 0;
	fd = fd_memfd_new("stdin");
	if (fd < 0)
		return fd;
	if (pwrite(fd, "\n", 1, 0) != 1)
		return -errno;
	*ret_probe_fd = take_fd(&fd);
	return 0;
}

static int find_fork(const struct dry_run *dry, struct fork_origin *ret_origin, struct err *err)
{
	return fork_find(dry->origin.id, dry->record.snapshot, ret_origin, err);
}

/* The child, which becomes the box of the new session. */
static void become_run(struct dry_run *dry, const struct dry_run_go *go, const char *name, int stdin_fd)
{
	static struct fork_origin origin; /* large, and once a process */
	struct front_options front = dry->given->front;
	const struct dry_run_record *record = &dry->record;
	struct err err = { 0 };
	int r = stdin_fd >= 0 && dup2(stdin_fd, STDIN_FILENO) < 0 ? -errno : 0;

	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	if (r == 0 && go->is_mute && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		r = -errno;
	if (r < 0)
		err_set(&err, ERR_INTERNAL, -r, "dry-run", "the streams cannot be set: %s", strerror(-r));
	front.policy = record->policy;
	front.trust = record->trust;
	front.project = record->project;
	front.task = record->task;
	front.agent = record->agent;
	front.confidence = record->confidence;
	front.cwd = record->cwd;
	front.env = record->env;
	front.name = name;
	front.flags = go->flags;
	front.replay = go->is_trial ? front.replay : NULL;
	if (r == 0 && dry->has_origin) {
		r = find_fork(dry, &origin, &err);
		front.origin = &origin;
		if (r == 0 && !front.project)
			front.project = origin.project;
	}
	if (r == 0)
		r = front_start(&front, record->command, clock_monotonic_ns(), &err);
	if (r < 0 && err.code != ERR_NONE)
		say_error(&err);
	_exit(r < 0 ? err_exit_status(&err) : r);
}

static int wait_for(pid_t pid, struct err *err)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return fail(err, -errno, "the run is lost");
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int make_name(const char *prefix, char out[32])
{
	char id[SESSION_ID_SIZE];
	int r = random_session_id(id);

	return r < 0 ? r : str_format(out, 32, "%s%s", prefix, id);
}

int dry_run_go(struct dry_run *dry, const struct dry_run_go *go, struct session_record *ret_record, struct err *err)
{
	cleanup_fd int probe_fd = FD_NONE;
	char name[32];
	int status, r = make_name(go->prefix, name);
	pid_t pid;

	if (r == 0)
		r = prepare_stdin(dry, go->is_trial, &probe_fd);
	if (r < 0)
		return fail(err, r, "the run cannot be prepared");
	pid = fork();
	if (pid == 0)
		become_run(dry, go, name, probe_fd);
	if (pid < 0)
		return fail(err, -errno, "fork");
	/* The keyboard's signals are for the command; what came of it is shown all the same. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	status = wait_for(pid, err);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	if (status < 0)
		return status;
	if (probe_fd >= 0)
		dry->record.reads_input = lseek(probe_fd, 0, SEEK_CUR) != 0;
	r = session_find(dry->state, NULL, name, false, ret_record, err);
	if (r == -ENOENT)
		return err_set(err, ERR_STATE, ENOENT, "dry-run", "nothing was run, and so nothing is shown");
	return r < 0 ? r : status;
}

int dry_run_exec(struct dry_run *dry, struct err *err)
{
	const struct dry_run_record *record = &dry->record;
	cleanup_free const char **argv = calloc(WORDS_MAX + 2 * OPTION_LIST_MAX + 8, sizeof *argv);
	struct beside beside = { .program = "atoll", .argv = argv };
	size_t count = 0;
	int probe_fd, r = prepare_stdin(dry, false, &probe_fd);

	if (!argv || r < 0)
		return fail(err, argv ? r : -ENOMEM, "the command cannot be prepared");
	argv[count++] = "atoll";
	argv[count++] = "exec";
	for (size_t i = 0; i < record->env.count; i++) {
		argv[count++] = "-e";
		argv[count++] = record->env.values[i];
	}
	if (record->cwd) {
		argv[count++] = "-C";
		argv[count++] = record->cwd;
	}
	argv[count++] = record->origin;
	argv[count++] = "--";
	for (size_t i = 0; record->command[i]; i++) {
		if (i == WORDS_MAX)
			return err_set(err, ERR_USAGE, E2BIG, "dry-run", "the command has more than %d words", WORDS_MAX);
		argv[count++] = record->command[i];
	}
	return beside_run(&beside, err);
}

/* ---- what came of it ---- */

/* Starts one of the programs that look, with what it prints in *ret_text_fd and its numbers in numbers. */
struct look {
	const char *program;
	const char *const *argv;
	int numbers_to;              /* the descriptor that the program writes them to */
	void *numbers;
	size_t numbers_size;
};

static int look(const struct look *look, int *ret_text_fd, struct err *err)
{
	cleanup_fd int text_fd = fd_memfd_new("text"), numbers_fd = fd_memfd_new("numbers");
	struct beside beside = { .program = look->program, .argv = look->argv, .fd_count = 2 };
	int status;

	text_fd = text_fd < 0 ? text_fd : fd_move_above(text_fd, FDS_ABOVE);
	numbers_fd = numbers_fd < 0 ? numbers_fd : fd_move_above(numbers_fd, FDS_ABOVE);
	if (text_fd < 0 || numbers_fd < 0)
		return fail(err, text_fd < 0 ? text_fd : numbers_fd, "memory for what is shown");
	beside.fds[0].from = text_fd;
	beside.fds[0].to = STDOUT_FILENO;
	beside.fds[1].from = numbers_fd;
	beside.fds[1].to = look->numbers_to;
	status = beside_run(&beside, err);
	if (status < 0)
		return status;
	/* It has said why. */
	if (status > 1)
		return err_set(err, ERR_STATE, EIO, "dry-run", "what came of the trial cannot be looked at");
	if (pread(numbers_fd, look->numbers, look->numbers_size, 0) != (ssize_t)look->numbers_size)
		return fail(err, -EPROTO, look->program);
	close_fd(ret_text_fd);
	*ret_text_fd = take_fd(&text_fd);
	return status;
}

static int look_at_log(struct dry_run *dry, struct err *err)
{
	char log[PATH_MAX];
	const char *argv[] = { "atoll-learn", "effects", dry->given->json ? "json" : "text", log, "-", dry->trial.id, "-",
			       NULL };
	const struct look how = { .program = "atoll-learn", .argv = argv, .numbers_to = LEARN_NUMBERS_FD,
				  .numbers = &dry->effects, .numbers_size = sizeof dry->effects };
	int r = session_path(dry->state, dry->trial.id, "audit.jsonl", log, sizeof log);

	return r < 0 ? fail(err, r, "the log") : look(&how, &dry->effects_fd, err);
}

struct states {
	const char *session, *snapshot;              /* now */
	const char *before, *before_snapshot;        /* or NULL */
};

static int compare(struct dry_run *dry, const struct states *states, struct stage_difference *ret_numbers, int *ret_fd,
		   struct err *err)
{
	struct staged_args args;
	const struct look how = { .program = "atoll-stage", .argv = args.argv, .numbers_to = STAGE_DIFFERENCE_FD,
				  .numbers = ret_numbers, .numbers_size = sizeof *ret_numbers };
	const struct { const char *option, *value; } words[] = {
		{ "--base", dry->trial.project }, { "--snapshot", states->snapshot }, { "--before", states->before },
		{ "--before-snapshot", states->before_snapshot },
	};
	int r = 0;

	staged_args_init(&args, "compare", dry->state, states->session);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(words); i++)
		if (words[i].value)
			r = staged_args_add(&args, words[i].option, words[i].value, err);
	if (r == 0)
		r = staged_args_add(&args, "--numbers", NULL, err);
	if (r == 0 && dry->given->json)
		r = staged_args_add(&args, "--json", NULL, err);
	args.argv[args.count] = NULL;
	return r < 0 ? r : look(&how, ret_fd, err);
}

int dry_run_look(struct dry_run *dry, struct err *err)
{
	const struct states states = {
		.session = dry->trial.id, .before = dry->has_origin ? dry->origin.id : NULL,
		.before_snapshot = dry->has_origin ? dry->record.snapshot : NULL,
	};
	int r = look_at_log(dry, err);

	if (r >= 0 && dry->trial.is_staged)
		r = compare(dry, &states, &dry->difference, &dry->changes_fd, err);
	return r < 0 ? r : 0;
}

int dry_run_compare(struct dry_run *dry, const char *session, const char *snapshot, struct err *err)
{
	bool has_real = !dry->has_real || dry->real.is_staged;
	struct states states = { .session = session, .snapshot = snapshot, .before = dry->trial.id };
	struct stage_difference difference;
	int r;

	/* Who staged nothing left everything as it was: against that the trial's changes are the difference. */
	if (!dry->trial.is_staged && !has_real)
		return 0;
	if (!dry->trial.is_staged) {
		states.before = dry->has_origin ? dry->origin.id : NULL;
		states.before_snapshot = dry->has_origin ? dry->record.snapshot : NULL;
	}
	if (!has_real)
		states = (struct states){ .session = dry->trial.id, .before = dry->has_origin ? dry->origin.id : NULL,
					  .before_snapshot = dry->has_origin ? dry->record.snapshot : NULL };
	r = compare(dry, &states, &difference, &dry->difference_fd, err);
	dry->differs = r > 0;
	return r < 0 ? r : 0;
}

/* ---- the log ---- */

int dry_run_log(struct dry_run *dry, const char *how, struct err *err)
{
	struct stage_hold trial = STAGE_HOLD_NONE;
	char path[PATH_MAX];
	int r = str_format(path, sizeof path, "%s/sessions", dry->state);

	if (r == 0)
		r = trial.sessions_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r < 0)
		return fail(err, r, "the log of the trial cannot be opened");
	r = str_copy(trial.session, sizeof trial.session, dry->trial.id);
	if (r == 0)
		r = staged_tell(&dry->telling, &trial, AUDIT_STAGE_ACCEPT, how, err);
	close_fd(&trial.sessions_fd);
	return r;
}

int dry_run_logged(struct dry_run *dry, int r, struct err *err)
{
	return staged_told(&dry->telling, r, err);
}
