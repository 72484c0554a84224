"""Logs of several trainers at once are read the same by every short way, in whatever pieces and colours they come."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import pytest

from tests.tails.formats.test_together import rows
from trainmon.tails.formats import alike, stdout
from trainmon.tails.formats.known_lines import KnownLines
from trainmon.tails.formats.places import Outlines
from trainmon.tails.formats.stdout import Stdout
from trainmon.tails.lines import Chunk, LineSplitter

PREFIXES = (
    "",
    "{rank}: ",
    "[default{rank}]: ",
    "2026-02-{day:02d} 10:00:{second:02d},123 [INFO] ",
    "[2026-02-{day:02d} 25:00:{second:02d}] ",
    "2026-05-01T10:00:{second:02d}.5Z ",
)
BAR = "Train: {percent:3d}%|##        | {step}/500 [00:{second:02d}<10:00, 3.2it/s"
BODIES = (
    " iteration {step:8d}/     500 | consumed samples: {step:12d} | lm loss: {a:.6E} | grad norm: {b:.3f} |",
    "step={step}, skipped=0, lr=[{a}], mom=[[0.9, 0.95]]",
    "steps: {step} loss: {a:.4f} eval_loss: {b:.4g} iter time (s): 0.5 samples/sec: 1.1",
    "{{'loss': {a:.4f}, 'grad_norm': {b:.3g}, 'epoch': {part:.2f}}}",
    "{{'loss': {a:.4f},\n 'step': {step}}}",
    "step {step} | loss: {a:.4g} | lr {b:.3g} | tok/s {odd}",
    "Train: [{epoch}/40][{place}/20] loss {a:.4f} ({b:.4f})",
    "epoch={epoch} step={place} loss={a:.4f}",
    "  step   loss   lr\n  {step}   {a:.4f}   {b:.4f}",
    "----------------\n| train/ | |\n|   loss | {a:.2f} |\n|   iterations | {step} |\n----------------",
    "Epoch {epoch}/4\n----------\ntrain Loss: {a:.4f} Acc: 0.5\nval Loss: {b:.4f} Acc: 0.5",
    " validation loss at iteration {step} | lm loss value: {a:.6E} | lm loss PPL: {b:.6E} | ",
    'Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: loss {a:.2f} at step {step}',
    BAR + "]\r" + BAR + ", loss={a:.3f}]",
    BAR + "]\r" + BAR + "]{{'loss': {a:.4f}, 'epoch': {part:.2f}}}",
    "Validation",
    "F0503 10:00:00.123456 77 a.cc:5] shapes differ",
    "reading shard {step}",
)
COLOURS = ("\x1b[32m", "\x1b[0m", "\x1b[1;31m", "\x1b[K")


def log(rng: random.Random) -> str:
    chosen = [(rng.choice(PREFIXES), rng.choice(BODIES)) for _ in range(rng.randrange(2, 7))]
    lines, step = [], 0
    for at in range(rng.choice([15, 40])):
        step = step + 1 if rng.random() > 0.03 else rng.choice([0, step // 2])
        for rank in range(2):
            fields = {"rank": rank, "day": 27 + at % 4, "second": at % 60, "step": step, "percent": step // 5}
            fields |= {"epoch": step // 20, "place": step % 20}
            values = {"a": 2 + rng.random(), "b": rng.lognormvariate(0, 2), "part": step / 20}
            for prefix, body in chosen:
                odd = rng.choice(["nan", "1,024", "banana", "7."]) if rng.random() < 0.05 else f"{rng.random():.3f}"
                words = (prefix + body).format(**fields, **values, odd=odd)
                lines += [words] if rng.random() > 0.05 else []
    return "\n".join(lines) + "\n"


def coloured(text: str, rng: random.Random) -> str:
    out = []
    for line in text.split("\n"):
        at = rng.randrange(len(line) + 1)
        out.append(line[:at] + rng.choice(COLOURS) + line[at:] + "\x1b[0m" if line and rng.random() < 0.7 else line)
    return "\n".join(out)


def read(text: str, sizes: Sequence[int]) -> list[str]:
    """What is read of `text` in pieces of `sizes`, again and again."""
    data, at, turn = text.encode(), 0, 0
    splitter, reader, parts = LineSplitter(), Stdout("log"), []
    while at < len(data):
        size = sizes[turn % len(sizes)]
        parts += [reader.feed(*_of(chunk)) for chunk in splitter.feed(data[at : at + size])]
        at, turn = at + size, turn + 1
    parts += [reader.feed(*_of(chunk)) for chunk in splitter.flush()]
    return rows([*parts, reader.finish()])


def _of(chunk: Chunk) -> tuple[bytes, int, int]:
    return chunk.data, chunk.offset, chunk.line_no


@pytest.mark.parametrize("seed", range(20))
def test_pieces_and_short_ways_change_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    text = log(rng)
    text = coloured(text, rng) if seed % 2 else text
    quick = read(text, [1 << 20])
    assert read(text, [rng.randrange(1, 400) for _ in range(50)]) == quick
    never = re.compile(rb"(?!)")
    monkeypatch.setattr(stdout, "QUICK_FRAME", never)
    monkeypatch.setattr(stdout, "QUICK_PLACE", never)
    monkeypatch.setattr(stdout, "is_silent", lambda _raw: False)
    monkeypatch.setattr(KnownLines, "read", lambda *_: False)
    for name in ("learn", "add_dull", "add_plain_bar"):
        monkeypatch.setattr(Outlines, name, lambda *_: None)
    monkeypatch.setattr(alike.AlikeLines, "pieces", lambda _, data: [alike.Piece(0, len(data), None)])
    assert read(text, [1 << 20]) == quick


@pytest.mark.parametrize("seed", range(10))
def test_colours_change_nothing(seed: int) -> None:
    rng = random.Random(seed)
    text = log(rng).replace("\r", "\n")
    plain, other = read(text, [1 << 20]), read(coloured(text, rng), [1 << 20])
    assert [re.sub(r"^\(\(\d+|offset=\d+", "", row) for row in other] == [
        re.sub(r"^\(\(\d+|offset=\d+", "", row) for row in plain
    ]
