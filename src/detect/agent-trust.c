/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/agent-trust.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>

#include "audit/writer.h"
#include "base/str.h"
#include "os/fd.h"
#include "session/record.h"
#include "supervise/freeze.h"
#include "supervise/run.h"

enum {
	NS_PER_MS = 1000000,
	NOTE_PATIENCE_MS = 10,       /* for the record, where something inside waits for us; */
	RETRY_MS = 20,               /* then it is tried again so often, */
	WAITING_MAX_MS = 5000,       /* and what could not be written for so long ends the sandbox */
};

/*
 * Twenty refusals within ten seconds, and what is refused in the ten behind them belongs to the same burst; a policy
 * with `time.cooldown` says itself what a burst is.
 */
static const struct cooldown_rule usual_burst = { .denials = 20, .within_ms = 10000, .pause_ms = 10000 };

static struct trust_home place_of(const struct agent_trust *agent)
{
	return (struct trust_home){ agent->run->request->state_dir, agent->run->request->runtime_dir };
}

enum trust_level agent_trust_level(const struct agent_trust *agent)
{
	return agent->agent ? agent->level : agent->run->policy->policy->level;
}

static int fail(struct agent_trust *agent, int r)
{
	err_set(agent->run->err, ERR_STATE, -r, "trust", "the record of agent %s cannot be written (%s)",
		agent->agent, err_errno_name(-r));
	err_hint(agent->run->err, r == -ENOSPC || r == -EDQUOT ? "free some space below %s, or run without an agent"
			   : r == -EBUSY ? "another process has locked it in %s; end that process, or run without an "
					   "agent"
					 : "see whether %s can be written, or run without an agent",
		 agent->run->request->state_dir);
	return r;
}

bool agent_trust_put_blame(const struct run_agent *agent, struct buf *out)
{
	const char *level;

	if (!agent || !agent->agent || agent->level >= agent->bounds.policy)
		return false;
	level = trust_level_names[agent->bounds.policy];
	buf_printf(out, "agent %s is trusted with %s only, which may be why (atoll trust %s); back to %s: "
			"atoll trust %s --raise %s --reason TEXT",
		   agent->agent, trust_level_names[agent->level], agent->agent, level, agent->agent, level);
	return true;
}

void agent_trust_blame(const struct run_agent *agent, struct err *err)
{
	char before[ERR_HINT_SIZE], blame[ERR_HINT_SIZE];
	struct buf out;

	buf_init_fixed(&out, blame, sizeof blame);
	if (err->code == ERR_NONE || !agent_trust_put_blame(agent, &out))
		return;
	memcpy(before, err->hint, sizeof before);
	err_hint(err, "%s%s%s", before, *before ? "; " : "", buf_text(&out));
}

/* ---- the log ---- */

struct change_context {
	const struct agent_trust *agent;
	const char *event, *cause;
	const struct trust_book *book; /* that entry is of */
	const struct trust_entry *entry; /* NULL: the record is not usable, or somebody else wrote in it */
	enum trust_level from, to;   /* what the session has */
};

static void change_detail(struct json *json, const void *context)
{
	const struct change_context *change = context;
	const struct trust_entry *entry = change->entry;

	json_string(json, "event", change->event);
	if (change->cause)
		json_bytes(json, "cause", change->cause, strlen(change->cause));
	json_string(json, "from", trust_level_names[change->from]);
	json_string(json, "to", trust_level_names[change->to]);
	if (change->to < change->from)
		json_string(json, "on_fall", trust_on_fall_names[change->agent->run->policy->policy->trust.on_fall]);
	if (!entry)
		return;
	json_object_begin(json, "record");
	json_u64(json, "number", entry->seq);
	json_string(json, "from", trust_level_names[entry->before]);
	json_string(json, "to", trust_level_names[entry->after]);
	json_string(json, "granted", trust_level_names[entry->granted]);
	json_fixed(json, "strain", trust_entry_strain(change->book, entry));
	json_u64(json, "clean", entry->clean);
	json_object_end(json);
}

static int log_change(struct agent_trust *agent, const struct change_context *change)
{
	struct audit_event event = {
		.type = AUDIT_TRUST_CHANGE,
		.subject = agent->agent,
		.subject_size = strlen(agent->agent),
		.write_detail = change_detail,
		.context = change,
	};

	return audit_write(agent->run->audit, &event);
}

/* ---- the level of the session ---- */

