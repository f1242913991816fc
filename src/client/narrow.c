/* SPDX-License-Identifier: Apache-2.0 */
#include "client/narrow.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "approve/reviewer-start.h"
#include "base/str.h"
#include "client/narrow-case.h"
#include "client/secrets.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/path.h"
#include "policy/decide.h"
#include "supervise/peer-process.h"

extern char **environ;

enum { NS_PER_MS = 1000000, GRACE_MS = 2000, END_MS = 500, CASE_ID = 1, DIFFERENCE_MAX = 64 << 20 };

void narrowed_done(struct narrowed *narrowed)
{
	free(narrowed->text);
	narrowed->text = NULL;
}

/* ---- the verifier ---- */

struct conversation {
	struct narrowed *narrowed;
	struct buf scratch;
	struct pidref process;
	int fd, signal_fd;           /* owned */
	sigset_t mask;               /* as it was */
	bool is_answered;
};

static int on_proposal(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct conversation *with = context;
	const char *text, *reason;
	uint32_t id;
	int r = judge_proposal_get(frame, &id, &text, &reason);

	if (r < 0 || id != CASE_ID)
		return r < 0 ? r : -EPROTO;
	with->narrowed->text = text ? strdup(text) : NULL;
	if (text && !with->narrowed->text)
		return -ENOMEM;
	with->is_answered = true;
	return str_copy(with->narrowed->reason, sizeof with->narrowed->reason, reason);
}

static const struct frame_rule rules[] = {
	{ JUDGE_PROPOSAL, 1, FRAME_MESSAGE_MAX, 0, 0, on_proposal },
};

