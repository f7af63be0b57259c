"""What each action of ``inferdx eval`` does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, TypedDict

from evals import gate, report
from evals.run import Finished, Plan, RedRun, last_run, load_run, run, runs_root
from evals.schema import CASES, LABELS, ROOT, load_cases
from evals.summary import Summary, compare, of, summarise

RESULTS = ROOT / "RESULTS.md"
HEAD = """# Results

Written by `inferdx eval run --repeat 3 --write-results`; `inferdx eval run` prints
the same numbers. No model takes part in any answer or score here. Wilson intervals treat cases as independent; the
bootstrap draws whole origins (a case and all that was made from it). A target that is missed is shown as missed.

"""


class _Dirs(TypedDict):
    cases: Path
    labels: Path


def _dirs(args: argparse.Namespace) -> _Dirs:
    return {"cases": Path(args.cases or CASES), "labels": Path(args.labels or LABELS)}


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def do_run(args: argparse.Namespace) -> int:
    """Run, print, write; the gate decides the status."""
    names = args.arm or ["rules-only"]
    plan = Plan(
        arms=names, repeat=args.repeat, jobs=args.jobs, only=args.only, quiet=args.quiet,
        counterfactual=not args.no_counterfactual, prereg=_prereg(args.prereg), resume=args.resume is not None,
        folder=_folder(args), **_dirs(args),
    )  # fmt: skip
    finished = run(plan)
    arms = finished.meta.arms
    summaries = [summarise(finished, arm, last_run(arm, finished.folder)) for arm in arms]
    comparisons = [compare(finished, arms[0], arm) for arm in arms[1:]]
    if not args.quiet:
        console = _console()
        for summary in summaries:
            report.terminal(summary, finished, console)
            for line in report.cost_lines(summary, finished.wall_s):
                console.print(line)
        for c in comparisons:
            console.print(f"{c.one} against {c.two}: only one right {c.only_one} : {c.only_two}, McNemar p {c.p:.3g}")
    write_reports(finished, summaries, comparisons, args.html)
    status = 0
    if args.write_baseline:
        gate.save(gate.take(finished, summaries[0]))
        print(f"baseline written: {len(finished.meta.cases)} cases")
    if args.write_results:
        RESULTS.write_text(results_text(finished, summaries, comparisons), encoding="utf-8")
        print("RESULTS.md written")
    if args.check_results and not _same_results(finished, summaries[0]):
        print("FAIL the numbers are not those of evals/RESULTS.md (write it again, and look at the difference)")
        status = 1
    if args.gate:
        verdict = gate.judge(finished, summaries[0], gate.load())
        print("\n".join(verdict.lines))
        status = status if verdict.holds else 1
    if not args.quiet:
        print(f"rows, report and page: {finished.folder}")
    return status


def _folder(args: argparse.Namespace) -> Path | None:
    """Folder of a run: as given, the run to resume, or (with bare ``--resume``) the newest one."""
    if args.out:
        return Path(args.out)
    if args.resume:
        given = Path(args.resume)
        return given if given.is_dir() else runs_root() / args.resume
    if args.resume == "":
        found = sorted(runs_root().glob("*/run.json"), key=lambda p: p.stat().st_mtime)
        if not found:
            raise RedRun("there is no run to resume")
        return found[-1].parent
    return None


def _prereg(path: str) -> str:
    """Name of a registered plan; its file must exist and name arms and hypotheses. Raises ``ValueError``."""
    if not path:
        return ""
    from knowledge.loader import read_yaml

    try:
        data = read_yaml(Path(path))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    if not isinstance(data, dict) or not {"arms", "hypotheses"} <= set(data):
        raise ValueError(f"{path}: a registered plan names arms and hypotheses")
    return Path(path).stem


def results_text(finished: Finished, summaries: list[Summary], comparisons: list[Any]) -> str:
    """The whole ``RESULTS.md``."""
    parts = [HEAD, report.markdown(summaries[0], finished)]
    if len(summaries) > 1:
        parts.append("\n" + report.arms_table(summaries, comparisons))
    return "".join(parts)


def _same_results(finished: Finished, summary: Summary) -> bool:
    """Whether the table of measures in ``RESULTS.md`` is the one just computed (M9 needs repeats and may differ)."""

    def rows(text: str) -> list[str]:
        return [x for x in text.splitlines() if x.startswith("| M") and not x.startswith("| M9")]

    if not RESULTS.is_file():
        return False
    section = RESULTS.read_text(encoding="utf-8").split("\n## Arms")[0]
    return rows(section) == rows(report.markdown(summary, finished))


def write_reports(finished: Finished, summaries: list[Summary], comparisons: list[Any], html: str = "") -> None:
    """``report.md`` and ``report.html`` in the run's folder, and the page where asked."""
    from evals.page import page

    text = page(summaries, comparisons, finished)
    (finished.folder / "report.html").write_text(text, encoding="utf-8")
    (finished.folder / "report.md").write_text(results_text(finished, summaries, comparisons), encoding="utf-8")
    if html:
        Path(html).write_text(text, encoding="utf-8")


