# SPDX-License-Identifier: Apache-2.0
"""Staged trees that fuse-overlayfs makes: the same words of a person, the same state of the host, the same masks. What
it cannot do is refused by name, and it runs confined and no longer than the sandbox."""
import fcntl
import json
import os
import pathlib
import signal
import stat
import subprocess
import tempfile

import pytest

from atoll import wait_until
from loop import Loop, unmount
from stage import Staged, attempts, is_refused, staging_policy, verdicts
from test_stage_filesystems import WORK, check_work, fill
from tree_state import differences

FUSE = "stage: {backend: fuse}\n"
DEVICE = pathlib.Path("/dev/fuse")

pytestmark = [pytest.mark.needs("fuse-overlayfs", "setfattr"),
              pytest.mark.skipif(not DEVICE.exists(), reason="this kernel has no fuse")]


@pytest.fixture(autouse=True, scope="module")
def open_device():
    """As udev leaves it on most machines: open to everybody. The last of several workers puts back what was."""
    if os.geteuid() != 0 and stat.S_IMODE(DEVICE.stat().st_mode) & 0o006 != 0o006:
        pytest.skip("/dev/fuse is not open to everybody")
    if os.geteuid() != 0:
        yield
        return
    with open(pathlib.Path(tempfile.gettempdir(), "atolltest-fuse.lock"), "a+", encoding="ascii") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        mode = stat.S_IMODE(DEVICE.stat().st_mode)
        if mode & 0o006 != 0o006:
            print(mode, file=users, flush=True)
            DEVICE.chmod(0o666)
        yield
        try:
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        users.seek(0)
        for line in users.read().split()[:1]:
            DEVICE.chmod(int(line))
        users.truncate(0)


@pytest.fixture
def staged(sandbox):
    fill(sandbox, sandbox.project)
    return Staged(sandbox, lines=FUSE)


def test_a_dry_run_is_done_again(staged):
    """Such layers have no snapshots, so nothing that was shown can be taken over: it is done again, and compared."""
    before = staged.state()
    words = ["dry-run", "-p", staged.policy, "--json", "--yes", "--", "bash", "-c"]
    told = json.loads(staged.sandbox.run_atoll(*words, "echo new > new; rm untouched").out)
    assert told["done"] == "done-again" and not told["difference"], told
    assert {change["path"].split("/")[-1]: change["kind"] for change in told["changes"]} == {
        "new": "added", "untouched": "deleted"}
    told = json.loads(staged.sandbox.run_atoll(*words, "date +%s%N > date").out)
    assert told["done"] == "differs" and len(told["difference"]) == 1, told
    assert not differences(before, staged.state())


def status_of(pid):
    return dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())


def servers(supervisor):
    """{pid} of every fuse-overlayfs that this process started."""
    found = set()
    for entry in pathlib.Path("/proc").iterdir():
        try:
            status = status_of(entry.name) if entry.name.isdigit() else {}
        except (OSError, ValueError):
            continue
        if status.get("Name") == "fuse-overlayfs" and status["PPid"] == str(supervisor):
            found.add(int(entry.name))
    return found


def start(staged, script):
    """A run that has said `up`, and the pid of its server."""
    child = staged.sandbox.popen(["bash", "-c", f"echo up; {script}"], policy=staged.policy)
    assert child.stdout.readline() == b"up\n"
    return child, servers(child.pid).pop()


def is_gone(pid):
    return not pathlib.Path(f"/proc/{pid}").exists()


def test_changes_are_applied_and_undone(staged):
    before = staged.state()
    done = staged.run(WORK)
    assert done.code == 0 and done.report["enforcement"]["staging"] == "fuse-overlayfs", done
    check_work(staged, staged.project, before)


