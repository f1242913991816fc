# SPDX-License-Identifier: Apache-2.0
"""Directories that the host has are renamed in a staged tree as anywhere else, though the overlay refuses it."""
import json
import os
import stat

import pytest

from staged import Staged

# Says what each rename gave, and what is there afterwards; the same outside, on a copy.
JOB = r"""
import ctypes, errno, os, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
NOREPLACE, EXCHANGE = 1, 2
def rename(old, new, flags=0, old_fd=-100, new_fd=-100):
    if libc.renameat2(old_fd, os.fsencode(old), new_fd, os.fsencode(new), flags) == 0: return "done"
    return errno.errorcode[ctypes.get_errno()]
def tell(*words): print(*words, flush=True)
AGES = {10**18 + 123456789: "a file's", 10**18 + 987654321: "a directory's"}
def age(status): return AGES.get(status.st_mtime_ns, "new")
def tree(top):
    for directory, names, files in os.walk(top):
        names.sort()
        status = os.lstat(directory)
        tell(directory, oct(status.st_mode), age(status), sorted(os.listxattr(directory)))
        for name in sorted(files):
            path = os.path.join(directory, name); status = os.lstat(path)
            text = os.readlink(path) if os.path.islink(path) else open(path).read()
            tell(" ", name, oct(status.st_mode), age(status), text.strip())

tell("plain", rename("plain", "plain-2")); tell(rename("plain-2", "up/plain")); tree("up")
tell(rename("plain", "x"), rename("up/plain/", "slashed/")); tree("slashed")
tell(rename("flags/a", "flags/b", NOREPLACE), rename("flags/a", "flags/free", NOREPLACE))
tell(rename("flags/free", "flags/a"), rename("flags/a", "flags/b"), rename("flags/a", "flags/file"))
tell(rename("flags/file", "flags/a"), rename("flags/a", "flags/a/sub/deeper"), rename("flags/a/sub", "flags/a"))
tell(rename("flags/missing", "flags/x"), rename("flags/a", "flags/."), rename("flags/a", "no/such"))
tell(rename("flags/a", "flags/b", NOREPLACE | EXCHANGE), rename("flags/a", "flags/empty")); tree("flags")
tell(rename("swap/a", "swap/b", EXCHANGE), rename("swap/c", "swap/file", EXCHANGE))
tell(rename("swap/c", "swap/x", EXCHANGE)); tree("swap")
fd = os.open("at", os.O_RDONLY); tell(rename("one", "two", 0, fd, fd)); tree("at")
os.symlink("at", "link"); tell(rename("link/two", "link/three")); tell(rename("link", "link-2")); tree("at")

holder = os.open("held/a/sub", os.O_RDONLY)
written = os.open("held/a/sub/file", os.O_RDWR | os.O_APPEND)
other = subprocess.Popen(["sh", "-c", "while read x; do realpath --relative-to=$TOP .; cat file; ls; echo end; done"],
    cwd="held/a/sub", stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "TOP": sys.argv[1]})
def ask_other():
    other.stdin.write(b"\n"); other.stdin.flush()
    tell(list(iter(other.stdout.readline, b"end\n")))
seen, go = [], threading.Event()
thread = threading.Thread(target=lambda: (go.wait(), seen.append(os.listdir("."))))
os.chdir("held/a/sub"); thread.start()
tell(rename("../../a", "../../b"), os.path.relpath(os.getcwd(), sys.argv[1]), sorted(os.listdir(".")))
go.set(); thread.join(); tell(sorted(seen[0]))
os.write(written, b"more\n"); tell(open("file").read().split(), sorted(os.listdir(holder)))
tell(os.fstat(written).st_ino == os.stat("file").st_ino, os.fstat(holder).st_ino == os.stat(".").st_ino)
with open(os.open("file", os.O_RDONLY, dir_fd=holder)) as again: tell(again.read().split())
os.chdir(sys.argv[1]); tell(rename("held", "held-2"), sorted(os.listdir(holder)))
ask_other()
tell(rename("held-2/b", "held-2/c", NOREPLACE)); ask_other(); other.communicate(); tree("held-2")
os.mkdir("held-2/c/new"); open("held-2/c/new/file", "w").write("new"); os.rename("held-2/c", "up/c")
os.unlink("up/c/top"); tree("up")
"""


