"""Lines that look alike are read together with the result of reading each by itself."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon.tails.formats.skeleton import Skeleton, skeletons
from trainmon.tails.formats.stdout import Stdout
from trainmon.tails.prefix import read_prefix
from trainmon.tails.prefix_times import PrefixTimes
from trainmon.tails.record import Parsed

PREFIXES = (
    "",
    " ",
    "[default{rank}]: ",
    "{rank}: ",
    "[rank{rank}]:[titan] 2026-05-{day:02d} {h:02d}:{m:02d}:{s:02d},{ms:03d} - root - INFO - ",
    "2024-08-{day:02d}T{h:02d}:{m:02d}:{s:02d}.{ms:03d}590636Z ",
    "2024-08-{day:02d}T{h:02d}:{m:02d}:{s:02d}.{ms:03d}590636Z [rank{rank}]:"
    "2024-08-{day:02d} {h:02d}:{m:02d}:{s:02d},{ms:03d} ",
    "[2025-03-{day:02d} {h:02d}:{m:02d}:{s:02d}] ",
    "[{h:02d}:{m:02d}:{s:02d}] ",
    "03/{day:02d}/2025 {h12:02d}:{m:02d}:{s:02d} PM ",
    "I03{day:02d} {h:02d}:{m:02d}:{s:02d}.{ms:03d}123 4242 trainer.py:88] ",
    "(TaskRunner pid={rank}123) ",
    "{unix} [INFO] ",
)
BODIES = (
    "iteration {step:8d}/ 500000 | lm loss: {loss:.6E} | grad norm: {grad:.3f} | num zeros: {n} |",
    "step {step} | loss: {loss:.4f} | lr {lr:.2e} | tok/s {wide:.1f}",
    "step={step} loss={signed:.3f} acc={grad:.17f}",
    "step: {step}/9000 loss: {odd} grad_norm: {wide}",
)


def log(seed: int, count: int, prefixes: list[str], bodies: list[str], ranks: int) -> bytes:
    """Lines of a run, some of them no records, some with a clock that is none."""
    rng = random.Random(seed)
    lines = []
    for index in range(count):
        step, second = index // ranks, 7 * index
        fields = {
            "rank": index % ranks,
            "day": 1 + second // 86400 % 27,
            "h": second // 3600 % 24,
            "h12": 1 + second // 3600 % 12,
            "m": second // 60 % 60,
            "s": second % 60 if rng.random() > 0.002 else 77,
            "ms": rng.randrange(1000),
            "unix": 1_700_000_000 + second,
            "step": step,
            "loss": 2 + rng.random(),
            "grad": rng.lognormvariate(0, 2),
            "n": rng.choice([3, 44, 555]),
            "lr": rng.choice([3e-4, 1e-5]),
            "wide": rng.lognormvariate(6, 3),
            "signed": rng.gauss(0, 1),
            "odd": rng.choice(["nan", "2.5", "inf", "1e-3", "12345678901234567890.5", "1e300", ".5", "7."]),
        }
        lines.append((rng.choice(prefixes) + rng.choice(bodies)).format(**fields))
        if rng.random() < 0.02:
            lines.append(rng.choice(["", "saving checkpoint at step 7", "some words 12:30:11", "Traceback: none"]))
        if rng.random() < 0.02:
            lines.append(lines[-1])
    return ("\n".join(lines) + "\n").encode()


def rows(parts: list[Parsed]) -> list[str]:
    """All rows in words, however they were put into blocks; then what else was said."""
    out = []
    for part in parts:
        for block in part.blocks:
            marks = {key: block.mark_of(key) for key in block.columns}
            for row in range(len(block)):
                values = {
                    key: (repr(float(column[row])), int(marks[key][row])) for key, column in block.columns.items()
                }
                logged = {key: value for key, value in values.items() if value[1]}
                place = (int(block.offsets[row]), int(block.lines[row]), block.step_key)
                time = (repr(float(block.times[row])), block.time_kind if block.times[row] == block.times[row] else "")
                out.append(repr((place, repr(float(block.steps[row])), time, sorted(logged.items()))))
    return [
        *out,
        *(repr(note) for part in parts for note in part.notes),
        *(repr(f) for part in parts for f in part.facts),
    ]


def read(data: bytes, lines_at_once: int) -> tuple[list[str], str]:
    reader = Stdout("log")
    lines = data.splitlines(keepends=True)
    offset, parts = 0, []
    for at in range(0, len(lines), lines_at_once):
        piece = b"".join(lines[at : at + lines_at_once])
        parts.append(reader.feed(piece, offset, at + 1))
        offset += len(piece)
    return rows([*parts, reader.finish()]), reader.label


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1 << 20),
    prefixes=st.lists(st.sampled_from(PREFIXES), min_size=1, max_size=2),
    bodies=st.lists(st.sampled_from(BODIES), min_size=1, max_size=2),
    ranks=st.sampled_from([1, 3]),
    at_once=st.sampled_from([9, 50, 400]),
)
def test_together_as_one_by_one(seed: int, prefixes: list[str], bodies: list[str], ranks: int, at_once: int) -> None:
    data = log(seed, 300, prefixes, bodies, ranks)
    assert read(data, at_once) == read(data, 1)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 10**17), st.integers(0, 10**17), st.integers(0, 330), st.integers(0, 20)),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([b"a %d.%d b %d", b"x=%d.%de-%d y", b"x=-%d.%de+%d", b"%d .%d;%d"]),
)
def test_numbers_of_any_width_are_those_of_float(rows_: list[tuple[int, int, int, int]], form: bytes) -> None:
    lines = [form % row[:3] for row in rows_]
    spans = {
        b"a %d.%d b %d": lambda a, b, c: [(2, a + b + 3), (a + b + 6, a + b + c + 6)],
        b"x=%d.%de-%d y": lambda a, b, c: [(2, a + b + c + 5)],
        b"x=-%d.%de+%d": lambda a, b, c: [(2, a + b + c + 6)],
        b"%d .%d;%d": lambda a, b, c: [(0, a), (a + 1, a + b + 2), (a + b + 3, a + b + c + 3)],
    }[form]
    widths = [[len(str(number)) for number in row[:3]] for row in rows_]
    cells = [spans(*width) for width in widths]
    found = Skeleton(lines[0], cells[0]).read(lines)
    assert found is not None
    expected = [[float(line[start:end]) for start, end in own] for line, own in zip(lines, cells, strict=True)]
    assert found.tolist() == expected


def test_a_line_of_another_skeleton_is_not_read() -> None:
    assert Skeleton(b"a 1.5", [(2, 5)]).read([b"a 2.5", b"a 2.5 3"]) is None
    with pytest.raises(ValueError, match="nan"):
        Skeleton(b"a nan", [(2, 5)])
    assert skeletons(b"") == [b""]


@pytest.mark.parametrize("prefix", PREFIXES[1:])
def test_prefixes_are_those_read_alone(prefix: str) -> None:
    fields = {"rank": 1, "day": 3, "h": 7, "h12": 7, "m": 9, "s": 11, "ms": 25, "unix": 1_700_000_000}
    first = prefix.format(**fields) + "step: 5 loss: 2.5"
    at = read_prefix(first).at
    times = PrefixTimes.learn(first, at)
    if times is None:
        return
    changes = [{"h": 23, "m": 59, "s": 59, "ms": 999}, {"day": 4}, {"rank": 2}, {"day": 9, "rank": 7, "ms": 1}]
    lines = [prefix.format(**{**fields, **change}) + "step: 6 loss: 2.5" for change in changes]
    found = times.read([line.encode() for line in lines])
    assert found is not None
    prefixes, seconds = found
    for index, line in enumerate(lines):
        own = read_prefix(line)
        one = prefixes[index]
        assert (one.at, one.rank, one.time_kind, one.is_clock) == (own.at, own.rank, own.time_kind, own.is_clock)
        assert own.time == (None if seconds is None else float(np.asarray(seconds)[index]))


def test_a_clock_out_of_range_is_read_alone() -> None:
    first = "2025-03-02 11:00:58 step: 5"
    times = PrefixTimes.learn(first, read_prefix(first).at)
    assert times is not None
    assert times.read([b"2025-03-02 11:00:78 step: 5"]) is None
    assert times.read([b"2025-03-32 11:00:58 step: 5"]) is None
