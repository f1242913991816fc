# SPDX-License-Identifier: Apache-2.0
"""Hostile upper layers: whatever lies in one, reviewing and applying it reads and writes nothing outside of the staged
trees, ends in bounded time, and shows every name escaped. ATOLL_TESTS_FULL=1 takes a million entries, not some."""
import ctypes
import os
import re
import resource
import stat
import subprocess
import sys
import time

import pytest

from stage import Staged, from_json, is_refused, only
from tree_state import differences, tree_state

FULL = os.environ.get("ATOLL_TESTS_FULL") == "1"
SECRET = "the secret\n"

NAMES = ("new\nline", "esc\033[31m\033]0;title\007", "\udcff\udcfe", "x" * 255, " ", "-rf", "--", "a\\b", "*", "ü",
         "\u202egpj", "...", "..x", ".. ", "\r", "\t", "\x7f", "\u0085", "a:b", "a,b", "$(touch x)", "`x`", "'", '"',
         "atoll: fine", "%s%n")


@pytest.fixture
def hidden(sandbox):
    """A place of the user that no policy here names, and a check that it stays as it is."""
    place = sandbox.make_directory(sandbox.home / "hidden")
    sandbox.write(place / "id", SECRET, 0o600)
    before = tree_state(place)
    yield place
    assert differences(before, tree_state(place)) == []


def write_names(names):
    return "import os\nfor name in " + repr([os.fsencode(name) for name in names]) + \
        ":\n    open(name, 'wb').write(b'content\\n')\n"


def test_names_are_shown_escaped_and_applied_exactly(sandbox):
    staged = Staged(sandbox)
    done = staged.run(["/usr/bin/python3", "-c", write_names(NAMES)])
    assert done.code == 0, done
    assert sorted(staged.diff()) == sorted(NAMES)
    for words in ([], ["-p"], ["--stat"], ["--flagged"]):
        shown = staged.verb("diff", staged.session, *words)
        assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", shown.bytes.replace(b"\t", b"")), shown
        assert b"\xff" not in shown.bytes and "\u202e" not in shown.out and "\u0085" not in shown.out, shown
        if words != ["--flagged"]:
            assert len([line for line in shown.out.splitlines() if "touch x" in line]) >= 1, shown
    dry = staged.apply("--dry-run")
    assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", dry.bytes), dry
    assert os.listdir(sandbox.project) == []
    staged.apply()
    assert sorted(os.listdir(sandbox.project)) == sorted(NAMES)
    assert all((sandbox.project / name).read_text() == "content\n" for name in NAMES)
    staged.undo()
    assert os.listdir(sandbox.project) == []


@pytest.mark.parametrize("name", ["new\nline", "\udcff\udcfe", "-rf", "*", "x" * 255, "%s%n", "--"])
def test_one_path_is_that_path(sandbox, name):
    """A name given to apply is no pattern, no option and no format."""
    staged = Staged(sandbox)
    staged.run(["/usr/bin/python3", "-c", write_names(NAMES)])
    staged.apply("--", "./" + name)
    assert os.listdir(sandbox.project) == [name]


DEEP = """
import os
for i in range({levels}):
    os.mkdir("d" * 12)
    os.chdir("d" * 12)
open("bottom", "w").write("deep\\n")
"""


def depth(root):
    done = subprocess.run(["find", root, "-name", "bottom", "-printf", "%d\n"], capture_output=True, text=True,
                          check=True)
    return [int(line) for line in done.stdout.split()]


def test_very_deep_trees(sandbox, hidden):
    """Paths of 13,000 bytes (5,200 in `make check`): what no program can name is left for a person to look at; nothing
    crashes, no part is left in silence."""
    staged, levels = Staged(sandbox), 1000 if FULL else 400
    try:
        assert staged.run(["/usr/bin/python3", "-c", DEEP.format(levels=levels)]).code == 0
        for words in ([], ["-p"], ["--json"]):
            assert staged.verb("diff", staged.session, *words, code=None, timeout=20).code in (0, 1)
        applied = staged.apply(code=None, timeout=30)
        assert applied.code in (0, 1), applied
        assert "left, " in applied.out or depth(sandbox.project) == [levels + 1], applied
        staged.apply("--allow-flagged", sandbox.project / ("d" * 12), timeout=30)
        assert depth(sandbox.project) == [levels + 1]
        for _ in range(2):
            staged.undo(code=None, timeout=30)
        assert os.listdir(sandbox.project) == []
    finally:
        # Deeper than what shutil.rmtree() of the fixture can walk.
        subprocess.run(["rm", "-rf", sandbox.project, sandbox.state], check=True)


