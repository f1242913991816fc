# SPDX-License-Identifier: Apache-2.0
"""Masks by glob, decided at access time: no call, no name and no moment gives what a masked file holds."""
import json

import pytest

POLICY = 'atoll: 1\nextends: medium\nfiles: {mask: ["**/.token", "conf/*.key"]}\n'
PLAIN = "atoll: 1\nextends: medium\n"

# Every way to a file that has a name; each prints its name where it worked.
TRIES = r"""
import ctypes, errno, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
secret, fresh = "sub/.token", "n/d/.token"
os.makedirs("n/d", exist_ok=True)
open("t", "w").write("t")
def number(name):
    table = {"x86_64": {"creat": 85, "openat2": 437, "name_to_handle_at": 303, "renameat2": 316},
             "aarch64": {"openat2": 437, "name_to_handle_at": 264, "renameat2": 276}}
    return table[platform.machine()].get(name, -1)
def raw(name, *arguments):
    if libc.syscall(number(name), *arguments) < 0:
        raise OSError(ctypes.get_errno(), name)
def attempt(label, what, *arguments, **more):
    try:
        what(*arguments, **more)
        print(label)
    except OSError as error:
        if len(sys.argv) > 1 and errno.errorcode[error.errno] not in ("ENOENT", "EACCES", "EPERM", "ENOSYS"):
            print(label, error)
here = os.open("sub", os.O_RDONLY)
attempt("open", os.open, secret, os.O_RDONLY)
attempt("open for writing", os.open, secret, os.O_WRONLY)
attempt("openat", os.open, ".token", os.O_RDONLY, dir_fd=here)
attempt("openat2", raw, "openat2", -100, secret.encode(), bytes(24), 24)
attempt("by handle", raw, "name_to_handle_at", -100, secret.encode(), bytes(200), bytes(8), 0)
attempt("creat", raw, "creat", secret.encode(), 0o600)
attempt("truncate", os.truncate, secret, 0)
attempt("/proc/self/cwd", os.open, "/proc/self/cwd/" + secret, os.O_RDONLY)
attempt("link", os.link, secret, "l1")
os.symlink(secret, "l2"); attempt("through a link", os.open, "l2", os.O_RDONLY)
attempt("rename away", os.rename, secret, "r1")
attempt("rename onto", os.rename, "t", secret)
attempt("rename into", os.rename, "t", fresh)
attempt("exchange", raw, "renameat2", -100, b"t", -100, secret.encode(), 2)
attempt("link into", os.link, "t", fresh)
attempt("symlink into", os.symlink, "/etc/os-release", fresh)
attempt("mkdir into", os.mkdir, fresh)
attempt("mknod into", os.mkfifo, fresh)
attempt("create", os.open, fresh, os.O_CREAT | os.O_RDWR)
attempt("create in another case", os.open, "n/d/.Token", os.O_CREAT | os.O_RDWR)
attempt("chmod", os.chmod, secret, 0o777)
attempt("chown", os.chown, secret, -1, -1)
attempt("utime", os.utime, secret)
attempt("setxattr", os.setxattr, secret, "user.x", b"x")
attempt("unlink", os.unlink, secret)
attempt("move what is around it", os.rename, "conf", "other")
"""


def test_every_way_to_a_masked_name(sandbox):
    def fill():
        sandbox.write(sandbox.project / "sub/.token", "SECRET")
        sandbox.write(sandbox.project / "conf/a.key", "SECRET")
        sandbox.write(sandbox.project / "try.py", TRIES)

    fill()
    control = sandbox.run(["python3", "try.py"], policy=sandbox.policy(PLAIN, "plain.yaml"))
    assert control.code == 0 and len(control.out.splitlines()) >= 14, control
    done = sandbox.run(["python3", "try.py", "refused"], policy=sandbox.policy(POLICY))
    assert done.code == 0 and done.out == "", done
    denied = {entry["subject"] for entry in done.report["denials"]}
    assert str(sandbox.project / "sub/.token") in denied and str(sandbox.project / "n/d/.token") in denied, denied


