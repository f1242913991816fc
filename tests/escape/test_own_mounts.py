# SPDX-License-Identifier: Apache-2.0
"""Mounts of a program's own (exec.namespaces: mounts): sandboxes inside work, and nothing that was closed opens.

Each attempt is made outside first, in the same kind of namespace, where it gets through.
"""
import json
import socket

import pytest

PYTHON = "/usr/bin/python3"
# Without a cgroup nobody counts what lies in such mounts, so that a limit of memory would be refused.
POLICY = """atoll: 1
extends: medium
exec: {namespaces: mounts}
resources: {memory: unlimited}
degrade: [disk]
verify: {medium: off, high: off, critical: off, unknown: off, contained: off}
files:
  write: [~/kept]
  read: [~/kept/settings]
  mask: [~/kept/secret]
"""

# Functions that attacks share. The first argument of main() is what is tried.
PRELUDE = r"""
import ctypes, json, mmap, os, socket, struct, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWCGROUP = (
    0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, 0x2000000)
RDONLY, REMOUNT, BIND, MOVE, REC, PRIVATE, MGC, DETACH = 1, 32, 4096, 8192, 16384, 1 << 18, 0xc0ed0000, 2

def mount(source, target, kind=None, flags=0, data=None):
    return libc.mount(source, target, kind, ctypes.c_ulong(flags), data) == 0

def enter(flags=NEWUSER | NEWNS):
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    assert libc.mount(None, b"/", None, ctypes.c_ulong(REC | PRIVATE), None) == 0

def new_root():
    # As bwrap does: a root of its own, the old one detached.
    os.makedirs("/tmp/root", exist_ok=True)
    assert mount(b"none", b"/tmp/root", b"tmpfs")
    os.mkdir("/tmp/root/old")
    os.chdir("/tmp/root")
    assert libc.syscall(155, b".", b"old") == 0, ctypes.get_errno()
    assert libc.umount2(b"old", DETACH) == 0, ctypes.get_errno()
    os.chdir("/")

def attempt(what):
    try:
        return bool(what())
    except OSError as error:
        return False
"""

BWRAP = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--unshare-all",
         "--die-with-parent"]


@pytest.fixture
def place(sandbox):
    sandbox.make_directory(sandbox.home / "kept")
    sandbox.write(sandbox.home / "kept" / "settings", "as it was\n")
    sandbox.write(sandbox.home / "kept" / "secret", "secret\n")
    sandbox.write(sandbox.home / "hidden.txt", "hidden\n")
    return sandbox


def inside(place, script, *words, policy=POLICY, **more):
    done = place.run([PYTHON, "-c", PRELUDE + script, *words], policy=place.policy(policy), **more)
    assert done.code == 0, done
    return json.loads(done.out)


def outside(place, script, *words):
    done = place.run_outside([PYTHON, "-c", PRELUDE + script, *words])
    assert done.code == 0, done
    return json.loads(done.out)


