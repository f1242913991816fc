/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Names and ids of templates that were built: NAME or NAME:TAG, of the caller's own and, for who administers, of others.
 * Runs in atolld.
 */

#include "service/launcher/call/call.h"
#include "service/launcher/store/builds.h"

#define TAG_DEFAULT "default"

struct template_name {
	char name[DATABASE_NAME_SIZE], tag[DATABASE_NAME_SIZE];  /* tag "": none was said */
};

/* Not empty, and of letters, digits, ".", "_" and "-" alone. */
bool template_name_is_word(const char *text);

/* NAME or NAME:TAG. False: it cannot be one. */
bool template_name_read(const char *text, struct template_name *out);

/* The template of this id or name; own: of the key's owner alone. 1, 0, -EIO. */
int template_name_find(const struct call *call, const char *template, bool own, struct template_row *ret_row) MUST_USE;

/* The newest build that is ready of what NAME, NAME:TAG or an id stands for. 1, 0, -EIO. */
int template_name_find_build(const struct call *call, const char *template, struct build_row *ret_build) MUST_USE;

/* The template that a request is about; false: the call was answered. */
bool template_name_get(struct call *call, const char *named, struct template_row *ret_row) MUST_USE;

/* Answers that the database cannot be used. Frees the call. */
void template_name_fail_database(struct call *call, int r);
