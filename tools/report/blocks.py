"""Splits a pasted text into blocks: headings, paragraphs, items, tables, fences, log lines and commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

Kind = Literal["heading", "text", "item", "quote", "table", "fence", "log", "command", "diff"]

_FENCE = re.compile(r"^\s{0,3}(`{3,}|~{3,})\s*([\w.+/-]*)")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+\S")
_ITEM = re.compile(r"^\s{0,12}(?:[-*+•]|\d{1,2}[.)、])\s+")
_RULE = re.compile(r"^\s{0,3}(?:-{3,}|={3,}|\*{3,}|_{3,})\s*$")
_LOG = re.compile(
    r"^\s*(?:\([A-Za-z]\w*(?:_\w+)*(?: pid=\d+|\s\w+=\S+)[^)]{0,60}\)\s*)?(?:\x1b\[[\d;]*m)*"
    r"(?:(?:INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL|FATAL)[:\s]+(?:\d\d-\d\d|\d{4}-\d\d|\[?[\w./]+\.py|\S+:\d+|\d\d:\d\d)"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*\]?\s+\S|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|[IWEF]\d{4} \d\d:\d\d:\d\d"
    r"|Traceback \(most recent|NVRM: |\[\s*\d+\.\d{6}\]\s|\S+:\d+:\d+ \[\d+\] NCCL (?:INFO|WARN)"
    r"|[\w.]+(?:Error|Exception): \S|\(\w+ pid=\d+(?:, ip=[\d.]+)?\) \S)"
)
_COMMAND = re.compile(
    r"^\s*(?:\$\s+|>\s*\$\s+|#\s*!)?(?:(?:export )?[A-Z][A-Z0-9_]{2,}=\S+\s+)*(?:sudo\s+)?"
    r"(?:vllm (?:serve|bench|run-batch)\b|python3?\s+(?:-m\s+)?\S|sglang\b\s+\S|docker (?:run|compose)\b|kubectl\s+\w|helm\s+\w"
    r"|nvidia-smi\b\s*\S*|curl\s+-?\S|trtllm-\w+|text-generation-launcher\b|torchrun\b|mpirun\b|ray (?:start|serve)\b"
    r"|vllm-router\b|genai-perf\b|guidellm\b|aiperf\b|llama-server\b|lmdeploy\b|dynamo\s+\w|numactl\b|taskset\b)"
)
# ``command: sglang serve …``, ``server-side: vllm serve …``
_LABELLED = re.compile(r"^\s*(?:[-*]\s)?[\w][\w -]{0,22}[:：]\s*`{0,3}(?=\S)")
# A command's name as the subject of a sentence, and one with Chinese words outside of quotes, are prose.
_SPOKEN = re.compile(
    r"^\s*(?:vllm (?:serve|bench)|llama-server|nvidia-smi|lmdeploy|docker run|sglang) (?:hangs?|is|was|fails?|crash\w*|does(?:n't)?|did(?:n't)?|keeps?|takes?|took|uses?|used|returns?|logs?|shows?|showed|reports?|reported|says?|said|gives?|stops?|starts?|started|works?|worked|never|always|only|still|with(?:out)? (?!-)[a-z]+ [a-z]+|command|process|and|on|in|has|had|itself|gets?|got|seems?|runs?|ran)\b",
    re.IGNORECASE,
)
_PARAMETER = re.compile(r"\"[^\"]*\"|'[^']*'|#.*|[^\s，。]*/[^\s，。]*|--[\w-]+(?:[ =][^\s，。]+)?")
_HAN = re.compile(r"[\u3400-\u9fff]{2}")
# ``-e NCCL_NET=Socket \`` alone: a part of a container's command.
_ENVIRONMENT = re.compile(r"^\s*(?:-e|--env)[ =]\"?[A-Z][A-Z0-9_]{2,}=\S")
_BARS, _RULES = "│┃║", "─━═"
_CORNERS = "╒╕╘╛╞╡╪╤╧├┤┼┌┐└┘┬┴╔╗╚╝╠╣╬╦╩┏┓┗┛┣┫╋┳┻"
_BOX = str.maketrans({**dict.fromkeys(_BARS, "|"), **dict.fromkeys(_RULES, "-"), **dict.fromkeys(_CORNERS, "+")})
_FRAME = re.compile(r"^\s*\+[-=+]{3,}\+\s*$")
_PROMPT = re.compile(r"^\s*\$\s+\S")
_BENCH = re.compile(r"^\s*=+\s*[\w ()/-]*(?:Result|Report|Summary)[\w ()/-]*=+\s*$", re.IGNORECASE)
_DIFF = re.compile(r"^[-+](?![-+\s])[A-Za-z_][\w.\[\]-]*\s?(?:==|@|=|:)\s?\S+$")
_MD_RULE = re.compile(r"^\s*\|?\s*:?-{2,}:?\s*(?:\|\s*:?-{2,}:?\s*)*\|?\s*$")
_GAP = re.compile(r"\S(?:\s{2,}|\t)\S")
_NUM = re.compile(r"(?<![\w.])[-~<>≈+]{0,2}\d[\d,.]*(?:[eE][-+]?\d+)?\s?(?:%|[a-zA-Zµ]{1,3}(?:/[a-z]{1,4})?)?(?![\w.])")
_MEASURED = re.compile(
    r"(?<![\w.=])\d[\d,.]*\s?(?:out(?:put)? )?(?:tok(?:ens?)?/s|tps|ms|GB/s|GiB|MiB|req/s|W\b|MHz|%(?!\s?(?:ile|of)))",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^[^\W\d_][^:=|]*$")
_VALUE = re.compile(r"^[(~<>≈≥≤±+−-]{0,2}\s?\d")
_BARE = re.compile(r"^[~<>≈]?\d[\d.,]*\s?[%xk]?$", re.IGNORECASE)
# ``second run:  mean TTFT 71 ms`` below a table names its own metric.
_STATED = re.compile(r"^\s*[^:=|]{2,90}:\s+(?:[A-Za-z]\S*\s+){1,4}[~<>≈]?\d")
_KEYS = re.compile(r"(?<![\w.=-])(?P<key>[A-Za-z_][\w.%-]*)=[^\s,;=]+")
_PROSE = re.compile(r"[a-z]{2,} [a-z]{2,} [a-z]{2,} [a-z]{2,}|[\u3400-\u9fff]{8,}")


class Line(Struct, frozen=True):
    """A line with its number in the part."""

    no: int
    text: str


class Block(Struct):
    """Consecutive lines of one kind; ``lang`` is a fence's language, ``indent`` the item's depth."""

    kind: Kind
    lines: list[Line]
    lang: str = ""
    closed: bool = True


def split(lines: Iterable[Line], standalone: bool = False) -> Iterator[Block]:
    """Yield blocks in order.

    ``standalone`` is set for a part that is itself a fenced block or a side file: then whole-line log or command
    excerpts are not cut out of it (the router already sent it here).
    """
    run: list[Line] = []
    fence: Block | None = None
    mark = ""
    for line in lines:
        if fence is not None:
            if line.text.strip().startswith(mark) and not line.text.strip().strip(mark[0]):
                yield fence
                fence = None
            else:
                fence.lines.append(line)
            continue
        opened = _FENCE.match(line.text)
        if opened:
            yield from _runs(run, standalone)
            run = []
            mark = opened[1]
            fence = Block("fence", [], lang=opened[2].lower(), closed=False)
            continue
        if not line.text.strip():
            yield from _runs(run, standalone)
            run = []
            continue
        run.append(line if standalone else _unlabelled(line))
    if fence is not None:
        yield fence
    yield from _runs(run, standalone)


def _unlabelled(line: Line) -> Line:
    """A launch command without the label in front of it; the line as it is where it holds none."""
    found = _LABELLED.match(line.text)
    rest = line.text[found.end() :].rstrip("`") if found else ""
    if rest and " --" in rest and _COMMAND.match(rest) and not _looks_prose(rest):
        return Line(line.no, rest)
    return line


def inline(block: Block) -> list[Line]:
    """Launch commands that stand whole between back-ticks inside prose."""
    found = ((line.no, part) for line in block.lines for part in re.findall(r"`([^`]{12,2000})`", line.text))
    return [Line(number, part) for number, part in found if " --" in part and _COMMAND.match(part)]


def _single(line: Line, standalone: bool) -> Kind:
    text = line.text
    if not standalone:
        if _LOG.match(text):
            return "log"
        if (_COMMAND.match(text) and not _looks_prose(text)) or _PROMPT.match(text) or _ENVIRONMENT.match(text):
            return "command"
    if _DIFF.match(text):
        return "diff"
    if _HEADING.match(text):
        return "heading"
    if text.lstrip().startswith(">"):
        return "quote"
    if _ITEM.match(text):
        return "item"
    return "text"


def _looks_prose(text: str) -> bool:
    if _SPOKEN.match(text) or _HAN.search(_PARAMETER.sub("", text)):
        return True
    return text.rstrip().endswith((".", "?", "。", "？")) and " --" not in text and len(text.split()) > 5


def _runs(lines: list[Line], standalone: bool) -> Iterator[Block]:
    """Blocks of one stretch without blank lines."""
    index = 0
    while index < len(lines):
        if not standalone and _BENCH.match(lines[index].text):
            stop = index + 1
            while stop < len(lines) and not re.match(r"^\s*={10,}\s*$", lines[stop].text):
                stop += 1
            yield Block("log", lines[index : stop + 1], lang="bench")
            index = stop + 1
            continue
        size = _table(lines, index)
        if size:
            yield Block("table", lines[index : index + size])
            index += size
            continue
        kind = _single(lines[index], standalone)
        stop = index + 1
        if kind in ("log", "diff"):
            while stop < len(lines) and (
                _single(lines[stop], standalone) == kind or _continues(lines[stop].text, kind)
            ):
                stop += 1
        elif kind == "command":
            while stop < len(lines) and (
                lines[stop - 1].text.rstrip().endswith("\\")
                or lines[stop].text.lstrip().startswith("--")
                or _ENVIRONMENT.match(lines[stop].text)
            ):
                stop += 1
        elif kind in ("text", "item", "quote"):
            while stop < len(lines) and _joins(lines[stop - 1].text, lines[stop], standalone, kind):
                if _table(lines, stop):
                    break
                stop += 1
        yield Block(kind, lines[index:stop])
        index = stop


def _continues(text: str, kind: Kind) -> bool:
    return kind == "log" and bool(re.match(r"^\s{2,}\S|^Traceback|^\s*File \"", text))


def _joins(before: str, line: Line, standalone: bool, kind: Kind) -> bool:
    """Whether a line is the soft-wrapped continuation of the one before (so that sentences are whole)."""
    if _RULE.match(line.text) or _BENCH.match(line.text):
        return False
    own = _single(line, standalone)
    if kind == "quote":
        return own == "quote" and len(before) > 40 and not re.search(r"[.:;!?。：；！？]\s*$", before)
    if own != "text" or re.search(r"[.:;!?。：；！？]\s*$", before):
        return bool(
            own == "text" and _PROSE.search(before) and len(before) > 60 and re.match(r"^\s*[a-z]", line.text)
        ) and (not re.search(r"[:：]\s*$", before))
    if re.match(r"^\s*[\w %./()#-]{1,40}\s?[:=|]\s?\S", line.text) and not _PROSE.search(before):
        return False
    if re.match(r"^\s*[a-z\u3400-\u9fff(]", line.text):
        return len(before.strip()) >= 40
    return len(before.strip()) >= 66 and bool(_PROSE.search(before))


def cells(text: str, mode: str) -> list[str]:
    """Cells of one table line by mode: ``md`` (pipes), ``csv``, ``tab``, ``gap`` (two or more spaces), ``space``."""
    if mode == "md":
        return [cell.strip() for cell in piped(text).strip().strip("|").split("|")]
    if mode in (",", ";"):
        return [cell.strip() for cell in text.split(mode)]
    if mode == "space":
        return text.split()
    return [cell.strip() for cell in re.split(r"\t+|\s{2,}", text.strip())]


def _table(lines: list[Line], start: int) -> int:
    """Number of lines of the table that begins here; 0 when none does."""
    framed = _framed(lines, start)
    if framed:
        return framed
    mode = table_mode([line.text for line in lines[start : start + 3]])
    if not mode:
        return 0
    size = 0
    width = len(cells(lines[start].text, mode))
    for line in lines[start:]:
        text = line.text
        if mode == "md":
            if text.count("|") < 1:
                break
        elif mode in (",", ";"):
            if len(cells(text, mode)) != width:
                break
        elif mode == "space":
            if len(text.split()) != width:
                break
        elif mode == "kv":
            if _keys(text) != _keys(lines[start].text):
                break
        elif (size >= 2 and ":" not in lines[start].text and _STATED.match(text)) or not (
            _GAP.search(text.strip()) or _MD_RULE.match(text) or set(text.strip()) <= set("-= ")
        ):
            break
        size += 1
    return size if size >= 2 else 0


def piped(text: str) -> str:
    """A line of a box drawn with Unicode as one of pipes and dashes, every character in its place."""
    return text.translate(_BOX)


def frame(text: str) -> bool:
    """Whether a line is a rule of a framed table (``+----+----+``, ``╞════╪════╡``)."""
    return bool(_FRAME.match(piped(text)))


def _framed(lines: list[Line], start: int) -> int:
    """Number of lines of a table in a frame that begins here; 0 when none does."""
    if not frame(lines[start].text):
        return 0
    stop = start
    while stop < len(lines) and (frame(lines[stop].text) or re.match(r"^\s*\|.*\|\s*$", piped(lines[stop].text))):
        stop += 1
    rows = [line.text for line in lines[start:stop] if not frame(line.text)]
    # The page of nvidia-smi has a reader of its own.
    own = any("NVIDIA-SMI" in text or "Driver Version" in text or "Volatile Uncorr" in text for text in rows[:6])
    return stop - start if len(rows) >= 2 and not own and all(piped(text).count("|") > 2 for text in rows) else 0


def table_mode(head: list[str]) -> str:
    """How the first lines of a stretch are laid out as a table; empty when they are not."""
    if len(head) < 2:
        return ""
    first, second = head[0], head[1]
    keys = _keys(first)
    if len(keys) >= 3 and keys == _keys(second) and len(set(keys)) == len(keys):
        return "" if _LOG.match(first) or _COMMAND.match(first) else "kv"
    if set(second.strip()) == {"-"} and len(head) > 2 and len(cells(first, "gap")) > 2 and _GAP.search(head[2].strip()):
        return "gap"
    if _listed(first, second):
        return "gap"
    if first.count("|") >= 1 and _MD_RULE.match(second) and "-" in second and "|" in second:
        return "md"
    if first.strip().startswith("|") and second.strip().startswith("|") and first.count("|") > 2:
        return "md"
    for mark in (",", ";"):
        wide = [cells(text, mark) for text in head]
        if len(wide[0]) >= 2 and len({len(row) for row in wide}) == 1 and not _PROSE.search(first):
            numeric = sum(bool(_NUM.fullmatch(cell)) for cell in wide[1])
            if numeric * 2 >= len(wide[1]) and all(len(cell) <= 40 for row in wide for cell in row) and " " not in mark:
                return mark
    if (
        _GAP.search(first.strip())
        and _GAP.search(second.strip())
        and not _bare_pair(first, second)
        and not _MEASURED.search(first)
    ):
        return "gap"
    parts = [text.split() for text in head]
    if len(head) >= 3 and len({len(row) for row in parts}) == 1 and 2 <= len(parts[0]) <= 12:
        rows = parts[1:]
        if all(_NUM.fullmatch(cell) for row in rows for cell in row[1:]) and not _NUM.fullmatch(parts[0][-1]):
            return "space"
    return ""


def _keys(text: str) -> list[str]:
    """Names of a ``key=value key=value`` line."""
    return [found["key"] for found in _KEYS.finditer(text)]


def _listed(first: str, second: str) -> bool:
    """Whether two lines are names with a value each, or an axis of bare numbers over a line of values."""
    rows = [[cell for cell in cells(text, "gap") if not cell.startswith("(")] for text in (first, second)]
    if any(len(row) < 2 or not _LEAD.match(row[0]) or not all(_VALUE.match(cell) for cell in row[1:]) for row in rows):
        return False
    width = len(rows[0])
    return width == len(rows[1]) and (width == 2 or all(_BARE.match(cell) for cell in rows[0][1:]))


def _bare_pair(first: str, second: str) -> bool:
    """Two ``key:   value`` lines are no table."""
    pair = re.compile(r"^\s*[^:=]{1,60}[:=]\s+\S[^\t]*$")
    return bool(pair.match(first) and pair.match(second))
