# SPDX-License-Identifier: Apache-2.0
"""What the agent's side of asking does: /run/atoll/ask.sock, atoll-request, and files that come into the view of what
runs already."""
import base64
import fcntl
import hashlib
import json
import os
import subprocess
import time

import pytest

from atoll import wait_until
from gate import LOOPBACK, Listener, Web, policy_text, test_hosts
from person import ONCE, SESSION, TIME, USES, Person

CLIENT = "/run/atoll/bin/atoll-request"
PYTHON = "/usr/bin/python3"
LEVEL = "atoll: 1\nextends: medium\n"

# An agent: lines of JSON from its standard input to the socket, answers back; a line that begins with a blank is
# evaluated.
AGENT = """
import json, os, socket, sys
def connect():
    s = socket.socket(socket.AF_UNIX); s.connect("/run/atoll/ask.sock"); return s, s.makefile("rw")
s, f = connect()
for line in sys.stdin:
    if line.startswith(" "):
        try: print(json.dumps(eval(line.strip())), flush=True)
        except OSError as error: print(json.dumps(error.__class__.__name__), flush=True)
        continue
    f.write(line); f.flush()
    while True:
        answer = json.loads(f.readline())
        print(json.dumps(answer), flush=True)
        if answer["verdict"] != "waiting": break
"""


class Session:
    """A sandbox in the background and one agent in it."""

    def __init__(self, box, policy=LEVEL, env=None):
        self.box = box
        done = box.run_outside(box.command_line([], policy=box.policy(policy), options=["-d"]), env=env)
        assert done.code == 0, done
        self.id = done.out.strip()
        self.agent = None

    def start(self):
        words = [str(self.box.programs.atoll), "exec", self.id, "--", PYTHON, "-c", AGENT]
        self.agent = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      start_new_session=True, **self.box.popen_keywords())
        self.box.children.append(self.agent)
        assert self.ask(status=True)["verdict"] == "status"
        return self

    def say(self, line):
        self.agent.stdin.write(line + "\n")
        self.agent.stdin.flush()
        return json.loads(self.agent.stdout.readline())

    def ask(self, **request):
        return self.say(json.dumps(request))

    def settle(self, **request):
        """The last answer."""
        answer = self.ask(**request)
        return self.hear() if answer["verdict"] == "waiting" else answer

    def do(self, expression):
        return self.say(" " + expression)

    def hear(self):
        return json.loads(self.agent.stdout.readline())

    def exec(self, *words, **keywords):
        return self.box.run_atoll("exec", self.id, "--", *[str(word) for word in words], **keywords)

    def records(self, kind):
        entries = map(json.loads, self.box.audit_log(self.id).read_text().splitlines())
        return [entry for entry in entries if entry["type"] == kind]

    def stop(self):
        self.box.run_atoll("stop", self.id)


@pytest.fixture
def session(sandbox):
    running = []

    def start(*words, **keywords):
        running.append(Session(sandbox, *words, **keywords))
        return running[-1]
    yield start
    for one in running:
        one.stop()


def read(path):
    return f"open({str(path)!r}).read()"


def test_path_is_there_at_once_when_a_person_allows_it(sandbox, session):
    data = sandbox.home / "data"
    sandbox.write(data / "file", "granted")
    sandbox.write(data / "below/deep", "as well")
    inside = session().start()
    assert inside.do(read(data / "file")) == "FileNotFoundError"
    with Person(sandbox, inside.id, lambda question: (True, SESSION, 0)) as person:
        waits = inside.ask(want="file.read", subject=str(data), reason="for the test\x1b[2J")
        assert waits["verdict"] == "waiting" and waits["number"] == 1, waits
        allowed = inside.hear()
        assert allowed["verdict"] == "allowed", allowed
        # In the process that runs, and in the next one.
        assert inside.do(read(data / "file")) == "granted"
        assert inside.do(read(data / "below/deep")) == "as well"
        assert inside.do(f"open({str(data / 'new')!r}, 'w')") == "OSError"
        assert inside.exec("cat", data / "file").out == "granted"
        # Again: without a question. For writing: with one.
        assert inside.ask(want="file.read", subject=str(data / "below"))["verdict"] == "allowed"
        question = person.seen[1]
        assert question["subject"] == str(data) and question["words"] == "for the test\x1b[2J"
        assert question["flags"] == 1 | 8  # and all below it; it lies outside of the view
        assert inside.do(f"os.getcwd() and os.listdir({str(data)!r}).sort()") is None
        held = inside.do(f"globals().update(held=open({str(data / 'file')!r}))")
        assert held is None
        assert person.revoke(1) == 0
        assert inside.do(read(data / "file")) == "FileNotFoundError"
        assert inside.do("held.read()") == "granted"
    assert [entry["subject"] for entry in inside.records("ask.open")] == [str(data)]
    assert not (data / "new").exists()


