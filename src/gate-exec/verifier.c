/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/verifier.h"

#include <fcntl.h>
#include <string.h>

#include "base/str.h"
#include "gate-exec/file.h"
#include "gate-exec/own-program.h"
#include "gate-exec/verifier-result.h"
#include "gate-exec/verifier-rules.h"
#include "os/clock.h"
#include "os/fd.h"
#include "supervise/peer.h"
#include "supervise/run.h"
#include "watch/watch.h"

/*
 * The box sends the words of a command, and the script itself where one is executed. Where the command is an
 * interpreter, atoll-verify says which of the words is a script; the box opens it as its caller would, in the caller's
 * root, and sends that. Neither side waits for the other: an exec that is judged stands in the table, and the loop
 * goes on.
 */

enum { NS_PER_MS = 1000000 };

/* Of arguments behind those that are kept: what a frame has room for beside them. */
enum { LEFT_OUT_SIZE_MAX = 48 << 10, LEFT_OUT_OVERHEAD = 8 };

struct verify_wait {
	uint32_t id;                 /* 0: free */
	uint64_t token, until_ns;
	pid_t pid;
	char *exe, **argv;           /* owned */
	bool is_cut;
};

struct verifier {
	struct run *run;
	struct verifier_owner owner;
	struct verifier_noted noted;
	struct own_program own;
	struct peer peer;            /* atoll-verify */
	uint64_t heard_ns;           /* when it last said something of use, or was asked while nobody else waited */
	uint64_t seen_ns;            /* when it was last looked what it has computed while somebody waits; 0: never */
	uint64_t computed_ns;        /* what it had computed then */
	const char *late;            /* why it was given up; NULL: it was not */
	uint32_t last_id;
	char *problem;               /* owned: what is wrong with the rules; NULL: nothing */
	struct verifier_rules rules;
	int made_fd;                 /* owned: where it writes what it makes of the rules; FD_NONE: it loads them */
	struct verify_wait waits[VERIFY_WAITING_MAX];
};

/* ---- who waits ---- */

/* The first time at which somebody has waited for too long, or at which it is to be looked whether it computes. */
static void expect(struct verifier *gate)
{
	uint64_t until_ns = UINT64_MAX, look_ns = gate->seen_ns + VERIFY_STILL_MS * (uint64_t)NS_PER_MS;

	for (size_t i = 0; i < VERIFY_WAITING_MAX; i++)
		if (gate->waits[i].id && gate->waits[i].until_ns < until_ns)
			until_ns = gate->waits[i].until_ns;
	if (until_ns == UINT64_MAX)
		gate->seen_ns = 0;
	peer_expect(&gate->peer, gate->seen_ns && look_ns < until_ns ? look_ns : until_ns);
}

static bool has_waits(const struct verifier *gate)
{
	for (size_t i = 0; i < VERIFY_WAITING_MAX; i++)
		if (gate->waits[i].id)
			return true;
	return false;
}

/* From here on it must compute. While it starts it may wait for files. */
static void look(struct verifier *gate, uint64_t now_ns)
{
	if (gate->peer.state != PEER_SERVING)
		return;
	gate->seen_ns = now_ns;
	gate->computed_ns = clock_computed_by_ns(gate->peer.process.pid);
}

static void free_wait(struct verifier *gate, struct verify_wait *wait)
{
	free(wait->exe);
	strv_free(wait->argv);
	*wait = (struct verify_wait){ .id = 0 };
	expect(gate);
}

static struct verify_wait *find_wait(struct verifier *gate, uint32_t id)
{
	for (size_t i = 0; id && i < VERIFY_WAITING_MAX; i++)
		if (gate->waits[i].id == id)
			return &gate->waits[i];
	return NULL;
}

/* Takes it from the table, and tells the exec gate. */
static int answer_wait(struct verifier *gate, struct verify_wait *wait, const struct verify_answer *answer,
		       const char *why)
{
	struct verify_outcome outcome = { .action = VERIFY_OFF };
	uint64_t token = wait->token;
	int r = answer ? verifier_conclude(gate->run, &gate->noted, wait->pid, wait->exe, answer, &outcome)
		       : verifier_conclude_unknown(gate->run, &gate->noted, wait->pid, wait->exe, why, &outcome);

	free_wait(gate, wait);
	return r < 0 ? r : gate->owner.done(gate->owner.context, token, &outcome);
}

static uint64_t patience_ns(const struct verifier *gate)
{
	return (gate->peer.state == PEER_STARTING ? VERIFY_START_MS : VERIFY_WAIT_MS) * (uint64_t)NS_PER_MS;
}

