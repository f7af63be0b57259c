"""One job in a worker: copy the world to a random place, let the arm answer, recheck its citations, take evidence away."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from agent.belief import calibration
from agent.sources import Gather, gatherer
from agent.verify import check
from evals.arms import ARMS, Answer, Arm, ArmError, Task
from evals.arms.product import sources_of
from evals.rows import Row, digest, reduce
from evals.schema import Case, Label, load_cases
from knowledge import Knowledge, load
from tools.contract import Context, Reading

MAX_BAD = 8


class Job(Struct, frozen=True, kw_only=True):
    """A case × arm × repeat."""

    case: str
    arm: str
    repeat: int = 0
    counterfactual: bool = True


class Bench(Struct, kw_only=True):
    """What every job of a worker shares: loaded once. Site knowledge is left out: a score must not depend on it."""

    known: Knowledge
    cases: dict[str, Case]
    labels: Sequence[Label]


Gathered = tuple[list[Reading], list[dict[str, Any]], dict[str, str]]
_BENCH: list[Bench] = []


def bench(cases: Path, labels: Path) -> Bench:
    """Knowledge and cases of this process. Raises :class:`~evals.schema.LabelError`."""
    found = load_cases(cases, labels)
    return Bench(known=load(), cases={c.id: c for c in found}, labels=[c.label for c in found])


def start(cases: Path, labels: Path, raw: bool = False) -> None:
    """Initialise a worker. ``raw``: say raw confidences in this process."""
    if raw:
        calibration().plain = True
    _BENCH.clear()
    _BENCH.append(bench(cases, labels))


def run(jobs: list[Job]) -> list[Row]:
    """The rows of a batch in this worker."""
    return batch(_BENCH[0], jobs)


def batches(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs of derived arms on one case go together, so that its world is read once; all others go alone."""
    out: list[list[Job]] = []
    derived: dict[str, list[Job]] = {}
    for job in jobs:
        if not ARMS[job.arm].derived:
            out.append([job])
        elif job.case in derived:
            derived[job.case].append(job)
        else:
            derived[job.case] = [job]
            out.append(derived[job.case])
    return out


def batch(shared: Bench, jobs: list[Job]) -> list[Row]:
    """Rows of one batch (see :func:`batches`)."""
    if not ARMS[jobs[0].arm].derived:
        return [work(shared, job) for job in jobs]
    with fresh_world(shared.cases[jobs[0].case].world) as world:
        taken = gatherer(sources_of(world), Context())()
        return [work(shared, job, lambda: copy_of(taken)) for job in jobs]


def copy_of(taken: Gathered) -> Gathered:
    """Fresh lists of the same (frozen) readings."""
    return list(taken[0]), [dict(problem) for problem in taken[1]], dict(taken[2])


@contextmanager
def fresh_world(world: Path, without: Sequence[str] = (), *, copy: bool = True) -> Iterator[Path]:
    """A copy of a world in a directory whose name says nothing; nothing else is in it."""
    if not copy:
        yield Path("no-world")
        return
    with tempfile.TemporaryDirectory(prefix="w") as folder:
        target = Path(folder) / "w"
        shutil.copytree(world, target)
        for name in without:
            (target / name).unlink(missing_ok=True)
        yield target


def work(shared: Bench, job: Job, gather: Gather | None = None) -> Row:
    """Never raises for a failing arm: the failure is the row's ``error`` and scores 0. An arm that cannot run at all
    (:class:`ArmError`) does raise: that run is red."""
    case, arm = shared.cases[job.case], ARMS[job.arm]
    row = Row(case=job.case, arm=job.arm, repeat=job.repeat)
    with fresh_world(case.world, copy=arm.reads and gather is None) as world:
        wall, cpu = time.monotonic(), time.process_time()
        try:
            task = _task(shared, case, arm, world, job.repeat)
            task.gather = gather
            answer = arm.answer(task)
        except ArmError:
            raise
        except Exception as error:
            row.error = (
                f"{type(error).__name__}: {str(error)[:200]}" if case.label.split == "dev" else type(error).__name__
            )
            row.seconds, row.cpu_s = time.monotonic() - wall, time.process_time() - cpu
            return row
        row.seconds, row.cpu_s = round(time.monotonic() - wall, 4), round(time.process_time() - cpu, 4)
        row.first_s, row.probes_run = round(answer.first_s, 4), answer.probes_run
        row.model_calls, row.model_tokens, row.usd = answer.model_calls, answer.model_tokens, answer.usd
        row.said, row.digest = reduce(answer.diagnosis), digest(answer.diagnosis)
        # A repeat of an arm without a model tells only whether the answer is the same, which its digest does.
        first = job.repeat == 0 or arm.models
        if first:
            _recheck(shared, case, row, answer)
    if (
        first
        and job.counterfactual
        and arm.counterfactual
        and case.label.outcome == "incident"
        and case.label.decisive_files
    ):
        with fresh_world(case.world, case.label.decisive_files, copy=arm.reads) as world:
            try:
                row.without = reduce(arm.answer(_task(shared, case, arm, world, job.repeat, withheld=True)).diagnosis)
            except Exception as error:
                row.error = f"without the decisive files: {type(error).__name__}"
    return row


def _task(shared: Bench, case: Case, arm: Arm, world: Path, repeat: int, *, withheld: bool = False) -> Task:
    return Task(
        world=world, known=shared.known, case=case.id if arm.privileged else "", repeat=repeat, withheld=withheld,
        label=case.label if arm.privileged else None, labels=shared.labels if arm.learns else (),
    )  # fmt: skip


def _recheck(shared: Bench, case: Case, row: Row, answer: Answer) -> None:
    if answer.again is None:
        return
    valid, claims, bad = check(shared.known, answer.diagnosis, answer.again())
    row.valid, row.claims = valid, claims
    # Failures quote values of the world; those of held-out worlds stay out of every file.
    row.bad = bad[:MAX_BAD] if case.label.split == "dev" else ["held out"] * min(len(bad), MAX_BAD)


__all__ = ["Bench", "Job", "batch", "batches", "bench", "fresh_world", "run", "start", "work"]