def populate(place, sandbox):
    """The same tree twice, times included."""
    for directory in ("plain/sub/deep", "up", "flags/a/sub", "flags/b", "flags/empty", "swap/a/one", "swap/b/two",
                      "swap/c", "at/one/sub", "held/a/sub"):
        os.makedirs(place / directory)
        (place / directory / "file").write_text(directory + "\n")
    os.unlink(place / "flags/empty/file")
    (place / "flags/file").write_text("file\n")
    (place / "swap/file").write_text("swapped\n")
    (place / "held/a/top").write_text("top\n")
    os.symlink("../nowhere", place / "plain/sub/link")
    os.setxattr(place / "plain/sub", "user.kept", b"value")
    os.chmod(place / "plain/sub/deep", 0o750)
    os.chmod(place / "plain/sub/deep/file", 0o640)
    for directory, _, files in os.walk(place, topdown=False):
        for name in files:
            os.utime(os.path.join(directory, name), ns=(10**18, 10**18 + 123456789), follow_symlinks=False)
        os.utime(directory, ns=(10**18, 10**18 + 987654321))
    for directory, names, files in os.walk(place):
        for name in names + files:
            sandbox.own(os.path.join(directory, name))


def shape(place):
    """{path: what it is} without times and numbers."""
    found = {}
    for directory, names, files in os.walk(place):
        for name in names + files:
            path = os.path.join(directory, name)
            status = os.lstat(path)
            text = os.readlink(path) if stat.S_ISLNK(status.st_mode) else open(path).read() if name in files else None
            found[os.path.relpath(path, place)] = (stat.filemode(status.st_mode), text)
    return found


@pytest.mark.parametrize("audit", ["off", "writes"])
def test_renames_are_as_outside(sandbox, audit):
    """Every flag, every errno, open files and working directories; then the host gets just that."""
    staged = Staged(sandbox, f"audit: {{files: {audit}}}")
    copy = sandbox.home / "copy"
    for place in (sandbox.project / "d", copy):
        sandbox.make_directory(place)
        populate(place, sandbox)
    script = sandbox.write(sandbox.project / "job.py", JOB)
    outside = sandbox.run_outside(["python3", str(script), str(copy)], cwd=copy)
    assert outside.code == 0, outside
    inside = staged.run(["python3", str(script), str(sandbox.project / "d")], cwd=sandbox.project / "d")
    assert inside.code == 0, inside
    assert inside.out == outside.out
    assert not inside.report["denials"]
    staged.atoll("apply", staged.session)
    assert shape(sandbox.project / "d") == shape(copy)


STATIC = """
#include <stdio.h>
int main(int count, char **words) { return rename(words[1], words[2]) ? perror("rename"), 1 : 0; }
"""


def test_programs_rename_directories(sandbox):
    """What agents use to move code about; one commit of it all, and a clone beside it."""
    staged = Staged(sandbox)
    for name in "abcde":
        sandbox.write(sandbox.project / "src" / name / "sub" / "file", name + "\n")
    sandbox.write(sandbox.project / "static.c", STATIC)
    sandbox.run_outside(["gcc", "-static", "-o", "static", "static.c"], cwd=sandbox.project, check=True)
    for words in (["add", "-A"], ["commit", "-qm", "first"], ["gc", "-q"], ["update-server-info"]):
        sandbox.run_outside(["git", *words], cwd=sandbox.project, check=True)
    done = staged.run("""set -e
        git mv src/a src/git; mv -T src/b src/mv; python3 -c 'import os; os.rename("src/c", "src/python")'
        node -e 'require("fs").renameSync("src/d", "src/node")'; ./static src/e src/static
        git add -A; git commit -qm moved; git status --porcelain; git show --stat --format= -M | cat
        cd ..; git clone -q ./project project/clone; cd project/clone; git fsck; cat src/*/sub/file; cd ..
        git -c protocol.file.allow=always submodule add -q ./clone sub; ls sub/src; ln host linked; ls -l linked""")
    assert done.code == 0, done
    assert done.out.count("=>") == 5 and "a\nb\nd\nc\ne\n" in done.out, done
    # What is flagged stays: the submodule.
    sandbox.run_atoll("apply", staged.session, "src", ".git/index", ".git/objects", ".git/refs", ".git/logs")
    names = sorted(os.listdir(sandbox.project / "src"))
    assert names == ["git", "mv", "node", "python", "static"]
    status = sandbox.run_outside(["git", "status", "--porcelain", "src"], cwd=sandbox.project, check=True)
    assert status.out == "", status


