"""What is asked of the calculator: a model on hardware in a layout under a load. And how work is laid out on GPUs."""

from __future__ import annotations

from msgspec import Struct

from tools.roofline.hardware import Hardware
from tools.roofline.shape import ModelShape, Refusal


class Layout(Struct, frozen=True, kw_only=True):
    """``tp``: ranks that share one attention; ``pp`` stages; ``dp`` attention replicas inside one engine;
    ``shards``: GPUs of one stage over which experts are spread (``tp * dp`` in every known engine);
    ``ep``: 1 when experts are cut (tensor parallel), else how many ranks hold whole experts;
    ``replicas``: independent engines; ``dcp``: decode context parallel ranks."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    shards: int = 1
    replicas: int = 1
    dcp: int = 1

    def engine_gpus(self) -> int:
        """GPUs of one engine."""
        return self.tp * self.dp * self.pp

    def gpus(self) -> int:
        """All GPUs."""
        return self.engine_gpus() * self.replicas


class Request(Struct, frozen=True, kw_only=True):
    """One question. Tokens are counts, ``concurrency`` the requests in flight, ``batch`` the sequences that decode
    together over the whole deployment (0: derived from ``concurrency``). ``context``: tokens in the cache of a
    decoding sequence (0: from ``isl`` and ``osl``). ``low`` and ``mean``: shortest and mean sampled length as a share
    of nominal. ``kv``: a ``kv_cache_dtype`` word. ``cached``: prompt tokens served from a prefix cache.
    ``memory_util``: share of memory the engine may take. ``eager``: no CUDA graphs.
    """

    model: ModelShape
    gpu: Hardware
    layout: Layout = Layout()
    engine: str = "vllm"
    batch: float = 0.0
    concurrency: float = 0.0
    context: float = 0.0
    isl: float = 1024.0
    osl: float = 1024.0
    low: float = 1.0
    mean: float = 1.0
    kv: str = "auto"
    cached: float = 0.0
    memory_util: float = 0.9
    max_num_seqs: int = 0
    max_model_len: int = 0
    max_batched_tokens: int = 0
    block: int = 16
    eager: bool = False
    draft_tokens: int = 0
    acceptance: float = 0.0
    offline: bool = False

    def decoding(self) -> float:
        """Sequences decoding in one step, before capacity is known."""
        want = self.batch or self.concurrency or 1.0
        return min(want, self.max_num_seqs * self.layout.dp * self.layout.replicas) if self.max_num_seqs else want

    def mid_context(self, share: float | None = None) -> float:
        """Tokens in the cache half way through the answer, with lengths at ``share`` of nominal (default: mean)."""
        if self.context:
            return self.context
        part = self.mean if share is None else share
        return part * (self.isl + self.osl / 2.0)


def layout_of(
    *,
    gpus: int = 0,
    tp: int = 0,
    pp: int = 1,
    dp: int = 1,
    ep: int = 1,
    moe_tp: int = 0,
    replicas: int = 0,
    dcp: int = 1,
) -> Layout | Refusal:
    """A layout from the figures people give; refuses what does not multiply out to ``gpus``."""
    for name, value in (("tp", tp or 1), ("pp", pp), ("dp", dp), ("ep", ep), ("gpus", gpus or 1)):
        if not 1 <= value <= 16384:
            return Refusal(field=name, why=f"{value} is not a count of GPUs")
    pp, dp = max(1, pp), max(1, dp)
    if not tp:
        tp = max(1, gpus // (pp * dp * max(1, replicas))) if gpus else 1
    one = tp * pp * dp
    if gpus and gpus % one:
        return Refusal(field="gpus", why=f"{gpus} GPUs are no multiple of tp {tp} x pp {pp} x dp {dp}")
    copies = replicas or (gpus // one if gpus else 1)
    shards = ep * moe_tp if moe_tp else tp * dp
    return Layout(tp=tp, pp=pp, dp=dp, ep=ep, shards=max(1, shards), replicas=max(1, copies), dcp=dcp)
