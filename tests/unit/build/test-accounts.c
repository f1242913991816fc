/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "build/accounts.h"

static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
			     "daemon:hash:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
			     "anna:x:1000:1000:Anna:/home/anna:/bin/bash\n"
			     "+::::::\n"
			     "cut:x:5\n"
			     "agent:x:7:7::/:/bin/sh\n"
			     "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin";

static void the_systems_own_accounts_and_the_agent(void **state)
{
	char *text = accounts_passwd(passwd, &(struct accounts_user){ NULL, 1000, 1001, "/home/a" });

	assert_string_equal(text, "root:x:0:0:root:/root:/bin/bash\n"
				  "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
				  "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
				  "agent:x:1000:1001:atoll sandbox:/home/a:/bin/bash\n");
	free(text);
	text = accounts_group("root:x:0:\nadm:x:4:anna,bert\nanna:x:1000:\nnogroup:x:65534:\n", &(struct accounts_user){ NULL, 0, 1001, "" });
	assert_string_equal(text, "root:x:0:\nadm:x:4:\nnogroup:x:65534:\nagent:x:1001:\n");
	free(text);
}

static void nothing_on_the_host(void **state)
{
	char *text = accounts_passwd("", &(struct accounts_user){ NULL, 1000, 1000, "/" });

	assert_string_equal(text, "agent:x:1000:1000:atoll sandbox:/:/bin/bash\n");
	free(text);
}

static void who_is_there(void **state)
{
	assert_true(accounts_have(passwd, 0));
	assert_true(accounts_have(passwd, 65534));
	assert_true(accounts_have(passwd, 5));
	assert_false(accounts_have(passwd, 6));
	assert_false(accounts_have("", 0));
}

static void who_is_not_there_is_added(void **state)
{
	char *text = accounts_passwd_with("root:x:0:0::/root:/bin/sh", &(struct accounts_user){ NULL, 2000, 2001, "/h" });

	assert_string_equal(text, "root:x:0:0::/root:/bin/sh\nagent:x:2000:2001:atoll sandbox:/h:/bin/bash\n");
	free(text);
	text = accounts_group_with("root:x:0:\n", &(struct accounts_user){ NULL, 0, 2001, "" });
	assert_string_equal(text, "root:x:0:\nagent:x:2001:\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_systems_own_accounts_and_the_agent),
		cmocka_unit_test(nothing_on_the_host),
		cmocka_unit_test(who_is_there),
		cmocka_unit_test(who_is_not_there_is_added),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
