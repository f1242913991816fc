# SPDX-License-Identifier: Apache-2.0
"""A client of the Connect protocol (JSON codec) and of plain HTTP, which can also do what no client should."""
import base64
import http.client
import json
import socket
import struct

from front import KEY, TOKEN

INSIDE = {"E2b-Sandbox-Id": "abc", "E2b-Sandbox-Port": "49983", "X-Access-Token": TOKEN}


def request(front, method, path, body=None, headers=None, timeout=20):
    """One request on a connection of its own: status, headers, bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=timeout)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def control(front, method, path, body=None, key=KEY):
    data = None if body is None else json.dumps(body)
    status, headers, answer = request(front, method, path, data, {"X-API-KEY": key})
    return status, headers, json.loads(answer) if answer else None


def unary(front, call, message, **headers):
    status, _, answer = request(front, "POST", call, json.dumps(message),
                                {**INSIDE, "Content-Type": "application/json", **headers})
    return status, json.loads(answer)


def envelope(payload, flags=0):
    return struct.pack(">BI", flags, len(payload)) + payload


def raw(front, data, timeout=20):
    """A socket on which these bytes were sent."""
    link = socket.create_connection(("127.0.0.1", front.port), timeout=timeout)
    link.sendall(data)
    return link


class Stream:
    """A call with a stream as its answer; iterates over messages until the end, which is in `error`."""

    def __init__(self, front, call, message, **headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=20)
        self.connection.request("POST", call, envelope(json.dumps(message).encode()),
                                {**INSIDE, "Content-Type": "application/connect+json", **headers})
        self.answer = self.connection.getresponse()
        self.error = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        # An answer that is not at its end holds the socket open.
        self.answer.close()
        self.connection.close()

    def read(self, size):
        data = self.answer.read(size)
        if len(data) != size:
            raise EOFError
        return data

    def __iter__(self):
        assert self.answer.status == 200, (self.answer.status, self.answer.read())
        while True:
            flags, size = struct.unpack(">BI", self.read(5))
            message = json.loads(self.read(size))
            if flags & 2:
                self.error = message.get("error")
                assert self.answer.read() == b""
                return
            yield message.get("event", message)


def start(front, *argv, **more):
    headers = more.pop("headers", {})
    message = {"process": {"cmd": argv[0], "args": list(argv[1:])}, **more}
    return Stream(front, "/process.Process/Start", message, **headers)


def outcome(stream):
    """What a stream of a process came to: its pid, its output by stream, and its end."""
    pid, output, end = None, {"stdout": bytearray(), "stderr": bytearray(), "pty": bytearray()}, None
    for event in stream:
        if "start" in event:
            pid = event["start"]["pid"]
        for name, data in event.get("data", {}).items():
            output[name] += base64.b64decode(data)
        end = event.get("end", end)
    return pid, output, end
