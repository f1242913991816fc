# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that are built ahead and taken (atoll_park, atoll_take): what is new for each, and how they end."""
import os
import subprocess
import textwrap

import pytest

import leaks
from atoll import wait_until
from library import DEGRADED, PRELUDE, Host, needs_library

pytestmark = needs_library

HELP = """
PATH = ["PATH=/usr/bin:/bin"]
policy = context.policy(**MEDIUM)

def park(**more):
    box = context.park(policy, project=project, **more)
    box.until(PARKED)
    return box

def output(box):
    box.until(END)
    return b"".join(event.get("bytes") for event in box.seen if event.get("event") == OUTPUT).decode()

def take(box, argv=None, **more):
    if argv:
        more.update(argv=argv, env=PATH, streams="capture")
    box.take(policy, project=project, **more)
    box.until(READY)
    return box

def refused(act):
    try:
        act()
    except Error as error:
        return error.code
    return "not refused"

def failure(box):
    event = box.until(FAILED)
    end = box.until(END)
    return -event.get("code"), end.get("ended").decode(), event.get("what").decode()
"""


class ParkedHost(Host):
    """In a mount namespace of its own where that can be had: what others mount on the host ends what is parked."""

    def __init__(self, sandbox):
        super().__init__(sandbox)
        sandbox.has_own_mounts = True

    def start(self, text, **more):
        return subprocess.Popen(["/usr/bin/python3", "-c", PRELUDE + HELP + textwrap.dedent(text)],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                **self.sandbox.popen_keywords(env=self.env), **more)

    def program(self, text, timeout=90):
        child = self.start(text)
        out, err = child.communicate(timeout=timeout)
        assert child.returncode == 0 and err == "", (child.returncode, out, err)
        return out


@pytest.fixture
def host(sandbox):
    return ParkedHost(sandbox)


def leftovers(sandbox, name):
    """What is named after the id under which one waited."""
    found = [path for path in (sandbox.state / "atoll" / "sessions" / name, sandbox.runtime / "atoll" / f"{name}.sock")
             if path.exists()]
    return found + leaks.cgroups([name])


def sockets(sandbox):
    return sorted(path.name for path in sandbox.runtime.rglob("*.sock"))


def test_one_that_is_taken_is_a_sandbox_like_any_other(host):
    out = host.program("""
        box = park()
        old = box.id
        print(len(context.list().rows()), names(box))
        before = time.time_ns()
        time.sleep(0.02)
        take(box, ["sh", "-c", "echo hello; exit 3"], name="taken")
        print(box.id != old, len(box.id), [row["id"].decode() == box.id for row in context.list().rows()])
        print(output(box).strip(), box.seen[-1].get("status"), names(box)[:2])
        info = box.info()
        print(info["name"], info["command"], info["started_ns"] > before, info["ended_ns"] > info["started_ns"])
        lines = [row["line"].decode() for row in box.cursor("log", LOG).rows()]
        print(lines[0])
        print(old, box.id)
    """).splitlines()
    old, new = out[5].split()
    assert out[0] == "0 ['PARKED']"
    assert out[1] == "True 12 [True]"
    assert out[2] == "hello 3 ['PARKED', 'READY']"
    assert out[3] == "b'taken' b'sh -c echo hello; exit 3' True True"
    assert '"seq":1,' in out[4] and f'"session":"{new}"' in out[4] and '"prev":"' + "0" * 64 in out[4]
    assert old not in out[4]
    assert "session.start" in out[4] and '"policy_hash":"sha256:' in out[4] and '"seccomp_hash":"sha256:' in out[4]
    wait_until(lambda: not leftovers(host.sandbox, old), what="nothing of the name under which it waited")
    wait_until(lambda: not leaks.cgroups([new]), what="its groups are gone")


