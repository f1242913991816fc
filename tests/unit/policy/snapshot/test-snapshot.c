/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/decide.h"
#include "policy/snapshot-format.h"
#include "policy/snapshot/snapshot.h"

static const char *const except[] = { "/usr/src", NULL };
static const struct file_rule files[] = {
	{ "/home/u/p", FILE_WRITE, 0, NULL, { "files.write[0]", "/p.yaml", 5 } },
	{ "/usr", FILE_READ, FILE_OPTIONAL, except, { "files.read[0]", "/p.yaml", 3 } },
	{ "/**/.env", FILE_MASK, FILE_GLOB, NULL, { "files.mask[0]", "/p.yaml", 4 } },
};
static const struct file_plan_entry plan[] = {
	{ "/home/u/p", FILE_WRITE, 0, 0 },
	{ "/usr", FILE_READ, FILE_OPTIONAL, 1 },
};
static const char *const verifier[] = { "/bin/v", "-x", NULL };
static const struct path_rule asks[] = { { "/home/u/p/ask", 0, NULL, { "files.ask[0]", "/p.yaml", 6 } } };
static const uint16_t ports[] = { 443, 8443 };
static const char *const methods[] = { "GET", "POST", NULL }, *const paths[] = { "/v1/**", NULL };
static const struct http_rule http[] = { { methods, paths, { "network.allow[0].http[0]", "/p.yaml", 8 } } };
static const char *const answer_fields[] = { "content-type", "text/plain", NULL };
static const struct net_answer answer = { 404, answer_fields, "a\0b", 3, "/body" };
static const struct net_limits rule_limits = { .of = { [NET_LIMIT_OUT] = { 4096, 0 } } };
static const char *const words[] = { "agent", "--now", NULL };
static const char *const directories[] = { "/home/u/.a", NULL };
static const char *const state_files[] = { "/home/u/.a.json", "", NULL };
static const char *const settings[] = { "/etc/a/x.toml", "x = 1\n", NULL };
static const struct publish_rule publish[] = { { 8080, 18080, true, true, { "network.publish[0]", "/p.yaml", 16 } } };
static const struct net_rule network[] = {
	{ .verdict = VERDICT_ALLOW,
	  .host = "api.example.org",
	  .ports = ports,
	  .port_count = 2,
	  .http = http,
	  .http_count = 1,
	  .inject = { INJECT_BEARER, "x-api-key", NULL, NULL, "key", "KEY" },
	  .limits = &rule_limits,
	  .origin = { "network.allow[0]", "/p.yaml", 7 } },
	{ .verdict = VERDICT_SIMULATE, .host = "simulated.example.org", .answer = &answer,
	  .origin = { "network.simulate[0]", "/p.yaml", 8 } },
	{ .verdict = VERDICT_DENY, .cidr = "10.0.0.0/8", .origin = { "network.deny[0]", "/p.yaml", 9 } },
};
static const char *const argv[] = { "git", "push", "**", NULL };
static const struct exec_rule exec[] = {
	{ VERDICT_DENY, "/usr/bin/sudo", 0, NULL, NULL, { "exec.deny[0]", "/p.yaml", 10 } },
	{ VERDICT_ASK, NULL, 0, argv, NULL, { "exec.ask[0]", "/p.yaml", 11 } },
};
static const struct env_pass pass[] = { { "PATH", { "env.pass[0]", "/p.yaml", 12 } } };
static const struct env_set set[] = { { "CI", "1", { "env.set[0]", "/p.yaml", 13 } } };
static const struct device_rule devices[] = { { "kvm", { "devices[0]", "/p.yaml", 14 } } };
static const struct unenforced unenforced[] = { { "network.allow", { "network.allow[0]", "/p.yaml", 7 } } };
static const struct policy policy = {
	.name = "test",
	.ask = { .timeout_ms = 30000, .bell = true, .desktop = true, .webhook = "https://w.example/a",
		 .webhook_key = "k", .webhook_answers = true },
	.external = { .command = verifier, .when = VERIFY_ALL, .narrow = NARROW_TRY, .timeout_ms = 5,
		      .breaker = { 3, 4, 0 },
		      .breaker_action = BREAKER_END },
	.agent = { words, directories, state_files, settings },
	.level = TRUST_HIGH,
	.project = "/home/u/p",
	.home = "/home/u",
	.files.rules = files,
	.files.count = 3,
	.files.exact_count = 2,
	.files.plan = plan,
	.files.plan_count = 2,
	.files.asks = asks,
	.files.ask_count = 1,
	.files.protects = asks,
	.files.protect_count = 1,
	.network.mode = NETWORK_GATE,
	.network.default_verdict = VERDICT_ASK,
	.network.default_origin = { "network.default", "/p.yaml", 2 },
	.network.rules = network,
	.network.count = 3,
	.network.exact_count = 2,
	.network.limits = { .of = { [NET_LIMIT_TOTAL] = { 1 << 30, 0 }, [NET_LIMIT_REQUESTS] = { 600, 60000 } } },
	.network.limited = (const uint32_t[]){ 0 },
	.network.limited_count = 1,
	.network.cooldown = { 20, 10000, 60000 },
	.network.publish = publish,
	.network.publish_count = 1,
	.exec.rules = exec,
	.exec.count = 2,
	.exec.exact_count = 1,
	.exec.default_verdict = VERDICT_ASK,
	.exec.default_origin = { "exec.default", "/p.yaml", 3 },
	.exec.new_binaries = true,
	.rates = { [RATE_FILE_WRITE] = { 600, 60000 } },
	.cooldown = { 5, 1000, 2000 },
	.limits = { [RESOURCE_MEMORY] = { 4096, { "resources.memory", "/p.yaml", 15 } } },
	.env.pass = pass,
	.env.pass_count = 1,
	.env.set = set,
	.env.set_count = 1,
	.devices = devices,
	.device_count = 1,
	.data.secrets = DATA_MASK,
	.audit.files = AUDIT_WRITES,
	.audit.exec = AUDIT_ALL,
	.degrade = 1u << WALL_MASK_LATE,
	.unenforced = unenforced,
	.unenforced_count = 1,
};
static const struct snapshot_source sources[] = {
	{ "/p.yaml", 1, 1, 2, 3, 4, 5 },
	{ "/missing.yaml", 0, 0, 0, 0, 0, 0 },
};
static struct buf stored;

