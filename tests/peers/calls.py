#!/usr/bin/env python3
"""A client of ours that we did not write: the official Python SDK. It calls what it is told, within one session: each line of
its input is {"tool": NAME, "arguments": {…}}, and each line of its output the result. It ends with its input.

    calls.py URL | COMMAND ARG…         environment: TOKEN (bearer), MODE (auto, legacy or a version such as 2026-07-28),
                                        NAME (what the client calls itself), ANSWER (a JSON object: what every form is
                                        filled in with; without it the client fills in no forms)
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client  # the SDK's own timeouts; it exports no public name for them
from mcp_types import ElicitResult, Implementation


async def fill_in(context, params) -> ElicitResult:
    return ElicitResult(action="accept", content=json.loads(os.environ["ANSWER"]))


async def talk(server) -> None:
    name = Implementation(name=os.environ.get("NAME", "calls"), version="1")
    form = fill_in if "ANSWER" in os.environ else None
    mode = os.environ.get("MODE", "auto")
    async with Client(server, mode=mode, client_info=name, elicitation_callback=form) as client:
        while line := await asyncio.to_thread(sys.stdin.readline):
            called = json.loads(line)
            result = await client.call_tool(called["tool"], called["arguments"])
            print(json.dumps(result.model_dump(by_alias=True, mode="json", exclude_none=True)), flush=True)


async def main() -> None:
    target, *arguments = sys.argv[1:] or sys.exit(__doc__)
    if target.startswith(("http://", "https://")):
        async with create_mcp_http_client(headers={"Authorization": f"Bearer {os.environ['TOKEN']}"}) as http:
            await talk(streamable_http_client(target, http_client=http))
    else:
        await talk(StdioServerParameters(command=target, args=arguments, env=dict(os.environ)))


asyncio.run(main())