LOOK = r"""
id -u; id -g; hostname; cat /etc/machine-id /etc/hosts /etc/resolv.conf 2>/dev/null
cut -d: -f1 /etc/passwd | grep -c -v atolltest
echo pid $$; ls /proc | grep -E '^[0-9]+$' | sort -n | head -3 | tr '\n' ' '
for fd in /proc/$$/fd/*; do echo "$(basename $fd) $(readlink $fd | sed 's/[0-9][0-9]*/N/')"; done
cut -d' ' -f5 /proc/self/mountinfo | sort | sha256sum
grep -E 'Seccomp|NoNewPrivs|Cap|Groups' /proc/self/status
env | grep -v -E '^(ATOLL_SESSION|_)=' | sort; ulimit -a | sha256sum; umask; pwd; ls -A "$HOME" | sort
cat /proc/keys /proc/net/dev /proc/net/tcp 2>/dev/null | wc -l
"""


def test_it_looks_inside_as_one_that_was_started(host):
    """The same script finds the same view, descriptors, first PID, limits and environment in both."""
    out = host.program(f"""
        script = {LOOK!r}
        cold = context.create(policy, project=project, argv=["sh", "-c", script], env=PATH, streams="capture")
        first = output(cold)
        second = output(take(park(), ["sh", "-c", script]))
        print(first == second, len(first) > 500)
        if first != second:
            print(first, second, sep="=====")
    """)
    assert out == "True True\n", out


def test_nothing_goes_from_one_to_the_next(host):
    """Files, keys, shared memory, processes and ids of a sandbox are not those of the next, which was parked beside."""
    script = """
        for place in /tmp "$HOME" /dev/shm /var/tmp; do ls -A "$place" 2>/dev/null; echo mark > "$place/mark" || :; done
        readlink /proc/self/ns/net /proc/self/ns/mnt /proc/self/ns/pid /proc/self/ns/ipc /proc/self/ns/user
        head -c 16 /dev/urandom | sha256sum | cut -c1-64; echo "$ATOLL_SESSION"
        python3 -c 'import ctypes as c
f = c.CDLL(None).getauxval; f.restype = c.c_void_p; print(c.string_at(f(25), 16).hex())'
    """
    out = host.program(f"""
        script = {script!r}
        both = [park(), park()]
        said = [output(take(box, ["sh", "-c", script])).split() for box in both]
        print([word for word in said[0] if word in said[1] and len(word) > 2], "mark" in said[1])
        print(both[0].id != both[1].id, len(said[0]))
    """)
    first, second = out.splitlines()
    assert first == "['project'] False", out
    assert second.startswith("True "), out


@pytest.mark.parametrize("backend", ["overlay", pytest.param("fuse", marks=pytest.mark.needs("fuse-overlayfs"))])
def test_what_is_staged_is_its_own(host, backend):
    """What one writes is found by a review of that one alone, under its own id."""
    if backend == "fuse" and not (os.path.exists("/dev/fuse") and os.stat("/dev/fuse").st_mode & 0o006 == 0o006):
        pytest.skip("/dev/fuse is not open to everybody")
    host.sandbox.policy(DEGRADED + f"stage: {{backend: {backend}}}\n", "degraded.yaml")
    out = host.program("""
        both = [park(), park()]
        for number, box in enumerate(both):
            print(repr(output(take(box, ["sh", "-c", f"ls -A; echo new > file{number}"]))))
        for box in both:
            print([row["path"] for row in context.find(box.id).cursor("diff", REVIEW).rows()], box.info()["staged"])
        result = context.find(both[0].id).cursor("apply", REVIEW).rows()
        print([row["list"] for row in result], os.listdir("."))
    """)
    lines = out.splitlines()
    assert lines[:2] == ["''", "''"], out
    assert "file0" in lines[2] and "file1" not in lines[2] and lines[2].endswith(" 1"), out
    assert "file1" in lines[3] and "file0" not in lines[3], out
    assert lines[4] == "[b'applied'] ['file0']", out


def test_canaries_are_each_sandbox_own(host):
    host.sandbox.policy(DEGRADED + "data: {canaries: [~/.aws/credentials]}\n", "degraded.yaml")
    out = host.program("""
        both = [park(), park()]
        said = [output(take(box, ["sh", "-c", "cat ~/.aws/credentials"])) for box in both]
        print(all(said), said[0] != said[1])
    """)
    assert out == "True True\n", out


