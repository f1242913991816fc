# SPDX-License-Identifier: Apache-2.0
"""tools/check-includes: downward includes pass; upward, sideways and unlisted ones fail, and tables that differ."""
import pytest

CHECKER = "check-includes"
MESON = ("folders = {\n  'base': [],\n  'os': ['base'],\n  'gate-net/tls': ['base'],\n"
         "  'box': ['base', 'os'],  # the top\n}\n"
         "program_folders = {\n  'prog/one/low': [],\n  'prog/one/run': ['prog/one/low'],\n}\n"
         "program_forbidden = {\n  'prog/one': ['os'],\n}\n")
DOCUMENT = ("# A\n<!-- includes:begin -->\n| folder | may include |\n|---|---|\n| `base` | pure |\n| `os` | |\n"
            "| `gate-net/tls` | pure |\n| `box` | |\n| `prog/one/low` | |\n"
            "| `prog/one/run` | prog/one/low |\n<!-- includes:end -->\n")


@pytest.fixture(autouse=True)
def small_tree(tree):
    tree.write("meson.build", MESON)
    tree.write("ARCHITECTURE.md", DOCUMENT)
    tree.write("src/base/a.c", '#include "base/a.h"\n#include <stdio.h>\n')
    tree.write("src/os/a.c", '#include "base/a.h"\n#include "generated.h"\n')
    tree.write("src/box/a.c", '#include "os/a.h"\n')
    tree.write("src/gate-net/tls/a.c", '#include "base/a.h"\n#include "gate-net/tls/a.h"\n')
    tree.write("src/prog/one/main.c", '#include "box/a.h"\n#include "prog/one/run/a.h"\n#include "prog/one/b.h"\n')
    tree.write("src/prog/one/run/a.c", '#include "gate-net/tls/a.h"\n#include "prog/one/low/a.h"\n')


def test_clean_tree(tree):
    assert tree.findings() == ""


@pytest.mark.parametrize("path, include", [
    ("src/base/b.c", "os/a.h"), ("src/os/b.c", "box/a.h"), ("src/os/b.h", "prog/one/b.h"),
    ("src/os/b.c", "nowhere/a.h"),
    ("src/prog/one/b.c", "prog/two/b.h"), ("src/prog/one/run/b.c", "prog/two/b.h"),
    ("src/prog/one/low/b.c", "prog/one/run/b.h"), ("src/prog/one/run/b.c", "prog/one/b.h"),
    ("src/prog/one/b.c", "os/a.h"), ("src/prog/one/run/b.c", "os/a.h"),
    ("src/gate-net/tls/b.c", "os/a.h"), ("src/gate-net/tls/b.c", "gate-net/a.h"), ("src/box/b.c", "gate-net/tls/a.h"),
    ("src/os/b.c", "../box/a.h"), ("tests/unit/os/test-a.c", "box/a.h"),
])
def test_forbidden(tree, path, include):
    tree.write(path, f'\n  #  include "{include}"\n')
    assert f'{path}:2: "{include}"' in tree.findings()


def test_unit_tests_include_what_their_folder_may(tree):
    tree.write("tests/unit/os/test-a.c", '#include "os/a.h"\n#include "base/a.h"\n#include "fixture.h"\n')
    assert tree.findings() == ""


@pytest.mark.parametrize("old, new, text", [
    ("| `os` | |\n", "", "does not have os/"),
    ("| `box` | |", "| `box` | pure |", "box/ may include ['base'] here and ['base', 'os'] in meson.build"),
    ("| `gate-net/tls` | pure |", "| `gate-net/tls` | |", "gate-net/tls/ may include"),
    ("| `gate-net/tls` | pure |", "| `gate-net/tls` | pure: box |", "gate-net/tls/ may include"),
    ("<!-- includes:end -->", "", "no table between"),
    ("| `box`", "| `gone` | |\n| `box`", "does not have gone/"),
    ("| `prog/one/low`", "| `prog/{one,two}/low`", "does not have prog/two/low/"),
])
def test_document_differs(tree, old, new, text):
    tree.write("ARCHITECTURE.md", DOCUMENT.replace(old, new))
    assert text in tree.findings()


def test_several_folders_in_one_word(tree):
    tree.write("meson.build", MESON.replace(
        "'box': ['base', 'os'],",
        "'gate-net/dns': ['base'],\n  'box': ['base', 'os', 'gate-net/dns', 'gate-net/tls'],"))
    tree.write("ARCHITECTURE.md", DOCUMENT.replace("gate-net/tls`", "gate-net/{tls,dns}`")
               .replace("| `box` | |", "| `box` | gate-net/{tls,dns} |"))
    assert tree.findings() == ""
    tree.write("ARCHITECTURE.md", DOCUMENT.replace("gate-net/tls`", "gate-net/{tls,dns}`"))
    assert "box/ may include ['base', 'os'] here" in tree.findings()


def test_folder_in_no_table(tree):
    tree.write("src/stray/a.c", "")
    tree.write("src/os/deep/a.c", "")
    tree.write("src/prog/one/stray/a.c", "")
    for folder in ("stray", "os/deep", "prog/one/stray"):
        assert f"src/{folder}:1: this folder is in no table" in tree.findings()


def test_circle(tree):
    tree.write("meson.build", MESON.replace("'base': []", "'base': ['os']"))
    tree.write("ARCHITECTURE.md", DOCUMENT.replace("| `base` | pure |", "| `base` | |"))
    assert "base/ includes os/, which does not stand before it" in tree.findings()
