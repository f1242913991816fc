/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether the bytes of a file became noise, as they do when somebody encrypts it: every value as often as every other,
 * where before they were not, and no format says so of itself. A sample of each is enough. Pure. Run by atoll-stage,
 * confined: the bytes are hostile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NOISE_SAMPLE = 4096, NOISE_MIN = 16, NOISE_FILES_MAX = 256 };

/* What atoll-stage tells the box, as it is in memory (doc/format/wire.md). */
struct noise_count {
	uint64_t sampled, scrambled;
};

/* Whether all values of a byte are as likely, by a chi-square test; of fewer than 256 bytes, by how many differ. */
bool noise_is_uniform(const uint8_t *bytes, size_t size);

/* before NULL: there was no such file. Formats that are compressed, and say so in their first bytes, are none. */
bool noise_is_scrambled(const uint8_t *now, size_t now_size, const uint8_t *before, size_t before_size);
