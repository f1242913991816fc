# SPDX-License-Identifier: Apache-2.0
"""Rules for programs hold by what a file is, whatever it is called, however it is started, and whoever changes paths
and arguments under the eyes of the judge. Every way first works without the rule."""
import json

import pytest

PYTHON = "/usr/bin/python3"
EACCES, EPERM = 13, 1

# Each way runs id(1), which says "uid=" when it does, or "id: …" about what a script gives it; the last line is what
# became of each.
WAYS = r"""
import ctypes, json, os, shutil, subprocess, sys, tempfile
place = tempfile.mkdtemp(); os.chdir(place)
ID = "/usr/bin/id"
def script(name, line):
    open(name, "w").write(line + "\n"); os.chmod(name, 0o755); return "./" + name
def copy(name):
    shutil.copy(ID, name); os.chmod(name, 0o755); return "./" + name
def memfd():
    fd = os.memfd_create("innocent"); os.write(fd, open(ID, "rb").read()); return fd
def spawn(argv, program=None):
    done = subprocess.run(argv, executable=program, capture_output=True, stdin=subprocess.DEVNULL)
    return done.stdout + done.stderr
def in_child(call):
    out, into = os.pipe(); pid = os.fork()
    if not pid:
        os.dup2(into, 1); os.dup2(into, 2)
        try: call()
        except OSError as error: os.write(2, repr(error).encode())
        os._exit(1)
    os.close(into); os.waitpid(pid, 0)
    text = b"".join(iter(lambda: os.read(out, 4096), b"")); os.close(out); return text
def linked():
    copy("first"); os.link("first", "second"); return "./second"
def renamed():
    copy("old"); os.rename("old", "ls"); return "./ls"
def aliased():
    os.symlink(ID, "alias"); return "./alias"
def removed():
    copy("gone"); fd = os.open("gone", os.O_RDONLY); os.unlink("gone")
    return in_child(lambda: os.execve(fd, ["ls"], os.environ))
def of_fd(): fd = memfd(); return in_child(lambda: os.execve(f"/proc/self/fd/{fd}", ["ls"], os.environ))
def of_dev(): fd = memfd(); return in_child(lambda: os.execve(f"/dev/fd/{fd}", ["ls"], os.environ))
def by_loader():
    loader = next(p for p in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(p))
    return spawn([loader, ID])
def by_copied_loader():
    loader = next(p for p in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(p))
    shutil.copy(loader, "innocent"); os.chmod("innocent", 0o755); return spawn(["./innocent", ID])
def relative():
    directory = os.open("/usr", os.O_PATH)
    return in_child(lambda: ctypes.CDLL(None).syscall(322 if os.uname().machine == "x86_64" else 281, directory,
        b"bin/id", (ctypes.c_char_p * 2)(b"ls", None), None, 0))
ways = {
    "path": lambda: spawn([ID]), "copy": lambda: spawn([copy("mine")]), "rename": lambda: spawn([renamed()]),
    "hard link": lambda: spawn([linked()]), "symbolic link": lambda: spawn([aliased()]),
    "argv[0]": lambda: spawn(["ls"], ID), "env": lambda: spawn(["env", "id"]),
    "xargs": lambda: spawn(["sh", "-c", "echo -u | xargs id; id"]), "sh -c": lambda: spawn(["sh", "-c", "id; true"]),
    "find": lambda: spawn(["find", place, "-maxdepth", "0", "-exec", "id", ";"]),
    "timeout": lambda: spawn(["timeout", "9", "nice", "id"]),
    "script": lambda: spawn([script("direct", "#!/usr/bin/id -u --")]) and spawn([script("b", "#!/usr/bin/env id")] ),
    "chain": lambda: spawn([script("outer", "#!" + place + script("inner", "#!/usr/bin/id -Z")[1:])]),
    "no #!": lambda: spawn(["sh", "-c", script("plain", "id")]),
    "open file": lambda: in_child(lambda: os.execve(os.open(ID, os.O_RDONLY), ["ls"], os.environ)),
    "memfd": lambda: (lambda fd: in_child(lambda: os.execve(fd, ["ls"], os.environ)))(memfd()),
    "/proc/self/fd": of_fd, "/dev/fd": of_dev, "removed": removed, "loader": by_loader,
    "copied loader": by_copied_loader, "execveat": relative,
}
result = {}
for name, way in ways.items():
    try: text = way()
    except OSError as error: text = repr(error).encode()
    result[name] = b"uid=" in text or b"id: " in text and b"enied" not in text
print(json.dumps(result))
"""


def policy(sandbox, text):
    return sandbox.policy(f"atoll: 1\nextends: medium\n{text}\n")


