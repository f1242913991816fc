# SPDX-License-Identifier: Apache-2.0
"""atoll-oci as engines call it: a container's life, what is refused and with which words, hostile root directories, and
that nothing is left of a container, however its making ended."""
import glob
import json
import os
import re
import signal
import subprocess

import pexpect
import pytest

from lib.atoll import wait_until

CAPS = ["CAP_KILL", "CAP_CHOWN"]
APPLETS = ["sh", "true", "cat", "echo", "mount", "id", "sleep", "ls", "mkdir", "touch", "head", "mknod", "unshare",
           "hostname", "test", "stty", "tty", "grep", "kill", "ps", "umount"]


class Bundle:
    """A bundle of busybox, made by the user that runs it."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.place = sandbox.make_directory(sandbox.base / "bundle")
        self.root = sandbox.make_directory(self.place / "rootfs")
        self.state = sandbox.base / "oci-state"
        self.name = f"{os.getpid()}-{sandbox.base.name}"
        sandbox.make_directory(self.root / "bin")
        sandbox.copy("/bin/busybox", self.root / "bin/busybox")
        for name in APPLETS:
            (self.root / "bin" / name).symlink_to("busybox")
        assert self.call("spec", "--bundle", self.place).code == 0
        self.config = json.loads((self.place / "config.json").read_text())
        self.config["process"].update(terminal=False, capabilities={
            name: CAPS for name in ("bounding", "effective", "permitted")})
        self.config["root"]["readonly"] = False

    @property
    def runtime(self):
        return [os.path.join(os.path.dirname(str(self.sandbox.programs.atoll)), "atoll-oci"), "--root", str(self.state)]

    def call(self, *words, **keywords):
        return self.sandbox.run_outside([*self.runtime, *words], **keywords)

    def detach(self, verb, *options):
        """create, or run --detach: the container keeps the streams, so they are no pipes that somebody reads."""
        return subprocess.run([*self.runtime, verb, "--bundle", str(self.place), *map(str, options), self.name],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=60, check=False, **self.sandbox.popen_keywords()).returncode

    def store(self, *args):
        if args:
            self.config["process"]["args"] = list(args)
        self.sandbox.write(self.place / "config.json", json.dumps(self.config))

    def run(self, *args, **keywords):
        self.store(*args)
        return self.call("run", "--bundle", self.place, self.name, **keywords)

    def status(self):
        return json.loads(self.call("state", self.name).out)["status"]

    def left(self):
        states = list(self.state.iterdir()) if self.state.exists() else []
        return states + glob.glob(f"/sys/fs/cgroup/**/*{self.name}*", recursive=True)


@pytest.fixture
def bundle(sandbox):
    made = Bundle(sandbox)
    yield made
    done = made.call("delete", "--force", made.name)
    assert done.code == 0 and made.left() == [], (done, made.left())


def test_a_container_has_what_its_bundle_says(bundle):
    bundle.config["hostname"] = "inside"
    bundle.config["process"]["env"].append("WORD=said")
    bundle.config["process"]["cwd"] = "/made/here"
    done = bundle.run("sh", "-c", "hostname; echo $WORD; pwd; echo $$; grep -E 'CapEff|NoNewPrivs|Seccomp:' "
                                  "/proc/self/status; ls /proc/self/fd; exit 7")
    assert done.code == 7, done
    lines = done.out.split("\n")
    assert lines[:4] == ["inside", "said", "/made/here", "1"], done
    assert "CapEff:\t0000000000000021" in lines and "NoNewPrivs:\t1" in lines and "Seccomp:\t2" in lines, done
    assert lines[-5:-1] == ["0", "1", "2", "3"], done
    assert bundle.left() == []


def test_the_life_of_a_container(bundle):
    bundle.store("sh", "-c", "touch /began; while :; do sleep 1; done")
    pid_file = bundle.place / "pid"
    assert bundle.detach("create", "--pid-file", pid_file) == 0
    assert re.fullmatch(r"[1-9]\d*", pid_file.read_text())
    state = json.loads(bundle.call("state", bundle.name).out)
    assert state["status"] == "created" and state["pid"] == int(pid_file.read_text()), state
    assert state["bundle"] == str(bundle.place) and not (bundle.root / "began").exists()
    done = bundle.call("create", "--bundle", bundle.place, bundle.name)
    assert done.code == 1 and "container with id exists" in done.err
    assert bundle.call("start", bundle.name).code == 0 and bundle.status() == "running"
    wait_until((bundle.root / "began").exists)
    assert "already running" in bundle.call("start", bundle.name).err
    done = bundle.call("delete", bundle.name)
    assert done.code == 1 and "not stopped" in done.err and bundle.status() == "running"
    assert [one["id"] for one in json.loads(bundle.call("list", "-f", "json").out)] == [bundle.name]
    assert bundle.call("kill", bundle.name, "KILL").code == 0
    wait_until(lambda: bundle.status() == "stopped")
    for words in (["kill", bundle.name, "9"], ["exec", bundle.name, "true"]):
        done = bundle.call(*words)
        assert done.code == 1 and "container not running" in done.err, done
    assert bundle.call("delete", bundle.name).code == 0 and bundle.left() == []
    for verb in ("state", "delete", "start", "kill"):
        done = bundle.call(verb, bundle.name)
        assert done.code == 1 and "does not exist" in done.err, done


def test_another_process_in_a_container(bundle):
    bundle.config["process"]["env"].append("WORD=said")
    bundle.store("sleep", "1000")
    assert bundle.detach("run", "--detach") == 0
    done = bundle.call("exec", bundle.name, "sh", "-c", "echo $WORD; cat /proc/1/cmdline; grep Seccomp: "
                                                          "/proc/self/status; exit 5")
    assert done.code == 5 and done.out == "said\nsleep\x001000\x00Seccomp:\t2\n", done
    done = bundle.call("exec", bundle.name, "nothing")
    assert done.code == 255 and "executable file not found in $PATH" in done.err, done
    done = bundle.call("exec", "-e", "WORD=other", "--cwd", "/bin", "--cap", "CAP_FOWNER", bundle.name, "sh", "-c",
                       "echo $WORD $HOME; pwd; grep CapEff /proc/self/status")
    assert done.out == "other /\n/bin\nCapEff:\t0000000000000029\n", done
    assert "UID:GID" in bundle.call("exec", "--user", "x", bundle.name, "true").err
    process = dict(bundle.config["process"], args=["sh", "-c", "echo $MORE"], env=["MORE=more"])
    path = bundle.sandbox.write(bundle.place / "process.json", json.dumps(process))
    assert bundle.call("exec", "--process", path, bundle.name).out == "more\n"
    bundle.sandbox.write(path, json.dumps(dict(process, cwd=3)))
    done = bundle.call("exec", "--process", path, bundle.name)
    assert done.code == 1 and "process.cwd must be a string" in done.err, done


def test_what_cannot_be_made_says_why_and_leaves_nothing(bundle):
    log = bundle.place / "log"
    done = bundle.call("--log", log, "--log-format", "json", "run", "--bundle", bundle.place / "none", bundle.name)
    assert done.code == 1 and "No such file" in done.err
    assert "No such file" in json.loads(log.read_text())["msg"]
    for args, words in ((["nothing"], "executable file not found in $PATH"), (["/nothing"], "no such file"),
                        (["/bin"], "permission denied")):
        done = bundle.run(*args)
        assert done.code == 1 and words in done.err and bundle.left() == [], done
    bundle.config["mounts"].append({"destination": "/x", "type": "bind", "source": "/not/there", "options": ["bind"]})
    done = bundle.run("true")
    assert done.code == 1 and "/not/there" in done.err and bundle.left() == [], done
    bundle.config["mounts"].pop()
    bundle.config["root"]["path"] = "missing"
    done = bundle.run("true")
    assert done.code == 1 and "missing" in done.err and bundle.left() == [], done
    assert bundle.call("run", "--bundle", bundle.place, "../x").code == 1
    assert bundle.call("--systemd-cgroup", "list").code == 1
    assert "did you mean" in bundle.call("creat", bundle.name).err


def test_links_of_a_hostile_root_lead_to_nothing_outside(bundle):
    victim = bundle.sandbox.make_directory(bundle.sandbox.base / "victim")
    bundle.sandbox.write(victim / "file", "kept")
    (bundle.root / "there").symlink_to(victim)
    (bundle.root / "up").symlink_to("../../victim")
    (bundle.root / "file").symlink_to(victim / "made")
    bundle.config["mounts"] += [
        {"destination": "/there/new", "type": "tmpfs", "source": "tmpfs"},
        {"destination": "/plain/new", "type": "tmpfs", "source": "tmpfs"}]
    # The control: without the boundary both links lead there, and the way of the mounts itself works.
    assert (bundle.root / "there/file").read_text() == "kept" and (bundle.root / "up/file").read_text() == "kept"
    done = bundle.run("mount")
    inside = bundle.root / str(victim).lstrip("/")
    # A link that leads nowhere inside is refused; one that does is followed there.
    assert done.code == 1 and sorted(os.listdir(victim)) == ["file"], done
    inside.mkdir(parents=True)
    for place in [inside, *inside.parents][:-len(bundle.root.parents)]:
        bundle.sandbox.own(place)
    for target in ("/up/new", "/file", "/../../../../../../victim/x"):
        bundle.config["mounts"].append({"destination": target, "type": "tmpfs", "source": "tmpfs"})
        done = bundle.run("mount")
        assert sorted(os.listdir(victim)) == ["file"] and bundle.left() == [], done
        bundle.config["mounts"].pop()
    done = bundle.run("mount")
    assert done.code == 0 and f" on {victim}/new type tmpfs" in done.out, done
    assert " on /plain/new type tmpfs" in done.out, done
    assert sorted(os.listdir(victim)) == ["file"] and (victim / "file").read_text() == "kept"


def test_masked_and_locked_paths(bundle):
    bundle.sandbox.write(bundle.root / "secret", "seen")
    done = bundle.run("sh", "-c", "cat /secret; touch /locked 2>&1; touch /fine && echo fine")
    assert done.out == "seenfine\n", done
    bundle.config["linux"]["maskedPaths"].append("/secret")
    bundle.config["linux"]["readonlyPaths"].append("/bin")
    done = bundle.run("sh", "-c", "cat /secret; touch /bin/x 2>&1; touch /fine && echo fine")
    assert done.out == "touch: /bin/x: Read-only file system\nfine\n", done
    bundle.config["root"]["readonly"] = True
    assert "Read-only file system" in bundle.run("touch", "/new").err


def test_ours_and_the_filter_of_the_bundle_are_both_in_force(bundle):
    asked = ["sh", "-c", "unshare -U true && echo nested; mkdir /made && echo made; true"]
    bundle.config["process"]["capabilities"] = {name: ["CAP_SYS_ADMIN"] for name in ("bounding", "effective",
                                                                                      "permitted")}
    assert bundle.run(*asked).out == "nested\nmade\n"
    (bundle.root / "made").rmdir()
    bundle.config["process"]["capabilities"] = {}
    assert bundle.run(*asked).out == "made\n"
    (bundle.root / "made").rmdir()
    bundle.config["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["mkdir", "mkdirat", "notacall"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]}
    done = bundle.run(*asked)
    assert done.out == "" and "Operation not permitted" in done.err, done
    bundle.config["linux"]["seccomp"]["defaultAction"] = "SCMP_ACT_NONE"
    done = bundle.run("true")
    assert done.code == 1 and "SCMP_ACT_NONE" in done.err, done


def test_hooks_get_the_state(bundle):
    seen = bundle.place / "seen"
    hook = bundle.sandbox.write(bundle.place / "hook", f"#!/bin/sh\necho $1 $(cat) >>{seen}\n", 0o755)
    names = ["prestart", "createRuntime", "createContainer", "poststart", "poststop"]
    bundle.config["hooks"] = {name: [{"path": str(hook), "args": ["hook", name],
                                      "env": ["PATH=/usr/bin:/bin"]}] for name in names}
    assert bundle.run("true").code == 0
    rows = [line.split(" ", 1) for line in seen.read_text().splitlines()]
    assert [row[0] for row in rows] == names
    assert [json.loads(row[1])["status"] for row in rows] == ["creating"] * 3 + ["running", "stopped"]
    bundle.config["hooks"] = {"createRuntime": [{"path": "/bin/false"}]}
    done = bundle.run("true")
    assert done.code == 1 and "createRuntime[0]: exit status 1" in done.err, done


def test_whatever_a_killed_create_leaves_is_deleted(bundle):
    bundle.store("sleep", "1000")
    for step in range(24):
        child = subprocess.Popen([*bundle.runtime, "create", "--bundle", str(bundle.place), bundle.name],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                 **bundle.sandbox.popen_keywords())
        try:
            child.wait(step * 0.0006)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        child.wait()
        done = bundle.call("delete", "--force", bundle.name)
        assert done.code == 0 and bundle.left() == [], (step, done, bundle.left())


def test_a_terminal(bundle):
    bundle.config["process"]["terminal"] = True
    bundle.store("sh", "-c", "tty; stty size; echo typed: $(head -n 1)")
    child = bundle.sandbox.spawn([*bundle.runtime, "run", "--bundle", str(bundle.place), bundle.name], outside=True)
    child.expect("/dev/(console|pts/0)")
    child.expect("24 80")
    child.sendline("word")
    child.expect("typed: word")
    child.expect_exact([pexpect.EOF])
    done = bundle.call("create", "--bundle", bundle.place, bundle.name)
    assert done.code == 1 and "console socket" in done.err, done


def test_limits_are_in_force(bundle):
    if bundle.sandbox.identity.uid != 0:
        bundle.config["linux"]["resources"] = {"pids": {"limit": 5}}
        done = bundle.run("true")
        assert done.code == 1 and "control group" in done.err, done
        return
    probe = ["sh", "-c", "test -e /fuse || mknod /fuse c 10 229; (: </fuse) 2>/dev/null && echo opened; "
                         "(sleep 1 & sleep 1 & sleep 1 & sleep 1 & sleep 1 & sleep 1 & wait) 2>&1"]
    bundle.config["process"]["capabilities"] = {name: ["CAP_MKNOD"] for name in ("bounding", "effective", "permitted")}
    # The control: without limits the device opens, and all of them are forked.
    bundle.config["linux"]["resources"] = {}
    assert bundle.run(*probe).out == "opened\n"
    bundle.config["linux"]["resources"] = {"memory": {"limit": 64 << 20}, "pids": {"limit": 5}, "devices": [
        {"allow": False, "access": "rwm"}]}
    done = bundle.run(*probe)
    assert "opened" not in done.out and "can't fork" in done.out, done
    bundle.config["linux"]["resources"]["memory"]["swap"] = 1 << 20
    done = bundle.run("true")
    assert done.code == 1 and "memory+swap" in done.err, done
    bundle.config["linux"]["resources"] = {"hugepageLimits": [{"pageSize": "2MB", "limit": 1}]}
    done = bundle.run("true")
    assert done.code == 1 and "hugepageLimits is not supported" in done.err, done


def test_a_paused_container(bundle):
    if bundle.sandbox.identity.uid != 0:
        pytest.skip("only root has a control group to freeze here")
    bundle.store("sleep", "1000")
    assert bundle.detach("run", "--detach") == 0
    assert bundle.call("pause", bundle.name).code == 0 and bundle.status() == "paused"
    assert "paused" in bundle.call("exec", bundle.name, "true").err
    assert bundle.call("resume", bundle.name).code == 0 and bundle.status() == "running"
    pid = json.loads(bundle.call("state", bundle.name).out)["pid"]
    assert json.loads(bundle.call("ps", "--format", "json", bundle.name).out) == [pid]
    assert bundle.call("pause", bundle.name).code == 0
    assert bundle.call("delete", "--force", bundle.name).code == 0
