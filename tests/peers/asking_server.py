#!/usr/bin/env python3
"""A server of 2025-11-25 on stdio, by hand and without an SDK, whose tool `folders` asks its client for its roots and answers
with all that it heard, as it came."""

import json
import sys

CARD = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "asking", "version": "1"}}
TOOLS = {"tools": [{"name": "folders", "inputSchema": {"type": "object"}}]}


def say(message: dict) -> None:
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


calls = []
for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            say({"id": message["id"], "result": CARD})
        case "tools/list":
            say({"id": message["id"], "result": TOOLS})
        case "tools/call":
            calls.append(message["id"])
            say({"id": f"roots-{message['id']}", "method": "roots/list"})
        case None if calls:
            heard = json.dumps(message.get("result", message.get("error")))
            say({"id": calls.pop(0), "result": {"content": [{"type": "text", "text": heard}]}})
        case method if method and "id" in message:
            say({"id": message["id"], "error": {"code": -32601, "message": "no"}})
