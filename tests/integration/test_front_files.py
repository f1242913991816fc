# SPDX-License-Identifier: Apache-2.0
"""Files through atoll-front: up, down, listed and watched, at constant memory, and what is wrong with them."""
import gzip
import json
import os
import pathlib
import subprocess
import tempfile
import threading
import time

import pytest

import connect
from connect import INSIDE, Stream, raw, request, unary
from front import CHANGED, GONE, LOST, TOKEN, Front

BIN = pathlib.Path(os.environ.get("ATOLL_BIN", pathlib.Path(__file__).resolve().parents[2] / "build" / "bin"))
OCTETS = {**INSIDE, "Content-Type": "application/octet-stream"}


@pytest.fixture
def front():
    # Attributes are wanted, which a file system in memory may not have.
    with tempfile.TemporaryDirectory(prefix="atoll-front-", dir="/var/tmp") as place:
        one = Front(BIN / "atoll-front", place)
        one.files = pathlib.Path(place)
        yield one
        assert one.close() == 0


def memory(front):
    text = pathlib.Path(f"/proc/{front.process.pid}/status").read_text(encoding="ascii")
    return int(text.split("VmRSS:")[1].split()[0]) << 10


def fds(front):
    return len(os.listdir(f"/proc/{front.process.pid}/fd"))


def until(condition, patience_s=20):
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def multipart(*parts, boundary="XY"):
    body = b""
    for name, data in parts:
        body += (f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
                 "Content-Type: application/octet-stream\r\n\r\n").encode() + data + b"\r\n"
    return body + f"--{boundary}--\r\n".encode()


FORM = {**INSIDE, "Content-Type": "multipart/form-data; boundary=XY"}


def upload(front, path, body, headers=None):
    where = "/files" if path is None else f"/files?path={path}"
    status, _, answer = request(front, "POST", where, body, headers or OCTETS)
    return status, json.loads(answer)


def download(front, path, **headers):
    return request(front, "GET", f"/files?path={path}", headers={**INSIDE, **headers})


@pytest.mark.parametrize("body", [b"", b"hello", b"x" * 3000000])
@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_file_up_and_down(front, body, is_chunked):
    pieces = (body[at:at + 70000] for at in range(0, len(body), 70000)) if is_chunked else body
    assert upload(front, "new/dir/a%20b", pieces) == (200, [{"path": "/new/dir/a b", "name": "a b", "type": "file"}])
    assert (front.files / "new/dir/a b").read_bytes() == body
    status, headers, got = download(front, "new/dir/a%20b")
    assert (status, got) == (200, body) and headers["Content-Length"] == str(len(body))
    assert headers["Content-Disposition"] == "inline" and headers["X-Content-Type-Options"] == "nosniff"


def test_several_files_in_one_form(front):
    parts = [(f"d/{at}", os.urandom(at * 1000)) for at in range(40)]
    status, made = upload(front, None, multipart(*parts), FORM)
    assert status == 200 and [one["path"] for one in made] == [f"/d/{at}" for at in range(40)]
    for name, data in parts:
        assert (front.files / name).read_bytes() == data


def test_the_query_names_the_one_file_of_a_form(front):
    assert upload(front, "here", multipart(("there", b"x")), FORM)[0] == 200
    assert (front.files / "here").read_bytes() == b"x" and not (front.files / "there").exists()


BAD_UPLOADS = [
    (FORM, multipart(("a", b"1"), ("a", b"2")), None, 400),
    (FORM, multipart(("a", b"1"), ("b", b"2")), "c", 400),
    (FORM, multipart(("a", b"1"))[:-8], None, 400),
    (FORM, b"nonsense", None, 400),
    (FORM, multipart(("", b"1")), None, 400),
    (FORM, b'--XY\r\nX: ' + b"y" * 100000, None, 400),
    (OCTETS, b"x", None, 400),
    (OCTETS, b"x", "%00", 400),
    (OCTETS, b"x", "x" * 5000, 400),
    ({**OCTETS, "Content-Encoding": "br"}, b"x", "a", 415),
    ({**OCTETS, "Content-Encoding": "gzip"}, b"no gzip at all", "a", 400),
    ({**OCTETS, "Content-Encoding": "gzip"}, gzip.compress(b"x" * 1000)[:-9], "a", 400),
    ({**INSIDE, "Content-Type": "text/plain"}, b"x", "a", 415),
    ({**OCTETS, "X-Access-Token": "other"}, b"x", "a", 401),
    ({**OCTETS, "X-Metadata-k": "v" * 5000}, b"x", "a", 400),
    (OCTETS, b"x", ".", 400),
]