def test_on_an_overlay(sandbox):
    """A container whose state directory is its root: refused with both ways out, or done by `backend: auto`."""
    if os.geteuid() != 0:
        pytest.skip("mounts need root")
    fill(sandbox, sandbox.project)
    sandbox.write(sandbox.project / ".env", "secret\n")
    lower, merged = (sandbox.make_directory(sandbox.base / "o" / name) for name in "lm")
    with Loop("tmpfs", sandbox.base / "disk", sandbox.identity) as disk:
        upper, work = sandbox.make_directory(disk / "u"), sandbox.make_directory(disk / "w")
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}",
                        merged], check=True)
        try:
            os.chown(merged, sandbox.identity.uid, sandbox.identity.gid)
            sandbox.state = sandbox.make_directory(merged / "state")
            refused = sandbox.run("touch it-ran", policy=staging_policy(sandbox))
            assert refused.code == 125 and len(refused.err.splitlines()) == 1, refused
            assert "XDG_STATE_HOME" in refused.err and "stage: {backend: fuse}" in refused.err, refused
            assert sandbox.sessions() == [] and not (sandbox.project / "it-ran").exists()
            staged = Staged(sandbox, lines="stage: {backend: auto}\n")
            before = staged.state()
            done = staged.run("cat .env; " + WORK)
            assert done.code == 0 and done.out == "" and list(staged.upper.glob(".wh.*")), done
            check_work(staged, sandbox.project, before)
        finally:
            unmount(merged)


def test_beside_a_network_gate(sandbox):
    """Both hand descriptors out of the jail while it is made, in whatever order."""
    policy = sandbox.policy("atoll: 1\nextends: medium\nstage: {backend: fuse}\n")
    for _ in range(3):
        done = sandbox.run("echo x >new; grep -c nameserver /etc/resolv.conf", policy=policy)
        assert done.code == 0 and done.out == "1\n" and done.report["changes"]["added"] == 1, done


def test_auto_takes_the_overlay_where_it_can(sandbox):
    done = Staged(sandbox, lines="stage: {backend: auto}\n").run("true")
    assert done.report["enforcement"]["staging"] == "overlay"
    done = Staged(sandbox, lines="stage: {backend: auto}\n").run("true", env={"ATOLL_TEST_BREAK": "overlay"})
    assert done.report["enforcement"]["staging"] == "fuse-overlayfs"
    done = sandbox.run("true", policy=staging_policy(sandbox), env={"ATOLL_TEST_BREAK": "overlay"})
    assert done.code == 125 and "stage: {backend: fuse}" in done.err, done


def test_masks_hold(sandbox):
    """F3, F4, F9, F18: by their names, by other ones, when the host makes them later, after the parent is made anew."""
    for name in (".env", "conf/token", "conf/plain", "all/a", "all/b"):
        sandbox.write(sandbox.project / name, "SECRET\n")
    policy = staging_policy(sandbox, lines=FUSE)
    policy.write_text(policy.read_text().replace("files: {", "files: {mask: [conf/token, all/*, late], "))
    staged = Staged(sandbox, policy)
    ways = attempts(env="grep SECRET .env", token="grep SECRET conf/token", link="ln conf/token x && grep SECRET x",
                    root="grep SECRET /proc/self/root$PWD/conf/token", all="grep -r SECRET all",
                    move="mv conf c && grep SECRET c/token", late="grep SECRET late", names="ls -A | grep -x .env",
                    anew="rm -rf conf c; mkdir conf; grep SECRET conf/token")
    sandbox.write(sandbox.project / "late", "SECRET\n")
    assert sum(verdicts(sandbox.run_outside(["bash", "-c", "cp -a . ../copy; cd ../copy; " + ways])).values()) >= 7
    seen = verdicts(staged.run(ways))
    assert not any(seen.values()), seen
    staged.run("rm -rf conf all; mkdir conf all; echo x >conf/token; echo x >all/a; echo x >fine")
    staged.apply(code=1)
    assert (sandbox.project / "conf/token").read_text() == "SECRET\n" and (sandbox.project / "all/a").exists()
    assert (sandbox.project / "fine").exists()


