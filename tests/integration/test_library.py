# SPDX-License-Identifier: Apache-2.0
"""libatoll: sandboxes that another program starts and drives. Each test is a program of the user who runs it."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import control
from atoll import ROOT, wait_until
from control import Link
from library import DEGRADED, HEADER, LIBRARY, PRELUDE, host, needs_library  # noqa: F401

pytestmark = needs_library


def test_a_command_says_what_it_does_and_how_it_ends(host):
    out = host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project, argv=["sh", "-c", "echo hello; echo no >&2; exit 3"],
                             env=["PATH=/usr/bin:/bin"], streams="capture", name="first")
        end = box.until(END)
        print(names(box))
        output = {1: b"", 2: b""}
        for event in box.seen:
            if event.get("event") == OUTPUT:
                output[event.get("stream")] += event.get("bytes")
        exited = [event for event in box.seen if event.get("event") == EXIT][0]
        print(output, exited.get("status"), exited.get("exit"), end.get("status"), end.get("ended"))
        info = box.info()
        print(info["state"], info["name"], info["level"], info["project"] == os.fsencode(project))
        print(box.next())
    """)
    first, second, third, fourth = out.splitlines()
    assert first.startswith("['READY', 'STARTED', 'OUTPUT'") and first.endswith("'EXIT', 'END']")
    assert second == "{1: b'hello\\n', 2: b'no\\n'} 3 3 3 b'exit'"
    assert third == "b'ended' b'first' b'medium' True"
    assert fourth == "None"


def test_a_port_of_this_machine_is_reached_by_a_sandbox_that_names_it(host):
    """The one that does not name it has a loopback of its own; what is no port is refused."""
    out = host.program("""
        import http.server, threading
        server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
        server.RequestHandlerClass.log_message = lambda *_: None
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_port
        policy = context.policy(**MEDIUM)
        script = f"import urllib.request; urllib.request.urlopen('http://model:{port}/', timeout=5)"
        def run(**more):
            box = context.create(policy, project=project, env=["PATH=/usr/bin:/bin"], argv=["python3", "-c", script],
                                 **more)
            return box.until(END).get("status")
        print(run(host_ports=[f"{port}=model"]), run() != 0, run(host_ports=["53"]))
    """)
    assert out == "0 True None\n", out


def test_a_checkpoint_is_taken_whatever_environment_the_command_has(host):
    """Where sessions are is known to the sandbox's starter, and not to the command."""
    out = host.program("""
        box = context.create(context.policy(**MEDIUM), project=project, env=["PATH=/usr/bin:/bin"], streams="capture",
                             argv=["/run/atoll/bin/atoll-request", "checkpoint", "turn"])
        print(box.until(END).get("status"), [row["name"] for row in box.cursor("snapshots").rows()])
    """)
    assert out == "0 [b'turn-1']\n", out


def test_a_refusal_is_an_event_with_rule_reason_and_way_out(host):
    out = host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project, env=["PATH=/usr/bin:/bin"],
                             argv=["python3", "-c", "import socket; socket.create_connection(('192.0.2.1', 80), 1)"])
        denial = box.until(DENIAL)
        print(denial.get("kind"), denial.get("subject"), denial.get("rule"), len(denial.get("reason")) > 5)
        box.until(END)
    """)
    assert out == "b'net.connect' b'192.0.2.1:80' b'builtin.private' True\n"


def test_commands_pipes_signals_and_the_stop(host):
    out = host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project)
        box.until(READY)
        result = box.exec(["cat"], env=["PATH=/usr/bin:/bin"], streams="pipe")
        stdin, stdout = result.take_fd("stdin"), result.take_fd("stdout")
        os.write(stdin, b"through the box"); os.close(stdin)
        print(os.read(stdout, 100), box.until(EXIT).get("status"))
        sleeper = box.exec(["sleep", "100"], env=["PATH=/usr/bin:/bin"]).get("command")
        box.until(STARTED)
        box.request("signal", U(sleeper), I(signal.SIGTERM))
        ended = box.until(EXIT)
        print(ended.get("command") == sleeper, ended.get("signal"), ended.get("status"), ended.get("ended"))
        missing = box.exec(["no-such-program"], env=["PATH=/usr/bin:/bin"])
        print(box.until(EXIT).get("errno"))
        slow = box.exec(["sleep", "100"], env=["PATH=/usr/bin:/bin"], timeout_ms=300)
        print(box.until(EXIT).get("ended"))
        try:
            box.request("signal", U(sleeper), I(signal.SIGTERM))
        except Error as error:
            print(error.code == E_NOT_FOUND)
        sample = box.request("sample")
        print(sample.get("policy").endswith(b"degraded.yaml"), sample.get("uptime_ms") > 0)
        box.request("stop", ctypes.c_uint32(1000))
        print(box.until(END).get("ended"))
        try:
            box.request("sample")
        except Error as error:
            print(error.code == E_GONE)
    """)
    assert out.splitlines() == ["b'through the box' 0", "True 15 143 b'signal'", "2", "b'time'", "True", "True True",
                                "b'stopped'", "True"]


def test_a_snapshot_is_taken_before_each_command_where_the_policy_wants_it(host):
    """Also for two that are asked for at once, and none for a client that did not stay."""
    host.sandbox.policy(DEGRADED + "drop: [.]\nfiles: {stage: [.]}\nstage: {auto: exec}\n", "auto.yaml")
    out = host.program("""
        policy = context.policy(policy=MEDIUM["policy"].replace("degraded", "auto"), project=project)
        box = context.create(policy, project=project)
        box.until(READY)
        other, gone = context.find(box.id), context.find(box.id)
        write = lambda text: Record(COMMAND, argv=["sh", "-c", f"echo {text} >>written"], env=["PATH=/usr/bin:/bin"])
        box.request("exec", write("one"))
        assert box.until(EXIT).get("status") == 0
        tickets = [handle.begin("exec", write(handle.id)) for handle in (box, other)]
        for handle, ticket in zip((box, other), tickets):
            done = handle.until(DONE)
            assert done.get("ticket") == ticket and done.get("code") == 0, done
        gone.begin("exec", write("three"))
        gone.free()
        box.request("exec", write("four"))
        names = [row["name"] for row in box.cursor("snapshots").rows()]
        print(names[:3] == [b"auto-1", b"auto-2", b"auto-3"], len(names) in (4, 5), names[-1])
        box.request("stop", ctypes.c_uint32(2000))
    """)
    assert out.startswith("True True b'auto-"), out


