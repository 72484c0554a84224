"""Small logs for the engine's tests: records as they leave `tails`, and ways to cut and read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from trainmon.monitor.detectors.base import CheckView, Detector
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.finding import CheckResult, Finding, Severity, Verdict
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.clock import SystemClock
from trainmon.tails.formats.builder import BlockBuilder
from trainmon.tails.record import Fact, Note, NoteKind, Parsed, TimeKind

LOSS = SignalKey("loss.train")
GRAD = SignalKey("grad.norm")


@dataclass(frozen=True)
class Line:
    """One line of a log: a record, or a note or fact when given."""

    values: Mapping[str, float | None] = field(default_factory=dict)
    step: float | None = None
    time: float | None = None
    note: NoteKind | None = None
    fact: tuple[str, float | str] | None = None


def train(step: float, loss: float | None, **more: float | None) -> Line:
    return Line({"loss": loss, **more}, step)


def parsed(lines: Sequence[Line], first_line: int = 1, source: str = "log") -> Parsed:
    """`lines` as one reading gives them."""
    builder = BlockBuilder(source)
    notes, facts = [], []
    for number, line in enumerate(lines, first_line):
        if line.note is not None:
            notes.append(Note(source, number, number * 100, line.note, line.note.value))
        elif line.fact is not None:
            facts.append(Fact(source, number, *line.fact))
        else:
            builder.add(
                line.values,
                step=line.step,
                offset=number * 100,
                line_no=number,
                step_key="" if line.step is None else "step",
                time=line.time,
                time_kind=TimeKind.NONE if line.time is None else TimeKind.ABSOLUTE,
            )
    return Parsed(builder.take(), notes, facts, len(lines), len(lines), 0)


class Jumps(Detector):
    """Opens an episode at a value twice the one before, grows it while the values stay up, and recovers."""

    id = "test.jumps"
    name = "Jumps"
    signals = ("loss.train", "grad.norm")

    def __init__(self, limits, facts):  # type: ignore[no-untyped-def]
        super().__init__(limits, facts)
        self.level: dict[SignalKey, float] = {}
        self.up: set[SignalKey] = set()
        self.heard: list[str] = []

    def update(self, frame: Frame) -> list[Finding]:
        found = []
        for key in (LOSS, GRAD):
            for row in frame.logged(key):
                value = float(frame.columns[key][row])
                level = self.level.setdefault(key, value)
                if value > 2 * level:
                    found.append(self._say("grow" if key in self.up else "open", key, frame, int(row), value))
                    self.up.add(key)
                elif key in self.up:
                    found.append(self._say("recover", key, frame, int(row), value))
                    self.up.discard(key)
                elif value == value:
                    self.level[key] = value
        return found

    def note(self, note: Note) -> tuple[Finding, ...]:
        self.heard.append(note.kind.value)
        return ()

    def new_attempt(self, attempt: int) -> tuple[Finding, ...]:
        self.level.clear()
        self.up.clear()
        return ()

    def result(self, view: CheckView) -> CheckResult:
        loud = any(episode.severity is Severity.FAIL for episode in view.episodes)
        return CheckResult(self.id, self.name, Verdict.FAIL if loud else Verdict.PASS, f"{dict(view.seen)}")

    def _say(self, action, key: SignalKey, frame: Frame, row: int, value: float) -> Finding:  # type: ignore[no-untyped-def]
        severity = Severity.FAIL if value > 4 * self.level[key] else Severity.WARN
        step, line = float(frame.steps[row]), int(frame.lines[row])
        return Finding(action, "jump", key, severity, step, value, line, frame.path, frame.attempt)


def engine(**options) -> RunEngine:  # type: ignore[no-untyped-def]
    options.setdefault("detectors", (Jumps,))
    return RunEngine("run", "target", clock=SystemClock(), **options)


def read(lines: Sequence[Line], **options) -> RunEngine:  # type: ignore[no-untyped-def]
    """An engine that was fed all lines at once."""
    made = engine(**options)
    made.feed("log", parsed(lines))
    made.settle()
    return made


def feed_cut(made: RunEngine, lines: Sequence[Line], cuts: Sequence[int], *, settling: bool = False) -> None:
    """Feeds `lines` cut at the given places."""
    places = [0, *sorted(min(cut, len(lines)) for cut in cuts), len(lines)]
    for begin, end in pairwise(places):
        made.feed("log", parsed(lines[begin:end], begin + 1))
        if settling:
            made.settle()
    made.settle()


def plain_state(made: RunEngine) -> tuple[object, ...]:
    """All that the engine says, as values that compare (NaN as text)."""
    views = made.series_views()
    series = {
        str(key): repr((v.steps.tolist(), v.values.tolist(), v.low.tolist(), v.high.tolist(), v.attempts.tolist(),
                        v.bad_steps.tolist(), v.count, v.last, v.raw_key, v.derived))
        for key, v in views.items()
    }  # fmt: skip
    return (
        series,
        repr(made.episodes()),
        made.incidents(),
        made.checks(),
        made.attempts,
        made.steps,
        made.facts,
        made.problems,
        made.raw_keys,
        made.last_record_line,
    )
