"""Real public logs, where they are at hand, against what is known to be true of them."""

from __future__ import annotations

import itertools
import json
import math
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trainmon.tails.formats.stdout import Stdout
from trainmon.tails.record import Mark, Parsed

CORPUS = Path(os.environ.get("TRAINMON_CORPUS", Path(__file__).parents[4] / "shared" / "corpus"))
pytestmark = pytest.mark.skipif(not (CORPUS / "facts.json").exists(), reason="the corpus of real logs is not here")

# Events that have no kind of their own: they are told as this one, or rightly not at all.
_AS_KIND = {"address_in_use": "error", "file_not_found": "error", "warning_traceback": None}
# This log prints each record twice, word for word: one is enough.
_PRINTED_TWICE = {"stdout/megatron-lm__primus-dsv2lite-moe.log"}


@cache
def facts() -> dict[str, Any]:
    path = CORPUS / "facts.json"
    if not path.exists():
        return {}
    known: dict[str, Any] = json.loads(path.read_text())
    return {name: known[name] for name in known if name.startswith("stdout/")}


# All that is asked of one log stands in one process, so that it is read once.
EACH = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in sorted(facts())]


@cache
def parsed(name: str) -> Parsed:
    data = (CORPUS / name).read_bytes()
    reader = Stdout(name)
    out = Parsed()
    start, line_no = 0, 1
    while start < len(data):  # feeds as a tail makes them
        end = data.find(b"\n", start + 65536) + 1 or len(data)
        out.add(reader.feed(data[start:end], start, line_no))
        line_no += data.count(b"\n", start, end)
        start = end
    out.add(reader.finish())
    return out


@cache
def column(name: str, key: str) -> tuple[list[float], list[float]]:
    """Steps and values of all logged cells of `key`, whatever unit its name ends with."""
    steps: list[float] = []
    values: list[float] = []
    for block in parsed(name).blocks:
        for own in block.columns:
            if own == key or own.startswith(f"{key} ("):
                at = np.flatnonzero(block.mark_of(own) != Mark.ABSENT)
                steps += block.steps[at].tolist()
                values += block.columns[own][at].tolist()
                break
    return steps, values


def _same(found: float, known: float | str | None) -> bool:
    if known is None:
        return True
    wanted = float(known)
    return math.isnan(found) if math.isnan(wanted) else found == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("signal", ["loss", "grad_norm"])
@pytest.mark.parametrize("name", EACH)
def test_series(name: str, signal: str) -> None:
    known = facts()[name][signal]
    if known is None:
        if signal == "loss":
            assert not column(name, "loss")[1]
        return
    steps, values = column(name, known["name"])
    assert values, f"{known['name']} was not read"
    occurrences = known["unique_steps"] if name in _PRINTED_TWICE else known["occurrences"]
    assert occurrences is None or len(values) == occurrences
    assert known["unique_steps"] is None or len({step for step in steps if step == step}) == known["unique_steps"]
    for at, place in ((0, "first"), (-1, "last")):
        step, value = known[place]
        assert _same(steps[at], step)
        assert _same(values[at], value)
    finite = [value for value in values if math.isfinite(value)]
    assert _same(min(finite, default=math.nan), known["min"])
    assert _same(max(finite, default=math.nan), known["max"])
    if name not in _PRINTED_TWICE:
        assert len(values) - len(finite) == known["nonfinite"]


@pytest.mark.parametrize("name", EACH)
def test_total_steps(name: str) -> None:
    total = facts()[name]["total_steps"]
    told = [fact.value for fact in parsed(name).facts if fact.key == "total_steps"]
    assert total is None or total in told


@pytest.mark.parametrize("name", EACH)
def test_events(name: str) -> None:
    wanted = {_AS_KIND.get(event, event) for event in facts()[name]["events"]} - {None}
    assert wanted <= {note.kind.value for note in parsed(name).notes}


@pytest.mark.parametrize("name", EACH)
def test_a_run_that_says_so_ended_well_and_no_other(name: str) -> None:
    told = {note.kind.value for note in parsed(name).notes if not note.teardown}
    fatal = {
        "cuda_oom",
        "host_oom",
        "nccl_timeout",
        "init_timeout",
        "xid",
        "segfault",
        "node_fail",
        "time_limit",
        "preempted",
    }
    assert not (told & fatal) - set(facts()[name]["events"])


@pytest.mark.parametrize("name", EACH)
def test_root_error_is_told(name: str) -> None:
    root = facts()[name]["root_error"]
    if root is None:
        return
    assert any(root[:40] in note.text for note in parsed(name).notes)


@pytest.mark.parametrize("name", EACH)
def test_learning_rate(name: str) -> None:
    known = facts()[name]["lr"]
    if known is None:
        return
    _, values = column(name, known["name"])
    assert _same(values[0], known["first"])
    assert _same(values[-1], known["last"])
    assert _same(max(values), known["max"])


@pytest.mark.parametrize("name", EACH)
def test_no_line_of_a_log_is_an_error(name: str) -> None:
    assert parsed(name).unreadable == 0


def test_epochs_are_laid_end_to_end() -> None:
    """A batch counter that falls at each epoch's end is no restart; the relaunch is one."""
    steps, _ = column("stdout/internvl__swin-style-rank0.log", "loss")
    falls = [(before, after) for before, after in itertools.pairwise(steps) if after < before]
    assert falls == [(610.0, 0.0)]


def test_buffered_dictionaries_have_no_step() -> None:
    steps, _ = column("stdout/hf-trainer__lmsys-tqdm-ctrlc.log", "loss")
    assert all(math.isnan(step) for step in steps)


def test_dictionaries_beside_a_bar_have_its_step() -> None:
    steps, _ = column("stdout/trl-grpo__hotpotqa-crash.log", "loss")
    first, last = facts()["stdout/trl-grpo__hotpotqa-crash.log"]["bar_steps"]
    assert (steps[0], steps[-1]) == (first, last)
