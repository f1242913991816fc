# SPDX-License-Identifier: Apache-2.0
"""Files and ports as the sandbox sees them, for its owner: what a program inside may do, and nothing more."""
import hashlib
import os
import textwrap

from library import DEGRADED, host, needs_library  # noqa: F401
from test_lasting import BEGIN

pytestmark = needs_library

FILES = r"""
def stat(path, flags=0):
    return box.request("stat", S(raw(path)), ctypes.c_uint32(flags)).all()
def opened(path, flags=1, **how):
    return box.request("open", S(raw(path)), Record(OPEN, flags=flags, **how)).take_fd("file")
def put(path, data, flags=2 | 8 | 32):
    fd = opened(path, flags)
    with open(fd, "wb") as file:
        file.write(data)
def get(path):
    with open(opened(path), "rb") as file:
        return file.read()
def listing(path, depth=1, **how):
    found, start = [], 0
    while True:
        result = box.request("readdir", S(raw(path)), Record(READDIR, depth=depth, **{"from": start}, **how))
        found += rows(box, result)
        start = result.get("next")
        if not start:
            return found
def mkdir(path, mode=0o755):
    box.request("mkdir", S(raw(path)), ctypes.c_uint32(mode))
def move(source, target):
    box.request("move", S(raw(source)), S(raw(target)))
def remove(path, flags=0):
    box.request("remove", S(raw(path)), ctypes.c_uint32(flags))
def setattr_(path, **values):
    box.request("setattr", S(raw(path)), Record(ATTRIBUTES, **values))
def refused(code, act, *arguments, **more):
    try:
        act(*arguments, **more)
    except Error as error:
        assert error.code == code, (code, error)
        return error
    raise AssertionError(f"{act.__name__}{arguments} was done")
def inside(script):
    result = box.exec(["bash", "-c", script], env=PATH, streams="pipe")
    os.close(result.take_fd("stdin"))
    out = read_all(result.take_fd("stdout"))
    while (ended := box.until(EXIT)).get("command") != result.get("command"):
        pass
    assert ended.get("status") == 0, (script, ended, read_all(result.take_fd("stderr")))
    return out
def helper():
    import glob
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            if open(path, "rb").read() == b"atoll-files\0":
                pid = int(path.split("/")[2])
                parent = int(open(f"/proc/{pid}/stat").read().rsplit(")")[1].split()[1])
                if box.id in open(f"/proc/{parent}/cmdline").read():
                    return pid
        except OSError:
            pass
def log_of(kind):
    import json
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    with open(f"{state}/atoll/sessions/{box.id}/audit.jsonl") as file:
        return [record for record in map(json.loads, file) if record["type"] == kind]
def watch(path, flags=1):
    return box.request("watch", S(raw(path)), ctypes.c_uint32(flags)).get("watch")
looked = [0]
def told(is_last):
    # From where the last look ended, also what came while something else was waited for.
    found, end = [], time.monotonic() + 20
    while not found or not is_last(found[-1]):
        while looked[0] == len(box.seen):
            assert time.monotonic() < end, found
            box.wait(1000)
        event = box.seen[looked[0]]
        looked[0] += 1
        if event.get("event") == WATCH:
            found.append((event.get("change"), event.get("path")))
    return found
def changes(until):
    return told(lambda change: change == (until[1], until[0]))
"""


def run(host, text, policy="", before="", **more):
    begin = BEGIN.replace("policy =", before + "\npolicy =", 1)
    if policy:
        name = host.sandbox.policy("atoll: 1\nextends: medium\n"
                                   "degrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]\n" + policy, "own.yaml")
        begin = begin.replace("policy = context.policy(**MEDIUM)",
                              f"policy = context.policy(policy={str(name)!r}, project=project)")
    return host.program(begin + FILES + textwrap.dedent(text) + '\nbox.request("stop", ctypes.c_uint32(0))\n', **more)


