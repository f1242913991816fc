/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A JSON writer onto a struct buf: commas and nesting are its business, reading is not.
 * Any byte string becomes valid JSON: control characters are escaped, bytes that are not UTF-8
 * become U+FFFD unless written with json_bytes(), which keeps them exactly.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct hash;

enum { JSON_DEPTH_MAX = 16 };

struct json {
	struct buf *out;            /* borrowed */
	unsigned depth;
	bool has_member[JSON_DEPTH_MAX];
	bool after_key;
};

/* Writes to out (borrowed) from here on; nothing has to be freed. A failure is the buffer's own: buf_error(). */
void json_init(struct json *json, struct buf *out);

/* key is NULL inside arrays and at the top. */
void json_object_begin(struct json *json, const char *key);
void json_object_end(struct json *json);
void json_array_begin(struct json *json, const char *key);
void json_array_end(struct json *json);
void json_string(struct json *json, const char *key, const char *value); /* NULL value: null */
void json_string_n(struct json *json, const char *key, const void *bytes, size_t size);

/*
 * A byte string that must come back exactly: as a plain string where it is valid UTF-8, else as
 * {"b64": "…"}. Used for paths and arguments.
 */
void json_bytes(struct json *json, const char *key, const void *bytes, size_t size);
void json_u64(struct json *json, const char *key, uint64_t value);
void json_i64(struct json *json, const char *key, int64_t value);
void json_fixed(struct json *json, const char *key, uint64_t thousandths); /* 2100 -> 2.1 */
void json_bool(struct json *json, const char *key, bool value);
void json_hash(struct json *json, const char *key, const struct hash *hash); /* "sha256:…" */
/* A value that is JSON already. */
void json_raw(struct json *json, const char *key, const void *bytes, size_t size);
void json_null(struct json *json, const char *key);
