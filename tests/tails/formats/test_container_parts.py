"""Lines that a container runtime wrote in parts: Docker's objects, Kubernetes' tagged lines."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.tails.formats.stdout_reading import read, values
from trainmon.tails.formats.container_parts import ContainerParts
from trainmon.tails.formats.cut_lines import Piece
from trainmon.tails.formats.stdout import Stdout

Split = Callable[[str, int, int], list[str]]
LOSSES = [3.25, 3.125, 3.0, 2.875]
WIDE = " | ".join(f"w{place} 0.5" for place in range(2000))


def record(step: int, *, wide: bool = True) -> str:
    middle = f" | {WIDE}" if wide else ""
    return f"step {step} | loss {LOSSES[step - 1]}{middle} | grad_norm {step / 4}"


def tagged(text: str, step: int, size: int) -> list[str]:
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    stamp = f"2025-01-15T10:00:{step:02d}.5Z stdout"
    return [f"{stamp} {'F' if part is parts[-1] else 'P'} {part}" for part in parts]


def objects(text: str, step: int, size: int) -> list[str]:
    text += "\n"
    stamp = f"2025-01-15T10:00:{step:02d}.5Z"
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    return [json.dumps({"log": part, "stream": "stdout", "time": stamp}, separators=(",", ":")) for part in parts]


@pytest.mark.parametrize("split", [tagged, objects])
@pytest.mark.parametrize("size", [16384, 9, 33])
def test_parts_of_a_line_are_one_record(split: Split, size: int) -> None:
    lines = [line for step in range(1, 5) for line in split(record(step, wide=size > 99), step, size)]
    begun = split("started", 0, 100)  # a whole line of Docker's shows that it keeps their ends
    parsed = read("\n".join(begun + lines) + "\n")
    assert values(parsed, "loss") == [(float(step), LOSSES[step - 1]) for step in range(1, 5)]
    assert values(parsed, "grad_norm") == [(float(step), step / 4) for step in range(1, 5)]


@pytest.mark.parametrize(
    ("split", "other"),
    [(tagged, "2025-01-15T10:00:00Z stderr F slow link\n"), (objects, '{"log":"slow\\n","stream":"stderr"}\n')],
)
def test_another_stream_may_speak_between_two_parts(split: Split, other: str) -> None:
    text = "".join(other.join(f"{line}\n" for line in split(record(step), step, 16384)) for step in range(1, 5))
    assert values(read(text), "grad_norm") == [(float(step), step / 4) for step in range(1, 5)]


def test_a_shipper_that_leaves_the_ends_of_lines_away_makes_no_parts() -> None:
    lines = [json.dumps({"log": record(step, wide=False), "stream": "stdout"}) for step in range(1, 5)]
    assert values(read("\n".join(lines) + "\n"), "loss") == [(float(step), LOSSES[step - 1]) for step in range(1, 5)]


def test_frames_of_a_bar_come_before_its_line_ends() -> None:
    reader = Stdout("train.log")
    frames = "".join(f"\r{at}%| | {at}/100 [00:{at:02d}<01:00, 1.0s/it, loss={at / 8}]" for at in range(1, 21))
    lines = ['{"log":"go\\n","stream":"stdout"}']
    lines += [json.dumps({"log": frames[at : at + 100], "stream": "stdout"}) for at in range(0, len(frames), 100)]
    given = values(reader.feed(("\n".join(lines) + "\n").encode(), 0, 1), "loss")
    assert given[:15] == [(float(at), at / 8) for at in range(1, 16)]


def test_however_the_file_is_cut_the_lines_are_the_same() -> None:
    lines = [
        line for step in (1, 2) for split in (tagged, objects) for line in split(record(step, wide=False), step, 20)
    ]
    data = ("hello\n" + "\n".join(lines) + "\nbar 1%|\rbar 2%|\nstep 4 loss 2.5\n").encode()
    whole = [(one.raw, one.offset, one.line_no) for one in pieces(data, len(data))]
    assert any(b"loss 3.25 | grad_norm 0.25" in raw for raw, _, _ in whole)
    for count in (1, 2, 3, 7):
        assert [(one.raw, one.offset, one.line_no) for one in pieces(data, count)] == whole


def pieces(data: bytes, count: int) -> list[Piece]:
    """What comes out when `count` lines are given at a time."""
    parts, out, offset, line_no = ContainerParts(), [], 0, 1
    lines = data.splitlines(keepends=True)
    for at in range(0, len(lines), count):
        feed = b"".join(lines[at : at + count])
        begin = parts.begin_in(feed)
        out += (
            parts.take(feed[begin:], offset + begin, line_no + feed.count(b"\n", 0, begin)) if begin < len(feed) else []
        )
        offset, line_no = offset + len(feed), line_no + feed.count(b"\n")
    return [one for one in (*out, *parts.flush()) if b"bar" not in one.raw]


def test_a_part_that_never_ends_is_bounded() -> None:
    parts = ContainerParts()
    line = b"2025-01-15T10:00:00Z stdout P " + b"x" * 16384 + b"\n"
    assert parts.take(line * 1000, 0, 1) == []
    [piece] = parts.flush()
    assert len(piece.raw) < 3 << 20


@pytest.mark.parametrize("writer", ["docker", "tagged"])
@pytest.mark.parametrize("end", ["loss 2.", "loss 2.5", "loss", "loss 1e"])
def test_the_number_at_the_end_of_a_part_whose_rest_never_came_is_left_out(writer: str, end: str) -> None:
    lines = [f"step {step} | lr 0.5 | loss 2.5" for step in (1, 2)]
    last = f"step 3 | lr 0.25 | {end}"
    if writer == "docker":
        logged = [f"{line}\n" for line in lines] + [last]
        text = "".join(json.dumps({"log": each, "stream": "stdout", "time": "x"}) + "\n" for each in logged)
    else:
        text = "".join(f"2025-01-15T10:00:0{n}Z stdout F {line}\n" for n, line in enumerate(lines))
        text += f"2025-01-15T10:00:05Z stdout P {last}\n"
    parsed = read(text)
    assert values(parsed, "loss") == [(1.0, 2.5), (2.0, 2.5)]
    assert values(parsed, "lr")[-1] == (3.0, 0.25)
    assert parsed.unreadable == (end != "loss")


def test_an_only_object_without_the_end_of_its_line_is_whole() -> None:
    text = json.dumps({"log": "step 1 | lr 0.5 | loss 2.5", "stream": "stdout", "time": "x"}) + "\n"
    assert values(read(text), "loss") == [(1.0, 2.5)]
