"""Freezes a world or a live session into a case: files masked, a strict label, its one line in the journal."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct, field

from agent import past
from agent.diagnosis import Diagnosis, Outcome
from agent.investigate import investigate, make_env, site_knowledge
from agent.sources import Sources
from evals.schema import CASES, LABELS, CaseProvenance, Label, LabelError, dump_label
from knowledge.schema import Knowledge
from tools.contract import Problem
from tools.intake.collect import parts_of
from tools.mask import Masker, mask_file
from tools.part import Part

_LINE = re.compile(r"^[^–]{3,}( – [^–]{2,}){3}$")


class Draft(Struct, kw_only=True):
    """What a person knows about the incident. ``line``: *symptom – cause – change – effect*."""

    line: str
    families: list[str] = field(default_factory=list)
    outcome: Outcome = "incident"
    mechanism: str = ""
    fix: str = ""
    symptom: str = "none"


class Recorded(Struct, kw_only=True):
    """Where a case was put, and what was left out of it."""

    id: str
    world: Path
    label: Path
    problems: list[Problem]
    masked: int


def next_id(cases: Path = CASES) -> str:
    """The first free id from ``case-9000`` on, the range of a site's own cases."""
    taken = {p.name for p in cases.iterdir()} if cases.is_dir() else set()
    number = 9000
    while f"case-{number}" in taken:
        number += 1
    return f"case-{number}"


def check_line(line: str) -> str:
    """The line, or :class:`~evals.schema.LabelError` that says how it should look."""
    text = re.sub(r"\s+-{1,2}\s+|\s+—\s+", " – ", line.strip())
    if not _LINE.match(text):
        raise LabelError(f"line {line!r}: write it as 'symptom – cause – change – effect'")
    return text


def blank_label(id: str, world: Path, draft: Draft, known: Knowledge, diagnosis: Diagnosis | None = None) -> Label:
    """A valid label from a draft. Raises :class:`~evals.schema.LabelError` for a family outside the closed list."""
    for name in draft.families:
        if name not in known.causes:
            raise LabelError(f"family {name!r} is not in the closed list (inferdx explain lists it)")
    if draft.outcome == "incident" and not draft.families:
        raise LabelError("an incident needs --family")
    files = sorted(p.relative_to(world).as_posix() for p in world.rglob("*") if p.is_file()) if world.is_dir() else []
    layer = known.layer_of(draft.families[0]) if draft.families else None
    chain = [(known.layer_of(f), f) for f in draft.families[:1]] + [("symptom", draft.symptom)]
    probes = [p.ask for p in diagnosis.probes[:3]] if diagnosis else []
    return Label(
        id=id, split="dev", outcome=draft.outcome, layer=layer, cause_families=draft.families, also_accepted=[],
        mechanism=draft.mechanism or draft.line, chain=chain, decoys=[], decisive_files=[],
        acceptable_next_probes=probes or ["the reading that settled it"], first_safe_action="", forbidden_actions=[],
        fix=draft.fix, line=draft.line, origin=id, quality="B",
        n_snapshots=sum(bool(re.match(r"metrics-\d+\.prom(\.gz)?$", f)) for f in files),
        provenance=CaseProvenance(kind="made", engine_version=_engine(diagnosis), confirmed_by="recorded on site"),
    )  # fmt: skip


def _engine(diagnosis: Diagnosis | None) -> str:
    if diagnosis is None:
        return ""
    return f"{diagnosis.provenance.engine} {diagnosis.provenance.engine_version}".strip()


def freeze(parts: Sequence[Part], world: Path, masker: Masker) -> list[Problem]:
    """Write masked copies of parts below ``world``. Names are kept; parts found inside others are not copied."""
    problems: list[Problem] = []
    for part in parts:
        if part.parent:
            continue
        name = masker.mask(part.name).lstrip("/").replace("..", "_").replace("#", "-")
        problem = mask_file(part, world / name, masker)
        if problem is not None:
            problems.append(problem)
    return problems


