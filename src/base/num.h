/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Numbers with units, as people write them in policies and on command lines, and back. Pure.
 * Strict on purpose: a limit that is read wrongly is a limit that does not hold.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define NUM_UNLIMITED UINT64_MAX

/* All parsers: the whole text must be used. 0, -EINVAL (not a number or unknown unit), -ERANGE. */

/* "123" in base 10, no sign, no blanks. */
int num_parse_u64(const char *text, uint64_t *ret_value) MUST_USE;

/* "200", "200k", "3M", "2G" (powers of 1000), also "unlimited". */
int num_parse_count(const char *text, uint64_t *ret_count) MUST_USE;

/* "4096", "64KiB", "4MiB", "10GiB", "1TiB" (also kB MB GB TB, powers of 1000), "unlimited". */
int num_parse_size(const char *text, uint64_t *ret_bytes) MUST_USE;

/* "250ms", "90s", "15m", "2h", "1d", combinations "1h30m", "unlimited"; a bare number is refused. */
int num_parse_duration(const char *text, uint64_t *ret_ms) MUST_USE;

/* "10MiB/s", "600/min", "5/s", "100/h": amount per period, as amount and period in ms. */
int num_parse_rate(const char *text, uint64_t *ret_amount, uint64_t *ret_period_ms) MUST_USE;

/* "1.5", "2", "0.25" CPUs as thousandths; "unlimited". */
int num_parse_cpus(const char *text, uint64_t *ret_millicpus) MUST_USE;

/* The shortest exact text ("4GiB", "1536KiB", "1h30m", "200k", "unlimited"); out[32] always fits. */
void num_format_size(uint64_t bytes, char out[32]);
void num_format_duration(uint64_t ms, char out[32]);
void num_format_count(uint64_t count, char out[32]);

/* For people: "1.4 GiB", "812 ms", "2 h 03 min". */
void num_format_size_human(uint64_t bytes, char out[32]);
void num_format_duration_human(uint64_t ms, char out[32]);
