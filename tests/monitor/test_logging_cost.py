"""What logging costs: told from step times alone, beside evaluations, checkpoints and noise."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from trainmon.cli import main
from trainmon.monitor.inventory import document, text
from trainmon.monitor.judge import judge
from trainmon.monitor.logging_cost import LoggingCost, interval_for, logging_cost
from trainmon.monitor.snapshot import RunSnapshot

BASE_S, SCAN_S, EVERY = 3.0, 0.6, 100


def run_of(tmp_path: Path, records: list[dict[str, float]]) -> RunSnapshot:
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return judge([str(path)], cwd=tmp_path).runs[0]


def records(
    count: int = 2000, *, scan_s: float = SCAN_S, late: bool = False, noise: float = 0.02
) -> list[dict[str, float]]:
    """A run that scans its tensors every `EVERY` steps and evaluates every 250; `late`: the step behind pays."""
    rng = random.Random(5)
    made: list[dict[str, float]] = []
    for step in range(1, count + 1):
        record = {"step": step, "loss": 2.5 + 1 / step, "grad_norm": 1.0, "step_time": BASE_S + rng.gauss(0, noise)}
        if step % EVERY == 0:
            record |= {f"absmax/layer_{layer}": 3.0 for layer in range(4)}
        if (step - late) % EVERY == 0:
            record["step_time"] += scan_s
        if step % 250 == 0:
            record |= {"val_loss": 2.75, "step_time": 40.0}
        made.append(record)
    return made


@pytest.mark.parametrize("late", [False, True])
def test_the_cost_of_a_scan_is_its_excess_whichever_step_pays(tmp_path: Path, *, late: bool) -> None:
    [cost] = logging_cost(run_of(tmp_path, records(late=late)), 0.001).costs
    assert cost.signals == tuple(f"tensor.abs_max{{layer={layer}}}" for layer in range(4))
    assert (cost.every_steps, cost.is_certain) == (EVERY, True)
    assert cost.cost_s == pytest.approx(SCAN_S, rel=0.1)
    assert cost.others_s == pytest.approx(BASE_S, rel=0.01)
    assert cost.share == pytest.approx(SCAN_S / (EVERY * BASE_S + SCAN_S), rel=0.1)
    assert cost.interval_steps == interval_for(cost.cost_s, cost.others_s, 0.001) > EVERY


def test_the_interval_keeps_the_cost_under_the_share() -> None:
    for cost_s, others_s, share in [(0.3, 3.0, 0.01), (7.0, 0.5, 0.002), (1e-3, 2.0, 0.5)]:
        k = interval_for(cost_s, others_s, share)
        assert cost_s / (k * others_s + cost_s) <= share * (1 + 1e-9)
        assert k == 1 or cost_s / ((k - 1) * others_s + cost_s) > share


def test_a_scan_that_costs_nothing_is_not_blamed(tmp_path: Path) -> None:
    [cost] = logging_cost(run_of(tmp_path, records(scan_s=0.0))).costs
    assert not cost.is_certain
    assert abs(cost.cost_s) < 0.05


def reason(found: LoggingCost) -> str:
    assert found.costs == ()
    return found.reason


def test_what_cannot_be_told_says_what_to_log(tmp_path: Path) -> None:
    bare = [{"step": step, "loss": 2.5} for step in range(30)]
    assert "log it at every step" in reason(logging_cost(run_of(tmp_path, bare)))
    dense = [{**record, "step_time": 3.0} for record in bare]
    assert "every K-th" in reason(logging_cost(run_of(tmp_path, dense)))
    assert "only 5 steps" in reason(logging_cost(run_of(tmp_path, dense[:5])))


def test_both_outputs_tell_it(tmp_path: Path) -> None:
    run = run_of(tmp_path, records())
    told = document(run, 0.001)["logging"]
    assert isinstance(told, dict)
    assert (told["share"], told["reason"], len(told["costs"])) == (0.001, None, 1)
    assert "keeps it under 0.1% of the time, not every 100" in text(run, 0.001)
    assert "keeps it under 1% of the time, which is enough" in text(run)


@pytest.mark.parametrize(("share", "status"), [("1%", 0), ("0.02", 0), ("0", 2), ("150%", 2), ("much", 2)])
def test_the_share_is_a_percentage_or_a_fraction(tmp_path: Path, share: str, status: int) -> None:
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records(40)))
    assert CliRunner().invoke(main, ["inventory", str(tmp_path / "m.jsonl"), "--share", share]).exit_code == status
