/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading of what clients send as JSON, by the rules of proto3's mapping (protobuf.dev/programming-guides/json):
 * names in camelCase or snake_case, null is absent, numbers also as strings, bytes in base64, enums by name or number,
 * what is not known is passed over. Bounded in size and depth, and no name twice in an object. Pure.
 * Run by atoll-front. (base/json.h, the writer, cannot stand in the same file: jansson uses its names.)
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum { VALUE_DEPTH_MAX = 24, VALUE_WHY_SIZE = 160, VALUE_NAME_SIZE = 64 };

/* Before the process confines itself: jansson seeds its tables. */
void value_prepare(void);

/*
 * One object; no bytes at all are an empty one. *ret is the caller's (json_decref()). -EINVAL with a sentence in why:
 * it is no JSON, or no object, nested too deep, or has a name twice. -ENOMEM.
 */
int value_parse(const void *bytes, size_t size, json_t **ret, char why[VALUE_WHY_SIZE]) MUST_USE;

/* Whether a text is this camelCase name, or its snake_case one. */
bool value_is_name(const char *text, const char *name);

/* The member of this camelCase name, borrowed; NULL: there is none, or it is null. */
const json_t *value_member(const json_t *object, const char *name);

/* Of a member: 1, and *ret is set (borrowed); 0: there is none; -EINVAL with a sentence in why: it has another type. */
int value_string(const json_t *object, const char *name, const char **ret, char why[VALUE_WHY_SIZE]) MUST_USE;
int value_bool(const json_t *object, const char *name, bool *ret, char why[VALUE_WHY_SIZE]) MUST_USE;
int value_number(const json_t *object, const char *name, uint64_t max, uint64_t *ret,
		 char why[VALUE_WHY_SIZE]) MUST_USE;
int value_object(const json_t *object, const char *name, const json_t **ret, char why[VALUE_WHY_SIZE]) MUST_USE;
int value_array(const json_t *object, const char *name, const json_t **ret, char why[VALUE_WHY_SIZE]) MUST_USE;

/* The same for bytes, which are appended to out. */
int value_bytes(const json_t *object, const char *name, struct buf *out, char why[VALUE_WHY_SIZE]) MUST_USE;

/* A row of an enum. */
struct value_word {
	const char *name;        /* "SIGNAL_SIGKILL"; NULL ends a list */
	uint32_t number;
};

/* The same for an enum: -EINVAL too for a name that is not in words; a number is taken as it is. */
int value_enum(const json_t *object, const char *name, const struct value_word *words, uint32_t *ret,
	       char why[VALUE_WHY_SIZE]) MUST_USE;

/*
 * Vectors for frames, NULL-terminated, the array the caller's (free()), the strings borrowed from the value. A map
 * gives name, value, name, value …. NULL with a sentence in why: an entry is no string, or there are more than max.
 */
const char **value_strings(const json_t *array, size_t max, char why[VALUE_WHY_SIZE]) MUST_USE;
const char **value_pairs(const json_t *map, size_t max, char why[VALUE_WHY_SIZE]) MUST_USE;

/* Each NAME=value, array and strings the caller's (strv_free()); NULL as above, or where a NAME cannot be one. */
char **value_environment(const json_t *map, size_t max, char why[VALUE_WHY_SIZE]) MUST_USE;
