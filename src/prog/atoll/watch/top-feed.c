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
#include "session/control-socket.h"
#include "session/directories.h"
#include "wire/asking.h"
#include "wire/control.h"
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
	FILES_WANTED = TOP_SESSIONS_MAX + 256,
};

/* A session that atoll-top knows of. */
struct subject {
	char id[SESSION_ID_SIZE];
	int fd;                  /* to its box; FD_NONE: it could not be reached */
	bool is_asked;           /* an answer is owed */
	bool is_there;           /* has a socket in this round */
};

struct feed;

/* Something that a person asked for, and that a box has not answered yet. */
struct call {
	char id[SESSION_ID_SIZE];
	int fd;                  /* FD_NONE: none */
	int (*answered)(struct feed *feed, struct call *call);
};

struct feed {
	const struct top_feed_options *options;
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

static int tell(struct feed *feed, enum top_message what, const char *id)
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

static struct subject *find(struct feed *feed, const char *id)
{
	for (size_t i = 0; i < feed->count; i++)
		if (str_equal(feed->subjects[i].id, id))
			return &feed->subjects[i];
	return NULL;
}

/* 0 also where it is no session after all. */
static int meet(struct feed *feed, const char *id)
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
	*subject = (struct subject){ .fd = control_socket_connect(id, NULL), .is_there = true };
	memcpy(subject->id, record.id, SESSION_ID_SIZE);
	/* A box that stands still takes no part of our time. */
	if (subject->fd >= 0 && fd_set_nonblocking(subject->fd, true) < 0)
		close_fd(&subject->fd);
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
			r = meet(feed, id);
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
		r = tell(feed, TOP_GONE, subject->id);
		close_fd(&subject->fd);
		*subject = feed->subjects[--feed->count];
	}
	return r;
}

/* ---- what they say ---- */

/* Its socket is gone in the next round, if it has ended. */
static void lose(struct subject *subject)
{
	close_fd(&subject->fd);
	subject->is_asked = false;
}

static void ask(struct feed *feed, struct subject *subject)
{
	if (subject->fd < 0 || subject->is_asked)
		return;
	frame_begin(&feed->out, CONTROL_STATUS);
	if (frame_end(&feed->out) < 0 || frame_send(subject->fd, &feed->out, NULL, 0) < 0)
		lose(subject);
	else
		subject->is_asked = true;
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
		ask(feed, &feed->subjects[i]);
	feed->told_by_ns = started_ns + PATIENCE_MS * (uint64_t)NS_PER_MS;
	feed->next_ns = started_ns + feed->pace_ms * (uint64_t)NS_PER_MS;
	return r;
}

/* The answer that lies in its socket, handed on as it is. */
static int hear(struct feed *feed, struct subject *subject)
{
	struct frame frame;
	const void *bytes;
	size_t size, fd_count;
	uint8_t *memory;
	ssize_t n;

	buf_reset(&feed->scratch);
	memory = buf_reserve(&feed->scratch, FRAME_MESSAGE_MAX);
	if (!memory)
		return -ENOMEM;
	n = fd_receive_message(subject->fd, memory, FRAME_MESSAGE_MAX, NULL, 0, &fd_count);
	if (n == -EAGAIN)
		return 0;
	if (n <= 0 || frame_open(&frame, memory, (size_t)n) < 0 || frame.type != CONTROL_STATUS_JSON) {
		lose(subject);
		return 0;
	}
	bytes = frame_get_bytes(&frame, &size);
	subject->is_asked = false;
	return frame_finish(&frame) < 0 ? 0 : tell_bytes(feed, TOP_STATUS, subject->id, bytes, size);
}

static size_t count_owed(const struct feed *feed)
{
	size_t owed = 0;

	for (size_t i = 0; i < feed->count; i++)
		owed += feed->subjects[i].is_asked;
	return owed;
}

static int end_round(struct feed *feed)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < feed->count; i++)
		if (feed->subjects[i].is_asked || feed->subjects[i].fd < 0)
			r = tell(feed, TOP_SILENT, feed->subjects[i].id);
	feed->told_by_ns = 0;
	frame_begin(&feed->out, TOP_ROUND);
	frame_put_u32(&feed->out, feed->left_out);
	return r < 0 ? r : send_out(feed, frame_end(&feed->out), FD_NONE);
}

/* ---- what the person asks for ---- */

static int notice(struct feed *feed, const char *format, const char *id, const char *why)
{
	char text[TOP_NOTICE_MAX];

	if (str_format(text, sizeof text, format, id, why) < 0)
		return 0;
	return tell(feed, TOP_NOTICE, text);
}

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
static struct call *find_place(struct feed *feed, const char *id, int (*answered)(struct feed *, struct call *))
{
	struct call *place = NULL;

	for (size_t i = 0; i < CALLS_MAX; i++) {
		struct call *call = &feed->calls[i];

		if (call->fd >= 0 && call->answered == answered && str_equal(call->id, id))
			return NULL;
		if (call->fd < 0)
			place = call;
	}
	return place;
}

/* Sends what is in feed->out to the box of id. 0 also where that is impossible: the person was told. */
static int call_box(struct feed *feed, const char *id, int built, int (*answered)(struct feed *, struct call *))
{
	struct call *call = find(feed, id) ? find_place(feed, id, answered) : NULL;
	struct err err = { 0 };
	int r;

	if (!call)
		return 0;
	r = call->fd = control_socket_connect(id, &err);
	if (r >= 0) {
		memcpy(call->id, id, SESSION_ID_SIZE);
		call->answered = answered;
		r = built < 0 ? built : frame_send(call->fd, &feed->out, NULL, 0);
	}
	if (r == 0)
		return 0;
	close_fd(&call->fd);
	return notice(feed, "%s cannot be asked: %s", id, *err.message ? err.message : err_errno_name(-r));
}

