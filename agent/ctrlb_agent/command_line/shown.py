"""The answers of the command line in words for a person."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctrlb_agent.command_line.finding import Finding

MARKS = {"ok": "ok  ", "note": "note", "fail": "FAIL"}


def claim(answer: dict[str, Any]) -> str:
    """`held … until …`, or the server's own words on who has it."""
    if not answer["held"]:
        return str(answer["message"])
    verb = "renewed" if answer.get("renewed") else "held"
    return f"{verb} until {clock(answer['lease_until'])}: {answer['key']}"


def release(answer: dict[str, Any]) -> str:
    """What became of the claim."""
    if not answer["released"]:
        return f"you held no claim on {answer['key']}: nothing was released"
    return f"{'done' if answer['finished'] else 'handed back'}: {answer['key']}"


def check(answer: dict[str, Any]) -> str:
    """A line for each path that another agent holds."""
    if not answer["conflicts"]:
        return "free" if answer["mode"] != "off" else "not checked: the workspace's enforce mode is off"
    return "\n".join(
        f"{one['path']} is held by {one['held_by']} until {clock(one['lease_until'])}" for one in answer["conflicts"]
    )


def peers(answer: dict[str, Any]) -> str:
    """A line for each event, newest first."""
    lines = [
        " ".join([f"{age(event['age_s']):>5} ", event["agent"], event["kind"], event["key"], _one_line(event["text"])])
        for event in answer["events"]
    ]
    return "\n".join(line.rstrip() for line in lines) or "nobody has written to this run yet"


def search(answer: dict[str, Any]) -> str:
    """Each hit with where it stands, so that it can be fetched."""
    capped = answer["capped_at"]
    total = f"more than {capped:,}" if capped else f"{answer['total']:,}"
    lines = [f"{total} found"]
    for hit in answer["hits"]:
        error = " (error)" if hit["is_error"] else ""
        what = f"{hit['block_type']} {hit['tool_name']}".rstrip()
        lines += ["", f"{hit['session_id']} {hit['seq']}  {what}{error}", f"  {_one_line(hit['snippet'])}"]
    return "\n".join(lines)


def status(answer: dict[str, Any]) -> str:
    """The server, the run, and every live claim in it. Of no run nothing is said to be held."""
    lines = [
        f"server   {answer['url']}, dataset {answer['dataset']}",
        f"run      {answer['run_id'] or 'not known: pass --run, or set CTRLB_RUN'}",
        f"agent    {answer['agent'] or 'not known'}",
        f"root     {answer['root']}",
        f"enforce  {answer['settings']['enforce']}",
    ]
    if not answer["run_id"]:
        return "\n".join(lines)
    held = [one for one in answer["resources"] if one["state"] == "held"]
    lines += [f"held     {one['key']} by {one['agent']} until {clock(one['lease_until'])}" for one in held]
    return "\n".join(lines if held else [*lines, "held     nothing"])


def findings(found: Sequence[Finding]) -> str:
    """A line for each finding, and below it what to do."""
    lines = []
    for finding in found:
        lines.append(f"{MARKS[finding.level]}  {finding.text}")
        if finding.remedy:
            lines.append(f"      {finding.remedy}")
    return "\n".join(lines)


def printable(text: str) -> str:
    """The text without what would steer a terminal: others wrote a part of it."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


def clock(time_us: int) -> str:
    """The time of day here, of microseconds since the epoch."""
    return time.strftime("%H:%M:%S", time.localtime(time_us / 1_000_000))


def age(seconds: int) -> str:
    """`12s`, `3m`, `4h` or `2d`."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _one_line(text: str) -> str:
    return " ".join(text.split())
