/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is said to a webhook and what its answers amount to: bodies, signatures, outcomes. How it gets there is post/'s,
 * when, and what follows, webhook.c's. Run by atoll-notify.
 */

#include "notify/answer.h"
#include "notify/sign.h"
#include "post/post.h"
#include "wire/notify.h"

enum { MESSAGE_TOTAL_MS = 10000, MESSAGE_BODY_MAX = 120 << 10 };

/* What all of them have in common. */
struct message_frame {
	const char *session;
	bool may_answer;
	struct sign_key key;
};

/* {"v":1,"event":"question",…}; and that it is over. */
void message_put_question(struct buf *out, const struct message_frame *frame, const struct notify_question *question);
void message_put_closed(struct buf *out, const struct message_frame *frame, uint32_t number,
			const uint8_t hash[ASKING_HASH_SIZE], enum notify_end end);

/* Appends {"v":1,"event":"alert",…,"alert":KIND,"text":WHAT} with what all messages of the frame have. */
void message_put_alert(struct buf *out, const struct message_frame *frame, const char *kind, const char *what);

/* Signs the body that the post has, where there is a key. False: out of memory. */
bool message_sign(struct post *post, const struct message_frame *frame, char signature[SIGN_SIZE]) MUST_USE;

enum message_outcome {
	MESSAGE_TAKEN,           /* and nothing was answered */
	MESSAGE_ANSWERED,        /* *ret_answer, not compared with anything yet */
	MESSAGE_FAILED,          /* may be tried again */
	MESSAGE_REFUSED,         /* not again: the server does not want it, or what it says is nonsense */
};

/* What a finished transfer amounts to; why is for the last two. signature: of what was posted. */
enum message_outcome message_judge(const struct post *post, const struct message_frame *frame, const char *signature,
				   CURLcode result, struct answer *ret_answer, char why[NOTIFY_TROUBLE_MAX]);