def test_a_terminal_comes_with_its_size_and_changes_it(host):
    out = host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project)
        command = box.exec(["sh", "-c", "stty size; read x; stty size"], env=["PATH=/usr/bin:/bin", "TERM=dumb"],
                           streams="pty", rows=11, columns=77).get("command")
        terminal = box.until(STARTED).take_fd("terminal")
        text = b""
        while b"11 77" not in text:
            text += os.read(terminal, 100)
        call("resize", box.handle, U(command), ctypes.c_uint32(33), ctypes.c_uint32(99))
        os.write(terminal, b"\\n")
        while b"33 99" not in text:
            text += os.read(terminal, 100)
        print(box.until(EXIT).get("status"))
        own = context.create(policy, project=project, argv=["stty", "size"], env=["PATH=/usr/bin:/bin"], streams="pty",
                             rows=5, columns=6)
        print(os.read(own.until(STARTED).take_fd("terminal"), 100), own.until(END).get("status"))
        box.request("stop", ctypes.c_uint32(0))
    """)
    assert out == "0\nb'5 6\\r\\n' 0\n"


def test_one_descriptor_is_readable_while_there_is_an_event(host):
    """Also for events that came while a request waited for its answer."""
    host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project)
        fd = box.fd()
        box.exec(["true"], env=["PATH=/usr/bin:/bin"])
        time.sleep(0.5)
        box.request("sample")
        kinds = []
        while EXIT not in kinds:
            assert select.select([fd], [], [], 5)[0] == [fd], kinds
            event = box.next()
            kinds += [event.get("event")] if event else []
        assert kinds[0] == READY and kinds[-2:] == [STARTED, EXIT], kinds
        assert box.next() is None and not select.select([fd], [], [], 0)[0]
        assert box.fd() == fd
        ticket = box.begin("sample")
        assert select.select([fd], [], [], 5)[0] == [fd]
        done = box.until(DONE)
        assert done.get("ticket") == ticket and done.get("code") == 0 and done.get("uptime_ms") > 0
        ticket = box.begin("signal", U(77), I(9))
        done = box.until(DONE)
        assert done.get("ticket") == ticket and done.get("code") == -E_NOT_FOUND, done
        assert b"no such command" in done.get("what")
        box.request("stop", ctypes.c_uint32(0))
    """)


def test_what_does_not_start_says_why(host):
    out = host.program("""
        try:
            context.policy(level="meduim", project=project)
        except Error as error:
            print(error.code == E_POLICY or error.code, "medium" in str(error))
        open("bad.yaml", "w").write("atoll: 1\\nextends: medium\\nnetwrk: {}\\nfiles: {raed: [/x]}\\n")
        try:
            context.policy(policy=project + "/bad.yaml", project=project)
        except Error as error:
            print(error.code == E_POLICY, [(p["line"], p["column"], b"did you mean" in p["message"], p["list"])
                                           for p in error.problems])
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project, argv=["true"], name="-bad-")
        failed = box.until(FAILED)
        print(failed.get("code") == -E_INVALID, failed.get("what"), box.until(END).get("ended"))
        other = os.path.dirname(project)
        box = context.create(policy, project=other, argv=["true"])
        print(box.until(FAILED).get("what"))
        elsewhere = Context(state=os.path.dirname(os.environ["XDG_STATE_HOME"]) + "/other/atoll")
        try:
            elsewhere.create(policy, project=project, argv=["true"])
        except Error as error:
            print(error.what)
        for key, value in (("nmae", "x"), ("name", 3), ("argv", "true")):
            try:
                Record(SANDBOX, **{key: value})
            except Error as error:
                print(error.code, error.what, error.hint)
    """)
    lines = out.splitlines()
    assert lines[0] == "True True"
    assert lines[1] == "True [(3, 1, True, b'errors'), (4, 9, True, b'errors')]"
    assert lines[2] == "True b'-bad- cannot be the name of a session' b'failed'"
    assert lines[3] == "b'the policy was loaded for another project'"
    assert lines[4] == "the policy was loaded for other places"
    assert lines[5] == '-2 such a record has no key "nmae" did you mean "name"?'
    assert lines[6] == '-2 "name" is a string '
    assert lines[7] == '-2 "argv" is a list of strings '


def test_a_context_that_misses_a_place_says_where_it_was_looked_for(host):
    host.program("""
        def refused(environment):
            try:
                Context(environment)
            except Error as error:
                return error
        error = refused({"PATH": os.environ["PATH"]})
        if os.getuid():
            assert error.code == E_INVALID and error.what == '"state" is not set' and "HOME" in error.hint, error
    """)


def test_a_context_without_programs_finds_what_runs_and_starts_nothing(host):
    host.program("""
        box = context.create(context.policy(**MEDIUM), project=project)
        box.until(READY)
        without = Context({**os.environ, "PATH": "/nowhere"})
        assert [info["id"] for info in without.list().rows()] == [os.fsencode(box.id)]
        found = without.find(box.id)
        found.exec(["true"], env=["PATH=/usr/bin:/bin"])
        assert found.until(EXIT).get("status") == 0
        for start in (lambda: without.policy(**MEDIUM), lambda: found.request("snapshot", None)):
            try:
                start()
                raise AssertionError(start)
            except Error as error:
                assert error.code == E_INVALID and error.what == '"programs" is not set', error
                assert "PATH" in error.hint and "libexec" in error.hint, error
        found.request("stop", ctypes.c_uint32(0))
    """)


def test_the_programs_of_a_prefix_are_found(host):
    """By a link in PATH, or by the libexec beside it; a script of that name is not taken for them."""
    out = host.program("""
        def program(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            open(path, "w").close()
            os.chmod(path, 0o755)
        for path in ("a/libexec/atoll/atoll", "a/libexec/atoll/atoll-init", "a/bin/other", "b/atoll", "c/bin/other"):
            program(path)
        os.symlink(project + "/a/libexec/atoll/atoll", "c/bin/atoll")
        for directories in (["b", "c/bin"], ["b", "a/bin"], ["b"]):
            print(places({"PATH": ":".join(project + "/" + one for one in directories)}).get("programs"))
    """)
    first, second, third = out.splitlines()
    assert first == second and first.endswith("/a/libexec/atoll'") and third == "None", out


FULL = '''
import errno, resource
def fill(left):
    "All descriptors but so many are taken."
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    taken = []
    try:
        while True:
            taken.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        assert error.errno == errno.EMFILE, error
    for _ in range(left):
        os.close(taken.pop())
    return taken
def count():
    return len(os.listdir("/proc/self/fd"))
'''


