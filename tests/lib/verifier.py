# SPDX-License-Identifier: Apache-2.0
"""An OpenAI-compatible endpoint on loopback, for the external verifier."""
import http.server
import json

import pytest
from gate import serve_beside


class Model(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.heard.append((self.headers.get("Authorization"), body))
        self.server.answer(self, json.loads(body["messages"][1]["content"]))

    def send(self, code, body):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def say(self, content):
        self.send(200, {"choices": [{"message": {"role": "assistant", "content": content}}]})


@pytest.fixture
def model():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.daemon_threads, server.heard = True, []
    server.url = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    serve_beside(server)
    yield server
    server.shutdown()
    server.server_close()
