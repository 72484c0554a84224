"""Calibration: what is learned, what is refused, what the file says, and who inherits it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from trainmon.cli import main
from trainmon.monitor.calibrate.file import content, parse_rate, rate_text
from trainmon.monitor.calibrate.fit import fit
from trainmon.monitor.calibrate.learning import Calibration, CalibrationError, Refusal, SourceRun, calibrate
from trainmon.monitor.calibrate.rules import FAMILIES, SCALES, values_at
from trainmon.monitor.detectors.registry import DETECTORS
from trainmon.monitor.finding import Verdict
from trainmon.monitor.judge import judge
from trainmon.monitor.settings import Settings
from trainmon.monitor.stats.poisson import upper_bound
from trainmon.monitor.thresholds import DEFAULTS, Thresholds

RATE = 1e-5


def write(path: Path, *, steps: int = 4000, seed: int = 0, heavy: bool = False, faults: Sequence[int] = ()) -> Path:
    """A run as JSON lines; `heavy`: noise of Student's t with 3 degrees of freedom."""
    rng = np.random.default_rng(seed)
    noise = 0.015 * rng.standard_t(3, steps) if heavy else rng.normal(0, 0.01, steps)
    loss = (1.9 + 8.9 * (1 + np.arange(steps) / 40) ** -0.45) * np.exp(noise)
    for row in faults:
        loss[row:] *= 1.5
    grad = 0.35 * (1 + 8 * np.exp(-np.arange(steps) / 60)) * np.exp(rng.normal(0, 0.12, steps))
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        json.dumps(
            {"step": i + 1, "loss": round(float(x), 4), "grad_norm": round(float(g), 4), "lr": 3e-4 * min(i / 2000, 1)}
        )
        for i, (x, g) in enumerate(zip(loss, grad, strict=True))
    )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


# The fit.


def test_with_many_steps_the_order_statistics_decide() -> None:
    found = fit((1.0, 2.0, 4.0), (400, 40, 4), steps=1e6, rate=4e-5)
    assert found.scale == pytest.approx(2.0)
    between = fit((1.0, 2.0, 4.0), (400, 40, 4), steps=1e6, rate=1.2649e-5)
    assert between.scale == pytest.approx(2.0 * 2**0.5, rel=1e-3)  # half way by the logarithms: sqrt(40 * 4)


def test_with_few_steps_the_tail_is_drawn_out() -> None:
    # count = 1000 * scale ** -3: one alarm in 100 times the steps is met at scale 10 * 10 ** (1/3) = 21.5; one standard
    # error more careful it lies beyond that.
    scales = (1.0, 2.0, 3.0, 4.0, 8.0, 16.0, 128.0)
    counts = [round(1000 * scale**-3) for scale in scales]
    found = fit(scales, counts, steps=1e5, rate=1e-6)
    assert counts[2:] == [37, 16, 2, 0, 0]
    assert 20 < found.scale < 60
    assert "tail fit" in found.how
    assert found.alarms == 0


def test_a_tail_that_ends_at_once_is_not_drawn_out() -> None:
    counts = (29, 14, 0, 0, 0, 0, 0, 0)
    assert fit(SCALES, counts, steps=150_000, rate=RATE).scale == 1.0


def test_the_default_stays_where_the_steps_cannot_bear_out_a_lower_one() -> None:
    assert fit(SCALES, [0] * len(SCALES), steps=3000, rate=RATE).scale == 1.0
    assert fit(SCALES, [0] * len(SCALES), steps=400_000, rate=RATE).scale == SCALES[0]


def test_what_alarms_at_any_scale_is_said() -> None:
    found = fit(SCALES, [9] * len(SCALES), steps=3000, rate=RATE)
    assert found.scale == SCALES[-1]
    assert "9 alarms even at" in found.how


