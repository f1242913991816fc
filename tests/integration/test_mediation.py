# SPDX-License-Identifier: Apache-2.0
"""File calls that the supervisor makes: programs get what they get unmediated, and the log says what they touched."""
import json
import os

import pytest

AUDIT = "atoll: 1\nextends: medium\naudit: {{files: {depth}}}\n"

# Real programs; what they print must not depend on who makes their calls.
JOB = r"""
set -eu
mkdir p && cd p
git init -q .; git config user.email a@example.org; git config user.name n
for i in 1 2 3 4 5; do mkdir d$i; echo "int f$i(void) { return $i; }" >d$i/f.c; done
echo 'int main(void) { return 0; }' >main.c
git add -A; git commit -qm one; git status --short; git mv d5 d6; git stash -q; git stash pop -q; git status --short
gcc -o main main.c d1/f.c; ./main
printf 'all:\n\techo made\n' >Makefile; make -s
python3 - <<'P'
import os, shutil, subprocess, tempfile
directory = tempfile.mkdtemp()
shutil.copytree('d1', directory + '/c')
print(sorted(os.listdir(directory)), subprocess.check_output(['ls', 'd1']))
os.chmod(directory, 0o750); print(oct(os.stat(directory).st_mode)); shutil.rmtree(directory)
P
tar cf t.tar d1 d2; mkdir ex; tar xf t.tar -C ex; find ex | sort; cp -a d1 c; mv c m; rm -r m; ln -s d1 s; cat s/f.c
sed -i s/1/9/ d1/f.c; git diff --stat | tail -1; umask 077; echo x >private; stat -c '%a %n' private main main.c
for i in 1 2 3; do (echo sub) > >(cat >&2); done; cat <(echo in); cat /proc/self/comm; ls /dev/fd | wc -l
touch -d 2020-01-01 main.c; stat -c %Y main.c; truncate -s 10 z; wc -c z; mkfifo f; (echo fifo >f &); cat f
script -qc 'tty | cut -c1-8' /dev/null </dev/null; (exec 3<>/dev/tty) 2>/dev/null || echo no terminal
"""


def records(sandbox, result, kind):
    entries = map(json.loads, sandbox.audit_log(result.session).read_text().splitlines())
    return [entry for entry in entries if entry["type"] == kind]


def policy_of(sandbox, depth, more=""):
    return sandbox.policy(AUDIT.format(depth=depth) + more, f"{depth}.yaml")


def test_programs_do_not_notice(sandbox):
    done = {depth: sandbox.run(JOB, policy=policy_of(sandbox, depth)) for depth in ("off", "writes", "all")}
    assert done["off"].code == 0, done["off"]
    for depth in ("writes", "all"):
        assert done[depth].code == 0 and done[depth].out == done["off"].out, (depth, done[depth], done["off"])


def test_the_log_says_what_was_touched(sandbox):
    sandbox.write(sandbox.project / "seen", "x")
    done = sandbox.run("cat seen; echo y >made; mv made moved; ln moved linked; chmod 600 moved; rm linked; mkdir d",
                       policy=policy_of(sandbox, "all"))
    assert done.code == 0, done
    root = str(sandbox.project)
    opened = [record for record in records(sandbox, done, "file.open") if record["subject"] == root + "/seen"]
    assert len(opened) == 1 and opened[0]["exe"].endswith("/cat") and opened[0]["detail"]["flags"] == "O_RDONLY"
    written = {(record["subject"], record["detail"]["call"]) for record in records(sandbox, done, "file.write")}
    calls = {call.replace("at", "") for path, call in written if path.startswith(root)}
    assert any(call.startswith("open") for call in calls) and {"link", "mkdir"} <= calls, written
    assert any("chmod" in call for path, call in written if path == root + "/moved")
    renamed = records(sandbox, done, "file.rename")
    assert renamed[0]["subject"] == root + "/made" and renamed[0]["detail"]["to"] == root + "/moved"
    assert renamed[0]["verdict"] == "stage"
    assert records(sandbox, done, "file.remove")[0]["subject"] == root + "/linked"
    assert sandbox.run_atoll("log", "verify", done.session).code == 0


def test_writes_alone_leave_reads_out(sandbox):
    sandbox.write(sandbox.project / "seen", "x")
    done = sandbox.run("cat seen; echo y >made", policy=policy_of(sandbox, "writes"))
    assert not records(sandbox, done, "file.open")
    assert any(record["subject"].endswith("/made") for record in records(sandbox, done, "file.write"))


