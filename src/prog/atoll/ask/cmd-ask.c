/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "approve/question-words.h"
#include "base/hash.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "prog/atoll/ask/keys.h"
#include "prog/atoll/ask/questions.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"
#include "session/directories.h"
#include "session/listeners.h"

enum { TEXT_MAX = 64 << 20, LOOK_MS = 200, SEEN_MAX = 4096, NEWS_MAX = 4 << 20, STARTING_S = 10 };

struct ask_options {
	bool once, follow, json;
};

static const struct option options[] = {
	{ 0, "once", NULL, "list those that are open now, and end", OPTION_FLAG, offsetof(struct ask_options, once) },
	{ 'f', "follow", NULL, "go on with those that come, also where the output is no terminal", OPTION_FLAG,
	  offsetof(struct ask_options, follow) },
	{ 0, "json", NULL, "one JSON array; while following one object a line", OPTION_FLAG,
	  offsetof(struct ask_options, json) },
};

/* What was said of a question last. */
struct seen {
	char session[SESSION_ID_SIZE];
	uint32_t number, state;
};

struct listing {
	const struct ask_options *given;
	struct buf text;
	struct json json;
	struct seen seen[SEEN_MAX]; /* a ring */
	size_t seen_count;
	struct timespec looked;     /* what the directory of sandboxes was like */
	time_t listed;              /* who does not answer is tried again once a second */
	bool is_following, is_first, rings, has_spoken;
	struct keys keys;
};

static void put_hash(struct json *json, const uint8_t *bytes)
{
	char text[HASH_HEX_SIZE];
	struct hash hash;

	memcpy(hash.bytes, bytes, sizeof hash.bytes);
	hash_to_hex(&hash, text);
	json_string(json, "hash", text);
}

static void put_json(struct json *json, const struct question_box *box, const struct asking_question *question)
{
	char name[QUESTION_NAME_SIZE], time[CLOCK_RFC3339_SIZE];

	clock_format_rfc3339(question->asked_ns, time);
	json_object_begin(json, NULL);
	json_string(json, "question", question_name(name, box->session, question->number));
	json_string(json, "session", box->session);
	json_u64(json, "number", question->number);
	put_hash(json, question->hash);
	json_string(json, "state", asking_state_names[question->state]);
	if (question->state == ASKING_ANSWERED)
		json_bool(json, "allowed", question->is_allowed);
	else
		json_null(json, "allowed");
	json_string(json, "asked", time);
	json_u64(json, "left_ms", question->left_ms);
	json_u64(json, "waiting", question->waiting);
	json_u64(json, "times", question->times);
	json_u64(json, "pid", question->pid);
	question_words_to_json(json, &question->shown);
	json_object_end(json);
}

static void put_people(struct listing *listing, const struct question_box *box,
		       const struct asking_question *question)
{
	char name[QUESTION_NAME_SIZE];
	size_t start;

	question_name(name, box->session, question->number);
	if (question->state == ASKING_ANSWERED) {
		keys_remove(&listing->keys, name);
		buf_printf(&listing->text, "%s  was %s: ", name, question->is_allowed ? "allowed" : "denied");
		question_words_put(&listing->text, &question->shown);
		buf_put_text(&listing->text, "\n\n");
		return;
	}
	start = listing->text.size;
	question_words_put_question(&listing->text, question, name, clock_realtime_ns());
	if (listing->keys.is_on) {
		keys_add(&listing->keys, name, buf_text(&listing->text) + start);
		listing->rings = listing->rings || question->state == ASKING_WAITS;
		return;
	}
	buf_printf(&listing->text, "    atoll approve %s [--for 10m | --session | --forever]\n    atoll deny %s\n\n",
		   name, name);
	listing->rings = listing->rings || question->state == ASKING_WAITS;
}

/* Whether there is something new to say of it. */
static bool is_news(struct listing *listing, const struct question_box *box, const struct asking_question *question)
{
	size_t count = listing->seen_count < SEEN_MAX ? listing->seen_count : SEEN_MAX;
	struct seen *seen;

	for (size_t i = 0; i < count; i++) {
		seen = &listing->seen[i];
		if (seen->number != question->number || !str_equal(seen->session, box->session))
			continue;
		if (seen->state == question->state)
			return false;
		seen->state = question->state;
		return true;
	}
	seen = &listing->seen[listing->seen_count++ % SEEN_MAX];
	memcpy(seen->session, box->session, sizeof seen->session);
	seen->number = question->number;
	seen->state = question->state;
	return true;
}