@given(
    st.lists(st.integers(0, 10_000), min_size=len(SCALES), max_size=len(SCALES)),
    st.floats(1, 1e9),
    st.floats(1e-9, 1e-2),
)
def test_a_scale_is_always_one_that_was_tried(counts: list[int], steps: float, rate: float) -> None:
    found = fit(SCALES, counts, steps, rate)
    assert SCALES[0] <= found.scale <= SCALES[-1]
    stricter = fit(SCALES, counts, steps, rate / 100)
    assert stricter.scale >= found.scale - 1e-9 or found.scale >= 1.0 > stricter.scale - 1 or "kept" in stricter.how


def test_bounds_of_counts() -> None:
    assert upper_bound(0) == pytest.approx(2.9957, abs=1e-3)
    assert upper_bound(5) == pytest.approx(10.513, abs=1e-3)  # chi2.ppf(0.95, 12) / 2


# The table.


def test_families_name_checks_and_thresholds_that_exist() -> None:
    checks = {detector.id for detector in DETECTORS} | {"loss.spike/lone"}
    for family in FAMILIES:
        assert set(family.checks) <= checks
        assert set(family.at(1.0)) <= set(DEFAULTS)
        assert {name: DEFAULTS[name] for name in family.at(1.0)} == pytest.approx(family.at(1.0))


@given(st.sampled_from(SCALES))
def test_a_fail_stays_beyond_its_warning(scale: float) -> None:
    values = values_at(scale)
    for family in FAMILIES:
        for fail, warn in family.follows:
            assert values[fail] > values[warn]


# Runs.


def test_a_run_with_a_fault_is_refused_and_says_why(tmp_path: Path) -> None:
    write(tmp_path / "good" / "log.jsonl")
    write(tmp_path / "bad" / "log.jsonl", seed=1, faults=[2000])
    found = calibrate([str(tmp_path)], cwd=tmp_path, rate=RATE)
    assert [run.name for run in found.runs] == ["good"]
    (refusal,) = found.refused
    assert refusal.name == "bad"
    assert refusal.check in ("loss.shift", "loss.spike")
    assert "step 2001" in refusal.why


def test_a_short_run_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", steps=120)
    with pytest.raises(CalibrationError) as caught:
        calibrate([str(tmp_path)], cwd=tmp_path, rate=RATE)
    assert "too few" in caught.value.refused[0].why


def test_heavy_noise_is_learned_when_it_is_accepted(tmp_path: Path) -> None:
    write(tmp_path / "run" / "log.jsonl", steps=6000, seed=1, heavy=True)
    with pytest.raises(CalibrationError):
        calibrate([str(tmp_path)], cwd=tmp_path, rate=RATE)
    found = calibrate([str(tmp_path)], cwd=tmp_path, rate=RATE, accepted=["loss.spike"])
    assert found.values["spike.lone_z"] > 20
    assert sum(found.alarms.values()) == 0
    assert found.runs[0].remarks
    fresh = write(tmp_path / "next" / "log.jsonl", steps=6000, seed=7, heavy=True)
    limits = Thresholds().override(found.values, source="x")
    before, after = (
        judge([str(fresh)], cwd=tmp_path, limits=given).runs[0].verdict for given in (Thresholds(), limits)
    )
    assert (before, after) == (Verdict.WARN, Verdict.PASS)


def test_processes_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(2):
        write(tmp_path / f"run{seed}" / "log.jsonl", steps=1000, seed=seed)
    alone = calibrate([str(tmp_path)], cwd=tmp_path, rate=RATE)
    monkeypatch.setattr("trainmon.monitor.calibrate.learning._IN_PROCESS_BYTES", 0)
    assert calibrate([str(tmp_path)], cwd=tmp_path, rate=RATE, processes=2) == alone


# The file.


