/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The record of an agent for people and as JSON: its level, how it came to it, and what would change it. Used by
 * `atoll trust`.
 */

#include "base/buf.h"
#include "base/json.h"
#include "trust/store.h"

/* A table of agents. */
void trust_put_heading(struct buf *out);
void trust_put_line(const struct trust_book *book, struct buf *out);

/* One line: "builder is at low". */
void trust_put_short(const struct trust_book *book, const struct trust_news *news, struct buf *out);

/* Everything; home: where the record lies, for what is to be done when it is not usable. */
void trust_put_all(const struct trust_book *book, const struct trust_home *home, struct buf *out);

/* One object; has_history: with its entries and what would change the level. */
void trust_put_json(const struct trust_book *book, struct json *json, bool has_history);
