"""The runner: cases × arms × repeats over worker processes, one JSONL line each, resumable after a crash."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from agent.version import VERSION
from evals import work
from evals.arms import ArmError, expand
from evals.rows import Row, encode, read_rows
from evals.schema import CASES, LABELS, ROOT, Case
from evals.scorers.base import Pair

ROWS, META = "rows.jsonl", "run.json"


class RedRun(RuntimeError):
    """A run that may not be quoted: no cases, a missing answer, an arm that cannot run."""


class Plan(Struct, kw_only=True):
    """What is to be run. ``only``: ids or glob patterns; empty for all. ``prereg``: name of the registered plan.
    ``raw``: without the fitted confidence curve, for fitting it anew."""

    arms: list[str]
    repeat: int = 1
    jobs: int = 2
    only: list[str] = field(default_factory=list)
    cases: Path = CASES
    labels: Path = LABELS
    folder: Path | None = None
    resume: bool = False
    counterfactual: bool = True
    prereg: str = ""
    quiet: bool = False
    raw: bool = False


class Meta(Struct, kw_only=True):
    """``run.json``: what the numbers of a run belong to."""

    run: str
    arms: list[str]
    repeats: dict[str, int]
    cases: list[str]
    set_hash: str
    knowledge: str
    inferdx: str
    prereg: str = ""
    python: str = ""


class Finished(Struct, kw_only=True):
    """A run with all its answers. ``cpu_s`` adds up the arms' own CPU time, ``wall_s`` is the whole run."""

    meta: Meta
    rows: list[Row]
    cases: dict[str, Case]
    folder: Path
    wall_s: float = 0.0

    def pairs(self, arm: str) -> list[Pair]:
        """Answers of one arm beside their labels, in the order of ids."""
        rows = sorted((r for r in self.rows if r.arm == arm), key=lambda r: (r.case, r.repeat))
        return [Pair(self.cases[r.case].label, r) for r in rows]


def runs_root() -> Path:
    """Where runs are kept: ``$INFERDX_RUNS``, else ``evals/runs`` of a checkout, else the user's data folder."""
    named = os.environ.get("INFERDX_RUNS")
    if named:
        return Path(named)
    if os.access(ROOT, os.W_OK) and (ROOT.parent / "pyproject.toml").is_file():
        return ROOT / "runs"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "inferdx" / "runs"


def prune(root: Path, keep: int = 20) -> None:
    """Drop the oldest unregistered runs (``dev-…``) beyond ``keep``."""
    heads = sorted(root.glob(f"dev-*/{META}"), key=lambda p: p.stat().st_mtime, reverse=True)
    for head in heads[keep:]:
        for path in head.parent.iterdir():
            if path.is_file():
                path.unlink(missing_ok=True)
        head.parent.rmdir()


def set_hash(cases: Iterable[Case], labels: Path) -> str:
    """Hash over the labels and worlds of a set: two runs with one hash answered the same questions."""
    total = hashlib.sha256()
    for case in cases:
        total.update((labels / f"{case.id}.yaml").read_bytes())
        for path in sorted(p for p in case.world.rglob("*") if p.is_file()):
            total.update(path.relative_to(case.world).as_posix().encode())
            total.update(path.read_bytes())
    return total.hexdigest()[:16]


def select(cases: dict[str, Case], only: Sequence[str]) -> list[Case]:
    """Cases whose id matches one of the patterns. Raises :class:`RedRun` for a pattern that matches none."""
    from fnmatch import fnmatch

    for pattern in only:
        if not any(fnmatch(case, pattern) for case in cases):
            raise RedRun(f"no case matches {pattern!r}")
    found = [c for i, c in cases.items() if not only or any(fnmatch(i, p) for p in only)]
    if not found:
        raise RedRun("no cases: nothing was measured")
    return found


def run(plan: Plan) -> Finished:
    """Run a plan to the end. Raises :class:`RedRun`, :class:`~evals.schema.LabelError` or ``ValueError``."""
    begun = time.monotonic()
    arms = expand(plan.arms)
    shared = work.bench(plan.cases, plan.labels)
    chosen = select(shared.cases, plan.only)
    # Repeats tell something of the arm under test and of arms with a model; other arms have no chance in them.
    repeats = {a.name: plan.repeat if a.models or i == 0 else 1 for i, a in enumerate(arms)}
    meta = Meta(
        run=plan.prereg or f"dev-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{'+'.join(a.name for a in arms)[:40]}",
        arms=[a.name for a in arms], repeats=repeats, cases=[c.id for c in chosen],
        set_hash=set_hash(chosen, plan.labels), knowledge=shared.known.version, inferdx=VERSION, prereg=plan.prereg,
        python=sys.version.split()[0],
    )  # fmt: skip
    folder = plan.folder or runs_root() / meta.run.replace(":", "_")
    if plan.folder is None:
        prune(runs_root())
    done = _open(folder, meta, plan.resume)
    jobs = [
        work.Job(case=c.id, arm=a.name, repeat=r, counterfactual=plan.counterfactual)
        for a in arms for r in range(repeats[a.name]) for c in chosen
    ]  # fmt: skip
    left = [j for j in jobs if (j.case, j.arm, j.repeat) not in done]
    rows = list(done.values())
    with (folder / ROWS).open("ab") as sink, _progress(len(jobs), len(done), plan.quiet) as tick:
        for row in _answers(plan, shared, left):
            sink.write(encode(row))
            sink.flush()
            rows.append(row)
            tick(row)
    finished = Finished(meta=meta, rows=rows, cases=shared.cases, folder=folder, wall_s=time.monotonic() - begun)
    _complete(finished, jobs)
    return finished


