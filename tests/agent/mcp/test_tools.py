"""Each tool by direct call: results conform to their schemas and stay in their budgets; failures are results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

pytest.importorskip("mcp", reason="the MCP SDK is not installed (pip install 'inferdx[mcp]')")

from agent.mcp.bound import CHARS_A_TOKEN, dumps, fit, rough_tokens, short, tidy
from agent.mcp.roots import Roots
from agent.mcp.runs import Runs
from agent.mcp.server import INSTRUCTIONS, TOOLS, called, listing
from agent.mcp.tool import Desk, Trouble
from agent.mcp.urls import Addresses
from tests.agent.mcp.worlds import PAGE, metrics_server, world
from tools.contract import Source
from tools.view import Evidence


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    root = tmp_path_factory.mktemp("root")
    world(root / "incident")
    (root / "stats.txt").write_text(
        " ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):\n\n"
        " Time (%)  Total Time (ns)  Instances  Avg (ns)  Med (ns)  Min (ns)  Max (ns)  StdDev (ns)  Name\n"
        " --------  ---------------  ---------  --------  --------  --------  --------  -----------  ----\n"
        "     80.0        8,000,000        100  80,000.0  80,000.0    79,000    81,000        100.0  ampere_bf16_gemm_128\n"
        "     20.0        2,000,000        100  20,000.0  20,000.0    19,000    21,000        100.0  flash_fwd_kernel\n"
    )
    with metrics_server() as (base, asked):
        made = Desk(roots=Roots([root]), addresses=Addresses([f"{base}/metrics", f"{base}/away"]))
        made.knowledge = []
        base_and_asked[:] = [base, asked]
        yield made


base_and_asked: list[Any] = []


def ask(desk: Desk, tool: str, **given: Any) -> dict[str, Any]:
    """A good result: checked against the schema, the names it declares and the size that it promises."""
    result = called(desk, tool, given)
    assert not result.is_error, result.content[0].text
    data: dict[str, Any] = json.loads(dumps(result.structured_content))
    Draft202012Validator(TOOLS[tool].output).validate(data)
    assert set(data) <= set(TOOLS[tool].output["properties"]) | {"cut"}
    whole = result.model_dump(by_alias=True, exclude_none=True, mode="json")
    limit = 8000 if given.get("detail") == "full" else 2000
    assert (
        rough_tokens(dumps(whole["structuredContent"])) + sum(rough_tokens(dumps(c)) for c in whole["content"])
        <= limit + 50
    )
    return data


def refuse(desk: Desk, tool: str, **given: Any) -> dict[str, str]:
    result = called(desk, tool, given)
    assert result.is_error and result.structured_content is None
    error: dict[str, str] = json.loads(result.content[0].text)["error"]
    assert error["code"] and error["what"] and error["try"]
    return error


def test_the_whole_list_is_small_and_every_annotation_is_set() -> None:
    rows = [t.model_dump(by_alias=True, exclude_none=True) for t in listing()]
    assert 6 <= len(rows) <= 10
    assert len(dumps(rows)) / CHARS_A_TOKEN <= 2500
    for row in rows:
        notes = row["annotations"]
        assert set(notes) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert notes["readOnlyHint"] and not notes["destructiveHint"] and notes["idempotentHint"]
        assert notes["openWorldHint"] == (row["name"] in ("diagnose", "fetch_metrics", "health"))
        Draft202012Validator.check_schema(row["inputSchema"])
        Draft202012Validator.check_schema(row["outputSchema"])
        assert row["outputSchema"]["required"] and row["inputSchema"]["additionalProperties"] is False
        for kind in row["inputSchema"]["properties"].values():
            assert kind.get("type") != "object", "arguments are flat"


def test_descriptions_do_not_change_with_what_was_read(desk: Desk) -> None:
    before = [t.model_dump() for t in listing()], INSTRUCTIONS
    ask(desk, "diagnose", paths=["incident"])
    assert before == ([t.model_dump() for t in listing()], INSTRUCTIONS)


def test_diagnose_a_folder_then_its_evidence(desk: Desk) -> None:
    data = ask(desk, "diagnose", paths=["incident"])
    assert data["outcome"] in ("incident", "undecidable") and data["evidence_total"] > 5
    assert sum(data["rules"].values()) == len(desk.known().rules)
    cited = {i for cause in data["causes"] for i in cause["evidence"]}
    held = {e.id for e in desk.runs.get(data["run"]).evidence}
    assert cited <= held
    some = sorted(held)[:2]
    items = ask(desk, "get_evidence", run=data["run"], ids=some)["items"]
    assert sorted(i["id"] for i in items) == some and all(i["source"]["kind"] for i in items)


def test_the_same_input_gives_the_same_run(desk: Desk) -> None:
    one, two = (ask(desk, "diagnose", paths=["incident"])["run"] for _ in range(2))
    assert one == two


def test_evidence_pages_cover_everything_once(desk: Desk) -> None:
    data = ask(desk, "diagnose", paths=["incident"])
    seen: list[str] = []
    offset = 0
    while True:
        page = ask(desk, "get_evidence", run=data["run"], offset=offset, limit=5)
        seen += [i["id"] for i in page["items"]]
        if "next_offset" not in page:
            break
        offset = page["next_offset"]
    assert len(seen) == len(set(seen)) == data["evidence_total"]


def test_full_detail_may_be_larger_and_pasted_text_is_enough(desk: Desk) -> None:
    data = ask(desk, "diagnose", text="vLLM 0.10.0, TTFT p99 30 s, 56 requests waiting, KV cache 31%", detail="full")
    assert data["evidence"] or data["probes"]


def test_chinese(desk: Desk) -> None:
    data = ask(desk, "diagnose", paths=["incident"], lang="zh")
    assert any("\u4e00" <= c <= "\u9fff" for c in data["headline"])


def test_baseline_and_slo(desk: Desk) -> None:
    assert ask(desk, "diagnose", paths=["incident"], baseline="incident", slo=["ttft_p99=2s"])["run"]
    assert refuse(desk, "diagnose", paths=["incident"], slo=["nonsense"])["code"] == "bad_argument"
    assert refuse(desk, "diagnose", paths=["incident"], baseline="/etc")["code"] == "path_refused"


def test_keys_do_not_leave_and_quoted_instructions_stay_data(desk: Desk) -> None:
    run = ask(desk, "diagnose", paths=["incident"])["run"]
    everything = [called(desk, "diagnose", {"paths": ["incident"], "detail": "full"}).model_dump_json()]
    everything += [
        called(desk, "get_evidence", {"run": run, "ids": [e.id]}).model_dump_json() for e in desk.runs.get(run).evidence
    ]
    everything.append(called(desk, "read_config", {"path": "incident/launch.txt"}).model_dump_json())
    assert not any("sk-abcdefghij" in text for text in everything)


def test_live_metrics_from_a_listed_address_only(desk: Desk) -> None:
    base, asked = base_and_asked
    data = ask(desk, "fetch_metrics", url=f"{base}/metrics")
    values = {row["fact"]: row["value"] for row in data["facts"]}
    assert any("56" in value for value in values.values())
    assert ask(desk, "diagnose", urls=[f"{base}/metrics"])["evidence_total"] > 0
    before = list(asked)
    for url in (f"{base}/secret", "http://169.254.169.254/latest", "http://[::ffff:169.254.169.254]/"):
        assert refuse(desk, "fetch_metrics", url=url)["code"] == "url_refused"
        assert refuse(desk, "diagnose", urls=[url])["code"] == "url_refused"
        assert refuse(desk, "fetch_metrics", prometheus=url)["code"] == "url_refused"
        assert refuse(desk, "diagnose", prometheus=url)["code"] == "url_refused"
    assert asked == before


def test_a_redirect_is_reported_and_not_followed(desk: Desk) -> None:
    base, asked = base_and_asked
    data = ask(desk, "fetch_metrics", url=f"{base}/away")
    assert "302" in data["problems"][0] and "/secret" not in asked


def test_windows_are_bounded(desk: Desk) -> None:
    base, _ = base_and_asked
    assert refuse(desk, "fetch_metrics", url=f"{base}/metrics", window_s=3600)["code"] == "bad_argument"


@pytest.mark.parametrize("tool", ["diagnose", "read_config", "summarize_profile", "roofline"])
@pytest.mark.parametrize("path", ["/etc/passwd", "../../etc/passwd"])
def test_paths_outside_are_refused_by_every_tool(desk: Desk, tool: str, path: str) -> None:
    given: dict[str, dict[str, Any]] = {
        "diagnose": {"paths": [path]}, "read_config": {"path": path}, "summarize_profile": {"path": path},
        "roofline": {"gpu": "H100", "config_path": path},
    }  # fmt: skip
    assert refuse(desk, tool, **given[tool])["code"] == "path_refused"


def test_read_config(desk: Desk) -> None:
    data = ask(desk, "read_config", path="incident/launch.txt", engine_version="0.10.0")
    assert {"config.max_num_seqs", "config.enforce_eager"} <= {row["fact"] for row in data["facts"]}
    assert refuse(desk, "read_config")["code"] == "bad_argument"


def test_summarize_profile(desk: Desk) -> None:
    data = ask(desk, "summarize_profile", path="stats.txt", before="stats.txt")
    assert data["kernels"][0]["share"] == pytest.approx(0.8) and data["class_share"]


def test_roofline_and_a_change(desk: Desk) -> None:
    given = {"model": "llama-3.1-70b", "gpu": "8x H100", "tp": 8, "batch": 32, "isl": 2000, "osl": 300}
    data = ask(desk, "roofline", **given, measured_tpot_ms=30)
    assert data["tpot_ms"]["hard"] <= data["tpot_ms"]["practical"] <= data["tpot_ms"]["typical"]
    assert data["measured"]["over_hard"] == pytest.approx(30 / data["tpot_ms"]["hard"], rel=1e-3)
    changed = ask(desk, "roofline", **given, set=["kv_cache_dtype=fp8"])["change"]
    assert {d["name"]: d for d in changed["deltas"]}["kv_capacity_tokens"]["change"] == pytest.approx(1.0, abs=0.05)
    assert refuse(desk, "roofline", gpu="H100", model="no-such-model")["code"] == "bad_argument"
    assert refuse(desk, "roofline", **given, set=["x"])["code"] == "bad_argument"


def test_knowledge_tools(desk: Desk) -> None:
    rules = ask(desk, "list_rules", layer="memory")
    assert rules["total"] > 3 and {row["layer"] for row in rules["rules"]} == {"memory"}
    assert ask(desk, "explain", name="kv_cache_exhausted")["entries"][0]["kind"] == "cause"
    assert ask(desk, "explain", search="preemption KV cache")["entries"]
    assert "kv_cache" in refuse(desk, "explain", name="kv_cache_exausted")["try"]
    assert refuse(desk, "list_rules", family="nope")["code"] == "unknown_family"
    assert refuse(desk, "list_rules", layer="nope")["code"] == "bad_argument"


def test_health_says_what_may_be_read_and_what_fails(desk: Desk) -> None:
    data = ask(desk, "health")
    assert data["roots"][0]["readable"] and {row["status"] for row in data["urls"]} == {"HTTP 200", "HTTP 302"}
    dead = Desk(roots=Roots([]), addresses=Addresses(["http://127.0.0.1:9/metrics"]), held=desk.held)
    data = ask(dead, "health")
    assert not data["ok"] and len(data["problems"]) == 2
    assert ask(dead, "health", probe=False)["urls"][0]["status"] == "not probed"


def test_faults_are_results_that_say_what_to_try(desk: Desk) -> None:
    assert refuse(desk, "diagnose")["code"] == "no_source"
    assert "paths" in refuse(desk, "diagnose", path=["x"])["try"]
    assert refuse(desk, "diagnose", paths="incident")["code"] == "bad_argument"
    assert refuse(desk, "nothing")["code"] == "unknown_tool"
    assert refuse(desk, "get_evidence", run="r0")["code"] == "unknown_run"
    run = ask(desk, "diagnose", paths=["incident"])["run"]
    assert refuse(desk, "get_evidence", run=run, ids=["E99999"])["code"] == "unknown_evidence"


def test_a_fault_of_ours_shows_no_detail(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("agent.explain.explain", broken)
    result = called(desk, "explain", {"name": "x"})
    assert result.is_error and "secret" not in result.model_dump_json() and "internal" in result.content[0].text


def test_unreadable_input_is_a_normal_answer(desk: Desk) -> None:
    (desk.roots.folders[0] / "junk.bin").write_bytes(bytes(range(256)) * 40)
    data = ask(desk, "diagnose", paths=["junk.bin"])
    assert data["outcome"] == "undecidable" and data["problems"]


def test_only_the_latest_runs_are_kept() -> None:
    runs = Runs(keep=3)
    made = [
        runs.add([Evidence(id="E1", fact="x", value=n, source=Source(kind="computed"))]).id for n in range(5)
    ]  # fmt: skip
    assert len(runs) == 3 and [r.id for r in runs.latest()] == made[:1:-1]
    with pytest.raises(Trouble):
        runs.get(made[0])


def test_fit_keeps_heads_and_counts_what_it_cut() -> None:
    data = {"rows": [{"text": "x" * 50} for _ in range(100)], "text": "y" * 4000, "few": [1]}
    small = fit(data, 300)
    assert rough_tokens(dumps(small)) <= 300
    assert small["rows"] and len(small["rows"]) + small["cut"]["rows"] == 100 and small["few"] == [1]
    assert small["text"].endswith("(cut)")


def test_strings_are_cleaned_masked_and_numbers_stay_json() -> None:
    assert short("a\x1b[31mred\u202e token sk-abcdefghij0123 at 10.0.0.7") == "ared token <key-1> at 10.0.0.7"
    assert json.loads(dumps(tidy({"a": float("nan"), "b": [float("inf"), 1.5]}))) == {"a": "nan", "b": ["inf", 1.5]}
    assert PAGE.startswith("# TYPE")


def test_paths_given_by_absolute_name(desk: Desk) -> None:
    whole: Path = desk.roots.folders[0] / "incident" / "metrics.prom"
    assert ask(desk, "diagnose", paths=[str(whole)])["evidence_total"] > 0


def test_the_set_up_page_names_every_tool_option_and_error() -> None:
    import argparse
    import re

    from agent.mcp.cli import DEFAULT_PORT, add_arguments

    repo = Path(__file__).resolve().parents[3]
    page = (repo / "docs" / "mcp.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in TOOLS) and f":{DEFAULT_PORT}/mcp" in page
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    known = {option for action in parser._actions for option in action.option_strings}
    used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page)) - {"--transport", "--url"}
    assert used <= known
    code = "".join(p.read_text(encoding="utf-8") for p in (repo / "agent" / "mcp").glob("*.py"))
    raised = set(re.findall(r'Trouble\(\s*"(\w+)"', code)) - {"no_report", "unknown_resource"}
    assert raised and all(f"`{name}`" in page for name in raised)