@pytest.mark.parametrize("headers, body, path, expected", BAD_UPLOADS, ids=map(str, range(len(BAD_UPLOADS))))
def test_bad_uploads_are_refused_by_name(front, headers, body, path, expected):
    before = fds(front)
    status, error = upload(front, path, body, headers)
    assert (status, error["code"]) == (expected, expected) and error["message"]
    until(lambda: fds(front) <= before)
    assert upload(front, "good", b"x")[0] == 200


def test_gzip_both_ways(front):
    body = b"".join(b"%d\n" % at for at in range(500000))
    assert upload(front, "a", gzip.compress(body), {**OCTETS, "Content-Encoding": "gzip"})[0] == 200
    assert (front.files / "a").read_bytes() == body
    parts = multipart(*((f"m/{at}", body[:at * 50000]) for at in range(20)))
    assert upload(front, None, gzip.compress(parts), {**FORM, "Content-Encoding": "gzip"})[0] == 200
    assert (front.files / "m/19").read_bytes() == body[:950000]
    status, headers, got = download(front, "a", **{"Accept-Encoding": "gzip"})
    assert status == 200 and headers["Content-Encoding"] == "gzip" and gzip.decompress(got) == body
    # What fetch() says by itself is no wish.
    assert download(front, "a", **{"Accept-Encoding": "gzip, deflate"})[1]["Content-Encoding"] is None
    assert download(front, "a", **{"Accept-Encoding": "br, identity;q=0"})[0] == 406


def test_metadata_are_replaced_as_a_whole(front):
    assert upload(front, "a", b"x", {**OCTETS, "X-Metadata-One": "1", "X-Metadata-two": "2"})[1][0]["metadata"] == {
        "one": "1", "two": "2"}
    entry = unary(front, "/filesystem.Filesystem/Stat", {"path": "a"})[1]["entry"]
    assert entry["metadata"] == {"one": "1", "two": "2"}
    assert "metadata" not in upload(front, "a", b"x")[1][0]
    assert "metadata" not in unary(front, "/filesystem.Filesystem/Stat", {"path": "a"})[1]["entry"]


@pytest.mark.parametrize("asked, status, said, got", [
    ("bytes=2-4", 206, "bytes 2-4/10", b"234"), ("bytes=7-", 206, "bytes 7-9/10", b"789"),
    ("bytes=-3", 206, "bytes 7-9/10", b"789"), ("bytes=0-99", 206, "bytes 0-9/10", b"0123456789"),
    ("bytes=10-", 416, "bytes */10", b""), ("bytes=-0", 416, "bytes */10", b""),
    ("bytes=4-2", 200, None, b"0123456789"), ("lines=1-2", 200, None, b"0123456789"),
    ("bytes=0-1,3-4", 200, None, b"0123456789"), ("bytes=99999999999999999999-", 200, None, b"0123456789"),
])
def test_a_range(front, asked, status, said, got):
    (front.files / "a").write_bytes(b"0123456789")
    answer = download(front, "a", Range=asked)
    assert (answer[0], answer[1]["Content-Range"], answer[2]) == (status, said, got)


def test_what_did_not_change_is_not_sent_again(front):
    (front.files / "a").write_bytes(b"x")
    date = download(front, "a")[1]["Last-Modified"]
    assert download(front, "a", **{"If-Modified-Since": date})[0] == 304


def test_signed_urls_are_judged_by_the_launcher(front):
    (front.files / "a b").write_bytes(b"x")
    headers = {"Host": "49983-abc.localhost"}
    query = "/files?path=a+b&username=me&signature=v1_abc&signature_expiration=99"
    assert request(front, "GET", query, headers=headers)[0] == 200
    asked = front.wait_asked("OPEN")
    assert (asked["signature"], asked["signed"], asked["signed_user"], asked["expires"]) == ("v1_abc", "a b", "me", 99)
    assert asked["user"] == "me" and "token" not in asked
    assert request(front, "GET", "/files?path=a+b", headers=headers)[0] == 401
    # A token that is there counts, and it alone.
    assert request(front, "GET", query, headers={**headers, "X-Access-Token": "wrong"})[0] == 401 or \
        "signature" not in front.wait_asked("OPEN")
    assert request(front, "GET", "/files?path=a&signature=v1_a&signature_expiration=x", headers=headers)[0] == 401


