/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One request to the service, by libcurl: to the URL and with the key of the environment, as the other clients have
 * them. No redirection, no proxy; the answer is bounded. Run by atoll-function.
 */

#include "base/buf.h"
#include "base/err.h"

enum { REQUEST_ANSWER_MAX = 16 << 20 };

struct request {
	const char *method, *path;       /* "POST", "/functions/x" */
	const void *body;                /* borrowed; NULL: none */
	size_t body_size;
	unsigned status;                 /* of the answer */
	struct buf answer;               /* owned: free it by buf_done(), after an error as well */
};

/* 0: there is an answer, whatever its status. Negative with *err: nothing answers, or there is no key. */
int request_send(struct request *request, struct err *err) MUST_USE;