/* ---- what it says ---- */

static const char too_many[] = "too many commands wait to be judged";

/* What was loaded says nothing about which commands are worth judging: that stood with it. */
static int handle_ready(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct verifier *gate = context;
	const char *problem = frame_get_string(frame);
	bool is_loaded = gate->made_fd < 0;
	int r = 0;

	if (frame->error)
		return -EBADMSG;
	free(gate->problem);
	gate->problem = problem ? str_dup(problem) : NULL;
	/* Without memory for that it is of no use either. */
	if (problem && !gate->problem)
		return -EPROTO;
	if (is_loaded && problem)
		verifier_rules_drop(gate->run, &gate->rules);
	else if (!is_loaded && !problem)
		r = verifier_rules_learn(gate->run, &gate->rules, frame, take_fd(&gate->made_fd));
	close_fd(&gate->made_fd);
	peer_serves(&gate->peer);
	gate->heard_ns = clock_monotonic_ns();
	/* Its work on what waits begins now. */
	look(gate, gate->heard_ns);
	for (size_t i = 0; i < VERIFY_WAITING_MAX; i++)
		gate->waits[i].until_ns = gate->heard_ns + patience_ns(gate);
	expect(gate);
	return r < 0 ? -EPROTO : 0;
}

/*
 * The file as its caller would open it; FD_NONE and *ret_errnum where it cannot be looked at, or need not (ENOENT): it
 * is the agent's own program.
 */
static int open_script(const struct verifier *gate, pid_t pid, const char *path, int *ret_errnum)
{
	struct watch_exec as = { .pid = pid, .dir_fd = AT_FDCWD, .exe = path };
	struct exec_file file = EXEC_FILE_NONE;
	char link[32];
	int r = exec_file_open(&file, &as), fd = FD_NONE;

	if (r == 0 && own_program_is(&gate->own, &file.st))
		r = -ENOENT;
	if (r == 0)
		r = str_format(link, sizeof link, "/proc/self/fd/%d", file.fd);
	if (r == 0)
		r = fd = fd_open_at(AT_FDCWD, link, O_RDONLY | O_NONBLOCK, 0);
	exec_file_done(&file);
	*ret_errnum = r < 0 ? -r : 0;
	return fd < 0 ? FD_NONE : fd;
}

static int send_question(struct verifier *gate, const struct verify_wait *wait, const struct verify_question *about,
			 int fd)
{
	struct verify_question question = *about;
	int r;

	question.id = wait->id;
	question.argv = wait->argv;
	question.is_cut = wait->is_cut;
	r = verify_question_put(&gate->run->out, &question);
	return r < 0 ? r : peer_send(&gate->peer, &fd, fd >= 0);
}

/* Some shells look for a script that is not here where programs are: then nobody can tell which one it will be. */
static bool looks_elsewhere(const struct verify_wait *wait, const char *path)
{
	static const char *const shells[] = { "bash", "rbash", "zsh", "ksh", "ksh93", "mksh" };

	for (size_t i = 0; !strchr(path, '/') && i < ARRAY_SIZE(shells); i++)
		if (str_equal(path_basename(wait->argv[0]), shells[i]))
			return true;
	return false;
}

static int handle_wants(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct verifier *gate = context;
	struct verify_wait *wait = find_wait(gate, frame_get_u32(frame));
	const char *path = frame_get_string(frame);
	struct verify_question question = { .file = VERIFY_SCRIPT, .path = path };
	cleanup_fd int fd = FD_NONE;
	int errnum, r;

	if (frame_finish(frame) < 0 || !path)
		return -EBADMSG;
	gate->heard_ns = clock_monotonic_ns();
	/* Its caller may be gone meanwhile. */
	if (!wait)
		return 0;
	fd = open_script(gate, wait->pid, path, &errnum);
	/* What is not there, its interpreter will not find either. */
	if ((errnum == ENOENT || errnum == ENOTDIR) && !looks_elsewhere(wait, path))
		question.path = "";
	r = send_question(gate, wait, &question, fd);
	if (r == 0 || r == -EPIPE || r == -ECONNRESET)
		return r;
	/* It is busy, and has not failed. */
	return peer_fail(&gate->peer, answer_wait(gate, wait, NULL, too_many));
}

