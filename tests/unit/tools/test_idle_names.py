# SPDX-License-Identifier: Apache-2.0
"""src/prog/atoll/idle.ld puts the text of an idle box side by side. A function that it names and nobody defines any
more costs each box a page, and nothing else says so."""
import glob
import os
import re

ROOT = os.path.join(os.path.dirname(__file__), "..", "..", "..")


def named():
    with open(os.path.join(ROOT, "src/prog/atoll/idle.ld"), encoding="utf-8") as stream:
        return re.findall(r"\.text\.(\w+)", re.sub(r"\*lib\S+\([^)]*\)", "", stream.read()))


def defined():
    names = set()
    for path in glob.glob(os.path.join(ROOT, "src/**/*.c"), recursive=True):
        with open(path, encoding="utf-8") as stream:
            names.update(re.findall(r"^[A-Za-z_][\w \t*]*?\b(\w+)\([^;]*?\)\n\{", stream.read(), re.M))
    return names


def test_every_function_of_an_idle_box_is_there():
    names = [name for name in named() if name != "idle"]
    assert len(names) > 50
    assert "loop_step" in names
    assert sorted(set(names) - defined()) == []


def test_no_name_stands_there_twice():
    names = named()
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_what_each_module_does_in_every_turn_of_the_loop_is_named():
    """As callbacks they are found by no look at who calls whom."""
    called = set()
    for path in glob.glob(os.path.join(ROOT, "src/**/*.c"), recursive=True):
        with open(path, encoding="utf-8") as stream:
            for module in re.findall(r"const struct module \w+ = \{(.*?)\};", stream.read(), re.S):
                called.update(re.findall(r"\.(?:check|timeout_ms) = (\w+)", module))
    assert len(called) > 10
    assert sorted(called - set(named())) == []