def test_files_are_read_written_listed_moved_and_removed(host):
    run(host, r"""
        put(project + "/one", b"hello")
        assert get(project + "/one") == b"hello" and inside("cat one") == b"hello"
        row = stat(project + "/one")
        assert row["file_type"] == b"file" and row["size"] == 5 and row["mode"] == 0o644, row
        assert row["owner"] == inside("id -un").strip() and row["group"] == inside("id -gn").strip(), row
        mkdir(project + "/a/b/c")
        refused(E_EXISTS, mkdir, project + "/a/b")
        refused(E_EXISTS, mkdir, project + "/one")
        put(project + "/new/dir/file", b"x", 2 | 8 | 64)
        refused(E_NOT_FOUND, put, project + "/no/dir/file", b"x")
        refused(E_EXISTS, put, project + "/one", b"x", 2 | 8 | 16)
        put(project + "/one", b" more", 2 | 4)
        assert get(project + "/one") == b"hello more"
        inside("ln -s one link; ln -s nowhere dangling; ln -s / a/root")
        assert {row["path"] for row in listing(project)} == {b"one", b"a", b"new", b"link", b"dangling"}
        deep = {row["path"]: row for row in listing(project, 9)}
        assert {b"a/b/c", b"new/dir/file", b"a/root"} < set(deep) and b"a/root/etc" not in deep, deep
        assert deep[b"link"]["target"] == b"one" and deep[b"link"]["target_type"] == b"file"
        assert "target_type" not in deep[b"dangling"] and deep[b"a/root"]["target_type"] == b"directory"
        assert stat(project + "/link")["file_type"] == b"file"
        assert stat(project + "/link", 1)["target"] == b"one"
        move(project + "/one", project + "/a/two")
        assert inside("cat a/two") == b"hello more"
        refused(E_EXISTS, remove, project + "/a")
        remove(project + "/a", 1)
        remove(project + "/link")
        assert inside("ls -d a link 2>/dev/null; ls /etc/passwd") == b"/etc/passwd\n"
        setattr_(project + "/new", mode=0o700, mtime_ns=10**18)
        assert inside("stat -c '%a %Y' new") == b"700 1000000000\n"
        setattr_(project + "/new/dir/file", attributes=["kind=a=b", "tag=x"])
        assert stat(project + "/new/dir/file", 2)["attributes"] in ([b"kind=a=b", b"tag=x"], [b"tag=x", b"kind=a=b"])
        setattr_(project + "/new/dir/file", attributes=["tag=y"])
        assert stat(project + "/new/dir/file", 2)["attributes"] == [b"tag=y"]
        mkdir(project + "/new/dir/below")
        setattr_(project + "/new/dir/below", attributes=["kind=b"])
        assert "attributes" not in {bytes(one["path"]): one for one in listing(project + "/new/dir")}[b"below"]
        told = {bytes(one["path"]): one for one in listing(project + "/new/dir", with_attributes=1)}
        assert told[b"below"]["attributes"] == [b"kind=b"]
        assert told[b"file"]["attributes"] == [b"tag=y"]
        refused(E_DENIED, setattr_, project + "/new/dir/file", mode=0o4755)
        refused(E_INVALID, stat, "relative")
        refused(E_DENIED, put, "/usr/bin/mine", b"x")
        def acts():
            return [(record["detail"]["act"], record["verdict"]) for record in log_of("owner.file")]
        wait_until(lambda: acts().count(("remove", "allow")) == 3 and ("mkdir", "allow") in acts())
    """)


def test_names_of_any_bytes_and_directories_of_any_size(host):
    run(host, r"""
        inside(r'''printf x > $'new\nline'; printf x > $'\xff\xfe'; mkdir many; cd many
               seq -f 'f%.0f' 20000 | xargs touch''')
        assert {b"new\nline", b"\xff\xfe", b"many"} == {row["path"] for row in listing(project)}
        assert get(os.fsencode(project) + b"/\xff\xfe") == b"x" and get(project + "/new\nline") == b"x"
        begun = time.monotonic()
        found = [row["path"] for row in listing(project + "/many")]
        assert len(found) == len(set(found)) == 20000 and time.monotonic() - begun < 30, time.monotonic() - begun
        # In the middle, with its place forgotten: the same.
        first = box.request("readdir", S(raw(project + "/many")), Record(READDIR, depth=1))
        for _ in range(6):
            box.request("readdir", S(raw(project)), Record(READDIR, depth=3))
        rest = box.request("readdir", S(raw(project + "/many")),
                           Record(READDIR, depth=1, **{"from": first.get("next")}))
        both = [row["path"] for row in rows(box, first) + rows(box, rest)]
        assert both == found[:len(both)] and len(both) > 300
        remove(project + "/many", 1)
        assert b"many" not in {row["path"] for row in listing(project)}
    """, timeout=120)


