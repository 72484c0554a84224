"""What must hold of any log, as functions of its bytes: the campaign calls them, and so do the tests."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from tests.fuzz.mutation import pieces
from tests.fuzz.reading import always, holds_together, read, said
from trainmon.tails.formats import registry
from trainmon.tails.ingest import Ingest
from trainmon.tails.logpane import LogPane


def is_read(data: bytes, _rng: random.Random) -> None:
    """No exception; all that is said holds together."""
    parsed, ingest = read([data])
    holds_together(parsed, ingest, data)


def any_cut(data: bytes, rng: random.Random) -> None:
    """The same however it arrives."""
    detect = always(data)
    cuts = [rng.randrange(1 << 16) for _ in range(rng.choice((1, 3, 9)))]
    assert said(read(pieces(data, cuts), detect)[0]) == said(read([data], detect)[0])


def every_format(data: bytes, rng: random.Random) -> None:
    """Formats look at, and read, what is not their own."""
    for name in registry.FORMATS:
        sureness = registry.format_class(name).sniff(data[: 1 << 16])
        assert 0 <= sureness <= 1
        assert math.isfinite(sureness)
    cls = registry.format_class(rng.choice(list(registry.FORMATS)))
    parsed, ingest = read([data], lambda _head, source: cls(source))
    holds_together(parsed, ingest, data)


def notes_in_order(data: bytes, rng: random.Random) -> None:
    """What the log told up to a line is what it tells first when read on: nothing is taken back."""
    end = data.rfind(b"\n", 0, rng.randrange(len(data) + 1)) + 1
    detect = always(data)
    both = []
    for part in (data[:end], data):
        ingest = Ingest("log", detect, LogPane("log", 10))
        parsed = ingest.feed(part, is_at_end=True)
        both.append([(note.line_no, note.kind, note.text) for note in parsed.notes])
    first, whole = both
    assert whole[: len(first)] == first


CHECKS: dict[str, Callable[[bytes, random.Random], None]] = {
    "is_read": is_read,
    "any_cut": any_cut,
    "every_format": every_format,
    "notes_in_order": notes_in_order,
}
