/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Arbitrary targets of requests. What a log keeps of one leads to the same readings; a rule of a directory lets through
 * only what is read below it, and one that denies it only what is not.
 */

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "http/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const struct target_server server = { "a.example", 443, true };
static const char *const paths[] = { "/v1/**", NULL };
static const struct http_rule http_rule = { .paths = paths, .origin = { "h" } };

static void require(bool condition)
{
	if (!condition)
		abort();
}

static bool is_below(const char *path)
{
	return str_equal(path, "/v1") || str_has_prefix(path, "/v1/");
}

static bool passes(const struct target *target, enum verdict verdict)
{
	struct net_rule rule = { .verdict = verdict, .host = server.host, .http = &http_rule, .http_count = 1,
				 .origin = { "n" } };
	struct policy policy = { .network.default_verdict = verdict == VERDICT_DENY ? VERDICT_ALLOW : VERDICT_DENY,
				 .network.rules = &rule, .network.count = 1, .network.exact_count = 1 };
	struct action request = { .kind = ACTION_HTTP_REQUEST, .subject = server.host, .port = server.port,
				  .method = "GET" };

	return target_judge(target, &policy, &request).verdict == VERDICT_ALLOW;
}

static void check(const struct target *target)
{
	bool is_allowed = passes(target, VERDICT_ALLOW), is_free = passes(target, VERDICT_DENY);
	struct target again;

	require(target_reading_count(target) > 0);
	for (size_t i = 0; i < target_reading_count(target); i++) {
		struct action reading = { .kind = ACTION_HTTP_REQUEST };

		target_set_reading(target, i, &reading);
		require(!is_allowed || is_below(reading.path));
		require(!is_free || !is_below(reading.path));
	}
	require(target_read(target->path, target->climbs, &again) == 0);
	require(again.readings.count == target->readings.count);
	for (size_t i = 0; i < again.readings.count; i++)
		require(str_equal(again.readings.texts[i], target->readings.texts[i]));
	require(str_equal(again.readings.certain, target->readings.certain));
	target_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *text = malloc(size + 1);
	struct target target;
	const char *problem = NULL;

	if (!text)
		return 0;
	if (size)
		memcpy(text, bytes, size);
	text[size] = 0;
	if (target_parse("GET", text, &server, &target, &problem) == 0) {
		check(&target);
		target_done(&target);
	} else {
		require(problem);
	}
	free(text);
	return 0;
}
