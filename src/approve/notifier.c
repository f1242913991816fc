/* SPDX-License-Identifier: Apache-2.0 */
#include "approve/notifier.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "approve/question-words.h"
#include "approve/queue-state.h"
#include "audit/writer.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "policy/certificate-files.h"
#include "session/run-request.h"
#include "supervise/peer.h"
#include "supervise/run.h"
#include "wire/notify.h"

/*
 * Each link has a few slots, and a question that is open has at most one. What a slot says is what the program at the
 * other end was last told; a turn of the loop sends the difference to what is true, as much of it as the socket takes,
 * and never waits. So a program that is stopped, or slow, costs a question nothing but its notice. What waits comes
 * before what is only listed.
 */

enum { END_MS = 2500, TEXT_MAX = 56 << 10, JSON_MAX = 64 << 10, STALE_MAX = 256, TROUBLES_MAX = 4 };

struct slot {
	uint32_t number;             /* 0: free */
	uint32_t state;              /* as told */
	struct hash hash;
};

struct link {
	struct notifier *notifier;
	enum notify_kind kind;
	bool is_wanted, is_heard, may_answer;
	struct peer peer;
	uint64_t told;               /* queue_generation() that it knows */
	struct slot slots[NOTIFY_OPEN_MAX];
	unsigned stale, troubles;
	uint64_t questions, answers, alerts;
	char trouble[NOTIFY_TROUBLE_MAX + 1];
	char address[NOTIFY_ADDRESS_MAX + 1];
};

struct notifier_state {
	struct link links[NOTIFY_KIND_COUNT];
};

/* ---- what there is ---- */

/* "": there is none. In an address of D-Bus other characters than these would have to be escaped. */
static void find_bus(const struct notifier *notifier, char out[NOTIFY_ADDRESS_MAX + 1])
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/.";
	char *const *env = notifier->run->request->command.env;
	const char *address = env_find(env, "DBUS_SESSION_BUS_ADDRESS"), *runtime = env_find(env, "XDG_RUNTIME_DIR");
	char path[PATH_MAX];

	out[0] = 0;
	if (address && *address) {
		(void)!str_copy(out, NOTIFY_ADDRESS_MAX + 1, address);
		return;
	}
	if (runtime && *runtime && !runtime[strspn(runtime, plain)] &&
	    str_format(path, sizeof path, "%s/bus", runtime) == 0 &&
	    access(path, F_OK) == 0)
		(void)!str_format(out, NOTIFY_ADDRESS_MAX + 1, "unix:path=%s", path);
}

static const struct peer_kind kinds[NOTIFY_KIND_COUNT];

static struct notifier_state *open_notices(struct notifier *notifier)
{
	const struct ask_settings *ask = &notifier->run->policy->policy->ask;
	struct link *desktop, *webhook;

	if (notifier->state || (!ask->desktop && !ask->webhook))
		return notifier->state;
	notifier->state = calloc(1, sizeof *notifier->state);
	if (!notifier->state)
		return NULL;
	for (unsigned kind = 0; kind < NOTIFY_KIND_COUNT; kind++) {
		struct link *link = &notifier->state->links[kind];

		link->notifier = notifier;
		link->kind = (enum notify_kind)kind;
		peer_init(&link->peer, notifier->run, &kinds[kind], 1, link);
	}
	desktop = &notifier->state->links[NOTIFY_DESKTOP];
	desktop->is_wanted = ask->desktop;
	desktop->may_answer = true;
	find_bus(notifier, desktop->address);
	desktop->is_heard = ask->desktop && desktop->address[0];
	webhook = &notifier->state->links[NOTIFY_WEBHOOK];
	webhook->is_wanted = ask->webhook && str_copy(webhook->address, sizeof webhook->address, ask->webhook) == 0;
	webhook->may_answer = ask->webhook_answers;
	webhook->is_heard = webhook->is_wanted && ask->webhook_answers;
	return notifier->state;
}