def test_what_is_granted_for_writing_reaches_the_host_and_ends_in_time(sandbox, session):
    data = sandbox.make_directory(sandbox.home / "data")
    sandbox.write(data / "old", "1")
    inside = session().start()
    with Person(sandbox, inside.id, lambda question: (True, TIME, 700)):
        assert inside.settle(want="file.write", subject=str(data))["verdict"] == "allowed"
        assert inside.do(f"open({str(data / 'new')!r}, 'w').write('2')") == 1
        assert (data / "new").read_text() == "2"
        assert os.stat(data / "new").st_uid == sandbox.identity.uid
        wait_until(lambda: inside.do(f"os.path.exists({str(data / 'old')!r})") is False, 30, "the end of the grant")


def test_a_file_alone_and_one_outside_of_the_home(sandbox, session):
    outside = sandbox.base / "elsewhere"
    sandbox.write(outside / "one", "1")
    sandbox.write(outside / "two", "2")
    inside = session().start()
    with Person(sandbox, inside.id, lambda question: (True, ONCE, 0)):
        assert inside.settle(want="file.read", subject=str(outside / "one"))["verdict"] == "allowed"
        assert inside.do(read(outside / "one")) == "1"
        assert inside.do(read(outside / "two")) == "FileNotFoundError"
        grants = json.loads(sandbox.run_atoll("grants", inside.id, "--json").out)
        assert [grant["subject"] for grant in grants] == [str(outside / "one")], grants
        # It was a file: nothing else comes with it. Once, where nobody counts, is for a while, and listed as that.
        grant = grants[0]
        assert grant["view"] and not grant["below"] and grant["scope"] == "time" and grant["left_ms"] <= 600000, grant
        # Where nothing private lies above, the sandbox's Landlock rules let no file be written any more.
        refused = inside.ask(want="file.write", subject=str(outside / "two"))
        assert refused["verdict"] == "denied" and "files.write" in refused["hint"], refused


@pytest.mark.parametrize("depth", ["writes", "all"])
def test_where_writes_are_mediated_they_can_be_granted_anywhere(sandbox, session, depth):
    outside = sandbox.base / "elsewhere"
    for name in ("tree/old", "beside", "read/file"):
        sandbox.write(outside / name, name)
    inside = session(LEVEL + f"audit: {{files: {depth}}}\n").start()
    with Person(sandbox, inside.id, lambda question: (True, SESSION, 0)):
        # The control: what was not granted for writing is not written, and what was not granted is not there.
        assert inside.settle(want="file.read", subject=str(outside / "read"))["verdict"] == "allowed"
        assert inside.do(read(outside / "read/file")) == "read/file"
        assert inside.do(f"open({str(outside / 'read/file')!r}, 'w')") in ("OSError", "PermissionError")
        assert inside.settle(want="file.write", subject=str(outside / "tree"))["verdict"] == "allowed"
        tree = outside / "tree"
        assert inside.do(f"open({str(tree / 'new')!r}, 'w').write('12')") == 2
        assert inside.do(f"os.mkdir({str(tree / 'made')!r})") is None
        assert inside.do(f"os.rename({str(tree / 'old')!r}, {str(tree / 'made/moved')!r})") is None
        assert inside.do(f"os.truncate({str(tree / 'new')!r}, 1)") is None
        assert inside.do(f"open({str(outside / 'beside')!r}, 'w')") in ("FileNotFoundError", "PermissionError",
                                                                     "OSError")
    assert (tree / "new").read_text() == "1" and (tree / "made/moved").read_text() == "tree/old"
    assert (tree / "new").stat().st_uid == sandbox.identity.uid
    assert (outside / "beside").read_text() == "beside" and (outside / "read/file").read_text() == "read/file"


