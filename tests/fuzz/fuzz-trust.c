/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The record of an agent and what vouches for it, from arbitrary bytes: as they are, and, because the hash at the end
 * would keep a fuzzer out, with the right one. What is accepted gives its own bytes again, comes to a level within its
 * policy's bounds whatever happens next, and can be gone on with.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trust/store-format.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char agent[] = "agent";

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_level(const struct trust_state *state, const struct trust_settings *settings)
{
	enum trust_level level = trust_level_of(state, settings);

	require(level >= settings->floor && level <= settings->ceiling);
	require(trust_strain_at(state, settings, UINT64_MAX) <= state->strain);
}

/* Each event from the state that the bytes claim, at any time. */
static void check_rules(const struct trust_state *state, const struct trust_settings *settings)
{
	static const uint64_t times[] = { 0, 1, 1u << 31, UINT64_MAX / 2, UINT64_MAX };
	enum trust_level to;

	check_level(state, settings);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		for (int event = 0; event < TRUST_EVENT_END; event++) {
			struct trust_state next = trust_step(state, settings, event, TRUST_FULL, times[i]);

			check_level(&next, settings);
			require(next.strain <= TRUST_STRAIN_MAX && next.drop < TRUST_COUNT);
			require(!trust_rules[event].is_bad ||
				trust_level_of(&next, settings) <= trust_level_of(state, settings));
		}
		(void)trust_recovers_at(state, settings, times[i]);
		(void)trust_count_until(state, settings, TRUST_LIMIT, times[i], &to);
	}
}

static void check_again(const struct trust_book *book, const uint8_t *bytes, size_t size)
{
	struct trust_book again = { .agent = "agent", .lock_fd = FD_NONE };
	cleanup_buf struct buf out;

	buf_init(&out, TRUST_FILE_MAX);
	trust_file_format(book, &out);
	require(buf_error(&out) == 0);
	require(!bytes || (out.size == size && memcmp(out.bytes, bytes, size) == 0));
	require(trust_file_parse((const char *)out.bytes, out.size, &again) == 0 && again.count == book->count);
	trust_book_done(&again);
}

static void check_book(struct trust_book *book, const uint8_t *bytes, size_t size)
{
	static const char session[] = "abcdefghijkl";
	char sessions[TRUST_OPEN_MAX][SESSION_ID_SIZE];
	struct trust_state state = trust_book_state(book);
	struct trust_news news = { TRUST_BEGUN, TRUST_NONE, session, "cause", UINT64_MAX / 2 };
	struct hash hash;

	book->exists = true;
	check_again(book, bytes, size);
	check_rules(&state, &book->settings);
	require(trust_book_open(book, sessions) <= TRUST_OPEN_MAX);
	for (size_t i = 0; i <= book->count; i++)
		require(trust_book_head(book, book->base_seq + i, &hash) == 0);
	(void)trust_book_is_chained(book);
	/* On until the oldest entries have been forgotten. */
	for (int i = 0; i < TRUST_ENTRIES_MAX + 2; i++) {
		news.event = 1 + (i + (int)size) % (TRUST_EVENT_END - 1);
		require(trust_book_add(book, &news) != NULL && book->count <= TRUST_ENTRIES_MAX);
	}
	/* Where the numbers end there is no further; nobody lives to see it. */
	if (book->base_seq < UINT64_MAX / 2)
		check_again(book, NULL, 0);
}

static void check_file(const uint8_t *bytes, size_t size)
{
	struct trust_book book = { .agent = "agent", .lock_fd = FD_NONE };

	if (trust_file_parse((const char *)bytes, size, &book) == 0)
		check_book(&book, bytes, size);
	trust_book_done(&book);
}

static void check_witness(const uint8_t *bytes, size_t size)
{
	struct trust_witness witness, again;

	if (trust_witness_check((const char *)bytes, size, agent, &witness) < 0)
		return;
	trust_witness_make(&again, agent, witness.seq, &witness.head);
	require(memcmp(&again, &witness, sizeof again) == 0);
	require(trust_witness_check((const char *)bytes, size, "another", &again) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	uint8_t *mended;
	struct hash hash;

	check_file(bytes, size);
	check_witness(bytes, size);
	if (size < sizeof hash || size > TRUST_FILE_MAX)
		return 0;
	mended = malloc(size);
	require(mended);
	memcpy(mended, bytes, size);
	hash_bytes(&hash, bytes, size - sizeof hash);
	memcpy(mended + size - sizeof hash, &hash, sizeof hash);
	check_file(mended, size);
	free(mended);
	return 0;
}
