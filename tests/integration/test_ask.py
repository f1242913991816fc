# SPDX-License-Identifier: Apache-2.0
"""`atoll ask`, `approve`, `deny` and `grants`: what a policy asks a person about, with the network as what is asked."""
import json
import os
import select
import signal
import subprocess
import time

import pytest

from atoll import someone_listens, wait_until
from control import Link
from gate import LOOPBACK, Listener, Web, policy_text, test_hosts
from person import Person, find_questions

PYTHON = "/usr/bin/python3"
GET = """
import socket, sys
for word in sys.argv[1:]:
    host, port = word.rsplit(":", 1)
    try:
        s = socket.create_connection((host, int(port)), timeout=20); s.sendall(b"x")
        print(s.recv(10).decode() or "cut", flush=True)
    except OSError as error: print(error.__class__.__name__, flush=True)
"""


@pytest.fixture
def server():
    listener = Listener(lambda connection: (connection.recv(10), connection.sendall(b"answer"), connection.recv(10))[0])
    yield listener
    listener.close()


class Session:
    """A sandbox in the background whose network is asked about, and people who answer."""

    def __init__(self, box, more="", ask="{timeout: 20s}", rules=()):
        self.box, self.followers = box, []
        policy = box.policy(policy_text([*rules, *LOOPBACK], f"  default: ask\n{more}ask: {ask}\n"))
        done = box.run_outside(box.command_line([], policy=policy, options=["-d"]), env=test_hosts())
        assert done.code == 0, done
        self.id = done.out.strip()

    def popen(self, *targets):
        words = [str(self.box.programs.atoll), "exec", self.id, "--", PYTHON, "-c", GET, *targets]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                 start_new_session=True, **self.box.popen_keywords())
        self.box.children.append(child)
        return child

    def stop(self):
        self.box.run_atoll("stop", "-t", "0s", self.id)

    def get(self, *targets):
        out, err = self.popen(*targets).communicate(timeout=60)
        return out.decode().split() or err

    def follow(self):
        """Somebody who hears: what he is told, one object a line."""
        words = [str(self.box.programs.atoll), "ask", self.id, "--follow", "--json"]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                 start_new_session=True, **self.box.popen_keywords())
        self.box.children.append(child)
        return child

    def questions(self, state=None):
        done = self.box.run_atoll("ask", self.id, "--once", "--json")
        assert done.code == 0, done
        return [entry for entry in json.loads(done.out) if state in (None, entry["state"])]

    def wait_for(self, subject, state="waiting"):
        return wait_until(lambda: next((q for q in self.questions(state) if q["subject"] == subject), None), 30,
                          f"a question about {subject}")

    def answer(self, verb, question, *options):
        return self.box.run_atoll(verb, f"{self.id}:{question['number']}", *options)

    def grants(self):
        return json.loads(self.box.run_atoll("grants", self.id, "--json").out)

    def records(self, kind):
        entries = map(json.loads, self.box.audit_log(self.id).read_text().splitlines())
        return [entry for entry in entries if entry["type"] == kind]

    def heard(self):
        """Waits until the box knows that somebody follows."""
        follower = self.follow()
        self.followers.append(follower)
        wait_until(lambda: self.status()["is_followed"])
        return follower

    def status(self):
        with Link(self.box, self.id) as link:
            return link.status()


@pytest.fixture
def session_of(sandbox):
    """Makes sessions that end with the test."""
    made = []

    def make(*words, **keywords):
        made.append(Session(sandbox, *words, **keywords))
        return made[-1]

    yield make
    for session in made:
        session.stop()


def test_a_terminal_with_nothing_to_show_says_what_it_waits_for(sandbox, session_of, server):
    session = session_of()
    child = sandbox.spawn([sandbox.programs.atoll, "ask"], outside=True)
    child.expect_exact(b"nothing is asked now (1 sandbox); waiting for questions")
    session.popen(f"web.test:{server.port}")
    child.expect_exact(b"connect to web.test")
    question = session.wait_for("web.test")
    assert session.answer("deny", question).code == 0
    child.expect_exact(b"was denied")
    child.sendintr()
    assert b"nothing is asked" not in child.before
    done = sandbox.run_atoll("ask", "--once")
    assert done.out == "" and done.err == "", done


