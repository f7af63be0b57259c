"""Is this an engine's metrics page, an index of scrapes, or a recorded answer of the Prometheus API?"""

from __future__ import annotations

import re

_SERIES = re.compile(
    r"^(?:ray_)?(?:vllm[:_]|sglang[:_]|tgi_|process_|http_request|python_|llamacpp:)[a-z0-9_:]+(?:\{|\s)", re.M
)
_ANY = re.compile(r"^[a-zA-Z_:][a-zA-Z0-9_:]*(?:\{[^}\n]*\})? +[-+0-9.eENaInf]+(?: \d+)?$", re.M)
FAILED = "# SCRAPE FAILED"  # what recording scripts leave where the server did not answer
_TYPE = re.compile(r"^# (?:TYPE|HELP|UNIT) \S+", re.M)
# What a server or a proxy answers with in place of series: HTML, JSON, a status line.
_ANSWER = re.compile(r"^\s*[<{\[]|^HTTP/|^upstream |^curl: |^# (?:EOF|SCRAPE)", re.M)
_NAME = re.compile(r"\.(?:prom|metrics)(?:\.gz)?$|(?:^|/)metrics[-_.]?\d*\.(?:txt|prom)", re.I)


def sniff(name: str, head: str) -> float:
    """0..1: how sure this is a metrics page (or its index, or a recorded API answer)."""
    if '"scrapes"' in head[:4000] and '"unix"' in head[:4000]:
        return 0.95
    if '"resultType"' in head[:6000] and '"status"' in head[:6000]:
        return 0.95
    if head.startswith(FAILED):
        return 0.97
    hits = len(_SERIES.findall(head[:20000]))
    if hits >= 2 and len(_ANY.findall(head[:20000])) >= 2:
        return 0.97
    if _NAME.search(name):
        # "metrics.txt" may as well be somebody's own table of figures; a proxy's page in its place is a lost scrape.
        page = any(pattern.search(head) for pattern in (_ANY, _TYPE, _ANSWER))
        return 0.0 if name.lower().endswith(".txt") and head.strip() and not page else 0.9
    if _TYPE.search(head[:4000]) and _ANY.search(head[:20000]):
        return 0.6
    return 0.0
