"""The diagnosis object → Slack blocks. Decides nothing; order: verdict, first action, chain, evidence, ruled out, probe."""

from __future__ import annotations

from typing import Any

from agent.diagnosis import Diagnosis, ProbeAdvice
from agent.phrases import say
from agent.render.terminal import value_text, where
from agent.slack.escape import code, mrkdwn, plain
from agent.slack.limits import Block, button, context, fit, section
from agent.slack.words import word

_MARK = {
    "incident": ":red_circle:",
    "healthy": ":large_green_circle:",
    "theoretical_limit": ":large_blue_circle:",
    "undecidable": ":large_yellow_circle:",
}
Message = dict[str, Any]


def message(text: str, blocks: list[Block]) -> Message:
    """Arguments of one post: fallback text and blocks."""
    return {"text": plain(text, 300), "blocks": blocks}


def marks(ids: list[str], most: int = 3) -> str:
    """``[E1][E2]``."""
    return "".join(f"[{i}]" for i in ids[:most])


# ── short messages ───────────────────────────────────────────────────────────────────────────────────────────
def ack(what: str, lang: str = "en") -> Message:
    """The acknowledgement: what is being read."""
    text = word("ack", lang, what=what)
    return message(text, [context(f":hourglass_flowing_sand: {mrkdwn(text)}")])


def finding(title: str, confidence: str, lang: str = "en") -> Message:
    """The first finding of the rules; ``title`` empty when none fires."""
    if not title:
        text = word("finding.none", lang)
        return message(text, [context(f":hourglass_flowing_sand: {text}")])
    text = word("finding", lang, title=mrkdwn(title, 300), confidence=confidence)
    return message(word("finding", lang, title=title, confidence=confidence), [section(f":mag: {text}")])


def progress(title: str, confidence: str, steps: list[str], lang: str = "en", slow: float = 0.0) -> Message:
    """The running message: first finding and the steps done, each naming its layer or tool; no model thoughts."""
    blocks = finding(title, confidence, lang)["blocks"]
    lines = [f"• {mrkdwn(step, 200)}" for step in steps[-6:]]
    if slow:
        lines.append(word("slow", lang, seconds=round(slow), step=mrkdwn(steps[-1] if steps else "—", 100)))
    if lines:
        blocks = [*blocks, context("\n".join(lines))]
    return message(word("progress", lang), blocks)


def done(headline: str, seconds: float, lang: str = "en") -> Message:
    """What the running message collapses to at the end."""
    text = word("done", lang, seconds=round(seconds, 1), headline=headline)
    return message(text, [context(f":white_check_mark: {mrkdwn(text, 600)}")])


def notice(key: str, lang: str = "en", **values: object) -> Message:
    """One fixed sentence: expired, following, stopped, thanks, case …"""
    text = word(key, lang, **values)
    return message(text, [context(mrkdwn(text, 1500))])


def error(what: str, lang: str = "en", do: str = "") -> Message:
    """A failure that everybody in the thread should see."""
    text = word("error", lang, what=what, do=do or word("error.again", lang))
    return message(text, [section(f":warning: {mrkdwn(text, 1500)}")])


def lines(texts: list[str]) -> Message:
    """The reply to a question: lines of the deterministic answerer, escaped."""
    body = "\n".join(mrkdwn(t, 600) for t in texts[:30])
    return message(texts[0] if texts else "—", fit([section(body or "—")]))


def alert(name: str, labels: dict[str, str], summary: str, times: int = 1, lang: str = "en") -> Message:
    """The root message of an alert's thread: one line and its labels."""
    shown = ", ".join(f"{k}={v}" for k, v in sorted(labels.items()) if k != "alertname")
    blocks = [section(f":rotating_light: *{mrkdwn(name, 200)}* {mrkdwn(summary, 600)}".strip())]
    if shown:
        blocks.append(context(mrkdwn(shown, 900)))
    if times > 1:
        blocks.append(context(word("repeat", lang, n=times)))
    return message(f"{word('alert', lang)}: {name}", blocks)