def test_nobody_hears_so_it_is_refused_listed_and_grantable(session_of, server):
    session, target = session_of(), f"web.test:{server.port}"
    assert session.get(target) == ["gaierror"]
    question = session.wait_for("web.test", "listed")
    assert question["rule"] == "network.default" and question["port"] is None and question["kind"] == "net.connect"
    done = session.answer("approve", question)
    assert done.code == 0 and "for the next try" in done.out, done
    assert session.get(target, target) == ["answer", "gaierror"]
    assert [entry["verdict"] for entry in session.records("ask.answer")] == ["allow"]
    assert [entry["subject"] for entry in session.records("ask.open")].count("web.test") >= 1
    wait_until(lambda: len(server.heard) == 1)


def test_who_follows_all_sandboxes_hears_the_first_question_of_a_new_one(sandbox, server):
    """A command that begins with a question would be over before anybody found its sandbox."""
    policy = sandbox.policy(policy_text(LOOPBACK, "  default: ask\nask: {timeout: 20s}\n"))
    command = sandbox.command_line([PYTHON, "-c", GET, f"web.test:{server.port}"], policy=policy)
    alone = sandbox.run_outside(command, env=test_hosts())
    assert alone.out == "gaierror\n" and "keep `atoll ask` open" in alone.err, alone
    words = [str(sandbox.programs.atoll), "ask", "--follow", "--json"]
    follower = subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True,
                                **sandbox.popen_keywords())
    sandbox.children.append(follower)
    wait_until(lambda: someone_listens(sandbox))
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                             **sandbox.popen_keywords(env=test_hosts()))
    sandbox.children.append(child)
    # A question that nobody is told of must fail here, and not wait for ever.
    assert select.select([follower.stdout], [], [], 60)[0], child.communicate(timeout=60)
    assert json.loads(follower.stdout.readline())["state"] == "waiting"
    while child.poll() is None:
        for question in json.loads(sandbox.run_atoll("ask", "--once", "--json").out):
            sandbox.run_atoll("approve", f"{question['session']}:{question['number']}")
    assert child.communicate()[0] == b"answer\n"


def test_who_follows_all_sandboxes_finds_one_that_did_not_answer_at_first(sandbox, session_of):
    """Its socket's directory tells of no change by then: a sandbox that starts slowly was never heard."""
    session = session_of()
    path = next(sandbox.runtime.rglob(f"{session.id}.sock"))
    away, times = path.with_name("away"), (time.time() - 3600,) * 2
    path.rename(away)
    os.utime(path.parent, times)
    words = [str(sandbox.programs.atoll), "ask", "--follow", "--json"]
    follower = subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True,
                                **sandbox.popen_keywords())
    sandbox.children.append(follower)
    wait_until(lambda: someone_listens(sandbox))
    os.utime(path.parent, times)
    time.sleep(1)
    away.rename(path)
    os.utime(path.parent, times)
    wait_until(lambda: session.status()["is_followed"], 30, "the follower")


def test_a_connection_waits_while_others_go_on(session_of, server):
    session, target = session_of(), f"web.test:{server.port}"
    session.heard()
    waiting = session.popen(target)
    question = session.wait_for("web.test")
    assert question["port"] == server.port and question["program"].startswith("/usr/bin/python3")
    assert question["left_ms"] > 0 and question["waiting"] == 1
    assert session.get(f"127.0.0.1:{server.port}") == ["ConnectionRefusedError"]
    assert not server.heard and waiting.poll() is None
    assert session.answer("approve", question, "--session").code == 0
    assert waiting.communicate(timeout=30)[0].split() == [b"answer"]
    # For the session: nobody is asked again.
    assert session.get(target) == ["answer"]
    assert [(entry["scope"], entry["allows"], entry["used"]) for entry in session.grants()] == [("session", True, 2)]