LOOK = ("id -u; tr '\\0' ' ' </proc/1/cmdline; echo; echo x >/tmp/x && cat /tmp/x; echo y >/dev/null && echo null; "
        "test -e /usr/bin/env && echo usr; ls /proc | grep -c '^[0-9]'; cat /proc/sys/kernel/ostype; ")


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("words", [
    BWRAP,
    # codex: its sandbox for workspace-write.
    ["bwrap", "--new-session", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--bind", "{project}",
     "{project}", "--tmpfs", "/tmp", "--unshare-user", "--unshare-pid", "--unshare-net", "--proc", "/proc", "--"],
    # Claude Code: its sandbox runtime.
    ["bwrap", "--new-session", "--die-with-parent", "--unshare-net", "--setenv", "X", "1", "--ro-bind", "/", "/",
     "--bind", "{project}", "{project}", "--ro-bind", "/dev/null", "{project}/denied", "--dev", "/dev", "--tmpfs",
     "/tmp", "--unshare-pid", "--proc", "/proc", "--"],
    # flatpak run: a runtime as /usr, directories and files of its own, and no more namespaces below it.
    ["bwrap", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink",
     "usr/lib64", "/lib64", "--symlink", "usr/sbin", "/sbin", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
     "--dir", "/run/host", "--dir", "/run/user/1000", "--ro-bind", "/etc", "/run/host/etc", "--tmpfs", "/dev/shm",
     "--dir", "/app", "--bind", "{project}", "{project}", "--unshare-user", "--unshare-pid", "--unshare-ipc",
     "--unshare-net", "--disable-userns", "--die-with-parent", "--new-session", "--chdir", "{project}"],
], ids=["usual", "codex", "claude", "flatpak"])
def test_bwrap_works(place, words):
    place.write(place.project / "denied", "x\n")
    words = [word.format(project=place.project) for word in words]
    done = place.run([*words, "sh", "-c", LOOK + f"echo z >{place.project}/made; cat {place.project}/made || true"],
                     policy=place.policy(POLICY))
    uid, first, *rest = done.out.splitlines()
    assert first.startswith("bwrap "), done
    assert rest[:3] == ["x", "null", "usr"] and int(rest[3]) <= 6 and rest[4] == "Linux", done
    # What bwrap makes writable is staged like anything else of the project.
    writes = "--bind" in words
    assert rest[5:] == (["z"] if writes else []), done
    assert not (place.project / "made").exists()
    if writes:
        assert place.run_atoll("diff", done.session).out.count("made"), done


@pytest.mark.needs("bwrap")
def test_bwrap_within_bwrap_and_its_sockets(place):
    """A second one, without a /proc of its own as on the host; and a unix socket on a tmpfs that was mounted inside."""
    talk = ("import os, socket, threading\ns = socket.socket(socket.AF_UNIX); s.bind('/tmp/s'); s.listen()\n"
            "c = socket.socket(socket.AF_UNIX); c.connect('/tmp/s'); print('connected')")
    words = [*BWRAP, "bwrap", "--ro-bind", "/", "/", "--tmpfs", "/tmp", "--unshare-all", PYTHON, "-c", talk]
    done = place.run(words, policy=place.policy(POLICY))
    assert done.code == 0 and done.out == "connected\n", done


# Paths: the directory, what is read-only in it, what is masked in it.
REMOVE = r"""
directory, = sys.argv[1:]
got = {}
if os.environ.get("CONTROL"):
    enter()
    assert mount(f"{directory}/settings".encode(), f"{directory}/settings".encode(), None, BIND)
    assert mount(None, f"{directory}/settings".encode(), None, BIND | REMOUNT | RDONLY)
    assert mount(b"/dev/null", f"{directory}/secret".encode(), None, BIND)
got["first"] = attempt(lambda: open(f"{directory}/settings", "a").write("changed\n"))
parent = os.open(directory, os.O_PATH | os.O_DIRECTORY)
child = os.fork()
if child == 0:
    enter()
    fd = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    new_root()
    def replace(fd):
        os.unlink("settings", dir_fd=fd)
        with open(os.open("settings", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=fd), "w") as file:
            file.write("changed\n")
        return True
    def move(fd):
        os.rename("secret", "moved", src_dir_fd=fd, dst_dir_fd=fd)
        os.rename("moved", "secret", src_dir_fd=fd, dst_dir_fd=fd)
        return True
    def cover(fd):
        os.close(os.open("other", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=fd))
        os.rename("other", "secret", src_dir_fd=fd, dst_dir_fd=fd)
        return True
    for name, what in (("own", fd), ("given", parent)):
        got[f"replace.{name}"] = attempt(lambda: replace(what))
        got[f"move.{name}"] = attempt(lambda: move(what))
        got[f"cover.{name}"] = attempt(lambda: cover(what))
    print(json.dumps(got), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_what_holds_a_name_cannot_be_taken_off_from_another_namespace(place):
    """A mount point is one in its own mount namespace: elsewhere its name can be removed, and with it the mount."""
    kept = place.home / "kept"
    control = place.run_outside([PYTHON, "-c", PRELUDE + REMOVE, kept], env={"CONTROL": "1"})
    assert control.code == 0, control
    got = json.loads(control.out)
    assert got.pop("first") is False and all(got.values()), got
    assert (kept / "settings").read_text() == "changed\n" and (kept / "secret").read_text() == ""
    place.write(kept / "settings", "as it was\n")
    place.write(kept / "secret", "secret\n")
    got = inside(place, REMOVE, kept)
    assert not any(got.values()), got
    assert (kept / "settings").read_text() == "as it was\n" and (kept / "secret").read_text() == "secret\n"
    assert sorted(path.name for path in kept.iterdir() if path.name != "other") == ["secret", "settings"]


def test_names_change_as_ever_in_another_namespace(place):
    """What nothing is mounted on: written, moved and removed by who has mounts of its own, in each class of files."""
    script = r"""
