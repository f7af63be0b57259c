"""A thread as a draft case in this site's journal: a masked world folder and one YAML line. A person checks it later.

Layout: ``journal/drafts/NAME/world/…`` (what was given), ``journal/drafts/NAME/draft.yaml`` (answer and corrections),
``journal/drafts.yaml`` (one line a draft). Nothing is masked twice differently: one table for the whole thread.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from agent.diagnosis import Diagnosis
from agent.slack.store import Store
from tools.mask import Masker, mask_file
from tools.part import Part


def save(store: Store, thread: str, diagnosis: Diagnosis | None, journal: Path) -> tuple[str, int, list[str]]:
    """Write the draft; ``(name, number of files, what was left out)``. Saving again replaces it.

    Raises ``OSError`` when the journal cannot be written.
    """
    name = "draft-" + hashlib.sha256(thread.encode()).hexdigest()[:10]
    entries = store.inbox(thread)
    if not entries:
        return name, 0, []
    root = journal / "drafts" / name
    world = root / "world"
    world.mkdir(parents=True, exist_ok=True)
    for old in world.iterdir():
        if old.is_file():
            old.unlink()
    masker = Masker()
    left: list[str] = []
    count = 0
    for entry in entries:
        part = _part(store, entry)
        if part is None:
            left.append(f"{entry['kind']} {entry.get('urls') or entry.get('url') or ''}: a live source, not a file")
            continue
        problem = mask_file(part, world / masker.mask(part.name), masker)
        if problem is None:
            count += 1
        else:
            left.append(problem.line())
    record = _record(name, diagnosis, store.opinions(thread), left, masker)
    import yaml

    (root / "draft.yaml").write_text(yaml.safe_dump(record, sort_keys=False, allow_unicode=True), encoding="utf-8")
    _line(journal / "drafts.yaml", name, record)
    return name, count, left


def _part(store: Store, entry: dict[str, Any]) -> Part | None:
    if entry["kind"] == "text":
        return Part(name=f"said-{entry['n']:03d}.md", data=str(entry["text"]).encode())
    if entry["kind"] == "file":
        safe = "".join(c if c.isalnum() or c in "._-" else "-" for c in str(entry["name"]))[-80:]
        data = store.file(str(entry["sha"]))
        return Part(name=f"{entry['n']:03d}-{safe.lstrip('.')}", data=data) if data else None
    return None


def _record(
    name: str, d: Diagnosis | None, opinions: list[dict[str, str]], left: list[str], masker: Masker
) -> dict[str, Any]:
    """What a person needs to turn the draft into a label: our answer, their correction, what is missing."""
    told = [o for o in opinions if o["cause"]]
    cause = told[-1]["cause"] if told else (d.causes[0].family if d and d.causes and d.outcome == "incident" else "")
    false_alarm = any(o["reason"] == "false_alarm" for o in opinions)
    return {
        "id": name,
        "outcome": "healthy" if false_alarm and not told else (d.outcome if d else "undecidable"),
        "cause_families": [cause] if cause and not (false_alarm and not told) else [],
        "confirmed": bool(told) or any(o["verdict"] == "up" for o in opinions),
        "line": masker.mask(d.headline) if d else "",
        "answered": {"outcome": d.outcome, "cause": d.causes[0].family if d.causes else ""} if d else {},
        "feedback": [{k: masker.mask(v) for k, v in o.items() if v} for o in opinions],
        "left_out": [masker.mask(t) for t in left],
    }


def _line(path: Path, name: str, record: dict[str, Any]) -> None:
    """One flow mapping per line, so that ``grep`` and YAML both read it; an older line of the draft is replaced."""
    keys = ("id", "outcome", "cause_families", "confirmed", "line")
    text = "- " + json.dumps({k: record[k] for k in keys}, ensure_ascii=False)
    old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = [row for row in old if f'"id": "{name}"' not in row]
    fresh = path.with_suffix(".new")
    fresh.write_text("\n".join([*kept, text]) + "\n", encoding="utf-8")
    fresh.replace(path)