def test_forged_marks(staged):
    """The names and attributes in which a layer says what is gone: made inside they are refused, there or at apply."""
    before = staged.state()
    tries = attempts(touch="touch .wh.changed", opaque="touch dir/.wh..wh..opq",
                     fuse="setfattr -n user.fuseoverlayfs.opaque -v y dir", control="touch wh.changed")
    seen = verdicts(staged.run(tries))
    assert seen.pop("control") and not any(seen.values()), seen
    assert set(staged.diff()) == {"wh.changed"}
    done = staged.run("setfattr -n user.overlay.redirect -v /etc changed; setfattr -n user.overlay.metacopy mode; "
                      "mkdir .wh.was; ln -s /etc .wh.dir; mkfifo .wh.gone; mv untouched .wh.move; echo x >fine; true")
    assert done.code == 0 and {".wh.was", ".wh.dir", ".wh.gone", ".wh.move"} <= set(os.listdir(staged.upper)), done
    changes = staged.diff()
    for name in ("changed", "mode", "was", "dir", "gone", "move"):
        assert is_refused(changes, name, "forged"), (name, changes)
    staged.apply(code=1)
    assert (staged.project / "fine").exists() and not (staged.project / "untouched").exists()
    staged.undo()
    os.utime(staged.project, ns=(0, before["."][3]))
    assert differences(before, staged.state()) == []


def test_names_of_the_host_that_look_like_marks(staged):
    """fuse-overlayfs takes a file `.wh.untouched` of the host for a whiteout: nothing of that reaches the host."""
    staged.sandbox.write(staged.project / ".wh.untouched", "mine\n")
    before = staged.state()
    staged.run("ls -A; echo x >>untouched; echo y >new; true")
    staged.apply(code=None)
    (staged.project / "new").unlink()
    after = staged.state()
    assert differences({path: seen for path, seen in before.items() if path not in (".", "untouched")},
                       {path: seen for path, seen in after.items() if path not in (".", "untouched")}) == []


@pytest.mark.parametrize("words", [["snapshot"], ["fork"], ["restore", "x"]])
def test_what_needs_layers_is_refused(staged, words):
    staged.run("echo x >new")
    done = staged.verb(words[0], staged.session, *words[1:], code=None)
    assert done.code != 0 and len(done.err.splitlines()) == 1, done
    staged.verb("discard", staged.session, code=0)
    assert staged.diff() == {}


def test_snapshots_before_each_command_are_refused_at_the_start(sandbox):
    done = sandbox.run("touch it-ran", policy=staging_policy(sandbox, lines="stage: {auto: exec, backend: fuse}\n"))
    assert done.code == 125 and "stage.auto" in done.err, done


