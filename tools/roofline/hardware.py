"""Accelerators by any of the strings that drivers, exporters, engines and people use for them.

Rates are dense, in FLOP/s (INT8: OP/s); bandwidth and links in bytes/s, one way; memory in bytes. Rows come from
``knowledge/hardware``; cells marked unverified there are named in :attr:`Hardware.caveats`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from msgspec import Struct, structs

from knowledge.loader import ROOT, read_yaml, yaml_files
from tools.roofline.shape import Math, Refusal

_UNSAID = ("sxm", "pcie", "nvl", "server", "workstation", "q")
# Best share of bandwidth any kernel was seen to reach, where a part has no sweep of its own.
_BEST = {"gddr": 0.93, "hbm": 0.92}


class Hardware(Struct, frozen=True, kw_only=True):
    """One device. ``bw`` published and ``pin_bw`` pin-rate bandwidth, ``llc`` last-level cache, ``mem`` nominal and
    ``visible`` driver-visible memory (0: not known). ``peaks`` per arithmetic for expectations, ``fast`` the highest
    rate in any accumulation mode, for floors. ``count``: devices named in the text (0: none named).
    """

    id: str
    name: str
    family: str
    capability: str = ""
    mem: float
    visible: float = 0.0
    bw: float
    pin_bw: float
    llc: float = 0.0
    peaks: dict[str, float]
    fast: dict[str, float]
    link: float = 0.0
    peer_link: float = 0.0
    link_kind: str = ""
    domain: int = 1
    nvls: bool = False
    allreduce_us: dict[int, float] = {}
    eager_us: float = 0.0
    best_attn: float = 0.93
    best_gemm: float = 0.93
    best_math: dict[str, float] = {}
    fp16_only: bool = False
    shared_memory: bool = False
    unverified: tuple[str, ...] = ()
    source: str = ""
    count: int = 0
    caveats: tuple[str, ...] = ()

    def peak(self, math: Math, *, fast: bool = False) -> float:
        """FLOP/s for kernels of that arithmetic; formats the part cannot multiply run at the next wider rate.

        ``fast`` gives the most any kernel could do with such weights (4-bit weights multiplied at 8 bit, narrow
        accumulators); the plain rate takes weight-only integer formats at the 16-bit rate, as engines run them.
        """
        table = self.fast if fast else self.peaks
        wide = table.get("bf16", table.get("fp32", 0.0))
        eight = max(table.get("fp8", 0.0), table.get("int8", 0.0) if fast else 0.0, wide)
        if math == "fp32":
            return max(table.get("fp32", 0.0), wide if fast else 0.0)
        if math == "bf16":
            return wide
        if math == "int8":
            return max(table.get("int8", wide), eight) if fast else table.get("int8", wide)
        if math == "fp8":
            return eight
        if math == "fp4":
            return max(table.get("fp4", 0.0), eight)
        return eight if fast else wide

    def usable(self) -> float:
        """Bytes of memory the driver shows, the nominal figure where that is not known."""
        return self.visible or self.mem

    def ridge(self, math: Math = "bf16") -> float:
        """FLOP per byte at which compute and published bandwidth take equal time."""
        return self.peak(math) / self.bw

    def is_amd(self) -> bool:
        """Whether it runs ROCm."""
        return self.family.startswith(("cdna", "rdna"))

    def fabric(self, ranks: int) -> float:
        """Bytes/s one way that one device can move in a collective over ``ranks`` devices; PCIe when no link fits."""
        if ranks <= 1:
            return float("inf")
        if self.link and (ranks <= self.domain):
            return min(self.link, self.peer_link * (ranks - 1)) if self.peer_link else self.link
        if self.link and self.link_kind in ("nvlink", "xgmi", "ethernet", "ici") and ranks > self.domain:
            return 50e9
        return 25e9 if self.link_kind != "network" else self.link


def _gb(row: dict[str, Any], key: str, scale: float = 1e9) -> float:
    return float(row.get(key, 0.0)) * scale


def _row(row: dict[str, Any]) -> Hardware:
    plain = {m: float(row[m]) * 1e12 for m in ("fp32", "bf16", "fp8", "fp4", "int8") if row.get(m)}
    fast = {m: max(v, float(row.get(f"{m}_fast", 0.0)) * 1e12) for m, v in plain.items()}
    eff = row.get("eff", {})
    default = _BEST["gddr"] if "gddr" in row["family"] or row["family"] in ("ada", "turing", "apple") else _BEST["hbm"]
    return Hardware(
        id=row["id"],
        name=row["names"][0],
        family=row["family"],
        capability=str(row.get("capability", "")),
        mem=_gb(row, "mem_gb"),
        visible=_gb(row, "visible_mib", 2.0**20),
        bw=_gb(row, "bw_gbs"),
        pin_bw=_gb(row, "pin_bw_gbs") or _gb(row, "bw_gbs"),
        llc=_gb(row, "llc_mb", 1e6),
        peaks=plain,
        fast=fast,
        link=_gb(row, "link_gbs"),
        peer_link=_gb(row, "peer_link_gbs"),
        link_kind=row.get("link_kind", ""),
        domain=int(row.get("domain", 1)),
        nvls=bool(row.get("switch_reduction", False)),
        allreduce_us={int(k): float(v) for k, v in row.get("allreduce_us", {}).items()},
        eager_us=float(row.get("eager_call_us", 0.0)),
        best_attn=float(eff.get("attn", [default])[0]),
        best_gemm=float(eff.get("gemm", [default])[0]),
        best_math={m: float(eff[m]) for m in ("bf16", "fp8", "fp4") if m in eff},
        fp16_only=bool(row.get("fp16_only", False)),
        shared_memory=bool(row.get("shared_memory", False)),
        unverified=tuple(row.get("unverified", ())),
        source=row.get("source", ""),
    )


@lru_cache(maxsize=1)
def _rows() -> dict[str, dict[str, Any]]:
    out: dict[str, dict[str, Any]] = {}
    for path in yaml_files(ROOT, "hardware"):
        if path.stem not in ("instances", "efficiency"):
            out |= {row["id"]: row for row in read_yaml(path)}
    return out


@lru_cache(maxsize=1)
def _names() -> list[tuple[tuple[str, ...], str]]:
    """``(tokens of a name, row id)``, longest first."""
    out: list[tuple[tuple[str, ...], str]] = []
    for row in _rows().values():
        for name in (*row["names"], row["id"]):
            tokens = tuple(_tokens(name))
            out.append((tokens, row["id"]))
            if tokens[:1] == ("rtx",) and len(tokens) > 1 and re.fullmatch(r"[2-5]0\d0", tokens[1]):
                out.append((tokens[1:], row["id"]))
    return sorted(out, key=lambda item: (len(item[0]), len("".join(item[0]))), reverse=True)


def _tokens(text: str) -> list[str]:
    low = text.lower().replace("×", "x").replace("™", " ").replace("(r)", " ").replace("®", " ")
    low = re.sub(r"[^a-z0-9+]+", " ", low)
    low = re.sub(r"\b(rtx|gtx|rx|gaudi|mi)(\d)", lambda m: m[1] + ("" if m[1] == "mi" else " ") + m[2], low)
    low = re.sub(r"\b([ahvblt]\d{1,3}|h200|h100|b200|b300|gh200|gb200|gb300)(sxm\d?|pcie|nvl)\b", r"\1 \2", low)
    low = re.sub(r"\b([a-z]{1,3}\d{2,3}[a-z]?)x(\d{1,3})\b", r"\1 x\2", low)
    low = re.sub(r"\b(\d{1,3})x(?=[a-z]|\d{4}\b)", r"\1x ", low)
    low = re.sub(r"\b(\d{4})(ada|ti|super|d)\b", r"\1 \2", low)
    low = re.sub(r"\b(\d+)\s?(?:gb|gib|g)\b", r"\1gb", low)
    return [word for word in low.split() if word not in ("hbm2", "hbm2e", "gpu", "gpus", "accelerator", "accelerators")]


def _find(tokens: list[str]) -> tuple[str, tuple[str, ...]] | None:
    for name, row_id in _names():
        size = len(name)
        for start in range(len(tokens) - size + 1):
            if tuple(tokens[start : start + size]) == name:
                return row_id, name
    have = set(tokens)
    for name, row_id in _names():
        if len(name) > 1 and set(name) <= have:
            return row_id, name
    return None


_COUNT = (
    r"(?<![\w.])(\d{1,4})\s?[x*]\s?(?=[a-z]|\d{4}\b)",
    r"\s[x*]\s?(\d{1,4})(?![\w.])",
    r"[a-z]\d{2,4}[a-z]?x(\d{1,4})(?![\w.])",
    r"(?<![\w.])[a-z]\w{1,12}:(\d{1,3})$",
    r"(?<![\w.])(\d{1,4})\s+(?=(?:nvidia|amd|h\d|a\d|b\d|l\d|mi\d|rtx|gb\d|gh\d))",
    r"(?<![\w.])(\d{1,4})\s?(?:gpus?|cards|devices)\b",
)


def count_in(text: str) -> int:
    """How many devices a text names (``8x H100``, ``H100x8``, ``H100:8``), 0 when it names none."""
    low = text.lower().replace("×", "x").replace("_", " ")[:400]
    for pattern in _COUNT:
        found = re.search(pattern, low)
        if found and 0 < int(found[1]) <= 4096:
            return int(found[1])
    return 0


@lru_cache(maxsize=1024)
def hardware_from_text(text: str) -> Hardware | Refusal:
    """The device a driver, exporter, engine or person means, with the count the text names.

    Longest name first, whole words only, so that ``H20`` is never read out of ``H200``. A form factor that was not
    said is a caveat; a MIG slice is scaled; an unknown string is refused with the nearest names.
    """
    low = text.strip().lower()[:400]
    instance = next((key for key in _instances() if key in low.replace("standard_", "")), None)
    if instance:
        spec = _instances()[instance]
        part = structs.replace(_row(_rows()[spec["gpu"]]), count=int(spec["count"]))
        return structs.replace(part, caveats=(*_doubts(part), f"read from the instance type {instance}"))
    tokens = _tokens(low)
    found = _find(tokens)
    if found is None:
        near = sorted({row["names"][0] for row in _rows().values() if tokens and tokens[0] in row["id"]})[:4]
        return Refusal(
            field="gpu",
            why=f"{text.strip()[:60]!r} is no device in the hardware table"
            + (f"; near: {', '.join(near)}" if near else ""),
            do="give the name that nvidia-smi or rocm-smi prints",
        )
    row_id, name = found
    row = _rows()[row_id]
    part = _row(row)
    for size, gigabytes in row.get("variants", {}).items():
        if size in tokens:
            part = structs.replace(part, mem=float(gigabytes) * 1e9, visible=0.0)
    notes = [*_doubts(part), *([row["note"]] if row.get("note") else [])]
    base = [token for token in name if token not in ("nvidia", "80gb", "amd", "instinct")]
    stem = row_id.split("-")[0]
    others = [r for r in _rows() if r != row_id and r.split("-")[0] == stem and stem not in ("rtx", "apple")]
    said = "nvidia" in name and row_id != "h100-sxm"
    if len(base) == 1 and others and not said and not any(token.startswith(_UNSAID) for token in tokens):
        notes.append(f"form factor not stated: {part.name} taken ({', '.join(others[:3])} differ)")
    mig = re.search(r"(\d)g\.(\d{1,3})gb", low)
    if mig:
        part = _slice(part, int(mig[1]), float(mig[2]) * 1e9)
        notes.append(f"MIG slice {mig[0]}: bandwidth and compute scaled to the slice")
    return structs.replace(part, count=count_in(low), caveats=tuple(notes))


def _doubts(part: Hardware) -> tuple[str, ...]:
    if not part.unverified:
        return ()
    what = "whole row" if "all" in part.unverified else ", ".join(part.unverified)
    return (f"{part.id}: {what} not verified against the vendor's sheet",)


def _slice(part: Hardware, parts_of_seven: int, mem: float) -> Hardware:
    share = min(1.0, mem / part.mem)
    compute = parts_of_seven / 7.0
    return structs.replace(
        part,
        mem=mem,
        visible=0.0,
        bw=part.bw * share,
        pin_bw=part.pin_bw * share,
        llc=part.llc * share,
        peaks={m: v * compute for m, v in part.peaks.items()},
        fast={m: v * compute for m, v in part.fast.items()},
        link=0.0,
        domain=1,
    )


@lru_cache(maxsize=1)
def _instances() -> dict[str, dict[str, Any]]:
    data = read_yaml(ROOT / "hardware" / "instances.yaml")
    return dict(data)


def with_memory(part: Hardware, total_bytes: float) -> Hardware:
    """The same device with the memory total that a driver or log printed, which outranks the table.

    A total more than 12 % away from the row means another variant: the bandwidth is then doubtful, and said so.
    """
    notes = part.caveats
    if abs(total_bytes / part.usable() - 1.0) > 0.12:
        seen, row = total_bytes / 1e9, part.usable() / 1e9
        note = f"{seen:.0f} GB seen where {part.name} has {row:.0f}: another variant, its bandwidth may differ"
        notes = (*notes, note)
    return structs.replace(part, mem=total_bytes, visible=total_bytes, caveats=notes)


def known_ids() -> list[str]:
    """Ids of all devices in the table."""
    return list(_rows())
