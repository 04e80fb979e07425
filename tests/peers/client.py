#!/usr/bin/env python3
"""A client of ours that we did not write: the official Python SDK. Lists every page of tools, calls one, prints one line of JSON.

    client.py URL | COMMAND ARG…        environment: TOKEN (bearer), MODE (auto, legacy or a version such as 2026-07-28),
                                        TOOL (echo), ARGS (a JSON object), READ and PROMPT (a URI and a prompt: lists and
                                        reads these as well, this with PROMPT_ARGS (a JSON object),
                                        and subscribes to all news of a server
                                        of 2026-07-28), ANSWER (a JSON object: what every form is
                                        filled in with; without it the client fills in no forms)
"""

import asyncio
import json
import os
import sys

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client  # the SDK's own timeouts; it exports no public name for them
from mcp_types import ElicitResult


async def fill_in(context, params) -> ElicitResult:
    return ElicitResult(action="accept", content=json.loads(os.environ["ANSWER"]))


async def talk(server) -> None:
    form = fill_in if "ANSWER" in os.environ else None
    async with Client(server, mode=os.environ.get("MODE", "auto"), elicitation_callback=form) as client:
        names = []
        cursor = None
        while True:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        arguments = json.loads(os.environ.get("ARGS", '{"message":"hi"}'))
        result = await client.call_tool(os.environ.get("TOOL", "echo"), arguments)
        said = {
            "protocol": client.protocol_version,
            "tools": sorted(names),
            "result": result.model_dump(by_alias=True, mode="json", exclude_none=True),
        }
        if "READ" in os.environ:
            resources = await client.list_resources()
            prompts = await client.list_prompts()
            read = await client.read_resource(os.environ["READ"])
            prompt = await client.get_prompt(os.environ["PROMPT"], json.loads(os.environ.get("PROMPT_ARGS", '{"code":"let x = 1;"}')))
            said |= {
                "resources": [str(resource.uri) for resource in resources.resources],
                "prompts": [prompt.name for prompt in prompts.prompts],
                "read": read.model_dump(by_alias=True, mode="json", exclude_none=True),
                "prompt": prompt.model_dump(by_alias=True, mode="json", exclude_none=True),
            }
            if client.protocol_version >= "2026-07-28":
                kinds = {"tools_list_changed": True, "prompts_list_changed": True, "resources_list_changed": True}
                async with client.listen(**kinds, resource_subscriptions=[os.environ["READ"]]) as subscription:
                    said["agreed"] = subscription.honored.model_dump(by_alias=True, mode="json", exclude_none=True)
        print(json.dumps(said))


async def main() -> None:
    target, *arguments = sys.argv[1:] or sys.exit(__doc__)
    if target.startswith(("http://", "https://")):
        token = os.environ.get("TOKEN")  # no header without one: the HTTP library refuses an empty value
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with create_mcp_http_client(headers=headers) as http:
            await talk(streamable_http_client(target, http_client=http))
    else:
        await talk(StdioServerParameters(command=target, args=arguments, env=dict(os.environ)))


asyncio.run(main())
