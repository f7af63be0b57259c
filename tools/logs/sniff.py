"""How sure a text is to be a log of an inference server, of its host or of a proxy in front. Standard library only."""

from __future__ import annotations

import re

_STRONG = re.compile(
    r"(?m)"
    r"^(?:\x1b\[[0-9;]*m|\([^()\n]{1,60}pid=\d+[^()\n]{0,40}\)|\s|\d+: )*(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)"
    r" \d\d-\d\d \d\d:\d\d:\d\d"
    r"|^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]\n]{0,30}\] "
    r"|^[^\n]{0,120}\" ?(?:- )?\"(?:GET|POST) /\S* HTTP/\d"
    r"|^INFO: {4,}\S+ - \"(?:GET|POST) /"
    r"|Avg prompt throughput: [\d.]+ tokens/s"
    r"|(?:Prefill|Decode) batch[^\n]{0,40}#(?:new-seq|running-req): \d+"
    r"|^\d{4}-\d\d-\d\dT[\d:.]+Z?\s+(?:TRACE|DEBUG|INFO|WARN|ERROR) [\w.:]+"
    r"|NVRM: Xid|NCCL (?:INFO|WARN)|Out of memory: Killed process|oom-kill:"
    r"|^Traceback \(most recent call last\):"
    r"|^max_total_num_tokens=\d|CUDA graph (?:begin|end)\.|: error: unrecognized arguments"
)
_WEAK = re.compile(
    r"(?m)"
    r"^(?:\S+ )?\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d"
    r"|^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ \S+:"
    r"|^\[\s*\d+\.\d{6}\]"
    r"|^\[?(?:INFO|WARN|WARNING|ERROR|CRITICAL)\]?[: ]"
    r"|^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+"
    r"|^\{\"[^\n]{0,400}\"(?:level|levelname|severity|log)\""
    r"|^(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b: "
    r"|\bOOMKilled\b|(?:Liveness|Readiness|Startup) probe failed|Back-off restarting failed container"
)
_NAME = re.compile(r"(?i)(?:^|[/_.-])(?:log|logs|stderr|stdout|dmesg|journal|events)(?:[/_.-]|$)")
_SUFFIX = re.compile(r"(?i)\.log(?:\.\d+)?(?:\.gz)?$|(?:^|/)dmesg[^/]*$")
_REPORT = re.compile(r"(?m)^(?:#{1,4} |```|\* |> )")


def sniff(name: str, head: str) -> float:
    """0 to 1. ``name``: file name; ``head``: the first 64 KiB of text."""
    sample = head[:65536]
    if not sample.strip():
        return 0.0
    lines = min(sample.count("\n") + 1, 400)
    strong = sum(1 for _, _ in zip(range(40), _STRONG.finditer(sample), strict=False))
    weak = sum(1 for _, _ in zip(range(40), _WEAK.finditer(sample), strict=False))
    named = 0.5 if _SUFFIX.search(name) else 0.25 if _NAME.search(name) else 0.0
    share = min(1.0, (strong + 0.5 * weak) / max(1, min(lines, 40)))
    if not strong and not weak:
        return named
    base = 0.45 + 0.5 * share if strong else 0.2 + 0.4 * share
    if len(_REPORT.findall(sample)) >= 2 and share < 0.5:
        base *= 0.4  # a Markdown report that quotes a few log lines is not a log
    return min(0.98, base + named)
