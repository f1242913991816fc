# SPDX-License-Identifier: Apache-2.0
"""The README says what happens: its transcript and the picture are what tools/demo prints today, and it stays short.
What is to be typed in it is run word for word on a bare Debian (tools/bare-debian readme)."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
WORDS_MAX = 900


def demo(form):
    atoll = os.environ.get("ATOLL_BIN", ROOT / "build/bin")
    done = subprocess.run([sys.executable, ROOT / "tools/demo", f"{atoll}/atoll", form], text=True, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_transcript_is_what_happens():
    """After a change of what is said: `tools/demo build/bin/atoll --markdown`, into README.md."""
    assert demo("--markdown") in README


def test_the_picture_is_what_happens():
    """After a change of what is said: `tools/demo build/bin/atoll --svg >doc/demo.svg`."""
    assert demo("--svg") == (ROOT / "doc/demo.svg").read_text(encoding="utf-8")


def test_the_readme_is_read_in_a_minute():
    assert len(README.split()) <= WORDS_MAX


@pytest.mark.parametrize("guide", sorted(path.name for path in (ROOT / "doc/guide").glob("*.md")))
def test_each_guide_is_in_the_readme(guide):
    assert f"(doc/guide/{guide})" in README
