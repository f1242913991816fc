/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Answers from a recording (doc/format/recording.md). The file is hostile: it is read by the gate, which is confined
 * before, and whatever is not as record.h writes it is refused as a whole, with its line. Pure but for reading the
 * descriptor. Runs in atoll-egress.
 */

#include "base/err.h"
#include "base/hash.h"
#include "egress/record/answer.h"
#include "http/target.h"

struct replay;

/* Reads all of fd (borrowed), from its offset on. -EBADMSG, -EFBIG, -ENOMEM, or what read(2) says. */
int replay_new(struct replay **ret_replay, int fd, struct err *err) MUST_USE;
void replay_free(struct replay *replay);

/*
 * The next answer to this request; the server's own bytes, borrowed. Of the recorded requests with this method, server
 * and target (redact.h), those with the same body come first, in their order, and when all of them were given the
 * last one again; where none has the same body, the same goes for all of them. NULL with *ret_problem (static): there
 * is none, or it was not kept.
 */
const struct answer *replay_find(struct replay *replay, const char *method, const struct target_server *server,
				 const char *target, const struct hash *body, const char **ret_problem);

/* Whether the first exchange with this server was HTTP/2, or there was none: then what a usual server speaks. */
bool replay_is_http2(const struct replay *replay, const struct target_server *server);