def test_nothing_is_seen_in_between(sandbox):
    """Others find the directory at one of both places, whole; and a move that is killed has not begun or is over."""
    staged = Staged(sandbox)
    for number in range(200):
        sandbox.write(sandbox.project / "old" / f"d{number % 10}" / f"f{number}", "text\n")
    done = staged.run(r"""
cat >watch.py <<'END'
import os
print("ready", flush=True); looks = 0
def names(directory):
    # A listing that a move comes in between of begins again: each name counts once.
    try: return len(set(os.listdir(directory)))
    except FileNotFoundError: return None
while not os.path.exists("stop"):
    # One look each: whoever looks twice may see a move in between. A listing that began again has looked twice.
    listing = os.listdir(".")
    seen = {"old", "new"} & set(listing)
    assert len(seen) == 1 or seen and len(listing) > len(set(listing)), listing
    for place in ("old/d3", "new/d3"):
        assert names(place) in (20, None), (place, names(place))
    looks += 1
print("seen", looks > 3)
END
python3 watch.py >seen 2>&1 & watcher=$!
until grep -q ready seen; do sleep 0.01; done
for i in 1 2 3 4 5 6; do mv -T old new && mv -T new old; done
for i in 1 2 3 4 5 6; do timeout -s KILL 0.00$i mv -T old new || :; [ -d old ] || mv -T new old; done
sleep 0.1; touch stop; wait $watcher; cat seen; find old -type f | wc -l; ls
""")
    assert done.code == 0 and "seen True\n200\n" in done.out, done
    assert "new" not in done.out.split()


def test_review_shows_a_renamed_directory(sandbox):
    """Also of files that are all alike; and what was changed on the way is shown as that."""
    staged = Staged(sandbox)
    for number in range(40):
        sandbox.write(sandbox.project / "old" / f"d{number % 4}" / f"f{number}", "alike\n")
    for name in ("kept", "edited"):
        sandbox.write(sandbox.project / "old" / name, name + "\n")
    sandbox.write(sandbox.project / "loose" / "one", "one\n")
    sandbox.write(sandbox.project / "loose" / "two", "two\n")
    sandbox.write(sandbox.project / "loose" / "three", "three\n")
    staged.run("""mkdir -p lib; mv -T old lib/new; mv lib/new/d1 lib/new/moved; echo more >>lib/new/edited
        echo new >lib/new/added; mkdir other; mv loose/one other/one; rm -r loose; mkdir lib/new/empty""")
    shown = [" ".join(line.split()) for line in staged.atoll("diff", staged.session).out.splitlines()]
    assert "R old/ => lib/new/ | renamed, with 31 files" in shown, shown
    assert "R old/d1/ => lib/new/moved/ | renamed, with 10 files" in shown, shown
    assert "R loose/one => other/one | renamed" in shown and "D loose/two | 1 -" in shown, shown
    for line in ("D old/edited | 1 -", "A lib/new/edited | 2 ++", "A lib/new/added | 1 +", "A lib/new/empty/"):
        assert line in shown, shown
    assert len(shown) == 10, shown
    root = str(sandbox.project) + "/"
    changes = json.loads(staged.atoll("diff", "--json", staged.session).out)["changes"]
    sources = {change["path"].removeprefix(root): change.get("renamed_from", "").removeprefix(root)
               for change in changes if change["kind"] == "added"}
    assert sources["lib/new"] == "old" and sources["lib/new/moved/f1"] == "old/d1/f1"
    assert sources["lib/new/d3/f7"] == "old/d3/f7" and sources["lib"] == ""


def test_a_masked_name_stays_where_it_is(sandbox):
    """It neither comes along nor is lost; and no directory takes the place of one."""
    sandbox.write(sandbox.project / "old" / "deep" / "secret", "masked\n")
    sandbox.write(sandbox.project / "old" / "deep" / "file", "text\n")
    sandbox.write(sandbox.project / "taken" / "file", "text\n")
    staged = Staged(sandbox, "")
    staged.policy = sandbox.policy(f"""
atoll: 1
extends: medium
drop: [.]
files: {{stage: [.], mask: ["{sandbox.project}/old/deep/secret", "{sandbox.project}/hidden"]}}
""", "masked.yaml")
    done = staged.run("mv -T old new && ls new/deep; cat new/deep/secret; mv -T taken hidden; ls")
    assert done.out.split() == ["file", "directory", "host", "new", "taken"], done
    assert "Permission denied" in done.err and "hidden" in done.err
    assert any(denial["subject"].endswith("hidden") for denial in done.report["denials"]), done.report
    sandbox.run_atoll("apply", staged.session)
    assert (sandbox.project / "old/deep/secret").read_text() == "masked\n"
    assert not (sandbox.project / "old/deep/file").exists()
    assert os.listdir(sandbox.project / "new/deep") == ["file"]


