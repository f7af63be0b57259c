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


# Another noun or unit behind a number takes it out of a list of loads.
_OWN_NOUN = r"(?!\d|\.\d|[/kK]|\s?(?:tok|ms|s\b|%|at\b|@|x\b)|[\s-](?:\w+\s){0,2}?(?:tokens?|prompts?|requests?|questions|samples|repeats?|runs?|passes|rounds|steps?|warm-?ups?|replicas?|nodes?|gpus?|cards?)|\s?(?:in|out)\s?[/,])"
_CONCURRENCY = re.compile(
    r"(?:(?:max[-_ ])?(?:concurrency|conc|parallelism|parallel|batch(?:[- ]size)?|bs|并发(?:数|量|度)?)|c|n)\s?(?:level\s)?(?:of|=|:|is|at|above|below|over|under|>|<|<=|>=|≥|≤|from|为|是|到)?\s?(?P<n>\d{1,3}(?:,\d{3})+|\d+)(?![\d.]*\d|\s?(?:%|ms|s\b|tok|[kK]\b))(?P<more>(?:\s?(?:,|/|and|or|、|和|to)\s?\d+"
    + _OWN_NOUN
    + r")*)",
    re.IGNORECASE,
)
# "N=1/2/4 replicas" counts replicas.
_NOT_LOAD = re.compile(
    r"[\s,/\d]{0,16}\s(?:replicas?|nodes?|gpus?|cards?|engines?|instances?|pods?|ranks?)\b", re.IGNORECASE
)
_AT_ONCE = re.compile(
    r"(?<![\w.,])(?P<n>\d{1,3}(?:,\d{3})+|\d{1,5})\s(?:(?:long|short|such|identical|small|big)\s)?(?:(?:prompts|requests|questions|calls|jobs|of them)\s)?(?:at once|at a time|at the same time|in flight|in parallel|simultaneously|concurrently)\b",
    re.IGNORECASE,
)
# "with one user", "a single request gets 30 tok/s": the load of a figure; a lone request that does something is none.
_ALONE = re.compile(
    r"\b(?:with|for|at)\s(?:only |just )?(?:one|a single)\s(?:user|client|stream|session|chat|request)\b(?!\s(?:of|with|that|per|who|which))"
    r"|\b(?:one|a single|single)\s(?:user|client|stream|session|chat|request)(?:\salone|\sat a time)?(?:\s(?:gets?|runs? at|does|has|makes|reaches)|:|(?=\s\d[\d.,]*\s?(?:tok|t/s|tps|ms)))(?=\s(?:only |about |around |~)?\d)"
    r"|单个?(?:用户|请求|并发|路)时",
    re.IGNORECASE,
)
_LENGTH = r"(?<![\d.,])(?P<{0}>\d{{1,3}}(?:,\d{{3}})+|\d+(?:\.\d+)?)\s?(?P<{1}>[kK])?"
_CONTEXT = re.compile(
    _LENGTH.format("n", "k")
    + r"(?P<tok>[- ]tokens?)?(?P<join>[- ]?)(?P<what>context(?: length| window)?|prompts?|inputs?|prefix|sequence(?: length)?)\b"
    r"|\b(?:context(?: length| size| window)?|prompt(?: length)?|input(?: length| len)?|isl|seq(?:uence)?[- ]?len(?:gth)?)\s?(?:of|=|:|at|is)?\s?(?:about |around |~)?(?P<n2>\d{1,3}(?:,\d{3})+|\d+)\s?(?P<k2>[kK])?(?!\d|\s?(?:%|ms|s\b|tok\w*/s|tps|t/s|\.\d))"
    r"|(?:上下文|(?<![\dkK万])输入|提示词?|prompt)\s?(?:长度|为|是|约)?\s?(?P<n3>\d{1,3}(?:,\d{3})+|\d+)\s?(?P<k3>[kK万])?",
    re.IGNORECASE,
)
# "prompts are about 12,000 tokens", "a prompt (130k tokens)", "a document of 60k tokens"
_LONG = re.compile(
    r"\b(?:prompts?|inputs?|documents?|books?|files?|histor(?:y|ies))\s?(?:(?:is|are|was|were|of|with|have|has|averag\w+|length|lengths)\s)?\(?(?:all |each |now )?(?:(?:about|around|roughly|nearly|almost|over|up to|at most|a bit over|some)\s|~\s?)?"
    + _LENGTH.format("n", "k")
    + r"\s?-?tokens?\b(?!\s?/| per\b| a second\b)",
    re.IGNORECASE,
)
# "prompts ~49K": a sign of a size stands in for the unit.
_LONG_K = re.compile(
    r"\bprompts?\s(?:(?:is|are|of)\s)?(?:about\s|around\s|~\s?)"
    + _LENGTH.format("n", "k")
    + r"(?<=[kK])(?!\w|\s?(?:prompt|request|tok\w*/s|t/s|tps))",
    re.IGNORECASE,
)
# "a batch of 100k prompts": so many, not so long.
_MANY = re.compile(
    r"\b(?:batch|set|job|corpus|list|total|all|send\w*|sent|submit\w*|process\w*|finish\w*|through|over|of the|dataset|queue|run|runs|ran)\s(?:of |the |all |about |our |through |over ){0,3}$",
    re.IGNORECASE,
)
_AT_K = re.compile(
    r"\b(?:at|to|with|past|beyond|above|after|between|and|until|from)\s(?:about |around |~)?(?P<n>\d{1,4}(?:\.\d)?)\s?(?P<k>[kK])\b(?!\s?(?:req|prompt|user|tok\w*\s?(?:/|per)|t/s|tps))",
    re.IGNORECASE,
)
_INOUT = re.compile(
    _LENGTH.format("i", "ik")
    + r"\s?(?:tokens?\s)?(?:in|input|prompt)\b\s?(?:tokens?\s?)?(?:/|and|,|\+|→|->)\s?(?:about |around |~)?(?P<o>\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)\s?(?P<ok>[kK])?\s?(?:tokens?\s)?(?:out|output)\b",
    re.IGNORECASE,
)
_INOUT_ZH = re.compile(
    r"(?P<i>\d+(?:\.\d+)?)\s?(?P<ik>[kK万])?\s?(?:个?token)?的?输入[,，、和/]?\s?(?P<o>\d+(?:\.\d+)?)\s?(?P<ok>[kK万])?\s?(?:个?token)?的?输出"
)
_OUT = re.compile(
    _LENGTH.format("n", "k")
    + r"\s?-?(?:output|generated|completion|new|answer|decode) tokens?\b(?!\s?/)|\b(?:osl|output(?: length| len)?|max_(?:new_)?tokens)\s?(?:of|=|:)?\s?(?P<n2>\d{1,3}(?:,\d{3})+|\d+)(?!\s?(?:tok\w*/s|%|\.\d|ms))|输出(?:长度)?\s?(?P<n3>\d+)\s?(?:个)?\s?(?:token|字)",
    re.IGNORECASE,
)
_IN = re.compile(
    _LENGTH.format("n", "k")
    + r"\s?-?(?:random )?(?:input|prompt|context) tokens?\b(?!\s?/)|"
    + _LENGTH.format("n2", "k2")
    + r"\s?tokens? (?:per(?!\s?(?:s|sec|seconds?|step|min|minute|hour|gpu|verif\w+|draft|pass|round|forward|rank|expert|run)\b)|in|long|of (?:prompt|input|context)|each)\b(?!\s?/)",
    re.IGNORECASE,
)
_RUN = re.compile(
    r"\b(?:(?P<first>(?:the\s)?(?:very\s)?first|initial|cold|1st)|(?P<later>(?<!\ba )(?<!\bA )(?:second|2nd|third|3rd)|later|subsequent|following|repeat(?:ed)?|warm(?:ed)?|every (?:other|later|further)|all (?:other|later|further)))(?:\s\w+)?\s(?:runs?|pass(?:es)?|requests?|calls?|prompts?|tries|try|time|iterations?|start|rounds?|turns?|queries|query|attempts?)\b"
    r"|\b(?:run|(?<!we )(?<!I )pass|round|turn|iteration|attempt)\s?#?(?P<n>\d{1,3})\b(?!\s(?:concurrent|parallel|users|requests|clients|tokens|%|x\b|ms|s\b))|(?P<zf>第一[次轮]|首次|冷启动)|(?P<zl>第[二三四][次轮]|后续|之后的请求|再次)",
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
_PRONOUN = re.compile(
    r"\b(?:(?P<on>with)|without) it\b(?! \w+s\b)|不开(?=\s|\d|[，,])|(?:关掉?|(?<!不)(?P<zh>开了?))(?=\s?\d)",
    re.IGNORECASE,
)
# The order of things inside one request or one queue, not the time before and after a change.
_ORDER = re.compile(
    r"\b(?:before|until)\s(?:the\s|a\s|its\s|their\s|any\s|each\s|every\s|even\s)*(?:very\s)?(?:first|single)\b|\bas before\b"
    r"|\bone after (?:the other|another)\b|\b(?P<thing>\w+) after (?P=thing)\b|\b(?:tokens?|words?|text) after (?:that|it)\b",
    re.IGNORECASE,
)
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
    r"\b(?:without|w/o|no|disabl(?:e|ed|ing)|turn(?:ed|ing)? off|switch(?:ed|ing)? off|remov(?:e|ed|ing)|drop(?:ped|ping)?|minus|not using|skipping)\s(?:the |any |my |our |--?)?(?:[\w-]+\s){0,2}?$|(?:关闭|禁用|不用|不开|不启用|去掉|没有|(?<![相有])关(?=\s?$))[^,，。]{0,6}$",
    re.IGNORECASE,
)
_OFF_BEHIND = re.compile(
    r"^\s?(?:is |was |were |are |=\s?|:\s?|turned |switched |set to )?(?:off|disabled|false|removed)\b|^\s?(?:关闭|禁用|关(?=[掉了,，。、\s]|$))",
    re.IGNORECASE,
)
_ON_BEHIND = re.compile(
    r"^\s?(?:is |was |were |are |=\s?|:\s?|turned |switched |set to )?(?:on|enabled|true|active)\b|^\s?(?:开启|打开|启用|开(?=[了着,，。、\s]|$))",
    re.IGNORECASE,
)
_WITH = re.compile(
    r"\b(?:with|enabl(?:e|ed|ing)|turn(?:ed|ing)? on|switch(?:ed|ing)? on|add(?:ed|ing)?|using|use[ds]?|via|under|plus|behind|go(?:es|ing)? through)\s(?:the |a |an |one |my |our |--?)?(?:[\w-]+\s){0,2}?$|(?:开启|启用|打开|使用|加上|用了?|(?<![不公离])开了?(?=\s?$))[^,，。]{0,6}$",
    re.IGNORECASE,
)
_BASELINE = re.compile(
    r"^\W*(?:the )?(?:baseline|vanilla|plain|defaults?|stock|control|unmodified|reference run|(?:without|off)(?=\s?[:：])|基线|默认|原版)\b",
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
    if kilo == "万":
        return value * 1e4
    power = value.is_integer() and 0 < value < 1024 and int(value) & (int(value) - 1) == 0
    return value * (1024 if power else 1000)


_LENGTHS = (
    (_OUT, "output_tokens"),
    (_IN, "prompt_tokens"),
    (_LONG, "context"),
    (_LONG_K, "context"),
    (_CONTEXT, "context"),
    (_AT_K, "context"),
)
# "E=128, N=768" are sides of a matrix.
_SHAPE = re.compile(r"\b[EKM]\s?=\s?\d+")
_RANK = re.compile(r"(?:dp|tp|pp|ep) ?\d+", re.IGNORECASE)


def find(text: str, plain: str, entities: list[Entity], quantities: list[Quantity]) -> list[Condition]:
    """Condition markers of a sentence. ``text`` is as written, ``plain`` has names blanked out."""
    out: list[Condition] = []
    degrees = {item.value or 0.0 for item in entities if item.name == "tensor_parallel_size"}
    # Beside other ways to split the model, or a count of GPUs, one degree is not how many GPUs there are.
    split = any(item.name in ("data_parallel_size", "pipeline_parallel_size") for item in entities) or (
        len(degrees) == 1 and any(item.kind == "gpu" and item.value and item.value >= max(degrees) for item in entities)
    )
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
            if item.name == "tensor_parallel_size" and item.value and not split:
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
        if left.isalnum() or left in ("_", "-", ".") or _NOT_LOAD.match(text, found.end()):
            continue
        if found[0][0] == "N" and _SHAPE.search(text):
            continue
        add("concurrency", found.start(), found.end("n"), number(found["n"]))
        for extra in re.finditer(r"\d+", found["more"] or ""):
            at = found.start("more") + extra.start()
            add("concurrency", at, at + len(extra[0]), float(extra[0]))
    for found in _AT_ONCE.finditer(text):
        add("concurrency", found.start(), found.end(), number(found["n"]))
    for found in _ALONE.finditer(text):
        # Without an extent: the load of the figure behind it, not the load the service is said to have.
        out.append(Condition("concurrency", found.end(), found.end(), found[0], 1.0))
    for found in (*_INOUT.finditer(text), *_INOUT_ZH.finditer(text)):
        add("prompt_tokens", found.start("i"), max(found.end("i"), found.end("ik")), number(found["i"], found["ik"]))
        add("output_tokens", found.start("o"), found.end(), number(found["o"], found["ok"]))
    for pattern, kind in _LENGTHS:
        for found in pattern.finditer(text):
            key = next((name for name in ("n", "n2", "n3") if found.groupdict().get(name)), "n")
            if _CAPACITY.search(text[max(0, found.start() - 60) : found.start()]):
                continue
            what = (found.groupdict().get("what") or "").lower()
            if what.startswith(("prompt", "input", "prefix")) and not (found["k"] or found["tok"]):
                continue
            plural = what in ("prompts", "inputs") and not found["tok"] and found["join"] != "-"
            if plural and _MANY.search(text[max(0, found.start() - 32) : found.start()]):
                continue
            kilo = found.groupdict().get("k" + key[1:])
            start = found.start("n") if pattern in (_AT_K, _LONG, _LONG_K) else found.start()
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
    order = [(found.start(), found.end()) for found in _ORDER.finditer(text)]
    for kind in ("before", "after"):
        for found in lexicon.cue(f"side.{kind}").finditer(text):
            if re.match(r"\s?~?\d", text[found.end() : found.end() + 3]):
                continue
            if any(start <= found.start() < stop for start, stop in order):
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
        elif _WITH.search(before) or _ON_BEHIND.match(after) or _heads(text, found):
            out.append(Condition("feature", found.start(), found.end(), name, on=True))
    if out:
        for found in _PRONOUN.finditer(text):
            out.append(
                Condition("feature", found.start(), found.end(), out[0].name, on=bool(found["on"] or found["zh"]))
            )
    base = _BASELINE.match(text)
    if base:
        out.append(Condition("baseline", base.start(), base.end(), "baseline"))
    return out


def _heads(text: str, found: re.Match[str]) -> bool:
    """``guided_json: ~70 tok/s``: a line named after a feature is the run with it."""
    return not text[: found.start()].strip(" -*`_") and bool(re.match(r"[`*_]{0,3}\s?[:：].*\d", text[found.end() :]))


def feature_of(text: str) -> str:
    """Canonical feature a label names, with or without a switch word; empty when it names none."""
    pattern, canon = _features()
    found = pattern.search(text)
    return canon[int(found.lastgroup[1:])] if found and found.lastgroup else ""
