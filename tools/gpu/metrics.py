"""Exporter pages: DCGM exporter and nvidia_gpu_exporter. The four numbers that say what limits a GPU come from DCGM."""

from __future__ import annotations

import math

from tools.contract import Problem
from tools.gpu.cells import is_blank
from tools.gpu.state import Gpu, Machine, Process, bits_of
from tools.metrics.exposition import parse_page
from tools.part import Part

PREFIXES = ("DCGM_", "nvidia_smi_", "nvidia_gpu_", "dcgm_")
# DCGM field → (ours, factor). Profiling fields are ratios 0–1, PCIe and NVLink fields bytes per second.
_DCGM = {
    "DCGM_FI_DEV_GPU_UTIL": ("util", 1.0), "DCGM_FI_DEV_MEM_COPY_UTIL": ("mem_util", 1.0),
    "DCGM_FI_DEV_SM_CLOCK": ("clock_sm", 1.0), "DCGM_FI_DEV_MEM_CLOCK": ("clock_mem", 1.0), "DCGM_FI_DEV_MAX_SM_CLOCK": ("clock_sm_max", 1.0),
    "DCGM_FI_DEV_GPU_TEMP": ("temperature", 1.0), "DCGM_FI_DEV_MEMORY_TEMP": ("temperature_memory", 1.0),
    "DCGM_FI_DEV_POWER_USAGE": ("power", 1.0), "DCGM_FI_DEV_POWER_MGMT_LIMIT": ("power_limit", 1.0),
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": ("power_limit", 1.0), "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF": ("power_default", 1.0),
    "DCGM_FI_DEV_FB_USED": ("memory_used", 1.0), "DCGM_FI_DEV_FB_TOTAL": ("memory_total", 1.0), "DCGM_FI_DEV_FB_FREE": ("memory_free", 1.0),
    "DCGM_FI_DEV_FB_RESERVED": ("memory_reserved", 1.0),
    "DCGM_FI_PROF_SM_ACTIVE": ("sm_active", 1.0), "DCGM_FI_PROF_SM_OCCUPANCY": ("sm_occupancy", 1.0),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("tensor_active", 1.0), "DCGM_FI_PROF_DRAM_ACTIVE": ("dram_active", 1.0),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("gr_active", 1.0),
    "DCGM_FI_PROF_PCIE_TX_BYTES": ("pcie_tx_bytes", 1.0), "DCGM_FI_PROF_PCIE_RX_BYTES": ("pcie_rx_bytes", 1.0),
    "DCGM_FI_PROF_NVLINK_TX_BYTES": ("nvlink_tx_bytes", 1.0), "DCGM_FI_PROF_NVLINK_RX_BYTES": ("nvlink_rx_bytes", 1.0),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": ("ecc_uncorrected", 1.0), "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": ("ecc_uncorrected_total", 1.0),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": ("remap_uncorrectable", 1.0),
    "DCGM_FI_DEV_PCIE_LINK_GEN": ("link_gen", 1.0), "DCGM_FI_DEV_PCIE_MAX_LINK_GEN": ("link_gen_max", 1.0),
    "DCGM_FI_DEV_PCIE_LINK_WIDTH": ("link_width", 1.0), "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH": ("link_width_max", 1.0),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("replays", 1.0),
    "DCGM_FI_DEV_POWER_VIOLATION": ("power_violation", 1.0), "DCGM_FI_DEV_THERMAL_VIOLATION": ("thermal_violation", 1.0),
}  # fmt: skip
_SUM = {"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"}  # fmt: skip
_MIB = 1.0 / 1048576.0
_SMI = {
    "utilization_gpu_ratio": ("util", 100.0), "utilization_memory_ratio": ("mem_util", 100.0), "temperature_gpu": ("temperature", 1.0),
    "temperature_memory": ("temperature_memory", 1.0), "power_draw_watts": ("power", 1.0), "power_draw_average_watts": ("power_average", 1.0),
    "power_draw_instant_watts": ("power_instant", 1.0), "power_limit_watts": ("power_limit", 1.0),
    "enforced_power_limit_watts": ("power_limit", 1.0), "power_default_limit_watts": ("power_default", 1.0), "power_max_limit_watts": ("power_max", 1.0),
    "clocks_current_sm_clock_hz": ("clock_sm", 1e-6), "clocks_max_sm_clock_hz": ("clock_sm_max", 1e-6),
    "clocks_current_memory_clock_hz": ("clock_mem", 1e-6), "clocks_max_memory_clock_hz": ("clock_mem_max", 1e-6),
    "memory_total_bytes": ("memory_total", _MIB), "memory_used_bytes": ("memory_used", _MIB), "memory_reserved_bytes": ("memory_reserved", _MIB),
    "pcie_link_gen_current": ("link_gen", 1.0), "pcie_link_gen_max": ("link_gen_max", 1.0), "pcie_link_width_current": ("link_width", 1.0),
    "pcie_link_width_max": ("link_width_max", 1.0), "ecc_errors_uncorrected_volatile_total": ("ecc_uncorrected", 1.0),
    "ecc_errors_uncorrected_aggregate_total": ("ecc_uncorrected_total", 1.0), "remapped_rows_uncorrectable": ("remap_uncorrectable", 1.0),
}  # fmt: skip


