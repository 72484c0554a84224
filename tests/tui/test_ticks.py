"""Changes of the configuration stand on the axis: whatever the log tells of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.tui import sample
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.judge import judge
from trainmon.monitor.setting_changes import SettingChange
from trainmon.monitor.snapshot import RunSnapshot, SeriesView
from trainmon.tails.record import Note, NoteKind
from trainmon.tui.glyphs import UNICODE
from trainmon.tui.row import row_of
from trainmon.tui.run_lines import checkpoint_words, run_extra, run_head
from trainmon.tui.ticks import lr_by_attempt, ticks_of


def changes(run: RunSnapshot) -> list[float]:
    return [tick.x for tick in ticks_of(run) if tick.kind == "config"]


def series(key: str, steps: np.ndarray, values: np.ndarray, attempts: np.ndarray | None = None) -> SeriesView:
    attempts = np.zeros(steps.size, int) if attempts is None else attempts
    return SeriesView(
        SignalKey(key), "", steps, values, values, values, attempts, np.array([]), steps.size, float(values[-1])
    )


def test_a_setting_that_is_logged_as_a_series() -> None:
    steps = np.arange(1.0, 101.0)
    for key in ("config/weight_decay", "batch.size", "optim.beta2", "hparams.dropout"):
        run = sample.with_series(sample.healthy(), series(key, steps, np.where(steps < 40, 0.1, 0.2)))
        assert changes(run) == [40.0], key
    for key in ("optim.loss_scale", "reward.mean", "configuration_noise"):
        run = sample.with_series(sample.healthy(), series(key, steps, np.where(steps < 40, 0.1, 0.2)))
        assert changes(run) == [], key


def test_another_learning_rate_in_the_next_attempt() -> None:
    steps = np.r_[np.arange(1.0, 101.0), np.arange(81.0, 161.0)]
    attempts = np.r_[np.zeros(100, int), np.ones(80, int)]
    rate = 1e-3 * np.exp(-steps / 100)
    assert lr_by_attempt(series("optim.lr", steps, rate, attempts)) == ()
    assert lr_by_attempt(series("optim.lr", steps, np.where(attempts > 0, rate / 2, rate), attempts)) == (81.0,)
    later = np.r_[np.arange(1.0, 101.0), np.arange(101.0, 181.0)]
    assert lr_by_attempt(series("optim.lr", later, rate, attempts)) == (), "no step that both had"


def test_a_setting_that_a_restart_prints_otherwise(tmp_path: Path) -> None:
    def attempt(first: int, last: int, batch: int, rate: float) -> str:
        head = f"global_batch_size: {batch}\nlearning_rate: {rate}\n"
        return head + "".join(f"step {step} | loss {2 + 1 / step:.4f}\n" for step in range(first, last))

    log = tmp_path / "train.log"
    log.write_text(attempt(1, 300, 64, 3e-4) + attempt(251, 500, 128, 1e-4))
    run = judge([str(log)], cwd=tmp_path).runs[0]
    assert len(run.attempts) == 2
    assert {(one.name, one.step, one.before, one.after) for one in run.setting_changes} >= {
        ("batch_size", 251.0, 64.0, 128.0)
    }
    assert 251.0 in changes(run)


def test_what_changed_is_told_in_words() -> None:
    run = replace(sample.healthy(), setting_changes=(SettingChange(251.0, "batch_size", 64.0, 128.0),))
    text = "\n".join("".join(span.text for span in line) for line in run_extra(run, 80, UNICODE))
    assert "from step 251" in text
    assert "batch size 64 → 128" in text


def test_what_was_not_read_yet_is_not_said_to_be_missing() -> None:
    run = replace(sample.healthy(), notes=(), not_checked=(("loss.spike", "no training loss in the log"),))
    for progress, missing in ((1.0, True), (0.2, False)):
        lines = run_extra(replace(run, progress=progress), 80, UNICODE)
        text = "\n".join("".join(span.text for span in line) for line in lines)
        assert ("no training loss" in text) is missing
        assert ("none seen in the log so far" in text) is not missing
    head = run_head(row_of(replace(run, progress=0.0, files=())), 120, UNICODE, 1.0, pinned=False)
    assert "not begun" in "".join(span.text for span in head[1])


def test_the_last_checkpoint_is_the_one_before_the_trouble() -> None:
    def with_saves(run: RunSnapshot, *steps: float) -> RunSnapshot:
        saves = [Note("train.log", 1, 0, NoteKind.CHECKPOINT_SAVED, "saved", step) for step in steps]
        return replace(run, notes=tuple(saves))

    assert checkpoint_words(with_saves(sample.healthy())) == ""
    assert checkpoint_words(with_saves(sample.healthy(), 1000.0, 2000.0)) == "checkpoint 2000"
    diverged = sample.diverged()
    begun = min(one.first_step for one in diverged.episodes if not one.recovered)
    assert checkpoint_words(with_saves(diverged, begun - 600, begun - 100, begun + 50)) == (
        f"good checkpoint {begun - 100:.0f}"
    )
    assert checkpoint_words(with_saves(diverged, begun + 50)) == "no checkpoint before it"
