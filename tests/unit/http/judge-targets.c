/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For tests/integration/test_path_readings.py: judge-targets ALLOWED DENIED reads targets, one a line, in hexadecimal,
 * and says of each, in words between blanks: "malformed", or what a rule that allows ALLOWED alone says ("allow",
 * "deny"), what one that denies DENIED alone says, then what readings begin with where not all are known ("-": they
 * are), and each reading, in hexadecimal.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "http/target.h"

static const struct target_server server = { "web.test", 443, true };

static const char *say(const struct target *target, enum verdict verdict, const char *path)
{
	const char *const paths[] = { path, NULL };
	struct http_rule http = { .paths = paths };
	struct net_rule rule = { .verdict = verdict, .host = server.host, .http = &http, .http_count = 1,
				 .origin = { "rule" } };
	struct policy policy = { .network.default_verdict = verdict == VERDICT_DENY ? VERDICT_ALLOW : VERDICT_DENY,
				 .network.rules = &rule, .network.count = 1, .network.exact_count = 1 };
	struct action request = { .kind = ACTION_HTTP_REQUEST, .subject = server.host, .port = server.port,
				  .method = "GET" };

	return target_judge(target, &policy, &request).verdict == VERDICT_ALLOW ? "allow" : "deny";
}

static void put_hex(const char *text)
{
	putchar(' ');
	for (; *text; text++)
		printf("%02x", (unsigned char)*text);
}

static void answer(const char *text, char **argv)
{
	struct target target;
	const char *problem;

	if (target_parse("GET", text, &server, &target, &problem) < 0) {
		puts("malformed");
		return;
	}
	printf("%s %s", say(&target, VERDICT_ALLOW, argv[1]), say(&target, VERDICT_DENY, argv[2]));
	if (target.readings.certain)
		put_hex(target.readings.certain);
	else
		printf(" -");
	for (size_t i = 0; i < target.readings.count; i++)
		put_hex(target.readings.texts[i]);
	putchar('\n');
	target_done(&target);
}

int main(int argc, char **argv)
{
	static char line[4 * TARGET_PATH_SIZE], text[2 * TARGET_PATH_SIZE];

	if (argc != 3)
		return 2;
	while (fgets(line, sizeof line, stdin)) {
		size_t size = strcspn(line, "\n") / 2;

		for (size_t i = 0; i < size; i++) {
			char digits[3] = { line[2 * i], line[2 * i + 1] };

			text[i] = (char)strtol(digits, NULL, 16);
		}
		text[size] = 0;
		answer(text, argv);
		if (fflush(stdout) != 0)
			return 1;
	}
	return 0;
}
