"""tqdm_loggable (levanter): ``Progress on:train 3.00it/100it rate:1.2it/s remaining:01:20 ... postfix:loss=10.8``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import METRIC, FlatDialect, fields_of
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.numbers import NUMBER
from trainmon.tails.formats.pairs import scan
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape

_COUNT = rf"(?:{NUMBER})[kMG]?"
_PLACE = re.compile(
    rf"Progress on:\s?(?P<what>[^\d]{{0,60}}?)\s*(?P<step>{_COUNT})it/(?P<total>{_COUNT}|-)it (?P<rest>.*?postfix:)"
)
_LONGEST = 2000


class LoggableBar(FlatDialect):
    """A bar as log lines. Counts above a thousand are rounded (``1.23kit``): the step is as fine as they are."""

    name = "loggable bar"
    tokens = (b"progress on:",)
    samples = (
        b"2025-03-04T10:00:05 INFO - Progress on:train 3.00it/100it rate:1.2it/s remaining:01:20 elapsed:00:03 "
        b"postfix:loss=10.8\n",
        b"Progress on:train 1.25kit/10.0kit rate:1.2it/s remaining:01:20 elapsed:00:03 postfix:loss=3.25\n",
    )

    def shape(self, line: Line, sink: Sink) -> Shape | None:  # noqa: ARG002 - the hook
        """The shape of `line`, None when it is not this dialect's."""
        text = line.text
        place = _PLACE.search(text) if len(text) <= _LONGEST else None
        if place is None:
            return None
        start = place.end()
        scanned = scan(text[start:])
        inner: list[tuple[int, int]] = []
        fields = [(key, (a + start, b + start)) for key, (a, b) in fields_of(scanned.pairs, inner)]
        if not any(METRIC.search(key) for key, _ in fields):
            return None
        before = scan(place["rest"])
        begin = place.start("rest")
        others = [(pair.start + begin, pair.end + begin) for pair in before.pairs]
        others += [(a + begin, b + begin) for a, b in before.others]
        others += [(a + start, b + start) for a, b in (*scanned.others, *inner)]
        total = place.span("total") if place["total"] != "-" else None
        return Shape(fields, others, place.span("step"), "it", total)