directory, project = sys.argv[1:]
enter()
got = {}
for where in (directory, project, "/tmp"):
    os.mkdir(f"{where}/d")
    open(f"{where}/d/a", "w").write("a")
    os.rename(f"{where}/d/a", f"{where}/d/b")
    os.link(f"{where}/d/b", f"{where}/d/c")
    os.unlink(f"{where}/d/b")
    os.chdir(f"{where}/d")
    os.rename("c", "../e")
    os.chdir("/")
    os.rmdir(f"{where}/d")
    got[where] = open(f"{where}/e").read() == "a"
print(json.dumps(got))
"""
    got = inside(place, script, place.home / "kept", place.project)
    assert len(got) == 3 and all(got.values()), got
    assert (place.home / "kept" / "e").read_text() == "a" and not (place.project / "e").exists()


LIFT = r"""
directory, hidden = sys.argv[1:]
secret, settings = f"{directory}/secret".encode(), f"{directory}/settings".encode()
got = {}
if os.environ.get("CONTROL"):
    # The same mounts, without a namespace between them and who tries.
    enter()
    mount(b"/dev/null", secret, None, BIND)
    mount(settings, settings, None, BIND)
    mount(None, settings, None, BIND | REMOUNT | RDONLY)
else:
    enter()
os.makedirs("/tmp/a", exist_ok=True)
def read(path):
    with open(path, "rb") as file:
        return file.read() == b"secret\n"
got["bind"] = attempt(lambda: mount(directory.encode(), b"/tmp/a", None, BIND) and read("/tmp/a/secret"))
libc.umount2(b"/tmp/a", DETACH)
got["remount"] = attempt(lambda: mount(None, settings, None, BIND | REMOUNT) and open(settings, "a").write("x"))
got["unmount"] = attempt(lambda: libc.umount2(secret, DETACH) == 0 and read(secret))
got["move"] = attempt(lambda: mount(settings, b"/tmp/a", None, MOVE))
got["usr"] = attempt(lambda: mount(None, b"/usr", None, BIND | REMOUNT) and open("/usr/x", "w"))
got["whole proc"] = attempt(lambda: libc.umount2(b"/proc", DETACH) == 0 and os.path.exists("/proc/whole/kcore"))
got["hidden"] = os.path.exists(hidden)
print(json.dumps(got))
"""


@pytest.mark.only("user")
def test_masks_and_read_only_mounts_cannot_be_lifted(place):
    words = [place.home / "kept", place.home / "hidden.txt"]
    control = place.run_outside([PYTHON, "-c", PRELUDE + LIFT, *words], env={"CONTROL": "1"})
    got = json.loads(control.out)
    # The host's own mounts are locked there as well, and none is hidden.
    assert got["bind"] and got["remount"] and got["unmount"] and got["hidden"], control
    place.write(place.home / "kept" / "settings", "as it was\n")
    got = inside(place, LIFT, *words)
    assert not any(got.values()), got
    assert (place.home / "kept" / "settings").read_text() == "as it was\n"


TYPES = r"""
enter(NEWUSER | NEWNS | NEWNET | NEWIPC | NEWCGROUP)
os.makedirs("/tmp/t/lower", exist_ok=True)
got = {}
def there(kind):
    return any(line.split(" - ")[1].split()[0] == kind and line.split()[4] == "/tmp/t" for line in
               open("/proc/self/mountinfo"))
