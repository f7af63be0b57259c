"""Answers to commands and intents from the diagnosis object: deterministic, cited, bilingual where the data is."""

from __future__ import annotations

from agent.diagnosis import Diagnosis
from agent.phrases import say
from agent.render.terminal import value_text, where

HELP = {
    "en": "Paste anything (prose, a launch command, log lines, a table) or /attach files, folders or addresses.\n"
    "/why  /ruled-out  /next  /actions  /layers  /evidence [E7]  /whatif k=v …  /explain TERM\n"
    "/save FILE.json  /export FILE.md  /retry  /thread  /lang zh|en  /quit",
    "zh": "粘贴任何内容（描述、启动命令、日志、表格），或用 /attach 加入文件、目录、地址。\n"
    "/why  /ruled-out  /next  /actions  /layers  /evidence [E7]  /whatif k=v …  /explain 术语\n"
    "/save FILE.json  /export FILE.md  /retry  /thread  /lang zh|en  /quit",
}


def none_yet(lang: str) -> str:
    """When nothing was given yet."""
    return (
        "还没有任何输入：请粘贴或 /attach。" if lang == "zh" else "Nothing to go on yet: paste something or /attach it."
    )


def why(d: Diagnosis) -> list[str]:
    """Signs for and against the lead, refuters passed, caps on its confidence."""
    if not d.causes:
        return d.summary or [d.headline]
    top = d.causes[0]
    out = [f"{top.title}: {say(f'band.{top.band}', d.lang)} ({top.confidence:.0%})"]
    out += [f"+ {text}" for text in top.says]
    out += [f"− {text}" for text in top.against]
    out += [f"✓ {text}" for text in list(dict.fromkeys(top.refuters_passed))[:3]]
    out += [f"cap {text}" for text in top.caps]
    out += [f"[K: {cite}]" for cite in top.cites[:4]]
    return out


def ruled_out(d: Diagnosis) -> list[str]:
    """What was considered and set aside."""
    return [f"{r.title}: {r.because} {''.join(f'[{i}]' for i in r.evidence)}".rstrip() for r in d.ruled_out] or ["—"]


def next_probe(d: Diagnosis) -> list[str]:
    """The probes with their commands and what each result would mean."""
    out: list[str] = []
    for number, probe in enumerate(d.probes[:3], 1):
        out.append(f"{number}. {probe.ask}")
        out.append(f"   $ {probe.command}")
        for word, text in (
            ("change", probe.change),
            ("keep", probe.keep),
            ("read", probe.read),
            ("yes", probe.if_true),
            ("no", probe.if_false),
        ):
            if text:
                out.append(f"   {say(f'word.{word}', d.lang)}: {text}")
    return out or ["—"]


def actions(d: Diagnosis) -> list[str]:
    """Actions with gain, cost, risk and undo; nothing is executed."""
    out: list[str] = []
    for number, a in enumerate(d.actions[:4], 1):
        out.append(f"{number}. {a.do} ({say(f'how.{a.how}', d.lang)})")
        if a.command:
            out.append(f"   $ {a.command}")
        out.append(
            f"   {say('word.gain', d.lang)}: {a.gain}; {say('word.cost', d.lang)}: {a.cost}; {say('word.risk', d.lang)}: {a.risk}; {say('word.undo', d.lang)}: {a.rollback}"
        )
        if a.predicted:
            out.append(f"   {say('word.predicted', d.lang)}: {a.predicted}")
    return out or ["—"]


def layers(d: Diagnosis) -> list[str]:
    """One line per layer."""
    return [
        f"{say(f'layer.{row.layer}', d.lang)}: {say(f'status.{row.status}', d.lang)} — {row.hypothesis or row.because} {''.join(f'[{i}]' for i in row.evidence[:3])}".rstrip()
        for row in d.layers
    ]


def evidence(d: Diagnosis, evidence_id: str = "") -> list[str]:
    """One item in full, or all cited ones in a line each."""
    table = {e.id: e for e in d.evidence}
    if evidence_id:
        item = table.get(evidence_id.upper())
        if item is None:
            return [f"{evidence_id}: no such evidence (E1–E{len(d.evidence)})"]
        out = [f"{item.id} {item.fact} = {value_text(item.value, item.unit)}", where(item)]
        return out + [f"caveat: {c}" for c in item.caveats]
    cited = list(dict.fromkeys(i for c in d.causes for i in c.evidence))
    return [
        f"{i} {table[i].fact} = {value_text(table[i].value, table[i].unit)} — {where(table[i])}"
        for i in cited
        if i in table
    ] or ["—"]
