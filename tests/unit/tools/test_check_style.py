# SPDX-License-Identifier: Apache-2.0
"""tools/check-style: a clean tree passes, each rule is seen to fail, exceptions work and expire."""
import pytest

CHECKER = "check-style"
SPDX = "/* SPDX-License-Identifier: Apache-2.0 */\n"
HEADER = SPDX + "#pragma once\n\n/*\n * What it is for.\n * What it does not do.\n */\n"


def source(tree, body, path="src/base/a.c"):
    folder, name = path.rsplit("/", 1)
    tree.write(f"{folder}/meson.build", f"s = files('{name}')\n")
    tree.write(path, SPDX + body)


def function(lines, signature="int f(int a)"):
    return f"{signature}\n{{\n" + "\tg();\n" * lines + "}\n"


def test_clean_tree(tree):
    source(tree, '#include "a.h"\n\n/* strcpy( in a comment */\n' + function(60) + '\nconst char *s = "sprintf(";\n')
    tree.write("src/base/a.h", HEADER)
    assert tree.findings() == ""


@pytest.mark.parametrize("lines, rule, failures", [
    (60, None, 0), (61, "warning", 0), (120, "warning", 0), (121, "at most 120", 1),
])
def test_function_length(tree, lines, rule, failures):
    source(tree, function(lines))
    out = tree.findings()
    assert (rule in out) if rule else out == ""
    assert out.count("warning") == (1 if rule == "warning" else 0)
    if failures:
        assert "src/base/a.c:3: f() has 121 lines" in out


def test_length_of_a_function_with_a_long_signature(tree):
    source(tree, "static int\nlong_name(const char *first,\n\t  int second) __attribute__((format(printf, 1, 2)))\n{\n"
           + "\tg();\n" * 130 + "}\n")
    assert "long_name() has 130 lines" in tree.findings()


@pytest.mark.parametrize("lines, text", [(600, ""), (700, "warning"), (1001, "at most 1000")])
def test_file_length(tree, lines, text):
    source(tree, "int x;\n" * (lines - 1))
    out = tree.findings()
    assert (text in out) if text else out == ""


@pytest.mark.parametrize("signature, fails", [
    ("int f(int a, int b, int c, int d, int e, int g)", False),
    ("int f(int a, int b, int c, int d, int e, int g, int h)", True),
    ("int f(int a, int (*b)(int, int, int, int, int), int c)", False),
    ("int f(void)", False),
])
def test_parameters(tree, signature, fails):
    source(tree, function(1, signature))
    assert ("parameters" in tree.findings()) == fails


@pytest.mark.parametrize("name, fails", [("tell", True), ("go_on", True), ("tell_client", False), ("retell", False)])
def test_a_bare_verb_is_no_name(tree, name, fails):
    source(tree, function(1, f"static int {name}(int a)"))
    assert ("[bare-verb]" in tree.findings()) == fails


@pytest.mark.parametrize("depth, fails", [(4, False), (5, True)])
def test_nesting(tree, depth, fails):
    body = "".join("\t" * i + "if (x) {\n" for i in range(1, depth + 1))
    body += "".join("\t" * i + "}\n" for i in range(depth, 0, -1))
    source(tree, "int f(int x)\n{\n" + body + "}\n")
    assert ("nests 5 deep" in tree.findings()) == fails


@pytest.mark.parametrize("call", ["strcpy(a, b)", "sprintf (a, b)", "atoi(a)", "system(a)", "strtok(a, b)"])
def test_banned(tree, call):
    source(tree, f"int f(int a)\n{{\n\t{call};\n}}\n")
    assert "src/base/a.c:4: " in tree.findings() and "[banned]" in tree.findings()


@pytest.mark.parametrize("call", ["x->system(a)", "x.open(a)", "my_strcpy(a)", "snprintf(a)", '"strcpy("'])
def test_not_banned(tree, call):
    source(tree, f"int f(int a)\n{{\n\t{call};\n}}\n")
    assert tree.findings() == ""


