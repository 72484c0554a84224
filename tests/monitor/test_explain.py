"""--explain: every check of the registry, from its class alone, and with a run's numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from trainmon.cli import main
from trainmon.monitor.detectors.registry import DETECTORS
from trainmon.monitor.explain import explain, known, text
from trainmon.monitor.finding import Verdict
from trainmon.monitor.judge import judge
from trainmon.monitor.thresholds import DEFAULTS, Thresholds


def write(path: Path, spike_at: int = 0) -> Path:
    rows = (
        {"step": i, "loss": 9.0 if i == spike_at else 2.0 + 0.01 * (i * 7 % 5), "grad_norm": 0.5} for i in range(1, 400)
    )
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("check", known())
def test_every_check_says_its_rule_formula_and_source(check: str) -> None:
    one = explain(check)
    assert len(one.rule) > 20
    assert one.formula
    assert "METRICS.md" in one.source
    assert one.verdict is None
    told = text(one)
    assert check in told
    assert "formula" in told


@pytest.mark.parametrize("check", known())
def test_thresholds_that_the_formula_names_are_listed(check: str) -> None:
    one = explain(check)
    named = {name for name in re.findall(r"[a-z_]+(?:\.[a-z_0-9]+)+", one.formula) if name in DEFAULTS}
    assert named <= {limit.name for limit in one.limits}


def test_values_come_with_their_source() -> None:
    limits = Thresholds().override({"spike.z": 9.0}, source="some/trainmon.toml (owner: x)")
    z = next(limit for limit in explain("loss.spike", None, limits).limits if limit.name == "spike.z")
    assert (z.value, z.default, z.source) == (9.0, 6.0, "some/trainmon.toml (owner: x)")
    assert "spike.z" in text(explain("loss.spike", None, limits))
    assert "default 6" in text(explain("loss.spike", None, limits))


def test_the_runs_own_numbers(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", spike_at=300)
    (run,) = judge([str(path)], cwd=tmp_path).runs
    one = explain("loss.spike", run)
    assert one.verdict is Verdict.WARN
    assert any("399 values" in number for number in one.numbers)
    assert any("step 300" in number for number in one.numbers)
    assert any("spike score of loss" in number for number in one.numbers)


def test_every_check_of_a_report_can_be_explained(tmp_path: Path) -> None:
    (run,) = judge([str(write(tmp_path / "log.jsonl"))], cwd=tmp_path).runs
    assert {one.id for one in run.checks} <= set(known())
    assert {detector.id for detector in DETECTORS} < set(known())


def test_the_jobs_state_comes_with_the_rhythm_that_silence_is_held_against(tmp_path: Path) -> None:
    stamped = [{"step": i, "loss": 2.0, "time": 1.7e9 + 120.0 * i + (900.0 if i > 300 else 0.0)} for i in range(1, 400)]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in stamped), encoding="utf-8")
    (run,) = judge([str(log)], cwd=tmp_path, limits=Thresholds().override({"silence.gaps": 20.0}, source="me")).runs
    one = explain("job.state", run)
    told = "\n".join(one.numbers)
    assert "step 399" in told
    assert "gaps between records: median 2 min 0 s, 99th percentile 2 min 0 s" in told
    assert "long pauses: 1, the newest of 17 min behind step 300" in told
    assert "slow from 20 min of silence on, hung from 40 min" in told  # 20 x 2 min
    assert ("silence.gaps", 20.0, "me") in {(limit.name, limit.value, limit.source) for limit in one.limits}


def test_the_limit_of_a_job_that_is_over_is_not_told(tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl")
    log.write_text(log.read_text() + "Training completed.\n", encoding="utf-8")
    (run,) = judge([str(log)], cwd=tmp_path).runs
    assert not any("hung from" in number for number in explain("job.state", run).numbers)


def test_an_unknown_check_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        explain("loss.spikes")


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "log.jsonl")
    done = CliRunner().invoke(main, ["check", "log.jsonl", "--explain", "loss.spike", "--window", "50"])
    assert done.exit_code == 0
    assert "0.6745" in done.stdout
    assert re.search(r"window +50 +\(flag --window; default 100\)", done.stdout)
    wrong = CliRunner().invoke(main, ["check", "log.jsonl", "--explain", "loss"])
    assert wrong.exit_code == 2
    assert all(name in " ".join(wrong.output.split()) for name in known()[:3])


@pytest.mark.parametrize("check", ["job.state", "job.risk"])
def test_a_check_of_the_job_says_what_it_compares_with(check: str) -> None:
    one = explain(check)
    assert "thresholds" in text(one)
    assert bool(one.limits) is not bool(one.bounds)
