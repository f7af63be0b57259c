"""Under which conditions a figure was seen: concurrency, length, version, feature, GPUs, route, side, run, uptime …"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from tools.report import lexicon
from tools.report.entities import Entity
from tools.report.quantities import Quantity


class Condition(Struct):
    """One marker. ``number`` for numeric kinds; ``on`` for features. ``name`` is what two runs are compared by."""

    kind: str
    start: int
    stop: int
    name: str
    number: float | None = None
    on: bool | None = None

    def label(self) -> str:
        """Short text for labels of a reading."""
        if self.kind == "feature":
            return f"{'with' if self.on else 'without'} {self.name}"
        if self.number is not None and self.kind not in ("setting", "version", "package"):
            return f"{self.number:g}"
        return self.name


_CONCURRENCY = re.compile(
    r"(?:max[-_ ])?(?:concurrency|conc|parallelism|parallel|batch(?:[- ]size)?|bs|c|n|并发(?:数|量|度)?)\s?(?:level\s)?(?:of|=|:|is|at|above|below|over|under|>|<|<=|>=|≥|≤|from|为|是|到)?\s?(?P<n>\d{1,3}(?:,\d{3})+|\d+)(?![\d.]*\d|\s?(?:%|ms|s\b|tok|[kK]\b))(?P<more>(?:\s?(?:,|/|and|or|、|和|to)\s?\d+(?!\d|\.\d|[/kK]|\s?(?:tok|ms|s\b|%|at\b|@)))*)",
    re.IGNORECASE,
)
_CONTEXT = re.compile(
    r"(?<![\d.,])(?P<n>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)\s?(?P<k>[kK])?(?P<tok>[- ]tokens?)?[- ]?(?P<what>context(?: length| window)?|prompts?|inputs?|prefix|sequence(?: length)?)\b"
    r"|\b(?:context(?: length| size| window)?|prompt(?: length)?|input(?: length| len)?|isl|seq(?:uence)?[- ]?len(?:gth)?)\s?(?:of|=|:|at|is)?\s?(?:about |around |~)?(?P<n2>\d{1,3}(?:,\d{3})+|\d+)\s?(?P<k2>[kK])?(?!\s?(?:%|ms|s\b|tok\w*/s|\.\d))"
    r"|(?:上下文|输入|提示词?|prompt)\s?(?:长度|为|是|约)?\s?(?P<n3>\d{1,3}(?:,\d{3})+|\d+)\s?(?P<k3>[kK])?",
    re.IGNORECASE,
)
_AT_K = re.compile(
    r"\b(?:at|to|with|past|beyond|above|after|between|and|until|from)\s(?:about |around |~)?(?P<n>\d{1,4}(?:\.\d)?)\s?(?P<k>[kK])\b(?!\s?(?:req|prompt|user))",
    re.IGNORECASE,
)
_INOUT = re.compile(
    r"(?P<i>\d{1,3}(?:,\d{3})+|\d+)\s?(?P<ik>[kK])?\s?(?:tokens?\s)?(?:in|input)\b\s?(?:tokens?\s?)?(?:/|and|,|\+|→|->)\s?(?P<o>\d{1,3}(?:,\d{3})+|\d+)\s?(?P<ok>[kK])?\s?(?:tokens?\s)?(?:out|output)\b",
    re.IGNORECASE,
)
_OUT = re.compile(
    r"(?P<n>\d{1,3}(?:,\d{3})+|\d+)\s?(?:output|generated|completion|new|answer) tokens?\b(?!\s?/)|\b(?:osl|output(?: length| len)?|max_(?:new_)?tokens)\s?(?:of|=|:)?\s?(?P<n2>\d{1,3}(?:,\d{3})+|\d+)(?!\s?(?:tok\w*/s|%|\.\d|ms))|输出(?:长度)?\s?(?P<n3>\d+)\s?(?:个)?\s?(?:token|字)",
    re.IGNORECASE,
)
_IN = re.compile(
    r"(?P<n>\d{1,3}(?:,\d{3})+|\d+)\s?(?P<k>[kK])?\s?(?:input|prompt|context) tokens?\b(?!\s?/)|(?P<n2>\d{1,3}(?:,\d{3})+|\d+)\s?(?P<k2>[kK])?\s?tokens? (?:per(?!\s?(?:s|sec|seconds?|step|min|minute|hour|gpu)\b)|in|long|of (?:prompt|input|context)|each)\b(?!\s?/)",
    re.IGNORECASE,
)
_RUN = re.compile(
    r"\b(?:(?P<first>(?:the\s)?(?:very\s)?first|initial|cold|1st)|(?P<later>(?<!\ba )(?<!\bA )(?:second|2nd|third|3rd)|later|subsequent|following|repeat(?:ed)?|warm(?:ed)?|every (?:other|later|further)|all (?:other|later|further)))(?:\s\w+)?\s(?:runs?|pass(?:es)?|requests?|calls?|prompts?|tries|try|time|iterations?|start|rounds?|turns?|queries|query|attempts?)\b"
    r"|\b(?:run|(?<!we )(?<!I )pass|round|turn|iteration|attempt)\s?#?(?P<n>\d{1,3})\b(?!\s(?:concurrent|parallel|users|requests|clients|tokens|%|x\b|ms|s\b))|(?P<zf>第一次|首次|冷启动)|(?P<zl>第二次|第三次|后续|之后的请求|再次)",
    re.IGNORECASE,
)
_UPTIME = re.compile(
    r"\b(?:(?:after|within|for|in)\s(?:about |around |roughly |some |the first |running (?:for )?|~)?(?P<n>\d+(?:\.\d+)?|a few|several|a couple of|some|an?|one|two|three)\s?(?P<u>min(?:ute)?s?|h(?:ou)?rs?|h|days?|weeks?)\b(?:\sof (?:uptime|running|serving|load|operation|traffic))?|up (?:for )?(?P<n2>\d+(?:\.\d+)?)\s?(?P<u2>min(?:ute)?s?|h(?:ou)?rs?|h|days?)|(?P<fresh>fresh(?:ly)? (?:re)?start(?:ed)?|right after (?:a |the )?(?:re)?(?:start|boot)|after (?:a |the )?(?:restart|reboot)|at (?:the )?(?:start|beginning))|(?P<long>overnight|over (?:the )?night|next (?:day|morning)|long[- ]running))|运行\s?(?P<n4>\d+(?:\.\d+)?|几)\s?(?P<u4>分钟|小时|天|周)|(?P<zfresh>重启后|刚启动)",
    re.IGNORECASE,
)
_TOOL = re.compile(
    r"\b(?:(?:second|other|another|different|alternative)\s(?:load|benchmark|bench|test|client)?[- ]?(?:tool|generator|client|harness|script|benchmark)|with (?:curl|wrk|locust|k6|hey|guidellm|genai-perf|aiperf|aiohttp|httpx|evalscope))\b|另一个(?:压测)?工具|换(?:了)?(?:个)?(?:压测)?(?:工具|客户端)",
    re.IGNORECASE,
)
_VARIANT = re.compile(
    r"\b(?:the |a |my |our )?(?P<which>one|another|an other|other|stock|good|bad|old|older|new|newer|first|second|slow|slower|fast|faster|affected|healthy|working|broken)\s(?:\w+\s)?(?P<what>build|image|host|machine|node|replica|pod|server|instance|container|commit|wheel|preparation|cluster|region|card|gpu|rank|side|one(?= ?(?:$|[.,;()])))\b",
    re.IGNORECASE,
)
_CAP = re.compile(
    r"\b(?:cap(?:ped)?|(?:power )?limit(?:ed)?)(?:\s\w+){0,2}\s(?:at|of|to)\s?$|\b(?:power )?(?:cap|limit)\s?(?:=|:)?\s?$|(?:功耗)?(?:限制|上限)(?:在|为|到)?\s?$",
    re.IGNORECASE,
)
_CAP_AFTER = re.compile(r"^\s?(?:power\s)?(?:cap|limit)\b", re.IGNORECASE)
_DRAFT = re.compile(
    r"\b(?:mtp|eagle\d?|n-?gram|draft(?:er|ing)?|spec(?:ulation|ulative)?|num_spec\w*|k|gamma)\b[^,;.]{0,24}?\b(?:n\s?=\s?|with |of |=\s?|,\s?)(?P<n>\d{1,2})\b(?!\.\d|\s?(?:%|ms|tok\w*/|requests|clients|users|GB))",
    re.IGNORECASE,
)
# "with the drafter … without it": the feature named before is meant.
_PRONOUN = re.compile(r"\b(?:(?P<on>with)|without) it\b(?! \w+s\b)|不开(?=\s|\d|[，,])", re.IGNORECASE)
_CAPACITY = re.compile(r"\b(?:kv|cache|pool)\b[\w\s-]{0,20}\b(?:size|capacity|tokens?)\b[^.;,]*$", re.IGNORECASE)
_SECONDS = {
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "w": 604800.0,
    "分": 60.0,
    "小": 3600.0,
    "天": 86400.0,
    "周": 604800.0,
}
_WITHOUT = re.compile(
    r"\b(?:without|w/o|no|disabl(?:e|ed|ing)|turn(?:ed|ing)? off|switch(?:ed|ing)? off|remov(?:e|ed|ing)|drop(?:ped|ping)?|minus|not using|skipping)\s(?:the |any |my |our |--?)?(?:[\w-]+\s){0,2}?$|(?:关闭|禁用|不用|不开|不启用|去掉|没有)[^,，。]{0,6}$",
    re.IGNORECASE,
)
_OFF_BEHIND = re.compile(
    r"^\s?(?:is |was |were |are |=\s?|:\s?|turned |switched |set to )?(?:off|disabled|false|removed)\b|^\s?(?:关闭|禁用|关掉)",
    re.IGNORECASE,
)
_ON_BEHIND = re.compile(
    r"^\s?(?:is |was |were |are |=\s?|:\s?|turned |switched |set to )?(?:on|enabled|true|active)\b|^\s?(?:开启|打开|启用)",
    re.IGNORECASE,
)
_WITH = re.compile(
    r"\b(?:with|enabl(?:e|ed|ing)|turn(?:ed|ing)? on|switch(?:ed|ing)? on|add(?:ed|ing)?|using|use[ds]?|via|under|plus|behind|go(?:es|ing)? through)\s(?:the |a |an |one |my |our |--?)?(?:[\w-]+\s){0,2}?$|(?:开启|启用|打开|使用|加上|用了?)[^,，。]{0,6}$",
    re.IGNORECASE,
)
_BASELINE = re.compile(
    r"^\W*(?:the )?(?:baseline|vanilla|plain|defaults?|stock|control|unmodified|reference run|基线|默认|原版)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=1)
def _features() -> tuple[re.Pattern[str], list[str]]:
    import msgspec

    from knowledge.loader import ROOT, read_yaml

    items = msgspec.convert(read_yaml(ROOT / "lexicon" / "features.yaml"), list[lexicon.Named])
    parts = [f"(?P<f{index}>{'|'.join(item.words)})" for index, item in enumerate(items)]
    return re.compile(rf"(?<![A-Za-z])(?:{'|'.join(parts)})(?![A-Za-z])", re.IGNORECASE), [item.name for item in items]


def number(text: str | None, kilo: str | None = None) -> float:
    """``"2,000"`` → 2000; a ``K`` counts 1,024 for powers of two below 1,024 (context sizes) and 1,000 otherwise."""
    value = float((text or "0").replace(",", "") or 0)
    if not kilo:
        return value
    power = value.is_integer() and 0 < value < 1024 and int(value) & (int(value) - 1) == 0
    return value * (1024 if power else 1000)


_RANK = re.compile(r"(?:dp|tp|pp|ep) ?\d+", re.IGNORECASE)


def find(text: str, plain: str, entities: list[Entity], quantities: list[Quantity]) -> list[Condition]:
    """Condition markers of a sentence. ``text`` is as written, ``plain`` has names blanked out."""
    out: list[Condition] = []
    for item in entities:
        if item.kind == "version":
            out.append(Condition("version", item.start, item.stop, item.text))
        elif item.kind == "package":
            out.append(Condition(f"package:{item.name}", item.start, item.stop, f"{item.name} {item.text}"))
        elif item.kind == "gpu":
            out.append(Condition("gpu", item.start, item.stop, item.name))
            if item.value:
                out.append(Condition("gpus", item.start, item.stop, f"{item.value:g}", item.value))
        elif item.kind == "setting" and not _rank_name(text, item):
            out.append(_setting(item))
            if item.name == "tensor_parallel_size" and item.value:
                out.append(Condition("gpus", item.start, item.stop, f"{item.value:g}", item.value))
    for quantity in quantities:
        if quantity.dim == "count" and quantity.noun == "concurrency":
            out.append(
                Condition(
                    "concurrency", quantity.start, quantity.stop, text[quantity.start : quantity.stop], quantity.value
                )
            )
        elif quantity.dim == "count" and quantity.noun == "gpus":
            out.append(Condition("gpus", quantity.start, quantity.stop, f"{quantity.value:g}", quantity.value))
        elif quantity.dim == "count" and quantity.noun == "draft_tokens":
            out.append(Condition("setting", quantity.start, quantity.stop, "num_speculative_tokens", quantity.value))
        elif quantity.dim == "watts" and (
            _CAP.search(text[max(0, quantity.start - 32) : quantity.start])
            or _CAP_AFTER.match(text[quantity.stop : quantity.stop + 12])
        ):
            out.append(
                Condition(
                    "power_cap", quantity.start, quantity.stop, text[quantity.start : quantity.stop], quantity.value
                )
            )
    out.extend(_numeric(plain, out))
    out.extend(_worded(text))
    out.extend(feature_marks(text))
    out.sort(key=lambda item: (item.start, item.stop))
    return out


def _rank_name(text: str, item: Entity) -> bool:
    """``[DP0]`` and ``TP0`` name a rank; no size is zero, and a size is not given alone in brackets."""
    return bool(_RANK.fullmatch(text[item.start : item.stop])) and (item.value == 0 or text[: item.start].endswith("["))


def _setting(item: Entity) -> Condition:
    return Condition("setting", item.start, item.stop, item.name, item.value)


def _numeric(text: str, have: list[Condition]) -> list[Condition]:
    out: list[Condition] = []

    def add(kind: str, start: int, stop: int, value: float) -> None:
        if not any(item.start < stop and start < item.stop and item.number is not None for item in (*have, *out)):
            out.append(Condition(kind, start, stop, text[start:stop].strip(), value))

    for found in _DRAFT.finditer(text):
        add("setting", found.start("n"), found.end("n"), float(found["n"]))
        if out and out[-1].start == found.start("n"):
            out[-1].name = "num_speculative_tokens"
    for found in _CONCURRENCY.finditer(text):
        left = text[found.start() - 1 : found.start()]
        if left.isalnum() or left in ("_", "-", "."):
            continue
        add("concurrency", found.start(), found.end("n"), number(found["n"]))
        for extra in re.finditer(r"\d+", found["more"] or ""):
            at = found.start("more") + extra.start()
            add("concurrency", at, at + len(extra[0]), float(extra[0]))
    for found in _INOUT.finditer(text):
        add("prompt_tokens", found.start("i"), found.end("i"), number(found["i"], found["ik"]))
        add("output_tokens", found.start("o"), found.end(), number(found["o"], found["ok"]))
    for pattern, kind in ((_OUT, "output_tokens"), (_IN, "prompt_tokens"), (_CONTEXT, "context"), (_AT_K, "context")):
        for found in pattern.finditer(text):
            key = next((name for name in ("n", "n2", "n3") if found.groupdict().get(name)), "n")
            if _CAPACITY.search(text[max(0, found.start() - 60) : found.start()]):
                continue
            what = (found.groupdict().get("what") or "").lower()
            if what.startswith(("prompt", "input", "prefix")) and not (found["k"] or found["tok"]):
                continue
            kilo = found.groupdict().get("k" + key[1:]) if kind != "output_tokens" else None
            start = found.start() if kind != "context" or pattern is not _AT_K else found.start("n")
            add(kind, start, found.end(), number(found[key], kilo))
    return out


def _worded(text: str) -> list[Condition]:
    out: list[Condition] = []
    for found in _RUN.finditer(text):
        if found["first"] or found["zf"]:
            out.append(Condition("run", found.start(), found.end(), "first", 1.0))
        elif found["later"] or found["zl"]:
            out.append(Condition("run", found.start(), found.end(), "later", 2.0))
        else:
            out.append(Condition("run", found.start(), found.end(), found["n"], float(found["n"])))
    for found in _UPTIME.finditer(text):
        out.append(Condition("uptime", found.start(), found.end(), found[0], _uptime(found)))
    for found in _VARIANT.finditer(text):
        out.append(
            Condition("variant", found.start(), found.end(), f"{found['which'].lower()} {found['what'].lower()}")
        )
    for found in _TOOL.finditer(text):
        out.append(Condition("tool", found.start(), found.end(), found[0].lower()))
    for found in lexicon.cue("headline.direct").finditer(text):
        out.append(Condition("route", found.start(), found.end(), "direct"))
    for found in lexicon.cue("headline.route").finditer(text):
        if not re.search(
            r"\bwithout (?:the |a |any )?$", text[max(0, found.start() - 14) : found.start()], re.IGNORECASE
        ):
            out.append(Condition("route", found.start(), found.end(), "gateway"))
    for kind in ("before", "after"):
        for found in lexicon.cue(f"side.{kind}").finditer(text):
            if re.match(r"\s?~?\d", text[found.end() : found.end() + 3]):
                continue
            out.append(Condition("side", found.start(), found.end(), kind))
    for found in lexicon.cue("reference").finditer(text):
        out.append(Condition("reference", found.start(), found.end(), found[0]))
    return out


def _uptime(found: re.Match[str]) -> float:
    groups = found.groupdict()
    if groups["fresh"] or groups["zfresh"]:
        return 0.0
    if groups["long"]:
        return 43200.0
    for key in ("", "2", "4"):
        raw, unit = groups.get(f"n{key}"), groups.get(f"u{key}")
        if raw and unit:
            word = {"a": 1.0, "an": 1.0, "one": 1.0, "two": 2.0, "three": 3.0}.get(raw.lower(), 3.0)
            value = float(raw) if re.match(r"\d", raw) else word
            return value * _SECONDS.get(unit[0].lower(), 60.0)
    return 0.0


def feature_marks(text: str) -> list[Condition]:
    """Features that the text says are on or off at this place."""
    pattern, canon = _features()
    out: list[Condition] = []
    for found in pattern.finditer(text):
        key = found.lastgroup
        if not key:
            continue
        before, after = text[max(0, found.start() - 48) : found.start()], text[found.end() : found.end() + 24]
        name = canon[int(key[1:])]
        if _WITHOUT.search(before) or _OFF_BEHIND.match(after):
            out.append(Condition("feature", found.start(), found.end(), name, on=False))
        elif _WITH.search(before) or _ON_BEHIND.match(after):
            out.append(Condition("feature", found.start(), found.end(), name, on=True))
    if out:
        for found in _PRONOUN.finditer(text):
            out.append(Condition("feature", found.start(), found.end(), out[0].name, on=bool(found["on"])))
    base = _BASELINE.match(text)
    if base:
        out.append(Condition("baseline", base.start(), base.end(), "baseline"))
    return out


def feature_of(text: str) -> str:
    """Canonical feature a label names, with or without a switch word; empty when it names none."""
    pattern, canon = _features()
    found = pattern.search(text)
    return canon[int(found.lastgroup[1:])] if found and found.lastgroup else ""
