# SPDX-License-Identifier: Apache-2.0
"""`atoll secret`: values go in by pipe or prompt and never come out; what is damaged or open to others is refused."""
import json
import os
import socket
import subprocess
import time

import pexpect
import pytest

VALUE = "sk-test-7fHqP2mXw9"


@pytest.fixture
def vault(sandbox):
    """The directory of the vault; what was cached in the kernel's keyring goes with the test."""
    yield sandbox.base / "config" / "atoll" / "vault"
    sandbox.run_atoll("secret", "lock")


def keep(sandbox, name, value=VALUE, **keywords):
    return sandbox.run_atoll("secret", "set", name, stdin=value if isinstance(value, bytes) else value.encode(),
                             **keywords)


def names(sandbox):
    done = sandbox.run_atoll("secret", "list", "--json")
    assert done.code == 0, done
    return [entry["name"] for entry in json.loads(done.out)]


def ask(sandbox, *words):
    return sandbox.spawn([sandbox.programs.atoll, "secret", *words], outside=True)


def finish(child):
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus


def set_passphrase(sandbox, passphrase, old=None):
    child = ask(sandbox, "passphrase")
    if old is not None:
        child.expect(b"Passphrase of the vault: ")
        child.sendline(old)
    for prompt in (rb"New passphrase \(empty: none\): ", b"Once more: "):
        child.expect(prompt)
        child.sendline(passphrase)
    assert finish(child) == 0


def has_keyring(sandbox):
    script = ("import ctypes,os\nlibc=ctypes.CDLL(None,use_errno=True)\n"
              "raise SystemExit(0 if libc.syscall(248,b'user',b'atoll:test',b'x',1,-4)>0 else 1)")
    return sandbox.run_outside(["/usr/bin/python3", "-c", script]).code == 0


def test_set_list_rename_remove(sandbox, vault):
    assert names(sandbox) == []
    assert sandbox.run_atoll("secret", "list").out == ""
    for name in ("github", "anthropic"):
        done = keep(sandbox, name)
        assert (done.code, done.out, done.err) == (0, "", "")
    assert names(sandbox) == ["anthropic", "github"]
    table = sandbox.run_atoll("secret", "list")
    assert table.code == 0 and len(table.out.splitlines()) == 3 and "17-64" in table.out
    assert sandbox.run_atoll("secret", "rename", "github", "gh").code == 0
    assert sandbox.run_atoll("secret", "rename", "gh", "anthropic").code == 125
    assert sandbox.run_atoll("secret", "remove", "gh").code == 0
    missing = sandbox.run_atoll("secret", "remove", "anthropik")
    assert missing.code == 127 and "did you mean anthropic?" in missing.err
    assert names(sandbox) == ["anthropic"]
    # All or none.
    assert sandbox.run_atoll("secret", "remove", "anthropic", "other").code == 127
    assert names(sandbox) == ["anthropic"]


def test_the_value_is_nowhere(sandbox, vault):
    keep(sandbox, "key")
    for words in (["list"], ["list", "--json"]):
        assert VALUE.encode() not in sandbox.run_atoll("secret", *words).bytes
    for path in vault.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600 and path.stat().st_uid == sandbox.identity.uid
        assert VALUE.encode() not in path.read_bytes()
    assert vault.stat().st_mode & 0o777 == 0o700


def test_a_file_of_the_same_size_for_any_short_value(sandbox, vault):
    keep(sandbox, "key", "x")
    size = (vault / "secrets").stat().st_size
    keep(sandbox, "key", "x" * 2000)
    assert (vault / "secrets").stat().st_size == size


@pytest.mark.parametrize("value, text", [
    (b"", "the value is empty"), (b"\n", "the value is empty"), (b"a\nb\n", "line break"), (b"a\0b", "control"),
    (b"a\x1b[2J", "control"), (b"a\n\n", "line break"), (b"x" * 16385, "longer than 16384"),
    (b"x" * 1000000, "longer than 16384"),
])
def test_values_that_are_refused(sandbox, vault, value, text):
    done = keep(sandbox, "key", value)
    assert done.code == 125 and text in done.err and done.err.count("\n") == 1
    assert names(sandbox) == []


