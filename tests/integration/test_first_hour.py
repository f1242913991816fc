# SPDX-License-Identifier: Apache-2.0
"""What somebody meets in the first hour: lists that are not empty without a word, errors that say what to do next."""
import json
import os
import pty
import re
import select
import subprocess
import time

import pytest

from gate import LOOPBACK, Listener, policy_text, test_hosts

PYTHON = "/usr/bin/python3"


def test_policies_are_listed_with_what_they_are_for(sandbox):
    sandbox.write(sandbox.base / "config/atoll/policies/mine.yaml", "# For my own project. More of it.\natoll: 1\n")
    done = sandbox.run_atoll("policy", "list")
    rows = {line.split()[0]: line.split(None, 2)[1:] for line in done.out.splitlines()}
    assert done.code == 0 and {"none", "full", "claude", "python", "system"} <= set(rows), done
    assert rows["mine"] == ["own", "For my own project"] and rows["medium"][0] == "level", done
    listed = json.loads(sandbox.run_atoll("policy", "list", "--json").out)
    assert {entry["name"] for entry in listed} == set(rows) and all(entry["path"] for entry in listed), listed
    for entry in listed:
        assert sandbox.run_atoll("policy", "show", "-p", entry["name"]).code == 0, entry


def test_an_empty_list_of_secrets_says_so(sandbox):
    done = sandbox.run_atoll("secret", "list")
    assert done.code == 0 and not done.out, done
    assert "no secrets yet" in done.err and "atoll secret set NAME" in done.err, done
    assert json.loads(sandbox.run_atoll("secret", "list", "--json").out) == []


def test_explain_takes_a_url(sandbox):
    policy = sandbox.policy(policy_text(["{host: web.test, ports: [443], http: [{methods: [GET], paths: [/ok]}]}"]))
    for words, code in ((["https://web.test/ok"], 0), (["https://web.test/no"], 1),
                        (["http.request", "https://web.test/ok"], 0),
                        (["net.connect", "https://web.test/no?x"], 0), (["net.connect", "http://web.test/"], 1)):
        done = sandbox.run_atoll("policy", "explain", "-p", policy, *words)
        assert done.code == code and "web.test" in done.out, (words, done)


def test_a_published_port_is_in_the_table_of_ps(sandbox):
    done = sandbox.run_outside(sandbox.command_line([], options=["-d", "--publish", "8080", "-n", "web"]))
    session = done.out.split()[-1]
    listed = sandbox.run_atoll("ps").out
    assert re.search(rf"{session}: port 8080 inside is 127\.0\.0\.1:\d+", listed), listed
    assert sandbox.run_atoll("ps", "-q").out.split() == [session]
    assert sandbox.run_atoll("ps", "-q", "--names").out.split() == [session, "web"]
    assert sandbox.run_atoll("stop", session).code == 0


def test_a_program_of_a_directory_that_is_not_visible(sandbox):
    """That the directory stands in PATH is no help where nothing of it is inside."""
    tools = sandbox.home / "own-tools"
    sandbox.write(tools / "mytool", "#!/bin/sh\n", mode=0o755)
    done = sandbox.run(["mytool"], env={"PATH": f"/usr/bin:/bin:{tools}"})
    assert done.code == 127 and f"{tools} is in PATH but not visible inside" in done.err, done
    assert f"files: {{read: [{tools}]}}" in done.err, done
    policy = sandbox.policy(f"atoll: 1\nextends: medium\nfiles: {{read: [{tools}]}}\n")
    assert sandbox.run(["mytool"], policy=policy, env={"PATH": f"/usr/bin:/bin:{tools}"}).code == 0


def test_the_summary_says_the_way_out(sandbox):
    """What stands in denials.jsonl for the agent, the person reads as well."""
    policy = sandbox.policy(policy_text(["{host: web.test, ports: [443]}"], "  default: deny\n"))
    script = "import socket\ntry: socket.create_connection(('web.test', 80))\nexcept OSError: pass"
    done = sandbox.run([PYTHON, "-c", script], policy=policy, env=test_hosts())
    assert "add the port to the host's rule under network.allow of your policy" in done.err, done


