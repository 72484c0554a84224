"""A log that ends inside a number gives no false value; one that merely lacks its last newline loses nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.tails.clocks import FakeClock
from trainmon.tails.tail import Tail
from trainmon.tails.torn_end import cut_number_at, torn_at

KINDS = {
    "text": "step {0} loss {1:.4f} gnorm 0.50 lr 3.00e-04",
    "key=value": "step={0} loss={1:.4f} lr=3e-4",
    "units": "step {0} loss {1:.4f} tok/s 17232 grad norm 2.50 max mem 43.10",
    "thousands": "step {0} loss {1:.4f} tok/s 17,232",
    "dict": "{{'loss': {1:.4f}, 'grad_norm': 0.512, 'learning_rate': 5e-05, 'epoch': 0.{0}}}",
    "csv": "{0},{1:.4f},0.000312",
    "json": '{{"step": {0}, "loss": {1:.4f}, "lr": 0.000312}}',
}
HEADS = {"csv": "step,loss,lr\n"}


def values(path: Path, text: str) -> tuple[dict[str, set[float]], int]:
    """All values by key, and how many records."""
    path.write_text(text)
    tail = Tail(path, clock=FakeClock())
    parsed = tail.poll().parsed
    parsed.add(tail.finish().parsed)
    found: dict[str, set[float]] = {}
    for block in parsed.blocks:
        for key, column in block.columns.items():
            found.setdefault(key, set()).update(column[np.isfinite(column)].tolist())
    return found, parsed.records


@pytest.mark.parametrize("kind", KINDS)
def test_wherever_the_last_line_is_cut_no_value_is_false(tmp_path: Path, kind: str) -> None:
    lines = [KINDS[kind].format(step, 9.1 - step / 20) for step in range(10, 50)]
    head = HEADS.get(kind, "") + "".join(f"{line}\n" for line in lines[:-1])
    path = tmp_path / ("log.csv" if kind == "csv" else "log")
    whole, records = values(path, head + lines[-1])
    assert records == len(lines)
    for cut in range(len(lines[-1])):
        found, _ = values(path, head + lines[-1][:cut])
        for key, numbers in found.items():
            assert numbers <= whole.get(key, set()), (cut, lines[-1][:cut], key)


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"step {n} loss 2.{n:03d} lr 3e-4\n" for n in range(30)) + "step 30 loss 2.030 lr 3")
    tail = Tail(path, clock=FakeClock())
    parsed = tail.poll().parsed
    parsed.add(tail.finish().parsed)
    assert parsed.records == 31
    assert [note.line_no for note in parsed.notes if "not whole" in note.text] == [31]
    assert parsed.unreadable == 1


def test_the_log_pane_shows_the_line_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"step {n} loss 2.{n:03d} lr 3e-4\n" for n in range(30)) + "step 30 loss 2.030 lr 3")
    tail = Tail(path, clock=FakeClock())
    shown = [*tail.poll().lines, *tail.finish().lines]
    assert shown[-1].text == "step 30 loss 2.030 lr 3"


def test_a_line_that_may_still_grow_waits(tmp_path: Path) -> None:
    path = tmp_path / "log"
    text = "".join(f"step {n} loss 2.{n:03d} lr 3e-4\n" for n in range(30)) + "step 30 loss 2.030 lr 3"
    path.write_text(text)
    tail = Tail(path, clock=FakeClock())
    first = tail.poll().parsed
    path.write_text(text + "e-4\n")
    grown = tail.poll().parsed
    assert (first.records, grown.records, first.notes, grown.notes) == (30, 1, [], [])


def test_a_unit_is_not_taken_for_the_name_of_the_next_number() -> None:
    assert torn_at(b"step 9 took 3.2 ms lr", b"step 8 took 3.1 ms lr 3e-4\n") == 18
    assert torn_at(b"step 9 took 3.2 ms", b"step 8 took 3.1 ms lr 3e-4\n") is None
    assert torn_at(b"3.2 ms", b"3.1 ms 0.5 loss\n") is None
    assert torn_at(b"step 9 took 3.2 s", b"step 8 took 3.1 samples 3\n") == 15


def test_how_the_lines_before_write_the_number_decides() -> None:
    assert cut_number_at(b"step 12 loss 0.25", b"step 10 loss 0.5\nstep 11 loss 0.125\n") is None
    assert cut_number_at(b"tok/s 43.1", b"tok/s 43.1K\n") == 6
    assert cut_number_at(b"samples 123", b"samples 123000\n") == 8
    assert cut_number_at(b"final loss 2.3", b"step 1 loss 2.3456\n") is None
    assert cut_number_at(b"lr 9.9e-0", b"lr 9.9e-05\nlr 1.0e-04\n") == 3
