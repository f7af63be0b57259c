"""Names in running text: GPUs with counts, models with sizes, engines and versions, packages, settings, lengths."""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct

from tools.report import lexicon

VERSION = r"(?:v|V|=|==)?\d{1,3}\.\d{1,3}(?:\.(?:\d{1,4}|x|\*))?(?:\.\d{1,4})?(?:[.-]?(?:post|dev|rc|a|b|alpha|beta)\d*)?(?:\+[\w.]+)?(?:-cu\d+)?"
_COUNT = (
    r"(?:(?P<count>\d{1,4}|one|two|both|dual|three|four|quad|five|six|seven|eight|sixteen|single|单|一|双|两|二|三|四|八|a|an)"
    r"\s?(?:x|X|×|\*|张|块|卡|个)?[\s-]?(?:of the |of |NVIDIA |Nvidia |AMD |Instinct |Tesla |GeForce |identical |new |rented )*)?"
)
_AFTER = r"(?P<mem>[\s-]?\(?(?P<gib>\d{2,3})\s?(?:GB|GiB|G)\b(?!\s?/)\)?)?(?:\s?(?:[(（]?[x×*]|\(x?)\s?(?P<times>\d{1,3})\b(?![.,]\d)(?!\s?(?:tok|t/s|tps|ms\b|s\b|sec|%|GB|GiB|req|W\b|[kK]\b|users?|clients?|concurren))[)）]?)?"
_SIZE = r"(?:\d{1,4}x)?\d{1,4}(?:\.\d{1,2})?[Bb](?:-A\d{1,3}(?:\.\d)?[Bb])?"
_HF = re.compile(r"(?<![\w/.-])(?P<org>[A-Za-z][\w.-]{1,40})/(?P<repo>[A-Za-z][\w.-]*\d[\w.-]*)(?![\w/])")
_PARAMS = re.compile(
    r"(?<![A-Za-z0-9.])(?:(?P<experts>\d{1,3})x)?(?P<size>\d{1,4}(?:\.\d{1,2})?)\s?[Bb](?![A-Za-z/])(?!\s?/)"
)
_QUANT = re.compile(
    r"(?<![A-Za-z0-9])(?:AWQ|GPTQ|NVFP4|MXFP4|FP4|FP8|W8A8|W4A16|W4A8|INT8|INT4|GGUF|bitsandbytes|bnb|AutoRound|EXL[23]|compressed-tensors|fp8|int8|int4|awq|gptq)(?![A-Za-z0-9])"
)
_DTYPE = re.compile(r"(?<![A-Za-z0-9])(?:bf16|bfloat16|fp16|float16|fp32|float32)(?![A-Za-z0-9])", re.IGNORECASE)
_PATHS = re.compile(
    r"https?://\S+|(?<![\w])/(?:[\w.@-]+/)+[\w.@-]*|\b[0-9a-f]{7,40}\b(?=.*[a-f])|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\b[0-9a-fA-F]{2,4}:[0-9a-fA-F]{2}[.:]\d{1,2}(?:\.\d)?\b"
    r"|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?\S*)?|\b\d\d?:\d\d(?::\d\d(?:\.\d+)?)?\b|#\d+\b|\b(?:sm|SM|gfx|cu|rank|stage|port|Xid|XID|xid|PR|pr|issue|node|GPU|gpu|page|step|step-)[ _]?#?\d+[a-z]?\b(?!(?:\.\d+)?(?:\s?[-–]\s?\d+)?\s?%)"
    r"|\b[pP]\d{2}(?:\.\d+)?\b|\b[PV]\d\b|\b(?:FP|INT|BF|fp|int|bf)\d{1,2}\b|\bW\dA\d{1,2}\b|\bGen ?\d\b|\bgen ?\d\b|\bPCIe ?\d(?:\.\d)?(?: ?x\d+)?\b|\bNVLink ?\d\b|(?<![\d.])\bx\d{1,2}\b"
)


class Entity(Struct):
    """A name found: ``kind`` gpu, model, engine, version, package, setting, quant, dtype, params, framework, other."""

    kind: str
    start: int
    stop: int
    name: str
    value: float | None = None
    extra: float | None = None
    text: str = ""


