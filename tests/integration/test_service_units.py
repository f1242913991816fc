# SPDX-License-Identifier: Apache-2.0
"""The units of the service, as systemd reads them, and the sockets that it hands over (sd_listen_fds(3))."""
import contextlib
import http.client
import json
import os
import pathlib
import socket
import subprocess

import pytest

from atoll import ROOT
from service import DEGRADED

UNITS = {"system": "atolld.service", "user": "atolld.user.service"}


# What systemd does before it executes a service: the sockets are descriptors 3 and up.
HAND_OVER = """
at=3
for fd in $FDS; do eval "exec $((at + 20))<&$fd"; at=$((at + 1)); done
for fd in $FDS; do eval "exec $fd<&-"; done
at=3
for fd in $FDS; do eval "exec $at<&$((at + 20)) $((at + 20))<&-"; at=$((at + 1)); done
export LISTEN_FDS=$((at - 3)); export LISTEN_PID=${OTHER:-$$}
exec "$@"
"""


def verify(place, manager, text):
    """What systemd has to say of a unit, which is nothing of a good one."""
    unit = place / "atolld.service"
    unit.write_text(text)
    runtime = place / "runtime"
    runtime.mkdir(mode=0o700, exist_ok=True)
    # Manual pages are looked up with man(1), which finds none of a tree that is not installed.
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", f"--{manager}", str(unit)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
                          env={**os.environ, "XDG_RUNTIME_DIR": str(runtime), "SYSTEMD_UNIT_PATH": f"{place}:"})
    # Of units of this machine nothing is claimed.
    return done.returncode, [line for line in done.stdout.splitlines() if "atolld" in line]


def with_socket(place):
    """The unit that has systemd listen; its service stands beside it."""
    unit = place / "atolld.socket"
    unit.write_text((ROOT / "packaging" / "systemd" / "atolld.socket").read_text())
    return unit


@pytest.mark.needs("systemd-analyze")
@pytest.mark.parametrize("manager", UNITS)
def test_systemd_takes_the_units(tmp_path, manager):
    programs = pathlib.Path(os.environ.get("ATOLL_BIN", ROOT / "build" / "bin")).resolve()
    (tmp_path / "bin").symlink_to(programs)
    text = (ROOT / "packaging" / "systemd" / UNITS[manager]).read_text().replace("@PREFIX@", str(tmp_path))
    assert "@" not in text
    assert verify(tmp_path, manager, text) == (0, [])
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", f"--{manager}", str(with_socket(tmp_path))],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
                          env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "runtime"),
                               "SYSTEMD_UNIT_PATH": f"{tmp_path}:"})
    assert done.returncode == 0 and "atolld" not in done.stdout, done.stdout
    # The control: a word that is none, and a program that is not there.
    for wrong in (text.replace("KillMode=", "KilMode="), text.replace("/bin/atoll serve", "/bin/atol serve")):
        assert wrong != text and verify(tmp_path, manager, wrong)[1]


def listeners(*addresses):
    return [socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
            for address in addresses]


def handed(sandbox, sockets, *words, **environment):
    """`atoll serve` as the service manager starts it."""
    fds = [one.fileno() for one in sockets]
    keywords = sandbox.popen_keywords(env={"FDS": " ".join(map(str, fds)), **environment})
    policy = str(sandbox.policy(DEGRADED, "service-test.yaml"))
    return subprocess.Popen(["/bin/bash", "-c", HAND_OVER, "bash", str(sandbox.programs.atoll), "serve", "--json",
                             "--policy", policy, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            pass_fds=fds, **keywords)


def ask(sockaddr, key, method="GET", path="/sandboxes"):
    link = http.client.HTTPConnection(*sockaddr[:2], timeout=60)
    link.request(method, path, headers={"X-API-KEY": key, "Host": f"localhost:{sockaddr[1]}"})
    status = link.getresponse().status
    link.close()
    return status


def test_sockets_of_the_service_manager_are_served(sandbox):
    sockets = listeners("127.0.0.1", "127.0.0.2")
    addresses = [one.getsockname() for one in sockets]
    key = None
    # Who connects while nothing runs is served by the one that is started for it, and by the next one as well.
    for _ in range(2):
        early = socket.create_connection(addresses[1], timeout=60)
        early.sendall(b"GET /health HTTP/1.1\r\nHost: localhost:%d\r\nConnection: close\r\n\r\n" % addresses[1][1])
        with handed(sandbox, sockets, "--listen", "127.0.0.1:1") as server:
            line = server.stdout.readline()
            assert line, server.stderr.read()
            said = json.loads(line)
            key = said.get("key", key)
            assert said["url"] == f"http://127.0.0.1:{addresses[0][1]}", said
            assert early.recv(100).startswith(b"HTTP/1.1 ")
            assert [ask(address, key) for address in addresses] == [200, 200]
            assert ask(addresses[0], "e2b_" + "0" * 40) == 401
            server.terminate()
            assert server.wait(60) == 0
        early.close()
    for one in sockets:
        one.close()


def test_sockets_that_cannot_be_served_are_refused_by_name(sandbox):
    unconnected, datagram = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with contextlib.ExitStack() as stack:
        everywhere, plain, third = map(stack.enter_context, listeners("0.0.0.0", "127.0.0.1", "127.0.0.1"))
        for sockets, expected in (([unconnected], "no TCP socket that listens"),
                                  ([plain, datagram], "no TCP socket that listens"),
                                  ([everywhere], "can be reached from other machines"),
                                  ([plain, everywhere], "can be reached from other machines"),
                                  ([plain, plain, third], "more sockets than")):
            with handed(sandbox, sockets, "--check") as server:
                said = server.communicate(timeout=60)
                assert server.returncode == 125 and expected in said[1], said
        for sockets, words, others in (([plain], (), {}), ([everywhere], ("--beyond-loopback",), {}),
                                       # Meant for somebody else: the address of --listen is used.
                                       ([datagram], ("--listen", "127.0.0.1:0"), {"OTHER": "1"})):
            with handed(sandbox, sockets, "--check", *words, **others) as server:
                said = server.communicate(timeout=60)
                assert server.returncode == 0, said
    unconnected.close()
    datagram.close()
