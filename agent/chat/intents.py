"""Simple intents in English and Chinese, for a dialogue without a model. Anything unmatched is evidence or a question."""

from __future__ import annotations

import re

_INTENTS: tuple[tuple[str, str], ...] = (
    ("why", r"^(?:why|how do you know|on what (?:evidence|grounds)|为什么|为何|依据|凭什么)"),
    ("ruled-out", r"^(?:what (?:is|was|did you) (?:ruled? out|exclude)|ruled out|what else could|why not\b|排除了?什么|还可能)"),
    ("next", r"^(?:what (?:next|now|should i (?:check|run|measure|look))|next\b|what would decide|which control|下一步|接下来|怎么(?:验证|查|确认))"),
    ("actions", r"^(?:how (?:do|can|should) (?:i|we) (?:fix|mend|solve)|what (?:should|can) (?:i|we) (?:do|change)|fix|怎么(?:解决|修|办)|如何(?:解决|处理))"),
    ("whatif", r"^(?:what if|what would happen|如果.*(?:会|怎样)|假如)"),
    ("evidence", r"^(?:show (?:me )?(?:the )?evidence|evidence\b|证据)"),
    ("layers", r"^(?:which layers?|layers?\b|seven layers|哪一?层|七层)"),
    ("explain", r"^(?:what is|what does|what are|explain|define|什么是|解释|.{1,40}是什么)"),
    ("help", r"^(?:help|\?|what can you do|帮助|你能做什么)"),
    ("status", r"^(?:summary|status|verdict|so what is (?:it|wrong)|what is wrong|结论|总结|怎么回事)"),
)  # fmt: skip
_COMPILED = tuple((name, re.compile(pattern, re.I)) for name, pattern in _INTENTS)


def intent(text: str) -> str:
    """The intent of one short line; empty when it is none (then it may be evidence)."""
    line = text.strip()
    if len(line) > 160 or "\n" in line:
        return ""
    return next((name for name, pattern in _COMPILED if pattern.search(line)), "")


def is_question(text: str) -> bool:
    """Whether a line asks rather than states."""
    return text.strip().endswith(("?", "？")) and len(text) < 300


def settings_in(text: str) -> dict[str, str]:
    """``max_num_seqs=64`` and ``--kv-cache-dtype fp8`` mentioned in a what-if question."""
    out = {k.replace("-", "_"): v for k, v in re.findall(r"\b([a-z][a-z0-9_]+)\s*=\s*([\w.]+)", text)}
    for k, v in re.findall(r"--([a-z][a-z0-9-]+)[ =]([\w.]+)", text):
        out[k.replace("-", "_")] = v
    return out