@lru_cache(maxsize=1)
def _gpu_pattern() -> tuple[re.Pattern[str], list[str], list[bool]]:
    parts, canon, bare = [], [], []
    for index, gpu in enumerate(lexicon.names().gpus):
        body = "|".join(re.sub(r"(?<!\\)\((?!\?)", "(?:", word) for word in gpu.words)
        parts.append(f"(?P<g{index}>{body})")
        canon.append(gpu.name)
        bare.append(gpu.bare)
    body = "|".join(parts)
    pattern = rf"(?<![A-Za-z0-9_.-]){_COUNT}(?P<vendor>(?:NVIDIA|Nvidia|AMD|Instinct|Tesla|GeForce)\s)?(?:{body})(?![A-Za-z0-9_](?!x\b)){_AFTER}"
    return re.compile(pattern, re.IGNORECASE), canon, bare


@lru_cache(maxsize=1)
def _engine_pattern() -> re.Pattern[str]:
    parts = []
    for index, engine in enumerate(lexicon.names().engines):
        if engine.words:
            parts.append(f"(?P<e{index}>{'|'.join(engine.words)})")
    return re.compile(rf"(?<![A-Za-z0-9_./-])(?:{'|'.join(parts)})(?![A-Za-z0-9_])", re.IGNORECASE)


@lru_cache(maxsize=1)
def _framework_pattern() -> re.Pattern[str]:
    parts = [f"(?P<f{index}>{'|'.join(item.words)})" for index, item in enumerate(lexicon.names().frameworks)]
    return re.compile(rf"(?<![A-Za-z0-9_./-])(?:{'|'.join(parts)})(?![A-Za-z0-9_])", re.IGNORECASE)


@lru_cache(maxsize=1)
def _package_pattern() -> re.Pattern[str]:
    body = "|".join(sorted(lexicon.names().packages, key=len, reverse=True))
    return re.compile(
        rf"(?<![A-Za-z0-9_./])(?P<name>{body})(?:\s(?:toolkit|version|driver|is (?:now )?))?\s?(?:version |版本)?(?:=|==|>=|<=|:|：|@)?\s?"
        rf"(?P<version>v?\d+(?:\.\d+)*(?:[.-](?:post|dev|rc)\d+)?(?:\+[\w.]+)?(?:\.x)?)(?![\w%])",
        re.IGNORECASE,
    )


_BARE_VERSION = re.compile(rf"(?<![\w./=-])(?:{VERSION})(?![\w]*[/%])(?!\.\d)(?!\w)")
# A host address; releases of four parts begin with 0.
_ADDRESS = re.compile(r"[1-9]\d{0,2}(?:\.\d{1,3}){3}")
# The value of a command line option is no release.
_FLAG = re.compile(r"(?:^|\s|`)--?(?!\w*(?:version|tag|image|release))[a-z][\w-]*[= ]$")
_STRONG = re.compile(r"^v\d|^\d+\.\d+\.(?:\d|x|\*)|\.(?:post|rc|dev)\d", re.IGNORECASE)
_CONTEXT = re.compile(
    r"(?:version|release|image|tag|build|upgrad\w*|downgrad\w*|updat\w*|bump\w*|mov\w+|went|back|main|from|to|in|on|with|at|of|since|until|before|after|than|between|and|vs\.?|->|→|~|use[ds]?|"
    r"版本|升级到|升级|从|到|用|在|回退到|降级到)\s?(?:the\s|version\s|v\.?\s?)?$",
    re.IGNORECASE,
)


