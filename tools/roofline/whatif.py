"""What a change of configuration or hardware would buy: floors, KV capacity, concurrency, TPOT and TTFT.

The change is computed with the same model before and after, so its errors mostly cancel; the range adds what does
not (the floor's change is a bound, the typical change the middle). Side effects come as plain sentences.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, structs

from tools.roofline.build import KEYS, key_of, request_from, truthy
from tools.roofline.floors import Estimate, decode_times, estimate
from tools.roofline.hardware import hardware_from_text
from tools.roofline.model import model_from_name, with_weights
from tools.roofline.precision import canonical, kv_bytes
from tools.roofline.request import Layout, Request
from tools.roofline.shape import ModelShape, Refusal

# A typical estimate is off by this share in the median; of a difference, less than half of it remains.
RANGE_SHARE = 0.35
# Memory arithmetic is off by what engines take besides weights and cache.
ROOM_SHARE = 0.10


class Delta(Struct, frozen=True, kw_only=True):
    """One quantity before and after. ``change`` is a share (-0.2: 20 % less); ``low`` and ``high`` its honest range."""

    name: str
    unit: str
    before: float
    after: float
    change: float
    low: float
    high: float

    def direction(self) -> str:
        """``lower``, ``higher`` or ``same`` (under 2 %)."""
        return "same" if abs(self.change) < 0.02 else "lower" if self.change < 0 else "higher"


class Change(Struct, frozen=True, kw_only=True):
    """A predicted change: ``refused`` lists settings that could not be applied, ``ignored`` those that do not bear on
    the calculator, ``effects`` side effects to know before doing it."""

    settings: dict[str, str]
    before: Estimate
    after: Estimate
    deltas: tuple[Delta, ...]
    effects: tuple[str, ...]
    refused: tuple[Refusal, ...] = ()
    ignored: tuple[str, ...] = ()

    def of(self, name: str) -> Delta | None:
        """A delta by name."""
        return next((delta for delta in self.deltas if delta.name == name), None)


def apply(base: Request, settings: Mapping[str, str]) -> tuple[Request, list[Refusal], list[str]]:
    """The request with settings changed, what could not be applied, and what does not bear on the calculator."""
    refused: list[Refusal] = []
    ignored: list[str] = []
    out = base
    plain: dict[str, str] = {}
    for name, value in settings.items():
        key = key_of(name)
        if key is None:
            ignored.append(name)
        elif key in ("model", "gpu", "weights", "kv", "engine"):
            result = _named(out, key, value)
            if isinstance(result, Refusal):
                refused.append(result)
            else:
                out = result
        else:
            plain[key] = value
    result = _numeric(out, plain)
    if isinstance(result, Refusal):
        refused.append(result)
    else:
        out = result
    return out, refused, ignored


def _named(base: Request, key: str, value: str) -> Request | Refusal:
    if key == "model":
        model = model_from_name(value)
        return model if isinstance(model, Refusal) else structs.replace(base, model=model)
    if key == "gpu":
        gpu = hardware_from_text(value)
        if isinstance(gpu, Refusal):
            return gpu
        return structs.replace(base, gpu=gpu)
    if key == "weights":
        if canonical(value) is None:
            return Refusal(field="weights", why=f"precision {value!r} is not known")
        return structs.replace(base, model=with_weights(base.model, value))
    if key == "kv":
        if value.strip().lower() not in ("auto", "") and kv_bytes(value) is None:
            return Refusal(field="kv_cache_dtype", why=f"{value!r} is not known")
        return structs.replace(base, kv=value)
    return structs.replace(base, engine=value)


def _numeric(base: Request, plain: dict[str, str]) -> Request | Refusal:
    if not plain:
        return base
    share = plain.pop("prefix_hit_rate", None)
    probe = request_from({"model": "llama-3.1-8b", "gpu": "h100-sxm", **_layout_values(base, plain), **plain})
    if isinstance(probe, Refusal):
        return probe
    fields = {name: getattr(probe, name) for name in plain if hasattr(probe, name) and name != "eager"}
    out = structs.replace(base, layout=probe.layout, **fields)
    if "eager" in plain:
        out = structs.replace(out, eager=truthy(plain["eager"]))
    if share is not None:
        try:
            rate = float(share.strip().rstrip("%")) / (100.0 if "%" in share else 1.0)
        except ValueError:
            return Refusal(field="prefix_hit_rate", why=f"{share!r} is not a number")
        if not 0 <= rate < 1:
            return Refusal(field="prefix_hit_rate", why=f"{share!r} is not between 0 and 1")
        out = structs.replace(out, cached=rate * out.isl)
    return out


def _layout_values(base: Request, plain: Mapping[str, str]) -> dict[str, int]:
    """The layout before, less what the change replaces: a new tp keeps replicas and takes other GPUs."""
    old: Layout = base.layout
    values = {"tp": old.tp, "pp": old.pp, "dp": old.dp, "ep": old.ep, "replicas": old.replicas, "dcp": old.dcp}
    if "gpus" in plain:
        values.pop("replicas")
    if old.ep > 1 and "ep" not in plain and ("tp" in plain or "dp" in plain):
        values["ep"] = max(1, int(float(plain.get("tp", old.tp)))) * max(1, int(float(plain.get("dp", old.dp))))
    return {name: value for name, value in values.items() if name not in plain}


def whatif(base: Request, changes: Mapping[str, str]) -> Change:
    """Predicted change of floors, capacity, concurrency, TPOT and TTFT when ``changes`` are applied to ``base``.

    Values are text as on a command line (``{"max_num_seqs": "64", "kv_cache_dtype": "fp8", "gpu": "H200"}``); what
    cannot be applied is refused by name and the rest is still computed.
    """
    after, refused, ignored = apply(base, changes)
    one, two = estimate(base), estimate(after)
    return Change(
        settings=dict(changes),
        before=one,
        after=two,
        deltas=tuple(_deltas(one, two)),
        effects=tuple(_effects(base, after, one, two)),
        refused=tuple(refused),
        ignored=tuple(ignored),
    )


def _delta(
    name: str, unit: str, before: float, after: float, bound: float | None = None, share: float = RANGE_SHARE
) -> Delta:
    change = after / before - 1.0 if before else 0.0
    edge = change if bound is None else bound
    slack = abs(change) * share
    low, high = min(change - slack, edge), max(change + slack, edge)
    return Delta(name=name, unit=unit, before=before, after=after, change=change, low=max(-1.0, low), high=high)


def _deltas(one: Estimate, two: Estimate) -> list[Delta]:
    floor = two.tpot.expected / one.tpot.expected - 1.0
    first = two.ttft.expected / one.ttft.expected - 1.0 if one.ttft.expected else 0.0
    # More room lets more sequences in, which slows each step: the same batch separates the two effects.
    same = decode_times(two.request, one.batch)[0]
    rate_one, rate_two = (e.batch / e.tpot.typical * 1e3 if e.tpot.typical else 0.0 for e in (one, two))
    return [
        _delta("tpot_floor_ms", "ms", one.tpot.expected, two.tpot.expected, share=0.0),
        _delta("tpot_typical_ms", "ms", one.tpot.typical, two.tpot.typical, floor),
        _delta("ttft_floor_ms", "ms", one.ttft.expected, two.ttft.expected, share=0.0),
        _delta("ttft_typical_ms", "ms", one.ttft.typical, two.ttft.typical, first),
        _delta("tpot_same_batch_ms", "ms", one.tpot.typical, same.typical, same.expected / one.tpot.expected - 1.0),
        _delta("kv_capacity_tokens", "tokens", one.capacity.tokens, two.capacity.tokens, share=ROOM_SHARE),
        _delta("max_concurrency", "sequences", one.capacity.concurrency, two.capacity.concurrency, share=ROOM_SHARE),
        _delta("decode_batch", "sequences", one.batch, two.batch, share=ROOM_SHARE),
        _delta("output_tokens_per_s", "tokens/s", rate_one, rate_two),
        _delta("weights_gb_per_gpu", "GB", one.capacity.weights / 1e9, two.capacity.weights / 1e9, share=0.0),
    ]


def _effects(before: Request, after: Request, one: Estimate, two: Estimate) -> list[str]:
    out: list[str] = []
    if not two.capacity.fits:
        out.append(f"does not fit: weights miss the budget by {two.capacity.short / 1e9:.1f} GB on each GPU")
    want = before.decoding()
    if after.max_num_seqs and after.max_num_seqs != before.max_num_seqs:
        seats = after.max_num_seqs * after.layout.dp * after.layout.replicas
        asked = before.concurrency or before.batch
        if asked > seats:
            out.append(f"{asked - seats:.0f} of {asked:.0f} requests then wait for a seat: their time shows as TTFT")
    if two.capacity.fits and two.capacity.concurrency < want <= one.capacity.concurrency:
        out.append(
            f"the cache then holds {two.capacity.concurrency:.0f} sequences of {want:.0f}: queueing or preemption"
        )
    if one.capacity.concurrency < want <= two.capacity.concurrency and one.capacity.fits:
        out.append(f"all {want:.0f} sequences then fit the cache: no more queueing or preemption for room")
    if before.kv != after.kv and kv_bytes(after.kv) == 1.0:
        out.append("8-bit cache: accuracy on long contexts must be checked, scales should be calibrated")
    if before.model.weights != after.model.weights:
        out.append(f"needs a {after.model.weights} checkpoint and an accuracy check")
    out.extend(_layout_effects(before, after))
    if after.eager and not before.eager:
        out.append("no CUDA graphs: every kernel launch is paid on the host")
    if (
        after.gpu.id != before.gpu.id
        and after.gpu.bw < before.gpu.bw
        and after.gpu.peak("bf16") > before.gpu.peak("bf16")
    ):
        out.append("more arithmetic but less bandwidth: prompts gain, tokens do not")
    for weights, need in (("fp8", "fp8"), ("nvfp4", "fp4"), ("mxfp4", "fp4")):
        if after.model.weights == weights and need not in after.gpu.peaks:
            out.append(
                f"{after.gpu.name} has no {need.upper()} arithmetic: weights shrink, the multiplication does not speed up"
            )
            break
    return out


def _layout_effects(before: Request, after: Request) -> list[str]:
    out: list[str] = []
    old, new = before.layout, after.layout
    model: ModelShape = after.model
    if new.tp > old.tp:
        out.append(f"tp {old.tp} to {new.tp}: {new.gpus()} GPUs, an all-reduce after every block")
        if new.tp > model.kv_heads() and not model.is_mla():
            out.append(f"{model.kv_heads()} KV heads over {new.tp} ranks: each further rank stores a copy of the cache")
        if model.is_mla():
            out.append("latent cache stands whole on every rank: tensor parallelism does not enlarge it per sequence")
        if new.tp > after.gpu.domain:
            out.append(
                f"tp {new.tp} leaves the fast link of {after.gpu.domain} GPUs: collectives get many times slower"
            )
    if new.dp > old.dp and model.is_moe():
        out.append("attention data parallelism: an all-to-all in every routed layer, the busiest rank sets the step")
    if new.gpus() > old.gpus() and new.tp == old.tp and new.dp == old.dp:
        out.append(f"{new.replicas} replicas: throughput scales, time per token only as each gets fewer requests")
    return out


def known_settings() -> list[str]:
    """Settings that bear on the calculator."""
    return sorted(KEYS)
