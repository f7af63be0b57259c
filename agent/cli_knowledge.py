"""``inferdx explain``, ``rules``, ``decision-table``, ``lint-knowledge`` and ``docs``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from knowledge.schema import Knowledge


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Options of each of the five commands."""
    parser.add_argument("--knowledge", action="append", default=[], metavar="DIR", help="site knowledge to add")
    _OPTIONS[command](parser)


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language")
    parser.add_argument("--json", action="store_true", help="data instead of text")


def _explain_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Explain a cause, rule, fact, page, metric, flag or signature by name:\n"
        "  inferdx explain kv_cache_exhausted\n"
        "  inferdx explain metric vllm:gpu_cache_usage_perc --engine-version 0.20\n"
        "  inferdx explain tradeoffs max_num_batched_tokens\n"
        "  inferdx explain loadtest\n"
        "  inferdx explain --search 'waiting high kv low'"
    )
    parser.add_argument(
        "name", nargs="*", help="[kind] name; kinds: cause rule fact page metric flag signature tradeoffs"
    )
    parser.add_argument("--search", default="", metavar="WORDS", help="full-text search instead of a name")
    parser.add_argument("--limit", type=int, default=10, metavar="N", help="results of a search (10)")
    parser.add_argument("--engine-version", default="", metavar="V", help="say whether this release has it")
    _common(parser)


def _rules_options(parser: argparse.ArgumentParser) -> None:
    parser.description = "List the rules."
    parser.add_argument("--layer", default="", help="only this layer")
    parser.add_argument("--family", default="", help="only this cause family")
    _common(parser)


def _table_options(parser: argparse.ArgumentParser) -> None:
    from agent.docs import SYMPTOM_NAMES

    parser.description = "Symptom × evidence × cause, as a Markdown table."
    parser.add_argument("symptom", nargs="?", default="", choices=("", *SYMPTOM_NAMES), help="only this symptom")
    _common(parser)


def _lint_options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Check the knowledge base: one line per finding. Exit status 1 when there are any."
    parser.add_argument(
        "--fixtures", nargs="*", default=None, metavar="ID", help="only run the fixtures, of all rules or these"
    )
    parser.add_argument(
        "--mutate", action="store_true", help="flip and delete every condition; report what no fixture sees"
    )
    parser.add_argument("--new-rule", default="", metavar="ID", help="write a new rule with its three fixtures")
    parser.add_argument("--family", default="", help="cause family of the new rule")
    parser.add_argument(
        "--fill-fixtures", nargs="*", default=None, metavar="ID",
        help="write fixtures for rules that lack them, or anew for the rules named",
    )  # fmt: skip
    parser.add_argument("--into", default="", metavar="DIR", help="knowledge folder to write into (knowledge)")
    parser.add_argument("--json", action="store_true", help="findings as JSON")


def _docs_options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Write the manual under docs/ from the data."
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 when a file is stale")
    parser.add_argument("--out", default="docs", metavar="DIR", help="where the files stand (docs)")


_OPTIONS = {
    "explain": _explain_options, "rules": _rules_options, "decision-table": _table_options,
    "lint-knowledge": _lint_options, "docs": _docs_options,
}  # fmt: skip


def _usage(text: str) -> int:
    print(f"inferdx: {text}", file=sys.stderr)
    return 3


def run(args: argparse.Namespace) -> int:
    """Exit status 0 fine, 1 findings or stale files, 3 usage."""
    from agent.investigate import site_knowledge
    from knowledge.loader import KnowledgeError

    roots = [Path(folder) for folder in args.knowledge]
    for root in roots:
        if not root.is_dir():
            return _usage(f"{root}: no such folder of knowledge")
    if args.command == "lint-knowledge":
        return _lint(args, roots)
    try:
        known = site_knowledge(roots)
    except KnowledgeError as error:
        return _usage(f"{error} (inferdx lint-knowledge lists all)")
    return {"explain": _explain, "rules": _rules, "decision-table": _table, "docs": _docs}[args.command](args, known)


def _dump(data: Any) -> None:
    import msgspec

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(data), indent=1).decode() + "\n")