# Opens the same words again and again, while who shares directory, descriptors and memory changes what they mean.
SHARED = r"""
import ctypes, mmap, os, signal, sys
what = sys.argv[1]
libc = ctypes.CDLL(None)
top = os.getcwd()
memory = mmap.mmap(-1, 4096)
base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
paths = b"plain/.tokem\0", b"sub/.token\0\0\0"
places = top + "/plain", top + "/sub"
names = places if what == "directory" else ("plain/.tokem", "sub/.token")
opened = [os.open(name, os.O_PATH) for name in names]; target = os.dup(opened[0])
word = b".token"
def change(number):
    if what == "cwd": os.chdir(places[number])
    elif what == "path": memory[:len(paths[number])] = paths[number]
    else: os.dup2(opened[number], target)
def opening(flags):
    if what == "cwd": return libc.open(word, flags)
    if what == "path": return libc.open(ctypes.c_void_p(base), flags)
    if what == "directory": return libc.openat(target, word, flags)
    return libc.open(f"/proc/self/fd/{target}".encode(), flags)
change(0)
owner = os.getpid()
if libc.syscall(56 if os.uname().machine == "x86_64" else 220, 0x200 | 0x400 | signal.SIGCHLD, 0, 0, 0, 0) == 0:
    libc.prctl(1, signal.SIGKILL, 0, 0, 0)
    while os.getppid() == owner: change(1); change(0)
    os._exit(0)
seen = {"plain": 0, "secret": 0, "refused": 0}
for number in range(1500):
    fd = opening((os.O_RDONLY, os.O_RDWR)[number & 1])
    kind = "refused" if fd < 0 else "secret" if b"SECRET" in os.pread(fd, 9, 0) else "plain"
    seen[kind] += 1
    if fd >= 0: os.close(fd)
print(*[f"{kind}={count}" for kind, count in seen.items()])
"""


@pytest.mark.parametrize("what", ["cwd", "directory", "/proc/self/fd", "path"])
def test_what_a_sharer_changes_opens_no_masked_name(sandbox, what):
    """CLONE_FS and CLONE_FILES: chdir, dup2 and a store between the call and the look at it."""
    def attack(rules, name):
        sandbox.write(sandbox.project / "sub/.token", "SECRET")
        for plain in ("plain/.tokem", "plain/.token"):
            sandbox.write(sandbox.project / plain, "PLAIN")
        text = f"atoll: 1\nextends: medium\naudit: {{files: all}}\n{rules}\n"
        done = sandbox.run(["/usr/bin/python3", "-c", SHARED, what], policy=sandbox.policy(text, name))
        assert done.code == 0, done
        return dict(pair.split("=") for pair in done.out.split()), done

    counts, done = attack("", "open.yaml")
    assert counts["plain"] != "0" and counts["secret"] != "0", done
    counts, done = attack('files: {mask: ["sub/.tok*"]}', "masked.yaml")
    assert counts["plain"] != "0" and counts["secret"] == "0" and counts["refused"] != "0", done
    assert any(entry["subject"] == str(sandbox.project / "sub/.token") for entry in done.report["denials"]), done


def test_a_masked_name_that_appears_later(sandbox):
    """Made by the host in a directory that did not exist at the start, in a tree that is written in place."""
    policy = sandbox.policy('atoll: 1\nextends: high\nfiles: {mask: ["**/.token"]}\n')
    child = sandbox.popen(["sh", "-c", "echo begun; read x; cat new/deep/.token new/deep/plain"], policy=policy,
                          stdin=-1)
    assert child.stdout.readline() == b"begun\n"
    sandbox.write(sandbox.project / "new/deep/.token", "SECRET")
    sandbox.write(sandbox.project / "new/deep/plain", "PLAIN")
    out, err = child.communicate(b"go\n", timeout=60)
    assert out == b"PLAIN" and b"No such file" in err, (out, err)


def test_no_copy_of_a_masked_file_leaves_by_programs(sandbox):
    sandbox.write(sandbox.project / "sub/.token", "SECRET")
    script = """
    git init -q . && git add -A; git ls-files; cp -r sub c; tar cf t.tar sub; mv sub moved; cp -al moved linked
    ln -s "$PWD/moved/.token" s; cat s c/.token; grep -rl SECRET . ; grep -c SECRET t.tar; true
    """
    control = sandbox.run(script, policy=sandbox.policy(PLAIN, "plain.yaml"))
    assert "SECRET" in control.out
    done = sandbox.run(script, policy=sandbox.policy(POLICY))
    assert "SECRET" not in done.out and "c/.token" not in done.out and done.out.strip().endswith("0"), done