@pytest.mark.parametrize("scope", [(ONCE, 0), (USES, 3)])
def test_what_was_brought_in_for_once_is_listed_and_can_be_taken_back(sandbox, session, scope):
    data = sandbox.home / "data"
    sandbox.write(data / "file", "granted")
    sandbox.write(data / "below/deep", "as well")
    inside = session().start()
    with Person(sandbox, inside.id, lambda question: (True, *scope)) as person:
        allowed = inside.settle(want="file.read", subject=str(data))
        assert allowed["verdict"] == "allowed" and "stays in view for" in allowed["hint"], allowed
        assert person.seen[1]["flags"] == 1 | 8  # and all below it; it lies outside of the view
        assert inside.do(read(data / "below/deep")) == "as well"
        grants = json.loads(sandbox.run_atoll("grants", inside.id, "--json").out)
        view = [grant for grant in grants if grant["view"]]
        assert len(view) == 1 and view[0]["below"] and view[0]["scope"] == "time", grants
        assert 0 < view[0]["left_ms"] <= 600000
        assert "have in view, to read" in sandbox.run_atoll("grants", inside.id).out
        assert sandbox.run_atoll("grants", "revoke", view[0]["grant"]).code == 0
        assert inside.do(read(data / "file")) == "FileNotFoundError"
        assert not inside.do(f"os.path.exists({str(data)!r})")
        # Asked about anew, or once more of so many times.
        assert inside.settle(want="file.read", subject=str(data))["verdict"] == "allowed"
        assert len(person.seen) == (2 if scope[0] == ONCE else 1)
        assert inside.do(read(data / "file")) == "granted"
    assert any(entry["detail"].get("view") for entry in inside.records("policy.change"))


def test_more_paths_than_are_remembered(sandbox, session):
    """What somebody waits for is not forgotten for what is asked later: it comes in, and only as what was shown."""
    first = sandbox.write(sandbox.home / "first", "first")
    for number in range(140):
        sandbox.write(sandbox.home / f"many/{number}", "x")
    inside = session(LEVEL + "ask: {timeout: 60s}\n").start()
    with Person(sandbox, inside.id) as person:
        assert inside.ask(want="file.read", subject=str(first))["verdict"] == "waiting"
        flood = f"""
import json, socket, time
s = socket.socket(socket.AF_UNIX); s.connect("/run/atoll/ask.sock"); f = s.makefile("rw")
def explain(number):
    wanted = dict(want="file.read", subject=f"{sandbox.home}/many/{{number}}")
    f.write(json.dumps(dict(explain=wanted)) + chr(10)); f.flush()
    return json.loads(f.readline())["verdict"]
for number in range(140):
    while explain(number) == "unanswered": time.sleep(0.3)
"""
        done = inside.exec(PYTHON, "-c", flood)
        assert done.code == 0, done
        person.say(person.seen[1], True, SESSION)
        assert inside.hear()["verdict"] == "allowed"
        assert inside.do(read(first)) == "first"


def test_a_no_holds_and_silence_is_told_apart(sandbox, session):
    sandbox.write(sandbox.home / "data/file")
    inside = session().start()
    alone = inside.ask(want="file.read", subject=str(sandbox.home / "data"))
    assert alone["verdict"] == "unanswered" and "atoll approve 1" in alone["hint"], alone
    with Person(sandbox, inside.id, lambda question: (False, SESSION, 0)):
        assert inside.settle(want="file.read", subject=str(sandbox.home / "data"))["verdict"] == "denied"
        again = inside.ask(want="file.write", subject=str(sandbox.home / "data"))
        assert again["verdict"] == "denied", again
        assert inside.do(read(sandbox.home / "data/file")) == "FileNotFoundError"


def test_a_host_that_was_asked_for_can_be_connected_to_once(sandbox, session):
    listener = Listener(lambda connection: connection.sendall(b"answer"))
    inside = session(policy_text(LOOPBACK, "  default: ask\n"), env=test_hosts()).start()
    connect = f"__import__('socket').create_connection(('web.test', {listener.port}), timeout=20).recv(10).decode()"
    try:
        with Person(sandbox, inside.id, lambda question: (len(person.seen) == 1, ONCE, 0)) as person:
            answer = inside.settle(want="net.connect", subject=f"Web.Test:{listener.port}", reason="for the test")
            assert answer["verdict"] == "allowed", answer
            assert inside.do(connect) == "answer"
            assert len(person.seen) == 1
            assert inside.do(connect).endswith("Error")
            assert len(person.seen) == 2
    finally:
        listener.close()


