"""A log whose only counter is the tokens or samples seen: times are a record's, and rates follow from the counter."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from trainmon.monitor import inventory
from trainmon.monitor.compare.alignment import curve_of
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import RunSnapshot

TIME, RATE = SignalKey("sys.step_time"), SignalKey("sys.tokens_per_second")


def run_of(folder: Path, counter: str, size: int, stamp_s: float = 0.25, **more: float) -> RunSnapshot:
    """120 records of `size` tokens or samples and 9 s each."""
    rows = [
        {counter: size * n, "loss": 3 - n / 100, "time": 1.7e9 + stamp_s + 9.0 * n, **more, **extra(n)}
        for n in range(1, 121)
    ]
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = judge([str(path)], cwd=folder).runs
    return run


def extra(n: int) -> dict[str, float]:
    return {"val_loss": 3.1 - n / 100} if n % 20 == 0 else {}


def what(run: RunSnapshot, check_id: str) -> str:
    (found,) = [check.what for check in run.checks if check.id == check_id]
    return found


@pytest.mark.parametrize("stamp_s", [0.25, 0.0])  # whole seconds are differenced over longer spans
def test_tokens_as_the_only_counter(tmp_path: Path, stamp_s: float) -> None:
    run = run_of(tmp_path, "tokens_seen", 4_194_304, stamp_s)
    assert run.step_key == "tokens_seen"
    times = run.series[TIME].values
    assert np.allclose(times[np.isfinite(times)], 9.0)
    rates = run.series[RATE].values
    assert np.allclose(rates[np.isfinite(rates)], 4_194_304 / 9)
    assert what(run, "sys.step_time") == "steady at 9.00 s a record"
    assert "466k tokens/s" in what(run, "sys.throughput")


def test_samples_as_the_only_counter(tmp_path: Path) -> None:
    run = run_of(tmp_path, "consumed_samples", 512)
    assert what(run, "sys.step_time") == "steady at 9.00 s a record"
    assert RATE not in run.series  # nothing says how long a sample is


def test_steps_beside_the_tokens_stay_steps(tmp_path: Path) -> None:
    run = run_of(tmp_path, "step", 10, tokens_seen=1.0)
    assert what(run, "sys.step_time") == "steady at 0.900 s"
    assert "step_counts" not in run.facts


def test_the_inventory_says_what_is_counted(tmp_path: Path) -> None:
    text = inventory.text(run_of(tmp_path, "consumed_samples", 512))
    assert "val_loss every 10,240 samples" in text
    assert "every 512 steps" not in text


def test_curves_over_tokens_and_time(tmp_path: Path) -> None:
    run = run_of(tmp_path, "tokens_seen", 1000)
    over_tokens, over_time = curve_of(run, "loss.train", "tokens"), curve_of(run, "loss.train", "time")
    assert over_tokens is not None
    assert over_tokens.x[-1] == 120_000
    assert over_time is not None
    assert over_time.x[-1] == pytest.approx(9.0 * 120, rel=0.02)
