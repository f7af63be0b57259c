"""Which phase a set of kernels looks like, and how sure that is.

Ranges that the engine names after its step decide; kernel names only hint, because paged FlashAttention runs the same
split kernels in both phases and a GEMM's name says nothing about its rows.
"""

from __future__ import annotations

from tools.profile import classify
from tools.profile.model import Phase, Profile

_MIN_TIME_SHARE = 0.02


def guess(profile: Profile) -> Phase:
    """``decode``, ``prefill``, ``mixed`` or ``unknown``; confidence 0–1."""
    steps = profile.steps
    told = steps.decode_only + steps.prefill
    if told:
        time = steps.decode_time + steps.prefill_time
        share = steps.decode_time / time if time > 0 else steps.decode_only / told
        why = f"{steps.decode_only} of {told} annotated steps hold decodes only, {share:.0%} of their time"
        name = "decode" if share >= 0.9 else "prefill" if share <= 0.1 else "mixed"
        return Phase(name, 0.95, why)
    if not profile.kernels or profile.kernel_total <= 0:
        return Phase()
    sums = {"decode": 0.0, "prefill": 0.0}
    names: dict[str, tuple[float, str]] = {}
    for kernel in profile.kernels:
        phase, weight = classify.phase_of(kernel.name)
        if phase and kernel.cls in ("attention", "gemm", "moe", "ssm"):
            score = kernel.total * weight
            sums[phase] += score
            names[phase] = max(names.get(phase, (0.0, "")), (score, kernel.name))
    decode, prefill = sums["decode"] / profile.kernel_total, sums["prefill"] / profile.kernel_total
    if decode + prefill < _MIN_TIME_SHARE:
        return Phase("unknown", 0.0, "no kernel name in it speaks for a phase")
    lead = decode / (decode + prefill)
    top = names["decode" if lead >= 0.5 else "prefill"][1][:60]
    why = f"kernels typical of decode {decode:.0%}, of prefill {prefill:.0%} of kernel time (most: {top})"
    if 0.25 < lead < 0.75:
        return Phase("mixed", 0.5, why)
    name = "decode" if lead >= 0.5 else "prefill"
    clear = max(lead, 1.0 - lead)
    mass = min(1.0, (decode + prefill) / 0.3)
    return Phase(name, round(0.2 + 0.6 * (clear - 0.5) * 2 * mass, 2), why)