def test_deep_trees_are_removed_and_bounded(host):
    run(host, r"""
        inside("python3 -c \"import os\nfor i in range(700):\n os.mkdir('d'); open('f', 'w'); os.chdir('d')\"")
        deepest = max(len(row["path"]) for row in listing(project, 64))
        assert deepest <= 128, deepest
        inside("ln -s /etc keep; mkdir sub; ln -s $PWD/keepme sub/link; mkdir keepme; touch keepme/file")
        remove(project + "/d", 1)
        remove(project + "/sub", 1)
        assert {row["path"] for row in listing(project)} == {b"f", b"keep", b"keepme"}
        assert inside("ls keepme /etc/passwd") == b"/etc/passwd\n\nkeepme:\nfile\n"
    """, timeout=120)


def test_no_path_leads_out(host):
    """A program of the same user that is not inside reads the file that no path of the sandbox reaches."""
    secret = host.sandbox.base / "secret-of-the-host"
    secret.write_text("the host's")
    os.chmod(secret, 0o644)
    os.chmod(host.sandbox.base, 0o755)
    run(host, f"""
        secret = {str(secret)!r}
        assert open(secret).read() == "the host's"
    """ + r"""
        inside(f"ln -s {secret} link; ln -s {'../' * 40}{secret.lstrip('/')} up; ln -s /proc/1/root proc; "
               f"ln -s /proc/self/root self; ln -s /proc/self/cwd cwd; ln -s /proc/1/cwd/../../../..{secret} cwd1")
        for path in (secret, project + "/link", project + "/up", project + "/proc" + secret, project + "/self" + secret,
                     project + "/" + "../" * 50 + secret.lstrip("/"), "/proc/self/root" + secret, project + "/cwd1",
                     "/proc/1/root" + secret, f"/proc/{os.getpid()}/root" + secret, "/proc/self/cwd/" + secret):
            for act in (get, stat, lambda path: put(path, b"x"), lambda path: setattr_(path, mode=0o777)):
                try:
                    act(path)
                except Error as error:
                    assert error.code in (E_NOT_FOUND, E_DENIED, E_INVALID, E_EXISTS), (path, error)
                else:
                    raise AssertionError(path)
        assert open(secret).read() == "the host's"
    """)


def test_what_is_no_regular_file_is_never_opened(host):
    run(host, r"""
        inside("mkfifo fifo; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'")
        begun = time.monotonic()
        for path, kind in ((project + "/fifo", b"fifo"), (project + "/socket", b"socket"), ("/dev/null", b"char"),
                           (project, b"directory"), ("/dev/zero", b"char")):
            assert stat(path)["file_type"] == kind
            for flags in (1, 2, 3, 2 | 8):
                refused(E_INVALID, opened, path, flags)
        assert time.monotonic() - begun < 5
    """)


def test_a_path_that_is_swapped_meanwhile_is_what_was_judged_or_refused(host):
    """A program inside swaps a directory with a link to what the policy hides, as fast as it can."""
    run(host, r"""
        inside("mkdir -p real; echo -n real > real/name; ln -s $PWD/hidden trap")
        assert inside("cat hidden/name 2>&1 || echo none") != b"hidden"
        swapper = box.exec(["python3", "-c", "import ctypes, os\nlibc = ctypes.CDLL(None)\n"
                            "while True: libc.renameat2(-100, b'real', -100, b'trap', 2)"], env=PATH)
        got = set()
        for _ in range(400):
            try:
                got.add(get(project + "/real/name"))
            except Error as error:
                assert error.code in (E_NOT_FOUND, E_DENIED, E_INVALID, E_LIMIT, E_AGAIN), error
                got.add(error.code)
        assert b"real" in got and b"hidden" not in got, got
        box.request("signal", U(swapper.get("command")), I(9))
    """, policy="files: {mask: [./hidden]}\n",
        before='os.mkdir("hidden"); open("hidden/name", "w").write("hidden")', timeout=120)