def test_what_this_machine_lacks_is_said_once(sandbox):
    options = ["--degrade", "cgroup.memory,cgroup.pids,cgroup.cpu"]
    env = {"ATOLL_TEST_BREAK": "cgroup.memory"}
    first = sandbox.run(["true"], options=options, env=env)
    second = sandbox.run(["true"], options=options, env=env)
    assert first.code == second.code == 0, (first, second)
    assert ("running without" in first.err) and "running without" not in second.err, (first, second)
    assert "cgroup.memory" in json.dumps(second.report), "the report says it each time"


def test_limits_say_what_this_machine_holds(sandbox):
    """They listed what the policy asks for, also where nothing held it."""
    policy = sandbox.policy("atoll: 1\nextends: medium\nresources: {cpus: 0.5, memory: 512MiB, processes: 77}\n")
    options = ["--degrade", "cgroup.memory,cgroup.pids,cgroup.cpu"]
    done = sandbox.run(["cat", "/run/atoll/limits.md"], policy=policy, options=options,
                       env={"ATOLL_TEST_LIMITS": "rlimit"})
    assert done.code == 0, done
    holders = done.report["enforcement"]["limits"]
    assert holders["memory"] == "supervised" and holders["cpus"] == "nothing", holders
    assert "- CPUs" not in done.out and "512MiB; checked from time to time" in done.out, done
    assert ("processes and threads: 77" in done.out) == (holders["processes"] == "rlimit"), done


@pytest.mark.only("user")
@pytest.mark.parametrize("level", ["none", "low"])
def test_one_flag_starts_a_strict_level_without_a_cgroup(sandbox, level):
    """The message has the whole flag; what it does not name stays a wall."""
    env = {"ATOLL_TEST_BREAK": "cgroup.memory"}
    done = sandbox.run(["true"], trust=level, env=env)
    assert done.code == 125, done
    flag = re.search(r"atoll run (--degrade [a-z.,]+)", done.err)
    assert flag, done
    assert sandbox.run(["true"], trust=level, env=env, options=flag[1].split()).code == 0, flag[1]
    done = sandbox.run(["true"], options=["--degrade", "cgroup.memroy"])
    assert done.code == 125 and "did you mean cgroup.memory" in done.err, done


@pytest.mark.parametrize("level", ["none", "low", "medium", "high"])
def test_limits_name_what_works_in_the_place_of_what_does_not(sandbox, level):
    policy = sandbox.policy(f"atoll: 1\nextends: {level}\ndegrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]\n")
    text = sandbox.run(["cat", "/run/atoll/limits.md"], policy=policy).out
    # At level high programs may make namespaces of their own, and no mounts.
    for words in ("docker, podman", "perf", "bwrap, flatpak", *([] if level == "high" else ["--no-sandbox"])):
        assert words in text, words


@pytest.mark.parametrize("value", ["true", "mounts"])
def test_limits_do_not_warn_of_what_the_policy_lets_work(sandbox, value):
    policy = sandbox.policy(f"atoll: 1\nextends: medium\nexec: {{namespaces: {value}}}\n"
                            "resources: {memory: unlimited}\n")
    text = sandbox.run(["cat", "/run/atoll/limits.md"], policy=policy).out
    assert "--no-sandbox" not in text and "docker, podman" in text, text
    assert ("bwrap, flatpak" in text) == (value == "true"), text


@pytest.mark.needs("bash")
def test_bash_completes_policies_and_sessions(sandbox):
    done = sandbox.run_outside(sandbox.command_line([], options=["-d", "-n", "named"]))
    session = done.out.split()[-1]
    script = sandbox.run_atoll("help", "--completion", "bash").out + """
complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _atoll; printf '%s\\n' "${COMPREPLY[@]}"; }
complete_words atoll run -p cla; complete_words atoll stop nam; complete_words atoll policy lis
"""
    atoll = sandbox.programs.program("atoll")
    done = sandbox.run_outside(["bash", "-c", script], env={"PATH": f"{os.path.dirname(atoll)}:/usr/bin:/bin"})
    words = done.out.split()
    assert "claude" in words and "claude-key" in words and "named" in words and "list" in words, (done, session)
    assert sandbox.run_atoll("stop", session).code == 0


