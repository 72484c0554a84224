"""Stretches of lines of one shape, read as bytes, are read as one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tails.formats.test_together import BODIES, PREFIXES, log, read
from trainmon.tails.formats import alike, stdout
from trainmon.tails.formats.any_width import AnyWidth
from trainmon.tails.formats.skeleton import Chunk, Skeleton, numbers_at
from trainmon.tails.formats.stdout import Stdout
from trainmon.tails.formats.template import Shape, Template


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few lines there are, they are looked at together."""
    for name, value in (("_WORTH", 1), ("_LEARN", 2000), ("_FEWEST", 1), ("_FAIR_SHARE", 0.0)):
        monkeypatch.setattr(alike, name, value)
    monkeypatch.setattr(stdout, "_TOGETHER", 2)


@pytest.mark.usefixtures("eager")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 1 << 20),
    prefix=st.sampled_from(PREFIXES),
    bodies=st.lists(st.sampled_from(BODIES), min_size=1, max_size=3),
    ranks=st.sampled_from([1, 3]),
    at_once=st.sampled_from([9, 50, 400]),
)
def test_stretches_are_read_as_one_by_one(seed: int, prefix: str, bodies: list[str], ranks: int, at_once: int) -> None:
    data = log(seed, 400, [prefix], bodies, ranks)
    assert read(data, at_once) == read(data, 1)