def new(kind, flags=0, data=None):
    done = mount(b"none", b"/tmp/t", kind, flags, data) and there(kind.decode())
    libc.umount2(b"/tmp/t", DETACH)
    return done
got["tmpfs"] = new(b"tmpfs")
got["devpts"] = new(b"devpts", 0, b"newinstance,ptmxmode=0666,mode=620")
got["mqueue"] = new(b"mqueue")
got["overlay"] = new(b"overlay", 0, b"lowerdir=/tmp/t/lower:/usr")
got["ramfs"] = new(b"ramfs")
got["cgroup2"] = new(b"cgroup2")
# What looks like a change of propagation, and is none: the upper half of the flags is a number that the kernel forgets.
got["magic ramfs"] = new(b"ramfs", MGC)
got["magic tmpfs"] = new(b"tmpfs", MGC)
got["high half"] = new(b"ramfs", 1 << 40)
got["remounted"] = new(b"tmpfs") and mount(None, b"/tmp/t", None, REMOUNT, b"size=9g")
# The type is exchanged while somebody looks at it.
memory = mmap.mmap(-1, 8)
name = (ctypes.c_char * 8).from_buffer(memory)
name.value = b"tmpfs"
child = os.fork()
while child == 0:
    name.value = b"ramfs"
    name.value = b"tmpfs"
got["exchanged"] = False
end = time.monotonic() + 2
while time.monotonic() < end and not got["exchanged"]:
    mount(b"none", b"/tmp/t", name, 0)
    got["exchanged"] |= there("ramfs")
    libc.umount2(b"/tmp/t", DETACH)
os.kill(child, 9)
def fs():
    fd = libc.syscall(430, b"ramfs", 0)
    return fd >= 0
got["fsopen"] = attempt(fs)
got["open_tree"] = attempt(lambda: libc.syscall(428, -100, b"/tmp", 1) >= 0)
got["packet"] = attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
got["netfilter"] = attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12))
print(json.dumps(got))
"""


def test_new_file_systems_are_of_a_few_types(place):
    control = outside(place, TYPES)
    granted = {"tmpfs", "devpts", "mqueue", "magic tmpfs"}
    wanted = granted | {"overlay", "ramfs", "cgroup2", "magic ramfs", "exchanged", "fsopen", "open_tree"}
    assert wanted <= {name for name, through in control.items() if through}, control
    got = inside(place, TYPES)
    assert {name for name, through in got.items() if through} == granted, got


BOUNDS = r"""
enter()
got = {"mounts": 0, "namespaces": 0}
os.makedirs("/tmp/t", exist_ok=True)
while got["mounts"] < 200 and mount(b"none", b"/tmp/t", b"tmpfs", 0, b"size=100000000000"):
    got["mounts"] += 1
got["bytes"] = os.statvfs("/tmp/t").f_blocks * os.statvfs("/tmp/t").f_frsize
got["inodes"] = os.statvfs("/tmp/t").f_files
children = []
while got["namespaces"] < 400:
    ends = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(ends[1], b"1" if libc.unshare(NEWUSER | NEWNS) == 0 else b"0")
        time.sleep(600)
    children.append(child)
    if os.read(ends[0], 1) == b"0":
        break
    got["namespaces"] += 1
for child in children:
    os.kill(child, 9)
print(json.dumps(got))
"""


def test_mounts_and_namespaces_are_bounded(place):
    policy = POLICY.replace("unlimited}", "unlimited, disk: 64MiB, inodes: 5k}")
    got = inside(place, BOUNDS, policy=policy)
    assert 32 <= got["mounts"] <= 64 and 100 <= got["namespaces"] <= 256, got
    assert got["bytes"] == 64 << 20 and got["inodes"] == 5000, got


# A mount whose line in mountinfo is longer than anybody reads, in front of those that are counted.
HIDDEN = r"""
enter()
os.makedirs("/tmp/t", exist_ok=True)
os.makedirs("long", exist_ok=True)
os.chdir("long")
for _ in range(40):
    os.makedirs("\n" * 255, exist_ok=True)
    os.chdir("\n" * 255)