def test_a_terminal_for_which_there_is_no_room_is_an_error_at_once(host):
    """atoll_exec() refuses it; what was not refused keeps a place for its terminal, if all others are taken later."""
    host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project)
        box.until(READY)
        before = count()
        command = Record(COMMAND, argv=["sleep", "60"], env=["PATH=/usr/bin:/bin"], streams="pty")
        for left in (0, 1):
            taken = fill(left)
            try:
                box.request("exec", command)
                assert False, left
            except Error as error:
                assert error.code == E_LIMIT, error
            for fd in taken:
                os.close(fd)
        box.begin("exec", command)
        taken = fill(0)
        number = box.until(DONE).get("command")
        taken += fill(0)
        started = box.until(STARTED)
        assert started.get("command") == number and started.get("errno") is None, started
        terminal = started.take_fd("terminal")
        assert terminal > 2 and os.isatty(terminal)
        os.close(terminal)
        taken += fill(0)
        box.request("signal", U(number), I(signal.SIGKILL))
        assert box.until(EXIT).get("ended") == b"signal"
        assert LOST not in [event.get("event") for event in box.seen]
        for fd in taken:
            os.close(fd)
        assert count() == before, (count(), before)
        box.request("stop", ctypes.c_uint32(0))
    """, prelude=PRELUDE + FULL)


def test_a_full_table_of_descriptors_is_a_limit(host):
    """Whatever number of descriptors is left: E_LIMIT without waiting, or it works; nothing leaks."""
    host.program("""
        before, codes = count(), set()
        for left in range(12):
            taken = fill(left)
            begin = time.monotonic()
            try:
                lib.atoll_policy_free(context.policy(**MEDIUM).handle)
                codes.add(0)
            except Error as error:
                codes.add(error.code)
            assert time.monotonic() - begin < 10
            for fd in taken:
                os.close(fd)
            assert count() == before, (left, count(), before)
        assert codes == {0, E_LIMIT}, codes
    """, prelude=PRELUDE + FULL)


def test_a_command_that_stops_is_heard(host):
    host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project)
        box.until(READY)
        number = box.exec(["sleep", "60"], env=["PATH=/usr/bin:/bin"], streams="pty").get("command")
        box.until(STARTED)
        box.request("signal", U(number), I(signal.SIGSTOP))
        stopped = box.until(STOPPED)
        assert stopped.get("command") == number and stopped.get("signal") == signal.SIGSTOP, stopped
        box.request("signal", U(number), I(signal.SIGKILL))
        assert box.until(EXIT).get("signal") == signal.SIGKILL
        box.request("stop", ctypes.c_uint32(0))
    """)


def test_records_of_the_log_are_events_where_they_are_asked_for(host):
    host.program("""
        import json
        def types(**values):
            own = Context(**values)
            box = own.create(own.policy(**MEDIUM), project=project, argv=["true"], env=["PATH=/usr/bin:/bin"])
            box.until(END)
            return [event for event in box.seen if event.get("event") == LOG_EVENT]
        assert types() == []
        events = types(log_events=1)
        for event in events:
            line = json.loads(event.get("record"))
            assert line["seq"] == event.get("seq") and line["type"] == event.get("type").decode(), event
        seqs = [event.get("seq") for event in events]
        assert seqs and seqs == list(range(seqs[0], seqs[0] + len(seqs))), seqs
    """)


def test_a_limit_that_is_hit_is_an_event(host):
    host.sandbox.policy(DEGRADED + "resources: {output: 4KiB}\n", "narrow.yaml")
    host.program("""
        policy = context.policy(policy=MEDIUM["policy"].replace("degraded", "narrow"), project=project)
        box = context.create(policy, project=project, argv=["head", "-c", "100000", "/dev/zero"],
                             env=["PATH=/usr/bin:/bin"], streams="capture")
        hit = box.until(LIMIT)
        assert b"output" in (hit.get("rule") or b"") + (hit.get("record") or b""), hit
        assert box.until(END).get("ended") == b"output"
    """)


def test_an_alert_is_an_event(host):
    host.sandbox.policy(DEGRADED + "data: {canaries: [./.env]}\n", "canary.yaml")
    host.program("""
        policy = context.policy(policy=MEDIUM["policy"].replace("degraded", "canary"), project=project)
        for argv, is_touched in ((["true"], False), (["cat", ".env"], True)):
            box = context.create(policy, project=project, argv=argv, env=["PATH=/usr/bin:/bin"])
            box.until(END)
            alerts = [event for event in box.seen if event.get("event") == ALERT]
            assert len(alerts) == is_touched, names(box)
        assert alerts[0].get("subject").endswith(b"/.env") and b"canary.touched" in alerts[0].get("record"), alerts
    """)


def test_a_handle_is_found_again_by_another_process(host):
    host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project, name="lasting")
        box.until(READY)
        child = os.fork()
        if not child:
            # What the parent made is not the child's.
            try:
                box.request("sample")
            except Error as error:
                os._exit(0 if error.code == E_FORKED else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        box.free()
        again = Context().find("lasting")
        assert again.until(READY) and again.id == box.id
        rows = context.list(running=1).rows()
        assert [row["id"].decode() for row in rows] == [box.id] and rows[0]["state"] == b"running"
        again.request("deadline", U(300))
        end = again.until(END)
        assert end.get("ended") == b"time", end
        gone = context.find(box.id)
        assert gone.until(END).get("ended") == b"time"
        try:
            context.find("nothing-of-that-name")
        except Error as error:
            assert error.code == E_NOT_FOUND
    """)


def test_a_killed_box_is_lost(host):
    host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project, argv=["sleep", "100"], env=["PATH=/usr/bin:/bin"])
        box.until(STARTED)
        pids = [pid for pid in os.listdir("/proc") if pid.isdigit() and is_box(pid, box.id)]
        os.kill(int(pids[0]), signal.SIGKILL)
        assert box.until(END).get("ended") == b"lost"
    """, prelude=PRELUDE + """
def is_box(pid, id):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read() == b"atoll-box\\0" + id.encode() + b"\\0"
    except OSError:
        return False
""")


