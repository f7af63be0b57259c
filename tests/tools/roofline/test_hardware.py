"""Device strings as drivers, exporters, engines and people print them."""

from __future__ import annotations

import pytest

from tools.roofline.hardware import Hardware, count_in, hardware_from_text, known_ids, with_memory
from tools.roofline.shape import Refusal


def found(text: str) -> Hardware:
    part = hardware_from_text(text)
    assert isinstance(part, Hardware), text
    return part


@pytest.mark.parametrize(
    ("text", "ident", "count"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm", 0),
        ("NVIDIA_H100_80GB_HBM3", "h100-sxm", 0),
        ("h100_sxm", "h100-sxm", 0),
        ("8xH100", "h100-sxm", 8),
        ("8 x NVIDIA H200", "h200-sxm", 8),
        ("H100x8", "h100-sxm", 8),
        ("H100:8", "h100-sxm", 8),
        ("8 H100 GPUs", "h100-sxm", 8),
        ("2×L40S", "l40s", 2),
        ("NVIDIA H20", "h20", 0),
        ("NVIDIA H20-3e", "h20-3e", 0),
        ("NVIDIA H200", "h200-sxm", 0),
        ("NVIDIA H200 NVL", "h200-nvl", 0),
        ("NVIDIA H100 NVL", "h100-nvl", 0),
        ("NVIDIA H100 PCIe", "h100-pcie", 0),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb", 0),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb", 0),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb", 0),
        ("4xA100-80GB-PCIe", "a100-pcie-80gb", 4),
        ("a100_sxm", "a100-sxm4-80gb", 0),
        ("NVIDIA A10", "a10", 0),
        ("NVIDIA A10G", "a10g", 0),
        ("NVIDIA L4", "l4", 0),
        ("NVIDIA L40", "l40", 0),
        ("NVIDIA L40S", "l40s", 0),
        ("Tesla T4", "t4", 0),
        ("Tesla V100-SXM2-32GB", "v100-sxm2", 0),
        ("AMD_Instinct_MI300X", "mi300x", 0),
        ("AMD_Instinct_MI325_OAM", "mi325x", 0),
        ("AMD Instinct MI355X", "mi355x", 0),
        ("MI250X", "mi250x-gcd", 0),
        ("rtx4090", "rtx-4090", 0),
        ("NVIDIA GeForce RTX 3090 Ti", "rtx-3090-ti", 0),
        ("RTX 5090 x2", "rtx-5090", 2),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada", 0),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-server", 0),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000-workstation", 0),
        ("NVIDIA GB200", "gb200", 0),
        ("NVIDIA B200", "b200-sxm", 0),
        ("NVIDIA B300 SXM6 AC", "b300-sxm", 0),
        ("NVIDIA GH200 480GB", "gh200-96gb", 0),
        ("NVIDIA GH200 144G HBM3e", "gh200-144gb", 0),
        ("NVIDIA GB10", "gb10", 0),
        ("DGX Spark", "gb10", 0),
        ("4x4090", "rtx-4090", 4),
        ("7900xtx", "rx-7900-xtx", 0),
        ("HL-225", "gaudi2", 0),
        ("Intel Gaudi 3", "gaudi3", 0),
        ("TPU v6 lite", "tpu-v6e", 0),
        ("p5.48xlarge", "h100-sxm", 8),
        ("Standard_ND96isr_MI300X_v5", "mi300x", 8),
        ("Apple M2 Ultra", "apple-m2-ultra", 0),
    ],
)
def test_strings(text: str, ident: str, count: int) -> None:
    part = found(text)
    assert (part.id, part.count) == (ident, count)


def test_variants_and_slices() -> None:
    assert found("Tesla V100-SXM2-32GB").mem == 32e9
    assert found("Tesla V100-SXM2-16GB").mem == 16e9
    slice_ = found("NVIDIA A100-SXM4-80GB MIG 3g.40gb")
    whole = found("NVIDIA A100-SXM4-80GB")
    assert slice_.mem == 40e9
    assert slice_.bw == pytest.approx(whole.bw / 2)
    assert slice_.peak("bf16") == pytest.approx(whole.peak("bf16") * 3 / 7)
    assert any("MIG" in note for note in slice_.caveats)


def test_what_was_not_said_is_a_caveat_and_marks_are_kept() -> None:
    assert any("form factor not stated" in note for note in found("H100").caveats)
    assert not any("form factor" in note for note in found("NVIDIA H200").caveats)
    assert any("not verified" in note for note in found("NVIDIA L20").caveats)
    assert found("NVIDIA A100-SXM4-80GB").caveats == ()


@pytest.mark.parametrize("text", ["", "gfx942", "a quick brown fox", "H1000", "RTX 9999", "x" * 10_000])
def test_unknown_devices_are_refused(text: str) -> None:
    refused = hardware_from_text(text)
    assert isinstance(refused, Refusal)
    assert refused.field == "gpu"


def test_rates_are_dense_and_formats_fall_back() -> None:
    h100, a100, b200, rtx = found("h100 sxm"), found("a100 sxm"), found("b200"), found("rtx 4090")
    assert h100.peak("bf16") == pytest.approx(989.4e12)
    assert h100.peak("fp8") == pytest.approx(1978.9e12)
    assert h100.peak("fp4") == h100.peak("fp8")
    assert h100.peak("int4") == h100.peak("bf16")
    assert h100.peak("int4", fast=True) == pytest.approx(1978.9e12)
    assert a100.peak("fp8") == a100.peak("bf16")
    assert b200.peak("fp4") == pytest.approx(9000e12)
    assert rtx.peak("bf16", fast=True) == pytest.approx(2 * rtx.peak("bf16"), rel=0.001)
    b300 = found("b300")
    assert b300.peak("int8") < 0.1 * b300.peak("fp8")


def test_pin_rates_for_floors_published_for_use() -> None:
    assert found("h200 sxm").pin_bw == pytest.approx(4917e9)
    assert found("b200").pin_bw == pytest.approx(8184e9)
    server = found("RTX PRO 6000 Server")
    assert (server.bw, server.pin_bw) == (1597e9, 1792e9)
    for ident in known_ids():
        part = found(ident)
        assert part.pin_bw >= part.bw
        assert part.peak("bf16", fast=True) >= part.peak("bf16") > 0
        assert part.mem > 0


def test_a_printed_total_outranks_the_table() -> None:
    odd = with_memory(found("h100 sxm"), 96e9)
    assert odd.usable() == 96e9
    assert any("another variant" in note for note in odd.caveats)
    assert with_memory(found("h100 sxm"), 85.5e9).caveats == ()


def test_counts() -> None:
    assert count_in("NVIDIA H100 80GB HBM3") == 0
    assert count_in("8 GPUs NVIDIA H100") == 8
    assert count_in("RTX 4090") == 0