if sys.argv[1:]:
    assert mount(b".", b".", None, BIND), ctypes.get_errno()
    assert max(len(line) for line in open("/proc/self/mountinfo")) > 16 << 10
mounts = 0
while mounts < 100 and mount(b"none", b"/tmp/t", b"tmpfs"):
    mounts += 1
print(json.dumps(mounts))
"""


def test_a_long_path_hides_no_mounts_from_who_counts_them(place):
    assert outside(place, HIDDEN, "long") == 100
    assert 32 <= inside(place, HIDDEN) <= 64
    assert inside(place, HIDDEN, "long") == 0


SOCKET = r"""
project, = sys.argv[1:]
got = {}
if not os.environ.get("CONTROL"):
    enter()
    os.makedirs("/tmp/t", exist_ok=True)
    assert mount(b"none", b"/tmp/t", b"tmpfs")
    os.mkdir("/tmp/t/p")
    assert mount(project.encode(), b"/tmp/t/p", None, BIND | REC)
    project = "/tmp/t/p"
def connect():
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(f"{project}/host.sock")
    return True
got["host"] = attempt(connect)
print(json.dumps(got))
"""


@pytest.mark.only("user")
def test_a_socket_of_the_host_stays_closed_at_another_place(place):
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(place.home / "kept" / "host.sock"))
    place.own(place.home / "kept" / "host.sock")
    server.listen()
    try:
        control = place.run_outside([PYTHON, "-c", PRELUDE + SOCKET, place.home / "kept"], env={"CONTROL": "1"})
        assert json.loads(control.out)["host"], control
        assert not inside(place, SOCKET, place.home / "kept")["host"]
    finally:
        server.close()
        (place.home / "kept" / "host.sock").unlink()


PROC = r"""
enter(NEWUSER | NEWNS | NEWPID)
if os.fork():
    os.wait()
    os._exit(0)
os.makedirs("/tmp/p", exist_ok=True)
assert mount(b"proc", b"/tmp/p", b"proc"), ctypes.get_errno()
def read(path):
    with open(path, "rb") as file:
        return file.read(1)
def write(path, text):
    with open(path, "w") as file:
        return file.write(text)
got = {"pids": sorted(int(name) for name in os.listdir("/tmp/p") if name.isdigit())}
got["sysrq"] = attempt(lambda: write("/tmp/p/sysrq-trigger", "h"))
got["kcore"] = attempt(lambda: read("/tmp/p/kcore"))
got["core_pattern"] = attempt(lambda: write("/tmp/p/sys/kernel/core_pattern", "|/tmp/x"))
got["modprobe"] = attempt(lambda: write("/tmp/p/sys/kernel/modprobe", "/tmp/x"))
got["hostname"] = attempt(lambda: write("/tmp/p/sys/kernel/hostname", "x"))
got["drop_caches"] = attempt(lambda: write("/tmp/p/sys/vm/drop_caches", "1"))
got["namespaces"] = attempt(lambda: write("/proc/sys/user/max_user_namespaces", "7")) and (
    read("/proc/sys/user/max_user_namespaces") == b"7")
# Whoever mounts for us is here for a moment: it can neither be read nor traced nor joined.
stop, seen, through = [], set(), []
def watch():
    while not stop:
        for name in os.listdir("/tmp/p"):
            if not name.isdigit() or int(name) in own:
                continue
            seen.add(int(name))
            for what in ("mem", "maps", "environ", "auxv"):
                try:
                    with open(f"/tmp/p/{name}/{what}", "rb") as file:
                        through += [what] if file.read(1) else []
                except OSError:
                    pass
            for what in ("fd", "map_files"):
                try:
                    os.listdir(f"/tmp/p/{name}/{what}")
                    through.append(what)
                except OSError:
                    pass
            for link in ("exe", "cwd", "root", "ns/user", "ns/mnt"):
                try:
                    os.readlink(f"/tmp/p/{name}/{link}")
                    through.append(link)
                except OSError:
                    pass
            if libc.ptrace(16, int(name), 0, 0) == 0:
                through.append("ptrace")
