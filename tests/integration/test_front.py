# SPDX-License-Identifier: Apache-2.0
"""atoll-front by itself: what it makes of HTTP, and that nothing of it stays behind."""
import base64
import http.client
import json
import os
import pathlib
import re
import subprocess
import time

import pytest

import connect
from connect import Stream, control, outcome, raw, request, start, unary
from front import Front

BIN = pathlib.Path(os.environ.get("ATOLL_BIN", pathlib.Path(__file__).resolve().parents[2] / "build" / "bin"))


@pytest.fixture
def front(tmp_path):
    one = Front(BIN / "atoll-front", tmp_path)
    yield one
    assert one.close() == 0


def until(condition, patience_s=20):
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def fds(front):
    return len(os.listdir(f"/proc/{front.process.pid}/fd"))


def capabilities(pid):
    """The sets of a process as numbers: inheritable, permitted, effective, ambient, bounding."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return [int(re.search(rf"^Cap{name}:\t(\w+)$", status, re.M).group(1), 16)
            for name in ("Inh", "Prm", "Eff", "Amb", "Bnd")]


def test_it_is_confined_before_it_serves(front):
    status = pathlib.Path(f"/proc/{front.process.pid}/status").read_text(encoding="ascii")
    assert "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status
    limits = pathlib.Path(f"/proc/{front.process.pid}/limits").read_text(encoding="ascii")
    assert "Max processes             0" in limits


def test_root_is_no_user_of_it(tmp_path):
    """As root it has a uid of its own, as a user its own one, and in neither case a capability."""
    before = capabilities(os.getpid())
    fronts = [Front(BIN / "atoll-front", tmp_path) for _ in range(2)]
    try:
        uids = {pathlib.Path(f"/proc/{one.process.pid}").stat().st_uid for one in fronts} if os.geteuid() else set()
        for one in fronts:
            status = pathlib.Path(f"/proc/{one.process.pid}/status").read_text(encoding="ascii")
            assert not any(capabilities(one.process.pid)[:4]), status
            ids = {name: set(re.search(rf"^{name}:(.*)$", status, re.M).group(1).split()) for name in ("Uid", "Gid")}
            assert len(ids["Uid"]) == len(ids["Gid"]) == 1, status
            if os.geteuid() == 0:
                assert before[1] and ids["Uid"] == ids["Gid"] and not capabilities(one.process.pid)[4], status
                assert int(*ids["Uid"]) >= 0x70000000 and not re.search(r"^Groups:.*\d", status, re.M), status
                uids |= ids["Uid"]
            else:
                assert ids["Uid"] == {str(os.geteuid())}, status
            assert control(one, "GET", "/sandboxes/abc")[0] == 200
        assert len(uids) == (2 if os.geteuid() == 0 else len(uids))
    finally:
        assert [one.close() for one in fronts] == [0, 0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a user capabilities")
@pytest.mark.parametrize("kept", [(), ("--inh-caps=-all,+net_bind_service", "--ambient-caps=-all,+net_bind_service")])
def test_a_user_s_front_keeps_its_ids_and_no_capability(tmp_path, kept):
    """Also where a unit gives the service capabilities (AmbientCapabilities=), as the wrapper's own do here."""
    wrapper = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *kept)
    shown = subprocess.run([*wrapper, "cat", "/proc/self/status"], stdout=subprocess.PIPE, text=True, check=True)
    assert bool(int(re.search(r"^CapEff:\t(\w+)$", shown.stdout, re.M).group(1), 16)) == bool(kept)
    one = Front(BIN / "atoll-front", tmp_path, wrapper=wrapper)
    try:
        status = pathlib.Path(f"/proc/{one.process.pid}/status").read_text(encoding="ascii")
        assert "\nUid:\t65534\t65534\t65534\t65534\n" in status and not any(capabilities(one.process.pid)[:4]), status
        assert control(one, "GET", "/sandboxes/abc")[0] == 200
    finally:
        assert one.close() == 0


# The control plane.

