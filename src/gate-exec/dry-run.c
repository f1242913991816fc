/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/dry-run.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "audit/writer.h"
#include "base/hash.h"
#include "base/str.h"
#include "build/staging.h"
#include "gate-exec/dry-run-budget.h"
#include "gate-exec/file.h"
#include "os/clock.h"
#include "os/fd.h"
#include "session/record.h"
#include "supervise/hub.h"
#include "supervise/peer.h"
#include "supervise/run.h"
#include "watch/watch.h"
#include "wire/trial.h"

/*
 * A trial goes through these states in their order. Its fork needs everything inside to stand still for a moment, for
 * which callers that wait are told to make their call again (exec_gate_release()): so a trial is found by whose it is
 * and what it is about, and not by the call. Nobody else gets it, and nobody who went away for another reason.
 */
enum job_state { JOB_FREE, JOB_TRYING, JOB_SHOWN, JOB_REAL, JOB_COMPARING, JOB_LEAVING };

enum {
	NS_PER_MS = 1000000,
	LEAVING_MS = 120000,         /* for what a trial left to be removed: nobody else would */
	DESCRIPTORS_MAX = 256,       /* that are looked at */
};

struct job {
	enum job_state state;
	struct exec_dry_runs *trials;
	uint32_t id;
	struct hash key;             /* of program, arguments, variables, directory, and whether there is input */
	uint64_t token;              /* who waits; 0: nobody */
	char *exe;                   /* owned: for the log */
	struct peer peer;            /* `atoll dry-run --held`, which tries it */
	struct loop_source real_source;
	struct pidref real;          /* who waits, and then does it for real */
	enum trial_result result;
	char trial[SESSION_ID_SIZE], text[TRIAL_TEXT_SIZE];
};

struct exec_dry_runs {
	struct run *run;
	const struct staging *staging;
	struct exec_dry_run_owner owner;
	struct job jobs[EXEC_DRY_RUNS_MAX];
	struct dry_run_budget budget;
	uint32_t last_id;
};

/* ---- the log ---- */

struct told {
	const struct job *job;
	const char *phase;
};

static void write_told(struct json *json, const void *context)
{
	static const char *const results[TRIAL_RESULT_COUNT] = {
		[TRIAL_CLEAN] = "clean", [TRIAL_TOLD] = "told", [TRIAL_FAILED] = "failed",
	};
	const struct told *told = context;

	json_string(json, "phase", told->phase);
	json_string(json, "trial", told->job->trial);
	json_string(json, "result", results[told->job->result]);
	json_string(json, "text", told->job->text);
}

static int log_job(struct job *job, const char *phase, enum verdict verdict)
{
	struct told told = { job, phase };
	struct audit_event event = {
		.type = AUDIT_EXEC_TRIAL, .verdict = verdict_names[verdict], .subject = job->exe,
		.subject_size = strlen(job->exe), .write_detail = write_told, .context = &told,
	};

	return audit_write(job->trials->run->audit, &event);
}

/* ---- its life ---- */

/* From now on; 0: it may take its time. */
static void set_time(struct job *job, uint64_t ms)
{
	peer_expect(&job->peer, ms ? clock_monotonic_ns() + ms * NS_PER_MS : UINT64_MAX);
}

static void free_job(void *context)
{
	struct job *job = context;

	peer_retire(&job->peer, false);
	loop_remove(job->trials->run->loop, &job->real_source);
	pidref_done(&job->real);
	free(job->exe);
	*job = (struct job){ .state = JOB_FREE };
}

/* Its socket ends, and it takes the trial along before it goes. */
static void end_job(struct job *job)
{
	loop_remove(job->trials->run->loop, &job->real_source);
	job->state = JOB_LEAVING;
	job->token = 0;
	peer_dismiss(&job->peer);
	if (job->peer.state != PEER_LEAVING)
		free_job(job);
}

static struct job *find_job(struct exec_dry_runs *trials, uint32_t id)
{
	for (size_t i = 0; trials && id && i < EXEC_DRY_RUNS_MAX; i++)
		if (trials->jobs[i].state != JOB_FREE && trials->jobs[i].id == id)
			return &trials->jobs[i];
	return NULL;
}

