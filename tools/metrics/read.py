"""Reads scrapes, an index of their times, and recorded answers of the Prometheus API into facts."""

from __future__ import annotations

import json
import re
from typing import Any

from tools.contract import Context, Problem, Reading, ReadResult, Source
from tools.metrics.exposition import Page, parse_page
from tools.metrics.facts import compute
from tools.metrics.series import Ref, SeriesSet, pool_tokens
from tools.metrics.sniff import FAILED
from tools.part import Part

_ASK = "scrape the engine's own /metrics (same port as its API)"


def read(parts: list[Part], context: Context) -> ReadResult:
    """Facts of all metrics parts together: scrapes are ordered in time and read as one window.

    ``context.match`` keeps only series whose labels equal (model or engine of interest). Every unusable page is named.
    """
    result = ReadResult()
    pages: list[tuple[float | None, Part, Page]] = []
    answers: list[Part] = []
    times: dict[str, float] = {}
    for part in parts:
        head = part.head(4096).lstrip()
        if head.startswith(b"{") and b'"scrapes"' in part.head(65536):
            times.update(_index(part, result))
        elif head.startswith(b"{"):
            answers.append(part)
        else:
            page = _page(part, result)
            if page is not None:
                pages.append((None, part, page))
    if pages:
        series = _assemble(pages, times, context, result)
        result.readings.extend(compute(series))
        result.readings.extend(identity(series))
    elif parts and not answers:
        result.readings.append(_unreadable(parts[0], "no metrics page could be used"))
    if answers:
        series = SeriesSet()
        for part in answers:
            _answer(part, series, result)
        if series.tracks:
            times_of(series)
            readings = compute(series, "query")
            known = {r.fact for r in result.readings}
            result.readings.extend(r for r in readings if not pages or r.fact not in known)
            if not pages:
                result.readings.extend(identity(series))
    return result


def _unreadable(part: Part, why: str) -> Reading:
    return Reading(
        fact="metrics.unusable",
        value=True,
        source=Source(kind="file", ref=part.name),
        method=why,
    )


def _page(part: Part, result: ReadResult) -> Page | None:
    """One parsed page, or ``None`` with a problem that names what it is instead."""
    name = part.name
    if part.is_binary():
        result.problems.append(Problem(ref=name, what="binary data, not a metrics page", do=_ASK, severity="error"))
        return None
    page = parse_page(part.lines())
    cut = part.is_cut()
    if cut and page.good:
        result.problems.append(Problem(ref=name, what=cut, do="kept the lines before the cut"))
    if page.html:
        what = "an HTML page (a proxy's error page?), not metrics"
        result.problems.append(Problem(ref=name, what=what, do=_ASK, severity="error"))
        result.readings.append(
            Reading(
                fact="metrics.html_page",
                value=True,
                source=Source(kind="file", ref=name, line=1),
                method="starts as HTML",
            )
        )
        return None
    if page.good == 0:
        what = cut or ("no metric in it" if page.bad else _said(part))
        do = "the server was down or the scrape failed; scrape again" if not page.bad else _ASK
        result.problems.append(Problem(ref=name, what=what, do=do, severity="error"))
        result.readings.append(
            Reading(fact="metrics.empty_page", value=True, source=Source(kind="file", ref=name), method=what)
        )
        return None
    if page.bad:
        what = f"{page.bad} of {page.bad + page.good} lines are not valid exposition ({page.first_bad})"
        result.problems.append(Problem(ref=name, what=what, do="kept the good lines"))
    if not any(re.match(r"(?:ray_)?(?:vllm|sglang|tgi)[:_]", key[0]) for key in page.samples):
        seen = (
            sorted(page.other, key=lambda k: -page.other[k])[:3]
            or sorted({k[0].split("_")[0] for k in page.samples})[:3]
        )
        what = f"no vLLM or SGLang series in it (families: {', '.join(seen) or 'none'})"
        result.problems.append(Problem(ref=name, what=what, do=_ASK, severity="error"))
        result.readings.append(
            Reading(
                fact="metrics.other_exporter",
                value=", ".join(seen) or "none",
                source=Source(kind="file", ref=name),
                method=what,
            )
        )
        if any(k[0].startswith(("http_", "process_")) for k in page.samples):
            result.readings.append(
                Reading(
                    fact="metrics.engine_series_absent", value=True, source=Source(kind="file", ref=name),
                    method="HTTP or process series without engine series: log stats may be disabled",
                )
            )  # fmt: skip
        return None
    return page


def _said(part: Part) -> str:
    """An empty page, with the reason that the recording script left in it."""
    first = next((line for _, line in part.lines(1)), "")
    return f"empty page ({first.lstrip('# ')[:100]})" if first.startswith(FAILED) else "empty page"


def _index(part: Part, result: ReadResult) -> dict[str, float]:
    try:
        data = json.loads(part.text())
        return {str(row["file"]).rsplit("/", 1)[-1]: float(row["unix"]) for row in data["scrapes"] if "unix" in row}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"index of scrapes cannot be read ({type(error).__name__})"
        result.problems.append(Problem(ref=part.name, what=what, do="rates need the time of each scrape"))
        return {}


_STAMP = re.compile(r"(?<!\d)(1[5-9]\d{8}|2\d{9})(?:\.\d+)?(?!\d)")


def _time_of(part: Part, page: Page, times: dict[str, float]) -> float | None:
    """From the index, the caller, a timestamp on the samples, or ten digits of Unix time in the file name."""
    base = part.name.rsplit("/", 1)[-1]
    if base in times:
        return times[base]
    if part.time is not None:
        return part.time
    stamps = [s.time for s in page.samples.values() if s.time is not None]
    if stamps:
        return max(stamps)
    found = _STAMP.search(base)
    return float(found[0]) if found else None