def test_a_burst_is_one_question_and_once_is_for_those_that_were_shown(session_of, server):
    session, target = session_of(), f"web.test:{server.port}"
    session.heard()
    waiting = [session.popen(target)]
    question = session.wait_for("web.test")
    # More of the same come after it was shown: they are behind it, and no answer to it is about them.
    waiting += [session.popen(target) for _ in range(3)]
    wait_until(lambda: [entry["times"] for entry in find_questions(session.box, session.id)] == [4], 30, "all of them")
    assert [entry["waiting"] for entry in find_questions(session.box, session.id)] == [1]
    assert session.answer("approve", question).code == 0
    wait_until(lambda: sum(child.poll() is not None for child in waiting) == 1, 30, "the one that was shown")
    rest = session.wait_for("web.test")
    assert rest["number"] != question["number"] and rest["hash"] == question["hash"] and rest["waiting"] == 3
    assert len(server.heard) <= 1 and sum(child.poll() is None for child in waiting) == 3
    # The control: those three were shown as one question, and one answer is for them all.
    assert session.answer("approve", rest).code == 0
    assert [child.communicate(timeout=30)[0].split() for child in waiting] == [[b"answer"]] * 4
    # Once: the next one is another question, and nobody else's answer is good for it.
    again = session.popen(target)
    second = session.wait_for("web.test")
    assert second["number"] != question["number"] and second["hash"] == question["hash"]
    stale = session.answer("approve", question)
    assert stale.code == 125 and "answered already: it was allowed" in stale.err
    assert session.answer("deny", second).code == 0
    assert again.communicate(timeout=30)[0].split() == [b"ConnectionResetError"]


def test_a_refusal_is_remembered_by_every_other_way(session_of, server):
    session, target = session_of(), f"web.test:{server.port}"
    session.heard()
    waiting = session.popen(target)
    assert session.answer("deny", session.wait_for("web.test")).code == 0
    assert waiting.communicate(timeout=30)[0].split() == [b"ConnectionResetError"]
    other = session.box.run_atoll("exec", session.id, "--", "bash", "-c",
                                  f"exec 3<>/dev/tcp/web.test/{server.port} && read -n1 -u3 x || echo refused")
    assert "refused" in other.out and not session.questions()
    assert session.get("web.test:1") == ["ConnectionResetError"]
    assert len(session.records("ask.open")) == 1 and not server.heard
    # Read by the agent, and by the person in the summary.
    denials = session.box.audit_log(session.id).with_name("denials.jsonl").read_text()
    assert "a person said no" in denials and "ask the person" not in denials, denials
    # The control: taken back, it is asked again.
    grant = session.grants()[0]
    assert not grant["allows"] and grant["used"] >= 2
    assert session.box.run_atoll("grants", "revoke", grant["grant"]).code == 0
    again = session.popen(target)
    assert session.answer("approve", session.wait_for("web.test")).code == 0
    assert again.communicate(timeout=30)[0].split() == [b"answer"]
    changes = [entry["detail"]["change"] for entry in session.records("policy.change")]
    assert changes == ["revoke"]


def test_two_people_answer_at_once(session_of, server):
    session = session_of()
    session.heard()
    waiting = session.popen(f"web.test:{server.port}")
    question = session.wait_for("web.test")
    words = [[str(session.box.programs.atoll), verb, question["question"]] for verb in ("approve", "deny") * 2]
    people = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **session.box.popen_keywords())
              for line in words]
    codes = [person.communicate(timeout=30) and person.returncode for person in people]
    assert sorted(codes) == [0, 125, 125, 125]
    first = session.records("ask.answer")
    assert len(first) == 1
    got = waiting.communicate(timeout=30)[0].split()
    assert got == ([b"answer"] if first[0]["verdict"] == "allow" else [b"ConnectionResetError"])


def test_silence_refuses_and_a_late_answer_is_for_the_next_time(session_of, server):
    session, target = session_of(ask="{timeout: 1s}"), f"web.test:{server.port}"
    follower = session.heard()
    assert session.get(target) == ["ConnectionResetError"]
    question = session.wait_for("web.test", "listed")
    assert [entry["detail"]["by"] for entry in session.records("ask.answer")] == ["timeout"]
    assert session.answer("approve", question).code == 0
    assert session.get(target) == ["answer"]
    follower.terminate()
    told = [json.loads(line) for line in follower.communicate(timeout=30)[0].splitlines()]
    assert [entry["state"] for entry in told] == ["waiting", "listed", "answered"]