def test_repeats_are_counted_and_none_is_lost(sandbox):
    script = "import os\nfor i in range(1000): os.close(os.open('seen', os.O_RDONLY))"
    sandbox.write(sandbox.project / "seen", "x")
    done = sandbox.run(["python3", "-c", script], policy=policy_of(sandbox, "all"))
    seen = [record for record in records(sandbox, done, "file.open") if record["subject"].endswith("/seen")]
    assert sum(record["detail"].get("count", 1) for record in seen) == 1000
    assert len(seen) < 50


FLOOD = """
import os
for worker in range(4):
    if os.fork() == 0:
        for i in range(600):
            name = f"/tmp/{worker}-{i}"
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            os.rename(name, name + ".moved"); os.unlink(name + ".moved")
            try: os.open(name, os.O_RDONLY)
            except FileNotFoundError: pass
        os._exit(0)
for worker in range(4): assert os.wait()[1] == 0
"""


def test_a_flood_is_held_and_never_the_log(sandbox):
    """Four processes call as fast as they can: each call that did something has its record, and there is no other."""
    done = sandbox.run(["python3", "-c", FLOOD], policy=policy_of(sandbox, "all"))
    assert done.code == 0, done
    names = sorted(f"/tmp/{worker}-{i}" for worker in range(4) for i in range(600))
    for kind, key, ending in (("file.write", "subject", ""), ("file.rename", "subject", ""),
                              ("file.remove", "subject", ".moved")):
        said = [record[key] for record in records(sandbox, done, kind) if record[key].startswith("/tmp/")]
        assert sorted(said) == [name + ending for name in names], (kind, len(said))


def said_with_and_without(sandbox, script):
    """Runs the Python script in a place of its own without a supervisor of files and with one; the second's result."""
    said = {}
    for depth in ("off", "all"):
        done = sandbox.run(["python3", "-c", f"import os; os.mkdir('/tmp/here'); os.chdir('/tmp/here')\n{script}"],
                           policy=policy_of(sandbox, depth))
        assert done.code == 0, done
        said[depth] = done.out
    assert said["all"] == said["off"]
    return done


def test_opens_of_directories_and_paths_with_slashes(sandbox):
    """What is asked for with a slash behind it, through a link, or where nothing is, as without a supervisor."""
    script = """
import os
os.makedirs("d/e"); os.symlink("d", "l"); open("f", "w").close()
for path in ("d/", "d//", "l/", "l/e/", "f/", "l/nothing", "nothing/", "d/../f", "./d", "/usr/", "/usr/nothing", "f/x"):
    for flags in (os.O_RDONLY, os.O_RDONLY | os.O_DIRECTORY, os.O_RDONLY | os.O_NOFOLLOW, os.O_WRONLY | os.O_CREAT):
        try: fd = os.open(path, flags); said = os.readlink(f"/proc/self/fd/{fd}"); os.close(fd)
        except OSError as why: said = why.strerror
        print(path, flags, said)
os.umask(0o27); os.close(os.open("made", os.O_WRONLY | os.O_CREAT, 0o666)); print(oct(os.stat("made").st_mode))
"""
    said = said_with_and_without(sandbox, script).out
    assert "0o100640" in said and "No such file" in said and "/d/e" in said


def test_names_below_open_directories(sandbox):
    """Made, moved and removed, right after one another; by a process that only root may look into too, where we are."""
    script = f"""KINDS = {(1, 0, 1) if sandbox.identity.uid == 0 else (1, 1)}
import ctypes, os
def tell(what, *words, **more):
    try: print(what.__name__, words, what(*words, **more))
    except OSError as why: print(what.__name__, words, why.strerror)
for is_dumpable in KINDS:
    ctypes.CDLL(None).prctl(4, is_dumpable, 0, 0, 0)
    os.mkdir("d"); both = os.open("d", os.O_RDONLY | os.O_DIRECTORY); below = dict(dir_fd=both)
    tell(os.mkdir, "e", 0o750, **below); tell(os.mkdir, "e", **below); tell(os.mkdir, "e/f/", **below)
    tell(os.rename, "e", "g", src_dir_fd=both, dst_dir_fd=both); tell(os.symlink, "g", "l", **below)
    fd = os.open("l/x", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, **below); os.close(fd)
    tell(os.chmod, "l/x", 0o640, **below); tell(os.unlink, "g", **below); tell(os.unlink, "l/x", **below)
    os.chdir("d"); tell(os.mkdir, "h"); tell(os.rename, "h", "../h"); tell(os.listdir); os.chdir("..")
    tell(os.rmdir, "d/g/f"); tell(os.rmdir, "d/l"); tell(os.unlink, "d/l"); tell(os.rmdir, "d/g/"); tell(os.rmdir, "h")
    tell(os.rmdir, "d"); tell(os.mkdir, "lost", **below); os.close(both)
"""
    said = said_with_and_without(sandbox, script).out
    assert said.count("mkdir ('e', 488) None") >= 2 and "No such file" in said and "Not a directory" in said, said


