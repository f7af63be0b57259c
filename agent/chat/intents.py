"""Simple intents in English and Chinese, for a dialogue without a model. Anything unmatched is evidence or a question."""

from __future__ import annotations

import re

_END = r"\s*[.!?。！？]*$"
_INTENTS: tuple[tuple[str, str], ...] = (
    ("ruled-out", r"^(?:what (?:(?:is|was|have you|did you) )?(?:ruled? out|excluded?)|ruled out" + _END + r"|what else could|why not\b|(?:已经)?排除了?(?:什么|哪些)|还可能|为什么不是)"),
    ("why", r"^(?:why\b|how do you know|how sure|on what (?:evidence|grounds)|为什么|为何|依据(?:是什么)?" + _END + r"|凭什么|理由" + _END + r")"),
    ("next", r"^(?:what(?:'s| is)? next|what now|what should (?:i|we) (?:check|run|measure|look)|next(?: (?:step|probe|check))?" + _END + r"|what would (?:decide|settle)|which control|下一步|接下来|怎么(?:验证|查|确认))"),
    ("actions", r"^(?:how (?:do|can|should) (?:i|we) (?:fix|mend|solve|resolve)|what (?:should|can) (?:i|we) (?:do|change)|(?:fix|actions?)(?: it)?" + _END + r"|怎么(?:解决|修|办|处理)|如何(?:解决|处理|修复))"),
    ("whatif", r"^(?:what if|what would happen|what happens if|如果.*(?:会|怎样|怎么样)|假如|要是.*(?:会|怎样))"),
    ("evidence", r"^(?:(?:show (?:me )?)?(?:the |all )?evidence" + _END + r"|(?:有什么|看看?|显示)?证据(?:呢|有哪些|是什么)?" + _END + r")"),
    ("layers", r"^(?:which layers?|(?:seven )?layers" + _END + r"|是?哪一?层|七层)"),
    ("explain", r"^(?:what (?:is|are) (?:an? |the )?[\w .:/-]{1,40}\?*$|what does .{1,40} mean|explain\b|define\b|什么是|解释|.{1,30}是什么(?:意思)?[?？]*$)"),
    ("help", r"^(?:help" + _END + r"|[?？]$|what can you do|帮助|你能做什么)"),
    ("status", r"^(?:(?:summary|status|verdict)" + _END + r"|so what is (?:it|wrong)|what(?:'s| is) wrong|结论|总结|怎么回事|什么问题" + _END + r")"),
)  # fmt: skip
_ORDER = ("status", "next", "whatif", "ruled-out", "why", "actions", "evidence", "layers", "help", "explain")
_COMPILED = tuple((name, re.compile(dict(_INTENTS)[name], re.I)) for name in _ORDER)


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