@pytest.mark.needs("curl")
def test_a_yes_that_waits_for_the_next_try_is_not_used_up_by_the_request(sandbox):
    """A person allows what was refused; the agent asks, hears of it, and tries again: that is the next try."""
    web = Web()
    fetch = f"curl -sS http://web.test:{web.port}/data"
    ask = f"{CLIENT} net.connect web.test:{web.port} -r why"
    script = f"{fetch}; read x; {ask} && {ask} && {fetch}; {fetch} || echo refused"
    child = sandbox.popen(["sh", "-c", script], policy=sandbox.policy(policy_text(LOOPBACK)), env=test_hosts(),
                          stdin=subprocess.PIPE)
    try:
        wait_until(lambda: json.loads(sandbox.run_atoll("ask", "--once", "--json").out or "[]"), 20, "the question")
        said = sandbox.run_atoll("approve", "1")
        assert said.code == 0 and "the next try" in said.out, said
        out, _ = child.communicate(b"x\n", timeout=60)
    finally:
        web.close()
    lines = out.decode().splitlines()
    assert [line.split()[0] for line in lines] == ["allowed", "allowed", "hello", "refused"], lines


def test_a_refusal_is_in_the_file_before_its_caller_has_heard_of_it(sandbox):
    script = """
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
def last(): return open("/run/atoll/denials.jsonl").read().splitlines()
for call in (165, 155, 246):
    libc.syscall(call, 0, 0, 0, 0, 0)
    print(len(last()), json.loads(last()[-1])["kind"])
"""
    done = sandbox.run([PYTHON, "-c", script], policy=sandbox.policy(LEVEL))
    lines = [line.split() for line in done.out.splitlines()]
    assert lines == [["1", "syscall"], ["2", "syscall"], ["3", "syscall"]], done


def test_what_is_refused_before_anybody_is_asked(sandbox, session):
    sandbox.write(sandbox.home / ".ssh/id", "key")
    link = sandbox.home / "innocent"
    link.symlink_to(sandbox.home / ".ssh")
    inside = session(LEVEL + f"files:\n  mask: [{sandbox.home}/.ssh]\n").start()
    with Person(sandbox, inside.id, lambda question: (True, SESSION, 0)) as person:
        state = sandbox.state / "atoll"
        for subject in ("/", sandbox.home, sandbox.home.parent, sandbox.home / ".ssh", sandbox.home / ".ssh/id", link,
                        state, state / "sessions", "/proc/sys/kernel", "/sys", "/dev/mem", "/run/atoll",
                        sandbox.project.parent):
            for kind in ("file.read", "file.write"):
                answer = inside.ask(want=kind, subject=str(subject))
                # What every sandbox has of its own is no permission to anything of the host's.
                if answer["rule"] == "builtin.jail":
                    continue
                assert answer["verdict"] == "denied", (kind, subject, answer)
        for subject in (f"{sandbox.home}/../home/data", f"{sandbox.home}/./x", "relative", f"{sandbox.home}//x",
                        ""):
            answer = inside.ask(want="file.read", subject=subject)
            assert answer["verdict"] in ("invalid", "denied"), (subject, answer)
            # What is no request at all is the last that a connection hears.
            assert inside.do("globals().update(zip('sf', connect()))") is None
        assert not person.seen
    assert inside.do(read(sandbox.home / ".ssh/id")) == "FileNotFoundError"


def test_masks_below_hold_in_what_is_granted(sandbox, session):
    data = sandbox.home / "data"
    for name in ("secret/key", "plain", "file.key"):
        sandbox.write(data / name, name)
    inside = session(LEVEL + f"files:\n  mask: [{data}/secret, {data}/file.key]\n").start()
    with Person(sandbox, inside.id, lambda question: (True, SESSION, 0)):
        assert inside.settle(want="file.read", subject=str(data))["verdict"] == "allowed"
        assert inside.do(read(data / "plain")) == "plain"
        assert inside.do(read(data / "secret/key")) == "PermissionError"
        assert inside.do(read(data / "file.key")) == "PermissionError"
        assert inside.do(f"os.chmod({str(data / 'file.key')!r}, 0o600)") == "OSError"
    assert (data / "secret/key").read_text() == "secret/key"


