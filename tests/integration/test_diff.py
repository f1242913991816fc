# SPDX-License-Identifier: Apache-2.0
"""`atoll diff`: every row of the table in doc/format/stage.md on real uppers, made by the kernel's own overlay; names,
contents and trees that a hostile sandbox would leave; what is shown, and where."""
import base64
import json
import os
import shutil
import stat
import subprocess
import time

import pytest
from overlay import Layered

POLICY = """atoll: 1
extends: none
drop: [.]
files: {stage: [., {path: ~/second, optional: true}]}
degrade: [cgroup.memory, cgroup.pids, cgroup.cpu, disk]
"""


@pytest.fixture
def policy(sandbox):
    return sandbox.policy(POLICY)


@pytest.fixture
def layered(sandbox, policy):
    """A session over a small project; the run begins now."""
    for name in ("a", "b", "c"):
        sandbox.write(sandbox.project / name, f"{name}\n" * 5)
    sandbox.write(sandbox.project / "dir" / "x", "x\n")
    sandbox.write(sandbox.project / "dir" / "sub" / "y", "y\n")
    return Layered(sandbox, policy)


def exact(value):
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else os.fsencode(value)


def shown(layered, *words):
    """(path relative to the project as bytes, change) in the order of --json."""
    done = layered.sandbox.run_atoll("diff", layered.session, "--json", *words, timeout=240)
    assert done.code == 0 and not done.err, done
    prefix = os.fsencode(layered.trees[0]) + b"/"
    return [(exact(each["path"]).removeprefix(prefix), each) for each in json.loads(done.out)["changes"]]


def judged(layered, *words):
    """{path: "kind" or "kind state reason"}; directories that are simply added or deleted are left out."""
    result = {}
    for path, each in shown(layered, *words):
        side = each["staged"] or each["host"]
        if side["type"] == "directory" and each["state"] == "clean" and each["kind"] != "modified":
            continue
        text = each["kind"] if each["state"] == "clean" else f"{each['kind']} {each['state']} {each['reason']}"
        result[os.fsdecode(path)] = text
    return result


def snapshot(tree):
    """Everything that a walk can see of a tree, times and all."""
    found = {}
    for where, folders, files in os.walk(os.fsencode(tree)):
        for name in [b"."] + folders + files:
            path = os.path.join(where, name)
            status = os.lstat(path)
            content = open(path, "rb").read() if stat.S_ISREG(status.st_mode) else b""
            found[path] = (status.st_mode, status.st_uid, status.st_size, status.st_mtime_ns, status.st_ctime_ns,
                           content)
    return found


# --- The table. ---

def test_nothing_was_changed(layered):
    layered.inside("cat a dir/x >/dev/null; ls -R >/dev/null")
    assert shown(layered) == []
    assert layered.sandbox.run_atoll("diff", layered.session).out == ""


@pytest.mark.parametrize("script, expected", [
    ("echo 1 >new", {"new": "added"}),
    ("ln -s a link", {"link": "added"}),
    ("mkdir -p n/m; echo 1 >n/m/f", {"n/m/f": "added"}),
    ("echo 1 >>a", {"a": "modified"}),
    ("echo 12345678 >a.tmp; mv a.tmp a", {"a": "modified"}),
    ("touch a", {"a": "modified"}),
    ("chmod 700 a", {"a": "modified"}),
    ("chmod 700 dir", {"dir": "modified"}),
    ("rm a", {"a": "deleted"}),
    ("rm a; ln -s b a", {"a": "modified"}),
    ("rm a; mkdir a; echo 1 >a/f", {"a": "modified", "a/f": "added"}),
    ("rm -r dir", {"dir/x": "deleted", "dir/sub/y": "deleted"}),
    ("rm -r dir; echo 1 >dir", {"dir": "modified", "dir/x": "deleted", "dir/sub/y": "deleted"}),
    ("rm -r dir; ln -s a dir", {"dir": "modified", "dir/x": "deleted", "dir/sub/y": "deleted"}),
    ("rm -r dir; mkdir dir; echo 1 >dir/n", {"dir/n": "added", "dir/x": "deleted", "dir/sub/y": "deleted"}),
    ("rm -r dir; mkdir dir; echo 1 >dir/x", {"dir/x": "modified", "dir/sub/y": "deleted"}),
    ("mv dir/sub moved", {"moved/y": "added", "dir/sub/y": "deleted"}),
    ("mv a z", {"z": "added", "a": "deleted"}),
    ("ln a z", {"z": "added"}),
    ("echo 1 >t; rm t; mkdir e; rmdir e", {}),
    ("chmod 600 a; chmod 644 a", {}),
    ("exec 3<>a; exec 3>&-", {}),
    ("mkfifo p", {"p": "added refused fifo"}),
    ("rm a; mkfifo a", {"a": "modified refused fifo"}),
    ("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")'", {"s": "added refused socket"}),
    ("echo 1 >.envrc", {".envrc": "added"}),
])
def test_what_the_sandbox_did(layered, script, expected):
    layered.inside(script)
    assert judged(layered) == expected


