"""Names that nvidia-smi, NVML and excerpts use for the same quantity → our field, with the unit it is kept in.

One table serves ``--query-gpu`` columns, ``-q`` paths, XML tags and ``key value`` fragments in prose.
"""

from __future__ import annotations

import re

from tools.gpu.cells import Cell, cell, flag, in_unit
from tools.gpu.state import Gpu, bits_of

# field → (unit kept, names). Names are compared in lower case with spaces and underscores as dots.
NUMBERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "util": ("%", ("utilization.gpu", "utilization.gpu.gpu", "gpu.util", "gpu.utilization", "gpu.utilisation", "sm", "utilization.gpu.util")),
    "mem_util": ("%", ("utilization.memory", "utilization.memory.util")),
    "temperature": ("C", ("temperature.gpu", "temperature.gpu.current.temp", "temperature.gpu.temp", "temperature", "temp", "gtemp")),
    "temperature_memory": ("C", ("temperature.memory", "temperature.memory.current.temp", "temperature.memory.temp", "mtemp")),
    "power": ("W", ("power.draw", "power", "power.readings.power.draw", "gpu.power.readings.power.draw", "pwr", "power.usage")),
    "power_average": ("W", ("power.draw.average", "gpu.power.readings.average.power.draw")),
    "power_instant": ("W", ("power.draw.instant", "gpu.power.readings.instantaneous.power.draw", "gpu.power.readings.instant.power.draw")),
    "power_limit": ("W", ("power.limit", "enforced.power.limit", "power.readings.power.limit", "power.readings.enforced.power.limit",
                          "gpu.power.readings.current.power.limit", "gpu.power.readings.power.limit", "power.cap")),
    "power_default": ("W", ("power.default.limit", "power.readings.default.power.limit", "gpu.power.readings.default.power.limit")),
    "power_max": ("W", ("power.max.limit", "power.readings.max.power.limit", "gpu.power.readings.max.power.limit")),
    "clock_sm": ("MHz", ("clocks.sm", "clocks.current.sm", "clocks.sm.clock", "pclk", "sm.clock", "clock.sm", "clocks.gr", "clocks.current.graphics")),
    "clock_sm_max": ("MHz", ("clocks.max.sm", "max.clocks.sm", "max.clocks.sm.clock", "clocks.max.sm.clock")),
    "clock_mem": ("MHz", ("clocks.mem", "clocks.memory", "clocks.current.memory", "clocks.mem.clock", "mclk")),
    "clock_mem_max": ("MHz", ("clocks.max.memory", "clocks.max.mem", "max.clocks.memory", "max.clocks.mem.clock")),
    "memory_total": ("MiB", ("memory.total", "fb.memory.usage.total")),
    "memory_used": ("MiB", ("memory.used", "fb.memory.usage.used")),
    "memory_reserved": ("MiB", ("memory.reserved", "fb.memory.usage.reserved")),
    "link_gen": ("", ("pcie.link.gen.current", "pcie.link.gen.gpucurrent", "pci.gpu.link.info.pcie.generation.current",
                      "pci.pci.gpu.link.info.pcie.gen.current.link.gen")),
    "link_gen_max": ("", ("pcie.link.gen.max", "pci.gpu.link.info.pcie.generation.max", "pci.pci.gpu.link.info.pcie.gen.max.link.gen")),
    "link_width": ("", ("pcie.link.width.current", "pci.gpu.link.info.link.width.current", "pci.pci.gpu.link.info.link.widths.current.link.width")),
    "link_width_max": ("", ("pcie.link.width.max", "pci.gpu.link.info.link.width.max", "pci.pci.gpu.link.info.link.widths.max.link.width")),
    "replays": ("", ("pci.replays.since.reset", "pci.replay.counter")),
    "pcie_tx_kbs": ("KB/s", ("pci.tx.throughput", "pci.tx.util", "txpci")),
    "pcie_rx_kbs": ("KB/s", ("pci.rx.throughput", "pci.rx.util", "rxpci")),
    "ecc_uncorrected": ("", ("ecc.errors.uncorrected.volatile.total",)),
    "ecc_uncorrected_total": ("", ("ecc.errors.uncorrected.aggregate.total",)),
    "retired_double": ("", ("retired.pages.double.bit.count", "retired.pages.double.bit.ecc")),
    "remap_uncorrectable": ("", ("remapped.rows.uncorrectable", "remapped.rows.uncorrectable.error", "remapped.rows.remapped.row.unc")),
}  # fmt: skip
_BY_NAME = {name: (key, unit) for key, (unit, names) in NUMBERS.items() for name in names}
_ECC_PARTS = re.compile(
    r"ecc\.errors?(?:\.count)?\.(?:uncorrected\.(volatile|aggregate)\.(?!total)|(volatile|aggregate)(?:\.count)?\."
    r"(?:.*uncorrect|double\.bit\.total))"
)
_REASON = re.compile(r"^clocks?\.(?:event|throttle)\.reasons?\.(?:clocks?\.(?:event|throttle)\.reasons?\.)?(.*)$")
_REASONS = {
    "gpu.idle": "idle", "idle": "idle", "applications.clocks.setting": "applications_clocks", "sw.power.cap": "sw_power_cap",
    "hw.slowdown": "hw_slowdown", "hw.slowdown.hw.thermal.slowdown": "hw_thermal", "hw.thermal.slowdown": "hw_thermal",
    "hw.slowdown.hw.power.brake.slowdown": "hw_power_brake", "hw.power.brake.slowdown": "hw_power_brake", "sync.boost": "sync_boost",
    "sw.thermal.slowdown": "sw_thermal", "display.clock.setting": "display_clocks", "display.clocks.setting": "display_clocks",
}  # fmt: skip
_WORDS = {"name": "name", "product.name": "name", "gpu.name": "name", "uuid": "uuid", "gpu.uuid": "uuid", "pci.bus.id": "bus",
          "gpu.bus.id": "bus", "pci.pci.bus.id": "bus"}  # fmt: skip


