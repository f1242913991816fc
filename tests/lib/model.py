# SPDX-License-Identifier: Apache-2.0
"""A model server for tests: speaks as much of three APIs as agents need to write one file, and keeps what it was asked.

Whoever offers a tool that writes files or runs commands is told to use it once; whoever comes back with its result, or
offers none, is told a sentence.
"""
import json
import threading

from gate import Web

SENTENCE = "The file is written."


class Model:
    """HTTPS with a context of Certificates. The task: write `content` to `path`."""

    def __init__(self, context, path, content):
        self.web = Web(context)
        self.port, self.path, self.content = self.web.port, str(path), content
        self.seen, self.lock = [], threading.Lock()
        model, base = self, self.web.server.RequestHandlerClass

        class Handler(base):
            def do_GET(self):
                self.answer({"data": [], "models": []})

            def do_POST(self):
                body = json.loads(self.read_body() or b"{}")
                with model.lock:
                    model.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
                for part, handle in (("count_tokens", lambda _: {"input_tokens": 10, "totalTokens": 10}),
                                     ("/messages", model.messages), ("/responses", model.responses),
                                     ("enerateContent", model.generate)):
                    if part in self.path:
                        self.answer(handle(body))
                        return
                self.answer({})

            def read_body(self):
                if "Transfer-Encoding" not in self.headers:
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = b""
                while size := int(self.rfile.readline() or b"0", 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def answer(self, what):
                """A list is a stream of (event, data)."""
                is_stream = isinstance(what, list)
                body = json.dumps(what).encode()
                if is_stream:
                    body = "".join((f"event: {event}\n" if event else "") + f"data: {json.dumps(data)}\n\n"
                                   for event, data in what).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream" if is_stream else "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.web.server.RequestHandlerClass = Handler

    def close(self):
        self.web.close()

    def command(self):
        return f"cat >{self.path} <<'END'\n{self.content}END"

    # --- Anthropic: messages. ---

    def messages(self, body):
        names = {tool.get("name") for tool in body.get("tools", [])}
        is_back = "tool_result" in json.dumps(body.get("messages", [])[-1:])
        name, field = next(((name, field) for name, field in (("Write", "file_path"), ("write", "filePath"))
                            if name in names), (None, None))
        if name and not is_back:
            block = {"type": "tool_use", "id": "toolu_1", "name": name,
                     "input": {field: self.path, "content": self.content}}
        else:
            block = {"type": "text", "text": SENTENCE}
        stop = "tool_use" if block["type"] == "tool_use" else "end_turn"
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", "model"),
                   "content": [block], "stop_reason": stop, "stop_sequence": None,
                   "usage": {"input_tokens": 10, "output_tokens": 10}}
        if not body.get("stream"):
            return message
        if block["type"] == "text":
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": SENTENCE}
        else:
            start, delta = {**block, "input": {}}, {"type": "input_json_delta",
                                                    "partial_json": json.dumps(block["input"])}
        events = [{"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
                  {"type": "content_block_start", "index": 0, "content_block": start},
                  {"type": "content_block_delta", "index": 0, "delta": delta},
                  {"type": "content_block_stop", "index": 0},
                  {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None},
                   "usage": {"output_tokens": 10}},
                  {"type": "message_stop"}]
        return [(event["type"], event) for event in events]

    # --- OpenAI: responses. ---

    def responses(self, body):
        arguments = {"shell": {"command": ["bash", "-c", self.command()]}, "local_shell": None,
                     "shell_command": {"command": self.command()}, "exec_command": {"cmd": self.command()}}
        name = next((tool.get("name") for tool in body.get("tools", []) if arguments.get(tool.get("name"))), None)
        is_back = "function_call_output" in json.dumps(body.get("input", []))
        if name and not is_back:
            item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name,
                    "arguments": json.dumps(arguments[name])}
        else:
            item = {"type": "message", "id": "msg_1", "role": "assistant",
                    "content": [{"type": "output_text", "text": SENTENCE}]}
        usage = {"input_tokens": 10, "input_tokens_details": None, "output_tokens": 10, "output_tokens_details": None,
                 "total_tokens": 20}
        events = [{"type": "response.created", "response": {"id": "resp_1"}},
                  {"type": "response.output_item.done", "output_index": 0, "item": item},
                  {"type": "response.completed", "response": {"id": "resp_1", "usage": usage, "output": [item]}}]
        return [(event["type"], event) for event in events]

    # --- Gemini: generateContent, streamed or not. ---

    def generate(self, body):
        declared = json.dumps(body.get("tools", []))
        is_back = "functionResponse" in json.dumps(body.get("contents", [])[-1:])
        part = {"text": SENTENCE}
        if "write_file" in declared and not is_back:
            part = {"functionCall": {"name": "write_file", "args": {"file_path": self.path, "content": self.content}}}
        answer = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                  "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}}
        return [(None, answer)]