static int visit(void *context, struct question_box *box, const struct asking_question *question, atoll_record **row)
{
	struct listing *listing = context;

	if (!is_news(listing, box, question) || (listing->is_first && question->state == ASKING_ANSWERED))
		return 0;
	if (!listing->given->json) {
		put_people(listing, box, question);
		return 0;
	}
	put_json(&listing->json, box, question);
	if (listing->is_following) {
		buf_put_char(&listing->text, '\n');
		json_init(&listing->json, &listing->text);
	}
	return 0;
}

static int list_once(struct listing *listing, struct question_boxes *boxes, struct err *err)
{
	int r;

	if (listing->given->json)
		json_array_begin(&listing->json, NULL);
	r = question_boxes_visit(boxes, "list", visit, listing, err);
	if (r < 0)
		return r;
	if (listing->given->json) {
		json_array_end(&listing->json);
		buf_put_char(&listing->text, '\n');
	} else if (!listing->text.size && isatty(STDOUT_FILENO)) {
		buf_put_text(&listing->text, "nothing is open\n");
	}
	return say_out(&listing->text, err);
}

/* ---- to follow ---- */

static int say_news(struct listing *listing, struct err *err)
{
	int r;

	if (listing->rings && !listing->given->json && isatty(STDOUT_FILENO))
		buf_put_char(&listing->text, '\a');
	listing->rings = false;
	listing->has_spoken = listing->has_spoken || listing->text.size;
	r = listing->text.size ? say_out(&listing->text, err) : 0;
	buf_reset(&listing->text);
	json_init(&listing->json, &listing->text);
	return r;
}

/* What is new in a sandbox comes as the answer to one request, behind which the next one asks. */
static int take_news(struct listing *listing, struct question_box *box, const atoll_record *result, struct err *err)
{
	int r;

	if (library_number(result, "code"))
		return library_fail_event(result, err);
	listing->is_first = !box->was_heard;
	box->was_heard = true;
	r = questions_visit(box, result, visit, listing, err);
	return r < 0 ? r : question_box_follow(box, library_number(result, "after"), err);
}

/* 1: it goes on; 0: it is over. */
static int follow_box(struct listing *listing, struct question_box *box)
{
	struct atoll_error error = LIBRARY_ERROR;
	struct err gone = { 0 };
	atoll_record *event;
	int r;

	while ((r = atoll_next(box->sandbox, &event, &error)) == 1) {
		bool is_done = library_number(event, "event") == ATOLL_EVENT_DONE;

		r = is_done ? take_news(listing, box, event, &gone) : -ESHUTDOWN;
		atoll_record_free(event);
		if (r < 0)
			return 0;
	}
	return r == 0;
}

/* Over, or it does not answer yet, or it lost the connection alone: who is still there is found again. */
static void give_up_for_now(struct question_boxes *boxes, size_t index)
{
	question_boxes_remove(boxes, index);
	boxes->is_partial = true;
}

/* Those that are new are asked once; from then on each has one question of ours. */
static void greet(struct question_boxes *boxes, size_t first)
{
	struct err gone = { 0 };

	for (size_t i = boxes->count; i-- > first;)
		if (question_box_follow(&boxes->list[i], 0, &gone) < 0)
			give_up_for_now(boxes, i);
}

/*
 * Sandboxes come and go with their sockets: nothing is listed while their directory stays as it is. But a socket is
 * made before its sandbox is on record and listens, which takes a busy machine seconds.
 */
static bool has_changed(struct listing *listing, const struct question_boxes *boxes)
{
	char runtime[PATH_MAX];
	time_t now = time(NULL);
	struct stat st;
	bool is_same;

	if (session_runtime_dir(runtime, sizeof runtime, false, NULL) < 0 || stat(runtime, &st) < 0)
		return false;
	is_same = st.st_mtim.tv_sec == listing->looked.tv_sec && st.st_mtim.tv_nsec == listing->looked.tv_nsec;
	if (is_same && now - st.st_mtim.tv_sec > STARTING_S && !(boxes->is_partial && now != listing->listed))
		return false;
	listing->looked = st.st_mtim;
	listing->listed = now;
	return true;
}

