# SPDX-License-Identifier: Apache-2.0
"""What programs find around them inside: names of hosts and accounts, the system's lists, queues, masked names."""
import os
import pathlib
import socket
import subprocess

import pytest

LOOK = r"""
getent ahosts localhost | awk '{print "localhost " $1}' | sort -u
echo "nproc $(nproc)"; lscpu >lscpu.txt && echo lscpu works
lsblk >lsblk.txt && [ ! -s lsblk.txt ] && echo lsblk is empty
dpkg-query -W -f '${Status}\n' dpkg
echo "bounding $(sed -n 's/^CapBnd:\t0*//p' /proc/self/status)"
id -un; getent passwd nobody daemon root | cut -d: -f1,3
python3 - <<'END'
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
libc.mq_open.restype = ctypes.c_int
queue = libc.mq_open(b"/atolltest", os.O_CREAT | os.O_RDWR, 0o600, None)
sent = libc.mq_send(queue, b"through the queue", 17, 1)
buffer = ctypes.create_string_buffer(8192)
got = libc.mq_receive(queue, buffer, 8192, None)
print(buffer.raw[:got].decode() if got > 0 else os.strerror(ctypes.get_errno()), libc.mq_unlink(b"/atolltest"),
      os.listdir("/dev/mqueue"))
END
"""


def test_what_programs_find_around_them(sandbox):
    done = sandbox.run(LOOK)
    lines = done.out.splitlines()
    assert done.code == 0, done
    assert "localhost 127.0.0.1" in lines, done
    assert f"nproc {len(os.sched_getaffinity(0))}" in lines and "lscpu works" in lines and "lsblk is empty" in lines
    if pathlib.Path("/var/lib/dpkg/status").exists():
        assert "install ok installed" in lines, done
    assert "bounding " in lines, done
    assert {"nobody:65534", "daemon:1", "root:0"} <= set(lines), done
    assert ("agent" if sandbox.identity.is_root else sandbox.identity.name) in lines, done
    assert "through the queue 0 []" in lines, done


def test_the_machine_shows_no_more_than_its_processors(sandbox):
    """/sys is of the sandbox's own making: nothing of it says which machine this is, or lets anything be changed."""
    script = ("find /sys -maxdepth 3 | sort; find /sys -maxdepth 4 -path '*/net/*' -o -name dmi -o -name product_uuid; "
              "for f in $(find /sys -type f -writable 2>/dev/null | head -3); do echo 1 >$f && echo written; done; "
              "mkdir /sys/x /sys/block/x; true")
    done = sandbox.run(script)
    assert done.out.split() == ["/sys", "/sys/block", "/sys/class", "/sys/dev", "/sys/dev/block", "/sys/dev/char",
                                "/sys/devices", "/sys/devices/system", "/sys/devices/system/cpu",
                                "/sys/devices/system/node"], done
    assert done.err.count("Read-only file system") == 2, done


MASKED = ("for p in /etc/shadow /etc/machine-id ~/.config/tool/secret ~/.config/tool/keys/id; do "
          "for c in stat cat; do $c $p >/dev/null 2>err.txt && echo \"$c $p worked\"; "
          "grep -q 'No such file' err.txt || cat err.txt; done; done; ls ~/.config/tool ~/.config/tool/deep; "
          "cat ~/.config/tool/deep/open; echo x >~/.config/tool/secret; rm ~/.config/tool/open; true")


