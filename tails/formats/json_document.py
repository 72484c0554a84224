"""JSON documents that are rewritten whole: trainer_state.json, golden values, metrics by name, lists of records."""

from __future__ import annotations

from typing import ClassVar

from trainmon.tails.formats.base import DocumentFormat
from trainmon.tails.formats.json_shapes import frame_records, holds_data, is_record_list, records_by_step, series_of
from trainmon.tails.formats.json_text import objects_in
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.record import Parsed
from trainmon.tails.steps import step_rank

_BOM = b"\xef\xbb\xbf"
_OPENING = lazy(rb'\s*(?:\{\s*(?:"|\}|$)|\[\s*(?:\{|\[\s*[-\d"\[]|$))')
_SHAPES = lazy(
    rb'"(?:log_history|values|steps|history|records|metrics|logs|log|data|results|epochs|iterations)"\s*:\s*[\[{]'
    rb'|"\s*:\s*\[\s*(?:\[\s*)?-?[\dNn]|"\s*:\s*\[\s*\{\s*"(?:global_step|step|iter|iteration|epoch)"'
    rb'|"\s*:\s*\{\s*"\d+"\s*:|\A\s*\{\s*"\d+"\s*:\s*\{'
)
_WORDS_BEHIND = lazy(rb"\n[}\]][ \t\r]*\n\s*[^{}\[\],\s]")
_NOTEBOOK_LOG = lazy(rb'\s*\[\s*\{\s*"stream_name"')  # Kaggle's: what was printed, a record each
_SMALL = 64 * 1024


class JsonDocument(DocumentFormat):
    """One JSON value, or several one after another, over any number of lines."""

    name = "json"
    samples: ClassVar[tuple[bytes, ...]] = (
        b'{\n  "global_step": 10,\n  "log_history": [\n    {"loss": 2.5, "step": 10}\n  ],\n  "max_steps": 100\n}\n',
        b'{"lm loss": {"start_step": 1, "end_step": 10, "step_interval": 5, "values": {"1": 10.9, "5": 9.5}}}\n',
        b'[{"step": 1, "loss": 2.5}, {"step": 2, "loss": 2.25}]\n',
        b'{\n"train_loss": [2.5, 2.25],\n"val_loss": [2.75, 2.5]\n}\n',
    )

    @classmethod
    def sniff(cls, head: bytes) -> float:
        """Whether `head` opens a JSON value that is no line of its own."""
        text = head.removeprefix(_BOM)
        if not _OPENING.match(text) or _WORDS_BEHIND.search(text):  # a log that begins with its settings
            return 0.0
        if _NOTEBOOK_LOG.match(text):
            return 0.0
        first, newline, rest = text.lstrip().partition(b"\n")
        if not newline and len(head) >= _SMALL:
            return 0.6 if _SHAPES.search(text) else 0.3
        line = first.strip()
        if line.startswith(b"["):  # else arrays of records, one a line
            return 0.85 if not objects_in(line)[0] or rest.lstrip()[:1] != b"[" else 0.0
        if len(line) < 2 or not line.endswith(b"}") or not objects_in(line)[0]:
            return 0.0 if objects_in(rest.split(b"\n", 1)[0])[0] and rest[:1] == b"{" else 0.8
        return 0.95 if not rest.strip() and _SHAPES.search(line) and _is_document(line) else 0.0

    def parse(self, data: bytes) -> Parsed:
        """See `DocumentFormat`."""
        from trainmon.tails.formats.json_reading import Reading  # not needed to tell that a file is another format's

        return Reading(self.source, data).read()


def _is_document(line: bytes) -> bool:
    value = objects_in(line)[0][0][1]
    series = series_of(value)
    if any(is_record_list(entry) for entry in value.values()) or 0 < len(value) <= 2 * len(series):
        return True
    if any(step_rank(key) is not None and isinstance(entry, int | float) for key, entry in value.items()):
        return False  # a record of its own, whatever is nested in it
    return bool(records_by_step(value) or frame_records(value)) or any(
        isinstance(one, dict) and holds_data(one) for one in value.values()
    )