def norm(name: str) -> str:
    """``Clocks Event Reasons`` / ``clocks_event_reasons`` → ``clocks.event.reasons``; a unit in brackets is dropped."""
    bare = re.sub(r"\s*\[[^\]]*\]\s*$", "", name.strip().lower())
    return re.sub(r"[ _./]+", ".", bare).strip(".")


def apply(gpu: Gpu, name: str, text: str) -> bool:
    """Write one named cell into a GPU; ``False`` when the name is not one of ours. Faults are always kept."""
    key = norm(name)
    found = cell(text)
    if found.fault:
        _fault(gpu, key, found)
        return True
    if key in _BY_NAME:
        field, unit = _BY_NAME[key]
        if found.value is None and found.text and field not in gpu.absent:
            gpu.absent.append(field)
        gpu.put(field, in_unit(found, unit))
        return True
    if key in _WORDS:
        if not found.absent:
            setattr(gpu, _WORDS[key], found.text)
        return True
    return _special(gpu, key, found)


def _fault(gpu: Gpu, key: str, found: Cell) -> None:
    if found.fault == "reset":
        gpu.reset = True
    note = f"{key}: {found.text}"
    if note not in gpu.errors and len(gpu.errors) < 20:
        gpu.errors.append(note)


def _special(gpu: Gpu, key: str, found: Cell) -> bool:
    reason = _REASON.match(key)
    if reason:
        _reason(gpu, reason[1], found)
        return True
    part = _ECC_PARTS.match(key)
    if part:
        total = "ecc_uncorrected" if "volatile" in (part[1], part[2]) else "ecc_uncorrected_total"
        if found.value is not None:
            gpu.values[total] = max(gpu.values.get(total, 0.0), found.value)
        return True
    simple = {
        "pstate": "pstate", "performance.state": "pstate", "virtualization.mode": "virtualization",
        "gpu.virtualization.mode.virtualization.mode": "virtualization", "gpu.recovery.action": "recovery", "fabric.state": "fabric",
    }.get(key)  # fmt: skip
    if simple:
        if not found.absent:
            setattr(gpu, simple, found.text)
        return True
    if key in (
        "remapped.rows.pending",
        "retired.pages.pending",
        "retired.pages.pending.page.blacklist",
        "remapped.rows.remapped.row.pending",
    ):
        gpu.remap_pending = _either(gpu.remap_pending, flag(found))
        return True
    if key in (
        "remapped.rows.failure",
        "remapped.rows.remapping.failure.occurred",
        "remapped.rows.remapped.row.failure",
    ):
        gpu.remap_failed = _either(gpu.remap_failed, flag(found))
        return True
    if key in ("mig.mode.current", "mig.mode.current.mig"):
        gpu.mig = _either(gpu.mig, flag(found))
        return True
    if key in ("gpu.reset.status.reset.required", "reset.required", "gpu.reset.status.drain.and.reset.recommended"):
        gpu.reset = _either(gpu.reset, flag(found))
        return True
    return False


def _either(known: bool | None, new: bool | None) -> bool | None:
    return known if new is None else bool(known) or new


def _reason(gpu: Gpu, name: str, found: Cell) -> None:
    if name == "active":
        if found.value is not None:
            bits_of(gpu, int(found.value))
        return
    reason = _REASONS.get(name)
    on = flag(found)
    if reason and on is not None:
        gpu.throttle_known = True
        if on:
            gpu.add_throttle(reason)
