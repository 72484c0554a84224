"""Records that name only their epoch: their step, from what the log says of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tails.formats.stdout_reading import read, rows
from trainmon.tails.formats.derived_steps import FROM_EPOCH, FROM_INTERVAL, DerivedSteps
from trainmon.tails.formats.registry import detect
from trainmon.tails.stretch import read_stretch

BANNER = """***** Running training *****
  Num examples = 5,000
  Num Epochs = {epochs}
  Total train batch size (w. parallel, distributed & accumulation) = 50
  Total optimization steps = {total}
"""


def log(steps: range, *, per_epoch: float = 100.0, digits: int = 2) -> str:
    return "".join(
        f"{{'loss': {3 + 1 / step:.4f}, 'grad_norm': 1.5, 'epoch': {step / per_epoch:.{digits}f}}}\n" for step in steps
    )


def steps_of(text: str) -> tuple[list[float], set[str]]:
    parsed = read(text)
    return [float(row[0]) for row in rows(parsed)], {block.step_key for block in parsed.blocks}


def test_the_logging_interval_gives_the_step() -> None:
    told, keys = steps_of("TrainingArguments(\nlogging_steps=5,\n)\n" + log(range(5, 205, 5)))
    assert (told, keys) == ([float(step) for step in range(5, 205, 5)], {FROM_INTERVAL})


def test_the_epoch_and_the_length_of_the_run_give_the_step() -> None:
    told, keys = steps_of(BANNER.format(epochs=3, total=300) + log(range(7, 300, 7)))
    assert (told, keys) == ([float(step) for step in range(7, 300, 7)], {FROM_EPOCH})


def test_an_epoch_that_is_rounded_to_none_counts_too() -> None:
    told, _ = steps_of("logging_steps=5,\n" + log(range(5, 205, 5), per_epoch=50_000.0))
    assert told == [float(step) for step in range(5, 205, 5)]


def test_a_run_cut_by_its_steps_is_measured_by_its_examples() -> None:
    told, _ = steps_of(BANNER.format(epochs=1, total=40) + log(range(2, 41, 2)))
    assert told == [float(step) for step in range(2, 41, 2)]


def test_where_nothing_tells_there_is_no_step() -> None:
    parsed = read("  Total optimization steps = 300\n" + log(range(10, 110, 10)))
    assert all(row[0] == "nan" for row in rows(parsed))
    epochs = "logging_steps=500,\n" + log(range(100, 600, 100), digits=1)
    assert all(row[0] == "nan" for row in rows(read(epochs))), "it logs by epochs"


def test_a_resumed_run_stands_where_its_epoch_says() -> None:
    known = "logging_steps=5,\n" + BANNER.format(epochs=3, total=300)
    text = known + log(range(5, 155, 5)) + log(range(105, 305, 5))
    assert steps_of(text)[0] == [float(step) for step in [*range(5, 155, 5), *range(105, 305, 5)]]
    assert steps_of(known + log(range(205, 305, 5)))[0] == [float(step) for step in range(205, 305, 5)]
    unknown = "logging_steps=5,\n" + log(range(5, 155, 5)) + log(range(105, 205, 5))
    assert steps_of(unknown)[0] == [float(step) for step in [*range(5, 155, 5), *range(105, 205, 5)]]


@pytest.mark.parametrize("interval", [1.0, 10.0])
def test_an_epoch_rounded_to_many_steps_is_counted_through(interval: float) -> None:
    facts = {"logging_steps": interval, "num_train_epochs": 1.0, "total_steps": 50_000.0}
    derived = DerivedSteps()
    true = [interval * count for count in range(1, 400)]
    assert [(derived.of(round(step / 50_000, 2), facts) or (0.0,))[0] for step in true] == true


def test_the_first_step_may_be_logged_before_the_interval() -> None:
    facts = {"logging_steps": 10.0, "num_train_epochs": 2.0, "total_steps": 800.0}
    derived = DerivedSteps()
    assert [(derived.of(step / 400, facts) or (0.0,))[0] for step in (1, 10, 20)] == [1.0, 10.0, 20.0]


def test_a_logging_interval_that_is_a_share_of_the_run() -> None:
    facts = {"total_steps": 800.0, "logging_steps": 0.025}
    assert DerivedSteps().of(0.05, facts) == (20.0, FROM_INTERVAL)
    assert DerivedSteps().of(0.05, {"logging_steps": 0.025}) is None


@pytest.mark.parametrize("interval", ["1e308", "inf", "nan", "0.5"])
def test_numbers_without_bounds_derive_nothing_that_is_not_finite(interval: str) -> None:
    banner = "  Num Epochs = 9223372036854775807\n  Total optimization steps = 300\n"
    epochs = ("1e300", "-3", "nan", "None", "0.1", "1e-300", "999999.0")
    records = "".join(f"{{'loss': 1.5, 'epoch': {epoch}}}\n" for epoch in epochs)
    told = rows(read(f"logging_steps={interval}\n{banner}{records}"))
    assert len(told) == len(epochs)
    assert all(row[0] == "nan" or 0 < float(row[0]) < 1e20 for row in told)


def test_a_stretch_whose_steps_are_counted_is_not_read_alone(tmp_path: Path) -> None:
    text = "logging_steps=5,\n" + log(range(5, 2005, 5))
    (tmp_path / "train.log").write_text(text)
    begin = text.index("\n", len(text) // 2) + 1
    assert read_stretch(tmp_path / "train.log", "train.log", detect, begin, len(text)) is None
