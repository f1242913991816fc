/* SPDX-License-Identifier: Apache-2.0 */
#include "box/standing.h"

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

static struct trust_home place_of(const struct standing *standing)
{
	return (struct trust_home){ standing->run->request->state_dir, standing->run->request->runtime_dir };
}

enum trust_level trust_level_now(const struct standing *standing)
{
	return standing->agent ? standing->level : standing->run->policy->policy->level;
}

static int fail(struct standing *standing, int r)
{
	err_set(standing->run->err, ERR_STATE, -r, "trust", "the record of agent %s cannot be written (%s)",
		standing->agent, err_errno_name(-r));
	err_hint(standing->run->err, r == -ENOSPC || r == -EDQUOT ? "free some space below %s, or run without an agent"
			   : r == -EBUSY ? "somebody holds it in %s for long; see who does, or run without an agent"
					 : "see whether %s can be written, or run without an agent",
		 standing->run->request->state_dir);
	return r;
}

bool standing_put_blame(const struct run_standing *standing, struct buf *out)
{
	const char *level;

	if (!standing || !standing->agent || standing->level >= standing->bounds.policy)
		return false;
	level = trust_level_names[standing->bounds.policy];
	buf_printf(out, "agent %s is trusted with %s only, which may be why (atoll trust %s); back to %s: "
			"atoll trust %s --raise %s --reason TEXT",
		   standing->agent, trust_level_names[standing->level], standing->agent, level, standing->agent, level);
	return true;
}

void standing_blame(const struct run_standing *standing, struct err *err)
{
	char before[ERR_HINT_SIZE], blame[ERR_HINT_SIZE];
	struct buf out;

	buf_init_fixed(&out, blame, sizeof blame);
	if (err->code == ERR_NONE || !standing_put_blame(standing, &out))
		return;
	memcpy(before, err->hint, sizeof before);
	err_hint(err, "%s%s%s", before, *before ? "; " : "", buf_text(&out));
}

/* ---- the log ---- */

struct change_context {
	const struct standing *standing;
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
		json_string(json, "on_fall", trust_on_fall_names[change->standing->run->policy->policy->trust.on_fall]);
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

static int log_change(struct standing *standing, const struct change_context *change)
{
	struct audit_event event = {
		.type = AUDIT_TRUST_CHANGE,
		.subject = standing->agent,
		.subject_size = strlen(standing->agent),
		.write_detail = change_detail,
		.context = change,
	};

	return audit_write(standing->run->audit, &event);
}

/* ---- the level of the session ---- */

static enum trust_level session_level(const struct standing *standing, const struct trust_book *book)
{
	const struct trust_settings *settings = &standing->run->policy->policy->trust;
	struct trust_bounds bounds = standing->run->request->standing->bounds;
	struct trust_state state = trust_book_state(book);