class Counted:
    """Counts the lines that were read together."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines = 0
        emit = stdout.Sink.emit_alike

        def counted(sink: stdout.Sink, lines: alike.Alike, raws: list[bytes], offset: int, line_no: int) -> bool:
            is_taken = emit(sink, lines, raws, offset, line_no)
            self.lines += len(lines) if is_taken else 0
            return is_taken

        monkeypatch.setattr(stdout.Sink, "emit_alike", counted)


@pytest.mark.parametrize(
    "body",
    [
        "step {step} | loss {x:.4g} | lr {y:.4g} | tok/s {z:.1f}",
        "iteration {step:8d}/ 9000 | lm loss: {x:.6E} | grad norm: {y:.3f} | time per iteration (ms): {z:.1f} |",
        "[2025-03-02 11:{minute:02d}:07] iteration {step}/9000 | lm loss: {x:.6E} | l0_loss: {y:.4g}",
        "Train: [{epoch}/40][{step}/9000] loss {x:.4f} lr {y:.4g}",
    ],
)
def test_lines_of_ever_new_widths_are_read_together(monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    counted, rng = Counted(monkeypatch), np.random.default_rng(1)
    lines = [
        body.format(step=n, epoch=n // 1000, minute=n // 100, x=rng.lognormal(), y=rng.lognormal(-9, 4), z=1e3 * n)
        for n in range(1, 3001)
    ]
    reader = Stdout("log")
    parsed = reader.feed("\n".join([*lines, ""]).encode(), 0, 1)
    assert parsed.records + reader.finish().records == 3000
    assert counted.lines > 2000


def test_a_line_said_twice_is_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    lines = [f"step {n} | loss {2 + 1 / n:.4g} | lr {3e-4 / n:.4g}" for n in range(1, 2001) for _ in "ab"]
    reader = Stdout("log")
    parsed = reader.feed("\n".join([*lines, ""]).encode(), 0, 1)
    [block] = parsed.blocks
    assert block.steps.tolist() == list(range(1, 2001))
    assert block.lines.tolist() == list(range(1, 4001, 2))
    assert counted.lines > 2000


LINE = b"iter 5 lm loss: 2.5 l2_norm 1e-4 (0.5) end"
KNOWN = AnyWidth(
    Template(
        LINE.decode(),
        Shape([("loss", (16, 19)), ("l2_norm", (28, 32)), ("x", (34, 37))], step=(5, 6), step_key="iter"),
        "generic",
    ),
    b"",
    None,  # type: ignore[arg-type]
)


@pytest.mark.parametrize(
    "line",
    [
        b"iter 16 lm loss: 3 l2_norm -2.5E-07 (7.) end",
        b"iter   16 lm  loss:2.5 l2_norm 1e-4 ( 0.5 )end   ",
        b"iter 16 lm loss: 2.5 l3_norm 1e-4 (0.5) end",
        b"iter 16 lm loss: 2.5 l22_norm 1e-4 (0.5) end",
        b"iter 16 lm loss: 2.5 l 2_norm 1e-4 (0.5) end",
        b"it er 16 lm loss: 2.5 l2_norm 1e-4 (0.5) end",
        b" iter 16 lm loss: 2.5 l2_norm 1e-4 (0.5) end",
        b"iter 16 lm loss: nan l2_norm 1e-4 (0.5) end",
        b"iter 16 lm loss: --2 l2_norm 1e-4 (0.5) end",
        b"iter 16 lm loss: 1-2 l2_norm 1e-4 (0.5) end",
        b"iter 16 lm loss: 2.5e l2_norm 1e-4 (0.5) end",
        b"iter 16 lm loss: 2.5. l2_norm 1e-4 (0.5) end",
        b"iter 16 lm loss: 1,204 l2_norm 1e-4 (0.5) end",
        b"iter 16 lm loss: 007 l2_norm +1e-4 (.5) end",
        b"iter 16 lm loss: -0 l2_norm 1e999 (-0.0) end",
        b"iter 16 lm loss: 2.5 l2_norm 1e-4 (0.5) end 7",
        b"iter 16 lm loss: 2.5 l2_norm 1e-4 (0.5) en\xe4",
        b"iter \x01 lm loss: 2.5 l2_norm 1e-4 (0.5) end",
        b"iter 16 lm loss: 2.5 l2_norm 1e-4 (0.5) end\0",
        b"iter 16 lm loss: 2.5 l2_norm 1e-4 (0.5)\rend",
        b"",
    ],
)
def test_a_skeleton_says_what_the_expression_says_or_nothing(line: bytes) -> None:
    skeleton = Skeleton.learn(KNOWN, LINE)
    assert skeleton is not None
    chunk = Chunk(line + b"\n" + LINE + b"\n")
    rows, numbers = skeleton.read(chunk, np.array([at for at in (0, 1) if skeleton.fits(chunk.skeletons[at])]))
    assert rows[-1] == 1
    assert numbers[-1].tolist() == [5.0, 2.5, 1e-4, 0.5]
    if len(rows) == 2:
        expected = KNOWN.numbers(line)
        assert expected is not None
        assert list(map(repr, numbers[0].tolist())) == list(map(repr, expected))
    else:
        assert line not in (
            b"iter 16 lm loss: 3 l2_norm -2.5E-07 (7.) end",
            b"iter 16 lm loss: 007 l2_norm +1e-4 (.5) end",
        )


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.floats(allow_nan=False), st.integers(-(10**25), 10**25)), min_size=1, max_size=20), st.data()
)
def test_numbers_are_those_of_float(values: list[float], data: st.DataObject) -> None:
    forms = ("{!r}", "{:.4g}", "{:.6E}", "{:+.3f}", "{:.17g}", "{:08.2f}")
    words = [data.draw(st.sampled_from(forms)).format(value) for value in values]
    words = [word for word in words if "inf" not in word]
    text = " ".join([*words, ""]).encode()
    ends = np.cumsum([len(word) + 1 for word in words]) - 1
    begins = ends - [len(word) for word in words]
    if len(words):
        found = numbers_at(np.frombuffer(text, np.uint8), begins[:, None], ends[:, None])
        assert list(map(repr, found.ravel().tolist())) == [repr(float(word)) for word in words]
    assert math.isnan(numbers_at(np.frombuffer(b"1-2 ", np.uint8), np.array([[0]]), np.array([[3]]))[0, 0])
