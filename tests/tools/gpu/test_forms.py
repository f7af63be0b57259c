"""Forms without a sample: dmon options, dcgmi, lspci, P2P, Xid lines, lscpu; traps around idle GPUs; mutations; size."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from knowledge.loader import load
from tools.contract import Context, Problem, Reading
from tools.gpu.cells import cell, flag, is_blank
from tools.gpu.host import cpu_set
from tools.gpu.read import read
from tools.gpu.sniff import sniff
from tools.part import Part

KNOWN = load().facts


def run(*texts: str, name: str = "nvidia-smi.txt") -> list[Reading]:
    parts = [Part(name=f"{i}-{name}" if len(texts) > 1 else name, data=text.encode()) for i, text in enumerate(texts)]
    return read(parts, Context()).readings


def facts(*texts: str, name: str = "nvidia-smi.txt") -> dict[str, Any]:
    return {r.fact: r.value for r in run(*texts, name=name)}


@pytest.mark.parametrize(
    ("text", "value", "fault"),
    [("179.83 W", 179.83, ""), ("[N/A]", None, ""), ("N/A", None, ""), ("ERR!", None, "error"), ("[GPU requires reset]", None, "reset"),
     ("[Unknown Error]", None, "error"), ("[Requested functionality has been deprecated]", None, ""), ("0x00000000000001FF", 511, ""),
     ("16x", 16, ""), ("-8 C", -8, ""), ("", None, ""), ("9223372036854775794", None, ""), ("2147483632", None, "")],
)  # fmt: skip
def test_cells(text: str, value: float | None, fault: str) -> None:
    got = cell(text)
    assert (got.value, got.fault) == (value, fault)


def test_flags_and_blanks() -> None:
    assert flag(cell("Not Active")) is False
    assert flag(cell("Active")) is True
    assert flag(cell("N/A")) is None
    assert is_blank(140737488355328.0)
    assert not is_blank(2_000_000_000.0)


def test_graphics_and_sm_clock_are_one_clock() -> None:
    got = facts("index, clocks.current.graphics [MHz], clocks.current.sm [MHz]\n0, 1500 MHz, 1410 MHz\n")
    assert got["gpu.clock_sm_mhz"] == 1410
    for name in ("clocks.gr", "clocks.current.graphics"):
        assert facts(f"index, {name} [MHz], pstate\n0, 1500 MHz, P0\n")["gpu.clock_sm_mhz"] == 1500


ROWS = "0, 12 %, 20480 MiB\n1, 88 %, 40960 MiB\n"


def test_rows_without_names_take_those_of_the_command_above() -> None:
    text = (
        "$ nvidia-smi --query-gpu=index,utilization.gpu,memory.used --format=csv,noheader -l 2   # under load\n" + ROWS
    )
    assert sniff("smi.txt", text) > 0.9
    assert [(r.labels["gpu"], r.value) for r in run(text) if r.fact == "gpu.util"] == [("0", 12), ("1", 88)]
    named = text.replace("\n0", "\nindex, utilization.gpu [%], memory.used [MiB]\n0", 1)
    assert [r.value for r in run(named) if r.fact == "gpu.util"] == [12, 88]
    assert sniff("report.md", "We watched it with nvidia-smi --query-gpu=index,utilization.gpu -l 1 all day.\n") < 0.9


def test_a_pending_remap_is_a_fault() -> None:
    rows = "    Remapped Rows\n        Correctable Error : 0\n        Uncorrectable Error : {n}\n        Pending : {p}\n        Remapping Failure Occurred : No\n"
    log = "==============NVSMI LOG==============\nGPU 00000000:17:00.0\n"
    assert facts(log + rows.format(n=3, p="Yes"))["gpu.fault"] is True
    assert facts(log + rows.format(n=3, p="No"))["gpu.fault"] is False


def test_dmon_with_options_and_units() -> None:
    text = """\
#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk  pviol  tviol  rxpci  txpci
#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %    MHz    MHz      %   bool   MB/s   MB/s
 20260703   22:11:09      0    300     61      -     98     40   2619   1200     80      0   5200    300
 20260703   22:11:10      0    300     62      -    100     42   2619   1180     90      0   5000    280
