"""The fixture on the Python SDK, 2.x: HTTP or stdio, both eras."""

import asyncio
import warnings

from fixture import FIXTURE, PROMPTS, TEMPLATE, TOOLS, definition, filled, options, read, serve
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

NAME = "python-fixture"
REQUESTS = {
    "elicitation/create": (types.ElicitRequest, types.ElicitResult),
    "sampling/createMessage": (types.CreateMessageRequest, types.CreateMessageResult),
    "roots/list": (types.ListRootsRequest, types.ListRootsResult),
}
warnings.simplefilter("ignore")
bus = InMemorySubscriptionBus()


def questions(entry, params, declared):
    """The next questions of an entry with rounds, or None when all are answered."""
    answers = params.input_responses or {}
    round = int(params.request_state or 0)
    answered = all(key in answers for key in entry["rounds"][round])
    if answered and (params.request_state is not None or not entry.get("state")):
        round += 1
    if round == len(entry["rounds"]):
        return None
    asked = {
        key: REQUESTS[question["method"]][0].model_validate(question)
        for key, question in entry["rounds"][round].items()
        if not entry.get("onlyDeclared") or getattr(declared, question["method"].split("/")[0], None) is not None
    }
    if not asked:
        return None
    return types.InputRequiredResult(input_requests=asked, request_state=str(round) if entry.get("state") else None)


async def list_tools(_, params):
    return types.ListToolsResult.model_validate({"tools": [definition(tool) for tool in TOOLS.values()]})


async def call_tool(context, params):
    tool, session = TOOLS.get(params.name), context.session
    if tool is None:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    declared = session.client_capabilities
    if "needs" in tool and getattr(declared, tool["needs"], None) is None:
        required = {"requiredCapabilities": {tool["needs"]: {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, f"{params.name} needs {tool['needs']}", required)
    for progress in tool.get("progress", []):
        await session.report_progress(progress, 100)
        await asyncio.sleep(0.05)
    for line in tool.get("logs", []):
        await session.send_log_message("info", line, related_request_id=context.request_id)
        await asyncio.sleep(0.05)
    if tool.get("reconnects") and context.close_sse_stream:
        await context.close_sse_stream()
        await asyncio.sleep(0.1)
    if "changes" in tool:
        tools = tool["changes"] == "tools"
        await bus.publish(ToolsListChanged() if tools else PromptsListChanged())
        if session.protocol_version < "2026":
            await (session.send_tool_list_changed() if tools else session.send_prompt_list_changed())
    if "asks" in tool:
        request, result = REQUESTS[tool["asks"]["method"]]
        question = request.model_validate(filled(tool["asks"], params.arguments))
        try:
            # Along with the answer to the call, not on the stream that clients may have opened besides.
            metadata = ServerMessageMetadata(related_request_id=context.request_id)
            answer = await session.send_request(question, result, metadata=metadata)
            text = f"The client answered: {answer.model_dump_json()}"
        except Exception as error:
            return types.CallToolResult(content=[types.TextContent(type="text", text=str(error))], is_error=True)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])
    if "rounds" in tool and (asked := questions(tool, params, declared)):
        return asked
    return types.CallToolResult.model_validate(tool["result"])


async def list_prompts(_, params):
    return types.ListPromptsResult.model_validate({"prompts": [definition(prompt) for prompt in PROMPTS.values()]})


async def get_prompt(context, params):
    prompt = PROMPTS[params.name]
    if "rounds" in prompt and (asked := questions(prompt, params, context.session.client_capabilities)):
        return asked
    return types.GetPromptResult.model_validate({"messages": filled(prompt["messages"], params.arguments)})


async def list_resources(_, params):
    return types.ListResourcesResult.model_validate({"resources": [definition(it) for it in FIXTURE["resources"]]})


async def list_templates(_, params):
    return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": [definition(TEMPLATE)]})


async def read_resource(_, params):
    contents = read(str(params.uri))
    if contents is None:
        raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": str(params.uri)})
    return types.ReadResourceResult.model_validate({"contents": [contents]})


async def nothing(_, params):
    return types.EmptyResult()


async def complete(_, params):
    return types.CompleteResult(completion=types.Completion(values=["test", "testing"], total=2, has_more=False))


server = Server(
    NAME,
    version="2.0.0",
    get_tool_input_schema=lambda name: TOOLS.get(name, {}).get("inputSchema"),
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_list_resources=list_resources,
    on_list_resource_templates=list_templates,
    on_read_resource=read_resource,
    on_subscribe_resource=nothing,
    on_unsubscribe_resource=nothing,
    on_subscriptions_listen=ListenHandler(bus),
    on_set_logging_level=nothing,
    on_completion=complete,
)
server.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME))


async def over_pipes():
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if options().transport == "stdio":
    asyncio.run(over_pipes())
else:
    serve(server.streamable_http_app(), "/mcp")
