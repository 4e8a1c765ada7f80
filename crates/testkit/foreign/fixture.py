"""What the servers on the Python SDKs share: the fixture, their arguments, and HTTP."""

import argparse
import json
import pathlib
import re
import socket

import uvicorn

FIXTURE = json.loads(pathlib.Path(__file__).with_name("fixture.json").read_text())
TOOLS = {tool["name"]: tool for tool in FIXTURE["tools"]}
PROMPTS = {prompt["name"]: prompt for prompt in FIXTURE["prompts"]}
TEMPLATE = FIXTURE["template"]
SHOWN = {"name", "description", "inputSchema", "arguments", "uri", "uriTemplate", "mimeType"}


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--transport", default="http", choices=["http", "sse", "stdio"])
    parser.add_argument("--era", default="both")
    return parser.parse_args()


def filled(value, arguments):
    """The fixture's value with every `{name}` replaced by the argument of that name."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda found: str((arguments or {}).get(found[1], found[0])), value)
    if isinstance(value, list):
        return [filled(item, arguments) for item in value]
    if isinstance(value, dict):
        return {name: filled(item, arguments) for name, item in value.items()}
    return value


def definition(entry):
    """A definition as clients see it."""
    return {name: value for name, value in entry.items() if name in SHOWN}


def read(uri):
    """The contents of a resource, or None if there is none at this address."""
    template = re.fullmatch(r"test://template/(.+)/data", uri)
    found = [resource for resource in FIXTURE["resources"] if resource["uri"] == uri]
    if template is None and not found:
        return None
    source = TEMPLATE if template else found[0]
    arguments = {"id": template[1]} if template else {}
    return {"uri": uri, "mimeType": source["mimeType"], **filled(source["contents"], arguments)}


def serve(app, path):
    """Listens on a free port and prints the URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}{path}"}), flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
