"""Writes the made metrics worlds (``case-0520`` …) from :mod:`evals.bench.engine_model`. Run it again to get the same
bytes: ``python -m evals.bench.make_worlds``. Labels are written by hand beside them; causes are true by construction."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from evals.bench.engine_model import Engine, Histogram, Request, Setup

CASES = Path(__file__).resolve().parent.parent / "cases"
T0 = 1_790_000_000.0


@dataclass
class World:
    """One made world: how the engine is set, how long it ran before the first scrape, and the files beside the pages."""

    setup: Setup
    warm_s: float
    every_s: float
    scrapes: int
    model: str
    block: int = 16
    files: dict[str, str] = field(default_factory=dict)
    old: dict[str, float] = field(default_factory=dict)
    mfu: bool = False


def poisson(
    rate: float, until: float, prompt: Callable[[random.Random], int], output: Callable[[random.Random], int],
    cached: Callable[[int], int] = lambda prompt: 0,
) -> Callable[[random.Random], list[Request]]:  # fmt: skip
    """Open-loop arrivals at ``rate`` per second."""

    def make(rng: random.Random) -> list[Request]:
        out: list[Request] = []
        now = rng.expovariate(rate)
        while now < until:
            size = prompt(rng)
            out.append(Request(arrived=now, prompt=size, output=output(rng), cached=cached(size)))
            now += rng.expovariate(rate)
        return out

    return make


def standing(count: int, prompt: int, output: int, spread: float = 0.3) -> Callable[[random.Random], list[Request]]:
    """A batch handed over at the start, ``count`` requests."""

    def make(rng: random.Random) -> list[Request]:
        return [
            Request(arrived=0.0, prompt=int(prompt * rng.uniform(1 - spread, 1 + spread)),
                    output=max(2, int(output * rng.uniform(1 - spread, 1 + spread))))
            for _ in range(count)
        ]  # fmt: skip

    return make


class Loop(TypedDict):
    """The two halves of a closed loop, as keywords of :class:`Setup`."""

    arrivals: Callable[[random.Random], list[Request]]
    users: Callable[[random.Random, float], Request]


def loop(users: int, prompt: int, output: int, spread: float, cached: int = 0, gap: float = 0.15) -> Loop:
    """``arrivals`` and ``users`` of a closed loop: each user sends the next request when the last one ended."""

    def one(rng: random.Random, now: float) -> Request:
        size = max(2, int(output * rng.uniform(1 - spread, 1 + spread)))
        return Request(arrived=now, prompt=int(prompt * rng.uniform(0.95, 1.05)), output=size, cached=cached)

    def start(rng: random.Random) -> list[Request]:
        return [one(rng, gap * i) for i in range(users)]

    return {"arrivals": start, "users": one}


def around(mean: int, spread: float = 0.3) -> Callable[[random.Random], int]:
    """Uniform within ± spread."""
    return lambda rng: max(2, int(mean * rng.uniform(1 - spread, 1 + spread)))


def mixed(small: int, large: int, share: float) -> Callable[[random.Random], int]:
    """``share`` of the draws near ``large``, the rest near ``small``."""
    return lambda rng: int((large if rng.random() < share else small) * rng.uniform(0.85, 1.15))


def worlds() -> dict[str, World]:
    """All made worlds by case id."""

    def gpu(prefill: int, decode: int, kv: int) -> float:
        return 0.0065 + prefill * 2.6e-5 + decode * 1.6e-5 + kv * 2.4e-8

    def slow(prefill: int, decode: int, kv: int) -> float:
        return 0.009 + prefill * 7.2e-5 + decode * 2e-5 + kv * 2.4e-8

    def l4(prefill: int, decode: int, kv: int) -> float:
        return (8.03e9 + 131_072.0 * kv) / 265e9 + prefill * 1.6e-4

    launch = "vllm serve {model} --port 8000{flags}\n"
    made: dict[str, World] = {}
    made["case-0520"] = World(
        setup=Setup(step=gpu, pool=127_000, max_num_seqs=256, **loop(84, 5200, 900, 0.25, cached=4300)),
        warm_s=60, every_s=15, scrapes=4, model="llama-3.1-8b",
        files={"report.md": "Grafana paints the KV cache panel red all afternoon (over 90 %). Please look before I wake "
               "somebody: assistants with one long shared instruction block, users have not complained.\n"},
    )  # fmt: skip
    made["case-0521"] = World(
        setup=Setup(step=gpu, arrivals=poisson(0.5, 300, around(700), around(160)), pool=400_000),
        warm_s=60, every_s=30, scrapes=3, model="llama-3.1-8b", old={"preemptions": 412.0, "finished": 88_140.0,
        "prompt_tokens": 61_700_000.0, "generation_tokens": 14_060_000.0},
        files={"report.md": "An alert rule of ours says `num_preemptions_total > 100` on this replica and will not go away. "
               "It has been up for nine days.\n"},
    )  # fmt: skip
    made["case-0522"] = World(
        setup=Setup(step=gpu, arrivals=poisson(9.6, 400, around(420), around(260)), max_num_seqs=16, pool=62_000),
        warm_s=60, every_s=15, scrapes=5, model="qwen3-8b",
        files={"report.md": "First tokens take many seconds since we moved to the new chart. The GPU team says there is "
               "plenty of memory. No access to the start command from here, just the metrics endpoint.\n"},
    )  # fmt: skip
    made["case-0523"] = World(
        setup=Setup(step=slow, arrivals=poisson(0.3, 900, around(28_000, 0.1), around(120)), pool=700_000, budget=8192),
        warm_s=120, every_s=30, scrapes=5, model="llama-3.1-8b",
        files={"report.md": "Legal document summaries. p95 of the first token is far over what the product people promised; "
               "once it starts it is quick.\n",
               "launch.txt": launch.format(model="llama-3.1-8b", flags=" --max-model-len 40960 --max-num-batched-tokens 8192")},
    )  # fmt: skip
    made["case-0524"] = World(
        setup=Setup(step=l4, pool=91_000, max_num_seqs=256, bytes_per_step=8.03e9, bytes_per_kv_token=131_072.0,
                    flops_per_token=16.1e9, **loop(190, 60, 680, 0.3, gap=0.28)),
        warm_s=110, every_s=20, scrapes=4, model="llama-3.1-8b-fp8", mfu=True,
        files={"report.md": "One L4, Llama 3.1 8B in FP8. Users see about 15 tokens per second each, with some 190 of them at "
               "a time, and management asks for the flag that makes it 30 at the same load. Nothing queues, nothing fails.\n",
               "launch.txt": launch.format(model="llama-3.1-8b-fp8", flags=" --quantization fp8 --max-num-seqs 256 "
               "--enable-mfu-metrics"),
               "nvidia-smi.txt": "$ nvidia-smi --query-gpu=name,utilization.gpu,clocks.sm,clocks.mem,clocks_event_reasons.active "
               "--format=csv\nname, utilization.gpu [%], clocks.current.sm [MHz], clocks.current.memory [MHz], "
               "clocks_event_reasons.active\nNVIDIA L4, 100 %, 2040 MHz, 6251 MHz, 0x0000000000000000\n"},
    )  # fmt: skip
    made["case-0525"] = World(
        setup=Setup(step=slow, arrivals=poisson(2.4, 400, mixed(500, 30_000, 0.05), around(420)), pool=900_000, budget=16_384),
        warm_s=90, every_s=20, scrapes=5, model="llama-3.1-8b",
        files={"report.md": "Chat users on this replica say that the answer stops for a moment in mid-sentence, several times "
               "per answer, then goes on. Started when the report generator was pointed at the same replica.\n",
               "launch.txt": launch.format(model="llama-3.1-8b", flags=" --max-model-len 40960 --max-num-batched-tokens 16384")},
    )  # fmt: skip
    made["case-0526"] = World(
        setup=Setup(step=lambda p, d, kv: gpu(p, 6 * d, kv) + 0.009, arrivals=poisson(3.0, 400, around(600), around(300)),
                    pool=400_000, drafts=5, accept=0.16),
        warm_s=60, every_s=20, scrapes=4, model="qwen3-8b",
        files={"report.md": "We switched the drafter on for all tenants on Monday. Tokens per second per user went from 95 to "
               "about 60.\n",
               "launch.txt": launch.format(model="qwen3-8b", flags=" --speculative-config "
               "'{\"method\": \"eagle3\", \"model\": \"drafter\", \"num_speculative_tokens\": 5}'")},
    )  # fmt: skip
    made["case-0527"] = World(
        setup=Setup(step=gpu, pool=120_000, max_num_seqs=256, **loop(76, 900, 1500, 0.4)),
        warm_s=120, every_s=20, scrapes=5, model="llama-3.1-8b",
        files={"report.md": "Single answers pause for seconds in the middle. It has been like this since the morning, not "
               "better, not worse.\n"},
    )  # fmt: skip
    made["case-0528"] = World(
        setup=Setup(step=gpu, arrivals=standing(6000, 900, 220), pool=400_000, max_num_seqs=256),
        warm_s=60, every_s=30, scrapes=4, model="qwen3-8b",
        files={"report.md": "Nightly embedding-cleanup batch: 6,000 jobs are handed over at 01:00 and have until 06:00. Pager "
               "says thousands are waiting. Nobody uses this replica at night, at the present rate it ends before ten past one.\n"},
    )  # fmt: skip
    made["case-0529"] = World(
        setup=Setup(step=gpu, arrivals=poisson(0.8, 300, around(600), around(300)), pool=520_000),
        warm_s=60, every_s=30, scrapes=3, model="llama-3.1-8b",
        files={"report.md": "73 of 80 GB taken although two people use it. Is that a leak?\n",
               "nvidia-smi.txt": "$ nvidia-smi --query-gpu=name,memory.used,memory.total,utilization.gpu --format=csv\n"
               "name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]\n"
               "NVIDIA H100 80GB HBM3, 74611 MiB, 81559 MiB, 31 %\n",
               "server.log": "(EngineCore pid=311) INFO 10-03 08:00:12 [gpu_worker.py:391] Available KV cache memory: 54.71 GiB\n"
               "(EngineCore pid=311) INFO 10-03 08:00:12 [kv_cache_utils.py:2327] GPU KV cache size: 520,000 tokens\n"},
    )  # fmt: skip
    made["case-0530"] = World(
        setup=Setup(step=gpu, arrivals=poisson(4.0, 300, around(1200), around(200)), pool=400_000),
        warm_s=60, every_s=20, scrapes=4, model="qwen3-8b",
        files={"report.md": "Prefix cache hit rate of this replica is 0 % while the chat replicas show 70 %. Same image, same "
               "flags. This one translates product descriptions, each text once, the instruction is one sentence.\n"},
    )  # fmt: skip
    made["case-0531"] = World(
        setup=Setup(step=gpu, arrivals=poisson(7.5, 400, around(800), around(240)), pool=400_000),
        warm_s=60, every_s=20, scrapes=4, model="llama-3.1-8b",
        files={"report.md": "GPU-Util is 99-100 % all day, so the capacity meeting wants to order a second server. Latency as "
               "in the contract (first token under 0.5 s, 20 tokens/s).\n",
               "nvidia-smi.txt": "$ nvidia-smi --query-gpu=name,utilization.gpu,clocks.sm,temperature.gpu --format=csv\n"
               "name, utilization.gpu [%], clocks.current.sm [MHz], temperature.gpu\nNVIDIA H100 80GB HBM3, 99 %, 1980 MHz, 61\n"},
    )  # fmt: skip
    return made


def _histogram(name: str, h: Histogram, labels: str) -> list[str]:
    lines = [f"# HELP vllm:{name} Histogram of {name.replace('_', ' ')}.", f"# TYPE vllm:{name} histogram"]
    for edge, count in zip(h.edges, h.cumulative(), strict=True):
        lines.append(f'vllm:{name}_bucket{{{labels},le="{float(edge)}"}} {float(count)}')
    lines += [
        f'vllm:{name}_bucket{{{labels},le="+Inf"}} {float(h.n)}', f"vllm:{name}_count{{{labels}}} {float(h.n)}",
        f"vllm:{name}_sum{{{labels}}} {round(h.total, 6)}",
    ]  # fmt: skip
    return lines


def page(engine: Engine, world: World) -> str:
    """The exposition page of this moment."""
    labels = f'engine="0",model_name="{world.model}"'
    count = {k: engine.count.get(k, 0.0) + world.old.get(k, 0.0) for k in {*engine.count, *world.old}}

    def one(kind: str, name: str, value: float, more: str = "") -> list[str]:
        tail = "_total" if kind == "counter" else ""
        return [
            f"# HELP vllm:{name}{tail} {name.replace('_', ' ').capitalize()}.", f"# TYPE vllm:{name}{tail} {kind}",
            f"vllm:{name}{tail}{{{labels}{more}}} {float(value)}",
        ]  # fmt: skip

    lines = [f"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds {T0 - 100.0}"]
    lines += one("gauge", "num_requests_running", len(engine.running))
    lines += one("gauge", "num_requests_waiting", len(engine.waiting))
    by_reason = one("gauge", "num_requests_waiting_by_reason", len(engine.waiting), ',reason="capacity"')
    lines += [*by_reason, by_reason[-1].rsplit(" ", 1)[0].replace("capacity", "deferred") + " 0.0"]
    lines += one("gauge", "kv_cache_usage_perc", round(min(1.0, engine.used() / world.setup.pool), 6))
    for name in ("prefix_cache_queries", "prefix_cache_hits", "prompt_tokens", "generation_tokens"):
        lines += one("counter", name, count.get(name, 0.0))
    lines += one("counter", "num_preemptions", count.get("preemptions", 0.0))
    done = one("counter", "request_success", count.get("finished", 0.0), ',finished_reason="stop"')
    lines += [*done, done[-1].rsplit(" ", 1)[0].replace('"stop"', '"abort"') + " 0.0"]
    if world.mfu:
        lines += one("counter", "estimated_flops_per_gpu", count.get("flops", 0.0))
        lines += one("counter", "estimated_read_bytes_per_gpu", count.get("read_bytes", 0.0))
        lines += one("counter", "estimated_write_bytes_per_gpu", count.get("read_bytes", 0.0) / 200)
    if world.setup.drafts:
        for name, key in (
            ("drafts", "drafts"),
            ("draft_tokens", "draft_tokens"),
            ("accepted_tokens", "accepted_tokens"),
        ):
            lines += one("counter", f"spec_decode_num_{name}", count.get(key, 0.0))
        head = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
        lines.append(f"# TYPE {head} counter")
        lines += [f'{head}{{{labels},position="{i}"}} {float(n)}' for i, n in enumerate(engine.per_position)]
    for name, h in engine.hist.items():
        lines += _histogram(name, h, labels)
    info = (
        f'block_size="{world.block}",cache_dtype="auto",enable_prefix_caching="True",engine="0",'
        f'kv_cache_size_tokens="{world.setup.pool}",num_gpu_blocks="{world.setup.pool // world.block}"'
    )
    lines += ["# TYPE vllm:cache_config_info gauge", f"vllm:cache_config_info{{{info}}} 1.0"]
    return "\n".join(lines) + "\n"


def write(case: str, world: World, root: Path = CASES) -> Engine:
    """Run the model and write the world's files; returns the engine at the last scrape."""
    folder = root / case / "world"
    folder.mkdir(parents=True, exist_ok=True)
    engine = Engine(world.setup, seed=int(case[-4:]))
    times = []
    for i in range(world.scrapes):
        moment = world.warm_s + i * world.every_s
        engine.until(moment)
        name = f"metrics-{i:03d}.prom.gz"
        (folder / name).write_bytes(gzip.compress(page(engine, world).encode(), mtime=0))
        times.append({"file": name, "t_s": round(moment - world.warm_s, 2), "unix": T0 + moment, "scrape_took_s": 0.01})
    head = {"t0_unix": T0 + world.warm_s, "scrapes": times}
    (folder / "scrapes.json").write_text(json.dumps(head, indent=1) + "\n", encoding="utf-8")
    for name, text in world.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return engine


def main() -> None:
    """Write all made worlds and print their last gauges."""
    for case, world in worlds().items():
        engine = write(case, world)
        ttft, itl = engine.hist["time_to_first_token_seconds"], engine.hist["inter_token_latency_seconds"]
        print(
            f"{case} running {len(engine.running)} waiting {len(engine.waiting)} kv {engine.used() / world.setup.pool:.2f} "
            f"preemptions {engine.count.get('preemptions', 0):.0f} ttft {ttft.total / max(1, ttft.n):.2f} s "
            f"itl {1000 * itl.total / max(1, itl.n):.0f} ms finished {engine.count.get('finished', 0):.0f}"
        )


if __name__ == "__main__":
    main()