static enum trust_level session_level(const struct agent_trust *agent, const struct trust_book *book)
{
	const struct trust_settings *settings = &agent->run->policy->policy->trust;
	struct trust_bounds bounds = agent->run->request->agent->bounds;
	struct trust_state state = trust_book_state(book);

	/* What is not usable is helped by nobody's loan. */
	if (agent->is_lent_over || book->fault != TRUST_FINE)
		bounds.lent = TRUST_NONE;
	return trust_effective(settings, trust_level_of(&state, settings), &bounds);
}

static void set_cause(struct agent_trust *agent, const char *words, const char *cause)
{
	struct buf out;

	buf_init_fixed(&out, agent->cause, sizeof agent->cause);
	buf_put_text(&out, words);
	if (cause && *cause) {
		buf_put_text(&out, ": ");
		buf_put_escaped(&out, cause, strlen(cause), sizeof agent->cause - out.size - 8);
	}
	(void)buf_text(&out);
}

static void move_to(struct agent_trust *agent, enum trust_level level, const char *words, const char *cause)
{
	if (level < agent->level) {
		set_cause(agent, words, cause);
		agent->fell_to = level;
	}
	agent->must_react |= level != agent->level;
	agent->level = level;
}

/* What the record says by itself: another session, a person, or damage. */
static int take_over(struct agent_trust *agent, const struct trust_book *book)
{
	struct change_context change = { .agent = agent, .event = "elsewhere", .from = agent->level,
					 .to = session_level(agent, book) };
	const char *words = "another session of the agent, or a person, lowered it";
	int r;

	if (book->fault != TRUST_FINE) {
		change.event = "record-unusable";
		words = change.cause = trust_fault_texts[book->fault];
	}
	if (change.from == change.to && book->fault == agent->fault)
		return 0;
	agent->fault = book->fault;
	r = log_change(agent, &change);
	if (r == 0)
		move_to(agent, change.to, words, NULL);
	return r;
}

/* ---- entries ---- */

/* The log first, then the record; both are there when it returns. */
static int add_entry(struct agent_trust *agent, struct trust_book *book, const struct trust_news *news)
{
	const struct trust_rule *rule = &trust_rules[news->event];
	struct change_context change = { .agent = agent, .event = rule->name, .cause = news->cause,
					 .from = agent->level };
	const struct trust_entry *entry = trust_book_add(book, news);

	if (!entry)
		return -ENOMEM;
	change.book = book;
	change.entry = entry;
	/* What was lent ends with the first thing that speaks against it. */
	agent->is_lent_over |= rule->is_bad && !(news->event == TRUST_KILLED);
	change.to = agent->has_begun ? session_level(agent, book) : agent->level;
	if (news->event == TRUST_CLEAN || news->event == TRUST_ENDED)
		change.to = change.from; /* it is over: what it earned is for the next one */
	move_to(agent, change.to, rule->words, news->cause);
	return log_change(agent, &change);
}

/* Forgets that something was written in the directory of records. */
static void drain(struct agent_trust *agent)
{
	char buffer[4096] __attribute__((aligned(8)));

	while (agent->watch_fd >= 0 && read(agent->watch_fd, buffer, sizeof buffer) > 0)
		continue;
}

static int write_book(struct agent_trust *agent, const struct trust_book *book, bool is_durable)
{
	struct trust_home place = place_of(agent);
	int r = audit_flush(agent->run->audit);

	if (r < 0)
		return r;
	r = trust_book_write(&place, book, is_durable);
	/* Nobody else could write meanwhile, and what was written before has been read: it is news to nobody here. */
	drain(agent);
	return r < 0 ? fail(agent, r) : 0;
}

/* -EBUSY: somebody else holds it for longer; another error is told. */
static int lock_book(struct agent_trust *agent, unsigned patience_ms, struct trust_book *book)
{
	struct trust_home place = place_of(agent);
	int r = trust_book_lock(&place, agent->agent, patience_ms, book);

	if (r < 0)
		return r == -EBUSY ? r : fail(agent, r);
	if (book->fault == TRUST_FINE)
		book->settings = agent->run->policy->policy->trust;
	return 0;
}

/* For who can wait. */
static int lock_book_patiently(struct agent_trust *agent, struct trust_book *book)
{
	int r = lock_book(agent, TRUST_LOCK_MS, book);

	return r == -EBUSY ? fail(agent, r) : r;
}

/* ---- what was seen ---- */

