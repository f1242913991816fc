/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The service's own audit log: files of hash-chained records (doc/format/audit.md), one for each start and a new one
 * when it is full; the oldest go. Runs in atolld.
 */

#include "audit/writer.h"
#include "base/cleanup.h"
#include "base/err.h"

enum { JOURNAL_FILES_MAX = 16, JOURNAL_BYTES_MAX = 64 << 20 };

/* Begins a new file in directory/audit, and removes the oldest beyond JOURNAL_FILES_MAX. Negative with *err. */
int journal_open(const char *directory, struct audit_writer *ret_writer, struct err *err) MUST_USE;

/* Begins another file where this one is full. Negative: the log cannot be written. */
int journal_turn(const char *directory, struct audit_writer *writer) MUST_USE;
