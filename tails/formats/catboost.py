"""CatBoost: ``12:<tab>learn: 0.69<tab>test: 0.70<tab>best: 0.70 (12)<tab>total: 63ms<tab>remaining: 1m 2s``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import FlatDialect
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.numbers import NUMBER
from trainmon.tails.formats.pairs import scan
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape

_LINE = re.compile(
    rf"\s*(?P<step>\d{{1,9}}):\s+(?:learn: (?P<learn>{NUMBER})\s+)?(?:test\d*: (?P<test>{NUMBER})\s+)?"
    r".{0,400}\btotal: "
)


class CatBoost(FlatDialect):
    """The step is the number of trees, counted from 0; ``test`` is held-out data's loss, ``best`` only its best."""

    name = "catboost"
    tokens = (b"learn: ", b"test: ", b"test0: ")
    samples = (
        b"0:\tlearn: 0.6925\ttest: 0.6950\tbest: 0.6950 (0)\ttotal: 63.1ms\tremaining: 1m 2s\n"
        b"1:\tlearn: 0.6875\ttest: 0.6900\tbest: 0.6900 (1)\ttotal: 126ms\tremaining: 1m 3s\n",
    )

    def shape(self, line: Line, sink: Sink) -> Shape | None:  # noqa: ARG002 - the hook
        """The shape of `line`, None when it is not this dialect's."""
        match = _LINE.match(line.text)
        if match is None or not (match["learn"] or match["test"]):
            return None
        fields = [
            (key, match.span(group)) for key, group in (("learn loss", "learn"), ("test loss", "test")) if match[group]
        ]
        known = {span[0] for _, span in fields} | {match.start("step")}
        scanned = scan(line.text)
        others = [(pair.start, pair.end) for pair in scanned.pairs] + scanned.others
        return Shape(fields, [span for span in others if span[0] not in known], match.span("step"), "trees")