def test_the_file_says_where_its_numbers_come_from(tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", heavy=True, steps=3000)
    found = calibrate([str(tmp_path)], cwd=tmp_path, rate=2e-5, accepted=["loss.spike"])
    document = tomllib.loads(content(found, 1_800_000_000.0))
    assert document["calibration"]["false_alarms"] == "2/100000steps"
    assert document["calibration"]["steps"] == 3000
    assert f"{document['calibration']['date']:%Y-%m-%d}" == "2027-01-15"
    assert document["calibration"]["runs"][0]["logged_steps"] == 3000
    settings = Settings()
    settings.read("x/trainmon.toml", content(found, 1_800_000_000.0).encode(), owner="someone")
    assert not settings.problems
    limits = settings.limits(Thresholds())
    assert {name: limits[name] for name in found.values} == pytest.approx(found.values)
    assert limits.source("spike.lone_z") == "x/trainmon.toml (owner: someone; calibrated 2027-01-15 on 1 run)"


@given(st.text(st.characters(), max_size=40))
def test_hostile_names_stay_words(name: str) -> None:
    run = SourceRun(name, name, (name,), 10.0, 10, (name,))
    found = Calibration(RATE, (run,), (Refusal(name, name, "", name),), 100, name, (), {})
    document = tomllib.loads(content(found, 0.0))
    assert set(document) == {"schema", "calibration", "thresholds"}
    assert document["thresholds"] == {}


@pytest.mark.parametrize("text", ["", "1", "1/0steps", "0/10steps", "1/10steps", "1/1e99999", "nan/5", "-1/100"])
def test_odd_budgets_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="budget"):
        parse_rate(text)


@given(st.floats(1e-9, 1e-2))
def test_a_budget_reads_back(rate: float) -> None:
    assert parse_rate(rate_text(rate)) == pytest.approx(rate, rel=6e-3)


# The command.


def test_the_command_writes_and_later_runs_inherit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)
    write(tmp_path / "runs" / "a" / "log.jsonl", heavy=True, steps=3000)
    command = ["calibrate", "runs/a", "--accept", "loss.spike", "-o", "runs/trainmon.toml"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert "spike.lone_z" in done.output
    again = CliRunner().invoke(main, command)
    assert (again.exit_code, "--force" in again.output) == (2, True)
    write(tmp_path / "runs" / "b" / "deep" / "log.jsonl", heavy=True, steps=1000, seed=5)
    told = CliRunner().invoke(main, ["check", "runs/b/deep/log.jsonl", "--json"])
    (run,) = json.loads(told.stdout)["runs"]
    assert "runs/trainmon.toml (owner: " in run["thresholds"]
    spike = next(check for check in run["checks"] if check["id"] == "loss.spike")
    assert "runs/trainmon.toml" in spike["thresholds"]["source"]


def test_without_a_place_the_file_lies_beside_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "runs" / "a" / "log.jsonl", steps=1000)
    write(tmp_path / "runs" / "b" / "log.jsonl", steps=1000, seed=4)
    done = CliRunner().invoke(main, ["calibrate", "runs/a", "runs/b/*.jsonl"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "runs" / "trainmon.toml").exists()
    assert CliRunner().invoke(main, ["calibrate", "runs/a"]).exit_code == 0
    assert (tmp_path / "runs" / "a" / "trainmon.toml").exists()


def test_the_command_names_what_it_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "log.jsonl", faults=[1500])
    done = CliRunner().invoke(main, ["calibrate", "log.jsonl"])
    assert done.exit_code == 2
    assert "refused log.jsonl" in done.output
    assert not (tmp_path / "trainmon.toml").exists()
    for wrong in (["x", "--accept", "loss.spikes"], ["-"], ["log.jsonl", "--false-alarms", "0"], []):
        assert CliRunner().invoke(main, ["calibrate", *wrong]).exit_code == 2


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "log.jsonl", steps=600)
    done = CliRunner().invoke(main, ["calibrate", "log.jsonl", "-o", "not/there/trainmon.toml"])
    assert done.exit_code == 2
    assert "not/there/trainmon.toml" in done.output
    assert "Traceback" not in done.output


def test_thresholds_beside_the_runs_do_not_colour_what_is_learned(tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", steps=1500, heavy=True, seed=3)
    plain = calibrate([str(tmp_path)], cwd=tmp_path, rate=RATE, accepted=["loss.spike"])
    (tmp_path / "trainmon.toml").write_text('[thresholds]\n"spike.lone_z" = 99\n', encoding="utf-8")
    assert calibrate([str(tmp_path)], cwd=tmp_path, rate=RATE, accepted=["loss.spike"]).values == plain.values
