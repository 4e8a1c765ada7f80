"""The official Python SDK as a client of the daemon: finds a tool, calls it on the lane it is told,
and prints what came back as one JSON object.

usage: python_client.py URL SERVER:TOOL JSON_ARGUMENTS
"""

import asyncio
import json
import sys

from mcp import Client


async def main(url: str, tool: str, arguments: str) -> None:
    async with Client(url) as client:
        listed = await client.list_tools()
        server, name = tool.split(":", 1)
        found = await client.call_tool("retrieve_tools", {"query": name, "server": server, "limit": 50})
        hit = next(hit for hit in found.structured_content["tools"] if hit["name"] == tool)
        lane = hit["call_with"]
        intent = {"operation_type": lane.removeprefix("call_tool_"), "reason": "a test"}
        call = {"name": tool, "args_json": arguments, "intent": intent}
        progress = []

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            progress.append(done)

        result = await client.call_tool(lane, call, progress_callback=on_progress)
        wrong = "call_tool_write" if lane == "call_tool_read" else "call_tool_read"
        refused = await client.call_tool(wrong, call)
        report = {
            "tools": [entry.name for entry in listed.tools],
            "lane": lane,
            "is_error": bool(result.is_error),
            "text": [block.text for block in result.content if block.type == "text"],
            "types": [block.type for block in result.content],
            "progress": progress,
            "refusal": refused.structured_content["code"],
        }
        print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