def test_a_living_sandbox_goes_back_to_a_snapshot(host):
    out = host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project, env=["PATH=/usr/bin:/bin"], argv=["sleep", "100"])
        box.until(STARTED)

        def inside(script):
            box.exec(["sh", "-c", script], env=["PATH=/usr/bin:/bin"], streams="capture")
            return box.until(OUTPUT).get("bytes")

        inside("echo one >a; echo .")
        box.request("snapshot", Record(SNAPSHOT, name="one"))
        print(inside("echo two >a; echo new >b; cat a"))
        box.request("restore", S(b"one"))
        print(inside("echo $(cat a; ls b 2>&1)"))
        box.request("stop", U(0))
        box.until(END)
    """)
    assert out.splitlines()[0] == "b'two\\n'" and "one ls: cannot access" in out.splitlines()[1], out


def test_what_it_changed_is_reviewed(host):
    out = host.program("""
        policy = context.policy(**MEDIUM)
        open("kept", "w").write("old\\n")
        box = context.create(policy, project=project, env=["PATH=/usr/bin:/bin"],
                             argv=["sh", "-c", "echo new > kept; echo x > added; : > $(printf 'a\\\\001b\\\\377')"])
        box.until(END)
        rows = box.cursor("diff", REVIEW).rows()
        print(sorted((row["path"][len(project) + 1:], row["kind"], row["state"], row["flagged"]) for row in rows))
        print(box.request("snapshot", Record(SNAPSHOT, name="one", message="what for")).get("name"))
        print([(row["name"], row["message"]) for row in box.cursor("snapshots").rows()])
        rows = box.cursor("apply", REVIEW, paths=[project + "/kept"]).rows()
        print([(row["list"], row["path"][len(project) + 1:]) for row in rows], open("kept").read())
        rows = box.cursor("undo", REVIEW).rows()
        print([(row["list"], row["path"][len(project) + 1:]) for row in rows], open("kept").read())
        fork = P()
        how = Record(SANDBOX, argv=["cat", "added"], env=["PATH=/usr/bin:/bin"], streams="capture", snapshot="one")
        other = Handle("fork", box.handle, None, how)
        print(other.until(OUTPUT).get("bytes"), other.until(END).get("status"))
        box.request("restore", S(b"one"))
        print(box.cursor("discard", REVIEW).rows(), box.cursor("diff", REVIEW).rows())
        lines = [row["line"] for row in box.cursor("log", LOG).rows()]
        print(lines[0].startswith(b'{"v":1,"seq":1,'), b"session.start" in lines[0], len(lines) > 3)
        try:
            box.cursor("diff", REVIEW, paths=["relative"])
        except Error as error:
            print(error.code)
    """)
    assert out.splitlines() == [
        r"[(b'a\x01b\xff', b'added', b'clean', 0), (b'added', b'added', b'clean', 0), "
        r"(b'kept', b'modified', b'clean', 0)]",
        "b'one'",
        "[(b'one', b'what for')]",
        "[(b'applied', b'kept')] new",
        "",
        "[(b'undone', b'kept')] old",
        "",
        r"b'x\n' 0",
        "[] []",
        "True True True",
        "-2",
    ]


def test_a_log_is_followed_to_its_end(host):
    host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project, argv=["sleep", "1"], env=["PATH=/usr/bin:/bin"])
        box.until(STARTED)
        lines = [row["line"] for row in box.cursor("log", LOG, follow=1).rows()]
        assert b'"type":"session.start"' in lines[0] and b'"type":"session.end"' in lines[-1], lines
        seqs = [int(line.split(b'"seq":')[1].split(b",")[0]) for line in lines]
        assert seqs == list(range(1, len(lines) + 1))
        later = [(row["at"], row["line"]) for row in box.cursor("log", LOG).rows()]
        assert [line for _, line in later] == lines
        assert [(row["at"], row["line"]) for row in box.cursor("log", LOG, backward=1).rows()] == later[::-1]
        middle = later[2][0]
        rows = [row["line"] for row in box.cursor("log", LOG, at=middle).rows()]
        before = [row["line"] for row in box.cursor("log", LOG, at=middle, backward=1).rows()]
        assert (before, rows) == (lines[:2][::-1], lines[2:])
        assert box.cursor("log", LOG, **{"from": 2}).next().get("line") == lines[1]
    """)


def test_a_reader_that_is_slow_is_told_what_it_lost(host):
    """The sandbox does not wait for it, and what it was not told is counted."""
    host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project)
        box.until(READY)
        for _ in range(5):
            for _ in range(20):
                box.exec(["true"], env=["PATH=/usr/bin:/bin"])
            time.sleep(0.5)
        lost = 0
        exits = 0
        while True:
            event = box.wait(1000)
            if event is None:
                break
            if event.get("event") == LOST and event.get("of") == EXIT:
                lost += event.get("count")
            exits += event.get("event") == EXIT
        assert lost > 0 and lost + exits == 100, (lost, exits)
        box.request("stop", ctypes.c_uint32(0))
    """)


def test_the_header_is_c99_and_cpp(tmp_path):
    for compiler, name, words in (("cc", "x.c", ["-std=c99"]), ("c++", "x.cc", ["-std=c++11"])):
        if not shutil.which(compiler):
            continue
        (tmp_path / name).write_text("#include <atoll.h>\nint main(void) { return (int)atoll_version() & 0; }\n")
        subprocess.run([compiler, *words, "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{HEADER.parent}", "-c",
                        tmp_path / name, "-o", tmp_path / "x.o"], check=True)


def test_only_what_the_header_declares_is_exported(tmp_path):
    """Both libraries, and each of it with its version."""
    header = HEADER.read_text()
    declared = set()
    for part in header.split("ATOLL_API ")[1:]:
        declared.add(part.split("(")[0].split()[-1].lstrip("*"))
    declared.discard("__attribute__")
    shown = subprocess.run(["nm", "-D", "--defined-only", LIBRARY / "libatoll.so"], capture_output=True, check=True,
                           text=True).stdout
    exported = {line.split()[2] for line in shown.splitlines() if line.split()[1] != "A"}
    assert exported == {name + "@@ATOLL_0" for name in declared}
    shown = subprocess.run(["nm", "-g", "--defined-only", LIBRARY / "libatoll.a"], capture_output=True, check=True,
                           text=True).stdout
    assert {line.split()[2] for line in shown.splitlines() if len(line.split()) == 3} == declared
    shown = subprocess.run(["readelf", "-d", LIBRARY / "libatoll.so"], capture_output=True, check=True,
                           text=True).stdout
    assert "Library soname: [libatoll.so.0]" in shown
    assert shown.count("(NEEDED)") == 1 and "[libc.so.6]" in shown


def test_it_calls_nothing_that_a_library_must_not(tmp_path):
    shown = subprocess.run(["nm", "-D", "--undefined-only", LIBRARY / "libatoll.so"], capture_output=True, check=True,
                           text=True).stdout
    used = {line.split()[-1].split("@")[0] for line in shown.splitlines()}
    assert not used & {"printf", "fprintf", "puts", "putchar", "perror", "exit", "abort", "_exit", "setenv", "putenv",
                       "pthread_create", "fork", "signal", "system", "popen", "syslog", "getenv", "secure_getenv",
                       "getpwuid", "getpwnam"}


def test_the_example_prints_what_was_denied(host):
    example = host.build(ROOT / "doc" / "examples" / "denials.c", "denials", [f"-L{LIBRARY}", "-latoll"])
    env = dict(host.env, LD_LIBRARY_PATH=str(host.directory))
    result = host.sandbox.run_outside(
        [str(example), host.sandbox.policy(DEGRADED), str(host.sandbox.project), "python3", "-c",
         "print('in')\nimport socket; socket.create_connection(('192.0.2.1', 80), 1)"], env=env)
    assert result.code == 1 and result.out == "in\n", result
    assert "denied net.connect 192.0.2.1:80 (builtin.private)" in result.err


def test_a_hostile_host_is_left_as_it_was(host):
    """What its 100 sandboxes see of it: nothing. What it sees of them: neither children nor signals."""
    place = host.sandbox
    hostile = host.build(ROOT / "tests" / "integration" / "library" / "hostile.c", "hostile",
                         ["-pthread", "-Wno-unused-parameter", LIBRARY / "libatoll.a"])
    marker = place.write(place.base / "marker", "inherited")
    report = place.base / "host" / "report"
    result = place.run_outside([str(hostile), str(report), str(place.programs.directory), str(place.state / "atoll"),
                                str(place.runtime / "atoll"), str(place.base / "config" / "degraded.yaml"),
                                str(place.project), str(marker), "100"], timeout=240, cwd=place.project)
    lines = report.read_text().splitlines()
    assert result.code == 0, (result, lines)
    assert sorted(lines) == ["done 110 foreign 0", "foreign 0", "marked 0", "own 20 signals 1"]


KILLS = """
def boxes():
    found = {}
    for pid in os.listdir("/proc"):
        try:
            words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0") if pid.isdigit() else []
        except OSError:
            continue
        # Those that it makes are copies of it until they execute something: it is the first.
        if words[:1] == [b"atoll-box"]:
            found[words[1].decode()] = min(int(pid), found.get(words[1].decode(), 1 << 30))
    return found