static int add_news(struct agent_trust *agent, struct trust_book *book, enum trust_event event, const char *cause)
{
	return add_entry(agent, book, &(struct trust_news){ event, TRUST_NONE, agent->run->request->session,
							       cause,
							  clock_realtime_ns() });
}

static int keep_waiting(struct agent_trust *agent, enum trust_event event, const char *cause)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct agent_trust_news *news;

	if (!agent->waiting)
		agent->waiting = calloc(AGENT_TRUST_NEWS_MAX, sizeof *agent->waiting);
	if (!agent->waiting)
		return fail(agent, -ENOMEM);
	if (!agent->waiting_count)
		agent->waiting_since_ns = now_ns;
	news = &agent->waiting[agent->waiting_count++];
	*news = (struct agent_trust_news){ .event = event };
	memcpy(news->cause, cause, strnlen(cause, sizeof news->cause - 1));
	agent->retry_ns = now_ns + RETRY_MS * (uint64_t)NS_PER_MS;
	return 0;
}

/* In the order in which they were seen. */
static int add_waiting(struct agent_trust *agent, struct trust_book *book)
{
	size_t count = agent->waiting_count;
	int r = 0;

	agent->waiting_count = 0;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_news(agent, book, agent->waiting[i].event, agent->waiting[i].cause);
	return r;
}

/* Who holds the record does so for a write: one that is stopped meanwhile is waited for, and not for ever. */
static int retry(struct agent_trust *agent, uint64_t now_ns)
{
	cleanup_trust_book struct trust_book book = { .lock_fd = FD_NONE };
	enum trust_level before = agent->level;
	int r;

	if (!agent->waiting_count || now_ns < agent->retry_ns)
		return 0;
	r = lock_book(agent, 0, &book);
	if (r == -EBUSY && now_ns - agent->waiting_since_ns > WAITING_MAX_MS * (uint64_t)NS_PER_MS)
		return fail(agent, r);
	agent->retry_ns = now_ns + RETRY_MS * (uint64_t)NS_PER_MS;
	if (r < 0)
		return r == -EBUSY ? 0 : r;
	if (book.fault != TRUST_FINE) {
		agent->waiting_count = 0;
		return take_over(agent, &book);
	}
	r = add_waiting(agent, &book);
	return r < 0 ? r : write_book(agent, &book, agent->level < before);
}

static int agent_trust_timeout_ms(const void *context, uint64_t now_ns)
{
	const struct agent_trust *agent = context;

	if (!agent->waiting_count)
		return -1;
	return agent->retry_ns > now_ns ? (int)((agent->retry_ns - now_ns) / NS_PER_MS) + 1 : 0;
}

/* Many small things, which fade, must not use up the room of the one that does not. */
static bool is_worth_noting(const struct agent_trust *agent, enum trust_event event)
{
	return agent->events < AGENT_TRUST_EVENTS_MAX || (trust_rules[event].is_lasting && !agent->has_lasting);
}

int agent_trust_note(struct agent_trust *agent, enum trust_event event, const char *cause)
{
	cleanup_trust_book struct trust_book book = { .lock_fd = FD_NONE };
	enum trust_level before = agent->level;
	int r;

	if (!agent->agent || !agent->has_begun || !trust_rules[event].is_bad)
		return 0;
	agent->was_bad = true;
	if (agent->fault != TRUST_FINE || !is_worth_noting(agent, event))
		return 0;
	agent->events++;
	agent->has_lasting |= trust_rules[event].is_lasting;
	/* Callers inside wait for us: not for somebody else's disk. */
	r = agent->waiting_count ? -EBUSY : lock_book(agent, NOTE_PATIENCE_MS, &book);
	if (r == -EBUSY)
		return keep_waiting(agent, event, cause ? cause : "");
	if (r < 0)
		return r;
	if (book.fault != TRUST_FINE)
		return take_over(agent, &book);
	r = add_news(agent, &book, event, cause);
	return r < 0 ? r : write_book(agent, &book, agent->level < before);
}

static int on_refused(struct agent_trust *agent)
{
	const struct cooldown_rule *own = &agent->run->policy->policy->cooldown, *rule = own->denials ? own
		: &usual_burst;
	char cause[64];

	if (!cooldown_count(&agent->burst, rule, clock_monotonic_ns()))
		return 0;
	if (str_format(cause, sizeof cause, "%llu refusals within %llu s", (unsigned long long)rule->denials,
		       (unsigned long long)rule->within_ms / 1000) < 0)
		cause[0] = 0;
	return agent_trust_note(agent, TRUST_DENIALS, cause);
}

