/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>

#include "confine/confine.h"
#include "notify/link.h"
#include "notify/message.h"
#include "os/clock.h"
#include "os/fd.h"
#include "wire/secret.h"

/*
 * Each question is one item: posted, tried again a few times where the server is not there, posted again from time to
 * time while it waits and the webhook may answer, and posted a last time when it is over. An answer is passed on where
 * it names the number and the hash that were posted. All waits are the loop's; a server that does nothing costs a
 * connection for ten seconds.
 */

enum { ITEMS_MAX = 3 * NOTIFY_OPEN_MAX + NOTIFY_ALERTS_MAX, RUNNING_MAX = 4, ATTEMPTS_MAX = 3, RETRY_MS = 1000,
       AGAIN_FIRST_MS = 2000, AGAIN_MAX_MS = 10000, NS_PER_MS = 1000000, FINISH_MS = 2000, FINISH_LOOK_MS = 50 };

/* Numbers of questions are smaller. */
static const uint32_t ALERT_NUMBER = UINT32_C(1) << 31;

struct item {
	uint32_t number;             /* 0: free */
	uint8_t hash[ASKING_HASH_SIZE];
	uint32_t state;              /* of the question */
	bool is_closing;             /* it is over, and that is what is posted */
	bool is_delivered;           /* the server knows of it */
	unsigned attempts;           /* that failed, of this body */
	uint64_t due_ns;             /* UINT64_MAX: not again */
	uint64_t again_ms;           /* until it is asked the next time */
	struct post post;
	char signature[SIGN_SIZE];   /* of what was posted */
};

struct webhook {
	struct notify_link *link;
	struct post_target target;
	struct message_frame frame;
	CURLM *multi;
	struct item items[ITEMS_MAX];
	size_t running;
	uint32_t alerts;             /* so many were told of */
	bool is_ending;              /* the box has gone: nobody is answered any more */
};

/* ---- items ---- */

static struct item *find_item(struct webhook *webhook, uint32_t number, bool is_closing)
{
	for (size_t i = 0; i < ITEMS_MAX; i++)
		if (webhook->items[i].number == number && (!number || webhook->items[i].is_closing == is_closing))
			return &webhook->items[i];
	return NULL;
}

static void stop(struct webhook *webhook, struct item *item)
{
	if (item->post.easy) {
		webhook->running--;
		post_end(&item->post, webhook->multi);
	}
}

static void drop(struct webhook *webhook, struct item *item)
{
	stop(webhook, item);
	buf_done(&item->post.body);
	*item = (struct item){ 0 };
}

/* What is over, and has waited the longest to be told, goes first. */
static struct item *make_room(struct webhook *webhook)
{
	struct item *oldest = find_item(webhook, 0, false);

	if (oldest)
		return oldest;
	for (size_t i = 0; i < ITEMS_MAX; i++)
		if (webhook->items[i].is_closing && (!oldest || webhook->items[i].number < oldest->number))
			oldest = &webhook->items[i];
	if (oldest)
		drop(webhook, oldest);
	return oldest;
}

static void set_due(struct item *item, uint64_t in_ms)
{
	item->due_ns = clock_monotonic_ns() + in_ms * NS_PER_MS;
}

/* A body is there, to be posted now. */
static void renew(struct item *item)
{
	item->attempts = 0;
	item->again_ms = AGAIN_FIRST_MS;
	set_due(item, 0);
}

/* From here on the item says that the question is over. */
static void turn_to_close(struct webhook *webhook, struct item *item, enum notify_end end)
{
	stop(webhook, item);
	item->is_closing = true;
	buf_reset(&item->post.body);
	message_put_closed(&item->post.body, &webhook->frame, item->number, item->hash, end);
	renew(item);
}

/* ---- outcomes ---- */

static int trouble(struct webhook *webhook, const char *why)
{
	/* Said when it begins, and not of each question. */
	bool is_new = !webhook->link->is_told || webhook->link->is_heard;

	return notify_tell_state(webhook->link, false, is_new ? why : NULL);
}

