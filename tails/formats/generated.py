"""Samples of generated text among the records: what a model writes of steps and losses is no record.

Only a heading tells (``--- sample ---``, ``Generated text:``). Below it a line that names a step at which the run
cannot be is the model's; every other line is left to the other dialects, since nothing else marks where a sample ends.
"""

from __future__ import annotations

import re

from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.sink import Sink

_HEADING = re.compile(
    r"(?P<before>[\W_]{0,80})(?:(?:the|model|text|begin|start|of|new|next) ){0,3}"
    r"(?:generat(?:ed|ing|ion|ions)|samples?|sampled|sampling|completions?|model outputs?)"
    r"(?: (?:text|texts|output|outputs|samples?|story|stories|completions?)){0,2}(?: ?[#(]?\d{1,9}\)?)?"
    r"(?P<behind>[\W_]{0,80})",
    re.IGNORECASE,
)
_RULE = re.compile(r"[-=*#_~+─━═]{3,200}")
_END = re.compile(r"\W{0,80}end(?: of)?\b.{0,80}", re.IGNORECASE)
_OVER = re.compile(r"Traceback \(most|\b(?:resum|load|restor|launch|torchrun|srun)", re.IGNORECASE)
_STEP = re.compile(r"\b(?:step|iter(?:ation)?|update)s?\s?[:=#]?\s?(\d{1,12})\b(?!\.\d)", re.IGNORECASE)
_LONGEST_HEADING = 160
_MOST_LINES = 40
_MOST_TAKEN = 5  # lines of a sample that name a step: more are those of a start that began again below it
_SLACK = 3.0  # times the run's usual steps from one record to the next


class Generated(Dialect):
    """Holds nothing back: it takes the lines of a sample so that no other dialect reads them."""

    name = "generated text"
    tokens = (b"sample", b"sampling", b"generat", b"completion", b"model output")
    samples = (b"step 10 loss 3.25\n--- sample ---\nshe said: step 999 loss 0.5\nstep 20 loss 3.125\n",)

    def __init__(self) -> None:
        self._since: int | None = None  # the line of the heading
        self._is_ruled = False
        self._taken = 0  # lines of this sample that name a step

    @property
    def is_open(self) -> bool:
        """Whether a sample may go on."""
        return self._since is not None

    def read(self, line: Line, sink: Sink) -> bool:
        """Takes `line` if a model wrote it."""
        text = line.text
        if len(text) <= _LONGEST_HEADING and (heading := _HEADING.fullmatch(text)) is not None:
            self._is_ruled = _RULE.search(heading["before"]) is not None
            is_heading = self._is_ruled or heading["behind"].strip() == ":"
            self._since = line.line_no if is_heading and sink.has_records else None
            self._taken = 0
            return False
        if self._since is None:
            return False
        is_rule = self._is_ruled and _RULE.fullmatch(text.strip()) is not None
        is_end = is_rule or (len(text) <= _LONGEST_HEADING and _END.fullmatch(text) is not None)
        if is_end or line.line_no - self._since > _MOST_LINES or line.prefix.time is not None or _OVER.search(text):
            self._since = None
            return False
        if "epoch" in text.lower():  # a step in the epoch is none of the run's
            return False
        steps = [float(step) for step in _STEP.findall(text[:_LONGEST_HEADING])]
        if not steps or self._may_be_at(steps[0], sink):
            return False
        self._taken += 1
        if self._taken >= _MOST_TAKEN:
            self._since = None
        return True

    @staticmethod
    def _may_be_at(step: float, sink: Sink) -> bool:
        """Whether the run may be at `step`: where it was, or where it usually goes from there."""
        if sink.step is None:
            return True
        usual = sink.step / max(1, max(sink.dialects.values(), default=1))
        return sink.step <= step <= sink.step + _SLACK * usual + 1

    def pass_by(self, sink: Sink) -> None:  # noqa: ARG002 - the hook
        """Hears of a record, behind which the run goes on with its own words."""
        self._since = None
