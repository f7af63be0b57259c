"""The report of a run as a terminal table and as Markdown. Held-out cases appear as counts and ids, never in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evals.run import Finished
from evals.scorers.base import Measure
from evals.summary import GROUPS, HEADLINE, KINDS, Comparison, Summary, of

MEASURED_ON = "M10"


def number(m: Measure) -> str:
    """``0.812``; counts and seconds with fitting digits; ``–`` for no cases."""
    if m.n == 0:
        return "–"
    if m.unit in ("probes", "tokens"):
        return f"{m.value:.0f}"
    return f"{m.value:.3f}"


def interval(m: Measure) -> str:
    """``0.74–0.87`` (Wilson); empty where there is none."""
    return f"{m.low:.2f}–{m.high:.2f}" if m.low is not None and m.high is not None and m.n else ""


def boot(m: Measure) -> str:
    """The interval of the bootstrap over origins."""
    return f"{m.boot[0]:.2f}–{m.boot[1]:.2f}" if m.boot is not None and m.n else ""


def met(m: Measure) -> str:
    """``yes``, ``no`` or empty."""
    return {True: "yes", False: "no", None: ""}[m.met]


def cell(m: Measure) -> str:
    """``0.81 [0.74–0.87] n 146``."""
    if m.n == 0:
        return "–"
    low = f" [{interval(m)}]" if interval(m) else ""
    return f"{m.value:.2f}{low} n {m.n}"


def terminal(summary: Summary, finished: Finished, console: Any) -> None:
    """Print the summary of one arm with rich."""
    from rich.table import Table

    every = summary.groups["all"]
    table = Table(
        title=f"{summary.arm}: {len(finished.meta.cases)} cases, set {finished.meta.set_hash}", title_justify="left"
    )
    for column, justify in (
        ("", "left"), ("measure", "left"), ("value", "right"), ("n", "right"), ("Wilson 95 %", "right"),
        ("bootstrap", "right"), ("target", "left"), ("met", "left"),
    ):  # fmt: skip
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for m in every:
        style = "bold red" if m.met is False else None
        table.add_row(m.id, m.name, number(m), str(m.n), interval(m), boot(m), m.target, met(m), style=style)
    console.print(table)
    groups = Table(title="by group: value [Wilson 95 %] n", title_justify="left")
    groups.add_column("group")
    shown = ("M1", "M1b", "M2", "M3", "M4", "M6")
    for id in shown:
        groups.add_column(f"{id} {of(every, id).name.split(':')[0][:24]}")
    for name in summary.groups:
        groups.add_row(name, *(cell(of(summary.groups[name], id)) for id in shown))
    console.print(groups)
    wrong = [f for f in summary.failures if not f.held_out]
    if wrong:
        table = Table(title=f"{len(wrong)} dev cases wrong", title_justify="left")
        for column in ("case", "label", "answer", "why"):
            table.add_column(column)
        for f in wrong:
            table.add_row(f.case, f.wanted, f.said, f.why)
        console.print(table)
    held = [f.case for f in summary.failures if f.held_out]
    if held:
        console.print(f"{len(held)} held-out cases wrong: {' '.join(held)}")
    for name, cases in summary.flips.items():
        if cases:
            console.print(f"{name} since {summary.flips_since}: {' '.join(cases)}")


def markdown(summary: Summary, finished: Finished) -> str:
    """The stable part of ``RESULTS.md`` for one arm: no clock times, so that a rerun gives the same bytes."""
    meta = finished.meta
    every = [m for m in summary.groups["all"] if not m.id.startswith(MEASURED_ON)]
    lines = [
        f"## {summary.arm}",
        "",
        (
            f"{len(meta.cases)} cases (set `{meta.set_hash}`), knowledge `{meta.knowledge}`, "
            f"inferdx {meta.inferdx}, {meta.repeats[summary.arm]} repeat(s), plan `{meta.prereg or 'dev (not registered)'}`."
        ),
        "",
        "| id | measure | value | n | Wilson 95 % | bootstrap by origin | target | met |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {m.id} | {m.name}{f' ({m.note})' if m.note else ''} | {number(m)} | {m.n} | {interval(m)} | {boot(m)} | {m.target} | {met(m)} |"
        for m in every
    ]
    lines += [
        "",
        "### By group",
        "",
        "| measure | " + " | ".join(summary.groups) + " |",
        "| --- |" + " --- |" * len(summary.groups),
    ]
    for id in HEADLINE:
        cells = [cell(of(ms, id)) for ms in summary.groups.values()]
        lines.append(f"| {id} {of(every, id).name} | " + " | ".join(cells) + " |")
    lines += ["", "Groups: " + "; ".join(f"*{name}* {GROUPS[name][0]}" for name in summary.groups) + ".", ""]
    lines += _layers(summary) + _confusion(summary) + _reliability(summary) + _failures(summary)
    return "\n".join(lines) + "\n"


def _layers(summary: Summary) -> list[str]:
    lines = ["### By layer", "", "| layer | family | layer | first three | path |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {layer} | " + " | ".join(cell(m) for m in ms) + " |" for layer, ms in summary.layers.items()]
    return [*lines, ""]


def _confusion(summary: Summary) -> list[str]:
    lines = [
        "### Confusion: label (rows) × answer",
        "",
        "| | " + " | ".join(KINDS) + " |",
        "| --- |" + " --- |" * len(KINDS),
    ]
    for row in KINDS:
        lines.append(f"| {row} | " + " | ".join(str(summary.confusion[row][c] or "·") for c in KINDS) + " |")
    return [*lines, ""]


def _reliability(summary: Summary) -> list[str]:
    lines = ["### Reliability (five equal-count bins of committed answers)", ""]
    lines += ["| said | came true | Wilson 95 % | n |", "| --- | --- | --- | --- |"]
    lines += [f"| {b.confidence:.2f} | {b.accuracy:.2f} | {b.low:.2f}–{b.high:.2f} | {b.n} |" for b in summary.bins]
    points = [p for p in (0.25, 0.5, 0.75, 1.0) if summary.risk]
    risks = []
    for wanted in points:
        cover, risk = min(summary.risk, key=lambda xy, w=wanted: abs(xy[0] - w))  # type: ignore[misc]
        risks.append(f"{cover:.0%} → {risk:.2f}")
    return [*lines, "", "Risk at coverage, surest first: " + ", ".join(risks) + ".", ""] if risks else [*lines, ""]


def _failures(summary: Summary) -> list[str]:
    wrong = [f for f in summary.failures if not f.held_out]
    held = [f.case for f in summary.failures if f.held_out]
    lines = [f"### Wrong: {len(wrong)} dev, {len(held)} held out", ""]
    if wrong:
        lines += ["| case | label | answer | why |", "| --- | --- | --- | --- |"]
        lines += [f"| {f.case} | {f.wanted} | {f.said} | {f.why} |" for f in wrong]
        lines.append("")
    if held:
        lines += ["Held out (ids only): " + ", ".join(held), ""]
    return lines


def arms_table(summaries: Sequence[Summary], comparisons: Sequence[Comparison]) -> str:
    """Arms side by side, with the exact McNemar test against the first one."""
    ids = ("M1", "M1b", "M2", "M3", "M3b", "M4", "M6", "M7", "M8")
    first = summaries[0]
    head = " | ".join(f"{id} {of(first.groups['all'], id).name}" for id in ids)
    lines = ["## Arms", "", f"| arm | {head} | McNemar against {first.arm} |", "| --- |" + " --- |" * (len(ids) + 1)]
    by_arm = {c.two: c for c in comparisons}
    for summary in summaries:
        every = summary.groups["all"]
        c = by_arm.get(summary.arm)
        test = (
            f"{c.only_one} : {c.only_two}, p {c.p:.2g}, Δ {c.difference:+.2f} [{c.low:+.2f}, {c.high:+.2f}]"
            if c
            else ""
        )
        lines.append(f"| {summary.arm} | " + " | ".join(cell(of(every, id)) for id in ids) + f" | {test} |")
    lines += ["", f"McNemar column: incidents that only {first.arm} solves : that only the other arm solves.", ""]
    return "\n".join(lines)


def cost_lines(summary: Summary, wall_s: float) -> list[str]:
    """What depends on the machine, for the terminal only."""
    every = summary.groups["all"]
    parts = [f"{m.name} {m.value:.3g} {m.unit}" for m in every if m.id.startswith(MEASURED_ON) and m.n]
    return [f"{summary.arm}: " + "; ".join(parts), f"arm CPU {summary.cpu_s:.1f} s, run {wall_s:.1f} s wall"]