def test_clocks_and_counters_begin_when_it_is_taken(host):
    host.sandbox.policy(DEGRADED + "time: {wall: 2s}\n", "degraded.yaml")
    out = host.program("""
        box = park()
        time.sleep(2.5)
        take(box)
        sample = box.request("sample").all()
        print(sample["uptime_ms"] < 1500, sample["cpu_ms"] < 20, sample["commands"], sample["processes"],
              sample["output_bytes"], sample["denials"], sample["questions"])
        box.exec(["true"], env=PATH)
        print(box.until(EXIT).get("status"), box.until(END).get("ended"))
        short = take(park(), deadline_ms=300)
        print(short.until(END).get("ended"))
    """)
    first, second, third = out.splitlines()
    assert first.startswith("True True 0 0 0 0 0"), out
    assert second == "0 b'time'" and third == "b'time'", out


def test_a_parked_one_ends_with_its_handle_its_process_and_its_time(host):
    out = host.program("""
        box = park()
        print(box.id)
        box.free()
        late = context.park(policy, project=project, age_ms=700)
        late.until(PARKED)
        print(late.id, *failure(late))
    """)
    first, second = out.splitlines()
    assert second.split()[1:3] == ["-9", "failed"] and "its time was over" in second
    child = host.start("print(park().id, flush=True); time.sleep(100)")
    third = child.stdout.readline().strip()
    child.kill()
    child.communicate()
    for name in (first, second.split()[0], third):
        wait_until(lambda name=name: not leftovers(host.sandbox, name), what=f"nothing of {name}")
    wait_until(lambda: not sockets(host.sandbox), what="no control socket")
    assert not list((host.sandbox.state / "atoll" / "sessions").iterdir())
    assert not (host.sandbox.state / "atoll" / "notice").exists()


def box_of(name):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read().split(b"\0")[:2] == [b"atoll-box", name.encode()]:
                    return int(pid)
        except OSError:
            continue
    return None


def test_a_box_that_is_killed_while_it_waits_leaves_nothing(host):
    child = host.start("box = park(); print(box.id, flush=True); print(box.until(END).get('ended').decode())")
    name = child.stdout.readline().strip()
    os.kill(box_of(name), 9)
    assert child.communicate(timeout=30)[0] == "lost\n"
    wait_until(lambda: not leftovers(host.sandbox, name), seconds=15, what=f"nothing of {name}")


def test_a_box_that_is_killed_after_it_was_taken_is_recorded_and_tidied(host):
    child = host.start("""
        box = park()
        old = box.id
        take(box)
        print(old, box.id, flush=True)
        print(box.until(END).get('ended').decode())
    """)
    old, new = child.stdout.readline().split()
    assert not host.sandbox.identity.is_root or leaks.cgroups([old]), "control: its groups have the name of before"
    os.kill(box_of(old) or box_of(new), 9)
    assert child.communicate(timeout=30)[0] == "lost\n"
    wait_until(lambda: not leftovers(host.sandbox, old) and not sockets(host.sandbox), seconds=15, what="tidied")
    listed = host.sandbox.run_atoll("ps", "-a", "--json")
    assert new in listed.out and '"lost"' in listed.out, listed


def test_a_box_that_is_killed_at_any_moment_of_the_taking_leaves_nothing(host):
    """A record that says so, or no directory; and no socket and no group of either name."""
    child = host.start("""
        for delay in range(0, 800, 40):
            box = park()
            old = box.id
            print(old, flush=True)
            pid = int(sys.stdin.readline())
            box.take(policy, project=project)
            over = time.perf_counter() + delay / 1e6
            while time.perf_counter() < over:
                pass
            os.kill(pid, signal.SIGKILL)
            print(old, box.id, box.until(END).get("ended").decode(), flush=True)
    """, stdin=subprocess.PIPE)
    names, sessions = [], host.sandbox.state / "atoll" / "sessions"
    for _ in range(0, 800, 40):
        print(box_of(child.stdout.readline().strip()), file=child.stdin, flush=True)
        old, new, ended = child.stdout.readline().split()
        assert ended == "lost"
        names += [old, new]
    assert child.wait(timeout=30) == 0, child.stderr.read()
    child.communicate()

    def are_tidy():
        half = [path for path in sessions.iterdir() if path.name in names and not
                (path / "ended.bin").stat().st_size]
        return not half and not sockets(host.sandbox) and not leaks.cgroups(names)
    wait_until(are_tidy, seconds=20, what="records of those that were sandboxes, and nothing of the others")