@pytest.mark.parametrize("host, inside, expected", [
    ("echo h >>a", "echo i >>a", {"a": "modified conflict host-changed"}),
    ("echo h >>a", "rm a", {"a": "deleted conflict host-changed"}),
    ("echo h >>a", "echo b >>b", {"b": "modified"}),
    ("rm a", "echo i >>a", {"a": "added conflict host-deleted"}),
    ("rm a", "rm a", {}),
    ("echo same >>a", "echo same >>a", {}),
    ("echo h >n", "echo i >n", {"n": "modified conflict host-added"}),
    ("echo h >n", "echo h >n", {}),
    ("mkdir n", "mkdir n; echo i >n/f", {"n/f": "added"}),
    ("echo h >n", "mkdir n; echo i >n/f", {"n": "modified conflict host-changed", "n/f": "added conflict above"}),
    ("rm -r dir", "echo i >dir/n", {"dir": "added conflict host-deleted", "dir/n": "added conflict above"}),
    ("echo h >>dir/x", "rm -r dir",
     {"dir": "deleted conflict below", "dir/x": "deleted conflict host-changed", "dir/sub/y": "deleted"}),
    ("echo h >dir/sub/new", "rm -r dir; echo i >dir",
     {"dir": "modified conflict below", "dir/sub": "deleted conflict below", "dir/x": "deleted", "dir/sub/y": "deleted",
      "dir/sub/new": "deleted conflict host-changed"}),
    ("rm a; mkdir a; echo h >a/f", "echo i >>a",
     {"a": "modified conflict below", "a/f": "deleted conflict host-changed"}),
    ("rm a; ln -s b a", "echo i >>a", {"a": "modified conflict host-changed"}),
    ("chmod 700 a", "echo i >>a", {"a": "modified conflict host-changed"}),
    ("touch -d 2001-01-01 a", "echo i >>a", {"a": "modified conflict host-changed"}),
    ("rm a; mkfifo a", "echo i >>a", {"a": "modified refused fifo"}),
    # Neither a rename nor a link in the sandbox is a deletion on the host, though its directory has changed.
    ("echo h >other", "mv a z", {"z": "added", "a": "deleted"}),
    ("echo h >other", "ln a z; echo i >>z", {"z": "added", "a": "modified"}),
    ("echo h >other; rm a", "mv a z", {"z": "added conflict host-deleted"}),
])
def test_what_both_did(layered, host, inside, expected):
    layered.inside(inside)
    layered.sandbox.run_outside(["sh", "-ec", host], cwd=layered.trees[0], check=True)
    assert judged(layered) == expected


def test_a_path_that_was_changed_before_the_run_is_no_conflict(layered):
    layered.sandbox.write(layered.trees[0] / "a", "changed before\n")
    layered.start()
    layered.inside("echo i >>a")
    assert judged(layered) == {"a": "modified"}


def test_a_clock_that_was_set_back_hides_no_change_of_the_host(layered):
    """The start is recorded an hour ahead of what the clock says now: ctimes of the run seem to lie before it."""
    hour = 3600 * 10**9
    boottime = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    layered.start(time.time_ns() + hour, boottime)
    time.sleep(0.02)
    layered.inside("echo i >>a; echo i >>b")
    layered.sandbox.write(layered.trees[0] / "a", "changed\n")
    assert judged(layered) == {"a": "modified conflict host-changed", "b": "modified"}


