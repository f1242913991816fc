# SPDX-License-Identifier: Apache-2.0
"""Extended attributes and ACLs of what an apply replaces or writes into: kept, changed and undone."""
import os
import struct

import pytest

from loop import Loop
from stage import Staged
from tree_state import tree_state

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
OWNER, USER, GROUP, MASK, OTHER = 1, 2, 4, 16, 32
NOBODY = 0xFFFFFFFF


def acl(*entries):
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def attributes(path):
    return {name: os.getxattr(path, name) for name in os.listxattr(path)}


def set_acl(path, name, value):
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(f"no ACLs here: {error}")


@pytest.fixture
def project(sandbox):
    """Files and directories of the host, some with ACLs that name nobody, for those the sandbox of root can copy."""
    for name in ("edited", "saved", "merged/file", "d/inner", "gone/x"):
        sandbox.write(sandbox.project / name, "old\n")
    plain = acl((OWNER, 6, NOBODY), (GROUP, 4, NOBODY), (MASK, 6, NOBODY), (OTHER, 4, NOBODY))
    for name in ("edited", "saved"):
        set_acl(sandbox.project / name, ACCESS, plain)
    os.setxattr(sandbox.project / "d", "user.kept", b"1")
    os.setxattr(sandbox.project / "d", "user.dropped", b"2")
    os.setxattr(sandbox.project / "d", "user.changed", b"3")
    os.setxattr(sandbox.project / "gone", "user.went", b"4")
    return sandbox.project


WORK = """
import os
open("edited", "a").write("more\\n")
open("saved~", "w").write("new\\n"); os.chmod("saved~", 0o664); os.rename("saved~", "saved")
os.removexattr("d", "user.dropped"); os.setxattr("d", "user.changed", b"x"); os.setxattr("d", "user.new", b"y")
open("d/inner", "a").write("more\\n")
open("merged/new", "w").write("n\\n")
"""


def everything(project):
    return tree_state(project), {path: attributes(path) for path in sorted(project.rglob("*")) if not path.is_symlink()}


def test_what_is_replaced_keeps_its_acl_and_directories_take_attributes(sandbox, project):
    staged = Staged(sandbox)
    before = everything(project)
    assert staged.run(["/usr/bin/python3", "-c", WORK]).code == 0
    assert everything(project) == before
    changes = staged.diff()
    assert changes["d"]["differs"] == ["xattrs"] and "merged" not in changes, changes
    staged.apply()
    assert attributes(project / "d") == {"user.kept": b"1", "user.changed": b"x", "user.new": b"y"}
    for name in ("edited", "saved"):
        assert attributes(project / name)[ACCESS] == before[1][project / name][ACCESS], name
    assert staged.diff() == {}
    staged.undo()
    assert everything(project) == before
    staged.apply()
    staged.undo()
    assert everything(project) == before


def test_acls_that_name_somebody(sandbox, project):
    """Of an ordinary user's run the ids in an ACL mean the same inside; a default ACL goes to what is made below it."""
    if sandbox.identity.is_root:
        pytest.skip("the sandbox of root has no other ids")
    me = sandbox.identity.uid
    named = acl((OWNER, 6, NOBODY), (USER, 6, me), (GROUP, 4, NOBODY), (MASK, 6, NOBODY), (OTHER, 4, NOBODY))
    default = acl((OWNER, 7, NOBODY), (USER, 7, me), (GROUP, 5, NOBODY), (MASK, 7, NOBODY), (OTHER, 5, NOBODY))
    for name in ("edited", "saved", "d/inner"):
        set_acl(project / name, ACCESS, named)
    set_acl(project / "d", ACCESS, default)
    set_acl(project / "d", DEFAULT, default)
    staged = Staged(sandbox)
    before = everything(project)
    taken = "os.removexattr('d/inner', 'system.posix_acl_access'); open('d/made', 'w').write('m')\n"
    assert staged.run(["/usr/bin/python3", "-c", WORK + taken]).code == 0
    staged.apply()
    assert attributes(project / "edited")[ACCESS] == named and attributes(project / "saved")[ACCESS] == named
    assert ACCESS not in attributes(project / "d/inner"), "the agent took it away"
    assert ACCESS in attributes(project / "d/made") and DEFAULT in attributes(project / "d")
    assert staged.diff() == {}
    staged.undo()
    assert everything(project) == before


@pytest.mark.only("root", "user")
def test_acls_that_name_others(sandbox, project):
    """What is written into keeps them, and what is replaced gets them, in a user's run and in root's."""
    named = acl((OWNER, 6, NOBODY), (USER, 6, 54321), (GROUP, 4, NOBODY), (MASK, 6, NOBODY), (OTHER, 4, NOBODY))
    for name in ("edited", "saved", "d/inner"):
        set_acl(project / name, ACCESS, named)
    staged = Staged(sandbox)
    before = everything(project)
    done = staged.run("echo more >>edited; echo $?; cat edited; rm d/inner; echo new >n; chmod 664 n; mv n saved")
    staged.apply()
    assert done.out == "0\nold\nmore\n" and (project / "edited").read_text() == "old\nmore\n"
    assert attributes(project / "edited")[ACCESS] == named and not (project / "d/inner").exists()
    assert (project / "saved").read_text() == "new\n" and attributes(project / "saved")[ACCESS] == named
    staged.undo()
    assert everything(project) == before


