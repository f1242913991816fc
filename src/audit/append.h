/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Goes on with the log of a session that has ended: what a person does with its staged changes is a record of the same
 * chain. While the session lives its box alone writes. Run by atoll and atoll-stage.
 */

#include <stdbool.h>

#include "audit/event.h"

/* Whether records of this type may stand behind session.end: what is done with staged changes. */
bool audit_type_is_review(enum audit_type type);

/*
 * Adds one record behind the last line of fd (audit.jsonl, open for reading and with O_APPEND), and syncs it where
 * is_durable says so. The caller keeps the box and every other writer out. A last line that a power cut tore gets
 * its newline and stays for verify.h to find. -EBADMSG: the last line is a record of another session; -errno.
 */
int audit_append(int fd, const char *session, const struct audit_event *event, bool is_durable) MUST_USE;