def test_nothing_is_left_when_the_supervisor_is_killed_while_one_waits(session_of, server):
    session = session_of()
    session.heard()
    waiting = session.popen(f"web.test:{server.port}")
    session.wait_for("web.test")
    listed = json.loads(session.box.run_atoll("ps", "--json").out)
    os.kill(next(entry["pid"] for entry in listed if entry["session"] == session.id), signal.SIGKILL)
    assert waiting.wait(timeout=30) != 0
    assert session.followers[0].wait(timeout=30) == 0
    assert session.box.run_atoll("approve", f"{session.id}:1").code == 125
    assert not server.heard


def test_for_ever_is_a_line_in_the_users_own_policy(session_of, server):
    session, target = session_of(), f"web.test:{server.port}"
    path = session.box.base / "config" / "test.yaml"
    before = path.read_text()
    assert session.get(target) == ["gaierror"]
    done = session.answer("approve", session.wait_for("web.test", "listed"), "--forever")
    assert done.code == 0 and str(path) in done.out, done
    added = set(path.read_text().splitlines()) - set(before.splitlines())
    assert len(added) == 1 and '- {host: "web.test"}  # allowed 20' in added.pop()
    assert path.stat().st_uid == session.box.identity.uid
    assert session.get(target, target) == ["answer", "answer"]
    # And in every later one.
    later = session.box.run([PYTHON, "-c", GET, target], policy=path, env=test_hosts())
    assert later.out.split() == ["answer"]


