"""Two labels that name values of one choice (attention backend, layout, number format …): what a pair of runs differs in."""

from __future__ import annotations

import math
import re

from tools.report import lexicon

MAX_PIECES = 6
_CUT = re.compile(r"\s?[,;/+|]\s?|\s(?:and|with)\s")
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


def _gpus(values: frozenset[str]) -> int:
    """GPUs of a layout: the product of its degrees, 0 when it names none. EP divides ranks that are there already."""
    degrees = [int(found) for value in values if not value.startswith("e") for found in re.findall(r"\d+", value)]
    return math.prod(degrees) if degrees else 0


def _pieces(label: str) -> dict[str, frozenset[str]]:
    """Kind → values of it in a label; what is no known value stands under the empty kind."""
    found: dict[str, set[str]] = {}
    for piece in _CUT.split(label.strip(" `*_:：").lower())[:MAX_PIECES]:
        plain = _FLAG.sub("", piece.strip(" `*_()\"'"))
        if plain:
            name = next((name for name, pattern in lexicon.alternatives() if pattern.fullmatch(plain)), "")
            found.setdefault(name, set()).add(plain)
    return {name: frozenset(values) for name, values in found.items()}
