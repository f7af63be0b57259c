"""The reader's contract: readings in the vocabulary, one clear problem for bad input, order, lines, reconciliation."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from knowledge.loader import ROOT, read_yaml
from knowledge.schema import FactDef
from tools.config.read import read
from tools.config.readings import reconcile
from tools.config.sniff import sniff
from tools.contract import Context, Reading, ReadResult, Source
from tools.part import Part

SHARED = Path(__file__).resolve().parents[4] / "shared"
FACTS = {fact.name: fact.type for fact in msgspec.convert(read_yaml(ROOT / "facts" / "config.yaml"), list[FactDef])}
FACTS["engine.name"] = "text"  # defined with the metrics facts


def run(text: str | bytes, name: str = "launch.txt", **options: str) -> ReadResult:
    data = text if isinstance(text, bytes) else text.encode()
    return read([Part(name=name, data=data)], Context(options={k.replace("__", "."): v for k, v in options.items()}))


def check(result: ReadResult) -> None:
    for reading in result.readings:
        kind = FACTS[reading.fact]
        value = reading.value
        good = {
            "number": isinstance(value, (int, float)) and not isinstance(value, bool),
            "bool": isinstance(value, bool),
            "text": isinstance(value, str),
            "list": isinstance(value, list),
        }[kind]
        assert good, (reading.fact, kind, value)
        assert reading.method and reading.labels.get("origin") in ("given", "default", "log", None)


def test_given_before_default_with_line_and_span() -> None:
    result = run(
        "\n# start\nvllm serve a/b \\\n  --max-num-seqs 64\n",
        engine__version="0.32.0",
        gpu__name="H100",
        gpu__memory_gib="80",
    )
    check(result)
    by_fact = {reading.fact: reading for reading in result.readings}
    seqs = by_fact["config.max_num_seqs"]
    assert (seqs.source.line, seqs.source.span, seqs.source.ref) == (4, "--max-num-seqs 64", "launch.txt")
    assert by_fact["config.max_num_batched_tokens"].labels["origin"] == "default"
    assert "arg_utils.py" in by_fact["config.max_num_batched_tokens"].method
    origins = [reading.labels.get("origin") for reading in result.readings[:-1]]
    assert origins == sorted(origins, key=lambda origin: origin == "default")
    assert by_fact["config.startup_rejected"].value is False and by_fact["config.launches"].value == 1
    assert by_fact["config.cudagraph.capture_short"].value is False


@pytest.mark.parametrize(
    ("text", "fact", "span"),
    [
        ("vllm serve a/b --max-num-seqs=64", "config.max_num_seqs", "--max-num-seqs=64"),
        ("vllm serve a/b \u2014max-num-seqs 64", "config.max_num_seqs", "vllm serve a/b \u2014max-num-seqs 64"),
        ('vllm serve a/b -sc \'{"method": "mtp"}\'', "config.spec.method", "-sc"),
        ("max_num_seqs: 64, TP=1", "config.max_num_seqs", "max_num_seqs: 64"),
        ("INFO non-default args: {'max_num_seqs': 64}", "config.max_num_seqs", "max_num_seqs"),
    ],
)
def test_spans_stand_in_their_line(text: str, fact: str, span: str) -> None:
    found = next(r for r in run(f"\n{text}").readings if r.fact == fact)
    assert (found.source.line, found.source.span) == (2, span)


def test_every_span_of_the_samples_is_verbatim() -> None:
    text = "services:\n  s:\n    image: vllm/vllm-openai:v0.22.0\n    command: [--model, a/b, '--max-num-seqs', '4']\n    environment: {NCCL_DEBUG: INFO}\n    cpus: 2\n"
    lines = text.split("\n")
    for reading in run(text, "c.yaml").readings:
        if reading.source.line and reading.source.span:
            assert reading.source.span in lines[reading.source.line - 1], reading


def test_a_fence_keeps_the_lines_of_its_report() -> None:
    part = Part(name="report.md", data=b"vllm serve a/b --max-num-seqs 64", line0=40)
    seqs = next(r for r in read([part], Context()).readings if r.fact == "config.max_num_seqs")
    assert seqs.source.line == 41


def test_remarks_beside_a_command_go_to_the_report_reader_on_their_lines() -> None:
    part = Part(
        name="launch.txt", data=b"# a\nvllm serve a/b -tp 2   # utilization changed from 0.90 to 1.0\n", line0=10
    )
    nested = read([part], Context()).nested
    assert len(nested) == 1 and nested[0].hint == "comment" and nested[0].parent == "launch.txt"
    assert list(nested[0].lines())[-1] == (12, "utilization changed from 0.90 to 1.0")
    assert run("vllm serve a/b --seed 1").nested == []


def test_variants_are_labelled_and_apart() -> None:
    result = run("# with LoRA\nvllm serve a/b --enable-lora\n# without LoRA\nvllm serve a/b\n")
    seen = {(r.labels.get("variant"), r.value) for r in result.readings if r.fact == "config.enable_lora"}
    assert seen == {("with LoRA", True), ("without LoRA", False)}


def test_probe_budget_and_router_limits() -> None:
    manifest = """
