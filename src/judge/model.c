/* SPDX-License-Identifier: Apache-2.0 */
#include <sodium.h>
#include <string.h>

#include "base/str.h"
#include "confine/confine.h"
#include "judge/judge.h"
#include "judge/opinion.h"
#include "judge/proposal.h"
#include "post/post.h"
#include "wire/secret.h"

/* One request for each case to an OpenAI-compatible endpoint, a few at a time. What fails is not tried again. */

enum { RUNNING_MAX = 8, OK = 200, AUTHORIZATION_MAX = 8192 };

struct item {
	uint32_t id;                 /* 0: free */
	enum judge_question question;
	struct post post;
};

struct court {
	struct judge *judge;
	struct post_target target;
	char authorization[AUTHORIZATION_MAX]; /* the whole header; "": none */
	CURLM *multi;
	struct item items[JUDGE_OPEN_MAX];
	size_t running;
};

static struct item *find(struct court *court, uint32_t id)
{
	for (size_t i = 0; i < JUDGE_OPEN_MAX; i++)
		if (court->items[i].id == id)
			return &court->items[i];
	return NULL;
}

static void drop(struct court *court, struct item *item)
{
	court->running -= item->post.easy != NULL;
	post_end(&item->post, court->multi);
	buf_done(&item->post.body);
	*item = (struct item){ 0 };
}

static int fail(struct court *court, struct item *item, const char *why)
{
	int r = judge_tell_unclear(court->judge, item->id, item->question, why);

	drop(court, item);
	return r;
}

static int finish(struct court *court, struct item *item, CURLcode result)
{
	char reason[JUDGE_REASON_MAX] = "";
	struct judge_answer answer;
	const char *why;
	bool may_retry;
	unsigned status = post_status(&item->post, result, &why, &may_retry);
	int r;

	if (status == OK) {
		answer = (struct judge_answer){ item->post.answer.bytes, item->post.answer.size, true };
		r = judge_tell_answer(court->judge, item->id, item->question, &answer);
		drop(court, item);
		return r;
	}
	if ((status ? str_format(reason, sizeof reason, "the verifier answered with %u", status)
		    : str_format(reason, sizeof reason, "the verifier was not reached: %s", why)) < 0)
		reason[0] = 0;
	return fail(court, item, reason);
}

static int collect(struct court *court)
{
	CURLMsg *message;
	int left, r = 0;

	while (r == 0 && (message = curl_multi_info_read(court->multi, &left))) {
		struct item *item = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &item);
		if (item)
			r = finish(court, item, message->data.result);
	}
	return r;
}

static int begin_waiting(struct court *court)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < JUDGE_OPEN_MAX && court->running < RUNNING_MAX; i++) {
		struct item *item = &court->items[i];

		if (!item->id || item->post.easy)
			continue;
		if (court->authorization[0] && !post_add_header(&item->post, court->authorization))
			return -ENOMEM;
		if (post_begin(&item->post, &court->target, court->multi, item) == 0)
			court->running++;
		else
			r = fail(court, item, "the verifier's host cannot be looked up");
	}
	return r;
}

static int take_case(struct court *court, struct frame *frame, enum judge_question question)
{
	struct item *item = find(court, 0);
	const char *json;
	uint32_t id;
	int r = judge_case_get(frame, &id, &json);

	if (r < 0)
		return r;
	if (!item || find(court, id))
		return -EPROTO;
	item->id = id;
	item->question = question;
	buf_init(&item->post.body, 4 * JUDGE_CASE_MAX);
	if (question == QUESTION_NARROW)
		proposal_put_request(&item->post.body, court->judge->start.model, json);
	else
		opinion_put_request(&item->post.body, court->judge->start.model, json);
	return buf_error(&item->post.body) ? fail(court, item, "it is too long to be judged") : 0;
}

static int on_case(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	return take_case(context, frame, QUESTION_ACTION);
}

static int on_narrow(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	return take_case(context, frame, QUESTION_NARROW);
}

static int on_forget(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct court *court = context;
	uint32_t id = frame_get_u32(frame);
	struct item *item;

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	item = id ? find(court, id) : NULL;
	if (item)
		drop(court, item);
	return 0;
}

static const struct frame_rule rules[] = {
	{ JUDGE_CASE, 1, FRAME_MESSAGE_MAX, 0, 0, on_case },
	{ JUDGE_FORGET, 1, 64, 0, 0, on_forget },
	{ JUDGE_NARROW, 1, FRAME_MESSAGE_MAX, 0, 0, on_narrow },
};

/* 1: go on; 0: the box has gone. */
static int step(struct court *court)
{
	struct curl_waitfd box = { .fd = court->judge->box_fd, .events = CURL_WAIT_POLLIN };
	int running, r = begin_waiting(court);

	if (r == 0 && curl_multi_perform(court->multi, &running) != CURLM_OK)
		r = -EIO;
	if (r == 0)
		r = collect(court);
	if (r == 0 && curl_multi_poll(court->multi, &box, 1, INT32_MAX, NULL) != CURLM_OK)
		r = -EIO;
	if (r < 0 || !box.revents)
		return r < 0 ? r : 1;
	return frame_dispatch(court->judge->box_fd, &court->judge->scratch, 0, rules, ARRAY_SIZE(rules), court);
}

/* ---- what it is given ---- */

static int on_secret(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct court *court = context;
	struct secret_value value;
	int r = secret_get_value(frame, &value);

	if (r < 0)
		return r;
	/* A line of its own would be another header. */
	if (memchr(value.value, '\n', value.size) || memchr(value.value, '\r', value.size))
		return -EINVAL;
	return str_format(court->authorization, sizeof court->authorization, "Authorization: Bearer %.*s",
			  (int)value.size, value.value);
}

static const struct frame_rule secret_rules[] = {
	{ SECRET_VALUE, 1, FRAME_MESSAGE_MAX, 0, 0, on_secret },
};

static int prepare(struct court *court)
{
	struct judge *judge = court->judge;
	int r = 1;

	if (sodium_init() < 0 || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return -EIO;
	if (judge->secret_fd >= 0)
		r = frame_dispatch(judge->secret_fd, &judge->scratch, 0, secret_rules, ARRAY_SIZE(secret_rules), court);
	sodium_memzero(judge->scratch.bytes, judge->scratch.capacity);
	if (r <= 0)
		return r < 0 ? r : -ENODATA;
	if (judge->bundle_fd >= 0 && post_target_read_bundle(&court->target, judge->bundle_fd) < 0)
		return -EIO;
	if (post_target_init(&court->target) < 0)
		return -EINVAL;
	court->multi = curl_multi_init();
	return court->multi ? 0 : -ENOMEM;
}

int judge_by_model(struct judge *judge, struct err *err)
{
	struct court *court = calloc(1, sizeof *court);
	int r;

	if (!court)
		return -ENOMEM;
	court->judge = judge;
	court->target = (struct post_target){ .url = judge->start.url, .timeout_ms = judge->start.timeout_ms,
					      .answer_max = OPINION_MAX };
	r = prepare(court);
	if (r == 0)
		r = confine_self(CONFINE_JUDGE_MODEL, NULL, 0, err);
	if (r == 0)
		do
			r = step(court);
		while (r > 0);
	for (size_t i = 0; court->multi && i < JUDGE_OPEN_MAX; i++)
		drop(court, &court->items[i]);
	if (court->multi)
		curl_multi_cleanup(court->multi);
	post_target_done(&court->target);
	sodium_memzero(court->authorization, sizeof court->authorization);
	free(court);
	return r;
}
