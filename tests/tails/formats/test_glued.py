"""Lines of two writers without an end between: the whole values of each are read, the number at the seam is not."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import read, rows

BEFORE = "step: 8 | lr: 0.5 | loss: 2.5\nstep: 9 | lr: 0.25 | loss: 2.25\n"


@pytest.mark.parametrize(
    ("glued", "found"),
    [
        (
            "step: 10 | lr: 0.125 | loss: 2.3step: 11 | lr: 0.125 | loss: 2.0",
            [(10.0, {"lr": 0.125}), (11.0, {"lr": 0.125, "loss": 2.0})],
        ),
        ("step: 10 | lr: 0.125 | loss: 2.step: 11 | loss: 2.0", [(10.0, {"lr": 0.125}), (11.0, {"loss": 2.0})]),
        ("step: 10 | loss: 2.3step: 11 | lr: 0.125 | loss: 2.0", [(11.0, {"lr": 0.125, "loss": 2.0})]),
        ('step: 10 | lr: 0.125 | loss: 2.31{"step": 11, "loss": 2.0}', [(10.0, {"lr": 0.125}), (11.0, {"loss": 2.0})]),
    ],
)
def test_what_is_whole_is_read_and_the_seam_is_counted(glued: str, found: list[object]) -> None:
    parsed = read(f"{BEFORE}{glued}\n")
    assert [(step, cells) for step, _, _, _, cells in rows(parsed)][2:] == found
    assert parsed.unreadable == 1


def test_objects_with_words_between_are_both_read() -> None:
    parsed = read(BEFORE + '{"step": 10, "loss": 2.5} INFO saved {"step": 11, "loss": 2.0}\n')
    assert [(step, cells) for step, _, _, _, cells in rows(parsed)][2:] == [
        (10.0, {"loss": 2.5}),
        (11.0, {"loss": 2.0}),
    ]
    assert parsed.unreadable == 0
