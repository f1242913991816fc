/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How atoll-secret hands on the secrets that a policy names, over two socket pairs, one message each: the values go
 * to the network gate, which puts them into requests, and to nobody on the way there; to `atoll` go the placeholders,
 * which stand inside in their place. They lie in no file and no environment.
 */

#include <stdint.h>

#include "wire/frame.h"

enum secret_message {
	SECRET_VALUE = 1,        /* struct secret_value */
	SECRET_END,              /* these were all */
	SECRET_PLACEHOLDER,      /* string name, string placeholder */
};

enum {
	SECRET_FD = 3,               /* in atoll-secret: a SOCK_SEQPACKET for the values */
	SECRET_PLACEHOLDER_FD = 4,   /* … and one for the placeholders */
	SECRET_GIVE_MAX = 12,        /* what a socket's buffer holds, so that nobody needs to read meanwhile */
	SECRET_PLACEHOLDER_MAX = 1024,
};

struct secret_value {
	const char *name;
	const char *value;       /* no NUL in it */
	size_t size;
	const char *placeholder;
};

/* out is the caller's to wipe. */
int secret_put_value(struct buf *out, const struct secret_value *value) MUST_USE;
int secret_put_end(struct buf *out) MUST_USE;
int secret_put_placeholder(struct buf *out, const char *name, const char *placeholder) MUST_USE;

/*
 * Borrowed from the frame. -EBADMSG: malformed, a text that is empty, a NUL in the value, or a placeholder of more
 * than SECRET_PLACEHOLDER_MAX bytes.
 */
int secret_get_value(struct frame *frame, struct secret_value *ret_value) MUST_USE;
int secret_get_placeholder(struct frame *frame, const char **ret_name, const char **ret_placeholder) MUST_USE;