"""


def test_a_box_that_is_killed_at_any_moment_ends_once(host):
    out = host.program("""
        policy = context.policy(**MEDIUM)
        ends = []
        for step in range(24):
            box = context.create(policy, project=project, argv=["sleep", "60"], env=["PATH=/usr/bin:/bin"])
            time.sleep(step * 0.004)
            pid = boxes().get(box.id)
            if pid:
                os.kill(pid, signal.SIGKILL)
            else:
                assert False, "there is no box"
            end = box.until(END)
            ends.append(end.get("ended").decode())
            assert box.wait(50) is None and names(box).count("END") == 1
            box.free()
        print(set(ends) <= {"lost", "failed"}, "lost" in ends)
    """, prelude=PRELUDE + KILLS)
    assert out == "True True\n"


def test_a_caller_that_is_killed_at_any_moment_leaves_what_can_be_found(host):
    """A sandbox that lives is in the list and can be stopped; one that came to nothing leaves nothing."""
    host.program("""
        policy = context.policy(**MEDIUM)
        for step in range(20):
            child = os.fork()
            if not child:
                own = Context()
                mine = own.policy(**MEDIUM)
                box = own.create(mine, project=project)
                box.begin("exec", Record(COMMAND, argv=["sleep", "60"], env=["PATH=/usr/bin:/bin"], keep=1))
                time.sleep(60)
                os._exit(1)
            time.sleep(0.05 + step * 0.008)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        time.sleep(1)
        running = context.list(running=1).rows()
        assert len(running) > 0
        for row in running:
            box = context.find(row["id"])
            box.request("stop", ctypes.c_uint32(0))
            end = box.until(END)
            assert end.get("ended") == b"stopped", end
        assert context.list(running=1).rows() == [], context.list(running=1).rows()
    """, prelude=PRELUDE + KILLS)


def test_a_job_that_is_killed_is_an_error(host):
    out = host.program("""
        import threading
        def kill():
            for _ in range(4000):
                for pid in os.listdir("/proc"):
                    try:
                        if pid.isdigit() and open(f"/proc/{pid}/cmdline", "rb").read() == b"atoll-job\\0":
                            os.kill(int(pid), signal.SIGKILL)
                            return
                    except OSError:
                        continue
        killer = threading.Thread(target=kill)
        killer.start()
        codes = set()
        while killer.is_alive() and not codes:
            try:
                context.policy(**MEDIUM)
            except Error as error:
                codes.add((error.code, error.what))
        killer.join()
        print(codes or {(-1, "atoll gave no answer: ECONNRESET")})
    """)
    assert out == "{(-1, 'atoll gave no answer: ECONNRESET')}\n"


def test_one_loop_has_many_sandboxes(host):
    example = host.build(ROOT / "doc" / "examples" / "epoll.c", "epoll", [f"-L{LIBRARY}", "-latoll"])
    words = [str(example), host.sandbox.policy(DEGRADED), str(host.sandbox.project), "30", "true"]
    result = host.sandbox.run_outside(words, env=dict(host.env, LD_LIBRARY_PATH=str(host.directory)), timeout=120)
    assert result.code == 0 and result.out == "30 of 30 ended well\n", result


def test_the_page_names_every_key_and_the_header_every_function(host):
    page = (ROOT / "doc" / "man" / "libatoll.3.scd").read_text().replace("\\", "")
    out = host.program("""
        for kind in [*range(1, 18), *range(32, 42)]:
            for key, (_, text) in keys(kind).items():
                print(f"*{key}* ", text.split(";")[0], sep="\\t")
    """)
    for line in out.splitlines():
        key, text = line.split("\t")
        assert key in page and text in page, line


def test_what_is_installed_is_found_by_pkg_config(tmp_path):
    """And goes again with the rest."""
    if not shutil.which("pkg-config"):
        pytest.skip("pkg-config is not installed")
    build = LIBRARY.parent
    env = dict(os.environ, PREFIX=str(tmp_path / "usr"), PKG_CONFIG_PATH=str(tmp_path / "usr" / "lib" / "pkgconfig"))
    install = [ROOT / "tools" / "install-files", build, tmp_path / "usr"]
    subprocess.run(install, check=True, env=env, capture_output=True)
    words = subprocess.run(["pkg-config", "--cflags", "--libs", "libatoll"], check=True, env=env, capture_output=True,
                           text=True).stdout.split()
    subprocess.run(["cc", ROOT / "doc" / "examples" / "denials.c", *words, "-o", tmp_path / "denials"], check=True)
    shown = subprocess.run([tmp_path / "denials"], env=dict(env, LD_LIBRARY_PATH=str(tmp_path / "usr" / "lib")),
                           capture_output=True, check=False, text=True)
    assert shown.returncode == 125 and shown.stderr.startswith("usage: denials"), shown
    subprocess.run([install[0], "--remove", *install[1:]], check=True, env=env, capture_output=True)
    assert not list(tmp_path.glob("usr/lib/libatoll*")) and not (tmp_path / "usr" / "include" / "atoll.h").exists()


def test_a_question_is_heard_answered_and_taken_back(host):
    host.sandbox.policy(DEGRADED + "exec: {ask: [{argv: [env, '**']}]}\n", "asks.yaml")
    host.program("""
        policy = context.policy(policy=MEDIUM["policy"].replace("degraded", "asks"), project=project)
        box = context.create(policy, project=project)
        box.until(READY)
        box.exec(["sh", "-c", "env one; echo $?; env two; echo $?"], env=["PATH=/usr/bin:/bin"], streams="capture")
        box.until(ASKED)
        cursor = box.cursor("questions")
        question = cursor.next()
        assert question.get("kind") == b"exec" and question.get("state") == b"waits", question
        assert question.get("argv") == [b"env", b"one"] and len(question.get("hash")) == 32, question
        try:
            box.request("answer", question, Record(ANSWER, scope="once"))
        except Error as error:
            assert error.code == E_INVALID
        box.request("answer", question, Record(ANSWER, allow=0, scope="once"))
        box.until(ANSWERED)
        box.until(ASKED)
        cursor = box.cursor("questions")
        second = cursor.next()
        while second.get("state") != b"waits":
            second = cursor.next()
        assert second.get("argv") == [b"env", b"two"]
        grant = box.request("answer", second, Record(ANSWER, allow=1, scope="session")).get("grant")
        assert grant > 0
        box.until(EXIT)
        output = [event.get("bytes") for event in box.seen if event.get("event") == OUTPUT and event.get("stream") == 1]
        assert b"".join(output).split() == [b"126", b"127"], output
        grants = box.cursor("grants").rows()
        assert [(row["number"], row["scope"]) for row in grants if row["number"] == grant] == [(grant, b"session")]
        box.request("revoke", U(grant))
        assert not [row for row in box.cursor("grants").rows() if row["number"] == grant]
        box.request("stop", ctypes.c_uint32(0))
    """)


def test_it_is_frozen_and_thawed(host):
    host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project)
        box.until(READY)
        result = box.exec(["sh", "-c", "while :; do echo x; sleep 0.02; done"], env=["PATH=/usr/bin:/bin"],
                          streams="pipe")
        stdout = result.take_fd("stdout")
        assert os.read(stdout, 1)
        box.request("freeze")
        assert box.until(FROZEN).get("frozen") == 1
        time.sleep(0.2)
        os.set_blocking(stdout, False)
        try:
            while os.read(stdout, 1 << 16):
                pass
        except BlockingIOError:
            pass
        time.sleep(0.3)
        try:
            assert not os.read(stdout, 1), "it goes on"
        except BlockingIOError:
            pass
        try:
            box.exec(["true"], env=["PATH=/usr/bin:/bin"])
        except Error as error:
            assert error.code == E_BUSY, error
        assert box.request("thaw").get("frozen") == 1
        assert box.until(FROZEN).get("frozen") == 0
        assert select.select([stdout], [], [], 10)[0]
        assert box.request("thaw").get("frozen") == 0
        box.request("stop", ctypes.c_uint32(0))
    """)


