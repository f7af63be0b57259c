"""Two labels that name values of one choice (attention backend, layout, number format …): what a pair of runs differs in."""

from __future__ import annotations

import math
import re

from tools.report import lexicon

MAX_PIECES = 6
_CUT = re.compile(r"\s?[,;/+|]\s?|\s(?:and|with)\s")
# Names of ways to spread a model that are written as one word: TEP8, DEP16, PP2TP4, EPMoE, DeepEP.
_LAYOUT = re.compile(
    r"(?:(?:t|d|p|e|te|de|dt|tpe?|dpe?)p[-_ =]?\d{1,3}){1,3}|epmoe|deep[-_ ]?ep(?:[-_ ](?:auto|normal|low[-_ ]latency))?",
    re.IGNORECASE,
)
# ``TP8-TRITON``: the backend behind a layout.
_JOINED = re.compile(r"(?<=p\d)-(?=[a-z])|(?<=p\d\d)-(?=[a-z])", re.IGNORECASE)
_FLAG = re.compile(r"^-{1,2}[\w-]+[= ]")
# The text says that the two runs are the same in everything else.
_ALONE = re.compile(
    r"\bonly (?:the )?[`\"]?-{0,2}[\w-]{2,40}[`\"]? (?:differs?|changes?|changed|is different|was (?:changed|different))\b"
    r"|\b(?:nothing else|no other \w+) (?:differs?|changed|is different|was (?:changed|touched))\b"
    r"|\b(?:everything|all) else (?:is |was |being |stays |kept |held )?(?:the same|equal|identical|unchanged|constant)\b"
    r"|其[他它余](?:的)?(?:参数|配置|条件)?(?:都|均|完全|全部)?(?:一样|相同|不变|没变|一致)|只(?:有|改了?)[^，。]{1,16}(?:不同|不一样|这一项)",
    re.IGNORECASE,
)


def alone(text: str) -> bool:
    """Whether the text says that one thing differs and nothing else."""
    return _ALONE.search(text) is not None


def kind(left: str, right: str) -> str:
    """The choice of which the two labels name different values, all else in them being equal; empty when there is none."""
    one, two = _pieces(left), _pieces(right)
    differ = [name for name in {*one, *two} if one.get(name) != two.get(name)]
    if len(differ) != 1 or not differ[0] or differ[0] not in one or differ[0] not in two:
        return ""
    # As many GPUs on both sides, split in another way; one GPU against two is no question of layout.
    same_size = _gpus(one[differ[0]]) == _gpus(two[differ[0]])
    return differ[0] if differ[0] != "layout" or same_size else ""


def known(label: str) -> bool:
    """Whether a label is made of such values alone, so that it names a run and no feature that is on in it."""
    found = _pieces(label)
    return bool(found) and "" not in found


def _gpus(values: frozenset[str]) -> int:
    """GPUs of a layout: the product of its degrees, 0 when it names none. EP divides ranks that other axes name."""
    found = [(axis, int(count)) for value in values for axis, count in re.findall(r"([a-z]+)\D*(\d+)", value)]
    degrees = [count for axis, count in found if not axis.startswith("e")] or [count for _, count in found]
    return math.prod(degrees) if degrees else 0


def _pieces(label: str) -> dict[str, frozenset[str]]:
    """Kind → values of it in a label; what is no known value stands under the empty kind."""
    found: dict[str, set[str]] = {}
    joined = _JOINED.sub("/", label.strip(" `*_:：").lower())
    for piece in _CUT.split(joined)[:MAX_PIECES]:
        plain = _FLAG.sub("", piece.strip(" `*_()\"'"))
        if plain:
            name = next((name for name, pattern in lexicon.alternatives() if pattern.fullmatch(plain)), "")
            name = name or ("layout" if _LAYOUT.fullmatch(plain) else "")
            found.setdefault(name, set()).add(plain)
    return {name: frozenset(values) for name, values in found.items()}
