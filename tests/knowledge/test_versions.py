"""Version ranges."""

from __future__ import annotations

import pytest

from knowledge.versions import holds, parse_version


@pytest.mark.parametrize(
    ("spec", "version", "want"),
    [
        (">=0.8", "0.8.0", True),
        (">=0.8,<0.11", "0.10.2", True),
        (">=0.8,<0.11", "0.11.0", False),
        ("==0.8", "0.8.5", True),
        ("!=0.8", "0.8.5", False),
        (">=0.21", "v0.21.0rc1+cu129", True),
        (">=0.8", None, None),
        ("", None, True),
    ],
)
def test_ranges(spec: str, version: str | None, want: bool | None) -> None:
    assert holds(spec, version) is want


def test_text_that_is_no_version() -> None:
    assert parse_version("nightly") is None
    with pytest.raises(ValueError, match="cannot read"):
        holds("~0.8", "0.8")