def test_for_ever_of_many_at_once_loses_nobodys_line(session_of, server):
    """Each of them makes the file new; what one has written, the next must not have taken away."""
    session, names = session_of(), [f"n{number}.test" for number in range(6)]
    path = session.box.base / "config" / "test.yaml"
    session.get(*(f"{name}:{server.port}" for name in names))
    wait_until(lambda: len(session.questions("listed")) >= len(names), 30, "the questions")
    answers = [subprocess.Popen([str(session.box.programs.atoll), "approve", f"{session.id}:{question['number']}",
                                 "--forever"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                **session.box.popen_keywords()) for question in session.questions("listed")]
    said = [answer.communicate(timeout=60)[0] for answer in answers]
    assert [answer.returncode for answer in answers] == [0] * len(names), said
    assert all(f'host: "{name}"' in path.read_text() for name in names), path.read_text()


def test_for_ever_of_a_name_like_a_pattern_is_that_name(sandbox):
    """What a person allows is the file that they saw; what the agent called it must not make it all of its kind."""
    path = sandbox.policy("atoll: 1\nextends: medium\nexec:\n  default: ask\n  allow:\n    - /bin/bash\n")
    for name in ("*", "other"):
        with open(sandbox.copy("/usr/bin/true", sandbox.project / "tools" / name), "a") as file:
            file.write(name)
    # Whatever the program is told that its name is: that is in the caller's hands.
    run = ["bash", "-c", "(exec -a 'tools/*' tools/other) && echo other; 'tools/*' && echo star"]
    session = sandbox.run_outside(sandbox.command_line([], policy=path, options=["-d"])).out.strip()
    for words in (["bash", "-c", "'tools/*'; true"], run):
        assert sandbox.run_atoll("exec", session, "--", *words).out == ""
    asked = {entry["subject"]: entry["number"]
             for entry in json.loads(sandbox.run_atoll("ask", session, "--once", "--json").out)}
    pattern = next(number for subject, number in asked.items() if subject.endswith("/tools/*"))
    done = sandbox.run_atoll("approve", f"{session}:{pattern}", "--forever")
    # The control: the other one has a line of its own when it is allowed, and only then runs.
    assert "other" not in sandbox.run(run, policy=path).out, (done, path.read_text())
    other = next(number for subject, number in asked.items() if subject.endswith("/tools/other"))
    assert sandbox.run_atoll("approve", f"{session}:{other}", "--forever").code == 0
    sandbox.run_atoll("stop", "-t", "0s", session)
    assert sandbox.run(run, policy=path).out == "other\n" and done.code != 0, done


@pytest.mark.parametrize("place, rules, why", [
    ("project", "", "file of the project"), ("config", "  deny: [web.test]\n", ""),
    ("config", "  deny: [other.test]\n", None)])
def test_for_ever_is_refused_where_it_has_no_place(sandbox, server, place, rules, why):
    directory = sandbox.project if place == "project" else sandbox.base / "config"
    path = sandbox.write(directory / "own.yaml", f"atoll: 1\nextends: medium\nnetwork:\n  default: ask\n{rules}")
    before = path.read_bytes()
    line = sandbox.command_line([], policy=path, options=["-d"])
    session = sandbox.run_outside(line, env=test_hosts()).out.strip()
    sandbox.run_atoll("exec", session, "--", PYTHON, "-c", GET, f"web.test:{server.port}")
    done = sandbox.run_atoll("approve", f"{session}:1", "--forever")
    sandbox.run_atoll("stop", "-t", "0s", session)
    assert (done.code == 0) == (why is None), done
    assert (path.read_bytes() == before) == (why is not None)
    assert not why or why in done.err


def test_for_ever_names_the_rule_that_would_still_ask(sandbox):
    """No line beside it would change anything, so none is proposed; what is proposed works."""
    sandbox.write(sandbox.project / "data/one", "ONE")
    text = "atoll: 1\nextends: medium\nfiles:\n  ask:\n    - %s\n"
    path = sandbox.policy(text % "data")
    session = sandbox.run_outside(sandbox.command_line([], policy=path, options=["-d"])).out.strip()
    assert "ONE" not in sandbox.run_atoll("exec", session, "--", "cat", "data/one").out
    done = sandbox.run_atoll("approve", f"{session}:1", "--forever")
    sandbox.run_atoll("stop", "-t", "0s", session)
    assert done.code != 0 and str(path) in done.err and "files.ask[0]" in done.err, done
    assert "except" in done.err and "files.read" not in done.err and path.read_text() == text % "data", done
    path.write_text(text % "{path: data, except: [data/one]}")
    assert sandbox.run(["cat", "data/one"], policy=path).out == "ONE"


FETCH = """
import sys, urllib.request, urllib.error
for path in sys.argv[2:]:
    try: print(urllib.request.urlopen(sys.argv[1] + path, timeout=20).status)
    except urllib.error.HTTPError as error: print(error.code)
"""


def test_a_request_is_refused_listed_and_its_next_try_allowed(session_of):
    web = Web()
    rule = f'{{host: web.test, ports: [{web.port}], http: [{{methods: [GET], paths: ["/free/**"]}}]}}'
    session = session_of(rules=[rule])

    def fetch(*paths):
        words = [PYTHON, "-c", FETCH, f"http://web.test:{web.port}", *paths]
        return session.box.run_atoll("exec", session.id, "--", *words).out.split()

    assert fetch("/free/a", "/paid/*?x=1", "/free/b") == ["200", "403", "200"]
    question = session.wait_for("web.test", "listed")
    assert (question["kind"], question["method"], question["path"]) == ("http.request", "GET", "/paid/*")
    assert session.answer("approve", question, "--uses", "2").code == 0
    # The star that the agent wrote is a star; and it was two times.
    assert fetch("/paid/b", "/paid/*", "/paid/*?y=2", "/paid/*") == ["403", "200", "200", "403"]
    assert [path for _, path in web.requests] == ["/free/a", "/free/b", "/paid/*", "/paid/*?y=2"]

    def judged():
        return [(entry["verdict"], entry["rule"]) for entry in session.records("net.http")
                if entry["detail"]["path"] == "/paid/*"]

    wait_until(lambda: len(judged()) == 4)
    # A request is written down when its answer is over, which its client need not wait for.
    assert sorted(judged()) == [*[("allow", "ask.grant[1]")] * 2, *[("deny", "network.default")] * 2]
    web.close()


def start_piped(sandbox, server, target, ask="{timeout: 20s}", script="{get}"):
    """A run whose streams are no terminal, started from one."""
    policy = sandbox.policy(policy_text(LOOPBACK, f"  default: ask\nask: {ask}\n"))
    line = sandbox.command_line([PYTHON, "-c", GET, target], policy=policy)
    words = " ".join(f"'{word}'" for word in line[:-2]) + f" \"$GET\" {target} </dev/null 2>&1 | cat; echo END"
    return sandbox.spawn(["sh", "-c", words], outside=True, env={**test_hosts(), "GET": GET})


@pytest.mark.parametrize("key, answer, got", [("y", b"allowed", b"answer"), ("n", b"denied", b"ConnectionResetError"),
                                              ("s", b"allowed", b"answer")])
def test_a_prompt_where_the_streams_are_no_terminal(sandbox, server, key, answer, got):
    child = start_piped(sandbox, server, f"web.test:{server.port}")
    child.expect_exact(f"connect to web.test, port {server.port}".encode())
    child.expect_exact(b"then Enter: ")
    child.send(f"{key}\n")
    child.expect_exact(answer)
    child.expect_exact(got)
    child.expect_exact(b"END")
    assert bool(server.heard) == (got == b"answer") or wait_until(lambda: server.heard)


@pytest.mark.needs("strace")
def test_who_answers_as_soon_as_the_prompt_stands_there_is_heard(sandbox):
    """However long the box takes from one step of the prompt to the next; what was typed before it answers nothing."""
    policy = sandbox.policy("atoll: 1\nextends: medium\nexec: {ask: ['**/id']}\nask: {timeout: 20s}\n")
    line = " ".join(f"'{word}'" for word in sandbox.command_line(["id", "-u"], policy=policy))
    slow = "strace -qq -o /dev/null -e trace=ioctl -e inject=ioctl:delay_enter=30000"
    child = sandbox.spawn(["sh", "-c", f"{slow} {line} </dev/null 2>&1 | cat; echo END"], outside=True)
    child.send("n\n")
    child.expect_exact(b"then Enter: ")
    child.send("y\n")
    child.expect_exact(b"allowed")
    child.expect_exact(f"{sandbox.identity.uid}\r\n".encode())
    child.expect_exact(b"END")


def test_no_prompt_where_the_agent_has_the_screen(sandbox, server):
    policy = sandbox.policy(policy_text(LOOPBACK, "  default: ask\n"))
    child = sandbox.spawn([PYTHON, "-c", GET, f"web.test:{server.port}"], policy=policy, env=test_hosts())
    child.expect_exact(b"gaierror")
    assert b"atoll asks" not in child.before and b"\x07" in child.before


def test_what_looks_like_a_prompt_takes_no_answer(sandbox, server):
    """The agent draws one into the pipe that leads to the screen: what is typed then answers nothing."""
    policy = sandbox.policy(policy_text(LOOPBACK, "  default: ask\nask: {prompt: false, timeout: 2s}\n"))
    script = f"printf 'atoll asks: then Enter: '; sleep 1; {PYTHON} -c \"$GET\" web.test:{server.port}"
    line = sandbox.command_line(["bash", "-c", script], policy=policy, options=["-e", f"GET={GET}"])
    child = sandbox.spawn(["sh", "-c", '"$@" </dev/null 2>&1 | cat; echo END', "sh", *line], outside=True,
                          env=test_hosts())
    child.expect_exact(b"then Enter: ")
    child.send("y\n")
    child.expect_exact(b"gaierror")
    child.expect_exact(b"END")
    assert not server.heard


def test_a_program_waits_for_a_person(sandbox):
    """It starts with these words once somebody said so, not with others, and its copy is asked about as well."""
    policy = sandbox.policy("atoll: 1\nextends: medium\nexec: {ask: ['**/id']}\nask: {timeout: 20s}\n")
    done = sandbox.run_outside(sandbox.command_line([], policy=policy, options=["-d"]))
    assert done.code == 0, done
    session = done.out.strip()

    def run(*words):
        return sandbox.run_atoll("exec", session, "--", *words)

    def question():
        listed = json.loads(sandbox.run_atoll("ask", session, "--once", "--json").out)
        return listed[-1]

    assert run("id", "-u").code == 126, "nobody could be asked"
    assert question()["kind"] == "exec" and question()["argv"][1:] == ["-u"], question()
    assert sandbox.run_atoll("approve", f"{session}:{question()['number']}", "--session").code == 0
    assert run("id", "-u").code == 0 and run("id", "-g").code == 126
    assert run("sh", "-c", "cp /usr/bin/id /tmp/x; /tmp/x -u").code == 126

    # Somebody hears: the caller stands still until the answer, and others do not. (Not a command itself: init waits
    # until its program is there.)
    words = [str(sandbox.programs.atoll)]
    keywords = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True,
                    **sandbox.popen_keywords())
    follower = subprocess.Popen([*words, "ask", session, "--follow", "--json"], **keywords)
    follower.stdout.readline()
    waiting = subprocess.Popen([*words, "exec", session, "--", "sh", "-c", "id -G; exit $?"], **keywords)
    sandbox.children += [follower, waiting]
    asked = wait_until(lambda: question()["state"] == "waiting" and question(), 30, "a question")
    assert asked["argv"][1:] == ["-G"] and run("true").code == 0 and waiting.poll() is None, asked
    assert sandbox.run_atoll("approve", f"{session}:{asked['number']}").code == 0
    assert waiting.wait(30) == 0
    sandbox.run_atoll("stop", "-t", "0s", session)


