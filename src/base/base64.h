/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Base64 (RFC 4648): written in the standard alphabet with padding, as basic credentials of HTTP and proto3 JSON have
 * it; read in either alphabet, with or without padding.
 */

#include "base/buf.h"

/* Appends the text of size bytes, padded. */
void base64_put(struct buf *out, const void *bytes, size_t size);

/* Appends what size characters of text stand for. -EINVAL (and nothing is appended): it is no base64. -ENOBUFS. */
int base64_read(struct buf *out, const char *text, size_t size) MUST_USE;
