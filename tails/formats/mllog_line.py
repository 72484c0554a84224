"""MLPerf logging: ``:::MLLOG {json}``. The step is ``metadata.step`` (or ``samples_count``), which counts samples."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from trainmon.tails.formats.cells import as_float
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading
from trainmon.tails.prefix import Prefix
from trainmon.tails.record import Note, NoteKind, TimeKind
from trainmon.tails.steps import StepTrack, says_eval

_FACTS = {
    "global_batch_size": "batch_size",
    "max_sequence_length": "seq_length",
    "opt_base_learning_rate": "peak_lr",
    "opt_gradient_clip_norm": "clip_threshold",
    "opt_learning_rate_warmup_steps": "warmup_steps",
    "max_steps": "total_steps",
    "max_train_steps": "total_steps",
    "submission_benchmark": "benchmark",
}

# Where a record says its step; most language-model benchmarks count samples in all of them.
_SAMPLES = "samples_count"
_STEPS = ("step", "step_num", "global_step", "iteration", "iter_num", "iter", _SAMPLES, "epoch_num", "epoch")
_NAMES = {"throughput": "samples_per_second"}  # it counts samples, whatever the benchmark
_LANGUAGE = ("gpt", "llama", "mixtral", "moe", "deepseek")


class MlLogLine(Dialect):
    """Interval and point events; `tracked_stats` and `eval_accuracy` are the metrics.

    The language-model benchmarks log the validation loss as ``eval_accuracy``; it is given as ``eval_loss``. Times of
    validation steps count on a counter of their own: their rows have no step. Where records tell their step and their
    samples, the step is the optimiser's.
    """

    name = "mllog"
    tokens = (b":::mllog",)
    samples = (
        b':::MLLOG {"namespace": "", "time_ms": 1744814824556, "event_type": "POINT_IN_TIME", "key": "tracked_stats", '
        b'"value": {"train_step_time": 55.01, "reduced_train_loss": 7.7}, '
        b'"metadata": {"file": "a.py", "lineno": 3, "step": 1152}}\n'
        b':::MLLOG {"namespace": "", "time_ms": 1744814879556, "event_type": "POINT_IN_TIME", "key": "eval_accuracy", '
        b'"value": 7.65, "metadata": {"file": "a.py", "lineno": 9, "samples_count": 1152}}\n',
    )

    def __init__(self) -> None:
        self._is_language = False
        self._track = StepTrack()
        self._samples_a_step = 1.0

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        at = line.text.find(":::MLLOG")
        if at < 0:
            return False
        try:
            entry = msgspec.json.decode(line.text[line.text.index("{", at) :].strip())
        except (msgspec.DecodeError, ValueError, RecursionError):
            sink.unreadable += 1
            return True
        if isinstance(entry, dict):
            self._entry(entry, line, sink)
        return True

    def _entry(self, entry: dict[str, Any], line: Line, sink: Sink) -> None:
        key, value = str(entry.get("key")), entry.get("value")
        metadata = entry.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        time = entry.get("time_ms")
        if isinstance(time, int | float):
            line.prefix = Prefix(line.prefix.at, line.prefix.rank, as_float(time) / 1000.0, TimeKind.ABSOLUTE)
        self._event(key, value, metadata, line, sink)
        step = self._step(metadata)
        if key == "eval_accuracy" and isinstance(value, int | float) and (self._is_language or value > 1.0):
            key = "eval_loss"
        values = value if isinstance(value, dict) else {key: value} if key.startswith(("eval_", "train_")) else {}
        numbers: dict[str, float | None] = {
            _NAMES.get(str(name), str(name)): as_float(number)
            for name, number in values.items()
            if isinstance(number, int | float) and not isinstance(number, bool)
        }
        if not numbers or step is None:
            return
        reading = Reading(numbers, step, "metadata/step", dialect=self.name)
        is_aside = key == "tracked_stats" and all(map(says_eval, numbers))
        if math.isnan(self._track.own_step(step, is_training=not is_aside)):
            reading.step, reading.step_key = None, ""
        sink.emit(reading, line)

    def _step(self, metadata: dict[str, Any]) -> float | None:
        """The step of a record; one that tells its samples alone is placed as one that told both was."""
        name = next((name for name in _STEPS if isinstance(metadata.get(name), int | float)), None)
        if name is None:
            return None
        step, samples = metadata[name], metadata.get(_SAMPLES)
        if name == _SAMPLES:
            return as_float(step) / self._samples_a_step
        step = as_float(step)
        if isinstance(samples, int | float) and 0 < samples < math.inf and 0 < step < math.inf:
            self._samples_a_step = as_float(samples) / step
        return step

    def _event(self, key: str, value: object, metadata: dict[str, Any], line: Line, sink: Sink) -> None:
        prefix = line.prefix
        kind = None
        if key == "run_start":
            kind = NoteKind.LAUNCH
        elif key == "run_stop":
            kind = NoteKind.FINISHED if metadata.get("status") == "success" else NoteKind.ERROR
        elif key in _FACTS and isinstance(value, int | float | str):
            told = value if isinstance(value, str) else as_float(value)
            if isinstance(told, str) or math.isfinite(told):
                sink.fact(_FACTS[key], told, line.line_no)
            if key == "submission_benchmark":
                self._is_language = str(value).lower().startswith(_LANGUAGE)
        if kind is not None:
            text = f"{key}: {metadata.get('status', '')}".rstrip(": ")
            sink.note(
                Note(sink.source, line.line_no, line.offset, kind, text[:500], sink.step, prefix.time, prefix.time_kind)
            )
