#!/usr/bin/env python3
"""Uses what server-everything offers through us, by FastMCP's client, and prints one line of JSON: what everything.py does, without
subscriptions, for which this client has no method.

    everything_fastmcp.py URL | COMMAND ARG…        environment: TOKEN (bearer), MODE (auto, legacy or a version such as 2026-07-28)
"""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp_types import PromptReference

URI = "demo://resource/dynamic/text/7"


async def answer(messages, params, context) -> str:
    return "by the model"


async def fill_in(message, response_type, params, context) -> dict:
    return {"name": "by the person"}


def text_of(result) -> str:
    return "\n".join(block.text for block in result.content)


async def main() -> None:
    target, *arguments = sys.argv[1:] or sys.exit(__doc__)
    if target.startswith(("http://", "https://")):
        transport = StreamableHttpTransport(target, headers={"Authorization": f"Bearer {os.environ['TOKEN']}"})
    else:
        transport = StdioTransport(target, arguments, env=dict(os.environ))
    mode = os.environ.get("MODE", "auto")
    async with Client(transport, mode=mode, sampling_handler=answer, elicitation_handler=fill_in) as client:
        resources = await client.list_resources()
        templates = await client.list_resource_templates()
        read = await client.read_resource(URI)
        prompts = await client.list_prompts()
        prompt = await client.get_prompt("args-prompt", {"city": "Oslo"})
        reference = PromptReference(type="ref/prompt", name="completable-prompt")
        completed = await client.complete(reference, {"name": "name", "value": "A"}, {"department": "Engineering"})
        said = {
            "protocol": client.protocol_version,
            "resources": [str(resource.uri) for resource in resources],
            "templates": [template.uri_template for template in templates],
            "read": read[0].text,
            "prompts": [prompt.name for prompt in prompts],
            "prompt": prompt.messages[0].content.text,
            "completion": completed.values,
            "sampling": text_of(await client.call_tool("trigger-sampling-request", {"prompt": "q", "maxTokens": 10})),
            "elicitation": text_of(await client.call_tool("trigger-elicitation-request", {})),
        }
    print(json.dumps(said))


asyncio.run(main())