def test_what_is_opened_at_once_is_what_the_kernel_opens(sandbox):
    """Directories, and files that were opened before: the same bytes, flags, errors and records each time."""
    script = """
import os, threading
os.umask(0o22); os.mkdir("d"); os.mkdir("x", 0o311); open("d/f", "w").close(); os.symlink("d", "l"); os.mkfifo("p")
paths = ("d", "x", "l", "p", "d/f", "nothing", "/usr", "/usr/lib/os-release", "/usr/nothing/x", "/dev/null", ".")
kinds = (os.O_RDONLY, os.O_DIRECTORY, os.O_DIRECTORY | os.O_NONBLOCK, os.O_DIRECTORY | os.O_NOFOLLOW, os.O_NONBLOCK,
         os.O_DIRECTORY | os.O_WRONLY, os.O_DIRECTORY | os.O_TRUNC, os.O_RDONLY | os.O_APPEND)
for path in [path for path in paths for _ in range(3)]:
    for flags in kinds:
        if path == "p" and not flags & (os.O_NONBLOCK | os.O_DIRECTORY): continue
        try:
            fd = os.open(path, flags)
            said = oct(__import__("fcntl").fcntl(fd, 3) & ~os.O_NOFOLLOW), os.readlink(f"/proc/self/fd/{fd}")
            said += (os.read(fd, 99) if path.endswith("release") else os.listdir(fd) if path == "d" else None,)
            os.close(fd)
        except OSError as why: said = why.strerror
        print(path, flags, said)
# Nobody at the other end of a pipe notices a look for a directory.
def write(): os.write(os.open("p", os.O_WRONLY), b"whole")
writer = threading.Thread(target=write); writer.start()
for _ in range(20):
    try: os.open("p", os.O_DIRECTORY)
    except NotADirectoryError: pass
print(os.read(os.open("p", os.O_RDONLY), 9)); writer.join()
for name in ("d/f", "d", "l", "new", "d/new", "/tmp/here/d/newer", "l/newest", "nothing/x", "p", "new/", "./new"):
    for mode in (0o666, 0o4, 0):
        try: fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NONBLOCK, mode); said = fd > 2
        except OSError as why: said = why.strerror
        print(name, oct(mode), said, oct(os.stat(name).st_mode) if said is True else "")
        os.umask(0o22 if mode == 0o4 else 0o70)
for mask in (0, 0o77, 0o27):
    os.umask(mask); os.close(os.open(f"masked{mask}", os.O_WRONLY | os.O_CREAT, 0o666))
    if not os.fork(): os.umask(0o111); os.close(os.open(f"child{mask}", os.O_WRONLY | os.O_CREAT, 0o777)); os._exit(0)
    os.wait(); print(oct(os.stat(f"masked{mask}").st_mode), oct(os.stat(f"child{mask}").st_mode))
"""
    done = said_with_and_without(sandbox, script)
    said = done.out
    assert "Permission denied" in said and "b'whole'" in said
    opened = [record["subject"] for record in records(sandbox, done, "file.open")]
    assert {"/tmp/here/d", "/usr/lib/os-release", "/usr"} <= set(opened), opened


def test_refusals_are_told_inside_and_logged(sandbox):
    done = sandbox.run("cat /home/nobody/.ssh/id_rsa; echo x >/usr/x; cat /run/atoll/denials.jsonl",
                       policy=policy_of(sandbox, "all"))
    denied = [record for kind in ("file.open", "file.write") for record in records(sandbox, done, kind)
              if record["verdict"] == "deny"]
    assert {"/usr/x"} <= {record["subject"] for record in denied}, denied
    assert any(record["subject"] == "/home/nobody/.ssh/id_rsa" for record in denied), denied
    assert '"subject":"/usr/x"' in done.out, done


@pytest.mark.parametrize("depth", ["writes", "all"])
def test_the_supervisor_dies(sandbox, depth):
    """Nothing is opened by itself then: whatever still runs gets errors until it is killed."""
    script = "echo begun; while echo x >f; do :; done; sleep 60"
    child = sandbox.popen(["sh", "-c", script], policy=policy_of(sandbox, depth))
    assert child.stdout.readline() == b"begun\n"
    os.kill(child.pid, 9)
    assert child.wait(timeout=20) == -9
    assert child.stdout.read() == b""