OTHER = """
import socket, sys
from libatoll import *
context = Context()
policy = context.policy(policy=sys.argv[1], project=sys.argv[2])
line = socket.socket(fileno=int(sys.argv[3]))
both = [context.receive(line), context.receive(line)]
for box in both:
    box.until(PARKED)
    box.take(policy, project=sys.argv[2], argv=["printenv", "ATOLL_SESSION"], env=["PATH=/usr/bin:/bin"],
             streams="capture")
    box.until(END)
    said = [event.get("bytes").decode().strip() for event in box.seen if event.get("event") == OUTPUT]
    print(said == [box.id], names(box)[:2], flush=True)
context.receive(line).until(PARKED)
print("waits", flush=True)
"""


def test_it_goes_to_another_process_of_the_user(host):
    """One that waits, and one that does not yet: taken there, and ended there with its handle; not twice."""
    out = host.program(f"""
        import socket, subprocess
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        child = subprocess.Popen([sys.executable, "-c", {OTHER!r}, MEDIUM["policy"], project, str(theirs.fileno())],
                                 pass_fds=[theirs.fileno()], stdout=subprocess.PIPE, text=True)
        theirs.close()
        boxes = [park(), context.park(policy, project=project), park()]
        for box in boxes:
            box.send(ours)
            print(box.until(END).get("ended"), refused(lambda: box.send(ours)) == E_BUSY,
                  refused(lambda: box.take(policy, project=project)) == E_BUSY)
        print(child.communicate(timeout=60)[0], child.returncode)
        print(refused(lambda: boxes[0].exec(["true"])) == E_GONE, refused(lambda: park().send(ours)) == E_GONE)
        first, second = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        second.send(b"nonsense")
        print(refused(lambda: context.receive(first)) == E_PROTOCOL)
        second.setblocking(False)
        print(refused(lambda: context.receive(second)) == E_AGAIN)
        first.close()
        print(refused(lambda: context.receive(second)) == E_GONE)
        print(refused(lambda: context.receive(open("/dev/null"))) == E_INVALID)
    """)
    lines = out.split("\n")
    assert lines[:3] == ["b'unreachable' True True"] * 3, out
    assert lines[3:5] == ["True ['PARKED', 'READY']"] * 2 and lines[5:7] == ["waits", " 0"], out
    assert lines[7] == "True True" and lines[8:12] == ["True"] * 4, out
    wait_until(lambda: not sockets(host.sandbox), seconds=10, what="the last one ended with its handle")


@pytest.mark.only("root")
def test_it_does_not_go_to_another_user(host):
    out = host.program("""
        import socket
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listening.bind(f"\\0atolltest-{os.getpid()}")
        listening.listen()
        if os.fork() == 0:
            os.setuid(65534)
            line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            line.connect(listening.getsockname())
            line.recv(1)
            os._exit(0)
        line = listening.accept()[0]
        box = park()
        print(refused(lambda: box.send(line)) == E_IDENTITY, refused(lambda: context.receive(line)) == E_IDENTITY)
        line.close()
        os.wait()
        print(output(take(box, ["echo", "here"])).strip())
    """)
    assert out == "True True\nhere\n", out


def test_hundreds_leave_no_descriptor_and_no_memory(host):
    out = host.program("""
        def memory():
            return int(open("/proc/self/statm").read().split()[1])
        def fds():
            return len(os.listdir("/proc/self/fd"))
        def some(count):
            for _ in range(count):
                box = park()
                take(box, ["true"])
                box.until(END)
                box.free()
                park().free()
        some(20)
        before = memory(), fds()
        some(60)
        print(memory() - before[0] < 100, fds() - before[1])
    """)
    assert out == "True 0\n", out