MANY = "import os\nfor i in range({count}):\n    if i % 1000 == 0:\n        os.mkdir(str(i)); os.chdir(str(i))\n" \
       "    os.close(os.open(str(i) + 'f', os.O_CREAT | os.O_WRONLY))\n" \
       "    if i % 1000 == 999:\n        os.chdir('..')\n"


def test_very_many_entries(sandbox):
    """10^6 (some in `make check`): the end of the run and the review take bounded time and memory."""
    count = 1_000_000 if FULL else 3_000
    staged = Staged(sandbox)
    staged.policy.write_text(staged.policy.read_text() + "resources: {inodes: 4M, disk: 40GiB}\n"
                             "time: {wall: 1h, cpu: 1h}\n")
    done = staged.run(["/usr/bin/python3", "-c", MANY.format(count=count)], timeout=1200)
    assert done.code == 0, done
    begun = time.monotonic()
    shown = staged.verb("diff", staged.session, "--stat", timeout=120)
    assert time.monotonic() - begun < 2 + count / 50_000, shown
    changes = staged.diff(timeout=300)
    assert len(only(changes, "added")) >= count
    if FULL:
        # KiB, of the largest: a kilobyte a change, and what any program takes.
        assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < (256 << 10) + count
    else:
        staged.apply(timeout=60)
        assert sum(len(files) for _, _, files in os.walk(sandbox.project)) == count
        staged.undo(timeout=60)
        assert os.listdir(sandbox.project) == []


def refused(staged, *names):
    """All of these are listed as refused, and the rest ("fine") is applied."""
    staged.plant("fine")
    before = staged.state()
    changes = staged.diff()
    for name in names:
        assert changes[name]["state"] == "refused" and changes[name]["reason"], (name, changes)
    staged.verb("diff", staged.session, "-p", timeout=20)
    staged.apply(code=1, timeout=20)
    after = staged.state()
    assert after.pop("fine")
    before["."] = after["."] = None
    assert differences(before, after) == []


@pytest.mark.parametrize("attribute", ["user.overlay.redirect", "user.overlay.metacopy"])
@pytest.mark.parametrize("kind", ["file", "directory"])
def test_forged_attributes_are_refused(sandbox, hidden, attribute, kind):
    """What the kernel would follow to another file: on a new name, and on one that the host has."""
    sandbox.write(sandbox.project / "old", "old\n")
    sandbox.write(sandbox.project / "olddir/f", "old\n")
    staged = Staged(sandbox)
    staged.run("echo x >seed")
    staged.verb("discard", staged.session, "--", "seed", code=None)
    targets = ["new", "old"] if kind == "file" else ["newdir", "olddir"]
    for name in targets:
        path = staged.plant(name) if kind == "file" else staged.plant_directory(name)
        if kind == "directory":
            staged.plant(f"{name}/inner")
        os.setxattr(path, attribute, b"" if attribute.endswith("metacopy") else os.fsencode(hidden / "id"))
    changes = staged.diff()
    for name in targets:
        assert is_refused(changes, name if kind == "file" else f"{name}/inner"), (name, changes)
    staged.apply(code=1)
    assert (sandbox.project / "old").read_text() == "old\n" and (sandbox.project / "olddir/f").read_text() == "old\n"
    for name in targets:
        path = sandbox.project / name
        assert not path.exists() or not [a for a in os.listxattr(path) if "overlay" in a], name


def test_attributes_of_the_overlay_cannot_be_set_inside(sandbox, hidden):
    """Refused by the kernel or kept under another name; either way nothing of it acts, and none reaches the host."""
    sandbox.write(sandbox.project / "dir/f", "old\n")
    staged = Staged(sandbox)
    script = ("for a in redirect metacopy opaque origin impure whiteout; do for f in new newdir dir dir/f; do "
              "setfattr -n user.overlay.$a -v %s $f; done; done" % hidden)
    done = staged.run(f"touch new; mkdir newdir; {script}; setfattr -n trusted.overlay.redirect -v /x new; "
                      "setfattr -n user.fine -v y new; ls dir newdir; cat dir/f")
    assert SECRET not in done.out
    staged.apply(code=None)
    assert (sandbox.project / "dir/f").read_text() == "old\n"
    for directory, directories, files in os.walk(sandbox.project):
        for name in directories + files:
            found = [a for a in os.listxattr(os.path.join(directory, name)) if a.startswith("user.overlay.")]
            assert not found, (name, found)
    # The next run sees nothing of it either.
    assert Staged(sandbox).run("cat dir/f; ls").out.startswith("old\n")


