/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "fixture.h"
#include "lang/print/print.h"

#ifdef ATOLL_SANITIZED
enum { ROUNDS = 90 };
#else
enum { ROUNDS = 600 };
#endif

static const char base[] =
	"atoll: 1\nextends: medium\n"
	"files: {read: [{path: /data, except: [/data/secret]}], write: [{path: /out, exec: false}], ask: [~/asked],\n"
	"        stage: [~/.cache/tool, src/gen], mask: [/data/mine], protect: [\"**/Makefile\"]}\n"
	"network: {default: ask, allow: [{host: a.org, ports: [443]}, b.org, {host: \"*.c.org\"}, "
	"{cidr: 192.0.2.0/24}],\n"
	"          ask: [d.org], deny: [e.org], limits: {rate: 1MiB/s}}\n"
	"exec: {deny: [/usr/bin/sudo], ask: [{argv: [git, push, \"**\"]}]}\n"
	"resources: {memory: 1GiB, processes: 64}\ntime: {wall: 1h}\n"
	"ask: {bell: false}\n";

static const struct policy *narrow_of(const char *policy, const char *narrowing)
{
	fixture_reset();
	fixture_file("/t.yaml", policy);
	fixture_request.policy = "/t.yaml";
	fixture_request.narrowing = narrowing;
	fixture_request.narrowing_size = strlen(narrowing);
	return fixture_compile();
}

static const struct policy *narrow(const char *narrowing)
{
	return narrow_of(base, narrowing);
}

/* Everything that a policy can say more by, as a narrowing would write it. */
static const char *const widenings[] = {
	"{\"files\": {\"read\": [\"/\"]}}",
	"{\"files\": {\"read\": [\"/root\"]}}",
	"{\"files\": {\"read\": [\"~\"]}}",
	"{\"files\": {\"read\": [\"/data/secret\"]}}",
	"{\"files\": {\"read\": [\"/data/mine\"]}}",
	"{\"files\": {\"read\": [\"~/asked\"]}}",
	"{\"files\": {\"read\": [\"**/x\"]}}",
	"{\"files\": {\"read\": [\".env\"]}}",
	"{\"files\": {\"read\": [{\"path\": \"src\"}]}}",
	"{\"files\": {\"change\": [\".env\"]}}",
	"{\"files\": {\"change\": [\"/data\"]}}",
	"{\"files\": {\"change\": [\"/etc\"]}}",
	"{\"files\": {\"change\": [\"../other\"]}}",
	"{\"files\": {\"change\": [\"~/.bashrc\"]}}",
	"{\"files\": {\"change\": [\"**\"]}}",
	"{\"files\": {\"change\": [{\"path\": \"src\"}]}}",
	"{\"files\": {\"change\": \"src\"}}",
	"{\"files\": {\"write\": [\"src\"]}}",
	"{\"files\": {\"stage\": [\"/etc\"]}}",
	"{\"files\": {\"scratch\": [\"/data\"]}}",
	"{\"files\": {\"ask\": [\"/etc/shadow\"]}}",
	"{\"files\": {\"mask\": [{\"path\": \"src\", \"except\": [\"/\"]}]}}",
	"{\"files\": {\"protect\": [\"src\"]}}",
	"{\"network\": {\"allow\": [\"evil.com\"]}}",
	"{\"network\": {\"ask\": [\"evil.com\"]}}",
	"{\"network\": {\"default\": \"allow\"}}",
	"{\"network\": {\"default\": \"ask\"}}",
	"{\"network\": {\"host\": true}}",
	"{\"network\": {\"reach\": [\"evil.com\"]}}",
	"{\"network\": {\"reach\": [\"e.org\"]}}",
	"{\"network\": {\"reach\": [\"*.org\"], \"default\": \"allow\"}}",
	"{\"network\": {\"reach\": [\"10.0.0.0/8\"]}}",
	"{\"network\": {\"reach\": [{\"cidr\": \"10.0.0.0/8\"}]}}",
	"{\"network\": {\"deny\": [{\"host\": \"a.org\", \"except\": [\"a.org\"]}]}}",
	"{\"network\": {\"publish\": [8080]}}",
	"{\"network\": {\"simulate\": [{\"host\": \"b.org\", \"answer\": {\"body\": \"x\"}}]}}",
	"{\"network\": {\"limits\": {\"rate\": \"2MiB/s\"}}}",
	"{\"exec\": {\"allow\": [\"/usr/bin/sudo\"]}}",
	"{\"exec\": {\"ask\": [\"/usr/bin/sudo\"]}}",
	"{\"exec\": {\"default\": \"allow\"}}",
	"{\"exec\": {\"new_binaries\": true}}",
	"{\"exec\": {\"namespaces\": true}}",
	"{\"exec\": {\"deny\": [{\"program\": \"/usr/bin/git\", \"except\": [\"/\"]}]}}",
	"{\"resources\": {\"memory\": \"2GiB\"}}",
	"{\"resources\": {\"memory\": \"unlimited\"}}",
	"{\"resources\": {\"processes\": 65}}",
	"{\"resources\": {\"processes\": \"unlimited\"}}",
	"{\"time\": {\"wall\": \"2h\"}}",
	"{\"time\": {\"wall\": \"unlimited\"}}",
	"{\"time\": {\"rate\": {\"exec\": \"1000/s\"}}}",
	"{\"time\": {\"cooldown\": {\"denials\": 256, \"within\": \"1s\", \"pause\": \"1s\"}}}",
	"{\"env\": {\"pass\": [\"AWS_SECRET_ACCESS_KEY\"]}}",
	"{\"env\": {\"set\": {\"LD_PRELOAD\": \"/x.so\"}}}",
	"{\"devices\": [\"kvm\"]}",
	"{\"degrade\": [\"seccomp\"]}",
	"{\"extends\": \"full\"}",
	"{\"extends\": \"none\"}",
	"{\"drop\": [\".env\"]}",
	"{\"atoll\": 1}",
	"{\"data\": {\"secrets\": \"off\"}}",
	"{\"data\": {\"canaries\": [\"x\"]}}",
	"{\"audit\": {\"files\": \"off\"}}",
	"{\"stage\": {\"auto\": \"off\"}}",
	"{\"ask\": {\"timeout\": \"24h\"}}",
	"{\"ask\": {\"webhook\": \"https://a.org/\"}}",
	"{\"verify\": {\"critical\": \"off\"}}",
	"{\"verify\": {\"external\": {\"command\": [\"/bin/true\"]}}}",
	"{\"monitor\": {\"baseline\": false}}",
	"{\"trust\": {\"raise\": \"full\"}}",
	"{\"network\": {\"deny\": [\"a.org\"], \"deny\": []}}",
	"[{\"files\": {}}]",
	"\"files\"",
	"files: &x {read: *x}",
	"--- {}\n--- {}",
	"{\"files\": {\"read\": [\"src\"]}",
	"",
};