def test_what_was_allowed_once_and_used_is_no_grant_any_more(sandbox):
    policy = sandbox.policy("atoll: 1\nextends: medium\nexec: {ask: [{program: /usr/bin/who}]}\n")
    session = sandbox.run_outside(sandbox.command_line([], policy=policy, options=["-d"])).out.strip()
    run = lambda: sandbox.run_atoll("exec", session, "--", "/usr/bin/who").code
    grants = lambda: json.loads(sandbox.run_atoll("grants", "--json", session).out)
    assert run() == 126 and sandbox.run_atoll("approve", f"{session}:1").code == 0
    assert [(entry["scope"], entry["uses_left"]) for entry in grants()] == [("once", 1)]
    assert run() == 0 and grants() == []
    assert run() == 126
    sandbox.run_atoll("stop", "-t", "0s", session)


def test_a_question_of_a_program_that_died_waits_no_longer(sandbox):
    policy = sandbox.policy("atoll: 1\nextends: medium\nexec: {ask: ['**/id']}\nask: {timeout: 60s}\n")
    done = sandbox.run_outside(sandbox.command_line([], policy=policy, options=["-d"]))
    assert done.code == 0, done
    session = done.out.strip()
    keywords = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, **sandbox.popen_keywords())
    atoll = str(sandbox.programs.atoll)
    follower = subprocess.Popen([atoll, "ask", session, "--follow", "--json"], stdin=subprocess.DEVNULL, **keywords)
    sandbox.children.append(follower)

    def states():
        return [entry["state"] for entry in json.loads(sandbox.run_atoll("ask", session, "--once", "--json").out)]

    words = [atoll, "exec", session, "--", "sh", "-c",
             "(id -G; exit 0) & child=$!; read line; pkill -9 -P $child; kill -9 $child; echo killed; read line"]
    caller = subprocess.Popen(words, stdin=subprocess.PIPE, **keywords)
    sandbox.children.append(caller)
    wait_until(lambda: states() == ["waiting"], 30, "the question")
    caller.stdin.write(b"go\n")
    caller.stdin.flush()
    assert caller.stdout.readline() == b"killed\n"
    wait_until(lambda: states() == ["listed"], 30, "the end of the question")
    caller.stdin.close()
    sandbox.run_atoll("stop", "-t", "0s", session)


