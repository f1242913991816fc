/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "lang/print/print.h"

static const char everything[] =
	"atoll: 1\n"
	"extends: medium\n"
	"files: {read: [{path: /data, except: [\"/data/*.key\"], optional: true, exec: false}], stage: "
	"[/st], mask: [\"**/x\"], ask: [/q], protect: [/q]}\n"
	"network: {default: ask, allow: [{host: \"*.a.org\", ports: [443, 80], except: [b.a.org], http: "
	"[{methods: [GET], paths: [\"/v1/**\"]}]}, {host: c.org, ports: [443], inject: "
	"{header: h, kind: bearer, secret: s, env: K}}, {host: d.org, ports: "
	"[443, 8443], inject: {aws: {service: s3, region: r-1}, secret: s2}}, {host: e.org, ports: [1], "
	"inject: {query: q, secret: s}}, {host: f.org, limits: {requests: 5/min, total: 1MiB, hosts: 3}}], "
	"deny: "
	"[{cidr: 10.0.0.0/8}], simulate: [{host: d.org, http: [{methods: [POST], paths: [\"/x/*\"]}], answer: "
	"{status: 404, headers: {X-A: \"a\\\"b\"}, body: \"x\\n\"}}], "
	"limits: {rate: 1MiB/s, total: 1GiB, in: 2GiB, "
	"out: 3MiB, requests: 60/min, new_connections: 5/s, connections: 64, hosts: 20, labels: 9KiB, "
	"cooldown: {denials: 20, within: 10s, pause: 1m}}, "
	"publish: [8080, \"18080:80\", {port: 81, host: \"[::1]:0\"}, {port: 82, on_demand: true}]}\n"
	"exec: {default: ask, "
	"deny: [\"**/nc\"], ask: [{argv: [git, push, \"**\"]}, {program: /usr/bin/git, argv: [x]}], "
	"namespaces: true}\n"
	"resources: {cpus: 1.5}\n"
	"time: {rate: {exec: 600/min, file.write: 5/s}, cooldown: {denials: 5, within: 1s, pause: 2s}}\n"
	"env: {set: {A: \"x: \\\"y\\\" # z\"}}\n"
	"devices: [kvm]\n"
	"data: {secrets: mask, pii: flag, injection: deny, outgoing: flag, canaries: [s, t]}\n"
	"audit: {files: all}\n"
	"stage: {auto: exec, backend: auto}\n"
	"ask: {timeout: 90s, bell: false, prompt: false, review: false, desktop: true, "
	"webhook: {url: \"https://w.example/x?y=%20\", key_file: ~/key, may_answer: true}}\n"
	"verify: {medium: note, high: {likely: ask, certain: deny}, critical: deny, unknown: deny, "
	"external: {url: \"https://v.example/\", model: \"a: b\", secret: s, when: all, narrow: auto, timeout: 5s, "
	"breaker: {denials: 2, within: 1m, action: end}}}\n"
	"agent: {command: [a, \"b c\"], state: [~/.a/, {path: ~/.a.json, content: \"{}\\n\"}, ~/.a/b], "
	"settings: [{path: /etc/a/x.toml, content: \"x = \\\"1\\\"\\n\"}]}\n";

/* What show prints is a policy: compiled again it decides the same. */
static void what_is_printed_compiles_to_the_same(void **state)
{
	cleanup_buf struct buf first, second, differences;
	struct lang *a = NULL;
	struct lang_request request;

	buf_init(&first, 1 << 20);
	buf_init(&second, 1 << 20);
	buf_init(&differences, 1 << 20);
	assert_non_null(fixture_text(everything));
	request = fixture_request;
	assert_int_equal(lang_compile(&request, &a), 0);
	print_policy(lang_policy(a), &first);
	if (!fixture_text(buf_text(&first)))
		fail_msg("%s", fixture_errors());
	if (print_diff(lang_policy(a), lang_policy(fixture_lang()), &differences))
		fail_msg("%s", buf_text(&differences));
	assert_int_equal(lang_policy(a)->unenforced_count, lang_policy(fixture_lang())->unenforced_count);
	lang_free(a);
}