# Every way to start a program that lies at a masked name, or to have it read by being started.
STARTS = r"""
import ctypes, os, shutil, subprocess
def spawn(*words, **more):
    return subprocess.run(words, capture_output=True, **more).stdout
def by_fd(path, flags=os.O_PATH):
    fd = os.open(path, flags)
    out, into = os.pipe()
    if not os.fork():
        os.dup2(into, 1)
        ctypes.CDLL(None).syscall(322 if os.uname().machine == "x86_64" else 281, fd, b"",
                                  (ctypes.c_char_p * 3)(b"echo", b"RAN", None), (ctypes.c_char_p * 1)(None), 0x1000)
        os._exit(1)
    os.close(into); os.wait(); return os.read(out, 9)
def by_proc():
    fd = os.open("sub/tool.token", os.O_PATH); return spawn(f"/proc/self/fd/{fd}", "RAN", pass_fds=[fd])
def linked():
    os.symlink("sub/tool.token", "alias"); return spawn("./alias", "RAN")
def of_script():
    open("outer", "w").write(f"#!{os.getcwd()}/sub/tool.token RAN\n"); os.chmod("outer", 0o755); return spawn("./outer")
ways = {"path": lambda: spawn("sub/tool.token", "RAN"), "script": lambda: spawn("sub/run.token"),
        "shell": lambda: spawn("sh", "-c", "cd sub && ./tool.token RAN"), "execveat": lambda: by_fd("sub/tool.token"),
        "/proc/self/fd": by_proc, "link": linked, "interpreter": of_script,
        "/proc/self/cwd": lambda: spawn("/proc/self/cwd/sub/tool.token", "RAN")}
for name, way in ways.items():
    try: said = way()
    except OSError: said = b""
    if b"RAN" in said: print(name)
"""


# A static program that holds a secret, and one of our own that names it as its loader: the kernel maps it, and the
# parent of that process reads what was mapped.
AS_LOADER = r"""
import os, re, time
pid = os.fork()
if not pid:
    try: os.execv("./mine", ["mine"])
    except OSError as error: os._exit(error.errno)
def mapped():
    try: return re.findall(r"^(\w+)-(\w+) r.* /.*token$", open(f"/proc/{pid}/maps").read(), re.M)
    except OSError: return []
until = time.monotonic() + 5
while not mapped() and time.monotonic() < until and os.waitpid(pid, os.WNOHANG)[0] == 0: time.sleep(0.01)
for start, end in mapped():
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(int(start, 16))
        if b"hide" + b"this" in memory.read(int(end, 16) - int(start, 16)): print("READ")
print("mapped" if mapped() else "killed")
"""
STATIC = 'static const char kept[] = "hidethis"; void _start(void) { for (;;) __asm__ volatile("" :: "r"(kept)); }'
BUILD = """
printf '%s' "$1" >s.c && gcc -static-pie -nostdlib -fPIE -o sub/tool.token s.c && rm s.c
echo 'int main(void) { return 0; }' >m.c && gcc -Wl,--dynamic-linker="$2/sub/tool.token" -o mine m.c && rm m.c
"""


@pytest.mark.needs("gcc")
@pytest.mark.parametrize("place", ["$PWD", "/proc/self/cwd"])
@pytest.mark.parametrize("rule", ['{mask: ["**/*.token"]}', "{ask: [sub]}"])
def test_no_masked_file_is_read_by_being_a_loader(sandbox, rule, place):
    sandbox.make_directory(sandbox.project / "sub")
    words = [STATIC, place.replace("$PWD", str(sandbox.project))]
    built = sandbox.run_outside(["sh", "-c", BUILD, "sh", *words], cwd=sandbox.project)
    assert built.code == 0, built
    command = ["python3", "-c", AS_LOADER]
    control = sandbox.run(command, policy=sandbox.policy(PLAIN, "plain.yaml"))
    assert "READ" in control.out, control
    done = sandbox.run(command, policy=sandbox.policy(PLAIN + f"files: {rule}\n"))
    assert done.out == "killed\n", done
    denied = [entry for entry in done.report["denials"] if entry["subject"].endswith("mine")]
    assert denied and denied[0]["rule"].startswith("files." if place == "$PWD" else "builtin.program"), done


@pytest.mark.parametrize("rule", ['{mask: ["**/*.token"]}', "{ask: [sub]}"])
def test_no_masked_program_is_started(sandbox, rule):
    """What may not be opened is not read by being executed either."""
    sandbox.copy("/bin/echo", sandbox.project / "sub/tool.token")
    sandbox.write(sandbox.project / "sub/run.token", "#!/bin/sh\necho RAN\n", 0o755)
    command = ["python3", "-c", STARTS]
    control = sandbox.run(command, policy=sandbox.policy(PLAIN, "plain.yaml"))
    assert len(control.out.splitlines()) == 8, control
    done = sandbox.run(command, policy=sandbox.policy(PLAIN + f"files: {rule}\n"))
    assert done.code == 0 and done.out == "", done
    denied = {(entry["kind"], entry["subject"]) for entry in done.report["denials"]}
    assert ("exec", str(sandbox.project / "sub/tool.token")) in denied, denied


def test_explain_says_what_is_enforced(sandbox):
    policy = sandbox.policy(POLICY)
    for path, verdict in (("a/b/.token", "deny"), ("a/b/.TOKEN", "deny"), ("a/b/token", "allow")):
        done = sandbox.run_atoll("policy", "explain", "-p", policy, "--json", "file.read", str(sandbox.project / path),
                                 cwd=sandbox.project)
        assert json.loads(done.out)["verdict"] == verdict, done
