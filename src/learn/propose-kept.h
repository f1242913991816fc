/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the policy of the session refuses, asks about, bounds and looks at beyond level none: a proposal without that
 * would be wider than what the command ran under. Only what lies in something that the proposal shows, since all else
 * is absent anyway. Used by propose-text.c alone.
 */

#include "learn/propose-state.h"

/* Rules for paths of this class, as entries of its list; is_headed: its name stands there already. */
void kept_put_files(const struct proposal *proposal, enum file_class class, bool is_headed, struct buf *out);

/* `files.ask` and `files.protect`. */
void kept_put_paths(const struct proposal *proposal, struct buf *out);

/* Rules of `network` with this verdict, and of `exec`. */
void kept_put_net(const struct proposal *proposal, enum verdict verdict, bool is_headed, struct buf *out);
void kept_put_exec(const struct proposal *proposal, enum verdict verdict, bool is_headed, struct buf *out);

/* Whether the session's network was bounded. */
bool kept_has_net_limits(const struct proposal *proposal);

/* Whether the proposal has any kept_put_files() or kept_put_paths() to write. */
bool kept_has_files(const struct proposal *proposal);

/* `data`, `verify` and `monitor`, where the session's are stricter than level none. */
void kept_put_sections(const struct proposal *proposal, struct buf *out);