/* Its box answers when nothing is left, or is gone with all the rest. */
static int stop_answered(struct feed *feed, struct call *call)
{
	close_fd(&call->fd);
	feed->next_ns = 0;
	return notice(feed, "%s was stopped%s", call->id, "");
}

static int on_stop(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct feed *feed = context;
	const char *id = frame_get_string(frame);
	int r;

	if (frame_finish(frame) < 0 || !id)
		return -EBADMSG;
	frame_begin(&feed->out, CONTROL_STOP);
	frame_put_u32(&feed->out, GRACE_MS);
	r = call_box(feed, id, frame_end(&feed->out), stop_answered);
	return r < 0 ? r : notice(feed, "%s is being stopped%s", id, "");
}

/* One answer of a box into scratch. Its size; 0: there is none, or it is no frame. */
static size_t take_answer(struct feed *feed, struct call *call, struct frame *ret_frame)
{
	size_t fd_count;
	uint8_t *memory;
	ssize_t n;

	buf_reset(&feed->scratch);
	memory = buf_reserve(&feed->scratch, FRAME_MESSAGE_MAX);
	n = memory ? fd_receive_message(call->fd, memory, FRAME_MESSAGE_MAX, NULL, 0, &fd_count) : -ENOMEM;
	close_fd(&call->fd);
	return n > 0 && frame_open(ret_frame, memory, (size_t)n) == 0 ? (size_t)n : 0;
}

static int questions_answered(struct feed *feed, struct call *call)
{
	struct frame frame;
	size_t size = take_answer(feed, call, &frame);
	int r = 0;

	if (size && frame.type == CONTROL_QUESTIONS)
		r = tell_bytes(feed, TOP_QUESTIONS, call->id, feed->scratch.bytes, size);
	/* More than fits into one message is for `atoll ask`. */
	return r == -ENOBUFS || r == -EMSGSIZE ? notice(feed, "%s asks too much for here%s", call->id, "") : r;
}

static int on_ask(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct feed *feed = context;
	const char *id = frame_get_string(frame);

	if (frame_finish(frame) < 0 || !id)
		return -EBADMSG;
	frame_begin(&feed->out, CONTROL_ASKS);
	frame_put_u64(&feed->out, 0);
	frame_put_u32(&feed->out, ASKING_GLANCE);
	return call_box(feed, id, frame_end(&feed->out), questions_answered);
}

static int answer_answered(struct feed *feed, struct call *call)
{
	struct frame frame;
	size_t size = take_answer(feed, call, &frame);

	feed->next_ns = 0;
	return notice(feed, size && frame.type == CONTROL_ANSWERED ? "%s has your answer%s"
							       : "%s did not take your answer: the question is over%s",
		      call->id, "");
}

static int on_answer(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct feed *feed = context;
	const char *id = frame_get_string(frame);
	struct asking_reply reply;
	int r = id ? asking_reply_get(frame, &reply) : -EBADMSG;

	/* What holds for longer is not for a key that is pressed in passing. */
	if (r < 0 || reply.scope != ASKING_ONCE)
		return -EBADMSG;
	return call_box(feed, id, asking_reply_put(&feed->out, &reply), answer_answered);
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

/* Subjects first, then what a person asked for, then atoll-top. */
static size_t fill_polls(const struct feed *feed, struct pollfd *polls)
{
	size_t count = 0;

	for (size_t i = 0; i < feed->count; i++)
		polls[count++] = (struct pollfd){ .fd = feed->subjects[i].is_asked ? feed->subjects[i].fd : -1,
						  .events = POLLIN };
	for (size_t i = 0; i < CALLS_MAX; i++)
		polls[count++] = (struct pollfd){ .fd = feed->calls[i].fd, .events = POLLIN };
	polls[count++] = (struct pollfd){ .fd = feed->options->screen_fd, .events = POLLIN };
	return count;
}

/* 1: go on; 0: atoll-top has gone. */
static int turn(struct feed *feed)
{
	static struct pollfd polls[TOP_SESSIONS_MAX + CALLS_MAX + 1];
	size_t subjects = feed->count, count = fill_polls(feed, polls);
	int r = 0;

	if (poll(polls, count, timeout_ms(feed)) < 0)
		return errno == EINTR ? 1 : -errno;
	for (size_t i = 0; r == 0 && i < subjects; i++)
		if (polls[i].revents)
			r = hear(feed, &feed->subjects[i]);
	for (size_t i = 0; r == 0 && i < CALLS_MAX; i++)
		if (polls[subjects + i].revents)
			r = feed->calls[i].answered(feed, &feed->calls[i]);
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
	for (size_t i = 0; i < CALLS_MAX; i++)
		feed.calls[i].fd = FD_NONE;
	buf_init(&feed.out, FRAME_MESSAGE_MAX);
	buf_init(&feed.scratch, FRAME_MESSAGE_MAX);
	raise_limits();
	r = serve(&feed);
	end_log(&feed);
	for (size_t i = 0; i < feed.count; i++)
		close_fd(&feed.subjects[i].fd);
	for (size_t i = 0; i < CALLS_MAX; i++)
		close_fd(&feed.calls[i].fd);
	buf_done(&feed.out);
	buf_done(&feed.scratch);
	/* It ended while we spoke. */
	if (r == -EPIPE || r == -ECONNRESET)
		return 0;
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "top", "sandboxes cannot be watched: %s", err_errno_name(-r)) : 0;
}