/* What the trial leads to; the texts are the outcome's own. */
static void set_outcome(const struct job *job, struct verify_outcome *outcome)
{
	char reason[VERIFY_TEXT_SIZE];

	outcome->action = job->result == TRIAL_CLEAN ? VERIFY_NOTE : VERIFY_ASK;
	if (str_format(reason, sizeof reason, "%.200s; %s%s: %s", outcome->reason,
		       job->result == TRIAL_FAILED ? "it could not be tried" : "tried as ", job->trial, job->text) == 0)
		memcpy(outcome->reason, reason, sizeof reason);
	if (job->result == TRIAL_TOLD &&
	    str_format(reason, sizeof reason, "`atoll diff %s` shows what it would change", job->trial) == 0)
		memcpy(outcome->hint, reason, sizeof reason);
}

static void fail_job(struct job *job, const char *why)
{
	job->result = TRIAL_FAILED;
	job->trial[0] = 0;
	(void)!str_copy(job->text, sizeof job->text, why);
}

/* It is known what came of it: who waits hears of it, who was sent away finds it when it comes back. */
static int show(struct job *job)
{
	struct exec_dry_runs *trials = job->trials;
	uint64_t token = job->token;
	int r = log_job(job, "tried", job->result == TRIAL_CLEAN ? VERDICT_ALLOW : VERDICT_ASK);

	job->state = JOB_SHOWN;
	set_time(job, token ? 0 : EXEC_DRY_RUN_KEPT_MS);
	return r < 0 || !token ? r : trials->owner.done(trials->owner.context, token);
}

/* The process is gone. */
static int broke(void *context, enum peer_fault fault)
{
	struct job *job = context;

	if (job->state == JOB_TRYING) {
		fail_job(job, fault == PEER_LATE ? "it took longer than a trial may" : "who tries it failed");
		return show(job);
	}
	/* A person is asked about it still; what it showed stands in the question. */
	if (job->state != JOB_SHOWN || !job->token)
		free_job(job);
	return 0;
}

/* What was tried and shown is kept for so long for who was sent away; the rest has taken too long. */
static int late(void *context, uint64_t now_ns)
{
	struct job *job = context;

	(void)now_ns;
	if (job->state == JOB_SHOWN)
		end_job(job);
	else
		peer_break(&job->peer, PEER_LATE);
	return 0;
}

static int compared(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct job *job = context;
	const char *text;
	bool differs;
	int r = trial_compared_get(frame, &differs, &text);

	(void)fds, (void)fd_count;
	if (r < 0 || job->state != JOB_COMPARING)
		return -EPROTO;
	(void)!str_copy(job->text, sizeof job->text, text);
	r = log_job(job, differs ? "differs" : "same", differs ? VERDICT_ASK : VERDICT_ALLOW);
	if (r == 0 && differs)
		r = hub_publish(job->trials->run->hub, EVENT_TRIAL_DIFFERS, &(struct event_trial){ job->exe,
												   job->text });
	end_job(job);
	return peer_fail(&job->peer, r);
}

static int shown(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct job *job = context;
	struct trial_shown shown;
	int r = trial_shown_get(frame, &shown);

	(void)fds, (void)fd_count;
	if (r < 0 || job->state != JOB_TRYING || (*shown.trial && !session_id_is_valid(shown.trial)))
		return -EPROTO;
	job->result = (enum trial_result)shown.result;
	if (str_copy(job->trial, sizeof job->trial, shown.trial) < 0 ||
	    str_copy(job->text, sizeof job->text, shown.text) < 0)
		return -EBADMSG;
	/* It comes from a process of ours, and still: nothing in it may reach a terminal. */
	for (char *at = job->text; *at; at++)
		*at = *at >= ' ' && *at < 0x7f ? *at : '?';
	return peer_fail(&job->peer, show(job));
}

static const struct frame_rule rules[] = {
	{ TRIAL_SHOWN, PEER_BIT(SERVING), 4096, 0, 0, shown },
	{ TRIAL_COMPARED, PEER_BIT(SERVING), 4096, 0, 0, compared },
};

static const struct peer_kind kind = {
	.program = "atoll", .rules = rules, .rule_count = ARRAY_SIZE(rules), .leave_ms = LEAVING_MS,
	.broke = broke, .late = late, .left = free_job,
};