@pytest.mark.parametrize("value", [b"x", b"x\n", b"x\r\n", b"\xff\xfe", "ключ".encode(), b"x" * 16384 + b"\n"])
def test_values_that_are_taken(sandbox, vault, value):
    assert keep(sandbox, "key", value).code == 0
    assert names(sandbox) == ["key"]


@pytest.mark.parametrize("words, text", [
    ([], "no verb for secrets"), (["get", "key"], "no verb for secrets"), (["set"], "wrong number"),
    (["set", "key", VALUE], "never an argument"), (["set", "a/b"], "cannot be the name of a secret"),
    (["set", VALUE + " "], "cannot be the name of a secret"),
    (["rename", "a"], "wrong number"), (["list", "a"], "wrong number"),
    (["remove", "--json", "a"], "--json is for list"), (["remove"], "wrong number"),
])
def test_wrong_usage(sandbox, vault, words, text):
    done = sandbox.run_atoll("secret", *words)
    assert done.code == 125 and text in done.err and done.err.count("\n") == 1 and not done.out
    assert VALUE not in done.err
    assert not vault.exists()


def test_prompt_without_echo(sandbox, vault):
    child = ask(sandbox, "set", "key")
    child.expect(b"Value: ")
    child.sendline(VALUE.encode())
    assert finish(child) == 0
    assert VALUE.encode() not in child.before and b"sealed with the key beside it" in child.before
    assert names(sandbox) == ["key"]


@pytest.mark.parametrize("key, status", [("c", 130), ("\\", 131)])
def test_a_prompt_that_is_interrupted_gives_the_echo_back(sandbox, vault, key, status):
    shell = sandbox.spawn(["bash", "--norc", "--noprofile", "-i"], outside=True, env={"PS1": None})
    shell.sendline(b"PS1='@''@ '; bind 'set enable-bracketed-paste off'")
    shell.expect(b"@@ ")
    before = echo_of(shell)
    shell.sendline(f"{sandbox.programs.atoll} secret set key".encode())
    shell.expect(b"Value: ")
    time.sleep(0.2)
    shell.sendcontrol(key)
    shell.expect(b"@@ ")
    shell.sendline(b"echo status=$?")
    shell.expect(f"status={status}".encode())
    assert echo_of(shell) == before
    assert names(sandbox) == []


def echo_of(shell):
    shell.sendline(b"stty -a | tr ' ;' '\\n\\n' | grep -x -e echo -e -echo | sed 's/^/=/'")
    shell.expect(rb"=(-?echo)\r\n")
    return shell.match.group(1)


def test_stopped_and_continued_it_asks_again(sandbox, vault):
    shell = sandbox.spawn(["bash", "--norc", "--noprofile", "-i"], outside=True, env={"PS1": None})
    shell.sendline(b"PS1='@''@ '; bind 'set enable-bracketed-paste off'")
    shell.expect(b"@@ ")
    shell.sendline(f"{sandbox.programs.atoll} secret set key".encode())
    shell.expect(b"Value: ")
    time.sleep(0.2)
    shell.sendcontrol("z")
    shell.expect(b"Stopped")
    shell.expect(b"@@ ")
    shell.sendline(b"fg")
    shell.expect(b"Value: ")
    shell.sendline(VALUE.encode())
    shell.expect(b"@@ ")
    assert VALUE.encode() not in shell.before
    assert names(sandbox) == ["key"]


def test_nothing_typed(sandbox, vault):
    child = ask(sandbox, "set", "key")
    child.expect(b"Value: ")
    time.sleep(0.2)
    child.sendcontrol("d")
    assert finish(child) == 125 and b"nothing was given" in child.before
    assert names(sandbox) == []


