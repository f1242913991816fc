/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Every place that a run needs to know, worked out once: where it stands, whose project it is, where atoll lives.
 * Used by `atoll` alone; what the state and run-time directories are is decided in session/directories.c.
 */

#include <limits.h>

#include "base/cleanup.h"
#include "base/err.h"

struct dirs {
	char cwd[PATH_MAX];           /* of the command: real, absolute */
	char project[PATH_MAX];       /* real, absolute */
	char home[PATH_MAX];          /* "" when there is none */
	char config_home[PATH_MAX];   /* "" when there is none */
	char state[PATH_MAX];
	char runtime[PATH_MAX];
	char programs[PATH_MAX];      /* the directory of this program and its siblings */
};

/* The working directory. ERR_USAGE when it was deleted, cannot be reached, or its path is too long. */
int dirs_cwd(char out[PATH_MAX], struct err *err) MUST_USE;

/*
 * text below the working directory where it is relative. ".." stays: with links on the way the kernel's answer
 * differs from the text's. what names the thing in an error.
 */
int dirs_absolute(const char *text, const char *what, char out[PATH_MAX], struct err *err) MUST_USE;

/* The directory of the running program, where its siblings are. ERR_STATE where /proc does not tell it. */
int dirs_programs(char out[PATH_MAX], struct err *err) MUST_USE;

/* $XDG_CONFIG_HOME, or .config below home; "" when there is neither. -ENAMETOOLONG. */
int dirs_config_home(const char *home, char out[PATH_MAX]) MUST_USE;

/*
 * A directory of the user's configuration, whether it is there or not. stage and what (things that belong there) are
 * for errors. -ENOENT with *err where there is no home directory to have one.
 */
int dirs_config(const char *stage, const char *what, const char *name, char out[PATH_MAX], struct err *err) MUST_USE;

/*
 * project and cwd as the user gave them, or NULL. Makes the state and run-time directories. Refuses `/`, the home
 * and what is above it as a project that nobody named.
 */
int dirs_find(struct dirs *ret_dirs, const char *project, const char *cwd, struct err *err) MUST_USE;

/* The imported system of this name (session/directories.h). -ENOENT with *err. */
int dirs_find_root(const struct dirs *dirs, const char *name, char out[PATH_MAX], struct err *err) MUST_USE;