own = {os.getpid()}
thread = threading.Thread(target=watch)
thread.start()
os.makedirs("/tmp/q", exist_ok=True)
for _ in range(300):
    mount(b"proc", b"/tmp/q", b"proc")
    libc.umount2(b"/tmp/q", DETACH)
stop.append(1)
thread.join()
got["seen"], got["through"] = len(seen), sorted(set(through))
print(json.dumps(got))
"""


def test_a_proc_of_its_own_shows_its_own_processes(place):
    got = inside(place, PROC, timeout=120)
    assert got.pop("pids") == [1] and got.pop("namespaces"), got
    # Otherwise the attempts prove nothing.
    assert got.pop("seen") > 0, got
    assert got.pop("through") == [] and not any(got.values()), got


STOP = r"""
enter(NEWUSER | NEWNS | NEWPID)
if os.fork():
    os.wait()
    os._exit(0)
os.makedirs("/tmp/p", exist_ok=True)
assert mount(b"proc", b"/tmp/p", b"proc"), ctypes.get_errno()
def hold():
    while True:
        for pid in range(2, 400):
            libc.kill(pid, 19)
holder = os.fork()
if holder == 0:
    hold()
os.makedirs("/tmp/q", exist_ok=True)
began, failed = time.monotonic(), 0
for _ in range(200):
    failed += not mount(b"proc", b"/tmp/q", b"proc")
    libc.umount2(b"/tmp/q", DETACH)
print(json.dumps({"seconds": time.monotonic() - began, "failed": failed}))
"""


def test_who_holds_up_a_mount_holds_up_nothing_else(place):
    """SIGSTOP to whoever mounts: the call fails, the supervisor goes on, and so does the sandbox."""
    # The holder would stop itself by its number, and the one who waits for it: both are 1 and 2.
    got = inside(place, STOP.replace("range(2, 400)", "range(3, 400)"), timeout=120)
    assert got["seconds"] < 30, got


def test_what_it_costs_is_said(place):
    policy = place.policy(POLICY)
    done = place.run(["cat", "/run/atoll/limits.md"], policy=policy)
    assert "Landlock holds no rule about files here" in done.out and "bwrap, flatpak" not in done.out, done
    enforcement = done.report["enforcement"]
    assert enforcement["seccomp"] == "mounts+moves" and enforcement["landlock_files"] is False, enforcement
    explained = place.run_atoll("policy", "explain", "-p", policy, "file.write", "/usr/x")
    assert "Landlock holds no file rule" in explained.out, explained
    usual = place.run(["cat", "/run/atoll/limits.md"])
    assert "Landlock" not in usual.out and usual.report["enforcement"]["landlock_files"] is True, usual
    assert "Landlock" not in place.run_atoll("policy", "explain", "file.write", "/usr/x").out


def test_a_rule_that_mounts_cannot_hold_is_named(place):
    policy = place.policy(POLICY + "  ask: [~/kept/asked]\n", name="ask.yaml")
    done = place.run(["true"], policy=policy)
    assert done.code == 125 and "files.ask" in done.err and "ask.yaml" in done.err, done


def test_a_memory_limit_that_nobody_could_hold_is_refused(place):
    policy = place.policy(POLICY.replace("memory: unlimited", "memory: 1GiB"))
    done = place.run(["true"], policy=policy)
    if done.code == 0:
        assert done.report["enforcement"]["limits"]["memory"] == "cgroup", done
        return
    assert done.code == 125 and "namespaces: mounts" in done.err and "memory: unlimited" in done.err, done


def test_a_refused_file_system_says_what_works(place):
    script = ("enter()\nos.makedirs('/tmp/t')\n"
              "assert not mount(b'none', b'/tmp/t', b'overlay', 0, b'lowerdir=/usr:/etc')")
    done = place.run([PYTHON, "-c", PRELUDE + script], policy=place.policy(POLICY))
    path = place.state / "atoll" / "sessions" / done.session / "denials.jsonl"
    entry, = [entry for entry in map(json.loads, path.read_text().splitlines()) if entry["subject"] == "mount"]
    assert done.code == 0 and entry["rule"] == "builtin.namespaces" and "tmpfs, proc" in entry["reason"], entry