def test_only_the_object_that_was_shown_comes_in(sandbox, session):
    """Between the question and the answer the path leads elsewhere: by a link, and by another directory."""
    shown, other = sandbox.home / "shown", sandbox.home / "other"
    sandbox.write(shown / "file", "shown")
    sandbox.write(other / "file", "other")
    inside = session().start()

    def swap_for_link(question):
        shown.rename(sandbox.home / "kept")
        shown.symlink_to(other)
        return True, SESSION, 0

    def swap_for_directory(question):
        shown.unlink()
        (sandbox.home / "kept").rename(shown)
        other.rename(sandbox.home / "was-other")
        sandbox.make_directory(other)
        return True, SESSION, 0
    with Person(sandbox, inside.id, swap_for_link) as person:
        refused = inside.settle(want="file.read", subject=str(shown))
        assert refused["verdict"] == "denied" and "link" in refused["reason"], refused
        wait_until(lambda: person.errors, what="the box tells the person as well")
        person.answer = swap_for_directory
        refused = inside.settle(want="file.read", subject=str(sandbox.home / "other"))
        assert refused["verdict"] == "denied" and "has changed since it was shown" in refused["reason"], refused
        assert inside.do(read(shown / "file")) == "FileNotFoundError"
        # The same question about what stands there now.
        person.answer = lambda question: (True, SESSION, 0)
        assert inside.settle(want="file.read", subject=str(shown))["verdict"] == "allowed"
        assert inside.do(read(shown / "file")) == "shown"


def test_what_replaced_what_was_shown_can_be_asked_for_again(sandbox, session):
    """An editor renames a new file over one that was asked about: the first yes is not about it, the next one is."""
    path = sandbox.write(sandbox.home / "shown/file", "old")
    inside = session().start()
    assert inside.settle(want="file.read", subject=str(path))["verdict"] == "unanswered"
    path.rename(sandbox.home / "kept")
    sandbox.write(path, "new")
    with Person(sandbox, inside.id, lambda question: (True, SESSION, 0)) as person:
        # The yes to what is listed.
        wait_until(lambda: person.errors, what="the box tells the person that it is another file")
        assert "has changed since it was shown" in str(person.errors[0])
        assert inside.do(read(path)) == "FileNotFoundError"
        assert inside.settle(want="file.read", subject=str(path))["verdict"] == "allowed"
        assert inside.do(read(path)) == "new"


def test_client_tells_by_its_exit_status(sandbox, session):
    data = sandbox.write(sandbox.home / "data/file", "x").parent
    inside = session()
    assert inside.exec(CLIENT, "--help").code == 0
    for words, code in ((["file.read", "/usr/bin"], 0), (["file.write", "/usr/bin/x"], 1), (["nonsense"], 2), ([], 2),
                        (["file.read"], 2), (["net.connect", "nonsense"], 2), (["wait", "77"], 2),
                        (["file.read", data], 3), (["file.read", data, "--wait", "0"], 3),
                        (["explain", "file.read", data], 0), (["explain", "file.read", "/nothing"], 3),
                        (["explain", "file.write", "/usr/bin/x"], 1), (["status"], 0), (["exec", "true"], 0)):
        done = inside.exec(CLIENT, *words)
        assert done.code == code, (words, done)
    with Person(sandbox, inside.id, lambda question: (True, SESSION, 0)):
        done = inside.exec(CLIENT, "file.read", data, "-r", "because", "--json")
        assert done.code == 0
        assert json.loads(done.out.splitlines()[-1])["verdict"] == "allowed"
        assert inside.exec("cat", data / "file").out == "x"
        near = json.loads(inside.exec(CLIENT, "--json", "explain", "file.write", "/usr/bin/x").out)
        assert str(sandbox.project) in near["near"]


def test_level_none_takes_no_requests(sandbox):
    policy = sandbox.policy("atoll: 1\nextends: none\ndegrade: [cgroup.memory, cgroup.pids, cgroup.cpu]\n")
    done = sandbox.run(["ls", "/run/atoll"], policy=policy)
    assert done.out.split() == ["denials.jsonl", "limits.md"], done


