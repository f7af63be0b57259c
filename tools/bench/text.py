"""Printed results: ``label: value`` blocks (vLLM, SGLang, evalscope), sentences of the offline tools, ``key=value``
lines of home-made clients, and the command lines that stand above them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tools.bench.fields import UNITS, Field, field
from tools.bench.run import CONDITIONS, Run, is_inf, new_run, number

_PAIR = re.compile(r"^\s{0,12}([A-Za-z#\u4e00-\u9fff][^:=|│┃]{1,70}?)\s*[:：]\s{0,60}(\S[^|│┃]{0,80})$")
# A table of two columns, key and value (evalscope's summary).
_BAR_PAIR = re.compile(r"^\s{0,12}[|│┃]\s*([A-Za-z][^|│┃]{1,70}?)\s*[|│┃]\s*([~≈]?[-+]?[\d.][^|│┃]{0,40}?)\s*[|│┃]\s*$")
_AT_ONCE = re.compile(
    r"(?i)(?<![\w.,])(\d{1,6})\s+(?:concurrent\b|(?:requests?|users?|clients?|streams?|sequences?) (?:in flight|at once|at a time|in parallel))"
    r"|\bconcurrency(?: of)?\s?[=:]?\s?(\d{1,6})(?![\w.,])"
)
_WORD = re.compile(r"([A-Za-z_]\w{0,30})=\s?([-+]?[\d.,]+)\s?(ms|us|s|tok/s|tokens/s|req/s|%)?(?=[\s,;)]|$)")
_OFFLINE = re.compile(r"(?i)([\d.,]+) (requests|total tokens|output tokens|tokens|reqs?)/s")
_BATCH = re.compile(r"(?i)^\s*avg latency: ([\d.]+) seconds|^\s*(\d{1,2})% percentile latency: ([\d.]+) seconds")
_ONE_BATCH = re.compile(r"(?i)^\s*(prefill|decode)\.\s.{0,80}?(?:median )?throughput: +([\d.]+) token/s")
_HEADER = re.compile(r"={3,}.*(?:Result|Benchmark).*={3,}|^\s*=+ .*bench.* =+\s*$", re.IGNORECASE)
_COMMAND = re.compile(
    r"(?:^|[\s/])((?:vllm bench|python3? -m sglang\.bench|\S*benchmark_serving\.py|evalscope perf|guidellm|genai-perf|aiperf)\b.{0,2000})"
)
_FLAG = re.compile(
    r"--(max-concurrency|request-rate|num-prompts?|random-input(?:-len)?|random-output(?:-len)?|dataset-name|model|backend|concurrency|parallel)[= ]+(\S+)"
)
_FLAG_KEYS = {
    "max-concurrency": "concurrency",
    "concurrency": "concurrency",
    "parallel": "concurrency",
    "request-rate": "request_rate",
    "num-prompt": "requested",
    "num-prompts": "requested",
    "random-input": "input_len",
    "random-input-len": "input_len",
    "random-output": "output_len",
    "random-output-len": "output_len",
}
_TEXTS = {"backend": "backend", "model": "model", "dataset": "dataset", "dataset name": "dataset"}
_NOISE = re.compile(r"^\s*(?:[-=]{5,}|\d{1,3}%\||INFO|WARNING|Namespace\()")
_MEASURED = ("ms", "s", "tokens/s", "requests/s")
MAX_LINE = 2000
_FRESH = ("completed", "duration_s")


def is_header(text: str) -> bool:
    """Whether a line opens a printed result block."""
    return bool(_HEADER.search(text))


class TextRuns:
    """Collects runs from lines, one block after another.

    A new run starts at a printed header, at a count or duration that comes again, and at any label that comes again
    below a heading of its own.
    """

    def __init__(self, ref: str) -> None:
        self._ref = ref
        self._runs: list[Run] = []
        self._open: Run | None = None
        self._command: dict[str, str] = {}
        self._before: Run | None = None
        self._notes: list[str] = []
        self._above = ""
        self._labels: set[str] = set()
        self.used: set[int] = set()

    def _run(self, line: int) -> Run:
        if self._open is None:
            name = self._ref if not self._runs else f"{self._ref}#{len(self._runs) + 1}"
            self._open = new_run(name, "printed result", self._ref, line)
            for key, value in self._command.items():
                amount = number(value)
                if key == "request_rate" and is_inf(value):
                    self._open.rate_is_inf = True
                elif key in UNITS and amount is not None:
                    self._open.metrics[key] = amount
                elif key not in UNITS:
                    self._open.conditions[key] = value
            if self._before is not None:
                self._open.metrics |= self._before.metrics
                self._open.conditions |= self._before.conditions
                self._open.rate_is_inf |= self._before.rate_is_inf
                self._before = None
            if self._notes:
                self._open.conditions["heading"] = self._notes[-1]
            at_once = _AT_ONCE.search(self._above)
            if at_once:
                self._open.metrics["concurrency"] = float(at_once[1] or at_once[2])
        return self._open

    def close(self) -> None:
        """End the block at hand; one without results (what is printed before a run) belongs to the next."""
        run = self._open
        self._open = None
        self._labels = set()
        if run and set(run.metrics) - CONDITIONS:
            self._runs.append(run)
        elif run:
            self._before = run

    def feed(self, line: int, text: str) -> bool:
        """One line; whether something was read from it."""
        if is_header(text):
            self.close()
            self._above = ""
            return True
        command = _COMMAND.search(text)
        flags = {_FLAG_KEYS.get(m[1], m[1]): m[2].strip("'\"") for m in _FLAG.finditer(command[1])} if command else {}
        if flags:
            self._command = flags
            self._above = ""
            return True
        got = self._sentence(line, text) or self._pair(line, text) or self._words(line, text)
        if got:
            self.used.add(line)
            self._above = ""
        elif text.lstrip().startswith("#"):
            self._notes = [text.strip("# \t")[:120]]
        elif text.strip():
            self._above = text.strip()[:120]
        return got

    def _sentence(self, line: int, text: str) -> bool:
        batch = _BATCH.match(text)
        if batch:
            run = self._run(line)
            run.tool = "vllm bench latency"
            key, raw = ("e2e.mean_ms", batch[1]) if batch[1] else (f"e2e.p{batch[2]}_ms", batch[3])
            value = number(raw)
            if value is not None and key in UNITS:
                run.put(Field(key, 1000.0), value, line)
            return True
        stage = _ONE_BATCH.match(text)
        if stage and (value := number(stage[2])) is not None:
            run = self._run(line)
            run.tool = "sglang.bench_one_batch"
            run.put(Field(f"{stage[1].lower()}_tokens_per_s"), value, line)
            return True
        if "Throughput:" in text:
            found = list(_OFFLINE.finditer(text))
            if len(found) >= 2:
                run = self._run(line)
                run.tool = "vllm bench throughput"
                names = {"requests": "requests_per_s", "output tokens": "output_tokens_per_s"}
                for match in found:
                    value = number(match[1])
                    if value is not None:
                        run.put(Field(names.get(match[2].lower(), "total_tokens_per_s")), value, line)
                return True
        return False

    def _pair(self, line: int, text: str) -> bool:
        barred = _BAR_PAIR.match(text)
        found = barred or _PAIR.match(text)
        if not found or _NOISE.match(text):
            return False
        label, raw = found[1].strip(), found[2].strip()
        low = label.lower()
        if low in _TEXTS:
            self._run(line).conditions[_TEXTS[low]] = raw[:120]
            return True
        meaning = field(label) if low != "latency" else Field("duration_s")  # a bare one is the time of all
        unit = re.match(r"[~]?[\d.,]+\s*([a-zA-Zµ%/]{1,12})", raw)
        if unit and low != "latency" and (again := field(label, unit=unit[1])) is not None:
            meaning = meaning if meaning is not None and meaning.unit else again
        if meaning is not None and "%" in raw and meaning.key not in ("acceptance_rate", "accuracy", "requested"):
            return False  # a change in per cent is no measurement
        if meaning is None:
            return self._pass(line, label, raw)
        if barred and not meaning.unit and UNITS.get(meaning.key) in _MEASURED:
            return False  # the head of the table may name another unit
        if low == "concurrency":
            meaning = Field("mean_concurrency")
        run = self._run(line)
        fresh = meaning.key in _FRESH and meaning.key in run.metrics and meaning.key in run.lines
        if fresh or (self._above and low in self._labels):
            self.close()
            run = self._run(line)
        self._labels.add(low)
        return self._store(run, meaning, raw, line)

    def _pass(self, line: int, label: str, raw: str) -> bool:
        """``pass 1: 1187`` below a heading that ends in a quantity: one run a line."""
        meaning = field(re.split(r"[;,]", self._notes[-1])[-1]) if self._notes else None
        value = number(raw)
        if meaning is None or value is None or not re.search(r"\d", label) or meaning.key not in UNITS:
            return False
        self.close()
        run = self._run(line)
        run.conditions["variant"] = label[:60]
        run.put(meaning, value, line)
        self.close()
        return True

    @staticmethod
    def _store(run: Run, meaning: Field, raw: str, line: int) -> bool:
        if meaning.key == "request_rate" and is_inf(raw):
            run.rate_is_inf = True
            return True
        whole = re.match(r"(\d+)/(\d+)\b", raw)
        if whole and meaning.key == "requested":
            run.put(Field("requested"), float(whole[2]), line)
            run.put(Field("completed"), float(whole[1]), line)
            return True
        value = number(raw)
        if value is None:
            run.missing[meaning.key] = raw[:40]
            return True
        if raw[:1] in "~≈<>≤≥":
            run.approximate.add(meaning.key)
        run.put(meaning, value, line)
        return True

    def _words(self, line: int, text: str) -> bool:
        """``name c=4 ttft=0.5s decode=18 tok/s``: one run a line."""
        found = list(_WORD.finditer(text[:MAX_LINE]))[:24]
        if len(found) < 2:
            return False
        pairs: list[tuple[Field, float]] = []
        for match in found:
            meaning, value = field(match[1], unit=match[3] or ""), number(match[2])
            if meaning is not None and value is not None and meaning.key in UNITS:
                pairs.append((meaning, value))
        if len(pairs) < 2:
            return False
        self.close()
        run = self._run(line)
        run.tool = "own client"
        name = re.match(r"\s*([\w.-]{2,40})\s", text)
        if name and "=" not in name[1]:
            run.conditions["variant"] = name[1]
        run.source = run.source.__class__(kind="file", ref=self._ref, line=line, span=text.strip()[:200])
        for meaning, value in pairs:
            run.put(meaning, value, line)
        self.close()
        return True

    def runs(self) -> list[Run]:
        """All finished runs."""
        self.close()
        return self._runs


def text_runs(lines: Iterable[tuple[int, str]], ref: str) -> Iterator[Run]:
    """Runs of a printed result."""
    state = TextRuns(ref)
    for line, text in lines:
        state.feed(line, text)
    yield from state.runs()