/* A signal that ends us must not leave what the verifier has started: its program kills that when the socket ends. */
static int hold_signals(struct conversation *with)
{
	static const int ending[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
		sigaddset(&set, ending[i]);
	if (sigprocmask(SIG_BLOCK, &set, &with->mask) < 0)
		return -errno;
	with->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	return with->signal_fd < 0 ? -errno : 0;
}

static void end(struct conversation *with)
{
	struct pollfd polled = { .fd = with->process.fd, .events = POLLIN };

	close_fd(&with->fd);
	if (polled.fd >= 0)
		(void)!poll(&polled, 1, END_MS);
	peer_end(&with->process);
	close_fd(&with->signal_fd);
	buf_done(&with->scratch);
	/* What has come meanwhile ends us now. */
	sigprocmask(SIG_SETMASK, &with->mask, NULL);
}

/* NULL: it has answered. Else why not. */
static const char *wait_for(struct conversation *with, uint64_t timeout_ms)
{
	uint64_t until_ns = clock_monotonic_ns() + (timeout_ms + GRACE_MS) * NS_PER_MS;

	while (!with->is_answered) {
		struct pollfd polled[] = { { .fd = with->fd, .events = POLLIN },
					   { .fd = with->signal_fd, .events = POLLIN } };
		uint64_t now_ns = clock_monotonic_ns();
		int left_ms = until_ns > now_ns ? (int)((until_ns - now_ns) / NS_PER_MS) + 1 : 0;

		if (poll(polled, ARRAY_SIZE(polled), left_ms) < 0 && errno != EINTR)
			return "the verifier cannot be waited for";
		if (polled[1].revents)
			return "a signal came";
		if (!left_ms)
			return "the verifier did not answer in time";
		if (!polled[0].revents)
			continue;
		if (frame_dispatch(with->fd, &with->scratch, 0, rules, ARRAY_SIZE(rules), with) <= 0)
			return "the program that asks the verifier has ended";
	}
	return NULL;
}

static const char *converse(struct conversation *with, const struct narrow_request *request,
			    const struct policy *policy, int secret_fd)
{
	struct reviewer_origin origin = { .init_path = request->init_path, .env = environ, .secret_fd = secret_fd };
	cleanup_buf struct buf text;

	buf_init(&text, JUDGE_CASE_MAX);
	narrow_case_put(&text, request, policy);
	if (buf_error(&text))
		return "the case is too long for the verifier";
	if ((getuid() == 0 && peer_uid_choose(&origin.uid) < 0) || hold_signals(with) < 0 ||
	    reviewer_start(&policy->external, &origin, &with->scratch, &with->fd, &with->process) < 0)
		return "the program that asks the verifier cannot be started";
	if (judge_narrow_put(&with->scratch, CASE_ID, buf_text(&text)) < 0 ||
	    frame_send(with->fd, &with->scratch, NULL, 0) < 0)
		return "the verifier takes nothing";
	return wait_for(with, policy->external.timeout_ms);
}

/*
 * The proposal in *narrowed; where there is none its text is NULL, and its reason says why. 1: atoll-secret has told
 * what is missing.
 */
static int propose(const struct narrow_request *request, const struct policy *policy, struct narrowed *narrowed,
		   struct err *err)
{
	struct conversation with = { .narrowed = narrowed, .process = PIDREF_NONE, .fd = FD_NONE,
				     .signal_fd = FD_NONE };
	cleanup_fd int secret_fd = FD_NONE;
	const char *why;
	int r = secrets_bring_verifier(policy, request->dirs, &secret_fd, err);

	if (r != 0)
		return r;
	sigprocmask(SIG_SETMASK, NULL, &with.mask);
	buf_init(&with.scratch, FRAME_MESSAGE_MAX);
	why = converse(&with, request, policy, secret_fd);
	end(&with);
	if (!why)
		return 0;
	free(narrowed->text);
	narrowed->text = NULL;
	return str_copy(narrowed->reason, sizeof narrowed->reason, why);
}

/* ---- what it comes to ---- */

static const char *find_program(const char *name, const char *cwd, char out[PATH_MAX])
{
	const char *path = getenv("PATH");
	char candidate[PATH_MAX];

	if (strchr(name, '/'))
		return path_join(candidate, sizeof candidate, cwd, name) == 0 &&
				       path_real(candidate, out, PATH_MAX) == 0 ? out : NULL;
	for (; path && *path; path += strcspn(path, ":"), path += *path == ':')
		if (str_format(candidate, sizeof candidate, "%.*s/%s", (int)strcspn(path, ":"), path, name) == 0 &&
		    access(candidate, X_OK) == 0)
			return path_real(candidate, out, PATH_MAX) == 0 ? out : NULL;
	return NULL;
}

static bool is_seen(const struct policy *policy, const char *path)
{
	size_t rule;

	return policy_classify(policy, path, &rule) > FILE_MASK;
}

/* A file in files.change, which no overlay can stage. NULL: there is none. */
static const char *find_single_file(const struct policy *after)
{
	for (size_t i = 0; i < after->files.plan_count; i++) {
		const struct file_plan_entry *entry = &after->files.plan[i];
		struct stat st;

		if (entry->class == FILE_STAGE && str_equal(after->files.rules[entry->rule].origin.file, "narrowing") &&
		    lstat(entry->path, &st) == 0 && !S_ISDIR(st.st_mode))
			return entry->path;
	}
	return NULL;
}

/* A proposal that leaves no run is none. NULL: it leaves one, as far as can be seen from here. */
static const char *find_fault(const struct narrow_request *request, const struct policy *before,
			      const struct policy *after, char out[NAME_MAX])
{
	char path[PATH_MAX], shown[ERR_QUOTE_SIZE];
	const char *program = request->argv[0] ? find_program(request->argv[0], request->dirs->cwd, path) : NULL;
	const char *file = find_single_file(after);
	struct action action = { .kind = ACTION_EXEC, .subject = program,
				 .argv = (const char *const *)request->argv };

	if (file && str_format(out, NAME_MAX, "files.change of its proposal has one file, %.150s, and only directories "
			       "can be staged", err_quote(shown, file)) == 0)
		return out;
	if (is_seen(before, request->dirs->cwd) && !is_seen(after, request->dirs->cwd))
		return "its proposal hides the directory that the command would start in";
	if (!program || policy_decide(before, &action).verdict == VERDICT_DENY ||
	    policy_decide(after, &action).verdict != VERDICT_DENY)
		return NULL;
	if (str_format(out, NAME_MAX, "its proposal denies the command itself, %.150s", err_quote(shown, program)) < 0)
		return "its proposal denies the command itself";
	return out;
}

/* There is no proposal that can be used: who asked for one has no run, but for `try`. */
static int give_up(const struct narrow_request *request, const char *why, struct narrowed *narrowed, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];
	cleanup_buf struct buf out;

	buf_init(&out, 1024);
	if (request->mode != NARROW_TRY) {
		err_set(err, ERR_POLICY, ECANCELED, "narrow", "the policy is not narrowed for the task: %s",
			err_quote(shown, why));
		err_hint(err, "nothing was run; --narrow=try would run with the whole policy, and --narrow=off never "
			      "narrows");
		return -ECANCELED;
	}
	narrowed->told.outcome = NARROW_FAILED;
	if (why != narrowed->reason && str_copy(narrowed->reason, sizeof narrowed->reason, why) < 0)
		narrowed->reason[0] = 0;
	buf_printf(&out, "atoll: the policy is not narrowed for the task: %s; the run has all of it\n",
		   err_quote(shown, why));
	if (request->notice && buf_error(&out) == 0)
		request->notice(buf_text(&out));
	return 0;
}