def test_nothing_that_is_written_to_the_socket_harms(sandbox, session):
    """Hostile bytes: each is answered or the connection is closed; the desk serves the next one."""
    inside = session().start()
    hostile = [b"{}\n", b"[]\n", b"\n\n\n{}\n", b"{" * 16000 + b"\n", b"\xff\xfe{\n",
               b'{"want":"file.read","subject":"/\\u0000x"}\n', b'{"want":"file.read","subject":"/\xff"}\n',
               b'{"want":"file.read"}\n', b'{"want":"file.read","subject":1}\n', b'{"want":"syscall","subject":"/x"}\n',
               b'{"want":"file.read","want":"exec","subject":"/x"}\n', b'{"explain":{"wait":1}}\n',
               b'{"wait":4294967296}\n', b'{"wait":-1}\n', b'{"status":false}\n', b'{"want":"file.read",\n',
               b'{"want":"net.connect","subject":"a:70000"}\n', b'{"want":"file.read","subject":"/x","argv":["x"]}\n',
               b'{"want":"file.read","subject":"/' + b"x" * 5000 + b'"}\n', b"\0" * 100 + b"\n"]
    script = f"""
import socket
for hostile in [b"x" * (1 << 20) + b"\\n", *{hostile!r}]:
    s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect("/run/atoll/ask.sock")
    try:
        s.sendall(hostile)
        s.shutdown(socket.SHUT_WR)
    except OSError: pass
    answer = b""
    try:
        while (more := s.recv(4096)): answer += more
    except OSError: pass
    print(b"invalid" in answer or not answer, answer[:60])
for i in range(3):
    s = socket.socket(socket.AF_UNIX); s.connect("/run/atoll/ask.sock"); s.sendall(b'{{"want":"fi'); s.close()
many = [socket.socket(socket.AF_UNIX) for i in range(40)]
for s in many: s.connect("/run/atoll/ask.sock")
print("full", any(b"too many" in s.recv(100) for s in many[-2:]))
"""
    done = inside.exec(PYTHON, "-c", script)
    assert done.code == 0 and "False" not in done.out and len(done.out.splitlines()) == len(hostile) + 2, done
    assert inside.ask(status=True)["verdict"] == "status"


def test_floods_and_slow_readers_are_bounded(sandbox, session):
    sandbox.write(sandbox.home / "data/0")
    inside = session().start()
    script = f"""
import json, socket
s = socket.socket(socket.AF_UNIX); s.connect("/run/atoll/ask.sock")
f = s.makefile("rw")
heard = []
for i in range(60):
    f.write(json.dumps(dict(want="file.read", subject="{sandbox.home}/data/%d" % i)) + "\\n"); f.flush()
    heard.append(json.loads(f.readline())["rule"])
print(heard.count("ask.requests"))
slow = socket.socket(socket.AF_UNIX); slow.connect("/run/atoll/ask.sock")
slow.setblocking(False)
try:
    while True: slow.send(b'{{"status":true}}\\n' * 100)
except BlockingIOError: print("held")
except OSError: print("closed")
"""
    done = inside.exec(PYTHON, "-c", script)
    lines = done.out.split()
    assert done.code == 0 and int(lines[0]) > 5 and lines[1] in ("held", "closed"), done
    assert inside.ask(status=True)["verdict"] == "status"


def test_the_desk_falls_and_the_box_goes_on(sandbox, session):
    inside = session()
    assert inside.exec(CLIENT, "status").code == 0
    for child in desks(sandbox, inside.id):
        os.kill(child, 9)
    wait_until(lambda: inside.exec(CLIENT, "status").code == 0, what="another one")
    assert inside.exec("true").code == 0


def desks(sandbox, session, name="atoll-desk"):
    entry = next(entry for entry in json.loads(sandbox.run_atoll("ps", "--json").out) if entry["session"] == session)
    children = open(f"/proc/{entry['pid']}/task/{entry['pid']}/children").read().split()
    return [int(pid) for pid in children if open(f"/proc/{pid}/comm").read().strip() == name]


