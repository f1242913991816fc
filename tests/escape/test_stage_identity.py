# SPDX-License-Identifier: Apache-2.0
"""What the host has put where the sandbox changed or deleted something is never taken for what the sandbox saw: F44 and
its neighbours. One run for many ways, each in a directory of its own below the project."""
import os
import shutil
import subprocess

import pytest

from stage import Staged
from tree_state import differences, tree_state

INNER = ("f1", "f2", "deep/f3")
OLD = 10 ** 18


def fill(sandbox, place, text="old\n"):
    """Files of one size and one time, so that neither tells one directory from another."""
    for name in INNER:
        path = sandbox.write(place / name, text)
        os.utime(path, ns=(OLD, OLD))
    for directory in (place / "deep", place):
        os.utime(directory, ns=(OLD, OLD))


def own_new(sandbox, place):
    """What a test made as root. Nothing else is touched: a ctime would tell."""
    for directory, names, files in os.walk(place):
        for name in names + files:
            path = os.path.join(directory, name)
            if os.lstat(path).st_uid != sandbox.identity.uid:
                sandbox.own(path)


def move_in(place, other):
    """mv other place/x: a directory of the host comes into one that the sandbox deleted."""
    other.rename(place / "con")


def move_in_and_write(place, other):
    move_in(place, other)
    (place / "con/new").write_text("host\n")


def replace(place, other):
    shutil.rmtree(place / "con")
    move_in(place, other)


def replace_and_write(place, other):
    replace(place, other)
    (place / "con/new").write_text("host\n")
    (place / "con/deep/new").write_text("host\n")


def exchange_and_set_times(place, other):
    """An entry comes into it, and then its mtime is what it was."""
    replace_and_write(place, other)
    for directory in (place / "con/deep", place / "con", place):
        os.utime(directory, ns=(OLD, OLD))


def replace_above(place, other):
    """The directory above is the one that is another."""
    shutil.copytree(place, place.with_name(place.name + "2"))
    shutil.rmtree(place)
    above = place.with_name(place.name + "2")
    above.rename(place)
    shutil.rmtree(place / "con")
    move_in(place, other)


def copy_over(place, other):
    """cp -p of each file: size and mtime are those of before."""
    subprocess.run(["cp", "-pr", f"{other}/.", place / "con"], check=True)


def rename_over(place, other):
    for name in INNER:
        (other / name).rename(place / "con" / name)


def write_and_set_times(place, other):
    """In place, the same inode."""
    for name in INNER:
        (place / "con" / name).write_text((other / name).read_text())
        os.utime(place / "con" / name, ns=(OLD, OLD))


def link_over(place, other):
    for name in INNER:
        (place / "con" / name).unlink()
        os.link(other / name, place / "con" / name)


def unpack_over(place, other):
    subprocess.run(f"tar cf - -C {other} . | tar xf - -C {place}/con", shell=True, check=True)


def links_instead(place, other):
    for name in INNER:
        (place / "con" / name).unlink()
        (place / "con" / name).symlink_to(other / name)


def directory_link_instead(place, other):
    shutil.rmtree(place / "con")
    (place / "con").symlink_to(other)


WAYS = (move_in, move_in_and_write, replace, replace_and_write, exchange_and_set_times, replace_above, copy_over,
        rename_over, write_and_set_times, link_over, unpack_over, links_instead, directory_link_instead)
INSIDE = {
    "deleted": "rm -r con",
    "emptied": "rm -r con; mkdir con",
    "unlinked": "rm con/f1 con/f2 con/deep/f3",
    "written": "echo new >con/f1; mv con/f2 con/moved; sed -i s/old/NEW/ con/deep/f3",
}


def test_work_of_the_host_beside_it_is_no_conflict(sandbox):
    """Files that the host adds in every directory, after the run: each is known by its inode and its birth."""
    names = ("src/a", "src/deep/b", "src/deep/er/c", "src/whole/d", "src/swapped/e", "src/other/e", "src/swapped2/e/f",
             "src/other2/e/f")
    for name in names:
        path = sandbox.write(sandbox.project / name, "old\n")
        os.utime(path, ns=(OLD, OLD))
    staged = Staged(sandbox)
    script = "for f in a deep/b deep/er/c swapped/e swapped2/e/f; do echo new >src/$f; done; rm -r src/whole"
    assert staged.run(script).code == 0
    for place in (sandbox.project, *(sandbox.project / name for name in ("src", "src/deep", "src/deep/er"))):
        sandbox.write(place / "host", "host\n")
    assert [name for name, change in staged.diff().items() if change["state"] != "clean"] == []
    # One that is as old, and has the same names.
    for name in ("swapped", "swapped2"):
        shutil.rmtree(sandbox.project / "src" / name)
        (sandbox.project / "src" / name.replace("swapped", "other")).rename(sandbox.project / "src" / name)
        sandbox.write(sandbox.project / "src" / name / "host", "host\n")
    sandbox.write(sandbox.project / "src/swapped2/e/host", "host\n")
    done = staged.apply(code=1)
    assert {name: (sandbox.project / "src" / name).read_text()
            for name in ("a", "deep/b", "deep/er/c", "swapped/e", "swapped2/e/f")} == {
        "a": "new\n", "deep/b": "new\n", "deep/er/c": "new\n", "swapped/e": "old\n", "swapped2/e/f": "old\n"}, done
    assert not (sandbox.project / "src/whole").exists()


@pytest.mark.needs("tar")
def test_what_the_host_put_there_stays(sandbox):
    """Nothing of the host but what the sandbox saw is deleted or overwritten; where the host did nothing, all is."""
    places = {}
    for inside in INSIDE:
        for way in (*WAYS, None):
            place = sandbox.project / inside / (way.__name__ if way else "untouched")
            fill(sandbox, place / "con")
            fill(sandbox, sandbox.project / "others" / f"{inside}-{place.name}", "her\n")
            places[place] = (inside, way)
    staged = Staged(sandbox)
    script = "".join(f"( cd {place} && {INSIDE[inside]} ) || exit 9\n" for place, (inside, _) in places.items())
    assert staged.run(script).code == 0
    before = {}
    for place, (inside, way) in places.items():
        if not way:
            continue
        other = sandbox.project / "others" / f"{inside}-{place.name}"
        if way in (move_in, move_in_and_write):
            shutil.rmtree(place / "con")
        way(place, other)
        own_new(sandbox, place)
        before[place] = tree_state(place)
    staged.apply(code=1)
    lost = {}
    for place, state in before.items():
        after = tree_state(place)
        gone = differences({name: entry for name, entry in state.items() if not entry[0].startswith("0o4")},
                           {name: entry for name, entry in after.items() if name in state
                            and not entry[0].startswith("0o4")})
        gone += [f"{name}: gone" for name in state if name not in after]
        if gone:
            lost[str(place.relative_to(sandbox.project))] = gone
    assert lost == {}
    # Where the host left things alone, the sandbox's work arrives whole.
    assert not (sandbox.project / "deleted/untouched/con").exists()
    assert os.listdir(sandbox.project / "emptied/untouched/con") == []
    assert [len(files) for _, _, files in os.walk(sandbox.project / "unlinked/untouched")] == [0, 0, 0]
    assert (sandbox.project / "written/untouched/con/f1").read_text() == "new\n"
    assert (sandbox.project / "written/untouched/con/deep/f3").read_text() == "NEW\n"
