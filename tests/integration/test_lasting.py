# SPDX-License-Identifier: Apache-2.0
"""Commands that outlive their client: a ring for what nobody reads, an input that stays open, and who comes back."""
import textwrap

from library import host, needs_library  # noqa: F401

pytestmark = needs_library

BEGIN = """
import subprocess
policy = context.policy(**MEDIUM)
box = context.create(policy, project=project)
box.until(READY)
PATH = ["PATH=/usr/bin:/bin"]
def rows(handle, result):
    cursor = P()
    call("rows", handle.handle, result, ctypes.byref(cursor))
    found = Cursor.__new__(Cursor)
    found.handle = cursor
    return found.rows()
def commands(handle, after=0):
    return rows(handle, handle.request("commands", U(after)))
def attach(handle, command, **how):
    return handle.request("attach", U(command), Record(ATTACH, **how))
def read_until(fd, text):
    got = b""
    while text not in got:
        piece = os.read(fd, 65536)
        assert piece, got
        got += piece
    return got
def read_all(fd):
    got = b""
    while piece := os.read(fd, 65536):
        got += piece
    return got
def wait_until(true, seconds=20):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
"""


def run(host, text, **more):
    return host.program(BEGIN + textwrap.dedent(text) + '\nbox.request("stop", ctypes.c_uint32(0))\n', **more)


def test_it_goes_on_without_a_client_and_another_one_gets_what_it_wrote(host):
    """The first client is killed; its command lives, with its input open, and says to the second what it said."""
    run(host, r"""
        script = '''
import sys, os, libatoll
from libatoll import *
box = Context().find(sys.argv[1])
result = box.exec(["sh", "-c", "echo begun; while read line; do echo got $line; done; echo end"],
                  env=["PATH=/usr/bin:/bin"], streams="pipe", keep=1, tag="mine")
out = result.take_fd("stdout")
assert os.read(out, 100) == b"begun\\n"
print(result.get("command"), flush=True)
sys.stdin.read()
'''
        first = subprocess.Popen([sys.executable, "-c", script, box.id], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        number = int(first.stdout.readline())
        row = commands(box)[-1]
        assert row["number"] == number and row["tag"] == b"mine" and row["lasts"] == 1 and row["attached"] == 1, row
        assert row["argv"][:2] == [b"sh", b"-c"] and row["pid"] > 1 and row["cwd"] == os.fsencode(project), row
        first.kill(); first.wait()
        wait_until(lambda: commands(box)[-1]["attached"] == 0)
        second = attach(box, number)
        os.write(second.take_fd("stdin"), b"one\n")
        out = second.take_fd("stdout")
        assert read_until(out, b"one\n") == b"got one\n"
        os.close(out)
        third = attach(box, number)                      # its own input does not end with the second's
        stdin, out = third.take_fd("stdin"), third.take_fd("stdout")
        os.write(stdin, b"two\n")
        assert read_until(out, b"two\n") == b"got two\n"
        os.write(stdin, b"three\n")
        box.request("close_input", U(number))            # what was written before is read
        assert read_all(out) == b"got three\nend\n"
        ended = box.until(EXIT)
        assert ended.get("command") == number and ended.get("exit") == 0
        row = commands(box)[-1]
        assert row["ended"] == b"exit" and row["status"] == 0, row
    """)


def test_what_nobody_read_is_bounded_counted_and_given_to_the_next(host):
    """Also after the command has ended: its last words are there."""
    run(host, r"""
        result = box.exec(["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x; echo last"], env=PATH,
                          streams="pipe", keep=1)
        number = result.get("command")
        for key in ("stdin", "stdout", "stderr"):
            os.close(result.take_fd(key))
        box.until(EXIT)
        row = commands(box)[-1]
        assert row["dropped"] > 2000000 and row["ended"] == b"exit", row
        late = attach(box, number)
        assert late.get("dropped") == row["dropped"]
        out = late.take_fd("stdout")
        got = read_all(out)
        assert got.endswith(b"xlast\n") and 4096 <= len(got) <= 256 << 10, len(got)
        assert len(got) + row["dropped"] >= 3000005
        assert read_all(late.take_fd("stderr")) == b""
        assert late.take_fd("stdin") == E_NOT_FOUND
    """)


