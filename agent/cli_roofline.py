"""``inferdx roofline`` and ``inferdx whatif``: the calculator at the command line. Imports nothing heavy by itself."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tools.roofline.checks import Comparison, Measured
    from tools.roofline.floors import Estimate
    from tools.roofline.request import Request
    from tools.roofline.shape import Refusal
    from tools.roofline.whatif import Change

# From the path of a world to the request that its files describe, or why none can be made.
WorldRequest = Callable[[str], "Request | Refusal"]

_VALUES = (
    ("model", "NAME", "model of the shipped table (see --config for any other)"),
    ("gpu", "TEXT", "device as nvidia-smi, rocm-smi, DCGM or vLLM print it; '8x H100' gives a count too"),
    ("gpus", "N", "devices in all (default: tp x pp x dp)"),
    ("tp", "N", "tensor-parallel ranks"),
    ("pp", "N", "pipeline stages"),
    ("dp", "N", "attention data-parallel ranks inside one engine"),
    ("ep", "N", "ranks that hold whole experts"),
    ("dcp", "N", "decode context parallel ranks"),
    ("replicas", "N", "independent engines"),
    ("weights", "WORD", "precision of the weights: bf16, fp8, nvfp4, mxfp4, int4, awq, q4_k_m ..."),
    ("kv", "WORD", "kv_cache_dtype: auto, fp8, fp8_ds_mla, nvfp4 ..."),
    ("batch", "N", "sequences that decode together"),
    ("concurrency", "N", "requests in flight"),
    ("context", "TOKENS", "tokens in the cache of a decoding sequence (default: from prompt and answer)"),
    ("isl", "TOKENS", "prompt length"),
    ("osl", "TOKENS", "answer length"),
    ("cached", "TOKENS", "prompt tokens that a prefix cache serves"),
    ("engine", "NAME", "engine and version, such as 'vllm 0.18'"),
    ("memory-util", "SHARE", "share of memory the engine may take (default 0.9)"),
    ("max-num-seqs", "N", "cap on sequences per engine"),
    ("max-model-len", "TOKENS", "longest request the engine accepts"),
    ("max-batched-tokens", "TOKENS", "tokens per step (chunked prefill)"),
    ("draft-tokens", "N", "tokens a draft proposes per step"),
    ("acceptance", "SHARE", "share of draft tokens accepted"),
)
_ALSO = {"isl": ("--prompt",), "osl": ("--output",), "weights": ("--quantization",), "kv": ("--kv-cache-dtype",)}


def _typed(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what runs where")
    for name, meta, text in _VALUES:
        group.add_argument(f"--{name}", *_ALSO.get(name, ()), metavar=meta, help=text, default=None)
    group.add_argument("--config", metavar="FILE", help="a model's config.json; hf_quant_config.json beside it is used")
    group.add_argument(
        "--gpu-memory-gb", metavar="GB", help="memory total the driver prints, when it differs", type=float
    )
    group.add_argument("--eager", action="store_true", help="no CUDA graphs")
    parser.add_argument("--json", action="store_true", help="machine-readable result on standard output")


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Options of ``roofline`` and of ``whatif``."""
    if command == "whatif":
        parser.description = (
            "Predicted change of floors, cache capacity, concurrency, TPOT and TTFT, with side effects."
        )
        parser.add_argument("world", nargs="?", help="folder or file of a deployment (or type the figures)")
        parser.add_argument(
            "--set", metavar="KEY=VALUE", action="append", default=[], dest="changes", help="a change; repeatable"
        )
        _typed(parser)
        return
    parser.description = (
        "Floors and typical times of a model on hardware under a load; a measurement is judged against them."
    )
    _typed(parser)
    seen = parser.add_argument_group("measured")
    for name, meta, text in (
        ("tpot-ms", "MS", "time per output token"),
        ("ttft-ms", "MS", "time to first token"),
        ("output-tps", "RATE", "output tokens per second of the whole deployment"),
        ("prompt-tps", "RATE", "prompt tokens per second"),
        ("request-rps", "RATE", "requests per second"),
    ):
        seen.add_argument(f"--measured-{name}", metavar=meta, help=text, type=float)
    parser.add_argument("--explain", action="store_true", help="print every term")
    parser.add_argument("--plot", metavar="FILE", help="write the roofline as .png or .svg")
    parser.add_argument("--points", metavar="FILE", help="judge a JSON file of benchmark points instead")


def _world(path: str) -> Request | Refusal:
    """The request that the files of a world describe."""
    from agent.deployment import request_of
    from agent.investigate import investigate, make_env
    from agent.sources import Sources
    from tools.roofline.shape import Refusal

    if not Path(path).exists():
        return Refusal(field="world", why=f"{path}: no such file or folder", do="check the path")
    env = make_env(Sources(paths=[Path(path)]))
    _, state = investigate(env)
    return request_of(env.ledger(state))[0]


