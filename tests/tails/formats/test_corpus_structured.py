"""Real public logs, where they are at hand, against what is known to be true of them."""

from __future__ import annotations

import json
import math
import os
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainmon.tails.formats.base import DocumentFormat, FramedFormat, LineFormat
from trainmon.tails.formats.registry import detect
from trainmon.tails.record import Mark, Parsed

CORPUS = Path(os.environ.get("TRAINMON_CORPUS", Path(__file__).parents[4] / "shared" / "corpus"))
pytestmark = pytest.mark.skipif(not (CORPUS / "facts.json").exists(), reason="the corpus of real logs is not here")

# Keys that the facts name in another way than a key can be written.
_KEYS = {'extras."lr/AdamW"': "extras/lr/AdamW"}
_ANY_RUN = "{"


def _facts() -> dict[str, dict[str, Any]]:
    path = CORPUS / "facts.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    # MLPerf's lines are text to the formats here: the stdout dialects read them and have tests of their own.
    return {name: entry for name, entry in known.items() if name.startswith("structured/") and "/mlperf" not in name}


FACTS = _facts()
READABLE = [name for name, entry in FACTS.items() if entry["readable"]]


@cache
def reading(name: str) -> Parsed:
    data = (CORPUS / name).read_bytes()
    reader = detect(data[:65536], name)
    assert reader is not None
    if isinstance(reader, DocumentFormat):
        return reader.parse(data)
    if isinstance(reader, FramedFormat):
        out, at = Parsed(), 0
        for _ in range(4):
            parsed, consumed = reader.feed_frames(data[at:], at)
            out.add(parsed)
            at += consumed
        return out
    assert isinstance(reader, LineFormat)
    out = reader.feed(data, 0, 1)
    out.add(reader.finish())
    return out


def series(parsed: Parsed, key: str) -> tuple[list[float], list[float]]:
    """Steps and values logged under `key`, with any label behind it; carried steps where a row has none."""
    steps: list[float] = []
    values: list[float] = []
    last = math.nan
    for block in parsed.blocks:
        names = [name for name in block.columns if name == key or name.startswith(key + _ANY_RUN)]
        logged = np.zeros(len(block), np.bool_)
        column = np.full(len(block), math.nan)
        for name in names:
            mark = block.mark_of(name)
            rows = (mark != Mark.ABSENT) & (mark != Mark.NULL)
            column[rows] = block.columns[name][rows]
            logged |= rows
        for step, value, is_logged in zip(block.steps.tolist(), column.tolist(), logged.tolist(), strict=True):
            last = step if step == step else last
            if is_logged:
                steps.append(last)
                values.append(value)
    return steps, values


def _same(found: float, known: float | str) -> bool:
    if isinstance(known, str):
        return found != found
    return math.isclose(found, known, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("what", ["loss", "grad_norm"])
@pytest.mark.parametrize("name", READABLE)
def test_series(name: str, what: str) -> None:
    known = FACTS[name][what]
    if known is None or "name" not in known:
        pytest.skip("no such quantity in this log")
    key = _KEYS.get(known["name"], known["name"])
    steps, values = series(reading(name), key)
    assert len(values) == known["occurrences"]
    if known["unique_steps"] is not None:
        assert len(set(steps)) == known["unique_steps"]
    for place, index in (("first", 0), ("last", -1)):
        step, value = known[place]
        assert _same(values[index], value), place
        assert step is None or steps[index] == step
    finite = [value for value in values if math.isfinite(value)]
    assert len(values) - len(finite) == known["nonfinite"]
    assert _same(min(finite), known["min"])
    assert _same(max(finite), known["max"])


@pytest.mark.parametrize("name", [name for name in READABLE if (FACTS[name]["lr"] or {}).get("name")])
def test_learning_rate(name: str) -> None:
    known = FACTS[name]["lr"]
    _, values = series(reading(name), _KEYS.get(known["name"], known["name"]))
    assert _same(values[0], known["first"])
    assert _same(values[-1], known["last"])
    assert _same(max(values), known["max"])


@pytest.mark.parametrize("name", [name for name in READABLE if FACTS[name]["total_steps"]])
def test_total_steps(name: str) -> None:
    told = [fact.value for fact in reading(name).facts if fact.key == "total_steps"]
    assert told
    assert told[-1] == FACTS[name]["total_steps"]


@pytest.mark.parametrize("name", [name for name in READABLE if FACTS[name]["restarts"]])
def test_restarts_show_in_the_steps(name: str) -> None:
    steps = [step for block in reading(name).blocks for step in block.steps.tolist() if step == step]
    falls = [[int(a), int(b)] for a, b in pairwise(steps) if b < a]
    for fall in FACTS[name]["restarts"]:
        assert fall in falls


@pytest.mark.parametrize("name", [name for name in READABLE if FACTS[name]["restarts"] == []])
def test_no_restart_where_there_was_none(name: str) -> None:
    if {"several_runs", "step_resets_each_epoch"} & set(FACTS[name]["hazards"]):
        pytest.skip("the steps fall for another reason, which the keys beside them tell")
    steps = [step for block in reading(name).blocks for step in block.steps.tolist() if step == step]
    assert all(a <= b for a, b in pairwise(steps))


@pytest.mark.parametrize("name", [name for name in FACTS if not FACTS[name]["readable"]])
def test_unreadable_ones_do_not_raise(name: str) -> None:
    data = (CORPUS / name).read_bytes()
    reader = detect(data[:65536], name)
    if reader is None:
        assert not data
        return
    assert reading(name).unreadable == 0


@pytest.mark.parametrize("name", READABLE)
def test_nothing_is_unreadable(name: str) -> None:
    assert reading(name).unreadable == 0


@pytest.mark.parametrize("name", [name for name in READABLE if FACTS[name]["val_loss"]])
def test_validation_loss(name: str) -> None:
    known = FACTS[name]["val_loss"]
    named = str(known.get("name", "")).removesuffix(" (all runs mixed)").removesuffix(" (all runs and tasks mixed)")
    found = [series(reading(name), key) for key in ([named] if named else ["val_loss", "eval_loss"])]
    steps, values = next((one for one in found if one[1]), ([], []))
    assert len(values) == known["count"]
    for place, index in (("first", 0), ("last", -1)):
        step, value = known[place]
        assert _same(values[index], value)
        assert step is None or steps[index] == step
