/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/watch/top-feed.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/json.h"
#include "base/str.h"
#include "client/listed.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/spawn.h"
#include "prog/atoll/verb/library.h"
#include "session/directories.h"
#include "wire/asking.h"
#include "wire/top.h"

extern char **environ;

/*
 * A round: each box that runs is asked, what comes within PATIENCE_MS is handed on, and then atoll-top is told that
 * this is all. A pause before the first look at the answers: woken once for many of them, not once for each.
 */

enum {
	NS_PER_MS = 1000000,
	GATHER_MS = 15,
	PATIENCE_MS = 500,
	CALLS_MAX = 16,
	GRACE_MS = 5000,
	SESSION_JSON_MAX = 64 << 10,
	EVENTS_SHOWN = 200,
	FILES_WANTED = 3 * TOP_SESSIONS_MAX + 256,
};

/* A session that atoll-top knows of. */
struct subject {
	char id[SESSION_ID_SIZE];
	atoll_sandbox *sandbox;  /* owned; NULL: it could not be reached */
	uint64_t ticket;         /* of the status that is owed; 0: none */
	bool is_there;           /* has a socket in this round */
};

struct feed;

/* Something that a person asked for, and that a box has not answered yet. */
struct call {
	char id[SESSION_ID_SIZE];
	uint64_t ticket;         /* 0: none */
	int (*answered)(struct feed *feed, struct call *call, const atoll_record *result);
};

struct feed {
	const struct top_feed_options *options;
	atoll_context *context;  /* owned */
	struct subject subjects[TOP_SESSIONS_MAX];
	size_t count;
	uint32_t left_out;
	struct call calls[CALLS_MAX];
	pid_t log_pid;           /* of atoll-log; 0: none */
	uint32_t pace_ms;
	uint64_t next_ns;        /* when the next round begins */
	uint64_t told_by_ns;     /* when this one is over, whoever has not answered; 0: it is */
	struct buf out, scratch;
};

static uint64_t now_ns(void)
{
	return clock_monotonic_ns();
}

static int send_out(struct feed *feed, int built, int fd)
{
	return built < 0 ? built : frame_send(feed->options->screen_fd, &feed->out, &fd, fd >= 0);
}

static int send_message(struct feed *feed, enum top_message what, const char *id)
{
	frame_begin(&feed->out, what);
	frame_put_string(&feed->out, id);
	return send_out(feed, frame_end(&feed->out), FD_NONE);
}

static int tell_bytes(struct feed *feed, enum top_message what, const char *id, const void *bytes, size_t size)
{
	frame_begin(&feed->out, what);
	frame_put_string(&feed->out, id);
	frame_put_bytes(&feed->out, bytes, size);
	return send_out(feed, frame_end(&feed->out), FD_NONE);
}

/* ---- who there is ---- */

static int notice(struct feed *feed, const char *format, const char *id, const char *why)
{
	char text[TOP_NOTICE_MAX];

	if (str_format(text, sizeof text, format, id, why) < 0)
		return 0;
	return send_message(feed, TOP_NOTICE, text);
}

/* Its socket is gone in the next round, if it has ended. */
static void lose(struct feed *feed, struct subject *subject)
{
	atoll_sandbox_free(subject->sandbox);
	subject->sandbox = NULL;
	subject->ticket = 0;
	for (size_t i = 0; i < CALLS_MAX; i++)
		if (feed->calls[i].ticket && str_equal(feed->calls[i].id, subject->id))
			feed->calls[i].ticket = 0;
}

static struct subject *find(struct feed *feed, const char *id)
{
	for (size_t i = 0; i < feed->count; i++)
		if (str_equal(feed->subjects[i].id, id))
			return &feed->subjects[i];
	return NULL;
}