def test_what_comes_behind_a_refused_command_is_heard(host):
    """A command that waits for the start of another one kept the thaw behind it from being read."""
    host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project)
        box.until(READY)
        for _ in range(20):
            command = box.exec(["sleep", "60"], env=["PATH=/usr/bin:/bin"]).get("command")
            box.request("freeze")
            try:
                box.exec(["true"], env=["PATH=/usr/bin:/bin"])
            except Error as error:
                assert error.code == E_BUSY, error
            box.request("thaw")
            box.until(STARTED)
            box.request("signal", U(command), I(9))
        box.request("stop", ctypes.c_uint32(0))
    """)


def test_another_policy_for_the_network(host):
    text = DEGRADED + "network: {allow: [{host: %s.example}]}\n"
    host.sandbox.policy(text % "a", "a.yaml")
    host.sandbox.policy(text % "b", "b.yaml")
    host.sandbox.policy((text % "a") + "resources: {processes: 77}\n", "c.yaml")
    host.program("""
        where = MEDIUM["policy"].replace("degraded", "{}")
        first = context.policy(policy=where.format("a"), project=project)
        box = context.create(first, project=project)
        box.until(READY)
        second = context.policy(policy=where.format("b"), project=project)
        assert first.hash() != second.hash()
        assert box.request("change", second.handle).get("connections") == 0
        assert box.until(POLICY_EVENT)
        try:
            box.request("change", context.policy(policy=where.format("c"), project=project).handle)
            assert False
        except Error as error:
            assert error.code == E_POLICY, error
        box.request("stop", ctypes.c_uint32(0))
    """)


def test_the_end_of_a_handle_hangs_up_its_commands_but_those_it_keeps(host):
    host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project)
        box.until(READY)
        loop = "while :; do date +%N > {}; sleep 0.05; done"
        box.exec(["sh", "-c", loop.format("gone")], env=["PATH=/usr/bin:/bin"])
        box.exec(["sh", "-c", loop.format("kept")], env=["PATH=/usr/bin:/bin"], keep=1)
        other = context.find(box.id)
        other.until(READY)
        box.free()
        ended = other.until(EXIT)
        assert ended.get("command") == 1 and ended.get("signal") == signal.SIGHUP, ended
        assert other.request("sample").get("commands") == 1
        other.request("stop", ctypes.c_uint32(0))
    """)