static void json_is_written_whole(void **state)
{
	cleanup_buf struct buf out;
	struct json json;
	const struct policy *policy = fixture_text(everything);

	buf_init(&out, 1 << 20);
	json_init(&json, &out);
	print_policy_json(policy, &json);
	assert_int_equal(buf_error(&out), 0);
	assert_int_equal(json.depth, 0);
	assert_non_null(strstr(buf_text(&out), "\"level\":\"medium\""));
	assert_non_null(strstr(buf_text(&out), "\"mode\":\"gate\""));
}

static const char *compare(const char *a_text, const char *b_text)
{
	static struct buf out;
	struct lang *a = NULL;
	struct lang_request request;

	buf_done(&out);
	buf_init(&out, 1 << 20);
	assert_non_null(fixture_text(a_text));
	request = fixture_request;
	assert_int_equal(lang_compile(&request, &a), 0);
	assert_non_null(fixture_text(b_text));
	print_diff(lang_policy(a), lang_policy(fixture_lang()), &out);
	lang_free(a);
	return buf_text(&out);
}

static void differences_are_about_meaning(void **state)
{
	/* Another text, the same decisions. */
	assert_string_equal(compare("atoll: 1\nfiles: {read: [/usr, /usr/lib, /bin]}\n",
				    "atoll: 1\nfiles: {read: [/bin/, //usr]}\n"),
			    "");
	assert_string_equal(
		compare("atoll: 1\nfiles: {read: [/usr]}\n", "atoll: 1\nfiles: {read: [/usr, /data]}\n"),
		"+ file.read    /data  (deny -> allow)\n");
	assert_non_null(strstr(compare("atoll: 1\nfiles: {write: [/usr]}\n",
				       "atoll: 1\nfiles: {write: [/usr], mask: [\"**/.env\"]}\n"),
			       "- file.read    /**/.env"));
	/* Whether what lies there may be executed; of what cannot be read it goes without saying. */
	assert_string_equal(compare("atoll: 1\nfiles: {read: [{path: /out, exec: false}]}\n",
				    "atoll: 1\nfiles: {read: [/out]}\n"),
			    "+ exec         /out  (deny -> allow)\n");
	assert_string_equal(compare("atoll: 1\nfiles: {read: [{path: /out, exec: false}]}\n",
				    "atoll: 1\nfiles: {mask: [/out]}\n"),
			    "- file.read    /out  (allow -> deny)\n");
	assert_non_null(strstr(compare("atoll: 1\nnetwork: {allow: [a.org]}\n",
				       "atoll: 1\nnetwork: {allow: [{host: a.org, ports: [443]}]}\n"),
			       "- net.connect  a.org:80  (allow -> deny)"));
	assert_non_null(strstr(
		compare("atoll: 1\nresources: {memory: 1GiB}\n", "atoll: 1\nresources: {memory: 2GiB}\n"),
		"+ limit        memory  (1GiB -> 2GiB)"));
	assert_non_null(strstr(compare("atoll: 1\nask: {timeout: 30s}\n", "atoll: 1\nask: {bell: false}\n"),
			       "+ ask          ask.timeout  (30s -> 1m)\n- ask          ask.bell  (true -> false)"));
	assert_string_equal(compare("atoll: 1\nmonitor: {budget: 1/100}\n",
				    "atoll: 1\nmonitor: {budget: 1/50, canary: freeze}\n"),
			    "- monitor      monitor.budget  (1/100 -> 1/50)\n"
			    "- watching     monitor.canary  (note -> freeze)\n");
	assert_non_null(strstr(compare("atoll: 1\naudit: {exec: all}\n", "atoll: 1\naudit: {exec: off}\n"),
			       "+ watching     audit.exec"));
	assert_string_equal(compare("atoll: 1\nnetwork: {limits: {total: 1GiB, requests: 60/min}}\n",
				    "atoll: 1\nnetwork: {limits: {total: 2GiB, requests: 1/s, hosts: 9}}\n"),
			    "+ network.limits total  (1GiB -> 2GiB)\n- network.limits hosts  (unlimited -> 9)\n");
	assert_string_equal(compare("atoll: 1\nnetwork: {allow: [{host: a.org, limits: {out: 1MiB}}]}\n",
				    "atoll: 1\nnetwork: {allow: [a.org], publish: [8080]}\n"),
			    "+ network.limits a.org out  (1MiB -> unlimited)\n"
			    "+ network.publish 127.0.0.1:0 to port 8080  (closed -> open)\n");
	/* A wildcard that says nothing of its names has a limit. */
	assert_string_equal(compare("atoll: 1\nnetwork: {allow: [\"*.a.org\"]}\n",
				    "atoll: 1\nnetwork: {allow: [{host: \"*.a.org\", limits: {labels: 9KiB}}]}\n"),
			    "+ network.limits *.a.org labels  (4KiB -> 9KiB)\n");
	assert_string_equal(compare("atoll: 1\nnetwork: {allow: [{host: \"*.a.org\", limits: {labels: unlimited}}]}\n",
				    "atoll: 1\nnetwork: {allow: [{host: \"*.a.org\", limits: {labels: 9KiB}}]}\n"),
			    "- network.limits *.a.org labels  (unlimited -> 9KiB)\n");
	assert_string_equal(compare("atoll: 1\nnetwork: {allow: [b.org, a.org], deny: [{cidr: 10.0.0.0/8}]}\n",
				    "atoll: 1\nnetwork: {allow: [a.org, {host: \"*.b.org\", ports: [443]}], deny: "
				    "[{cidr: 10.0.0.0/8}]}\n"),
			    "+ net.connect  *.b.org:443  (deny -> allow)\n"
			    "- net.connect  b.org:22  (allow -> deny)\n- net.connect  b.org:80  (allow -> deny)\n"
			    "- net.connect  b.org:443  (allow -> deny)\n");
	assert_non_null(
		strstr(compare("atoll: 1\n", "atoll: 1\ndegrade: [seccomp]\n"), "+ wall         seccomp"));
	assert_non_null(
		strstr(compare("atoll: 1\nenv: {pass: [\"A*\"]}\n", "atoll: 1\n"), "- env          A*"));
}