def ways(sandbox, text):
    done = sandbox.run([PYTHON, "-c", WAYS], policy=policy(sandbox, text))
    assert done.code == 0, done
    return json.loads(done.out.splitlines()[-1]), done


def test_every_way_works_without_a_rule(sandbox):
    result, done = ways(sandbox, "")
    assert all(result.values()), (result, done)


def test_a_denied_program_does_not_run_by_any_way(sandbox):
    result, done = ways(sandbox, 'exec: {deny: ["**/id"]}')
    assert not any(result.values()), (result, done)
    assert any(entry["rule"] == "exec.deny[0]" for entry in done.report["denials"]), done


LISTED = "[/usr/bin/python3, /bin/sh, /usr/bin/env, /usr/bin/xargs, /usr/bin/find, /usr/bin/timeout, /usr/bin/nice]"


def test_what_no_list_has_does_not_run_by_any_way(sandbox):
    result, done = ways(sandbox, f"exec: {{default: deny, allow: {LISTED}}}")
    assert not any(result.values()), (result, done)


def test_a_listed_program_is_what_it_was(sandbox):
    """A copy is the program, by a path; a file that was put into its place is not, nor what has no path."""
    sandbox.copy("/usr/bin/id", sandbox.project / "tool")
    script = r"""
import os, subprocess
def run(*words):
    try: return subprocess.run(words, capture_output=True).returncode
    except OSError as error: return error.errno
def by_fd(fd):
    pid = os.fork()
    if not pid:
        try: os.execve(fd, ["tool"], os.environ)
        except OSError as error: os._exit(error.errno)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(run("./tool"), run("/usr/bin/id"), by_fd(os.open("tool", os.O_RDONLY)))
open("tool", "ab").write(b" ")
print(run("./tool"))
os.rename("tool", "x"); os.symlink("/usr/bin/true", "tool")
print(run("./tool"))
os.unlink("tool"); open("tool", "wb").write(open("/usr/bin/true", "rb").read())
os.chmod("tool", 0o755)
print(run("./tool"), run("/usr/bin/id"))
"""
    text = f"exec: {{default: deny, allow: [/usr/bin/python3, {sandbox.project}/tool]}}"
    done = sandbox.run([PYTHON, "-c", script], policy=policy(sandbox, text))
    assert done.out.split() == ["0", "0", str(EACCES), *[str(EACCES)] * 3, "0"], done


def test_multi_call_binaries_and_32_bit_programs(sandbox):
    """The real file counts, not the name; what cannot run anyway is judged as well."""
    elf = (b"\x7fELF\1\1\1" + bytes(9) + b"\2\0\3\0\1\0\0\0\x54\x80\4\x08\x34\0\0\0" + bytes(8) + b"\x34\0\x20\0\1\0"
           + bytes(6) + b"\1\0\0\0" + bytes(4) + b"\0\x80\4\x08\0\x80\4\x08\x60\0\0\0\x60\0\0\0\5\0\0\0\0\x10\0\0"
           + b"\xb8\1\0\0\0\xcd\x80\x90\x90\x90\x90\x90")
    sandbox.write(sandbox.project / "old", elf, 0o755)
    sandbox.copy("/usr/bin/id", sandbox.project / "of-the-host")
    script = r"""
import os, shutil, subprocess
def run(*words):
    try: return subprocess.run(words, capture_output=True).returncode
    except OSError as error: return error.errno
os.symlink("/usr/bin/busybox", "wget"); shutil.copy("/usr/bin/busybox", "busybox.mine")
print(run("busybox", "true"), run("./wget", "--help") in (0, 1), run("./busybox.mine", "true"), run("./old") == 13,
      run("./of-the-host"))
"""
    control = sandbox.run([PYTHON, "-c", script], policy=policy(sandbox, ""))
    assert control.out.split() == ["0", "True", "0", "False", "0"], control
    text = f'exec: {{deny: ["**/busybox", {sandbox.project}/old, /usr/bin/id]}}'
    done = sandbox.run([PYTHON, "-c", script], policy=policy(sandbox, text))
    assert done.out.split() == [str(EACCES), "False", str(EACCES), "True", str(EACCES)], done


