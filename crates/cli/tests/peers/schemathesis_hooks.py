"""Keeps what schemathesis makes up on this machine, and to what can be made up."""

import re
from datetime import datetime

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    """Right before a request is sent, whatever phase it was made up in."""
    body, query = case.body, dict(case.query or {})
    # A made-up address would be connected to: it becomes one where nobody listens.
    if isinstance(body, dict) and str(body.get("url")).startswith(("http://", "https://")):
        case.body = {**body, "url": "http://127.0.0.1:9/mcp"}
    # A cursor has a checksum. One that only looks like one is refused, beside an offset or not.
    if re.fullmatch("[0-9a-f]{26}", str(query.get("cursor"))):
        del query["cursor"]
    if is_after(query.get("start_time"), query.get("end_time")):
        query["start_time"], query["end_time"] = query["end_time"], query["start_time"]
    case.query = query


def is_after(start, end):
    """Of two times; what is none is left as it is."""
    try:
        return datetime.fromisoformat(start) > datetime.fromisoformat(end)
    except (TypeError, ValueError):
        return False
