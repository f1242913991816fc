/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/grants.h"

static struct grant_terms connect_to(const char *host, uint16_t port)
{
	return (struct grant_terms){ .kind = ACTION_NET_CONNECT, .subject = host, .port = port };
}

static struct grant_terms path(enum action_kind kind, const char *subject, uint32_t flags)
{
	return (struct grant_terms){ .kind = kind, .subject = subject, .flags = flags };
}

static void a_grant_covers_the_same_thing_and_no_other(void **state)
{
	struct grant_terms granted = connect_to("a.example.org", 443);
	struct grant_terms other_port = connect_to("a.example.org", 80), other_host = connect_to("b.example.org", 443);
	struct grant_terms below = connect_to("x.a.example.org", 443), nothing = connect_to("", 443);

	assert_true(grant_covers(&granted, &granted));
	assert_false(grant_covers(&granted, &other_port));
	assert_false(grant_covers(&granted, &other_host));
	assert_false(grant_covers(&granted, &below));
	assert_false(grant_covers(&granted, &nothing));
}

static void a_connection_may_look_its_name_up_and_send_no_request(void **state)
{
	struct grant_terms granted = connect_to("a.example.org", 443);
	struct grant_terms lookup = { .kind = ACTION_NET_DNS, .subject = "a.example.org" };
	struct grant_terms request = { .kind = ACTION_HTTP_REQUEST, .subject = "a.example.org", .port = 443,
				       .method = "GET", .path = "/" };

	assert_true(grant_covers(&granted, &lookup));
	assert_false(grant_covers(&lookup, &granted));
	assert_false(grant_covers(&granted, &request));
	assert_true(grant_covers(&request, &lookup));
	assert_false(grant_covers(&request, &granted));
}

static void a_request_is_granted_with_its_method_and_path(void **state)
{
	struct grant_terms granted = { .kind = ACTION_HTTP_REQUEST, .subject = "a.example.org", .port = 443,
				       .method = "GET", .path = "/v1/*" };
	struct grant_terms asked = granted;

	assert_true(grant_covers(&granted, &asked));
	asked.path = "/v1/x";
	/* A star that somebody inside wrote is a star. */
	assert_false(grant_covers(&granted, &asked));
	granted.flags = GRANT_PATTERNS;
	assert_true(grant_covers(&granted, &asked));
	asked.method = "POST";
	assert_false(grant_covers(&granted, &asked));
}

static void to_write_is_to_read_and_not_the_other_way_round(void **state)
{
	struct grant_terms reads = path(ACTION_FILE_READ, "/data/a", 0), writes = path(ACTION_FILE_WRITE, "/data/a", 0);

	assert_true(grant_covers(&writes, &reads));
	assert_false(grant_covers(&reads, &writes));
}

static void a_directory_covers_what_is_below_it(void **state)
{
	struct grant_terms tree = path(ACTION_FILE_READ, "/data", GRANT_BELOW), at = path(ACTION_FILE_READ, "/data", 0);
	struct grant_terms inside = path(ACTION_FILE_READ, "/data/a/b", 0);
	struct grant_terms beside = path(ACTION_FILE_READ, "/data2", 0);
	struct grant_terms subtree = path(ACTION_FILE_READ, "/data/a", GRANT_BELOW);

	assert_true(grant_covers(&tree, &at));
	assert_true(grant_covers(&tree, &inside));
	assert_true(grant_covers(&tree, &subtree));
	assert_false(grant_covers(&tree, &beside));
	assert_false(grant_covers(&at, &tree));
	assert_false(grant_covers(&at, &inside));
}