def run(args: argparse.Namespace, base_request_from_world: WorldRequest | None = None) -> int:
    """Run the parsed command. Exit status 0, or 3 when the input cannot be used (one line on standard error)."""
    if hasattr(args, "changes"):
        return run_whatif(args, base_request_from_world or _world)
    if args.points:
        return _points(args)
    return _roofline(args)


def _fail(text: str) -> int:
    print(f"inferdx: {text}", file=sys.stderr)
    return 3


def _values(args: argparse.Namespace) -> dict[str, Any] | str:
    """Loose figures from the options; a message when a file cannot be read."""
    values = {name.replace("-", "_"): getattr(args, name.replace("-", "_")) for name, _, _ in _VALUES}
    out: dict[str, Any] = {name: value for name, value in values.items() if value is not None}
    if args.eager:
        out["eager"] = True
    if args.gpu_memory_gb:
        out["memory_bytes"] = args.gpu_memory_gb * 1e9
    if args.config:
        path = Path(args.config)
        loaded = _json_file(path)
        if isinstance(loaded, str):
            return loaded
        out["config"] = loaded
        beside = path.with_name("hf_quant_config.json")
        if beside.exists():
            quant = _json_file(beside)
            if isinstance(quant, str):
                return quant
            out["quant"] = quant
        out.setdefault("model", path.parent.name or path.stem)
    return out


def _json_file(path: Path) -> dict[str, Any] | str:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        return f"{path.name}: cannot be read ({error.strerror})"
    except (ValueError, RecursionError):
        return f"{path.name}: not JSON; give the model's config.json"
    return data if isinstance(data, dict) else f"{path.name}: not a JSON object"


def _request(args: argparse.Namespace) -> Request | str:
    from tools.roofline.build import request_from
    from tools.roofline.request import Request

    values = _values(args)
    if isinstance(values, str):
        return values
    request = request_from(values)
    return request if isinstance(request, Request) else request.line()


def _points(args: argparse.Namespace) -> int:
    from tools.roofline.points import main_points

    try:
        rows = main_points(args.points)
    except OSError as error:
        return _fail(f"{args.points}: cannot be read ({error.strerror})")
    except ValueError as error:
        return _fail(str(error))
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    table = [
        (r["id"], *(_short(r.get(k)) for k in ("hard_ms", "expected_ms", "practical_ms", "typical_ms")),
         r.get("limiter") or "", "; ".join(r.get("warnings", ())))
        for r in rows
    ]  # fmt: skip
    _table(("point", "hard ms", "expected", "practical", "typical", "side", "warnings"), table)
    return 0


def _roofline(args: argparse.Namespace) -> int:
    from tools.roofline.checks import Measured, compare
    from tools.roofline.explain import explain
    from tools.roofline.floors import estimate
    from tools.roofline.plot import plot
    from tools.roofline.shape import Refusal

    request = _request(args)
    if isinstance(request, str):
        return _fail(request)
    result = estimate(request, whole=True)
    seen = Measured(
        tpot_ms=args.measured_tpot_ms,
        ttft_ms=args.measured_ttft_ms,
        output_tps=args.measured_output_tps,
        prompt_tps=args.measured_prompt_tps,
        request_rps=args.measured_request_rps,
    )
    judged = compare(result, seen) if seen != Measured() else None
    if args.plot:
        written = plot(result, args.plot, tpot_ms=seen.tpot_ms, ttft_ms=seen.ttft_ms)
        if isinstance(written, Refusal):
            return _fail(written.line())
    if args.json:
        print(json.dumps(as_data(result, judged, explain(result) if args.explain else None), indent=1))
        return 0
    if args.explain:
        print("\n".join(explain(result)))
    else:
        _show(result)
    if judged:
        _judged(judged, seen)
    return 0


def as_data(result: Estimate, judged: Comparison | None = None, terms: list[str] | None = None) -> dict[str, Any]:
    """An estimate as plain data: times in ms, memory in bytes, shares of a typical step."""
    import msgspec

    request = result.request
    out: dict[str, Any] = {
        "model": request.model.name,
        "weights": request.model.weights,
        "gpu": request.gpu.name,
        "gpus": request.layout.gpus(),
        "layout": msgspec.to_builtins(request.layout),
        "batch": result.batch,
        "context_tokens": result.context,
        "tpot_ms": msgspec.to_builtins(result.tpot),
        "ttft_ms": msgspec.to_builtins(result.ttft),
        "batch_end_to_end_ms": msgspec.to_builtins(result.e2e),
        "request_at_full_load_ms": msgspec.to_builtins(result.per_request),
        "capacity_bytes": msgspec.to_builtins(result.capacity),
        "limiter": result.limiter,
        "shares": result.shares,
        "warnings": list(result.warnings),
        "assumed": list(result.caveats),
    }
    if judged:
        out["measured"] = msgspec.to_builtins(judged)
    if terms:
        out["terms"] = terms
    return out


