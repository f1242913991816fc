/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Objects of JSON to structs by tables of their fields: what is wrong is told with the whole name of the field
 * ("process.user.uid"). Fields that no table has are passed over, as the specification of OCI wants it.
 * Used by atoll-oci.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

typedef struct json_t json_t; /* of jansson, whose names base/json.h has too */

enum field_kind {
	FIELD_TEXT,     /* const char *, NULL where it is absent */
	FIELD_BOOL,     /* bool */
	FIELD_NUMBER,   /* int64_t within min and max; fallback where it is absent */
	FIELD_TEXTS,    /* struct field_texts */
	FIELD_NUMBERS,  /* json_t * of an array of whole numbers within min and max, or NULL */
	FIELD_MAP,      /* json_t * of an object whose values are all texts, or NULL */
	FIELD_OBJECT,   /* the struct of `table`, in place */
	FIELD_LIST,     /* struct field_list of such structs */
	FIELD_REFUSED,  /* nothing: what is not empty is an error */
};

struct field_texts {
	const char **items; /* NULL-terminated; NULL where the field is absent */
	size_t count;
};

struct field_list {
	void *items;
	size_t count;
};

struct field_table;

struct field {
	const char *name;
	enum field_kind kind;
	bool is_required;
	size_t offset;
	const struct field_table *table; /* of FIELD_OBJECT and FIELD_LIST */
	int64_t min, max, fallback;      /* of FIELD_NUMBER and FIELD_NUMBERS */
};

struct field_table {
	const struct field *fields;
	size_t count, size; /* size: of the struct; 0: its members are those of the struct around it */
};

#define FIELD_NONE INT64_MIN /* a fallback that no file can say */

/*
 * Fills target (zeroed by the caller) from object, NULL: only the fallbacks. name: what stands before the fields'
 * names in messages, "" at the top. Texts are borrowed from object; lists are freed by field_done(), also after an
 * error. -EINVAL with *err, -ENOMEM.
 */
int field_read(const struct field_table *table, const json_t *object, void *target, const char *name,
	       struct err *err) MUST_USE;

/* Frees the lists of what field_read() has filled; the struct is zeroed in the end. */
void field_done(const struct field_table *table, void *target);
