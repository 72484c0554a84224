"""Julia's log messages of several lines: ``┌ Info: epoch 3``, ``│   loss = 2.5``, ``└ @ Main train.jl:33``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import METRIC
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import NUMBER, to_number
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading
from trainmon.tails.steps import ranked_step_keys, step_key_of

_HEAD = re.compile(r"\s{0,8}┌ (?:Info|Debug|Warning): (?P<words>.{0,400})")
_ROW = re.compile(
    rf"\s{{0,8}}(?P<bar>[│└])\s{{1,8}}(?P<key>[^\W\d][^=@]{{0,80}}?) = (?P<value>{NUMBER})(?:f0)?(?P<rest>[^\w.].*)?"
)
_OTHER = re.compile(r"\s{0,8}(?P<bar>[│└])(?:\s.*)?")
_STEP = re.compile(
    r"\b(?P<key>step|iter(?:ation)?|batch|epoch)\s?[:=#]?\s?\[?(?P<step>\d{1,12})(?:\s?/\s?(?P<total>\d{1,12}))?\b",
    re.I,
)
_MOST_ROWS = 200
_OF_OTHERS = 3  # lines of another program among those of a message
_NAMES = {"η": "learning rate", "ℒ": "loss", "∇": "grad norm"}


class Julia(Dialect):
    """A message is a record where one of its values is a metric and it names a step, or its words do."""

    name = "julia"
    tokens = ("┌ info: ".encode(), "┌ debug: ".encode(), "┌ warning: ".encode())
    samples = (
        "┌ Info: Training step\n│   step = 1\n│   loss = 3.25f0\n│   η = 0.001\n└ @ Main train.jl:33\n"
        "┌ Info: Training step\n│   step = 2\n│   loss = 3.125f0\n│   η = 0.001\n└ @ Main train.jl:33\n".encode(),
        "┌ Info: epoch 1\n│ loss = 3.25\n└ lr = 0.1\n┌ Info: epoch 2\n│ loss = 3.0\n└ lr = 0.1\n".encode(),
    )

    def __init__(self) -> None:
        self._values: dict[str, float | None] = {}
        self._head: tuple[str, Line] | None = None
        self._idle = 0

    @property
    def is_open(self) -> bool:
        """Whether a message is begun."""
        return self._head is not None

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        head = _HEAD.fullmatch(line.text)
        if head is not None:
            self.flush(sink)
            self._head, self._values, self._idle = (head["words"], line), {}, 0
            return False  # what a warning says is for others too
        if self._head is None:
            return False
        row = _ROW.fullmatch(line.text)
        other = row or _OTHER.fullmatch(line.text)
        if other is None:
            self._idle += 1
            if self._idle > _OF_OTHERS:
                self.flush(sink)
            return False
        if row is not None and len(self._values) < _MOST_ROWS:
            key = row["key"].strip()
            self._values[_NAMES.get(key, key)] = to_number(row["value"])
        if other["bar"] == "└":
            self.flush(sink)
        return row is not None

    def flush(self, sink: Sink) -> None:
        """Gives what is held back."""
        head, values = self._head, self._values
        self._head, self._values = None, {}
        if head is None or not any(METRIC.search(key) for key in values):
            return
        words, line = head
        reading = Reading(values, dialect=self.name)
        key = step_key_of(values)
        match = _STEP.search(words) if key is None else None
        if match is not None:
            reading.step, reading.step_key = float(match["step"]), match["key"].lower()
            reading.total = float(match["total"]) if match["total"] else None
        else:
            key = key or next(iter(ranked_step_keys(values)), None)
            step = values[key] if key is not None else None
            if key is None or step is None or step != step // 1:
                return
            reading.step, reading.step_key = step, key
            del values[key]
        reading.secondary = reading.step_key == "epoch"
        sink.emit(reading, line)