# ── the answer ───────────────────────────────────────────────────────────────────────────────────────────────
def answer(
    d: Diagnosis, token: dict[str, str], changed: list[str] | None = None, refused: list[str] | None = None
) -> Message:
    """The complete answer. ``token``: purpose → opaque id; ``refused``: sources that could not be had, one line each.

    Undecidable answers end with the one question that would decide.
    """
    lang = d.lang
    blocks = [section(f"{_MARK[d.outcome]} *{mrkdwn(d.headline, 400)}*")]
    radius = _radius(d)
    if radius:
        blocks.append(context(f"{word('blast', lang)}: {mrkdwn(radius, 400)}"))
    if changed:
        blocks.append(context("\n".join(f"Δ {mrkdwn(t, 200)}" for t in changed[:4])))
    worst = [p for p in d.problems if p.severity != "note"]
    lost = [*(refused or []), *(f"{p.ref}: {p.what}" for p in worst)]
    if lost:
        text = "\n".join(mrkdwn(t, 320) for t in lost[:4])
        blocks.append(context(f":warning: {word('missing', lang)}\n{text}"))
    if d.outcome == "incident":
        blocks += _incident(d)
    elif d.outcome == "undecidable":
        blocks += _undecidable(d)
    else:
        blocks += _benign(d)
    blocks += [*_evidence(d), *_ruled_out(d)]
    if d.outcome == "undecidable" and d.probes:
        blocks += ask(d.probes[0], token.get("skip", ""), lang)["blocks"]
    elif d.probes and not d.decide_first():
        probe = d.probes[0]
        blocks.append(section(f"*{word('next', lang)}* {mrkdwn(probe.ask, 300)}\n{code(probe.command, 600)}"))
    if d.past:
        blocks.append(context(f"{say('title.past', lang)}: {mrkdwn(d.past[0].line, 300)}"))
    tail = buttons(token, lang)
    return message(d.headline, fit([*blocks, *tail], keep_last=len(tail)))


def _radius(d: Diagnosis) -> str:
    """Who feels it: the symptom at the end of the chain and the replicas or models that the evidence names."""
    felt = [link.title for link in d.chain if link.layer == "symptom"]
    cited = {i for c in d.causes[:1] for i in c.evidence}
    who = sorted(
        {
            v
            for e in d.evidence
            if e.id in cited
            for k, v in e.labels.items()
            if k in ("replica", "model", "instance", "pod", "engine")
        }
    )
    return "; ".join([*felt[:2], *([", ".join(who[:4])] if who else [])])


def _incident(d: Diagnosis) -> list[Block]:
    lang, out = d.lang, []
    if d.decide_first():
        out.append(
            section(f"*{say('title.decide', lang)}*\n{mrkdwn(d.probes[0].ask, 400)}\n{code(d.probes[0].command, 600)}")
        )
    if d.actions:
        a = d.actions[0]
        head = say("title.if_so", lang) if d.decide_first() else word("first", lang)
        text = f"*{head}* {mrkdwn(a.do, 400)} ({say(f'how.{a.how}', lang)})"
        if a.command:
            text += f"\n{code(a.command, 600)}"
        pairs = [("gain", a.gain), ("cost", a.cost), ("risk", a.risk), ("undo", a.rollback), ("predicted", a.predicted)]
        text += "\n" + "; ".join(f"{say(f'word.{k}', lang)}: {mrkdwn(v, 200)}" for k, v in pairs if v)
        out.append(section(text))
    if d.chain:
        steps = [
            f"{'→ ' if n else ''}{mrkdwn(x.title, 160)} ({say(f'layer.{x.layer}', lang)}) {marks(x.evidence)}".rstrip()
            for n, x in enumerate(d.chain[:4])
        ]
        out.append(section(f"*{say('title.chain', lang)}*\n" + "\n".join(steps)))
    elif d.causes:
        out.append(section(f"*{word('why', lang)}*\n" + "\n".join(mrkdwn(t, 300) for t in d.causes[0].says[:4])))
    return out


def _undecidable(d: Diagnosis) -> list[Block]:
    lang, out = d.lang, []
    leads = [c for c in d.causes if c.verdict == "lead"]
    if leads:
        top = leads[0]
        text = (
            f"*{word('lead', lang)}* {mrkdwn(top.title, 200)}: {say(f'band.{top.band}', lang)} ({top.confidence:.0%})"
        )
        text += "".join(f"\n+ {mrkdwn(t, 240)}" for t in top.says[:2])
        text += "".join(f"\n− {mrkdwn(t, 240)}" for t in top.against[:2])
        out.append(section(text))
    states: dict[str, int] = {}
    for rule in d.rules:
        states[rule.state] = states.get(rule.state, 0) + 1
    seen = [say(f"layer.{r.layer}", lang) for r in d.layers if r.status != "not_examined"]
    counts = ", ".join(f"{n} {k.replace('_', ' ')}" for k, n in sorted(states.items()))
    out.append(context(f"{word('checked', lang)}: {mrkdwn(', '.join(seen) or '—', 300)} ({mrkdwn(counts, 200)})"))
    return out


