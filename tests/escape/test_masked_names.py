# SPDX-License-Identifier: Apache-2.0
"""Masks by glob, decided at access time: no call, no name and no moment gives what a masked file holds."""
import json

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


def test_explain_says_what_is_enforced(sandbox):
    policy = sandbox.policy(POLICY)
    for path, verdict in (("a/b/.token", "deny"), ("a/b/.TOKEN", "deny"), ("a/b/token", "allow")):
        done = sandbox.run_atoll("policy", "explain", "-p", policy, "--json", "file.read", str(sandbox.project / path),
                                 cwd=sandbox.project)
        assert json.loads(done.out)["verdict"] == verdict, done
