"""Events in JSON lines: what they say, wherever in the record it stands, is judged as a line of text is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainmon.tails.formats.event_words import message_in
from trainmon.tails.formats.jsonl import JsonLines
from trainmon.tails.record import Note, Parsed

OOM = "CUDA out of memory. Tried to allocate 1.00 GiB"


def read(records: list[dict[str, Any]]) -> Parsed:
    reader = JsonLines("events.jsonl")
    out = reader.feed("".join(json.dumps(record) + "\n" for record in records).encode(), 0, 1)
    out.add(reader.finish())
    return out


def note_of(event: dict[str, Any]) -> Note:
    [note] = read([*({"step": n, "loss": 2.5} for n in range(1, 9)), event]).notes
    return note


@pytest.mark.parametrize(
    ("event", "kind", "text"),
    [
        ({"type": "error", "data": {"message": OOM}}, "cuda_oom", OOM),
        ({"type": "error", "error": OOM}, "cuda_oom", OOM),
        ({"event": "crash", "payload": {"error": {"type": "KeyError", "message": "'x'"}}}, "error", "KeyError: 'x'"),
        (
            {"type": "error", "message": "DataLoader worker is killed", "step": 8},
            "error",
            "DataLoader worker is killed",
        ),
        ({"type": "exception", "data": {"msg": "Watchdog caught collective operation timeout: x"}}, "nccl_timeout", ""),
        (
            {
                "type": "error",
                "traceback": 'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: bad\n',
            },
            "error",
            "ValueError: bad",
        ),
        ({"type": "error"}, "error", "type: error"),
        ({"type": "error", "data": {"message": ""}}, "error", "type: error"),
        ({"type": "checkpoint", "data": {"path": "ckpt/8"}}, "checkpoint_saved", "ckpt/8"),
    ],
)
def test_what_an_event_says(event: dict[str, Any], kind: str, text: str) -> None:
    note = note_of(event)
    assert note.kind.value == kind
    assert note.text == (text or "Watchdog caught collective operation timeout: x")
    assert not note.teardown


def test_noise_of_an_end_is_told_apart_in_events_too() -> None:
    assert note_of({"type": "error", "data": {"message": "ChildFailedError: train.py FAILED"}}).teardown


def test_the_outermost_message_is_the_events_own() -> None:
    assert message_in({"data/inner/message": "within", "message": "outer", "type": "error"}) == "outer"


@pytest.mark.parametrize("payload", ["data", "payload", "metrics", "values"])
def test_what_carries_the_numbers_of_an_evaluation_is_no_set(payload: str) -> None:
    records: list[dict[str, Any]] = []
    for n in range(1, 41):
        records.append({"type": "train", payload: {"step": n, "loss": 2.5}})
        if n % 5 == 0:
            records.append({"type": "eval", payload: {"step": n, "loss": 2.75}})
    keys = {key for block in read(records).blocks for key in block.columns}
    assert keys == {f"{payload}/loss", "eval/loss"}


def test_a_set_of_an_evaluation_is_kept() -> None:
    parsed = read([{"type": "eval", "step": n, "c4": {"loss": 2.5}} for n in range(1, 9)])
    assert {key for block in parsed.blocks for key in block.columns} == {"eval/c4/loss"}
