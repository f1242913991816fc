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
#include "policy/snapshot/snapshot.h"

static struct lang *compiled[TRUST_COUNT];

static const struct policy *at(size_t level)
{
	return lang_policy(compiled[level]);
}

static int compile_levels(void **state)
{
	fixture_reset();
	for (size_t i = 0; i < TRUST_COUNT; i++) {
		fixture_request.level = trust_level_names[i];
		if (lang_compile(&fixture_request, &compiled[i]) != 0)
			return -1;
	}
	return 0;
}

static int free_levels(void **state)
{
	for (size_t i = 0; i < TRUST_COUNT; i++)
		lang_free(compiled[i]);
	return 0;
}

/*
 * What the sandbox can do to the host by itself: a private place instead of a file is no access to it, a staged write
 * changes nothing, and a protected path is applied by a person, by name, or not at all.
 */
static int worth(enum action_kind kind, enum verdict verdict)
{
	return kind <= ACTION_FILE_APPLY && verdict != VERDICT_ALLOW ? 0 : (int)verdict;
}

static void check(const struct action *action)
{
	for (size_t i = 0; i + 1 < TRUST_COUNT; i++) {
		enum verdict low = policy_decide(at(i), action).verdict,
			     high = policy_decide(at(i + 1), action).verdict;

		if (worth(action->kind, low) > worth(action->kind, high))
			fail_msg("%s %s: %s at %s, %s at %s", action_kind_names[action->kind],
				 action->subject, verdict_names[low], trust_level_names[i],
				 verdict_names[high], trust_level_names[i + 1]);
	}
}

static void check_path(const char *path)
{
	for (int kind = ACTION_FILE_READ; kind <= ACTION_EXEC; kind++)
		check(&(struct action){ .kind = kind, .subject = path });
}

/* Every path that any level names, its neighbours, and what lies below. */
static void files_are_contained(void **state)
{
	static const char *const tails[] = { "", "/x", "/.env", "/.git/hooks/pre-commit", "x" };
	size_t asked = 0;

	for (size_t level = 0; level < TRUST_COUNT; level++)
		for (size_t i = 0; i < at(level)->files.exact_count; i++)
			for (size_t t = 0; t < ARRAY_SIZE(tails); t++) {
				char path[4096];

				assert_int_equal(str_format(path, sizeof path, "%s%s",
							    at(level)->files.rules[i].pattern, tails[t]),
						 0);
				check_path(path);
				asked++;
			}
	assert_true(asked > 1000);
	check_path("/");
	check_path("/root/.ssh/id_rsa");
	check_path("/etc/shadow");
}

static void everything_else_is_contained(void **state)
{
	static const char *const hosts[] = { "example.org", "10.0.0.1", "169.254.169.254",
					     "localhost",   "::1",	"pastebin.com" };
	static const char *const names[] = { "PATH",	   "LC_ALL",	    "AWS_SECRET_ACCESS_KEY",
					     "LD_PRELOAD", "SSH_AUTH_SOCK", "CI",
					     "kvm",	   "null" };

	for (int kind = ACTION_NET_CONNECT; kind <= ACTION_HTTP_REQUEST; kind++)
		for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
			check(&(struct action){ .kind = kind,
						.subject = hosts[i],
						.port = 443,
						.method = "GET",
						.path = "/" });
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		check(&(struct action){ .kind = ACTION_ENV, .subject = names[i] });
		check(&(struct action){ .kind = ACTION_DEVICE, .subject = names[i] });
	}
	for (size_t i = 0; i + 1 < TRUST_COUNT; i++) {
		assert_int_equal(at(i)->level, i);
		assert_true(at(i)->exec.new_binaries <= at(i + 1)->exec.new_binaries);
		assert_true(at(i)->exec.namespaces <= at(i + 1)->exec.namespaces);
		assert_int_equal(at(i)->degrade & ~at(i + 1)->degrade, 0);
		for (size_t r = 0; r < RESOURCE_COUNT; r++)
			assert_true(at(i)->limits[r].value <= at(i + 1)->limits[r].value);
	}
}