def test_a_masked_name_in_a_read_only_tree_is_absent(sandbox):
    """It was an empty file that nobody could read; what the host put there later could be seen."""
    tool = sandbox.home / ".config/tool"
    for name in ("secret", "keys/id", "deep/open", "deep/secret", "open"):
        sandbox.write(tool / name, f"content of {name}\n")
    policy = sandbox.policy("atoll: 1\nextends: medium\nfiles:\n  read: [~/.config/tool]\n"
                            "  mask: [~/.config/tool/secret, ~/.config/tool/keys, ~/.config/tool/deep/secret]\n")
    outside = sandbox.run_outside(["bash", "-c", MASKED.replace("rm ", "true ").replace("echo x >", "true ")])
    assert "stat ~/.config/tool/secret worked" in outside.out.replace(str(sandbox.home), "~"), outside
    done = sandbox.run(MASKED, policy=policy)
    assert "worked" not in done.out and "Permission denied" not in done.out, done
    assert done.out.split() == [f"{sandbox.home}/.config/tool:", "deep", "open", f"{sandbox.home}/.config/tool/deep:",
                                "open", "content", "of", "deep/open"], done
    assert done.err.count("Read-only file system") == 2, done
    assert (tool / "open").exists() and (tool / "secret").read_text() == "content of secret\n"


def test_below_a_masked_directory_nothing_is_there(sandbox):
    """In a tree that is written in place it is an empty directory: ENOENT below, and nothing can be put there."""
    sandbox.write(sandbox.home / "tree/keys/id", "secret\n")
    policy = sandbox.policy("atoll: 1\nextends: medium\nfiles:\n  write: [~/tree]\n  mask: [~/tree/keys]\n")
    done = sandbox.run("ls -A ~/tree/keys; cat ~/tree/keys/id; echo x >~/tree/keys/new; mv ~/tree/keys ~/tree/k; true",
                       policy=policy)
    assert not done.out and "keys/id: No such file or directory" in done.err, done
    assert "keys/new: No such file or directory" in done.err and "cannot move" in done.err, done
    assert os.listdir(sandbox.home / "tree") == ["keys"] and os.listdir(sandbox.home / "tree/keys") == ["id"]


@pytest.mark.only("root")
def test_localhost_has_an_address_where_the_host_has_no_hosts_file(sandbox):
    """As on a bare Debian, and in a container that mounts files into /etc the sandbox starts all the same."""
    copy = sandbox.base / "etc"
    subprocess.run(["cp", "-a", "/etc", copy], check=False)  # others may change users meanwhile
    (copy / "hosts").unlink(missing_ok=True)
    (copy / "hosts.six").write_text("# ::1 localhost\n127.0.0.1\tlocalhost\n ::1 ip6 localhost # both\n")
    script = ("mount --bind \"$1\" /etc || exit 9; shift; [ ! -e /etc/hosts ] || exit 8\n"
              "for level in none medium; do \"$1\" run -q -t $level -- getent ahosts localhost; done\n"
              "echo 127.0.0.1 localhost >/etc/hosts; \"$1\" run -q -- getent ahosts localhost\n"
              "cp /etc/hosts.six /etc/hosts; \"$1\" run -q -- getent ahosts localhost; rm /etc/hosts\n"
              "name=/tmp/atolltest-name.$$; touch $name; mount --bind $name /etc/hostname; rm $name\n"
              "exec \"$1\" run -q -- sh -c 'wc -c </etc/hostname; stat /etc/shadow; getent passwd agent'")
    done = sandbox.run_outside(["unshare", "-m", "bash", "-c", script, "bash", copy, sandbox.programs.atoll],
                               timeout=60)
    addresses = [line.split()[0] for line in done.out.splitlines() if "STREAM" in line]
    # ::1 only where it is localhost outside: some programs try no other address (Node 18).
    assert addresses == ["127.0.0.1", "127.0.0.1", "127.0.0.1", "::1", "127.0.0.1"], done
    assert "\n0\n" in done.out and "agent:x:" in done.out, done
    assert done.code == 0, done