def find(text: str) -> list[Entity]:
    """Entities of a sentence, left to right, without overlaps."""
    out: list[Entity] = []
    taken = [False] * (len(text) + 1)

    def free(start: int, stop: int) -> bool:
        return not any(taken[start:stop])

    def add(item: Entity) -> None:
        item.text = text[item.start : item.stop]
        out.append(item)
        for at in range(item.start, item.stop):
            taken[at] = True

    for match in re.finditer(r"https?://\S+", text):
        add(Entity("other", match.start(), match.end(), "url"))
    for item in (*_models(text), *_gpus(text)):
        if free(item.start, item.stop):
            add(item)
    for match in _package_pattern().finditer(text):
        if free(match.start(), match.end()) and not _is_count(text, match):
            add(
                Entity(
                    "package",
                    match.start(),
                    match.end(),
                    match["name"].lower().strip(),
                    extra=None,
                    text=match["version"],
                )
            )
            out[-1].text = match["version"].rstrip(".")
    for item in _versions(text, free):
        add(item)
    for match in _engine_pattern().finditer(text):
        if free(match.start(), match.end()) and match.lastgroup:
            add(Entity("engine", match.start(), match.end(), lexicon.names().engines[int(match.lastgroup[1:])].name))
    for match in _framework_pattern().finditer(text):
        if free(match.start(), match.end()) and match.lastgroup:
            add(
                Entity(
                    "framework", match.start(), match.end(), lexicon.names().frameworks[int(match.lastgroup[1:])].name
                )
            )
    for item in _settings(text):
        if free(item.start, item.stop):
            add(item)
    for match in _PARAMS.finditer(text):
        if free(match.start(), match.end()) and float(match["size"]) < 3000:
            factor = float(match["experts"] or 1)
            add(Entity("params", match.start(), match.end(), match[0], float(match["size"]) * factor))
    for pattern, kind in ((_QUANT, "quant"), (_DTYPE, "dtype"), (_PATHS, "other")):
        for match in pattern.finditer(text):
            if free(match.start(), match.end()):
                add(Entity(kind, match.start(), match.end(), match[0].lower()))
    out.sort(key=lambda item: item.start)
    return out


def _is_count(text: str, match: re.Match[str]) -> bool:
    """``driver 2 times``, ``kernel 3 ms``: the number belongs to what follows, not to a package."""
    if "." in match["version"]:
        return bool(re.match(r"\s?(?:ms|us|s|%|x|GB|tok|req)\b", text[match.end() : match.end() + 5]))
    return not re.match(
        r"\s?(?:$|[.,;:)\]]|and\b|with\b|on\b|is\b|to\b|from\b|->)", text[match.end() : match.end() + 6]
    )


# "4x B300 nodes": the count is of the hosts, each with GPUs of its own.
_HOSTS = re.compile(r"[\s-]?(?:nodes|boxes|hosts|servers|machines|instances|clusters)\b", re.IGNORECASE)
_ONE_A_HOST = ("GB10", "GH200", "Thor", "Orin", "Strix Halo")


def _gpus(text: str) -> list[Entity]:
    pattern, canon, bare = _gpu_pattern()
    out = []
    for match in pattern.finditer(text):
        key = next((name for name in match.groupdict() if name[0] == "g" and name[1:].isdigit() and match[name]), None)
        if key is None:
            continue
        index = int(key[1:])
        number = _number(match["count"])
        if bare[index] and match["count"] is None and match["times"] is None and not _bare_ok(text, match):
            continue
        if len(match[key]) <= 3 and match[key] != match[key].upper():
            continue
        if match["times"]:
            number = float(match["times"])
        name = canon[index]
        if "{0}" in name:
            digits = re.search(r"\d{4}", match[key])
            suffix = re.search(r"\d{4}\s?(Ti|SUPER|D)\b", match[key], re.IGNORECASE)
            name = f"RTX {digits[0] if digits else ''}" + (f" {suffix[1]}" if suffix else "")
        start = match.start()
        if match["count"] and match["count"].lower() in ("a", "an", "one", "一"):
            number = 1.0
        hosts = number is not None and number > 1 and name not in _ONE_A_HOST and _HOSTS.match(text, match.end())
        if number is not None and (number > 1024 or hosts):
            number = None
        out.append(
            Entity("gpu", start, match.end(), name.strip(), number, float(match["gib"]) if match["gib"] else None)
        )
    return out


