"""What one line of text tells of all lines that differ from it in digits alone."""

from __future__ import annotations

from enum import Enum, auto

from trainmon.tails.formats.bar import BarKind


class LineKind(Enum):
    """Whether lines of one outline are noise, records of a known shape, bars that give a position alone, or other."""

    DULL = auto()
    KNOWN = auto()
    PLAIN_BAR = auto()
    OTHER = auto()

    @classmethod
    def of_bar(cls, kind: BarKind) -> LineKind:
        """What a bar's frame is, of `kind`.

        >>> LineKind.of_bar(BarKind.SIDE).name
        'DULL'
        """
        return {BarKind.SIDE: cls.DULL, BarKind.PLAIN: cls.PLAIN_BAR}.get(kind, cls.OTHER)