static int handle_judged(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct verifier *gate = context;
	struct verify_answer answer;
	struct verify_wait *wait;
	int r = verify_answer_get(frame, &answer);

	if (r < 0)
		return r;
	gate->heard_ns = clock_monotonic_ns();
	wait = find_wait(gate, answer.id);
	/* The log's failure must not look like nonsense that was said. */
	return wait ? peer_fail(&gate->peer, answer_wait(gate, wait, &answer, NULL)) : 0;
}

static const struct frame_rule messages[] = {
	{ VERIFY_READY, PEER_BIT(STARTING), FRAME_MESSAGE_MAX, 0, 0, handle_ready },
	{ VERIFY_WANTS, PEER_BIT(SERVING), 8192, 0, 0, handle_wants },
	{ VERIFY_JUDGED, PEER_BIT(SERVING), 64 << 10, 0, 0, handle_judged },
};

/* Whoever waits could not be judged. */
static int broke(void *context, enum peer_fault fault)
{
	struct verifier *gate = context;
	int r = 0;

	for (size_t i = 0; r == 0 && i < VERIFY_WAITING_MAX; i++)
		if (gate->waits[i].id)
			r = answer_wait(gate, &gate->waits[i], NULL,
					fault == PEER_LATE && gate->late ? gate->late
									 : "the check of commands has failed");
	gate->late = NULL;
	return r;
}

static bool is_to_be_seen(const struct verifier *gate, uint64_t now_ns)
{
	return gate->seen_ns && gate->peer.state == PEER_SERVING &&
	       now_ns - gate->seen_ns >= VERIFY_STILL_MS * (uint64_t)NS_PER_MS;
}

/* What is wrong with it, while somebody waits; NULL: it works, or has not had its time yet. */
static const char *why_late(struct verifier *gate, uint64_t now_ns)
{
	if (now_ns - gate->heard_ns >= patience_ns(gate))
		return gate->peer.state == PEER_STARTING ? "the check of commands took too long to start"
							 : "the check of commands took too long";
	if (is_to_be_seen(gate, now_ns) &&
	    clock_computed_by_ns(gate->peer.process.pid) == gate->computed_ns)
		return "the check of commands does not answer";
	return NULL;
}

/*
 * It takes part in no work, or nothing came from it for as long as one command may take: it hangs. Else it works, and
 * what waits is only too much for it, or for the machine.
 */
static int late(void *context, uint64_t now_ns)
{
	struct verifier *gate = context;
	int r = 0;

	gate->late = why_late(gate, now_ns);
	if (gate->late) {
		peer_break(&gate->peer, PEER_LATE);
		return 0;
	}
	if (is_to_be_seen(gate, now_ns))
		look(gate, now_ns);
	for (size_t i = 0; r == 0 && i < VERIFY_WAITING_MAX; i++)
		if (gate->waits[i].id && now_ns >= gate->waits[i].until_ns)
			r = answer_wait(gate, &gate->waits[i], NULL, too_many);
	expect(gate);
	return r;
}

/* ---- its life ---- */

static const struct peer_kind kind = {
	.program = "atoll-verify", .user = PEER_VERIFY, .rules = messages, .rule_count = ARRAY_SIZE(messages),
	.must_greet = true, .broke = broke, .late = late,
};

/* Its first message: what was made of the rules before, or the files, and a place for what is made of them. */
static int greet(struct verifier *gate, int files_fd)
{
	int fds[] = { files_fd, gate->made_fd };
	bool is_load = files_fd < 0;

	if (is_load) {
		frame_begin(&gate->run->out, VERIFY_LOAD);
		frame_put_u64(&gate->run->out, gate->rules.offset);
		fds[0] = gate->rules.compiled_fd;
	} else {
		frame_begin(&gate->run->out, VERIFY_START);
	}
	return peer_greet(&gate->peer, frame_end(&gate->run->out), fds, is_load ? 1 : 2);
}

static int start(struct verifier *gate)
{
	char *argv[] = { (char *)"atoll-verify", (char *)"--served", NULL };
	cleanup_fd int files_fd = FD_NONE;
	int r = 0;

	close_fd(&gate->made_fd);
	if (gate->rules.compiled_fd < 0) {
		r = verifier_rules_gather(gate->run, &gate->rules, &files_fd);
		if (r == 0)
			r = gate->made_fd = fd_memfd_new("atoll-compiled");
	}
	if (r >= 0)
		r = peer_start(&gate->peer, &(struct peer_spec){ .argv = argv });
	return r < 0 ? r : greet(gate, files_fd);
}