static int store(void **state)
{
	buf_init(&stored, SNAPSHOT_SIZE_MAX);
	return snapshot_store(&stored, &policy, sources, 2);
}

static int forget(void **state)
{
	buf_done(&stored);
	return 0;
}

static void check_rules(const struct policy *p)
{
	assert_int_equal(p->files.count, 3);
	assert_string_equal(p->files.rules[1].pattern, "/usr");
	assert_string_equal(p->files.rules[1].except[0], "/usr/src");
	assert_null(p->files.rules[1].except[1]);
	assert_null(p->files.rules[0].except);
	assert_string_equal(p->files.rules[2].origin.id, "files.mask[0]");
	assert_int_equal(p->files.rules[2].origin.line, 4);
	assert_int_equal(p->files.plan_count, 2);
	assert_int_equal(p->files.plan[1].rule, 1);
	assert_int_equal(p->network.count, 3);
	assert_string_equal(p->network.rules[0].host, "api.example.org");
	assert_null(p->network.rules[0].cidr);
	assert_int_equal(p->network.rules[0].port_count, 2);
	assert_int_equal(p->network.rules[0].ports[1], 8443);
	assert_string_equal(p->network.rules[0].http[0].methods[1], "POST");
	assert_string_equal(p->network.rules[0].http[0].paths[0], "/v1/**");
	assert_null(p->network.rules[0].answer);
	assert_int_equal(p->network.rules[1].answer->status, 404);
	assert_string_equal(p->network.rules[1].answer->fields[1], "text/plain");
	assert_null(p->network.rules[1].answer->fields[2]);
	assert_int_equal(p->network.rules[1].answer->body_size, 3);
	assert_memory_equal(p->network.rules[1].answer->body, "a\0b", 3);
	assert_string_equal(p->network.rules[1].answer->body_file, "/body");
	assert_string_equal(p->network.rules[2].cidr, "10.0.0.0/8");
	assert_string_equal(p->exec.rules[1].argv[2], "**");
	assert_null(p->exec.rules[1].program);
}