static int taken(struct webhook *webhook, struct item *item)
{
	int r = notify_tell_state(webhook->link, true, NULL);

	item->attempts = 0;
	item->is_delivered = true;
	if (item->is_closing) {
		drop(webhook, item);
		return r;
	}
	item->due_ns = UINT64_MAX;
	if (webhook->is_ending)
		turn_to_close(webhook, item, NOTIFY_OVER);
	else if (webhook->frame.may_answer && item->state == ASKING_WAITS) {
		set_due(item, item->again_ms);
		item->again_ms = 2 * item->again_ms > AGAIN_MAX_MS ? AGAIN_MAX_MS : 2 * item->again_ms;
	}
	return r;
}

static int failed(struct webhook *webhook, struct item *item, bool may_try, const char *why)
{
	if (may_try && ++item->attempts < ATTEMPTS_MAX) {
		set_due(item, RETRY_MS << 2 * (item->attempts - 1));
		return 0;
	}
	item->due_ns = UINT64_MAX;
	if (item->is_closing || webhook->is_ending)
		drop(webhook, item);
	return trouble(webhook, why);
}

static int answered(struct webhook *webhook, struct item *item, const struct answer *answer)
{
	struct asking_reply reply = {
		.number = item->number, .hash = item->hash, .is_allowed = answer->is_allowed, .scope = answer->scope,
		.amount = answer->amount,
	};
	int r;

	if (item->is_closing || webhook->is_ending)
		return taken(webhook, item);
	if (answer->question != item->number || memcmp(answer->hash, item->hash, sizeof item->hash) != 0)
		return failed(webhook, item, false, "its answer was not taken: it is about another question");
	r = taken(webhook, item);
	item->due_ns = UINT64_MAX;
	return r < 0 ? r : notify_tell_answer(webhook->link, &reply);
}

static int conclude(struct webhook *webhook, struct item *item, CURLcode result)
{
	char why[NOTIFY_TROUBLE_MAX] = "";
	struct answer answer;
	enum message_outcome outcome = message_judge(&item->post, &webhook->frame, item->signature, result, &answer,
						     why);

	stop(webhook, item);
	if (outcome == MESSAGE_TAKEN)
		return taken(webhook, item);
	if (outcome == MESSAGE_ANSWERED)
		return answered(webhook, item, &answer);
	return failed(webhook, item, outcome == MESSAGE_FAILED, why);
}

static int collect(struct webhook *webhook)
{
	CURLMsg *message;
	int left, r = 0;

	while (r == 0 && (message = curl_multi_info_read(webhook->multi, &left))) {
		struct item *item = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &item);
		if (item)
			r = conclude(webhook, item, message->data.result);
	}
	return r;
}

static int start_due(struct webhook *webhook)
{
	uint64_t now_ns = clock_monotonic_ns();
	int r = 0;

	for (size_t i = 0; r == 0 && i < ITEMS_MAX && webhook->running < RUNNING_MAX; i++) {
		struct item *item = &webhook->items[i];

		if (!item->number || item->post.easy || item->due_ns > now_ns)
			continue;
		r = message_sign(&item->post, &webhook->frame, item->signature) ? 0 : -ENOMEM;
		if (r == 0)
			r = post_begin(&item->post, &webhook->target, webhook->multi, item);
		if (r == 0)
			webhook->running++;
		else
			r = failed(webhook, item, true, "its host cannot be looked up");
	}
	return r;
}

/* ---- what the box says ---- */

static int on_question(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct webhook *webhook = context;
	struct notify_question question;
	struct item *item;
	int r = notify_question_get(frame, &question);

	if (r < 0)
		return r;
	item = find_item(webhook, question.number, false);
	if (!item)
		item = make_room(webhook);
	if (!item)
		return -EPROTO;
	/* A body that is under way is libcurl's to read: it begins anew. */
	stop(webhook, item);
	item->number = question.number;
	memcpy(item->hash, question.hash, sizeof item->hash);
	item->state = question.state;
	buf_done(&item->post.body);
	buf_init(&item->post.body, MESSAGE_BODY_MAX);
	message_put_question(&item->post.body, &webhook->frame, &question);
	if (buf_error(&item->post.body))
		drop(webhook, item);
	else
		renew(item);
	return 0;
}