def _assemble(
    pages: list[tuple[float | None, Part, Page]], times: dict[str, float], context: Context, result: ReadResult
) -> SeriesSet:
    dated = [(_time_of(part, page, times), part, page) for _, part, page in pages]
    series = SeriesSet()
    if any(time is None for time, _, _ in dated):
        series.timed = False
        order = sorted(dated, key=lambda item: (_work(item[2]), item[1].name))
        if len(order) > 1:
            what = f"{len(order)} scrapes without a time: ratios over the window are given, rates per second are not"
            result.problems.append(
                Problem(ref=order[0][1].name, what=what, do='add scrapes.json {"scrapes":[{"file":…,"unix":…}]}')
            )
        for number, (_, part, page) in enumerate(order):
            _take(series, page, part.name, float(number), context)
    else:
        for time, part, page in sorted(dated, key=lambda item: (item[0] or 0.0, item[1].name)):
            _take(series, page, part.name, time or 0.0, context)
    return series


def _work(page: Page) -> float:
    """A monotone amount of work, to order scrapes that carry no time."""
    return sum(s.value for (name, _), s in page.samples.items() if name.endswith(("_tokens_total", "requests_total")))


def _take(series: SeriesSet, page: Page, ref: str, time: float, context: Context) -> None:
    if context.match:
        page.samples = {
            key: value
            for key, value in page.samples.items()
            if all(dict(key[1]).get(k, v) == v for k, v in context.match.items())
        }
    series.add_page(page, ref, time)


def _answer(part: Part, series: SeriesSet, result: ReadResult) -> None:
    """A recorded ``query_range`` answer whose series carry a metric name; anything else is left alone."""
    try:
        data: Any = json.loads(part.text())
        body = data.get("response", data)
        inner = body["data"]
        rows = inner["result"] if isinstance(inner, dict) else []
        query = str(data.get("params", {}).get("query", "")) if isinstance(data.get("params", {}), dict) else ""
    except (ValueError, KeyError, TypeError, AttributeError):
        if '"error"' in part.text(20000):
            result.problems.append(
                Problem(ref=part.name, what="the Prometheus API answered with an error", severity="note")
            )
        return
    if isinstance(inner, dict) and inner.get("resultType") == "matrix" and not rows and query:
        result.problems.append(
            Problem(ref=part.name, what=f"no series for {query[:80]}", do="check the name and the labels")
        )
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict) and isinstance(row.get("metric"), dict) and "__name__" in row["metric"]:
            add_row(series, row, part.name)


def add_row(series: SeriesSet, row: dict[str, Any], ref: str) -> None:
    """One ``{"metric": …, "values": [[t, "v"], …]}`` of the Prometheus API into the set."""
    labels = {str(k): str(v) for k, v in row["metric"].items()}
    name = labels.pop("__name__")
    key = tuple(sorted(labels.items()))
    for point in row.get("values", []):
        try:
            time, value = float(point[0]), float(point[1])
        except (ValueError, TypeError, IndexError):
            continue
        series.add_point(name, key, time, value, Ref(ref, 0))


def times_of(series: SeriesSet) -> None:
    series.times = sorted({t for table in series.tracks.values() for track in table.values() for t in track.times})


def identity(series: SeriesSet) -> list[Reading]:
    out: list[Reading] = []
    ref = series.refs[0] if series.refs else ""
    for engine in sorted(series.engines):
        out.append(
            Reading(
                fact="engine.name",
                value=engine,
                source=Source(kind="file", ref=ref),
                method="prefix of the metric names",
            )
        )
    for model in sorted(series.models):
        out.append(
            Reading(
                fact="model.served_name", value=model, source=Source(kind="file", ref=ref), method="label model_name"
            )
        )
    out.extend(_cache_config(series))
    return out


_INFO = {
    "num_gpu_blocks": ("config.num_gpu_blocks", float),
    "block_size": ("config.block_size", float),
    "gpu_memory_utilization": ("config.gpu_memory_utilization", float),
    "enable_prefix_caching": ("config.enable_prefix_caching", lambda v: v == "True"),
    "cache_dtype": ("config.kv_cache_dtype", str),
    "kv_cache_size_tokens": ("kv.capacity_tokens", float),
    "kv_cache_max_concurrency": ("kv.max_concurrency", float),
}


def _cache_config(series: SeriesSet) -> list[Reading]:
    """Configuration that the page itself carries (``vllm:cache_config_info`` labels)."""
    out: list[Reading] = []
    for track in series.all("cache_config")[:1]:
        for label, (fact, turn) in _INFO.items():
            text = track.labels.get(label, "")
            if text in ("", "None"):
                continue
            try:
                value = turn(text)  # type: ignore[operator]
            except ValueError:
                continue
            out.append(
                Reading(
                    fact=fact, value=value, method=f"label {label} of {track.name}", labels={"origin": "metrics"},
                    source=Source(kind="file", ref=track.refs[-1].ref, line=track.refs[-1].line),
                )
            )  # fmt: skip
        tokens = pool_tokens(track.labels)
        if tokens and not any(r.fact == "kv.capacity_tokens" for r in out):
            out.append(
                Reading(
                    fact="kv.capacity_tokens", value=tokens, method="num_gpu_blocks × block_size",
                    source=Source(kind="file", ref=track.refs[-1].ref, line=track.refs[-1].line),
                    caveats=("misleading for hybrid models before 0.24",),
                )
            )  # fmt: skip
    return out
