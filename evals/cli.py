"""``inferdx eval …`` and ``inferdx journal``.

Exit status: 0 done and, where asked, the gate holds; 1 the gate or a self-check fails; 3 usage, or a red run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

ACTIONS = {
    "run": "answer the cases with one or more arms and score them",
    "compare": "two arms or two runs on the same cases (exact McNemar)",
    "check": "self-checks of the bench: labels, worlds, mix, arms of known score",
    "lint": "labels and worlds only",
    "calibrate": "fit the confidence curve on one half, report on the other",
    "record": "freeze files, folders or a live address into a case, masked",
    "new": "an empty case to fill in",
    "report": "write RESULTS.md or the HTML page of a run again",
    "arms": "list the arms",
}


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Options of ``eval`` (with actions) or of ``journal``."""
    if command == "journal":
        parser.description = "This site's own incidents, one line each: symptom – cause – change – effect."
        parser.add_argument("near", nargs="*", metavar="FILE|FOLDER", help="show the entries nearest to these inputs")
        parser.add_argument("--json", action="store_true", help="entries as JSON lines")
        parser.add_argument("--grep", default="", metavar="TEXT", help="only entries with this text")
        return
    parser.description = "Evals: " + "; ".join(f"{name}: {text}" for name, text in ACTIONS.items()) + "."
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    made = {name: actions.add_parser(name, help=text, description=text) for name, text in ACTIONS.items()}
    for name in ("run", "check", "lint", "calibrate", "record", "new", "compare", "report"):
        made[name].add_argument("--cases", default="", metavar="DIR", help="case folder (shipped set)")
        made[name].add_argument("--labels", default="", metavar="DIR", help="label folder (shipped set)")
    _run_arguments(made["run"])
    made["compare"].add_argument("one", help="arm, or folder of a run")
    made["compare"].add_argument("two", help="arm, or folder of a run")
    made["compare"].add_argument("-j", "--jobs", type=int, default=2, metavar="N")
    made["calibrate"].add_argument("--write", action="store_true", help="write knowledge/calibration.yaml")
    made["calibrate"].add_argument("-j", "--jobs", type=int, default=2, metavar="N")
    record = made["record"]
    record.add_argument("sources", nargs="*", metavar="FILE|FOLDER|URL", help="what the incident left")
    record.add_argument("--prometheus", default="", metavar="URL", help="a Prometheus server as source")
    record.add_argument("--match", default="", metavar="LABELS", help="label matchers, e.g. 'model_name=\"m\"'")
    record.add_argument("--from", dest="start", default="-30m", metavar="TIME", help="start of the range (-30m)")
    record.add_argument("--to", dest="end", default="now", metavar="TIME", help="end of the range (now)")
    record.add_argument("--line", required=True, help="'symptom – cause – change – effect'")
    record.add_argument(
        "--family", action="append", default=[], help="confirmed cause, main one first; may be repeated"
    )
    record.add_argument(
        "--outcome", choices=("incident", "healthy", "theoretical_limit", "undecidable"), default="incident"
    )
    record.add_argument("--symptom", default="none", help="ttft, tpot, throughput, errors, crash, startup or none")
    record.add_argument("--for", dest="window", default="30s", metavar="30s", help="scrape live addresses this long")
    record.add_argument("--id", default="", help="case id (next free one)")
    made["new"].add_argument("--id", default="", help="case id (next free one)")
    made["report"].add_argument("run", help="folder of a run")
    made["report"].add_argument("--html", default="", metavar="FILE", help="where to write the page")


def _run_arguments(run: argparse.ArgumentParser) -> None:
    run.add_argument("only", nargs="*", metavar="CASE", help="ids or patterns; all when none is given")
    run.add_argument("--arm", action="append", default=[], help="arm or group (inferdx eval arms); default rules-only")
    run.add_argument("--repeat", type=int, default=1, metavar="N")
    run.add_argument("-j", "--jobs", type=int, default=2, metavar="N", help="worker processes")
    run.add_argument(
        "--resume", nargs="?", const="", default=None, metavar="RUN", help="go on with a run that broke off"
    )
    run.add_argument("--out", default="", metavar="DIR", help="folder of the run")
    run.add_argument("--html", default="", metavar="FILE", help="write the page here too")
    run.add_argument("--prereg", default="", metavar="FILE", help="registered plan; without it the run is a dev run")
    run.add_argument("--no-counterfactual", action="store_true", help="leave M12 by removal out")
    run.add_argument("--gate", action="store_true", help="fail when family top-1 falls by more than 0.02")
    run.add_argument("--write-baseline", action="store_true", help="write evals/baseline.json")
    run.add_argument("--write-results", action="store_true", help="write evals/RESULTS.md")
    run.add_argument("--check-results", action="store_true", help="fail when the numbers are not those of RESULTS.md")
    run.add_argument("--quiet", action="store_true", help="no progress, no tables")


def run(args: argparse.Namespace) -> int:
    """Dispatch; bad input is one line on stderr and status 3."""
    from evals import actions
    from evals.run import RedRun
    from evals.schema import LabelError

    if args.command == "journal":
        return _journal(args)
    try:
        status: int = getattr(actions, f"do_{args.action}")(args)
    except (LabelError, RedRun, ValueError) as error:
        print(f"inferdx eval: {error}", file=sys.stderr)
        return 3
    return status


def _journal(args: argparse.Namespace) -> int:
    from agent import past

    entries, problems = past.read()
    for problem in problems:
        print(f"inferdx: {problem}", file=sys.stderr)
    if args.near:
        from agent.api import diagnose

        diagnosis = diagnose(*args.near)
        for found in past.nearest(diagnosis, entries, k=5):
            print(f"{found.similarity:.2f}  {found.id}  {found.line}")
        return 0
    shown: list[Any] = [e for e in entries if args.grep.lower() in f"{e.line} {' '.join(e.families)}".lower()]
    if args.json:
        import msgspec

        for entry in shown:
            print(msgspec.json.encode(entry).decode())
        return 0
    if not entries:
        print(f"no incidents yet; inferdx eval record … --line … writes the first one to {_short(past.own_journal())}")
        return 0
    for entry in shown:
        print(f"{entry.when or '          '}  {entry.id}  {entry.line}")
    return 0


def _short(path: Path) -> str:
    home = str(Path.home())
    return "~" + str(path)[len(home) :] if str(path).startswith(home + "/") else str(path)
