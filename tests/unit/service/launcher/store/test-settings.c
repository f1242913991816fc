/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "os/fd.h"
#include "service/launcher/store/settings.h"
#include "service/launcher/store/user.h"

static struct settings settings;
static struct err err;

static int load(const char *text, struct settings_options options)
{
	char path[] = "/tmp/atolltest-settings-XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0 && fd_write_full(fd, text, strlen(text)) == 0);
	close(fd);
	err = (struct err){ 0 };
	options.config = path;
	r = settings_load(&settings, &options, &err);
	unlink(path);
	return r;
}

static void nothing_said_is_loopback(void **state)
{
	assert_int_equal(settings_load(&settings, &(struct settings_options){ 0 }, &err), 0);
	assert_string_equal(settings.address, "127.0.0.1");
	assert_int_equal(settings.port, SETTINGS_PORT);
	assert_string_equal(settings.policy, "service-base");
}

static void options_replace_the_file(void **state)
{
	const char *text = "listen: \"[::1]:1234\"\ndomain: sandboxes.example\nhosts: [a.example, b.example]\n"
			   "pool: 3\nkept: 0\nsnapshots: 5\npreload: [numpy, matplotlib.pyplot]\n"
			   "ready: 9\n";

	assert_int_equal(load(text, (struct settings_options){ 0 }), 0);
	assert_string_equal(settings.address, "::1");
	assert_int_equal(settings.port, 1234);
	assert_int_equal(settings.host_count, 2);
	assert_int_equal(settings.pool_max, 3);
	assert_int_equal(settings.preload_count, 2);
	assert_string_equal(settings.preload[1], "matplotlib.pyplot");
	assert_true(settings.kept_max == 0 && settings.snapshots_max == 5 && settings.ready_s == 9);
	assert_int_equal(load(text, (struct settings_options){ .listen = "127.0.0.2:5", .pool = "0" }), 0);
	assert_string_equal(settings.address, "127.0.0.2");
	assert_int_equal(settings.port, 5);
	assert_int_equal(settings.pool_max, 0);
	assert_int_equal(load("listen: \"77\"\n", (struct settings_options){ 0 }), 0);
	assert_int_equal(settings.port, 77);
}

static void beyond_loopback_needs_tls_or_a_word(void **state)
{
	static const char *const addresses[] = { "0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[::ffff:127.0.0.1]:1" };

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		struct settings_options options = { .listen = addresses[i] };

		assert_int_equal(settings_load(&settings, &options, &err), -EINVAL);
		options.beyond_loopback = true;
		assert_int_equal(settings_load(&settings, &options, &err), 0);
		options.beyond_loopback = false;
		options.tls_cert = "/a";
		assert_int_equal(settings_load(&settings, &options, &err), -EINVAL);
		options.tls_key = "/b";
		assert_int_equal(settings_load(&settings, &options, &err), 0);
	}
	assert_true(settings_is_loopback("127.9.9.9") && settings_is_loopback("::1"));
	assert_false(settings_is_loopback("128.0.0.1") || settings_is_loopback("localhost"));
	assert_false(settings_is_loopback(""));
}

static void wrong_settings_are_named(void **state)
{
	static const struct {
		const char *text, *named;
	} cases[] = {
		{ "lisen: x\n", "lisen" }, { "listen: nowhere\n", "nowhere" }, { "listen: 127.0.0.1:99999\n", "99999" },
		{ "domain: A\n", "domain" }, { "hosts: x\n", "hosts" }, { "hosts: [\"a:1\"]\n", "hosts" },
		{ "policy: a/b\n", "policy" }, { "tls_cert: a\n", "tls-cert" }, { "beyond_loopback: maybe\n", "maybe" },
		{ "sandboxes: 0\n", "sandboxes" }, { "connections: -1\n", "connections" }, { "- a\n", "mapping" },
		{ "pool: 257\n", "pool" }, { "preload: [\"a;b\"]\n", "preload" },
		{ "pressure: 101\n", "pressure" }, { "kept: 1000001\n", "kept" },
		{ "snapshots: many\n", "snapshots" }, { "ready: 0\n", "ready" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(load(cases[i].text, (struct settings_options){ 0 }), -EINVAL);
		assert_non_null(strstr(err.message, cases[i].named));
	}
	load("lisen: x\n", (struct settings_options){ 0 });
	assert_non_null(strstr(err.hint, "listen"));
	assert_non_null(strstr(err.message, ":1:"));
}

static void a_path_is_the_users(void **state)
{
	static const struct {
		const char *path, *out;
	} cases[] = {
		{ "~", USER_HOME }, { "~/a", USER_HOME "/a" }, { "a/../b", USER_HOME "/b" }, { "/x//y/.", "/x/y" },
		{ ".", USER_HOME }, { "", USER_HOME }, { "~//a", USER_HOME "/a" }, { "../..", "/" }, { "/..", "/" },
	};
	char out[PATH_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(user_path(cases[i].path, out, &err), 0);
		assert_string_equal(out, cases[i].out);
	}
	assert_int_equal(user_path("~root/a", out, &err), -EINVAL);
	assert_int_equal(user_check(NULL, false, &err), 0);
	assert_int_equal(user_check("user", false, &err), 0);
	assert_int_equal(user_check("root", false, &err), -EINVAL);
	assert_int_equal(user_check("root", true, &err), 0);
	assert_int_equal(user_check("", true, &err), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_said_is_loopback),
		cmocka_unit_test(options_replace_the_file),
		cmocka_unit_test(beyond_loopback_needs_tls_or_a_word),
		cmocka_unit_test(wrong_settings_are_named),
		cmocka_unit_test(a_path_is_the_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
