"""Read-only scraping of a live ``/metrics`` page, and range queries to a Prometheus server.

Redirects are not followed and link-local addresses are refused: a metrics fetcher must not become a way into a network.
Proxies from the environment are ignored for loopback.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct, field

from tools.contract import Problem, Reading, ReadResult, Source
from tools.metrics.facts import compute
from tools.metrics.names import canonical
from tools.metrics.read import add_row, identity, times_of
from tools.metrics.series import SeriesSet
from tools.part import Part

MAX_BYTES = 64 << 20
TIMEOUT_S = 10.0


class Refused(ValueError):
    """An address that is never fetched."""


def check_url(url: str) -> str:
    """The URL if it may be fetched. Raises :class:`Refused` for other schemes, credentials, link-local targets."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Refused(f"{parts.scheme or 'no scheme'}: only http and https addresses are read")
    if parts.username or parts.password:
        raise Refused("credentials in the address are not accepted; use INFERDX_HTTP_HEADER")
    try:
        found = {info[4][0] for info in socket.getaddrinfo(parts.hostname, parts.port or 80, proto=socket.IPPROTO_TCP)}
    except OSError as error:
        raise Refused(f"{parts.hostname}: name cannot be resolved ({error})") from None
    for text in found:
        address = ipaddress.ip_address(str(text).split("%")[0])
        if isinstance(address, ipaddress.IPv6Address):
            address = address.ipv4_mapped or address.sixtofour or address
        if address.is_link_local or address.is_multicast or address.is_unspecified:
            raise Refused(f"{parts.hostname} is {address}: link-local and multicast addresses are not read")
    return url


def fetch(url: str, params: dict[str, str] | None = None, timeout: float = TIMEOUT_S) -> tuple[int, str, bytes]:
    """GET without redirects: ``(status, content type, body up to 64 MiB)``. Raises ``httpx.HTTPError``, ``Refused``."""
    import os

    import httpx

    check_url(url)
    headers = {"User-Agent": "inferdx", "Accept": "text/plain, application/openmetrics-text;q=0.9, application/json"}
    extra = os.environ.get("INFERDX_HTTP_HEADER", "")
    if ":" in extra:
        name, value = extra.split(":", 1)
        headers[name.strip()] = value.strip()
    local = (urlsplit(url).hostname or "") in ("127.0.0.1", "localhost", "::1")
    with (
        httpx.Client(timeout=timeout, follow_redirects=False, trust_env=not local) as client,
        client.stream("GET", url, params=params, headers=headers) as answer,
    ):
        body = bytearray()
        stop = time.monotonic() + 3 * timeout
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > MAX_BYTES:
                break
            if time.monotonic() > stop:
                raise httpx.ReadTimeout("the answer did not end")
        return answer.status_code, answer.headers.get("content-type", ""), bytes(body)


def scrape(
    url: str, seconds: float, every: float = 5.0, tick: Callable[[int, float], None] | None = None
) -> tuple[list[Part], list[Problem], list[Reading]]:
    """Scrape ``url`` through a window of ``seconds`` (at least two scrapes when > 0). ``tick(n, left)`` shows progress."""
    import httpx

    parts: list[Part] = []
    problems: list[Problem] = []
    failed = 0
    start = time.time()
    count = max(2, round(seconds / every) + 1) if seconds > 0 else 1
    for number in range(count):
        target = start + number * (seconds / max(1, count - 1) if count > 1 else 0)
        while time.time() < target:
            time.sleep(min(0.2, max(0.0, target - time.time())))
        moment = time.time()
        try:
            status, _, body = fetch(url)
            if status == 200:
                parts.append(Part(name=f"{url}#{number}", data=body, kind="metrics", time=moment))
            else:
                failed += 1
                problems.append(
                    Problem(ref=url, what=f"HTTP {status}", do="is this the engine's own port?", severity="error")
                )
        except Refused as error:
            problems.append(Problem(ref=url, what=str(error), do="give another address", severity="error"))
            break
        except httpx.HTTPError as error:
            failed += 1
            what = f"no answer ({type(error).__name__})"
            problems.append(Problem(ref=url, what=what, do="is the server up and the port right?", severity="error"))
        if tick:
            tick(number + 1, max(0.0, start + seconds - time.time()))
        if failed >= 3 and not parts:
            break
    readings = []
    if not parts:
        readings.append(
            Reading(
                fact="metrics.endpoint_down",
                value=True,
                source=Source(kind="url", ref=url),
                method=f"{failed} scrapes failed",
            )
        )
    return parts, _once(problems), readings


