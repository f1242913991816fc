/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The errors of one compilation, each with the place in the text that it is about, and beside them the warnings. All of
 * them are collected, up to a bound, so that a person mends a file in one go.
 */

#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "lang/yaml/arena.h"

enum { DIAGS_MAX = 50 };

struct place {
	const char *file;      /* "" where there is none: the command line */
	uint32_t line, column; /* from 1; 0: the file as a whole */
};

struct diag {
	struct place place;
	const char *message;
};

struct diags {
	struct arena *arena;
	struct diag items[DIAGS_MAX];
	size_t count; /* also those beyond DIAGS_MAX */
};

/* Copies the message (at most 1 KiB) into the arena. Beyond DIAGS_MAX they are only counted. */
void diag_add(struct diags *diags, struct place place, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Those of one file that were added together get the order of its lines. */
void diags_sort(struct diags *diags);

/* One line "file:line:column: message" each; hostile bytes are escaped. */
void diags_put(const struct diags *diags, struct buf *out);

/* As diags_put(), with "warning: " behind the place of each. */
void diags_put_warnings(const struct diags *diags, struct buf *out);

/* The array of this name of objects {file, line, column, message}. */
void diags_put_json(const struct diags *diags, const char *name, struct json *json);
