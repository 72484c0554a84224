"""Kinds of lines of trainers and their loggers: brackets of a logger, tables of two columns, bars that process."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import EVERY_TEN, lines, read, values
from trainmon.tails.prefix import read_prefix


@pytest.mark.parametrize(
    "form",
    [
        "[03-04 10:00:0{at}|INFO|trainer.py:123:train] {step} : Loss: {loss} | Grad: 1.5 | LR: 1e-4",
        "[2025-03-04 10:00:0{at}|INFO|trainer.py:123] step {step} | Loss: {loss} | LR: 1e-4",
        "2025-03-04 10:00:0{at}.123000: I runner.py:310] Step = {step} ; steps/s = 1.5 ; Loss = {loss}",
    ],
)
def test_fields_of_a_logger_joined_by_bars_are_its_prefix(form: str) -> None:
    parsed = read(lines(form))
    key = "Loss"
    assert values(parsed, key) == EVERY_TEN
    times = [time for block in parsed.blocks for time in block.times.tolist()]
    assert times == [times[0] + second for second in range(4)]


def test_a_date_without_a_year_that_is_none_tells_no_time() -> None:
    assert read_prefix("[13-41 10:00:00|INFO|a.py:1:f] 5 : loss 2.5").time is None


def test_epoch_and_step_parted_by_a_slash() -> None:
    assert values(read(lines("Epoch 0 / Step {step} - loss: {loss} lr: 0.001")), "loss") == EVERY_TEN


def test_a_bar_that_processes_and_measures_a_loss_trains() -> None:
    bar = "training process:  {at}%|#  | {step}/100 [00:{step}<01:00,  1.25it/s, loss={loss}, learning_rate=0.001]"
    assert values(read(lines(bar).replace("\n", "\r") + "\n"), "loss") == EVERY_TEN
    other = "processing shards:  {at}%|#  | {step}/100 [00:{step}<01:00,  1.25it/s, files={step}]"
    assert read(lines(other).replace("\n", "\r") + "\n").records == 0


def test_two_columns_that_only_blanks_part_are_one_record() -> None:
    rule = "-" * 30 + "  " + "-" * 14
    block = (
        f"{rule}\nreplay_buffer/size      {{step}}000\ntrainer/Policy Loss        {{loss}}\nEpoch      {{step}}\n{rule}"
    )
    assert values(read(lines(block)), "trainer/Policy Loss") == EVERY_TEN


def test_updates_so_far_are_the_step_and_not_those_of_an_interval() -> None:
    form = "[ time:{at}.0s total_exs:{step} ] {{'loss': {loss}, 'updates': 5, 'total_train_updates': {step}}}"
    assert values(read(lines(form)), "loss") == EVERY_TEN
