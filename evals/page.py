"""One self-contained HTML page of a run: no script, no outside file, drawings as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from evals.report import boot, cell, interval, met, number
from evals.run import Finished
from evals.stats import Bin
from evals.summary import GROUPS, HEADLINE, KINDS, Comparison, Summary, of

STYLE = """
:root{color-scheme:light dark;--ink:#1d2129;--dim:#667;--line:#d5d9e0;--good:#2b7a3d;--bad:#b3261e;--fill:#3b6ea8}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8ec;--dim:#9aa;--line:#3a404a;--good:#7ccf8f;--bad:#ff8a80;--fill:#7fb0e6}}
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:var(--ink)}
table{border-collapse:collapse;margin:.5rem 0 1.5rem;font-variant-numeric:tabular-nums;font-size:13px}
th,td{border-bottom:1px solid var(--line);padding:.25rem .6rem;text-align:left;vertical-align:top}
td.n{text-align:right}.no{color:var(--bad);font-weight:600}.yes{color:var(--good)}.dim{color:var(--dim)}
.wide{overflow-x:auto}.grid{display:flex;flex-wrap:wrap;gap:2rem}svg text{font:11px system-ui;fill:var(--ink)}
"""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], classes: Sequence[str] = ()) -> str:
    top = "".join(f"<th>{escape(h)}</th>" for h in head)
    body = []
    for row in rows:
        cells = []
        for i, text in enumerate(row):
            kind = classes[i] if i < len(classes) else ""
            kind = text if kind == "met" and text in ("yes", "no") else kind
            cells.append(f'<td class="{kind}">{escape(text)}</td>')
        body.append("<tr>" + "".join(cells) + "</tr>")
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'


def reliability_svg(bins: Sequence[Bin], size: int = 260) -> str:
    """Said against came true, with Wilson bars; the diagonal is perfect calibration."""
    pad = 34
    span = size - 2 * pad

    def x(value: float) -> float:
        return round(pad + span * value, 1)

    def y(value: float) -> float:
        return round(size - pad - span * value, 1)

    parts = [
        f'<svg role="img" aria-label="reliability diagram" width="{size}" height="{size}" viewBox="0 0 {size} {size}">',
        f'<rect x="{pad}" y="{pad}" width="{span}" height="{span}" fill="none" stroke="var(--line)"/>',
        f'<line x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}" stroke="var(--dim)" stroke-dasharray="4 4"/>',
    ]
    for b in bins:
        cx = x(b.confidence)
        parts.append(f'<line x1="{cx}" y1="{y(b.low)}" x2="{cx}" y2="{y(b.high)}" stroke="var(--fill)"/>')
        parts.append(f'<circle cx="{cx}" cy="{y(b.accuracy)}" r="4" fill="var(--fill)"><title>n {b.n}</title></circle>')
    for tick in (0.0, 0.5, 1.0):
        parts.append(f'<text x="{x(tick)}" y="{size - pad + 15}" text-anchor="middle">{tick:g}</text>')
        parts.append(f'<text x="{pad - 6}" y="{y(tick) + 4}" text-anchor="end">{tick:g}</text>')
    parts.append(f'<text x="{x(0.5)}" y="{size - 4}" text-anchor="middle">confidence said</text>')
    parts.append(f'<text x="{pad}" y="{pad - 8}">share that came true</text></svg>')
    return "".join(parts)


def risk_svg(points: Sequence[tuple[float, float]], size: int = 260) -> str:
    """Share of errors among the surest answers, by coverage."""
    pad = 34
    span = size - 2 * pad
    path = " ".join(f"{pad + span * c:.1f},{size - pad - span * r:.1f}" for c, r in points)
    return (
        f'<svg role="img" aria-label="risk and coverage" width="{size}" height="{size}" viewBox="0 0 {size} {size}">'
        f'<rect x="{pad}" y="{pad}" width="{span}" height="{span}" fill="none" stroke="var(--line)"/>'
        f'<polyline points="{path}" fill="none" stroke="var(--fill)" stroke-width="2"/>'
        f'<text x="{size / 2}" y="{size - 4}" text-anchor="middle">coverage</text>'
        f'<text x="{pad}" y="{pad - 8}">risk</text></svg>'
    )


def _confusion(summary: Summary) -> str:
    rows = []
    for kind in KINDS:
        total = sum(summary.confusion[kind].values()) or 1
        cells = []
        for other in KINDS:
            count = summary.confusion[kind][other]
            alpha = round(0.75 * count / total, 2)
            ring = "outline:1px solid var(--dim)" if kind == other else ""
            style = f"background:color-mix(in srgb,var(--fill) {alpha:.0%},transparent);{ring}"
            cells.append(f'<td class="n" style="{style}">{count or ""}</td>')
        rows.append(f"<tr><th>{escape(kind)}</th>{''.join(cells)}</tr>")
    head = "".join(f'<th style="writing-mode:vertical-rl">{escape(kind)}</th>' for kind in KINDS)
    return (
        f'<div class="wide"><table><thead><tr><th></th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _arm(summary: Summary) -> str:
    every = summary.groups["all"]
    measured = _table(
        ["id", "measure", "value", "n", "Wilson 95 %", "bootstrap by origin", "target", "met"],
        [
            [
                m.id,
                m.name + (f" ({m.note})" if m.note else ""),
                number(m),
                str(m.n),
                interval(m),
                boot(m),
                m.target,
                met(m),
            ]
            for m in every
        ],
        ["", "", "n", "n", "n", "n", "", "met"],
    )
    groups = _table(
        ["measure", *summary.groups],
        [[f"{i} {of(every, i).name}", *(cell(of(ms, i)) for ms in summary.groups.values())] for i in HEADLINE],
    )
    layers = _table(
        ["layer", "family", "layer hit", "first three", "path"],
        [[n, *map(cell, ms)] for n, ms in summary.layers.items()],
    )
    wrong = [f for f in summary.failures if not f.held_out]
    held = [f.case for f in summary.failures if f.held_out]
    failed = _table(["case", "label", "answer", "why"], [[f.case, f.wanted, f.said, f.why] for f in wrong])
    flips = ""
    if summary.flips_since:
        rows = [[name, " ".join(cases) or "none"] for name, cases in summary.flips.items()]
        flips = f"<h3>Flips since {escape(summary.flips_since)}</h3>" + _table(["", "cases"], rows)
    names = "; ".join(f"{name}: {GROUPS[name][0]}" for name in summary.groups)
    return (
        f"<h2>{escape(summary.arm)}</h2>{measured}<h3>By group</h3>{groups}<p class='dim'>{escape(names)}</p>"
        f"<h3>By layer</h3>{layers}<h3>Label (rows) against answer</h3>{_confusion(summary)}"
        f"<div class='grid'><div><h3>Reliability</h3>{reliability_svg(summary.bins)}</div>"
        f"<div><h3>Risk and coverage</h3>{risk_svg(summary.risk)}</div></div>{flips}"
        f"<h3>Wrong: {len(wrong)} dev, {len(held)} held out</h3>{failed}"
        + (f"<p>Held out, ids only: {escape(', '.join(held))}</p>" if held else "")
    )


def page(summaries: Sequence[Summary], comparisons: Sequence[Comparison], finished: Finished) -> str:
    """The page."""
    meta = finished.meta
    tests = ""
    if comparisons:
        rows = [
            [c.one, c.two, str(c.n), f"{c.only_one} : {c.only_two}", f"{c.p:.2g}", f"{c.difference:+.3f} [{c.low:+.3f}, {c.high:+.3f}]"]
            for c in comparisons
        ]  # fmt: skip
        head = ["arm", "against", "incidents", "only one : only the other", "McNemar p", "difference"]
        tests = "<h2>Arms compared on the same incidents</h2>" + _table(head, rows)
    intro = (
        f"{len(meta.cases)} cases, set {meta.set_hash}, knowledge {meta.knowledge}, inferdx {meta.inferdx}, "
        f"plan {meta.prereg or 'dev (not registered)'}"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>inferdx evals: {escape(meta.run)}</title><style>{STYLE}</style></head><body>"
        f"<h1>inferdx evals</h1><p class='dim'>{escape(intro)}</p>{tests}{''.join(_arm(s) for s in summaries)}</body></html>\n"
    )