def _once(problems: Iterable[Problem]) -> list[Problem]:
    return list({p.line(): p for p in problems}.values())


def _names() -> list[str]:
    out: list[str] = []
    for item in canonical().values():
        for name in item.names:
            if item.kind == "histogram":
                out += [f"{name}_bucket", f"{name}_sum", f"{name}_count"]
            elif item.kind == "counter":
                out.append(name if name.endswith("_total") else f"{name}_total")
            else:
                out.append(name)
    return out


class Answer(Struct, kw_only=True):
    """What a Prometheus server said to the one query. ``data`` is ``None`` when it said nothing that can be read."""

    selector: str
    step: float
    body: bytes = b""
    data: Any = None
    problems: list[Problem] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)


def ask(base: str, match: str, start: float, end: float, step: float = 0.0) -> Answer:
    """All known engine series of a Prometheus server over a range, as it answered. Units: Unix seconds.

    ``match`` is a label matcher list such as ``model_name="m",namespace="prod"``. ``step`` 0 chooses about 120 points.
    """
    import json

    import httpx

    step = step or max(5.0, round((end - start) / 120))
    selector = "{" + ",".join(x for x in ('__name__=~"' + "|".join(_names()) + '"', match.strip("{} ")) if x) + "}"
    answer = Answer(selector=selector, step=step)
    url = base.rstrip("/") + "/api/v1/query_range"
    params = {"query": selector, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
    try:
        status, _, answer.body = fetch(url, params, timeout=30.0)
        data: Any = json.loads(answer.body)
    except Refused as error:
        answer.problems.append(Problem(ref=base, what=str(error), severity="error"))
        return answer
    except (httpx.HTTPError, ValueError) as error:
        what = f"Prometheus did not answer ({type(error).__name__})"
        answer.problems.append(Problem(ref=base, what=what, do="check the address", severity="error"))
        answer.readings.append(
            Reading(fact="metrics.endpoint_down", value=True, source=Source(kind="url", ref=base), method=what)
        )
        return answer
    if status != 200 or data.get("status") != "success":
        what = f"Prometheus answered {status}: {str(data.get('error', ''))[:120]}"
        answer.problems.append(Problem(ref=base, what=what, do="check --match and the time range", severity="error"))
        return answer
    answer.data = data
    return answer


def prometheus(base: str, match: str, start: float, end: float, step: float = 0.0) -> ReadResult:
    """What :func:`ask` got, as one window of facts.

    Raw series are fetched and turned into deltas here, so counter resets are seen and no PromQL rounding hides them.
    """
    answer = ask(base, match, start, end, step)
    result = ReadResult(problems=answer.problems, readings=answer.readings)
    if answer.data is None:
        return result
    series = SeriesSet()
    rows = answer.data["data"]["result"]
    if not rows:
        what = f"no vLLM or SGLang series for {match or 'any label'} in this range"
        result.problems.append(
            Problem(ref=base, what=what, do="check --match, --from and the scrape job", severity="error")
        )
        result.readings.append(
            Reading(
                fact="metrics.unusable",
                value=True,
                source=Source(kind="query", ref=base, query=answer.selector[:200]),
                method=what,
            )
        )
        return result
    for row in rows:
        add_row(series, row, base)
    times_of(series)
    if series.times and end - series.times[-1] > max(5 * answer.step, 120):
        age = end - series.times[-1]
        what = f"newest sample is {age:.0f} s older than the end of the range"
        result.problems.append(Problem(ref=base, what=what, do="is the target still scraped?"))
        result.readings.append(
            Reading(fact="metrics.stale", value=True, source=Source(kind="query", ref=base), method=what)
        )
    result.readings.extend(compute(series, "query"))
    result.readings.extend(identity(series))
    return result
