/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A request that outlives its frame: what a sandbox was created with, and the network that was set since. The values of
 * the operation alone, without whom they came from, so that it can be kept on disk. Runs in atolld.
 */

#include "wire/service.h"

struct kept {
	uint8_t *bytes;                    /* owned: a frame; NULL: none */
	size_t size;
	struct service_message *message;   /* owned: what stands in it */
};

/* Frees it; a zeroed one is fine. */
void kept_done(struct kept *kept);

/* What of a message the table of an operation has; what a message of another operation lacks is left out. -ENOMEM. */
int kept_copy(struct kept *ret_kept, const struct service_message *message, enum service_operation operation) MUST_USE;

/* The same from bytes that were kept. -EBADMSG: they are none; -ENOMEM. */
int kept_read(struct kept *ret_kept, const void *bytes, size_t size) MUST_USE;

/* Appends the value of a key to a frame that was begun, where the message has it and it is no descriptor. */
void kept_put(struct buf *out, const struct service_message *message, const char *key);