def test_a_line_that_the_terminal_would_cut_is_refused(sandbox, vault):
    child = ask(sandbox, "set", "key")
    child.expect(b"Value: ")
    time.sleep(0.2)
    child.sendline(b"x" * 5000)
    assert finish(child) == 125 and b"longer than a terminal's line" in child.before
    assert names(sandbox) == []


def test_passphrase(sandbox, vault):
    keep(sandbox, "key")
    set_passphrase(sandbox, b"correct horse")
    sandbox.run_atoll("secret", "lock")
    # No terminal, nobody to ask.
    done = sandbox.run_outside(["setsid", "-w", sandbox.programs.atoll, "secret", "list"])
    assert done.code == 125 and "no terminal to ask on" in done.err
    child = ask(sandbox, "list")
    for prompt in (b"Passphrase of the vault: ", b"Wrong. Passphrase of the vault: ", b"Wrong. Passphrase"):
        child.expect(prompt)
        child.sendline(b"wrong")
    assert finish(child) == 125 and b"this is not the passphrase" in child.before
    child = ask(sandbox, "list")
    child.expect(b"Passphrase of the vault: ")
    child.sendline(b"correct horse")
    child.expect(b"key ")
    assert finish(child) == 0
    set_passphrase(sandbox, b"", None if has_keyring(sandbox) else b"correct horse")
    sandbox.run_atoll("secret", "lock")
    assert names(sandbox) == ["key"]


def test_the_keyring_keeps_it_open_until_lock(sandbox, vault):
    if not has_keyring(sandbox):
        pytest.skip("the kernel's keyring is not to be had here")
    keep(sandbox, "key")
    set_passphrase(sandbox, b"pass")
    assert sandbox.run_outside(["setsid", "-w", sandbox.programs.atoll, "secret", "list"]).code == 125
    child = ask(sandbox, "unlock")
    child.expect(b"Passphrase of the vault: ")
    child.sendline(b"pass")
    assert finish(child) == 0
    assert names(sandbox) == ["key"]
    assert keep(sandbox, "other").code == 0
    assert sandbox.run_atoll("secret", "lock").code == 0
    assert sandbox.run_outside(["setsid", "-w", sandbox.programs.atoll, "secret", "list"]).code == 125


def test_new_passphrase_typed_differently(sandbox, vault):
    keep(sandbox, "key")
    child = ask(sandbox, "passphrase")
    child.expect(rb"New passphrase")
    child.sendline(b"one")
    child.expect(b"Once more: ")
    child.sendline(b"two")
    assert finish(child) == 125 and b"not the same" in child.before
    assert names(sandbox) == ["key"]


