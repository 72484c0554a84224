"""What real logs do to a reader: bars, torn lines, odd bytes, several writers, and any cut of the bytes."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tails.formats.stdout_reading import fact, kinds, label, read, rows, values
from trainmon.tails.formats.digits import NumberAt, read_numbers
from trainmon.tails.formats.stdout import Stdout
from trainmon.tails.record import Parsed

SAMPLES = list(Stdout.samples)
NOISE = [
    b"Traceback (most recent call last):\n",
    b'  File "train.py", line 3, in <module>\n',
    b"RuntimeError: CUDA error: device-side assert triggered\n",
    b"INFO some words of no interest 123\n",
    b"\n",
    b"saving checkpoint to out/step_100\n",
    b"[rank3]: step: 7 loss: 2.5 grad_norm: 1.5\n",
    b"[rank0]: step: 7 loss: 2.6 grad_norm: 1.6\n",
    b"step: 8 loss: nan\xff grad_norm: 1.6\n",
    b"{'loss': 1.0, 'epoch': 1.0}\n",
    b" 50%|##  | 5/10 [00:05<00:05, 1.00it/s]\n",
    b"train: 50%|##  | 5/10 [00:05<00:05, 1.00it/s, loss=2.5]\rtrain: 60%|##  | 6/10 "
    b"[00:06<00:05, 1.00it/s, loss=2.4]\n",
]


def content(parsed: Parsed) -> tuple[object, ...]:
    return (
        rows(parsed),
        [(note.kind, note.line_no, note.offset, note.text, note.step, note.teardown) for note in parsed.notes],
        [(fact.key, fact.value, fact.line_no) for fact in parsed.facts],
        parsed.lines,
        parsed.records,
        parsed.unreadable,
    )


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from([*SAMPLES, *NOISE]), min_size=1, max_size=14), st.lists(st.integers(0, 60)))
def test_any_cut_at_line_ends_gives_the_same(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(parts)
    assert content(read(data, cuts=cuts)) == content(read(data))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from([*SAMPLES, *NOISE]), min_size=1, max_size=8), st.lists(st.integers(0, 10_000), max_size=6)
)
def test_a_cut_behind_a_frame_gives_the_same(parts: list[bytes], places: list[int]) -> None:
    data = b"".join(parts)
    ends = [at + 1 for at in range(len(data)) if data[at] in b"\r\n" and data[at : at + 2] != b"\r\n"]
    edges = sorted({0, len(data), *(ends[place % len(ends)] for place in places if ends)})
    reader = Stdout("train.log")
    out = Parsed()
    for start, end in itertools.pairwise(edges):
        out.add(reader.feed(data[start:end], start, 1 + data.count(b"\n", 0, start)))
    out.add(reader.finish())
    assert content(out) == content(read(data))


@given(st.binary(max_size=400))
def test_no_bytes_raise(data: bytes) -> None:
    parsed = read(data)
    assert parsed.records == sum(len(block) for block in parsed.blocks)


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("change", ["crlf", "bom", "nul", "ansi", "torn"])
def test_samples_survive(sample: bytes, change: str) -> None:
    changed = {
        "crlf": sample.replace(b"\n", b"\r\n"),
        "bom": b"\xef\xbb\xbf" + sample,
        "nul": b"\0" * 64 + sample,
        "ansi": sample.replace(b"loss", b"\x1b[31mloss\x1b[0m"),
        "torn": sample[: len(sample) * 2 // 3],
    }[change]
    parsed = read(changed)
    if change in ("crlf", "ansi"):
        assert [row[4] for row in rows(parsed)] == [row[4] for row in rows(read(sample))]


def test_numbers_read_together_equal_float() -> None:
    rng = random.Random(5)
    lines = [
        f"{rng.random() * 10 ** rng.randint(-3, 5):017.8f}|{rng.random():.9E}|{rng.randint(0, 99):02d}"
        for _ in range(400)
    ]
    raw = [line.encode() for line in lines]
    outline = bytes(b"0"[0] if 48 <= byte <= 57 else byte for byte in raw[0])
    same = [line for line in raw if bytes(b"0"[0] if 48 <= byte <= 57 else byte for byte in line) == outline]
    spans = [(0, 17), (18, 18 + len(lines[0].split("|")[1])), (len(raw[0]) - 2, len(raw[0]))]
    matrix = read_numbers([NumberAt(outline, *span) for span in spans], same)
    assert len(same) > 20
    assert matrix.tolist() == [[float(line[start:end]) for start, end in spans] for line in same]


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=12, max_size=12))
def test_any_float_reads_back(numbers: list[float]) -> None:
    text = "".join(f"step: {at:02d} loss: {number!r} lr: {number:.6E}\n" for at, number in enumerate(numbers))
    parsed = read(text)
    assert values(parsed, "loss") == [(float(at), number) for at, number in enumerate(numbers)]
    assert values(parsed, "lr") == [(float(at), float(f"{number:.6E}")) for at, number in enumerate(numbers)]


def test_redraws_of_a_step_are_one_record() -> None:
    frames = "".join(
        f"\rtrain:  5%|##  | {step}/50 [00:{step:02d}<00:38, 12.49it/s, loss={4 - step / 10 - draw / 1000:.3f}]"
        for step in range(1, 21)
        for draw in range(40)
    )
    parsed = read(frames + "\n")
    assert values(parsed, "loss") == [(float(step), round(4 - step / 10 - 0.039, 3)) for step in range(1, 21)]
    assert fact(parsed, "total_steps") == 50


def test_workers_out_of_step_draw_one_bar() -> None:
    order = [1, 1, 2, 1, 2, 2, 3, 2, 3, 3]
    parsed = read("".join(f"train:   0%|  | {n}/200 [00:1{n}<46:19, 11.9it/s, loss=12.{n}]\r" for n in order) + "\n")
    assert [step for step, _ in values(parsed, "loss")] == [1.0, 2.0, 3.0]


def test_a_bar_begun_anew_goes_back() -> None:
    def bar(step: int, seconds: int) -> str:
        return f"train:   0%|  | {step}/200 [00:{seconds:02d}<46:19, 11.9it/s, loss=1.{step}]\n"

    parsed = read(bar(8, 50) + bar(9, 55) + bar(1, 3) + bar(2, 6))
    assert [step for step, _ in values(parsed, "loss")] == [8.0, 9.0, 1.0, 2.0]


def test_evaluation_bars_are_no_training_loss() -> None:
    parsed = read(
        "train:   1%|  | 10/100 [00:12<38:20, 12.49s/it, loss=12.6]\n"
        "eval : 6it [00:03,  2.49it/s, loss=3.71]\rValidation: 50%|## | 5/10 [00:01<00:01, 5.0it/s, val_loss=3.5]\n"
        "train:   1%|  | 11/100 [00:13<38:20, 12.49s/it, loss=12.5]\n"
    )
    assert values(parsed, "loss") == [(10.0, 12.6), (11.0, 12.5)]
    assert values(parsed, "eval/loss") == [(10.0, 3.71)]
    assert values(parsed, "val_loss") == [(10.0, 3.5)]


def test_the_logged_step_beats_the_bars_position() -> None:
    frame = (
        "Epoch 0:  12%|#  | {0}/150750 [00:0{1}<00:10, 8.5it/s, loss=8.7, v_num=0, "
        "reduced_train_loss=8.{1}, global_step={2}]\n"
    )
    parsed = read(frame.format(101, 1, "99.00") + frame.format(102, 2, "99.00") + frame.format(152, 3, "1e+2"))
    assert values(parsed, "reduced_train_loss") == [(99.0, 8.2), (100.0, 8.3)]
    assert fact(parsed, "total_steps") is None
    assert label(frame.format(101, 1, "99.00")) == "progress bar"


def test_dictionaries_beside_bars() -> None:
    glued = "\r  2%|2  | {0}/936 [58:5{1}<41:17:29, 162.28s/it]{{'loss': {2}, 'epoch': 0.04}}\n"
    parsed = read(glued.format(20, 1, 0.5) + glued.format(40, 2, 0.4))
    assert values(parsed, "loss") == [(20.0, 0.5), (40.0, 0.4)]
    assert fact(parsed, "total_steps") == 936
    evaluated = read(
        glued.format(20, 1, 0.5)
        + "\r 50%|## | 31/63 [00:01<00:01, 5.0it/s]\r100%|####| 63/63 [00:02<00:00, "
        + "5.0it/s]\n{'eval_loss': 0.6, 'epoch': 0.04}\n"
    )
    assert values(evaluated, "eval_loss") == [(20.0, 0.6)]


def test_buffered_dictionaries_have_no_step() -> None:
    bar = "\r  2%|2  | 200/8264 [23:37<15:44:25,  7.03s/it]"
    parsed = read(bar + "".join(f"{{'loss': {loss}, 'epoch': 0.0}}\n" for loss in (12.4, 4.7, 0.6)))
    assert values(parsed, "loss") == [("nan", 12.4), ("nan", 4.7), ("nan", 0.6)]
    assert fact(parsed, "total_steps") == 8264


def test_side_bars_give_no_step() -> None:
    parsed = read("\rMap: 100%|###| 10000/10000 [00:02<00:00, 4000 examples/s]\n{'loss': 2.5, 'epoch': 0.01}\n")
    assert values(parsed, "loss") == [("nan", 2.5)]


def test_code_dumps_hold_no_records() -> None:
    parsed = read(
        "import torch\nfor step in range(args.num_iterations + 1):\n    if step == 100: loss = 2.5\n"
        '    print(f"step:{step}/{args.num_iterations} train_loss:{train_loss:.4f}")\n'
        'raise RuntimeError("CUDA out of memory")\n'
        "print('Traceback (most recent call last)')\nstep:1/10 train_loss:3.5 train_time:7ms\n"
    )
    assert values(parsed, "train_loss") == [(1.0, 3.5)]
    assert kinds(parsed) == []


def test_an_over_long_line_is_told() -> None:
    parsed = read(b"x" * (3 << 20) + b"\nstep 1 loss 2.5\n")
    assert values(parsed, "loss") == [(1.0, 2.5)]
    assert kinds(parsed) == ["unreadable"]
    assert parsed.unreadable == 1
    assert all(len(note.text) <= 500 for note in parsed.notes)


def test_a_long_line_of_pairs_is_linear() -> None:
    parsed = read("step 1 " + "loss: 2.5 | " * 40_000 + "\n" + "{" * 200_000 + "\n" + "step " * 100_000 + "\n")
    assert parsed.records <= 1


def test_clock_times_go_over_midnight() -> None:
    parsed = read("23:59:58.000 [I] Step 1: loss=2.5\n00:00:02.500 [I] Step 2: loss=2.4\n")
    before, after = (float(row[3]) for row in rows(parsed))
    assert after - before == 4.5


def test_only_mostly_text_is_sniffed() -> None:
    assert Stdout.sniff(b"hello\n") > 0
    assert Stdout.sniff("Gr\u00fc\u00dfe \u4f60\u597d\n".encode() * 9) > 0
    assert Stdout.sniff(b"") == 0
    assert Stdout.sniff(bytes(range(256)) * 20) == 0
    assert Stdout.sniff(b"\x80\x04\x95\x01" * 400) == 0


def test_a_quiet_file_may_go_on() -> None:
    reader = Stdout("train.log")
    first = b"[step=1/10]\n    train/loss=2.5\n"
    out = reader.feed(first, 0, 1)
    out.add(reader.finish())
    out.add(reader.feed(b"    train/lr=0.1\n[step=2/10]\n    train/loss=2.4\n", len(first), 3))
    out.add(reader.finish())
    assert values(out, "train/loss") == [(1.0, 2.5), (2.0, 2.4)]


def test_non_finite_cells_are_marked_apart() -> None:
    [block] = read(
        "".join(f"step: {at} loss: {loss}\n" for at, loss in enumerate(["1.5", "nan", "inf", "-inf", "None"]))
    ).blocks
    assert block.mark_of("loss").tolist() == [1, 6, 3, 4, 5]
    assert math.isnan(block.columns["loss"][4])