def test_a_terminal_lasts_and_changes_its_size(host):
    run(host, r"""
        result = box.exec(["sh", "-c", "stty size; while read line; do echo got $line; stty size; done"], env=PATH,
                          streams="pty", keep=1, rows=30, columns=90)
        number, terminal = result.get("command"), result.take_fd("terminal")
        read_until(terminal, b"30 90\r\n")
        assert box.until(STARTED).get("pid") > 1
        os.close(terminal)
        wait_until(lambda: commands(box)[-1]["attached"] == 0)
        other = Context().find(box.id)
        terminal = attach(other, number).take_fd("terminal")
        call("resize", other.handle, U(number), ctypes.c_uint32(40), ctypes.c_uint32(100))
        os.write(terminal, b"hello\n")
        assert b"got hello" in read_until(terminal, b"40 100\r\n")
        try:
            box.request("close_input", U(number))
        except Error as error:
            assert error.code == E_INVALID and "0x04" in error.hint
        else:
            raise AssertionError("a terminal's input was closed")
        os.write(terminal, b"\x04")
        assert box.until(EXIT).get("exit") == 0
        assert commands(box)[-1]["terminal"] == 1
    """)


def test_two_at_a_time_and_one_that_never_reads(host):
    """The command waits for the fastest; the other one loses the oldest, and holds nobody up."""
    run(host, r"""
        result = box.exec(["sh", "-c", "read x; head -c 5000000 /dev/zero; echo end"], env=PATH, streams="pipe", keep=1)
        number, stdin = result.get("command"), result.take_fd("stdin")
        reading, deaf = attach(box, number, output_only=1), result.take_fd("stdout")
        assert reading.take_fd("stdin") == E_NOT_FOUND
        os.write(stdin, b"\n")
        got = read_all(reading.take_fd("stdout"))
        assert len(got) == 5000004 and got.endswith(b"end\n"), len(got)
        assert box.until(EXIT).get("exit") == 0
        late = read_all(deaf)
        assert late.endswith(b"\0end\n") and len(late) < 2000000, len(late)
        assert commands(box)[-1]["dropped"] == len(got) - len(late), (commands(box)[-1], len(late))
    """)


def test_a_client_that_never_reads_stops_its_command_and_nothing_else(host):
    """As a pipe does: what it is to get is not lost. Once it is gone the command goes on."""
    run(host, r"""
        result = box.exec(["sh", "-c", "head -c 3000000 /dev/zero; echo end"], env=PATH, streams="pipe", keep=1)
        number, deaf = result.get("command"), result.take_fd("stdout")
        time.sleep(0.3)
        other = box.exec(["echo", "alive"], env=PATH, streams="pipe")
        assert read_all(other.take_fd("stdout")) == b"alive\n"
        assert [row for row in commands(box) if row["number"] == number][0].get("ended") is None
        os.close(deaf)
        while box.until(EXIT).get("command") != number:
            pass
        assert [row for row in commands(box) if row["number"] == number][0]["dropped"] > 2000000
    """)


