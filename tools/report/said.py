"""What a person says about the set-up: GPUs, model, engine, versions, settings, load; and what differs between runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.contract import Reading
from tools.report import emit, spans
from tools.report.conditions import Condition
from tools.report.document import Document
from tools.report.observe import Parsed
from tools.report.pairs import Pair

_KIND = {
    "gpu": ("said.gpu.name", "the GPU named"),
    "model": ("said.model", "the model named"),
    "engine": ("said.engine", "the engine named"),
    "framework": ("said.framework", "the serving layer named"),
    "quant": ("said.quantization", "the weight format named"),
    "dtype": ("said.dtype", "the number format named"),
}
_LOAD = {
    "concurrency": ("said.concurrency", "requests"),
    "gpus": ("said.gpu.count", "GPUs"),
    "prompt_tokens": ("said.prompt_tokens", "tokens"),
    "context": ("said.prompt_tokens", "tokens"),
    "output_tokens": ("said.output_tokens", "tokens"),
    "power_cap": ("said.power_limit_w", "W"),
}
_FOREIGN = re.compile(
    r"\b(?:others?|somebody|someone|people|everyone|everybody|a friend|their|theirs|published|publishes)\b|别人|其他人",
    re.IGNORECASE,
)
_DIFFERENCE = {
    "version_upgrade": "version_upgrade",
    "feature_on_off": "feature_on_off",
    "gpu_count": "gpu_count",
    "route": "route",
    "hardware": "hardware",
    "time": "time",
    "run_order": "run_order",
    "dependency": "dependency",
    "config_value": "config",
    "attention_backend": "attention_backend",
    "layout": "layout",
    "number_format": "number_format",
    "routing_policy": "routing_policy",
}
_PIN = re.compile(r"^(?P<sign>[-+])\s?(?P<name>[A-Za-z_][\w.\[\]-]*)\s?(?:==|@|=|:)\s?(?P<value>\S+)$")
_ENGINES = ("vllm", "sglang", "tensorrt_llm", "tensorrt-llm", "lmdeploy")
_LIMIT = 60


def entities(doc: Document) -> Iterator[Reading]:
    """Names and numbers of the set-up, each with its span."""
    ref = doc.part.name
    versions: list[tuple[str, int, str]] = []
    for parsed in (*doc.parsed[:2000], *doc.listed[:2000]):
        text = parsed.sentence.text
        for item in parsed.entities:
            if not _stands(parsed, item.start, item.stop):
                continue
            line, span = parsed.sentence.locate(item.start, item.stop)
            if item.kind in _KIND:
                fact, method = _KIND[item.kind]
                labels = {"of": "others"} if _FOREIGN.search(text[: item.start]) else {}
                if item.kind == "gpu" and labels:
                    continue
                yield Reading(
                    fact=fact, value=item.name, source=emit.words(ref, line, span), method=method, labels=labels
                )
            elif item.kind in ("version", "package") and len(versions) < _LIMIT:
                name = item.text if item.kind == "version" else f"{item.name} {item.text}"
                versions.append((name, line, span))
        yield from _load(ref, parsed)
    if versions:
        named = list(dict.fromkeys(name for name, _, _ in versions))
        yield Reading(
            fact="said.versions",
            value=named,
            source=emit.words(ref, versions[0][1], versions[0][2]),
            method=f"{len(named)} versions named: {', '.join(named)[:300]}",
        )


def _stands(parsed: Parsed, start: int, stop: int) -> bool:
    return spans.mode_at(parsed.clauses, start, stop, parsed.sentence.text) not in ("advised",)


def _load(ref: str, parsed: Parsed) -> Iterator[Reading]:
    text = parsed.sentence.text
    for mark in parsed.conditions:
        if mark.number is None or mark.stop <= mark.start or not _stands(parsed, mark.start, mark.stop):
            continue
        line, span = parsed.sentence.locate(mark.start, mark.stop)
        source = emit.words(ref, line, span)
        if mark.kind == "setting":
            yield Reading(
                fact="said.setting",
                value=mark.number,
                source=source,
                labels={"name": mark.name},
                method=f"{mark.name} as stated",
            )
        elif mark.kind in _LOAD and not _other(text, mark):
            fact, unit = _LOAD[mark.kind]
            yield Reading(fact=fact, value=mark.number, unit=unit, source=source, method="as stated")


def _other(text: str, mark: Condition) -> bool:
    """What others have or what the context window may hold is not this load."""
    window = text[max(0, mark.start - 40) : mark.start]
    if _FOREIGN.search(window):
        return True
    return mark.kind == "context" and bool(
        re.search(r"\b(?:window|limit|max\w*|up to|support\w*)\b", text[max(0, mark.start - 24) : mark.stop + 10], re.I)
    )


def changed(doc: Document) -> list[Pair]:
    """``-name==1`` and ``+name==2`` lines: which packages differ. The pair carries no figure (``ratio`` 0)."""
    old: dict[str, str] = {}
    out: list[Pair] = []
    for line, text in doc.changed:
        hit = _PIN.match(text.strip())
        if hit is None:
            continue
        name = hit["name"].lower()
        if hit["sign"] == "-":
            old[name] = hit["value"]
        elif name in old and old[name] != hit["value"]:
            kind = "version_upgrade" if name in _ENGINES else "dependency"
            what = f"{name} {old[name]} → {hit['value']}"
            out.append(Pair("speed", 0.0, kind, what, line, text.strip(), stated=True))
    return out


def differences(found: list[tuple[str, Pair]]) -> list[Reading]:
    """One list of what differs between the runs that are compared."""
    kinds: dict[str, tuple[str, Pair]] = {}
    for ref, pair in found:
        kind = _DIFFERENCE.get(pair.difference)
        if kind and kind not in kinds and pair.span:
            kinds[kind] = (ref, pair)
    if not kinds:
        return []
    ref, first = next(iter(kinds.values()))
    seen = "; ".join(f"{kind}: {pair.what or pair.span}"[:90] for kind, (_, pair) in kinds.items())
    return [
        Reading(
            fact="pair.difference",
            value=list(kinds),
            source=emit.words(ref, first.line, first.span),
            labels={"what": first.what[:80]} if first.what else {},
            method=seen,
        )
    ]
