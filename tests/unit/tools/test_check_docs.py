# SPDX-License-Identifier: Apache-2.0
"""tools/check-docs: options, verbs and variables are looked for in both directions, and broken pages are named."""
import pytest

CHECKER = "check-docs"
OPTIONS = '''static const struct option options[] = {
	{ 'p', "policy", "POLICY", "use this policy", OPTION_TEXT, offsetof(struct verb, policy) },
	{ 0, "no-tty", NULL, "no own terminal", OPTION_FLAG, offsetof(struct verb, no_tty) },
};
'''
VERBS = 'const struct cmd cmd_run = {\n\t"run", "CMD", "runs", .run = run_verb,\n};\n'
PAGE = '''atoll(1)

# NAME

atoll - a sandbox

# OPTIONS

*run*
	Runs.

*-p*, *--policy* _POLICY_
	The policy.

*--no-tty*
	None.

*--help*
	This.

# ENVIRONMENT

*ATOLL\\_TEST*
	For tests.
'''


@pytest.fixture(autouse=True)
def small_tree(tree):
    tree.write("src/prog/atoll/run/cmd-run.c", OPTIONS + 'getenv("ATOLL_TEST");\n')
    tree.write("src/prog/atoll/verbs.c", VERBS)
    tree.write("doc/man/atoll.1.scd", PAGE)


def test_clean_tree(tree):
    assert tree.findings() == ""


def test_missing_long_and_short_option(tree):
    tree.write("doc/man/atoll.1.scd", PAGE.replace("*-p*, *--policy* _POLICY_", "*--policies*"))
    out = tree.findings()
    assert "cmd-run.c:2: --policy is not in doc/man/atoll.1.scd" in out
    assert "cmd-run.c:2: -p is not in doc/man/atoll.1.scd" in out
    assert "atoll.1.scd:12: no option table has --policies" in out


def test_designated_rows_are_read(tree):
    tree.write("src/prog/atoll/watch/cmd-stop.c", "{\n\t.short_name = 'w',\n\t.long_name = \"wait\",\n}\n")
    out = tree.findings()
    assert "cmd-stop.c:3: --wait is not in" in out and "cmd-stop.c:3: -w is not in" in out


def test_rows_that_tables_share_are_those_of_each(tree):
    tree.write("src/stage/review-options.h", "#define STOP_OPTIONS(AT) \\\n\t{ 'w', \"wait\", NULL, \"wait\", "
                                             "OPTION_FLAG, AT(wait) }, \\\n\t{ 0, \"kill\", NULL, \"kill\", 0, 0 }\n")
    tree.write("src/prog/atoll/watch/cmd-stop.c", "static const struct option options[] = {\n\tSTOP_OPTIONS(AT),\n};\n")
    out = tree.findings()
    assert "cmd-stop.c:2: --wait is not in" in out and "cmd-stop.c:2: -w is not in" in out, out
    assert "cmd-stop.c:2: --kill is not in" in out, out


def test_a_verb_with_a_page_of_its_own(tree):
    tree.write("src/prog/atoll/watch/cmd-log.c", "{ 'f', \"follow\", NULL, \"go on\", OPTION_FLAG, 0 },\n")
    tree.write("src/prog/atoll/verbs.c", VERBS + 'const struct cmd cmd_log = { "log", "", "shows" };\n')
    tree.write("doc/man/atoll-log.1.scd", "atoll-log(1)\n\n# OPTIONS\n\n*-f*, *--follow*\n\tGo on.\n")
    assert tree.findings().strip() == "src/prog/atoll/verbs.c:4: the verb log is not in doc/man/atoll.1.scd"
    tree.write("doc/man/atoll.1.scd", PAGE.replace("Runs.", "Runs. See *atoll-log*(1)."))
    assert tree.findings() == ""


def test_missing_verb(tree):
    tree.write("src/prog/atoll/verbs.c", VERBS + 'const struct cmd cmd_stop = { "stop", "ID", "stops" };\n')
    assert "verbs.c:4: the verb stop is not in" in tree.findings()


def test_page_of_no_verb(tree):
    tree.write("doc/man/atoll-gone.1.scd", "atoll-gone(1)\n\n# NAME\n\nx\n")
    assert "neither a verb nor a program gone" in tree.findings()


def test_variables_both_ways(tree):
    tree.write("src/os/a.c", 'getenv("ATOLL_SECRET_KNOB");\n"ATOLL_SESSION=";\n')
    tree.write("doc/man/atoll.1.scd", PAGE.replace("For tests.", "For tests. *ATOLL\\_GONE*"))
    out = tree.findings()
    assert "src/os/a.c:1: ATOLL_SECRET_KNOB is in no man page" in out
    assert "src/os/a.c:2: ATOLL_SESSION is in no man page" in out
    assert "nothing reads ATOLL_GONE" in out


def test_page_that_does_not_compile(tree):
    tree.write("doc/man/broken.5.scd", "broken(5)\n\n*unclosed\n\nnext\n")
    assert "doc/man/broken.5.scd:5: " in tree.findings()


def test_no_pages(tree):
    (tree.root / "doc/man/atoll.1.scd").unlink()
    assert "no man pages" in tree.findings()


@pytest.mark.parametrize("path, text, missing", [
    ("ARCHITECTURE.md", "See `prog/atoll/verbs.c`, `doc/man/atoll.1.scd`, <linux/stat.h>.\n", ""),
    ("ARCHITECTURE.md", "See\n`box/gone.c`.\n", "ARCHITECTURE.md:2: there is no file box/gone.c"),
    ("doc/flows/run.md", "1. `prog/atoll/gone.c`\n", "doc/flows/run.md:1: there is no file prog/atoll/gone.c"),
    ("src/os/a.h", "/* Used by\n * os/gone.c alone. */\n", "src/os/a.h:2: there is no file os/gone.c"),
    ("src/os/a.c", '#include "os/gone.h"\n', ""),
    ("src/prog/atoll/run/b.c", "/* As in run/cmd-run.c. */\n", ""),
])
def test_files_that_are_named_are_there(tree, path, text, missing):
    tree.write(path, text)
    out = tree.findings()
    assert missing in out if missing else out == ""


@pytest.mark.parametrize("words, found", [(1500, False), (1501, True)])
def test_architecture_has_a_number_of_words(tree, words, found):
    tree.write("ARCHITECTURE.md", "word " * words)
    assert (f"ARCHITECTURE.md:1: {words} words, at most 1500" in tree.findings()) == found
