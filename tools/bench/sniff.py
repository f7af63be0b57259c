"""How sure a text is to be the result of a load generator. Standard library only."""

from __future__ import annotations

import re

_STRONG = re.compile(
    r"(?i)serving benchmark result"
    r'|"(?:request_throughput|output_throughput|mean_ttft_ms|median_ttft_ms|median_ttft|mean_itl_ms|mean_e2e_latency_ms)"\s*:'
    r'|"time_to_first_token(?:_ms)?"\s*:\s*\{|"load_summary"\s*:|"schedule_delay"\s*:'
    r'|"ttfts"\s*:\s*\[|"itls"\s*:\s*\[|"ttft_s(?:_median)?"\s*:|"decode_tps\w*"\s*:'
    r'|"completion_tokens"[^\n]{0,200}"ttft"|"ttft"[^\n]{0,200}"completion_tokens"'
    r"|nvidia aiperf|genai-perf|Benchmarks Stats:|Request Latency Statistics|Server Throughput Statistics"
    r"|output token throughput \(tok|Benchmark duration \(s\)|Successful requests:"
    r"|[|│] *Time taken for tests \(s\) *[|│]|[|│] *Average time to first token \(s\) *[|│]|[|│] *Number of concurrency *[|│]"
    r"|Throughput: [\d.]+ requests/s, [\d.]+ |^Time To First Token \(ms\)|[│┃] +time to first token \(ms\)|\d+% percentile latency:"
)
_PAIR = re.compile(
    r"(?im)^(?:mean|median|p\d\d|max) (?:ttft|tpot|itl|e2e)[^\n:]{0,20}:|^(?:request|output|total|input)[^\n:]{0,12} throughput[^\n:]{0,12}:"
    r"|^output throughput: [\d.]+|\b(?:ttft|decode|tpot)=[\d.]+ ?(?:s|ms|tok/s)"
)
_HEAD = re.compile(
    r"(?i)(?<![a-z])(?:ttft|tpot|itl|tok(?:en)?s?\s*/\s*s|tokens_per_s|(?<![a-z])tps\b|req(?:uest)?s?\s*/\s*s|requests_per_(?:s|min)|throughput|accept(?:ance)?[ _]len\w*|acclen|latency)"
)
_NAME = re.compile(
    r"(?i)(?:^|[/_.-])(?:bench\w*|results?|sweep|throughput|loadtest|load_test|perf|aiperf|guidellm|client)(?:[/_.-]|$)"
)
_LOG = re.compile(r"(?m)^(?:\([^)\n]{1,60}pid=|(?:INFO|WARNING|ERROR) \d\d-\d\d |INFO: {4,}|\[\d{4}-\d\d-\d\d )")
_PROSE = re.compile(r"(?m)^#{1,4} [^\n]*$|^```")
_YAML = re.compile(r"(?m)^\s*(?:#|- |[\w.\"'-]{1,60}:(?:\s|$))")
_NCCL = re.compile(r"(?i)bus ?bw|algbw")
_PASSES = re.compile(r"(?m)^[A-Za-z]\w{0,20} \d+: ~?\d[\d.,]*\s*$")
_TOOL = re.compile(
    r"(?i)vllm bench|bench_serving|benchmark_serving|guidellm|genai-perf|\baiperf\b|inference-perf|evalscope"
)
_METRICS = re.compile(r"(?m)^# (?:HELP|TYPE) ")


def sniff(name: str, head: str) -> float:
    """0 to 1. ``name``: file name; ``head``: the first 64 KiB of text."""
    sample = head[:65536]
    if not sample.strip() or _METRICS.search(sample):
        return 0.0
    named = 0.2 if _NAME.search(name) else 0.0
    strong = len({found[0].lower() for found in _STRONG.finditer(sample)})
    pairs = sum(1 for _, _ in zip(range(12), _PAIR.finditer(sample), strict=False))
    logs = sum(1 for _, _ in zip(range(40), _LOG.finditer(sample), strict=False))
    prose = len(_PROSE.findall(sample))
    score = 0.0
    if strong:
        score = min(0.97, 0.7 + 0.1 * min(strong, 3))
    elif pairs:
        score = min(0.9, 0.5 + 0.08 * pairs)
    elif not _NCCL.search(sample):
        score = _table(sample)
        if not score and len(_PASSES.findall(sample)) >= 2 and _HEAD.search(sample):
            score = 0.5
    if score == 0.0:
        return 0.0
    if logs > 3 and logs > 2 * pairs:
        score *= 0.3  # a server log that quotes a figure
    report = name.lower().rsplit("/", 1)[-1].startswith(("report", "readme", "issue"))
    if (report or (prose >= 2 and name.lower().endswith((".md", ".markdown")))) and strong < 3:
        score *= 0.4  # a report with a table in it
    elif _TOOL.search(sample):
        score += 0.2
    return min(0.98, score + named)


def _table(sample: str) -> float:
    """A head with benchmark quantities over at least two rows of numbers."""
    lines = [line for line in sample.split("\n")[:400] if line.strip()]
    if len(_YAML.findall(sample)) > 0.3 * len(lines) and len(lines) > 6:
        return 0.0  # configuration with a table in its comments
    for at, line in enumerate(lines[:60]):
        if len(line) > 400 or line.lstrip().startswith("#") or not _HEAD.search(line):
            continue
        columns = len(re.split(r"\s*[|]\s*|\s{2,}|\t|,", line.strip("| ")))
        if columns < 2:
            continue
        below = lines[at + 1 : at + 8]
        rows = sum(
            1
            for row in below
            if len(re.split(r"\s*[|]\s*|\s{2,}|\t|,", row.strip("| "))) >= 2 and re.search(r"\d", row)
        )
        if rows >= 2:
            return 0.55 if columns >= 3 else 0.5
    return 0.0
