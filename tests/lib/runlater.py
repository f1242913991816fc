# SPDX-License-Identifier: Apache-2.0
"""The table of what the host runs later (policies/tables/run-later.yaml), and for each row that a program here can
show how it is shown: files, and a command that nobody would take for running one of them."""
import re

from atoll import ROOT

TABLE = ROOT / "policies/tables/run-later.yaml"
RAN = "touch ran"
SCRIPT = f"#!/bin/sh\n{RAN}\n"
PYTHON = "open('ran', 'w').close()\n"
GIT = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && "
CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch ran; false\n"
CARGO = '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n'
MAIN = {"src/main.rs": "fn main() {}\n"}


def rows():
    """[(pattern, whether it is in a table row with a source)]."""
    found = re.findall(r'^    - \{path: "([^"]+)"(.*)\}$', TABLE.read_text(), re.M)
    assert len(found) == TABLE.read_text().count("path: ") > 200
    return [(path, "source:" in rest) for path, rest in found]


def example(pattern):
    """A path that the pattern names."""
    path = pattern.removeprefix("**/")
    path = path + "x" if path.endswith("/**") else path
    return path.replace("/**x", "/x").replace("*", "x")


class Case:
    """files: {path: text}; command: what a person types; before: what stands there already; needs: the program;
    rows: the patterns that it shows, where these are others than those of its files."""

    def __init__(self, needs, files, command, before="", rows=None, env=None):
        self.needs, self.files, self.command, self.before, self.env = needs, files, command, before, env or {}
        self.rows = rows or ["**/" + name for name in files]


