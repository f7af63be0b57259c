"""``inferdx diagnose`` and ``inferdx demo``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

# Facts that say what a page was instead of metrics: an answer on these alone examined nothing.
_INPUT_ONLY = {"metrics.unusable", "metrics.html_page", "metrics.empty_page", "metrics.other_exporter"}


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Options of both commands; ``demo`` takes no sources."""
    if command == "diagnose":
        parser.description = (
            "Diagnose files, folders, a live /metrics address, a Prometheus range, or - for standard input."
        )
        parser.add_argument("sources", nargs="*", metavar="FILE|FOLDER|URL|-", help="what you have")
        parser.add_argument("--for", dest="window", default="", metavar="30s", help="scrape live addresses this long")
        parser.add_argument("--prometheus", default="", metavar="URL", help="a Prometheus server as source")
        parser.add_argument("--match", default="", metavar="LABELS", help="label matchers, e.g. 'model_name=\"m\"'")
        parser.add_argument("--from", dest="start", default="-30m", metavar="TIME", help="start of the range (-30m)")
        parser.add_argument("--to", dest="end", default="now", metavar="TIME", help="end of the range (now)")
        parser.add_argument("--baseline", default="", metavar="FOLDER", help="a recording of when it was good")
        parser.add_argument(
            "--slo", action="append", default=[], metavar="ttft_p99=2s", help="a limit; may be repeated"
        )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the whole answer as JSON (docs/diagnosis.schema.json)")
    form.add_argument("--md", action="store_true", help="Markdown")
    parser.add_argument("--full", action="store_true", help="all evidence, not only the cited")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the report")
    parser.add_argument("--knowledge", action="append", default=[], metavar="DIR", help="site knowledge to add")
    parser.add_argument("--graph", action="store_true", help=argparse.SUPPRESS)


def demo_world() -> Path:
    """The shipped recorded incident that ``inferdx demo`` diagnoses."""
    return Path(__file__).resolve().parent.parent / "evals" / "cases" / "lab-016" / "world"


def _usage(text: str) -> int:
    print(f"inferdx: {text}", file=sys.stderr)
    return 3


def run(args: argparse.Namespace) -> int:
    """Exit status 0 healthy or limit, 1 incident, 2 undecidable, 3 when nothing could be read."""
    from agent.investigate import investigate, make_env, site_knowledge
    from agent.past import recall
    from agent.sources import Sources, moment, parse_slo, seconds, split_args
    from knowledge.loader import KnowledgeError
    from tools.contract import Context
    from tools.intake.collect import parts_of

    try:
        if args.command == "demo":
            sources = Sources(paths=[demo_world()])
            context = Context()
            baseline: list[Path] | None = None
        else:
            paths, urls, stdin = split_args(args.sources)
            sources = Sources(paths=paths, urls=urls, prometheus=args.prometheus, match=args.match)
            sources.window_s = seconds(args.window) if args.window else 0.0
            if args.prometheus:
                sources.start, sources.end = moment(args.start), moment(args.end)
            if stdin:
                sources.texts["stdin"] = sys.stdin.buffer.read(256 << 20)
            if sources.empty():
                return _usage(
                    "nothing to diagnose: give files, a folder, an address, or - (try inferdx diagnose --help)"
                )
            context = Context(slo=parse_slo(args.slo))
            baseline = [Path(args.baseline)] if args.baseline else None
            for bad in parts_of(baseline or [])[1]:
                if bad.severity == "error":
                    return _usage(f"baseline {bad.line()}")
        for folder in args.knowledge:
            if not Path(folder).is_dir():
                return _usage(f"knowledge {folder}: no such folder; check the path")
        known = site_knowledge([Path(p) for p in args.knowledge])
    except (ValueError, KnowledgeError) as error:
        return _usage(str(error))
    if sources.urls and sys.stderr.isatty():
        sources.progress = lambda text: print(f"\r{text}   ", end="", file=sys.stderr, flush=True)
    env = make_env(sources, known=known, context=context, baseline=baseline, lang=args.lang)
    diagnosis, _ = investigate(env, graph=args.graph)
    if args.command == "diagnose":
        recall(diagnosis)
    if sources.progress:
        print(file=sys.stderr)
    if args.command == "demo" and not (args.json or args.md):
        print("A recorded incident: vLLM 0.32, 137 requests in 42 s, users wait half a minute for a first token.\n")
    _show(diagnosis, args)
    nothing = all(e.status != "ok" or e.fact in _INPUT_ONLY for e in diagnosis.evidence)
    if nothing and any(p.severity == "error" for p in diagnosis.problems):
        for problem in diagnosis.problems if (args.json or args.md) else []:
            print(
                f"inferdx: {problem.ref}: {problem.what}" + (f"; {problem.do}" if problem.do else ""), file=sys.stderr
            )
        return 3
    return diagnosis.exit_code()


def _show(diagnosis: Any, args: argparse.Namespace) -> None:
    if args.json:
        sys.stdout.write(diagnosis.to_json().decode() + "\n")
        return
    if args.md:
        from agent.render.markdown import render as markdown

        sys.stdout.write(markdown(diagnosis))
        return
    from rich.console import Console

    from agent.render.terminal import render

    render(diagnosis, Console(highlight=False, soft_wrap=False), full=args.full)
