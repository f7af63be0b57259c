"""Files that a report points to and nobody gave: what they hold may decide, so its words alone should not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tools.contract import Problem, Reading, Source
from tools.part import Part

_NAME = r"(?P<name>[A-Za-z0-9][\w.-]{0,60}\.(?:txt|log|jsonl?|csv|prom|out|html|sqlite|nsys-rep|pprof|gz|zip))"
_POINTED = re.compile(
    rf"(?:\b(?:see|in|from|attach(?:ed|ing)?|attachment|file|below in|posted (?:in|as)|pasted (?:in|as))\W{{1,3}}(?:the |our |file )?[`'\"(]?{_NAME}"
    rf"|(?:见|在|附件|贴在|附上|附)\s?[`'\"]?{_NAME.replace('name', 'zh')})(?![\w/])",
    re.I,
)
# Names that belong to a model or a project, not to an incident.
_USUAL = re.compile(
    r"(?:config|tokenizer|package|index|generation_config|special_tokens_map)\.jsonl?$|^requirements\S*\.txt$|^CMakeLists",
    re.I,
)
MAX_LINES = 400
MAX_FILES = 8


def missing(reports: Iterable[Part], given: Iterable[Part]) -> tuple[list[Reading], list[Problem]]:
    """``report.missing_file`` and one problem line for each file a report points to that is not among the inputs."""
    names = {_plain(part.name) for part in given}
    readings: list[Reading] = []
    problems: list[Problem] = []
    for part in reports:
        for name, line, span in _pointed(part):
            if _plain(name) in names or len(readings) >= MAX_FILES:
                continue
            names.add(_plain(name))
            source = Source(kind="words", ref=part.name, line=line, span=span)
            readings.append(
                Reading(fact="report.missing_file", value=name, source=source, method="pointed to, not given")
            )
            problems.append(
                Problem(ref=part.name, what=f"points to {name}, which is not among the inputs", do="give it too")
            )
    return readings, problems


def _plain(name: str) -> str:
    return name.rsplit("/", 1)[-1].lower().removesuffix(".gz")


def _pointed(part: Part) -> Iterator[tuple[str, int, str]]:
    fenced = False
    for number, line in part.lines(limit=MAX_LINES):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if fenced or " --" in line:
            continue
        for found in _POINTED.finditer(line[:2000]):
            name = found["name"] or found["zh"]
            if not _USUAL.search(name):
                yield name, number, found[0].strip()[:200]
