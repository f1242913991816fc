/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One request to a webhook: what it says, its signature, what came back, by libcurl. When it is made, and what its
 * outcome means, is webhook.c's. Used by atoll-notify alone.
 */

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "notify/answer.h"
#include "notify/sign.h"
#include "wire/notify.h"

enum { POST_CONNECT_MS = 5000, POST_TOTAL_MS = 10000, POST_HEADERS_MAX = 16 << 10, POST_BODY_MAX = 120 << 10 };

/* Where all of them go. */
struct post_target {
	const char *session, *url;
	bool may_answer;
	struct sign_key key;
	void *bundle;            /* PEM of the authorities, owned; NULL: none */
	size_t bundle_size;
	char *host;              /* of the URL, by libcurl; NULL: it is an address */
	char *port;
};

/* Reads what is in the URL. -EINVAL: it is none. */
int post_target_init(struct post_target *target) MUST_USE;
void post_target_done(struct post_target *target);

struct post {
	CURL *easy;              /* NULL: not under way */
	struct curl_slist *headers, *resolved;
	struct buf body, answer;
	size_t header_bytes;
	char signature[SIGN_SIZE], answer_signature[SIGN_SIZE]; /* "": none */
	const char *problem;     /* found while it came in; static */
};

/* {"v":1,"event":"question",…}; and that it is over. */
void post_put_question(struct buf *out, const struct post_target *target, const struct notify_question *question);
void post_put_closed(struct buf *out, const struct post_target *target, uint32_t number,
		     const uint8_t hash[ASKING_HASH_SIZE], enum notify_end end);

/* Begins it with the body that it has. Looks the host up, which may take as long as the resolver does. */
int post_begin(struct post *post, const struct post_target *target, CURLM *multi, void *context) MUST_USE;

/* It is over, or not wanted any more. Keeps the body. */
void post_end(struct post *post, CURLM *multi);

enum post_outcome {
	POST_TAKEN,              /* and nothing was answered */
	POST_ANSWERED,           /* *ret_answer, not compared with anything yet */
	POST_FAILED,             /* may be tried again */
	POST_REFUSED,            /* not again: the server does not want it, or what it says is nonsense */
};

/* What a finished transfer amounts to; *ret_why is static, for the last two. */
enum post_outcome post_judge(const struct post *post, const struct post_target *target, CURLcode result,
			     struct answer *ret_answer, char why[NOTIFY_TROUBLE_MAX]);