def test_opaque_directories_and_whiteouts(sandbox, hidden):
    """Planted: opaque where the host has files, where it has none and where it has a file; whiteouts of nothing."""
    for name in ("dir/a", "dir/sub/b", "keep/a", "file"):
        sandbox.write(sandbox.project / name, "old\n")
    staged = Staged(sandbox)
    staged.run("touch seed")
    (staged.upper / "seed").unlink()
    staged.plant_directory("dir", is_opaque=True)
    staged.plant("dir/mine")
    staged.plant_directory("never/was", is_opaque=True)
    staged.plant_directory("file", is_opaque=True)
    if os.geteuid() != 0:
        pytest.skip("whiteouts from outside need root")
    staged.plant_whiteout("nothing")
    staged.plant_whiteout("no/such/place")
    staged.plant_whiteout("keep/a")
    staged.plant_whiteout("keep/b")
    changes = staged.diff()
    assert only(changes, "deleted") == ["dir/a", "dir/sub", "dir/sub/b", "keep/a"], changes
    assert "nothing" not in changes and "no/such/place" not in changes, changes
    before = staged.state()
    staged.apply()
    assert sorted(os.listdir(sandbox.project / "dir")) == ["mine"] and (sandbox.project / "file").is_dir()
    assert os.listdir(sandbox.project / "keep") == [] and (sandbox.project / "never/was").is_dir()
    staged.undo()
    assert differences(before, staged.state()) == []


def test_hard_links_in_the_upper(sandbox, hidden):
    """Among staged names they stay links; one to a file outside of the layer gives no more than a copy of it."""
    staged = Staged(sandbox)
    staged.run("echo x >a; ln a b; mkdir d; ln a d/c; echo y >single")
    os.link(hidden / "id", staged.upper / "stolen")     # as only someone outside could
    os.unlink(staged.upper / "stolen")
    staged.apply()
    a = os.stat(sandbox.project / "a")
    assert a.st_nlink == 3 and a.st_ino == os.stat(sandbox.project / "d/c").st_ino
    assert os.stat(sandbox.project / "single").st_nlink == 1
    assert not os.path.samefile(sandbox.project / "a", staged.upper / "a"), "the host shares an inode with the layer"
    sandbox.write(sandbox.project / "single", "host\n")
    assert (staged.upper / "single").read_text() == "y\n"


def test_a_hard_link_of_the_host_is_broken_not_written_through(sandbox, hidden):
    """The host's own name for the same inode outside of the tree keeps its bytes and its mode."""
    outside = sandbox.write(sandbox.home / "outside.txt", "old\n")
    os.link(outside, sandbox.project / "shared")
    before = os.stat(outside)
    staged = Staged(sandbox)
    staged.run("echo new >shared; chmod 777 shared")
    staged.apply()
    assert outside.read_text() == "old\n" and os.stat(outside).st_mode == before.st_mode
    assert (sandbox.project / "shared").read_text() == "new\n"
    staged.undo()
    assert (sandbox.project / "shared").read_text() == "old\n"


def test_sparse_files_stay_sparse(sandbox):
    """A file of a terabyte that has no bytes costs nothing, or the limit of the policy stops it."""
    staged = Staged(sandbox, lines="resources: {file_size: unlimited}\n")
    done = staged.run("truncate -s 8G big; echo x >>big")
    assert done.code == 0, done
    staged.apply(timeout=20)
    status = os.stat(sandbox.project / "big")
    assert status.st_size == (8 << 30) + 2 and status.st_blocks < 1000
    staged.undo(timeout=20)
    assert os.listdir(sandbox.project) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="devices need root")
def test_nodes_that_are_no_whiteouts(sandbox):
    staged = Staged(sandbox)
    staged.run("touch seed")
    (staged.upper / "seed").unlink()
    nodes = (("null", stat.S_IFCHR, (1, 3)), ("disk", stat.S_IFBLK, (8, 0)), ("zero", stat.S_IFBLK, (0, 0)))
    for name, kind, number in nodes:
        os.mknod(staged.upper / name, kind | 0o666, os.makedev(*number))
        staged.own(staged.upper / name)
    refused(staged, "null", "disk", "zero")


def test_links_below_links_in_the_layer(sandbox, hidden):
    """A layer in which a directory is a link out (the layer, not the tree) is not walked through."""
    sandbox.write(sandbox.project / "dir/id", "old\n")
    staged = Staged(sandbox)
    staged.run("touch seed")
    (staged.upper / "seed").unlink()
    os.symlink(hidden, staged.upper / "dir")
    staged.own(staged.upper / "dir")
    shown = staged.verb("diff", staged.session, "-p")
    assert SECRET.strip() not in shown.out, shown
    staged.apply()
    assert os.readlink(sandbox.project / "dir") == str(hidden)
    staged.undo()
    assert (sandbox.project / "dir/id").read_text() == "old\n"


