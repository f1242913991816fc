/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The few settings of git that matter for a commit: who it is by, and what atoll does not do (hooks, signatures,
 * conversions), so that it can say so. The files are read as bytes and parsed by a confined child; what they include is
 * not read. Who: GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL, else user.name and user.email. For a new branch those of the
 * repository come first, then the user's. For a commit on the checked-out branch the repository decides nothing. Run by
 * atoll-stage.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

enum { GIT_CONFIG_FILES = 4, GIT_IDENTITY_SIZE = 256 };

struct git_settings {
	char *files[GIT_CONFIG_FILES];  /* owned; the repository's, then the user's; NULL: there is none */
	char name[GIT_IDENTITY_SIZE], email[GIT_IDENTITY_SIZE]; /* "": not known */
	bool converts_line_ends;        /* core.autocrlf is on */
	bool ignores_modes;             /* core.fileMode is off */
};

/* Reads the files; git_fd: where the repository's lies. */
void git_settings_load(int git_fd, struct git_settings *ret_settings);

/*
 * Fills in the rest. Confined. 0; with for_commit also -EOPNOTSUPP, with the name of a setting in refused that atoll's
 * commit would not follow.
 */
int git_settings_parse(struct git_settings *settings, bool for_commit, char *refused, size_t size) MUST_USE;
void git_settings_done(struct git_settings *settings);