@pytest.mark.parametrize("name", ["key", "secrets"])
def test_damaged_files(sandbox, vault, name):
    keep(sandbox, "key")
    whole = (vault / name).read_bytes()
    for at in range(0, len(whole), max(1, len(whole) // 12)):
        (vault / name).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        done = sandbox.run_atoll("secret", "list")
        assert done.code == 125 and not done.out and done.err.count("\n") == 1, at
        # Nor is anything written over it.
        assert keep(sandbox, "other").code == 125
    (vault / name).write_bytes(whole)
    assert names(sandbox) == ["key"]


@pytest.mark.parametrize("name, mode", [("key", 0o644), ("secrets", 0o640), ("", 0o755), ("", 0o770)])
def test_open_to_others(sandbox, vault, name, mode):
    keep(sandbox, "key")
    os.chmod(vault / name, mode)
    for done in (sandbox.run_atoll("secret", "list"), keep(sandbox, "other")):
        assert done.code == 125 and "is open to others" in done.err and "chmod" in done.err


def test_a_vault_of_somebody_else(sandbox, vault):
    keep(sandbox, "key")
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    for path in (vault, *vault.iterdir()):
        os.chown(path, 12345, 12345)
    done = sandbox.run_atoll("secret", "list")
    # Root sees whose it is; a user does not get in.
    assert done.code == 125 and ("belongs to uid 12345" in done.err or "ermission denied" in done.err)


def test_links_in_place_of_files(sandbox, vault):
    keep(sandbox, "key")
    victim = sandbox.write(sandbox.home / "victim", "untouched", 0o600)
    (vault / "secrets.new").symlink_to(victim)
    assert keep(sandbox, "other").code == 0
    (vault / "lock").unlink()
    (vault / "lock").symlink_to(victim)
    assert keep(sandbox, "third").code == 125
    assert victim.read_text() == "untouched"


def test_many_at_once(sandbox, vault):
    children = []
    for number in range(12):
        child = subprocess.Popen([str(sandbox.programs.atoll), "secret", "set", f"key{number}"], stdin=subprocess.PIPE,
                                 stderr=subprocess.PIPE, **sandbox.popen_keywords())
        child.stdin.write(VALUE.encode())
        children.append(child)
    for child in children:
        _, err = child.communicate(timeout=30)
        assert child.returncode == 0, err
    assert sorted(names(sandbox)) == sorted(f"key{number}" for number in range(12))


def test_no_room_on_the_disk(sandbox, vault):
    keep(sandbox, "key")
    before = {path.name: path.read_bytes() for path in vault.iterdir()}
    words = ["prlimit", "--fsize=1000", sandbox.programs.atoll, "secret", "set", "other"]
    done = sandbox.run_outside(words, stdin=b"x")
    assert done.code == 125 and "nothing was changed" in done.err
    assert {path.name: path.read_bytes() for path in vault.iterdir()} == before
    assert names(sandbox) == ["key"]


@pytest.mark.only("root")
def test_a_full_file_system(sandbox, vault):
    vault.mkdir(parents=True, mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "tmpfs", str(vault)], check=True)
    try:
        assert keep(sandbox, "key").code == 0
        done = keep(sandbox, "other", "x" * 9000)
        assert done.code == 125 and "No space left" in done.err and "nothing was changed" in done.err
        assert names(sandbox) == ["key"] and not (vault / "secrets.new").exists()
    finally:
        subprocess.run(["umount", str(vault)], check=True)


def test_a_home_that_is_missing(sandbox, vault):
    done = keep(sandbox, "key", env={"XDG_CONFIG_HOME": "/proc/none"})
    assert done.code == 125 and "XDG_CONFIG_HOME" in done.err


def test_the_keeper_is_confined(sandbox, vault):
    child = ask(sandbox, "set", "key")
    child.expect(b"Value: ")
    with open(f"/proc/{child.pid}/status", encoding="utf-8") as stream:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in stream if ":\t" in line)
    assert status["Name"] == "atoll-secret" and status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    limits = dict(line.split("  ", 1) for line in open(f"/proc/{child.pid}/limits", encoding="utf-8"))
    assert limits["Max core file size"].split()[:2] == ["0", "0"]
    if not sandbox.identity.is_root:
        done = sandbox.run_outside(["/usr/bin/python3", "-c", f"open('/proc/{child.pid}/mem','rb')"])
        assert done.code == 1 and "PermissionError" in done.err
    child.close(force=True)


@pytest.mark.parametrize("level", ["medium", "full"])
def test_no_sandbox_sees_it(sandbox, vault, level):
    # The usual place as well as the one that the variable names.
    keep(sandbox, "key")
    usual = sandbox.home / ".config" / "atoll" / "vault"
    script = f"cat {vault}/* {usual}/* 2>/dev/null; ls {vault} {usual} 2>/dev/null; true"
    assert sandbox.run_outside(["bash", "-c", script]).bytes.startswith(b"atollkey")
    inside = sandbox.run(script, trust=level)
    assert inside.code == 0 and inside.bytes == b"", inside


@pytest.mark.needs("strace")
def test_the_value_passes_through_no_argument_and_no_variable(sandbox, vault):
    log = sandbox.base / "strace.log"
    done = sandbox.run_outside(["strace", "-f", "-v", "-s", "4096", "-e", "trace=execve", "-o", log,
                                sandbox.programs.atoll, "secret", "set", "key"], stdin=VALUE.encode())
    assert done.code == 0 and VALUE not in log.read_text() and "atoll-secret" in log.read_text()