/* Whether a person, or the mode alone, takes it. 1: nothing runs. */
static int decide(const struct narrow_request *request, const char *difference, struct narrowed *narrowed,
		  struct err *err)
{
	const struct narrow_shown shown = {
		.task = request->task, .reason = narrowed->reason, .text = narrowed->text, .brief = difference,
		.whole = difference + strlen(difference) + 1,
	};
	enum narrow_answer answer;
	int r;

	narrowed->told.outcome = NARROW_TAKEN;
	if (request->mode != NARROW_ASK) {
		if (request->notice && request->prompt)
			request->prompt->show(&shown);
		return 0;
	}
	r = request->prompt->ask(&shown, &answer, err);
	narrowed->told.by_person = true;
	if (answer == NARROW_NO)
		narrowed->told.outcome = NARROW_DECLINED;
	return r < 0 ? r : answer == NARROW_QUIT;
}

/* A mode of `try` runs with what the policy gives; which is what compiled has still. */
static int apply(const struct narrow_request *request, const struct compiled_request *origin,
		 struct compiled *compiled, struct narrowed *narrowed, struct err *err)
{
	cleanup_compiled struct compiled narrow = { 0 };
	char memory[NAME_MAX];
	const char *why = NULL;
	cleanup_buf struct buf difference;
	int r;

	buf_init(&difference, DIFFERENCE_MAX);
	r = compiled_narrow(origin, narrowed->text, &narrow, &difference, err);
	if (r < 0)
		return r;
	if (r > 0)
		why = "what the verifier proposes is no narrowing of it";
	else if (!compiled_same_sources(compiled, &narrow))
		why = "its files changed meanwhile";
	else if (!difference.size)
		narrowed->told.outcome = NARROW_EMPTY;
	else
		why = find_fault(request, snapshot_policy(compiled->snapshot), snapshot_policy(narrow.snapshot),
				 memory);
	if (why)
		return give_up(request, why, narrowed, err);
	if (!difference.size)
		return 0;
	r = decide(request, buf_text(&difference), narrowed, err);
	if (r != 0 || narrowed->told.outcome != NARROW_TAKEN)
		return r;
	compiled_done(compiled);
	*compiled = narrow;
	narrow = (struct compiled){ 0 };
	return 0;
}

static void say_empty(const struct narrow_request *request)
{
	static const char note[] = "atoll: the verifier proposes nothing less for the task; the run has all of the "
				   "policy\n";

	if (request->notice)
		request->notice(note);
}

int narrow_run(const struct narrow_request *request, const struct compiled_request *origin, struct compiled *compiled,
	       struct narrowed *ret_narrowed, struct err *err)
{
	struct narrowed *narrowed = ret_narrowed;
	int r;

	*narrowed = (struct narrowed){ 0 };
	narrowed->told.reason = narrowed->reason;
	snapshot_hash(compiled->snapshot, &narrowed->told.from_hash);
	if (request->mode == NARROW_ASK && (!request->prompt || !request->prompt->can_ask())) {
		err_set(err, ERR_POLICY, ENOTTY, "narrow", "there is no terminal to ask a person on");
		err_hint(err, "--narrow=auto uses the verifier's proposal without asking; it can only take rights "
			      "away");
		return -ENOTTY;
	}
	r = propose(request, snapshot_policy(compiled->snapshot), narrowed, err);
	if (r != 0)
		return r;
	if (!narrowed->text)
		return give_up(request, narrowed->reason, narrowed, err);
	narrowed->told.text = narrowed->text;
	r = apply(request, origin, compiled, narrowed, err);
	if (r == 0 && narrowed->told.outcome == NARROW_EMPTY)
		say_empty(request);
	return r;
}
