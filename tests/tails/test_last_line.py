r"""A last line without its end: shown live when it is whole, and never read by half."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.tails.clocks import FakeClock
from trainmon.tails.last_line import counts_as_whole, last_frame
from trainmon.tails.record import Parsed
from trainmon.tails.tail import STILL_S, Tail

BAR = "".join(
    f"\r{step}%|####    | {step}/100 [00:{step:02d}<01:{100 - step:02d}, 4.97it/s, loss={5 - step / 50:.3f}]"
    for step in range(10, 60)
).encode()
SAMPLES = {
    "bar": BAR,
    "bar that ends": BAR + b"\ndone\n",
    "numbers last": b"".join(b"step %d: loss %.4f lr 3.00e-04\n" % (step, 5 - step / 50) for step in range(40)),
    "brackets last": b"".join(
        b"Epoch: [0][%d/400] Loss %.4f (%.4f) Acc@1 %.3f (%.3f)\n" % (step, 3 - step / 90, 3.0, step / 2, step / 3)
        for step in range(40)
    ),
    "dicts": b"".join(
        b"{'loss': %.4f, 'grad_norm': 0.5, 'learning_rate': 1e-05, 'epoch': %.2f}\n" % (3 - step / 90, step / 100)
        for step in range(40)
    ),
    "words last": b"".join(b"step %d loss %.3f done\n" % (step, 3 - step / 90) for step in range(40)),
}


def read(path: Path, data: bytes, cut: int, wait_s: float) -> tuple[dict[str, list[float]], int]:
    """All that comes of `data` when the writer rests at `cut`, and how many records had come by the end of that."""
    clock = FakeClock()
    tail = Tail(path, clock=clock)
    values: dict[str, list[float]] = {}
    by_then = 0

    def keep(parsed: Parsed) -> int:
        for block in parsed.blocks:
            for key, column in (("step", block.steps), *block.columns.items()):
                values.setdefault(key, []).extend(column[np.isfinite(column)].tolist())
        return parsed.records

    with path.open("wb", buffering=0) as writer:
        writer.write(data[:cut])
        for _ in range(6):
            by_then += keep(tail.poll().parsed)
            clock.sleep(wait_s / 4)
        writer.write(data[cut:])
        keep(tail.poll().parsed)
    keep(tail.finish().parsed)
    return values, by_then


@pytest.mark.parametrize("name", SAMPLES)
def test_wherever_a_writer_rests_the_same_is_read(tmp_path: Path, name: str) -> None:
    data = SAMPLES[name]
    whole, _ = read(tmp_path / "log", data, len(data), 0.0)
    assert whole
    line = max(data.rfind(b"\n", 0, len(data) // 2), data.rfind(b"\r", 0, len(data) // 2))
    cuts = [cut for cut in range(line, min(line + 120, len(data))) if cut % 7 == 0 or data[cut - 1] in b")]}\r\n"]
    for cut in cuts:
        found, _ = read(tmp_path / "log", data, cut, 2 * STILL_S)
        assert found == whole, data[line:cut]


def test_the_newest_frame_of_a_bar_is_read_before_the_next_comes(tmp_path: Path) -> None:
    cut = BAR.rfind(b"\r")
    _, at_once = read(tmp_path / "log", BAR, cut, 0.0)
    _, in_time = read(tmp_path / "log", BAR, cut, 2 * STILL_S)
    assert in_time > at_once


def test_what_counts_as_whole() -> None:
    bar = b" 50%|##  | 50/100 [00:01, loss=2.4]"
    assert counts_as_whole(bar + b"\x1b[0m\x1b[A", 99, bar)
    assert not counts_as_whole(bar, 4096, bar)
    assert not counts_as_whole(bar + b" loss=2", 99, bar)
    assert not counts_as_whole(b"Loss 2.5 (2.6)", 99, b"Loss 2.5 (2.6) Acc 0.5 (0.6)")
    assert not counts_as_whole(b"[[1, 2]", 99, b"[1, 2]")
    assert counts_as_whole(b"Training has finished.", 99, b"")
    assert not counts_as_whole(b"Loss is 2.", 99, b"")
    assert not counts_as_whole(b"", 99, b"")
    assert not counts_as_whole(b"Saving", 99, b"Saving")
    assert not counts_as_whole(b"(" * 5_000_000 + b")", 99, b"")
    assert last_frame(b"one\ntwo\rthree\r") == b"three"
    assert last_frame(b"") == b""
