"""The config reader: launch commands, deployment files, server reports and notes → effective configuration.

Run it after the readers of metrics, logs and the report, with ``Context.options`` filled from the ledger by
:func:`tools.config.world.options_from`: version, generation, device and GPU decide defaults and verdicts.
"""

from __future__ import annotations

import re

from msgspec import structs

from tools.config.command import read_shell
from tools.config.data import load
from tools.config.launch import Launch
from tools.config.logline import parse_config_line
from tools.config.programs import find_anchor
from tools.config.readings import launch_readings, variants_of
from tools.config.shell import split
from tools.config.world import world_from
from tools.contract import Context, Problem, Reading, ReadResult, Source
from tools.part import Part

MAX_BYTES = 2 << 20
_YAML_NAME = re.compile(r"\.ya?ml$", re.IGNORECASE)
_YAML_LINE = re.compile(r"^(?:[\w.\"'-]{1,60}:(?:\s|$)|- |---\s*$|[ ]{2,}[\w\"'-]{1,60}:(?:\s|$))", re.MULTILINE)
_PYTHON = re.compile(
    r"\b(?:LLM|AsyncLLM|LLMEngine|AsyncLLMEngine|AsyncEngineArgs|EngineArgs|Engine|LLMConfig|ServerArgs)\s*\("
)
_DASHED_ITEM = re.compile(r"^\s*-\s+(['\"]?)(--[a-z].*?)\1\s*,?\s*$")


def read(parts: list[Part], context: Context) -> ReadResult:
    """Readings of every part that holds a configuration. Never raises on content."""
    load()
    out = ReadResult()
    total = 0
    for part in parts:
        try:
            total += _part(part, context, out)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError) as error:
            out.problems.append(
                Problem(
                    ref=part.name,
                    what=f"could not be read as a configuration ({type(error).__name__})",
                    do="paste the launch command itself",
                    severity="error",
                )
            )
    out.readings.sort(key=lambda reading: reading.labels.get("origin") == "default")
    if total:
        out.readings.append(
            Reading(
                fact="config.launches",
                value=total,
                source=Source(kind="computed"),
                method=f"launch configurations in {len(parts)} parts",
            )
        )
    return out


def _part(part: Part, context: Context, out: ReadResult) -> int:
    if part.is_binary():
        out.problems.append(
            Problem(ref=part.name, what="binary data, not a configuration", do="give the launch command as text")
        )
        return 0
    text = part.text(MAX_BYTES)
    if not text.strip():
        out.problems.append(Problem(ref=part.name, what="empty", do="paste the launch command or deployment file"))
        return 0
    if part.size() > MAX_BYTES:
        out.problems.append(
            Problem(
                ref=part.name, what="larger than 2 MiB; only the first part was read as configuration", severity="note"
            )
        )
    launches, notes = parse(part.name, text, context.options.get("engine.name", ""))
    for note in notes:
        out.problems.append(Problem(ref=part.name, what=note, severity="note"))
    if not launches and not notes:
        out.problems.append(
            Problem(
                ref=part.name,
                what="no launch command or engine setting was recognised",
                do="paste the command that starts the server, or its start-up lines",
                severity="note",
            )
        )
    world = world_from(context.options, text)
    lines = text.split("\n")
    for launch, variant in zip(launches, variants_of(launches), strict=True):
        launch.line += part.line0 if launch.line else 0
        for item in launch.given:
            item.line += part.line0 if item.line else 0
        for setting in (*launch.env, *launch.limits.values()):
            setting.line += part.line0 if setting.line else 0
        out.readings += [
            _verbatim(item, lines, part.line0) for item in launch_readings(launch, part.name, world, variant)
        ]
        out.problems += [Problem(ref=part.name, what=note, severity="note") for note in dict.fromkeys(launch.notes)]
    if "#" in text and any(launch.form in ("command", "fragment") for launch in launches):
        out.nested += _comments(part, text)
    return sum(launch.role != "client" for launch in launches)


def _verbatim(reading: Reading, lines: list[str], line0: int) -> Reading:
    """The span must stand in its line as it is: with ``=`` where ``=`` stood, or else the whole line."""
    source = reading.source
    at = source.line - line0 - 1
    if not source.span or not 0 <= at < len(lines) or source.span in lines[at]:
        return reading
    flag, _, value = source.span.partition(" ")
    whole = lines[at].strip()
    options = (f"{flag}={value}", f"{flag}: {value}", flag.split(".")[0], whole[:160])
    span = next((text for text in options if text and text in lines[at]), "")
    return structs.replace(reading, source=structs.replace(source, span=span))


