"""The report as Markdown, for tickets and chat exports. Log text is escaped: it can neither link nor mention."""

from __future__ import annotations

import re

from agent.diagnosis import Diagnosis, ProbeAdvice
from agent.phrases import say
from agent.render.terminal import clean, value_text, where

_SPECIAL = re.compile(r"([\\`*_{}<>|#!~])")


def esc(text: str) -> str:
    """Markdown-escape one line of untrusted text; evidence marks ``[E7]`` stay readable, links cannot form."""
    flat = clean(text).replace("\n", " ")
    return _SPECIAL.sub(r"\\\1", flat).replace("](", "]\\(").replace("://", ":\u200b//").replace("@", "@\u200b")


def code(text: str) -> str:
    """Inline code that cannot be broken out of."""
    return "`" + clean(text).replace("`", "'").replace("\n", " ") + "`"


def _probe(probe: ProbeAdvice, lang: str) -> list[str]:
    out = [esc(probe.ask), "", code(probe.command), ""]
    out += [
        f"- {say(key, lang)}: {esc(text)}"
        for key, text in (("word.yes", probe.if_true), ("word.no", probe.if_false))
        if text
    ]
    return [*out, ""] if out[-1] else out


def render(d: Diagnosis) -> str:
    """The whole report."""
    lang, out = d.lang, [f"## {esc(d.headline)}", ""]
    out += [f"{esc(s)}\n" for s in d.summary[:3]]
    worst = [p for p in d.problems if p.severity != "note"]
    if worst:
        out += [f"### {say('title.problems', lang)}", ""]
        out += [f"- {esc(p.ref)}: {esc(p.what)}" + (f"; {esc(p.do)}" if p.do else "") for p in worst[:8]] + [""]
    if d.decide_first():
        out += [f"### {say('title.decide', lang)}", "", *_probe(d.probes[0], lang)]
    if d.actions:
        first = d.actions[0]
        head = "title.if_so" if d.decide_first() else "title.action"
        out += [f"### {say(head, lang)}", "", f"{esc(first.do)} ({say(f'how.{first.how}', lang)})", ""]
        if first.command:
            out += [code(first.command), ""]
        out += [
            f"- {say('word.gain', lang)}: {esc(first.gain)}",
            f"- {say('word.cost', lang)}: {esc(first.cost)}; {say('word.risk', lang)}: {esc(first.risk)}; {say('word.undo', lang)}: {esc(first.rollback)}",
        ]
        if first.predicted:
            out += [f"- {say('word.predicted', lang)}: {esc(first.predicted)}"]
        out += [""]
        out += [
            f"- {esc(a.do)} ({say(f'how.{a.how}', lang)}; {say('word.cost', lang)}: {esc(a.cost)})"
            for a in d.actions[1:4]
        ]
        out += [""]
    if d.chain:
        out += [f"### {say('title.chain', lang)}", ""]
        out += [" → ".join(f"{esc(x.title)} {''.join(f'[{i}]' for i in x.evidence[:2])}".strip() for x in d.chain), ""]
    others = [c for c in d.causes if c.verdict == "lead"] if d.outcome == "undecidable" else d.causes[1:]
    if others:
        out += [f"### {say('title.causes', lang)}", ""]
        out += [f"- {esc(c.title)}: {say(f'band.{c.band}', lang)} ({c.confidence:.0%})" for c in others[:3]] + [""]
    if d.probes and not d.decide_first():
        out += [f"### {say('title.probe', lang)}", "", *_probe(d.probes[0], lang)]
    out += [f"### {say('title.layers', lang)}", ""]
    out += [
        f"| {say('col.layer', lang)} | {say('col.status', lang)} | {say('col.hypothesis', lang)} | {say('col.verify', lang)} |",
        "|---|---|---|---|",
    ]
    for row in d.layers:
        why = row.hypothesis if row.status == "implicated" else row.because
        marks = "".join(f"[{i}]" for i in row.evidence[:3])
        out.append(
            f"| {say(f'layer.{row.layer}', lang)} | {say(f'status.{row.status}', lang)} | {esc(why)} {marks} | {code(row.verify)} |"
        )
    out.append("")
    if d.ruled_out:
        out += [f"### {say('title.ruled_out', lang)}", ""]
        out += [f"- {esc(r.title)}: {esc(r.because)}" for r in d.ruled_out[:6]] + [""]
    if d.will_not_help:
        out += [f"### {say('title.futile', lang)}", ""] + [f"- {esc(t)}" for t in d.will_not_help[:4]] + [""]
    if d.past:
        past = [f"- {esc(p.id)} ({p.similarity:.0%}): {esc(p.line)}" for p in d.past[:3]]
        out += [f"### {say('title.past', lang)}", "", *past, ""]
    cited = list(dict.fromkeys(i for c in d.causes for i in c.evidence)) + [
        i for link in d.chain for i in link.evidence
    ]
    for text in d.summary:
        cited += [part.split("]")[0] for part in text.split("[")[1:]]
    items = [e for e in d.evidence if e.id in set(cited)]
    if items:
        out += [f"### {say('title.evidence', lang)}", ""]
        out += [
            f"- **{e.id}** {esc(e.fact)} = {esc(value_text(e.value, e.unit))} — {esc(where(e))}" for e in items[:30]
        ] + [""]
    return "\n".join(out).rstrip() + "\n"
