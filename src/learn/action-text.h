/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An action in one line for people, in the words of `atoll policy explain`. Hostile bytes are escaped, long subjects
 * and arguments cut. Run by atoll-learn.
 */

#include "base/buf.h"
#include "policy/decide.h"

/* "net.connect example.com:443", "exec /usr/bin/git push …", "http.request GET https://host/path". */
void action_to_text(const struct action *action, struct buf *out);
