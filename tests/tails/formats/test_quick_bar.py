"""Frames taken apart by one expression, and lines that are passed over, give what a full reading gives."""

from __future__ import annotations

import ast
import random
import re

import pytest

from trainmon.tails.formats import quick_bar, stdout
from trainmon.tails.formats.bar import Bar
from trainmon.tails.record import Parsed

LABELS = (
    *("Training: ", "", "Epoch 1/3: ", "Eval: ", "Map: ", "0: ", "[rank1]: Train: ", "2026-01-01 10:00:00 Train: "),
    *("loss: 2.5: ", "perdida: "),
)
KEYS = (
    ("loss", "lr"),
    ("v_num", "reduced_train_loss", "global_step"),
    ("step", "loss"),
    ("loss", "loss"),
    ("foo",),
    ("perdida",),
    (),
)
TEXTS = (
    *("hello", "step 7 | loss: 2.5 | lr:", "1.0e-04 | tok/s: 9", "Traceback (most recent call last):"),
    *('  File "a.py", line 3, in f', "ValueError: x", "2026-01-01 10:00:00 [INFO] reading shard 5"),
    *("saved checkpoint at step 3", "  step   loss", "  3   2.5", "train step 9: loss 2.5 lr 1e-4"),
    *("Validation", "Training", "Epoch 2/4", "{'loss': 2.5, 'epoch': 0.5}"),
)
VALUES = ("nan", "-.5", "1,024", "2.5%", "3.1K", "None", "1.")
NEVER = re.compile(rb"(?!)")


def value(rng: random.Random) -> str:
    return rng.choice(
        [f"{rng.random():.3f}", f"{rng.random():.2e}", "nan", "-.5", "1,024", "2.5%", "3.1K", "None", "1."]
    )


def log(seed: int) -> bytes:
    """A log of bars that move on, are drawn again, go back and begin anew, with other lines between."""
    rng, parts, place, total = random.Random(seed), [], 0, random.Random(seed).choice([5, 40, 2000])
    labels, keys, is_plain = rng.sample(LABELS, 2), rng.sample(KEYS, 2), rng.random() < 0.6
    for _ in range(rng.randrange(5, 60)):
        if rng.random() < 0.7:
            place = (place + rng.choice([0, 1, 1, 1, 2, -1])) % (total + 1)
            drawn = "█" * (place * 10 // total) if rng.random() < 0.5 else "#" * (place * 10 // total)
            post = "".join(f", {key}={f'{rng.random():.3f}' if is_plain else value(rng)}" for key in rng.choice(keys))
            clock = f"{place // 60:02d}:{place % 60:02d}<10:00"
            parts.append(
                f"{rng.choice(labels)}{100 * place // total:3d}%|{drawn:<10}| {place}/{total} [{clock}, 3.2it/s{post}]"
            )
        else:
            parts.append(rng.choice(TEXTS))
        parts.append(rng.choice(["\r", "\r", "\r", "\n", "\x1b[A\r"]))
    return "".join(parts).encode()


def everything(data: bytes) -> tuple[list[object], list[object], list[object]]:
    reader = stdout.Stdout("x.log")
    parsed: list[Parsed] = [reader.feed(data + b"\n", 0, 1), reader.finish()]
    rows: list[object] = []
    for block in (block for one in parsed for block in one.blocks):
        columns = {key: column.tolist() for key, column in block.columns.items()}
        rows.append(repr((block.steps.tolist(), block.times.tolist(), block.offsets.tolist(), block.lines.tolist())))
        rows.append(repr((columns, {key: mark.tolist() for key, mark in block.marks.items()}, block.step_key)))
    return rows, [note for one in parsed for note in one.notes], [fact for one in parsed for fact in one.facts]


@pytest.mark.parametrize("seed", range(150))
def test_no_short_way_changes_what_is_read(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = log(seed)
    quick = everything(data)
    monkeypatch.setattr(stdout, "QUICK_FRAME", NEVER)
    monkeypatch.setattr(stdout, "QUICK_PLACE", NEVER)
    monkeypatch.setattr(stdout, "is_silent", lambda _raw: False)
    assert everything(data) == quick


def test_frames_of_known_words_are_not_read_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = [
        f"Train: {at // 20:3d}%|{'#' * (at // 200)}| {at}/2000 [00:{at % 60:02d}<10:00, 3.2it/s, loss={at}.5, lr=1e-3]"
        for at in range(1, 2000)
    ]
    full: list[str] = []
    read_bar = quick_bar.read_bar

    def counted(text: str) -> Bar | None:
        full.append(text)
        return read_bar(text)

    monkeypatch.setattr(quick_bar, "read_bar", counted)
    rows, _, _ = everything("\r".join(frames).encode())
    assert len(full) <= 101  # a hundred different percentages
    assert [number for row in rows[::2] for number in ast.literal_eval(str(row))[0]] == list(range(1, 2000))


def _bars(first: float, kind: str) -> str:
    return "".join(
        f"\r{10 * n:3d}%|{'#' * n:<10}| {n}/10 [00:{n:02d}<00:10,  1.02it/s{kind.format(first - n / 8)}]"
        for n in range(1, 11)
    )


def test_a_heading_changes_what_known_frames_mean() -> None:
    text = (
        f"{_bars(4, ', loss={:.3f}')}\nValidation\n{_bars(8, ', loss={:.3f}')}\nTraining\n{_bars(3, ', loss={:.3f}')}\n"
    )
    reader = stdout.Stdout("log")
    parsed = reader.feed(text.encode(), 0, 1)
    parsed.add(reader.finish())
    found: dict[str, list[float]] = {}
    for block in parsed.blocks:
        for key, values in block.columns.items():
            found.setdefault(key, []).extend(value for value in values.tolist() if value == value)
    assert found["loss"] == [first - n / 8 for first in (4, 3) for n in range(1, 11)]
    assert found["eval/loss"] == [8 - 10 / 8]  # of one evaluation, however often it is drawn


def test_frames_that_tell_their_place_alone_are_looked_at_once_a_percent(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    look = stdout.Stdout._look

    def counted(self: stdout.Stdout, raw: bytes, outline: bytes, offset: int, line_no: int) -> None:
        nonlocal looks
        looks += b"|" in raw
        look(self, raw, outline, offset, line_no)

    monkeypatch.setattr(stdout.Stdout, "_look", counted)
    lines = []
    for step in range(10, 2010, 10):
        frames = "".join(
            f"\r{n // 20:3d}%|{'#' * (n // 200):<10}| {n}/2000 [{n // 60:02d}:{n % 60:02d}<1:00:00,  1.02it/s]"
            for n in range(step - 9, step + 1)
        )
        lines.append(f"{frames}\n{{'loss': {2 + step % 7 / 8}, 'epoch': {step / 1000}}}\n")
    reader = stdout.Stdout("log")
    parsed = reader.feed("".join(lines).encode(), 0, 1)
    parsed.add(reader.finish())
    steps = [step for block in parsed.blocks for step in block.steps.tolist()]
    assert steps == [float(step) for step in range(10, 2010, 10)]
    assert looks <= 130
