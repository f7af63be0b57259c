"""GPU state → readings. What was not printed, or printed as ``[N/A]``, yields no reading."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

import knowledge
from knowledge.loader import read_yaml
from tools.contract import Reading, Source
from tools.gpu.state import Gpu, Machine, Process

UTIL_NOTE = "share of time with any kernel resident: says nothing about how well the GPU is used"
MEMORY_UTIL_NOTE = "share of time with any memory access: no bandwidth reading"
IDLE_NOTE = "read on an idle GPU, where clocks and links are lowered to save power"
_PLAIN = {
    # field: (fact, how several samples become one, factor)
    "util": ("gpu.util", "mean", 1.0), "mem_util": ("gpu.memory_util", "mean", 1.0),
    "sm_active": ("gpu.sm_active", "mean", 1.0), "sm_occupancy": ("gpu.sm_occupancy", "mean", 1.0),
    "tensor_active": ("gpu.tensor_active", "mean", 1.0), "dram_active": ("gpu.dram_active", "mean", 1.0), "gr_active": ("gpu.gr_active", "mean", 1.0),
    "power_limit": ("gpu.power_limit_w", "last", 1.0), "power_default": ("gpu.power_default_w", "last", 1.0),
    "clock_sm": ("gpu.clock_sm_mhz", "mean", 1.0), "clock_sm_max": ("gpu.clock_sm_max_mhz", "last", 1.0),
    "clock_mem": ("gpu.clock_mem_mhz", "mean", 1.0), "clock_mem_max": ("gpu.clock_mem_max_mhz", "last", 1.0),
    "temperature": ("gpu.temperature_c", "max", 1.0), "temperature_memory": ("gpu.temperature_memory_c", "max", 1.0),
    "ecc_uncorrected": ("gpu.ecc.uncorrected", "last", 1.0), "ecc_uncorrected_total": ("gpu.ecc.uncorrected_total", "last", 1.0),
    "remap_uncorrectable": ("gpu.row_remap_uncorrectable", "last", 1.0),
    "replays": ("gpu.pcie_replays", "last", 1.0), "nvlink_errors": ("gpu.nvlink.errors", "last", 1.0),
    "link_gen": ("gpu.link.gen", "last", 1.0), "link_gen_max": ("gpu.link.max_gen", "last", 1.0),
    "link_width": ("gpu.link.width", "last", 1.0), "link_width_max": ("gpu.link.max_width", "last", 1.0),
    "power_violation_pct": ("gpu.power_violation_pct", "mean", 1.0),
}  # fmt: skip
_NOTES = {"util": UTIL_NOTE, "mem_util": MEMORY_UTIL_NOTE}


@lru_cache(maxsize=1)
def _lists() -> dict[str, re.Pattern[str]]:
    table = read_yaml(Path(knowledge.__file__).parent / "kernels" / "processes.yaml")
    return {key: re.compile("|".join(f"(?:{p})" for p in patterns), re.I) for key, patterns in table.items()}


@lru_cache(maxsize=1)
def _xids() -> dict[int, tuple[str, str]]:
    table = read_yaml(Path(knowledge.__file__).parent / "kernels" / "xid.yaml")
    return {row["xid"]: (row["class"], row["means"]) for row in table}


class Emit:
    """Readings of one machine, with file and line."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.out: list[Reading] = []

    def add(
        self,
        fact: str,
        value: Any,
        method: str,
        line: int = 0,
        labels: dict[str, str] | None = None,
        caveats: tuple[str, ...] = (),
    ) -> None:
        """One reading; ``None`` is none."""
        if value is None:
            return
        if isinstance(value, float):
            value = int(value) if value.is_integer() and abs(value) < 1e15 else float(f"{value:.6g}")
        source = Source(kind="file", ref=self.machine.ref, line=line)
        self.out.append(
            Reading(fact=fact, value=value, source=source, method=method, labels=labels or {}, caveats=caveats)
        )


def gpu_readings(machine: Machine) -> list[Reading]:
    """Readings of all GPUs of a part."""
    emit = Emit(machine)
    whole = [g for g in machine.gpus.values() if "/" not in g.key]
    named = [g for g in whole if g.key]
    if machine.attached is not None or (named and machine.kind not in ("nvidia-smi --query", "excerpt")):
        emit.add("gpu.count", machine.attached or len(named), f"GPUs in {machine.kind}", named[0].line if named else 0)
    if machine.driver:
        emit.add("gpu.driver", machine.driver, f"driver version in {machine.kind}")
    if machine.cuda:
        emit.add("gpu.cuda", machine.cuda, f"CUDA version in {machine.kind}")
    for position, gpu in enumerate(machine.gpus.values()):
        _gpu(emit, gpu, position)
    return emit.out


def label_of(gpu: Gpu, position: int) -> dict[str, str]:
    """The GPU's index where known, else its place in the listing."""
    if not gpu.key:
        return {}
    return {"gpu": gpu.index or (gpu.key if "/" in gpu.key else str(position))}


