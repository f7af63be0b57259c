"""New inputs on a thread: all files and words are read together again, so that the answer is that of one reading.

Ids never change their meaning: a row that the new reading no longer yields stays under its id with status ``no_data``, and
rules do not read it any more. Rows of live addresses, and of files that are gone by now, are kept as they were.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent.assistant import BY_MODEL
from agent.state import Env, State
from agent.steps import collect

Row = dict[str, Any]
GONE = "superseded by what was given later"


def recollect(env: Env, state: State) -> State:
    """:func:`agent.steps.collect` over the inputs of ``env`` and the rows that they do not yield anew."""
    before = state.get("evidence", [])
    if not before or env.gather is None:
        return collect(env, state)
    gathered = env.gather()
    again = set(gathered[2])
    kept = [
        row for row in before if not _computed(row) and (row["source"].get("ref", "") not in again or _of_model(row))
    ]
    env.gather = lambda: gathered
    update = collect(env, State(**{**state, "evidence": kept}))
    rows = merge(before, update["evidence"])
    env.cache.pop("ledger", None)
    env.cache.pop("rows", None)
    return State(**{**update, "evidence": env.keep(env.ledger(State(evidence=rows)))})


def merge(before: list[Row], after: list[Row]) -> list[Row]:
    """The old rows in their places, then the rows that are new; ``inputs`` of computed rows point to the final ids."""
    fresh = {_key(row): row for row in after}
    out: list[Row] = []
    final: dict[str, str] = {}
    for row in before:
        now = fresh.pop(_key(row), None)
        if now is None:
            out.append(row if GONE in row.get("caveats", ()) else _gone(row))
        else:
            final[now["id"]] = row["id"]
            out.append({**now, "id": row["id"]})
    for row in fresh.values():
        final[row["id"]] = f"E{len(out) + 1}"
        out.append({**row, "id": final[row["id"]]})
    return [_pointed(row, final) if row.get("status", "ok") == "ok" else row for row in out]


def _gone(row: Row) -> Row:
    # The method changes too: the ledger takes an equal reading, should it come again, as a new row and not as this one.
    method = f"{row.get('method', '')} ({GONE})".strip()
    return {**row, "status": "no_data", "method": method, "caveats": [GONE]}


def _computed(row: Row) -> bool:
    return bool(row["source"]["kind"] == "computed")


def _of_model(row: Row) -> bool:
    return BY_MODEL in row.get("caveats", ())


def _key(row: Row) -> bytes:
    source = {k: v for k, v in row["source"].items() if k != "inputs"}
    kept = [row["fact"], row["value"], source, row.get("method"), row.get("labels"), row.get("window")]
    return msgspec.json.encode(kept, order="sorted")


def _pointed(row: Row, final: dict[str, str]) -> Row:
    inputs = row["source"].get("inputs", [])
    if not inputs or not _computed(row):
        return row
    return {**row, "source": {**row["source"], "inputs": [final.get(i, i) for i in inputs]}}