/* An empty screen would leave a person wondering whether anything runs. A script reads nothing of this. */
static void say_waiting(struct listing *listing, size_t sandboxes)
{
	char memory[128];
	struct buf text;

	if (listing->has_spoken || listing->given->json || !isatty(STDOUT_FILENO) || !isatty(STDERR_FILENO))
		return;
	buf_init_fixed(&text, memory, sizeof memory);
	buf_printf(&text, "atoll: nothing is asked now (%zu sandbox%s); waiting for questions, ctrl-c ends this\n",
		   sandboxes, sandboxes == 1 ? "" : "es");
	(void)!fd_write_full(STDERR_FILENO, text.bytes, text.size);
	listing->has_spoken = true;
}

static int wait_for_news(struct listing *listing, struct question_boxes *boxes, struct err *err)
{
	struct pollfd polled[QUESTION_BOXES_MAX + 1];
	int ready, r = keys_prompt(&listing->keys, err);

	if (r < 0)
		return r;

	for (size_t i = 0; i < boxes->count; i++)
		polled[i] = (struct pollfd){ .fd = atoll_fd(boxes->list[i].sandbox), .events = POLLIN };
	polled[boxes->count] = (struct pollfd){ .fd = listing->keys.is_on ? STDIN_FILENO : -1, .events = POLLIN };
	if (polled[boxes->count].fd >= 0 && poll(&polled[boxes->count], 1, 0) > 0)
		return keys_read(&listing->keys, err);
	ready = poll(polled, boxes->count + 1, LOOK_MS);
	if (ready < 0)
		return errno == EINTR ? 1 : -errno;
	if (ready == 0)
		say_waiting(listing, boxes->count);
	/* From the end: who goes is replaced by one that was looked at. */
	for (size_t i = boxes->count; r == 0 && i-- > 0;) {
		bool goes_on = !polled[i].revents || follow_box(listing, &boxes->list[i]);

		r = say_news(listing, err);
		if (!goes_on)
			give_up_for_now(boxes, i);
	}
	return r;
}

static int follow(struct listing *listing, struct question_boxes *boxes, const char *session, struct err *err)
{
	int r = 0;

	greet(boxes, 0);
	while (r == 0 && (!session || boxes->count)) {
		size_t known;

		r = wait_for_news(listing, boxes, err);
		if (r != 0 || session || !has_changed(listing, boxes))
			continue;
		known = boxes->count;
		r = question_boxes_open(boxes, NULL, err);
		if (r == 0)
			greet(boxes, known);
	}
	return r > 0 ? 0 : r;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_question_boxes struct question_boxes boxes = { 0 };
	cleanup_free struct listing *listing = calloc(1, sizeof *listing);
	cleanup_fd int listener_fd = FD_NONE;
	struct ask_options given = { 0 };
	int rest, r;

	if (!listing)
		return err_set(err, ERR_INTERNAL, ENOMEM, "ask", "out of memory");
	r = cmd_parse(&cmd_ask, &given, argc, argv, &rest, err);
	if (r == 0 && argc - rest > 1)
		r = err_set(err, ERR_USAGE, EINVAL, "ask", "ask takes at most one session");
	if (r == 0)
		r = question_boxes_open(&boxes, argv[rest], err);
	if (r < 0)
		return r;
	listing->given = &given;
	listing->is_following = !given.once && (given.follow || isatty(STDOUT_FILENO));
	listing->is_first = true;
	listing->keys.is_on = listing->is_following && !given.json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	if (listing->is_following && !argv[rest])
		r = listeners_join(&listener_fd, err);
	if (r < 0)
		return r;
	buf_init(&listing->text, listing->is_following ? NEWS_MAX : TEXT_MAX);
	json_init(&listing->json, &listing->text);
	r = listing->is_following ? follow(listing, &boxes, argv[rest], err) : list_once(listing, &boxes, err);
	buf_done(&listing->text);
	keys_done(&listing->keys);
	return r;
}

const struct cmd cmd_ask = {
	"ask", "[ID] [--once | --follow] [--json]", "answer what sandboxes ask for, as they ask",
	CMD_OPTIONS(options), .run = run_verb,
};
