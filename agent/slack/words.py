"""Fixed sentences of the Slack door in both languages."""

from __future__ import annotations

WORDS: dict[str, tuple[str, str]] = {
    "ack": ("Looking. Reading {what}; first finding in seconds.", "正在查看：读取{what}，几秒内给出首个发现。"),
    "ack.nothing": ("what is in this thread", "本线程内容"),
    "ack.files": ("{n} files", " {n} 个文件"),
    "ack.alert": ("the alert's target", "告警目标"),
    "finding": ("First finding (rules): *{title}* — {confidence}. Still checking what would refute it.", "首个发现（规则）：*{title}* — {confidence}。仍在反证。"),
    "finding.none": ("First look: no rule fires yet. Still reading.", "初步查看：暂无规则触发，继续读取。"),
    "progress": ("Working", "进行中"),
    "done": ("Done in {seconds} s: {headline}", "完成，用时 {seconds} 秒：{headline}"),
    "slow": ("Not finished after {seconds} s; pending: {step}. The answer will follow here.", "{seconds} 秒后仍未完成，待办：{step}。答案稍后在此给出。"),
    "missing": ("Missing source", "缺失来源"),
    "first": ("Do first", "首先"),
    "why": ("Because", "依据"),
    "evidence": ("Evidence", "证据"),
    "ruled_out": ("Ruled out", "已排除"),
    "next": ("Next probe", "下一步探测"),
    "checked": ("Checked", "已检查"),
    "lead": ("Strongest lead", "最强线索"),
    "measured": ("Limits measured", "实测与极限"),
    "blast": ("blast radius", "影响范围"),
    "ask": ("One reading would decide", "一项读数即可判定"),
    "ask.how": ("Reply in this thread with its output as text or a file; I go on from there.", "请在本线程以文本或文件回复输出，我会继续。"),
    "button.skip": ("Cannot get it: next question", "拿不到：换一个问题"),
    "button.follow": ("Follow this thread", "跟踪本线程"),
    "button.stop": ("Stop listening", "停止监听"),
    "button.case": ("Save as case", "存为案例"),
    "button.right": ("Right", "正确"),
    "button.wrong": ("Not right", "不对"),
    "following": ("Following this thread: every message counts as evidence until somebody stops me.", "正在跟踪本线程：每条消息都作为证据，直到有人停止。"),
    "stopped": ("Stopped listening here. Mention me to start again.", "已停止监听，@我可重新开始。"),
    "expired": ("This investigation has expired or was removed. Mention me in a thread to start a new one.", "该调查已过期或已删除。在线程中 @我 可重新开始。"),
    "no_more": ("No further question would decide it. What is above is what can be said.", "没有更多能判定的问题，以上即为结论。"),
    "error": ("I could not finish this: {what}. What you gave is kept; {do}.", "未能完成：{what}。已给的内容都保留；{do}。"),
    "error.again": ("mention me again to retry", "再次 @我 可重试"),
    "thanks": ("Noted, thank you.", "已记录，谢谢。"),
    "case": ("Saved as a draft case: {name} ({n} files, masked). Check it, then add it with: inferdx eval record {name}", "已存为案例草稿：{name}（{n} 个文件，已脱敏）。检查后用 inferdx eval record {name} 加入。"),
    "case.empty": ("Nothing to save: this thread holds no evidence.", "无可保存：本线程没有证据。"),
    "resolved": ("Alert resolved at {at}.", "告警已于 {at} 恢复。"),
    "repeat": ("Fired again ({n} times); folded into this thread.", "再次触发（共 {n} 次），已并入本线程。"),
    "alert": ("Alert", "告警"),
    "modal.title": ("What was wrong?", "哪里不对？"),
    "modal.submit": ("Send", "发送"),
    "modal.cancel": ("Cancel", "取消"),
    "modal.reason": ("The answer is", "这个答案"),
    "modal.cause": ("True cause, if known", "真正原因（如已知）"),
    "modal.note": ("What tells you so", "依据是什么"),
    "reason.wrong_cause": ("wrong cause", "原因错误"),
    "reason.useless": ("right but useless", "正确但无用"),
    "reason.false_alarm": ("false alarm", "误报"),
    "reason.missing_data": ("missing data", "缺少数据"),
}  # fmt: skip
REASONS = ("wrong_cause", "useless", "false_alarm", "missing_data")


def word(key: str, lang: str = "en", **values: object) -> str:
    """A fixed sentence with its fields filled in."""
    en, zh = WORDS[key]
    return (zh if lang == "zh" else en).format(**values)
