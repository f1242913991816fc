# SPDX-License-Identifier: Apache-2.0
"""What a supervisor that opens files for others could be talked into. Each runs first as the agent finds it outside."""

POLICY = "atoll: 1\nextends: medium\naudit: {files: all}\n"


def run(sandbox, script, **keywords):
    return sandbox.run(script, policy=sandbox.policy(POLICY, "all.yaml"), **keywords)


def test_proc_shows_no_more_than_unmediated(sandbox):
    """The supervisor may trace everything inside; who asks may not."""
    done = run(sandbox, """
        for name in environ maps mem auxv smaps syscall stack io; do cat /proc/1/$name && echo got $name; done
        ls /proc/1/fd /proc/1/map_files && echo got fd; cat /proc/1/root/etc/passwd && echo got root
        cat /proc/1/cwd/etc/passwd && echo got cwd; head -c1 /proc/1/exe && echo got exe
        cat /proc/1/stat /proc/1/status
        cat /proc/self/environ /proc/self/maps >/dev/null && echo own
    """)
    assert "got" not in done.out and "own" in done.out and "atoll-init" in done.out, done


def test_proc_of_the_host_stays_closed(sandbox):
    done = run(sandbox, """
        cat /proc/kcore /proc/keys; grep -v '^00*' /proc/kallsyms | head -3
        echo 1 >/proc/sys/kernel/randomize_va_space && echo written; echo b >/proc/sysrq-trigger && echo written
        echo -1000 >/proc/self/oom_score_adj && echo adjusted; echo '0 0 1' >/proc/self/uid_map && echo mapped
    """)
    for word in ("written", "adjusted", "mapped"):
        assert word not in done.out, done


def test_proc_shows_nothing_of_the_supervisors_namespaces(sandbox):
    """Some of its files are about whoever opens them, which is the supervisor."""
    done = run(sandbox, """
        for path in /proc/sysvipc/shm /proc/key-users /proc/keys /proc/sys/net/core/somaxconn; do
            cat $path >/dev/null && echo got $path; done
        cat /proc/net/dev /proc/self/net/dev >/dev/null && echo own
    """)
    assert "got" not in done.out and "own" in done.out, done


def test_what_was_handed_in_opens_no_more(sandbox):
    secret = sandbox.write(sandbox.outside / "log", "first\n")
    control = sandbox.run_outside(["sh", "-c", f"exec 3<{secret}; echo more >>/proc/self/fd/3"])
    assert control.code == 0 and secret.read_text() == "first\nmore\n"
    with open(secret) as stdin:
        child = sandbox.popen(["bash", "-c", "cat; echo more >>/proc/self/fd/0; cat /proc/self/fd/0/../x"],
                              policy=sandbox.policy(POLICY, "all.yaml"), stdin=stdin)
        out, _ = child.communicate(timeout=60)
    assert b"first" in out
    assert secret.read_text() == "first\nmore\n"


def test_mounts_hold_for_what_the_supervisor_does(sandbox):
    """Read-only trees, private places, and no way up: as unmediated, with the same errors."""
    script = r"""
import errno, os
def no(what, *arguments):
    try:
        what(*arguments)
        print("done", what.__name__, arguments)
    except OSError as error:
        print(what.__name__, errno.errorcode[error.errno])
no(os.open, "/usr/bin/new", os.O_CREAT | os.O_RDWR); no(os.open, "/etc/os-release", os.O_RDWR)
no(os.truncate, "/usr/bin/env", 0); no(os.unlink, "/usr/bin/env"); no(os.rename, "/usr/bin/env", "/usr/bin/x")
no(os.link, "/usr/bin/env", "x"); no(os.mkdir, "/x"); no(os.chmod, "/usr/bin/env", 0o777)
no(os.symlink, "x", "/usr/bin/y"); no(os.mkfifo, "/x"); no(os.utime, "/usr/bin/env"); no(os.rmdir, "/usr")
no(os.setxattr, "/usr/bin/env", "user.x", b"x"); no(os.chown, "/usr/bin/env", os.getuid(), -1)
no(os.open, "../" * 40 + "root/.bashrc", os.O_RDONLY); no(os.rename, "/tmp", "/tmp2")
no(os.open, "/dev/sda", os.O_RDONLY); no(os.open, "/proc/1/root", os.O_RDONLY)
print(sorted(set(os.listdir("/")) - {"proc", "lost+found"}))
os.symlink("/", "up"); print(sorted(set(os.listdir("up"))) == sorted(set(os.listdir("/"))))
"""
    sandbox.write(sandbox.project / "try.py", script)
    plain = sandbox.run(["python3", "try.py"])
    done = run(sandbox, ["python3", "try.py"])
    assert plain.code == 0 and "done" not in plain.out, plain
    assert done.out == plain.out


def test_a_flood_is_bounded_and_served(sandbox):
    """More who wait than there is room for, and the others still get what they ask for."""
    script = r"""
import os, signal
os.mkfifo("f")
children = []
for i in range(100):
    pid = os.fork()
    if not pid:
        try:
            os.open("f", os.O_RDONLY)
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    children.append(pid)
codes = []
for i in range(36):
    codes.append(os.waitstatus_to_exitcode(os.wait()[1]))
print(sorted(set(codes)), open("/etc/os-release").read(2))
for pid in children:
    try: os.kill(pid, signal.SIGKILL)
    except ProcessLookupError: pass
"""
    done = run(sandbox, ["python3", "-c", script])
    assert done.out.startswith("[23] "), done
