# SPDX-License-Identifier: Apache-2.0
"""A model server for tests: speaks as much of three APIs as agents need to write one file, and keeps what it was asked.

Whoever offers a tool that writes files or runs commands is told to use it once; whoever comes back with its result, or
offers none, is told a sentence. With a list of commands, the tool that runs commands is used once for each, in order.
"""
import json
import threading

from gate import Web

SENTENCE = "The file is written."


class Model:
    """HTTPS with a context of Certificates. The task: write `content` to `path`, or run `commands`."""

    def __init__(self, context, path, content, commands=None):
        self.web = Web(context)
        self.port, self.path, self.content, self.commands = self.web.port, str(path), content, commands
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

    def results(self, kind):
        """All requests that came back with a result of this kind, as text: what the agent tells of its commands."""
        with self.lock:
            said = [body.get("messages") or body.get("input") or body.get("contents") for _, _, body in self.seen]
        return [text for text in map(json.dumps, said) if f'"{kind}"' in text]

    def next_command(self, what, kind):
        """The first one of which no result is in what the agent says; None: there is no more."""
        done = json.dumps(what).count(f'"{kind}"')
        return self.commands[done] if done < len(self.commands) else None

    def command(self):
        return f"cat >{self.path} <<'END'\n{self.content}END"

    # --- Anthropic: messages. ---

    def messages(self, body):
        names = {tool.get("name") for tool in body.get("tools", [])}
        is_back = "tool_result" in json.dumps(body.get("messages", [])[-1:])
        name, field = next(((name, field) for name, field in (("Write", "file_path"), ("write", "filePath"))
                            if name in names), (None, None))
        shell = next((name for name in ("Bash", "bash") if name in names), None)
        command = self.next_command(body.get("messages"), "tool_result") if self.commands and shell else None
        if command:
            block = {"type": "tool_use", "id": f"toolu_{self.commands.index(command)}", "name": shell,
                     "input": {"command": command, "description": "Runs it"}}
        elif name and not is_back and not self.commands:
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
        is_back = "function_call_output" in json.dumps(body.get("input", []))
        command = self.command() if not is_back else None
        if self.commands:
            command = self.next_command(body.get("input"), "function_call_output")
        arguments = {"shell": {"command": ["bash", "-c", command]}, "local_shell": None,
                     "shell_command": {"command": command}, "exec_command": {"cmd": command, "yield_time_ms": 20000}}
        name = next((tool.get("name") for tool in body.get("tools", []) if arguments.get(tool.get("name"))), None)
        if name and command:
            number = self.commands.index(command) if self.commands else 1
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": name,
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
        command = self.next_command(body.get("contents"), "functionResponse") if self.commands else None
        if command and "run_shell_command" in declared:
            part = {"functionCall": {"name": "run_shell_command", "args": {"command": command, "description": "Runs"}}}
        elif "write_file" in declared and not is_back and not self.commands:
            part = {"functionCall": {"name": "write_file", "args": {"file_path": self.path, "content": self.content}}}
        answer = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
                  "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}}
        return [(None, answer)]
