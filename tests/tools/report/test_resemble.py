"""Likeness to the knowledge cards: shares sum to one, a card finds itself, little text weighs little, linear time."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge import load
from knowledge.loader import ROOT, read_yaml, told
from tools.part import Part
from tools.report.likeness import BENIGN, index, shares, tokens
from tools.report.resemble import ENOUGH, MAX_PARTS, TOP, readings


def part(text: str, name: str = "report.md") -> Part:
    return Part(name=name, data=text.encode())


def own_words(family: str, lang: str) -> str:
    card = load().families[family]
    texts = [card.title, card.explain, *([card.told] if card.told else [])]
    return "\n".join(t.zh if lang == "zh" else t.en for t in texts)


@given(st.text(max_size=300))
@settings(max_examples=60, deadline=None)
def test_shares_sum_to_one_for_any_text(text: str) -> None:
    found = shares(text)
    assert math.fsum(share for _, share in found) == pytest.approx(1.0)
    assert all(0 <= share <= 1 for _, share in found)
    assert [share for _, share in found] == sorted((share for _, share in found), reverse=True)
    assert len({family for family, _ in found}) == len(found) == len(index().vectors)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_card_s_own_words_rank_it_first(lang: str) -> None:
    families = list(load().families)
    first = sum(shares(own_words(family, lang))[0][0] == family for family in families)
    assert len(families) > 40
    assert first / len(families) >= 0.9


def test_every_vector_has_length_one() -> None:
    vectors, rarity = index().vectors, index().rarity
    assert set(load().families) <= set(vectors)
    for vector in vectors.values():
        assert math.fsum(x * x for x in vector.values()) == pytest.approx(1.0)
    assert min(rarity.values()) > 0


def test_words_of_nothing_wrong_take_share_from_the_causes() -> None:
    known = load()
    benign = [r for r in known.rules.values() if f"{BENIGN}{r.id}" in index().vectors]
    assert len(benign) >= 5
    for rule in benign:
        found = shares(f"{rule.title.en} {rule.mechanism.en}")
        assert found[0][0] == f"{BENIGN}{rule.id}"
        made = readings([part(f"{rule.title.en} {rule.mechanism.en}")])
        causes = [r for r in made if r.fact == "words.resemble"]
        assert sum(r.value for r in causes) < 0.5
        assert not any(r.labels["family"].startswith(BENIGN) for r in causes)


def test_few_words_are_discounted_in_proportion_and_fewer_say_nothing() -> None:
    words = [
        "preempted",
        "requests",
        "recompute",
        "because",
        "running",
        "sequences",
        "exhaust",
        "available",
        "cache",
        "blocks",
    ]
    text = " ".join(words)
    assert 8 <= len(words) < ENOUGH
    full = next(share for family, share in shares(text) if not family.startswith(BENIGN))
    (best, *_) = readings([part(text)])
    assert best.value == pytest.approx(full * len(words) / ENOUGH, abs=1e-4)
    assert readings([part(" ".join(words[:7]))]) == []
    assert readings([part("")]) == []
    assert readings([]) == []


def test_enough_words_are_not_discounted() -> None:
    text = own_words("sequence_limit", "en")
    (best, *_) = readings([part(text)])
    assert len(text.split()) > ENOUGH
    assert best.labels == {"family": "sequence_limit", "rank": "1"}
    assert best.value == pytest.approx(dict(shares(text))["sequence_limit"], abs=1e-4)


def test_chinese_words_are_pairs_of_characters_and_are_found() -> None:
    assert tokens("显存不足") == ["显存", "存不", "不足"]
    text = "\n".join([own_words("sequence_limit", "zh")] * 4)
    found = readings([part(text)])
    assert found[0].labels["family"] == "sequence_limit"
    assert found[0].source.span in text


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("Requests waiting", {"request", "wait"}),
        ("max-num-seqs", {"max_num_seq", "max", "num", "seqs"}),
        ("KV 12 ms", set()),
        ("GPU's", {"gpu"}),
        ("H100 fp8", {"h100", "fp8"}),
    ],
)
def test_stems(text: str, stems: set[str]) -> None:
    assert {t for t in tokens(text) if not t.startswith("#")} == stems


def test_runs_of_five_letters_forgive_endings_and_compounds() -> None:
    runs = {t for t in tokens("preempt") if t.startswith("#")}
    assert runs == {"#_pree", "#preem", "#reemp", "#eempt", "#empt_"}
    assert runs & set(tokens("repreemption")) == {"#preem", "#reemp", "#eempt"}
    assert [t for t in tokens("gpu") if t.startswith("#")] == ["#_gpu_"]


def test_every_family_is_told_of_and_nothing_else() -> None:
    lists = told()
    benign = set(read_yaml(ROOT / "told" / "benign.yaml"))
    assert {"healthy", "theoretical_limit"} <= benign
    assert benign.isdisjoint(load().causes)
    assert set(lists) == set(load().causes) | benign
    for name, phrases in lists.items():
        assert set(phrases) == {"en", "zh"}, name
        assert len(set(phrases["en"])) == len(phrases["en"]) >= 30, name
        assert len(set(phrases["zh"])) == len(phrases["zh"]) >= 10, name


def test_an_index_kept_in_the_cache_is_the_one_that_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFERDX_CACHE", str(tmp_path))
    index.cache_clear()
    built = index()
    assert len(list((tmp_path / "inferdx").glob("likeness-*.msgpack"))) == 1
    index.cache_clear()
    assert index() == built
    index.cache_clear()


def test_readings_name_the_line_that_speaks_most_and_say_that_they_prove_nothing() -> None:
    words = own_words("sequence_limit", "en").replace("\n", " ")
    text = f"Hello everybody, this is our weekly note.\n\n{words}\nGreetings and many thanks.\n"
    every = readings([part("nothing of interest here today", "a.md"), part(text, "b.md")])
    found = [r for r in every if r.fact == "words.resemble"]
    assert len(found) == TOP
    assert [r.fact for r in every[TOP:]] == ["words.calm"]
    assert [r.labels["rank"] for r in found] == [str(n) for n in range(1, TOP + 1)]
    assert found[0].labels["family"] == "sequence_limit"
    assert (found[0].source.ref, found[0].source.line) == ("b.md", 3)
    for reading in every:
        assert reading.fact in load().facts
        assert reading.caveats
        assert reading.source.kind == "words"
        assert reading.source.span


@pytest.mark.parametrize("unit", ["the running requests wait while the pool is full\n", "a", "中", "a_", "word-"])
def test_a_megabyte_takes_linear_time(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        begin = time.process_time()
        shares(text)
        return time.process_time() - begin

    index()
    small, large = seconds(1 << 17), seconds(1 << 20)
    assert large < 4.0
    assert large < 30 * small + 0.2


def test_of_many_long_parts_only_the_beginnings_are_read() -> None:
    long = "the running requests wait while the pool is full " * 20_000
    begin = time.process_time()
    found = readings([part(long, f"{n}.md") for n in range(MAX_PARTS * 3)])
    assert time.process_time() - begin < 2.0
    assert all(int(r.source.ref.removesuffix(".md")) < MAX_PARTS for r in found)


@pytest.mark.parametrize("name", sorted(set(read_yaml(ROOT / "told" / "benign.yaml"))))
def test_what_is_told_of_nothing_wrong_reads_as_calm(name: str) -> None:
    text = "\n".join(told()[name]["en"][:12])
    found = {r.fact: r for r in readings([part(text)])}
    assert isinstance(found["words.calm"].value, float)
    assert found["words.calm"].value > 0.5
    assert found["words.calm"].labels["like"] == name


@pytest.mark.parametrize("name", ["kv_cache_exhausted", "gpu_clock_limited", "gateway_bottleneck", "pipeline_bubble"])
def test_what_is_told_of_a_cause_does_not(name: str) -> None:
    text = "\n".join(told()[name]["en"][:12])
    found = {r.fact: r for r in readings([part(text)])}
    assert isinstance(found["words.calm"].value, float)
    assert found["words.calm"].value < 0.1


def test_flags_and_what_is_denied_are_nobodys_complaint() -> None:
    words = (
        "After a few hours the hit rate of the prefix cache falls and every turn of the chat prefills the whole history again. "
        * 2
    )
    denied = "There are no preemptions, no out of memory errors and not a single Xid, as far as the logs say. "
    command = "vllm serve m --tensor-parallel-size 2 --speculative-config x\n--kv-transfer-config y \\\n"
    plain, more = ({r.labels["family"]: r.value for r in readings([part(t)]) if r.fact == "words.resemble"} for t in (words, f"{command}{words}"))  # fmt: skip
    assert plain == more
    first = readings([part(words + denied)])[0]
    assert first.labels["family"] == readings([part(words)])[0].labels["family"]
