"""Takes the wrappers off a log line: container and orchestrator stamps, process tags, colours, level headers, JSON.

What remains is the message, with the process, rank, level, place and clock that the wrappers told. All patterns are
anchored at the start of the text and bounded, so a line costs time linear in its length.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-Z\\-_]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

_ISO = re.compile(
    r"\[?(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?: ?(Z|[+-]\d\d:?\d\d))?"
    r"((?: [A-Z]{2,4}\d{1,4}){0,8})\]?:?\s*"
)
_CRI = re.compile(r"(stdout|stderr) [FP] ")
_COMPOSE = re.compile(r"([A-Za-z0-9][\w.-]{0,60}) {0,40}\| ")
_KUBECTL = re.compile(r"\[pod/([^\]\s]{1,200})\] ")
_SYSLOG = re.compile(
    r"(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d) (\S{1,80}) "
    r"([\w./@-]{1,60})(?:\[(\d+)\])?: "
)
_KERNEL = re.compile(r"(?:<\d+>)?\[ {0,8}(\d{1,9}\.\d{6})\] ")
_TAG = re.compile(r"\(([A-Za-z][\w .:=-]{0,60}?),? {0,2}pid=(\d+)(?:, ip=([\w.:]+))?[^()]{0,60}\) ?")
_RANK = re.compile(r"\[?[Rr]ank ?(\d{1,4})\]?: ?")
_RANKS = re.compile(r"\[((?:(?:DP|TP|PP|EP)\d{1,4} ?){1,4})\] ?")
_MPI = re.compile(r"(?:\[\d+,(\d{1,4})\](?:<\w+>)?: ?|(\d{1,4}): )")
_LEVEL = re.compile(
    r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:[.,]\d{1,6})? "
    r"(?:\[([^\]\s]{1,120})\] ?|([\w./-]{1,120}:(?:\d+\]|(?=\s))) ?)?"
)
_GLOG = re.compile(r"\[?([IWEF])(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.\d{1,9} +(?:\d+ +)?([\w./-]{1,120}:\d{1,6})\]:? ?")
_UVICORN = re.compile(r"(INFO|WARNING|ERROR|CRITICAL|DEBUG): {1,8}")
_STDLIB = re.compile(r"(?:- )?([\w.]{1,80}) - (DEBUG|INFO|WARNING|ERROR|CRITICAL) - ")
_BARE = re.compile(
    r"\[?(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|ERR|error|warn|notice|crit|alert|emerg)\]?(?=[\s:])"
    r":? {0,4}(?:(?:(\w[\w.:-]{1,80})|\{[^{}\n]{0,300}\}):? (?=\S))?"
)
_NGINX = re.compile(r"\[(debug|info|notice|warn|error|crit|alert|emerg)\] \d+#\d+: (?:\*\d+ )?")

_MONTHS = {
    m: i for i, m in enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], 1)
}
_DAYS = (0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335)
_WORDS = {
    "W": "warning",
    "E": "error",
    "F": "critical",
    "I": "info",
    "WARN": "warning",
    "ERR": "error",
    "FATAL": "critical",
    "CRIT": "critical",
    "ALERT": "critical",
    "EMERG": "critical",
    "NOTICE": "info",
    "TRACE": "debug",
}
_KEYS_TEXT = ("message", "msg", "log", "MESSAGE", "event", "text", "body")
_KEYS_LEVEL = ("level", "levelname", "severity", "lvl", "log.level", "PRIORITY")
_KEYS_TIME = ("time", "timestamp", "ts", "@timestamp", "asctime", "datetime")
_KEYS_PLACE = ("logger", "name", "filename", "module", "process", "processName")


class Line(NamedTuple):
    """One log line without its wrappers.

    ``time``: seconds on the line's own clock (``clock`` names it: ``iso`` is Unix seconds read as UTC, ``md`` seconds
    since 1 January because the year is not printed, ``kernel`` seconds since boot). ``process`` as printed
    (``EngineCore_DP0``), ``rank`` the rank words (``TP0``), ``level`` lower-case, ``place`` the module or file.
    """

    text: str
    time: float | None = None
    clock: str = ""
    process: str = ""
    pid: str = ""
    rank: str = ""
    level: str = ""
    place: str = ""


def _days(month: int, day: int) -> int:
    return _DAYS[(month - 1) % 12] + day - 1


def _epoch(year: int, month: int, day: int, hour: int, minute: int, second: int) -> float | None:
    import calendar

    if not (1970 <= year <= 2200 and 1 <= month <= 12 and 1 <= day <= 31):
        return None
    return float(calendar.timegm((year, month, day, hour, minute, second)))


def _iso(found: re.Match[str]) -> float | None:
    year, month, day, hour, minute, second = (int(found[i]) for i in range(1, 7))
    base = _epoch(year, month, day, hour, minute, second)
    if base is None:
        return None
    if found[7]:
        base += float("0." + found[7])
    zone = found[8]
    if zone and zone != "Z":
        sign = -1 if zone[0] == "-" else 1
        base -= sign * (int(zone[1:3]) * 3600 + int(zone[-2:]) * 60)
    return base


def _level(word: str) -> str:
    return _WORDS.get(word.upper(), word.lower())


def clock_of(stamp: str, clock: str) -> float | None:
    """Seconds of a bare time stamp (``MM-DD HH:MM:SS`` for clock ``md``, ISO for ``iso``) on that clock."""
    if clock == "iso":
        found = _ISO.match(stamp)
        return _iso(found) if found else None
    digits = [int(part) for part in re.findall(r"\d{2}", stamp)[:5]]
    if clock != "md" or len(digits) < 5:
        return None
    return _days(digits[0], digits[1]) * 86400.0 + digits[2] * 3600 + digits[3] * 60 + digits[4]


def clean(text: str) -> str:
    """Without colour codes and other control characters."""
    if "\x1b" in text:
        text = ANSI.sub("", text)
    return _CONTROL.sub("", text)


def _from_json(text: str) -> Line | None:
    try:
        data: Any = msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    body = next((data[key] for key in _KEYS_TEXT if isinstance(data.get(key), str)), None)
    if body is None:
        return None
    inner = parse(body.rstrip("\n"), nested=True)
    level = inner.level or next((_level(str(data[key])) for key in _KEYS_LEVEL if data.get(key) is not None), "")
    place = inner.place or next((str(data[key]) for key in _KEYS_PLACE if isinstance(data.get(key), str)), "")
    time, clock = inner.time, inner.clock
    stamp = next((data[key] for key in _KEYS_TIME if data.get(key) is not None), None)
    if isinstance(stamp, str) and (found := _ISO.match(stamp)):
        time, clock = _iso(found), "iso"
    elif isinstance(stamp, (int, float)) and not isinstance(stamp, bool) and stamp > 1e8:
        time, clock = float(stamp) / (1000.0 if stamp > 1e11 else 1.0), "iso"
    trace = data.get("exc_info") or data.get("exception") or data.get("traceback")
    body = inner.text + (f" {trace}" if isinstance(trace, str) else "")
    return inner._replace(text=body, level=level, place=place, time=time, clock=clock)


def parse(text: str, *, nested: bool = False) -> Line:
    """Read one line. Never raises; what is not understood stays in ``text``."""
    if "\x1b" in text:
        text = clean(text)
    if not nested and text[:1] == "{" and (whole := _from_json(text)):
        return whole
    time: float | None = None
    clock = process = pid = rank = level = place = ""
    at = len(text) - len(text.lstrip(" \t")) if text[:8].isspace() is False and text[:1] in " \t" else 0
    start = at
    for _ in range(8):
        head = text[at : at + 1]
        if head == "{" and not nested and at and (whole := _from_json(text[at:])):
            return whole if whole.time is not None else whole._replace(time=time, clock=clock)
        if head == "(" and (found := _TAG.match(text, at)):
            process, pid = found[1].strip(), found[2]  # of nested tags the innermost process printed the line
        elif head.isdigit() and (found := _ISO.match(text, at)):
            time, clock = (_iso(found), "iso") if time is None else (time, clock)
        elif head == "[" and (found := _ISO.match(text, at)):
            time, clock = (_iso(found), "iso") if time is None else (time, clock)
            rank = rank or found[9].strip()
        elif head == "[" and (found := _KUBECTL.match(text, at) or _NGINX.match(text, at)):
            if found.re is _KUBECTL:
                process = process or found[1]
            else:
                level, place = _level(found[1]), "nginx"
        elif head in "[<" and (found := _KERNEL.match(text, at)):
            time, clock = (float(found[1]), "kernel") if time is None else (time, clock)
            place = place or "kernel"
        elif head in "DIWEC" and (found := _LEVEL.match(text, at)):
            level, place = found[1].lower(), (found[7] or (found[8] or "").rstrip("]"))
            if time is None:
                seconds = int(found[4]) * 3600 + int(found[5]) * 60 + int(found[6])
                time, clock = _days(int(found[2]), int(found[3])) * 86400.0 + seconds, "md"
            at = found.end()
            break
        elif head in "[IWEF" and (found := _GLOG.match(text, at)):
            level, place = _WORDS[found[1]], found[7]
            if time is None:
                seconds = int(found[4]) * 3600 + int(found[5]) * 60 + int(found[6])
                time, clock = _days(int(found[2]), int(found[3])) * 86400.0 + seconds, "md"
            at = found.end()
            break
        elif head in "DIWEC" and (found := _UVICORN.match(text, at)):
            level, place, at = found[1].lower(), place or "uvicorn", found.end()
            break
        elif head in "JFMASOND" and (found := _SYSLOG.match(text, at)):
            seconds = int(found[3]) * 3600 + int(found[4]) * 60 + int(found[5])
            time, clock = (_days(_MONTHS[found[1]], int(found[2])) * 86400.0 + seconds, "md")
            process, pid = process or found[7], pid or (found[8] or "")
        elif head == "s" and (found := _CRI.match(text, at)):
            pass
        elif head in "[Rr" and (found := _RANK.match(text, at)):
            rank = rank or f"rank{found[1]}"
        elif head == "[" and (found := _RANKS.match(text, at)):
            rank = rank or found[1].strip()
        elif head and head in "[0123456789" and (found := _MPI.match(text, at)):
            rank = rank or f"rank{found[1] or found[2]}"
        elif found := _STDLIB.match(text, at):
            place, level, at = found[1], found[2].lower(), found.end()
            break
        elif found := _BARE.match(text, at):
            level, place, at = _level(found[1]), place or found[2] or "", found.end()
            break
        elif at == start and (found := _COMPOSE.match(text, at)):
            process = process or found[1]
        else:
            break
        at = found.end()
    body = text[at:] if at != start or start == 0 else text
    return Line(body, time, clock, process, pid, rank, level, place.rstrip(":"))