def test_a_mode_never_goes_through_a_link(host):
    """A program inside swaps a file that nobody may read with a link, while the file's mode is set."""
    run(host, r"""
        inside("echo x >file; chmod 0 file; echo x >victim; chmod 600 victim; ln -s victim link; ln -s file plain")
        setattr_(project + "/plain", mode=0o100)
        assert inside("stat -c %a file link") == b"100\n777\n"
        # The link does lead there, for whoever follows it.
        inside("chmod 601 link")
        assert stat(project + "/victim")["mode"] == 0o601
        swapper = box.exec(["python3", "-c", "import ctypes, os\nlibc = ctypes.CDLL(None)\n"
                            "while True: libc.renameat2(-100, b'file', -100, b'link', 2)"], env=PATH)
        set_, codes = 0, set()
        for number in range(3000):
            try:
                setattr_(project + "/file", mode=0o20 + number % 8, nofollow=1)
                set_ += 1
            except Error as error:
                codes.add(error.code)
            if number % 50 == 0:
                assert stat(project + "/victim")["mode"] == 0o601, number
        assert stat(project + "/victim")["mode"] == 0o601 and set_ > 10, (set_, codes)
        box.request("signal", U(swapper.get("command")), I(9))
    """, timeout=120)


def test_what_the_policy_hides_or_protects_it_hides_and_protects_here(host):
    run(host, r"""
        assert inside("cat .env 2>/dev/null; cat read/file") == b"old"
        try:
            assert get(project + "/.env") != b"SECRET=1"
        except Error as error:
            assert error.code in (E_NOT_FOUND, E_DENIED, E_INVALID), error
        refused(E_DENIED, put, project + "/.env", b"SECRET=2", 2)
        assert open(project + "/.env").read() == "SECRET=1"
        assert get(project + "/read/file") == b"old"
        refused(E_DENIED, put, project + "/read/file", b"new")
        refused(E_DENIED, put, project + "/read/other", b"new")
        refused(E_DENIED, remove, project + "/read/file")
        refused(E_DENIED, mkdir, project + "/read/sub")
        assert open(project + "/read/file").read() == "old"
        wait_until(lambda: any(record["detail"]["act"] == "mkdir" for record in log_of("owner.file")))
    """, policy="files: {mask: ['**/.env'], read: [./read]}\n",
        before='open(".env", "w").write("SECRET=1"); os.mkdir("read"); open("read/file", "w").write("old")')


def test_the_process_inside_is_out_of_reach_and_is_replaced(host):
    run(host, r"""
        put(project + "/file", b"x" * 100)
        pid = helper()
        status = open(f"/proc/{pid}/status").read()
        assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status and "CapEff:\t0000000000000000" in status, status
        assert b"atoll-files" not in inside("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert inside(f"kill -9 {pid} 2>&1 || echo no").endswith(b"no\n") and helper() == pid
        os.kill(pid, signal.SIGKILL)
        assert get(project + "/file") == b"x" * 100 or True
        assert helper() not in (None, pid)
        stopped = helper()
        os.kill(stopped, signal.SIGSTOP)
        begun = time.monotonic()
        late = box.begin("stat", S(raw(project + "/file")), ctypes.c_uint32(0))
        other = box.exec(["echo", "alive"], env=PATH, streams="pipe")
        assert read_all(other.take_fd("stdout")) == b"alive\n" and time.monotonic() - begun < 3
        while (done := box.until(DONE)).get("ticket") != late:
            pass
        assert done.get("code") == -E_TIMEOUT and time.monotonic() - begun < 10, done
        assert stat(project + "/file")["size"] == 100
        grown = []
        for _ in range(3):
            for _ in range(300):
                stat(project + "/file"); listing(project, 3); put(project + "/file", b"y")
            grown.append(int(open(f"/proc/{helper()}/statm").read().split()[1]))
        assert grown[2] - grown[1] <= 8, grown
    """, timeout=120)


