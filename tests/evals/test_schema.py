"""Labels are strict: a typo is an error that names the file and the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from evals.schema import LabelError, dump_label, load_cases, load_label
from tests.evals.conftest import Writer, make_label


def _write(folder: Path, text: str, name: str = "case-0001.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_label_survives_the_way_to_yaml_and_back(tmp_path: Path) -> None:
    label = make_label("case-0001", also_accepted=["overload"], decoys=[])
    assert load_label(_write(tmp_path, dump_label(label))) == label


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("outcome:", "outcom:"), "outcom"),
        (("split: dev", "split: test"), "$.split"),
        (("n_snapshots: 0", "n_snapshots: many"), "$.n_snapshots"),
        (("quality: B", "quality: B\nquality: A"), "given twice"),
        (("id: case-0001", "id: case-0002"), "not the file's name"),
        (("id: case-0001", "id: [unclosed"), "not YAML"),
        (("fix: ''", ""), "fix"),
    ],
)
def test_error_names_file_and_key(tmp_path: Path, change: tuple[str, str], told: str) -> None:
    text = dump_label(make_label("case-0001"))
    assert change[0] in text
    with pytest.raises(LabelError) as caught:
        load_label(_write(tmp_path, text.replace(*change)))
    assert "case-0001.yaml" in str(caught.value)
    assert told in str(caught.value)


def test_lone_label_and_lone_world_are_errors(small_set: Writer) -> None:
    cases, labels = small_set([make_label("case-0001"), make_label("case-0002")])
    (labels / "case-0002.yaml").unlink()
    with pytest.raises(LabelError, match="world without a label"):
        load_cases(cases, labels)
    (labels / "case-0003.yaml").write_text(dump_label(make_label("case-0003")))
    with pytest.raises(LabelError, match="case-0002"):
        load_cases(cases, labels)


def test_groups_are_by_source() -> None:
    from evals.schema import CaseProvenance

    public = CaseProvenance(kind="public")
    assert make_label("inc-001", provenance=public).group() == "inc"
    assert make_label("case-0201", provenance=public).group() == "dev"
    assert make_label("case-0301", split="holdout", provenance=public).group() == "holdout"
    assert make_label("lab-001", provenance=CaseProvenance(kind="lab"), relation="control").group() == "lab"
    assert make_label("case-0500", provenance=CaseProvenance(kind="essay")).group() == "made"
    assert make_label("case-0700", provenance=public, relation="withheld").group() == "made"
