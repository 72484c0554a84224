"""Blocks under a heading that is the step alone: ``===== Step 3/100 =====`` or ``step: 3``, then one metric a line."""

from __future__ import annotations

import re
from dataclasses import replace

from trainmon.tails.formats.flat import EVAL_WORD, METRIC, is_plain, shape_of
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import NUMBER, is_absent, to_number
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading, Template
from trainmon.tails.quick_dataclass import dataclass

_HEADING = re.compile(
    r"[\W_]{0,120}(?:\w{1,40}\]\s?[-:]?\s{1,4}(?:metrics?|results?|stats)\s)?"
    r"(?:(?:(?P<eval2>eval|evaluation|validation|test)[ _])?(?:[a-z]{2,20}[ _]){0,3}"
    r"(?:metrics?|values|results?|stats|summary|scalars|losses)[ _](?:values[ _])?(?:at|for|of|after|on|in)[ _])?"
    r"(?:(?P<eval>eval|validation|test)[ _])?(?:(?:learning|training|train|global|optimi[sz]er)[ _])?"
    r"(?P<key>step|iteration|iter|update|epoch)\s*[:#=]?\s*\[?(?P<step>\d+)(?:\s*(?:/|of)\s*(?P<total>\d+))?[\W_]{0,120}",
    re.IGNORECASE,
)
# A heading of several numbers, whose last is the step: ``--> TIME: 10:00:00 -- STEP: 25/1500 -- GLOBAL_STEP: 25``.
_GLOBAL = re.compile(
    r"[\W_]{0,40}(?:[A-Za-z_]{2,20}\s?[:=]\s?[\d/:. -]{1,40}(?<=[\s,|-])){1,4}"
    r"(?P<key>global_step)\s*[:=]\s*(?P<step>\d+)[\W_]{0,40}",
    re.IGNORECASE,
)
_METRIC = re.compile(
    rf"[\s•*·–>│├└|-]*(?P<key>[A-Za-z][\w /().%@#-]{{0,60}}?)\s*[:=]\s*(?P<value>{NUMBER})\s?(?P<unit>%|[A-Za-z]"
    r"[A-Za-z/]{0,11})?,?\s*(?:\([^)]{0,80}\))?[\s|│]*"
)
_LONGEST = 400
_BULLETS = " \t•*·–-─│|"
_PATIENCE = 40  # lines that are no metric, in a block


@dataclass(slots=True)
class _Block:
    """What is begun. `others`: records of other dialects when it was; `idle`: lines since its newest metric."""

    reading: Reading
    values: dict[str, float | None]
    line: Line
    others: int
    is_eval: bool = False
    idle: int = 0


class Headed(Dialect):
    """A block ends at the next heading, when another dialect reads a record, or after `_PATIENCE` other lines.

    What stands below the heading of an epoch is a second account of the steps.
    """

    name = "headed block"
    tokens = (b"step", b"iter", b"update", b"epoch")
    samples = (
        b"======== Step 1/100 ========\n  Training results:\n  * Loss: 0.25\n  * Avg Reward: 0.5\n"
        b"======== Step 2/100 ========\n  * Loss: 0.125\n  * Total step time: 61.5s\n",
        b"Metrics values at step 10:\n  loss=3.25\n  grad_norm=1.5\nMetrics values at step 20:\n  loss=3.125\n",
        b"   --> TIME: 2025-03-04 10:00:00 -- STEP: 25/100 -- GLOBAL_STEP: 25\n     | > loss: 3.25  (3.25)\n",
        b"step: 10\n  loss: 3.25\n  lr: 1.0e-04\n\nstep: 20\n  loss: 3.125\n  lr: 1.0e-04\n",
        b"Epoch 1/2\n----------\ntrain Loss: 3.25 Acc: 0.5\nval Loss: 3.5 Acc: 0.25\n"
        b"Epoch 2/2\n----------\ntrain Loss: 3.0 Acc: 0.5\nval Loss: 3.25 Acc: 0.25\n",
    )

    def __init__(self) -> None:
        self._open: _Block | None = None

    @property
    def is_open(self) -> bool:
        """Whether a block is begun."""
        return self._open is not None

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        text = line.text
        if len(text) > _LONGEST:
            return False
        match = _HEADING.fullmatch(text) or _GLOBAL.fullmatch(text)
        if match is None:
            return self._below(line, sink)
        self.flush(sink)
        values: dict[str, float | None] = {}
        reading = Reading(values, float(match["step"]), match["key"].lower(), dialect=self.name)
        named = match.groupdict()
        reading.total = float(named["total"]) if named.get("total") else None
        reading.secondary = reading.step_key == "epoch"
        is_eval = named.get("eval") is not None or named.get("eval2") is not None
        self._open = _Block(reading, values, line, sink.dialects.total(), is_eval)
        return True

    def pass_by(self, sink: Sink) -> None:
        """A record of another dialect ends the block."""
        if self._open is not None and sink.dialects.total() != self._open.others:
            self.flush(sink)

    def _below(self, line: Line, sink: Sink) -> bool:
        """Takes a line below a heading; False when it is no metric of the block."""
        block = self._open
        if block is None:
            return False
        if sink.dialects.total() != block.others:
            self.flush(sink)
            return False
        if self._results(block, line) if block.reading.secondary else self._metric(block, line.text):
            block.idle = 0
            return True
        block.idle += bool(line.text.strip())
        if block.idle > _PATIENCE:
            self.flush(sink)
        return False

    @staticmethod
    def _metric(block: _Block, text: str) -> bool:
        match = _METRIC.fullmatch(text)
        if match is None:
            return False
        if not is_absent(match["value"]):
            key = f"{match['key']} ({match['unit']})" if match["unit"] else match["key"]
            block.values.setdefault(key, to_number(match["value"]))
        return True

    @staticmethod
    def _results(block: _Block, line: Line) -> bool:
        """Takes a line of results below the heading of an epoch: one or several values, and no step of its own."""
        words = replace(line, text=line.text.strip(_BULLETS), _scan=None)
        shape = shape_of(words, needs_step=False)
        if shape is None or shape.step is not None or not is_plain(words, shape):
            return False
        reading = Template(words.text, shape, Headed.name).read(words.text)
        for key, value in reading.values.items() if reading is not None else ():
            block.values.setdefault(key, value)
        return reading is not None

    def flush(self, sink: Sink) -> None:
        """Gives what is held back."""
        block, self._open = self._open, None
        if block is None or not any(METRIC.search(key) for key in block.values):
            return
        if block.is_eval:
            block.reading.values = {
                key if EVAL_WORD.search(key) else f"eval/{key}": one for key, one in block.values.items()
            }
        sink.emit(block.reading, block.line)