def read_metrics(part: Part) -> tuple[Machine, list[Problem]]:
    """One page. MIG instances are GPUs of their own (``0/2``); blank values are left out."""
    machine = Machine(ref=part.name, kind="gpu metrics")
    page = parse_page(part.lines(), wanted=PREFIXES)
    problems: list[Problem] = []
    if page.html:
        return machine, [
            Problem(
                ref=part.name, what="an HTML page, not metrics", do="scrape /metrics of the exporter", severity="error"
            )
        ]
    if page.bad:
        problems.append(
            Problem(ref=part.name, what=f"{page.bad} lines are no samples ({page.first_bad})", severity="note")
        )
    blank = 0
    for (name, pairs), sample in page.samples.items():
        labels = dict(pairs)
        if not math.isfinite(sample.value) or is_blank(sample.value):
            blank += 1
            continue
        if name.startswith("nvidia_smi_"):
            _smi(machine, name.removeprefix("nvidia_smi_"), labels, sample.value, sample.line)
        else:
            _dcgm(machine, name, labels, sample.value, sample.line)
    if blank:
        problems.append(
            Problem(ref=part.name, what=f"{blank} samples hold the placeholder for no value", severity="note")
        )
    if not machine.gpus:
        problems.append(
            Problem(ref=part.name, what="no GPU series on the page", do="scrape the DCGM exporter", severity="error")
        )
    return machine, problems


def _owner(machine: Machine, labels: dict[str, str], line: int) -> Gpu:
    key = (
        labels.get("gpu")
        or labels.get("device", "").removeprefix("nvidia")
        or labels.get("UUID")
        or labels.get("uuid", "")
    )
    part = labels.get("GPU_I_ID", "")
    gpu = machine.gpu(f"{labels['Hostname']}:{key}" if labels.get("Hostname") and _hosts(machine, labels) else key, line) if not part else (
        machine.gpu(f"{key}/{part}", line)
    )  # fmt: skip
    gpu.index = gpu.index or gpu.key
    gpu.uuid = gpu.uuid or labels.get("UUID", labels.get("uuid", ""))
    gpu.name = gpu.name or labels.get("modelName", "")
    if part:
        machine.gpu(key, line).mig = True
    return gpu


def _hosts(machine: Machine, labels: dict[str, str]) -> bool:
    """Whether another host's GPU already took this number."""
    key, uuid = labels.get("gpu", ""), labels.get("UUID", "")
    known = machine.gpus.get(key)
    return bool(known and known.uuid and uuid and known.uuid != uuid)


def _dcgm(machine: Machine, name: str, labels: dict[str, str], value: float, line: int) -> None:
    gpu = _owner(machine, labels, line)
    if name in _DCGM:
        key, factor = _DCGM[name]
        gpu.put(key, value * factor)
    elif name in _SUM:
        gpu.values["nvlink_errors"] = gpu.values.get("nvlink_errors", 0.0) + value
    elif name == "DCGM_FI_DEV_XID_ERRORS":
        code = int(value) or int(labels.get("err_code", "0") or 0)
        if code and code not in gpu.xid:
            gpu.xid.append(code)
    elif name in ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"):
        bits_of(gpu, int(value))
    elif name == "DCGM_FI_DEV_ROW_REMAP_FAILURE":
        gpu.remap_failed = value != 0
    elif name in ("DCGM_FI_DEV_ROW_REMAP_PENDING", "DCGM_FI_DEV_RETIRED_PENDING"):
        gpu.remap_pending = bool(gpu.remap_pending) or value != 0


def _smi(machine: Machine, name: str, labels: dict[str, str], value: float, line: int) -> None:
    if not labels.get("uuid"):
        return
    gpu = machine.gpu(labels["uuid"], line)
    gpu.uuid = labels["uuid"]
    reason = name.removeprefix("clocks_event_reasons_").removeprefix("clocks_throttle_reasons_")
    if name == "gpu_info":
        gpu.name, gpu.index = labels.get("name", ""), labels.get("index", "")
        machine.driver, machine.cuda = labels.get("driver_version", ""), labels.get("cuda_version", "")
    elif name in _SMI:
        key, factor = _SMI[name]
        gpu.put(key, value * factor)
    elif reason == "active":
        bits_of(gpu, int(value))
    elif name == "pstate":
        gpu.pstate = f"P{int(value)}"
    elif name == "mig_mode_current":
        gpu.mig = value != 0
    elif name == "remapped_rows_pending":
        gpu.remap_pending = value != 0
    elif name == "remapped_rows_failure":
        gpu.remap_failed = value != 0
    elif name == "compute_app_info":
        gpu.processes_known = True
        gpu.processes.append(Process(pid=labels.get("pid", ""), name=labels.get("process_name", ""), kind="C"))
    elif name == "compute_apps":
        gpu.processes_known = True
