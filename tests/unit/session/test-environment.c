/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "session/environment.h"

static const struct env_pass passes[] = { { .pattern = "PATH" }, { .pattern = "LC_*" } };
static const struct env_set sets[] = { { .name = "CI", .value = "1" }, { .name = "PATH", .value = "/policy" } };

static bool has(char **env, const char *entry)
{
	for (size_t i = 0; env[i]; i++)
		if (str_equal(env[i], entry))
			return true;
	return false;
}

static void only_listed_names_pass(void **state)
{
	struct policy policy = { .env.pass = passes, .env.pass_count = ARRAY_SIZE(passes) };
	const char *caller[] = { "PATH=/usr/bin", "PATHX=1", "PAT=1",	  "LC_ALL=C", "LC=1",	 "AWS_SECRET=x",
				 "=odd",	 "noequals", "LD_PRELOAD=/x", "LC_=e",	  "xLC_A=1", NULL };
	char **env = environment_make(&(struct environment_input){ .policy = &policy, .caller = caller });

	assert_non_null(env);
	assert_true(has(env, "PATH=/usr/bin"));
	assert_true(has(env, "LC_ALL=C"));
	assert_true(has(env, "LC_=e"));
	assert_int_equal(strv_count((const char *const *)env), 3);
	strv_free(env);
}

static void forced_beats_set_beats_passed_and_each_name_comes_once(void **state)
{
	struct policy policy = { .env.pass = passes, .env.pass_count = ARRAY_SIZE(passes),
				 .env.set = sets, .env.set_count = ARRAY_SIZE(sets) };
	const char *caller[] = { "PATH=/usr/bin", "PATH=/second", NULL };
	const char *forced[] = { "CI=forced", NULL };
	char **env = environment_make(
		&(struct environment_input){ .policy = &policy, .caller = caller, .forced = forced });

	assert_non_null(env);
	assert_true(has(env, "CI=forced"));
	assert_true(has(env, "PATH=/policy"));
	assert_int_equal(strv_count((const char *const *)env), 2);
	strv_free(env);
}

/* Who asks may be root, or a job without a PATH: the user is the sandbox's, and what lacks is as the run had it. */
static void a_later_command_has_what_the_run_had(void **state)
{
	static const struct env_pass names[] = { { .pattern = "PATH" }, { .pattern = "USER" }, { .pattern = "LANG" } };
	struct policy policy = { .env.pass = names, .env.pass_count = ARRAY_SIZE(names) };
	const char *run[] = { "PATH=/run", "USER=ann", "LANG=C", "TOKEN=x", NULL };
	const char *caller[] = { "PATH=/later", "USER=root", "LD_PRELOAD=x", NULL };
	const char *kept[] = { "MODE=run", "DEBUG=1", NULL }, *added[] = { "MODE=later", NULL };
	char **env = environment_make(&(struct environment_input){ .policy = &policy, .caller = caller, .fallback = run,
								   .added = added, .kept = kept });

	assert_non_null(env);
	assert_true(has(env, "PATH=/later"));
	assert_true(has(env, "USER=ann"));
	assert_true(has(env, "LANG=C"));
	assert_true(has(env, "MODE=later"));
	assert_true(has(env, "DEBUG=1"));
	assert_int_equal(strv_count((const char *const *)env), 5);
	strv_free(env);
}

/* The caller's own key does not get in where the policy keeps it outside. */
static void placeholders_beat_what_the_caller_gives(void **state)
{
	static const struct env_pass all = { .pattern = "*" };
	struct policy policy = { .env.pass = &all, .env.pass_count = 1 };
	const char *caller[] = { "KEY=real", "OTHER=x", NULL }, *added[] = { "KEY=real too", NULL };
	const char *placeholders[] = { "KEY=placeholder", NULL };
	char **env = environment_make(&(struct environment_input){
		.policy = &policy, .caller = caller, .added = added, .placeholders = placeholders });

	assert_non_null(env);
	assert_true(has(env, "KEY=placeholder"));
	assert_true(has(env, "OTHER=x"));
	assert_int_equal(strv_count((const char *const *)env), 2);
	strv_free(env);
}

/* A bundle of the host's own does not name the gate's certificate; one that the policy sets is the user's will. */
static void the_gate_is_trusted_unless_the_policy_sets_otherwise(void **state)
{
	static const struct env_pass pass[] = { { "SSL_CERT_FILE", { "", "", 1 } }, { "PIP_CERT", { "", "", 1 } } };
	static const struct env_set set[] = { { "PIP_CERT", "/mine", { "", "", 1 } } };
	struct policy policy = { .env.pass = pass, .env.pass_count = 2, .env.set = set, .env.set_count = 1 };
	const char *caller[] = { "SSL_CERT_FILE=/etc/own.pem", "PIP_CERT=/theirs", NULL };
	const char *added[] = { "AWS_CA_BUNDLE=/added", NULL };
	struct environment_input input = { .policy = &policy, .caller = caller, .added = added, .trusts_gate = true };
	char **env = environment_make(&input);

	assert_non_null(env);
	assert_true(has(env, "SSL_CERT_FILE=/run/atoll/ca-bundle.pem"));
	assert_true(has(env, "NODE_EXTRA_CA_CERTS=/run/atoll/ca.pem"));
	assert_true(has(env, "PIP_CERT=/mine"));
	assert_true(has(env, "AWS_CA_BUNDLE=/added"));
	strv_free(env);
	input.trusts_gate = false;
	env = environment_make(&input);
	assert_non_null(env);
	assert_true(has(env, "SSL_CERT_FILE=/etc/own.pem"));
	assert_int_equal(strv_count((const char *const *)env), 3);
	strv_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_listed_names_pass),
		cmocka_unit_test(forced_beats_set_beats_passed_and_each_name_comes_once),
		cmocka_unit_test(a_later_command_has_what_the_run_had),
		cmocka_unit_test(placeholders_beat_what_the_caller_gives),
		cmocka_unit_test(the_gate_is_trusted_unless_the_policy_sets_otherwise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
