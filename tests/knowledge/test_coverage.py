"""Every row of the rule inventory has become something that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from knowledge import load
from knowledge.catalogue import metric_names
from knowledge.coverage import ROWS, Row, coverage, problems
from tools.config.flags import describe_flag

DO_NOT_SHIP = [
    f"R{number:03d}"
    for number in (16, 17, 34, 110, 115, 118, 168, 169, 173, 178, 181, 210, 216, 217, 225, 226, 233, 240, 267, 268, 274)
]
RECONSTRUCTED = [
    f"R{number:03d}" for number in (3, 7, 9, 10, 11, *range(42, 49), *range(50, 60), *range(61, 67), 99, 120)
]


def _flag(name: str) -> bool:
    return describe_flag(name) is not None


def test_no_row_is_unmapped_and_every_target_exists() -> None:
    assert len(ROWS) == 309
    assert list(problems(load(), metric_names(), _flag)) == []


def test_no_row_of_the_do_not_ship_list_ships_as_written() -> None:
    table = coverage()
    assert [row for row in DO_NOT_SHIP if not table[row].not_shipped] == []
    assert [row for row, item in table.items() if item.not_shipped and row not in DO_NOT_SHIP] == []


def test_reconstructed_rows_are_marked() -> None:
    assert [row for row, item in coverage().items() if item.reconstructed] == RECONSTRUCTED


def test_corrected_rows_name_the_corrections_of_the_inventory() -> None:
    source = Path(__file__).parents[2].parent / "shared" / "facts" / "rules.md"
    if not source.exists():
        pytest.skip("the rule inventory does not lie beside the project")
    for line in source.read_text(encoding="utf-8").splitlines():
        found = re.match(r"\|\s*(R\d{3})\s*\|", line)
        if not found:
            continue
        groups = re.findall(r"→\s*([A-E]\d+(?:\s*,\s*[A-E]\d+)*)", line)
        wanted = [name for group in groups for name in re.findall(r"[A-E]\d+", group)]
        assert coverage()[found[1]].corrected == wanted, found[1]


@pytest.mark.parametrize(
    "target",
    [
        "rule:NO-SUCH", "page:no-such", "fact:no.such", "metric:vllm:no_such", "flag:no-such-flag-anywhere",
        "family:no_such", "family:overload/action/no_such", "family:overload/probe/no-such", "family:overload/no_part",
        "signature:no.such", "something:else",
    ],
)  # fmt: skip
def test_a_target_that_does_not_exist_is_reported(target: str) -> None:
    rows = {**{row: Row(to=["page:loadtest"]) for row in ROWS}, "R001": Row(to=[target])}
    assert [row for row, _ in problems(load(), metric_names(), _flag, rows)] == ["R001"]


def test_a_missing_row_and_an_empty_row_are_reported() -> None:
    rows = {row: Row(to=["page:loadtest"]) for row in ROWS if row != "N23"}
    rows["R005"] = Row()
    assert dict(problems(load(), metric_names(), _flag, rows)) == {
        "N23": "unmapped", "R005": "no target and no reason",
    }  # fmt: skip
