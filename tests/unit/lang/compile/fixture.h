/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Compiles policies from texts in memory, on top of the shipped ones from the source tree. For the unit
 * tests of lang/ alone: one policy at a time, and what cannot happen ends the test.
 */

#include "lang/compile/lang.h"
#include "policy/decide.h"

enum { FIXTURE_FILES_MAX = 8 };

/* What stands where, beside POLICIES_DIR; links: path -> real path. Reset between tests by fixture_reset().
 */
void fixture_reset(void);
void fixture_file(const char *path, const char *text);
void fixture_file_n(const char *path, const void *bytes, size_t size);
void fixture_link(const char *path, const char *real);

extern struct lang_request fixture_request; /* project /home/u/p, home /home/u, config /home/u/.config */

/* Compiles fixture_request. The result lives until the next call of fixture_compile or fixture_text. */
const struct policy *fixture_compile(void);

/* Compiles this text as the policy /t.yaml. */
const struct policy *fixture_text(const char *text);

/* The errors of the last one as lines; "" when there were none. */
const char *fixture_errors(void);
const struct lang *fixture_lang(void);

/* The verdict of the last policy that was compiled. */
enum verdict fixture_ask(enum action_kind kind, const char *subject);
enum file_class fixture_class(const char *path);

/* The entry of the plan for path, or NULL. */
const struct file_plan_entry *fixture_plan(const char *path);