/* Contained and not the same: each level is there for something. */
static void levels_differ(void **state)
{
	static const struct {
		enum action_kind kind;
		const char *subject;
	} more[] = {
		{ ACTION_FILE_APPLY, "/home/u/p/x" },
		{ ACTION_FILE_READ, "/home/u/.nvm" },
		{ ACTION_FILE_WRITE, "/home/u/.npm" },
		{ ACTION_FILE_WRITE, "/home/u/Documents" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		struct action action = { .kind = more[i].kind, .subject = more[i].subject };

		assert_int_not_equal(policy_decide(at(i), &action).verdict, VERDICT_ALLOW);
		assert_int_equal(policy_decide(at(i + 1), &action).verdict, VERDICT_ALLOW);
	}
}

static void secrets_are_out_of_reach_at_every_level(void **state)
{
	static const char *const secrets[] = {
		"/home/u/.ssh/id_rsa",
		"/home/u/.aws/credentials",
		"/home/u/.gnupg/x",
		"/home/u/.netrc",
		"/home/u/.docker/config.json",
		"/home/u/.kube/config",
		"/home/u/.config/gcloud/x",
		"/home/u/.config/gh/hosts.yml",
		"/home/u/.npmrc",
		"/home/u/.pypirc",
		"/home/u/.git-credentials",
		"/home/u/.cargo/credentials.toml",
		"/home/u/.local/share/keyrings/x",
		"/home/u/.config/git/credentials",
		"/home/u/p/.env",
		"/home/u/p/.env.local",
		"/home/u/p/.env.production",
		"/home/u/.config/atoll/policy.yaml",
		"/etc/ssl/private/x.key",
	};
	static const char *const persistent[] = { "/home/u/p/.git/hooks/x",
						  "/home/u/p/.git/config",
						  "/home/u/p/.vscode/tasks.json",
						  "/home/u/p/.atoll.yaml",
						  "/home/u/p/.claude/settings.json",
						  "/home/u/.bashrc",
						  "/home/u/.gitconfig",
						  "/home/u/.profile" };

	for (size_t level = 0; level < TRUST_COUNT; level++) {
		for (size_t i = 0; i < ARRAY_SIZE(secrets); i++) {
			struct action action = { .kind = ACTION_FILE_READ, .subject = secrets[i] };

			if (policy_decide(at(level), &action).verdict == VERDICT_ALLOW)
				fail_msg("%s is readable at %s", secrets[i], trust_level_names[level]);
		}
		for (size_t i = 0; i < ARRAY_SIZE(persistent); i++) {
			struct action action = { .kind = ACTION_FILE_WRITE, .subject = persistent[i] };

			if (policy_decide(at(level), &action).verdict == VERDICT_ALLOW)
				fail_msg("%s is written at %s", persistent[i], trust_level_names[level]);
		}
	}
}

static void every_shipped_policy_can_be_enforced(void **state)
{
	static const char *const folders[] = { "levels", "agents", "languages" };

	fixture_reset();
	for (size_t i = 0; lang_shipped_names[i]; i++) {
		const struct policy *policy;
		size_t found = 0;

		fixture_request.policy = lang_shipped_names[i];
		policy = fixture_compile();
		if (!policy || policy->unenforced_count)
			fail_msg("%s: %s %s", lang_shipped_names[i], fixture_errors(),
				 policy ? policy->unenforced[0].what : "");
		for (size_t f = 0; f < ARRAY_SIZE(folders); f++) {
			char path[4096];

			snprintf(path, sizeof path, "%s/%s/%s.yaml", POLICIES_DIR, folders[f],
				 lang_shipped_names[i]);
			found += access(path, R_OK) == 0;
		}
		assert_int_equal(found, 1);
	}
}

static void a_level_survives_the_snapshot(void **state)
{
	cleanup_snapshot struct snapshot *snapshot = NULL;
	cleanup_buf struct buf bytes;
	const struct policy *loaded;

	buf_init(&bytes, SNAPSHOT_SIZE_MAX);
	assert_int_equal(snapshot_store(&bytes, at(TRUST_MEDIUM), NULL, 0), 0);
	assert_int_equal(snapshot_load(&snapshot, bytes.bytes, bytes.size), 0);
	loaded = snapshot_policy(snapshot);
	for (size_t i = 0; i < loaded->files.count; i++) {
		struct action action = { .kind = ACTION_FILE_WRITE, .subject = loaded->files.rules[i].pattern };
		struct decision before = policy_decide(at(TRUST_MEDIUM), &action),
				after = policy_decide(loaded, &action);

		assert_int_equal(before.verdict, after.verdict);
		assert_string_equal(before.rule.id, after.rule.id);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_contained),
		cmocka_unit_test(everything_else_is_contained),
		cmocka_unit_test(levels_differ),
		cmocka_unit_test(secrets_are_out_of_reach_at_every_level),
		cmocka_unit_test(every_shipped_policy_can_be_enforced),
		cmocka_unit_test(a_level_survives_the_snapshot),
	};

	return cmocka_run_group_tests(tests, compile_levels, free_levels);
}
