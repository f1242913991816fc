/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/run/dry-run-state.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "client/dirs.h"
#include "client/fork-origin.h"
#include "client/program.h"
#include "learn/learn.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/pidref.h"
#include "prog/atoll/verb/say.h"
#include "wire/trial.h"

enum { FDS_ABOVE = 8, NS_PER_MS = 1000000 };

static int fail(struct err *err, int r, const char *what)
{
	return err_set(err, ERR_INTERNAL, -r, "dry-run", "%s: %s", what, strerror(-r));
}

/* ---- one run ---- */

/* The same file at the same place, but with a place of its own, and to be read only. -errno. */
static int open_input_again(void)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, "/proc/self/fd/0", O_RDONLY | O_NONBLOCK, 0);
	off_t at = lseek(STDIN_FILENO, 0, SEEK_CUR);

	if (fd < 0)
		return fd;
	return at < 0 || lseek(fd, at, SEEK_SET) < 0 ? -errno : take_fd(&fd);
}

/*
 * Bytes that come through a pipe, a socket or a terminal can be had once: they are kept for the time when it is done
 * for real. In their place the trial has one byte of a file, and whether that was read tells whether it would have read
 * more. A file is read twice. What else there is (/dev/null) has nothing to read.
 */
static int trial_stdin(int *ret_fd, int *ret_probe_fd)
{
	cleanup_fd int fd = FD_NONE;
	struct stat st;

	if (fstat(STDIN_FILENO, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode) && !S_ISSOCK(st.st_mode) && !isatty(STDIN_FILENO))
		return 0;
	if (S_ISREG(st.st_mode))
		fd = open_input_again();
	if (fd >= 0) {
		*ret_fd = take_fd(&fd);
		return 0;
	}
	fd = fd_memfd_new("stdin");
	if (fd < 0)
		return fd;
	if (pwrite(fd, "\n", 1, 0) != 1)
		return -errno;
	*ret_probe_fd = *ret_fd = take_fd(&fd);
	return 0;
}

static int find_fork(const struct dry_run *dry, struct fork_origin *ret_origin, struct err *err)
{
	return fork_find(dry->origin.id, dry->base, ret_origin, err);
}

