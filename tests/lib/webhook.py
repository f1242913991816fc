# SPDX-License-Identifier: Apache-2.0
"""A webhook on loopback that answers as a test says, and what it was told."""
import hashlib
import hmac
import http.server
import json

from gate import serve_beside

KEY = b"a key of more than sixteen bytes"


def sign(*parts):
    return hmac.new(KEY, b".".join(parts), hashlib.sha256).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        hook = self.server.hook
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.request_signature = self.headers.get("Atoll-Signature", "")
        told = json.loads(body)
        hook.told.append(told)
        hook.signatures.append((self.request_signature, body))
        hook.paths.append(self.path)
        hook.answer(self, told)

    def send(self, code, body=b"", headers=(), signed=True):
        """An answer, signed over the request's signature as the format wants it."""
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        if signed and self.request_signature:
            mark = self.request_signature.partition("v1=")[2].encode()
            self.send_header("Atoll-Signature", "v1=" + sign(mark, body))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Webhook:
    """answer(handler, told) answers each request; told has what was posted."""

    def __init__(self, answer=None, context=None):
        self.answer = answer or (lambda handler, told: handler.send(202))
        self.told, self.signatures, self.paths = [], [], []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.hook = self
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        self.url = f"{'https' if context else 'http'}://127.0.0.1:{self.port}/hook"
        serve_beside(self.server)

    def questions(self):
        return [told for told in self.told if told["event"] == "question"]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def answer_to(told, answer="allow", **more):
    return {"question": told["question"], "hash": told["hash"], "answer": answer, **more}