bool notifier_is_heard(struct notifier *notifier)
{
	const struct notifier_state *notices = open_notices(notifier);

	for (unsigned kind = 0; notices && kind < NOTIFY_KIND_COUNT; kind++)
		if (notices->links[kind].is_heard)
			return true;
	return false;
}

static int note_trouble(struct link *link, const char *trouble)
{
	char rule[32];
	struct audit_event event = { .type = AUDIT_ALERT, .rule = rule, .subject = link->trouble };

	if (str_equal(link->trouble, trouble) || link->troubles >= TROUBLES_MAX ||
	    str_copy(link->trouble, sizeof link->trouble, trouble) < 0 ||
	    str_format(rule, sizeof rule, "ask.%s", notify_kind_names[link->kind]) < 0)
		return 0;
	link->troubles++;
	event.subject_size = strlen(link->trouble);
	return audit_write(link->notifier->run->audit, &event);
}

/* Whoever waits only for this link waits no longer. */
static int settle_hearing(struct notifier *notifier)
{
	return queue_is_heard(notifier->queue) ? 0 : queue_refuse_all(notifier->queue);
}

static int lose(struct link *link, const char *why)
{
	/* What it said itself is the better reason. */
	int r = link->trouble[0] && !link->is_heard ? 0 : note_trouble(link, why);

	peer_retire(&link->peer, false);
	link->is_heard = false;
	memset(link->slots, 0, sizeof link->slots);
	return r < 0 ? r : settle_hearing(link->notifier);
}

static int broke(void *context, enum peer_fault fault)
{
	(void)fault;
	return lose(context, "its program has ended");
}

/* ---- what comes back ---- */

static struct slot *find_slot(struct link *link, uint32_t number)
{
	for (size_t i = 0; i < NOTIFY_OPEN_MAX; i++)
		if (link->slots[i].number == number)
			return &link->slots[i];
	return NULL;
}

static int on_state(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct link *link = context;
	const char *trouble;
	bool is_heard;
	int r = notify_state_get(frame, &is_heard, &trouble);

	if (r < 0)
		return r;
	link->is_heard = is_heard && link->may_answer;
	r = trouble ? note_trouble(link, trouble) : 0;
	if (r == 0)
		r = settle_hearing(link->notifier);
	return peer_fail(&link->peer, r);
}

static int on_answer(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct link *link = context;
	struct queue_answerer by = { notify_kind_names[link->kind], getuid(), 0 };
	struct asking_reply reply;
	struct err ignored = { 0 };
	struct slot *slot;
	uint32_t grant;
	int r = notify_answer_get(frame, &reply);

	if (r < 0)
		return r;
	if (!link->may_answer || (link->kind == NOTIFY_DESKTOP && reply.scope != ASKING_ONCE))
		return -EPROTO;
	slot = reply.number ? find_slot(link, reply.number) : NULL;
	/* It may have crossed our word that the question is over. */
	if (!slot || memcmp(slot->hash.bytes, reply.hash, sizeof slot->hash.bytes) != 0)
		return ++link->stale > STALE_MAX ? -EPROTO : 0;
	if (link->notifier->run->ended != ENDED_NOT)
		return 0;
	r = queue_answer(link->notifier->queue, &reply, &by, &grant, &ignored);
	link->answers += r == 0;
	return peer_fail(&link->peer, r < 0 ? r : 0);
}

static const struct frame_rule rules[] = {
	{ NOTIFY_STATE, PEER_BIT(SERVING), 1024, 0, 0, on_state },
	{ NOTIFY_ANSWER, PEER_BIT(SERVING), 1024, 0, 0, on_answer },
};

/* There is room again: everything is looked at again. */
static int has_room(void *context)
{
	((struct link *)context)->told = 0;
	return 0;
}

#define KIND(its_user)                                                                                                 \
	{ .program = "atoll-notify", .user = its_user, .rules = rules, .rule_count = ARRAY_SIZE(rules),                \
	  .leave_ms = END_MS, .broke = broke, .has_room = has_room }

