/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/noise.h"

#include <math.h>
#include <string.h>

enum { VALUES = 256 };

/* Of 255 degrees of freedom: mean 255, deviation 22.6; six deviations above no random sample comes. */
static const double CHI_SQUARE_MAX = 390;
static const double DISTINCT_SHARE = 0.85;

static const struct {
	const char *bytes;
	size_t size;
} known[] = {
	{ "\x1f\x8b", 2 },	     { "PK\x03\x04", 4 },	     { "\x89PNG", 4 },	     { "\xff\xd8\xff", 3 },
	{ "\xfd" "7zXZ", 5 },	     { "BZh", 3 },		     { "\x28\xb5\x2f\xfd", 4 }, { "GIF8", 4 },
	{ "7z\xbc\xaf", 4 },	     { "RIFF", 4 },		     { "%PDF", 4 },	     { "OggS", 4 },
	{ "\x78\x01", 2 },	     { "\x78\x9c", 2 },		     { "\x78\xda", 2 },	     { "\x78\x5e", 2 },
	{ "wOF2", 4 },		     { "wOFF", 4 },		     { "\x04\x22\x4d\x18", 4 }, { "ID3", 3 },
	{ "Rar!", 4 },		     { "DIRC", 4 },		     { "PACK", 4 },
};

static bool is_known(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (size >= known[i].size && memcmp(bytes, known[i].bytes, known[i].size) == 0)
			return true;
	return size >= 8 && memcmp(bytes + 4, "ftyp", 4) == 0;
}

static bool is_text(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((bytes[i] < 0x20 && !strchr("\t\n\r\f", bytes[i])) || bytes[i] == 0 || bytes[i] >= 0x7f)
			return false;
	return true;
}

bool noise_is_uniform(const uint8_t *bytes, size_t size)
{
	unsigned counts[VALUES] = { 0 };
	double expected = (double)size / VALUES, sum = 0;
	size_t distinct = 0;

	for (size_t i = 0; i < size; i++)
		distinct += !counts[bytes[i]]++;
	if (size < NOISE_MIN || is_text(bytes, size))
		return false;
	if (size < VALUES)
		return (double)distinct >= DISTINCT_SHARE * VALUES * (1 - exp(-expected));
	for (size_t i = 0; i < VALUES; i++)
		sum += (counts[i] - expected) * (counts[i] - expected) / expected;
	return sum < CHI_SQUARE_MAX;
}

bool noise_is_scrambled(const uint8_t *now, size_t now_size, const uint8_t *before, size_t before_size)
{
	if (is_known(now, now_size) || !noise_is_uniform(now, now_size))
		return false;
	/* Of a small file that was not there before nobody can tell. */
	return before ? !noise_is_uniform(before, before_size) : now_size >= VALUES;
}
