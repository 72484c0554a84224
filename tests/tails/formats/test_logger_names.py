"""A logger's bare name before the pairs, and numbers that stand glued to other characters."""

from __future__ import annotations

import math

import pytest

from tests.tails.formats.stdout_reading import read, rows

HEADS = (
    "2025-07-01 09:00:01,000 INFO __main__ step={} loss=2.5 gnorm=0.42",
    "INFO trainer step {}/1000 loss 2.5 gnorm 0.42",
    "INFO my.pkg.train step={} loss=2.5 gnorm=0.42",
    "trainer INFO step={} loss=2.5 gnorm=0.42",
    "trainer step={} loss=2.5 gnorm=0.42",
    "[2025-07-01 09:00:01] trainer step={} loss=2.5 gnorm=0.42",
    "INFO rank0 step={} loss=2.5 gnorm=0.42",
    "INFO trainer Training step {}: loss=2.5, gnorm=0.42",
    "INFO job runner global_step={} loss=2.5 gnorm=0.42",
    "INFO __main__ loss=2.5 gnorm=0.42 step={}",
    "INFO trainer loss=2.5 gnorm=0.42 step={}",
)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("cuts", [(), (1,), (2, 30)])
def test_words_before_every_record_are_no_part_of_it(head: str, cuts: tuple[int, ...]) -> None:
    text = "".join(head.format(n) + "\n" for n in range(1, 61))
    found = rows(read(text, cuts=cuts))
    assert [row[0] for row in found] == list(range(1, 61))
    assert [row[1] for row in found] == list(range(1, 61))
    assert all(row[4] == {"loss": 2.5, "gnorm": 0.42} for row in found)


@pytest.mark.parametrize("name", ["trainer", "my.pkg.train", "rank3"])
def test_lines_read_together_have_the_times_of_those_read_one_by_one(name: str) -> None:
    lines = [f"2025-07-01 09:{n // 60:02d}:{n % 60:02d},250 INFO {name} step={n} loss=2.5\n" for n in range(1, 181)]
    together, alone = read("".join(lines)), read("".join(lines), cuts=range(len(lines)))
    assert rows(together) == rows(alone)
    times = [row[3] for row in rows(together)]
    assert [float(later) - float(times[0]) for later in times] == list(range(180))


def test_epoch_behind_a_name() -> None:
    found = rows(read("".join(f"INFO trainer epoch 1 step {n} loss 2.5\n" for n in range(1, 9))))
    assert all(row[4] == {"loss": 2.5, "epoch": 1.0} for row in found)
    assert len(found) == 8


def test_ranks_with_a_name_each() -> None:
    text = "".join(f"INFO rank{rank} step={n} loss={2 + rank}.5 lr=0.1\n" for n in range(1, 21) for rank in (0, 1))
    found = rows(read(text))
    assert [row[4]["loss"] for row in found if "loss" in row[4]] == [2.5] * 20


@pytest.mark.parametrize(
    "line",
    [
        "micro step {} loss 2.5",
        "INFO inner step {} loss=2.5",
        "INFO Skipping step {}: loss=2.5",
        "warmup step {} loss=1.5",
    ],
)
def test_words_of_the_key_are_no_name(line: str) -> None:
    assert read("".join(line.format(n) + "\n" for n in range(1, 30))).records == 0


def test_a_sentence_that_comes_up_twice_is_no_record() -> None:
    assert read("trainer step 5 loss 2.5\ntrainer step 6 loss 2.5\n").records == 0


def test_few_lines_that_are_read_with_a_name_are_not_lost() -> None:
    found = rows(read("INFO trainer loss=2.5 step=5\nINFO trainer loss=2.25 step=6\n"))
    assert [row[4] for row in found] == [{"loss": 2.5}, {"loss": 2.25}]


def test_events_behind_a_name_are_still_heard() -> None:
    text = "".join(f"INFO trainer step={n} loss=2.5 lr=0.1\n" for n in range(1, 9))
    parsed = read(text + "INFO trainer Saved checkpoint at step 8\n")
    assert [note.kind.value for note in parsed.notes] == ["checkpoint_saved"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("1.#QNAN", math.nan),
        ("-1.#IND", math.nan),
        ("-1.#IND00", math.nan),
        ("1.#SNAN", math.nan),
        ("1.#INF", math.inf),
        ("-1.#INF00", -math.inf),
    ],
)
def test_old_spellings_of_nan_and_infinity(written: str, meant: float) -> None:
    lines = [f"step={n} loss=2.5 gnorm=1.1" for n in range(1, 20)]
    lines[10] = f"step=11 loss={written} gnorm=1.1"
    cell = rows(read("\n".join(lines) + "\n"))[10][4]["loss"]
    assert cell == ("nan" if math.isnan(meant) else meant)


@pytest.mark.parametrize("written", ["1.#X", "1.#J", "2^8", "1.5*10**3", "2.5×10^-3"])
def test_a_number_is_not_cut_out_of_something_else(written: str) -> None:
    found = rows(read(f"step=1 loss=2.5 gnorm=1.1\nstep=2 loss={written} gnorm=1.1\nstep=3 loss=2.5 gnorm=1.1\n"))
    assert found[1][4] == {"gnorm": 1.1}
