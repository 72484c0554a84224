"""What stands before the first frame of a line is told of all of them, although that frame is passed over."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import read, rows


def _frame(at: int) -> str:
    return f"Train: {at:3d}%|{'#' * (at // 10):<10}| {at}/100 [00:{at % 60:02d}<10:00, 3.2it/s]"


@pytest.mark.parametrize("cuts", [(), range(1, 9)])
def test_a_dictionary_behind_frames_of_a_known_outline_has_the_time_of_its_line(cuts: range) -> None:
    text = "".join(
        f"2026-05-01T10:00:{at:02d}.500Z {_frame(at)}\r{_frame(at + 1)}\r{_frame(at + 2)}{{'loss': 2.5, 'epoch': 1}}\n"
        for at in range(20, 50, 5)
    )
    found = rows(read(text, cuts=cuts))
    assert [step for step, *_ in found] == [float(at + 2) for at in range(20, 50, 5)]
    assert [time % 60 for _, _, _, time, _ in found if isinstance(time, float)] == [at + 0.5 for at in range(20, 50, 5)]


@pytest.mark.parametrize("cuts", [(), range(1, 9)])
def test_a_record_behind_a_frame_of_noise_has_the_time_of_its_line(cuts: range) -> None:
    text = "".join(f"2026-05-01 10:00:0{at} reading shard {at}\rstep {at} loss 2.{at}\n" for at in range(1, 8))
    found = rows(read(text, cuts=cuts))
    assert [(step, time % 60) for step, _, _, time, _ in found if isinstance(time, float)] == [
        (float(at), float(at)) for at in range(1, 8)
    ]