static int on_close(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct webhook *webhook = context;
	enum notify_end end;
	uint32_t number;
	int r = notify_close_get(frame, &number, &end);
	struct item *item = r == 0 && number ? find_item(webhook, number, false) : NULL;

	if (!item)
		return r;
	/* One that is under way may arrive yet. */
	if (!item->is_delivered && !item->post.easy) {
		drop(webhook, item);
		return 0;
	}
	turn_to_close(webhook, item, end);
	return 0;
}

/* An item as one that is over: posted, tried again, and forgotten. */
static int on_alert(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct webhook *webhook = context;
	const char *kind, *what;
	struct item *item;
	int r = notify_alert_get(frame, &kind, &what);

	if (r < 0)
		return r;
	item = make_room(webhook);
	if (!item)
		return 0;
	item->number = ALERT_NUMBER | ++webhook->alerts;
	item->is_closing = true;
	buf_init(&item->post.body, MESSAGE_BODY_MAX);
	message_put_alert(&item->post.body, &webhook->frame, kind, what);
	renew(item);
	return 0;
}

static const struct frame_rule rules[] = {
	{ NOTIFY_ALERT, 1, 4096, 0, 0, on_alert },
	{ NOTIFY_QUESTION, 1, FRAME_MESSAGE_MAX, 0, 0, on_question },
	{ NOTIFY_CLOSE, 1, 64, 0, 0, on_close },
};

/* ---- the loop ---- */

static int timeout_ms(const struct webhook *webhook)
{
	uint64_t now_ns = clock_monotonic_ns(), next_ns = UINT64_MAX;

	for (size_t i = 0; webhook->running < RUNNING_MAX && i < ITEMS_MAX; i++) {
		const struct item *item = &webhook->items[i];

		if (item->number && !item->post.easy && item->due_ns < next_ns)
			next_ns = item->due_ns;
	}
	/* libcurl knows of its own times, and shortens this. */
	if (next_ns == UINT64_MAX)
		return INT32_MAX;
	return next_ns > now_ns ? (int)((next_ns - now_ns) / NS_PER_MS) + 1 : 0;
}

/* 1: go on; 0: the box has gone. */
static int step(struct webhook *webhook)
{
	struct curl_waitfd box = { .fd = webhook->link->fd, .events = CURL_WAIT_POLLIN };
	int running, r = start_due(webhook);

	if (r == 0 && curl_multi_perform(webhook->multi, &running) != CURLM_OK)
		r = -EIO;
	if (r == 0)
		r = collect(webhook);
	if (r == 0 && curl_multi_poll(webhook->multi, &box, 1, timeout_ms(webhook), NULL) != CURLM_OK)
		r = -EIO;
	if (r < 0 || !box.revents)
		return r < 0 ? r : 1;
	return frame_dispatch(webhook->link->fd, &webhook->link->scratch, 0, rules, ARRAY_SIZE(rules), webhook);
}

static bool has_items(const struct webhook *webhook)
{
	for (size_t i = 0; i < ITEMS_MAX; i++)
		if (webhook->items[i].number)
			return true;
	return false;
}

/*
 * The box has gone, and with it every question. Who reads the webhook hears all the same, if it can be soon, what was
 * asked in a run that was shorter than a request, and that nothing of it is open any more; and every alert.
 */