"""
    rows = run(text)
    got = {r.fact: r for r in rows}
    assert got["gpu.util"].value == 99
    assert got["gpu.util"].method == "mean of 2 samples, 98 to 100"
    assert got["gpu.throttle.power_cap"].value is True
    assert got["gpu.throttle.thermal"].value is False
    assert got["gpu.power_violation_pct"].value == 85
    assert got["gpu.pcie_gbs"].value == pytest.approx(5.0)
    assert got["gpu.clock_sm_mhz"].value == 1190


def test_the_four_hardware_numbers_of_dcgmi() -> None:
    text = """\
#Entity   SMACT        SMOCC        TENSO        DRAMA        PCITX        PCIRX
ID
GPU 0     0.910        0.220        0.060        0.830        1200000000   300000000
GPU 0     0.930        0.220        0.080        0.850        1000000000   300000000
GPU 1     0.100        0.020        0.000        0.010        1000         1000
"""
    rows = {(r.fact, r.labels["gpu"]): r.value for r in run(text) if r.labels}
    assert rows[("gpu.sm_active", "0")] == pytest.approx(0.92)
    assert rows[("gpu.dram_active", "0")] == pytest.approx(0.84)
    assert rows[("gpu.tensor_active", "0")] == pytest.approx(0.07)
    assert rows[("gpu.pcie_gbs", "0")] == pytest.approx(1.0)
    assert rows[("gpu.loaded", "1")] is True


def test_exporter_pages_over_time_show_throttling() -> None:
    page = 'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="a"}} 99\nDCGM_FI_DEV_POWER_VIOLATION{{gpu="0",UUID="a"}} {}\nDCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{gpu="0",UUID="a"}} 0.42\n'
    still = facts(page.format(100), page.format(100), name="dcgm.prom")
    assert still["gpu.throttle.power_cap"] is False
    assert facts(page.format(100), page.format(900), name="dcgm.prom")["gpu.throttle.power_cap"] is True
    alone = facts(page.format(900), name="dcgm.prom")
    assert "gpu.throttle.power_cap" not in alone, "a counter since boot says nothing about now"
    assert alone["gpu.tensor_active"] == 0.42


def test_a_throttle_mask() -> None:
    got = facts(
        'DCGM_FI_DEV_CLOCKS_EVENT_REASONS{gpu="0",UUID="a"} 136\nDCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="a"} 90\n',
        name="dcgm.prom",
    )
    assert got["gpu.throttle_reasons"] == ["hw_power_brake", "hw_slowdown"]
    assert got["gpu.throttle.power_brake"] is True


LSPCI = """\
40:01.1 PCI bridge: Advanced Micro Devices, Inc. [AMD] Starship/Matisse GPP Bridge
\tCapabilities: [2a0 v1] Access Control Services
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir{0} CmpltRedir{0} UpstreamFwd+
41:00.0 3D controller: NVIDIA Corporation AD102GL [RTX 5880 Ada Generation] (rev a1)
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L1, Exit Latency L1 <4us
\t\tLnkSta:\tSpeed {1}GT/s{2}, Width x{3}{4}
"""


def test_lspci_acs_and_links() -> None:
    good = facts(LSPCI.format("-", 16, "", 16, ""), name="lspci.txt")
    assert (good["pci.acs_redirect_on"], good["gpu.link.degraded"], good["gpu.link.gen"]) == (False, False, 4)
    assert "pci.narrow_links" not in good
    bad = facts(LSPCI.format("+", 16, "", 8, " (downgraded)"), name="lspci.txt")
    assert (bad["pci.acs_redirect_on"], bad["gpu.link.degraded"], bad["gpu.link.width"]) == (True, True, 8)
    assert bad["pci.narrow_links"][0].startswith("41:00.0 x8 of x16")
    asleep = facts(LSPCI.format("-", "2.5", " (downgraded)", 16, ""), name="lspci.txt")
    assert "gpu.link.degraded" not in asleep, "an idle GPU lowers its speed: nothing can be said"


def test_a_narrow_link_counts_always_and_a_slow_one_only_under_load() -> None:
    head = "index, utilization.gpu [%], pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current, pcie.link.width.max\n"
    assert facts(head + "0, 0 %, 1, 4, 16, 16\n").get("gpu.link.degraded") is None
    assert facts(head + "0, 99 %, 1, 4, 16, 16\n")["gpu.link.degraded"] is True
    assert facts(head + "0, 0 %, 4, 4, 4, 16\n")["gpu.link.degraded"] is True


def test_p2p_matrix_says_why() -> None:
    text = " \tGPU0\tGPU1\t\n GPU0\tX\tCNS\t\n GPU1\tCNS\tX\t\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not supported\n"
    assert sniff("topo-p2p.txt", text) > 0.9
    got = facts(text, name="topo-p2p.txt")
    assert (got["gpu.p2p_status"], got["gpu.p2p_ok"]) == ("CNS", False)


def test_topology_with_network_cards_and_mixed_links() -> None:
    text = """\
        GPU0    GPU1    GPU2    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID
GPU0     X      NV4     SYS     PIX     0-31    0               N/A
GPU1    NV4      X      SYS     SYS     0-31    0               N/A
GPU2    SYS     SYS      X      SYS     32-63   1               N/A
NIC0    PIX     SYS     SYS      X
"""
    got = facts(text, "policy: bind\npreferred node: 0\nphyscpubind: 0 1 2 3\nnodebind: 0\n", name="topo.txt")
    assert (got["gpu.topology"], got["gpu.nvlink.present"], got["numa.gpu_nodes"]) == ("SYS", True, 2)
    assert got["numa.gpu_cpu_mismatch"] is True
    row = "|    {n}   N/A  N/A            10{n}      C   VLLM::Worker_TP{n}                     40000MiB |\n"
    two = facts(text, row.format(n=0) + row.format(n=1), name="topo.txt")
    assert two["gpu.topology"] == "NVL", "the third GPU holds no engine process"
    assert cpu_set("0-2,8,x") == {0, 1, 2, 8}


def test_nvlink_with_a_lane_down() -> None:
    text = "GPU 0: NVIDIA A100 (UUID: GPU-1)\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>\n\t Link 2: 25 GB/s\n"
    got = facts(text, name="nvlink.txt")
    assert (got["gpu.nvlink.lanes_up"], got["gpu.nvlink.lanes_down"], got["gpu.nvlink.present"]) == (2, 1, True)


def test_kernel_log_lines_and_failed_tools() -> None:
    got = facts("[12.3] NVRM: Xid (PCI:0000:17:00): 79, pid=1234, GPU has fallen off the bus.\n", name="gpu-state.txt")
    assert (got["gpu.xid"], got["gpu.xid_hardware"], got["gpu.fault"]) == ([79], True, True)
    failed = facts("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n")
    assert failed["gpu.fault"] is True
    assert "gpu.util" not in failed


def test_whole_tables_over_time_keep_every_sample() -> None:
    row = "|   0  NVIDIA L4                      On  |   00000000:00:03.0 Off |                    0 |\n| N/A   {t}C    P0             72W /   72W |   20000MiB /  23034MiB |    {u}%      Default |\n"
    got = {r.fact: r for r in run(row.format(t=80, u=90) + row.format(t=84, u=100))}
    assert got["gpu.util"].value == 95
    assert got["gpu.temperature_c"].value == 84
    assert got["gpu.power_ratio"].value == 1
    assert got["gpu.ecc.uncorrected"].value == 0


def test_engine_and_foreign_processes() -> None:
    rows = """\
| Processes:                                                                              |
|    0   N/A  N/A            100      C   VLLM::EngineCore                      40000MiB |
|    0   N/A  N/A            200      C   /opt/train/other_job                   9000MiB |
|    0   N/A  N/A            300      G   /usr/lib/xorg/Xorg                       10MiB |
"""
    got = {r.fact: r for r in run(rows)}
    assert got["gpu.foreign_processes"].value == 1
    assert "other_job" in got["gpu.foreign_processes"].method
    assert got["gpu.desktop_processes"].value == 1


def test_utf16_of_powershell() -> None:
    text = "index, utilization.gpu [%], memory.used [MiB]\n0, 7 %, 1296 MiB\n"
    got = {
        r.fact: r.value
        for r in read([Part(name="smi.csv", data=b"\xff\xfe" + text.encode("utf-16-le"))], Context()).readings
    }
    assert got["gpu.util"] == 7


def test_host_basics() -> None:
    text = """\
Architecture:                       x86_64
CPU(s):                             64
Model name:                         AMD EPYC 7R13 Processor
Hypervisor vendor:                  KVM
Virtualization type:                full
NUMA node(s):                       2
CPU MHz:                            2650.000
  The governor "powersave" may decide which speed to use
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 81.00    0.100000           2     35333           ppoll
 10.00    0.010000           2       333        12 futex