def test_layers_below_the_live_one(layered):
    layered.inside("echo 1 >>a; echo n >new; echo m >mod; rm b; mkdir -p n; echo f >n/f; rm -r dir; mkdir dir; "
                   "echo k >dir/k")
    layered.seal()
    layered.inside("echo 2 >>mod; echo b >b; mv n/f n/g; rm dir/k; echo 3 >>a; mv new newer")
    assert judged(layered) == {
        "a": "modified", "newer": "added", "mod": "added", "b": "modified", "n/g": "added", "dir/x": "deleted",
        "dir/sub/y": "deleted"}
    layered.seal()
    layered.inside("rm -r dir n; cp c a")
    assert judged(layered) == {
        "a": "modified", "newer": "added", "mod": "added", "b": "modified", "dir/x": "deleted", "dir/sub/y": "deleted"}
    # What was copied up from a sealed layer was not deleted on the host.
    layered.sandbox.write(layered.trees[0] / "other", "")
    assert judged(layered)["newer"] == "added" and judged(layered)["mod"] == "added"
    os.unlink(layered.trees[0] / "a")
    layered.seal()
    layered.inside("echo 4 >>a")
    assert judged(layered)["a"] == "added conflict host-deleted"


def test_extended_attributes_are_a_change(layered):
    layered.inside("setfattr -n user.mine -v 1 b") if shutil.which("setfattr") else layered.inside(
        "python3 -c 'import os; os.setxattr(\"b\", \"user.mine\", b\"1\")'")
    (path, change), = shown(layered)
    assert path == b"b" and change["differs"] == ["xattrs"]


def test_what_is_flagged_comes_first(layered):
    layered.inside("echo 1 >>a; mkdir -p z/.git/hooks; echo 1 >z/.git/hooks/x; echo 1 >.envrc; mkdir -p y; "
                   "ln -s a y/.git")
    flagged = [path for path, each in shown(layered) if each["flagged"]]
    assert flagged == [b".envrc", b"y/.git", b"z/.git", b"z/.git/hooks", b"z/.git/hooks/x"]
    assert [path for path, _ in shown(layered)][:5] == flagged
    assert [path for path, _ in shown(layered, "--flagged")] == flagged
    text = layered.sandbox.run_atoll("diff", layered.session).out
    assert text.index(".envrc") < text.index(" a ")
    assert "5 flagged" in text


# --- Masks. ---

def mask(layered, *names):
    root = layered.own_directory(layered.directory / "mask" / "0")
    for name in names:
        path = root / name
        layered.own_directory(path.parent)
        os.mknod(path, stat.S_IFCHR, os.makedev(0, 0))


def test_masked_names_are_never_applied(layered):
    layered.sandbox.write(layered.trees[0] / ".env", "secret\n")
    layered.sandbox.write(layered.trees[0] / "dir" / ".env", "secret\n")
    layered.start()
    mask(layered, ".env", "dir/.env", "later")
    assert b"secret" not in layered.inside("cat .env dir/.env later 2>&1 || true; ls -a . dir")
    layered.inside("echo mine >.env; mkdir later; echo 1 >later/f; rm -r dir")
    # The host has no `later` and the policy masks none: it stands for a directory above some masked name.
    assert judged(layered) == {
        ".env": "modified refused masked", "later/f": "added",
        "dir/.env": "deleted refused masked", "dir": "deleted conflict below",
        "dir/x": "deleted", "dir/sub/y": "deleted"}
    assert "secret" not in layered.sandbox.run_atoll("diff", "-p", layered.session).out


def test_a_masked_name_that_was_made_and_deleted_again_is_nothing(layered):
    layered.sandbox.write(layered.trees[0] / ".env", "secret\n")
    layered.start()
    mask(layered, ".env")
    layered.inside("echo 1 >.env; rm .env")
    assert judged(layered) == {}


# --- Hostile layers. ---

def test_nothing_is_touched(layered):
    layered.inside("echo 1 >>a; rm -r dir; mv b bb; chmod 700 c")
    before = snapshot(layered.trees[0]), snapshot(layered.directory)
    for words in ([], ["-p"], ["--json"]):
        assert layered.sandbox.run_atoll("diff", layered.session, *words).code == 0
    assert (snapshot(layered.trees[0]), snapshot(layered.directory)) == before