static void nothing_widens(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(widenings); i++) {
		if (narrow(widenings[i]))
			fail_msg("accepted: %s", widenings[i]);
		if (strncmp(fixture_errors(), "narrowing:", 10) != 0)
			fail_msg("%s: %s", widenings[i], fixture_errors());
		assert_null(lang_policy_before(fixture_lang()));
	}
	/* The positive control: the policy is one, and can be narrowed. */
	assert_non_null(narrow("{}"));
	assert_int_equal(print_diff_allows(lang_policy_before(fixture_lang()), lang_policy(fixture_lang()), NULL), 0);
	assert_non_null(narrow("{\"files\": {\"read\": [\"src\"]}}"));
	assert_null(narrow_of(base, "{\"files\": {\"read\": [\"src\"], \"x\": 1}}"));
}

/* At a level that stands for a higher one a project's line that would widen is left out; a narrowing's never. */
static void a_lowered_policy_is_no_way_around(void **state)
{
	fixture_reset();
	fixture_file("/t.yaml", "atoll: 1\nextends: high\n");
	fixture_request.policy = "/t.yaml";
	fixture_request.level = "low";
	fixture_request.is_lowered = true;
	fixture_request.narrowing = "{\"resources\": {\"memory\": \"900GiB\"}}";
	fixture_request.narrowing_size = strlen(fixture_request.narrowing);
	assert_null(fixture_compile());
	assert_non_null(strstr(fixture_errors(), "widens the policy"));
	fixture_request.narrowing = "{\"files\": {\"change\": [\"src\"]}}";
	fixture_request.narrowing_size = strlen(fixture_request.narrowing);
	assert_non_null(fixture_compile());
	assert_int_equal(fixture_class("/home/u/p/x"), FILE_READ);
}