static void check_limits(const struct policy *p)
{
	assert_int_equal(p->network.limits.of[NET_LIMIT_TOTAL].amount, 1 << 30);
	assert_int_equal(p->network.limits.of[NET_LIMIT_REQUESTS].period_ms, 60000);
	assert_int_equal(p->network.limited_count, 1);
	assert_int_equal(p->network.limited[0], 0);
	assert_int_equal(p->network.rules[0].limits->of[NET_LIMIT_OUT].amount, 4096);
	assert_null(p->network.rules[1].limits);
	assert_int_equal(p->network.cooldown.denials, 20);
	assert_int_equal(p->network.cooldown.pause_ms, 60000);
	assert_int_equal(p->exec.default_verdict, VERDICT_ASK);
	assert_int_equal(p->exec.default_origin.line, 3);
	assert_int_equal(p->rates[RATE_EXEC].amount, 0);
	assert_int_equal(p->rates[RATE_FILE_WRITE].period_ms, 60000);
	assert_int_equal(p->cooldown.within_ms, 1000);
	assert_int_equal(p->network.publish_count, 1);
	assert_int_equal(p->network.publish[0].port, 8080);
	assert_int_equal(p->network.publish[0].host_port, 18080);
	assert_true(p->network.publish[0].is_inet6);
	assert_true(p->network.publish[0].is_on_demand);
	assert_string_equal(p->agent.command[1], "--now");
	assert_null(p->agent.command[2]);
	assert_string_equal(p->agent.directories[0], "/home/u/.a");
	assert_string_equal(p->agent.files[1], "");
	assert_string_equal(p->agent.settings[1], "x = 1\n");
}

static void check_ask(const struct ask_settings *ask)
{
	assert_int_equal(ask->timeout_ms, 30000);
	assert_true(ask->bell && ask->desktop && !ask->prompt);
	assert_string_equal(ask->webhook, "https://w.example/a");
	assert_string_equal(ask->webhook_key, "k");
	assert_null(ask->webhook_key_file);
	assert_true(ask->webhook_answers);
}

static void loads_what_was_stored(void **state)
{
	cleanup_snapshot struct snapshot *snapshot = NULL;
	const struct snapshot_source *loaded;
	const struct policy *p;
	size_t count;

	assert_int_equal(snapshot_load(&snapshot, stored.bytes, stored.size), 0);
	p = snapshot_policy(snapshot);
	assert_string_equal(p->name, "test");
	assert_int_equal(p->level, TRUST_HIGH);
	assert_string_equal(p->home, "/home/u");
	check_rules(p);
	assert_int_equal(p->network.default_verdict, VERDICT_ASK);
	check_ask(&p->ask);
	assert_string_equal(p->external.command[1], "-x");
	assert_true(p->external.when == VERIFY_ALL && p->external.breaker.denials == 3);
	assert_int_equal(p->external.narrow, NARROW_TRY);
	check_limits(p);
	assert_int_equal(p->limits[RESOURCE_MEMORY].value, 4096);
	assert_int_equal(p->data.secrets, DATA_MASK);
	assert_int_equal(p->degrade, 1u << WALL_MASK_LATE);
	assert_true(p->exec.new_binaries);
	assert_string_equal(p->env.set[0].value, "1");
	assert_string_equal(p->devices[0].name, "kvm");
	assert_string_equal(p->unenforced[0].what, "network.allow");
	loaded = snapshot_sources(snapshot, &count);
	assert_int_equal(count, 2);
	assert_string_equal(loaded[1].path, "/missing.yaml");
	assert_int_equal(loaded[1].exists, 0);
	assert_int_equal(loaded[0].ctime_ns, 5);
}

static void storing_again_gives_the_same_bytes(void **state)
{
	cleanup_snapshot struct snapshot *snapshot = NULL;
	cleanup_buf struct buf again;
	const struct snapshot_source *loaded;
	size_t count;

	buf_init(&again, SNAPSHOT_SIZE_MAX);
	assert_int_equal(snapshot_load(&snapshot, stored.bytes, stored.size), 0);
	loaded = snapshot_sources(snapshot, &count);
	assert_int_equal(snapshot_store(&again, snapshot_policy(snapshot), loaded, count), 0);
	assert_int_equal(again.size, stored.size);
	assert_memory_equal(again.bytes, stored.bytes, stored.size);
}

static void every_cut_is_refused(void **state)
{
	for (size_t size = 0; size < stored.size; size++) {
		cleanup_free void *copy = malloc(size ? size : 1);
		struct snapshot *snapshot;

		memcpy(copy, stored.bytes, size);
		assert_int_equal(snapshot_load(&snapshot, copy, size), -EBADMSG);
	}
}

/* One byte at a time is set to each of a few values: refused, or safe to decide with. */
static void damaged_bytes_are_refused_or_harmless(void **state)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	cleanup_free uint8_t *copy = malloc(stored.size);
	size_t refused = 0;

	memcpy(copy, stored.bytes, stored.size);
	for (size_t i = 0; i < stored.size; i++) {
		for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
			cleanup_snapshot struct snapshot *snapshot = NULL;
			struct action action = { .kind = ACTION_FILE_WRITE, .subject = "/home/u/p/x/.env" };

			copy[i] = values[v];
			if (snapshot_load(&snapshot, copy, stored.size) < 0)
				refused++;
			else {
				assert_non_null(policy_decide(snapshot_policy(snapshot), &action).reason);
				(void)!policy_find_protect(snapshot_policy(snapshot), action.subject, 0);
			}
		}
		copy[i] = stored.bytes[i];
	}
	assert_true(refused > stored.size);
}

