/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the service says, for people: lists, logs, errors. What a function wrote is shown escaped on a terminal. Prints;
 * run by atoll-function.
 */

#include "base/err.h"
#include "prog/atoll-function/request.h"

/* Each shows the answer of its request; with is_json as it came. Negative with *err: it is none. */
int show_list(const struct request *request, bool is_json, struct err *err) MUST_USE;
int show_one(const struct request *request, bool is_json, struct err *err) MUST_USE;
int show_logs(const struct request *request, bool is_json, struct err *err) MUST_USE;

/* The bytes of a result. Negative with *err: they cannot be written. */
int show_result(const struct request *request, struct err *err) MUST_USE;

/* Fills *err from an answer of status 400 or more, and prints the log that it has to standard error. Negative. */
int show_failure(const struct request *request, struct err *err) MUST_USE;
