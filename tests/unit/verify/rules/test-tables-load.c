/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tables of programs and libraries in files of rules: what is wrong is refused with its place, and what is right comes
 * back from bytes in the order in which it is looked for.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/str.h"
#include "verify/rules/rule.h"

#define HEAD "atoll-verify: 1\n"
#define RULE "class: evade\nrules:\n  - {id: a, severity: low, reason: r, match: {kind: remove}}\n"
/* One row of each table, which rules that are kept must have. */
#define ROWS                                                                                                           \
	"programs: {rm: {does: remove}, b: [{does: read}, {does: write, to: last}], c: {like: curl}}\n"                \
	"trials: {t: {options: --try, valued: a b}}\n"                                                                 \
	"wrappers: {w: {}}\n"                                                                                          \
	"code-options: {g: [{option: -x, begins: '!', language: shell}, {begins: 'py ', language: python}]}\n"        \
	"editors: {names: [v], options: [-c], lines: {'!': shell}}\n"                                                 \
	"transfers: {curl: {sent: -d}, wget: {written: [-O]}}\n"                                                       \
	"languages:\n"                                                                                                 \
	"  python: {calls: {z.y: {does: call}, a.b: {does: read, target: 1/path, traits: recursive}}}\n"              \
	"  javascript: {calls: {f: {does: none}}, aliases: {p: q}, quiet: [x.], grave: os}\n"

static struct rules *load(const char *text, char message[200])
{
	struct rules *rules = rules_new();
	struct arena arena = { 0 };
	struct diags diags = { .arena = &arena };

	assert_non_null(rules);
	*message = '\0';
	if (!rules_add(rules, &diags, "own.yaml", text, strlen(text)) || !rules_finish(rules, &diags)) {
		assert_true(diags.count > 0);
		assert_int_equal(str_format(message, 200, "%s:%u: %s", diags.items[0].place.file,
					    diags.items[0].place.line, diags.items[0].message), 0);
		rules_free(rules);
		rules = NULL;
	}
	arena_done(&arena);
	return rules;
}

static void what_is_wrong_is_refused(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "programs: {p: {does: erase}}", "own.yaml:2: \"erase\" is no effect of a program" },
		{ "programs: {p: {to: last}}", "own.yaml:2: a row of a program needs does or like" },
		{ "programs: {p: {like: emacs}}", "own.yaml:2: \"emacs\" is no program that others are like" },
		{ "programs: {p: {does: read, traits: \"!force\"}}", "own.yaml:2: \"!\" is for conditions of rules" },
		{ "programs: {p: {does: read, recursive: rr}}", "own.yaml:2: one letter or digit is wanted here" },
		{ "programs: {\"\": {does: read}}", "own.yaml:2: a name has 1 to 255 bytes" },
		{ "programs: {p: [{like: dd}, {does: read}]}", "tables:0: \"p\" is like another program and more" },
		{ "wrappers: {w: {skips: 9}}", "own.yaml:2: a number from 0 to 8 is wanted here" },
		{ "trials: {t: {verbs: go}}", "own.yaml:2: a trial needs options or letters" },
		{ "trials: {t: {options: -n}, t: {letters: n}}", "tables:0: there are two rows of \"t\"" },
		{ "verbs-first: [git, git]", "tables:0: there are two rows of \"git\"" },
		{ "wrappers: {w: {}, w: {}}", "tables:0: there are two rows of \"w\"" },
		{ "code-options: {g: {option: -x}}", "own.yaml:2: code needs a language, and option or begins" },
		{ "code-options: {g: {language: shell}}", "own.yaml:2: code needs a language, and option or begins" },
		{ "code-options: {g: {begins: a, language: c}}", "own.yaml:2: \"c\" is no language" },
		{ "editors: {names: [v, v]}", "tables:0: there are two rows of \"v\"" },
		{ "editors: {lines: {a: shell, b: c}}", "own.yaml:2: \"c\" is no language" },
		{ "transfers: {curl: {sent: data}}", "own.yaml:2: an option begins with \"-\"" },
		{ "transfers: {curl: {sent: -d, other: -d}}", "tables:0: there are two rows of \"-d\"" },
		{ "transfers: {lynx: {}}", "own.yaml:2: \"lynx\" is no key here" },
		{ "languages: {ruby: {}}", "own.yaml:2: \"ruby\" is no key here" },
		{ "languages: {python: {calls: {f: {target: 0}}}}", "own.yaml:2: a call needs does" },
		{ "languages: {python: {calls: {f: {does: red}}}}", "own.yaml:2: \"red\" is no effect of a call" },
		{ "languages: {python: {calls: {f: {does: read, target: 32}}}}", "own.yaml:2: an argument is" },
		{ "languages: {python: {calls: {f: {does: read, target: path}}}}", "own.yaml:2: an argument is" },
		{ "languages: {python: {calls: {f: {does: read, second: 1/}}}}", "own.yaml:2: an argument is" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[300], message[200];

		assert_int_equal(str_format(text, sizeof text, HEAD "%s\n", cases[i].text), 0);
		assert_null(load(text, message));
		if (!str_has_prefix(message, cases[i].message))
			fail_msg("%s: \"%s\" is said, not \"%s\"", cases[i].text, message, cases[i].message);
	}
}

