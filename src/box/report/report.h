/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The report of a run (`--report`, doc/format/report.md) and the parts of it that the log shares. Written by
 * atoll-box when everything is over; it reads the state and changes nothing.
 */

#include "base/json.h"
#include "jail/spec.h"

struct box;

/* The profile of system calls that the policy asks for. */
enum jail_seccomp_profile report_seccomp_profile(const struct box *box);

/* The "enforcement" object: which walls stand, what holds each limit, what the policy let be missing. */
void report_enforcement(const struct box *box, struct json *json);

/* The "usage" object: what all commands used so far, from the cgroup where there is one, else from rusage. */
void report_usage(const struct box *box, struct json *json);

/*
 * Opens the directory that the report goes to, before the sandbox lives: what is inside could put a link in
 * its place. -EXDEV where such a link leads out of the project already.
 */
int report_prepare(struct box *box) MUST_USE;

/* Writes it, where one is asked for, with the exit status; err: why the sandbox failed, or NULL. */
int report_write(const struct box *box, int status, struct err *err) MUST_USE;

/* What people are told on the terminal: of walls that are missing, at the start; and of the whole, at the end. */
void summary_print_missing(struct box *box);
void summary_print(const struct box *box);
