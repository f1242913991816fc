/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who a commit is by: GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL, else user.name and user.email of the repository's
 * configuration, then of the user's. These files are read as bytes and parsed by the confined child for nothing else:
 * what they include, and every other setting, means nothing here. Run by atoll-stage.
 */

#include <stddef.h>

enum { IDENTITY_FILES_MAX = 3, IDENTITY_SIZE = 256 };

struct git_identity {
	char *files[IDENTITY_FILES_MAX]; /* owned; NULL: there is none */
	char name[IDENTITY_SIZE], email[IDENTITY_SIZE]; /* "": not known */
};

/* Reads the files; git_fd: where the repository's lies. */
void git_identity_load(int git_fd, struct git_identity *ret_identity);
/* Fills in name and email. Confined. */
void git_identity_parse(struct git_identity *identity);
void git_identity_done(struct git_identity *identity);
