"""One line on its way through the dialects, and what a dialect is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from trainmon.tails.formats.pairs import Scan, scan
from trainmon.tails.prefix import NO_PREFIX, Prefix

if TYPE_CHECKING:
    from trainmon.tails.formats.sink import Sink


@dataclass(slots=True)
class Line:
    """A line (or one ``\\r`` frame of it) without control sequences. `text` is what follows the `prefix`."""

    text: str
    offset: int
    line_no: int
    prefix: Prefix = NO_PREFIX
    is_frame: bool = False
    _scan: Scan | None = field(default=None, repr=False)

    def scan(self) -> Scan:
        """All key and value pairs of `text`, found once."""
        if self._scan is None:
            self._scan = scan(self.text)
        return self._scan


class Dialect(ABC):
    """One way in which trainers print numbers as text. One object a file: a dialect may hold a record back.

    `name` is the label shown. `tokens`: a line that holds none of any dialect's (in lower case) is given to none.
    `samples`: small texts in this shape; tests sweep them.
    """

    name: ClassVar[str]
    tokens: ClassVar[tuple[bytes, ...]] = ()
    samples: ClassVar[tuple[bytes, ...]] = ()

    @abstractmethod
    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own: gives records and facts to `sink` and returns True."""

    @property
    def is_open(self) -> bool:
        """Whether a record is begun whose next line must be seen, whatever it holds."""
        return False

    def pass_by(self, sink: Sink) -> None:  # noqa: ARG002 - the hook
        """Hears, while open, of a record that another dialect read: what is begun does not go on there."""
        return

    def flush(self, sink: Sink) -> None:  # noqa: ARG002 - the hook
        """Gives what is held back."""
        return