static void of_the_project_only_what_is_listed_may_be_changed(void **state)
{
	assert_non_null(narrow("{\"files\": {\"change\": [\"src\", \"doc/man\"]}}"));
	assert_int_equal(fixture_class("/home/u/p"), FILE_READ);
	assert_int_equal(fixture_class("/home/u/p/Makefile"), FILE_READ);
	assert_int_equal(fixture_class("/home/u/p/doc/x"), FILE_READ);
	assert_int_equal(fixture_class("/home/u/p/doc/man/x"), FILE_STAGE);
	assert_int_equal(fixture_class("/home/u/p/src/x.c"), FILE_STAGE);
	assert_int_equal(fixture_class("/home/u/p/src/gen/x.c"), FILE_STAGE);
	assert_int_equal(fixture_class("/home/u/p/.env"), FILE_MASK);
	/* Elsewhere nothing changes. */
	assert_int_equal(fixture_class("/out/x"), FILE_WRITE);
	assert_int_equal(fixture_class("/home/u/.cache/tool"), FILE_STAGE);
	assert_non_null(narrow("{\"files\": {\"change\": []}}"));
	assert_int_equal(fixture_class("/home/u/p/src/gen/x.c"), FILE_READ);
	assert_non_null(narrow("{\"files\": {\"change\": [\"src/gen\"]}}"));
	assert_int_equal(fixture_class("/home/u/p/src/gen/x.c"), FILE_STAGE);
	assert_int_equal(fixture_class("/home/u/p/src/x.c"), FILE_READ);
	assert_non_null(narrow("{\"files\": {\"change\": [\".\"]}}"));
	assert_int_equal(fixture_class("/home/u/p/x"), FILE_STAGE);
	/* Another list takes from it. */
	assert_non_null(narrow("{\"files\": {\"change\": [\"src\"], \"read\": [\"src/gen\"], \"mask\": [\"doc\"]}}"));
	assert_int_equal(fixture_class("/home/u/p/src/gen/x.c"), FILE_READ);
	assert_int_equal(fixture_class("/home/u/p/doc/x"), FILE_MASK);
}

static enum verdict connect_to(const char *host, uint16_t port)
{
	return policy_decide(lang_policy(fixture_lang()), &(struct action){ .kind = ACTION_NET_CONNECT,
									     .subject = host, .port = port })
		.verdict;
}

static void of_the_hosts_only_what_is_listed_may_be_reached(void **state)
{
	assert_non_null(narrow("{\"network\": {\"reach\": [\"a.org\", \"x.c.org\", \"d.org\"]}}"));
	assert_int_equal(connect_to("a.org", 443), VERDICT_ALLOW);
	assert_int_equal(connect_to("a.org", 80), VERDICT_DENY);
	assert_int_equal(connect_to("x.c.org", 443), VERDICT_ALLOW);
	assert_int_equal(connect_to("y.c.org", 443), VERDICT_DENY);
	assert_int_equal(connect_to("b.org", 443), VERDICT_DENY);
	assert_int_equal(connect_to("d.org", 443), VERDICT_ASK);
	assert_int_equal(connect_to("192.0.2.1", 443), VERDICT_DENY);
	assert_int_equal(connect_to("else.org", 443), VERDICT_DENY);
	assert_non_null(narrow("{\"network\": {\"reach\": [\"*.c.org\"]}}"));
	assert_int_equal(connect_to("y.c.org", 443), VERDICT_ALLOW);
	assert_int_equal(connect_to("a.org", 443), VERDICT_DENY);
	assert_non_null(narrow("{\"network\": {\"reach\": []}}"));
	assert_int_equal(connect_to("a.org", 443), VERDICT_DENY);
	assert_int_equal(connect_to("y.c.org", 443), VERDICT_DENY);
	/* Where everything is allowed: the hosts by name, for the web. */
	assert_non_null(narrow_of("atoll: 1\nextends: high\n", "{\"network\": {\"reach\": [\"any.org\"]}}"));
	assert_int_equal(connect_to("any.org", 443), VERDICT_ALLOW);
	assert_int_equal(connect_to("any.org", 22), VERDICT_DENY);
	assert_int_equal(connect_to("else.org", 443), VERDICT_DENY);
}

