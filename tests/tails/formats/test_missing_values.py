"""A record in which a value is missing or cannot be read is still a step; a word where a number was is counted."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import kinds, read, rows, values

FORMS = (
    "step {at} | loss {loss} | lr 1e-4",
    "step {at} | loss {loss}",
    "step={at} loss={loss} lr=1e-4",
    "step: {at}, loss: {loss}, lr: 1e-4",
    "iteration {at}/ 50 | lm loss: {loss} | grad norm: 1.5 |",
)
LOSSES = [(at, 3 - at / 8) for at in range(1, 6)]
ABSENT = ("N/A", "n/a", "NA", "-", "--")
ODD = ("banana", "***", "??", "1.2.3", "#REF")


def log(form: str, at_two: str) -> str:
    return "".join(form.format(at=at, loss=at_two if at == 2 else loss) + "\n" for at, loss in LOSSES)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("absent", ABSENT)
def test_what_is_said_to_be_absent_leaves_the_step(form: str, absent: str) -> None:
    parsed = read(log(form, absent))
    [key] = {key for *_, cells in rows(parsed) for key in cells if "loss" in key}
    assert values(parsed, key) == [one for one in LOSSES if one[0] != 2]
    assert [step for step, *_ in rows(parsed)] == [1, 2, 3, 4, 5]
    assert parsed.unreadable == 0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("odd", ODD)
def test_a_word_where_a_number_was_is_counted_and_takes_nothing_else_away(form: str, odd: str) -> None:
    parsed = read(log(form, odd))
    [key] = {key for *_, cells in rows(parsed) for key in cells if "loss" in key}
    assert values(parsed, key) == [one for one in LOSSES if one[0] != 2]
    assert parsed.unreadable == 1
    assert kinds(parsed) == ["unreadable"]


def test_a_minus_is_no_missing_value() -> None:
    parsed = read("".join(f"step {at} | loss: -{loss} | lr: - 1e-4\n" for at, loss in LOSSES))
    assert values(parsed, "loss") == [(at, -loss) for at, loss in LOSSES]
    assert values(parsed, "lr") == [(at, 1e-4) for at, _ in LOSSES]


def test_words_behind_a_value_are_not_odd() -> None:
    text = "".join(f"step {at} loss {loss}{' saved' if at == 3 else ''}\n" for at, loss in LOSSES)
    assert read(text).unreadable == 0