SHARED = """
set -e
mkdir made; chmod g+s made; mkdir made/below
python3 - <<'END'
import os
fd = os.open("made", os.O_RDONLY)
os.fchmod(fd, 0o2770); assert os.stat("made").st_mode & 0o7777 == 0o2770
os.chmod("made", 0o3775, dir_fd=os.open(".", os.O_RDONLY)); os.symlink("made", "link"); os.chmod("link", 0o2775)
assert os.stat("made").st_mode & 0o7777 == 0o2775
for number, call in enumerate((lambda: os.chmod("file", 0o2755), lambda: os.chmod("link-to-file", 0o4755))):
    open("file", "w").close()
    if not number: os.symlink("file", "link-to-file")
    try: call(); print("set on a file")
    except PermissionError: pass
END
git init -q --shared=group repo; cd repo; git config user.email a@example.org; git config user.name n
echo 1 >x; git add x; git commit -qm one; cd ..
cp -a repo copy; mkdir tar; tar cf - repo | tar xpf - -C tar; mv repo /tmp/moved; mv /tmp/moved repo
git -C copy fsck --no-progress; git -C tar/repo log --oneline | wc -l
stat -c '%a' made made/below repo/.git copy/.git tar/repo/.git
"""


@pytest.mark.parametrize("audit", ["off", "writes"])
def test_directories_may_have_the_set_group_id_bit(sandbox, audit):
    """Repositories that a group shares live by it: `git commit` failed in them, and `cp -a` and `tar x` left it out."""
    policy = sandbox.policy(f"atoll: 1\nextends: medium\naudit: {{files: {audit}}}\n")
    outside = sandbox.make_directory(sandbox.base / "plain")
    modes = ["2775", "2755", "2775", "2775", "2775"]
    control = sandbox.run_outside(["bash", "-c", SHARED], cwd=outside)
    assert "set on a file" in control.out and control.out.split()[-5:] == modes, control
    done = sandbox.run(SHARED, policy=policy)
    assert done.code == 0 and done.out.split() == ["1"] + modes, done
    assert sum("chmod" in denial["subject"] for denial in done.report["denials"]) >= 1, done
    applied = sandbox.run_atoll("apply", done.session, "made")
    assert applied.code == 0, applied
    assert (sandbox.project / "made").stat().st_mode & 0o7777 == 0o2775
    assert not (sandbox.project / "file").exists()


PAIR = """
import os, socket, sys
ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
ends[0].send(b"one"); ends[0].send(b"two"); print(ends[1].recv(10), ends[1].recv(10))
for end in ends: end.setblocking(False)
try: ends[0].sendto(b"out", sys.argv[1]); print(ends[1].recv(10))
except BlockingIOError: print("not here")
print(os.get_inheritable(ends[0].fileno()), socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].getblocking())
for arguments in ((socket.SOCK_DGRAM, 6), (socket.SOCK_DGRAM | 0x100, 0)):
    try: socket.socketpair(socket.AF_UNIX, *arguments)
    except OSError as error: print(error.errno)
"""


def test_a_pair_of_datagram_sockets_works_and_leads_nowhere_else(sandbox):
    """Such a socket could send to any socket of the host that a mount shows; what stands in for it has no address."""
    tree = sandbox.make_directory(sandbox.home / "tree")
    policy = sandbox.policy("atoll: 1\nextends: medium\nfiles: {write: [~/tree]}\n")
    script = sandbox.write(sandbox.project / "pair.py", PAIR)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as host:
        host.bind(str(tree / "host"))
        os.chmod(tree / "host", 0o777)
        host.setblocking(False)
        words = ["/usr/bin/python3", str(script), str(tree / "host")]
        outside = sandbox.run_outside(words)
        assert "not here" in outside.out and host.recv(10) == b"out", outside
        done = sandbox.run(words, policy=policy)
        assert done.code == 0 and done.out == outside.out.replace("not here", "b'out'"), (done, outside)
        with pytest.raises(BlockingIOError):
            host.recv(10)


def test_open_files_are_told_as_they_are(sandbox):
    """The caller's own hard limit is lower than what the policy would give."""
    words = sandbox.command_line(["sh", "-c", "ulimit -n; cat /run/atoll/limits.md"])
    done = sandbox.run_outside(["sh", "-c", 'ulimit -n 3001 && exec "$@"', "sh", *words])
    assert done.out.splitlines()[0] == "3001" and "open files of one process: 3001\n" in done.out, done
    told = sandbox.run(["cat", "/run/atoll/limits.md"]).out
    assert "open files of one process: 3001" not in told and "open files of one process: " in told, told