def test_the_server_is_confined(staged):
    child, pid = start(staged, "exec sleep 30")
    status = status_of(pid)
    assert status["NoNewPrivs"] == "1", status
    # CHOWN, DAC_OVERRIDE, FOWNER: as root it makes files that belong to whoever owns the tree.
    assert int(status["CapPrm"], 16) & ~0xb == 0, status
    for name in ("net", "ipc", "uts"):
        assert os.readlink(f"/proc/{pid}/ns/{name}") != os.readlink(f"/proc/self/ns/{name}"), name
    open_files = {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    assert not [name for name in open_files if "socket:" in name or "audit" in name], open_files
    os.kill(child.pid, signal.SIGTERM)
    child.wait()
    assert is_gone(pid)


def test_the_server_dies_with_the_supervisor(staged):
    child, pid = start(staged, "exec sleep 30")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    wait_until(lambda: is_gone(pid), what="the end of the server")


def test_a_server_that_dies_ends_in_an_error(staged):
    """Nothing inside can go on with the tree, and the run says that what was staged may be incomplete."""
    child, pid = start(staged, "sleep 1; cat changed || echo gone")
    os.kill(pid, signal.SIGKILL)
    out, err = child.communicate(timeout=20)
    assert out == b"gone\n" and child.returncode == 125 and b"fuse-overlayfs" in err, (out, err)


def test_the_disk_limit_holds(sandbox):
    staged = Staged(sandbox, lines=FUSE + "resources: {disk: 8MiB}\n")
    staged.policy.write_text(staged.policy.read_text().replace(", disk]", "]"))
    done = sandbox.run("head -c 4G /dev/zero >big; echo $?; echo x >small; cat small", policy=staged.policy, timeout=60)
    assert done.code == 0 and done.out == "1\nx\n" and "File too large" in done.err, done
    done = sandbox.run("for i in $(seq 4000); do head -c 1M /dev/zero >f$i; done", policy=staged.policy, timeout=60)
    assert done.code == 137 and done.report["ended"] == "disk", done


def test_a_tree_with_something_mounted_in_it(sandbox):
    """A user's own kernel overlay cannot show it; fuse-overlayfs does, and what is below the mount is not applied."""
    if os.geteuid() != 0:
        pytest.skip("mounts need root")
    with Loop("tmpfs", sandbox.project / "mnt", sandbox.identity) as inner:
        sandbox.write(inner / "g", "old\n")
        staged = Staged(sandbox, lines="stage: {backend: auto}\n")
        done = staged.run("cat mnt/g; echo new >mnt/g; echo x >fine")
        assert done.out == "old\n" and (inner / "g").read_text() == "old\n", done
        staged.apply(code=None)
        assert (sandbox.project / "fine").exists()
        assert (inner / "g").read_text() == ("new\n" if sandbox.identity.is_root else "old\n")


# --- Files of another group, or of other users: the kernel's overlay copies up no id that the sandbox lacks. ---

GROUP = 48321
SHARED = """
set -eu
mkdir own; chmod g+s own; cp -a dir copy; tar cf - dir | tar xpf - -C own
echo more >>file; echo more >>dir/others; rm gone; mv old new; chmod 600 mode
echo made >dir/made; mkdir dir/sub; echo deep >dir/sub/deep; rm -r tree; mv moving moved; ln file linked
touch -d 2001-01-01 times
"""


@pytest.fixture
def shared(sandbox):
    """A project in which a group of the user's works, with files of somebody else of that group."""
    if sandbox.identity.is_root or os.geteuid():
        pytest.skip("needs a user that root gives another group")
    identity = sandbox.identity
    identity.popen_keywords = lambda: {"user": identity.uid, "group": identity.gid, "extra_groups": [GROUP]}
    yield sandbox
    del identity.popen_keywords


def share(sandbox):
    project = sandbox.project
    for name in ("file", "gone", "old", "mode", "times", "tree/deep/x", "dir/others", "moving/x"):
        os.chmod(sandbox.write(project / name, f"{name}\n"), 0o664)
    for path in [project / name for name in ("file", "gone", "old", "mode", "times")] + [
            path for top in ("tree", "dir", "moving") for path in (project / top, *(project / top).rglob("*"))]:
        os.chown(path, 12345 if path.name == "others" else -1, GROUP)
        if path.is_dir():
            path.chmod(0o2775)


def test_a_project_that_a_group_shares(shared):
    share(shared)
    project = shared.project
    # As the kernel has it, with a word of what will not go; and as it is outside.
    plain = shared.policy("atoll: 1\nextends: medium\nstage: {backend: overlay}\n", "overlay.yaml")
    done = shared.run(SHARED, policy=plain)
    assert done.code != 0 and "cannot be changed inside (EOVERFLOW)" in done.err, done
    subprocess.run(["cp", "-a", project, shared.base / "twin"], check=True)
    assert shared.run_outside(["bash", "-c", SHARED], cwd=shared.base / "twin").code == 0

    done = shared.run(SHARED)
    assert done.code == 0 and "fuse-overlayfs" in done.err, done
    assert done.report["enforcement"]["staging"] == "fuse-overlayfs"
    applied = shared.run_atoll("apply", done.session)
    assert applied.code == 0, applied
    for path in sorted((shared.base / "twin").rglob("*")):
        here, wanted = (project / path.relative_to(shared.base / "twin")).lstat(), path.lstat()
        assert stat.filemode(here.st_mode) == stat.filemode(wanted.st_mode), path
    # The group stays; what is new gets that of its directory, where that gives it.
    for name in ("file", "mode", "times", "dir", "dir/others", "dir/made", "dir/sub", "dir/sub/deep"):
        assert (project / name).stat().st_gid == GROUP, name
    assert not (project / "gone").exists() and not (project / "tree").exists()
    assert (project / "dir/others").read_text() == "dir/others\nmore\n"
    assert shared.run_atoll("undo", done.session).code == 0
    assert (project / "dir/others").stat().st_gid == GROUP and (project / "gone").stat().st_gid == GROUP
    assert stat.S_IMODE((project / "dir").stat().st_mode) == 0o2775
