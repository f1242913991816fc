/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * multipart/form-data (RFC 7578, RFC 2046 5.1) piece by piece, in constant memory: what comes in may end anywhere, and
 * whoever reads may stop anywhere. File names are taken as they stand, since the E2B clients put whole paths there.
 * Pure, bounded. Run by atoll-front.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum { MULTIPART_BOUNDARY_MAX = 70, MULTIPART_NAME_SIZE = 4097, MULTIPART_HEAD_MAX = 16 << 10 };
enum { MULTIPART_PARTS_MAX = 4096 };

enum multipart_state {
	MULTIPART_PREAMBLE, MULTIPART_DELIMITER, MULTIPART_HEAD, MULTIPART_BODY, MULTIPART_EPILOGUE, MULTIPART_FAILED,
};

struct multipart {
	enum multipart_state state;
	char delimiter[MULTIPART_BOUNDARY_MAX + 5]; /* CR LF - - boundary */
	size_t length, matched;      /* of the delimiter */
	char tail[2];                /* behind a delimiter */
	size_t tail_size;
	char head[MULTIPART_HEAD_MAX + 1];
	size_t head_size;
	unsigned parts;
	char name[MULTIPART_NAME_SIZE], filename[MULTIPART_NAME_SIZE]; /* of the part; "": none */
};

enum multipart_piece {
	MULTIPART_MORE,              /* nothing to say of what there was */
	MULTIPART_PART,              /* a part begins: name and filename are its */
	MULTIPART_DATA,              /* bytes of it */
	MULTIPART_PART_END,
	MULTIPART_END,               /* what follows means nothing */
};

/* From the value of Content-Type. -EINVAL: it is none of this type, or its boundary is missing or cannot be one. */
int multipart_init(struct multipart *multipart, const char *content_type) MUST_USE;

/*
 * The next piece of size bytes: enum multipart_piece, or -EINVAL: malformed, or beyond a bound, and so for good.
 * *ret_used of the bytes are done with; *ret_data (*ret_size bytes, of MULTIPART_DATA alone) lies in them, or in the
 * reader until the next call. MULTIPART_MORE comes only when all bytes are used.
 */
int multipart_next(struct multipart *multipart, const void *bytes, size_t size, size_t *ret_used,
		   const void **ret_data, size_t *ret_size) MUST_USE;

/* Whether the last delimiter has come. */
bool multipart_is_whole(const struct multipart *multipart);
