"""The roofline as a picture: attainable arithmetic over intensity, log-log, with the request's operators on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tools.roofline.floors import Estimate
from tools.roofline.shape import Math, Refusal
from tools.roofline.work import Op

SUFFIXES = (".png", ".svg")


def _total(ops: tuple[Op, ...], estimate: Estimate) -> tuple[float, float]:
    """Intensity (FLOP/byte) and rate (FLOP/s) that the operators could reach together on one GPU."""
    gpu = estimate.request.gpu
    flops, size = sum(op.flops for op in ops), sum(op.bytes for op in ops)
    seconds = max(size / gpu.bw, sum(op.flops / gpu.peak(op.math) for op in ops))
    return flops / size if size else 0.0, flops / seconds if seconds else 0.0


def points_of(
    estimate: Estimate, tpot_ms: float | None = None, ttft_ms: float | None = None
) -> dict[str, tuple[float, float]]:
    """What is drawn: name → (FLOP per byte, TFLOP/s). Measured times lower the rate at the same intensity."""
    out: dict[str, tuple[float, float]] = {}
    for name, ops, seen in (("decode step", estimate.ops, tpot_ms), ("prompt", estimate.prefill, ttft_ms)):
        intensity, rate = _total(ops, estimate)
        out[name] = (intensity, rate / 1e12)
        if seen and seen > 0:
            out[f"{name}, measured"] = (intensity, sum(op.flops for op in ops) / (seen * 1e-3) / 1e12)
    return out


def plot(
    estimate: Estimate, path: Path | str, *, tpot_ms: float | None = None, ttft_ms: float | None = None
) -> Path | Refusal:
    """Write a PNG or SVG (by suffix). A :class:`Refusal` says why not: another suffix, no matplotlib, no access."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        return Refusal(field="plot", why=f"{target.name}: suffix must be .png or .svg")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return Refusal(field="plot", why="matplotlib is not installed", do="pip install 'inferdx[plot]'")
    figure = Figure(figsize=(8.0, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot()
    _draw(axes, estimate, points_of(estimate, tpot_ms, ttft_ms))
    try:
        figure.savefig(target, dpi=150, metadata={"Date": None} if target.suffix.lower() == ".svg" else None)
    except OSError as error:
        return Refusal(field="plot", why=f"{target.name} cannot be written ({error.strerror})")
    return target


def _draw(axes: Any, estimate: Estimate, points: dict[str, tuple[float, float]]) -> None:
    gpu = estimate.request.gpu
    used: set[Math] = {op.math for op in (*estimate.ops, *estimate.prefill)}
    used.add("bf16")
    top = 0.0
    left = min(0.5, *(max(1e-3, x) / 2 for x, _ in points.values()))
    right = max(4 * max(gpu.ridge(math) for math in used), *(x * 2 for x, _ in points.values()))
    for math in sorted(used):
        peak = gpu.peak(math) / 1e12
        ridge = gpu.ridge(math)
        top = max(top, peak)
        axes.plot(
            [left, ridge, right],
            [left * gpu.bw / 1e12, peak, peak],
            label=f"{math}: {peak:.0f} TFLOPS, ridge {ridge:.0f}",
        )
        axes.axvline(ridge, linewidth=0.6, linestyle=":", color="grey")
    for index, (name, (x, y)) in enumerate(points.items()):
        seen = name.endswith("measured")
        axes.plot(
            [x], [max(y, 1e-6)], marker="x" if seen else "o", linestyle="none", color=f"C{4 + index // 2}", label=name
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(bottom=min(0.1, *(max(y, 1e-6) / 2 for _, y in points.values())), top=top * 2)
    axes.set_xlabel("arithmetic intensity (FLOP per byte moved)")
    axes.set_ylabel("TFLOP/s on one GPU")
    axes.set_title(f"{estimate.request.model.name} on {gpu.name}, {gpu.bw / 1e12:.2f} TB/s")
    axes.grid(True, which="both", linewidth=0.3, alpha=0.5)
    axes.legend(fontsize=8)
