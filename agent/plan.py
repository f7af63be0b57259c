"""Next probes: enumerated from knowledge, ordered by expected change of belief per cost."""

from __future__ import annotations

from agent.belief import NOT_GIVEN, UNREADABLE, Hypothesis, calibration
from agent.belief import leads as leads_of
from agent.diagnosis import ProbeAdvice, RuleResult
from agent.origins import LIKENESS
from knowledge.schema import Knowledge, Probe, Text, both
from tools.view import Ledger

_COST = {"none": 1.0, "low": 1.5, "medium": 3.0, "high": 6.0}
_NEEDED = (
    "queue.waiting.p50",
    "queue.running.max",
    "kv.usage.max",
    "ttft.mean_s",
    "itl.mean_s",
    "requests.finished.count",
)
MAX_PROBES = 6
# So many leads or likenesses are asked about; a likeness below this share is chance.
ALIKE = 3
ALIKE_FROM = 0.05
# What a person says is no reading to fetch, and the two pages of the vital signs hold every metric.
_TOLD = ("symptom.", "concept.", "shape.", "said.")
_PAGES = "curl -s http://HOST:PORT/metrics > metrics-000.prom"
# Below this confidence a lead is not worth a probe of its own before the vital signs are known.
WEAK_LEAD = 0.3
# A cause that words alone named is decided before anything else is asked.
NAMED_BY_WORDS = 2.0
VITAL_SIGNS = Probe(
    id="vital-signs",
    ask=Text(
        en="Two metrics pages, 30 s apart, while it hurts (running, waiting, KV usage, latencies); with the launch command and the server log if they are at hand",
        zh="故障期间间隔 30 秒抓取两次 metrics（运行、排队、KV 占用、延迟）；如有启动命令与服务日志请一并提供",
    ),
    command="curl -s http://HOST:PORT/metrics > metrics-000.prom; sleep 30; curl -s http://HOST:PORT/metrics > "
    "metrics-001.prom; inferdx diagnose metrics-00*.prom",
    cost="none",
    yields=list(_NEEDED),
    if_true=Text(
        en="waiting above 0: KV usage tells a full cache from a cap; waiting 0 with late tokens: prefill, host or client",
        zh="waiting 大于 0：看 KV 占用区分缓存满与上限；waiting 为 0 而 token 慢：预填充、主机或客户端",
    ),
    if_false=Text(
        en="no page: the server is down, or this is not its port; read the log",
        zh="无页面：服务未运行或端口不对；看日志",
    ),
)
MACHINE = Probe(
    id="machine-state",
    ask=Text(
        en="What the machine does while it hurts: GPU clocks, power, throttle reasons, processes and links; CPU use per process",
        zh="故障期间机器状态：GPU 频率、功率、降频原因、进程与链路；各进程 CPU 占用",
    ),
    command="nvidia-smi -q > nvidia-smi-q.txt; nvidia-smi pmon -c 5 > pmon.txt; nvidia-smi topo -m > topo.txt; "
    "top -b -n 2 -d 5 > top.txt",
    cost="none",
    yields=["gpu.clock_sm_mhz", "gpu.util", "host.cpu_idle"],
    if_true=Text(
        en="low clocks, foreign processes, a narrow link or a full core: the layer below the engine is the place to look",
        zh="频率低、外来进程、链路降速或单核占满：问题在引擎之下",
    ),
    if_false=Text(en="the machine is well: look at the engine and its load", zh="机器正常：看引擎与负载"),
)


def _cost(text: str) -> float:
    low = text.lower()
    for word, value in _COST.items():
        if word in low:
            return value
    return 2.0