static void the_rest_is_taken_away_too(void **state)
{
	const struct policy *policy = narrow("{\"exec\": {\"deny\": [\"/usr/bin/git\", \"**/curl\"]},\n"
					     " \"network\": {\"deny\": [\"b.org\"]},\n"
					     " \"files\": {\"mask\": [\"**/*.pem\", \"secret notes\"]},\n"
					     " \"resources\": {\"memory\": \"512MiB\", \"processes\": 8},\n"
					     " \"time\": {\"wall\": \"10m\", \"idle\": \"1m\"}}");

	assert_non_null(policy);
	assert_int_equal(fixture_ask(ACTION_EXEC, "/usr/bin/git"), VERDICT_DENY);
	assert_int_equal(fixture_ask(ACTION_EXEC, "/usr/bin/curl"), VERDICT_DENY);
	assert_int_equal(fixture_ask(ACTION_EXEC, "/usr/bin/make"), VERDICT_ALLOW);
	assert_int_equal(fixture_ask(ACTION_NET_CONNECT, "b.org"), VERDICT_DENY);
	assert_int_equal(fixture_class("/home/u/p/a.pem"), FILE_MASK);
	assert_int_equal(fixture_class("/home/u/p/secret notes"), FILE_MASK);
	assert_int_equal(policy->limits[RESOURCE_MEMORY].value, 512 << 20);
	assert_int_equal(policy->limits[RESOURCE_WALL_MS].value, 600000);
}

static void a_project_file_and_a_narrowing_add_up(void **state)
{
	fixture_reset();
	fixture_file("/t.yaml", base);
	fixture_file("/home/u/p/.atoll.yaml", "atoll: 1\nfiles: {read: [src], mask: [keys]}\n");
	fixture_request.policy = "/t.yaml";
	fixture_request.narrowing = "{\"files\": {\"change\": [\"src\"]}}";
	fixture_request.narrowing_size = strlen(fixture_request.narrowing);
	/* What the project's file took is not given back. */
	assert_null(fixture_compile());
	assert_non_null(strstr(fixture_errors(), "narrowing:1:"));
	fixture_request.narrowing = "{\"files\": {\"change\": [\"doc\"]}}";
	fixture_request.narrowing_size = strlen(fixture_request.narrowing);
	assert_non_null(fixture_compile());
	assert_int_equal(fixture_class("/home/u/p/doc/x"), FILE_STAGE);
	assert_int_equal(fixture_class("/home/u/p/keys"), FILE_MASK);
	assert_int_equal(fixture_class("/home/u/p/src"), FILE_READ);
}

static void what_is_taken_is_told_in_few_lines(void **state)
{
	cleanup_buf struct buf brief, whole;

	assert_non_null(narrow("{\"files\": {\"change\": [\"src\"]}, "
			       "\"network\": {\"reach\": [\"a.org\", \"x.c.org\"]}, \"time\": {\"wall\": \"10m\"}}"));
	buf_init(&brief, 1 << 20);
	buf_init(&whole, 1 << 20);
	assert_true(print_diff_brief(lang_policy_before(fixture_lang()), lang_policy(fixture_lang()), &brief) > 20);
	assert_true(print_diff(lang_policy_before(fixture_lang()), lang_policy(fixture_lang()), &whole) > 20);
	assert_true(brief.size < 1500 && brief.size < whole.size / 2);
	assert_non_null(strstr(buf_text(&brief), "- file.write   stage -> deny: /home/u/p\n"));
	assert_non_null(strstr(buf_text(&brief), "- limit        1h -> 10m: wall\n"));
	assert_non_null(strstr(buf_text(&brief), "= file.write   still: "));
	assert_non_null(strstr(buf_text(&brief), "= net.connect  still: x.c.org, a.org\n"));
	assert_non_null(strstr(buf_text(&brief), " more\n"));
	assert_null(strstr(buf_text(&brief), "Makefile"));
	assert_non_null(strstr(buf_text(&whole), "Makefile"));
	/* Nothing is said of nothing. */
	assert_non_null(narrow("{}"));
	buf_done(&brief);
	buf_init(&brief, 1 << 20);
	assert_int_equal(print_diff_brief(lang_policy_before(fixture_lang()), lang_policy(fixture_lang()), &brief), 0);
	assert_int_equal(brief.size, 0);
}

