"""Rows of a ``cuda_gpu_trace`` report, streamed into compact arrays: the only report with a time axis."""

from __future__ import annotations

import re
from array import array

from tools.profile import classify
from tools.profile.copies import copy_kind
from tools.profile.intervals import Timeline
from tools.profile.model import Copy, Kernel, Profile
from tools.profile.numbers import decimal_sign, number

_MEMORY = re.compile(r"^\[?(?:CUDA |Unified )?.{0,20}mem(?:cpy|set)", re.I)
_DEVICE = re.compile(r"^(.*?)\s*\((\d+)\)$")


class TraceRows:
    """Collects work per device. Times become ns by the unit of the column."""

    def __init__(self) -> None:
        self.at: dict[str, int] = {}
        self.scale: dict[str, float] = {}
        self.names: dict[str, int] = {}
        self.starts: dict[str, array[float]] = {}
        self.lengths: dict[str, array[float]] = {}
        self.codes: dict[str, array[int]] = {}
        self.sizes: dict[str, float] = {}
        self.devices: dict[str, str] = {}
        self.decimal = ""
        self.line = 0
        self._sample: list[tuple[list[str], int]] = []

    def columns(self, at: dict[str, int], scale: dict[str, float]) -> None:
        """Where each column stands and its unit."""
        self.at, self.scale = at, scale

    def add(self, cells: list[str], line: int) -> None:
        """Take one row; the first rows settle the decimal sign."""
        self.line = self.line or line
        if self.decimal:
            self._take(cells)
            return
        self._sample.append((cells, line))
        if len(self._sample) >= 100:
            self._settle()

    def _settle(self) -> None:
        numeric = [self.at[k] for k in ("start", "length", "bytes") if k in self.at]
        self.decimal = decimal_sign(cells[i] for cells, _ in self._sample for i in numeric if i < len(cells))
        for cells, _ in self._sample:
            self._take(cells)
        self._sample.clear()

    def _cell(self, cells: list[str], key: str) -> str:
        index = self.at.get(key, -1)
        return cells[index] if 0 <= index < len(cells) else ""

    def _take(self, cells: list[str]) -> None:
        start = number(self._cell(cells, "start"), self.decimal)
        length = number(self._cell(cells, "length"), self.decimal)
        name = self._cell(cells, "name")
        if start is None or length is None or not name or length < 0:
            return
        label = self._cell(cells, "device")
        found = _DEVICE.match(label)
        device = found[2] if found else label or "0"
        if found:
            self.devices[device] = found[1]
        self.starts.setdefault(device, array("d")).append(start * self.scale["start"])
        self.lengths.setdefault(device, array("d")).append(length * self.scale["length"])
        self.codes.setdefault(device, array("i")).append(self.names.setdefault(name, len(self.names)))
        size = number(self._cell(cells, "bytes"), self.decimal) if _MEMORY.match(name) else None
        if size is not None:
            kind = copy_kind(name)
            self.sizes[kind] = self.sizes.get(kind, 0.0) + size * self.scale["bytes"]

    def into(self, profile: Profile) -> None:
        """Timelines, and the sums where no summary report gave them."""
        import numpy as np

        if not self.decimal and self._sample:
            self._settle()
        names = list(self.names)
        memory = np.array([bool(_MEMORY.match(name)) for name in names], dtype=bool)
        comm = np.array([classify.kernel_class(name) == "allreduce" for name in names], dtype=bool)
        count = np.zeros(len(names), dtype=np.int64)
        total = np.zeros(len(names))
        for device in sorted(self.starts, key=lambda d: (len(d), d)):
            start, length = np.array(self.starts[device]), np.array(self.lengths[device])
            code = np.array(self.codes[device])
            count += np.bincount(code, minlength=len(names))
            total += np.bincount(code, weights=length, minlength=len(names))
            order = np.argsort(start, kind="stable")
            kernel = ~memory[code[order]]
            line = Timeline()
            line.feed(start[order], (start + length)[order], kernel, kernel & comm[code[order]])
            profile.spans.append(line.span(device))
        profile.device_name = profile.device_name or next(iter(self.devices.values()), "")
        if not profile.kernels:
            rows = [(n, int(count[i]), float(total[i])) for i, n in enumerate(names) if not memory[i]]
            profile.kernels = sorted(
                (Kernel(n, classify.kernel_class(n), c, t) for n, c, t in rows), key=lambda k: -k.total
            )
            profile.kernel_total = sum(k.total for k in profile.kernels)
            profile.listed = 1.0 if profile.kernels else None
        if not profile.copies:
            known: dict[str, Copy] = {}
            for i, name in enumerate(names):
                if memory[i]:
                    copy = known.setdefault(copy_kind(name), Copy(copy_kind(name), 0, 0.0))
                    copy.count += int(count[i])
                    copy.total += float(total[i])
                    copy.size = self.sizes.get(copy.kind)
            profile.copies = list(known.values())
