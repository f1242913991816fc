# SPDX-License-Identifier: Apache-2.0
"""Loads the checkers of tools/ as modules and gives each test a small source tree of its own."""
import importlib.machinery
import importlib.util
import io
import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]


def load(name):
    path = str(ROOT / "tools" / name)
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Tree:
    """A tree below a temporary directory, and one checker to run over it."""

    def __init__(self, root, checker):
        self.root = root
        self.checker = checker

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def findings(self):
        out = io.StringIO()
        self.checker.check_tree(str(self.root), out)
        return out.getvalue()


@pytest.fixture
def tree(request, tmp_path):
    os.environ.pop("ATOLL_UNUSED", None)
    return Tree(tmp_path, load(request.module.CHECKER))
