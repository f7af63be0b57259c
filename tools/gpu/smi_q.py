"""``nvidia-smi -q`` as text and as XML: trees of named cells, one subtree a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast
from xml.etree import ElementTree

from tools.contract import Problem
from tools.gpu.cells import cell
from tools.gpu.fields import apply, norm
from tools.gpu.state import Gpu, Machine, Process
from tools.part import Part

_GPU = re.compile(r"^\s*GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*$")
_PAIR = re.compile(r"^(\s*)([A-Za-z0-9][^:]*?)\s*:(?:\s+(.*))?$")
_SECTION = re.compile(r"^(\s*)([A-Za-z0-9][^:]*?)\s*$")
_TAG = re.compile(r"^\{[^}]*\}")
MAX_XML = 64 << 20


def read_q(part: Part) -> tuple[Machine, list[Problem]]:
    """The text tree. Excerpts without a ``GPU`` line belong to one unnamed GPU."""
    machine = Machine(ref=part.name, kind="nvidia-smi -q")
    gpu: Gpu | None = None
    stack: list[tuple[int, str]] = []
    sink = _Sink(machine)
    for number, line in part.lines():
        start = _GPU.match(line)
        if start:
            gpu = machine.gpu(start[1], number)
            gpu.bus, stack = start[1], []
            continue
        pair = _PAIR.match(line)
        section = None if pair else _SECTION.match(line)
        found = pair or section
        if not found or line.lstrip().startswith("="):
            continue
        depth = len(found[1])
        while stack and stack[-1][0] >= depth:
            stack.pop()
        stack.append((depth, found[2]))
        if pair is None or pair[3] is None:
            if pair is None or not (pair[3] or ""):
                sink.section([name for _, name in stack])
            continue
        if gpu is None and sink.header(found[2], pair[3]):
            continue
        if gpu is None:
            gpu = machine.gpu("", number)
        sink.value(gpu, [name for _, name in stack], pair[3])
    return machine, []


class _Sink:
    """Turns paths of headings into fields; MIG devices and processes repeat below one heading."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.process: Process | None = None

    def header(self, name: str, value: str) -> bool:
        """Lines before the first GPU."""
        key = norm(name)
        if key == "driver.version":
            self.machine.driver = value.strip()
        elif key == "cuda.version":
            self.machine.cuda = value.strip()
        elif key == "attached.gpus":
            number = cell(value).value
            self.machine.attached = int(number) if number is not None else None
        else:
            return key in ("timestamp",)
        return True

    def section(self, path: list[str]) -> None:
        """A heading without a value."""
        if norm(path[-1]) == "mig.device" and self.machine.gpus:
            list(self.machine.gpus.values())[-1].mig_devices += 1

    def value(self, gpu: Gpu, path: list[str], text: str) -> None:
        """A heading with a value."""
        top = norm(path[0])
        if top == "processes" or norm(path[-1]) == "process.id" or (len(path) > 1 and norm(path[-2]) == "process.id"):
            gpu.processes_known = True
            self.process_cell(gpu, norm(path[-1]), text)
            return
        if top == "mig.device" or top == "mig.devices":
            if norm(path[-1]) == "multiprocessor.count" and (number := cell(text).value) is not None:
                gpu.mig_sms.append(number)
            return
        apply(gpu, ".".join(path), text)

    def process_cell(self, gpu: Gpu, key: str, text: str) -> None:
        """One cell of a process; a process id starts the next one."""
        if key == "process.id":
            self.process = Process(pid=text.strip(), name="")
            gpu.processes.append(self.process)
        elif self.process is None:
            return
        elif key == "type":
            self.process.kind = text.strip()
        elif key == "name":
            self.process.name = text.strip()
        elif key == "used.gpu.memory":
            self.process.memory = cell(text).value


def read_xml(part: Part) -> tuple[Machine, list[Problem]]:
    """The XML tree, streamed; a file that is cut gives the GPUs before the cut. External entities are not fetched."""
    machine = Machine(ref=part.name, kind="nvidia-smi -q -x")
    sink = _Sink(machine)
    parser: ElementTree.XMLPullParser[Any] = ElementTree.XMLPullParser(events=("start", "end"))
    path: list[str] = []
    gpu: Gpu | None = None
    problems: list[Problem] = []
    fed = 0
    try:
        for number, line in part.lines():
            fed += len(line)
            if fed > MAX_XML:
                problems.append(Problem(ref=part.name, what=f"larger than {MAX_XML >> 20} MiB; the rest is not read"))
                break
            parser.feed(line + "\n")
            for event, element in _events(parser):
                tag = _TAG.sub("", element.tag)
                if event == "start":
                    path.append(tag)
                    if tag == "gpu" and len(path) == 2:
                        gpu = machine.gpu(element.get("id") or str(len(machine.gpus)), number)
                        gpu.bus = element.get("id") or ""
                    elif tag == "mig_device" and gpu is not None:
                        gpu.mig_devices += 1
                    continue
                _close(machine, sink, gpu, path, element)
                path.pop()
    except ElementTree.ParseError as error:
        what = f"the XML breaks off or is damaged ({error})"
        problems.append(Problem(ref=part.name, what=what, do="run nvidia-smi -q -x again"))
    return machine, problems


def _events(parser: ElementTree.XMLPullParser[Any]) -> Iterator[tuple[str, ElementTree.Element]]:
    for item in parser.read_events():
        event, element = cast(tuple[str, Any], item)
        if isinstance(element, ElementTree.Element):
            yield event, element


def _close(machine: Machine, sink: _Sink, gpu: Gpu | None, path: list[str], element: ElementTree.Element) -> None:
    text = (element.text or "").strip()
    if len(element) == 0 and len(path) > 1:
        if gpu is None or "gpu" not in path:
            sink.header(path[-1], text)
        elif "process_info" in path:
            gpu.processes_known = True
            sink.process_cell(gpu, _XML_PROCESS.get(path[-1], ""), text)
        elif path[-1] == "multiprocessor_count":
            number = cell(text).value
            gpu.mig_sms += [number] if number is not None else []
        elif "mig_device" not in path:
            apply(gpu, ".".join(path[2:]), text)
    if path[-1] == "processes" and gpu is not None:
        gpu.processes_known = True
    if len(path) > 2:
        element.clear()


_XML_PROCESS = {"pid": "process.id", "type": "type", "process_name": "name", "used_memory": "used.gpu.memory"}