def test_create_get_list_and_kill(front):
    status, _, made = control(front, "POST", "/v2/sandboxes", {"templateID": "base", "metadata": {"a": "b"}})
    assert status == 201 and made["sandboxID"] == "s1" and made["envdAccessToken"] and made["envdVersion"]
    assert front.wait_asked("CREATE")["timeout_ms"] == 300000
    status, _, seen = control(front, "GET", "/sandboxes/s1")
    assert status == 200 and seen["metadata"] == {"a": "b"} and seen["state"] == "running"
    assert seen["startedAt"] == "1970-01-01T00:00:01.000Z"
    assert {one["sandboxID"] for one in control(front, "GET", "/v2/sandboxes")[2]} == {"abc", "s1"}
    assert control(front, "DELETE", "/sandboxes/s1")[0] == 204
    status, _, error = control(front, "DELETE", "/sandboxes/s1")
    assert status == 404 and error["code"] == 404 and error["message"]


def test_pages_of_lists(front):
    front.sandboxes.update((f"x{at}", {}) for at in range(150))
    status, headers, first = control(front, "GET", "/v2/sandboxes?limit=100")
    assert status == 200 and len(first) == 64 and headers["x-next-token"] == "64"
    assert len(control(front, "GET", "/v2/sandboxes?nextToken=128")[2]) == 23
    assert control(front, "GET", "/v2/sandboxes?nextToken=128")[1]["x-next-token"] is None
    # Its clients know no pages.
    status, headers, every = control(front, "GET", "/sandboxes")
    assert len(every) == 151 and headers["x-next-token"] is None
    assert front.wait_asked("LIST")["states"] == ["running"]


def test_keys_are_asked_for(front):
    for key in ("e2b_01", "", "x" * 5000, "a\tb"):
        status, _, error = control(front, "GET", "/v2/sandboxes", key=key)
        assert (status, error["code"]) == (401, 401)


BAD_REQUESTS = [
    ("GET", "/nowhere", None, 404),
    ("PATCH", "/sandboxes/abc", None, 405),
    ("GET", "/sandboxes/..%2fetc", None, 404),
    ("GET", "/sandboxes/%00", None, 404),
    ("GET", "/sandboxes/ABC", None, 404),
    ("GET", "/v2/sandboxes?limit=0", None, 400),
    ("GET", "/v2/sandboxes?metadata=%ZZ", None, 400),
    ("POST", "/v2/sandboxes", "{", 400),
    ("POST", "/v2/sandboxes", '{"a":1,"a":2}', 400),
    ("POST", "/v2/sandboxes", "[" * 5000, 400),
    ("POST", "/v2/sandboxes", '{"timeout":-1}', 400),
    ("POST", "/v2/sandboxes", '{"templateID":"a\\nb"}', 400),
    ("POST", "/v2/sandboxes", '{"envVars":{"A=B":"c"}}', 400),
    ("POST", "/v2/sandboxes", '{"iam":{"tokens":{"a":1}}}', 501),
    ("POST", "/v2/sandboxes", "x" * (2 << 20), 413),
    ("POST", "/v2/sandboxes", '{"mcp":{"browserbase":{}}}', 501),
    ("POST", "/v2/sandboxes", '{"memoryMB":8192}', 501),
    ("POST", "/v2/sandboxes", '{"network":{"httpsPorts":[443]}}', 501),
    ("POST", "/v2/sandboxes", '{"network":{"egressProxy":{"address":"a:1"}}}', 501),
    ("POST", "/v2/sandboxes", '{"network":{"blockPorts":[25]}}', 501),
    ("POST", "/v2/sandboxes", '{"network":{"rules":{"a.test":[{"block":true}]}}}', 501),
    ("POST", "/v2/sandboxes", '{"network":{"rules":{"a.test":[{"transform":{"body":"x"}}]}}}', 501),
    ("POST", "/v2/sandboxes", '{"autoResume":{"enabled":true,"policy":"http"}}', 501),
    ("POST", "/sandboxes/abc/pause", '{"keep":true}', 501),
    ("POST", "/v2/templates", "{}", 501),
    ("POST", "/v3/templates", "{}", 400),
    ("POST", "/v3/templates", '{"name":1}', 400),
    ("POST", "/v2/templates/a/builds/b", '{"steps":[{"type":"RUN","args":[1]}]}', 400),
    ("POST", "/v2/templates/a/builds/b", '{"steps":[{"args":[]}]}', 400),
    ("POST", "/v2/templates/a/builds/b", '{"steps":[{"type":"RUN","args":["a"],"mount":"b"}]}', 501),
    ("POST", "/v2/templates/a/builds/b", '{"fromImageRegistry":{"type":"aws"}}', 501),
    ("PUT", "/templates/a/files/b", "x", 401),
    ("GET", "/v2/sandboxes", "a body", 413),
]