def _comments(part: Part, text: str) -> list[Part]:
    """What people note beside a command ("changed from 0.90 to 1.0"), as prose on its own lines, for the report reader."""
    lines: dict[int, str] = {}
    for comment in split(text)[1]:
        if len(comment.text.split()) > 2 and not find_anchor(comment.text.split()):
            lines[comment.line] = comment.text
    if not lines:
        return []
    body = "\n".join(lines.get(number, "") for number in range(1, max(lines) + 1))
    return [Part(name=part.name, data=body.encode(), hint="comment", parent=part.name, line0=part.line0)]


def parse(name: str, text: str, engine: str = "") -> tuple[list[Launch], list[str]]:
    """Launches in a text, and notes on what could not be used. ``engine`` helps when only neutral flags are given."""
    from tools.config.forms import read_json, read_notes, read_python  # a command alone should not pay for it

    body = text.lstrip("\ufeff \t\r\n")
    notes: list[str] = []
    if body[:1] in ("{", "[") and not re.match(r"\[\d{4}-", body):
        launches, why = read_json(text)
        if launches or not why:
            return launches, [] if launches else ["JSON with no engine settings"]
        notes.append(why)
    found = _start_lines(text)
    if found:
        return found, []
    if _YAML_NAME.search(name) or (_looks_yaml(body) and not _shellish(body)):
        launches, more = _yaml(text)
        if launches or _YAML_NAME.search(name):
            return launches, notes + more
    if _PYTHON.search(text):
        launches = read_python(text)
        if launches:
            return launches, notes
    shell = read_shell(text, 1, engine)
    launches = [launch for launch in shell.launches if launch.role != "client"]
    if shell.left_out:
        notes.append(f"{shell.left_out} further launch commands were not read")
    if launches:
        return launches, notes
    if shell.launches:
        return [], [*notes, "a benchmark client's command, not a server's"]
    return read_notes(text), notes


def _start_lines(text: str) -> list[Launch]:
    """Start-up lines of an engine, in a log that was handed over as configuration."""
    out: list[Launch] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not any(mark in line for mark in ("with config: ", "non-default args: ", "ServerArgs(", "args: Namespace(")):
            continue
        launch = parse_config_line(line)
        if launch is not None:
            launch.line = number
            out.append(launch)
        if len(out) >= 16:
            break
    return out


def _looks_yaml(body: str) -> bool:
    return len(_YAML_LINE.findall(body[:20_000])) >= 3


def _shellish(body: str) -> bool:
    return bool(
        re.search(r"\bvllm\s+serve\b|launch_server|api_server|^\s*(?:#!|export |docker )", body[:20_000], re.MULTILINE)
    ) and not re.search(r"^\s*(?:services|containers|spec|command|args):", body[:20_000], re.MULTILINE)


def _yaml(text: str) -> tuple[list[Launch], list[str]]:
    from tools.config.deploy import read_documents
    from tools.config.yamls import documents

    docs, why = documents(text)
    found = read_documents(docs)
    notes = list(found.notes)
    if why:
        notes.insert(0, f"YAML read in part only: {why}")
        if not found.launches:
            salvaged = _salvage(text)
            if salvaged:
                return salvaged, [*notes, "flags were taken from list lines instead"]
    if not found.launches and not notes:
        notes.append("YAML with no inference engine in it")
    return found.launches, notes


def _salvage(text: str) -> list[Launch]:
    """Flags of ``- --flag`` lines in a template that is no valid YAML."""
    lines = []
    for line in text.splitlines():
        found = _DASHED_ITEM.match(line)
        lines.append(found[2] if found else "")
    reader = read_shell(_join(lines))
    return reader.launches


def _join(lines: list[str]) -> str:
    """Flags of neighbouring lines as one command; line numbers stay."""
    out: list[str] = []
    for index, line in enumerate(lines):
        following = index + 1 < len(lines) and bool(lines[index + 1])
        out.append(f"{line} \\" if line and following else line)
    return "\n".join(out)