@pytest.mark.parametrize("first, fails", [
    ("\tcleanup_buf struct buf out;\n\n\tif (!a)\n\t\treturn 0;\n\tbuf_init(&out, 1);\n", True),
    ("\tcleanup_fd int fd, out;\n\n\tif (!a)\n\t\treturn 0;\n\tout = 1;\n", True),
    ("\tcleanup_buf struct buf out = { 0 };\n\n\tif (!a)\n\t\treturn 0;\n\tbuf_init(&out, 1);\n", False),
    ("\tcleanup_buf struct buf out;\n\n\tbuf_init(&out, 1);\n\tif (!a)\n\t\treturn 0;\n", False),
])
def test_what_is_freed_has_a_value(tree, first, fails):
    source(tree, f"int f(int a)\n{{\n{first}\treturn 1;\n}}\n")
    assert ("[cleanup]" in tree.findings()) == fails


@pytest.mark.parametrize("path, fails", [("src/base/a.c", True), ("src/os/a.c", False)])
def test_raw_open(tree, path, fails):
    source(tree, "int f(int a)\n{\n\treturn openat(a, b, c);\n}\n", path)
    assert ("raw-open" in tree.findings()) == fails


def test_exit_only_in_main(tree):
    source(tree, "int f(int a)\n{\n\texit(1);\n}\n\nint main(void)\n{\n\texit(1);\n}\n")
    assert tree.findings().count("[exit]") == 1


@pytest.mark.parametrize("header, text", [
    (SPDX + "/*\n * One.\n * Two.\n */\n", "no #pragma once"),
    (SPDX + "#pragma once\n\nint f(void);\n", "no comment"),
    (SPDX + "#pragma once\n\n/* One line. */\n", "no comment"),
    ("#pragma once\n\n/*\n * One.\n * Two.\n */\n", "[spdx]"),
])
def test_headers(tree, header, text):
    tree.write("src/base/a.h", header)
    assert text in tree.findings()


def test_licence_line(tree):
    source(tree, "int x;\n")
    tree.write("src/base/a.c", "int x;\n" + SPDX)
    assert "[spdx]" in tree.findings()


@pytest.mark.parametrize("line, rule", [
    ("int x; ", "white space"), ("int x;\t", "white space"), ("int " + "x" * 120 + ";", "columns"),
    ("\t" * 15 + "x = 1;", "columns"),
])
def test_lines(tree, line, rule):
    source(tree, line + "\n")
    assert f"src/base/a.c:2: " in tree.findings() and rule in tree.findings()


@pytest.mark.parametrize("path", ["src/base/string-util.c", "src/common/a.c", "src/base/misc.c", "src/base/helper.c"])
def test_forbidden_names(tree, path):
    source(tree, "int x;\n", path)
    assert "[name]" in tree.findings()


def test_unlisted_source(tree):
    source(tree, "int x;\n")
    tree.write("src/base/b.c", SPDX)
    tree.write("src/base/meson.build", "s = files('a.c')  # and 'b.c' one day\n")
    assert "src/base/b.c:1: no meson.build lists this file" in tree.findings()


def test_unit_tests_are_listed_without_their_prefix(tree):
    source(tree, "int x;\n")
    tree.write("tests/unit/base/test-str.c", SPDX)
    tree.write("tests/unit/base/test-num.c", SPDX)
    tree.write("tests/unit/base/meson.build", "foreach name : ['str']\nendforeach\n")
    out = tree.findings()
    assert "test-num.c:1: no meson.build" in out and "test-str" not in out


def test_exceptions_hold_and_expire(tree):
    source(tree, function(130))
    assert "[function-length]" in tree.findings()
    tree.write("tools/style-exceptions.txt", "# why\nfunction-length src/base/a.c:f\n")
    assert tree.findings() == ""
    source(tree, function(10))
    assert 'tools/style-exceptions.txt:2: the exception "function-length src/base/a.c:f" is not needed any more' \
        in tree.findings()


def test_an_exception_covers_one_function_only(tree):
    source(tree, function(130) + "\n" + function(130, "int h(int a)"))
    tree.write("tools/style-exceptions.txt", "function-length src/base/a.c:f\n")
    assert tree.findings().count("[function-length]") == 1
    assert "h() has" in tree.findings()