def _open(folder: Path, meta: Meta, resume: bool) -> dict[tuple[str, str, int], Row]:
    """Make or re-open a run's folder; the answers already there when resuming the same run."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, head = folder / ROWS, folder / META
    if rows.exists() and not resume:
        rows.unlink()
    done: dict[tuple[str, str, int], Row] = {}
    if resume and rows.exists():
        before = msgspec.json.decode(head.read_bytes(), type=Meta) if head.exists() else None
        if before is not None and (before.set_hash, before.knowledge) != (meta.set_hash, meta.knowledge):
            raise RedRun(f"{folder.name}: the cases or the knowledge changed since; run it anew without --resume")
        kept = read_rows(rows)
        done = {(r.case, r.arm, r.repeat): r for r in kept}
        rows.write_bytes(b"".join(encode(r) for r in kept))
    head.write_text(json.dumps(msgspec.to_builtins(meta), indent=1) + "\n", encoding="utf-8")
    return done


def _answers(plan: Plan, shared: work.Bench, jobs: list[work.Job]) -> Iterator[Row]:
    if plan.jobs <= 1 or len(jobs) <= 2:
        for some in work.batches(jobs):
            try:
                yield from work.batch(shared, some)
            except ArmError as error:
                raise RedRun(str(error)) from None
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        max_workers=plan.jobs, mp_context=context, initializer=work.start, initargs=(plan.cases, plan.labels, plan.raw)
    ) as pool:
        futures = [pool.submit(work.run, some) for some in work.batches(jobs)]
        try:
            for future in as_completed(futures):
                yield from future.result()
        except ArmError as error:
            raise RedRun(str(error)) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _complete(finished: Finished, jobs: list[work.Job]) -> None:
    """Every job has exactly one row; anything else is a red run."""
    have = {(r.case, r.arm, r.repeat) for r in finished.rows}
    missing = [j for j in jobs if (j.case, j.arm, j.repeat) not in have]
    if missing:
        raise RedRun(f"{len(missing)} answers are missing, the first is {missing[0].arm} on {missing[0].case}")


@contextmanager
def _progress(total: int, done: int, quiet: bool) -> Iterator[Callable[[Row], None]]:
    """A bar on a terminal, a line every 50 answers elsewhere, nothing when quiet."""
    if quiet:
        yield lambda row: None
        return
    if not sys.stderr.isatty():
        count = done

        def line(row: Row) -> None:
            nonlocal count
            count += 1
            if count % 50 == 0 or count == total:
                print(f"{count}/{total} answers", file=sys.stderr)

        yield line
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns: list[Any] = [
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    ]  # fmt: skip
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    with bar as progress:
        task = progress.add_task("evals", total=total, completed=done)

        def advance(row: Row) -> None:
            progress.update(task, advance=1, description=f"{row.arm} {row.case} {row.seconds:.2f} s")

        yield advance


def last_run(arm: str, besides: Path | None = None) -> tuple[Meta, list[Row]] | None:
    """The newest finished run of an arm, other than ``besides``."""
    root = runs_root()
    heads = sorted(root.glob(f"*/{META}"), key=lambda p: p.stat().st_mtime, reverse=True) if root.is_dir() else []
    for head in heads:
        if besides is not None and head.parent.resolve() == besides.resolve():
            continue
        try:
            meta = msgspec.json.decode(head.read_bytes(), type=Meta)
            rows = [r for r in read_rows(head.parent / ROWS) if r.arm == arm]
        except (OSError, ValueError, msgspec.DecodeError):
            continue
        if rows and len(rows) == len(meta.cases) * meta.repeats.get(arm, 0):
            return meta, rows
    return None


def load_run(folder: Path, cases: dict[str, Case]) -> Finished:
    """A run from its folder. Raises :class:`RedRun` when it is incomplete or its cases are gone."""
    try:
        meta = msgspec.json.decode((folder / META).read_bytes(), type=Meta)
        rows = read_rows(folder / ROWS)
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise RedRun(f"{folder}: not a run ({error})") from None
    gone = [c for c in meta.cases if c not in cases]
    if gone:
        raise RedRun(f"{folder.name}: case {gone[0]} is no longer in the set")
    jobs = [work.Job(case=c, arm=a, repeat=r) for c in meta.cases for a, n in meta.repeats.items() for r in range(n)]
    finished = Finished(meta=meta, rows=rows, cases=cases, folder=folder)
    _complete(finished, jobs)
    return finished


__all__ = ["Finished", "Meta", "Plan", "RedRun", "last_run", "load_run", "run", "runs_root", "set_hash"]