def _short(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], title: str = "") -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, title_justify="left")
    for index, name in enumerate(head):
        table.add_column(name, no_wrap=index == 0, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(markup=False, highlight=False).print(table)


def _show(result: Estimate) -> None:
    request, room = result.request, result.capacity
    title = f"{request.model.name} ({request.model.weights}) on {request.layout.gpus()} x {request.gpu.name}"
    rows = []
    for name, times in (
        ("time per output token", result.tpot),
        ("time to first token, alone", result.ttft),
        ("fixed batch, end to end", result.e2e),
        ("per request at full load", result.per_request),
    ):
        if times:
            rows.append((name, *(_short(v) for v in (times.hard, times.expected, times.practical, times.typical))))
    _table(("ms", "hard floor", "expected", "practical", "typical"), rows, title)
    shares = sorted(result.shares.items(), key=lambda item: -item[1])[:4]
    print(f"binds: {result.limiter}; typical step: " + ", ".join(f"{name} {share:.0%}" for name, share in shares))
    print(
        f"memory a GPU: weights {room.weights / 1e9:.1f} GB of {room.budget / 1e9:.1f} allowed, cache {room.pool / 1e9:.1f} GB; "
        f"{room.per_token:,.0f} bytes a token; {room.concurrency:.0f} sequences of {room.context:.0f} tokens fit"
    )
    for text in result.warnings:
        print(f"warning: {text}")
    for text in result.caveats:
        print(f"assumed: {text}")


def _judged(judged: Comparison, seen: Measured) -> None:
    parts = []
    if judged.over_expected is not None and seen.tpot_ms is not None:
        parts.append(f"{seen.tpot_ms:.4g} ms a token is {judged.over_expected:.2f} x the expected floor")
    if judged.over_typical is not None:
        parts.append(f"{judged.over_typical:.2f} x typical")
    for name, value in (("MBU", judged.mbu), ("MFU", judged.mfu)):
        if value is not None:
            parts.append(f"{name} {value:.0%}")
    if judged.excess_ttft_ms is not None:
        parts.append(f"TTFT {judged.excess_ttft_ms:.0f} ms above the prompt's own floor")
    if judged.little_batch is not None:
        parts.append(f"{judged.little_batch:.1f} sequences decoding by rate x time")
    print("measured: " + "; ".join(parts) + ("; at the limit of the hardware" if judged.at_limit else ""))
    for text in judged.broken:
        print(f"broken: {text}")


def run_whatif(args: argparse.Namespace, base_request_from_world: WorldRequest | None = None) -> int:
    """``whatif``: from a world when a path is given (by the function passed in), else from typed figures."""
    from tools.roofline.request import Request
    from tools.roofline.whatif import whatif

    changes: dict[str, str] = {}
    for item in args.changes:
        key, sep, value = item.partition("=")
        if not sep or not key.strip():
            return _fail(f"--set {item}: write KEY=VALUE")
        changes[key.strip()] = value.strip()
    if not changes:
        return _fail("nothing to change: give --set KEY=VALUE")
    base: Request | str
    if args.world:
        if base_request_from_world is None:
            return _fail("a world cannot be read here: type --model and --gpu instead")
        found = base_request_from_world(args.world)
        base = found if isinstance(found, Request) else found.line()
    else:
        base = _request(args)
    if isinstance(base, str):
        return _fail(base)
    change = whatif(base, changes)
    if args.json:
        print(json.dumps(change_data(change), indent=1))
    else:
        _show_change(change)
    return 3 if change.refused and len(change.refused) + len(change.ignored) >= len(changes) else 0


def change_data(change: Change) -> dict[str, Any]:
    """A predicted change as plain data; ``change``, ``low`` and ``high`` are shares of the value before."""
    import msgspec

    return {
        "settings": change.settings,
        "deltas": [{**msgspec.to_builtins(delta), "direction": delta.direction()} for delta in change.deltas],
        "effects": list(change.effects),
        "limiter": {"before": change.before.limiter, "after": change.after.limiter},
        "refused": [refusal.line() for refusal in change.refused],
        "ignored": list(change.ignored),
        "warnings": list(change.after.warnings),
    }


def _show_change(change: Change) -> None:
    rows = [
        (d.name, _short(d.before), _short(d.after), f"{d.change:+.0%}", f"{d.low:+.0%} to {d.high:+.0%}", d.direction())
        for d in change.deltas
    ]
    title = ", ".join(f"{key}={value}" for key, value in change.settings.items())
    _table(("quantity", "before", "after", "change", "range", "direction"), rows, title)
    if change.before.limiter != change.after.limiter:
        print(f"binds: {change.before.limiter} before, {change.after.limiter} after")
    for text in change.effects:
        print(f"mind: {text}")
    for refusal in change.refused:
        print(f"not applied: {refusal.line()}")
    for name in change.ignored:
        print(f"not applied: {name} does not bear on the calculator")
