"""First-token times told from two places: the client's and the engine's."""

from __future__ import annotations

import pytest

from tools.contract import Context
from tools.part import Part
from tools.report.read import read


def _told(text: str) -> dict[str, object]:
    out = read([Part(name="r.md", data=text.encode())], Context())
    return {r.fact: r.value for r in out.readings if r.fact.startswith("client.")}


@pytest.mark.parametrize(
    ("text", "ratio", "extra"),
    [
        ("client TTFT ~5 s at every rate.\nengines: `vllm:time_to_first_token_seconds` averages ~0.5 s.", 10.0, 4.5),
        ("Users wait 8 s for the first token. vLLM's own TTFT is 400 ms.", 20.0, 7.6),
        ("TTFT p99 at the client is 3 s while the server-side histogram says 0.3 s.", 10.0, 2.7),
        ("Through the gateway TTFT is 4 s, direct to the engine it is 0.5 s", 8.0, 3.5),
        ("客户端首 token 延迟 6 秒,服务端 TTFT 只有 0.5 秒。", 12.0, 5.5),
        # The least that was said: the client's best against the engine's worst.
        ("Client TTFT is 4 s, later client TTFT 9 s. Engine TTFT is 0.5 s, then engine TTFT 1 s.", 4.0, 3.0),
    ],
)
def test_both_sides_make_a_ratio(text: str, ratio: float, extra: float) -> None:
    found = _told(text)
    assert found["client.ttft.over_server"] == pytest.approx(ratio)
    assert found["client.ttft.extra_s"] == pytest.approx(extra)


@pytest.mark.parametrize(
    "text",
    [
        "TTFT went from 0.4 s to 8 s after the upgrade.",
        "Client TTFT is 5 s.",
        "The engine's own TTFT is 5 s.",
        "Client TTFT is 0.3 s, the engine's own TTFT 0.4 s.",
        "Is a client TTFT of 5 s normal when the engine's own TTFT is 0.5 s?",
        "Client ITL is 50 ms, the engine's own ITL 5 ms.",
        "Client TTFT p99 is 5 s. The engine's own mean TTFT is 0.5 s.",
    ],
)
def test_one_side_or_none_makes_no_claim(text: str) -> None:
    assert _told(text) == {}
