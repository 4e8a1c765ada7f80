"""The official Python SDK as a client of /mcp that can be asked: calls tools on a lane, and prints what
came back and what it was asked and told as one JSON object.

usage: python_asked.py URL MODE LANE SERVER:TOOL...
"""

import asyncio
import json
import sys

from mcp import Client
from mcp.types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent

asked = []
told = []


async def elicit(context, params):
    asked.append("elicitation")
    return ElicitResult(action="accept", content={"username": "ada", "email": "ada@example.com"})


async def sample(context, params):
    asked.append("sampling")
    return CreateMessageResult(
        role="assistant", model="none", content=TextContent(type="text", text="ada")
    )


async def roots(context):
    asked.append("roots")
    return ListRootsResult(roots=[Root(uri="file:///ada", name="ada")])


async def log(params):
    told.append(params.data)


async def main(url: str, mode: str, lane: str, *tools: str) -> None:
    client = Client(
        url,
        mode=mode,
        elicitation_callback=elicit,
        sampling_callback=sample,
        list_roots_callback=roots,
        logging_callback=log,
        log_level="debug",
    )
    results = {}
    async with client:
        for tool in tools:
            intent = {"operation_type": lane.removeprefix("call_tool_")}
            result = await client.call_tool(lane, {"name": tool, "intent": intent})
            results[tool] = [block.text for block in result.content if block.type == "text"]
        report = {
            "protocol": client.protocol_version,
            "results": results,
            "asked": asked,
            "told": told,
            "prompts": [prompt.name for prompt in (await client.list_prompts()).prompts],
            "resources": [str(entry.uri) for entry in (await client.list_resources()).resources],
        }
        print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
