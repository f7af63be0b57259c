"""The flag knowledge agrees with itself, with the fact vocabulary and with its own history."""

from __future__ import annotations

import msgspec
import pytest

from knowledge.loader import ROOT, KnowledgeError, read_yaml
from knowledge.schema import FactDef
from knowledge.versions import holds, parse_version
from tools.config import data
from tools.config.resolve import in_range

DATA = data.read()
FACTS = {fact.name: fact for fact in msgspec.convert(read_yaml(ROOT / "facts" / "config.yaml"), list[FactDef])}
FLAGS = [(engine, flag) for engine in DATA.engines.values() for flag in engine.flags.values()]


def test_every_fact_of_a_flag_is_in_the_vocabulary_with_both_languages() -> None:
    named = {fact for _, flag in FLAGS for fact in (flag.fact, *flag.also, *flag.nested.values()) if fact}
    named |= {var.fact for var in DATA.env.values() if var.fact}
    assert named <= set(FACTS)
    assert all(FACTS[name].means.zh and FACTS[name].means.en for name in FACTS)


def test_flag_types_agree_with_fact_types() -> None:
    kinds = {"int": "number", "float": "number", "count": "number", "bool": "bool", "list": "list"}
    for engine, flag in FLAGS:
        if flag.fact and flag.type in kinds:
            assert FACTS[flag.fact].type == kinds[flag.type], f"{engine.name} {flag.name}"


def test_described_flags_exist_in_some_compared_release_or_say_that_they_never_did() -> None:
    for engine, flag in FLAGS:
        if engine.history:
            assert flag.never != bool(engine.history.get(flag.name)), flag.name


def test_exact_bounds_do_not_contradict_the_compared_releases() -> None:
    for engine, flag in FLAGS:
        mask = engine.history.get(flag.name, 0)
        if not mask:
            continue
        first = parse_version(engine.releases[(mask & -mask).bit_length() - 1]) or ()
        last = parse_version(engine.releases[mask.bit_length() - 1]) or ()
        if flag.since:
            assert (parse_version(flag.since) or ())[: len(first)] <= first, flag.name
        if flag.gone:
            assert (parse_version(flag.gone) or ()) > last, flag.name
            assert not mask >> (len(engine.releases) - 1) & 1, flag.name


def test_conditions_of_defaults_can_be_evaluated() -> None:
    for engine, flag in FLAGS:
        for entry in flag.defaults:
            holds(entry.versions, "0.5.0")
            for spec in (entry.gpu_gib, entry.tp):
                assert not spec or in_range(spec, 50.0) in (True, False)
            assert set(entry.given) <= set(engine.flags), flag.name
            assert entry.value is not None or entry.expr, flag.name
        for outcome in (*flag.forces_v0, *flag.errors):
            holds(outcome.versions, "0.9.0")
        assert not flag.successor or flag.successor in engine.flags or flag.successor in engine.history, flag.name


def test_aliases_do_not_collide_with_other_flags() -> None:
    for engine in DATA.engines.values():
        for alias, name in engine.alias.items():
            assert alias not in engine.flags, f"{engine.name}: {alias} is both an alias of {name} and a flag"


def test_standing_of_versions_between_compared_releases() -> None:
    vllm = DATA.engines["vllm"]

    def labels(version: str) -> list[str]:
        mask = data.standing(vllm, version)
        return [label for index, label in enumerate(vllm.releases) if mask >> index & 1]

    assert labels("0.8.2") == ["0.8.0", "0.8.3"]
    assert labels("v0.10.1.1") == ["0.10.1"]
    assert labels("0.23.1.dev4+gabc") == ["0.23"]
    assert labels("0.99.0") == [] and data.is_newer(vllm, "0.99.0")
    assert labels("latest") == [] and not data.is_newer(vllm, "latest")
    assert labels("0.2.0") == ["0.4.3"]


def test_the_cached_copy_is_the_same_and_a_broken_history_names_its_line(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("INFERDX_CACHE", str(tmp_path))
    data.load.cache_clear()
    first = data.load()
    data.load.cache_clear()
    again = data.load()
    data.load.cache_clear()
    assert list((tmp_path / "inferdx").glob("config-*.msgpack"))
    assert again == first == DATA
    with pytest.raises(KnowledgeError, match="not compared"):
        data._mask("0.1..9.9", ["0.1", "0.2"], "x")