HOSTILE = [b"new\nline", b"esc\x1b[31m\x1b]0;t\x07", b"\xff\xfe invalid", b"tab\there", b"quote\"back\\slash", b" ",
           b"-p", b"--json", "bidi\u202e".encode(), b"\xc2\x9b", b"x" * 255, b"*", b"$(id)", b"q/..b"]


def test_names_are_exact_and_harmless(layered):
    for name in HOSTILE:
        path = os.path.join(os.fsencode(layered.upper), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(b"text\n")
    found = {path for path, each in shown(layered) if each["staged"]["type"] == "file"}
    assert found == set(HOSTILE)
    done = layered.sandbox.run_atoll("diff", layered.session)
    assert done.code == 0 and b"\x1b" not in done.bytes and b"\x07" not in done.bytes and b"\xff" not in done.bytes
    assert done.out.count("\n") == len(HOSTILE) + 1
    patch = layered.sandbox.run_atoll("diff", "-p", layered.session)
    assert patch.code == 0 and b"\x1b" not in patch.bytes and b"\xff" not in patch.bytes


def test_links_lead_nowhere(layered):
    layered.sandbox.write(layered.sandbox.outside / "secret", "secret of the host\n")
    outside = str(layered.sandbox.outside)
    layered.inside(f"rm -r dir; ln -s {outside} dir; ln -s {outside}/secret file; ln -s /etc/passwd a.link; "
                   "ln -s . loop")
    assert judged(layered) == {"dir": "modified", "dir/x": "deleted", "dir/sub/y": "deleted", "file": "added",
                               "a.link": "added", "loop": "added"}
    done = layered.sandbox.run_atoll("diff", "-p", layered.session)
    assert "secret of the host" not in done.out and "root:" not in done.out and f"+{outside}" in done.out


def test_a_link_on_the_host_leads_nowhere(layered):
    """A directory of the tree became a link after the run: what it leads to is not compared."""
    layered.sandbox.write(layered.sandbox.outside / "x", "x of outside\n")
    layered.inside("echo i >>dir/x")
    project = layered.trees[0]
    shutil.rmtree(project / "dir")
    os.symlink(layered.sandbox.outside, project / "dir")
    layered.sandbox.own(project / "dir")
    result = judged(layered)
    assert result["dir"] == "modified conflict host-changed" and result["dir/x"] == "added conflict above"
    assert "x of outside" not in layered.sandbox.run_atoll("diff", "-p", layered.session).out


@pytest.mark.parametrize("name, value", [
    ("redirect", b"/etc"), ("metacopy", b""), ("opaque", b"x"), ("whiteout", b"y"), ("verity", b"1"),
])
def test_forged_attributes_are_refused(layered, name, value):
    layered.inside("echo 1 >>a; echo 1 >>dir/x")
    for path in ("a", "dir"):
        os.setxattr(layered.upper / path, f"user.overlay.{name}", value)
    assert judged(layered) == {"a": "modified refused forged", "dir": "modified refused forged"}


def test_whiteouts_of_what_never_existed(layered):
    os.mknod(layered.upper / "never", stat.S_IFCHR, os.makedev(0, 0))
    os.mkdir(layered.upper / "empty")
    os.mknod(layered.upper / "empty" / "never", stat.S_IFCHR, os.makedev(0, 0))
    assert [path for path, _ in shown(layered)] == [b"empty"]


@pytest.mark.only("root")
def test_devices_are_refused(layered):
    os.mknod(layered.upper / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(layered.upper / "disk", stat.S_IFBLK | 0o666, os.makedev(8, 0))
    assert judged(layered) == {"null": "added refused device", "disk": "added refused device"}


def make_deep(root, levels, name=b"d"):
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir(name, 0o755, dir_fd=fd)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open(b"bottom", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=fd))
    os.close(fd)


def remove_deep(root):
    subprocess.run(["rm", "-rf", str(root)], check=True)


@pytest.mark.parametrize("name", [b"d", b"n" * 200], ids=["short", "long"])
def test_a_thousand_levels(layered, name):
    make_deep(layered.upper, 1000, name)
    try:
        found = shown(layered)
        assert len(found) == 1001, (len(found), found[-1][1]["state"], found[-1][1]["reason"])
        # Paths that are too long for the policy to judge are flagged, and come first.
        assert max((path for path, _ in found), key=len) == (name + b"/") * 1000 + b"bottom"
        assert all(each["flagged"] == (len(path) > 3800) for path, each in found if not 3800 < len(path) < 4100)
        assert layered.sandbox.run_atoll("diff", layered.session).code == 0
        # The same depth on the host, to be deleted: the walk goes there, too.
        make_deep(layered.trees[0], 1000, name)
        os.rename(layered.upper / os.fsdecode(name), layered.directory / "aside")
        os.mknod(layered.upper / os.fsdecode(name), stat.S_IFCHR, os.makedev(0, 0))
        layered.start()
        assert len(shown(layered)) == 1001
    finally:
        remove_deep(layered.directory / "aside")
        remove_deep(layered.trees[0] / os.fsdecode(name))
        remove_deep(layered.upper)


def test_too_many_levels_are_refused_and_not_followed(layered):
    make_deep(layered.upper, 4200)
    try:
        path, change = shown(layered)[-1]
        assert change["state"] == "refused" and change["reason"] == "too-deep" and path.count(b"/") == 4095
    finally:
        remove_deep(layered.upper)


@pytest.mark.only("user")
def test_what_cannot_be_read_is_refused(layered):
    """Of the host; what the sandbox closed can be read."""
    layered.inside("echo 1 >>dir/x; mkdir closed; echo 1 >closed/f; chmod 0 closed; mkdir half; echo 1 >half/f; "
                   "chmod 444 half")
    layered.sandbox.run_outside(["chmod", "0", "dir"], cwd=layered.trees[0], check=True)
    result = judged(layered)
    layered.sandbox.run_outside(["chmod", "755", "dir"], cwd=layered.trees[0], check=True)
    assert result == {"closed/f": "added", "half/f": "added", "dir": "modified refused unreadable"}


def test_a_tree_that_is_moved_about_while_it_is_read(layered):
    """Directories of the layer change places all the time; a diff ends, and shows nothing from outside of the layer."""
    for side in ("l", "r"):
        make_deep(layered.own_directory(layered.upper / side), 300)
    churn = subprocess.Popen(["/usr/bin/python3", "-c", """
import os, sys
os.chdir(sys.argv[1])
while True:
    for a, b in (("l/d/d/d", "swap"), ("r/d/d/d", "l/d/d/d"), ("swap", "r/d/d/d")):
        os.rename(a, b)
""", str(layered.upper)], stdin=subprocess.DEVNULL)
    try:
        for _ in range(20):
            done = layered.sandbox.run_atoll("diff", layered.session, "--json")
            assert done.code == 0, done
            for each in json.loads(done.out)["changes"]:
                assert not each["host"] and set(os.path.basename(each["path"])) <= set("dlrbottomswap"), each
    finally:
        churn.kill()
        churn.wait()
        remove_deep(layered.upper)


# --- What is shown. ---

def test_lines_of_the_list(layered):
    layered.inside("echo 1 >>a; rm b; mv c d; head -c 2048 /dev/zero >bin; ln -s a l; chmod 700 dir; mkdir e; mkfifo p")
    done = layered.sandbox.run_atoll("diff", layered.session)
    lines = {line.split("|")[0].strip(): line.split("|")[-1].strip() for line in done.out.splitlines()}
    assert lines["M a"] == "1 +" and lines["D b"] == "5 -----" and lines["R c => d"] == "renamed"
    assert lines["A bin"] == "binary 2.0 KiB" and lines["A l"] == "-> a" and "A e/" in lines
    assert lines["M dir/"] == "mode 0755 → 0700" and lines["A p"] == "a FIFO is never applied"
    assert done.out.splitlines()[-1] == (
        " 6 files changed (1 modified, 3 added, 2 deleted), 2 directories, 1 refused")


def test_no_permission_hides_behind_another_change(sandbox, layered):
    """In neither form: a content, a rename, or what git calls 755."""
    layered.inside("chmod 666 a; echo x >>a; mv b moved; chmod 777 moved; chmod 777 c; echo >open; chmod 666 open;"
                   "mkdir wide; chmod 777 wide; echo >plain")
    listed, patch = (sandbox.run_atoll("diff", layered.session, *words).out for words in ((), ("-p",)))
    lines = {line.split("|")[0].split()[-1]: line for line in listed.splitlines() if "|" in line or "wide" in line}
    assert "0644 → 0666" in lines["a"] and "0644 → 0777" in lines["moved"] and "0644 → 0777" in lines["c"], listed
    assert "0666" in lines["open"] and "0777" in listed.split("wide/")[1].splitlines()[0], listed
    assert "mode" not in lines["plain"], listed
    before = {name: patch.split(f" b{layered.sandbox.project}/{name}\n")[0].splitlines()[-2] for name in
              ("a", "moved", "c", "open")}
    assert before == {"a": "mode 0644 → 0666", "moved": "mode 0644 → 0777", "c": "mode 0644 → 0777",
                      "open": "mode 0666: others may write"}, patch
    assert "directory added, mode 0777: others may write: " in patch, patch


def test_no_permission_hides_behind_another_change(sandbox, layered):
    """In neither form: a content, a rename, or what git calls 755."""
    layered.inside("chmod 666 a; echo x >>a; mv b moved; chmod 777 moved; chmod 777 c; echo >open; chmod 666 open; "
                   "mkdir wide; chmod 777 wide; echo >plain")
    listed, patch = (sandbox.run_atoll("diff", layered.session, *words).out for words in ((), ("-p",)))
    lines = {line.split(" | ")[0].split()[-1]: line for line in listed.splitlines() if " | " in line}
    assert "0644 → 0666" in lines["a"] and "0644 → 0777" in lines["moved"] and "0644 → 0777" in lines["c"], listed
    assert "0666" in lines["open"] and "0777" in lines["wide/"] and "mode" not in lines["plain"], listed
    before = {name: patch.split(f" b/{name}\n")[0].splitlines()[-2] for name in
              ("a", "moved", "c", "open")}
    assert before == {"a": "mode 0644 → 0666", "moved": "mode 0644 → 0777", "c": "mode 0644 → 0777",
                      "open": "mode 0666: others may write"}, patch
    assert "directory added, mode 0777: others may write: " in patch, patch


def test_paths(sandbox, layered):
    layered.inside("echo 1 >>a; echo 1 >>dir/x; echo 1 >>dir/sub/y; rm -r dir/sub")
    everything = judged(layered)
    assert set(everything) == {"a", "dir/x", "dir/sub/y"}
    assert set(judged(layered, "dir")) == {"dir/x", "dir/sub/y"}
    assert set(judged(layered, "dir/sub", "a")) == {"a", "dir/sub/y"}
    assert set(judged(layered, str(sandbox.project))) == set(everything)
    assert set(judged(layered, "/")) == set(everything)
    sandbox.make_directory(sandbox.project / "di")
    assert judged(layered, "di") == {}
    slip = sandbox.run_atoll("diff", layered.session, "dri")
    assert slip.code == 127 and "dri" in slip.err
    elsewhere = sandbox.run_atoll("diff", layered.session, "/usr")
    assert elsewhere.code == 125 and "not in a staged tree" in elsewhere.err


def test_several_trees(sandbox, policy):
    second = sandbox.make_directory(sandbox.home / "second")
    sandbox.write(second / "s", "s\n")
    layered = Layered(sandbox, policy, [sandbox.project, second])
    layered.inside("echo 1 >p")
    layered.inside("echo 2 >>s", tree=1)
    assert [exact(each["path"]) for _, each in shown(layered)] == [
        os.fsencode(sandbox.project / "p"), os.fsencode(second / "s")]
    text = sandbox.run_atoll("diff", layered.session).out
    assert " A p " in text and f" M {second}/s" in text
    assert len(shown(layered, str(second))) == 1


def test_the_patch_is_one(sandbox, layered, tmp_path):
    """What -p prints makes of a copy of the project what the sandbox sees."""
    copy = sandbox.make_directory(sandbox.base / "copy")
    subprocess.run(["cp", "-a", f"{sandbox.project}/.", str(copy)], check=True)
    layered.inside("sed -i 2s/.*/changed/ a; rm b; mv c cc; printf 'no newline' >n; ln -s a l; rm -r dir; echo d >dir; "
                   "printf 'tab\\tand esc \\033[31m\\n' >odd; echo 1 >'sp ace'; chmod 755 a; "
                   "echo 1 >\"$(printf 'q\\nl')\"")
    patch = sandbox.run_atoll("diff", "-p", layered.session)
    assert patch.code == 0 and b"\x1b[31m" in patch.bytes, patch
    applied = subprocess.run(["git", "apply", "--whitespace=nowarn"], cwd=copy, input=patch.bytes, capture_output=True,
                             check=False)
    assert applied.returncode == 0, applied.stderr
    listing = "find . -type f -print0 | sort -z | xargs -0 tail -v -n +1; find . -printf '%p %M %l\\n' | sort"
    outside = subprocess.run(["sh", "-c", listing], cwd=copy, capture_output=True, check=True)
    assert outside.stdout == layered.inside(listing)


EVERY_FORM = r"""
printf 'a\0changed' >binary; rm gone.bin; printf '\0\1\2' >new.bin; : >empty; rm was-empty
printf 'one\nthree' >unfinished; printf 'old\n' >finished; printf 'x\r\ny\r\n' >dos; printf '\344\n' >latin
head -c 9000 /dev/zero | tr '\0' 'x' >late; printf '\0tail\n' >>late
mv script renamed; chmod 755 renamed; echo more >>'sp ace'; ln -sfn elsewhere link; rm to-link; ln -s a to-link
rm to-file; echo file >to-file; touch -d 2001-01-01 touched; chmod 600 private; chmod 700 dir; echo 1 >.envrc
setfattr -n user.note -v 1 attributes; mkfifo pipe; echo agent >>both; echo 2 >"$(printf 'b\\ck"\t\303\244')"
"""


def test_git_applies_every_form(sandbox, policy):
    """git takes each form that it knows, and notes about what it has no form for neither stop nor mislead it."""
    project, copy = sandbox.project, sandbox.make_directory(sandbox.base / "copy")
    for name, content in {"binary": b"a\0b" * 2000, "gone.bin": b"\0gone", "was-empty": b"", "dir/x": b"x\n",
                          "unfinished": b"one\ntwo\n", "finished": b"old", "dos": b"x\r\n", "latin": b"\xe4\xf6\n",
                          "late": b"y", "script": b"#!/bin/sh\n", "sp ace": b"1\n2\n", "to-link": b"a\n",
                          "touched": b"t\n", "private": b"p\n", "attributes": b"1\n",
                          "both": b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"}.items():
        sandbox.write(project / name, content)
    for name in ("link", "to-file"):
        (project / name).symlink_to("a")
        sandbox.own(project / name)
    layered = Layered(sandbox, policy)
    layered.inside(EVERY_FORM)
    time.sleep(0.02)
    (project / "both").write_bytes(b"0\n2\n3\n4\n5\n6\n7\n8\n9\n")
    subprocess.run(["cp", "-a", f"{project}/.", str(copy)], check=True)
    patch = sandbox.run_atoll("diff", "-p", layered.session).bytes
    applied = subprocess.run(["git", "apply", "-v", "--whitespace=nowarn"], cwd=copy, input=patch, capture_output=True,
                             check=False)
    assert applied.returncode == 0, (applied.stderr, patch)
    for note in (b"conflict: changed on the host", b"fifo added: pipe", b"file modified, mode 0644", b"touched",
                 b"directory modified, mode 0755", b"only extended attributes differ: attributes"):
        assert note in patch, (note, patch)
    listing = "find . -type f -perm /100 -printf 'x %p\\n'; find . -type f ! -name .envrc -print0 | sort -z | " \
              "xargs -0 sha256sum; find . ! -type d ! -type p -printf '%p %l\\n' | sort"
    outside = subprocess.run(["sh", "-c", listing], cwd=copy, capture_output=True, check=True).stdout
    assert outside == layered.inside(listing) and b"renamed" in outside


def test_git_refuses_a_patch_that_lacks_bytes(sandbox, layered):
    """What is too large to be compared is never an empty file in the place of the real one."""
    layered.inside("yes line | head -c 9000000 >large; head -c 9000000 /dev/zero >zeros; echo 1 >new")
    patch = sandbox.run_atoll("diff", "-p", layered.session).bytes
    assert b"too large to be compared by lines: nothing" in patch, patch
    assert b"Binary files /dev/null and b/large differ" in patch, patch
    copy = sandbox.make_directory(sandbox.base / "copy")
    applied = subprocess.run(["git", "apply"], cwd=copy, input=patch, capture_output=True, check=False)
    assert applied.returncode != 0 and not list(copy.iterdir()), applied


def test_on_a_terminal(sandbox, layered):
    """Colours and a pager; and no byte of a file or a name that the terminal would obey."""
    layered.inside("printf 'a\\tb \\033[2J \\302\\233 \\377\\n' >evil; echo 1 >\"$(printf 'n\\033]0;x\\007')\"")
    sandbox.write(sandbox.base / "bin" / "pager", "#!/bin/sh\necho PAGER \"$@\"\nexec cat\n", 0o755)
    words = f"{sandbox.programs.atoll} diff -p {layered.session}"
    for pager in (f"{sandbox.base}/bin/pager -x", "", "cat", "/does/not/exist"):
        terminal = subprocess.run(["script", "-qec", words, "/dev/null"], stdin=subprocess.DEVNULL, capture_output=True,
                                  check=False, env=sandbox.full_environment({"ATOLL_PAGER": pager}),
                                  cwd=sandbox.project, **sandbox.identity.popen_keywords())
        text = terminal.stdout
        assert (b"PAGER -x" in text) == pager.endswith("-x"), terminal
        assert b"\x1b[32m+a\tb \\x1b[2J \\u{009B} \\xff" in text, text
        assert b"\x1b[2J" not in text and b"\x1b]0" not in text and b"\xff" not in text


def test_the_session_is_found(sandbox, layered):
    layered.inside("echo 1 >new")
    (sandbox.project / "sub").mkdir()
    sandbox.own(sandbox.project / "sub")
    gone = sandbox.run_atoll("diff", "zzzzzzzzzzzz")
    assert gone.code != 0
    both = sandbox.run_atoll("diff", "--json", "-p", layered.session)
    assert both.code == 125 and "--json" in both.err
    relative = sandbox.run_atoll("diff", layered.session, "../new", cwd=sandbox.project / "sub")
    assert " A new " in relative.out, relative


def test_a_tree_that_was_replaced_is_not_compared(sandbox, layered):
    layered.inside("echo 1 >new")
    os.rename(sandbox.project, sandbox.home / "moved")
    sandbox.make_directory(sandbox.project)
    done = sandbox.run_atoll("diff", layered.session, cwd=sandbox.home)
    assert done.code == 125 and "another directory" in done.err


@pytest.mark.parametrize("name, offset", [("trees", 20), ("trees", 9), ("chain", -2), ("chain", 16)])
def test_damaged_records_are_refused(layered, name, offset):
    layered.inside("echo 1 >new")
    layered.seal()
    content = bytearray((layered.directory / name).read_bytes())
    content[offset] ^= 0xff
    layered.put(name, bytes(content))
    done = layered.sandbox.run_atoll("diff", layered.session)
    assert done.code == 125 and "cannot be read" in done.err


def test_a_layer_that_is_missing_is_an_error(layered):
    layered.inside("echo 1 >new")
    layered.seal()
    shutil.rmtree(layered.directory / "layers" / "1" / "0")
    done = layered.sandbox.run_atoll("diff", layered.session)
    assert done.code == 125 and "layer" in done.err


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def test_it_is_confined_while_it_reads(sandbox, layered):
    """Held at a full pipe: atoll-stage and the processes that compare texts have given up what they could."""
    for index in range(3000):
        (layered.upper / f"file-with-a-long-name-{index:060}").touch()
    reader = subprocess.Popen([str(sandbox.programs.atoll), "diff", layered.session], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, **sandbox.popen_keywords())
    try:
        first = reader.stdout.read(1)
        assert first == b" "
        status = status_of(reader.pid)
        assert status["Name"] == "atoll-stage" and status["Seccomp"] == "2" and status["NoNewPrivs"] == "1"
        with open(f"/proc/{reader.pid}/task/{reader.pid}/children", encoding="utf-8") as file:
            keeper, = file.read().split()
        with open(f"/proc/{keeper}/task/{keeper}/children", encoding="utf-8") as file:
            worker, = file.read().split()
        for child in (keeper, worker):
            assert status_of(child)["NoNewPrivs"] == "1" and status_of(child)["Seccomp"] == "2"
            assert len(os.listdir(f"/proc/{child}/fd")) == 2, "its socket, and stderr"
    finally:
        reader.stdout.close()
        assert reader.wait(timeout=30) in (0, 125, -13)
