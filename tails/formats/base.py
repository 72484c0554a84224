"""The three bases of a log format. A format is one small module that subclasses one and is registered.

A format is fed bytes and gives `Parsed`. However the bytes are cut into feeds, the records, notes and facts
that come out, taken together, are the same (property-tested over the registry); only how they are grouped
into blocks may differ. A format never raises on content: a line it cannot read is counted as unreadable, or
kept as text when it never claimed to be a record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from trainmon.tails.record import Parsed


class Format(ABC):
    """One way in which trainers write numbers.

    `name` is what ``trainmon check`` prints; `samples` are small texts in this shape, each of which `sniff`
    must recognise ahead of every other registered format (tests sweep them).
    """

    name: ClassVar[str]
    samples: ClassVar[tuple[bytes, ...]] = ()

    def __init__(self, source: str) -> None:
        self.source = source

    @classmethod
    @abstractmethod
    def sniff(cls, head: bytes) -> float:
        """How sure this format is that `head` (the first up to 64 KiB of a file) is its own: 0 to 1."""

    @property
    def label(self) -> str:
        """The name to show once some content was read; a dispatcher names the dialect it found."""
        return self.name


class LineFormat(Format):
    """Text of lines. Fed whole lines only."""

    @abstractmethod
    def feed(self, data: bytes, offset: int, line_no: int) -> Parsed:
        """Reads `data`, which begins at byte `offset` and line `line_no` (1-based) and ends at a line end.

        A record that spans lines may be held back until a later feed completes it.
        """

    @abstractmethod
    def finish(self) -> Parsed:
        """Gives what was held back. Called at the end of a file, and when a live file has been quiet.

        Feeding may go on after it; a held record that then continues gives a second record at the same step.
        """


class DocumentFormat(Format):
    """A file that is rewritten whole (trainer_state.json). Each reading gives all of it anew.

    `problem`: one line on what keeps the document from being read at all (a package that is missing), "" when nothing.
    `companion`: what a file beside it is called, behind the document's own name, that holds its newest part; "": none.
    """

    problem: str = ""
    companion: ClassVar[str] = ""

    @abstractmethod
    def parse(self, data: bytes) -> Parsed:
        """Reads the whole document. The caller keeps only records beyond those of the reading before."""

    def joined(self, data: bytes, beside: bytes) -> bytes:  # noqa: ARG002 - the hook
        """The document `data` with what its companion holds."""
        return data


class FramedFormat(Format):
    """Binary records with a frame of their own (tfevents, .wandb).

    `glimpse_every`: reading can begin in the midst of a file, at multiples of so many bytes; 0: nowhere.
    """

    glimpse_every: ClassVar[int] = 0

    @abstractmethod
    def feed_frames(self, data: bytes, offset: int) -> tuple[Parsed, int]:
        """Reads the whole frames of `data`; returns what they hold and how many bytes were consumed.

        Bytes after the last whole frame are given again, with more behind them. Call until nothing is consumed;
        the same bytes given once more after that mean that the source is quiet: then what was held back is given.
        """

    def glimpse(self, data: bytes, offset: int) -> Parsed:
        """Some of the records of a piece from further on in the file, at a multiple of `glimpse_every`.

        For previews: a reader that has given one reads no more than glimpses.
        """
        raise NotImplementedError(f"{self.name} cannot begin at byte {offset} to read {len(data)} bytes")