def test_files_answer_while_everything_stands_still(host):
    run(host, r"""
        inside("echo hello > file")
        box.request("hold", None)
        assert get(project + "/file") == b"hello\n"
        put(project + "/new", b"x")
        box.request("thaw")
        assert inside("cat new") == b"x"
        box.request("freeze")                    # of the kind that a snapshot takes: files are of one moment
        assert get(project + "/file") == b"hello\n"
        for act in (lambda: put(project + "/other", b"x"), lambda: mkdir(project + "/d"),
                    lambda: remove(project + "/new"), lambda: setattr_(project + "/new", mode=0o600)):
            refused(E_BUSY, act)
        box.request("thaw")
        put(project + "/other", b"x")
    """)


def test_a_server_inside_is_reached_whatever_the_policy_says_of_the_network(host):
    run(host, r"""
        import socket
        server = box.exec(["python3", "-c", "import socket\ns = socket.create_server(('127.0.0.1', 8123))\n"
                           "while True:\n c = s.accept()[0]; c.sendall(b'from inside'); c.close()"], env=PATH)
        def reach(port, family=0):
            return box.request("connect", ctypes.c_uint16(port), ctypes.c_uint32(family)).take_fd("socket")
        def is_up():
            try:
                os.close(reach(8123))
                return True
            except Error as error:
                assert error.code == E_NOT_FOUND, error
        wait_until(is_up)
        with socket.socket(fileno=reach(8123, 4)) as link:
            assert link.recv(100) == b"from inside"
        outside = socket.create_server(("127.0.0.1", 0))
        refused(E_NOT_FOUND, reach, outside.getsockname()[1])   # the host's is another loopback
        refused(E_NOT_FOUND, reach, 8123, 6)
        refused(E_INVALID, reach, 0)
        wait_until(lambda: {record["subject"] for record in log_of("owner.connect")} >= {"8123"})
    """, policy="network: {default: deny, allow: []}\n")


def test_more_than_bounds_is_refused(host):
    run(host, r"""
        put(project + "/file", b"x")
        stopped = helper()
        os.kill(stopped, signal.SIGSTOP)
        codes = {}
        for _ in range(80):
            box.begin("stat", S(raw(project + "/file")), ctypes.c_uint32(0))
        time.sleep(0.2)
        os.kill(stopped, signal.SIGCONT)
        for _ in range(80):
            code = box.until(DONE).get("code")
            codes[code] = codes.get(code, 0) + 1
        assert codes == {0: 64, -E_LIMIT: 16}, codes
        refused(E_INVALID, setattr_, project + "/file", mode=1 << 20)
        refused(E_INVALID, stat, "/" + "x" * 5000)
        refused(E_INVALID, listing, project, 65)
        assert stat(project + "/file")["size"] == 1
    """)


def test_what_changes_below_a_directory_is_told(host):
    run(host, r"""
        inside("mkdir -p d/old/deep")
        number = watch(project + "/d", 3)
        inside("echo x > d/one; chmod 600 d/one; mv d/one d/two; rm d/two; touch d/old/deep/late; touch d/end")
        found = changes((b"end", b"create"))
        for wanted in ((b"create", b"one"), (b"write", b"one"), (b"chmod", b"one"), (b"rename", b"one"),
                       (b"create", b"two"), (b"remove", b"two"), (b"create", b"old/deep/late")):
            assert wanted in found, (wanted, found)
        # Made before it could be watched: nothing of it is lost.
        inside("mkdir -p d/a/b/c/e; echo y > d/a/b/c/e/file; touch d/end2")
        found = changes((b"end2", b"create"))
        assert {(b"create", b"a"), (b"create", b"a/b"), (b"create", b"a/b/c/e/file")} <= set(found), found
        inside("touch d/a/b/c/e/second; mv d/a d/z; touch d/z/b/third; touch d/end3")
        found = changes((b"end3", b"create"))
        assert {(b"create", b"a/b/c/e/second"), (b"rename", b"a"), (b"create", b"z"),
                (b"create", b"z/b/third")} <= set(found), found
        event = [event for event in box.seen if event.get("event") == WATCH and event.get("path") == b"end3"][0]
        assert event.get("watch") == number and event.get("file_type") == b"file" and event.get("mode") == 0o644, event
        other = Context().find(box.id)
        try:
            other.request("unwatch", U(number))
        except Error as error:
            assert error.code == E_NOT_FOUND
        else:
            raise AssertionError("a watch of another client was ended")
        flat = watch(project + "/d", 0)
        box.request("unwatch", U(number))
        inside("touch d/z/b/unseen; touch d/end4")
        assert (b"create", b"z/b/unseen") not in changes((b"end4", b"create"))
        inside("rm -r d")
        told(lambda change: change[0] == b"gone")
        refused(E_NOT_FOUND, box.request, "unwatch", U(flat))
        refused(E_NOT_FOUND, watch, project + "/d")
        refused(E_INVALID, watch, "/etc/passwd")
    """)


