# SPDX-License-Identifier: Apache-2.0
"""`atoll policy learn` with programs that people use: the proposal lists every program that was started, also those
that a relative path, a link or the first line of a script leads to, and a second run under it passes."""
import json
import shutil

import pytest

SETUP = {
    "git": {"a.txt": "one\n"},
    "make": {"Makefile": "all: out.txt other.txt\nout.txt: in.txt\n\t./build.sh <in.txt >out.txt\n"
                         "other.txt: in.txt\n\ttr a-z A-Z <in.txt >other.txt\n",
             "in.txt": "words\n", "build.sh": "#!/usr/bin/env bash\nsort | cat\n"},
    "npm": {"package.json": json.dumps({"name": "x", "version": "1.0.0",
                                        "scripts": {"greet": "node greet.js && ./tool.js"}}),
            "greet.js": "console.log('hello')\n", "tool.js": "#!/usr/bin/env node\nconsole.log('tool')\n"},
    "venv": {"main.py": "import sys; print(sys.prefix != sys.base_prefix)\n"},
}
SCRIPTS = {
    "git": "git init -q . && git add a.txt && git -c user.name=a -c user.email=a@b commit -qm x && git log --format=%s",
    "make": "make -s && cat out.txt other.txt",
    "npm": "npm_config_update_notifier=false npm run --silent greet",
    "venv": "venv/bin/python main.py && cd venv/bin && ./python ../../main.py",
}
OUTPUT = {"git": "x\n", "make": "words\nWORDS\n", "npm": "hello\ntool\n", "venv": "True\nTrue\n"}
# Each with one that only a relative path, a link or a first line leads to.
PROGRAMS = {"git": ["/usr/bin/git"], "make": ["./build.sh", "/usr/bin/env", "/usr/bin/tr"],
            "npm": ["/usr/bin/env", "./tool.js"], "venv": ["/usr/bin/python3"]}


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.needs({"venv": "python3"}.get(name, name)))
                        for name in SCRIPTS])
def tool(request, sandbox):
    name = request.param
    for file, text in SETUP[name].items():
        sandbox.write(sandbox.project / file, text, 0o755)
    if name == "venv":
        sandbox.run_outside(["/usr/bin/python3", "-m", "venv", "--without-pip", "venv"], check=True,
                            cwd=sandbox.project)
    if name == "git":
        shutil.rmtree(sandbox.project / ".git", ignore_errors=True)
    return name


def learnt_from(sandbox, script, code=0):
    done = sandbox.run_atoll("policy", "learn", "-t", "medium", "--", "bash", "-c", script)
    assert done.code == code, done
    return done, sandbox.policy(done.out[done.out.index("# Proposed"):], "learnt.yaml")


def test_a_second_run_with_the_programs_listed_passes(sandbox, tool):
    script = SCRIPTS[tool]
    done, learnt = learnt_from(sandbox, script)
    assert done.out.startswith(OUTPUT[tool]), done
    text = learnt.read_text()
    listed = [line.split('"')[1] for line in text[text.index("\nexec:"):text.index("\nresources:")].splitlines()
              if line.startswith("    - ")]
    assert "default: deny" in text and len(listed) >= 2, text
    for program in PROGRAMS[tool]:
        assert any(one == program or one.startswith(program + ".") for one in listed), (program, listed)
    again = sandbox.run(script, policy=learnt)
    assert again.code == 0 and again.out == OUTPUT[tool] and not again.report["denials"], (again, text)
    # The control: what was not started is refused now, and was not before.
    assert sandbox.run("sha1sum /etc/hostname", trust="medium").code == 0
    refused = sandbox.run("sha1sum /etc/hostname", policy=learnt)
    assert refused.code == 126 and refused.report["denials"][0]["kind"] == "exec", refused
    # And what the tool's project has is listed as it was, not as somebody makes it.
    for own in [program for program in PROGRAMS[tool] if program.startswith("./")]:
        assert "new_binaries: true" in text
        changed = sandbox.run(f"echo '#!/bin/bash\necho changed' >{own}; {own}", policy=learnt)
        assert "changed" not in changed.out and changed.code == 126, changed


def test_a_program_that_was_made_is_told_from_one_that_was_there(sandbox):
    sandbox.write(sandbox.project / "there.sh", "#!/bin/sh\necho there\n", 0o755)
    _, learnt = learnt_from(sandbox, "./there.sh")
    text = learnt.read_text()
    assert '"./there.sh"' in text and "default: deny" in text, text
    _, learnt = learnt_from(sandbox, "./there.sh; cp there.sh made.sh; ./made.sh")
    text = learnt.read_text()
    assert "default: deny" not in text and "made.sh" in text and "cannot be named beforehand" in text, text
    _, learnt = learnt_from(sandbox, "echo 'echo changed' >>there.sh; ./there.sh")
    assert "default: deny" not in learnt.read_text(), learnt.read_text()


def test_what_is_not_there_is_no_program(sandbox):
    _, learnt = learnt_from(sandbox, "/usr/bin/python3 -c 'import subprocess; subprocess.run([\"true\"])'")
    text = learnt.read_text()
    # It was looked for at each place of PATH.
    assert "/usr/local/" not in text and '"/usr/bin/true"' in text, text


def test_the_record_says_which_program_it_was(sandbox):
    sandbox.write(sandbox.project / "sub" / "tool.sh", "#!/usr/bin/env bash\ntrue\n", 0o755)
    (sandbox.project / "link").symlink_to("/usr/bin/env")

    def starts(policy):
        done = sandbox.run("cd sub; ./tool.sh; ../link true; /bin/true", policy=policy)
        lines = map(json.loads, sandbox.audit_log(done.session).read_text().splitlines())
        return {entry["subject"]: entry["detail"] for entry in lines if entry["type"] == "exec.start"}
    plain = starts(None)
    assert plain["./tool.sh"]["path"] == f"{sandbox.project}/sub/tool.sh", plain
    assert plain["./tool.sh"]["interpreters"] == ["/usr/bin/env"], plain
    assert plain["../link"]["path"] == "/usr/bin/env" and "path" not in plain["/bin/true"], plain
    whole = starts(sandbox.policy("atoll: 1\nextends: medium\naudit: {files: all}\n"))
    assert whole["/bin/true"]["path"] == "/usr/bin/true" and "new" not in whole["./tool.sh"], whole
