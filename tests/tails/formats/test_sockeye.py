"""Sockeye's speed lines: batches that go on and batches that begin again in each epoch."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import label, read, rows, values

HEAD = "[2021-05-01:10:00:{at:02d}:INFO:sockeye.training_model:__call__] "
LINE = HEAD + "E={epoch} B={batch}{update}\ts/sec=900.50 tok/sec=21000.25 u/sec=7.50\tppl={ppl}\n"


def log(batches: list[tuple[int, int]], update: str = "") -> str:
    return "".join(
        LINE.format(at=at, epoch=epoch, batch=batch, update=update.format(batch // 2), ppl=80 - at)
        for at, (epoch, batch) in enumerate(batches)
    )


@pytest.mark.parametrize("batches", [[(0, 50), (0, 100), (1, 150)], [(0, 50), (0, 100), (1, 50)]])
def test_batches_are_the_step(batches: list[tuple[int, int]]) -> None:
    text = log(batches)
    assert values(read(text), "ppl") == [(50.0, 80.0), (100.0, 79.0), (150.0, 78.0)]
    assert rows(read(text))[0][4] == {"epoch": 0.0, "ppl": 80.0, "s/sec": 900.5, "tok/sec": 21000.25, "u/sec": 7.5}
    assert label(text) == "sockeye"


def test_an_update_that_is_told_is_the_step() -> None:
    assert values(read(log([(0, 50), (0, 100)], " u={}")), "ppl") == [(25.0, 80.0), (50.0, 79.0)]