@pytest.mark.parametrize("more", ["audit: {files: all}", "exec: {deny: [{program: /usr/bin/who}]}"])
def test_what_is_the_agents_own_is_reached_through_every_gate(sandbox, more):
    """Host's /run/atoll is masked; a gate must not take the sandbox's own for it."""
    policy = sandbox.policy(f"atoll: 1\nextends: medium\n{more}\n")
    done = sandbox.run("ls /run/atoll && cat /run/atoll/denials.jsonl && /run/atoll/bin/atoll-request "
                       "explain file.read /etc/hostname", policy=policy)
    assert done.code == 0 and "limits.md" in done.out and "allow" in done.out, done


def mint(sandbox, *options):
    done = sandbox.run_atoll("token", "mint", *options)
    assert done.code == 0, done
    return done.out.strip()


def key_pem(base, seed):
    """A private key of Ed25519 as openssl reads it (RFC 8410)."""
    path = base / "signing-key"
    path.write_bytes(bytes.fromhex("302e020100300506032b657004220420") + seed)
    return path


def widen(sandbox, narrow, wide):
    """The first with a block more, which claims what the second one does: signed as its holder can sign."""
    def parts(text):
        raw = base64.urlsafe_b64decode(text[7:] + "=" * (-len(text[7:]) % 4))
        size = int.from_bytes(raw[35:37], "little")
        return raw, raw[37:37 + size], raw[37 + size:69 + size]

    def openssl(*words):
        return subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True).stdout

    def identify(before, key, payload):
        return hashlib.blake2b(b"atoll token id 1\0" + before + key + payload, digest_size=32).digest()

    raw, payload, key = parts(narrow)
    claimed, seed = parts(wide)[1], bytes(range(32))
    next_key = openssl("pkey", "-in", key_pem(sandbox.base, seed), "-inform", "DER", "-pubout", "-outform", "DER")[-32:]
    message = sandbox.base / "message"
    name = identify(identify(raw[3:35], key, payload), next_key, claimed)
    message.write_bytes(b"atoll token block 1".ljust(32, b"\0") + name)
    signature = openssl("pkeyutl", "-sign", "-rawin", "-inkey", key_pem(sandbox.base, raw[-32:]), "-keyform", "DER",
                        "-in", message)
    block = len(claimed).to_bytes(2, "little") + claimed + next_key + signature
    made = raw[:2] + b"\2" + raw[3:-32] + block + seed
    return "atoll1." + base64.urlsafe_b64encode(made).decode().rstrip("=")


def present(inside, token):
    """Presented again where another one is just looked at."""
    def answered():
        answer = inside.ask(token=token)
        return answer if answer["verdict"] != "unanswered" else None
    return wait_until(answered, 30, "an answer about the token")


def test_a_token_is_presented_from_inside(sandbox, session):
    data = sandbox.home / "data"
    sandbox.write(data / "file", "granted")
    inside = session().start()
    # The control: without it nobody can be asked, and nothing is there.
    assert inside.ask(want="file.read", subject=str(data))["verdict"] == "unanswered"
    assert inside.do(read(data / "file")) == "FileNotFoundError"
    token = mint(sandbox, "--allow", f"file.read={data}/**", "--uses", "1", "--project", str(sandbox.project))
    answer = present(inside, token)
    assert answer["verdict"] == "allowed", answer
    assert inside.ask(want="file.read", subject=str(data))["verdict"] == "allowed"
    assert inside.do(read(data / "file")) == "granted"
    assert inside.ask(want="file.write", subject=str(data))["verdict"] != "allowed"
    granted = [entry for entry in inside.records("policy.change") if entry["verdict"] == "allow"]
    assert granted and granted[0]["detail"]["by"].startswith("token "), granted
    # Once is once.
    again = present(inside, token)
    assert again["verdict"] == "denied" and "as often as it may be" in again["reason"], again
    grants = json.loads(sandbox.run_atoll("grants", inside.id, "--json").out)
    assert len(grants) == 1 and grants[0]["subject"] == str(data)
    assert sandbox.run_atoll("grants", "revoke", grants[0]["grant"]).code == 0
    assert inside.do(read(data / "file")) == "FileNotFoundError"


