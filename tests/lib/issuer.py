# SPDX-License-Identifier: Apache-2.0
"""An issuer of log-ins for tests: as much of OAuth, with PKCE or a device code, as codex and Claude Code ask of
theirs.

It believes everybody, and keeps what it was asked. A test is the browser.
"""
import base64
import hashlib
import json
import threading
import urllib.parse

from gate import Web

ACCOUNT = "acct-atolltest"
PROFILE = {"account": {"uuid": ACCOUNT, "email": "user@example.org", "email_address": "user@example.org",
                       "full_name": "User", "display_name": "User", "has_claude_max": True, "has_claude_pro": False},
           "organization": {"uuid": "org-atolltest", "name": "Organization", "organization_type": "claude_max",
                            "rate_limit_tier": "default_claude_max_5x"}}


def token(claims):
    def part(what):
        return base64.urlsafe_b64encode(json.dumps(what).encode()).rstrip(b"=").decode()
    return f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims)}.{part('signature')}"


class Issuer:
    """HTTPS with a context of Certificates, at address:port (0: any)."""

    def __init__(self, context, address="127.0.0.1", port=0):
        self.seen, self.challenges, self.polls = [], {}, 0
        self.lock = threading.Lock()
        issuer = self
        self.web = Web(context, address=address, port=port)
        base = self.web.server.RequestHandlerClass

        class Handler(base):
            def do_GET(self):
                with issuer.lock:
                    issuer.seen.append((self.path, {}))
                self.say(200, PROFILE)

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                form = json.loads(body) if body.startswith("{") else dict(urllib.parse.parse_qsl(body))
                with issuer.lock:
                    issuer.seen.append((self.path, form))
                    status, answer = issuer.answer(self.path, form)
                self.say(status, answer)

            def say(self, status, answer):
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.web.server.RequestHandlerClass = Handler
        self.port = self.web.port

    def close(self):
        self.web.close()

    def answer(self, path, form):
        if path.endswith("/deviceauth/usercode"):
            return 200, {"device_auth_id": "device-1", "user_code": "ABCD-12345", "interval": "1"}
        if path.endswith("/deviceauth/token"):
            self.polls += 1
            verifier = "v" * 43
            return (404, {}) if self.polls < 2 else (200, {
                "authorization_code": "code-1", "code_verifier": verifier, "code_challenge": challenge_of(verifier)})
        if form.get("grant_type") == "authorization_code":
            claims = {"email": "user@example.org", "exp": 4102444800,
                      "https://api.openai.com/auth": {"chatgpt_plan_type": "pro", "chatgpt_account_id": ACCOUNT}}
            return 200, {"id_token": token(claims), "access_token": token(claims), "refresh_token": "refresh-atolltest",
                         "expires_in": 3600, "token_type": "Bearer", "scope": "user:inference user:profile", **PROFILE}
        return 400, {"error": "unsupported_grant_type"}

    def exchanged(self):
        return [form for _, form in self.seen if form.get("grant_type") == "authorization_code"]


def challenge_of(verifier):
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
