"""Every term of an estimate in words with numbers, for ``--explain`` and for reports."""

from __future__ import annotations

from tools.roofline.capacity import OVERHEAD_BYTES, vllm_reported_tokens
from tools.roofline.floors import Estimate, Times, low_form
from tools.roofline.kv import bytes_per_token, fixed_bytes, kv_format, naive_bytes_per_token
from tools.roofline.typical import engine_of, era_factor, share_of
from tools.roofline.work import Op, distinct_experts, zipf_experts


def explain(estimate: Estimate) -> list[str]:
    """Lines of text: inputs, weights, cache, experts, operators, floors, typical terms, capacity, what binds."""
    return [
        *_inputs(estimate),
        *_weights(estimate),
        *_cache(estimate),
        *_experts(estimate),
        *_operators("decode step, one GPU", estimate.ops, estimate),
        *_operators("prompt, one GPU", estimate.prefill, estimate),
        *_times(estimate),
        *_typical(estimate),
        *_room(estimate),
        f"binds: {estimate.limiter}",
        *(f"warning: {text}" for text in estimate.warnings),
        *(f"assumed: {text}" for text in estimate.caveats),
    ]


def _gb(size: float) -> str:
    return f"{size / 1e9:.4g} GB"


def _inputs(e: Estimate) -> list[str]:
    r, gpu = e.request, e.request.gpu
    lay = r.layout
    return [
        (
            f"model {r.model.name}: {r.model.params() / 1e9:.4g} B parameters, {r.model.active_params() / 1e9:.4g} B read "
            f"for one token, weights {r.model.weights}"
        ),
        f"device {gpu.name}: {gpu.bw / 1e9:.0f} GB/s published, {gpu.pin_bw / 1e9:.0f} pin rate, "
        f"{gpu.usable() / 1e9:.1f} GB, last-level cache {gpu.llc / 1e6:.0f} MB, dense peaks "
        + ", ".join(f"{m} {v / 1e12:.0f} TFLOPS" for m, v in gpu.peaks.items()),
        (
            f"layout: tp {lay.tp}, pp {lay.pp}, attention dp {lay.dp}, expert ranks {lay.shards}, replicas {lay.replicas}: "
            f"{lay.gpus()} GPUs"
        ),
        (
            f"load: {e.batch:.4g} sequences in a step, {e.context:.5g} tokens in the cache of each, prompt {r.isl:.5g}, "
            f"answer {r.osl:.5g}, cached prefix {r.cached:.5g}"
        ),
    ]


def _weights(e: Estimate) -> list[str]:
    model = e.request.model
    out = [f"weights resident on one GPU: {_gb(e.capacity.weights)}"]
    for group in model.layers:
        kind = group.attn.kind if group.attn else group.rec.kind if group.rec else "no mixer"
        feed = "none"
        if group.ffn:
            feed = f"{group.ffn.experts} experts, {group.ffn.top_k} a token" if group.ffn.experts else "dense"
        f = group.fmt
        out.append(
            f"  {group.count} layers: {kind}, feed-forward {feed}; bytes a weight: attention {f.attn.bytes:g}, "
            f"dense {f.ffn.bytes:g}, experts {f.expert.bytes:g}"
        )
    return out


def _cache(e: Estimate) -> list[str]:
    model = e.request.model
    form = kv_format(e.request.kv, hint=model.kv_hint, mla=model.is_mla())
    exact, naive = bytes_per_token(model, form), naive_bytes_per_token(model, form)
    out = [f"cache: {exact:,.0f} bytes a token over all layers at {form.bytes:g} bytes an element"]
    fixed = fixed_bytes(model, form)
    if fixed:
        out.append(f"  plus {fixed / 1e6:,.1f} MB a sequence at most that do not grow (windows, recurrent states)")
    if naive > exact * 1.01:
        out.append(f"  ignoring windows and sharing one would count {naive:,.0f} bytes a token")
    if low_form(e.request).bytes < form.bytes:
        out.append("  floors assume 8 bit, as the cache's precision was not stated")
    return out