# Of git all shows one row, but is shown in many ways: what is not data.
CASES = {
    "git-config": Case("git", {".git/config": CONFIG}, "git status", GIT + ":", rows=["**/.git"]),
    "git-hook": Case("git", {".git/hooks/pre-commit": SCRIPT}, "git -c user.name=a -c user.email=a@b commit -qm x "
                     "--allow-empty", GIT + ":", rows=["**/.git"]),
    "git-commondir": Case("git", {".git/commondir": "../else\n", "else/config": CONFIG, "else/objects/x": "",
                                  "else/refs/x": ""}, "git status", GIT + ":", rows=["**/.git"]),
    "git-worktree-commondir": Case(
        "git", {".git/worktrees/w/commondir": "../../../else\n", "else/HEAD": "ref: refs/heads/x\n",
                "else/config": CONFIG, "else/objects/x": "", "else/refs/x": ""}, "cd w && git status; mv ran ..",
        GIT + "git worktree add -q w", rows=["**/.git"]),
    "git-bare": Case("git", {"docs/HEAD": "ref: refs/heads/x\n", "docs/objects/x": "", "docs/refs/x": "",
                             "docs/config": CONFIG + "\tbare = false\n\tworktree = ..\n"}, "cd docs && git status",
                     GIT + ":", rows=["**/.git"]),
    "git-completed": Case("git", {"docs/objects/x": "", "docs/refs/x": ""}, "cd docs && git status",
                          GIT + "mkdir docs && echo 'ref: refs/heads/x' >docs/HEAD && printf '" +
                          CONFIG.replace("\n", "\\n") + "\tbare = false\\n\tworktree = ..\\n' >docs/config",
                          rows=["**/.git"]),
    "git-file": Case("git", {"sub/.git": "gitdir: ../kept\n"}, "cd sub && git status; mv ran ..",
                     GIT + "git init -q --bare kept && printf '" + CONFIG.replace("\n", "\\n") +
                     "\tbare = false\\n\tworktree = ../sub\\n' >kept/config", rows=["**/.git"]),
    "git-rebase": Case("git", {".git/rebase-merge/git-rebase-todo": f"exec {RAN}\n"},
                       "GIT_EDITOR=true git -c user.name=a -c user.email=a@b rebase --continue",
                       GIT + "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m y && "
                       "GIT_SEQUENCE_EDITOR='echo break >' git -c user.name=a -c user.email=a@b rebase -qi HEAD~1",
                       rows=["**/.git"]),
    "git-hookspath": Case("git", {".githooks/pre-commit": SCRIPT, ".husky/pre-commit": SCRIPT},
                          "git -c user.name=a -c user.email=a@b commit -qm x --allow-empty",
                          GIT + "git config core.hooksPath .githooks", rows=["**/.githooks/**", "**/.husky/**"]),
    # The host's own configuration may name any directory, and a file beside the sources.
    "git-hookspath-anywhere": Case("git", {"tools/checks/pre-commit": SCRIPT},
                                   "git -c user.name=a -c user.email=a@b commit -qm x --allow-empty",
                                   GIT + "git config core.hooksPath tools/checks", rows=["**/pre-commit"]),
    "git-include": Case("git", {".gitconfig": CONFIG}, "git status", GIT + "git config include.path ../.gitconfig",
                        rows=["**/.gitconfig"]),
    "make": Case("make", {"Makefile": f"all:\n\t{RAN}\n"}, "make"),
    # GNU make prefers both to the Makefile that everybody knows.
    "make-lower": Case("make", {"makefile": f"all:\n\t{RAN}\n"}, "make", "printf 'all:\\n\\ttrue\\n' >Makefile"),
    "make-gnu": Case("make", {"GNUmakefile": f"all:\n\t{RAN}\n"}, "make", "printf 'all:\\n\\ttrue\\n' >Makefile"),
    "python-site": Case("python3", {"sitecustomize.py": PYTHON}, "/usr/bin/python3 -c ''", env={"PYTHONPATH": "."}),
    "python-user": Case("python3", {"usercustomize.py": PYTHON}, "/usr/bin/python3 -c ''", env={"PYTHONPATH": "."}),
    "python-pth": Case("python3", {"lib/x.pth": "import os; os.system('touch ran')\n"},
                       "/usr/bin/python3 -c 'import site; site.addsitedir(\"lib\")'", rows=["**/*.pth"]),
    "python-pyc": Case("python3", {"x.pyc": "x"}, "/usr/bin/python3 -c 'import m'",
                       "echo \"open('ran', 'w')\" >m.py; /usr/bin/python3 -c 'import py_compile as p; "
                       "p.compile(\"m.py\", invalidation_mode=p.PycInvalidationMode.UNCHECKED_HASH)'; echo >m.py",
                       rows=["**/*.pyc"]),
    "python-venv": Case("python3", {".venv/bin/activate": RAN + "\n"}, ". .venv/bin/activate",
                        rows=["**/.venv/bin/**", "**/venv/bin/**", "**/env/bin/**", "**/bin/activate",
                              "**/pyvenv.cfg"]),
    "python-pdb": Case("python3", {".pdbrc": "!import os; os.system('touch ran')\nquit\n"},
                       "echo quit | /usr/bin/python3 -m pdb s.py", "echo x=1 >s.py"),
    "pytest-conftest": Case("python3", {"conftest.py": PYTHON}, "/usr/bin/python3 -m pytest -q"),
    "pytest-ini": Case("python3", {"pytest.ini": "[pytest]\naddopts = -p x\npythonpath = .\n", "x.py": PYTHON},
                       "/usr/bin/python3 -m pytest -q", rows=["**/pytest.ini"]),
    "pytest-pyproject": Case("python3", {"pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-p x"\n',
                                         "x.py": PYTHON}, "/usr/bin/python3 -m pytest -q", rows=["**/pyproject.toml"]),
    "pytest-setup-cfg": Case("python3", {"setup.cfg": "[tool:pytest]\naddopts = -p x\n", "x.py": PYTHON},
                             "/usr/bin/python3 -m pytest -q", rows=["**/setup.cfg"]),
    "setup": Case("python3", {"setup.py": PYTHON}, "/usr/bin/python3 setup.py"),
    "npm-script": Case("npm", {"package.json": '{"scripts": {"test": "touch ran"}}'}, "npm test"),
    "npm-shell": Case("npm", {".npmrc": "script-shell=./x\n", "x": SCRIPT}, "npm test",
                      """echo '{"scripts": {"test": "true"}}' >package.json""", rows=["**/.npmrc"]),
    "vim": Case("vim", {".exrc": "silent !touch ran\n"}, "vim --not-a-term -c qa! </dev/null",
                env={"VIMINIT": "set exrc", "TERM": "dumb"}),
    "gdb": Case("gdb", {".gdbinit": "shell touch ran\n"}, "gdb -batch -iex 'set auto-load safe-path /' -ex quit"),
    "perl": Case("perl", {".perldb": "system('touch ran');\n"}, "perl -d -e 0 </dev/null"),
    "hg": Case("hg", {".hg/hgrc": "[hooks]\npre-status = touch ran\n"}, "hg status", "hg init", rows=["**/.hg"]),
    "cmake": Case("cmake", {"CMakeLists.txt": "execute_process(COMMAND touch ran)\n"}, "cmake -P CMakeLists.txt"),
    "cargo-build": Case("cargo", {"build.rs": 'fn main() { std::fs::write("ran", "").unwrap(); }\n', **MAIN,
                                  "Cargo.toml": CARGO}, "cargo build --offline", rows=["**/build.rs", "**/Cargo.toml"]),
    "cargo-config": Case("cargo", {".cargo/config.toml": '[build]\nrustc-wrapper = "./x"\n',
                                   "x": SCRIPT + 'exec "$@"\n', **MAIN, "Cargo.toml": CARGO}, "cargo build --offline",
                         rows=["**/.cargo/config.toml", "**/.cargo/config"]),
    "ruby": Case("irb", {".irbrc": "File.write('ran', '')\n"}, "echo | irb", rows=["**/.irbrc"]),
    "r": Case("R", {".Rprofile": "file.create('ran')\n"}, "R --no-save -e 1", rows=["**/.Rprofile"]),
    "just": Case("just", {"justfile": f"all:\n\t{RAN}\n"}, "just"),
}