def test_a_capability_never_arrives(sandbox, project):
    """A file that is written into loses its capability, as it would outside; nothing that lies in a layer gives one."""
    if not sandbox.identity.is_root:
        pytest.skip("only root sets capabilities")
    capability = struct.pack("<IIIII", 0x02000001, 1 << 13, 0, 0, 0)
    os.setxattr(project / "edited", "security.capability", capability)
    staged = Staged(sandbox)
    before = everything(project)
    assert staged.run(["/usr/bin/python3", "-c", WORK]).code == 0
    os.setxattr(staged.upper / "saved", "security.capability", capability)
    os.setxattr(staged.upper / "merged/new", "security.capability", capability)
    staged.apply()
    for name in ("edited", "saved", "merged/new"):
        assert "security.capability" not in attributes(project / name)
    staged.undo()
    assert everything(project) == before


def test_an_attribute_that_both_sides_set_is_a_conflict(sandbox):
    """Equal bytes and modes are not all: what the host set stays, and what the sandbox set is not forgotten."""
    names = ("both", "host", "inside", "same", "touched")
    for name in names:
        sandbox.write(sandbox.project / name, "old\n")
    (sandbox.project / "d").mkdir()
    sandbox.own(sandbox.project / "d")
    staged = Staged(sandbox)
    staged.run(["/usr/bin/python3", "-c", """if 1:
        import os
        for name in ("both", "inside", "touched"):
            os.setxattr(name, "user.inside", b"1")
        os.setxattr("same", "user.one", b"1")
        os.utime("host"), os.utime("touched")
        os.rmdir("d")
        """])
    for name, attribute in (("both", "user.host"), ("host", "user.host"), ("same", "user.one"), ("d", "user.host"),
                            ("touched", "user.host")):
        os.setxattr(sandbox.project / name, attribute, b"1")
    changes = staged.diff(code=None)
    assert {name: change["state"] for name, change in changes.items()} == {
        "both": "conflict", "host": "conflict", "inside": "clean", "touched": "conflict", "d": "conflict"}, changes
    staged.apply(code=1)
    found = {name: attributes(sandbox.project / name) for name in names}
    assert found == {"both": {"user.host": b"1"}, "host": {"user.host": b"1"}, "inside": {"user.inside": b"1"},
                     "same": {"user.one": b"1"}, "touched": {"user.host": b"1"}}
    assert attributes(sandbox.project / "d") == {"user.host": b"1"}


UNREADABLE = """
import os
os.chmod("closed", 0); os.chmod("opened", 0o644); os.chmod("written", 0o600)
open("written", "a").write("more\\n"); os.chmod("written", 0)
open("new", "w").write("new\\n"); os.setxattr("new", "user.x", b"y"); os.chmod("new", 0); os.chmod("host", 0)
os.unlink("gone"); os.rename("moved", "moved2")
"""


@pytest.mark.parametrize("far", [False, True])
def test_files_that_their_owner_may_not_read(sandbox, request, far):
    """chmod 000, and 000 to 644: as any other mode, on the file system of the state and on another one."""
    if far and os.geteuid() != 0:
        pytest.skip("another file system is mounted by root")
    if far:
        disk = Loop("tmpfs", sandbox.base / "disk", sandbox.identity)
        sandbox.project = sandbox.make_directory(disk.__enter__() / "project")
        request.addfinalizer(disk.__exit__)
    for name, mode in (("closed", 0o644), ("opened", 0), ("written", 0), ("gone", 0), ("moved", 0), ("host", 0o644)):
        path = sandbox.write(sandbox.project / name, f"{name}\n")
        os.setxattr(path, "user.kept", b"1")
        path.chmod(mode)
    staged = Staged(sandbox)
    before = everything(sandbox.project)
    assert staged.run(["/usr/bin/python3", "-c", UNREADABLE]).code == 0
    (sandbox.project / "host").write_text("host!\n")
    before[0]["host"] = everything(sandbox.project)[0]["host"]
    changes = staged.diff(code=None)
    assert {name: change["state"] for name, change in changes.items() if change["state"] != "clean"} == {
        "host": "conflict"}, changes
    assert changes["closed"]["differs"] == ["mode"] and changes["opened"]["differs"] == ["mode"]
    done = staged.apply(code=1)
    state, found = everything(sandbox.project)
    assert {name: entry[0] for name, entry in state.items() if name != "."} == {
        "closed": "0o100000", "opened": "0o100644", "written": "0o100000", "new": "0o100000", "moved2": "0o100000",
        "host": "0o100644"}, done
    assert (sandbox.project / "written").read_text() == "written\nmore\n"
    assert found[sandbox.project / "new"] == {"user.x": b"y"} and found[sandbox.project / "moved2"] == {
        "user.kept": b"1"}
    staged.undo()
    assert everything(sandbox.project) == before