/* Who speaks with the bus is that user's until it is connected. */
static const struct peer_kind kinds[NOTIFY_KIND_COUNT] = {
	[NOTIFY_DESKTOP] = KIND(0), [NOTIFY_WEBHOOK] = KIND(PEER_WEBHOOK),
};

/* ---- what is handed over ---- */

static int greet(struct link *link)
{
	struct notifier *notifier = link->notifier;
	const struct run_request *request = notifier->run->request;
	const char *bundle = link->kind == NOTIFY_WEBHOOK ? certificate_bundle_path(request->command.env) : NULL;
	cleanup_fd int bundle_fd = bundle ? fd_open_at(AT_FDCWD, bundle, O_RDONLY | O_NONBLOCK, 0) : FD_NONE;
	struct notify_start start = { .kind = link->kind,
				      .session = request->session,
				      .address = link->address,
				      .flags = link->may_answer ? NOTIFY_MAY_ANSWER : 0 };
	int fds[2], r;
	size_t count = 0;

	if (link->kind == NOTIFY_DESKTOP)
		start.uid = peer_uid(notifier->run, PEER_DESKTOP);
	if (bundle_fd >= 0) {
		start.flags |= NOTIFY_HAS_BUNDLE;
		fds[count++] = bundle_fd;
	}
	if (link->kind == NOTIFY_WEBHOOK && request->secrets.notify_fd >= 0) {
		start.flags |= NOTIFY_HAS_KEY;
		fds[count++] = request->secrets.notify_fd;
	}
	r = notify_start_put(&notifier->run->out, &start);
	return peer_greet(&link->peer, r, fds, count);
}

static int start(struct link *link)
{
	int r;

	if (!link->address[0])
		return lose(link, "there is no session bus (DBUS_SESSION_BUS_ADDRESS)");
	r = peer_start(&link->peer, NULL);
	if (r == 0)
		r = greet(link);
	return r < 0 ? lose(link, "its program cannot be started") : 0;
}

static const char *escaped(struct buf *out, const char *text)
{
	buf_reset(out);
	if (text)
		buf_put_escaped(out, text, strlen(text), 0);
	return text ? buf_text(out) : NULL;
}

/* Into the box's buffer for frames. */
static int put_question(struct notifier *notifier, const struct question *question)
{
	cleanup_buf struct buf what, who, why, words, members;
	struct asking_question told = queue_question_of(question, clock_monotonic_ns());
	const struct asking_shown *shown = &question->shown;
	struct notify_question notice = { .number = told.number, .hash = told.hash, .state = told.state,
					  .waiting = told.waiting, .left_ms = told.left_ms };
	struct json json;

	buf_init(&what, TEXT_MAX);
	buf_init(&who, TEXT_MAX);
	buf_init(&why, TEXT_MAX);
	buf_init(&words, TEXT_MAX);
	buf_init(&members, JSON_MAX);
	question_words_put(&what, shown);
	escaped(&why, shown->why);
	buf_put_text(&why, " (");
	buf_put_escaped(&why, shown->rule, strlen(shown->rule), 0);
	buf_put_char(&why, ')');
	json_init(&json, &members);
	json_object_begin(&json, NULL);
	question_words_to_json(&json, shown);
	json_object_end(&json);
	notice.what = buf_text(&what);
	notice.who = escaped(&who, shown->program);
	notice.why = buf_text(&why);
	notice.words = escaped(&words, shown->words);
	notice.json = buf_text(&members);
	if (buf_error(&what) || buf_error(&who) || buf_error(&why) || buf_error(&words) || buf_error(&members))
		return -EMSGSIZE;
	return notify_question_put(&notifier->run->out, &notice);
}

/* 1: sent; 0: not now; negative: there is nobody, or it is too long. */
static int hand_over(struct link *link, int made)
{
	int r = made < 0 ? made : peer_send(&link->peer, NULL, 0);

	if (r == -EAGAIN)
		return peer_wait_for_room(&link->peer);
	return r < 0 ? r : 1;
}

