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


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.id)
def test_every_check_says_its_rule_formula_and_source(detector: type) -> None:
    one = explain(detector.id)
    assert len(one.rule) > 20
    assert one.formula
    assert "METRICS.md" in one.source
    assert one.verdict is None
    told = text(one)
    assert detector.id in told
    assert "formula" in told


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.id)
def test_thresholds_that_the_formula_names_are_listed(detector: type) -> None:
    one = explain(detector.id)
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
