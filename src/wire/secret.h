/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How atoll-secret hands the secrets that a policy names to who puts them into requests: over a socket pair,
 * one message each, then one that says that these were all. They lie in no file and no environment on the
 * way.
 */

#include <stdint.h>

#include "wire/frame.h"

enum secret_message {
	SECRET_VALUE = 1,        /* string name, bytes value */
	SECRET_END,
};

enum {
	SECRET_FD = 3,           /* in atoll-secret: a SOCK_SEQPACKET */
	SECRET_GIVE_MAX = 12,    /* what a socket's buffer holds, so that nobody needs to read meanwhile */
};

/* out is the caller's to wipe. */
int secret_put_value(struct buf *out, const char *name, const void *value, size_t size) MUST_USE;
int secret_put_end(struct buf *out) MUST_USE;

/* Borrowed from the frame. -EBADMSG: malformed, an empty name or value, or a NUL in the value. */
int secret_get_value(struct frame *frame, const char **ret_name, const char **ret_value, size_t *ret_size) MUST_USE;
