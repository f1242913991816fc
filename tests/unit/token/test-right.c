/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rights: from text and back, and that whatever is within another lets nothing happen that the other does not, for many
 * pairs and actions made up from few parts, so that they meet often. Always the same ones.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "token/right.h"

static uint32_t random_state = 12345;

static uint32_t pick(uint32_t count)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % count;
}

#define PICK(array) (array)[pick(ARRAY_SIZE(array))]

static const char *const paths[] = { "/", "/a", "/a/b", "/a/b/c", "/ab", "/b", "/a/b*", "/a/[x]" };
static const char *const hosts[] = { "example.org", "*.example.org", "a.example.org", "*.a.example.org",
				     "b.a.example.org", "xexample.org", "10.0.0.1" };
static const char *const methods[] = { NULL, "GET", "POST" };
static const char *const requests[] = { NULL, "/", "/**", "/v1", "/v1/**", "/v1/x", "/v1/x/**", "/v10", "/v1/x/y" };
static const uint16_t ports[] = { 0, 80, 443 };
static const char *const words[] = { "git", "push", "*", "-f" };

static struct token_right make_right(void)
{
	struct token_right right = { .kind = (enum token_kind)(1 + pick(TOKEN_HTTP_REQUEST)) };
	bool is_network = right.kind == TOKEN_NET_CONNECT || right.kind == TOKEN_HTTP_REQUEST;

	right.subject = is_network ? PICK(hosts) : PICK(paths);
	right.port = is_network ? PICK(ports) : 0;
	right.is_below = !is_network && pick(2);
	if (right.kind == TOKEN_HTTP_REQUEST) {
		right.method = PICK(methods);
		right.path = PICK(requests);
	}
	for (right.word_count = right.kind == TOKEN_EXEC ? pick(3) : 0; right.words[0] == NULL && right.word_count;)
		for (size_t i = 0; i < right.word_count; i++)
			right.words[i] = PICK(words);
	return right;
}

static struct grant_terms make_action(const char *argv[4])
{
	static const enum action_kind kinds[] = { ACTION_FILE_READ, ACTION_FILE_WRITE, ACTION_EXEC, ACTION_NET_CONNECT,
						  ACTION_HTTP_REQUEST, ACTION_NET_DNS };
	struct grant_terms asked = { .kind = PICK(kinds) };
	bool is_file = asked.kind == ACTION_FILE_READ || asked.kind == ACTION_FILE_WRITE || asked.kind == ACTION_EXEC;

	asked.subject = is_file ? PICK(paths) : PICK(hosts);
	asked.flags = is_file && pick(4) == 0 ? GRANT_BELOW : 0;
	asked.port = is_file ? 0 : PICK(ports);
	if (asked.kind == ACTION_HTTP_REQUEST) {
		asked.method = pick(2) ? "GET" : "POST";
		do
			asked.path = PICK(requests);
		while (!asked.path);
	}
	if (asked.kind == ACTION_EXEC) {
		size_t count = 1 + pick(3);

		for (size_t i = 0; i < count; i++)
			argv[i] = PICK(words);
		argv[count] = NULL;
		asked.argv = argv;
	}
	return asked;
}

static void what_is_within_another_allows_no_more(void **state)
{
	enum { PAIRS = 20000, ACTIONS = 30 };
	size_t within = 0, allowed = 0;

	for (int i = 0; i < PAIRS; i++) {
		struct token_right outer = make_right(), inner = make_right();
		struct grant_terms outer_terms = token_right_terms(&outer), inner_terms = token_right_terms(&inner);

		assert_true(token_right_is_valid(&outer) && token_right_is_valid(&inner));
		assert_true(token_right_contains(&outer, &outer));
		if (!token_right_contains(&outer, &inner))
			continue;
		within++;
		for (int k = 0; k < ACTIONS; k++) {
			const char *argv[4];
			struct grant_terms asked = make_action(argv);

			if (!grant_covers(&inner_terms, &asked))
				continue;
			allowed++;
			if (!grant_covers(&outer_terms, &asked))
				fail_msg("%s %s %s is within %s %s %s, and allows %u %s %s",
					 token_kind_names[inner.kind], inner.subject, inner.path ? inner.path : "",
					 token_kind_names[outer.kind], outer.subject,
					 outer.path ? outer.path : "", asked.kind, asked.subject,
					 asked.path ? asked.path : "");
		}
	}
	/* The parts do meet. */
	assert_true(within > PAIRS / 100 && allowed > 200);
}

/* A level is nothing that a gate grants, and less of it is within more. */
static void a_level_is_no_grant(void **state)
{
	for (int outer = TRUST_LOW; outer < TRUST_COUNT; outer++)
		for (int inner = TRUST_LOW; inner < TRUST_COUNT; inner++) {
			struct token_right a = { .kind = TOKEN_TRUST, .subject = trust_level_names[outer] };
			struct token_right b = { .kind = TOKEN_TRUST, .subject = trust_level_names[inner] };
			struct token_right file = { .kind = TOKEN_FILE_READ, .subject = "/low" };

			assert_true(token_right_is_valid(&a) && !token_right_is_grant(&a));
			assert_int_equal(token_right_level(&a), outer);
			assert_int_equal(token_right_contains(&a, &b), inner <= outer);
			assert_false(token_right_contains(&a, &file) || token_right_contains(&file, &a));
			assert_int_equal(token_right_level(&file), TRUST_NONE);
		}
}

static void containment_is_transitive(void **state)
{
	for (int i = 0; i < 200000; i++) {
		struct token_right a = make_right(), b = make_right(), c = make_right();

		if (token_right_contains(&a, &b) && token_right_contains(&b, &c))
			assert_true(token_right_contains(&a, &c));
	}
}

static void text_comes_back(void **state)
{
	static const char *const texts[] = {
		"file.read=/data/x", "file.read=/data/**", "file.write=/**", "exec=/usr/bin/git", "exec=/usr/bin/**",
		"exec=/usr/bin/git push origin", "net.connect=example.org", "net.connect=*.example.org:443",
		"net.connect=[2001:db8::1]:443", "net.connect=10.0.0.1:80", "http.request=example.org/v1/**",
		"http.request=POST *.example.org:8443/v1/models", "http.request=example.org",
		"trust=low", "trust=full",
	};
	static const char *const wrong[] = {
		"", "=", "file.read", "file.read=", "file.read=x", "file.read=/a/../b", "file.read=/a/", "env=HOME",
		"net.connect=", "net.connect=*", "net.connect=Example.org", "net.connect=a:0", "net.connect=a:99999",
		"net.connect=a:x", "net.connect=a/b", "http.request=get a.org", "http.request=a.org/a*",
		"http.request=/a", "net.connect=[::1", "net.connect=a b", "exec=git", "file.write=\n",
		"trust=", "trust=none", "trust=Low", "trust=5", "trust=low/**",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct token_right_room room;
		struct token_right right;
		cleanup_buf struct buf out;
		const char *problem;

		buf_init(&out, 8192);
		if (token_right_parse(texts[i], &room, &right, &problem) < 0)
			fail_msg("%s: %s", texts[i], problem);
		token_right_format(&right, &out);
		assert_string_equal(buf_text(&out), texts[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct token_right_room room;
		struct token_right right;
		const char *problem = NULL;

		if (token_right_parse(wrong[i], &room, &right, &problem) != -EINVAL || !problem)
			fail_msg("%s is taken", wrong[i]);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_within_another_allows_no_more),
		cmocka_unit_test(a_level_is_no_grant),
		cmocka_unit_test(containment_is_transitive),
		cmocka_unit_test(text_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