/* The first row would hide the second: a file of the user's own adds, and never changes what is shipped. */
static void two_files_have_no_row_in_common(void **state)
{
	static const char text[] = HEAD "languages: {python: {calls: {os.remove: {does: none}}}}\n";
	struct arena arena = { 0 };
	struct diags diags = { .arena = &arena };
	struct rules *rules = rules_new();

	assert_true(rules_add(rules, &diags, "one.yaml", text, sizeof text - 1));
	assert_true(rules_add(rules, &diags, "two.yaml", text, sizeof text - 1));
	assert_false(rules_finish(rules, &diags));
	assert_string_equal(diags.items[0].message, "there are two rows of \"os.remove\"");
	rules_free(rules);
	arena_done(&arena);
}

static void they_come_back_from_bytes(void **state)
{
	char message[200];
	struct rules *rules = load(HEAD RULE ROWS, message), *again;
	const struct tables *tables;
	const struct code_option *option;
	const struct effect *call;
	struct buf bytes;

	assert_string_equal(message, "");
	buf_init(&bytes, 1 << 20);
	assert_int_equal(rules_store(rules, &bytes), 0);
	again = rules_restore(bytes.bytes, bytes.size);
	assert_non_null(again);
	tables = rules_tables(again);
	call = TABLES_FIND(struct effect, &tables->languages[LANGUAGE_PYTHON].calls, "a.b");
	assert_non_null(call);
	assert_int_equal(call->kind, EFFECT_READ);
	assert_int_equal(call->target, 1);
	assert_int_equal(call->second, TARGET_NONE);
	assert_string_equal(call->keyword, "path");
	assert_int_equal(call->traits, TRAIT_RECURSIVE);
	assert_non_null(TABLES_FIND(struct effect, &tables->languages[LANGUAGE_PYTHON].calls, "z.y"));
	assert_null(TABLES_FIND(struct effect, &tables->languages[LANGUAGE_PYTHON].calls, "z"));
	assert_int_equal(TABLES_FIND(struct program_effect, &tables->programs, "b")[0].kind, OP_READ);
	assert_int_equal(TABLES_FIND(struct program_effect, &tables->programs, "b")[1].kind, OP_WRITE);
	assert_int_equal(TABLES_FIND(struct program_effect, &tables->programs, "c")->like, LIKE_CURL);
	option = TABLES_FIND(struct code_option, &tables->code_options, "g");
	assert_non_null(option);
	assert_string_equal(option[0].option, "-x");
	assert_string_equal(option[0].begins, "!");
	assert_int_equal(option[0].language, LANGUAGE_SHELL);
	assert_null(option[1].option);
	assert_int_equal(option[1].language, LANGUAGE_PYTHON);
	assert_non_null(TABLES_FIND(char *, &tables->editors.names, "v"));
	assert_non_null(TABLES_FIND(char *, &tables->editors.options, "-c"));
	assert_int_equal(TABLES_FIND(struct editor_line, &tables->editors.lines, "!")->language, LANGUAGE_SHELL);
	assert_string_equal(TABLES_FIND(struct name_alias, &tables->languages[LANGUAGE_JAVASCRIPT].aliases, "p")->means,
			    "q");
	rules_free(again);
	rules_free(rules);
	buf_done(&bytes);
}

/* Found by halves, a row in the wrong place is as good as gone: such bytes are not of ours. */
static void bytes_out_of_order_are_refused(void **state)
{
	char message[200];
	struct rules *rules = load(HEAD RULE ROWS, message);
	struct buf bytes;
	char *name;

	buf_init(&bytes, 1 << 20);
	assert_int_equal(rules_store(rules, &bytes), 0);
	name = memmem(bytes.bytes, bytes.size, "a.b", sizeof "a.b");
	assert_non_null(name);
	*name = '~';
	assert_null(rules_restore(bytes.bytes, bytes.size));
	*name = 'a';
	rules_free(rules);
	rules = rules_restore(bytes.bytes, bytes.size);
	assert_non_null(rules);
	rules_free(rules);
	buf_done(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_refused),
		cmocka_unit_test(two_files_have_no_row_in_common),
		cmocka_unit_test(they_come_back_from_bytes),
		cmocka_unit_test(bytes_out_of_order_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
