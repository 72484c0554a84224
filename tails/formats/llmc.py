"""llm.c: the console's ``step  902/19560 | loss ... | 3788 ms | ...`` and main.log's ``s:12 trl:3.1 lr:.. norm:..``."""

from __future__ import annotations

import re

from trainmon.tails.formats.flat import PatternDialect, fields_of
from trainmon.tails.formats.line import Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Shape

_MAIN_LOG = re.compile(r"^s:(\d+) (?:tr|te)l:|^s:(\d+) eval:")


class LlmC(PatternDialect):
    """In main.log ``trl`` is the train loss, ``tel`` the test loss and ``eval`` HellaSwag; z-scores are ``loss z``."""

    name = "llm.c"
    tokens = (b"trl:", b"tel:", b"s:", b"step")
    pattern = re.compile(r"^step\s+\d+/\d+ \|.*\(\S+z\)\|")
    samples = (
        b"step    1/19560 | loss 11.0091 (+nanz)| norm 15.3715 (+nanz)| lr 8.57e-07 | 3788.44 ms | "
        b"35.6% bf16 MFU | 138391 tok/s\n",
        b"s:0 tel:11.0092\ns:0 trl:11.0091 lr:0.000001 norm:15.37\n",
    )

    def shape(self, line: Line, sink: Sink) -> Shape | None:
        """The shape of `line`, None when it is not this dialect's."""
        match = _MAIN_LOG.match(line.text)
        if match is None:
            return super().shape(line, sink)
        scanned = line.scan()
        others = list(scanned.others)
        span = match.span(1) if match[1] is not None else match.span(2)
        return Shape(fields_of(scanned.pairs[1:], others), others, span, "s")