static struct question *find_question(struct notifier *notifier, uint32_t number)
{
	for (size_t i = 0; i < notifier->queue->state->question_count; i++)
		if (notifier->queue->state->questions[i]->number == number)
			return notifier->queue->state->questions[i];
	return NULL;
}

static int take_back(struct link *link, struct slot *slot, const struct question *question)
{
	enum notify_end end = !question || question->state != ASKING_ANSWERED ? NOTIFY_OVER
			      : question->is_allowed ? NOTIFY_ALLOWED : NOTIFY_DENIED;
	int r = hand_over(link, notify_close_put(&link->notifier->run->out, slot->number, end));

	if (r > 0)
		*slot = (struct slot){ 0 };
	return r;
}

static int send_question(struct link *link, struct slot *slot, struct question *question)
{
	int r;

	queue_seal(question);
	r = hand_over(link, put_question(link->notifier, question));

	if (r <= 0 && r != -EMSGSIZE && r != -ENOBUFS)
		return r;
	link->questions += !(question->noticed & 1u << link->kind);
	question->noticed |= 1u << link->kind;
	if (r > 0)
		*slot = (struct slot){ question->number, question->state, question->hash };
	return 1;
}

/* What the slots say and is not so any more. */
static int refresh(struct link *link)
{
	for (size_t i = 0; i < NOTIFY_OPEN_MAX; i++) {
		struct slot *slot = &link->slots[i];
		struct question *question = slot->number ? find_question(link->notifier, slot->number) : NULL;
		int r = 1;

		if (!slot->number)
			continue;
		if (!question || question->state == ASKING_ANSWERED)
			r = take_back(link, slot, question);
		else if (question->state != slot->state)
			r = send_question(link, slot, question);
		if (r <= 0)
			return r;
	}
	return 1;
}

/* A free slot; for what waits, that of one that is only listed if need be. NULL with *ret_r 1: there is none. */
static struct slot *make_room(struct link *link, bool waits, int *ret_r)
{
	*ret_r = 1;
	for (size_t i = 0; i < NOTIFY_OPEN_MAX; i++)
		if (!link->slots[i].number)
			return &link->slots[i];
	for (size_t i = 0; waits && i < NOTIFY_OPEN_MAX; i++) {
		if (link->slots[i].state == ASKING_WAITS)
			continue;
		*ret_r = take_back(link, &link->slots[i], NULL);
		return *ret_r > 0 ? &link->slots[i] : NULL;
	}
	return NULL;
}

static int fill(struct link *link, enum asking_state wanted)
{
	struct queue_state *state = link->notifier->queue->state;

	for (size_t i = 0; i < state->question_count; i++) {
		struct question *question = state->questions[i];
		struct slot *slot;
		int r;

		if (question->state != wanted || find_slot(link, question->number) ||
		    (wanted == ASKING_LISTED && question->noticed & 1u << link->kind))
			continue;
		slot = make_room(link, wanted == ASKING_WAITS, &r);
		if (!slot)
			return r;
		r = send_question(link, slot, question);
		if (r <= 0)
			return r;
	}
	return 1;
}

static int check_link(struct link *link)
{
	int r = 0;

	if (link->peer.state == PEER_IDLE)
		r = start(link);
	if (r < 0 || !peer_is_there(&link->peer))
		return r;
	r = refresh(link);
	if (r > 0)
		r = fill(link, ASKING_WAITS);
	if (r > 0)
		r = fill(link, ASKING_LISTED);
	if (r < 0)
		return lose(link, "its program has ended");
	link->told = queue_generation(link->notifier->queue);
	return 0;
}

static int notifier_check(void *context, uint64_t now_ns)
{
	struct notifier *notifier = context;
	struct notifier_state *notices = queue_count_open(notifier->queue) ? open_notices(notifier) : notifier->state;
	int r = 0;

	for (unsigned kind = 0; r == 0 && notices && kind < NOTIFY_KIND_COUNT; kind++) {
		struct link *link = &notices->links[kind];

		if (link->is_wanted && notifier->queue->state && link->told != queue_generation(notifier->queue) &&
		    (peer_is_there(&link->peer) ||
		     (link->peer.state == PEER_IDLE && queue_count_open(notifier->queue))))
			r = check_link(link);
	}
	return r;
}

