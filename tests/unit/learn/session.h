/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A session that never was: its policies, compiled from text, and its log, written line by line. For the unit tests of
 * learn/ alone: one session at a time, and what cannot happen ends the test.
 */

#include "policy/policy.h"

enum session_side { SESSION_BEFORE, SESSION_OTHER, SESSION_SIDE_COUNT };

/* Compiles a text (project /home/u/p, home /home/u); it lives until session_end(). */
const struct policy *session_policy(enum session_side side, const char *text);

/* A record more: its type, its subject (JSON: with quotes), its verdict, and its detail (JSON, or ""). */
void session_record(const char *type, const char *subject, const char *verdict, const char *detail);

/* A line that is as it is. */
void session_line(const char *text);

/* The log from its beginning; borrowed, until session_end(). */
int session_log(void);
void session_end(void);