@pytest.mark.parametrize("method, path, body, expected", BAD_REQUESTS, ids=map(str, range(len(BAD_REQUESTS))))
def test_bad_requests_are_refused_by_name(front, method, path, body, expected):
    status, _, answer = request(front, method, path, body, {"X-API-KEY": "e2b_00"})
    error = json.loads(answer)
    assert (status, error["code"]) == (expected, expected) and error["message"]
    # The next one is served.
    assert control(front, "GET", "/sandboxes/abc")[0] == 200


@pytest.mark.parametrize("host, expected", [
    ("localhost", 200), ("127.0.0.1:1234", 200), ("[::1]", 200), ("evil.example", 403), ("localhost.evil.example", 403),
])
def test_names_that_are_not_ours_are_refused(front, host, expected):
    assert request(front, "GET", "/sandboxes/abc", headers={"X-API-KEY": "e2b_00", "Host": host})[0] == expected


@pytest.mark.parametrize("origin, expected", [
    ("http://localhost:5173", 200), ("https://evil.example", 403), ("null", 403), ("http://80-abc.localhost", 403),
    ("http://127.0.0.1:5173", 200), ("http://192.0.2.7:5173", 403),
])
def test_pages_of_other_origins_are_refused(front, origin, expected):
    status, headers, _ = request(front, "GET", "/sandboxes/abc", headers={"X-API-KEY": "e2b_00", "Origin": origin})
    assert status == expected
    assert headers["Access-Control-Allow-Origin"] == (origin if expected == 200 else None)


def test_what_other_pages_embed_is_refused_and_links_are_followed(front):
    """A browser names no origin with an image's request."""
    (pathlib.Path(front.place) / "a").write_text("bytes")
    for headers, expected in (({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
                              ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403),
                              ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
                              ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "no-cors"}, 200), ({}, 200)):
        status, got, _ = request(front, "GET", "/files?path=a&signature=v1_x", headers=headers)
        assert status == expected, headers
        assert expected != 200 or "sandbox" in got["Content-Security-Policy"]