def test_a_hold_lasts_and_ends_with_its_handle(host):
    """A freeze was over after a minute; and what is asked to stay stays when its process is killed."""
    host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project)
        box.until(READY)
        stdout = box.exec(["sh", "-c", "while :; do echo x; sleep 0.02; done"], env=["PATH=/usr/bin:/bin"],
                          streams="pipe").take_fd("stdout")
        os.set_blocking(stdout, False)
        def drain():
            try:
                while os.read(stdout, 1 << 16):
                    pass
            except BlockingIOError:
                pass
        def moves():
            drain()
            return bool(select.select([stdout], [], [], 10)[0])
        def stands():
            time.sleep(0.2)
            drain()
            return not select.select([stdout], [], [], 0.4)[0]
        assert moves()
        holder, other = context.find(box.id), context.find(box.id)
        holder.request("hold", None)
        assert stands()
        try:
            other.request("hold", None)
            assert False
        except Error as error:
            assert error.code == E_BUSY, error
        assert other.request("thaw").get("frozen") == 0 and stands()
        holder.free()
        assert moves()
        other.request("hold", Record(HOLD, timeout_ms=700, reason="for a moment"))
        assert stands() and moves()
        child = os.fork()
        if not child:
            mine = Context().find(box.id)
            mine.request("hold", Record(HOLD, keep=1))
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
        time.sleep(0.2)
        assert stands() and box.info()["state"] == b"frozen", box.info()
        assert other.request("thaw").get("frozen") == 1 and moves()
        assert box.info()["state"] == b"running", box.info()
        other.request("hold", Record(HOLD, keep=1))
        box.request("stop", ctypes.c_uint32(2000))
    """)


def test_a_handle_hears_what_it_wants_to(host):
    """And who hears of no question is nobody who listens: what inside asks is refused at once."""
    host.sandbox.policy(DEGRADED + "exec: {ask: [{argv: [env, '**']}]}\n", "asks.yaml")
    host.program("""
        deaf = Context(events=0)
        policy = deaf.policy(policy=MEDIUM["policy"].replace("degraded", "asks"), project=project)
        box = deaf.create(policy, project=project, argv=["sh", "-c", "env; exit $?"], env=["PATH=/usr/bin:/bin"])
        begin = time.monotonic()
        assert box.until(END).get("status") == 126 and names(box) == ["END"] and time.monotonic() - begin < 20
        plain = Context()
        box = plain.create(plain.policy(**MEDIUM), project=project)
        box.until(READY)
        own = Context(own_commands=1)
        mine = own.find(box.id)
        for index in range(3):
            box.exec(["true"], env=["PATH=/usr/bin:/bin"])
            box.until(EXIT)
        number = mine.exec(["true"], env=["PATH=/usr/bin:/bin"]).get("command")
        assert mine.until(EXIT).get("command") == number == 4
        assert [event.get("command") for event in mine.seen if event.get("command")] == [4, 4], mine.seen
        box.request("stop", ctypes.c_uint32(0))
    """)


def test_questions_are_looked_at_in_four_ways(host):
    host.sandbox.policy(DEGRADED + "exec: {ask: [{argv: [env, '**']}]}\n", "asks.yaml")
    host.program("""
        policy = context.policy(policy=MEDIUM["policy"].replace("degraded", "asks"), project=project)
        box = context.create(policy, project=project)
        box.until(READY)
        def rows(result):
            return Cursor("looked", box.handle, result).rows()
        ticket = box.begin("look", Record(LOOK, look="follow"))
        try:
            box.request("look", Record(LOOK, look="follow"))
            assert False
        except Error as error:
            assert error.code == E_BUSY, error
        box.exec(["env", "one"], env=["PATH=/usr/bin:/bin"])
        done = box.until(DONE)
        assert done.get("ticket") == ticket and [row["state"] for row in rows(done)] == [b"waits"], done
        assert rows(done)[0]["argv"] == [b"env", b"one"] and rows(done)[0]["cwd"] == os.fsencode(project), rows(done)
        for look in ("glance", "find", "list"):
            result = box.request("look", Record(LOOK, look=look))
            question = rows(result)[0]
            assert question["number"] == 1, question
            assert rows(box.request("look", Record(LOOK, look=look, after=result.get("after")))) == []
        try:
            box.request("look", Record(LOOK, look="stare"))
            assert False
        except Error as error:
            assert error.code == E_INVALID, error
        passed_on = Record(QUESTION, number=question["number"])
        call("set_bytes", passed_on.handle, S(b"hash"), S(question["hash"]), ctypes.c_size_t(32))
        box.request("answer", passed_on, Record(ANSWER, allow=0, scope="once"))
        assert box.until(EXIT).get("status") == 126
        box.request("stop", ctypes.c_uint32(0))
    """)


def test_the_newest_and_its_status(host):
    host.program("""
        import json
        policy = context.policy(**MEDIUM)
        def newest(**values):
            return Handle("find_newest", context.handle, Record(FILTER, **values))
        first = context.create(policy, project=project, name="one")
        first.until(READY)
        second = context.create(policy, project=project)
        second.until(READY)
        assert newest(project=project, running=1).id == second.id
        assert newest(name="one").id == first.id and newest(name=first.id[:6]).id == first.id
        status = json.loads(first.request("status").get("status"))
        assert status["session"] == first.id and status["commands"] == 0 and "limits" in status, status
        second.request("stop", ctypes.c_uint32(0))
        assert newest(project=project, running=1).id == first.id
        first.request("stop", ctypes.c_uint32(0))
        for values in ({"project": project, "running": 1}, {"name": "one", "running": 1}, {"project": "/nowhere"}):
            try:
                newest(**values)
                assert False, values
            except Error as error:
                assert error.code == E_NOT_FOUND, error
    """)


def test_a_compiled_policy_is_handed_in(host):
    host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project)
        box.until(READY)
        path = os.environ["XDG_STATE_HOME"] + "/atoll/sessions/" + box.id + "/policy.bin"
        again = context.policy(snapshot=Fd(os.open(path, os.O_RDONLY)))
        try:
            again.hash()
        except AssertionError:
            pass
        box.request("change", again.handle)
        broken = context.policy(snapshot=Fd(os.open("/etc/passwd", os.O_RDONLY)))
        try:
            box.request("change", broken.handle)
            assert False
        except Error as error:
            assert error.code < 0 and error.what, error
        try:
            context.policy(snapshot=Fd(os.open(path, os.O_RDONLY)), level="high")
            assert False
        except Error as error:
            assert error.code == E_INVALID, error
        box.request("stop", ctypes.c_uint32(0))
    """)


FAKE = """
import socket, struct, threading
def frame(kind, *fields):
    body = b"".join(fields)
    return struct.pack("=IHHII", 0x6c6f7461, 1, kind, 16 + len(body), 0) + body
def u32(value):
    return b"\\\\1" + struct.pack("=I", value)
def u64(value):
    return b"\\\\2" + struct.pack("=Q", value)
class Fake:
    "In the place of a box: what it was told, and what it answers to one who says hello."
    def __init__(self, box, answer):
        self.path = (os.environ.get("XDG_RUNTIME_DIR") or os.environ["XDG_STATE_HOME"]) + "/atoll/"
        self.path += "" if os.environ.get("XDG_RUNTIME_DIR") else "run/"
        self.path += box.id + ".sock"
        os.rename(self.path, self.path + ".real")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        directory = os.open(os.path.dirname(self.path), os.O_PATH)
        self.socket.bind(f"/proc/self/fd/{directory}/{box.id}.sock")
        os.close(directory)
        self.socket.listen(8)
        self.answer = answer
        threading.Thread(target=self.serve, daemon=True).start()
    def serve(self):
        while True:
            try:
                client = self.socket.accept()[0]
            except OSError:
                return
            hello = client.recv(1 << 17)
            if not hello:
                continue
            low, high = struct.unpack("=I", hello[17:21])[0], struct.unpack("=I", hello[22:26])[0]
            if self.answer(client, low, high):
                threading.Thread(target=self.speak, args=(client,), daemon=True).start()
            else:
                client.close()
    def speak(self, client):
        while True:
            bytes_ = client.recv(1 << 17)
            kind = struct.unpack("=IHHII", bytes_[:16])[2] if bytes_ else 0
            if kind not in range(33, 47):
                client.close()
                return
            if kind != 33:
                client.send(frame(97, bytes_[16:25], u32(0)))
    def close(self):
        self.socket.close()
        os.rename(self.path + ".real", self.path)
"""