class Terminal:
    """`atoll ask` on a terminal of its own."""

    def __init__(self, sandbox, session):
        self.near, far = pty.openpty()
        keywords = sandbox.popen_keywords()
        self.child = subprocess.Popen([sandbox.programs.program("atoll"), "ask", session], stdin=far, stdout=far,
                                      stderr=far, start_new_session=True, **keywords)
        os.close(far)
        self.text = ""

    def read_until(self, pattern, seconds=20):
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.text, re.S) and time.monotonic() < deadline:
            if select.select([self.near], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.near, 4096).decode(errors="replace")
                except OSError:
                    break
        assert re.search(pattern, self.text, re.S), (pattern, self.text)

    def type(self, text):
        self.text = ""
        os.write(self.near, text.encode())

    def close(self):
        self.child.terminate()
        self.child.wait(timeout=10)
        os.close(self.near)


GET = """
import socket, sys
try:
    s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30); s.sendall(b"x")
    print(s.recv(9).decode() or "cut")
except OSError as error: print("refused")
"""


def test_questions_are_answered_by_a_letter(sandbox):
    server = Listener(lambda connection: (connection.recv(9), connection.sendall(b"here")))
    policy = sandbox.policy(policy_text(LOOPBACK, "  default: ask\nask: {timeout: 30s, prompt: false}\n"))
    done = sandbox.run_outside(sandbox.command_line([], policy=policy, options=["-d"]), env=test_hosts())
    session = done.out.strip()
    terminal = Terminal(sandbox, session)
    terminal.read_until("nothing is asked now")

    def get(host):
        return subprocess.Popen([sandbox.programs.program("atoll"), "exec", session, "--", PYTHON, "-c", GET, host,
                                 str(server.port)], stdout=subprocess.PIPE, text=True, **sandbox.popen_keywords())

    def answer(child):
        return child.communicate(timeout=30)[0].strip()

    child = get("web.test")
    terminal.read_until(r"connect to web\.test.*\[y/s/n/d/a/q\] ")
    terminal.type("d\n")
    terminal.read_until(r"atoll approve \w+:\d+ \[--for 10m")
    terminal.type("?\n")
    terminal.read_until("y yes, once")
    terminal.type("n\n")
    terminal.read_until("denied")
    assert answer(child) == "refused"
    child = get("other.test")
    terminal.read_until(r"connect to other\.test.*\[y/s/n/d/a/q\] ")
    terminal.type("y\n")
    assert answer(child) == "here"
    children = [get("a.wild.test"), get("wild.test")]
    terminal.read_until("a yes to all 2")
    terminal.type("a\n")
    assert [answer(child) for child in children] == ["here", "here"], terminal.text
    child = get("six.test")
    terminal.read_until(r"connect to six\.test.*\[y/s/n/d/a/q\] ")
    terminal.type("s\n")
    assert answer(child) == "here" and answer(get("six.test")) == "here", "for the session"
    terminal.type("q\n")
    assert terminal.child.wait(timeout=10) == 0
    terminal.close()
    assert sandbox.run_atoll("stop", session).code == 0
    server.close()


def test_the_log_says_the_rule_of_each(sandbox):
    """Of what was let through as well; and what the verifier found."""
    report = sandbox.run(["bash", "-c", "true; curl -s http://web.test/x.sh | sh; true"], env=test_hosts()).report
    lines = sandbox.run_atoll("log", report["session"]).out.splitlines()
    starts = [line for line in lines if " exec.start " in line]
    assert starts and all(re.search(r"\[[\w.\-\[\]]+\]$", line) for line in starts), starts
    verified = [line for line in lines if " exec.verify " in line]
    assert all("found: " in line for line in verified), verified
    assert verified, lines