def _benign(d: Diagnosis) -> list[Block]:
    texts = [*d.summary[:3], *[t for c in d.causes[:1] for t in c.says[:3]]]
    if not texts:
        return []
    return [section(f"*{word('measured', d.lang)}*\n" + "\n".join(mrkdwn(t, 400) for t in dict.fromkeys(texts)))]


def _evidence(d: Diagnosis) -> list[Block]:
    ids = list(dict.fromkeys([i for c in d.causes[:2] for i in c.evidence] + [i for x in d.chain for i in x.evidence]))
    table = {e.id: e for e in d.evidence}
    rows = [
        f"[{i}] {mrkdwn(e.fact, 80)} = *{mrkdwn(value_text(e.value, e.unit), 100)}* — {mrkdwn(where(e), 140)}"
        for i in ids[:8]
        if (e := table.get(i)) is not None
    ]
    return [section(f"*{word('evidence', d.lang)}*\n" + "\n".join(rows))] if rows else []


def _ruled_out(d: Diagnosis) -> list[Block]:
    rows = [
        f"{mrkdwn(r.title, 100)}: {mrkdwn(r.because, 160)} {marks(r.evidence, 2)}".rstrip() for r in d.ruled_out[:4]
    ]
    return [context(f"{word('ruled_out', d.lang)}\n" + "\n".join(rows))] if rows else []


def ask(probe: ProbeAdvice, skip: str, lang: str = "en") -> Message:
    """The question that only a person can answer: what, paste-ready command, what each result would mean."""
    text = f":question: *{word('ask', lang)}* {mrkdwn(probe.ask, 400)}\n{code(probe.command, 900)}"
    for key, value in (("change", probe.change), ("keep", probe.keep), ("read", probe.read)):
        if value:
            text += f"\n{say(f'word.{key}', lang)}: {mrkdwn(value, 200)}"
    for key, value in (("yes", probe.if_true), ("no", probe.if_false)):
        if value:
            text += f"\n{say(f'word.{key}', lang)}: {mrkdwn(value, 240)}"
    blocks = [section(text), context(word("ask.how", lang))]
    if skip:
        blocks.append({"type": "actions", "elements": [button("skip", word("button.skip", lang), skip)]})
    return message(f"{word('ask', lang)}: {probe.ask}", blocks)


def buttons(token: dict[str, str], lang: str = "en") -> list[Block]:
    """Feedback in a context-actions block, then the thread's buttons. Each carries an opaque id, no state."""
    out: list[Block] = []
    if token.get("feedback"):

        def thumb(key: str, text: str) -> Block:
            return {"text": {"type": "plain_text", "text": word(text, lang)}, "value": f"{key}.{token['feedback']}"}

        element = {
            "type": "feedback_buttons",
            "action_id": "feedback",
            "positive_button": thumb("up", "button.right"),
            "negative_button": thumb("down", "button.wrong"),
        }
        out.append({"type": "context_actions", "elements": [element]})
    row = [
        button(purpose, word(f"button.{purpose}", lang), token[purpose])
        for purpose in ("case", "follow", "stop")
        if token.get(purpose)
    ]
    if row:
        out.append({"type": "actions", "elements": row})
    return out


def plain_buttons(blocks: list[Block]) -> list[Block]:
    """The same blocks for a workspace that does not know context-actions yet: thumbs as ordinary buttons."""
    out: list[Block] = []
    for block in blocks:
        if block["type"] != "context_actions":
            out.append(block)
            continue
        row = []
        for element in block["elements"]:
            for side in ("positive_button", "negative_button"):
                one = element[side]
                row.append(button(f"feedback_{side.split('_', maxsplit=1)[0]}", one["text"]["text"], one["value"]))
        out.append({"type": "actions", "elements": row})
    return out