def test_a_question_of_a_connection_whose_program_died_waits_no_longer(session_of, server):
    session = session_of(ask="{timeout: 60s}")
    session.heard()
    # The control: who has only said all that he says still waits.
    script = ("import socket, time; s = socket.create_connection(('web.test', %d)); s.sendall(b'x');"
              " s.shutdown(socket.SHUT_WR); print(s.recv(10).decode(), flush=True)" % server.port)
    words = [str(session.box.programs.atoll), "exec", session.id, "--", PYTHON, "-c", script]
    half = subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True,
                            **session.box.popen_keywords())
    session.box.children.append(half)
    question = session.wait_for("web.test")
    with pytest.raises(subprocess.TimeoutExpired):
        half.wait(timeout=1.5)
    assert session.answer("approve", question).code == 0
    assert half.communicate(timeout=30)[0] == b"answer\n"
    dying = session.popen(f"web.test:{server.port}")
    second = session.wait_for("web.test")
    assert second["number"] != question["number"]
    session.box.run_atoll("exec", session.id, "--", "sh", "-c", "kill -9 $(pgrep -f create_connection)")
    dying.wait(30)
    wait_until(lambda: not session.questions("waiting"), 30, "the end of the question")
    # It was refused: the log says so, and the sandbox is told.
    refused = [entry for entry in session.records("net.connect") if entry["verdict"] == "deny"]
    assert [(entry["subject"], entry["detail"]["port"]) for entry in refused] == [("web.test", server.port)]
    told = session.box.run_atoll("exec", session.id, "--", "cat", "/run/atoll/denials.jsonl").out
    assert "gave up before anybody answered" in told and f"atoll approve {second['number']}" in told


