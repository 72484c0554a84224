"""What derivation rules share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.record import FloatArray, IntArray, MarkArray, Note


class DraftLike(Protocol):
    """What a rule may do with a frame that is being added to (`derive.Draft`)."""

    frame: Frame
    columns: dict[SignalKey, FloatArray]
    families: dict[str, list[SignalKey]]

    def __len__(self) -> int: ...

    def column(self, signal: str) -> FloatArray | None:
        """The column of `signal` without labels, logged or derived so far."""
        ...

    def wants(self, key: SignalKey) -> bool:
        """Whether `key` may be derived."""
        ...

    def put(self, key: SignalKey, values: FloatArray, text: str, marks: MarkArray | None = None) -> None:
        """Adds a derived column; `text` says what it was made from, `marks` where NaN and Inf are values."""
        ...

    def speak(self, key: SignalKey, own: SignalKey, rows: IntArray) -> None:
        """Gives what `key` says at `rows`, ascending, to `own`."""
        ...

    def open_between(self, key: SignalKey, begin: int, end: int) -> None:
        """Lets `key` be derived in the rows from `begin` up to `end`, though it was logged."""
        ...

    def raise_to(self, key: SignalKey, values: FloatArray) -> None:
        """Raises a logged column to the maximum over ranks, and fills it where a rank alone tells."""
        ...


class DerivationRule:
    """A rule that keeps nothing over attempts and hears no notes, unless it says otherwise."""

    def apply(self, draft: DraftLike) -> None:
        """Reads the draft's columns and puts what follows from them."""
        raise NotImplementedError

    def new_attempt(self) -> None:
        """A (re)start: nothing is differenced across it."""

    def note(self, note: Note) -> None:
        """An event of the log."""


def number_fact(facts: Mapping[str, float | str], *names: str) -> float | None:
    """The first of `names` that the run's facts give as a positive number."""
    for name in names:
        value = facts.get(name)
        if isinstance(value, (int, float)) and value > 0:
            return float(value)
    return None