	/* What is not usable is helped by nobody's loan. */
	if (standing->is_lent_over || book->fault != TRUST_FINE)
		bounds.lent = TRUST_NONE;
	return trust_effective(settings, trust_level_of(&state, settings), &bounds);
}

static void set_cause(struct standing *standing, const char *words, const char *cause)
{
	struct buf out;

	buf_init_fixed(&out, standing->cause, sizeof standing->cause);
	buf_put_text(&out, words);
	if (cause && *cause) {
		buf_put_text(&out, ": ");
		buf_put_escaped(&out, cause, strlen(cause), sizeof standing->cause - out.size - 8);
	}
	(void)buf_text(&out);
}

static void move_to(struct standing *standing, enum trust_level level, const char *words, const char *cause)
{
	if (level < standing->level) {
		set_cause(standing, words, cause);
		standing->fell_to = level;
	}
	standing->must_react |= level != standing->level;
	standing->level = level;
}

/* What the record says by itself: another session, a person, or damage. */
static int take_over(struct standing *standing, const struct trust_book *book)
{
	struct change_context change = { .standing = standing, .event = "elsewhere", .from = standing->level,
					 .to = session_level(standing, book) };
	const char *words = "another session of the agent, or a person, lowered it";
	int r;

	if (book->fault != TRUST_FINE) {
		change.event = "record-unusable";
		words = change.cause = trust_fault_texts[book->fault];
	}
	if (change.from == change.to && book->fault == standing->fault)
		return 0;
	standing->fault = book->fault;
	r = log_change(standing, &change);
	if (r == 0)
		move_to(standing, change.to, words, NULL);
	return r;
}

/* ---- entries ---- */

/* The log first, then the record; both are there when it returns. */
static int add_entry(struct standing *standing, struct trust_book *book, const struct trust_news *news)
{
	const struct trust_rule *rule = &trust_rules[news->event];
	struct change_context change = { .standing = standing, .event = rule->name, .cause = news->cause,
					 .from = standing->level };
	const struct trust_entry *entry = trust_book_add(book, news);

	if (!entry)
		return -ENOMEM;
	change.book = book;
	change.entry = entry;
	/* What was lent ends with the first thing that speaks against it. */
	standing->is_lent_over |= rule->is_bad && !(news->event == TRUST_KILLED);
	change.to = standing->has_begun ? session_level(standing, book) : standing->level;
	if (news->event == TRUST_CLEAN || news->event == TRUST_ENDED)
		change.to = change.from; /* it is over: what it earned is for the next one */
	move_to(standing, change.to, rule->words, news->cause);
	return log_change(standing, &change);
}

/* Forgets that something was written in the directory of records. */
static void drain(struct standing *standing)
{
	char buffer[4096] __attribute__((aligned(8)));

	while (standing->watch_fd >= 0 && read(standing->watch_fd, buffer, sizeof buffer) > 0)
		continue;
}

static int write_book(struct standing *standing, const struct trust_book *book, bool is_durable)
{
	struct trust_home place = place_of(standing);
	int r = audit_flush(standing->run->audit);

	if (r < 0)
		return r;
	r = trust_book_write(&place, book, is_durable);
	/* Nobody else could write meanwhile, and what was written before has been read: it is news to nobody here. */
	drain(standing);
	return r < 0 ? fail(standing, r) : 0;
}

/* -EBUSY: somebody else holds it for longer; another error is told. */
static int lock_book(struct standing *standing, unsigned patience_ms, struct trust_book *book)
{
	struct trust_home place = place_of(standing);
	int r = trust_book_lock(&place, standing->agent, patience_ms, book);

	if (r < 0)
		return r == -EBUSY ? r : fail(standing, r);
	if (book->fault == TRUST_FINE)
		book->settings = standing->run->policy->policy->trust;
	return 0;
}

/* For who can wait. */
static int lock_book_patiently(struct standing *standing, struct trust_book *book)
{
	int r = lock_book(standing, TRUST_LOCK_MS, book);

	return r == -EBUSY ? fail(standing, r) : r;
}

/* ---- what was seen ---- */

static int add_news(struct standing *standing, struct trust_book *book, enum trust_event event, const char *cause)
{
	return add_entry(standing, book, &(struct trust_news){ event, TRUST_NONE, standing->run->request->session,
							       cause,
							  clock_realtime_ns() });
}

static int keep_waiting(struct standing *standing, enum trust_event event, const char *cause)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct standing_news *news;

	if (!standing->waiting)
		standing->waiting = calloc(STANDING_NEWS_MAX, sizeof *standing->waiting);
	if (!standing->waiting)
		return fail(standing, -ENOMEM);
	if (!standing->waiting_count)
		standing->waiting_since_ns = now_ns;
	news = &standing->waiting[standing->waiting_count++];
	*news = (struct standing_news){ .event = event };
	memcpy(news->cause, cause, strnlen(cause, sizeof news->cause - 1));
	standing->retry_ns = now_ns + RETRY_MS * (uint64_t)NS_PER_MS;
	return 0;
}