def test_a_token_is_not_looked_at_for_a_desk_that_fell(sandbox, session):
    """Its number means another request to the next desk; so who looks at it goes with the desk, and counts nothing."""
    inside = session().start()
    token = mint(sandbox, "--allow", f"file.read={sandbox.home}/data/**", "--uses", "1")
    (lock,) = [path for path in sandbox.state.rglob("lock") if path.parent.name.startswith("token")]
    # Room for another one: this is refused, and looked at no longer.
    assert present(inside, token[:-40])["verdict"] == "denied"
    time.sleep(1)
    with open(lock, "r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        def looks():
            return desks(sandbox, inside.id, "atoll-token")
        inside.agent.stdin.write(json.dumps({"token": token}) + "\n")
        inside.agent.stdin.flush()
        wait_until(looks, 30, "it is looked at")
        time.sleep(0.3)
        assert looks(), "the control: it waits"
        for child in desks(sandbox, inside.id):
            os.kill(child, 9)
        wait_until(lambda: not looks(), 30, "who looks goes with the desk")
    inside.agent.wait(10)
    assert present(inside.start(), token)["verdict"] == "allowed"


@pytest.mark.needs("openssl")
def test_what_no_token_is_or_does_not_hold_is_refused_and_logged(sandbox, session):
    sandbox.make_directory(sandbox.home / "data")
    inside = session().start()
    good = mint(sandbox, "--allow", f"file.read={sandbox.home}/data/**")
    middle = good[:120] + ("A" if good[120] != "A" else "B") + good[121:]
    cases = [
        (good[:-40], "no token, or a part of one"),
        (middle, ""),
        (widen(sandbox, good, mint(sandbox, "--allow", "file.write=/**")), "claims more"),
        (mint(sandbox, "--allow", "file.read=/x", "--expires", "0s"), "expired"),
        (mint(sandbox, "--allow", "file.read=/x", "--not-before", "1h", "--expires", "2h"), "not valid yet"),
        (mint(sandbox, "--allow", "file.read=/x", "--agent", "nobody"), "another project or agent"),
        (mint(sandbox, "--allow", "file.read=/x", "--limit", "memory=1MiB"), "higher limit"),
    ]
    for token, reason in cases:
        answer = present(inside, token)
        assert answer["verdict"] == "denied" and reason in answer["reason"], (reason, answer)
        assert "\n" not in answer["reason"] and token[7:] not in json.dumps(answer)
    faults = ["malformed", "forged", "widened", "expired", "not-yet-valid", "elsewhere", "here"]
    # The last one is queued before its answer, and written a moment after it.
    wait_until(lambda: [entry["detail"]["fault"] for entry in inside.records("policy.change")
                        if entry["verdict"] == "deny"] == faults, what="a record of each refusal")
    assert not json.loads(sandbox.run_atoll("grants", inside.id, "--json").out)
    assert good[7:] not in sandbox.audit_log(inside.id).read_text()
    # What is no text of a token ends the connection, unread.
    for token in ("", "atoll1.\u00fc", "atoll1.a b", "atoll1." + "A" * 20000, 7):
        answer = inside.ask(token=token)
        assert answer["verdict"] == "invalid", answer
        assert inside.do("globals().update(zip('sf', connect()))") is None
    # The controls: it was good all the time, and so is one that is narrower, made in the same way.
    narrower = widen(sandbox, good, mint(sandbox, "--allow", f"file.read={sandbox.home}/data/a", "--expires", "30m"))
    assert present(inside, narrower)["verdict"] == "allowed"
    assert present(inside, good)["verdict"] == "allowed"


def test_the_client_presents_a_token(sandbox, session):
    inside = session()
    token = mint(sandbox, "--allow", "file.read=/data/**", "--uses", "2")
    done = inside.exec(CLIENT, "token", stdin=token.encode() + b"\n")
    assert done.code == 0 and done.out.startswith("allowed: the token holds here"), done
    inside.exec("sh", "-c", "cat >t", stdin=token.encode())
    wait_until(lambda: inside.exec(CLIENT, "token", "t").code == 0, 30, "room for another")
    wait_until(lambda: inside.exec(CLIENT, "token", "t").code == 1, 30, "a refusal")
    argument = inside.exec(CLIENT, "token", token)
    assert argument.code == 2 and "cannot be an argument" in argument.err and token not in argument.err, argument
    assert inside.exec(CLIENT, "token", stdin=b"nothing").code == 2