/* 0 also where it is no session after all. */
static int add_session(struct feed *feed, const char *id)
{
	cleanup_session_record struct session_record record = { 0 };
	struct subject *subject = &feed->subjects[feed->count];
	cleanup_buf struct buf text = { 0 };
	struct json json;

	if (session_load_live(feed->options->state, id, &record) < 0)
		return 0;
	if (feed->count == TOP_SESSIONS_MAX) {
		feed->left_out++;
		return 0;
	}
	*subject = (struct subject){ .is_there = true };
	memcpy(subject->id, record.id, SESSION_ID_SIZE);
	if (atoll_find(feed->context, id, &subject->sandbox, NULL) < 0)
		subject->sandbox = NULL;
	feed->count++;
	buf_init(&text, SESSION_JSON_MAX);
	json_init(&json, &text);
	listed_to_json(&json, feed->options->state, &record);
	return buf_error(&text) ? 0 : tell_bytes(feed, TOP_SESSION, id, text.bytes, text.size);
}

static int look_around(struct feed *feed)
{
	char path[PATH_MAX], id[SESSION_ID_SIZE];
	struct dirent *entry;
	DIR *dir = NULL;
	int r = 0;

	feed->left_out = 0;
	if (session_runtime_dir(path, sizeof path, false, NULL) == 0)
		dir = opendir(path);
	while (dir && r == 0 && (entry = readdir(dir))) {
		struct subject *subject = session_of_socket(entry->d_name, id) ? find(feed, id) : NULL;

		if (subject)
			subject->is_there = true;
		else if (session_of_socket(entry->d_name, id))
			r = add_session(feed, id);
	}
	if (dir)
		closedir(dir);
	return r;
}

static int forget_gone(struct feed *feed)
{
	int r = 0;

	for (size_t i = feed->count; r == 0 && i-- > 0;) {
		struct subject *subject = &feed->subjects[i];

		if (subject->is_there)
			continue;
		r = send_message(feed, TOP_GONE, subject->id);
		lose(feed, subject);
		*subject = feed->subjects[--feed->count];
	}
	return r;
}

/* ---- what they say ---- */

static void ask(struct subject *subject)
{
	if (subject->sandbox && !subject->ticket && atoll_status(subject->sandbox, &subject->ticket, NULL, NULL) < 0)
		subject->ticket = 0;
}

static int begin_round(struct feed *feed)
{
	uint64_t started_ns = now_ns();
	int r;

	for (size_t i = 0; i < feed->count; i++)
		feed->subjects[i].is_there = false;
	r = look_around(feed);
	if (r == 0)
		r = forget_gone(feed);
	for (size_t i = 0; i < feed->count; i++)
		ask(&feed->subjects[i]);
	feed->told_by_ns = started_ns + PATIENCE_MS * (uint64_t)NS_PER_MS;
	feed->next_ns = started_ns + feed->pace_ms * (uint64_t)NS_PER_MS;
	return r;
}

/* What a box answered, handed on as it is. */
static int take_status(struct feed *feed, struct subject *subject, const atoll_record *result)
{
	const void *bytes;
	size_t size;

	subject->ticket = 0;
	return atoll_get_bytes(result, "status", &bytes, &size)
		       ? tell_bytes(feed, TOP_STATUS, subject->id, bytes, size) : 0;
}

static int take_result(struct feed *feed, struct subject *subject, const atoll_record *result)
{
	uint64_t ticket = library_number(result, "ticket");

	if (ticket == subject->ticket)
		return take_status(feed, subject, result);
	for (size_t i = 0; i < CALLS_MAX; i++)
		if (feed->calls[i].ticket == ticket && str_equal(feed->calls[i].id, subject->id)) {
			feed->calls[i].ticket = 0;
			return feed->calls[i].answered(feed, &feed->calls[i], result);
		}
	return 0;
}

static int hear(struct feed *feed, struct subject *subject)
{
	atoll_record *event;
	int r = 0;

	while (r == 0 && subject->sandbox && atoll_next(subject->sandbox, &event, NULL) == 1) {
		if (library_number(event, "event") == ATOLL_EVENT_DONE)
			r = take_result(feed, subject, event);
		else
			lose(feed, subject);
		atoll_record_free(event);
	}
	return r;
}

static size_t count_owed(const struct feed *feed)
{
	size_t owed = 0;

	for (size_t i = 0; i < feed->count; i++)
		owed += feed->subjects[i].ticket != 0;
	return owed;
}