def do_compare(args: argparse.Namespace) -> int:
    """Two arms (run now) or two folders of runs (their first arms)."""
    if Path(args.one).is_dir() and Path(args.two).is_dir():
        cases = {c.id: c for c in load_cases(**_dirs(args))}
        one, two = load_run(Path(args.one), cases), load_run(Path(args.two), cases)
        left, right = one.meta.arms[0], two.meta.arms[0]
        renamed = [r for r in two.rows if r.arm == right]
        for row in renamed:
            row.arm = f"{right} (second run)"
        finished = Finished(meta=one.meta, rows=[*one.rows, *renamed], cases=cases, folder=one.folder)
        found = compare(finished, left, f"{right} (second run)")
    else:
        finished = run(Plan(arms=[args.one, args.two], jobs=args.jobs, counterfactual=False, **_dirs(args)))
        found = compare(finished, *finished.meta.arms[:2])
    print(
        f"{found.one} against {found.two} on {found.n} incidents: only the first right {found.only_one}, only the second "
        f"{found.only_two}, exact McNemar p {found.p:.3g}; difference {found.difference:+.3f} "
        f"[{found.low:+.3f}, {found.high:+.3f}] (bootstrap by origin)"
    )
    return 0


def do_check(args: argparse.Namespace) -> int:
    """All self-checks."""
    from evals.check import check, not_checkable

    where = _dirs(args)
    findings = check(where["cases"], where["labels"], whole=not args.cases)
    for finding in findings:
        print(finding.line())
    vague = not_checkable([c.label for c in load_cases(**where)])
    if vague:
        print(f"note {len(vague)} probes or forbidden actions map to no concept; they can be neither met nor broken")
    return 0 if all(f.holds for f in findings) else 1


def do_lint(args: argparse.Namespace) -> int:
    """Hygiene only."""
    from evals.check import lint
    from knowledge import load

    findings = lint(load_cases(**_dirs(args)), load())
    for finding in findings:
        print(finding.line())
    return 0 if all(f.holds for f in findings) else 1


def do_calibrate(args: argparse.Namespace) -> int:
    """Fit on half 0 of a fresh rules-only run, report on half 1."""
    from datetime import UTC, datetime

    from evals import calibrate

    plan = Plan(arms=["rules-only"], jobs=max(2, args.jobs), counterfactual=False, raw=True, **_dirs(args))
    finished = run(plan)
    pairs = finished.pairs("rules-only")
    result = calibrate.fit(pairs, calibrate.raw_confidences(finished, "rules-only"))
    print(f"fit half: {result.fit_n} committed answers, {result.fit_after}")
    print(f"other half: {result.test_n} committed answers, before {result.before}, after {result.after}")
    for basis, knots in result.knots.items():
        print(f"curve of verdicts that rest on {basis}: " + ", ".join(f"{x:g} → {y:g}" for x, y in knots))
    if args.write:
        path = calibrate.write(result, finished, f"{datetime.now(UTC):%Y-%m-%d}")
        print(f"written: {path.name}")
    return 0


def do_record(args: argparse.Namespace) -> int:
    """Freeze an incident."""
    from agent.sources import Sources, moment, seconds, split_args
    from evals.record import Draft, record

    paths, urls, _ = split_args(args.sources)
    sources = Sources(paths=paths, urls=urls, window_s=seconds(args.window) if urls else 0.0)
    if args.prometheus:
        sources.prometheus, sources.match = args.prometheus, args.match
        sources.start, sources.end = moment(args.start), moment(args.end)
    draft = Draft(line=args.line, families=args.family, outcome=args.outcome, symptom=args.symptom)
    made = record(sources, draft, id=args.id, **_dirs(args))
    for problem in made.problems:
        print(f"inferdx: {problem.line()}", file=sys.stderr)
    print(f"{made.id}: world and label written, {made.masked} secrets or addresses masked; look through {made.world}")
    return 0


def do_new(args: argparse.Namespace) -> int:
    """An empty case."""
    from evals.record import scaffold

    world, label = scaffold(args.id, **_dirs(args))
    print(f"fill in {world} and {label}, then inferdx eval lint")
    return 0


def do_report(args: argparse.Namespace) -> int:
    """Reports of a finished run."""
    cases = {c.id: c for c in load_cases(**_dirs(args))}
    finished = load_run(Path(args.run), cases)
    arms = finished.meta.arms
    summaries = [summarise(finished, arm) for arm in arms]
    write_reports(finished, summaries, [compare(finished, arms[0], a) for a in arms[1:]], args.html)
    for summary in summaries:
        m1 = of(summary.groups["all"], "M1")
        print(f"{summary.arm}: family top-1 {report.cell(m1)}")
    print(f"report.md and report.html: {finished.folder}")
    return 0


def do_arms(args: argparse.Namespace) -> int:
    """The arm table."""
    from evals.arms import ARMS, GROUPS

    for arm in ARMS.values():
        print(f"{arm.name:<22}{arm.says}")
    for name, members in GROUPS.items():
        print(f"{name:<22}group: {', '.join(members)}")
    return 0