/* In the order in which they were seen. */
static int add_waiting(struct standing *standing, struct trust_book *book)
{
	size_t count = standing->waiting_count;
	int r = 0;

	standing->waiting_count = 0;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_news(standing, book, standing->waiting[i].event, standing->waiting[i].cause);
	return r;
}

/* Who holds the record does so for a write: one that is stopped meanwhile is waited for, and not for ever. */
static int retry(struct standing *standing, uint64_t now_ns)
{
	cleanup_trust_book struct trust_book book = { .lock_fd = FD_NONE };
	enum trust_level before = standing->level;
	int r;

	if (!standing->waiting_count || now_ns < standing->retry_ns)
		return 0;
	r = lock_book(standing, 0, &book);
	if (r == -EBUSY && now_ns - standing->waiting_since_ns > WAITING_MAX_MS * (uint64_t)NS_PER_MS)
		return fail(standing, r);
	standing->retry_ns = now_ns + RETRY_MS * (uint64_t)NS_PER_MS;
	if (r < 0)
		return r == -EBUSY ? 0 : r;
	if (book.fault != TRUST_FINE) {
		standing->waiting_count = 0;
		return take_over(standing, &book);
	}
	r = add_waiting(standing, &book);
	return r < 0 ? r : write_book(standing, &book, standing->level < before);
}

int standing_timeout_ms(const struct standing *standing, uint64_t now_ns)
{
	if (!standing->waiting_count)
		return -1;
	return standing->retry_ns > now_ns ? (int)((standing->retry_ns - now_ns) / NS_PER_MS) + 1 : 0;
}

/* Many small things, which fade, must not use up the room of the one that does not. */
static bool is_worth_noting(const struct standing *standing, enum trust_event event)
{
	return standing->events < STANDING_EVENTS_MAX || (trust_rules[event].is_lasting && !standing->has_lasting);
}

int trust_note(struct standing *standing, enum trust_event event, const char *cause)
{
	cleanup_trust_book struct trust_book book = { .lock_fd = FD_NONE };
	enum trust_level before = standing->level;
	int r;

	if (!standing->agent || !standing->has_begun || !trust_rules[event].is_bad)
		return 0;
	standing->was_bad = true;
	if (standing->fault != TRUST_FINE || !is_worth_noting(standing, event))
		return 0;
	standing->events++;
	standing->has_lasting |= trust_rules[event].is_lasting;
	/* Callers inside wait for us: not for somebody else's disk. */
	r = standing->waiting_count ? -EBUSY : lock_book(standing, NOTE_PATIENCE_MS, &book);
	if (r == -EBUSY)
		return keep_waiting(standing, event, cause ? cause : "");
	if (r < 0)
		return r;
	if (book.fault != TRUST_FINE)
		return take_over(standing, &book);
	r = add_news(standing, &book, event, cause);
	return r < 0 ? r : write_book(standing, &book, standing->level < before);
}

static int on_refused(struct standing *standing)
{
	const struct cooldown_rule *own = &standing->run->policy->policy->cooldown, *rule = own->denials ? own
		: &usual_burst;
	char cause[64];

	if (!cooldown_count(&standing->burst, rule, clock_monotonic_ns()))
		return 0;
	if (str_format(cause, sizeof cause, "%llu refusals within %llu s", (unsigned long long)rule->denials,
		       (unsigned long long)rule->within_ms / 1000) < 0)
		cause[0] = 0;
	return trust_note(standing, TRUST_DENIALS, cause);
}

static int note(void *context, enum event_type type, const void *detail)
{
	if (type == EVENT_REFUSED)
		return on_refused(context);
	if (type == EVENT_VERIFIER_REFUSED)
		return trust_note(context, TRUST_VERIFIER, detail);
	/* A pause after refusals is not a limit but a burst, which is counted as such. */
	return str_has_suffix(detail, "cooldown") ? 0 : trust_note(context, TRUST_LIMIT, detail);
}

/* ---- the session's two ends ---- */