static void a_command_is_granted_with_its_arguments_and_directory(void **state)
{
	const char *push[] = { "git", "push", NULL }, *force[] = { "git", "push", "--force", NULL };
	const char *star[] = { "git", "*", NULL };
	struct grant_terms granted = { .kind = ACTION_EXEC, .subject = "/usr/bin/git", .argv = push,
				       .actor = { .cwd = "/home/a" } };
	struct grant_terms asked = granted;

	assert_true(grant_covers(&granted, &asked));
	asked.argv = force;
	assert_false(grant_covers(&granted, &asked));
	asked.argv = NULL;
	assert_false(grant_covers(&granted, &asked));
	asked.argv = push;
	asked.actor.cwd = "/home/b";
	assert_false(grant_covers(&granted, &asked));
	asked.actor.cwd = NULL;
	assert_false(grant_covers(&granted, &asked));
	granted.argv = star;
	asked.actor.cwd = "/home/a";
	assert_false(grant_covers(&granted, &asked));
}

static void a_refusal_covers_the_other_ways_to_its_thing(void **state)
{
	const char *push[] = { "git", "push", NULL }, *renamed[] = { "/usr/bin/git", "push", NULL };
	const char *status[] = { "git", "status", NULL };
	struct grant_terms refused = connect_to("a.example.org", 443), asked = connect_to("a.example.org", 80);
	struct grant_terms request = { .kind = ACTION_HTTP_REQUEST, .subject = "a.example.org", .port = 8443,
				       .method = "PUT", .path = "/" };
	struct grant_terms reads = path(ACTION_FILE_READ, "/data/a", GRANT_REFUSES);
	struct grant_terms writes = path(ACTION_FILE_WRITE, "/data/a", 0), other = path(ACTION_FILE_READ, "/data/b", 0);
	struct grant_terms command = { .kind = ACTION_EXEC, .subject = "/usr/bin/git", .argv = push,
				       .flags = GRANT_REFUSES, .actor = { "/bin/sh", "/home/a" } };
	struct grant_terms again = { .kind = ACTION_EXEC, .subject = "/usr/bin/git", .argv = renamed };

	assert_false(grant_covers(&refused, &asked));
	refused.flags = GRANT_REFUSES;
	assert_true(grant_covers(&refused, &asked));
	assert_true(grant_covers(&refused, &request));
	assert_true(grant_covers(&reads, &writes));
	assert_false(grant_covers(&reads, &other));
	assert_true(grant_covers(&command, &again));
	again.argv = status;
	assert_false(grant_covers(&command, &again));
}

static struct hash identity(struct grant_terms terms)
{
	struct hash hash;

	grant_identity(&terms, &hash);
	return hash;
}

static bool is_same(struct grant_terms a, struct grant_terms b)
{
	struct hash first = identity(a), second = identity(b);

	return memcmp(&first, &second, sizeof first) == 0;
}

static void the_identity_tells_everything_that_is_shown_apart(void **state)
{
	const char *joined[] = { "a b", NULL }, *apart[] = { "a", "b", NULL }, *none[] = { NULL };
	struct grant_terms base = { .kind = ACTION_EXEC, .subject = "/bin/x", .argv = joined };
	struct grant_terms other = base;

	assert_true(is_same(base, other));
	other.argv = apart;
	assert_false(is_same(base, other));
	other.argv = none;
	assert_false(is_same(base, other));
	other = base;
	other.actor.cwd = "";
	assert_false(is_same(base, other));
	other = base;
	other.method = "/bin/x";
	assert_false(is_same(base, other));
	other = base;
	other.actor.program = "/bin/sh";
	assert_false(is_same(base, other));
	other = base;
	other.port = 1;
	assert_false(is_same(base, other));
	other = base;
	other.flags = GRANT_BELOW;
	assert_false(is_same(base, other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_grant_covers_the_same_thing_and_no_other),
		cmocka_unit_test(a_connection_may_look_its_name_up_and_send_no_request),
		cmocka_unit_test(a_request_is_granted_with_its_method_and_path),
		cmocka_unit_test(to_write_is_to_read_and_not_the_other_way_round),
		cmocka_unit_test(a_directory_covers_what_is_below_it),
		cmocka_unit_test(a_command_is_granted_with_its_arguments_and_directory),
		cmocka_unit_test(a_refusal_covers_the_other_ways_to_its_thing),
		cmocka_unit_test(the_identity_tells_everything_that_is_shown_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