static int note(void *context, enum event_type type, const void *detail)
{
	if (type == EVENT_REFUSED)
		return on_refused(context);
	if (type == EVENT_VERIFIER_REFUSED)
		return agent_trust_note(context, TRUST_VERIFIER, detail);
	/* A pause after refusals is not a limit but a burst, which is counted as such. */
	return str_has_suffix(detail, "cooldown") ? 0 : agent_trust_note(context, TRUST_LIMIT, detail);
}

/* ---- the session's two ends ---- */

static bool is_running(const struct agent_trust *agent, const char *session)
{
	cleanup_session_record struct session_record record = { 0 };

	return str_equal(session, agent->run->request->session) ||
	       session_load_live(agent->run->request->state_dir, session, &record) != -ENOENT;
}

/* Sessions whose box was killed could not say so themselves. */
static int add_killed(struct agent_trust *agent, struct trust_book *book)
{
	char sessions[TRUST_OPEN_MAX][SESSION_ID_SIZE];
	size_t count = trust_book_open(book, sessions);
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		if (!is_running(agent, sessions[i]))
			r = add_entry(agent, book, &(struct trust_news){ TRUST_KILLED, TRUST_NONE, sessions[i], NULL,
								       clock_realtime_ns() });
	return r;
}

static int add_begin(struct agent_trust *agent, struct trust_book *book)
{
	const struct run_agent *given = agent->run->request->agent;
	struct trust_news news = { TRUST_BEGUN, TRUST_NONE, agent->run->request->session, NULL,
				   clock_realtime_ns() };
	int r = add_killed(agent, book);

	if (r == 0 && given->lent_by)
		r = add_entry(agent, book,
			      &(struct trust_news){ TRUST_LENT, given->bounds.lent, agent->run->request->session,
						    given->lent_by, news.now_ns });
	if (r < 0)
		return r;
	/* Since `atoll run` looked, the record may have moved: down it counts, up it waits for the next run. */
	agent->has_begun = true;
	return add_entry(agent, book, &news);
}

static int changed(void *context, uint32_t events)
{
	cleanup_trust_book struct trust_book book = { .lock_fd = FD_NONE };
	struct agent_trust *agent = context;
	struct trust_home place = place_of(agent);
	int r;

	/* Whose record it was is not looked at: ours is read again, and is mostly the same. */
	drain(agent);
	r = trust_book_read(&place, agent->agent, &book);
	if (r < 0)
		return fail(agent, r);
	return take_over(agent, &book);
}

static int watch_record(struct agent_trust *agent)
{
	struct trust_home place = place_of(agent);
	char path[4096];
	int r = trust_directory(&place, path, sizeof path);

	if (r < 0)
		return r;
	agent->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (agent->watch_fd < 0 || inotify_add_watch(agent->watch_fd, path, IN_MOVED_TO | IN_DELETE) < 0)
		return -errno;
	agent->source = (struct loop_source){
		.fd = agent->watch_fd, .events = EPOLLIN, .ready = changed, .context = agent,
	};
	return loop_add(agent->run->loop, &agent->source);
}

int agent_trust_begin(struct agent_trust *agent)
{
	cleanup_trust_book struct trust_book book = { .lock_fd = FD_NONE };
	const struct run_agent *given = agent->run->request->agent;
	int r;

	if (!given || !given->agent)
		return 0;
	agent->agent = given->agent;
	agent->level = given->level;
	agent->subscriber = (struct subscriber){
		1 << EVENT_REFUSED | 1 << EVENT_VERIFIER_REFUSED | 1 << EVENT_LIMIT, note, agent, NULL,
	};
	hub_subscribe(agent->run->hub, &agent->subscriber);
	r = lock_book_patiently(agent, &book);
	if (r < 0)
		return r;
	if (book.fault != TRUST_FINE) {
		agent->has_begun = true;
		return take_over(agent, &book);
	}
	r = add_begin(agent, &book);
	/* More than the policy was compiled for is not to be had now. */
	if (agent->level > given->level) {
		agent->level = given->level;
		agent->must_react = false;
	}
	if (r == 0)
		r = write_book(agent, &book, false);
	if (r == 0)
		r = watch_record(agent);
	return r;
}

