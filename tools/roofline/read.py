"""Reads ``config.json`` (with its ``hf_quant_config.json``) into facts of the model."""

from __future__ import annotations

import json
import re
from typing import Any

from tools.contract import Context, Problem, Reading, ReadResult, Source
from tools.part import Part
from tools.roofline.facts import model_readings
from tools.roofline.model import model_from_config
from tools.roofline.shape import Refusal

_LIMIT = 8 << 20
_SUFFIX = re.compile(r"(?:_|-|\.|/)?(?:hf_quant_)?config\.json$|_keyfields\.json$")


def read(parts: list[Part], context: Context) -> ReadResult:
    """One set of ``model.*`` readings per config; a quantisation file beside it is taken with it.

    Files that are no JSON objects, or lack a field that is needed, become one :class:`~tools.contract.Problem` each.
    """
    result = ReadResult()
    shapes: list[tuple[Part, dict[str, Any]]] = []
    quants: dict[str, dict[str, Any]] = {}
    for part in parts:
        data = _load(part, result)
        if data is None:
            continue
        if isinstance(data.get("quantization"), dict) and "hidden_size" not in data and "text_config" not in data:
            quants[_stem(part)] = data
        else:
            shapes.append((part, data))
    for part, data in shapes:
        quant = quants.pop(_stem(part), None)
        _one(part, data, quant, result)
    for stem in quants:
        result.problems.append(
            Problem(
                ref=stem or "hf_quant_config.json",
                what="a quantisation file without its config.json: layers and sizes are unknown",
                do="add config.json from the same folder",
            )
        )
    if context.options.get("model_name") and len(shapes) == 1 and result.readings:
        name = context.options["model_name"]
        source = result.readings[0].source
        result.readings.append(Reading(fact="model.name", value=name, source=source, method="given by the caller"))
    return result


def _stem(part: Part) -> str:
    """What a config and its quantisation file have in common: the folder, or the name before the suffix."""
    return _SUFFIX.sub("", part.name)


def _load(part: Part, result: ReadResult) -> dict[str, Any] | None:
    if part.size() > _LIMIT:
        result.problems.append(
            Problem(ref=part.name, what="over 8 MiB, no model config is that large", do="give config.json")
        )
        return None
    try:
        data = json.loads(part.text(_LIMIT))
    except (json.JSONDecodeError, RecursionError) as error:
        where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        result.problems.append(
            Problem(ref=part.name, what=f"not JSON{where}", do="give the whole file", severity="error")
        )
        return None
    if not isinstance(data, dict):
        result.problems.append(Problem(ref=part.name, what="not a JSON object", do="give the model's config.json"))
        return None
    return data


def _one(part: Part, data: dict[str, Any], quant: dict[str, Any] | None, result: ReadResult) -> None:
    name = str(data.get("_name_or_path") or "") or _stem(part).rpartition("/")[2].replace("--", "/")
    source = Source(kind="file", ref=part.name, line=1)
    shape = model_from_config(data, quant=quant, name=name)
    labels = {"model": name} if name else {}
    if isinstance(shape, Refusal):
        result.problems.append(
            Problem(ref=part.name, what=f"{shape.field}: {shape.why}", do=shape.do or "give the whole config.json")
        )
        result.readings.append(
            Reading(fact="model.refused_field", value=shape.field, source=source, method=shape.why, labels=labels)
        )
        return
    result.readings.extend(model_readings(shape, source, labels))
