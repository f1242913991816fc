/* SPDX-License-Identifier: Apache-2.0 */
#include "notify/message.h"

#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"

enum { HEADER_SIZE = 160, OK = 200, REDIRECT = 300, CLIENT_ERROR = 400, TIMEOUT = 408, TOO_MANY = 429,
       SERVER_ERROR = 500 };

static void begin(struct json *json, struct buf *out, const struct message_frame *frame, const char *event)
{
	json_init(json, out);
	json_object_begin(json, NULL);
	json_u64(json, "v", 1);
	json_string(json, "event", event);
	json_string(json, "session", frame->session);
}

static void put_hash(struct json *json, const uint8_t bytes[ASKING_HASH_SIZE])
{
	char text[HASH_HEX_SIZE + 8] = "sha256:";
	struct hash hash;

	memcpy(hash.bytes, bytes, sizeof hash.bytes);
	hash_to_hex(&hash, text + strlen(text));
	json_string(json, "hash", text);
}

void message_put_question(struct buf *out, const struct message_frame *frame, const struct notify_question *question)
{
	struct json json;

	begin(&json, out, frame, "question");
	json_u64(&json, "question", question->number);
	put_hash(&json, question->hash);
	json_string(&json, "state", question->state == ASKING_WAITS ? "waiting" : "listed");
	json_u64(&json, "waiting", question->waiting);
	json_u64(&json, "left_ms", question->left_ms);
	json_bool(&json, "may_answer", frame->may_answer);
	json_string(&json, "text", question->what);
	/* Written by the box, which wrote the members. */
	buf_put_text(out, ",\"what\":");
	buf_put_text(out, question->json);
	json_object_end(&json);
}

void message_put_closed(struct buf *out, const struct message_frame *frame, uint32_t number,
		     const uint8_t hash[ASKING_HASH_SIZE], enum notify_end end)
{
	struct json json;

	begin(&json, out, frame, "closed");
	json_u64(&json, "question", number);
	put_hash(&json, hash);
	json_string(&json, "answer", notify_end_names[end]);
	json_object_end(&json);
}

void message_put_alert(struct buf *out, const struct message_frame *frame, const char *kind, const char *what)
{
	struct json json;

	begin(&json, out, frame, "alert");
	json_string(&json, "alert", kind);
	json_string(&json, "text", what);
	json_object_end(&json);
}

bool message_sign(struct post *post, const struct message_frame *frame, char signature[SIGN_SIZE])
{
	uint64_t time_s = (uint64_t)time(NULL);
	char header[HEADER_SIZE];

	signature[0] = 0;
	if (!frame->key.size)
		return true;
	sign_request(&frame->key, time_s, post->body.bytes, post->body.size, signature);
	return str_format(header, sizeof header, "Atoll-Signature: t=%llu,v1=%s", (unsigned long long)time_s,
			  signature) == 0 && post_add_header(post, header);
}

static bool is_signed(const struct post *post, const struct message_frame *frame, const char *signature)
{
	char expected[SIGN_SIZE];

	if (!frame->key.size)
		return true;
	sign_answer(&frame->key, signature, post->answer.bytes, post->answer.size, expected);
	return str_has_prefix(post->user_header, "v1=") && strlen(post->user_header) == 3 + SIGN_SIZE - 1 &&
	       sign_is_same(expected, post->user_header + 3);
}

static enum message_outcome judge_answer(const struct post *post, const struct message_frame *frame,
					 const char *signature, struct answer *ret_answer,
					 char why[NOTIFY_TROUBLE_MAX])
{
	const char *problem = is_signed(post, frame, signature) ? NULL : "it is not signed with the key";

	if (!problem && answer_parse(post->answer.bytes, post->answer.size, ret_answer, &problem) == 0)
		return MESSAGE_ANSWERED;
	if (str_format(why, NOTIFY_TROUBLE_MAX, "its answer was not taken: %s", problem) < 0)
		why[0] = 0;
	return MESSAGE_REFUSED;
}

enum message_outcome message_judge(const struct post *post, const struct message_frame *frame, const char *signature,
				   CURLcode result, struct answer *ret_answer, char why[NOTIFY_TROUBLE_MAX])
{
	const char *problem;
	bool may_retry;
	unsigned status = post_status(post, result, &problem, &may_retry);

	if (!status) {
		(void)!str_copy(why, NOTIFY_TROUBLE_MAX, problem);
		return may_retry ? MESSAGE_FAILED : MESSAGE_REFUSED;
	}
	if (status >= OK && status < REDIRECT) {
		if (!frame->may_answer || status != OK || !post->answer.size)
			return MESSAGE_TAKEN;
		return judge_answer(post, frame, signature, ret_answer, why);
	}
	(void)!str_format(why, NOTIFY_TROUBLE_MAX, status >= REDIRECT && status < CLIENT_ERROR
			  ? "it answered with %u, and redirections are not followed" : "it answered with %u", status);
	return status >= SERVER_ERROR || status == TIMEOUT || status == TOO_MANY ? MESSAGE_FAILED : MESSAGE_REFUSED;
}