def test_a_full_disk(front, monkeypatch):
    def full(fields):
        from front import Fd
        return 200, {"file": Fd(os.open("/dev/full", os.O_WRONLY)), "path": "/a", "name": "a"}
    monkeypatch.setattr(front, "do_open", full)
    status, error = upload(front, "a", b"x" * 1000000)
    assert (status, error["code"]) == (507, 507) and "space" in error["message"]


def test_a_large_file_takes_no_memory(front):
    size, block = 400 << 20, b"x" * (1 << 20)
    before = memory(front)
    assert upload(front, "big", (block for _ in range(size >> 20)))[0] == 200
    assert (front.files / "big").stat().st_size == size
    status, _, got = download(front, "big")
    assert status == 200 and len(got) == size
    assert memory(front) - before < 4 << 20


@pytest.mark.needs("strace")
def test_a_file_goes_down_by_sendfile(front):
    """And not by reads and writes of 4 KiB each, which take twice the time."""
    (front.files / "large").write_bytes(b"x" * (8 << 20))
    with subprocess.Popen(["strace", "-p", str(front.process.pid), "-e", "trace=sendfile,sendfile64,pread64,read"],
                          stderr=subprocess.PIPE, text=True) as tracer:
        assert "attached" in tracer.stderr.readline()
        status, _, got = download(front, "large")
        assert status == 200 and got == b"x" * (8 << 20)
        tracer.terminate()
        _, calls = tracer.communicate(timeout=60)
    assert "sendfile" in calls and calls.count("read") < 20, calls[:1000]


def test_an_upload_that_breaks_off_leaves_nothing_open(front):
    before = fds(front)
    for _ in range(20):
        link = raw(front, b"POST /files?path=a HTTP/1.1\r\nHost: localhost\r\nE2b-Sandbox-Id: abc\r\n"
                          b"E2b-Sandbox-Port: 49983\r\nX-Access-Token: token\r\n"
                          b"Content-Type: application/octet-stream\r\nContent-Length: 100000\r\n\r\n" + b"x" * 1000)
        front.wait_asked("OPEN")
        link.close()
    until(lambda: fds(front) <= before)


# filesystem.Filesystem

def test_calls_about_files(front):
    call = "/filesystem.Filesystem/"
    status, made = unary(front, call + "MakeDir", {"path": "d"})
    assert status == 200 and made["entry"]["type"] == "FILE_TYPE_DIRECTORY" and made["entry"]["name"] == "d"
    status, error = unary(front, call + "MakeDir", {"path": "d"})
    assert (status, error["code"]) == (409, "already_exists")
    (front.files / "d" / "f").write_bytes(b"12345")
    status, entry = unary(front, call + "Stat", {"path": "d/f"}, Authorization="Basic cm9vdDo=")
    assert entry["entry"]["size"] == "5" and entry["entry"]["permissions"] == "-rw-r--r--"
    assert front.wait_asked("STAT")["user"] == "root"
    status, moved = unary(front, call + "Move", {"source": "d/f", "destination": "d/g"})
    assert moved["entry"]["path"] == "/d/g"
    os.symlink("g", front.files / "d" / "link")
    status, listed = unary(front, call + "ListDir", {"path": "d"})
    assert [(one["name"], one["type"]) for one in listed["entries"]] == [
        ("g", "FILE_TYPE_FILE"), ("link", "FILE_TYPE_SYMLINK")]
    assert listed["entries"][1]["symlinkTarget"] == "g"
    assert unary(front, call + "Remove", {"path": "d"}) == (200, {})
    status, error = unary(front, call + "Stat", {"path": "d"})
    assert (status, error["code"]) == (404, "not_found")
    assert unary(front, call + "Stat", {"path": 1})[0] == 400
    assert unary(front, call + "Stat", {"path": "x" * 5000})[0] == 400
    assert unary(front, call + "ListDir", {"path": "d", "depth": -1})[0] == 400


