"""Under which conditions a figure was seen: concurrency, length, version, feature, GPUs, route, side, run, uptime …"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from tools.report import lexicon
from tools.report.entities import Entity
from tools.report.lengths import lengths, number
from tools.report.quantities import Quantity

__all__ = ["FIGURE", "Condition", "feature_marks", "feature_of", "find", "number"]


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
    r"(?:(?:max[-_ ])?(?:concurrency|conc|parallelism|parallel|batch(?:[-_ ]?size)?|bs|并发(?:数|量|度)?)|c|n)[\x22'`]?\s?(?:level\s)?(?:of|=|:|is|at|above|below|over|under|>|<|<=|>=|≥|≤|from|为|是|到)?\s?(?P<n>\d{1,3}(?:,\d{3})+|\d+)(?![\d.]*\d|\s?(?:%|ms|s\b|tok|[kK]\b))(?P<more>(?:\s?(?:,|/|and|or|、|和|to)\s?\d+"
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


# "n=3, temperature=0.8": answers to one prompt.
_SAMPLING = re.compile(r"SamplingParams|\b(?:temperature|top_[pk]|best_of)\b", re.IGNORECASE)
# A batch of tokens that a prefill is cut into, or of a training: no requests at once.
_CHUNK = re.compile(
    r"\b(?:context|prompt|prefill|(?:non-?)?physical|logical|micro|chunk|token|training|u)[-_ ]?$", re.IGNORECASE
)
# "at 1/2/4/8 concurrent sessions"
_SLASHED = re.compile(r"(?:(?<![\w./])\d{1,5}\s?/\s?){1,8}$")
# "E=128, N=768" are sides of a matrix.
_SHAPE = re.compile(r"\b[EKM]\s?=\s?\d+")
_MILLION = 1e6
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
            # "two 1M sessions": as many sessions of that length.
            if quantity.kilo >= _MILLION:
                continue
            listed = _SLASHED.search(plain, max(0, quantity.start - 48), quantity.start)
            for extra in re.finditer(r"\d+", listed[0] if listed else ""):
                at = (listed.start() if listed else 0) + extra.start()
                out.append(Condition("concurrency", at, at + len(extra[0]), extra[0], float(extra[0])))
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
        if found[0][0] == "n" and _SAMPLING.search(text):
            continue
        if found[0][0] in "bB" and _CHUNK.search(text[max(0, found.start() - 16) : found.start()]):
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
    for kind, start, stop, value in lengths(text):
        add(kind, start, stop, value)
    return out


# "- nightly: 1482 tok/s": a release without a number.
_CHANNEL = re.compile(r"^\W{0,4}(nightly|main|master|latest|HEAD)(?: branch| build| image)?\s?[:：]", re.IGNORECASE)
# "Was hoping for 280": no earlier state.
_HOPE = re.compile(r"\s(?:hoping|expecting|wondering|supposed|promised|told|advertised|looking for)\b", re.IGNORECASE)
_TOLD_BY = re.compile(
    r"\bhop(?:ed|ing) (?:for|to (?:get|see|reach))\b"
    r"|\b(?:reported|stated|shown|given|listed|quoted) (?:in|on|by) (?:your|the|their|this) (?:\w+ )?(?:blog|paper|docs?|documentation|page|website|article|announcement|post)\b",
    re.IGNORECASE,
)
# "spec" is speculation unless it is a sheet's, or somebody goes by it.
_SPEC = re.compile("spec", re.IGNORECASE)
_SHEET = re.compile(
    r"\b(?:per|the|its|to|on|by|in|vendor|nvidia|amd|gpu)\sspec\b(?![ -]?(?:dec|draft|step|tok|run|v\d|on\b|off\b|path))|\bspec (?:sheet|says|value|of the)\b",
    re.IGNORECASE,
)


def _worded(text: str) -> list[Condition]:
    out: list[Condition] = []
    channel = _CHANNEL.match(text)
    if channel:
        out.append(Condition("version", channel.start(1), channel.end(1), channel[1].lower()))
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
            if any(start <= found.start() < stop for start, stop in order) or _HOPE.match(text, found.end()):
                continue
            out.append(Condition("side", found.start(), found.end(), kind))
    for found in (*lexicon.cue("reference").finditer(text), *_TOLD_BY.finditer(text)):
        if _SPEC.fullmatch(found[0]) and not _SHEET.search(text[max(0, found.start() - 10) : found.end() + 12]):
            continue
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
    bare: list[Condition] = []
    for found in pattern.finditer(text):
        key = found.lastgroup
        if not key:
            continue
        before, after = text[max(0, found.start() - 48) : found.start()], text[found.end() : found.end() + 24]
        name = canon[int(key[1:])]
        if _in_a_name(text, found):
            continue
        if _WITHOUT.search(before) or _OFF_BEHIND.match(after):
            out.append(Condition("feature", found.start(), found.end(), name, on=False))
        elif _WITH.search(before) or _ON_BEHIND.match(after) or _heads(text, found):
            out.append(Condition("feature", found.start(), found.end(), name, on=True))
        else:
            bare.append(Condition("feature", found.start(), found.end(), name, on=True))
    # "No MTP 17.5 ms, MTP 46.1 ms": beside its control run a bare name with a figure is the run with it.
    off = {item.name for item in out if not item.on}
    out.extend(item for item in bare if item.name in off and FIGURE.match(text, item.stop))
    for found in _BARE_OFF.finditer(text):
        later = next((item for item in out if item.on and found.end() < item.start < found.end() + 48), None)
        if later:
            out.append(Condition("feature", found.start(), found.end(), later.name, on=False))
    if out:
        for found in _PRONOUN.finditer(text):
            out.append(
                Condition("feature", found.start(), found.end(), out[0].name, on=bool(found["on"] or found["zh"]))
            )
    base = _BASELINE.match(text)
    if base:
        out.append(Condition("baseline", base.start(), base.end(), "baseline"))
    return out


# "MTP 46.1 ms": a figure with a unit; "MTP 3" is a setting of it.
FIGURE = re.compile(
    r"\s?(?:is|was|has|gives|about|around|~|:|=)?\s?\d[\d.,]*\s?(?:ms|s|tok\w*/s|t/s|tps|%|req/s|tokens)(?![\w])", re.I
)
# "2.1 s without and 2.0 s with offload"
_BARE_OFF = re.compile(r"(?<=[\w%] )without(?=,? (?:and|vs\.?|versus|but|against) [~\d])", re.IGNORECASE)
_NAMED = re.compile(
    r"\d[Bb](?![A-Za-z])|\.(?:gguf|safetensors|bin)\b|/[\w.-]*/|-GGUF\b|[A-Za-z]\d(?:\.\d)?-", re.IGNORECASE
)


def _in_a_name(text: str, found: re.Match[str]) -> bool:
    """``Qwen3-30B-MTP-GGUF``, ``/data/x-eagle3/model``: a part of the name of a model or file switches nothing on."""
    low, high = found.start(), found.end()
    if text[low - 1 : low] not in ("-", "/", "_", ".") or low == 0:
        return False
    while low > 0 and not text[low - 1].isspace() and found.start() - low < 80:
        low -= 1
    while high < len(text) and not text[high].isspace() and high - found.end() < 80:
        high += 1
    return bool(_NAMED.search(text[low:high]))


def _heads(text: str, found: re.Match[str]) -> bool:
    """``guided_json: ~70 tok/s``: a line named after a feature is the run with it."""
    return not text[: found.start()].strip(" -*`_") and bool(re.match(r"[`*_]{0,3}\s?[:：].*\d", text[found.end() :]))


def feature_of(text: str) -> str:
    """Canonical feature a label names, with or without a switch word; empty when it names none."""
    pattern, canon = _features()
    found = pattern.search(text)
    return canon[int(found.lastgroup[1:])] if found and found.lastgroup else ""
