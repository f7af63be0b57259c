"""Every GPU sample is read or refused by name; forms of one machine agree; [N/A] and ERR! are never zeros."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from knowledge.loader import load
from tools.contract import Context, ReadResult
from tools.gpu.read import read
from tools.gpu.sniff import sniff
from tools.part import Part

SHARED = Path(__file__).resolve().parents[4] / "shared"
SMI = SHARED / "samples" / "gpu-smi"
METRICS = SHARED / "samples" / "metrics"
WORLDS = SHARED / "incidents" / "worlds"
needs_samples = pytest.mark.skipif(not SMI.is_dir(), reason="the sample files beside the project are absent")


def result(path: Path) -> ReadResult:
    return read([Part(name=path.name, path=path)], Context())


def facts(path: Path, gpu: str | None = None) -> dict[str, Any]:
    return {r.fact: r.value for r in result(path).readings if gpu is None or r.labels.get("gpu", "") == gpu}


def problems(path: Path) -> str:
    return " ".join(p.line() for p in result(path).problems)


@needs_samples
def test_each_sample_is_read_or_refused_by_name() -> None:
    known = load().facts
    files = [*sorted(SMI.iterdir()), METRICS / "dcgm-valid.prom", METRICS / "nvidia_gpu_exporter-h100mig-load.prom"]
    assert len(files) > 65
    for path in files:
        part = Part(name=path.name, path=path)
        assert sniff(path.name, part.head().decode("utf-8", "replace")) >= 0.5, path.name
        got = result(path)
        assert got.readings or got.problems, path.name
        assert {r.fact for r in got.readings} <= known.keys()
        if not got.readings:
            assert path.name == "smi-rtx2080s-win591-topo.txt"
            assert "Option -m is missing its value" in problems(path)


@needs_samples
def test_the_same_card_in_every_form() -> None:
    forms = {
        form: facts(SMI / f"smi-h200-590-{form}", "0")
        for form in ("q-load.txt", "query-gpu-load.csv", "table-load.txt", "dmon-load.txt")
    }
    for form, got in forms.items():
        assert got["gpu.util"] == 100, form
        assert got["gpu.power_w"] == pytest.approx(628, abs=4), form
        assert got["gpu.loaded"] is True, form
    text, query, table = forms["q-load.txt"], forms["query-gpu-load.csv"], forms["table-load.txt"]
    for fact in ("gpu.name", "gpu.memory_total_gib", "gpu.memory_used_gib", "gpu.power_limit_w", "gpu.pstate"):
        assert text[fact] == query[fact] == table[fact]
    for fact in ("gpu.clock_ratio", "gpu.throttle_reasons", "gpu.link.degraded", "gpu.link.gen", "gpu.ecc.uncorrected", "gpu.row_remap_pending",
                 "gpu.mig_enabled", "gpu.fault", "gpu.power_limit_ratio"):  # fmt: skip
        assert text[fact] == query[fact], fact
    assert text["gpu.foreign_processes"] == table["gpu.foreign_processes"] == 3
    assert facts(SMI / "smi-h200-590-query-compute-apps-load.csv")["gpu.foreign_processes"] == 3
    assert facts(SMI / "smi-h200-590-pmon-load.txt")["gpu.foreign_processes"] == 3


@needs_samples
def test_an_idle_card_is_not_throttled_and_has_no_clock_ratio() -> None:
    got = facts(SMI / "smi-h200-590-q-idle.txt", "0")
    assert got["gpu.clock_sm_mhz"] == 345
    assert got["gpu.throttle.idle_only"] is True
    assert "gpu.clock_ratio" not in got
    assert "gpu.slow_state_under_load" not in got


@needs_samples
def test_mig_hides_utilisation_and_says_so() -> None:
    path = SMI / "smi-h100mig-590-table-load.txt"
    got = facts(path, "0")
    assert "gpu.util" not in got
    assert (got["gpu.mig_enabled"], got["gpu.mig_devices"], got["gpu.mig_sm_count"]) == (True, 4, 60)
    assert "MIG mode hides it" in problems(path)
    assert facts(SMI / "smi-h100mig-590-q-load.txt", "0")["gpu.mig_sm_count"] == 60
    assert facts(SMI / "smi-xml-a100-mig.xml", "0")["gpu.mig_devices"] == 2


@needs_samples
def test_faults_are_findings() -> None:
    reset = facts(SMI / "smi-query-requires-reset.csv", "0")
    assert reset["gpu.reset_required"] is True
    assert "gpu.util" not in reset
    assert "gpu.temperature_c" not in reset
    assert any("GPU requires reset" in e for e in reset["gpu.errors"])
    healthy = facts(SMI / "smi-query-healthy-neighbour.csv", "0")
    assert healthy["gpu.util"] == 100
    assert "gpu.fault" not in healthy, "what was not read is not healthy"
    pasted = facts(SMI / "smi-table-err-line.txt")
    assert pasted["gpu.fault"] is True
    assert pasted["gpu.memory_used_gib"] == pytest.approx(58222 / 1024, rel=1e-4)
    assert "gpu.power_w" not in pasted


@needs_samples
def test_links_and_topology() -> None:
    eight = facts(SMI / "topo-8xh100.txt")
    assert (eight["gpu.count"], eight["gpu.topology"], eight["gpu.nvlink.present"], eight["numa.gpu_nodes"]) == (
        8,
        "NVL",
        True,
        2,
    )
    two = facts(SMI / "topo-2gpu-phb.txt")
    assert (two["gpu.topology"], two["gpu.nvlink.present"]) == ("PHB", False)
    assert "gpu.topology" not in facts(SMI / "smi-h200-590-topo.txt"), "one GPU has no link to another"
    lanes = facts(SMI / "smi-h200-590-nvlink.txt")
    assert (lanes["gpu.nvlink.lanes_up"], lanes["gpu.nvlink.lanes_down"]) == (18, 0)
    assert facts(SMI / "smi-rtx2080s-610-nvlink.txt")["gpu.nvlink.present"] is False


@needs_samples
def test_exporters() -> None:
    dcgm = facts(METRICS / "dcgm-valid.prom", "0")
    assert dcgm["gpu.xid"] == [31]
    assert dcgm["gpu.xid_hardware"] is False
    assert dcgm["gpu.row_remap_failed"] is True
    assert "gpu.temperature_memory_c" not in dcgm, "2^63-14 is the placeholder for no value"
    assert facts(METRICS / "dcgm-valid.prom", "0/2")["gpu.util"] == 60
    exporter = facts(METRICS / "nvidia_gpu_exporter-h100mig-load.prom", "0")
    assert exporter["gpu.memory_total_gib"] == pytest.approx(81559 / 1024, rel=1e-3)
    assert exporter["gpu.clock_ratio"] == 1
    assert exporter["gpu.mig_enabled"] is True


@needs_samples
def test_amd() -> None:
    rocm = result(SMI / "rocm-smi-8xmi300x.txt").readings
    assert sum(r.fact == "gpu.power_limit_w" and r.value == 750 for r in rocm) == 8
    assert {r.labels["gpu"]: r.value for r in rocm if r.fact == "gpu.memory_used_ratio"}["3"] == 0.17
    old, new = facts(SMI / "amd-smi-monitor-24.7.csv"), facts(SMI / "amd-smi-monitor-25.3.csv")
    assert old["gpu.util"] == new["gpu.util"] == 10
    assert old["gpu.clock_sm_mhz"] == new["gpu.clock_sm_mhz"] == 132
    assert facts(SMI / "amd-smi-metric-usage.txt")["gpu.util"] == 45
    assert facts(SMI / "amd-smi-static-mi350x.txt")["gpu.name"] == "AMD Instinct MI350X"


@pytest.mark.skipif(not WORLDS.is_dir(), reason="the incident worlds beside the project are absent")
def test_fragments_of_public_incidents() -> None:
    capped = facts(WORLDS / "inc-028" / "nvidia-smi.txt")
    assert capped["gpu.throttle.power_cap"] is True
    assert capped["gpu.throttle.thermal"] is False
    assert (capped["gpu.clock_sm_mhz"], capped["gpu.clock_mem_mhz"], capped["gpu.pstate"]) == (705, 9501, "P2")
    assert capped["gpu.power_ratio"] == pytest.approx(0.999, abs=1e-3)
    assert facts(WORLDS / "inc-006" / "nvidia-smi-q.txt")["gpu.reset_required"] is True
    assert facts(WORLDS / "inc-038" / "lspci.txt")["pci.acs_redirect_on"] is True
    assert facts(WORLDS / "inc-038" / "nvidia-smi-topo.txt")["gpu.topology"] == "PHB"
    wiring = facts(WORLDS / "inc-044" / "topology.txt")
    assert (wiring["gpu.nvlink.present"], wiring["gpu.topology"]) == (False, "PHB")
    idle = facts(WORLDS / "inc-003" / "idle.txt")
    assert idle["host.poll_calls_per_s"] == pytest.approx(11777.7, abs=1)
    assert (idle["gpu.util"], idle["gpu.power_w"], idle["gpu.loaded"]) == (0, 11.13, False)
    assert facts(WORLDS / "inc-039" / "nvidia-smi.txt")["gpu.memory_used_ratio"] == pytest.approx(
        73e9 / 1048576 / 81920, rel=1e-3
    )
    assert facts(WORLDS / "inc-023" / "host.txt")["host.governor"] == "powersave"


@needs_samples
def test_other_kinds_are_left_alone() -> None:
    for path in (SHARED / "samples").rglob("*"):
        if (
            path.is_file()
            and path.parent.name not in ("gpu-smi", "samples")
            and "dcgm" not in path.name
            and "gpu_exporter" not in path.name
        ):
            part = Part(name=path.name, path=path)
            assert sniff(path.name, part.head().decode("utf-8", "replace")) == 0.0, path