def value_of(gpu: Gpu, field: str, how: str) -> tuple[float, str] | None:
    """One number from the samples of a field, and how."""
    if field not in gpu.values:
        return None
    rows = gpu.lists.get(field) or [gpu.values[field]]
    if len(rows) == 1 or how == "last":
        return gpu.values[field], "as printed" if len(rows) == 1 else f"last of {len(rows)} samples"
    value = max(rows) if how == "max" else sum(rows) / len(rows)
    return value, f"{how} of {len(rows)} samples, {min(rows):g} to {max(rows):g}"


def _gpu(emit: Emit, gpu: Gpu, position: int) -> None:
    labels = label_of(gpu, position)

    def add(fact: str, value: Any, method: str, caveats: tuple[str, ...] = ()) -> None:
        emit.add(fact, value, method, gpu.line, labels, caveats)

    loaded = gpu.loaded()
    idle = (IDLE_NOTE,) if loaded is False else ()
    add("gpu.name", gpu.name or None, "product name")
    for field, (fact, how, factor) in _PLAIN.items():
        found = value_of(gpu, field, how)
        if found:
            note = (_NOTES[field],) if field in _NOTES else ()
            add(fact, found[0] * factor, found[1], note + (idle if field.startswith(("clock", "link")) else ()))
    if loaded is not None:
        add("gpu.loaded", loaded, "utilisation of at least 10 %, or the idle reason")
    _power_and_clocks(add, gpu, loaded, idle)
    _memory(add, gpu)
    _links(add, gpu, loaded)
    _throttle(add, gpu)
    _faults(add, gpu)
    _sharing(add, gpu)


def _power_and_clocks(add: Any, gpu: Gpu, loaded: bool | None, idle: tuple[str, ...]) -> None:
    power = next(
        (v for v in (value_of(gpu, f, "mean") for f in ("power", "power_average", "power_instant")) if v), None
    )
    limit, default = gpu.values.get("power_limit"), gpu.values.get("power_default")
    if power:
        add("gpu.power_w", power[0], power[1], idle)
        if limit and loaded is not False:
            add("gpu.power_ratio", power[0] / limit, f"{power[0]:g} W of {limit:g} W")
    if limit and default:
        add("gpu.power_limit_ratio", limit / default, f"limit {limit:g} W of default {default:g} W")
    for now, top, fact in (
        ("clock_sm", "clock_sm_max", "gpu.clock_ratio"),
        ("clock_mem", "clock_mem_max", "gpu.clock_mem_ratio"),
    ):
        found = value_of(gpu, now, "mean")
        most = gpu.values.get(top)
        if found and most and loaded is not False:
            unsure = () if loaded else ("whether the GPU was under load is not known",)
            add(fact, found[0] / most, f"{found[0]:g} MHz of {most:g} MHz", unsure)
    state = re.match(r"P(\d+)$", gpu.pstate)
    if gpu.pstate:
        add("gpu.pstate", gpu.pstate, "performance state", idle)
    if state and loaded:
        add("gpu.slow_state_under_load", int(state[1]) >= 3, f"{gpu.pstate} while busy")


def _memory(add: Any, gpu: Gpu) -> None:
    values = gpu.values
    total = values.get("memory_total")
    used = values.get("memory_used")
    if total is None and used is not None and "memory_free" in values:
        total = used + values["memory_free"] + values.get("memory_reserved", 0.0)
    if total:
        add("gpu.memory_total_gib", total / 1024.0, f"{total:g} MiB")
    if used is not None:
        add("gpu.memory_used_gib", used / 1024.0, f"{used:g} MiB")
    reserve = ("an engine takes its share at start: a full GPU is no leak by itself",)
    if total and used is not None:
        add("gpu.memory_used_ratio", used / total, f"{used:g} of {total:g} MiB", reserve)
    elif "memory_pct" in values:
        add("gpu.memory_used_ratio", values["memory_pct"] / 100.0, "as printed in percent", reserve)


def _links(add: Any, gpu: Gpu, loaded: bool | None) -> None:
    values = gpu.values
    rates = [values[k] / 1e9 for k in ("pcie_tx_bytes", "pcie_rx_bytes") if k in values]
    rates += [values[k] / 1e6 for k in ("pcie_tx_kbs", "pcie_rx_kbs") if k in values]
    if rates:
        add("gpu.pcie_gbs", max(rates), "the busier direction")
    rates = [values[k] / 1e9 for k in ("nvlink_tx_bytes", "nvlink_rx_bytes") if k in values]
    if rates:
        add("gpu.nvlink_gbs", max(rates), "the busier direction")
    width, width_max = values.get("link_width"), values.get("link_width_max")
    gen, gen_max = values.get("link_gen"), values.get("link_gen_max")
    if width and width_max and width < width_max:
        add("gpu.link.degraded", True, f"x{width:g} of x{width_max:g}")
    elif gen and gen_max and gen < gen_max:
        if loaded:
            add("gpu.link.degraded", True, f"generation {gen:g} of {gen_max:g} under load")
    elif width and width_max and gen and gen_max:
        add("gpu.link.degraded", False, f"x{width:g} generation {gen:g}, both at their maximum")
    if gpu.links_up is not None:
        add("gpu.nvlink.present", gpu.links_up > 0, f"{gpu.links_up} NVLink lanes up")
        add("gpu.nvlink.lanes_up", gpu.links_up, "links with a speed")
        if gpu.links_up and gpu.links_down is not None:
            add("gpu.nvlink.lanes_down", gpu.links_down, "links marked inactive")


