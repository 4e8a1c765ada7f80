"""Keeps what schemathesis makes up on this machine, and what it calls short."""

import schemathesis


@schemathesis.hook
def map_body(context, body):
    """A made-up address would be connected to: it becomes one where nobody listens."""
    if isinstance(body, dict) and isinstance(body.get("url"), str):
        if body["url"].startswith(("http://", "https://")):
            return {**body, "url": "http://127.0.0.1:9/mcp"}
    return body
