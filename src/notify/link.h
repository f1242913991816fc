/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The way back to the box, for desktop.c and webhook.c: answers, and whether a person can hear. The box is told of a
 * state when it is another one, not each time.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "wire/notify.h"

struct notify_link {
	int fd;                      /* borrowed */
	struct buf out, scratch;     /* frames */
	bool is_told, is_heard;
};

/* What one of the two needs; everything is borrowed but the fds, which it closes. */
struct notify_given {
	struct notify_start start;
	int bundle_fd, key_fd;       /* FD_NONE: none */
};

/* fd (borrowed) is the socket to the box; done frees the buffers alone. */
void notify_link_init(struct notify_link *link, int fd);
void notify_link_done(struct notify_link *link);

/* trouble NULL: none. Negative: the box has gone. */
int notify_tell_state(struct notify_link *link, bool is_heard, const char *trouble) MUST_USE;
int notify_tell_answer(struct notify_link *link, const struct asking_reply *reply) MUST_USE;

/* The two ways to tell people, as notify_run(): confined by then, until the box closes the link. */
int desktop_run(struct notify_link *link, const struct notify_given *given, struct err *err) MUST_USE;
int webhook_run(struct notify_link *link, const struct notify_given *given, struct err *err) MUST_USE;
