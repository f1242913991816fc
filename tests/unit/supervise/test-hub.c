/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "supervise/hub.h"

struct listener {
	struct subscriber subscriber;
	struct hub *hub;
	char *heard;                 /* what all of them heard, in order */
	char name;
	int result;
	bool tells_of_limit;
};

static int note(void *context, enum event_type type, const void *detail)
{
	struct listener *listener = context;

	*strchr(listener->heard, '.') = type == EVENT_LIMIT ? *(const char *)detail : listener->name;
	if (listener->tells_of_limit && type != EVENT_LIMIT)
		return hub_publish(listener->hub, EVENT_LIMIT, "!");
	return listener->result;
}

static struct listener listens(struct hub *hub, char *heard, char name, uint32_t types)
{
	return (struct listener){ .subscriber = { .types = types, .note = note }, .hub = hub, .heard = heard,
				  .name = name };
}

static void add(struct listener *listener)
{
	listener->subscriber.context = listener;
	hub_subscribe(listener->hub, &listener->subscriber);
}

static void test_who_subscribed_hears_in_order(void **state)
{
	char heard[] = "......";
	struct hub hub = { 0 };
	struct listener a = listens(&hub, heard, 'a', 1 << EVENT_EXEC), b = listens(&hub, heard, 'b', 1 << EVENT_FILE),
			c = listens(&hub, heard, 'c', 1 << EVENT_EXEC | 1 << EVENT_FILE);

	(void)state;
	assert_int_equal(hub_publish(&hub, EVENT_EXEC, NULL), 0);
	add(&a);
	add(&b);
	add(&c);
	assert_int_equal(hub_publish(&hub, EVENT_EXEC, NULL), 0);
	assert_int_equal(hub_publish(&hub, EVENT_FILE, NULL), 0);
	assert_int_equal(hub_publish(&hub, EVENT_LOOKUP, NULL), 0);
	assert_string_equal(heard, "acbc..");
}

static void test_a_log_that_fails_ends_it(void **state)
{
	char heard[] = "....";
	struct hub hub = { 0 };
	struct listener a = listens(&hub, heard, 'a', 1 << EVENT_EXEC), b = listens(&hub, heard, 'b', 1 << EVENT_EXEC);

	(void)state;
	a.result = -EIO;
	add(&a);
	add(&b);
	assert_int_equal(hub_publish(&hub, EVENT_EXEC, NULL), -EIO);
	assert_string_equal(heard, "a...");
	a.result = 0;
	assert_int_equal(hub_publish(&hub, EVENT_EXEC, NULL), 0);
	assert_string_equal(heard, "aab.");
}

static void test_a_note_may_tell_of_a_limit(void **state)
{
	char heard[] = "....";
	struct hub hub = { 0 };
	struct listener a = listens(&hub, heard, 'a', 1 << EVENT_EXEC), b = listens(&hub, heard, 'b', 1 << EVENT_LIMIT);

	(void)state;
	a.tells_of_limit = true;
	add(&a);
	add(&b);
	assert_int_equal(hub_publish(&hub, EVENT_EXEC, NULL), 0);
	assert_string_equal(heard, "a!..");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_subscribed_hears_in_order),
		cmocka_unit_test(test_a_log_that_fails_ends_it),
		cmocka_unit_test(test_a_note_may_tell_of_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
