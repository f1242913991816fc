/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One run of atoll-template: what was asked for, and what is open. Its verbs share it; each is one row of main.c's
 * table.
 */

#include "base/buf.h"
#include "base/json.h"
#include "prog/atoll-template/store.h"

struct job {
	struct store store;
	char **words;                /* that follow the verb */
	size_t word_count;
	int source_fd;               /* import: owned */
	bool json, quiet;
	struct err *err;
};

/* The verbs, one row each in main.c's table. 0, or negative with *err. */
int cmd_import(struct job *job) MUST_USE;
int cmd_list(struct job *job) MUST_USE;
int cmd_show(struct job *job) MUST_USE;
int cmd_remove(struct job *job) MUST_USE;

/* The name of a template, as given or made of the name of its source, in out. -EINVAL with *err. */
int job_choose_name(const struct job *job, char out[ROOT_NAME_SIZE], struct err *err) MUST_USE;

/* What is on record of a template, as members of the object that is open. */
void job_put_json(struct json *json, const char *name, const struct tree_record *record);

/* Writes it all to stdout. Negative with *err. */
int job_print(struct job *job, const struct buf *out) MUST_USE;