def _throttle(add: Any, gpu: Gpu) -> None:
    if not gpu.throttle_known:
        return
    reasons = set(gpu.throttle)
    add("gpu.throttle_reasons", sorted(reasons) or ["none"], "reasons marked active")
    add("gpu.throttle.power_cap", "sw_power_cap" in reasons, "SW power cap")
    add("gpu.throttle.thermal", bool(reasons & {"sw_thermal", "hw_thermal"}), "SW or HW thermal slowdown")
    add("gpu.throttle.power_brake", "hw_power_brake" in reasons, "HW power brake")
    add(
        "gpu.throttle.hw_slowdown",
        bool(reasons & {"hw_slowdown", "hw_thermal", "hw_power_brake"}),
        "HW slowdown of any kind",
    )
    add("gpu.throttle.locked_clocks", "applications_clocks" in reasons, "applications clocks setting")
    add("gpu.throttle.idle_only", reasons == {"idle"}, "idle is the only reason")


def _faults(add: Any, gpu: Gpu) -> None:
    if gpu.errors:
        add("gpu.errors", gpu.errors, "cells that the tool printed as errors")
    add("gpu.reset_required", gpu.reset, "reset status")
    add("gpu.row_remap_pending", gpu.remap_pending, "remapped rows or retired pages")
    add("gpu.row_remap_failed", gpu.remap_failed, "remapping failure")
    if gpu.xid:
        known = _xids()
        text = "; ".join(f"{code}: {known[code][1]}" for code in gpu.xid if code in known) or "codes without an entry"
        add("gpu.xid", gpu.xid, text, ("the exporter keeps the last code, however old",) if gpu.uuid else ())
        add("gpu.xid_hardware", any(known.get(code, ("", ""))[0] in ("hardware", "link") for code in gpu.xid), text)
    if gpu.recovery:
        add("gpu.recovery_action", gpu.recovery, "GPU recovery action")
    if gpu.fabric:
        add("gpu.fabric_state", gpu.fabric, "fabric state")
    told = [gpu.reset, gpu.remap_failed, gpu.remap_pending, bool(gpu.errors) or None]
    known_state = [flag for flag in told if flag is not None]
    ecc = gpu.values.get("ecc_uncorrected")
    if known_state or ecc is not None:
        add(
            "gpu.fault",
            any(known_state) or bool(ecc),
            "reset required, error cells, pending or failed remapping, or uncorrected errors since boot",
        )


def _sharing(add: Any, gpu: Gpu) -> None:
    add("gpu.mig_enabled", gpu.mig, "MIG mode")
    if gpu.mig_devices:
        add("gpu.mig_devices", gpu.mig_devices, "MIG instances listed")
    if gpu.mig_sms:
        add("gpu.mig_sm_count", max(gpu.mig_sms), f"multiprocessors of the largest of {len(gpu.mig_sms)} instances")
    if gpu.virtualization:
        add("gpu.virtualization", gpu.virtualization, "virtualization mode")
    if not gpu.processes_known:
        return
    rows = [
        f"{p.pid} {p.kind} {p.name} {p.memory:g} MiB" if p.memory is not None else f"{p.pid} {p.kind} {p.name}"
        for p in gpu.processes[:40]
    ]
    if rows:
        add("gpu.processes", rows, "process list")
    strangers = [p for p in gpu.processes if kind_of(p) == "foreign"]
    add(
        "gpu.foreign_processes",
        len(strangers),
        ", ".join(sorted({p.name for p in strangers}))[:160] or "none outside the engine",
    )
    desktop = [p for p in gpu.processes if kind_of(p) == "desktop"]
    add("gpu.desktop_processes", len(desktop), "graphics processes")


def kind_of(process: Process) -> str:
    """``engine`` (also monitors and unnamed ones), ``desktop`` or ``foreign``."""
    lists = _lists()
    if process.kind == "G" or lists["desktop"].search(process.name):
        return "desktop"
    if lists["monitor"].search(process.name) or lists["engine"].search(process.name) or not process.name:
        return "engine"
    return "desktop" if "+G" in process.kind else "foreign"