def _bare_ok(text: str, match: re.Match[str]) -> bool:
    return bool(
        re.match(r"\s?(?:cards?|gpus?|s\b|显卡|卡)", text[match.end() : match.end() + 6], re.IGNORECASE)
    ) or bool(
        re.search(
            r"\b(?:on|with|my|the|each|per|both|of)\s$", text[max(0, match.start() - 6) : match.start()], re.IGNORECASE
        )
        and not re.match(
            r"\s?(?:tok|req|ms|s\b|%|MB|GB|W\b|MHz|prompt|input|output)", text[match.end() : match.end() + 7]
        )
    )


def _number(word: str | None) -> float | None:
    if not word:
        return None
    if word.isdigit():
        return float(word)
    low = word.lower()
    return (
        lexicon.names().numbers.get(low)
        or lexicon.names().numbers_zh.get(word)
        or ({"一": 1.0, "a": 1.0, "an": 1.0}.get(low))
    )


@lru_cache(maxsize=1)
def _model_pattern() -> re.Pattern[str]:
    body = "|".join(sorted(lexicon.names().models, key=len, reverse=True))
    return re.compile(
        rf"(?<![A-Za-z0-9_/.-])(?:{body})[A-Za-z]{{0,12}}[-_ ]?(?:[Vv]?\d{{1,3}}(?:\.\d{{1,2}})?(?:vl|omni)?)?"
        rf"(?:[-_ ](?:{_SIZE}|Qwen|Llama|A\d{{1,3}}[Bb]|[A-Za-z][\w.]*\d[\w.]*|Instruct|Chat|Base|Coder|Next|Lite|Flash|Small|Large|Medium|Mini|Nano|"
        rf"Scout|Maverick|VL|Omni|Thinking|Distill|Pro|Air|it|IT|AWQ|GPTQ|FP8|NVFP4|INT4|INT8|Int4|Int8|bf16|v\d(?:\.\d)?|R1|V\d(?:\.\d)?|\d{{4}}))*(?![A-Za-z0-9])",
        re.IGNORECASE,
    )


# Everyday words that are also names of models: "step 12", "seed 3" count something.
_COUNTED = re.compile(r"(?:step|seed|command|ring|opt|solar|bloom|yi|ling) ?\d+")


def _models(text: str) -> list[Entity]:
    out = []
    for match in _HF.finditer(text):
        known = any(re.match(word, match["repo"], re.IGNORECASE) for word in lexicon.names().models)
        if known or re.search(_SIZE, match["repo"]):
            name = match[0].rstrip(".-_")
            out.append(_model(match.start(), match.start() + len(name), name))
    for match in _model_pattern().finditer(text):
        body = match[0].rstrip(" -_.")
        if not re.search(r"\d", body) and not re.search(r"[-_]", body):
            continue
        if body[0].islower() and (not re.search(r"\d", body) or _COUNTED.fullmatch(body)):
            continue
        if any(item.start < match.end() and match.start() < item.stop for item in out):
            continue
        out.append(_model(match.start(), match.start() + len(body), body))
    return out


def _model(start: int, stop: int, name: str) -> Entity:
    size = re.search(r"(?<![A-Za-z0-9.])(?:(\d{1,3})x)?(\d{1,4}(?:\.\d{1,2})?)[Bb](?![A-Za-z])", name)
    active = re.search(r"-A(\d{1,3}(?:\.\d)?)[Bb]", name)
    value = float(size[2]) * float(size[1] or 1) if size else None
    return Entity("model", start, stop, name, value, float(active[1]) if active else None)