def test_more_than_bounds_is_refused_and_nothing_is_left(host):
    run(host, r"""
        result = box.exec(["cat"], env=PATH, streams="pipe", keep=1)
        number = result.get("command")
        ends = [result.take_fd(key) for key in ("stdin", "stdout", "stderr")]
        held = [attach(box, number) for _ in range(7)]
        for _ in range(3):
            try:
                attach(box, number)
            except Error as error:
                assert error.code == E_LIMIT, error
            else:
                raise AssertionError("a ninth client was attached")
        held.pop()
        wait_until(lambda: commands(box)[-1]["attached"] < 8)
        attach(box, number)
        plain = box.exec(["sleep", "100"], env=PATH).get("command")
        for wrong, code in ((plain, E_NOT_FOUND), (9999, E_NOT_FOUND), (1 << 40, E_NOT_FOUND)):
            try:
                attach(box, wrong)
            except Error as error:
                assert error.code == code, (wrong, error)
            else:
                raise AssertionError(wrong)
        for name, value in (("tag", "x" * 256), ("user", "nobody-of-this-name")):
            try:
                box.exec(["true"], env=PATH, **{name: value})
            except Error as error:
                assert error.code == (E_INVALID if name == "tag" else E_UNSUPPORTED), error
            else:
                raise AssertionError(name)
        assert box.exec(["true"], env=PATH, user="root" if os.getuid() == 0 and False else "agent").get("command")
        other = Context().find(box.id)
        other.request("signal", U(number), I(signal.SIGTERM))
        while box.until(EXIT).get("command") != number:
            pass
    """)


def test_the_list_has_pages_and_words_of_any_length(host):
    run(host, r"""
        wide = ["true", *["w" * 1000] * 60]
        for _ in range(40):
            box.exec(wide, env=PATH)
            box.until(EXIT)
        seen, after, pages = [], 0, 0
        while True:
            result = box.request("commands", U(after))
            page = rows(box, result)
            seen += [row["number"] for row in page]
            pages += 1
            assert all(sum(map(len, row["argv"])) <= 4096 for row in page)
            after = result.get("next")
            if not after:
                break
        assert seen == sorted(set(seen)) and len(seen) == 32 and pages > 1, (len(seen), pages)
    """)


def test_large_data_passes_both_ways_unchanged(host):
    run(host, r"""
        import hashlib, threading
        result = box.exec(["cat"], env=PATH, streams="pipe", keep=1)
        stdin, stdout = result.take_fd("stdin"), result.take_fd("stdout")
        data = os.urandom(1 << 20) * 40
        def feed():
            view = memoryview(data)
            while view:
                view = view[os.write(stdin, view[:1 << 16]):]
            box2 = Context().find(box.id)
            box2.request("close_input", U(result.get("command")))
        feeder = threading.Thread(target=feed)
        feeder.start()
        digest, size = hashlib.sha256(), 0
        while piece := os.read(stdout, 1 << 20):
            digest.update(piece); size += len(piece)
        feeder.join()
        assert size == len(data) and digest.digest() == hashlib.sha256(data).digest(), size
    """)


def test_labels_find_a_sandbox_again_also_when_it_has_ended(host):
    host.program(r"""
        policy = context.policy(**MEDIUM)
        box = context.create(policy, project=project, labels=["owner=me", "team/x=a b=c"])
        box.until(READY)
        found = [row["id"].decode() for row in context.list(labels=["owner=me"], running=1).rows()]
        assert found == [box.id], found
        assert context.list(labels=["owner=you"]).rows() == [] and context.list(labels=["owner=m"]).rows() == []
        assert box.info()["labels"] == [b"owner=me", b"team/x=a b=c"], box.info()
        other = Context().find(box.id)
        other.request("update", Record(UPDATE, labels=["owner=you"]))
        assert box.info()["labels"] == [b"owner=you"]
        for wrong in (["no"], ["=x"], ["a b=c"], ["a=b\nc=d"], ["a=1", "a=2"], ["a=" + "x" * 5000],
                      [f"a{i}=" for i in range(65)]):
            try:
                box.request("update", Record(UPDATE, labels=wrong))
            except Error as error:
                assert error.code in (E_INVALID, E_LIMIT), (wrong, error)
            else:
                raise AssertionError(wrong)
        assert box.info()["labels"] == [b"owner=you"]
        box.request("stop", ctypes.c_uint32(0))
        box.until(END)
        assert [row["labels"] for row in context.list(labels=["owner=you"]).rows()] == [[b"owner=you"]]
        refused = context.create(policy, project=project, labels=["no"])
        assert refused.until(FAILED).get("where") == b"labels"
    """)