def _experts(e: Estimate) -> list[str]:
    tokens = max(1.0, e.batch / (e.request.layout.pp * e.request.layout.replicas))
    for group in e.request.model.layers:
        ffn = group.ffn
        if ffn and ffn.experts:
            return [
                (
                    f"experts touched by {tokens:.4g} tokens in a layer: {distinct_experts(ffn.experts, ffn.top_k, tokens):.1f} of "
                    f"{ffn.experts} with uniform routing, {zipf_experts(ffn.experts, ffn.top_k, tokens):.1f} with a Zipf "
                    f"popularity, {ffn.top_k} at least"
                )
            ]
    return []


def _operators(title: str, ops: tuple[Op, ...], e: Estimate) -> list[str]:
    gpu = e.request.gpu
    out = [f"{title}:"]
    for op in sorted(ops, key=lambda item: -max(item.bytes / gpu.bw, item.flops / gpu.peak(item.math))):
        memory, compute = op.bytes / gpu.bw * 1e3, op.flops / gpu.peak(op.math) * 1e3
        side = "compute" if compute > memory else "memory"
        intensity = op.flops / op.bytes if op.bytes else float("inf")
        out.append(
            f"  {op.name}: {_gb(op.bytes)} -> {memory:.4g} ms, {op.flops / 1e12:.4g} TFLOP -> {compute:.4g} ms "
            f"({side}, {intensity:.3g} FLOP/byte, ridge {gpu.ridge(op.math):.0f})"
        )
    return out


def _line(name: str, times: Times | None) -> list[str]:
    if times is None:
        return []
    return [
        (
            f"{name}: hard {times.hard:.4g} ms, expected {times.expected:.4g}, practical {times.practical:.4g}, "
            f"typical {times.typical:.4g}"
        )
    ]


def _times(e: Estimate) -> list[str]:
    return [
        *_line("time per output token", e.tpot),
        *_line("time to first token, alone", e.ttft),
        *_line("fixed batch, end to end", e.e2e),
        *_line("deployment time per request when full", e.per_request),
    ]


def _typical(e: Estimate) -> list[str]:
    gpu, share, engine = e.request.gpu, share_of(e.request.gpu.family, e.request.gpu.id), engine_of(e.request.engine)
    out = [
        (
            f"typical step, terms (shares of published bandwidth: weights {share.weights:g}, experts {share.experts:g}, cache "
            f"{share.kv:g}; residual a layer {engine.dense:g} us, factor for this engine version "
            f"{era_factor(e.request.engine, amd=gpu.is_amd(), latent=e.request.model.is_mla()):g}):"
        )
    ]
    total = sum(part.seconds for part in e.parts) or 1.0
    for part in sorted(e.parts, key=lambda item: -item.seconds):
        out.append(f"  {part.name}: {part.seconds * 1e3:.4g} ms, {part.seconds / total:.0%} ({part.how})")
    return out


def _room(e: Estimate) -> list[str]:
    c = e.capacity
    out = [
        (
            f"memory a GPU: {_gb(c.budget)} allowed - {_gb(c.weights)} weights - {OVERHEAD_BYTES / 1e9:g} GB overhead = "
            f"{_gb(c.pool)} for the cache"
        ),
        (
            f"a sequence of {c.context:.5g} tokens takes {_gb(c.sequence)} on a GPU: {c.concurrency:.1f} fit the deployment, "
            f"{c.tokens:,.0f} tokens"
        ),
    ]
    if e.request.max_model_len:
        tokens, ratio = vllm_reported_tokens(e.request)
        out.append(
            f"vLLM would print about {tokens:,.0f} cache tokens and a concurrency of {ratio:.2f} for "
            f"{e.request.max_model_len} tokens"
        )
    return out