static bool is_running(const struct standing *standing, const char *session)
{
	cleanup_session_record struct session_record record = { 0 };

	return str_equal(session, standing->run->request->session) ||
	       session_load_live(standing->run->request->state_dir, session, &record) != -ENOENT;
}

/* Sessions whose box was killed could not say so themselves. */
static int add_killed(struct standing *standing, struct trust_book *book)
{
	char sessions[TRUST_OPEN_MAX][SESSION_ID_SIZE];
	size_t count = trust_book_open(book, sessions);
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		if (!is_running(standing, sessions[i]))
			r = add_entry(standing, book, &(struct trust_news){ TRUST_KILLED, TRUST_NONE, sessions[i], NULL,
								       clock_realtime_ns() });
	return r;
}

static int add_begin(struct standing *standing, struct trust_book *book)
{
	const struct run_standing *given = standing->run->request->standing;
	struct trust_news news = { TRUST_BEGUN, TRUST_NONE, standing->run->request->session, NULL,
				   clock_realtime_ns() };
	int r = add_killed(standing, book);

	if (r == 0 && given->lent_by)
		r = add_entry(standing, book,
			      &(struct trust_news){ TRUST_LENT, given->bounds.lent, standing->run->request->session,
						    given->lent_by, news.now_ns });
	if (r < 0)
		return r;
	/* Since `atoll run` looked, the record may have moved: down it counts, up it waits for the next run. */
	standing->has_begun = true;
	return add_entry(standing, book, &news);
}

static int changed(void *context, uint32_t events)
{
	cleanup_trust_book struct trust_book book = { .lock_fd = FD_NONE };
	struct standing *standing = context;
	struct trust_home place = place_of(standing);
	int r;

	/* Whose record it was is not looked at: ours is read again, and is mostly the same. */
	drain(standing);
	r = trust_book_read(&place, standing->agent, &book);
	if (r < 0)
		return fail(standing, r);
	return take_over(standing, &book);
}

static int watch_record(struct standing *standing)
{
	struct trust_home place = place_of(standing);
	char path[4096];
	int r = trust_directory(&place, path, sizeof path);

	if (r < 0)
		return r;
	standing->watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (standing->watch_fd < 0 || inotify_add_watch(standing->watch_fd, path, IN_MOVED_TO | IN_DELETE) < 0)
		return -errno;
	standing->source = (struct loop_source){
		.fd = standing->watch_fd, .events = EPOLLIN, .ready = changed, .context = standing,
	};
	return loop_add(standing->run->loop, &standing->source);
}

int standing_begin(struct standing *standing)
{
	cleanup_trust_book struct trust_book book = { .lock_fd = FD_NONE };
	const struct run_standing *given = standing->run->request->standing;
	int r;

	if (!given || !given->agent)
		return 0;
	standing->agent = given->agent;
	standing->level = given->level;
	standing->subscriber = (struct subscriber){
		1 << EVENT_REFUSED | 1 << EVENT_VERIFIER_REFUSED | 1 << EVENT_LIMIT, note, standing, NULL,
	};
	hub_subscribe(standing->run->hub, &standing->subscriber);
	r = lock_book_patiently(standing, &book);
	if (r < 0)
		return r;
	if (book.fault != TRUST_FINE) {
		standing->has_begun = true;
		return take_over(standing, &book);
	}
	r = add_begin(standing, &book);
	/* More than the policy was compiled for is not to be had now. */
	if (standing->level > given->level) {
		standing->level = given->level;
		standing->must_react = false;
	}
	if (r == 0)
		r = write_book(standing, &book, false);
	if (r == 0)
		r = watch_record(standing);
	return r;
}

