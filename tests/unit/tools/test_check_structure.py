# SPDX-License-Identifier: Apache-2.0
"""tools/check-structure: each rule finds what is above it, lets pass what is not, and exceptions only shrink."""
import pytest

CHECKER = "check-structure"


def function(name, calls=""):
    return f"int {name}(void)\n{{\n\treturn 0{''.join(f' + {call}()' for call in calls.split())};\n}}\n"


@pytest.fixture(autouse=True)
def small_tree(tree):
    tree.write("src/box/a.h", "/* What it says of a thing in the tree. */\nint a(void);\n")
    tree.write("src/box/a.c", '#include "box/a.h"\n' + function("a"))


def write_circle(tree, count):
    for number in range(count):
        tree.write(f"src/box/c{number}.c", function(f"c{number}", f"c{(number + 1) % count}"))


def test_clean_tree(tree):
    assert tree.findings() == ""


@pytest.mark.parametrize("count, found", [(4, False), (5, True)])
def test_circle_of_calls(tree, count, found):
    write_circle(tree, count)
    assert (f"src/box: {count} files go round: c0" in tree.findings()) == found


def test_a_callback_is_an_edge(tree):
    write_circle(tree, 5)
    tree.write("src/box/c4.c", "int c4(void)\n{\n\treturn hand_over(c0);\n}\n")
    assert "5 files go round" in tree.findings()


@pytest.mark.parametrize("table, found", [("const struct row c0[COUNT] = {", True), ("int c0;", True),
                                          ("static const struct row c0[] = {", False), ("extern int c0;", False)])
def test_a_table_is_an_edge_to_who_defines_it(tree, table, found):
    write_circle(tree, 5)
    body = function("other", "c1")
    tree.write("src/box/c0.c", (table + "\n\t{ 1 },\n};\n" if table.endswith("{") else table + "\n") + body)
    assert ("5 files go round" in tree.findings()) == found


def test_circle_of_headers(tree):
    for number in range(5):
        tree.write(f"src/box/h{number}.h", f'#include "box/h{(number + 1) % 5}.h"\n')
    assert "5 files go round" in tree.findings()


def test_a_static_function_of_the_same_name_is_no_edge(tree):
    write_circle(tree, 5)
    tree.write("src/box/c4.c", "static " + function("c0") + function("c4", "c0"))
    assert tree.findings() == ""


def test_a_name_in_a_comment_or_string_is_no_edge(tree):
    write_circle(tree, 5)
    tree.write("src/box/c4.c", '/* c0() */\nint c4(void)\n{\n\treturn "c0()"[0];\n}\n')
    assert tree.findings() == ""


def test_folder_sizes(tree):
    tree.write("src/os/long.c", "\n" * 5001)
    for number in range(21):
        tree.write(f"src/limit/n{number}.c", "")
    found = tree.findings()
    assert "src/os: 5001 lines, at most 5000" in found and "src/limit: 21 .c files, at most 20" in found


@pytest.mark.parametrize("fields, count", [
    ("\tint a;\n" * 25, 25), ("\tint a;\n" * 26, 26), ("\tint a, *b, c[2];\n" * 9, 27),
    ("\tint (*call)(int a, int b);\n" * 26, 26), ("\tunion {\n\t\tint a;\n\t\tint b;\n\t} u;\n" * 9, 18),
])
def test_struct_fields(tree, fields, count):
    tree.write("src/os/s.c", f"struct s {{\n{fields}}};\n")
    assert ("struct s has" in tree.findings()) == (count > 25)
    assert count <= 25 or f"has {count} fields" in tree.findings()


def test_includes(tree):
    tree.write("src/os/i.c", "".join(f'#include "base/h{n}.h"\n' for n in range(12)) + "#include <stdio.h>\n")
    assert tree.findings() == ""
    tree.write("src/os/i.c", "".join(f'#include "base/h{n}.h"\n' for n in range(13)))
    assert "src/os/i.c: includes 13 of the project's headers" in tree.findings()


@pytest.mark.parametrize("line", ['printf("a");', "fputs(a, stderr);", "fd_write_full(2, a, 1);", "puts(a);",
                                  "write(STDERR_FILENO, a, 1);"])
def test_a_library_does_not_print(tree, line):
    tree.write("src/prog/one/main.c", f"int main(void)\n{{\n\t{line}\n}}\n")
    assert tree.findings() == ""
    tree.write("src/os/p.c", f"int p(void)\n{{\n\t{line}\n}}\n")
    assert "a library that prints" in tree.findings()


def test_naming_a_format_is_not_printing(tree):
    tree.write("src/os/p.c", "int say(const char *f, ...) __attribute__((format(printf, 1, 2)));\n")
    assert tree.findings() == ""


@pytest.mark.parametrize("header, missing", [
    ("int box_read_size(void);\n", "box_read_size"),
    ("/* Reads the box's size. */\nint box_read_size(void);\n", "box_read_size"),
    ("/* Bytes of its files, or a negative errno. */\nint box_read_size(void);\n", ""),
    ("int box_read_size(void); /* Bytes of its files, or a negative errno. */\n", ""),
    ("/* Bytes of its files, or a negative errno. */\nint box_size(void);\nint box_rest(void);\n", ""),
    ("/* Bytes of its files, or a negative errno. */\nint box_size(void);\n\nint box_rest(void);\n", "box_rest"),
    ("static inline int box_size(void)\n{\n\treturn 1;\n}\n", ""),
    ("typedef int box_step(void);\n", ""),
])
def test_contracts(tree, header, missing):
    tree.write("src/os/c.h", header)
    assert tree.findings() == (f"src/os/c.h: no contract at {missing}, at most 0 [contract]\n" if missing else "")


def test_state_is_private(tree):
    tree.write("src/box/b.c", '#include "box/state.h"\n')
    assert tree.findings() == ""
    tree.write("src/os/b.c", '#include "box/state.h"\n')
    assert '"box/state.h" is its own folder\'s' in tree.findings()


def test_exceptions_only_shrink(tree):
    write_circle(tree, 6)
    tree.write("tools/structure-exceptions.txt", "# why\ncircle src/box 6\n")
    assert tree.findings() == ""
    write_circle(tree, 7)
    assert "7 files go round" in tree.findings() and "at most 6 [circle]" in tree.findings()
    for number in range(7):
        tree.write(f"src/box/c{number}.c", "")
    assert "is not needed any more" in tree.findings()


def test_tighten(tree):
    write_circle(tree, 5)
    tree.write("tools/structure-exceptions.txt", "# why\ncircle src/box 6\nfiles src/box 30\n")
    tree.checker.tighten(str(tree.root))
    assert (tree.root / "tools/structure-exceptions.txt").read_text() == "# why\ncircle src/box 5\n"
