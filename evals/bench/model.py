"""Rules only against the product with a model, case by case: ``python -m evals.bench.model [--cases N] [--every K]``.

Needs ``INFERDX_MODEL`` and ``INFERDX_BASE_URL``. Development cases only. Writes ``evals/bench/results/model.md``: verdict
changes, calls, tokens, seconds, and what was refused of the model's output. Exit status 1 when a verdict got worse.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from agent.assistant import BY_MODEL, ModelAssistant
from agent.diagnosis import Diagnosis
from agent.investigate import investigate, make_env
from agent.llm import Model
from agent.llm_settings import Settings, settings
from agent.sources import Sources, words_of
from evals.schema import ROOT, load_cases
from knowledge import Knowledge, load

RESULT = ROOT / "bench" / "results" / "model.md"


class Row(Struct, kw_only=True):
    """One case. ``same``: outcome, causes and confidences are those of the rules alone."""

    case: str
    same: bool
    right: bool
    right_rules: bool
    added: int
    calls: int
    tokens: int
    seconds: float
    rules_s: float
    failed: int
    rejected: int
    dropped: int
    told: int


def verdict(d: Diagnosis) -> tuple[str, list[tuple[str, float]]]:
    """What must not change."""
    return d.outcome, [(c.family, c.confidence) for c in d.causes]


def _right(d: Diagnosis, outcome: str, families: list[str]) -> bool:
    lead = d.causes[0].family if d.causes else ""
    return d.outcome == outcome and (outcome != "incident" or lead in families)


def one(known: Knowledge, world: Path, config: Settings, name: str, outcome: str, families: list[str]) -> Row:
    """Both runs of one case."""
    begin = time.monotonic()
    plain, _ = investigate(make_env(Sources(paths=[world]), known=known))
    rules_s = time.monotonic() - begin
    sources = Sources(paths=[world])
    env = make_env(sources, known=known, words=lambda: words_of(sources), max_seconds=config.max_seconds + 90)
    model = Model(config)
    model.can()
    before = model.used.calls
    helper = ModelAssistant(model, known)
    env.assistant = helper
    told, _ = investigate(env)
    use = helper.usage()
    return Row(
        case=name, same=verdict(plain) == verdict(told), right=_right(told, outcome, families),
        right_rules=_right(plain, outcome, families), added=sum(BY_MODEL in e.caveats for e in told.evidence),
        calls=use["calls"] - before, tokens=use["tokens"], seconds=use["seconds"], rules_s=round(rules_s, 2),
        failed=use["failed"], rejected=helper.rejected, dropped=helper.dropped, told=len(told.narrative),
    )  # fmt: skip


def table(rows: list[Row], config: Settings) -> str:
    """The result file."""

    def mid(values: list[float]) -> str:
        return f"{statistics.median(values):g}"

    worse = [r.case for r in rows if r.right_rules and not r.right]
    seconds = sorted(r.seconds for r in rows)
    lines = [
        "# Rules only against the product with a model",
        "",
        (
            f"Model `{config.name}`, n = {len(rows)} development cases, temperature 0, one run each. Time-out {config.timeout_s:g} s a call, "
            f"budget {config.max_calls} calls, {config.max_tokens:,} tokens, {config.max_seconds:g} s a diagnosis."
        ),
        "",
        f"- verdict changes: {sum(not r.same for r in rows)} of {len(rows)}",
        f"- right: {sum(r.right for r in rows)} with the model, {sum(r.right_rules for r in rows)} with rules only; worse on {len(worse)} cases",
        f"- model calls a diagnosis: median {mid([r.calls for r in rows])}, most {max(r.calls for r in rows)}",
        f"- tokens a diagnosis: median {mid([r.tokens for r in rows])}, most {max(r.tokens for r in rows):,}",
        f"- model seconds a diagnosis: median {seconds[len(seconds) // 2]:.1f}, most {seconds[-1]:.1f}; rules alone median {mid([r.rules_s for r in rows])}",
        f"- proposals accepted {sum(r.added for r in rows)}, refused {sum(r.rejected for r in rows)}; sentences told {sum(r.told for r in rows)}, dropped {sum(r.dropped for r in rows)}; failed calls {sum(r.failed for r in rows)}",
        "",
        "| case | verdict same | calls | tokens | model s | accepted | refused | told | dropped | failed |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r.case} | {'yes' if r.same else 'NO'} | {r.calls} | {r.tokens} | {r.seconds:.1f} | {r.added} | {r.rejected} | {r.told} | {r.dropped} | {r.failed} |"
        for r in rows
    ]
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=24, help="how many cases at most")
    parser.add_argument("--every", type=int, default=7, help="take every K-th development case")
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args(argv)
    config = settings()
    if config is None:
        print("set INFERDX_MODEL and INFERDX_BASE_URL", file=sys.stderr)
        return 3
    config = msgspec.structs.replace(config, timeout_s=90.0, max_seconds=240.0)
    known = load()
    cases = [c for c in load_cases(ROOT / "cases", ROOT / "labels") if c.label.split == "dev"][:: args.every][
        : args.cases
    ]
    rows: list[Row] = []
    for case in cases:
        row = one(
            known,
            case.world,
            config,
            case.id,
            case.label.outcome,
            [*case.label.cause_families, *case.label.also_accepted],
        )
        rows.append(row)
        print(f"{row.case}: same={row.same} calls={row.calls} {row.seconds:.0f} s told={row.told}", flush=True)
        args.out.write_text(table(rows, config), encoding="utf-8")
    return 1 if any(r.right_rules and not r.right for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