static void answers_that_differ(void **state)
{
	static const char allow[] = "atoll: 1\nnetwork: {allow: [a.org]}\n",
			  one[] = "atoll: 1\nnetwork: {simulate: [{host: a.org, answer: {body: one}}]}\n",
			  gone[] = "atoll: 1\nnetwork: {simulate: [{host: a.org, answer: {status: 410}}]}\n",
			  part[] = "atoll: 1\nnetwork: {allow: [a.org], simulate: [{host: a.org, http: [{methods: "
				   "[PUT], paths: [/v1/**]}], answer: {body: one}}]}\n";

	assert_non_null(strstr(compare(allow, one), "- net.connect  a.org:443  (allow -> simulate)"));
	assert_string_equal(compare(one, one), "");
	assert_non_null(strstr(compare(one, gone),
			       "- http.answer  a.org:443  (status 200, 3 bytes -> status 410, 0 bytes)"));
	/* Connections to the host go out as before. */
	assert_null(strstr(compare(allow, part), "net.connect"));
	assert_non_null(strstr(compare(allow, part), "- http.request PUT a.org:443/v1/**  (allow -> simulate)"));
}

/* The body of a file is in the snapshot; another file is another policy. */
static void a_body_from_a_file(void **state)
{
	const struct policy *policy;

	fixture_reset();
	fixture_file("/dir/t.yaml", "atoll: 1\nnetwork: {simulate: [{host: a.org, answer: {body_file: data/b}}]}\n");
	fixture_file_n("/dir/data/b", "a\0b", 3);
	fixture_request.policy = "/dir/t.yaml";
	policy = fixture_compile();
	if (!policy)
		fail_msg("%s", fixture_errors());
	assert_int_equal(policy->network.rules[0].answer->body_size, 3);
	assert_memory_equal(policy->network.rules[0].answer->body, "a\0b", 3);
	assert_string_equal(policy->network.rules[0].answer->body_file, "/dir/data/b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_printed_compiles_to_the_same),
		cmocka_unit_test(json_is_written_whole),
		cmocka_unit_test(answers_that_differ),
		cmocka_unit_test(a_body_from_a_file),
		cmocka_unit_test(differences_are_about_meaning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