/* The child, which becomes the box of the new session. */
static void become_run(struct dry_run *dry, const struct dry_run_go *go, const char *name, int stdin_fd)
{
	static struct fork_origin origin; /* large, and once a process */
	struct run_setup setup = dry->given->setup;
	const struct dry_run_record *record = &dry->record;
	struct err err = { 0 };
	int r = stdin_fd >= 0 && dup2(stdin_fd, STDIN_FILENO) < 0 ? -errno : 0;

	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	/* Nobody would show what came of it. */
	if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		r = -errno;
	if (r == 0 && go->is_mute && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		r = -errno;
	if (r < 0)
		err_set(&err, ERR_INTERNAL, -r, "dry-run", "the streams cannot be set: %s", strerror(-r));
	setup.policy = record->policy;
	setup.trust = record->trust;
	setup.project = record->project;
	setup.task = record->task;
	setup.agent = record->agent;
	setup.confidence = record->confidence;
	setup.cwd = record->cwd;
	setup.env = record->env;
	setup.exact_env = dry->exact_env;
	setup.name = name;
	setup.flags = go->flags;
	setup.notice = say_notice;
	setup.replay = go->is_trial ? setup.replay : NULL;
	if (r == 0 && dry->has_origin) {
		r = find_fork(dry, &origin, &err);
		setup.origin = &origin;
		if (r == 0 && !setup.project)
			setup.project = origin.project;
	}
	if (r == 0)
		r = run_setup_start(&setup, record->command, clock_monotonic_ns(), &err);
	if (r < 0 && err.code != ERR_NONE)
		say_error(&err);
	_exit(r < 0 ? err_exit_status(&err) : r);
}

/* What the box has tried ends when that is gone, or no longer waits, or has waited long enough. True: it was ended. */
static bool cut_off(pid_t pid)
{
	uint64_t until_ns = clock_monotonic_ns() + TRIAL_COMMAND_MS * (uint64_t)NS_PER_MS, now_ns;
	cleanup_pidref struct pidref trial = PIDREF_NONE;

	if (pidref_open(&trial, pid) < 0)
		return true;
	while ((now_ns = clock_monotonic_ns()) < until_ns) {
		struct pollfd polled[] = { { .fd = trial.fd, .events = POLLIN }, { .fd = TRIAL_FD } };
		int n = poll(polled, ARRAY_SIZE(polled), (int)((until_ns - now_ns) / NS_PER_MS) + 1);

		if (n > 0 && polled[0].revents)
			return false;
		if (n > 0 || (n < 0 && errno != EINTR))
			break;
	}
	(void)!pidref_signal(&trial, SIGTERM);
	return true;
}

static int make_name(const char *prefix, char out[32])
{
	char id[SESSION_ID_SIZE];
	int r = random_session_id(id);

	return r < 0 ? r : str_format(out, 32, "%s%s", prefix, id);
}

int dry_run_go(struct dry_run *dry, const struct dry_run_go *go, struct session_record *ret_record, struct err *err)
{
	cleanup_fd int stdin_fd = FD_NONE;
	char name[32];
	int status, probe_fd = FD_NONE, r = make_name(go->prefix, name);
	pid_t pid;

	if (r == 0 && go->is_trial)
		r = trial_stdin(&stdin_fd, &probe_fd);
	if (r < 0)
		return fail(err, r, "the run cannot be prepared");
	pid = fork();
	if (pid == 0)
		become_run(dry, go, name, stdin_fd);
	if (pid < 0)
		return fail(err, -errno, "fork");
	/* The keyboard's signals are for the command; what came of it is shown all the same. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	if (go->is_trial && dry->exact_env)
		dry->is_cut = cut_off(pid);
	status = spawn_wait(pid, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	if (status < 0)
		return fail(err, status, "the run is lost");
	if (probe_fd >= 0)
		dry->record.reads_input = lseek(probe_fd, 0, SEEK_CUR) != 0;
	r = session_find(dry->state, NULL, name, NULL, ret_record, err);
	if (r == -ENOENT)
		return err_set(err, ERR_STATE, ENOENT, "dry-run", "nothing was run, so nothing is shown");
	return r < 0 ? r : status;
}

int dry_run_exec(struct dry_run *dry, struct err *err)
{
	const struct dry_run_record *record = &dry->record;
	cleanup_fd int output_fd = fd_move_above(fd_duplicate(STDERR_FILENO), FDS_ABOVE);
	cleanup_words struct words words = { 0 };
	/* With --json stdout is for the object. */
	struct program program = { .name = "atoll", .fd_count = dry->given->json ? 1 : 0,
				   .fds = { { output_fd, STDOUT_FILENO } } };
	int r;

	if (output_fd < 0)
		return fail(err, output_fd, "the command cannot be prepared");
	words_add(&words, "atoll");
	words_add(&words, "exec");
	for (size_t i = 0; i < record->env.count; i++)
		words_add_option(&words, "-e", record->env.values[i]);
	words_add_option(&words, "-C", record->cwd);
	words_add(&words, record->origin);
	words_add(&words, "--");
	words_add_all(&words, (const char *const *)record->command);
	program.argv = (const char *const *)words.list;
	r = program_check_words(&words, err);
	return r < 0 ? r : program_run(&program, err);
}

int dry_run_go_back(struct dry_run *dry, struct err *err)
{
	const char *stop[] = { "atoll", "stop", dry->origin.id, NULL };
	const char *restore[] = { "atoll", "restore", "-q", dry->origin.id, dry->base, NULL };
	struct program program = { .name = "atoll", .argv = stop };
	int r = program_run(&program, err);

	if (r == 0) {
		program.argv = restore;
		r = program_run(&program, err);
	}
	/* It has said why. */
	return r > 0 ? err_set(err, ERR_STATE, EIO, "dry-run", "session %s has changed", dry->origin.id) : r;
}

/* ---- what came of it ---- */

static int look(const struct program_look *look, int *ret_text_fd, struct err *err)
{
	int text_fd = FD_NONE, status = program_look(look, &text_fd, err);

	if (status < 0)
		return status;
	close_fd(ret_text_fd);
	*ret_text_fd = text_fd;
	/* It has said why. */
	return status > 1 ? err_set(err, ERR_STATE, EIO, "dry-run", "the result of the trial cannot be read")
			  : status;
}

static int look_at_log(struct dry_run *dry, struct err *err)
{
	char log[PATH_MAX];
	const char *form = dry->given->json ? "json" : "text";
	const char *argv[] = { "atoll-learn", "effects", form, log, "-", dry->trial.id, "-", NULL };
	const struct program_look how = { .name = "atoll-learn", .argv = argv, .numbers_to = LEARN_NUMBERS_FD,
				  .numbers = &dry->effects, .numbers_size = sizeof dry->effects };
	int r = session_path(dry->state, dry->trial.id, "audit.jsonl", log, sizeof log);

	return r < 0 ? fail(err, r, "the log") : look(&how, &dry->effects_fd, err);
}

struct states {
	const char *session, *snapshot;              /* now */
	const char *before, *before_snapshot;        /* or NULL */
	bool is_rough, has_times;
};

static int compare(struct dry_run *dry, const struct states *states, struct stage_difference *ret_numbers,
		   int *ret_fd, struct err *err)
{
	cleanup_words struct words words = { 0 };
	struct program_look how = { .name = "atoll-stage", .numbers_to = STAGE_DIFFERENCE_FD, .numbers = ret_numbers,
			    .numbers_size = sizeof *ret_numbers };
	int r;

	staged_words(&words, "compare", dry->state, states->session);
	words_add_option(&words, "--base", dry->trial.project);
	words_add_option(&words, "--snapshot", states->snapshot);
	words_add_option(&words, "--before", states->before);
	words_add_option(&words, "--before-snapshot", states->before_snapshot);
	words_add(&words, "--numbers");
	words_add_flag(&words, states->is_rough, "--rough");
	words_add_flag(&words, states->has_times, "--times");
	words_add_flag(&words, dry->given->json, "--json");
	how.argv = (const char *const *)words.list;
	r = program_check_words(&words, err);
	return r < 0 ? r : look(&how, ret_fd, err);
}

/* What the trial left, against what it began with. */
static struct states of_trial(const struct dry_run *dry)
{
	return (struct states){
		.session = dry->trial.id,
		.snapshot = *dry->record.shown ? dry->record.shown : NULL,
		.before = dry->has_origin ? dry->origin.id : NULL,
		.before_snapshot = dry->has_origin ? dry->record.snapshot : NULL,
	};
}

int dry_run_look(struct dry_run *dry, struct err *err)
{
	struct states states = of_trial(dry);
	int r = look_at_log(dry, err);

	states.has_times = true;
	if (r >= 0 && dry->trial.is_staged)
		r = compare(dry, &states, &dry->difference, &dry->changes_fd, err);
	return r < 0 ? r : 0;
}

int dry_run_compare(struct dry_run *dry, const char *session, const char *snapshot, struct err *err)
{
	bool has_real = !dry->has_real || dry->real.is_staged;
	struct states trial = of_trial(dry);
	/* In the box's place others are at work in the session meanwhile. */
	struct states states = { .session = session, .snapshot = snapshot, .before = trial.session,
				 .before_snapshot = trial.snapshot, .is_rough = dry->exact_env != NULL };
	int r;

	/* Who staged nothing left everything as it was: against that the trial's changes are the difference. */
	if (!dry->trial.is_staged && !has_real)
		return 0;
	if (!dry->trial.is_staged) {
		states.before = trial.before;
		states.before_snapshot = trial.before_snapshot;
	}
	r = compare(dry, has_real ? &states : &trial, &dry->real_difference, &dry->difference_fd, err);
	dry->differs = r > 0;
	return r < 0 ? r : 0;
}

/* ---- the log ---- */

int dry_run_log(struct dry_run *dry, const char *how, struct err *err)
{
	struct stage_lock trial = STAGE_LOCK_NONE;
	char path[PATH_MAX];
	int r = str_format(path, sizeof path, "%s/sessions", dry->state);

	if (r == 0)
		r = trial.sessions_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r < 0)
		return fail(err, r, "the log of the trial cannot be opened");
	r = str_copy(trial.session, sizeof trial.session, dry->trial.id);
	if (r == 0)
		r = staged_log_begin(&dry->telling, &trial, AUDIT_STAGE_ACCEPT, how, err);
	close_fd(&trial.sessions_fd);
	return r;
}

int dry_run_logged(struct dry_run *dry, int r, struct err *err)
{
	return staged_log_end(&dry->telling, r, err);
}