static int end_round(struct feed *feed)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < feed->count; i++)
		if (feed->subjects[i].ticket || !feed->subjects[i].sandbox)
			r = send_message(feed, TOP_SILENT, feed->subjects[i].id);
	feed->told_by_ns = 0;
	frame_begin(&feed->out, TOP_ROUND);
	frame_put_u32(&feed->out, feed->left_out);
	return r < 0 ? r : send_out(feed, frame_end(&feed->out), FD_NONE);
}

/* ---- what the person asks for ---- */

static void end_log(struct feed *feed)
{
	if (!feed->log_pid)
		return;
	kill(feed->log_pid, SIGTERM);
	while (waitpid(feed->log_pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	feed->log_pid = 0;
}

/* atoll-log reads the log and makes lines of it that no terminal obeys. */
static int spawn_log(struct feed *feed, const char *id, int out_fd)
{
	char program[PATH_MAX], log[PATH_MAX], count[16];
	const char *argv[] = { "atoll-log", "--follow", "--lines", count, log, NULL };
	const struct spawn spawn = { .program = program, .argv = argv, .fd_count = 3,
				     .fds = { { SPAWN_NULL, 0 }, { out_fd, 1 }, { SPAWN_NULL, 2 } } };
	int r = path_join(program, sizeof program, feed->options->programs, "atoll-log");

	if (r == 0)
		r = session_path(feed->options->state, id, "audit.jsonl", log, sizeof log);
	if (r == 0)
		r = str_format(count, sizeof count, "%d", EVENTS_SHOWN);
	if (r < 0)
		return r;
	r = spawn_start(&spawn, &feed->log_pid);
	if (r < 0)
		feed->log_pid = 0;
	return r;
}

static int on_watch(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct feed *feed = context;
	const char *id = frame_get_string(frame);
	int ends[2], r;

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	end_log(feed);
	if (!id || !find(feed, id))
		return 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return notice(feed, "the log of %s cannot be shown: %s", id, err_errno_name(errno));
	r = spawn_log(feed, id, ends[1]);
	close(ends[1]);
	frame_begin(&feed->out, TOP_EVENTS);
	frame_put_string(&feed->out, id);
	r = r < 0 ? notice(feed, "the log of %s cannot be shown: %s", id, err_errno_name(-r))
		  : send_out(feed, frame_end(&feed->out), ends[0]);
	close(ends[0]);
	return r;
}

/* A place for a call; NULL where there is none, or the same is under way. */
static struct call *find_place(struct feed *feed, const char *id,
			       int (*answered)(struct feed *, struct call *, const atoll_record *))
{
	struct call *place = NULL;

	for (size_t i = 0; i < CALLS_MAX; i++) {
		struct call *call = &feed->calls[i];

		if (call->ticket && call->answered == answered && str_equal(call->id, id))
			return NULL;
		if (!call->ticket)
			place = call;
	}
	if (!place)
		return NULL;
	*place = (struct call){ .answered = answered };
	memcpy(place->id, id, SESSION_ID_SIZE);
	return place;
}

/* 0: it was asked. Else the person is told why not. */
static int check_asked(struct feed *feed, struct call *call, int r, const struct atoll_error *error)
{
	if (r == 0)
		return 0;
	call->ticket = 0;
	return notice(feed, "%s cannot be asked: %s", call->id, error->what);
}

static int stop_answered(struct feed *feed, struct call *call, const atoll_record *result)
{
	feed->next_ns = 0;
	return notice(feed, "%s was stopped%s", call->id, "");
}

/* Who is meant, and a place for what it answers; NULL: no such one is there, or it is asked already. */
static struct subject *find_asked(struct feed *feed, const char *id,
				  int (*answered)(struct feed *, struct call *, const atoll_record *),
				  struct call **ret_call)
{
	struct subject *subject = find(feed, id);

	*ret_call = subject && subject->sandbox ? find_place(feed, subject->id, answered) : NULL;
	return *ret_call ? subject : NULL;
}

/* What a frame with nothing but the name of a sandbox asks for. 1: it is asked; 0: nobody is to be asked. */
static int ask_named(struct feed *feed, struct frame *frame,
		     int (*answered)(struct feed *, struct call *, const atoll_record *),
		     int (*send)(atoll_sandbox *, uint64_t *ticket, struct atoll_error *), const char **ret_id)
{
	struct atoll_error error = LIBRARY_ERROR;
	const char *id = frame_get_string(frame);
	struct subject *subject;
	struct call *call;
	int r;

	if (frame_finish(frame) < 0 || !id)
		return -EBADMSG;
	subject = find_asked(feed, id, answered, &call);
	if (!subject)
		return 0;
	*ret_id = id;
	r = send(subject->sandbox, &call->ticket, &error);
	return r ? check_asked(feed, call, r, &error) : 1;
}

static int send_stop(atoll_sandbox *sandbox, uint64_t *ticket, struct atoll_error *error)
{
	return atoll_stop(sandbox, GRACE_MS, ticket, NULL, error);
}

static int on_stop(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	const char *id;
	int r = ask_named(context, frame, stop_answered, send_stop, &id);

	return r > 0 ? notice(context, "%s is being stopped%s", id, "") : r;
}

static int questions_answered(struct feed *feed, struct call *call, const atoll_record *result)
{
	const void *bytes;
	size_t size;
	int r = atoll_get_bytes(result, "questions", &bytes, &size)
			? tell_bytes(feed, TOP_QUESTIONS, call->id, bytes, size) : 0;

	/* More than fits into one message is for `atoll ask`. */
	return r == -ENOBUFS || r == -EMSGSIZE ? notice(feed, "%s asks too much for here%s", call->id, "") : r;
}

static int send_look(atoll_sandbox *sandbox, uint64_t *ticket, struct atoll_error *error)
{
	cleanup_record atoll_record *look = atoll_record_new(ATOLL_LOOK);
	int r = atoll_set_string(look, "look", "glance", error);

	return r == 0 ? atoll_look(sandbox, look, ticket, NULL, error) : r;
}

static int on_ask(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	const char *id;
	int r = ask_named(context, frame, questions_answered, send_look, &id);

	return r > 0 ? 0 : r;
}

static int answer_answered(struct feed *feed, struct call *call, const atoll_record *result)
{
	feed->next_ns = 0;
	return notice(feed, library_number(result, "code") ? "%s did not take your answer: the question is over%s"
							    : "%s has your answer%s", call->id, "");
}

/* What holds for longer is not for a key that is pressed in passing. */
static int send_answer(atoll_sandbox *sandbox, const struct asking_reply *reply, uint64_t *ticket,
		       struct atoll_error *error)
{
	cleanup_record atoll_record *question = atoll_record_new(ATOLL_QUESTION);
	cleanup_record atoll_record *answer = atoll_record_new(ATOLL_ANSWER);
	int r = atoll_set_u64(question, "number", reply->number, error);

	if (r == 0)
		r = atoll_set_bytes(question, "hash", reply->hash, ASKING_HASH_SIZE, error);
	if (r == 0)
		r = atoll_set_u64(answer, "allow", reply->is_allowed, error);
	if (r == 0)
		r = atoll_set_string(answer, "scope", "once", error);
	return r == 0 ? atoll_answer(sandbox, question, answer, ticket, NULL, error) : r;
}

static int on_answer(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct atoll_error error = LIBRARY_ERROR;
	struct feed *feed = context;
	const char *id = frame_get_string(frame);
	struct asking_reply reply;
	struct subject *subject;
	struct call *call;
	int r = id ? asking_reply_get(frame, &reply) : -EBADMSG;

	if (r < 0 || reply.scope != ASKING_ONCE)
		return -EBADMSG;
	subject = find_asked(feed, id, answer_answered, &call);
	if (!subject)
		return 0;
	r = send_answer(subject->sandbox, &reply, &call->ticket, &error);
	return check_asked(feed, call, r, &error);
}

static int on_now(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct feed *feed = context;

	feed->next_ns = 0;
	return frame_finish(frame);
}

static int on_pace(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct feed *feed = context;
	uint32_t ms = frame_get_u32(frame);

	if (frame_finish(frame) < 0 || ms < TOP_PACE_MIN_MS || ms > TOP_PACE_MAX_MS)
		return -EBADMSG;
	feed->pace_ms = ms;
	feed->next_ns = 0;
	return 0;
}

static const struct frame_rule rules[] = {
	{ TOP_NOW, 1, 64, 0, 0, on_now },
	{ TOP_PACE, 1, 64, 0, 0, on_pace },
	{ TOP_WATCH, 1, 64, 0, 0, on_watch },
	{ TOP_STOP, 1, 64, 0, 0, on_stop },
	{ TOP_ASK, 1, 64, 0, 0, on_ask },
	{ TOP_ANSWER, 1, 256, 0, 0, on_answer },
};

/* ---- waiting ---- */

static int timeout_ms(const struct feed *feed)
{
	uint64_t until_ns = feed->told_by_ns ? feed->told_by_ns : feed->next_ns, now = now_ns();

	return until_ns <= now ? 0 : (int)((until_ns - now) / NS_PER_MS + 1);
}

/* Subjects first, then atoll-top. */
static size_t fill_polls(const struct feed *feed, struct pollfd *polls)
{
	size_t count = 0;

	for (size_t i = 0; i < feed->count; i++)
		polls[count++] = (struct pollfd){ .fd = atoll_fd(feed->subjects[i].sandbox), .events = POLLIN };
	polls[count++] = (struct pollfd){ .fd = feed->options->screen_fd, .events = POLLIN };
	return count;
}

/* 1: go on; 0: atoll-top has gone. */
static int turn(struct feed *feed)
{
	static struct pollfd polls[TOP_SESSIONS_MAX + 1];
	size_t subjects = feed->count, count = fill_polls(feed, polls);
	int r = 0;

	if (poll(polls, count, timeout_ms(feed)) < 0)
		return errno == EINTR ? 1 : -errno;
	for (size_t i = 0; r == 0 && i < subjects; i++)
		if (polls[i].revents)
			r = hear(feed, &feed->subjects[i]);
	if (r == 0 && polls[count - 1].revents) {
		r = frame_dispatch(feed->options->screen_fd, &feed->scratch, 0, rules, ARRAY_SIZE(rules), feed);
		if (r <= 0)
			return r;
		r = 0;
	}
	if (r == 0 && feed->told_by_ns && (!count_owed(feed) || now_ns() >= feed->told_by_ns))
		r = end_round(feed);
	return r < 0 ? r : 1;
}

static int serve(struct feed *feed)
{
	int r = 1;

	while (r > 0) {
		if (!feed->told_by_ns && now_ns() >= feed->next_ns) {
			r = begin_round(feed);
			if (r < 0)
				break;
			if (feed->count > 1)
				(void)poll(NULL, 0, GATHER_MS);
		}
		r = turn(feed);
	}
	return r;
}

/* One for each session. */
static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= FILES_WANTED)
		return;
	limit.rlim_cur = limit.rlim_max < FILES_WANTED ? limit.rlim_max : FILES_WANTED;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

int top_feed(const struct top_feed_options *options, struct err *err)
{
	static struct feed feed;
	int r;

	feed.options = options;
	feed.pace_ms = options->pace_ms;
	buf_init(&feed.out, FRAME_MESSAGE_MAX);
	buf_init(&feed.scratch, FRAME_MESSAGE_MAX);
	raise_limits();
	r = library_context(0, &feed.context, err);
	if (r < 0)
		return r;
	r = serve(&feed);
	end_log(&feed);
	while (feed.count)
		lose(&feed, &feed.subjects[--feed.count]);
	atoll_context_free(feed.context);
	buf_done(&feed.out);
	buf_done(&feed.scratch);
	/* It ended while we spoke. */
	if (r == -EPIPE || r == -ECONNRESET)
		return 0;
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "top", "sandboxes cannot be watched: %s", err_errno_name(-r)) : 0;
}