/* What the trial runs: nothing that it cannot run as its caller would. NULL with the reason. */
static const char *program_of(const struct watch_exec *exec, char out[PATH_MAX], const char **ret_why)
{
	*ret_why = "it is started by a descriptor, or has too many arguments";
	if (exec->is_open_file || !*exec->exe || exec->argv_left_out ||
	    (exec->dir_fd != AT_FDCWD && *exec->exe != '/') || !exec->argv[0])
		return NULL;
	*ret_why = "it is started under a name that is not its own";
	if (!str_equal(path_basename(exec->argv[0]), path_basename(exec->exe)))
		return NULL;
	if (strchr(exec->exe, '/'))
		return exec->exe;
	return str_format(out, PATH_MAX, "./%s", exec->exe) < 0 ? NULL : out;
}

/* Asked of the file itself: in a root of one's own, a FIFO can have any name. */
static bool has_no_input(pid_t pid)
{
	char path[48];
	struct stat st;

	return str_format(path, sizeof path, "/proc/%d/fd/0", pid) == 0 && stat(path, &st) == 0 &&
	       S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

static bool is_kept(pid_t pid, const char *number)
{
	static const char word[] = "\nflags:\t";
	cleanup_free char *text = NULL;
	char path[64];
	const char *at;
	size_t size;

	if (strlen(number) == 1 && *number <= '2')
		return false;
	if (str_format(path, sizeof path, "/proc/%d/fdinfo/%.16s", pid, number) < 0 ||
	    fd_read_file_at(AT_FDCWD, path, 4096, &text, &size) < 0)
		return true;
	at = strstr(text, word);
	return !at || !(strtoul(at + sizeof word - 1, NULL, 8) & O_CLOEXEC);
}

/* Init before an exec for a command: it lets nobody look into it, and gives its program three streams. */
static bool is_init(const struct exec_dry_runs *trials, pid_t pid)
{
	char path[48], of_init[48];
	struct stat st, init;

	return str_format(path, sizeof path, "/proc/%d/exe", pid) == 0 && stat(path, &st) == 0 &&
	       str_format(of_init, sizeof of_init, "/proc/%d/exe", trials->run->init.pid) == 0 &&
	       stat(of_init, &init) == 0 && st.st_dev == init.st_dev && st.st_ino == init.st_ino;
}

/* What the program gets besides its three streams (a pipe with names, a socket) the trial does not have. */
static bool keeps_descriptors(const struct exec_dry_runs *trials, pid_t pid)
{
	unsigned count = 0;
	bool is_any_kept;
	char path[48];
	DIR *dir = str_format(path, sizeof path, "/proc/%d/fd", pid) == 0 ? opendir(path) : NULL;

	is_any_kept = !dir && !is_init(trials, pid);
	for (struct dirent *entry; dir && !is_any_kept && (entry = readdir(dir)); )
		if (entry->d_name[0] != '.')
			is_any_kept = ++count > DESCRIPTORS_MAX || is_kept(pid, entry->d_name);
	if (dir)
		closedir(dir);
	return is_any_kept;
}

struct asked {
	char program[PATH_MAX], cwd[PATH_MAX];
	char **argv, **env;          /* owned: argv, env; argv's strings are borrowed */
	const char *path;
	bool has_no_input;
};

static void asked_done(struct asked *asked)
{
	free(asked->argv);
	strv_free(asked->env);
}
#define cleanup_asked __attribute__((cleanup(asked_done)))

/* Why it cannot be tried; NULL: it can. */
static const char *take_asked(struct exec_dry_runs *trials, const struct watch_exec *exec, struct asked *asked)
{
	size_t count = strv_count(exec->argv);
	const char *why;

	if (!trials->staging->record.tree_count)
		return "this session stages nothing";
	asked->path = program_of(exec, asked->program, &why);
	if (!asked->path)
		return why;
	if (exec_caller_link(exec->pid, "cwd", asked->cwd) < 0)
		return "its directory is not known";
	if (keeps_descriptors(trials, exec->pid))
		return "it has descriptors besides its three streams";
	asked->has_no_input = has_no_input(exec->pid);
	if (watch_exec_environment(exec, &asked->env) < 0)
		return "its variables are too many, or cannot be read";
	asked->argv = calloc(count + 1, sizeof *asked->argv);
	for (size_t i = 0; asked->argv && i < count; i++)
		asked->argv[i] = (char *)exec->argv[i];
	if (!asked->argv)
		return "memory is short";
	asked->argv[0] = (char *)asked->path;
	return NULL;
}

static void hash_asked(const struct asked *asked, struct hash *ret_key)
{
	struct hash_stream stream;

	hash_stream_begin(&stream);
	hash_stream_add(&stream, asked->cwd, strlen(asked->cwd) + 1);
	for (size_t i = 0; asked->argv[i]; i++)
		hash_stream_add(&stream, asked->argv[i], strlen(asked->argv[i]) + 1);
	hash_stream_add(&stream, "", 1);
	for (size_t i = 0; asked->env[i]; i++)
		hash_stream_add(&stream, asked->env[i], strlen(asked->env[i]) + 1);
	hash_stream_add(&stream, asked->has_no_input ? "" : "-", 1);
	hash_stream_end(&stream, ret_key);
}

static int begin_job(struct job *job, const struct asked *asked)
{
	struct exec_dry_runs *trials = job->trials;
	struct trial_begin begin = { trials->run->request->session, asked->cwd, asked->has_no_input, asked->argv,
				     asked->env };
	char *argv[] = { (char *)TRIAL_PROGRAM_NAME, NULL };
	const struct peer_spec spec = { .argv = argv, .environment = trials->run->request->command.env,
					.outlives = true };
	int r = peer_start(&job->peer, &spec);

	if (r == 0)
		r = peer_greet(&job->peer, trial_begin_put(&trials->run->out, &begin), NULL, 0);
	if (r == 0)
		set_time(job, EXEC_DRY_RUN_MS);
	return r;
}

struct exec_dry_runs *exec_dry_runs_new(struct run *run, const struct staging *staging,
				    const struct exec_dry_run_owner *owner)
{
	struct exec_dry_runs *trials = calloc(1, sizeof *trials);

	if (trials)
		*trials = (struct exec_dry_runs){ .run = run, .staging = staging, .owner = *owner };
	return trials;
}

static struct job *new_job(struct exec_dry_runs *trials, const char *exe, const char **ret_why)
{
	*ret_why = "too many trials run at one time";
	for (size_t i = 0; trials && i < EXEC_DRY_RUNS_MAX; i++) {
		struct job *job = &trials->jobs[i];

		if (job->state != JOB_FREE)
			continue;
		*ret_why = "too much was tried lately";
		if (!dry_run_budget_take(&trials->budget, clock_monotonic_ns()))
			return NULL;
		*job = (struct job){ .state = JOB_TRYING, .trials = trials, .id = ++trials->last_id,
				     .real = PIDREF_NONE, .exe = str_dup(exe) };
		peer_init(&job->peer, trials->run, &kind, 1, job);
		return job->exe ? job : NULL;
	}
	return NULL;
}

/* Untried, it is for a person to decide. */
static int ask_untried(struct exec_dry_runs *trials, const struct watch_exec *exec, const char *why,
		       struct verify_outcome *outcome)
{
	struct job job = { .trials = trials, .exe = (char *)exec->exe };

	fail_job(&job, why);
	set_outcome(&job, outcome);
	return log_job(&job, "tried", VERDICT_ASK);
}

/* The same call by the same process, which was sent away for a freeze. */
static struct job *find_waiting(struct exec_dry_runs *trials, pid_t pid, const struct hash *key)
{
	for (size_t i = 0; trials && i < EXEC_DRY_RUNS_MAX; i++) {
		struct job *job = &trials->jobs[i];

		if ((job->state == JOB_TRYING || job->state == JOB_SHOWN) && !job->token &&
		    job->real.pid == pid && memcmp(&job->key, key, sizeof *key) == 0 &&
		    pidref_signal(&job->real, 0) != -ESRCH)
			return job;
	}
	return NULL;
}

int exec_dry_run_ask(struct exec_dry_runs *trials, const struct watch_exec *exec, uint64_t token,
		   struct verify_outcome *outcome,
		   uint32_t *ret_trial)
{
	cleanup_asked struct asked asked = { .path = NULL };
	const char *why = take_asked(trials, exec, &asked);
	struct hash key;
	struct job *job;

	*ret_trial = 0;
	if (why)
		return ask_untried(trials, exec, why, outcome);
	hash_asked(&asked, &key);
	job = find_waiting(trials, exec->pid, &key);
	if (!job) {
		job = new_job(trials, exec->exe, &why);
		if (!job)
			return ask_untried(trials, exec, why, outcome);
		job->key = key;
		/* The number of a thread is that of no process, once it has started the program. */
		if (pidref_open(&job->real, exec->pid) < 0) {
			free_job(job);
			return ask_untried(trials, exec, "a thread starts it", outcome);
		}
		if (begin_job(job, &asked) < 0) {
			free_job(job);
			return ask_untried(trials, exec, "the trial cannot be started", outcome);
		}
	}
	job->token = token;
	*ret_trial = job->id;
	if (job->state == JOB_TRYING)
		return 1;
	set_outcome(job, outcome);
	set_time(job, 0);
	return 0;
}

static struct job *find_awaited(struct exec_dry_runs *trials, uint64_t token)
{
	for (size_t i = 0; trials && token && i < EXEC_DRY_RUNS_MAX; i++)
		if (trials->jobs[i].state != JOB_FREE && trials->jobs[i].token == token)
			return &trials->jobs[i];
	return NULL;
}

void exec_dry_run_release(struct exec_dry_runs *trials, uint64_t token)
{
	struct job *job = find_awaited(trials, token);

	if (!job)
		return;
	job->token = 0;
	if (job->state != JOB_SHOWN)
		return;
	if (peer_is_there(&job->peer))
		set_time(job, EXEC_DRY_RUN_KEPT_MS);
	else
		end_job(job);
}

void exec_dry_run_forget(struct exec_dry_runs *trials, uint64_t token)
{
	struct job *job = find_awaited(trials, token);

	if (job)
		end_job(job);
}

bool exec_dry_run_find(struct exec_dry_runs *trials, uint64_t token, struct verify_outcome *outcome,
		       uint32_t *ret_trial)
{
	for (size_t i = 0; trials && token && i < EXEC_DRY_RUNS_MAX; i++) {
		struct job *job = &trials->jobs[i];

		if (job->state != JOB_SHOWN || job->token != token)
			continue;
		set_outcome(job, outcome);
		*ret_trial = job->id;
		return true;
	}
	return false;
}

/* ---- for real ---- */

static int ended(void *context, uint32_t events)
{
	struct job *job = context;
	struct exec_dry_runs *trials = job->trials;

	(void)events;
	loop_remove(trials->run->loop, &job->real_source);
	frame_begin(&trials->run->out, TRIAL_ENDED);
	job->state = JOB_COMPARING;
	set_time(job, EXEC_DRY_RUN_MS);
	if (frame_end(&trials->run->out) < 0 || peer_send(&job->peer, NULL, 0) < 0)
		peer_break(&job->peer, PEER_DEAF);
	return 0;
}

void exec_dry_run_decided(struct exec_dry_runs *trials, uint32_t trial, bool is_allowed)
{
	struct job *job = find_job(trials, trial);

	if (!job)
		return;
	job->token = 0;
	/* What could not be tried showed nothing that it could be held against. */
	if (!is_allowed || job->result == TRIAL_FAILED || !peer_is_there(&job->peer)) {
		end_job(job);
		return;
	}
	job->state = JOB_REAL;
	job->real_source = (struct loop_source){ .fd = job->real.fd, .events = EPOLLIN, .ready = ended,
						 .context = job };
	set_time(job, 0);
	if (loop_add(trials->run->loop, &job->real_source) < 0)
		end_job(job);
}

void exec_dry_run_done(struct exec_dry_runs *trials)
{
	for (size_t i = 0; trials && i < EXEC_DRY_RUNS_MAX; i++)
		if (trials->jobs[i].state != JOB_FREE) {
			/* It goes by itself when its socket ends, and takes the trial along. */
			peer_abandon(&trials->jobs[i].peer);
			free_job(&trials->jobs[i]);
		}
	free(trials);
}
