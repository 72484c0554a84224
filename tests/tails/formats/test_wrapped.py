"""Lines that a container runtime or a logger wraps in JSON, behind a rank or a time too."""

from __future__ import annotations

import json

import pytest

from tests.tails.formats.stdout_reading import kinds, read, rows, values
from trainmon.tails.formats import registry

LOSSES = [(at, 3 - at / 8) for at in range(1, 5)]
ZERO = 1736935200.0  # 2025-01-15T10:00:00Z


def stamp(at: int) -> str:
    return f"2025-01-15T10:00:0{at}Z"


@pytest.mark.parametrize("key", ["log", "message", "msg", "event", "textPayload"])
@pytest.mark.parametrize("before", ["", "[rank0]: ", "[pod/trainer-0/main] ", "2025-01-15T10:00:00Z stdout F ", "0: "])
def test_the_text_and_its_time_are_read(key: str, before: str) -> None:
    text = "".join(
        before + json.dumps({key: f"step {at} | loss {loss} | lr 1e-4\n", "time": stamp(at)}) + "\n"
        for at, loss in LOSSES
    )
    parsed = read(text)
    assert values(parsed, "loss") == LOSSES
    assert [time for _, _, _, time, _ in rows(parsed)] == [ZERO + at for at, _ in LOSSES]


def test_the_time_before_the_wrapper_is_that_of_one_without() -> None:
    text = "".join(f"{stamp(at)} " + json.dumps({"message": f"step {at} loss {loss}"}) + "\n" for at, loss in LOSSES)
    assert [time for _, _, _, time, _ in rows(read(text))] == [ZERO + at for at, _ in LOSSES]


def test_the_rank_before_the_wrapper_is_the_records() -> None:
    text = "".join(
        f"[rank{rank}]: " + json.dumps({"log": f"step {at} loss {loss + rank}\n", "stream": "stdout"}) + "\n"
        for at, loss in LOSSES
        for rank in (0, 1)
    )
    parsed = read(text)
    assert values(parsed, "loss") == LOSSES
    assert values(parsed, "loss{rank=1}") == [(at, loss + 1) for at, loss in LOSSES]


@pytest.mark.parametrize("before", ["", "[rank0]: "])
def test_a_record_beside_its_event_keeps_its_time(before: str) -> None:
    text = "starting\n" + "".join(
        before + json.dumps({"event": "train step", "step": at, "loss": loss, "timestamp": stamp(at)}) + "\n"
        for at, loss in LOSSES
    )
    parsed = read(text)
    assert values(parsed, "loss") == LOSSES
    assert [time for _, _, _, time, _ in rows(parsed)] == [ZERO + at for at, _ in LOSSES]


def test_a_traceback_behind_ranks_is_one() -> None:
    said = (
        "step 1 loss 2.5",
        "Traceback (most recent call last):",
        '  File "a.py", line 3',
        "    main()",
        "ValueError: x",
    )
    parsed = read("".join("[rank0]: " + json.dumps({"log": f"{line}\n"}) + "\n" for line in said))
    assert kinds(parsed) == ["traceback"]


def test_an_event_without_a_number_is_no_text() -> None:
    text = "".join(json.dumps({"event": "train", "step": at, "loss": loss}) + "\n" for at, loss in LOSSES)
    assert values(read(text), "loss") == LOSSES


def test_what_a_notebook_printed_is_read_from_the_records_of_its_log() -> None:
    said = ["Starting training", *(f"step {at} | loss {3 - at / 8} | lr 1e-4" for at in range(1, 6))]
    entries = [json.dumps({"stream_name": "stdout", "time": 12.5, "data": f"{text}\n"}) for text in said]
    text = "[" + "\n,".join(entries) + "\n]\n"
    assert values(read(text), "loss") == [(at, 3 - at / 8) for at in range(1, 6)]
    found = registry.detect(text.encode(), "notebook.log")
    assert found is not None
    assert found.name == "stdout"