def read_frames(receiver):
    """(type, fields) of what atoll-secret sent; strings and bytes only."""
    frames = []
    while True:
        message = receiver.recv(1 << 18)
        if not message:
            return frames
        assert message[:4] == b"atol" and int.from_bytes(message[8:12], "little") == len(message)
        at, fields = 16, []
        while at < len(message):
            assert message[at] in (3, 4)
            size = int.from_bytes(message[at + 1:at + 5], "little")
            fields.append(message[at + 5:at + 5 + size])
            at += 5 + size
        frames.append((int.from_bytes(message[6:8], "little"), fields))


def give(sandbox, *words):
    """`atoll-secret give` with sockets of ours as descriptors 3 and 4: the values, and what stands for them."""
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
    program = sandbox.programs.program("atoll-secret")
    directory = sandbox.base / "config" / "atoll" / "vault"
    senders = [pair[1].fileno() for pair in pairs]
    words = ["bash", "-c", f'exec 13<&{senders[0]} 14<&{senders[1]} 3<&13 4<&14 13<&- 14<&- && exec "$@"', "sh",
             str(program), "--directory", str(directory), "give", *words]
    with pairs[0][0], pairs[1][0]:
        with pairs[0][1], pairs[1][1]:
            done = subprocess.run(words, pass_fds=senders, capture_output=True, timeout=30,
                                  stdin=subprocess.DEVNULL, start_new_session=True, **sandbox.popen_keywords())
        return done, read_frames(pairs[0][0]), read_frames(pairs[1][0])


def test_given_over_sockets(sandbox, vault):
    keep(sandbox, "one", "first")
    keep(sandbox, "two", "x" * 16384)
    keep(sandbox, "three", "third")
    done, values, placeholders = give(sandbox, "two", "one")
    assert done.returncode == 0, done
    assert [(kind, fields[:2]) for kind, fields in values] == [(1, [b"two\0", b"x" * 16384]), (1, [b"one\0", b"first"]),
                                                               (2, [])]
    assert placeholders == [(3, [values[0][1][0], values[0][1][2]]), (3, [values[1][1][0], values[1][1][2]]), (2, [])]
    assert b"first" not in placeholders[1][1][1] and len(placeholders[0][1][1]) == 1025


def test_given_all_or_nothing(sandbox, vault):
    done, *frames = give(sandbox, "one")
    assert done.returncode == 127 and frames == [[], []]
    assert b"atoll secret set one" in done.stderr
    keep(sandbox, "one", "first")
    done, *frames = give(sandbox, "one", "missing")
    assert done.returncode == 127 and b"atoll secret set missing" in done.stderr and frames == [[], []]
    set_passphrase(sandbox, b"pass")
    sandbox.run_atoll("secret", "lock")
    done, *frames = give(sandbox, "one")
    assert done.returncode == 125 and frames == [[], []]


def test_given_to_nobody_else(sandbox, vault):
    keep(sandbox, "key")
    program = sandbox.programs.program("atoll-secret")
    assert "never shown" in sandbox.run_atoll("secret", "give", "key").err
    for redirection in ("", "3>&1", "3>/dev/null", f"3>{sandbox.home}/file"):
        done = sandbox.run_outside(["sh", "-c", f"{program} --directory {vault} give key {redirection}"])
        assert done.code == 125 and "never shown" in done.err and VALUE not in done.out + done.err


def test_twelve_of_the_longest_fit_without_a_reader(sandbox, vault):
    wanted = [f"key{number}" for number in range(12)]
    for name in wanted:
        keep(sandbox, name, "x" * 16384)
    done, *frames = give(sandbox, *wanted)
    assert done.returncode == 0 and [len(of) for of in frames] == [13, 13], done
