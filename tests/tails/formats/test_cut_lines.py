"""Logs whose lines were cut at a fixed width: what comes of them is what the whole lines say, or is not taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tails.formats.stdout_reading import Cell, read, rows
from trainmon.tails.formats.cut_lines import CutLines, Piece
from trainmon.tails.record import Parsed

MEGATRON = (
    " [2025-03-02 11:00:{at:02d}] iteration {at:8d}/ 5000 | consumed samples: {samples:12d} |"
    " elapsed time per iteration (ms): {ms:.1f} | learning rate: 3.0E-04 | global batch size: 512 |"
    " lm loss: {loss:.4E} | loss scale: 1.0 | grad norm: {norm:.3f} |"
    " number of skipped iterations: 0 | number of nan iterations: 0 |"
)
KEYS = (
    "step={at} loss={loss:.4f} grad_norm={norm:.4f} lr=1.000e-04 tokens_per_second={samples} memory_gb=31.25 mfu=41.22"
)
WORDS = (
    "2025-03-02 11:00:{at:02d},123 - INFO - train - epoch 1, step {at}, loss {loss:.4f}, accuracy 0.5125,"
    " grad_norm {norm:.4f}, learning_rate 1.000e-04, tokens 1234567"
)
PIPES = "step: {at} | loss: {loss:.4f} | grad norm: {norm:.3f} | lr: 1.0e-04 | tok/s: {samples}"
DASHES = (
    "step:{at} - actor/entropy:0.25 - actor/pg_loss:{loss:.12f} - actor/grad_norm:{norm:.12f} - actor/lr:1.0e-06"
    " - critic/rewards/mean:0.4375 - response_length/mean:512.25 - timing_s/step:61.25"
)
WRITER = (
    "I0302 11:00:{at:02d}.123456 140234567890123 logging_writer.py:48] [{at}] collection=train accuracy=0.5125,"
    " grad_norm={norm:.4f}, learning_rate=0.0001, loss={loss:.6f}, steps_per_sec=4.25"
)
LOGFMT = (
    'time="2025-03-02T11:00:{at:02d}Z" level=info msg="train step done" step={at} loss={loss:.4f}'
    " grad_norm={norm:.4f} lr=1.00e-04 tokens={samples} seconds=3.25 mfu=0.4125"
)
JSON = '{{"step": {at}, "loss": {loss:.4f}, "grad_norm": {norm:.4f}, "lr": 1.0e-04}}'
DICTS = "{{'loss': {loss:.4f}, 'grad_norm': {norm:.4f}, 'learning_rate': 1.0e-04, 'epoch': 0.{at:02d}}}"
HEADING = "Loading the data of this run\nusing 8 GPUs\n"


def log(form: str, count: int = 9) -> str:
    records = (
        form.format(at=at, samples=100_000 + 512 * at, ms=3200 + at / 10, loss=3 - at / 16, norm=1 + at / 4)
        for at in range(1, count + 1)
    )
    return HEADING + "".join(f"{record}\n" for record in records)


def folded(text: str, width: int) -> str:
    lines = text.splitlines()
    return "".join(line[at : at + width] + "\n" for line in lines for at in range(0, max(len(line), 1), width))


def told(text: str, cuts: tuple[int, ...] = ()) -> list[tuple[Cell, Cell, dict[str, Cell]]]:
    """Step, time and values of every record."""
    return told_of(read(text, cuts=cuts))


def told_of(parsed: Parsed) -> list[tuple[Cell, Cell, dict[str, Cell]]]:
    return [(step, time, cells) for step, _, _, time, cells in rows(parsed)]


@pytest.mark.parametrize("form", [MEGATRON, KEYS, WORDS, DASHES, WRITER, LOGFMT])
@pytest.mark.parametrize("width", [*range(70, 84), 100, 120, 132, 160])
def test_pieces_are_the_records_they_were(form: str, width: int) -> None:
    whole = log(form)
    assert told(folded(whole, width)) == told(whole)


@pytest.mark.parametrize("form", [KEYS, JSON, DICTS])
@pytest.mark.parametrize("width", [*range(24, 60, 3), 40, 50, 55, 59])
def test_pieces_of_narrow_lines_too(form: str, width: int) -> None:
    whole = log(form)
    assert told(folded(whole, width)) == told(whole)


@pytest.mark.parametrize("form", [MEGATRON, PIPES, WORDS])
@pytest.mark.parametrize("width", range(24, 60))
def test_where_a_time_or_before_a_bar_is_cut_what_is_read_is_whole(form: str, width: int) -> None:
    whole = {step: cells for step, _, cells in told(log(form))}
    found = [(step, cells) for step, _, cells in told(folded(log(form), width)) if step != "nan"]
    assert {step for step, _ in found} == set(whole)
    assert all(cells.items() <= whole[step].items() for step, cells in found)


def test_a_number_that_may_go_on_below_is_left_out_and_counted() -> None:
    """One record in a long log: nothing else shows that its lines were cut."""
    record = "step=1 loss=2.9375 grad_norm=1.2500 lr=1.000e-04"
    parsed = read(folded(record, 30) + "a shard was read\n" * 60)
    (cells,) = [cells for _, _, cells in told_of(parsed) if "loss" in cells]
    assert cells["loss"] == 2.9375
    assert cells == {"loss": 2.9375}
    assert parsed.unreadable == 1


@pytest.mark.parametrize("cuts", [(1,), (3, 4), (5, 6, 7), (2, 9, 12, 14)])
def test_pieces_may_arrive_one_by_one(cuts: tuple[int, ...]) -> None:
    text = folded(log(MEGATRON), 80)
    assert told(text, cuts) == told(text) == told(log(MEGATRON))


def test_a_record_stands_where_its_first_piece_does() -> None:
    found = rows(read(folded(log(KEYS, 3), 80)))
    assert [line for _, line, *_ in found] == [3, 5, 7]


def test_the_end_of_a_log_of_one_record() -> None:
    assert told(folded(log(MEGATRON, 1), 80)) == told(log(MEGATRON, 1))


TWO_LINES = "step {at} | loss {loss:.4f} | grad norm {norm:.4f} | lr 1.0e-04 | tokens per second {samples} | mfu 41.2"


@pytest.mark.parametrize(
    "below",
    [
        "val_loss: 2.5000",
        "checkpoint written",
        "[eval] loss 2.5000",
        "12.5 s since the start",
        "saved=1",
        "Stats (1/1):",
        "  eval loss: 2.5",
    ],
)
def test_whole_lines_of_one_length_are_not_joined(below: str) -> None:
    lines = log(TWO_LINES).replace("mfu 41.2\n", f"mfu 41.2\n{below}\n").removeprefix(HEADING)
    cut = CutLines()
    given = [one for at, line in enumerate(lines.splitlines()) for one in cut.take(Piece(line.encode(), 0, at))]
    assert [one.raw.decode() for one in [*given, *cut.flush()]] == lines.splitlines()


def test_a_table_is_not_cut() -> None:
    table = "      Iter       Train Loss      OOB Improve   Remaining Time \n" + "".join(
        f"{at:10d} {4 - at / 8:16.4f} {0.01:16.4f} {12.3:16.2f}s\n" for at in range(1, 9)
    )
    assert [cells["Train Loss"] for _, _, cells in told(table)] == [4 - at / 8 for at in range(1, 9)]


def test_a_longer_line_ends_the_cut() -> None:
    whole = log(KEYS)
    later = "".join(f"step={at} loss=1.5000 grad_norm=1.0 note={'x' * 80} mfu=41.5\n" for at in range(10, 14))
    assert told(folded(whole, 80) + later) == told(whole + later)


def test_what_looks_cut_and_is_not_is_let_go_in_time() -> None:
    cut = CutLines()
    line = b"step 1 loss 2.5000 grad_norm 1.2500 lr 1.000e-04 tokens 12345 mem"
    given = cut.take(Piece(line, 0, 1))
    for at in range(2, 100):
        given += cut.take(Piece(b"ory 31.25 GiB" if at == 2 else b"reading a shard", 0, at))
    assert len(given) == 99
    assert not cut.is_open


_POOL = (
    b"|   iterations  | 1      |",
    b"| train/        |        |",
    b"|   loss        | 6.25   |",
    b"step 10 loss 2.5 lr 0.0",
    b"01 gnorm 1.25",
    b"\x1b[31mloss\x1b[0m 2.5",
    b"saved",
    b"",
)


@given(st.lists(st.sampled_from(_POOL), max_size=40))
def test_each_line_comes_out_in_its_place(lines: list[bytes]) -> None:
    cut, out = CutLines(), []
    for number, raw in enumerate(lines, 1):
        out += cut.take(Piece(raw, 0, number))
    out += cut.flush()
    assert not cut.is_open
    assert [one.line_no for one in out] == sorted(one.line_no for one in out)
    if not any(one.is_torn for one in out):
        assert b"".join(one.raw for one in out) == b"".join(lines)
