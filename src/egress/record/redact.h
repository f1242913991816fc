/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Credentials that clients and servers send each other themselves, by where they stand: fields and query parameters of
 * known names. For what is kept of an exchange (record.h). What stands in bodies is not looked for here. Pure. Runs in
 * atoll-egress.
 */

#include "base/buf.h"

/* Whether the value of this field is a credential, wholly or in part. */
bool redact_is_secret_field(const char *name);

/* The value of a field as it may be kept: of a cookie that is set, name and attributes stay. */
void redact_put_value(const char *name, const char *value, struct buf *out);

/* A target as it may be kept. Two that differ only in what is left out become the same. */
void redact_put_target(const char *target, struct buf *out);