/* What has the last word on a narrowing counts what policy diff shows with a plus. */
static void what_is_allowed_more_is_counted(void **state)
{
	static const char *const wider[] = {
		"files: {read: [/letters]}\n", "files: {write: [src]}\n", "network: {allow: [new.org]}\n",
		"network: {default: allow}\n", "exec: {default: allow}\n", "resources: {memory: 2GiB}\n",
		"time: {wall: unlimited}\n", "env: {pass: [NEW]}\n", "degrade: [landlock]\n", "ask: {timeout: 2m}\n",
	};
	static const char before[] = "atoll: 1\nextends: low\nexec: {default: deny}\nresources: {memory: 1GiB}\n"
				     "time: {wall: 1h}\nask: {timeout: 1m}\n";

	for (size_t i = 0; i < ARRAY_SIZE(wider); i++) {
		cleanup_lang struct lang *a = NULL, *b = NULL;
		char text[300];

		assert_non_null(fixture_text(before));
		assert_int_equal(lang_compile(&fixture_request, &a), 0);
		snprintf(text, sizeof text, "atoll: 1\nextends: /t.yaml\n%s", wider[i]);
		fixture_file("/wider.yaml", text);
		fixture_request.policy = "/wider.yaml";
		assert_int_equal(lang_compile(&fixture_request, &b), 0);
		if (!print_diff_allows(lang_policy(a), lang_policy(b), NULL))
			fail_msg("not seen: %s", wider[i]);
		assert_int_equal(print_diff_allows(lang_policy(a), lang_policy(a), NULL), 0);
	}
}

/* ---- many of them ---- */

static const char *const bases[] = {
	base,
	"atoll: 1\nextends: none\n",
	"atoll: 1\nextends: low\nfiles: {stage: [~/.cache]}\n",
	"atoll: 1\nextends: high\nnetwork: {deny: [evil.com]}\n",
	"atoll: 1\nextends: claude\nfiles: {read: [{path: \"**/vendor\"}], write: [/out/x]}\n",
	"atoll: 1\nextends: medium\nfiles: {stage: [{path: ~/.cache, except: [~/.cache/keep]}, /data]}\n"
	"network: {default: allow, ask: [\"*.c.org\"], deny: [{host: \"*.org\", except: [a.org, x.c.org]}]}\n",
	"atoll: 1\nextends: medium\nexec: {default: deny, allow: [/usr/bin/git, \"**/make\"]}\n"
	"network: {default: allow, host: true}\n",
};

static const char *const paths[] = {
	".", "src", "src/gen", "src/gen/x", "doc", ".env", ".git", "vendor", "src/vendor", "/data", "/data/secret",
	"/data/x", "/out", "/out/x", "~/.cache", "~/.cache/keep", "~/.cache/tool", "~/asked", "~/.ssh", "/etc",
	"/etc/shadow", "/usr/bin", "/", "/tmp", "**/x", "**/*.pem", "src/*",
};
static const char *const hosts[] = { "a.org", "b.org", "*.c.org", "x.c.org", "d.org", "e.org", "*.org", "evil.com",
				     "api.anthropic.com", "pypi.org" };
static const char *const programs[] = { "/usr/bin/git", "/usr/bin/sudo", "**/make", "/usr/bin/env", "src/x" };
static const char *const amounts[] = { "\"1MiB\"", "\"64MiB\"", "\"512MiB\"", "\"3GiB\"", "\"unlimited\"" };
static const char *const times[] = { "\"1s\"", "\"10m\"", "\"1h\"", "\"100h\"", "\"unlimited\"" };

static uint64_t seed;

static size_t random_below(size_t count)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (size_t)(seed % count);
}

static void put_list(struct buf *out, const char *name, const char *const *words, size_t count)
{
	size_t length = random_below(4);

	buf_printf(out, "%s\"%s\": [", buf_text(out)[out->size - 1] == '{' ? "" : ", ", name);
	for (size_t i = 0; i < length; i++)
		buf_printf(out, "%s\"%s\"", i ? ", " : "", words[random_below(count)]);
	buf_put_char(out, ']');
}

static void put_narrowing(struct buf *out)
{
	buf_put_text(out, "{\"files\": {");
	for (size_t i = 0; i < 3; i++)
		if (random_below(2))
			put_list(out, (const char *const[]){ "read", "mask", "change" }[i], paths, ARRAY_SIZE(paths));
	buf_put_text(out, "}, \"network\": {");
	for (size_t i = 0; i < 2; i++)
		if (!random_below(3))
			put_list(out, (const char *const[]){ "deny", "reach" }[i], hosts, ARRAY_SIZE(hosts));
	buf_put_text(out, "}, \"exec\": {");
	if (!random_below(3))
		put_list(out, "deny", programs, ARRAY_SIZE(programs));
	buf_put_text(out, "}, \"resources\": {");
	if (!random_below(4))
		buf_printf(out, "\"memory\": %s", amounts[random_below(ARRAY_SIZE(amounts))]);
	buf_put_text(out, "}, \"time\": {");
	if (!random_below(4))
		buf_printf(out, "\"wall\": %s", times[random_below(ARRAY_SIZE(times))]);
	buf_put_text(out, "}}");
}

