/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Messages of envd's filesystem.Filesystem: requests read from JSON into values of a frame, entries and events written
 * as JSON; and what an upload says of the files that it made. Pure. Run by atoll-front.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "wire/service.h"

enum { FILESYSTEM_WHY_SIZE = 160 };

/*
 * Puts the values that a request of this operation has onto a frame that was begun. 0; -EINVAL with a sentence in why;
 * or the buffer's error.
 */
int filesystem_read(enum service_operation operation, const void *json, size_t size, struct buf *out,
		    char why[FILESYSTEM_WHY_SIZE]) MUST_USE;

/* "watcherId" of the calls that ask a watcher. 0, -EINVAL with a sentence. */
int filesystem_read_watcher(const void *json, size_t size, char *out, size_t out_size,
			    char why[FILESYSTEM_WHY_SIZE]) MUST_USE;

/* Appends {"entry":{…}} of a reply that has the values of a file. */
void filesystem_put_entry(struct buf *out, const struct service_message *values);

/* ListDirResponse: begin, one for each row (at: how many there were before), end. */
void filesystem_begin_list(struct buf *out);
void filesystem_put_listed(struct buf *out, const struct service_message *row, size_t at);
void filesystem_end_list(struct buf *out);

/* Appends messages of WatchDir, in envelopes. directory: that is watched; NULL: paths stay relative to it. */
void filesystem_put_watching(struct buf *out);
void filesystem_put_change(struct buf *out, const struct service_message *event, const char *directory);
void filesystem_put_keepalive(struct buf *out);

/* Appends a FilesystemEvent without anything around it, for a watcher that is asked. */
void filesystem_put_event(struct buf *out, const struct service_message *event, const char *directory);

/* Appends {"path":…,"name":…,"type":"file"} of a file that was uploaded. */
void filesystem_put_uploaded(struct buf *out, const struct service_message *values);