int verifier_prepare(struct verifier **ret_gate, struct run *run, const struct verifier_owner *owner)
{
	struct verifier *gate;

	if (!policy_verifies(run->policy->policy))
		return 0;
	gate = calloc(1, sizeof *gate);
	if (!gate)
		return -ENOMEM;
	gate->run = run;
	gate->owner = *owner;
	gate->made_fd = FD_NONE;
	peer_init(&gate->peer, run, &kind, VERIFY_FALLS_MAX, gate);
	gate->rules = VERIFIER_RULES_NONE;
	gate->own = own_program_find(run);
	/* Nothing was kept: what judges commands is started by the first one, whatever it is, and parses. */
	(void)!verifier_rules_find(run, &gate->rules);
	*ret_gate = gate;
	return 0;
}

const struct verifier_noted *verifier_noted(const struct verifier *gate)
{
	return gate ? &gate->noted : NULL;
}

static bool is_worth(const struct verifier_rules *of, const char *path)
{
	return *path && (verifier_rules_name(of, path) || verifier_rules_word(of, path));
}

static bool has_word(const struct verifier_rules *of, const char *const *argv)
{
	for (size_t i = 0; argv[i]; i++)
		if (verifier_rules_word(of, argv[i]))
			return true;
	return false;
}

/* Among the arguments that are beyond what is kept of an exec. What cannot be looked at is judged, which says so. */
static bool may_have_word(const struct verifier_rules *of, const struct watch_exec *exec)
{
	char **left_out;
	bool found;

	if (watch_exec_left_out(exec, &left_out) < 0)
		return true;
	found = has_word(of, (const char *const *)left_out);
	strv_free(left_out);
	return found;
}

/*
 * What it is to be judged as: the name that it was called by, or the one that its links lead to. NULL: it is not worth
 * it. While nobody has said which commands are, all are.
 */
static const char *name_to_judge(const struct verifier *gate, const struct watch_exec *exec, const char *path)
{
	const struct verifier_rules *of = &gate->rules;

	if (!of->is_known || gate->problem || is_worth(of, exec->exe))
		return exec->exe;
	if (is_worth(of, path))
		return path;
	if (exec->argv[0] && verifier_rules_name(of, exec->argv[0]))
		return exec->exe;
	return has_word(of, exec->argv) || (exec->argv_left_out && may_have_word(of, exec)) ? exec->exe : NULL;
}

/*
 * What is executed, where it is a script; else *ret_fd is FD_NONE. A text without a first line that names what
 * interprets it is one as well: the kernel refuses it, and the shell that hears so runs it itself, without an exec.
 * -ENOENT, -ENOTDIR, -EACCES: the exec fails so, as those do with which a shell looks for a program in one directory
 * after the other; another error: nobody can tell what it is.
 */
static int open_executed(const struct verifier *gate, const struct watch_exec *exec, char path[PATH_MAX], int *ret_fd)
{
	struct exec_file file = EXEC_FILE_NONE;
	int r = exec_file_open(&file, exec);
	char link[32];
	bool is_script;

	*ret_fd = FD_NONE;
	is_script = r == 0 && (file.line[0] || file.is_text) && !own_program_is(&gate->own, &file.st);
	if (is_script)
		r = str_format(link, sizeof link, "/proc/self/fd/%d", file.fd);
	if (r == 0 && is_script)
		r = *ret_fd = fd_open_at(AT_FDCWD, link, O_RDONLY | O_NONBLOCK, 0);
	(void)!str_copy(path, PATH_MAX, r >= 0 ? file.path : "");
	exec_file_done(&file);
	return r < 0 ? r : 0;
}

/*
 * What rules may find behind what is kept of an exec. That it was more than is kept is told all the same: nobody
 * compares it once more when the program is there.
 */
static void add_left_out(struct verify_wait *wait, const struct watch_exec *exec)
{
	size_t count = strv_count((const char *const *)wait->argv), size = 0, at;
	char **left_out, **all;

	if (watch_exec_left_out(exec, &left_out) < 0)
		return;
	all = realloc(wait->argv, (count + strv_count((const char *const *)left_out) + 1) * sizeof *all);
	if (!all) {
		strv_free(left_out);
		return;
	}
	wait->argv = all;
	/* The first is the last that is there, as a whole; the program's own name is what is executed. */
	for (at = 0; left_out[at]; at++) {
		size += strlen(left_out[at]) + LEFT_OUT_OVERHEAD;
		if (size > LEFT_OUT_SIZE_MAX || (at == 0 && count < 2)) {
			free(left_out[at]);
			continue;
		}
		if (at == 0)
			free(all[--count]);
		all[count++] = left_out[at];
	}
	all[count] = NULL;
	free(left_out);
}