def test_ps_does_not_take_the_groups_of_one_that_runs(host):
    """They are named after the id under which it waited, of which no session is known."""
    if not host.sandbox.identity.is_root:
        pytest.skip("this user has no control groups here")
    child = host.start("""
        box = park()
        old = box.id
        take(box, ["sleep", "100"])
        print(old, box.id, flush=True)
        sys.stdin.readline()
        box.request("stop", ctypes.c_uint32(0))
        box.until(END)
    """, stdin=subprocess.PIPE)
    old, new = child.stdout.readline().split()
    host.sandbox.run_atoll("ps")
    assert leaks.cgroups([old]) and host.sandbox.run_atoll("ps").out.count(new) == 1
    assert child.communicate("\n", timeout=30)[1] == "" and child.returncode == 0
    assert not leaks.cgroups([old, new])


def test_what_it_stands_on_must_be_as_it_was(host):
    out = host.program("""
        source = MEDIUM["policy"]
        box = park()
        with open(source, "a") as file:
            file.write("# another line\\n")
        box.take(policy, project=project)
        print(*failure(box), sep="|")
        old = context.park(policy, project=project)
        print(*failure(old), sep="|")
        policy = context.policy(**MEDIUM)
        box = park()
        open("file", "w").close()
        box.take(policy, project=project)
        print(*failure(box), sep="|")
        print(*failure(context.park(policy, project=project)), sep="|")
        os.unlink("file")
        print(output(take(park(), ["echo", "again"])).strip())
    """).splitlines()
    assert out[0].startswith("-5|failed|") and "a file that its policy was made of changed" in out[0]
    assert out[1].startswith("-5|failed|") and "a file that its policy was made of changed" in out[1]
    assert out[2].startswith("-3|failed|") and "empty" in out[2]
    assert out[3].startswith("-3|failed|") and "empty" in out[3]
    assert out[4] == "again"


@pytest.mark.only("root")
def test_a_mount_on_the_host_ends_what_waits(host):
    out = host.program("""
        import subprocess
        box = park()
        subprocess.run(["mount", "-t", "tmpfs", "none", "/mnt"], check=True)
        print(*failure(box), sep="|")
        print(output(take(park(), ["echo", "again"])).strip())
    """).splitlines()
    assert out[0].startswith("-5|failed|") and "mounted" in out[0]
    assert out[1] == "again"


