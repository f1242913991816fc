# SPDX-License-Identifier: Apache-2.0
"""Programs that make a sandbox of their own: told which switch turns it off, or let to where the policy says so."""
import json
import os

import pytest

NESTED = "atoll: 1\nextends: medium\nexec: {namespaces: true}\n"
PAGE = "<title>x</title><p id=p></p><script>p.textContent = 'sum ' + (40 + 2)</script>"
CHROMIUM = ["chromium", "--headless", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"]


def denials(sandbox, done):
    """What the agent is told of refused calls."""
    path = sandbox.state / "atoll" / "sessions" / done.session / "denials.jsonl"
    return [entry for entry in map(json.loads, path.read_text().splitlines()) if entry["kind"] == "syscall"]


@pytest.mark.needs("unshare")
def test_a_refused_namespace_names_the_switch(sandbox):
    assert sandbox.run_outside(["unshare", "-U", "true"]).code == 0
    done = sandbox.run(["unshare", "-U", "true"])
    assert done.code != 0
    entry, = denials(sandbox, done)
    assert entry["rule"] == "builtin.namespaces" and "inside this one" in entry["reason"], entry
    assert "run the command itself" in entry["hint"], entry


def test_who_is_not_known_is_told_in_general(sandbox):
    done = sandbox.run(["/usr/bin/python3", "-c", "import ctypes; ctypes.CDLL(None).unshare(0x10000000)"])
    entry, = denials(sandbox, done)
    assert entry["rule"] == "builtin.namespaces" and "exec: {namespaces: true}" in entry["hint"], entry
    done = sandbox.run(["/usr/bin/python3", "-c", "import ctypes; ctypes.CDLL(None).sethostname(b'x', 1)"])
    entry, = denials(sandbox, done)
    assert entry["rule"] == "builtin.syscall" and entry["hint"] in ("", None), entry


@pytest.mark.needs("bwrap")
def test_bwrap_is_told_by_name(sandbox):
    words = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]
    assert sandbox.run_outside(words).code == 0
    done = sandbox.run(words)
    assert done.code != 0 and any("bwrap" in entry["hint"] for entry in denials(sandbox, done)), done


@pytest.mark.only("user")
@pytest.mark.needs("chromium")
@pytest.mark.skipif(os.environ.get("ATOLL_TESTS_AGENTS") != "1", reason="make check-agents runs this")
def test_chromium_with_its_own_sandbox(sandbox):
    """Its namespaces and its seccomp filters, in a policy that lets it; without, it is told how to do without."""
    page = sandbox.write(sandbox.project / "page.html", PAGE)
    words = [*CHROMIUM, f"--user-data-dir={sandbox.project}/profile", f"file://{page}"]
    outside = sandbox.run_outside(words, timeout=60)
    if "sum 42" not in outside.out:
        pytest.skip(f"chromium does not work without a sandbox either: {outside.err[-300:]}")
    done = sandbox.run(words, policy=sandbox.policy(NESTED), timeout=90)
    assert done.code == 0 and "sum 42" in done.out, done
    refused = sandbox.run(words, timeout=90)
    assert "sum 42" not in refused.out, refused
    assert any("--no-sandbox" in entry["hint"] for entry in denials(sandbox, refused)), refused
    done = sandbox.run([*words[:-1], "--no-sandbox", words[-1]], timeout=90)
    assert done.code == 0 and "sum 42" in done.out, done


FLATPAK = r"""
set -e
arch=$(flatpak --default-arch)
mkdir -p rt/usr/bin rt/files app/files/bin app/export
cp "$(command -v busybox)" rt/usr/bin/busybox
for name in sh id ls cat echo touch; do ln -s busybox rt/usr/bin/$name; done
runtime="runtime=org.test.Platform/$arch/1\nsdk=org.test.Platform/$arch/1\n"
printf "[Runtime]\nname=org.test.Platform\n$runtime" >rt/metadata
printf "[Application]\nname=org.test.App\n${runtime}command=hello\n" >app/metadata
printf '#!/bin/sh\necho hello from $(cat /.flatpak-info | grep ^name); touch /app/x || echo read-only\n' \
    >app/files/bin/hello
chmod 755 app/files/bin/hello
flatpak build-export --runtime --disable-sandbox repo rt 1
flatpak build-export --disable-sandbox repo app 1
flatpak --user remote-add --no-gpg-verify local repo
flatpak --user install -y --noninteractive local org.test.Platform//1
# Of an application it asks the system's bus whether parents mind.
exec dbus-run-session -- sh -c 'export DBUS_SYSTEM_BUS_ADDRESS="$DBUS_SESSION_BUS_ADDRESS"
    flatpak --user install -y --noninteractive local org.test.App//1'
"""


@pytest.mark.only("user")
@pytest.mark.needs("flatpak", "dbus-run-session", "busybox")
@pytest.mark.skipif(os.environ.get("ATOLL_TESTS_AGENTS") != "1", reason="make check-agents runs this")
def test_flatpak_runs_an_application(sandbox):
    """One with a runtime that is made here: it runs under `namespaces: mounts` as it does outside."""
    place = sandbox.make_directory(sandbox.home / "made")
    made = sandbox.run_outside(["sh", "-c", FLATPAK], cwd=place, timeout=120)
    assert made.code == 0, made
    words = ["sh", "-c", "mkdir -p -m 700 /tmp/run-$$ && XDG_RUNTIME_DIR=/tmp/run-$$ flatpak run org.test.App//1"]
    expected = "hello from name=org.test.App\nread-only\n"
    outside = sandbox.run_outside(words)
    assert outside.out == expected, outside
    text = ("atoll: 1\nextends: medium\nresources: {memory: unlimited}\nfiles:\n  read: [~/.local/share/flatpak, "
            "/var/lib/flatpak, /sys/block, /sys/bus, /sys/class, /sys/dev, /sys/devices]\n")
    done = sandbox.run(words, policy=sandbox.policy(text + "exec: {namespaces: mounts}\n"))
    assert done.code == 0 and done.out == expected, done
    refused = sandbox.run(words, policy=sandbox.policy(text))
    told = denials(sandbox, refused)
    assert refused.code != 0 and any("namespaces: mounts" in entry["hint"] for entry in told), (refused, told)
