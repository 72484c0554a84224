"""Records that a trainer wraps by hand: what follows below, set in or behind a bar, is of the step above."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import EVAL_WORD, METRIC, STEP_KEY, fields_of
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape, read_once

_BEGINS = re.compile(r"(?:\s{0,16}[|│]\s{0,4}|\s{2,40})(?=[A-Za-z_∇])")
_WORDS = re.compile(r"[A-Za-z]{2,}")
_LONGEST = 2000
_MOST_WORDS = 2  # that are no key
_FEWEST_BLANKS = 2


class Continued(Dialect):
    """Lines of pairs without a step, right below a record or another such line, which holds none of their keys."""

    name = "continued"
    tokens = (
        b"loss",
        b"lr=",
        b"lr:",
        b"lr ",
        b"grad_norm",
        b"grad norm",
        b"gnorm",
        b"learning rate",
        b"learning_rate",
        b"mfu",
    )
    samples = (
        b"step 10/90 | loss 3.25\n | lr 1e-4\n | gnorm 1.5\nstep 20/90 | loss 3.125\n | lr 1e-4\n | gnorm 1.25\n",
        b"step 10/90: loss=3.25\n    lr=1e-4\n    gnorm=1.5\nstep 20/90: loss=3.125\n    lr=1e-4\n    gnorm=1.25\n",
    )

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        if line.line_no != sink.record_line + 1 or sink.step is None or sink.is_telling:
            return False
        text, at = line.text, 0
        is_bare = line.prefix.time is None and not line.prefix.rank
        match = _BEGINS.match(text)
        if line.prefix.at and is_bare:  # the bar was taken for a prefix
            at = line.prefix.at
        elif match is None or not is_bare:
            return False
        if len(text) > _LONGEST or (
            not at and match is not None and "|" not in match[0] and len(match[0]) < _FEWEST_BLANKS
        ):
            return False
        scanned = line.scan()
        others = list(scanned.others)
        fields = fields_of(scanned.pairs, others)
        if not fields or not METRIC.search(fields[0][0]) or any(self._is_own(key, sink) for key, _ in fields):
            return False
        left = text
        for key, _ in fields:
            left = left.replace(key.split(" (")[0], " ", 1)
        if len(_WORDS.findall(left)) > _MOST_WORDS:
            return False
        reading = read_once(text, Shape(fields, others), self.name)
        reading.step, reading.step_key = sink.step, sink.step_key
        sink.emit(reading, line)
        return True

    @staticmethod
    def _is_own(key: str, sink: Sink) -> bool:
        """Whether a line with `key` is a record or result of its own."""
        return key in sink.newest_keys or STEP_KEY.fullmatch(key) is not None or EVAL_WORD.search(key) is not None