def test_a_replaced_program_ends_what_waits(host):
    """A program of atoll's that is another one since."""
    init = host.sandbox.programs.program("atoll-init")
    times = os.stat(init)
    try:
        child = host.start("""
            box = park()
            print(flush=True)
            sys.stdin.readline()
            box.take(policy, project=project)
            print(*failure(box), sep="|")
        """, stdin=subprocess.PIPE)
        child.stdout.readline()
        os.utime(init, (1, 1))
        out = child.communicate("\n", timeout=30)[0]
    finally:
        os.utime(init, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert out.startswith("-5|failed|") and "a program of atoll's changed" in out


def test_it_is_taken_once_under_its_own_policy(host):
    host.sandbox.policy("atoll: 1\nextends: low\ndegrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]\n", "low.yaml")
    out = host.program("""
        other = context.policy(policy=MEDIUM["policy"].replace("degraded", "low"), project=project)
        box = park()
        print(refused(lambda: box.take(other, project=project)) == E_CONFLICT)
        for key, value in {"host_ports": ["80"], "token": "/t", "record": "/r", "replay": "/r",
                           "snapshot": "x"}.items():
            print(refused(lambda: box.take(policy, project=project, **{key: value})) == E_INVALID)
        print(refused(lambda: box.exec(["true"])) == E_BUSY, refused(lambda: box.request("sample")) == E_BUSY)
        same = context.policy(**MEDIUM)
        box.take(same, project=project)
        box.until(READY)
        print(refused(lambda: box.take(policy, project=project)) == E_BUSY, box.exec(["true"]).get("command"))
        cold = context.create(policy, project=project)
        print(refused(lambda: cold.take(policy, project=project)) == E_BUSY)
        for one in (box, cold):
            one.request("stop", ctypes.c_uint32(0))
            one.until(END)
        for more in ({}, {"project": "."}, {"age_ms": 0}, {"age_ms": 3600001}):
            shape = {"project": project, **more} if more else {}
            print(refused(lambda: context.park(policy, **shape)) == E_INVALID)
    """)
    words = out.split()
    assert words.count("True") == len(words) - 1 and words[9] == "1", out


def test_it_may_be_taken_before_it_waits(host):
    out = host.program("""
        box = context.park(policy, project=project)
        box.take(policy, project=project, argv=["echo", "early"], env=PATH, streams="capture")
        print(output(box).strip(), names(box)[-1], FAILED in [event.get("event") for event in box.seen])
    """)
    assert out == "early END False\n", out


def test_what_fails_behind_the_taking_ends_it(host):
    out = host.program("""
        for more in ({"cwd": "/no/such/place"}, {"project": "/usr"}, {"at_end": "sometimes"}, {"name": "-x"}):
            box = park()
            old = box.id
            box.take(policy, **{"project": project, **more})
            code, ended, what = failure(box)
            print(old, box.id, code, ended, what)
        print(context.list().rows())
    """).splitlines()
    assert out[-1] == "[]"
    for line in out[:-1]:
        old, new, code, ended, _ = line.split(" ", 4)
        assert (code, ended) == ("-2", "failed"), line
        wait_until(lambda names=(old, new): not any(leftovers(host.sandbox, name) for name in names), what="nothing")


@pytest.mark.parametrize("policy, what", [
    ("network: {default: deny, allow: [{host: example.org, ports: [443], "
     "inject: {header: x-key, secret: key, env: KEY}}]}\n", "secrets"),
    ("network: {publish: [18231]}\n", "publishes ports"),
    ("agent: {state: [~/.something/]}\n", "agent"),
])
def test_what_needs_to_know_whom_it_is_for_cannot_wait(host, policy, what):
    host.sandbox.policy(DEGRADED + policy, "degraded.yaml")
    out = host.program("print(*failure(context.park(policy, project=project)), sep='|')")
    assert out.startswith("-3|failed|no sandbox can be parked under this policy") and what in out, out


def test_the_network_of_a_parked_one_is_made_for_it(host):
    """A server inside is published when it is taken; another one that waited beside it knows nothing of it."""
    host.sandbox.policy(DEGRADED + "network: {default: deny, allow: [example.invalid]}\n", "degraded.yaml")
    server = "import http.server as s; s.HTTPServer(('127.0.0.1', 8080), s.SimpleHTTPRequestHandler).serve_forever()"
    out = host.program(f"""
        import socket, urllib.request
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        both = [park(), park()]
        take(both[0], publish=[f"{{port}}:8080"])
        take(both[1])
        for box in both:
            box.exec(["python3", "-c", {server!r}], env=PATH)
        for _ in range(100):
            try:
                print(urllib.request.urlopen(f"http://127.0.0.1:{{port}}/", timeout=5).status)
                break
            except OSError:
                time.sleep(0.05)
        for box in both:
            box.request("stop", ctypes.c_uint32(0))
            box.until(END)
    """)
    assert out == "200\n", out


def test_many_are_taken_at_once_and_none_is_left(host):
    out = host.program("""
        boxes = [context.park(policy, project=project) for _ in range(20)]
        for box in boxes:
            box.until(PARKED)
        for box in boxes[:15]:
            box.take(policy, project=project, argv=["sh", "-c", "echo $ATOLL_SESSION"], env=PATH, streams="capture")
        print(len({output(box).strip() for box in boxes[:15]}), len({box.id for box in boxes}))
        for box in boxes:
            box.free()
    """)
    assert out == "15 20\n", out
    wait_until(lambda: not sockets(host.sandbox), seconds=10, what="none waits any more")
