/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the files of a user's sessions are, and which project a directory belongs to. Used by every program that names
 * a session.
 *
 * STATE is $XDG_STATE_HOME/atoll or ~/.local/state/atoll; /var/lib/atoll for root. RUNTIME is
 * $XDG_RUNTIME_DIR/atoll; /run/atoll for root; STATE/run where neither exists.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

/*
 * The state and run-time directories of this user, in out[size]; made (0700) when make is set. -ENOENT without a home,
 * -EPERM where the directory does not belong to this user alone, or what mkdir says; with *err.
 */
int session_state_dir(char *out, size_t size, bool make, struct err *err) MUST_USE;
int session_runtime_dir(char *out, size_t size, bool make, struct err *err) MUST_USE;

/* XDG_STATE_HOME, where root does not follow it because it is not a directory of root's alone; NULL: it is followed. */
const char *session_ignored_state_home(void);

/*
 * Below STATE: systems that were imported for sandboxes. roots/names/NAME leads to roots/trees/ID, in which the system
 * itself is the directory `root`.
 */
#define ROOTS_DIRECTORY "roots"
#define ROOTS_NAMES "roots/names"
#define ROOTS_TREES "roots/trees"
#define ROOTS_TREE "root"
#define ROOT_ENV "env" /* beside it, where the image says how commands run: NAME=value NUL … */
#define ROOT_CWD "cwd"
#define SESSION_ROOT "root" /* a link in the directory of a session that has one */
enum { ROOT_NAME_SIZE = 65 };

/* Whether text can be the name of one: lower-case letters, digits, ".", "_", "-" and ":", a letter or digit first. */
bool session_root_name_is_valid(const char *text);

/* The system of this name, real, in out[size]. -ENOENT: there is none. */
int session_root_path(const char *state_dir, const char *name, char *out, size_t size) MUST_USE;

/*
 * How commands run in the system of this name, as its image says: variables, each with its NUL, of which *ret_env is
 * the caller's (free(); NULL: none), and a directory ("": none). 0; -errno: they cannot be read.
 */
int session_root_config(const char *state_dir, const char *name, char **ret_env, size_t *ret_size,
			char ret_cwd[PATH_MAX]) MUST_USE;

/* Calls for each name, in their order, with when it was given (since 1970) until one is negative: that; 0; -errno. */
int session_each_root(const char *state_dir, int (*each)(void *context, const char *name, uint64_t made_ms),
		      void *context) MUST_USE;

/* The system that a session has, in out[size], as its link says. -ENOENT: it has the machine's. */
int session_root_of(const char *state_dir, const char *session, char *out, size_t size) MUST_USE;

/*
 * Where a tree of a session is inside: of one that lies in its system (root, as above; "": the machine's), the part of
 * path behind that; else path itself.
 */
const char *session_root_inside(const char *root, const char *path);

/* $HOME where it is absolute, else the home of the passwd entry, normalised; "" where there is none. */
int session_home_dir(char *out, size_t size) MUST_USE;

/* Whether project is /, the home or above it: taken only when the user names it. project: real and absolute. */
bool session_project_is_refused(const char *project);

/*
 * The project of cwd, which is real, as getcwd(3) has it: the nearest ancestor with .atoll.yaml or .git (of this user,
 * root, or the owner of cwd) that is not refused as above, else cwd itself.
 */
int session_project_of(const char *cwd, char *out, size_t size, struct err *err) MUST_USE;