@pytest.mark.needs("curl")
def test_what_nobody_answered_before_the_end_was_refused(sandbox):
    """Programs wait less long than a person takes, and all is over: log, summary and report have each as a denial."""
    refused = {"net.connect": "unlisted.test", "exec.start": "/usr/bin/id", "file.open": "data/x"}
    sandbox.write(sandbox.project / "data/x", "READ\n")
    policy = sandbox.policy("atoll: 1\nextends: medium\nnetwork: {default: ask}\nfiles: {ask: [data]}\n"
                            "exec: {ask: ['**/id']}\nask: {timeout: 60s}\n")
    report = sandbox.base / "report.json"
    script = ("echo $ATOLL_SESSION; read line; curl -sS -m 2 http://unlisted.test/ & timeout -s KILL 2 id -G & "
              "timeout -s KILL 2 cat data/x; wait; true")
    with subprocess.Popen(sandbox.command_line(["sh", "-c", script], policy=policy, report=report),
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          start_new_session=True, **sandbox.popen_keywords()) as child:
        sandbox.children.append(child)
        with Person(sandbox, child.stdout.readline().decode().strip()) as person:
            child.stdin.write(b"go\n")
            child.stdin.flush()
            wait_until(lambda: len(person.seen) == len(refused), 30, "the questions")
            out, err = child.communicate(timeout=60)
    assert b"READ" not in out and b"denied" in err, (out, err)
    told = json.loads(report.read_text())
    entries = [json.loads(entry) for entry in sandbox.audit_log(told["session"]).read_text().splitlines()]
    assert told["asked"]["unanswered"] == len(refused), told["asked"]
    for kind, subject in refused.items():
        denials = [denial for denial in told["denials"] if subject in denial["subject"]]
        assert len(denials) == 1 and "before anybody answered" in denials[0]["reason"], (kind, told["denials"])
        assert "atoll approve" in denials[0]["hint"], denials
        in_log = [entry["subject"] for entry in entries if entry["type"] == kind and entry.get("verdict") == "deny"]
        assert len(in_log) == 1 and in_log[0].endswith(subject), (kind, in_log)


@pytest.mark.parametrize("words", [
    pytest.param(["curl", "-sS", "-m", "20", "https://unlisted.test/"], marks=pytest.mark.needs("curl")),
    pytest.param(["npm", "view", "left-pad", "--registry=https://unlisted.test/", "--fetch-retries=0"],
                 marks=pytest.mark.needs("npm"))])
def test_the_default_level_asks_and_does_not_hold_up_who_runs_alone(sandbox, words):
    """Of a host that no rule lists, nobody can be asked: it fails as it does where the policy denies, at once."""
    sandbox.write(sandbox.base / "config/atoll/policies/strict.yaml",
                  "atoll: 1\nextends: medium\nnetwork: {default: deny}\n")
    took, done = {}, {}
    for name in ("strict", "medium"):
        begun = time.monotonic()
        done[name] = sandbox.run_outside(sandbox.command_line(words, options=["-p", name]), env=test_hosts())
        took[name] = time.monotonic() - begun
        assert done[name].code != 0, done
    assert took["medium"] < took["strict"] + 2, took
    assert done["medium"].code == done["strict"].code, done
    shown = json.loads(sandbox.run_atoll("policy", "show", "--json", "medium").out)
    assert shown["network"]["default"] == "ask"
    assert "atoll ask" in done["medium"].err and "policy" in done["medium"].err, done