def _versions(text: str, free: object) -> list[Entity]:
    """Engine versions: with the engine's name, a ``v``, three parts, or where the sentence speaks of versions."""
    out: list[Entity] = []
    for match in _BARE_VERSION.finditer(text):
        if not free(match.start(), match.end()):  # type: ignore[operator]
            continue
        body = match[0].lstrip("=")
        before = text[max(0, match.start() - 24) : match.start()]
        named: re.Match[str] | None = None
        for hit in _engine_pattern().finditer(before):
            named = hit
        after = text[match.end() : match.end() + 12]
        if _ADDRESS.fullmatch(body) or _FLAG.search(before):
            continue
        if re.match(
            r"\s?(?:ms|us|µs|s\b|sec|min|h\b|%|x\b|×|tok|req|GB|MB|TB|GiB|MiB|Gb|W\b|MHz|GHz|C\b|T\b|t/s|tps|TPS|it/s|fold|times|倍|秒|毫秒|B\b)",
            after,
        ):
            continue
        linked = (
            bool(out)
            and len(text[out[-1].stop : match.start()]) <= 14
            and bool(
                re.fullmatch(
                    r"[\s,]*(?:-?->|→|to|and|or|vs\.?|versus|up to|until|through|-|–|/|和|到|与|至)[\s,]*(?:up to\s|v)?",
                    text[out[-1].stop : match.start()],
                    re.IGNORECASE,
                )
            )
        )
        close = (
            named is not None
            and re.fullmatch(r"[\s:=：]*(?:version|release|image|版本)?[\s:=：]*v?", before[named.end() :]) is not None
        )
        speaks = bool(re.search(r"version|release|upgrad|downgrad|regress|升级|版本|降级|回退", text, re.IGNORECASE))
        if (
            close
            or linked
            or _STRONG.search(body)
            or (speaks and _CONTEXT.search(before) and re.match(r"^\d\.\d{1,2}(?:\.x)?$|^0\.\d+", body))
        ):
            name = lexicon.names().engines[int(named.lastgroup[1:])].name if named and named.lastgroup and close else ""
            out.append(Entity("version", match.start() + len(match[0]) - len(body), match.end(), name, text=body))
    arrows = re.compile(
        r"(?<![\w./])(?P<a>\d\.\d{1,3}(?:\.\d+)?)\s?(?:-?->|→)\s?(?P<b>\d\.\d{1,3}(?:\.\d+)?(?:\.x)?)(?![\w./]|\s?(?:ms|s\b|%|x\b|tok|req|GB))"
    )
    told = re.search(r"version|release|upgrad|regress|after|since|升级", text, re.IGNORECASE)
    for match in arrows.finditer(text):
        for group in ("a", "b"):
            start, stop = match.start(group), match.end(group)
            taken = any(item.start <= start < item.stop for item in out)
            if not taken and told and free(start, stop):  # type: ignore[operator]
                out.append(Entity("version", start, stop, ""))
    out.sort(key=lambda item: item.start)
    return out


@lru_cache(maxsize=1)
def _setting_pattern() -> re.Pattern[str]:
    parts = [f"(?P<s{index}>{'|'.join(item.words)})" for index, item in enumerate(lexicon.names().settings)]
    return re.compile(
        rf"(?<![A-Za-z0-9_])(?:--?)?(?:{'|'.join(parts)})`?(?:\s?(?:=|:|to|of|is|was|at|set to|comes? (?:out|up) (?:at|with)|resolves? to)\s?|\s?)(?P<value>\d{{1,3}}(?:,\d{{3}})+|\d+(?:\.\d+)?|\.\d+)(?P<k>[kK]\b)?(?![\w.]*[A-Za-z%])(?!\s?(?:ms|GB))",
        re.IGNORECASE,
    )


MOST_CONTEXT = 2**20


def _settings(text: str) -> list[Entity]:
    out = []
    for match in _setting_pattern().finditer(text):
        key = next((name for name in match.groupdict() if name[0] == "s" and name[1:].isdigit() and match[name]), None)
        if key is None:
            continue
        item = lexicon.names().settings[int(key[1:])]
        value = float(match["value"].replace(",", "")) * (1024 if match["k"] else 1)
        # "max_total_tokens=8000000": the size of a pool, no model has such a context.
        if item.name == "max_model_len" and value > MOST_CONTEXT and "total" in match[0].lower():
            continue
        out.append(Entity("setting", match.start(), match.end(), item.name, value))
    return out


def mask(text: str, found: list[Entity]) -> str:
    """The sentence with names blanked out (same length), so that their digits are not read as figures."""
    out = list(text)
    for item in found:
        for at in range(item.start, item.stop):
            if out[at] != " ":
                out[at] = "\u00b7"
    return "".join(out)