def test_a_box_of_another_time_is_understood_or_said_so(host):
    """An older one is spoken to in its words; one that has none in common lives on, and is not taken for killed."""
    host.program("""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project)
        box.until(READY)
        def refused(handle, *what):
            try:
                handle.request(*what)
                assert False, what
            except Error as error:
                return error
        def old(client, low, high):
            if low > 1:
                return False
            client.send(frame(96, u32(1)))
            return True
        fake = Fake(box, old)
        handle = context.find(box.id)
        handle.request("sample")
        error = refused(handle, "status")
        assert error.code == E_PROTOCOL and "older atoll" in error.what, error
        handle.request("freeze")
        for what in (("hold", None), ("look", Record(LOOK, look="list")), ("commands", U(0)),
                     ("attach", U(1), None), ("close_input", U(1)), ("set_headers", None),
                     ("exec", Record(COMMAND, argv=["true"], tag="x")),
                     ("exec", Record(COMMAND, argv=["true"], streams="pipe", keep=1))):
            assert refused(handle, *what).code == E_PROTOCOL
        demanding = Context(own_commands=1).find(box.id)
        error = refused(demanding, "sample")
        assert error.code == E_PROTOCOL and box.id in error.what and "ps" in error.hint, error
        assert demanding.until(END).get("ended") == b"unreachable"
        fake.close()
        def newer(client, low, high):
            assert (low, high) == (1, 4), (low, high)
            client.send(frame(96, u32(7)))
            return False
        fake = Fake(box, newer)
        handle = context.find(box.id)
        assert handle.until(END).get("ended") == b"unreachable"
        assert refused(handle, "sample").code == E_PROTOCOL
        fake.close()
        crowd = [context.find(box.id) for _ in range(70)]
        late = crowd[-1]
        error = refused(late, "sample")
        assert error.code == E_LIMIT and "64 programs" in error.what, error
        assert late.until(END).get("ended") == b"unreachable"
        for one in crowd:
            one.free()
        box.request("sample")
        box.request("stop", ctypes.c_uint32(0))
        assert box.until(END).get("ended") == b"stopped"
    """, prelude=PRELUDE + FAKE.replace("\\\\", "\\"))


def test_a_library_of_another_time_is_understood_or_told_so(sandbox):
    """The box speaks the older protocol, too; to who has none in common it says which one it has."""
    child = sandbox.popen(["sleep", "1000"], policy=sandbox.policy(DEGRADED))
    wait_until(sandbox.sessions, 30, "a session")
    session = sandbox.sessions()[-1]
    wait_until(lambda: sandbox.run_atoll("exec", session, "--", "true").code == 0, 30, "it lives")
    with Link(sandbox, session, protocol=(1, 1)) as older:
        assert older.protocol == 1
        assert older.request(control.SAMPLE)[1]["commands"] == 1
    for low, high in ((control.PROTOCOL + 1, 9), (0, 0), (2, 1)):
        with Link(sandbox, session, protocol=(low, high)) as other:
            assert other.protocol == control.PROTOCOL
            with pytest.raises(ConnectionError):
                other.status()
    assert child.poll() is None


@pytest.mark.only("user")
def test_each_allocation_and_each_call_may_fail_once(host):
    """The code and the error say so, or it comes about all the same; it ends in time, and nothing is left."""
    source = ROOT / "tests" / "integration" / "library" / "faults.c"
    wrapped = set(re.findall(r"^(?:MEMORY|CALL)\([^,]*, (\w+),", source.read_text(), re.M))
    wrapped |= {"free", "realloc", "vasprintf"}
    faults = host.build(source, "faults", [LIBRARY / "libatoll.a", *[f"-Wl,--wrap={name}" for name in wrapped]])
    place = host.sandbox
    result = place.run_outside([str(faults), str(place.programs.directory), str(place.state / "atoll"),
                                str(place.runtime / "atoll"), str(place.base / "config" / "degraded.yaml"),
                                str(place.project)], timeout=400)
    assert result.code == 0 and "BAD" not in result.out, result
    counts = re.findall(r"^(\w+) calls (\d+) failed (\d+)$", result.out, re.M)
    assert len(counts) == 13 and all(0 < int(failed) <= int(calls) for _, calls, failed in counts), result


def test_a_thousand_handles_at_once(host):
    """Three descriptors and less than 4 KiB each, all in one epoll; every one hears the end of its sandbox."""
    host.program("""
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        policy = context.policy(**MEDIUM)
        boxes = [context.create(policy, project=project) for _ in range(20)]
        for box in boxes:
            box.until(READY)
        def memory():
            return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
        fds, used = len(os.listdir("/proc/self/fd")), memory()
        handles = [context.find(box.id) for box in boxes for _ in range(50)]
        assert len(os.listdir("/proc/self/fd")) == fds + 3 * len(handles)
        assert memory() - used < 4096 * len(handles), (memory() - used) // len(handles)
        poller = select.epoll()
        by_fd = {handle.fd(): handle for handle in handles}
        for fd in by_fd:
            poller.register(fd, select.EPOLLIN)
        for box in boxes:
            box.begin("stop", ctypes.c_uint32(0))
        ended = set()
        while len(ended) < len(handles):
            ready = poller.poll(30)
            assert ready, len(ended)
            for fd, _ in ready:
                event = by_fd[fd].next()
                if event and event.get("event") == END:
                    assert event.get("ended") == b"stopped", event
                    ended.add(fd)
                    poller.unregister(fd)
        for handle in handles:
            handle.free()
        assert len(os.listdir("/proc/self/fd")) <= fds + 1
    """, timeout=120)


def test_it_is_used_from_go(host, tmp_path):
    """By cgo: no variadic function, callback or structure by value is in its way."""
    if not shutil.which("go"):
        pytest.skip("go is not installed")
    env = dict(os.environ, GOCACHE=str(tmp_path / "cache"), GOPATH=str(tmp_path / "path"), GO111MODULE="off",
               CGO_CFLAGS=f"-I{HEADER.parent}", CGO_LDFLAGS=f"-L{LIBRARY} -latoll")
    made = tmp_path / "cgo"
    subprocess.run(["go", "build", "-o", made, ROOT / "tests" / "integration" / "library" / "cgo.go"], check=True,
                   env=env)
    host.sandbox.copy(made, host.directory / "cgo")
    result = host.sandbox.run_outside(
        [str(host.directory / "cgo"), str(host.sandbox.base / "config" / "degraded.yaml"), str(host.sandbox.project)],
        env=dict(host.env, LD_LIBRARY_PATH=str(host.directory)), timeout=120)
    assert result.code == 0 and result.out == "from go\nend 0\n", result


def test_it_is_used_from_node(host):
    """By koffi, a module of npm, where one is installed (ATOLL_KOFFI: its directory)."""
    koffi = os.environ.get("ATOLL_KOFFI", "/usr/lib/node_modules/koffi")
    if not shutil.which("node") or not os.path.isdir(koffi):
        pytest.skip(f"node, or koffi in {koffi}, is not installed")
    result = host.sandbox.run_outside(
        ["node", ROOT / "tests" / "integration" / "library" / "koffi.js", koffi, host.env["LIBATOLL"],
         host.sandbox.base / "config" / "degraded.yaml", host.sandbox.project], env=host.env, timeout=120)
    assert result.code == 0 and result.out == "from node\nend 0\n", result
