/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One POST to one URL by libcurl, bounded in everything: no redirection, no proxy, no cookie, nothing decoded, TLS
 * checked against the authorities that were given. What is said and what the answer means is the caller's. For programs
 * that have confined themselves: the host is looked up without a thread.
 */

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { POST_CONNECT_MS = 5000, POST_HEADERS_MAX = 16 << 10, POST_BUNDLE_MAX = 4 << 20 };

/* Where all of them go. */
struct post_target {
	const char *url;         /* borrowed */
	const char *user_header; /* "atoll-signature": the header of an answer that is kept; NULL: none. Lower case */
	uint64_t timeout_ms;     /* of a whole one */
	size_t answer_max;       /* bytes */
	void *bundle;            /* PEM of the authorities, owned; NULL: none */
	size_t bundle_size;
	char *host;              /* of the URL, by libcurl; NULL: it is an address */
	char *port;
};

/* Reads what is in the URL. -EINVAL: it is none. */
int post_target_init(struct post_target *target) MUST_USE;
void post_target_done(struct post_target *target);

/* The authorities, from a regular file. */
int post_target_read_bundle(struct post_target *target, int fd) MUST_USE;

struct post {
	CURL *easy;              /* NULL: not under way */
	const struct post_target *target;
	struct curl_slist *headers, *resolved;
	struct buf body;         /* owned; set before it begins */
	struct buf answer;
	size_t header_bytes;
	char user_header[128];   /* its value; "": there was none */
	const char *problem;     /* found while it came in; static */
};

/* Before it begins, beside those of JSON. False: out of memory. */
bool post_add_header(struct post *post, const char *text) MUST_USE;

/*
 * Begins it with body and headers. Looks the host up, which may take as long as the resolver does. -ENOENT: it has no
 * address. After an error it is as after post_end().
 */
int post_begin(struct post *post, const struct post_target *target, CURLM *multi, void *context) MUST_USE;

/* It is over, or not wanted any more. Keeps the body. */
void post_end(struct post *post, CURLM *multi);

/* How a finished transfer went: its status, or 0 with *ret_why (static). *ret_may_retry: the server was not there. */
unsigned post_status(const struct post *post, CURLcode result, const char **ret_why, bool *ret_may_retry);