def test_a_directory_comes_whole(front):
    (front.files / "d").mkdir()
    for at in reversed(range(1000)):
        (front.files / "d" / f"{at:04}").touch()
    listed = unary(front, "/filesystem.Filesystem/ListDir", {"path": "d"})[1]
    assert [one["name"] for one in listed["entries"]] == [f"{at:04}" for at in range(1000)]


def tell_change(front, below="f", **more):
    front.tell(CHANGED, sandbox="abc", watch=1, change=1, below=below, **more)


def test_a_stream_of_changes(front):
    with Stream(front, "/filesystem.Filesystem/WatchDir", {"path": ".", "recursive": True, "includeEntry": True},
                **{"Keepalive-Ping-Interval": "1"}) as stream:
        events = iter(stream)
        assert next(events) == {"start": {}}
        assert front.wait_asked("WATCH")["recursive"] == 1
        tell_change(front, "d/f")
        assert next(events) == {"filesystem": {"name": "d/f", "type": "EVENT_TYPE_CREATE"}}
        tell_change(front, "d/g", path="d/g", name="g", type=1, size=3, mode=0o644)
        entry = next(events)["filesystem"]["entry"]
        assert (entry["size"], entry["path"]) == ("3", "/watched/d/g")
        assert next(events) == {"keepalive": {}}
    assert front.wait_asked("UNWATCH")["watch"] == 1


def test_changes_that_were_lost_end_the_stream(front):
    with Stream(front, "/filesystem.Filesystem/WatchDir", {"path": "."}) as stream:
        next(iter(stream))
        front.tell(LOST, sandbox="abc", watch=1)
        assert not list(stream) and stream.error["code"] == "data_loss"


def test_a_watch_of_nothing(front):
    with Stream(front, "/filesystem.Filesystem/WatchDir", {"path": "none"}) as stream:
        assert not list(stream) and stream.error["code"] == "not_found"


def test_a_watcher_that_is_asked(front):
    call = "/filesystem.Filesystem/"
    name = unary(front, call + "CreateWatcher", {"path": "."})[1]["watcherId"]
    assert unary(front, call + "GetWatcherEvents", {"watcherId": name}) == (200, {"events": []})
    tell_change(front, "a")
    tell_change(front, "b")
    end = time.monotonic() + 20
    seen = []
    while len(seen) < 2 and time.monotonic() < end:
        seen += unary(front, call + "GetWatcherEvents", {"watcherId": name})[1]["events"]
    assert [one["name"] for one in seen] == ["a", "b"]
    assert unary(front, call + "GetWatcherEvents", {"watcherId": name}, **{"X-Access-Token": "other"})[0] == 404
    assert unary(front, call + "RemoveWatcher", {"watcherId": name}) == (200, {})
    assert front.wait_asked("UNWATCH")["token"] == TOKEN
    assert unary(front, call + "GetWatcherEvents", {"watcherId": name})[0] == 404


def test_a_watcher_that_nobody_asks_is_bounded(front):
    call = "/filesystem.Filesystem/"
    name = unary(front, call + "CreateWatcher", {"path": "."})[1]["watcherId"]
    before = memory(front)
    for _ in range(20000):
        tell_change(front, "x" * 200)
    status, error = unary(front, call + "GetWatcherEvents", {"watcherId": name})
    assert error["code"] == "data_loss" and memory(front) - before < 4 << 20
    # What was under way still comes.
    until(lambda: unary(front, call + "GetWatcherEvents", {"watcherId": name}) == (200, {"events": []}))


def test_a_sandbox_that_goes_takes_its_watches_along(front):
    with Stream(front, "/filesystem.Filesystem/WatchDir", {"path": "."}) as stream:
        next(iter(stream))
        front.tell(GONE, sandbox="abc", ended="killed")
        with pytest.raises(Exception):
            next(iter(stream))


def test_many_at_once(front):
    """Uploads, downloads and lists beside one another, and nothing of them stays."""
    before, failed = fds(front), []

    def work(number):
        for at in range(10):
            data = os.urandom(50000 + number)
            path = f"w/{number}/{at}"
            if upload(front, path, data)[0] != 200 or download(front, path)[2] != data:
                failed.append(path)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    until(lambda: fds(front) <= before)


def test_the_client_is_written_down(front):
    download(front, "a")
    assert front.wait_asked("OPEN")["client"] == "127.0.0.1"
    assert connect.control(front, "GET", "/sandboxes/abc")[0] == 200