kind: Deployment
metadata: {name: d}
spec:
  template:
    spec:
      containers:
        - image: vllm/vllm-openai:v0.20.0
          args: [--model, a/b]
          startupProbe: {httpGet: {path: /health}, initialDelaySeconds: 10, periodSeconds: 5, failureThreshold: 6}
"""
    values = {r.fact: r.value for r in run(manifest, "d.yaml").readings}
    assert values["config.probe.startup.budget"] == 40.0 and values["engine.version"] == "0.20.0"
    router = run("routerSpec:\n  routingLogic: session\n  resources: {limits: {cpu: '4'}}\n", "v.yaml")
    assert "config.cpu_limit_cores" not in {r.fact for r in router.readings}


@pytest.mark.parametrize(
    ("data", "name", "words"),
    [
        (b"", "launch.txt", "empty"),
        (b"   \n", "launch.txt", "empty"),
        (b"\x00\x01\x02" * 100, "launch.txt", "binary"),
        (b"hello world", "launch.txt", "no launch command"),
        (b"<html><body>502 Bad Gateway</body></html>", "config.json", "no launch command"),
        (b'{"a": [1, 2', "server_info.json", "no engine settings"),
        (b"{" * 50_000, "x.json", "no engine settings"),
        (b"[" * 50_000, "x.yaml", "nested too deeply"),
        (gzip.compress(b"vllm serve a/b --max-num-seqs 4" * 50, mtime=0)[:40], "launch.txt.gz", ""),
        ("vllm serve a/b --max-num-seqs 4".encode("utf-16"), "launch.txt", ""),
    ],
)
def test_bad_input_is_one_clear_line(data: bytes, name: str, words: str) -> None:
    result = run(data, name)
    check(result)
    assert not [p for p in result.problems if p.severity == "error"]
    if words:
        assert words in result.problems[0].what and len(result.problems) <= 2
    elif name == "launch.txt":
        assert any(r.fact == "config.max_num_seqs" and r.value == 4 for r in result.readings)


def test_a_sweep_script_is_read_in_part_and_says_so() -> None:
    result = run("vllm serve a/b --seed 1\n" * 60)
    assert next(r.value for r in result.readings if r.fact == "config.launches") == 24
    assert any("36 further" in problem.what for problem in result.problems)


def test_one_bad_part_does_not_stop_the_others() -> None:
    parts = [
        Part(name="a", data=b"\x00" * 99),
        Part(name="b", data=b"vllm serve m/x --seed 1"),
        Part(name="c", path=Path("/no/such/file")),
    ]
    result = read(parts, Context())
    assert any(r.fact == "config.model" for r in result.readings) and len(result.problems) >= 2


def test_reconcile_finds_what_the_engine_does_not_do() -> None:
    def reading(fact: str, value: object, origin: str, **labels: str) -> Reading:
        return Reading(fact=fact, value=value, source=Source(kind="file"), labels={"origin": origin, **labels})

    typed = [
        reading("config.max_model_len", 8192, "given"),
        reading("config.enable_prefix_caching", True, "default"),
        reading("config.kv_cache_dtype", "auto", "given"),
    ]
    seen = [
        reading("config.max_model_len", 4096, "log"),
        reading("config.enable_prefix_caching", False, "log"),
        reading("config.kv_cache_dtype", "fp8", "log"),
    ]
    found = reconcile([*typed, *seen])
    assert found[0].fact == "config.conflicts" and found[0].source.kind == "computed"
    assert found[0].value == [
        "max_model_len: 8192 as given, but the engine runs with 4096",
        "enable_prefix_caching: True by default, but the engine runs with False",
    ]
    assert reconcile(typed) == [] and reconcile([typed[0], reading("config.max_model_len", 8192.0, "log")]) == []
    twin = Reading(fact="log.max_num_batched_tokens", value=2048, source=Source(kind="file"))
    assert "8192 as given" in reconcile([reading("config.max_num_batched_tokens", 8192, "given"), twin])[0].value[0]
    variants = [
        reading("config.max_model_len", 1, "given", variant="a"),
        reading("config.max_model_len", 2, "given", variant="b"),
    ]
    assert reconcile([*variants, seen[0]]) == []


def test_sniff_by_content_then_name() -> None:
    assert sniff("launch.txt", "vllm serve a/b --max-num-seqs 4") > 0.9
    assert sniff("x", "docker run --gpus all vllm/vllm-openai:v0.9 --model a/b") >= 0.9
    assert sniff("x", "--max-num-seqs 4\n--enforce-eager\n") > 0.7
    assert sniff("x.yaml", "services:\n  a:\n    image: vllm/vllm-openai:latest\n") >= 0.9
    assert sniff("x", "enable_prefix_caching=True, max_num_batched_tokens=16000") > 0.6
    assert sniff("config.txt", "ray 2.56.0, vLLM 0.22.0, 1 replica") >= 0.4
    assert sniff("i.json", '{"max_running_requests": 32}') > 0.8
    assert sniff("config.json", '{"architectures": ["X"], "hidden_size": 8}') == 0.0
    assert sniff("bench.txt", "vllm serve                 16.9 / 21.2") < 0.5
    assert sniff("server.log", "INFO 11-29 15:58:32 [api.py:1] non-default args: {'max_num_seqs': 4}") <= 0.3
    assert sniff("report.md", "the server is slow" * 50) == 0.0 and sniff("launch.txt", "") == 0.0


def test_sniff_needs_only_re() -> None:
    code = "import sys; import tools.config.sniff; bad = {'yaml', 'msgspec', 'json', 'tools.contract'} & set(sys.modules); sys.exit(len(bad))"
    root = Path(__file__).resolve().parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared sample folder is not beside the repository")
def test_every_deploy_sample_is_read_or_refused_by_name() -> None:
    for path in sorted((SHARED / "samples" / "deploy").iterdir()):
        result = read([Part(name=path.name, path=path)], Context())
        check(result)
        assert not [p for p in result.problems if p.severity == "error"], path.name
        assert len(result.readings) > 10 or result.problems, path.name


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared sample folder is not beside the repository")
def test_every_world_launch_gives_settings() -> None:
    files = (
        sorted((SHARED / "incidents" / "worlds").glob("*/launch.txt"))
        + sorted((SHARED / "lab" / "worlds").glob("*/launch.txt"))[:3]
    )
    assert files
    for path in files:
        result = read([Part(name="launch.txt", path=path)], Context())
        check(result)
        assert any(r.labels.get("origin") == "given" and r.fact.startswith("config.") for r in result.readings), path
        assert not any(r.fact == "config.flags_unknown" for r in result.readings), path
