/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "supervise/ring.h"

enum { SIZE = 16 << 10, ROUNDS = 1000 };

static void put(struct ring *ring, const uint8_t *bytes, size_t size, uint64_t *lost)
{
	while (size) {
		size_t room = 0;
		void *space = ring_space(ring, &room);

		assert_non_null(space);
		assert_true(room > 0);
		room = room < size ? room : size;
		memcpy(space, bytes, room);
		*lost += ring_added(ring, room);
		bytes += room;
		size -= room;
	}
}

/* What byte stands at a position of the stream. */
static uint8_t byte_at(uint64_t position)
{
	return (uint8_t)(position * 31 + position / 251);
}

static void check_all(const struct ring *ring, uint64_t from)
{
	const void *bytes;
	size_t size;

	for (uint64_t at = from; (size = ring_at(ring, at, &bytes)) > 0; at += size) {
		for (size_t i = 0; i < size; i++)
			assert_int_equal(((const uint8_t *)bytes)[i], byte_at(at + i));
	}
}

/* Random writes and drops: what is in it is always the newest of the stream, and the rest was counted. */
static void it_holds_the_newest_bytes(void **state)
{
	struct ring_budget budget = { .max = SIZE };
	static uint8_t bytes[3 * SIZE];
	uint64_t lost = 0, dropped = 0;
	struct ring ring;

	srandom(5);
	ring_init(&ring, &budget, SIZE);
	for (int i = 0; i < ROUNDS; i++) {
		size_t size = (size_t)random() % (i % 10 ? 3000 : sizeof bytes);

		for (size_t j = 0; j < size; j++)
			bytes[j] = byte_at(ring.to + j);
		put(&ring, bytes, size, &lost);
		assert_true(ring.to - ring.from <= SIZE);
		assert_int_equal(ring.from, lost + dropped);
		if (random() % 3 == 0) {
			uint64_t position = ring.from + (uint64_t)random() % (ring.to - ring.from + 1);

			dropped += position - ring.from;
			ring_drop(&ring, position);
		}
		check_all(&ring, ring.from);
	}
	assert_true(lost > 0 && dropped > 0);
	ring_done(&ring);
	assert_int_equal(budget.used, 0);
}

/* Those that share a budget have a first piece each, and no more than it together. */
static void a_budget_bounds_all_of_them(void **state)
{
	struct ring_budget budget = { .max = SIZE };
	static uint8_t bytes[2 * SIZE];
	struct ring rings[8];
	uint64_t lost = 0;

	for (size_t i = 0; i < 8; i++) {
		ring_init(&rings[i], &budget, SIZE);
		put(&rings[i], bytes, sizeof bytes, &lost);
		assert_true(rings[i].to - rings[i].from >= 4096);
	}
	assert_true(budget.used <= SIZE + 8 * 4096);
	for (size_t i = 0; i < 8; i++)
		ring_done(&rings[i]);
	assert_int_equal(budget.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_holds_the_newest_bytes),
		cmocka_unit_test(a_budget_bounds_all_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