def enumerate_probes(
    known: Knowledge, ledger: Ledger, found: list[Hypothesis], results: list[RuleResult], lang: str
) -> list[ProbeAdvice]:
    """Probes of the leading hypotheses, then readings that would settle most undecided rules. Best first."""
    table: dict[str, ProbeAdvice] = {}
    leads = leads_of(found)[:5]
    for h in leads:
        card = known.families.get(h.family)
        probes = [p for rule in h.rules for p in rule.probes] + (card.probes if card else [])
        doubt = max(h.confidence * (1 - h.confidence), 0.02)
        if h is leads[0] and not h.shown and h.confidence >= calibration().incident_at:
            doubt *= NAMED_BY_WORDS
        wanted = {r.probe for r in h.untested if r.probe}
        for rank, probe in enumerate(probes):
            if probe.yields and all(ledger.value(f) is not None for f in probe.yields):
                continue
            gain = doubt * (1.6 if probe.id in wanted else 1.0) * (1.4 if probe.kind == "control_run" else 1.0)
            _add(table, probe, h.family, gain / (_cost(probe.cost) * (1 + 0.15 * rank)), lang)
    if ledger.value(UNREADABLE) is True:
        _add(table, VITAL_SIGNS, "", 10.0, lang)
    elif all(h.confidence < WEAK_LEAD for h in leads):
        if any(ledger.value(f) is None for f in _NEEDED[:3]):
            _add(table, VITAL_SIGNS, "", 1.0, lang)
        if all(ledger.value(fact) is None for fact in MACHINE.yields):
            _add(table, MACHINE, "", 0.5, lang)
    if gone := [str(item.value) for item in ledger.of(NOT_GIVEN)]:
        names = ", ".join(gone)
        ask = Text(en=f"The files the report points to: {names}", zh=f"报告提到的文件：{names}")
        _add(
            table,
            Probe(id="missing-files", ask=ask, command=f"inferdx diagnose … {' '.join(gone)}", cost="none"),
            "",
            5.0,
            lang,
        )
    if len(leads) < ALIKE and all(h.confidence < calibration().incident_at for h in leads):
        _alike(known, ledger, table, {h.family for h in leads}, lang)
    for fact, weight in _wanted_facts(known, found, results).items():
        definition = known.facts.get(fact)
        if definition is None or definition.get is None or ledger.value(fact) is not None or fact.startswith(_TOLD):
            continue
        if VITAL_SIGNS.id in table and definition.get.how.startswith(_PAGES):
            continue
        probe = Probe(
            id=f"read:{fact}", ask=definition.means, command=definition.get.how, cost=definition.get.cost, yields=[fact]
        )
        same = next((p for p in table.values() if p.command == probe.command), None)
        if same is not None:
            same.value = round(same.value + weight / 4, 4)
            if fact not in same.yields:
                same.yields.append(fact)
            continue
        _add(table, probe, "", weight / _cost(probe.cost), lang)
    return sorted(table.values(), key=lambda p: (-p.value, p.id))[:MAX_PROBES]


def _alike(known: Knowledge, ledger: Ledger, table: dict[str, ProbeAdvice], leads: set[str], lang: str) -> None:
    """With few leads, the first probes of the families that the words resemble most: a topic is enough to ask about."""
    items = sorted(ledger.of(LIKENESS), key=lambda i: -i.value if isinstance(i.value, float) else 0.0)
    for item in items[:ALIKE]:
        family = item.labels.get("family", "")
        card = known.families.get(family)
        share = item.value if isinstance(item.value, float) else 0.0
        if card is None or family in leads or share < ALIKE_FROM:
            continue
        for rank, probe in enumerate(card.probes[:2]):
            if probe.yields and all(ledger.value(f) is not None for f in probe.yields):
                continue
            _add(table, probe, family, share / (_cost(probe.cost) * (1 + rank)), lang)


def _add(table: dict[str, ProbeAdvice], probe: Probe, family: str, value: float, lang: str) -> None:
    found = table.get(probe.id)
    if found is None:
        table[probe.id] = ProbeAdvice(
            id=probe.id, ask=both(probe.ask, lang), command=probe.command, kind=probe.kind, cost=probe.cost,
            families=[family] if family else [], if_true=both(probe.if_true, lang), if_false=both(probe.if_false, lang),
            yields=list(probe.yields), change=probe.change, keep=probe.keep, read=probe.read, value=round(value, 4),
        )  # fmt: skip
        return
    found.value = round(found.value + value, 4)
    if family and family not in found.families:
        found.families.append(family)


def _wanted_facts(known: Knowledge, found: list[Hypothesis], results: list[RuleResult]) -> dict[str, float]:
    """Missing facts weighted by the rules they would settle: those of live hypotheses, then vital signs."""
    cal = calibration()
    live = {h.family: h.confidence for h in found if h.outcome == "incident" and not h.refuted}
    weights: dict[str, float] = {}
    for result in results:
        if result.state != "missing_input" or not result.missing:
            continue
        belief = live.get(result.family, 0.0)
        if belief < cal.lead_at and not result.held:
            continue
        share = cal.strengths[known.rules[result.id].strength] / 40 / len(result.missing)
        for fact in result.missing:
            weights[fact] = weights.get(fact, 0.0) + share * max(belief, 0.1)
    if not weights:
        for fact in _NEEDED:
            weights[fact] = 0.02
    return weights


def missing_facts(results: list[RuleResult], limit: int = 20) -> list[str]:
    """The facts whose absence left most rules undecided."""
    counts: dict[str, int] = {}
    for result in results:
        if result.state == "missing_input":
            for fact in result.missing:
                counts[fact] = counts.get(fact, 0) + 1
    return [fact for fact, _ in sorted(counts.items(), key=lambda kv: (-kv[1], kv[0]))][:limit]
