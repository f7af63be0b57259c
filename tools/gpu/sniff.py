"""Is this GPU or host hardware state: nvidia-smi, DCGM, lspci, topology, rocm-smi, lscpu?"""

from __future__ import annotations

import re

_SURE = {
    "table": re.compile(r"NVIDIA-SMI [\d.]+|^\|\s*\d+\s+\S.*\|\s*[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d", re.M),
    "xml": re.compile(r"<nvidia_smi_log"),
    "q": re.compile(r"={5,}NVSMI LOG={5,}|^GPU [0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.\d\s*$", re.M | re.I),
    "query": re.compile(
        r"^(?=[^\n]*(?:utilization\.|memory\.|power\.|temperature\.|clocks|pcie\.|used_gpu_memory|used_memory|ecc\.|pstate|driver_version))"
        r"[a-zA-Z_][\w.]*(?: \[[^\]\n]{1,12}\])?(?:, ?[a-zA-Z_][\w.]*(?: \[[^\]\n]{1,12}\])?)+\s*$"
        r"|\A\s*[^\n]{0,40}nvidia-smi\b[^\n]{0,200}--query-(?:gpu|compute-apps)=[^\n]{1,1000}\n\s*[\w.:-]{1,60}, ?[^\n]{1,1000}$",
        re.M,
    ),
    "dmon": re.compile(r"^#\s*(?:date\s+time\s+)?gpu\s+(?:pwr|pid|sm|idx)", re.M | re.I),
    "dcgmi": re.compile(r"^#\s*Entity\s+\S", re.M),
    "topo": re.compile(r"^[\s\x1b\[0-9;m]*GPU0\s+(?:GPU1|NIC0|CPU Affinity|mlx5_)|^\s*GPU0\s+X\s+(?:NV\d+|PIX|PXB|PHB|NODE|SYS|OK|CNS|NS)", re.M),
    "nvlink": re.compile(r"^\s*Link \d+:\s*(?:<?inactive>?|[\d.]+ GB/s)|retrieve Nvlink|Nvlink queries", re.M | re.I),
    "list": re.compile(r"^\s*GPU \d+: .+\(UUID: ", re.M),
    "version": re.compile(r"^NVIDIA-SMI version\s*:", re.M),
    "lspci": re.compile(r"^(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f] \S.*$|ACSCtl:|LnkSta:\s*Speed", re.M | re.I),
    "rocm": re.compile(r"ROCm System Management Interface"),
    "amd": re.compile(r"^GPU:\s*\d+\s*\n\s+[A-Z_]+:|^gpu,(?:gfx|power|hotspot)", re.M),
    "lscpu": re.compile(r"^Architecture:\s+\S[\s\S]{0,4000}^CPU\(s\):", re.M),
    "numactl": re.compile(r"^available: \d+ nodes|^policy: \w+\npreferred node|^physcpubind:|current affinity list:", re.M),
    "governor": re.compile(r"scaling_governor|The governor \"", re.M),
    "strace": re.compile(r"^%\s+time\s+seconds\s+usecs/call|strace -c \(", re.M),
}  # fmt: skip
_DCGM = re.compile(r"^(?:DCGM_FI_|nvidia_smi_|nvidia_gpu_)\w+(?:\{|\s)", re.M)
_ENGINE = re.compile(r"^(?:vllm|sglang)[:_]", re.M)
_TREE = re.compile(
    r"^\s+(?:Product Name|GPU Reset Status|Reset Required|FB Memory Usage|Clocks (?:Event|Throttle) Reasons|SW Power Cap|ECC Errors|Remapped Rows)\b.*$",
    re.M,
)
_PIECES = re.compile(
    r"power\.(?:draw|limit)|clocks\.(?:sm|mem)|temperature\.gpu|utilization\.gpu|clocks_(?:event|throttle)_reasons|\[GPU requires reset\]|\bERR!"
    r"|pstate P\d|NVRM: Xid|GPU[- ]Util|GPU utili[sz]ation \d|\|\s*~?\d+ (?:GB|GiB) / \d+MiB",
    re.I,
)
_WIRING = re.compile(r"\bno NVLink\b|PCIe (?:slot|switch)|\bPHB\b|\bNVLink\b", re.I)
_NAME = re.compile(
    r"nvidia-?smi|(?:^|/)smi[-_.]|dcgm|topo(?:logy)?[-_.]|lspci|gpu[-_]?(?:state|info|q)\b|nvlink|rocm-?smi|amd-?smi|lscpu|numactl",
    re.I,
)


def sniff(name: str, head: str) -> float:
    """0..1: how sure this is hardware state, by content first and by name second."""
    if not head.strip():
        return 0.0
    series = len(_DCGM.findall(head))
    if series >= 2 or (series and not _ENGINE.search(head)):
        return 0.98 if not _ENGINE.search(head) else 0.6
    lines = head.count("\n") + 1
    for kind, pattern in _SURE.items():
        if pattern.search(head):
            return 0.95 if lines < 5000 or kind in ("table", "xml", "q", "lspci") else 0.7
    if len(_TREE.findall(head)) >= 1 and (_NAME.search(name) or len(_TREE.findall(head)) >= 3):
        return 0.9
    pieces = len(_PIECES.findall(head))
    if _NAME.search(name):
        return (
            0.9
            if pieces or _WIRING.search(head)
            else 0.55
            if lines < 400 and name.lower().endswith((".txt", ".log", ".csv"))
            else 0.0
        )
    if pieces >= 2 and lines <= 60 and pieces * 12 >= len(head.split()):
        return 0.75
    return 0.7 if lines <= 12 and pieces and re.search(r"strace -c", head) else 0.0