/* They are read when somebody asks, which is too late to refuse the whole. */
static void damaged_protected_paths_protect_everything(void **state)
{
	cleanup_snapshot struct snapshot *snapshot = NULL, *damaged = NULL;
	cleanup_free uint8_t *copy = malloc(stored.size);
	struct snapshot_path *records;
	const struct path_rule *rule;

	memcpy(copy, stored.bytes, stored.size);
	records = (void *)(copy + ((struct snapshot_header *)copy)->sections[SECTION_PROTECTS].offset);
	records->pattern++;
	assert_int_equal(snapshot_load(&snapshot, stored.bytes, stored.size), 0);
	assert_null(policy_find_protect(snapshot_policy(snapshot), "/srv/any", 0));
	assert_int_equal(snapshot_load(&damaged, copy, stored.size), 0);
	rule = policy_find_protect(snapshot_policy(damaged), "/srv/any", 0);
	assert_non_null(rule);
	assert_string_equal(rule->origin.id, "snapshot.damaged");
}

static void another_version_is_refused(void **state)
{
	cleanup_free uint8_t *copy = malloc(stored.size);
	struct snapshot *snapshot;

	memcpy(copy, stored.bytes, stored.size);
	((struct snapshot_header *)copy)->version++;
	assert_int_equal(snapshot_load(&snapshot, copy, stored.size), -EBADMSG);
	assert_int_equal(snapshot_load(&snapshot, copy, (size_t)SNAPSHOT_SIZE_MAX + 1), -EFBIG);
}

/* Rules out of order would be decided wrongly: the loader must not let them through. */
static void unsorted_rules_are_refused(void **state)
{
	cleanup_free uint8_t *copy = malloc(stored.size);
	struct snapshot_file *records, swapped;
	struct snapshot *snapshot;

	memcpy(copy, stored.bytes, stored.size);
	records = (void *)(copy + ((struct snapshot_header *)copy)->sections[SECTION_FILES].offset);
	swapped = records[0];
	records[0] = records[1];
	records[1] = swapped;
	assert_int_equal(snapshot_load(&snapshot, copy, stored.size), -EBADMSG);
}

static void a_thousand_rules_load_at_once(void **state)
{
	enum { COUNT = 1000, ROUNDS = 200 };
	struct file_rule *many = calloc(COUNT, sizeof *many);
	struct policy large = { .ask = { .timeout_ms = 1 },
				.files.rules = many,
				.files.count = COUNT,
				.files.exact_count = COUNT,
				.files.plan = plan,
				.files.plan_count = 2 };
	static char text[COUNT][64], ids[COUNT][32];
	struct timespec start, end;
	cleanup_buf struct buf bytes;
	double each;

	buf_init(&bytes, SNAPSHOT_SIZE_MAX);
	for (size_t i = 0; i < COUNT; i++) {
		snprintf(text[i], sizeof text[i], "/home/user/work/project/dir/file%04zu", i);
		snprintf(ids[i], sizeof ids[i], "files.read[%zu]", i);
		many[i] = (struct file_rule){ text[i], FILE_READ, 0, NULL, { ids[i], "/p.yaml", 1 } };
	}
	assert_int_equal(snapshot_store(&bytes, &large, NULL, 0), 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (size_t i = 0; i < ROUNDS; i++) {
		cleanup_snapshot struct snapshot *snapshot = NULL;

		assert_int_equal(snapshot_load(&snapshot, bytes.bytes, bytes.size), 0);
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	each = ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / ROUNDS;
	print_message("%.1f us for 1000 rules (%zu bytes)\n", each / 1000, bytes.size);
	assert_true(each < 5e6);
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_what_was_stored),
		cmocka_unit_test(storing_again_gives_the_same_bytes),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(damaged_bytes_are_refused_or_harmless),
		cmocka_unit_test(damaged_protected_paths_protect_everything),
		cmocka_unit_test(another_version_is_refused),
		cmocka_unit_test(unsorted_rules_are_refused),
		cmocka_unit_test(a_thousand_rules_load_at_once),
	};

	return cmocka_run_group_tests(tests, store, forget);
}
