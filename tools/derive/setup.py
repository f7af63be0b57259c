"""What is derived of the set-up around the engine: blocks of a prefix, replicas seen, CPU granted, transports allowed."""

from __future__ import annotations

from tools.contract import Reading
from tools.derive.base import computed, first
from tools.view import Evidence, Ledger


def shared_blocks(ledger: Ledger) -> list[Reading]:
    """What prompts share over one KV block: only whole blocks are cached, so less than one can never be found."""
    shared = ledger.num("said.shared_tokens")
    named = [e for e in ledger.of("said.setting") if e.labels.get("name") == "block_size"]
    found = first(ledger, "log.attention_block_tokens", "said.block_tokens")
    block: tuple[str | Evidence, float] | None = found or next(
        ((e, e.value) for e in named if isinstance(e.value, int | float)), None
    )
    block = block or first(ledger, "config.block_size")
    if not shared or not block or block[1] <= 0:
        return []
    method = f"{shared:g} shared tokens ÷ block of {block[1]:g}"
    return [computed("prefix.shared_over_block", shared / block[1], method, ledger, "said.shared_tokens", block[0])]


# Load of the fullest over the average below which nobody would call it uneven.
EVEN = 1.15


def replicas(ledger: Ledger) -> list[Reading]:
    """Whether load is even over all replicas: two ranks of eight say nothing of the other six."""
    count, load = ledger.num("replicas.count"), ledger.num("replicas.load_max_over_mean")
    if count is None or load is None or count < 2:
        return []
    size = ledger.num("config.data_parallel_size")
    if size is not None and size > count and ledger.value("replicas.are_ranks") is True:
        method = f"{size:g} data-parallel ranks configured, {count:g} seen"
        return [
            computed("replicas.unseen", size - count, method, ledger, "config.data_parallel_size", "replicas.count")
        ]
    method = f"most loaded ÷ average {load:.3g} of {count:g}, against {EVEN}"
    return [computed("replicas.even", load < EVEN, method, ledger, "replicas.load_max_over_mean", "replicas.count")]


def cpu_quota(ledger: Ledger) -> list[Reading]:
    """CPU cores in use over the cores granted, of one side of a comparison: at 1 the kernel holds the process back."""
    out: list[Reading] = []
    limits = [e for e in ledger.of("said.cpu_limit") if isinstance(e.value, int | float) and e.value > 0]
    granted = ledger.num("config.cpu_limit_cores")
    for used in ledger.of("said.cpu_cores"):
        if not isinstance(used.value, int | float):
            continue
        marks = {k: v for k, v in used.labels.items() if k != "metric"}
        same = [e for e in limits if marks == {k: v for k, v in e.labels.items() if k != "metric"}]
        limit = same[0].value if same else granted
        if limit:
            method = f"{used.value:g} cores in use ÷ {limit:g} granted"
            by = same[0] if same else "config.cpu_limit_cores"
            out.append(computed("host.cpu.quota_share", used.value / limit, method, ledger, used, by))
    return out


# Transports of UCX over sockets and host memory.
_SLOW = {"tcp", "self", "sm", "shm", "mm", "posix", "sysv", "cma", "knem", "xpmem"}


def transports(ledger: Ledger) -> list[Reading]:
    """Whether UCX may use nothing but sockets and host memory: no GPU peer copy, no RDMA."""
    allowed = ledger.value("config.env.ucx_tls")
    if not isinstance(allowed, str) or not allowed.strip():
        return []
    slow = {name.strip().lower() for name in allowed.split(",")} <= _SLOW
    return [computed("config.ucx_slow_only", slow, f"UCX_TLS={allowed}", ledger, "config.env.ucx_tls")]