def record(
    sources: Sources,
    draft: Draft,
    *,
    id: str = "",
    cases: Path = CASES,
    labels: Path = LABELS,
    journal: Path | None = None,
) -> Recorded:
    """Freeze what ``sources`` give into a case and write its journal line. Raises :class:`~evals.schema.LabelError`."""
    draft.line = check_line(draft.line)
    known = site_knowledge()
    parts, problems = parts_of(sources.paths)
    parts = [*parts, *(Part(name=n, data=d) for n, d in sources.texts.items()), *_scraped(sources, problems)]
    if not parts:
        what = problems[0].line() if problems else "nothing to record"
        raise LabelError(what)
    case = id or next_id(cases)
    world, label_file = cases / case / "world", labels / f"{case}.yaml"
    if world.exists() or label_file.exists():
        raise LabelError(f"{case} exists already")
    masker = Masker()
    try:
        problems += freeze(parts, world, masker)
        env = make_env(Sources(paths=[world]), known=known)
        diagnosis, _ = investigate(env)
        label = blank_label(case, world, draft, known, diagnosis)
        label_file.parent.mkdir(parents=True, exist_ok=True)
        label_file.write_text(dump_label(label), encoding="utf-8")
    except LabelError:
        shutil.rmtree(cases / case, ignore_errors=True)
        raise
    when = f"{datetime.now(UTC):%Y-%m-%d}"
    entry = past.entry_of(diagnosis, case, masker.mask(draft.line), when, draft.families)
    past.append(entry, journal)
    return Recorded(id=case, world=world, label=label_file, problems=problems, masked=len(masker.table))


def _scraped(sources: Sources, problems: list[Problem]) -> list[Part]:
    """Pages of the live addresses with the index of their times, and what a Prometheus server answered, as parts."""
    from tools.metrics import live

    pages: list[Part] = []
    for url in sources.urls:
        more, bad, _ = live.scrape(url, sources.window_s)
        pages += more
        problems += bad
    parts = [Part(name=f"metrics-{i:03d}.prom", data=p.data, path=p.path) for i, p in enumerate(pages)]
    if parts:
        # A file on a disk has no time of its own that can be trusted: without this there is no rate.
        times = [{"file": part.name, "unix": page.time} for part, page in zip(parts, pages, strict=True)]
        parts.append(Part(name="scrapes.json", data=json.dumps({"scrapes": times}, indent=1).encode()))
    if sources.prometheus:
        answer = live.ask(sources.prometheus, sources.match, sources.start, sources.end)
        problems += answer.problems
        if answer.data is not None and answer.data["data"]["result"]:
            parts.append(Part(name="prometheus.json", data=answer.body))
        elif answer.data is not None:
            what = f"no vLLM or SGLang series for {sources.match or 'any label'} in this range"
            do = "check --match, --from and the scrape job"
            problems.append(Problem(ref=sources.prometheus, what=what, do=do, severity="error"))
    return parts


def scaffold(id: str = "", *, cases: Path = CASES, labels: Path = LABELS) -> tuple[Path, Path]:
    """An empty world and a label to fill in, in their two trees. Raises :class:`~evals.schema.LabelError`."""
    case = id or next_id(cases)
    world, label_file = cases / case / "world", labels / f"{case}.yaml"
    if world.exists() or label_file.exists():
        raise LabelError(f"{case} exists already")
    world.mkdir(parents=True)
    (world / "report.md").write_text("What the person saw, in their words.\n", encoding="utf-8")
    draft = Draft(line="symptom – cause – change – effect", outcome="undecidable")
    label = blank_label(case, world, draft, site_knowledge())
    label_file.parent.mkdir(parents=True, exist_ok=True)
    label_file.write_text(dump_label(label), encoding="utf-8")
    return world, label_file


__all__ = ["Draft", "Recorded", "check_line", "freeze", "next_id", "record", "scaffold"]
