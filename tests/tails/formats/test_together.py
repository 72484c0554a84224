"""Lines that look alike are read together with the result of reading each by itself."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon.tails.formats.any_width import AnyWidth
from trainmon.tails.formats.flat import shape_of
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.stdout import Stdout
from trainmon.tails.formats.template import Template
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
    "Train: [{epoch}/40][{place}/50] loss {loss:.4f} ({grad:.4f}) lr {lr:.2e}",
    "Epoch:[{epoch}/40]({place}/50), loss: {loss:.4f}, lr: {lr}",
    "epoch={epoch} step={place} loss={loss} lr={lr}",
    "step={step}, skipped={n}, lr=[{lr}, {lr}], mom=[[0.9, 0.95], [0.9, 0.95]]",
    "epoch={epoch}/micro_step={step}/global_step={step}, RunningAvgSamplesPerSec={wide}, MemAllocated=1.75GB",
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
            "epoch": step // 50,
            "place": step % 50,
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


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 1 << 20),
    prefixes=st.lists(st.sampled_from(PREFIXES), min_size=1, max_size=2),
    bodies=st.lists(st.sampled_from(BODIES), min_size=1, max_size=3),
    ranks=st.sampled_from([1, 3]),
    at_once=st.sampled_from([9, 50, 400]),
)
def test_together_as_one_by_one(seed: int, prefixes: list[str], bodies: list[str], ranks: int, at_once: int) -> None:
    data = log(seed, 300, prefixes, bodies, ranks)
    assert read(data, at_once) == read(data, 1)


ODD = (
    *("nan", "NaN", "-nan", "inf", "-inf", "Inf", "+inf", "INF", "iNF", "InF", "infinity", "Infinity", "INFINITY"),
    *("None", "null", "N/A", "NA", "-", "--", "7.", ".5", "-.5", "1e400", "12.5K", "3M", "1.5.2", "1_000", "5-"),
    *("0x1f", "1e", "1e+", "2.5ms", "1.#QNAN", "-1.#IND00", "1,23", "1,2345", "12:30:11", "2 days, 1:02:03", "1h 2m"),
)
NUMBERS = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.tuples(st.floats(-1e9, 1e9), st.integers(0, 12)).map(lambda pair: f"{pair[0]:.{pair[1]}f}"),
    st.tuples(st.floats(allow_nan=False), st.integers(0, 20)).map(lambda pair: f"{pair[0]:+.{pair[1]}E}"),
    st.integers(-(10**20), 10**20).map(str),
    st.integers(0, 10**15).map("{:,}".format),
    st.floats(0, 1e9).map("{:,.2f}".format),
    st.sampled_from(ODD),
)
# The words around values: blanks, units, what a number could run into, digits in a name, several on one key.
WORDS = (
    "step 3 | loss {} | lr {} | grad norm {} |",
    "step: 3/9000 loss={},lr={},tok/s={}",
    "step 3 | loss {}ms | mfu {}% | eps {}examples/s",
    "step 3 loss_1 {} loss_2 {} top-5 acc {}",
    "iteration   3/ 100 | loss: {} | betas: {},{} | x",
    "step 3 [loss {}] (lr {}) acc {}.",
    "step 3 loss {}e lr {}E acc {}-x",
    "{} step 3 loss {} lr {}",
)


@settings(max_examples=150, deadline=None)
@given(
    words=st.sampled_from(WORDS),
    first=st.lists(NUMBERS, min_size=3, max_size=3),
    lines=st.lists(st.lists(NUMBERS, min_size=3, max_size=3), max_size=12),
)
def test_numbers_of_any_width_are_those_of_the_template(words: str, first: list[str], lines: list[list[str]]) -> None:
    shape = shape_of(line := Line(words.format(*first), 0, 1), needs_step=True)
    if shape is None:
        return
    template = Template(line.text, shape, "generic")
    commas = frozenset(at for at, raw in enumerate(template.match(line.text) or ()) if "," in raw)
    if not AnyWidth.may_read(template):
        return
    quick = AnyWidth(template, b"", None, commas)
    for values in (first, *lines):
        text = words.format(*values)
        found, reading = quick.numbers(text.encode()), template.read(text)
        if found is None:
            continue
        assert reading is not None
        assert repr(found[template.head_groups[0]]) == repr(reading.step)
        numbers = [found[at] for at in template.field_groups]
        assert repr(dict(zip(template.keys, numbers, strict=True))) == repr(reading.values)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1 << 20),
    words=st.sampled_from(WORDS),
    prefix=st.sampled_from(PREFIXES),
    at_once=st.sampled_from([9, 50, 400]),
    values=st.lists(NUMBERS, min_size=8, max_size=40),
)
def test_lines_of_any_numbers_are_read_together_as_one_by_one(
    seed: int, words: str, prefix: str, at_once: int, values: list[str]
) -> None:
    rng = random.Random(seed)
    body = words.replace("step 3", "step {step}").replace("step: 3/", "step: {step}/").replace(" 3/ ", "{step:8d}/ ")
    body = body.replace("%", "%%").replace("{}", "%s")
    bodies = [body % tuple(rng.choices(values, k=3)) for _ in range(40)]
    data = log(seed, 200, [prefix], bodies, 1)
    assert read(data, at_once) == read(data, 1)


def test_lines_of_ever_new_widths_are_matched_once_each() -> None:
    """Their shape is learned from the first few; no outline, template or expression is made for each."""
    rng = random.Random(5)
    body = "step {} | loss {:.4g} | lr {:.3g} | grad norm {:.5g} | tokens {:,}"
    lines = [
        body.format(step, *(rng.lognormvariate(0, 6) for _ in range(3)), rng.randrange(10**9)).encode() + b"\n"
        for step in range(1, 501)
    ]
    reader = Stdout("log")
    parsed = reader.feed(b"".join(lines), 0, 1)
    assert parsed.records + reader.finish().records == 500
    assert len(reader._sink.templates._all) == 1
    assert not reader._outlines.places  # numbers with commas have no fixed places
    assert len(reader._outlines.loose) == 1


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


@pytest.mark.parametrize("odd", ["12:30:11", "1.5.2", "0x1f", "2 days, 1:02:03"])
def test_a_line_with_what_is_no_number_hides_none_in_the_lines_behind_it(odd: str) -> None:
    """The shape of the one line is not that of the others, although words alone are the same."""
    said = ["1.25", odd, "2.5", "3", "12", "1e-3"]
    data = "".join(f"step {step} | loss 2.5 | grad norm {text} |\n" for step, text in enumerate(said, 1)).encode()
    reader = Stdout("log")
    parts = [reader.feed(data, 0, 1), reader.finish()]
    found = [float(one) for part in parts for block in part.blocks for one in block.columns["grad norm"] if one == one]
    assert found == [1.25, 2.5, 3.0, 12.0, 0.001]
