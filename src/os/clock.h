/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Clocks, time as text, and random identifiers. clock_gettime(2) through the vDSO: cheap enough for
 * every audit record. Nothing here depends on the time zone or the locale.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* Nanoseconds since the machine started, suspension left out; and since 1970, which somebody may set back. */
uint64_t clock_monotonic_ns(void);
uint64_t clock_realtime_ns(void);

/* Nanoseconds that this process has computed: what it waited for others does not count. A system call. */
uint64_t clock_computed_ns(void);

/* The same of another process, by its number; 0 where it has ended. clock_getcpuclockid(3). */
uint64_t clock_computed_by_ns(pid_t pid);

enum { CLOCK_RFC3339_SIZE = 31, SESSION_ID_SIZE = 13 };

/* RFC 3339 in UTC with nine digits: "2026-03-01T12:34:56.123456789Z". */
void clock_format_rfc3339(uint64_t realtime_ns, char out[CLOCK_RFC3339_SIZE]);

/* getrandom(2), whole. */
int random_bytes(void *bytes, size_t size) MUST_USE;

/* A session id: 12 characters of [a-z0-9] (a little over 62 bits). 0 or -errno of getrandom(2). */
int random_session_id(char out[SESSION_ID_SIZE]) MUST_USE;