@pytest.mark.parametrize("what", ["upper", "live/0", "live", "stage"])
def test_a_layer_that_is_a_link_is_not_followed(sandbox, hidden, what):
    """The session directory is the user's; still nothing in it is followed out."""
    staged = Staged(sandbox)
    staged.run("echo x >f")
    path = {"upper": staged.upper, "live/0": staged.upper.parent, "live": staged.upper.parent.parent,
            "stage": staged.directory}[what]
    path.rename(path.with_name("moved"))
    os.symlink(hidden, path)
    done = staged.verb("diff", staged.session, "-p", code=None)
    assert SECRET not in done.out, done
    staged.apply(code=None)
    assert os.listdir(sandbox.project) == []


@pytest.mark.parametrize("name", ["trees", "chain", "applies/1/journal"])
@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "huge", "zeros"])
def test_damaged_records_end_with_one_clear_line(sandbox, hidden, name, damage):
    """No crash, no guess: status 125 or, for a journal that says nothing, nothing done."""
    sandbox.write(sandbox.project / "f", "old\n")
    staged = Staged(sandbox)
    staged.run("echo new >f")
    if name == "chain":
        staged.verb("snapshot", staged.session, "one")
    if name.startswith("applies"):
        staged.apply()
    path = staged.directory / name
    content = path.read_bytes()
    before = staged.state()
    middle = len(content) // 2
    path.write_bytes({"empty": b"", "cut": content[:middle], "huge": content + b"\xff" * (1 << 20),
                      "zeros": bytes(len(content)),
                      "flipped": content[:middle] + bytes([content[middle] ^ 0x55]) + content[middle + 1:]}[damage])
    done = staged.verb("undo" if name.startswith("applies") else "apply", staged.session, code=None, timeout=20)
    assert done.code in (0, 1, 125) and "\033" not in done.err, done
    if done.code == 125:
        assert len(done.err.strip().splitlines()) == 1, done
        assert differences(before, staged.state()) == []


def rename_exchange(one, other):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


SWAPPER = r"""
import ctypes, sys
libc = ctypes.CDLL(None)
one, other = (name.encode() for name in sys.argv[1:3])
print(flush=True)
while True:
    libc.renameat2(-100, one, -100, other, 2)
"""


def swapping(sandbox, one, other):
    child = subprocess.Popen([sys.executable, "-c", SWAPPER, str(one), str(other)], stdout=subprocess.PIPE,
                             **sandbox.popen_keywords())
    child.stdout.readline()
    return child


@pytest.mark.parametrize("verb", ["apply", "undo"])
def test_a_directory_swapped_for_a_link_while_it_is_applied(sandbox, hidden, verb):
    """Somebody exchanges the directory with a link out, thousands of times a second: nothing lands behind the link."""
    for i in range(20):
        sandbox.write(sandbox.project / f"dir/f{i}", "old\n")
    link = sandbox.project / "link"
    link.symlink_to(hidden)
    sandbox.own(link)
    staged = Staged(sandbox)
    staged.run("for i in $(seq 0 19) id; do echo new >dir/f$i; done; mkdir dir/sub; echo x >dir/sub/id; echo x >dir/id")
    if verb == "undo":
        staged.apply(code=None)
    child = swapping(sandbox, sandbox.project / "dir", link)
    try:
        for _ in range(4):
            done = staged.verb(verb, staged.session, code=None, timeout=20)
            # Between two exchanges all of it may be taken back, and then there is nothing more to be.
            if verb == "undo" and done.code == 127 and "nothing is applied" in done.err:
                break
            assert done.code in (0, 1, 125), done
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    # `hidden` checks itself. What is in the tree is old or new, never something else.
    place = sandbox.project / ("link" if link.is_dir() and not link.is_symlink() else "dir")
    for i in range(20):
        assert (place / f"f{i}").read_text() in ("old\n", "new\n")


def test_a_file_swapped_while_it_is_applied(sandbox, hidden):
    """The same for a file: the host exchanges it with a link to a secret; what is kept for undo is not the secret."""
    sandbox.write(sandbox.project / "f", "old\n")
    link = sandbox.project / "link"
    link.symlink_to(hidden / "id")
    sandbox.own(link)
    staged = Staged(sandbox)
    staged.run("echo new >f")
    child = swapping(sandbox, sandbox.project / "f", link)
    try:
        for _ in range(5):
            done = staged.apply(code=None, timeout=20)
            assert done.code in (0, 1, 125) and SECRET not in done.out, done
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    kept = subprocess.run(["grep", "-rl", SECRET.strip(), staged.directory], capture_output=True, text=True,
                          check=False)
    assert kept.stdout == ""


def test_json_names_round_trip():
    """The reading side of these tests itself: a name that is no UTF-8 comes as base64."""
    assert from_json({"b64": "//4="}) == "\udcff\udcfe" and from_json("a") == "a"
