/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Base64 (RFC 4648) as proto3 JSON has bytes: written in the standard alphabet with padding, read in either alphabet
 * with or without it. Pure. Run by atoll-front.
 */

#include "base/buf.h"

/* Appends the text of size bytes, padded. */
void base64_put(struct buf *out, const void *bytes, size_t size);

/* Appends what size characters of text stand for. -EINVAL (and nothing is appended): it is no base64. -ENOBUFS. */
int base64_read(struct buf *out, const char *text, size_t size) MUST_USE;
