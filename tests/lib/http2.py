# SPDX-License-Identifier: Apache-2.0
"""A client of HTTP/2 (RFC 9113) of a few lines, which runs inside a sandbox: python3 http2.py HOST PORT CA LINE...
With - for the CA it speaks plain text.

Lines: "open N PATH [SIZE]" sends a request on stream N, with a body of SIZE bytes as far as the windows let it go;
"status N" waits for its answer and prints its status; "sent N" prints how many bytes of its body have left; "reset N"
gives it up; "sleep S"; "gone" closes the connection."""
import socket
import ssl
import struct
import sys
import time

DATA, HEADERS, RST, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
STATUSES = {8: 200, 9: 204, 10: 206, 11: 304, 12: 400, 13: 404, 14: 500}


def literal(name, value):
    """A field without indexing and without Huffman coding; short ones alone."""
    assert len(name) < 127 and len(value) < 127
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


class Connection:
    def __init__(self, host, port, authority):
        self.host, self.port, self.scheme = host, port, "http" if authority == "-" else "https"
        self.socket = socket.create_connection((host, port), timeout=20)
        if authority != "-":
            context = ssl.create_default_context(cafile=authority)
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket, server_hostname=host)
            assert self.socket.selected_alpn_protocol() == "h2"
        self.window, self.initial, self.streams = 65535, 65535, {}
        self.left, self.windows, self.status, self.sent = {}, {}, {}, {}
        self.buffer = b""
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self.send(SETTINGS, 0, 0, b"")

    def send(self, kind, flags, stream, payload):
        self.socket.sendall(struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) +
                            payload)

    def open(self, stream, path, size=0):
        method = "POST" if size else "GET"
        block = b"".join(literal(name, value) for name, value in (
            (":method", method), (":scheme", self.scheme), (":authority", f"{self.host}:{self.port}"), (":path", path)))
        self.send(HEADERS, 4 | (0 if size else 1), stream, block)
        self.left[stream], self.sent[stream] = size, 0
        self.windows[stream] = self.initial
        self.pump()

    def pump(self):
        for stream, left in self.left.items():
            while left:
                size = min(left, self.window, self.windows[stream], 16384)
                if size <= 0:
                    break
                left -= size
                self.window -= size
                self.windows[stream] -= size
                self.sent[stream] += size
                self.send(DATA, 0 if left else 1, stream, b"x" * size)
            self.left[stream] = left

    def hear(self, timeout):
        """One frame, or None."""
        self.socket.settimeout(timeout)
        while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], "big"):
            try:
                got = self.socket.recv(65536)
            except (TimeoutError, ssl.SSLWantReadError):
                return None
            if not got:
                raise EOFError
            self.buffer += got
        size = int.from_bytes(self.buffer[:3], "big")
        kind, flags = self.buffer[3], self.buffer[4]
        stream = int.from_bytes(self.buffer[5:9], "big") & 0x7fffffff
        payload, self.buffer = self.buffer[9:9 + size], self.buffer[9 + size:]
        self.take(kind, flags, stream, payload)
        return kind

    def take(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & 1:
            for at in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[at:at + 6])
                if name == 4:
                    for other in self.windows:
                        self.windows[other] += value - self.initial
                    self.initial = value
            self.send(SETTINGS, 1, 0, b"")
        elif kind == PING and not flags & 1:
            self.send(PING, 1, 0, payload)
        elif kind == WINDOW:
            amount = int.from_bytes(payload, "big")
            if stream:
                self.windows[stream] = self.windows.get(stream, self.initial) + amount
            else:
                self.window += amount
        elif kind == HEADERS and stream not in self.status:
            self.status[stream] = self.read_status(payload)
        elif kind == RST:
            self.status.setdefault(stream, "reset")
        elif kind == DATA and payload:
            for which in (0, stream):
                self.send(WINDOW, 0, which, struct.pack(">I", len(payload)))
        self.pump()

    @staticmethod
    def read_status(block):
        """The first field of an answer is its status: from the table, or a literal with an indexed name."""
        while block[0] >> 5 == 1:
            block = block[1:]
        if block[0] & 0x80:
            return STATUSES.get(block[0] & 0x7f, block[0])
        size = block[1] & 0x7f
        if not block[1] & 0x80:
            return int(block[2:2 + size])
        bits = "".join(f"{byte:08b}" for byte in block[2:2 + size])
        codes = {"00000": "0", "00001": "1", "00010": "2", "011001": "3", "011010": "4", "011011": "5", "011100": "6",
                 "011101": "7", "011110": "8", "011111": "9"}
        digits = ""
        while len(digits) < 3:
            code = next(code for code in codes if bits.startswith(code))
            digits, bits = digits + codes[code], bits[len(code):]
        return int(digits)

    def settle(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.hear(max(until - time.monotonic(), 0.01))


def main(host, port, authority, *lines):
    connection = Connection(host, int(port), authority)
    connection.settle(0.3)
    for line in lines:
        verb, *words = line.split()
        if verb == "open":
            connection.open(int(words[0]), words[1], *map(int, words[2:]))
        elif verb == "status":
            while int(words[0]) not in connection.status:
                connection.hear(30)
            print(words[0], connection.status[int(words[0])], flush=True)
        elif verb == "sent":
            print(words[0], "sent", connection.sent[int(words[0])], flush=True)
        elif verb == "reset":
            connection.send(RST, 0, int(words[0]), struct.pack(">I", 8))
        elif verb == "sleep":
            connection.settle(float(words[0]))
        elif verb == "gone":
            connection.socket.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