# Two processes share the path, or the directory, or the arguments: one runs programs, one changes what they are.
FLIPS = r"""
import ctypes, mmap, os, signal, sys, time
what = sys.argv[1]
libc = ctypes.CDLL(None)
memory = mmap.mmap(-1, 4096)
base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
os.chdir(os.environ.get("TMPDIR", "/tmp"))
os.symlink("/usr/bin/true", "link"); os.symlink("/usr/bin/true", "good"); os.symlink("/usr/bin/id", "evil")
good, evil = (b"/usr/bin/true\0\0", b"/usr/bin/id\0\0\0\0") if what == "path" else (b"--\0", b"-u\0")
memory[:len(good)] = good
start = os.getpid()
flipper = os.fork()
if not flipper:
    while os.getppid() == start:
        if what == "link":
            for target in ("evil", "good"):
                os.symlink("/usr/bin/id" if target == "evil" else "/usr/bin/true", "next"); os.rename("next", "link")
        else:
            for _ in range(100):
                memory[:len(evil)] = evil; memory[:len(good)] = good
    os._exit(0)
programs = {"path": base, "link": b"./link", "argv": b"/usr/bin/id"}
arguments = (ctypes.c_void_p * 3)(ctypes.cast(ctypes.c_char_p(b"x"), ctypes.c_void_p).value,
                                 base if what == "argv" else None, None)
ran = {}
for attempt in range(int(sys.argv[2])):
    out, into = os.pipe(); pid = os.fork()
    if not pid:
        os.dup2(into, 1); os.dup2(into, 2)
        libc.execv(ctypes.c_void_p(base) if what == "path" else programs[what], arguments)
        os._exit(99)
    os.close(into)
    text = os.read(out, 4096); os.close(out); status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    evil_ran = text.strip().isdigit() if what == "argv" else b"uid=" in text
    kind = "evil" if evil_ran else "good" if status in (0, 1) else "refused" if status == 99 else "killed"
    ran[kind] = ran.get(kind, 0) + 1
os.kill(flipper, signal.SIGKILL)
print(*[f"{kind}={ran.get(kind, 0)}" for kind in ("good", "evil", "refused", "killed")])
"""
FLIP_RULES = {"path": '{deny: ["**/id"]}', "link": '{deny: ["**/id"]}', "argv": "{deny: [{argv: [id, -u]}]}"}


def must_not_win(sandbox, script, words, rules):
    """A race whose script counts what ran: won without the rules, and lost with them."""
    def attack(rules):
        done = sandbox.run([PYTHON, "-c", script, *words], policy=policy(sandbox, rules))
        assert done.code == 0, done
        return dict(pair.split("=") for pair in done.out.split()), done

    counts, done = attack("")
    assert counts["good"] != "0" and counts["evil"] != "0", done
    counts, done = attack(rules)
    assert counts["good"] != "0" and counts["evil"] == "0", done
    assert counts["refused"] != "0" or counts["killed"] != "0", done


@pytest.mark.parametrize("what", FLIP_RULES)
def test_what_changes_after_it_was_judged_does_not_run(sandbox, what):
    must_not_win(sandbox, FLIPS, [what, "120"], f"exec: {FLIP_RULES[what]}")


# Each attempt shares its working directory and its descriptors with a process that changes what they are, or runs in a
# thread that is not its first, by a path that another process changes.
SHARERS = r"""
import ctypes, mmap, os, random, signal, sys, tempfile, threading, time
what = sys.argv[1]
libc = ctypes.CDLL(None)
CLONE, EXECVEAT = (56, 322) if os.uname().machine == "x86_64" else (220, 281)
CLONE_FS, CLONE_FILES, AT_EMPTY_PATH = 0x200, 0x400, 0x1000
place = tempfile.mkdtemp(); os.chdir(place)
for kind, program in ("good", b"/usr/bin/true"), ("evil", b"/usr/bin/id"):
    os.mkdir(kind); os.symlink(program, kind + "/program")
memory = mmap.mmap(-1, 4096)
base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
good, evil = b"/usr/bin/true\0\0", b"/usr/bin/id\0\0\0\0"
names = ("good", "evil") if what == "directory" else ("good/program", "evil/program")
opened = [os.open(name, os.O_PATH) for name in names]; target = os.dup(opened[0])
arguments = (ctypes.c_char_p * 2)(b"x", None)
def change(number):
    if what == "cwd": os.chdir(f"{place}/{('good', 'evil')[number]}")
    elif what == "thread": memory[:len(good)] = (good, evil)[number]
    else: os.dup2(opened[number], target)
def flip(owner):
    libc.prctl(1, signal.SIGKILL, 0, 0, 0)
    while os.getppid() == owner: change(1); change(0)
    os._exit(0)
def execute():
    if what == "cwd": libc.execv(b"./program", arguments)
    elif what == "thread": libc.execv(ctypes.c_void_p(base), arguments)
    elif what == "open file": libc.syscall(EXECVEAT, target, b"", arguments, None, AT_EMPTY_PATH)
    else: libc.syscall(EXECVEAT, target, b"program", arguments, None, 0)
    os._exit(99)
ran = {}
for attempt in range(int(sys.argv[2])):
    out, into = os.pipe(); pid = os.fork()
    if not pid:
        os.dup2(into, 1); os.dup2(into, 2); os.close(into); change(0)
        owner = os.getpid(); until = time.monotonic() + random.random() * 0.002
        if libc.syscall(CLONE, CLONE_FS | CLONE_FILES | signal.SIGCHLD, 0, 0, 0, 0) == 0: flip(owner)
        while time.monotonic() < until: pass
        if what == "thread": threading.Thread(target=execute).start(); time.sleep(60)
        execute()
    os.close(into); status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    text = os.read(out, 4096); os.close(out)
    kind = "evil" if b"uid=" in text else "good" if status == 0 else "refused" if status == 99 else "killed"
    ran[kind] = ran.get(kind, 0) + 1
print(*[f"{kind}={ran.get(kind, 0)}" for kind in ("good", "evil", "refused", "killed")])
"""


