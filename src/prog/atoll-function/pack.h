/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is deployed: a directory as a tar archive, made by libarchive in memory, or a file as it is, which the sandbox
 * of the function unpacks. Links are kept as links. Run by atoll-function.
 */

#include "base/buf.h"
#include "base/err.h"

enum { PACK_MAX = 9000000 };

/* Appends the bytes of it to out, which has PACK_MAX of room. Negative with *err. */
int pack_read(const char *path, struct buf *out, struct err *err) MUST_USE;
