"""Is this a profile: nsys, torch.profiler, Nsight Compute, py-spy, perf, speedscope?"""

from __future__ import annotations

import re

_STATS = re.compile(
    r"(?:cuda_(?:gpu|api|kern)_[a-z_]+|gpukernsum|cudaapisum|gpumem(?:time|size)sum|gputrace|osrt_?sum|nvtx[a-z_]*sum)['\")\]. (:]",
    re.I,
)
_COLUMNS = re.compile(r"Time ?\(%\)[\s,;|\"]+Total Time.*(?:Instances|Num Calls|Calls|Count|Operations)", re.I)
_TRACE_COLUMNS = re.compile(r"Start \(\w+\)[\s,;|\"]+Duration \(\w+\).*(?:Strm|CorrId|Name)", re.I)
_SIZE_COLUMNS = re.compile(r"Total \([KMG]i?B\)[\s,;|\"]+Count.*Operation", re.I)
_KEYS = re.compile(r"Self CPU %?\s+(?:Self CPU|CPU total)")
_NCU = re.compile(r'"Kernel Name".*"Metric Name"|^"ID","Process ID"', re.M)
_DUMP = re.compile(r'^\s*Thread (?:0x[0-9A-Fa-f]+|\d+)?\s*\((?:active|idle)[a-z+ ]*\)(?::\s*"?.*)?$', re.M)
_TOP = re.compile(r"GIL:\s*[\d.]+%,\s*Active:\s*[\d.]+%")
_TOP_ROWS = re.compile(r"%Own\s+%Total\s+OwnTime\s+TotalTime")
_PERF_REPORT = re.compile(r"^# Samples: .* of event|^# Overhead\s+Command|^# Children\s+Self", re.M)
_PERF_SCRIPT = re.compile(
    r"^\S.{0,60}?\s+\d+(?:/\d+)?\s+(?:\[\d+\]\s+)?\d+\.\d+:\s+(?:\d+\s+)?\S+?:\s*\n\s+[0-9a-f]+ ", re.M
)
_STACK = re.compile(r"^[^\s;][^;\n]{0,400}(?:;[^;\n]{1,400})+ \d+\s*$", re.M)
_TUNING = re.compile(
    r"^[\w ()]+,\s*(?:default|baseline|untuned)[\w ()]*,\s*(?:tuned|optimi[sz]ed)[\w ()]*\s*$", re.I | re.M
)


def sniff(name: str, head: str) -> float:
    """0..1: how sure this is a profile, by content first and by name second."""
    text = head.lstrip("\ufeff \t\r\n")
    low = name.lower()
    if text.startswith("SQLite format 3"):
        return 0.95
    if low.endswith((".nsys-rep", ".qdrep", ".qdstrm", ".ncu-rep")) or text.startswith(("PERFILE2", "PERFFILE")):
        return 0.9
    if text.startswith(("{", "[")):
        return _json(low, text)
    if "<svg" in text[:2000] and "samples" in text and ("flame" in text[:20000].lower() or "fg:w" in text):
        return 0.95
    if _NCU.search(head[:4000]):
        return 0.95
    for pattern in (_COLUMNS, _TRACE_COLUMNS, _SIZE_COLUMNS, _KEYS, _TOP, _TOP_ROWS, _PERF_REPORT):
        if pattern.search(head):
            return 0.95
    if _TUNING.search(head[:4000]) and "kernel" in (low + head[:4000].lower()):
        return 0.9
    if len(_DUMP.findall(head[:40000])) >= 1:
        return 0.93
    if _STATS.search(head[:20000]) and re.search(r"nsys|Executing '|\*\* |Processing \[", head):
        return 0.85
    if _PERF_SCRIPT.search(head[:20000]):
        return 0.92
    return _stacks(low, head[:20000])


def _json(low: str, text: str) -> float:
    start = text[:65536]
    if '"traceEvents"' in start or re.search(r'"ph"\s*:\s*"[BEXMibensfCPNODt]"', start):
        return 0.97
    if "speedscope" in start or ('"shared"' in start and '"frames"' in start):
        return 0.97
    if re.search(r'"Time \(%\)"|"Total Time \(\w+\)"|"Start \(\w+\)"', start):
        return 0.95
    if re.match(r'\{\s*"schemaVersion"\s*:', start) or '"deviceProperties"' in start or '"distributedInfo"' in start:
        return 0.9
    return 0.7 if low.endswith((".pt.trace.json", ".speedscope.json")) else 0.0


def _stacks(low: str, head: str) -> float:
    lines = [
        line
        for line in head.splitlines()[:-1] or head.splitlines()
        if line.strip() and not line.startswith(("#", "//"))
    ]
    hits = len(_STACK.findall(head))
    if hits >= 2 and hits >= 0.6 * len(lines):
        return 0.85
    if (
        hits >= 1
        and hits >= 0.6 * max(1, len(lines))
        and re.search(r"collapsed|folded|stacks?|py-?spy|profile|\.raw", low)
    ):
        return 0.8
    return 0.0