"""
    got = facts(text, name="host.txt")
    assert (got["host.governor"], got["host.virtualised"], got["host.cpu_count"], got["numa.nodes"]) == (
        "powersave",
        True,
        64,
        2,
    )
    assert got["host.syscalls_top"][0] == "81.0 % ppoll (35333 calls)"


Q = """\
GPU 0000000{n}:00:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    MIG Mode
        Current                           : Disabled
    Clocks Event Reasons
        Idle                              : Not Active
        HW Slowdown                       : Active
            HW Thermal Slowdown           : Active
            HW Power Brake Slowdown       : Not Active
        SW Power Cap                      : Not Active
    Utilization
        GPU                               : 97 %
    ECC Errors
        Volatile
            SRAM Uncorrectable Parity     : 0
            DRAM Uncorrectable            : 3
    Remapped Rows
        Pending                           : Yes
    Clocks
        SM                                : 900 MHz
    Max Clocks
        SM                                : 1980 MHz
    Processes
        Process ID                        : 1{n}
            Type                          : C
            Name                          : VLLM::Worker_TP{n}
            Used GPU Memory               : 70000 MiB
"""


def test_eight_gpus_in_one_tree() -> None:
    text = "==============NVSMI LOG==============\nDriver Version : 590.1\nAttached GPUs : 8\n" + "".join(
        Q.format(n=n) for n in range(8)
    )
    rows = run(text)
    by = {(r.fact, r.labels.get("gpu", "")): r for r in rows}
    assert by[("gpu.count", "")].value == 8
    for n in range(8):
        assert by[("gpu.throttle.thermal", str(n))].value is True
        assert by[("gpu.throttle.power_brake", str(n))].value is False
        assert by[("gpu.clock_ratio", str(n))].value == pytest.approx(900 / 1980, rel=1e-4)
        assert by[("gpu.ecc.uncorrected", str(n))].value == 3
        assert by[("gpu.row_remap_pending", str(n))].value is True
        assert by[("gpu.processes", str(n))].value == [f"1{n} C VLLM::Worker_TP{n} 70000 MiB"]
    assert by[("gpu.name", "7")].source.line == 4 + 7 * Q.count("\n")


def test_time_is_linear_in_size() -> None:
    head = "==============NVSMI LOG==============\n"
    spent = []
    for copies in (40, 160):
        text = head + "".join(Q.format(n=n % 10) for n in range(copies)) * 4
        begin = time.process_time()
        run(text)
        spent.append(time.process_time() - begin)
    assert spent[1] < 10 * spent[0] + 0.2, spent


SEEDS = [Q.format(n=1), LSPCI.format("+", 16, "", 8, ""), "index, utilization.gpu [%], power.draw [W]\n0, 7 %, 97.43 W\n1, [N/A], ERR!\n",
         "# gpu pwr sm pclk\n# Idx W % MHz\n 0 70 - 345\n", "GPU0 X PHB\nGPU1 PHB X\n", 'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 80\n' * 2,
         "<?xml version='1.0'?><nvidia_smi_log><gpu id='0'><utilization><gpu_util>7 %</gpu_util></utilization></gpu></nvidia_smi_log>",
         "GPU: 0\n    USAGE:\n        GFX_ACTIVITY: 45 %\n", "power.draw 179.83 W, power.limit 180 W, pstate P2\nSW power cap active\n"]  # fmt: skip


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.sampled_from(SEEDS),
    edits=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=8), st.integers(0, 30)), max_size=6),
    cut=st.floats(0.1, 1),
)
def test_mutated_files_never_crash(seed: str, edits: list[tuple[float, bytes, int]], cut: float) -> None:
    data = seed.encode()
    for place, new, gone in edits:
        at = int(place * len(data))
        data = data[:at] + new + data[at + gone :]
    got = read([Part(name="nvidia-smi.txt", data=data[: int(len(data) * cut)])], Context())
    assert all(r.fact in KNOWN for r in got.readings)
    assert all(isinstance(p, Problem) and p.what for p in got.problems)
    assert got.readings or got.problems


@pytest.mark.parametrize("shape", [b"| " * 40_000, b"GPU0 " * 30_000, b"<nvidia_smi_log>" + b"<a>" * 20_000, b"power.draw " * 20_000,
                                   b"a, " * 30_000 + b"\n" + b"1, " * 30_000, b"{" * 60_000, b"[" * 60_000])  # fmt: skip
def test_hostile_shapes_are_quick(shape: bytes) -> None:
    begin = time.process_time()
    sniff("nvidia-smi.txt", shape[:65536].decode())
    read([Part(name="nvidia-smi.txt", data=shape)], Context())
    assert time.process_time() - begin < 1.5