int standing_end(struct standing *standing, bool has_failed)
{
	cleanup_trust_book struct trust_book book = { .lock_fd = FD_NONE };
	bool is_clean = standing->run->ended == ENDED_EXIT && !standing->was_bad && !has_failed;
	int r;

	if (!standing->agent || !standing->has_begun || standing->fault != TRUST_FINE)
		return 0;
	r = lock_book_patiently(standing, &book);
	if (r < 0)
		return r;
	if (book.fault != TRUST_FINE)
		return take_over(standing, &book);
	r = add_waiting(standing, &book);
	if (r < 0)
		return r;
	r = add_entry(standing, &book,
		      &(struct trust_news){ is_clean ? TRUST_CLEAN : TRUST_ENDED, TRUST_NONE,
					    standing->run->request->session,
					    is_clean ? NULL : ended_names[standing->run->ended], clock_realtime_ns() });
	return r < 0 ? r : write_book(standing, &book, false);
}

void standing_done(struct standing *standing)
{
	if (!standing->agent)
		return;
	loop_remove(standing->run->loop, &standing->source);
	close_fd(&standing->watch_fd);
	free(standing->waiting);
	standing->waiting = NULL;
	standing->waiting_count = 0;
}

/* ---- what a fall does ---- */

/* The fall stands in the log already. */
static const struct freeze_holder fall_freeze = { .yields_to_signal = true };

bool standing_holds_still(const struct standing *standing)
{
	return freeze_is_held_by(standing->run->freeze, &fall_freeze);
}

static int thaw(struct standing *standing)
{
	return standing_holds_still(standing) ? freeze_end(standing->run->freeze) : 0;
}

static int react_to_fall(struct standing *standing)
{
	enum trust_on_fall on_fall = standing->run->policy->policy->trust.on_fall;
	int r = 0;

	if (on_fall == TRUST_FALL_ASK || on_fall == TRUST_FALL_TIGHTEN) {
		r = standing_narrow(standing, standing->level, on_fall == TRUST_FALL_ASK);
		standing->is_narrowed |= r == 0;
		standing->must_react = r == -EBUSY || r == -EAGAIN;
		/* A sandbox that should have less and cannot get it runs no further. */
		standing->is_frozen |= r < 0 && !standing->must_react;
		r = 0;
	}
	if (on_fall == TRUST_FALL_FREEZE)
		standing->is_frozen = true;
	return r;
}

/* A person has raised it again. */
static int react_to_rise(struct standing *standing)
{
	int r = 0;

	standing->is_frozen = false;
	if (standing->is_narrowed) {
		r = standing_widen(standing);
		standing->must_react = r == -EBUSY || r == -EAGAIN;
		standing->is_narrowed = r < 0;
	}
	return thaw(standing);
}

/* Whoever waits for the command must know why it says nothing any more. */
static void tell_terminal(const struct standing *standing)
{
	const char *agent = standing->agent, *session = standing->run->request->session;
	char memory[512];
	struct buf out;

	if (standing->run->request->flags & (REQUEST_QUIET | REQUEST_DETACH))
		return;
	buf_init_fixed(&out, memory, sizeof memory);
	buf_printf(&out, "\natoll: %s: agent %s fell to %s (%s), and everything stands still; "
			 "`atoll trust %s --raise …` lets it go on, `atoll stop %s` ends it\n",
		   session, agent, trust_level_names[standing->level], standing->cause, agent, session);
	if (fd_write_full(2, out.bytes, out.size) < 0)
		return; /* nobody reads */
}

static int hold_still(struct standing *standing)
{
	int r;

	if (!standing->is_frozen || freeze_is_on(standing->run->freeze) || standing->run->ended != ENDED_NOT ||
	    standing->run->is_stopping)
		return 0;
	r = freeze_begin_soon(standing->run->freeze, &fall_freeze, "trust", UINT64_MAX);
	if (r == 0)
		tell_terminal(standing);
	return r == -EBUSY || r == -ETIMEDOUT || r == -ESHUTDOWN ? 0 : r;
}

int standing_check(struct standing *standing)
{
	int r;

	if (!standing->agent)
		return 0;
	r = retry(standing, clock_monotonic_ns());
	if (r == 0 && standing->must_react) {
		standing->must_react = false;
		r = standing->level < standing->run->request->standing->level ? react_to_fall(standing)
			: react_to_rise(standing);
	}
	return r < 0 ? r : hold_still(standing);
}