/* A private file that stands in for one of the host is worth no more than none. */
static int worth(enum action_kind kind, enum verdict verdict)
{
	return kind <= ACTION_FILE_APPLY && verdict == VERDICT_SIMULATE ? VERDICT_DENY : (int)verdict;
}

static void compare(const struct policy *before, const struct policy *after, const struct action *action,
		    const char *narrowing)
{
	enum verdict from = policy_decide(before, action).verdict, to = policy_decide(after, action).verdict;

	if (worth(action->kind, to) > worth(action->kind, from))
		fail_msg("%s of %s:%u was %s and is %s with %s", action_kind_names[action->kind], action->subject,
			 action->port, verdict_names[from], verdict_names[to], narrowing);
}

static const char *full_path(const char *word, char out[200])
{
	const char *below = word[0] == '~' ? "/home/u" : word[0] == '/' ? "" : "/home/u/p/";

	if (str_has_prefix(word, "**/"))
		word += 3;
	snprintf(out, 200, "%s%s", below, word[0] == '~' ? word + 1 : str_equal(word, ".") ? "x" : word);
	return str_equal(out, "/") ? "/x" : out;
}

static void compare_everywhere(const struct policy *before, const struct policy *after, const char *narrowing)
{
	static const enum action_kind kinds[] = { ACTION_FILE_READ, ACTION_FILE_WRITE, ACTION_FILE_APPLY, ACTION_EXEC };
	static const char *const below[] = { "", "/y", "/.env", "/vendor/z", "/x.pem" };

	for (size_t p = 0; p < ARRAY_SIZE(paths); p++)
		for (size_t b = 0; b < ARRAY_SIZE(below); b++)
			for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
				char path[200], whole[260];

				snprintf(whole, sizeof whole, "%s%s", full_path(paths[p], path), below[b]);
				compare(before, after, &(struct action){ .kind = kinds[k], .subject = whole },
					narrowing);
			}
	for (size_t h = 0; h < ARRAY_SIZE(hosts); h++)
		for (size_t i = 0; i < 3; i++) {
			char host[100];

			snprintf(host, sizeof host, "%s%s", hosts[h][0] == '*' ? "q" : "",
				 hosts[h] + (hosts[h][0] == '*'));
			compare(before, after,
				&(struct action){ .kind = ACTION_NET_CONNECT, .subject = host,
						  .port = (const uint16_t[]){ 443, 80, 22 }[i] },
				narrowing);
		}
	compare(before, after, &(struct action){ .kind = ACTION_NET_CONNECT, .subject = "192.0.2.9", .port = 443 },
		narrowing);
	compare(before, after, &(struct action){ .kind = ACTION_NET_CONNECT, .subject = "10.1.2.3", .port = 443 },
		narrowing);
	for (size_t i = 0; i < RESOURCE_COUNT; i++)
		assert_true(after->limits[i].value <= before->limits[i].value);
	assert_true(after->network.mode <= before->network.mode &&
		    after->exec.default_verdict <= before->exec.default_verdict);
}

static void no_narrowing_that_is_accepted_allows_more(void **state)
{
	size_t accepted = 0, refused = 0;

	seed = 0x9e3779b97f4a7c15;
	for (size_t round = 0; round < ROUNDS; round++) {
		cleanup_buf struct buf text;
		const struct policy *after;

		buf_init(&text, 8192);
		put_narrowing(&text);
		after = narrow_of(bases[round % ARRAY_SIZE(bases)], buf_text(&text));
		if (!after) {
			refused++;
			assert_int_equal(strncmp(fixture_errors(), "narrowing:", 10), 0);
			continue;
		}
		accepted++;
		compare_everywhere(lang_policy_before(fixture_lang()), after, buf_text(&text));
	}
	/* Both happen often enough to mean something. */
	assert_true(accepted > ROUNDS / 6 && refused > ROUNDS / 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_widens),
		cmocka_unit_test(a_lowered_policy_is_no_way_around),
		cmocka_unit_test(of_the_project_only_what_is_listed_may_be_changed),
		cmocka_unit_test(of_the_hosts_only_what_is_listed_may_be_reached),
		cmocka_unit_test(the_rest_is_taken_away_too),
		cmocka_unit_test(a_project_file_and_a_narrowing_add_up),
		cmocka_unit_test(what_is_taken_is_told_in_few_lines),
		cmocka_unit_test(what_is_allowed_more_is_counted),
		cmocka_unit_test(no_narrowing_that_is_accepted_allows_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