def test_moves_are_part_of_what_is_staged(sandbox):
    """Snapshots, restores and forks have the directory where it was then; apply and undo move it on the host."""
    staged = Staged(sandbox)
    for number in range(20):
        sandbox.write(sandbox.project / "a" / "sub" / f"f{number}", f"{number}\n")
    before = shape(sandbox.project)
    session = staged.detach()
    staged.exec(session, "mv -T a b")
    staged.atoll("snapshot", session, "first")
    staged.exec(session, "mv -T b/sub c; mv -T b d; test ! -e a; ls c | wc -l")
    staged.atoll("snapshot", session)
    staged.atoll("stop", session)
    forked = staged.fork([session, "first"], "mv -T b/sub b/moved; echo more >>b/moved/f1; mv -T b a; ls a/moved")
    assert len(forked.split()) == 20, forked
    shown = {path for path, change in staged.show(staged.session).items() if change[0] == "added"}
    assert "a/moved/f1" in shown and not any(path.startswith("b") for path in shown), shown
    staged.atoll("apply", staged.session)
    assert sorted(os.listdir(sandbox.project / "a")) == ["moved"]
    assert (sandbox.project / "a/moved/f1").read_text() == "1\nmore\n"
    staged.atoll("undo", staged.session)
    assert shape(sandbox.project) == before
    staged.atoll("restore", session, "first")
    shown = staged.show(session)
    assert "b/sub/f3" in shown and "c/f3" not in shown, shown


def test_an_end_in_the_middle(sandbox):
    """A session that ends while a directory moves leaves it at one of both places, whole."""
    for number in range(400):
        sandbox.write(sandbox.project / "old" / f"d{number % 7}" / f"f{number}", f"{number}\n" * 50)
    staged = Staged(sandbox, "time: {wall: 1s}")
    for delay in (0.80, 0.90, 0.95):
        done = staged.run(f"sleep {delay}; mv -T old new; mv -T new old; mv -T old new; sleep 5", timeout=60)
        assert done.code == 124, done
        shown = sandbox.run_atoll("diff", "--json", staged.session)
        changes = json.loads(shown.out)["changes"] if shown.code == 0 else []
        added = [change for change in changes if change["kind"] == "added" and change["staged"]["type"] == "file"]
        deleted = [change for change in changes if change["kind"] == "deleted" and change["host"]["type"] == "file"]
        assert (len(added), len(deleted)) in ((0, 0), (400, 400)), (delay, len(added), len(deleted))


# Confines itself to the project, without the right to move things between directories, and tries that.
CONFINED = r"""
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words)
{
	struct { unsigned long long fs; } attr = { LANDLOCK_ACCESS_FS_MAKE_DIR };
	struct landlock_path_beneath_attr below = { .allowed_access = LANDLOCK_ACCESS_FS_MAKE_DIR };
	int set = syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
	if (set < 0 && words[1][0] != '-') return puts("none"), 0;
	below.parent_fd = open(".", O_PATH);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (words[1][0] != '-' && (syscall(SYS_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &below, 0) ||
				   syscall(SYS_landlock_restrict_self, set, 0))) return 1;
	if (words[4]) execv(words[4], words + 4);
	puts(rename(words[2], words[3]) ? errno == EXDEV ? "EXDEV" : strerror(errno) : "done");
}
"""


def test_a_program_that_confined_itself_stays_confined(sandbox):
    """What it forbade itself the supervisor does not do for it, nor for what it starts; others are not concerned."""
    staged = Staged(sandbox)
    sandbox.write(sandbox.project / "confined.c", CONFINED)
    for name in ("a/x", "b/x", "c/x"):
        sandbox.write(sandbox.project / name / "file", "text\n")
    sandbox.run_outside(["gcc", "-D_GNU_SOURCE", "-o", "confined", "confined.c"], cwd=sandbox.project, check=True)
    done = staged.run("""
        ./confined + a/x b/y; ./confined + "" "" ./confined - a/x b/y
        ./confined + "" "" /bin/sh -c './confined - a/x b/y'
        ./confined - b/x moved; ./confined - c/x a/y; ls -d a/x a/y b/y moved""")
    if done.out.startswith("none"):
        pytest.skip("this kernel has no Landlock")
    assert done.out.split() == ["EXDEV"] * 3 + ["done", "done", "a/x", "a/y", "moved"], done
