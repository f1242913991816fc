/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a running sandbox is and uses at this moment, as one JSON object (doc/format/status.md): the answer to
 * LINK_STATUS and LINK_SAMPLE, for `atoll top`. Bounded, and cheap enough to be asked each second. Run by atoll-box.
 */

#include "base/json.h"

struct box;

/* Reads usage and the gate's figures, which it changes nothing by. is_followed: somebody hears of questions. */
void status_put(struct box *box, bool is_followed, struct json *json);

/* The same figures for LINK_SAMPLE, as fields at the end of a frame that was begun. */
void status_put_fields(struct box *box, struct buf *out);