int notifier_alert(struct notifier *notifier, const char *kind, const char *what)
{
	struct notifier_state *notices = open_notices(notifier);
	int r = 0;

	for (unsigned i = 0; r == 0 && notices && i < NOTIFY_KIND_COUNT; i++) {
		struct link *link = &notices->links[i];
		int sent;

		if (link->is_wanted && link->peer.state == PEER_IDLE)
			r = start(link);
		if (r < 0 || !link->is_wanted || !peer_is_there(&link->peer))
			continue;
		sent = notify_alert_put(&notifier->run->out, kind, what);
		if (sent == 0)
			sent = peer_send(&link->peer, NULL, 0);
		link->alerts += sent == 0;
		if (sent < 0 && sent != -EAGAIN)
			r = lose(link, "its program has ended");
	}
	return r;
}

/* ---- the end ---- */

void notifier_to_json(const struct notifier *notifier, struct json *json)
{
	json_array_begin(json, "notices");
	for (unsigned kind = 0; notifier->state && kind < NOTIFY_KIND_COUNT; kind++) {
		const struct link *link = &notifier->state->links[kind];

		if (!link->is_wanted || (!link->questions && !link->alerts && !link->trouble[0]))
			continue;
		json_object_begin(json, NULL);
		json_string(json, "by", notify_kind_names[kind]);
		json_u64(json, "questions", link->questions);
		json_u64(json, "answers", link->answers);
		json_u64(json, "alerts", link->alerts);
		json_string(json, "trouble", link->trouble[0] ? link->trouble : NULL);
		json_object_end(json);
	}
	json_array_end(json);
}

void notifier_put_summary(const struct notifier *notifier, struct buf *out)
{
	for (unsigned kind = 0; notifier->state && kind < NOTIFY_KIND_COUNT; kind++) {
		const struct link *link = &notifier->state->links[kind];

		if (!link->trouble[0])
			continue;
		buf_printf(out, "atoll: %s: ask.%s does not work: ", notifier->run->request->session,
			   notify_kind_names[kind]);
		buf_put_escaped(out, link->trouble, strlen(link->trouble), 0);
		buf_put_char(out, '\n');
	}
}

/*
 * A question that was asked in the last turn of the loop is told where it is read later. On a desktop it would come
 * and go.
 */
static void tell_last(struct link *link)
{
	if (link->is_wanted && link->kind == NOTIFY_WEBHOOK && link->notifier->queue->state &&
	    link->told != queue_generation(link->notifier->queue) &&
	    (peer_is_there(&link->peer) ||
	     (link->peer.state == PEER_IDLE && queue_count_open(link->notifier->queue))))
		(void)!check_link(link);
}

/* At the end of the socket it takes its notices from the screen, and posts what is left to post. */
static void part(struct link *link)
{
	tell_last(link);
	peer_dismiss(&link->peer);
}

/* Waited for also where the box has taken all back: the program may have read nothing of it yet. */
static void dismiss(struct link *link)
{
	peer_retire(&link->peer, link->questions || link->alerts);
	link->is_heard = false;
}

void notifier_close(struct notifier *notifier)
{
	struct notifier_state *notices = queue_count_open(notifier->queue) ? open_notices(notifier) : notifier->state;

	for (unsigned kind = 0; notices && kind < NOTIFY_KIND_COUNT; kind++)
		part(&notices->links[kind]);
	for (unsigned kind = 0; notices && kind < NOTIFY_KIND_COUNT; kind++)
		dismiss(&notices->links[kind]);
}

static void notifier_free(void *context)
{
	struct notifier *notifier = context;

	free(notifier->state);
	notifier->state = NULL;
}

const struct module notifier_module = {
	.name = "notifier",
	.check = notifier_check,
	.done = notifier_free,
};
