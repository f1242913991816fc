/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash-blocks.h"

#ifdef __x86_64__

#include <cpuid.h>
#include <immintrin.h>

/* FIPS 180-4, 4.2.2. */
static const uint32_t constants[64] __attribute__((aligned(16))) = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

bool hash_blocks_can(void)
{
	static enum { UNKNOWN, NO, YES } answer;
	unsigned a, b, c, d;

	/* What else is used below, SSE4.1, every processor has that has these. */
	if (answer == UNKNOWN)
		answer = __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA ? YES : NO;
	return answer == YES;
}

#define WITH_SHA __attribute__((target("sha,sse4.1")))

/* The four words of the message schedule after these sixteen. */
WITH_SHA static __m128i next_words(__m128i w0, __m128i w1, __m128i w2, __m128i w3)
{
	__m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4));

	return _mm_sha256msg2_epu32(sum, w3);
}

WITH_SHA static __m128i load_words(const uint8_t *bytes)
{
	const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);

	return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)bytes), big_endian);
}

/* The instructions have the eight working variables as (a, b, e, f) and (c, d, g, h), a and c highest. */
struct working {
	__m128i abef, cdgh;
};

WITH_SHA static struct working add_block(struct working at, const uint8_t *bytes)
{
	__m128i w0 = load_words(bytes), w1 = load_words(bytes + 16), w2 = load_words(bytes + 32),
		w3 = load_words(bytes + 48);

	for (int round = 0; round < 64; round += 4) {
		__m128i sum = _mm_add_epi32(w0, _mm_load_si128((const __m128i *)(constants + round)));
		__m128i next = next_words(w0, w1, w2, w3);

		at.cdgh = _mm_sha256rnds2_epu32(at.cdgh, at.abef, sum);
		at.abef = _mm_sha256rnds2_epu32(at.abef, at.cdgh, _mm_shuffle_epi32(sum, 0x0e));
		w0 = w1;
		w1 = w2;
		w2 = w3;
		w3 = next;
	}
	return at;
}

WITH_SHA void hash_blocks_add(uint32_t state[8], const uint8_t *bytes, size_t count)
{
	__m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
	__m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
	struct working at = { _mm_alignr_epi8(cdab, efgh, 8), _mm_blend_epi16(efgh, cdab, 0xf0) };
	__m128i feba, dchg;

	for (; count; count--, bytes += HASH_BLOCK_SIZE) {
		struct working after = add_block(at, bytes);

		at.abef = _mm_add_epi32(at.abef, after.abef);
		at.cdgh = _mm_add_epi32(at.cdgh, after.cdgh);
	}
	feba = _mm_shuffle_epi32(at.abef, 0x1b);
	dchg = _mm_shuffle_epi32(at.cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
	_mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool hash_blocks_can(void)
{
	return false;
}

void hash_blocks_add(uint32_t state[8], const uint8_t *bytes, size_t count)
{
	__builtin_unreachable();
}

#endif