static void finish(struct webhook *webhook)
{
	uint64_t until_ns = clock_monotonic_ns() + FINISH_MS * (uint64_t)NS_PER_MS;
	int running;

	webhook->is_ending = true;
	for (size_t i = 0; i < ITEMS_MAX; i++) {
		struct item *item = &webhook->items[i];

		if (item->is_delivered && !item->is_closing)
			turn_to_close(webhook, item, NOTIFY_OVER);
		else if (item->number && !item->post.easy && item->due_ns == UINT64_MAX)
			drop(webhook, item);
	}
	while (has_items(webhook) && clock_monotonic_ns() < until_ns) {
		(void)!start_due(webhook);
		if (curl_multi_perform(webhook->multi, &running) != CURLM_OK)
			return;
		(void)!collect(webhook);
		if (has_items(webhook) &&
		    curl_multi_poll(webhook->multi, NULL, 0, FINISH_LOOK_MS, NULL) != CURLM_OK)
			return;
	}
}

/* ---- what it is given ---- */

static int on_key(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct sign_key *key = context;
	struct secret_value value;
	int r = secret_get_value(frame, &value);

	if (r == 0 && value.size <= sizeof key->bytes) {
		memcpy(key->bytes, value.value, value.size);
		key->size = value.size;
	}
	return r;
}

static const struct frame_rule key_rules[] = {
	{ SECRET_VALUE, 1, FRAME_MESSAGE_MAX, 0, 0, on_key },
};

static int read_key_file(int fd, struct sign_key *key)
{
	ssize_t n = read(fd, key->bytes, sizeof key->bytes);

	if (n < 0)
		return -errno;
	key->size = (size_t)n;
	while (key->size && (key->bytes[key->size - 1] == '\n' || key->bytes[key->size - 1] == '\r'))
		key->size--;
	return 0;
}

static int read_key(struct webhook *webhook, int fd)
{
	struct sign_key *key = &webhook->frame.key;
	struct stat st;
	int r = fd < 0 ? 0 : fstat(fd, &st) < 0 ? -errno : 1;

	if (r <= 0)
		return r;
	if (S_ISSOCK(st.st_mode))
		r = frame_dispatch(fd, &webhook->link->scratch, 0, key_rules, ARRAY_SIZE(key_rules), key);
	else
		r = read_key_file(fd, key);
	sodium_memzero(webhook->link->scratch.bytes, webhook->link->scratch.capacity);
	return r < 0 ? r : key->size < SIGN_KEY_MIN ? -EINVAL : 0;
}

/* NULL, or why there is nobody to tell. */
static const char *prepare(struct webhook *webhook, const struct notify_given *given)
{
	answer_prepare();
	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return "its libraries cannot be used";
	if (read_key(webhook, given->key_fd) < 0)
		return "its key cannot be read, or is shorter than 16 bytes";
	if (given->bundle_fd >= 0 && post_target_read_bundle(&webhook->target, given->bundle_fd) < 0)
		return "the bundle of authorities cannot be read";
	if (post_target_init(&webhook->target) < 0)
		return "its URL cannot be read";
	webhook->multi = curl_multi_init();
	return webhook->multi ? NULL : "its libraries cannot be used";
}

int webhook_run(struct notify_link *link, const struct notify_given *given, struct err *err)
{
	struct webhook webhook = {
		.link = link,
		.target = { .url = given->start.address, .user_header = "atoll-signature",
			    .timeout_ms = MESSAGE_TOTAL_MS, .answer_max = ANSWER_MAX },
		.frame = { .session = given->start.session, .may_answer = given->start.flags & NOTIFY_MAY_ANSWER },
	};
	const char *why = prepare(&webhook, given);
	int r;

	if (why)
		r = notify_tell_state(link, false, why);
	else
		r = confine_self(CONFINE_NOTIFY_WEBHOOK, NULL, 0, err);
	if (r == 0 && !why)
		r = 1;
	while (r > 0)
		r = step(&webhook);
	if (r == 0 && webhook.multi)
		finish(&webhook);
	for (size_t i = 0; i < ITEMS_MAX; i++)
		drop(&webhook, &webhook.items[i]);
	if (webhook.multi)
		curl_multi_cleanup(webhook.multi);
	post_target_done(&webhook.target);
	sodium_memzero(&webhook.frame, sizeof webhook.frame);
	return r;
}
