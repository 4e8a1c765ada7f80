"""Stands in for the model behind a client: it follows a script, one turn for each tool result so far.

Usage: scripted_model.py PORT_FILE SCRIPT LOG

A turn is a text, which ends the conversation, or a call {"name", "input"}. With "first", a command is run
before it. A result that says how to read on with read_cache is read to its end before the next turn.
The last tool result of every request is appended to LOG as one line of JSON.
"""

import json
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT_FILE, SCRIPT, LOG = sys.argv[1:4]
with open(SCRIPT) as script:
    TURNS = json.load(script)


def text_of(result):
    content = result["content"]
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)


def next_block(results):
    if results:
        on = re.search(r"read_cache (\{[^}]*\})", text_of(results[-1])[:1000])
        if on:
            name = "mcp__mcpproxy__read_cache"
            return {"type": "tool_use", "id": f"toolu_{len(results)}", "name": name, "input": json.loads(on[1])}
    pages = sum("[mcpproxy: characters " in text_of(result)[:100] for result in results)
    turn = TURNS[min(len(results) - pages, len(TURNS) - 1)]
    if isinstance(turn, str):
        return {"type": "text", "text": turn}
    if "first" in turn:
        subprocess.run(turn["first"], check=True, stdout=subprocess.DEVNULL)
    return {"type": "tool_use", "id": f"toolu_{len(results)}", "name": turn["name"], "input": turn["input"]}


def message(content, stop_reason):
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": content,
            "stop_reason": stop_reason, "stop_sequence": None, "usage": usage}


def events(block, stop_reason):
    if block["type"] == "text":
        empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        empty, delta = {**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    end = {"stop_reason": stop_reason, "stop_sequence": None}
    yield {"type": "message_start", "message": message([], None)}
    yield {"type": "content_block_start", "index": 0, "content_block": empty}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, text, kind="application/json"):
        body = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        self.answer("{}")

    do_HEAD = do_GET

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        if "count_tokens" in self.path or "messages" not in request:
            return self.answer('{"input_tokens": 1}')
        blocks = [block for message in request["messages"] if isinstance(message["content"], list)
                  for block in message["content"]]
        results = [block for block in blocks if block.get("type") == "tool_result"]
        # What the client asks on the side, such as for a title, has no tools.
        if request.get("tools"):
            with open(LOG, "a") as log:
                names = [tool["name"] for tool in request["tools"]]
                last = [{"text": text_of(it), "is_error": it.get("is_error", False)} for it in results[-1:]]
                log.write(json.dumps({"tools": names, "results": last}) + "\n")
            block = next_block(results)
        else:
            block = {"type": "text", "text": "ok"}
        stop_reason = "tool_use" if block["type"] == "tool_use" else "end_turn"
        if not request.get("stream"):
            return self.answer(json.dumps(message([block], stop_reason)))
        lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events(block, stop_reason))
        self.answer("".join(lines), "text/event-stream")


server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
with open(PORT_FILE, "w") as port_file:
    port_file.write(str(server.server_port))
server.serve_forever()
