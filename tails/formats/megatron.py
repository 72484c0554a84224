"""Megatron-LM and its descendants: Megatron-DeepSpeed, GPT-NeoX, MindSpeed, Primus, NeMo's own loop."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import FlatDialect, fields_of
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.pairs import scan
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape

_ITERATION = re.compile(r"(?:^|\| ?)\s*iteration\s+(\d+)\s*/\s*(\d+)\s*\|")
_RESULT = re.compile(
    r"[\s-]{0,200}(?P<what>validation|test|train(?:ing)?)?\s{0,8}(?:loss|results?) at "
    r"(?:iteration|step)\s+(?P<step>\d+)(?P<on>[^|]{0,300})\|(?P<rest>.*)"
)
_TIMERS = re.compile(r"\s*(?:\(?(?:min, max|ranks)[^|]*)?time \(ms\) \|(?P<rest>.*:.*)")
_ON_SET = re.compile(r"\s{0,8}(?:(?:on|for)\s{1,8})?(?:the\s{1,8})?(validation|test|valid)? ?set\s{0,8}")


def _pairs_of(text: str, start: int, prefix: str) -> Shape:
    """The shape of the pairs of `text` from `start` on, their keys with `prefix`."""
    scanned = scan(text[start:])
    others = [(a + start, b + start) for a, b in scanned.others]
    inner: list[tuple[int, int]] = []
    fields = [(f"{prefix}{key}", (a + start, b + start)) for key, (a, b) in fields_of(scanned.pairs, inner)]
    return Shape(fields, others + [(a + start, b + start) for a, b in inner])


class Megatron(FlatDialect):
    """``iteration 11/ 500 | ... | lm loss: 9.9E+00 | ...`` and ``validation loss at iteration 100 | ...``.

    GPT-NeoX puts ``samples/sec`` first. Keys stay as written; those of an evaluation begin with ``validation/``.
    """

    name = "megatron"
    tokens = (b"iteration", b"time (ms)")
    samples = (
        b" iteration        1/     500 | consumed samples:           16 | elapsed time per iteration (ms): 14757.5 | "
        b"learning rate: 2.000E-07 | global batch size:    16 | lm loss: 1.263599E+01 | loss scale: "
        b"1.0 | grad norm: 20.203 | "
        b"number of skipped iterations:   0 | number of nan iterations:   0 |\n",
        b" samples/sec: 38.337 | iteration       10/  320000 | elapsed time per iteration (ms): 11268.5 | "
        b"learning rate: 6.250E-07 | approx flops per GPU: 116.7TFLOPS | lm_loss: 1.076191E+01 |\n",
        b" iteration      300/     500 | lm loss: 2.1E+00 | grad norm: 0.5 |\n"
        b" validation loss at iteration 300 | lm loss value: 2.302474E+00 | lm loss PPL: 9.459206E+00 | \n",
    )

    def shape(self, line: Line, sink: Sink) -> Shape | None:  # noqa: ARG002 - the hook
        """The shape of `line`, None when it is not this dialect's."""
        text = line.text
        match = _ITERATION.search(text)
        if match is not None:
            before = scan(text[: match.start(1)]).pairs
            shape = _pairs_of(text, match.end(), "")
            inner: list[tuple[int, int]] = []
            shape.fields = fields_of(before, inner) + shape.fields
            shape.others += inner
            shape.step, shape.total, shape.step_key = match.span(1), match.span(2), "iteration"
            return shape
        match = _RESULT.match(text)
        if match is not None:
            shape = _pairs_of(text, match.start("rest"), self._prefix(match["what"], match["on"]))
            shape.step, shape.step_key = match.span("step"), "iteration"
            return shape
        return None

    @staticmethod
    def _prefix(what: str | None, on: str) -> str:
        """``validation/`` or ``test/``; a result on something else than the usual set says on what."""
        on_set = _ON_SET.fullmatch(on)
        if on_set is not None and on_set.group(1):
            what = "test" if on_set.group(1) == "test" else "validation"
        where = on.strip()
        is_usual = not where or on_set is not None
        return f"{what or 'validation'}/" if is_usual else f"{what or 'validation'} {where}/"