def _explain(args: argparse.Namespace, known: Knowledge) -> int:
    from agent.explain import explain, suggestions

    if args.search:
        return _search(args, known)
    if not args.name:
        return _usage("name something to explain, or --search WORDS (try inferdx explain --help)")
    entries = explain(known, args.name, args.lang, args.engine_version)
    if entries:
        if args.json:
            _dump([{"kind": e.kind, "id": e.id, "data": e.data, "text": e.text} for e in entries])
        else:
            _show("\n\n".join(entry.text for entry in entries))
        return 0
    near = suggestions(known, args.name)
    if args.json:
        _dump([])
    tail = f"; did you mean {', '.join(near)}?" if near else f"; try --search '{' '.join(args.name)}'"
    return _usage(f"nothing is called {' '.join(args.name)!r}{tail}")


def _search(args: argparse.Namespace, known: Knowledge) -> int:
    from agent.search import index

    hits = index(known, args.lang).search(args.search, limit=args.limit)
    if args.json:
        _dump([hit._asdict() for hit in hits])
        return 0 if hits else 3
    if not hits:
        return _usage(f"nothing is known about {args.search!r}")
    width = max(len(f"{hit.kind} {hit.id}") for hit in hits)
    for hit in hits:
        print(f"{hit.kind + ' ' + hit.id:<{width}}  {hit.title}")
    return 0


def _show(text: str) -> None:
    """Markdown on a terminal, the plain text elsewhere."""
    if not sys.stdout.isatty():
        print(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))


def _rules(args: argparse.Namespace, known: Knowledge) -> int:
    from knowledge.schema import both

    chosen = [
        rule for _, rule in sorted(known.rules.items())
        if args.layer in ("", rule.layer) and args.family in ("", rule.family)
    ]  # fmt: skip
    if not chosen:
        return _usage("no rule of that layer and family")
    if args.json:
        _dump(chosen)
        return 0
    width = max(len(rule.id) for rule in chosen)
    for rule in chosen:
        print(f"{rule.id:<{width}}  {rule.family or rule.outcome:<28}{rule.strength:<10}{both(rule.title, args.lang)}")
    print(f"\n{len(chosen)} rules")
    return 0


def _table(args: argparse.Namespace, known: Knowledge) -> int:
    from agent.docs import decision_rows, decision_table

    if args.json:
        keys = ("symptom", "evidence", "cause", "another_cause_if", "do_first")
        _dump([dict(zip(keys, row, strict=True)) for row in decision_rows(known, args.lang)])
    else:
        sys.stdout.write(decision_table(known, args.lang, args.symptom))
    return 0


def _lint(args: argparse.Namespace, roots: list[Path]) -> int:
    from agent import cli_lint

    if args.new_rule:
        return cli_lint.new_rule(args, roots)
    if args.fill_fixtures is not None:
        return cli_lint.fill(args, roots)
    if args.mutate:
        return cli_lint.mutate(roots)
    if args.fixtures is not None:
        return cli_lint.fixtures(roots, args.fixtures)
    from agent.knowledge_checks import lint_all

    findings = lint_all(roots)
    if args.json:
        _dump(findings)
    else:
        for finding in findings:
            print(finding.line())
        print(f"{len(findings)} findings" if findings else "no findings", file=sys.stderr)
    return 1 if findings else 0


def _docs(args: argparse.Namespace, known: Knowledge) -> int:
    from agent import skill_docs
    from agent.docs import stale, write

    folder = Path(args.out)
    skills = folder.resolve().parent
    with_skill = (skills / "skills").is_dir()
    if args.check:
        names = [str(folder / name) for name in stale(known, folder)]
        names += skill_docs.stale(skills, known) if with_skill else []
        for name in names:
            print(f"{name}: stale; run inferdx docs")
        return 1 if names else 0
    if not folder.parent.is_dir():
        return _usage(f"{folder.parent}: no such folder")
    for name in write(known, folder):
        print(f"wrote {folder / name}")
    if with_skill:
        for name in skill_docs.write(skills, known):
            print(f"wrote {name}")
    return 0
