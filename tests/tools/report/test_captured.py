"""A log line quoted in prose gives the figure in it, never a bare yes."""

from __future__ import annotations

from typing import Any

import pytest

from tools.report.concepts import match


@pytest.mark.parametrize(
    ("text", "fact", "value"),
    [
        ("It ends with: Process 4711 has 3.25 GiB memory in use.", "log.oom_other_process_gib", 3.25),
        ("The log has Maximum concurrency for 8,192 tokens per request: 4.50x and that is all.", "log.kv_cache.max_concurrency", 4.5),
        ("dmesg shows NVRM: Xid (PCI:0000:0b:00): 79, pid=12", "log.xid", [79]),
    ],
)  # fmt: skip
def test_the_group_of_a_signature_is_its_value(text: str, fact: str, value: Any) -> None:
    found = {r.fact: r.value for r in match("report.md", [(1, text)])}
    assert found[fact] == value