def test_a_page_of_ours_may_ask_first(front):
    status, headers, _ = request(front, "OPTIONS", "/v2/sandboxes", headers={
        "Origin": "http://localhost:5173", "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "x-api-key"})
    assert status == 204 and headers["Access-Control-Allow-Headers"] == "x-api-key"


def test_a_path_of_a_sandbox_without_its_name_says_so(front):
    status, _, body = request(front, "GET", "/files?path=a")
    assert status == 404 and "49983-ID.DOMAIN" in json.loads(body)["message"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_signed_url_needs_no_name_of_a_sandbox(front, method):
    (pathlib.Path(front.place) / "a").write_text("bytes")
    where = "/files?path=a&signature=v1_x&signature_expiration=9999999999"
    status, _, body = request(front, method, where, b"bytes" if method == "POST" else None,
                              {"Content-Type": "application/octet-stream"})
    assert status == 200 and b"bytes" in body if method == "GET" else json.loads(body)[0]["path"] == "/a"
    asked = front.wait_asked("OPEN")
    assert "sandbox" not in asked and asked["signature"] == "v1_x" and asked["expires"] == 9999999999
    # Nothing else of a sandbox goes by a signature.
    status, _, body = request(front, "POST", "/filesystem.Filesystem/Stat?signature=v1_x", b"{}",
                              {"Content-Type": "application/json"})
    assert status == 404 and "49983-ID.DOMAIN" in json.loads(body)["message"]


# Processes.

def test_health_says_whether_the_sandbox_is_there(front):
    assert request(front, "GET", "/health", headers=connect.INSIDE)[0] == 204
    status, _, body = request(front, "GET", "/health", headers={**connect.INSIDE, "E2b-Sandbox-Id": "other"})
    assert status == 502 and json.loads(body)["sandboxId"] == "other"
    assert request(front, "GET", "/health", headers={"Host": "49983-abc.localhost"})[0] == 204


def test_a_command_and_its_output(front):
    root = {"Authorization": "Basic cm9vdDo="}
    with start(front, "sh", "-c", "echo out; echo err >&2; exit 3", headers=root) as stream:
        pid, output, end = outcome(stream)
    assert pid and output["stdout"] == b"out\n" and output["stderr"] == b"err\n"
    assert end == {"exitCode": 3, "exited": True, "status": "exit status 3", "error": "exit status 3"}
    assert front.wait_asked("EXEC")["user"] == "root"


def test_a_terminal(front):
    with start(front, "sh", "-c", "echo hi; test -t 0", pty={"size": {"cols": 90, "rows": 20}}) as stream:
        _, output, end = outcome(stream)
    assert output["pty"] == b"hi\r\n" and end["exitCode"] == 0
    assert front.wait_asked("EXEC")["columns"] == 90


def test_input_and_its_end(front):
    with start(front, "cat") as stream:
        events = iter(stream)
        pid = next(events)["start"]["pid"]
        selector = {"process": {"pid": pid}}
        # More than a pipe holds.
        data = os.urandom(300000)
        assert unary(front, "/process.Process/SendInput", {**selector, "input": {
            "stdin": base64.b64encode(data).decode()}}) == (200, {})
        assert unary(front, "/process.Process/SendInput", {**selector, "input": {"pty": "aGk="}})[0] == 400
        assert unary(front, "/process.Process/SendInput", {**selector, "input": {"stdin": "aGk="}},
                     **{"X-Access-Token": "other"})[0] == 401
        assert unary(front, "/process.Process/CloseStdin", selector) == (200, {})
        got = b""
        for event in events:
            got += base64.b64decode(event.get("data", {}).get("stdout", ""))
        assert got == data
    assert unary(front, "/process.Process/SendInput", {**selector, "input": {"stdin": "aGk="}})[0] == 404


def test_list_and_signals(front):
    with start(front, "sleep", "1000", tag="mine") as stream:
        pid = next(iter(stream))["start"]["pid"]
        status, listed = unary(front, "/process.Process/List", {})
        assert status == 200 and listed["processes"] == [
            {"config": {"cmd": "sleep", "args": ["1000"], "envs": {}}, "pid": pid, "tag": "mine"}]
        assert unary(front, "/process.Process/SendSignal", {"process": {"tag": "mine"}, "signal": 1})[0] == 501
        assert unary(front, "/process.Process/SendSignal", {"process": {"tag": "none"}, "signal": 9})[0] == 404
        assert unary(front, "/process.Process/SendSignal",
                     {"process": {"tag": "mine"}, "signal": "SIGNAL_SIGKILL"}) == (200, {})
        end = [event["end"] for event in stream if "end" in event]
        assert end == [{"exitCode": -1, "exited": False, "status": "signal: killed", "error": "signal: killed"}]


def test_two_clients_of_one_process(front):
    with start(front, "sh", "-c", "read x; echo $x") as one:
        pid = next(iter(one))["start"]["pid"]
        with Stream(front, "/process.Process/Connect", {"process": {"pid": pid}}) as other:
            assert next(iter(other))["start"]["pid"] == pid
            unary(front, "/process.Process/SendInput", {"process": {"pid": pid}, "input": {"stdin": "aGkK"}})
            for stream in (one, other):
                _, output, end = outcome(stream)
                assert output["stdout"] == b"hi\n" and end["exitCode"] == 0
    # It has ended; its end can be heard of still.
    with Stream(front, "/process.Process/Connect", {"process": {"pid": pid}}) as late:
        assert outcome(late)[2]["exitCode"] == 0


def test_a_client_that_goes_away_ends_nothing(front, tmp_path):
    stream = start(front, "sh", "-c", "while :; do echo x; [ -e go ] && break; sleep 0.02; done; touch done")
    assert next(iter(stream))["start"]
    before = fds(front)
    stream.close()
    until(lambda: fds(front) < before)
    (tmp_path / "go").touch()
    until((tmp_path / "done").exists)
    until(lambda: "ended" in front.commands[1])


def test_a_client_that_never_reads_holds_its_process_up(front, tmp_path):
    (tmp_path / "big").write_bytes(b"x" * (64 << 20))
    stream = start(front, "sh", "-c", "cat big; touch done")
    time.sleep(1)
    assert not (tmp_path / "done").exists()
    assert memory(front) < 32 << 20
    assert len(outcome(stream)[1]["stdout"]) == 64 << 20
    stream.close()
    until((tmp_path / "done").exists)


def test_of_several_the_slow_one_is_dropped(front, tmp_path):
    (tmp_path / "big").write_bytes(b"x" * (64 << 20))
    slow = start(front, "sh", "-c", "read x; cat big")
    pid = next(iter(slow))["start"]["pid"]
    with Stream(front, "/process.Process/Connect", {"process": {"pid": pid}}) as quick:
        events = iter(quick)
        next(events)
        unary(front, "/process.Process/SendInput", {"process": {"pid": pid}, "input": {"stdin": "Cg=="}})
        assert len(outcome(events)[1]["stdout"]) == 64 << 20
    for _ in slow:
        pass
    assert slow.error["code"] == "resource_exhausted"
    slow.close()


def memory(front):
    text = pathlib.Path(f"/proc/{front.process.pid}/status").read_text(encoding="ascii")
    return int(text.split("VmRSS:")[1].split()[0]) << 10


def test_signs_of_life_come_when_asked_for(front):
    with start(front, "sleep", "1000", headers={"Keepalive-Ping-Interval": "1"}) as stream:
        events = iter(stream)
        next(events)
        assert next(events) == {"keepalive": {}}
        assert next(events) == {"keepalive": {}}
        front.commands[1]["process"].kill()


def test_a_deadline_is_the_launchers(front):
    with start(front, "sleep", "1000", headers={"Connect-Timeout-Ms": "300"}) as stream:
        assert outcome(stream)[2] is None and stream.error["code"] == "deadline_exceeded"
    assert front.wait_asked("EXEC")["timeout_ms"] == 300


def test_what_is_left_behind_does_not_keep_the_stream(front):
    with start(front, "sh", "-c", "sleep 1000 & echo $!") as stream:
        _, output, end = outcome(stream)
    os.kill(int(output["stdout"]), 9)
    assert end["exitCode"] == 0


def test_a_sandbox_that_goes_cuts_its_streams(front):
    with start(front, "sleep", "1000") as stream:
        next(iter(stream))
        assert control(front, "DELETE", "/sandboxes/abc")[0] == 204
        with pytest.raises(Exception):
            next(iter(stream))
    assert unary(front, "/process.Process/List", {})[0] == 502
    front.commands[1]["process"].kill()


BAD_MESSAGES = [
    (b"", "invalid_argument"),
    (b"\0\0\0\0", "invalid_argument"),
    (b"\0\0\0\0\0", "invalid_argument"),
    (b"\0\xff\xff\xff\xff{}", "invalid_argument"),
    (b"\1\0\0\0\2{}", "unimplemented"),
    (b"\x80\0\0\0\2{}", "invalid_argument"),
    (b"\0\0\0\0\2{}trailing", "invalid_argument"),
    (b"\0\0\0\0\1{", "invalid_argument"),
    (connect.envelope(b'{"process":{"cmd":"no-such-program"}}'), "invalid_argument"),
    (connect.envelope(b'{"process":{"cmd":"a\\u0000b"}}'), "invalid_argument"),
    (connect.envelope(json.dumps({"process": {"cmd": "a", "args": ["x" * 60000]}}).encode()), "invalid_argument"),
]


@pytest.mark.parametrize("body, code", BAD_MESSAGES, ids=map(str, range(len(BAD_MESSAGES))))
def test_bad_messages_end_their_stream_alone(front, body, code):
    status, _, answer = request(front, "POST", "/process.Process/Start", body,
                                {**connect.INSIDE, "Content-Type": "application/connect+json"})
    assert status == 200 and answer[0] == 2
    assert json.loads(answer[5:])["error"]["code"] == code
    assert unary(front, "/process.Process/List", {})[0] == 200


def test_binary_messages_are_not_spoken(front):
    assert request(front, "POST", "/process.Process/Start", b"\0\0\0\0\0",
                   {**connect.INSIDE, "Content-Type": "application/connect+proto"})[0] == 415


# Hostile connections.

def test_heads_without_an_end(front):
    before = memory(front)
    link = raw(front, b"GET / HTTP/1.1\r\nHost: localhost\r\n")
    try:
        for _ in range(1000):
            link.sendall(b"X-Filler: " + b"x" * 100000 + b"\r\n")
    except OSError:
        pass
    link.close()
    assert memory(front) - before < 8 << 20
    assert control(front, "GET", "/sandboxes/abc")[0] == 200


def first_line(link):
    link.settimeout(20)
    try:
        return link.recv(4096).split(b"\r\n")[0]
    except OSError:
        return b""


@pytest.mark.parametrize("target", ["/sandboxes/" + "a" * 20000, "/sandboxes/" + "a" * 40000,
                                    "/v2/sandboxes?" + "&".join(["metadata=a%3Db"] * 900),
                                    "/v2/sandboxes?" + "&" * 10000], ids=["20k", "40k", "pairs", "marks"])
def test_a_target_that_is_too_long_is_refused_at_once(front, target):
    head = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: e2b_00\r\n\r\n"
    link = raw(front, head.encode())
    assert first_line(link) == b"HTTP/1.1 414 URI Too Long"
    link.close()
    # The control: what fits is read.
    assert control(front, "GET", "/sandboxes/" + "a" * 5000)[0] == 404
    assert control(front, "GET", "/v2/sandboxes?" + "&".join(["x=1"] * 200))[0] == 200


def test_who_has_no_key_starves_nobody(tmp_path):
    """More connections than there may be, without a request, with half a head, half a body, and a key that is none."""
    one = Front(BIN / "atoll-front", tmp_path, {"connections_max": 256})
    known = http.client.HTTPConnection("127.0.0.1", one.port, timeout=20)
    known.request("GET", "/sandboxes/abc", headers={"X-API-KEY": "e2b_00"})
    assert known.getresponse().read()
    halves = [b"", b"GET /sandboxes HTTP/1.1\r\nHost: ",
              b"POST /sandboxes HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: e2b_00\r\nContent-Length: 100\r\n\r\n{",
              b"GET /sandboxes HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: e2b_11\r\n\r\n"]
    strangers = []
    try:
        for at in range(600):
            strangers.append(raw(one, halves[at % len(halves)]))
            if at % 100 == 99:
                assert control(one, "GET", "/sandboxes/abc")[0] == 200
        assert fds(one) < 300
        # Who was let in before is still there, and the last of the strangers are, too.
        known.request("GET", "/sandboxes/abc", headers={"X-API-KEY": "e2b_00"})
        assert known.getresponse().status == 200
        strangers[-4].sendall(b"GET /sandboxes/abc HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: e2b_00\r\n\r\n")
        assert first_line(strangers[-4]) == b"HTTP/1.1 200 OK"
    finally:
        known.close()
        for link in strangers:
            link.close()
    assert one.close() == 0


def test_chunks_that_are_none(front):
    for chunk in (b"zz\r\n", b"-1\r\nx", b"ffffffffffffffffff\r\nx", b"5\r\nabc\r\n0\r\n\r\n"):
        link = raw(front, b"POST /v2/sandboxes HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: e2b_00\r\n"
                          b"Transfer-Encoding: chunked\r\n\r\n" + chunk)
        link.settimeout(2)
        try:
            assert b" 201 " not in link.recv(1000)
        except OSError:
            pass
        link.close()
    assert len(front.sandboxes) == 1
    assert control(front, "GET", "/sandboxes/abc")[0] == 200


def test_nothing_stays_of_connections_that_break_off(front):
    head = b"POST /process.Process/Start HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nabc"
    before = fds(front)
    for at in range(200):
        link = raw(front, head[:at])
        link.close()
    for _ in range(50):
        stream = start(front, "true")
        stream.close()
    until(lambda: fds(front) <= before)
    assert control(front, "GET", "/sandboxes/abc")[0] == 200


def test_a_launcher_that_breaks_the_protocol_ends_the_front(tmp_path):
    one = Front(BIN / "atoll-front", tmp_path)
    one.send(162, b"", {})
    assert one.process.wait(20) == 125
    one.close()


def scarce(tmp_path, room):
    """A front with as many descriptors as it has now, some of them inherited from us, and so many more."""
    one = Front(BIN / "atoll-front", tmp_path)
    most = fds(one) + room
    assert one.close() == 0
    return Front(BIN / "atoll-front", tmp_path, wrapper=("prlimit", f"--nofile={most}:{most}"))


def test_who_comes_when_no_descriptor_is_left_is_served_or_turned_away(tmp_path):
    """Commands have taken them all: nobody who connects then hangs, and once there are some again each is served."""
    one = scarce(tmp_path, 7 * 4 + 2)
    streams = [start(one, "sleep", "1000") for _ in range(7)]
    for stream in streams:
        next(iter(stream))
    head = b"GET /sandboxes/abc HTTP/1.1\r\nHost: localhost\r\nX-API-KEY: e2b_00\r\n\r\n"
    waiting = []
    for _ in range(12):
        link = raw(one, head, timeout=60)
        waiting.append(link)
    lines = []
    for link in waiting:
        try:
            lines.append(link.recv(4096).split(b"\r\n")[0])
        except ConnectionResetError:
            lines.append(b"")
    assert lines[0] == b"HTTP/1.1 200 OK" and set(lines) <= {b"", b"HTTP/1.1 200 OK"}, lines
    # Those that are served sit on what is left, and are no reason to let somebody hang.
    half = [raw(one, b"POST /v2/sandboxes HTTP/1.1\r\n", timeout=60) for _ in range(12)]
    # No connection ends but commands do, and give descriptors back.
    for command in one.commands.values():
        command["process"].kill()
    assert control(one, "GET", "/sandboxes/abc")[0] == 200
    for link in [*waiting, *half, *streams]:
        link.close()
    assert one.close() == 0


def test_descriptors_that_run_out_fail_one_call_alone(tmp_path):
    # Room for seven commands, the connection of another, and one of the descriptors that this one needs.
    one = scarce(tmp_path, 7 * 4 + 2)
    streams, failed = [], None
    while not failed and len(streams) < 20:
        stream = start(one, "sleep", "1000")
        streams.append(stream)
        try:
            next(iter(stream))
        except StopIteration:
            failed = stream.error
    assert failed["code"] == "unavailable"
    for stream in streams:
        stream.close()
    for command in one.commands.values():
        command["process"].kill()
    until(lambda: fds(one) < 20)
    with start(one, "echo", "hi") as stream:
        assert outcome(stream)[1]["stdout"] == b"hi\n"
    assert one.close() == 0
