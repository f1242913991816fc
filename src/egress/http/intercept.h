/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The life of one intercepted connection: TLS with the client, in the host's place, and with the server, in the
 * client's, or plain text with both; what was read of one goes through exchange.h or http2.h to the other, with back
 * pressure and within the limits. It takes the place of a relay for hosts that have rules about requests. SIGPIPE must
 * be ignored. Runs in atoll-egress.
 */

#include <event2/event.h>

#include "egress/http/exchange.h"
#include "egress/limit/memory.h"
#include "egress/limit/quota.h"

/* OpenSSL's headers and base/err.h do not go together. */
struct ssl_ctx_st;

struct ca;
struct intercept;

struct intercept_options {
	struct event_base *base;
	struct memory_budget *memory;             /* NULL: nobody counts what is held */
	/*
	 * Non-blocking, borrowed: closed by the caller after intercept_free(). outside_fd FD_NONE: no server is asked;
	 * what no rule and no recording answers is refused.
	 */
	int inside_fd, outside_fd;
	struct target_server server;       /* host borrowed; without is_tls it is plain text */
	bool is_http2;                     /* in plain text: the client begins with the preface of HTTP/2 */
	const struct policy *policy;
	struct ca *ca;
	struct ssl_ctx_st *upstream;       /* upstream_new() */
	const struct quota_share *share;
	struct exchange_hooks hooks;
	/*
	 * How long a head may take; for twice of it nothing may be asked for, for 15 times nothing may move of what
	 * was asked, and that often bodies are looked at (progress.h). 0: a minute. Tests have less.
	 */
	uint32_t patience_ms;
	/*
	 * Once, never from within intercept_new(): it is over; why (static) is NULL where both sides simply
	 * ended, "EDQUOT" where the bytes are used up. The intercept may be freed here.
	 */
	void (*on_end)(void *context, const char *why);
	/* All that the client sent, and its end, were handed on. The intercept may be freed here. NULL: nobody asks. */
	void (*on_said)(void *context);
	void *context;
};

/* Starts: the client's hello may already lie in the socket. All pointers are borrowed. -ENOMEM, -EINVAL, -EIO. */
int intercept_new(struct intercept **ret_intercept, const struct intercept_options *options, uint64_t now_s) MUST_USE;
void intercept_free(struct intercept *intercept);

/* What a request that exchange_hooks.ask() was called for waits for. It may be freed here, by on_end(). */
void intercept_answered(struct intercept *intercept, struct exchange_record *record, const struct decision *answer);

/* Whether on_said() was or would be called. */
bool intercept_has_said(const struct intercept *intercept);

/* Bytes that were read of the client, with what they grew by on their way out, and of the server, without TLS. */
void intercept_count(const struct intercept *intercept, uint64_t *ret_out_bytes, uint64_t *ret_in_bytes);
