/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rows that atoll's programs print as JSON, as records. What is read is made by atoll, of names that are from inside:
 * the form is checked to the last byte, and what has no key in atoll.h is passed over. Part of libatoll.
 */

#include "client/api/job.h"
#include "client/api/record.h"

struct rows {
	struct atoll_record **list; /* owned, with each that is not NULL */
	size_t count;
};

/* Frees the records that are still in the list (who takes one puts NULL in its place), and leaves no rows. */
void rows_done(struct rows *rows);

/* Takes the record in any case. 0 or -ENOMEM. */
int rows_add(struct rows *rows, struct atoll_record *record) MUST_USE;

/*
 * Every object in an array that is the text, or a member of the object that the text is; "list" is that member's name,
 * where the kind has this key. -EBADMSG: it is no JSON.
 */
int rows_from_json(struct rows *rows, uint32_t kind, const char *text, size_t size) MUST_USE;

/* The result of a verb: key (or NULL) is the member that becomes "name". NULL: no memory. */
struct atoll_record *rows_result(const struct job_result *result, const char *key) MUST_USE;
