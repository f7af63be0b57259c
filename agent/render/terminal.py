"""The terminal report: verdict first, then what to do, why, and what would decide. Readable at 80 columns, no colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.diagnosis import ActionAdvice, Diagnosis, ProbeAdvice
from agent.phrases import say

if TYPE_CHECKING:
    from rich.console import Console

_STYLE = {
    "incident": "bold red",
    "healthy": "bold green",
    "theoretical_limit": "bold cyan",
    "undecidable": "bold yellow",
}
_MARK = {"incident": "✗", "healthy": "✓", "theoretical_limit": "=", "undecidable": "?"}
_STATUS = {"implicated": "red", "ruled_out": "green", "not_examined": "dim"}


def clean(text: str) -> str:
    """Text from logs and prompts, safe for a terminal: no control characters, no markup."""
    return "".join(c if c.isprintable() or c == "\n" else "·" for c in text)


def value_text(value: Any, unit: str = "") -> str:
    """A value as a person writes it: fractions as percent, large counts with separators."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        if unit == "fraction":
            return f"{value:.1%}"
        text = f"{value:,.0f}" if abs(value) >= 1000 or float(value).is_integer() else f"{value:.3g}"
        return f"{text} {unit}".strip()
    if isinstance(value, list):
        return ", ".join(str(v) for v in value[:6]) + (" …" if len(value) > 6 else "")
    return f"{str(value)[:120]} {unit}".strip()


def render(d: Diagnosis, console: Console, *, full: bool = False) -> None:
    """Print the report. ``full`` shows all evidence and all rules."""
    from rich.padding import Padding
    from rich.text import Text

    lang = d.lang

    def title(key: str) -> None:
        console.print()
        console.print(Text(say(key, lang), style="bold"))

    def line(text: str, indent: int = 2, style: str = "") -> None:
        console.print(Padding(Text(clean(text), style=style), (0, 0, 0, indent)))

    console.print(Text(f"{_MARK[d.outcome]} {clean(d.headline)}", style=_STYLE[d.outcome]))
    for sentence in d.summary[:3]:
        line(sentence)
    worst = [p for p in d.problems if p.severity != "note"]
    if worst:
        title("title.problems")
        for problem in worst[:8]:
            line(f"! {problem.ref}: {problem.what}" + (f"; {problem.do}" if problem.do else ""), style="yellow")
        if len(worst) > 8:
            line(f"… {len(worst) - 8} more (--json)")
    if d.decide_first():
        title("title.decide")
        _probe(d.probes[0], line, lang)
    if d.actions:
        title("title.if_so" if d.decide_first() else "title.action")
        _action(d.actions[0], line, lang)
        if len(d.actions) > 1:
            title("title.more")
            for action in d.actions[1:4]:
                line(f"· {action.do} ({say(f'how.{action.how}', lang)}; {say('word.cost', lang)}: {action.cost})")
    if d.chain:
        title("title.chain")
        for number, link in enumerate(d.chain):
            arrow = "" if number == 0 else "→ "
            marks = "".join(f"[{i}]" for i in link.evidence[:3])
            line(f"{arrow}{link.title} ({say(f'layer.{link.layer}', lang)}) {marks}", 2 + number)
    leads = [c for c in d.causes if c.verdict == "lead"] if d.outcome == "undecidable" else d.causes[1:]
    if leads:
        title("title.causes")
        for cause in leads[:3]:
            word = say(f"band.{cause.band}", lang)
            line(f"· {cause.title}: {word} ({cause.confidence:.0%}) {''.join(f'[{i}]' for i in cause.evidence[:3])}")
            for text in cause.against[:1]:
                line(f"− {text}", 4, "dim")
    later = d.probes[1:3] if d.decide_first() else d.probes[:3]
    if later:
        title("title.probe")
        if not d.decide_first():
            _probe(later[0], line, lang)
        for probe in later if d.decide_first() else later[1:]:
            line(f"· {probe.ask}: {probe.command}")
    title("title.layers")
    _layers(d, console, lang)
    if d.ruled_out:
        title("title.ruled_out")
        for row in d.ruled_out[: 14 if full else 5]:
            line(f"· {row.title}: {row.because} {''.join(f'[{i}]' for i in row.evidence[:2])}")
    if d.will_not_help:
        title("title.futile")
        for text in d.will_not_help[:4]:
            line(f"· {text}")
    if d.past:
        title("title.past")
        for case in d.past[:3]:
            line(f"· {case.id} ({case.similarity:.0%}): {case.line}")
    _evidence(d, console, lang, full)