@pytest.mark.parametrize("what", ["cwd", "open file", "directory", "thread"])
def test_what_a_sharer_changes_after_it_was_judged_does_not_run(sandbox, what):
    must_not_win(sandbox, SHARERS, [what, "80"], 'exec: {deny: ["**/id"]}')


def test_what_something_else_traces_starts_nothing(sandbox):
    script = r"""
import ctypes, os, signal
pid = os.fork()
if not pid:
    ctypes.CDLL(None).ptrace(0, 0, None, None)
    try: os.execv("/usr/bin/true", ["true"])
    except OSError as error: os._exit(error.errno)
_, status = os.waitpid(pid, 0)
print(os.WIFSTOPPED(status), os.WIFEXITED(status) and os.WEXITSTATUS(status))
"""
    control = sandbox.run([PYTHON, "-c", script], policy=policy(sandbox, ""))
    assert control.out.split()[0] == "True", control
    done = sandbox.run([PYTHON, "-c", script], policy=policy(sandbox, 'exec: {deny: ["**/nothing"]}'))
    assert done.out.split() == ["False", str(EPERM)], done
    assert any(entry["rule"] == "builtin.traced" for entry in done.report["denials"]), done


ARGUMENTS = """
import os, subprocess, sys
def run(*words):
    try: done = subprocess.run(["git", *words, "push", "x"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error: return error.__class__.__name__
    return "killed" if done.returncode < 0 else "ran"
many = ["-c", "a.b=c"]
print(run(), run("-c", "a.b=" + "A" * 33000), run(*many * 125), run(*many * 200), run(*many * 400))
"""


def test_a_rule_about_arguments_holds_for_more_than_can_be_judged(sandbox):
    control = sandbox.run_outside(["/usr/bin/python3", "-c", ARGUMENTS])
    assert control.out.split() == ["ran"] * 5, control
    policy = sandbox.policy("atoll: 1\nextends: medium\nexec: {deny: [{argv: [git, '**', push, '**']}]}\n")
    done = sandbox.run(["/usr/bin/python3", "-c", ARGUMENTS], policy=policy)
    assert len(done.out.split()) == 5 and "ran" not in done.out.split(), done
    others = sandbox.run(["sh", "-c", "/usr/bin/echo $(seq 900) | wc -w"], policy=policy)
    assert others.out == "900\n", others


# Programs that are killed at every moment of their start; some start others as long as they live.
KILLED = """
import os, random, signal, sys, time
def start(*words):
    pid = os.fork()
    if not pid:
        try: os.execv(words[0], words)
        finally: os._exit(3)
    return pid
ended = {}
for attempt in range(int(sys.argv[1])):
    pid = start("/usr/bin/true"); until = time.monotonic() + random.random() * 0.004
    while time.monotonic() < until: pass
    os.kill(pid, signal.SIGKILL); status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    ended[status] = ended.get(status, 0) + 1
for number in range(8):
    if not os.fork():
        while True: os.waitpid(start("/usr/bin/true"), 0)
time.sleep(0.2)
print(ended.get(0, 0) > 0, ended.get(-9, 0) > 0, sum(ended.values()))
"""


def test_what_is_killed_while_it_is_held_is_waited_for(sandbox):
    """By its parent, and by the end of the sandbox: a tracee that nobody waits for would hold up both."""
    for rules in ("", 'exec: {deny: ["**/id"]}'):
        done = sandbox.run([PYTHON, "-c", KILLED, "400"], policy=policy(sandbox, rules), timeout=60)
        assert done.code == 0 and done.out.split() == ["True", "True", "400"], done
