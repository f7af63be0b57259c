"""The correction modal, and reading what came back."""

from __future__ import annotations

from typing import Any

from agent.phrases import say
from agent.slack.escape import plain
from agent.slack.words import REASONS, word
from knowledge.schema import Knowledge, both

CALLBACK = "feedback_modal"


def _option(text: str, value: str) -> dict[str, Any]:
    return {"text": {"type": "plain_text", "text": plain(text, 75)}, "value": value}


def modal(known: Knowledge, token: str, lang: str = "en") -> dict[str, Any]:
    """Asks what was wrong and what the true cause is. Options: at most 100 in each group of a layer."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for family, card in sorted(known.families.items()):
        groups.setdefault(card.layer, []).append(_option(both(card.title, lang), family))
    return {
        "type": "modal",
        "callback_id": CALLBACK,
        "private_metadata": token,
        "title": {"type": "plain_text", "text": word("modal.title", lang)[:24]},
        "submit": {"type": "plain_text", "text": word("modal.submit", lang)[:24]},
        "close": {"type": "plain_text", "text": word("modal.cancel", lang)[:24]},
        "blocks": [
            {
                "type": "input",
                "block_id": "reason",
                "label": {"type": "plain_text", "text": word("modal.reason", lang)},
                "element": {
                    "type": "radio_buttons",
                    "action_id": "reason",
                    "options": [_option(word(f"reason.{r}", lang), r) for r in REASONS],
                },
            },
            {
                "type": "input",
                "block_id": "cause",
                "optional": True,
                "label": {"type": "plain_text", "text": word("modal.cause", lang)},
                "element": {
                    "type": "static_select",
                    "action_id": "cause",
                    "option_groups": [
                        {
                            "label": {"type": "plain_text", "text": say(f"layer.{layer}", lang)[:75]},
                            "options": rows[:100],
                        }
                        for layer, rows in sorted(groups.items())
                    ],
                },
            },
            {
                "type": "input",
                "block_id": "note",
                "optional": True,
                "label": {"type": "plain_text", "text": word("modal.note", lang)},
                "element": {"type": "plain_text_input", "action_id": "note", "multiline": True, "max_length": 1000},
            },
        ],
    }


def read_modal(view: dict[str, Any], known: Knowledge) -> dict[str, str]:
    """``reason``, ``cause``, ``note`` of a submitted modal; values that are not on offer are left out."""
    values = view.get("state", {}).get("values", {})
    reason = ((values.get("reason", {}).get("reason") or {}).get("selected_option") or {}).get("value", "")
    cause = ((values.get("cause", {}).get("cause") or {}).get("selected_option") or {}).get("value", "")
    note = (values.get("note", {}).get("note") or {}).get("value") or ""
    return {
        "reason": reason if reason in REASONS else "",
        "cause": cause if cause in known.families else "",
        "note": str(note)[:1000],
    }
