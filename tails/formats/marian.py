"""Marian: ``Ep. 1 : Up. 500 : Sen. 64,000 : Cost 9.5 : Time 60.5s : 9000.5 words/s : gNorm 1.5 : L.r. 1.0e-04``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import FlatDialect
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.numbers import NUMBER
from trainmon.tails.formats.pairs import scan
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape

_PLACE = re.compile(r"(?P<valid>\[valid\] )?Ep\. (?P<epoch>[\d.]+) : Up\. (?P<step>[\d,]+) : ")
_FIELDS = (
    ("samples", re.compile(r"Sen\. ([\d,]+) :")),
    ("cost", re.compile(rf": Cost ({NUMBER})(?= )")),
    ("time (s)", re.compile(r": Time ([\d.]+)s\b")),
    ("words/s", re.compile(r": ([\d.]+) words/s")),
    ("gnorm", re.compile(rf": gNorm ({NUMBER})(?= |$)")),
    ("lr", re.compile(rf": L\.r\. ({NUMBER})(?= |$)")),
)
_VALID = re.compile(rf"(?P<key>[A-Za-z][\w-]*) : (?P<value>{NUMBER})(?= |$)")
_LONGEST = 2000


class Marian(FlatDialect):
    """The step is the update. What ``[valid]`` lines measure is held-out data's."""

    name = "marian"
    tokens = (b" : up. ",)
    samples = (
        b"[2021-07-17 12:54:33] Ep. 1 : Up. 500 : Sen. 64,000 : Cost 9.50000000 : Time 60.50s : 9000.50 words/s : "
        b"gNorm 1.5000 : L.r. 1.0000e-04\n"
        b"[2021-07-17 12:55:33] [valid] Ep. 1 : Up. 500 : perplexity : 900.5 : new best\n",
    )

    def shape(self, line: Line, sink: Sink) -> Shape | None:  # noqa: ARG002 - the hook
        """The shape of `line`, None when it is not this dialect's."""
        text = line.text
        place = _PLACE.match(text) if len(text) <= _LONGEST else None
        if place is None:
            return None
        if place["valid"]:
            found = _VALID.match(text, place.end())
            fields = [] if found is None else [(f"valid/{found['key']}", found.span("value"))]
        else:
            found_ones = [(key, pattern.search(text, place.end() - 3)) for key, pattern in _FIELDS]
            fields = [(key, one.span(1)) for key, one in found_ones if one is not None]
        known = {span[0] for _, span in fields} | {place.start("epoch"), place.start("step")}
        scanned = scan(text)
        others = [(pair.start, pair.end) for pair in scanned.pairs] + scanned.others
        fields.append(("epoch", place.span("epoch")))
        return Shape(fields, [span for span in others if span[0] not in known], place.span("step"), "update")