int agent_trust_end(struct agent_trust *agent, bool has_failed)
{
	cleanup_trust_book struct trust_book book = { .lock_fd = FD_NONE };
	bool is_clean = agent->run->ended == ENDED_EXIT && !agent->was_bad && !has_failed;
	int r;

	if (!agent->agent || !agent->has_begun || agent->fault != TRUST_FINE)
		return 0;
	r = lock_book_patiently(agent, &book);
	if (r < 0)
		return r;
	if (book.fault != TRUST_FINE)
		return take_over(agent, &book);
	r = add_waiting(agent, &book);
	if (r < 0)
		return r;
	r = add_entry(agent, &book,
		      &(struct trust_news){ is_clean ? TRUST_CLEAN : TRUST_ENDED, TRUST_NONE,
					    agent->run->request->session,
					    is_clean ? NULL : ended_names[agent->run->ended], clock_realtime_ns() });
	return r < 0 ? r : write_book(agent, &book, false);
}

static void agent_trust_done(void *context)
{
	struct agent_trust *agent = context;

	if (!agent->agent)
		return;
	loop_remove(agent->run->loop, &agent->source);
	close_fd(&agent->watch_fd);
	free(agent->waiting);
	agent->waiting = NULL;
	agent->waiting_count = 0;
}

/* ---- what a fall does ---- */

/* The fall stands in the log already. */
static const struct freeze_holder fall_freeze = { .yields_to_signal = true };

bool agent_trust_holds_still(const struct agent_trust *agent)
{
	return freeze_is_held_by(agent->run->freeze, &fall_freeze);
}

static int thaw(struct agent_trust *agent)
{
	return agent_trust_holds_still(agent) ? freeze_end(agent->run->freeze) : 0;
}

static int react_to_fall(struct agent_trust *agent)
{
	enum trust_on_fall on_fall = agent->run->policy->policy->trust.on_fall;
	int r = 0;

	if (on_fall == TRUST_FALL_ASK || on_fall == TRUST_FALL_TIGHTEN) {
		r = agent_trust_narrow(agent, agent->level, on_fall == TRUST_FALL_ASK);
		agent->is_narrowed |= r == 0;
		agent->must_react = r == -EBUSY || r == -EAGAIN;
		/* A sandbox that should have less and cannot get it runs no further. */
		agent->is_frozen |= r < 0 && !agent->must_react;
		r = 0;
	}
	if (on_fall == TRUST_FALL_FREEZE)
		agent->is_frozen = true;
	return r;
}

/* A person has raised it again. */
static int react_to_rise(struct agent_trust *agent)
{
	int r = 0;

	agent->is_frozen = false;
	if (agent->is_narrowed) {
		r = agent_trust_widen(agent);
		agent->must_react = r == -EBUSY || r == -EAGAIN;
		agent->is_narrowed = r < 0;
	}
	return thaw(agent);
}

/* Whoever waits for the command must know why it says nothing any more. */
static void tell_terminal(const struct agent_trust *agent)
{
	const char *name = agent->agent, *session = agent->run->request->session;
	char memory[512];
	struct buf out;

	if (agent->run->request->flags & (REQUEST_QUIET | REQUEST_DETACH))
		return;
	buf_init_fixed(&out, memory, sizeof memory);
	buf_printf(&out, "\natoll: %s: agent %s fell to %s (%s), and everything stands still; "
			 "`atoll trust %s --raise …` lets it go on, `atoll stop %s` ends it\n",
		   session, name, trust_level_names[agent->level], agent->cause, name, session);
	run_request_tell(agent->run->request, &out);
}

static int hold_still(struct agent_trust *agent)
{
	int r;

	if (!agent->is_frozen || freeze_is_on(agent->run->freeze) || agent->run->ended != ENDED_NOT ||
	    agent->run->is_stopping)
		return 0;
	r = freeze_begin_soon(agent->run->freeze, &fall_freeze, "trust", UINT64_MAX);
	if (r == 0)
		tell_terminal(agent);
	return r == -EBUSY || r == -ETIMEDOUT || r == -ESHUTDOWN ? 0 : r;
}

static int agent_trust_check(void *context, uint64_t now_ns)
{
	struct agent_trust *agent = context;
	int r;

	if (!agent->agent)
		return 0;
	r = retry(agent, now_ns);
	if (r == 0 && agent->must_react) {
		agent->must_react = false;
		r = agent->level < agent->run->request->agent->level ? react_to_fall(agent)
			: react_to_rise(agent);
	}
	return r < 0 ? r : hold_still(agent);
}

const struct module agent_trust_module = {
	.name = "agent-trust",
	.check = agent_trust_check,
	.timeout_ms = agent_trust_timeout_ms,
	.done = agent_trust_done,
};