def test_watches_are_bounded_and_end_with_their_client_and_their_process(host):
    run(host, r"""
        inside("mkdir d wide; cd wide; seq -f 'w%.0f' 5000 | xargs mkdir")
        refused(E_LIMIT, watch, project + "/wide")
        numbers = [watch(project + "/d", 0) for _ in range(64)]
        refused(E_LIMIT, watch, project + "/d")
        for _ in range(1000):
            refused(E_LIMIT, watch, project + "/d", 0)
        other = Context().find(box.id)
        for number in numbers:
            box.request("unwatch", U(number))
        held = other.request("watch", S(raw(project + "/d")), ctypes.c_uint32(1)).get("watch")
        assert held not in numbers
        other.free()
        wait_until(lambda: watch(project + "/d", 0) and True)
        for _ in range(63):
            watch(project + "/d", 0)
        os.kill(helper(), signal.SIGKILL)
        told(lambda change: change[0] == b"gone")
        assert watch(project + "/d")
        # A program inside that makes more than anybody reads: said, and nothing waits.
        deaf = Context().find(box.id)
        deaf.request("watch", S(raw(project + "/d")), ctypes.c_uint32(1))
        inside("cd d; for i in $(seq 3000); do echo x > f$((i % 10)); done")
        assert inside("echo alive") == b"alive\n"
        def is_lost():
            event = deaf.wait(1000)
            return event is not None and (event.get("change") == b"overflow" or
                                          (event.get("event"), event.get("of")) == (LOST, WATCH))
        wait_until(is_lost)
    """, timeout=120)


def test_atoll_cp_copies_in_and_out_what_the_policy_lets(host):
    sandbox = host.sandbox
    out = sandbox.run_atoll("run", "-d", "-p", str(sandbox.policy(DEGRADED)), "--", "sleep", "1000")
    assert out.code == 0, out
    session = out.out.strip().splitlines()[-1]
    source = sandbox.base / "host" / "data"
    source.write_bytes(bytes(range(256)) * 5000)
    source.chmod(0o644)
    assert sandbox.run_atoll("cp", "-p", str(source), f"{session}:in/").code == 0
    seen = sandbox.run_atoll("exec", session, "--", "sh", "-c", "wc -c <in/data; sha256sum <in/data")
    assert seen.out.split()[:2] == ["1280000", hashlib.sha256(source.read_bytes()).hexdigest()], seen
    back = sandbox.project / "back"
    assert sandbox.run_atoll("cp", f"{session}:in/data", str(back)).code == 0
    assert back.read_bytes() == source.read_bytes()
    assert sandbox.run_atoll("cp", f"{session}:/etc/hostname", "-").out.strip()
    for words, said in ((("nosuch:/x", "-"), "nosuch"), ((f"{session}:/nowhere", "-"), "ENOENT"),
                        (("a", "b"), "inside"), (("/tmp", f"{session}:x"), "directory"),
                        ((str(source), f"{session}:/usr/x"), "E"),
                        ((f"{session}:/dev/zero", "-"), "regular")):
        result = sandbox.run_atoll("cp", *words)
        assert result.code == 125 and said in result.err, (words, result)
    assert sandbox.run_atoll("stop", "-t", "0s", session).code == 0
