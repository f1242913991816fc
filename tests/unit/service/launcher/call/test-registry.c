/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/str.h"
#include "service/launcher/call/quota.h"
#include "service/launcher/call/sandbox.h"

enum { COUNT = 9000, NS_PER_S = 1000000000 };

static struct registry registry;

static void id_of(unsigned number, char out[CREDENTIAL_ID_SIZE])
{
	assert_int_equal(str_format(out, CREDENTIAL_ID_SIZE, "i%u", number), 0);
}

static void sandboxes_are_found_and_stand_in_their_order(void **state)
{
	char id[CREDENTIAL_ID_SIZE];
	size_t seen = 0;

	for (unsigned i = 0; i < COUNT; i++) {
		struct sandbox *sandbox;

		id_of(i, id);
		sandbox = registry_add(&registry, NULL, id);
		assert_non_null(sandbox);
		sandbox->created_ms = i;
		assert_int_equal(str_copy(sandbox->owner, sizeof sandbox->owner, i % 3 ? "a" : "b"), 0);
	}
	/* From the middle, the beginning and the end. */
	for (unsigned i = 0; i < COUNT; i += i == 0 ? COUNT / 2 : COUNT / 2 - 1) {
		id_of(i, id);
		registry_remove(&registry, registry_find(&registry, id));
		assert_null(registry_find(&registry, id));
	}
	assert_int_equal(registry.count, COUNT - 3);
	for (const struct sandbox *sandbox = registry.oldest; sandbox; sandbox = sandbox->newer, seen++) {
		assert_true(!sandbox->newer || sandbox->newer->created_ms > sandbox->created_ms);
		assert_true(!sandbox->newer || sandbox->newer->older == sandbox);
		assert_ptr_equal(registry_find(&registry, sandbox->id), sandbox);
	}
	assert_int_equal(seen, registry.count);
	registry.oldest->state = SANDBOX_KILLING;
	assert_int_equal(registry_count_of(&registry, "a") + registry_count_of(&registry, "b"), COUNT - 4);
	while (registry.oldest)
		registry_remove(&registry, registry.oldest);
	assert_true(!registry.newest && !registry.count);
	registry_remove(&registry, NULL);
}

static void an_owner_makes_so_many_a_minute(void **state)
{
	struct key_row fast = { .owner = "a", .creates_per_minute = 3 }, other = { .owner = "b",
	.creates_per_minute = 1 };
	struct quotas quotas = { 0 };
	uint64_t now = NS_PER_S;

	for (int i = 0; i < 3; i++)
		assert_int_equal(quotas_take(&quotas, &fast, 1, now), 0);
	assert_in_range(quotas_take(&quotas, &fast, 1, now), 20, 21);
	assert_int_equal(quotas_take(&quotas, &other, 1, now), 0);
	assert_in_range(quotas_take(&quotas, &other, 1, now), 60, 61);
	assert_int_equal(quotas_take(&quotas, &fast, 1, now + 21ULL * NS_PER_S), 0);
	assert_true(quotas_take(&quotas, &fast, 1, now + 21ULL * NS_PER_S) > 0);
	quotas_done(&quotas);
	assert_null(quotas.first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sandboxes_are_found_and_stand_in_their_order),
		cmocka_unit_test(an_owner_makes_so_many_a_minute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
