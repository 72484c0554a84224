"""Lines of hundreds of values or more, whose like was read before: taken apart by one split.

An expression of such a line (`template`) would take longer to make than it ever saves, and looking at each value anew
costs a second or more a megabyte. All that stands between the numbers is compared as it is.
"""

from __future__ import annotations

import re
from operator import itemgetter

from trainmon.tails.formats.template import Reading, Shape, read_once

_NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)")
LONG = 8000  # characters of a line; one of fewer is known by its expression
_MOST = 4  # shapes of one file that are kept
_FEWEST = 2


class WideShape:
    """The shape of one line.

    >>> text = "step 5 | l0_loss 2.5 | l1_loss 2.25"
    >>> fields = [("l0_loss", (17, 20)), ("l1_loss", (31, 35))]
    >>> known = WideShape(text, Shape(fields, step=(5, 6), step_key="step"), "generic")
    >>> reading = known.read("step 16 | l0_loss 1.5 | l1_loss 1e-3")
    >>> reading.step, reading.values, known.read("step 16 | l0_loss 1.5 | l2_loss 1e-3")
    (16.0, {'l0_loss': 1.5, 'l1_loss': 0.001}, None)
    """

    def __init__(self, text: str, shape: Shape, dialect: str) -> None:
        self._parts = _NUMBER.split(text)
        at = 0
        places: dict[tuple[int, int], int] = {}
        for index, part in enumerate(self._parts):
            if index % 2:
                places[at, at + len(part)] = index
            at += len(part)
        self._heads = {
            name: places.get(span)
            for name in ("step", "total", "epoch", "epochs", "rank")
            if (span := getattr(shape, name)) is not None
        }
        found = [places.get(span) for _, span in shape.fields]
        self.is_exact = None not in found and None not in self._heads.values() and len(found) >= _FEWEST
        """Whether every value is a number by itself, as this reading finds them."""
        if not self.is_exact:
            return
        self._shape, self._dialect = shape, dialect
        self._keys = [key for key, _ in shape.fields]
        self._fields = itemgetter(*found)
        free = {*found, *self._heads.values(), *(places.get(span) for span in shape.others)}
        fixed = [index for index in range(len(self._parts)) if index not in free]
        self._fixed = itemgetter(*fixed)
        self._words = self._fixed(self._parts)

    def read(self, text: str) -> Reading | None:
        """What `text` says, None when it has another shape."""
        parts = _NUMBER.split(text)
        if len(parts) != len(self._parts) or self._fixed(parts) != self._words:
            return None
        values = dict(zip(self._keys, map(float, self._fields(parts)), strict=True))
        reading = Reading(values, step_key=self._shape.step_key, dialect=self._dialect)
        reading.secondary = self._shape.secondary
        for name, index in self._heads.items():
            if index is not None:
                setattr(reading, name, parts[index] if name == "rank" else float(parts[index]))
        return reading


class WideShapes:
    """The shapes of one file, the newest first."""

    def __init__(self) -> None:
        self._known: list[WideShape] = []

    def read(self, text: str) -> Reading | None:
        """What `text` says, None when no line of its shape was read before."""
        for known in self._known:
            reading = known.read(text)
            if reading is not None:
                return reading
        return None

    def learn(self, text: str, shape: Shape, dialect: str) -> Reading:
        """Keeps the shape that was found in `text`; what `text` says."""
        known = WideShape(text, shape, dialect)
        if known.is_exact:
            self._known = [known, *self._known[: _MOST - 1]]
        return read_once(text, shape, dialect)
