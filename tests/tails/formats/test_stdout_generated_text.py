"""What a model writes of steps and losses in its samples is no record; what the run writes below one still is."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import read, rows, values

BEFORE = "".join(f"step {at} loss {3 - at / 200} lr 0.1\n" for at in range(10, 110, 10))
BEHIND = "".join(f"step {at} loss {3 - at / 200} lr 0.1\n" for at in range(110, 210, 10))
STEPS = [float(at) for at in range(10, 210, 10)]


@pytest.mark.parametrize("end", ["", "--- end of sample ---\n", "==========\n", "\n"])
@pytest.mark.parametrize("heading", ["--- sample ---", "=== Generated text 3 ===", "Generated text:", "Sample 0:"])
@pytest.mark.parametrize(
    "written",
    [
        "Once upon a time the step 9 loss 2.5 was told",
        "step 999 loss 88.0 lr 0.1",  # just as the run's own
        "She said: step 3 loss 0.001\nthe loss 5 of the step 7",
    ],
)
def test_a_sample_is_no_record(heading: str, written: str, end: str) -> None:
    text = f"{BEFORE}{heading}\n{written}\n{end}{BEHIND}"
    found = rows(read(text))
    assert [row[0] for row in found] == STEPS
    for cut in range(8, 16):
        assert rows(read(text, cuts=[cut])) == found


def test_what_the_run_says_below_a_sample_is_read() -> None:
    text = f"{BEFORE}--- sample ---\nOnce upon a time.\nstep 100: val loss 2.75\nvalidation loss: 2.5\n{BEHIND}"
    parsed = read(text)
    assert [step for step, _ in values(parsed, "loss")] == STEPS
    assert values(parsed, "val loss") == [(100.0, 2.75)]
    assert [value for _, value in values(parsed, "validation loss")] == [2.5]


def test_a_start_that_began_again_below_a_sample_is_read() -> None:
    again = BEFORE.replace("lr 0.1", "lr 0.2")
    assert len(rows(read(f"{BEFORE}--- sample ---\nOnce.\nResuming from step 0\n{again}"))) == 20
    assert len(rows(read(f"{BEFORE}--- sample ---\nOnce.\n{again}"))) >= 15


def test_without_a_heading_nothing_is_taken_for_a_sample() -> None:
    assert len(rows(read(f"{BEFORE}{BEFORE}samples: 5\n{BEFORE}"))) == 30
    assert [row[0] for row in rows(read(f"sample:\n{BEFORE}"))] == STEPS[:10]
