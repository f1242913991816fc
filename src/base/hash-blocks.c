/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash-blocks.h"

#include <assert.h>

#ifdef __x86_64__

#include <cpuid.h>
#include <immintrin.h>

enum { LEAF_FEATURES = 7, HAS_SHA = 1 << 29, BLOCK = 64, STEPS = 16, SCHEDULED = 12 };

static const uint32_t constants[4 * STEPS] __attribute__((aligned(16))) = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

bool hash_blocks_are_fast(void)
{
	static enum { UNKNOWN, NO, YES } answer;
	unsigned eax, ebx = 0, ecx, edx;

	/* Whoever has these has SSSE3 and SSE4.1 too. */
	if (answer == UNKNOWN)
		answer = __get_cpuid_count(LEAF_FEATURES, 0, &eax, &ebx, &ecx, &edx) && ebx & HAS_SHA ? YES : NO;
	return answer == YES;
}

/*
 * The instructions keep the eight words as ABEF and CDGH, and do two rounds each; see Intel, "New Instructions
 * Supporting the Secure Hash Algorithm" (2013). A step is four rounds, and makes the words for the one four steps on.
 */
__attribute__((target("sha,sse4.1"))) void hash_blocks_add(uint32_t state[8], const uint8_t *bytes, size_t count)
{
	const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
	const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
	__m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0), feba, dchg;

	for (; count; count--, bytes += BLOCK) {
		const __m128i abef_before = abef, cdgh_before = cdgh;
		__m128i words[4];

		for (size_t i = 0; i < 4; i++)
			words[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)bytes + i), big_endian);
#pragma GCC unroll 16
		for (size_t i = 0; i < STEPS; i++) {
			const __m128i last = words[(i + 3) % 4];
			__m128i sum = _mm_add_epi32(words[i % 4], _mm_load_si128((const __m128i *)constants + i));

			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
			if (i >= SCHEDULED)
				continue;
			sum = _mm_add_epi32(_mm_sha256msg1_epu32(words[i % 4], words[(i + 1) % 4]),
					    _mm_alignr_epi8(last, words[(i + 2) % 4], 4));
			words[i % 4] = _mm_sha256msg2_epu32(sum, last);
		}
		abef = _mm_add_epi32(abef, abef_before);
		cdgh = _mm_add_epi32(cdgh, cdgh_before);
	}
	feba = _mm_shuffle_epi32(abef, 0x1b);
	dchg = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xf0));
	_mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool hash_blocks_are_fast(void)
{
	return false;
}

void hash_blocks_add(uint32_t state[8], const uint8_t *bytes, size_t count)
{
	(void)state;
	(void)bytes;
	assert(count == 0);
}

#endif