static struct verify_wait *add_wait(struct verifier *gate, const struct watch_exec *exec, const char *name,
				    uint64_t token)
{
	size_t count = strv_count(exec->argv), at = 0;
	uint64_t now_ns = clock_monotonic_ns();
	struct verify_wait *wait;

	while (at < VERIFY_WAITING_MAX && gate->waits[at].id)
		at++;
	if (at == VERIFY_WAITING_MAX)
		return NULL;
	if (!has_waits(gate)) {
		gate->heard_ns = now_ns;
		look(gate, now_ns);
	}
	wait = &gate->waits[at];
	if (!++gate->last_id)
		gate->last_id = 1;
	*wait = (struct verify_wait){
		.id = gate->last_id, .token = token, .pid = exec->pid, .exe = str_dup(exec->exe),
		.argv = calloc(count + 2, sizeof(char *)), .is_cut = exec->argv_left_out > 0,
		.until_ns = now_ns + patience_ns(gate),
	};
	/* The program is what is executed, whatever it is told that it is called; busybox goes by its name. */
	for (size_t i = 0; wait->argv && i < count; i++)
		wait->argv[i] = str_dup(i || str_equal(path_basename(name), "busybox") ? exec->argv[i] : name);
	if (wait->argv && !count)
		wait->argv[0] = str_dup(name);
	if (wait->exe && wait->argv && strv_count((const char *const *)wait->argv) >= (count ? count : 1)) {
		if (wait->is_cut)
			add_left_out(wait, exec);
		expect(gate);
		return wait;
	}
	free_wait(gate, wait);
	return NULL;
}

int verifier_ask(struct verifier *gate, const struct watch_exec *exec, uint64_t token,
		    struct verify_outcome *ret_outcome,
		    int *ret_errnum)
{
	cleanup_fd int fd = FD_NONE;
	struct verify_question question = { .file = VERIFY_PROGRAM };
	struct verify_wait *wait;
	char path[PATH_MAX];
	const char *name;
	int r;

	*ret_outcome = (struct verify_outcome){ .action = VERIFY_OFF };
	*ret_errnum = 0;
	r = open_executed(gate, exec, path, &fd);
	if (r == -ENOENT || r == -ENOTDIR || r == -EACCES) {
		*ret_errnum = -r;
		return 0;
	}
	if (r < 0)
		return verifier_conclude_unknown(gate->run, &gate->noted, exec->pid, exec->exe,
					"it is not known what is executed, because it cannot be read", ret_outcome);
	name = name_to_judge(gate, exec, path);
	if (fd < 0 && !name)
		return 0;
	r = peer_is_there(&gate->peer) ? 0 : start(gate);
	if (r < 0)
		return verifier_conclude_unknown(gate->run, &gate->noted, exec->pid, exec->exe,
					r == -ENOENT ? "there are no rules, or atoll-verify is missing"
						     : "the check of commands cannot be started", ret_outcome);
	wait = add_wait(gate, exec, name ? name : exec->exe, token);
	if (!wait)
		return verifier_conclude_unknown(gate->run, &gate->noted, exec->pid, exec->exe, too_many, ret_outcome);
	question.path = path;
	if (fd < 0)
		question.file = VERIFY_NO_FILE;
	r = send_question(gate, wait, &question, fd);
	if (r == 0)
		return 1;
	free_wait(gate, wait);
	return verifier_conclude_unknown(gate->run, &gate->noted, exec->pid, exec->exe,
				       "the check of commands cannot be reached",
				       ret_outcome);
}

void verifier_forget(struct verifier *gate, uint64_t token)
{
	for (size_t i = 0; gate && i < VERIFY_WAITING_MAX; i++)
		if (gate->waits[i].id && gate->waits[i].token == token)
			free_wait(gate, &gate->waits[i]);
}

void verifier_close(struct verifier *gate)
{
	if (gate)
		peer_retire(&gate->peer, false);
}

void verifier_free(struct verifier *gate)
{
	if (!gate)
		return;
	for (size_t i = 0; i < VERIFY_WAITING_MAX; i++)
		if (gate->waits[i].id)
			free_wait(gate, &gate->waits[i]);
	peer_retire(&gate->peer, false);
	close_fd(&gate->made_fd);
	verifier_rules_done(&gate->rules);
	free(gate->problem);
	free(gate);
}
