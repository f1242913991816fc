# SPDX-License-Identifier: Apache-2.0
"""Staged trees: the host is byte-identical after a run whatever the run did, masked names stay absent, and what cannot
be staged is refused before anything starts (F1 to F4, F9, F12, F15, F16, F21 to F26, F30, F42)."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import pytest

import leaks
from atoll import wait_until

LAST_LINE = "  review  atoll diff        keep  atoll apply        drop  atoll discard"
HOSTILE = r"""
echo changed >>file; : >empty; rm -f doomed; rm -rf dir; mkdir dir; echo x >dir/other; mv moved elsewhere
chmod 700 mode; chmod 4755 mode 2>/dev/null; touch -d 2001-01-01 file2; ln file2 hard; ln -sf /etc/passwd link
ln -s ../outside out; echo x >out/planted 2>/dev/null; mkfifo fifo; truncate -s 0 file3; mkdir -p .git/hooks
echo '#!/bin/sh' >.git/hooks/pre-commit; echo '[core] fsmonitor = ./x' >>.git/config; mkdir -p sub/.git/hooks
echo x >sub/.git/hooks/post-checkout; echo x >.envrc; echo x >Makefile; echo x >conftest.py; mkdir -p .vscode
echo '{}' >.vscode/tasks.json; chmod 500 . ; python3 -c 'import os; os.setxattr("file2", "user.mine", b"y")'; true
"""


def picture(root):
    """Everything that a host could see of a tree, its times and attributes included."""
    seen = {}
    for directory, directories, files in os.walk(root):
        for path in [directory] + [os.path.join(directory, name) for name in directories + files]:
            status = os.lstat(path)
            content = os.readlink(path) if os.path.islink(path) else ""
            attributes = {}
            if not os.path.islink(path):
                attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
            if os.path.isfile(path) and not os.path.islink(path):
                descriptor = os.open(path, os.O_RDONLY | os.O_NOATIME)
                content = os.read(descriptor, 1 << 20)
                os.close(descriptor)
            seen[path] = (status.st_mode, status.st_uid, status.st_gid, status.st_nlink, status.st_size,
                          status.st_mtime_ns, status.st_ctime_ns, content, attributes)
    return seen


@pytest.fixture
def project(sandbox):
    project = sandbox.project
    for name in ("file", "file2", "file3", "doomed", "moved", "mode", "dir/a", "dir/b/c", "sub/deep/file"):
        sandbox.write(project / name, f"{name}\n")
    sandbox.own(project / "dir/b")
    os.setxattr(project / "file2", "user.host", b"x")
    os.symlink("file", project / "link")
    sandbox.own(project / "link")
    os.utime(project / "file", ns=(10**18, 10**18))
    time.sleep(0.05)  # what was written in the clock tick of the start counts as changed since then
    return project


def stage_of(sandbox, session):
    return sandbox.state / "atoll" / "sessions" / session / "stage"


def test_the_host_is_byte_identical_after_a_run(sandbox, project):
    before, outside = picture(project), picture(sandbox.outside)
    done = sandbox.run(HOSTILE)
    assert done.code == 0, done
    assert picture(project) == before and picture(sandbox.outside) == outside
    assert not os.path.lexists(project / "fifo")
    changes = done.report["changes"]
    assert changes["deleted"] >= 3 and changes["modified"] >= 3 and changes["kept"], changes
    assert changes["refused"] >= 1, "the FIFO"
    # The control: outside the same lines change the tree.
    sandbox.run_outside(["bash", "-c", HOSTILE])
    os.chmod(project, 0o755)
    assert picture(project) != before and os.path.lexists(project / "fifo")


def test_the_end_of_a_run_says_what_changed(sandbox, project):
    done = sandbox.run("echo x >>file; echo x >>file2; echo x >new; rm doomed; mkdir -p .vscode; "
                       "echo {} >.vscode/tasks.json")
    said = done.err.splitlines()
    assert said[-2] == (f"atoll: {done.session}: 5 files changed (2 modified, 2 added, 1 deleted), 2 flagged; "
                        "nothing on disk has changed yet"), done
    assert said[-1] == LAST_LINE
    assert done.report["changes"] == {"added": 2, "modified": 2, "deleted": 1, "directories": 1, "flagged": 2,
                                      "conflicts": 0, "refused": 0, "system": 0, "at_least": False, "kept": True,
                                      "as_origin": False}
    assert (stage_of(sandbox, done.session) / "trees").exists()
    record = next(entry for entry in json.loads(sandbox.run_atoll("ps", "-a", "--json").out)
                  if entry["session"] == done.session)
    assert record["staged"] is True


def test_one_file_is_one_file(sandbox, project):
    done = sandbox.run("echo x >new")
    assert f"{done.session}: 1 file changed (1 added); nothing on disk" in done.err, done
    done = sandbox.run("mkdir -p one/two")
    assert f"{done.session}: 2 directories changed; nothing on disk" in done.err, done


@pytest.mark.parametrize("script", ["true", "cat file >/dev/null; ls -R >/dev/null", "touch /tmp/x ~/y"])
def test_a_run_that_changes_nothing_leaves_nothing(sandbox, project, script):
    done = sandbox.run(script)
    assert done.code == 0 and "changed" not in done.err and "review" not in done.err, done
    assert done.report["changes"]["kept"] is False
    assert not stage_of(sandbox, done.session).exists()
    assert [entry["staged"] for entry in json.loads(sandbox.run_atoll("ps", "-a", "--json").out)] == [False]
    wait_until(lambda: not stage_of(sandbox, done.session).with_name("stage.gone").exists(), what="all of it is gone")


def test_what_is_undone_inside_is_no_change(sandbox, project):
    done = sandbox.run("echo x >new; rm new; mkdir d; rmdir d")
    assert done.report["changes"]["added"] == 0 and done.report["changes"]["kept"] is False, done
    assert not stage_of(sandbox, done.session).exists()


@pytest.mark.parametrize("trust", ["none", "full"])
def test_levels_that_stage_nothing(sandbox, project, trust):
    policy = sandbox.policy(f"atoll: 1\nextends: {trust}\ndegrade: [cgroup.memory, cgroup.pids, cgroup.cpu]\n")
    done = sandbox.run("cat file", policy=policy)
    assert done.code == 0 and done.report["changes"] is None, done
    assert not [path for path in stage_of(sandbox, done.session).parent.iterdir() if "stage" in path.name]


def test_an_earlier_session_is_mentioned(sandbox, project):
    first = sandbox.run("echo x >new")
    second = sandbox.run("true")
    lines = [line for line in second.err.splitlines() if first.session in line]
    assert len(lines) == 3 and f"atoll diff {first.session}" in lines[-1], second
    third = sandbox.run("cat new")
    assert third.code == 1, "a new run begins with the host's tree"
    other = sandbox.make_directory(sandbox.home / "elsewhere")
    assert first.session not in sandbox.run("true", cwd=other).err
    assert sandbox.run_atoll("discard", first.session).code == 0
    assert first.session not in sandbox.run("true").err, "it was looked at, and dropped"


def test_what_was_dropped_does_not_hide_an_older_session(sandbox, project):
    older, newest = sandbox.run("echo x >old"), sandbox.run("echo x >new")
    assert newest.session in sandbox.run("true").err
    assert sandbox.run_atoll("discard", newest.session).code == 0
    for i in range(2):
        assert f"atoll diff {older.session}" in sandbox.run("true").err
    assert sandbox.run_atoll("discard", older.session).code == 0
    assert "nobody applied" not in sandbox.run("true").err


def test_a_masked_name_stays_absent_whatever_the_host_does(sandbox, project):
    """F3: absent at the start and made later, or replaced by rename."""
    sandbox.write(project / ".env.local", "SECRET\n")
    child = sandbox.popen(["sh", "-c", "echo ready; read go; cat .env .env.local; ls -A | grep env; echo done"],
                          stdin=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    sandbox.write(project / ".env", "SECRET\n")
    sandbox.write(project / "new", "SECRET\n").rename(project / ".env.local")
    out, _ = child.communicate(b"go\n", timeout=30)
    assert out == b"done\n"
    # The control: without the boundary both are there.
    assert sandbox.run_outside(["cat", ".env", ".env.local"]).out == "SECRET\nSECRET\n"


@pytest.mark.parametrize("pattern", ["keys/*", "keys/**"])
def test_the_contents_of_a_directory_can_be_masked(sandbox, project, pattern):
    for name in ("keys/a", "keys/deep/b"):
        sandbox.write(project / name, "SECRET\n")
    policy = sandbox.policy(f"atoll: 1\nextends: medium\nfiles: {{mask: ['{pattern}']}}\n")
    child = sandbox.popen(["sh", "-c", "echo ready; read go; ls -A keys; cat keys/a keys/late keys/deep/b; echo done"],
                          policy=policy, stdin=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    sandbox.write(project / "keys/late", "SECRET\n")
    out, _ = child.communicate(b"go\n", timeout=30)
    assert out == b"done\n", out
    assert sandbox.run_outside(["cat", "keys/late", "keys/deep/b"]).out == "SECRET\nSECRET\n"


@pytest.mark.parametrize("pattern", ["**/.env", "keys/*.pem", "*/keys/**"])
def test_other_patterns_hold_where_a_path_is_used(sandbox, project, pattern):
    """No layer can hide these: each call that names such a path is decided."""
    names = {"**/.env": "deep/.env", "keys/*.pem": "keys/a.pem", "*/keys/**": "deep/keys/b"}
    sandbox.write(project / names[pattern], "SECRET\n")
    policy = sandbox.policy(f"atoll: 1\nextends: medium\nfiles: {{mask: ['{pattern}']}}\n")
    done = sandbox.run(["cat", names[pattern]], policy=policy)
    assert done.code == 1 and "No such file" in done.err, done
    assert sandbox.run_outside(["cat", names[pattern]]).out == "SECRET\n"


def test_what_is_made_under_a_masked_name_is_refused(sandbox, project):
    done = sandbox.run("echo mine >.env && cat .env")
    assert done.out == "mine\n" and not (project / ".env").exists()
    assert done.report["changes"]["refused"] == 1 and done.report["changes"]["added"] == 0, done


def test_a_masked_file_is_gone_under_every_name(sandbox, project):
    """F9, F18: links, descriptors, a renamed parent, a hard link that the host has to it."""
    sandbox.write(project / "conf/token", "SECRET\n")
    os.link(project / "conf/token", project / "conf/other")
    policy = sandbox.policy("atoll: 1\nextends: medium\nfiles: {mask: [conf/token]}\n")
    done = sandbox.run("cat conf/token; ln conf/token x; ln -s conf/token y; cat y; cp -r conf copy; cat copy/token; "
                       "mv conf conf2; cat conf2/token; cat /proc/self/root$PWD/conf2/token; exec 5<conf2/token; "
                       "cat <&5", policy=policy)
    assert "SECRET" not in done.out, done
    assert sandbox.run_outside(["cat", "conf/token"]).out == "SECRET\n"


def test_a_link_as_a_masked_name_hides_what_it_leads_to(sandbox, project):
    sandbox.write(project / "real/secret", "SECRET\n")
    os.symlink("real/secret", project / "name")
    policy = sandbox.policy("atoll: 1\nextends: medium\nfiles: {mask: [name]}\n")
    assert "SECRET" not in sandbox.run("cat name real/secret; ls real", policy=policy).out


def test_the_layers_cannot_be_reached_from_inside(sandbox, project):
    """F30: what is staged is reached through the tree alone."""
    done = sandbox.run("echo mine >new; grep -o '/[^ ]*/stage/[^ ]*' /proc/self/mountinfo | sort -u >/tmp/l; "
                       f"for d in $(cat /tmp/l) {sandbox.state}/atoll/sessions/*/stage; do "
                       "ls $d/upper && echo reached; echo x >$d/upper/planted && echo reached; done; "
                       "umount . && echo reached; "
                       "ls -A / /proc/self/cwd/.. | grep -c upper")
    assert "reached" not in done.out and done.out.splitlines()[-1] == "0", done
    assert not sandbox.staged("planted", done.session).exists()
    assert sandbox.staged("new", done.session).read_text() == "mine\n"


def test_commands_of_one_session_see_one_tree(sandbox, project):
    session = sandbox.run_atoll("run", "-q", "-d").out.strip()
    assert sandbox.run_atoll("exec", session, "--", "sh", "-c", "echo one >new; rm doomed").code == 0
    done = sandbox.run_atoll("exec", session, "--", "sh", "-c", "cat new; test -e doomed || echo gone")
    assert done.out == "one\ngone\n" and not (project / "new").exists() and (project / "doomed").exists()
    assert sandbox.run_atoll("stop", session).code == 0
    assert sandbox.staged("new", session).read_text() == "one\n"


def test_a_killed_supervisor_loses_nothing_staged(sandbox, project):
    child = sandbox.popen(["sh", "-c", "echo mine >new; echo ready; sleep 60"])
    assert child.stdout.readline() == b"ready\n"
    session = sandbox.sessions()[0]
    child.send_signal(signal.SIGKILL)
    child.wait(10)
    wait_until(lambda: json.loads(sandbox.run_atoll("ps", "-a", "--json").out)[0]["state"] != "running")
    record, = json.loads(sandbox.run_atoll("ps", "-a", "--json").out)
    assert record["session"] == session and record["staged"] is True
    assert sandbox.staged("new", session).read_text() == "mine\n" and not (project / "new").exists()
    wait_until(lambda: (sandbox.state / "atoll/notice").exists(), what="the guardian has left its note")
    done = sandbox.run("true")
    assert session in done.err and "staged" in done.err, done


LIFT = """
import resource
block = bytes(1 << 20)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
with open("big", "wb", 0) as file:
    for _ in range(4000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        try:
            file.write(block)
        except OSError:
            pass
"""


@pytest.mark.parametrize("limit, script", [
    ("disk: 24MiB", "for i in $(seq 4000); do head -c 1M /dev/zero >f$i; done; sleep 20"),
    ("disk: 24MiB", f"python3 -c '{LIFT}'; sleep 20"),
    ("inodes: 3k", "mkdir d; cd d; seq 20000 | xargs touch; sleep 20"),
], ids=["many-files", "a-raised-limit", "inodes"])
def test_the_disk_limit_holds_for_what_is_staged(sandbox, project, limit, script):
    """What grows although files cannot, and what is only many, ends the run."""
    policy = sandbox.policy(f"atoll: 1\nextends: medium\nresources: {{{limit}}}\n")
    done = sandbox.run(script, policy=policy, timeout=50)
    key = "resources." + limit.split(":")[0]
    assert done.code == 137 and done.report["ended"] == "disk" and key in done.report["limits_hit"], done
    assert done.report["enforcement"]["limits"]["disk"] == "supervised"
    assert done.report["wall_ms"] < 19000, "it ended by the limit and not by itself"


ROOM = "for i in $(seq 100); do sleep 0.1; {write} && break; done"


@pytest.mark.parametrize("fill, free", [
    ("head -c 4G /dev/zero >big", "rm big"),
    ("exec 5>big; rm big; head -c 4G /dev/zero >&5", "exec 5>&-"),
], ids=["named", "unlinked"])
def test_a_full_disk_limit_fails_writes_and_ends_nothing(sandbox, project, fill, free):
    """As a disk that is full: the program hears of it, what is small goes on, and who clears up can go on."""
    policy = sandbox.policy("atoll: 1\nextends: medium\nresources: {disk: 24MiB}\ntime: {wall: 50s}\n")
    # Positive control: what is too much afterwards is fine before.
    done = sandbox.run(f"head -c 4M /dev/zero >first && echo fine; {fill} || echo full; "
                       "head -c 4M /dev/zero >second || echo full; echo note >small; cat small; "
                       f"{free}; {ROOM.format(write='head -c 4M /dev/zero 2>/dev/null >second')}; "
                       "stat -c %s second; cat /run/atoll/denials.jsonl", policy=policy)
    assert done.code == 0 and done.report["ended"] == "exit", done
    words = done.out.splitlines()
    assert words[:5] == ["fine", "full", "full", "note", str(4 << 20)], done
    assert done.err.count("File too large") == 2, done
    told = json.loads(words[5])
    assert told["rule"] == "resources.disk" and "24MiB" in told["reason"], told
    assert done.report["limits_hit"] == ["resources.disk"]
    assert os.listdir(project) and not (project / "big").exists() and not (project / "first").exists()
    # What it left can be reviewed like anything else.
    sandbox.run_atoll("apply", done.session, check=True)
    assert (project / "second").stat().st_size == 4 << 20 and (project / "small").read_text() == "note\n"


def wakes_in(pid, seconds):
    """How often a process was waited for and went on."""
    def count():
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.M).group(1))
    before = count()
    time.sleep(seconds)
    return count() - before


def test_an_idle_sandbox_is_looked_at_seldom_and_held_when_it_goes_on(sandbox, project):
    policy = sandbox.policy("atoll: 1\nextends: medium\nresources: {disk: 24MiB}\n")
    session = sandbox.run_outside(sandbox.command_line([], policy=policy, options=["-q", "-d"])).out.strip()
    box = next(pid for pid, _ in leaks.processes(sandbox.programs, [session])
               if pathlib.Path(f"/proc/{pid}/comm").read_text() == "atoll-box\n")
    wait_until(lambda: not wakes_in(box, 5), 60, "nothing runs inside, and nobody looks")
    # What a command leaves running is looked at as often as the command. (It is the positive control, too.)
    assert sandbox.run_atoll("exec", session, "--", "sh", "-c", "sleep 60 >/dev/null 2>&1 &").code == 0
    time.sleep(12)
    assert wakes_in(box, 5) >= 4
    assert sandbox.run_atoll("exec", session, "--", "pkill", "sleep").code == 0
    wait_until(lambda: not wakes_in(box, 5), 60, "nothing runs inside again")
    done = sandbox.run_atoll("exec", session, "--", "sh", "-c", "head -c 4G /dev/zero >big || echo full")
    assert done.out == "full\n" and (sandbox.staged("big", session)).stat().st_size < 4 << 30, done
    assert sandbox.run_atoll("stop", session).code == 0


def test_a_full_disk_limit_is_no_space_where_calls_are_mediated(sandbox, project):
    """Where the supervisor makes file calls, nothing new can be made either; and what is not staged can."""
    policy = sandbox.policy("atoll: 1\nextends: medium\nresources: {disk: 24MiB}\ntime: {wall: 50s}\n"
                            "audit: {files: writes}\n")
    done = sandbox.run("mkdir before; head -c 4G /dev/zero >big; mkdir directory; : >new; ln -s x points; "
                       ": >/tmp/elsewhere && echo elsewhere; rm big; "
                       f"{ROOM.format(write='mkdir after 2>/dev/null')}; ls", policy=policy)
    assert done.code == 0 and done.err.count("No space left on device") == 3, done
    assert "elsewhere" in done.out and "after" in done.out.split() and "before" in done.out.split(), done
    assert not {"directory", "new", "points"} & set(done.out.split()), done


def test_within_the_limit_nothing_ends(sandbox, project):
    policy = sandbox.policy("atoll: 1\nextends: medium\nresources: {disk: 64MiB, inodes: 3k}\ntime: {wall: 60s}\n")
    done = sandbox.run("head -c 30M /dev/zero >big; rm big; head -c 30M /dev/zero >big; mkdir d; seq 1000 | "
                       "sed s,^,d/, | xargs touch; sleep 1", policy=policy)
    assert done.code == 0 and done.report["ended"] == "exit", done


def test_a_state_directory_inside_the_tree_is_no_part_of_it(sandbox, project):
    """The kernel takes no layer that lies in another: the tree comes without that directory."""
    sandbox.state = sandbox.make_directory(project / "state", 0o700)
    done = sandbox.run("ls state; echo new >file; echo x >state/x; cat file")
    assert done.out == "new\n" and (project / "file").read_text() == "file\n", done
    assert sandbox.staged("file", done.session).read_text() == "new\n" and os.listdir(project / "state") == ["atoll"]


def test_a_user_is_told_what_is_mounted_in_the_tree(sandbox, project, request):
    data = sandbox.make_directory(project / "data")
    mount = subprocess.run(["mount", "-t", "tmpfs", "none", str(data)], capture_output=True)
    if mount.returncode:
        pytest.skip("mounts need root")
    request.addfinalizer(lambda: subprocess.run(["umount", str(data)], check=True))
    (data / "x").write_text("below\n")
    os.chown(data, sandbox.identity.uid, sandbox.identity.gid)
    os.chown(data / "x", sandbox.identity.uid, sandbox.identity.gid)
    done = sandbox.run("cat data/x; echo mine >data/new; echo mine >new")
    if sandbox.identity.is_root:
        assert done.out == "below\n" and os.listdir(data) == ["x"], done
        assert done.report["changes"]["added"] == 2
        assert sandbox.staged("new", done.session, tree=1).read_text() == "mine\n"
        return
    assert done.code == 125 and str(data) in done.err and "files.write" in done.err, done
    assert sandbox.sessions() == []


def test_several_trees(sandbox, project):
    other = sandbox.write(sandbox.home / "other/file", "other\n").parent
    policy = sandbox.policy("atoll: 1\nextends: medium\nfiles: {stage: [~/other]}\n")
    done = sandbox.run(f"echo x >>file; echo x >>{other}/file; mv file {other}/came; ls {other}", policy=policy)
    assert done.code == 0 and "came" in done.out, done
    assert os.listdir(other) == ["file"] and (other / "file").read_text() == "other\n"
    assert done.report["changes"]["added"] == 1 and done.report["changes"]["deleted"] == 1


def test_the_files_that_run_later_are_flagged(sandbox, project):
    """F21 to F26: each of them, where a person would not look."""
    names = [".git/hooks/pre-commit", ".git/config", "sub/.git/hooks/post-checkout", "sub/.git/config.worktree",
             "sub/.git/info/attributes", ".gitmodules", "a/.gitattributes", ".vscode/tasks.json",
             ".vscode/settings.json",
             ".idea/workspace.xml", ".devcontainer/devcontainer.json", "a/.envrc", ".github/workflows/x.yml",
             ".gitlab-ci.yml", "Jenkinsfile", "a/package.json", "Makefile", "tests/conftest.py", "sitecustomize.py",
             "x.pth", "__pycache__/m.cpython-311.pyc", ".venv/bin/python", ".claude/settings.json", ".mcp.json",
             "AGENTS.md", "CLAUDE.md", ".cursor/mcp.json", "nested/.git"]
    plain = ["src/main.c", "README.md", "gitconfig", "a/envrc", "node_modules/x/package.json", ".github/README",
             "Makefile.txt"]
    script = "\n".join(f"mkdir -p $(dirname {name}); echo x >{name}" for name in names + plain)
    done = sandbox.run(script)
    assert done.code == 0, done
    counted = done.report["changes"]["flagged"]
    # Directories that were made on the way to them count where the rule names all that is in them.
    made = {os.path.dirname(name) for name in names}
    assert len(names) <= counted <= len(names) + len(made) + 4, done
    assert sandbox.run("\n".join(f"mkdir -p $(dirname {name}); echo x >{name}" for name in plain)
                       ).report["changes"]["flagged"] == 0


def test_a_socket_of_the_host_in_a_staged_tree_is_not_reached(sandbox, project):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(project / "host.sock"))
    listener.listen()
    os.chmod(project / "host.sock", 0o777)
    script = ("import socket, threading\n"
              "def reach(path):\n"
              "    try:\n        s = socket.socket(socket.AF_UNIX); s.connect(path); return 'reached'\n"
              "    except OSError as error: return 'refused'\n"
              "own = socket.socket(socket.AF_UNIX); own.bind('own.sock'); own.listen()\n"
              "print(reach('host.sock'), reach('own.sock'))\n")
    assert sandbox.run_outside(["python3", "-c", script.replace("own.sock", "o2")]).out == "reached reached\n"
    assert sandbox.run(["python3", "-c", script]).out == "refused reached\n"
    listener.close()


def test_the_start_does_not_grow_with_the_tree(sandbox, project):
    """Nothing is copied and nothing is walked at the start."""
    for directory in range(40):
        sandbox.make_directory(project / f"many{directory}")
        for file in range(100):
            (project / f"many{directory}/{file}").touch()
    began = time.monotonic()
    done = sandbox.run("true")
    mounts = sum(stage["us"] for stage in done.report["stages"] if stage["name"] in ("plan", "jail.mounts"))
    assert done.code == 0 and time.monotonic() - began < 5 and mounts < 50000, done


def test_a_state_directory_on_a_tmpfs(sandbox, project, request):
    state = f"/dev/shm/atolltest-{os.getpid()}-{sandbox.identity.name}"
    os.mkdir(state, 0o700)
    os.chown(state, sandbox.identity.uid, sandbox.identity.gid)
    request.addfinalizer(lambda: subprocess.run(["rm", "-rf", state], check=True))
    done = sandbox.run("echo x >>file; echo x >new; cat file", env={"XDG_STATE_HOME": state})
    if done.code == 125:  # a tmpfs takes user.* attributes since Linux 6.6
        assert re.search("XDG_STATE_HOME", done.err) and (project / "file").read_text() == "file\n", done
        return
    assert done.out == "file\nx\n" and (project / "file").read_text() == "file\n", done


@pytest.mark.needs("git", "gcc", "make")
def test_real_work_in_a_staged_tree(sandbox):
    project = sandbox.git_project()
    sandbox.write(project / "m.c", '#include <stdio.h>\nint main(void) { puts("built"); return 0; }\n')
    sandbox.write(project / "Makefile", "m: m.c\n\tgcc -o m m.c\n")
    before = picture(project)
    done = sandbox.run("set -e; make -s; ./m; git add -A; git commit -qm one; git checkout -qb two; git mv m.c n.c; "
                       "git commit -qam two; git checkout -q -; git log --oneline --all | wc -l; git status --short; "
                       "python3 -m venv --without-pip v; v/bin/python -c 'print(6 * 7)'", timeout=90)
    assert done.code == 0 and done.out == "built\n2\n42\n", done
    assert picture(project) == before


@pytest.mark.needs("npm")
def test_npm_in_a_staged_tree(sandbox, project):
    sandbox.write(sandbox.project / "lib/package.json", '{"name": "lib", "version": "1.0.0"}\n')
    sandbox.write(sandbox.project / "lib/index.js", "module.exports = 42\n")
    sandbox.write(sandbox.project / "package.json", '{"name": "p", "dependencies": {"lib": "file:./lib"}}\n')
    done = sandbox.run("npm install --offline --no-audit --no-fund && node -p 'require(\"lib\")'", timeout=90)
    assert done.code == 0 and done.out.endswith("42\n"), done
    assert not (project / "node_modules").exists()