def _action(action: ActionAdvice, line: Any, lang: str) -> None:
    line(f"{action.do} ({say(f'how.{action.how}', lang)})")
    if action.command:
        line(f"$ {action.command}", 4)
    line(f"{say('word.gain', lang)}: {action.gain}", 4)
    line(
        f"{say('word.cost', lang)}: {action.cost}; {say('word.risk', lang)}: {action.risk}; {say('word.undo', lang)}: {action.rollback}",
        4,
    )
    if action.predicted:
        line(f"{say('word.predicted', lang)}: {action.predicted}", 4)


def _probe(probe: ProbeAdvice, line: Any, lang: str) -> None:
    line(probe.ask)
    line(f"$ {probe.command}", 4)
    for key, text in (("word.change", probe.change), ("word.keep", probe.keep), ("word.read", probe.read)):
        if text:
            line(f"{say(key, lang)}: {text}", 4)
    if probe.if_true:
        line(f"{say('word.yes', lang)}: {probe.if_true}", 4)
    if probe.if_false:
        line(f"{say('word.no', lang)}: {probe.if_false}", 4)


def _layers(d: Diagnosis, console: Console, lang: str) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1), show_edge=False)
    for key, ratio in (("col.layer", 2), ("col.status", 2), ("col.hypothesis", 5), ("col.verify", 4)):
        table.add_column(say(key, lang), ratio=ratio, overflow="fold")
    for row in d.layers:
        marks = "".join(f"[{i}]" for i in row.evidence[:3])
        why = (
            f"{row.hypothesis}: {row.because}"
            if row.hypothesis and row.status != "implicated"
            else row.hypothesis or row.because
        )
        table.add_row(
            Text(say(f"layer.{row.layer}", lang)),
            Text(say(f"status.{row.status}", lang), style=_STATUS[row.status]),
            Text(clean(f"{why} {marks}".strip())),
            Text(clean(row.verify)),
        )
    console.print(table)


def _evidence(d: Diagnosis, console: Console, lang: str, full: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    cited = {i for c in d.causes for i in c.evidence} | {i for link in d.chain for i in link.evidence}
    cited |= {i for row in d.layers for i in row.evidence} | {i for row in d.ruled_out[:5] for i in row.evidence}
    for text in d.summary:
        cited |= {part.split("]")[0] for part in text.split("[")[1:]}
    items = [e for e in d.evidence if full or e.id in cited]
    if not items:
        return
    console.print()
    console.print(Text(say("title.evidence", lang), style="bold"))
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(ratio=3, overflow="fold")
    table.add_column(ratio=2, overflow="fold")
    table.add_column(ratio=4, overflow="fold")
    for item in items[: 400 if full else 28]:
        table.add_row(
            item.id,
            Text(item.fact),
            Text(clean(value_text(item.value, item.unit))),
            Text(clean(where(item)), style="dim"),
        )
    console.print(table)
    if not full and len(items) > 28:
        console.print(Text(f"… {len(items) - 28} more cited, {len(d.evidence)} in all (--full, --json)", style="dim"))


def where(item: Any) -> str:
    """Source and method of one evidence item, with its first caveat."""
    source = item.source
    place = source.ref + (f":{source.line}" if source.line else "")
    if source.kind == "computed":
        place = "from " + " ".join(source.inputs[:4])
    if source.kind == "words" and source.span:
        place += f" “{source.span[:60]}”"
    text = f"{place} — {item.method}" if item.method else place
    return f"{text} ({item.caveats[0]})" if item.caveats else text
