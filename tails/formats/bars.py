"""Metrics in progress bars (tqdm postfixes, Lightning, NeMo, levanter): one record a step, however often drawn."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from functools import lru_cache

from trainmon.tails.formats.bar import Bar, BarKind, end_of, postfix_of, read_bar
from trainmon.tails.formats.bare_split import loss_names
from trainmon.tails.formats.flat import EVAL_WORD, METRIC
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.pairs import scan
from trainmon.tails.formats.quick_bar import QuickFrame
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading
from trainmon.tails.formats.torchtune import LABEL as TUNE_LABEL
from trainmon.tails.quick_dataclass import dataclass

_STEP_KEYS = ("global_step", "step", "global step", "iteration", "iter")
_EPOCH_OF = re.compile(
    r"(?:\bep(?:och)?|\bmini[-_ ]?e(?:poch)?)\s{0,9}[:=]?\s{0,9}[\[(]?\s{0,9}(\d+)(?:\s{0,9}/\s{0,9}(\d+))?",
    re.IGNORECASE,
)
_SIDE = re.compile(
    r"map|load|token|generat|download|filter|extract|shard|cast|writ|fetch|sav|process|sanity|predict|convert|rank \d",
    re.I,
)
_STEP = re.compile(r"[\s,](?:global[_ ])?step=([^,\]]+)")
TABLE_ROW = re.compile(r"\d+/\d+(?:\s+[-+]?[\d.]+[KMG]?){3,}")  # Ultralytics: a row of a table before the bar
_LOSS = re.compile(r"[ ,\[]loss=")
_RESTART_S = 2.0
# Alone on a line above bars that do not say whether they train (AllenNLP).
_HEADING = re.compile(
    r"\W{0,8}(?:(?P<eval>validating|validation|evaluating|evaluation)|training|(?P<epoch>epoch \d+/\d+))\W{0,8}",
    re.IGNORECASE,
)
_LONGEST_HEADING = 40
# Above a result that does not say of what it is: ``***** Evaluating perplexity, Epoch 1/2 *****``, ``Validating ...``
_EVAL_HEADING = re.compile(
    r"(?P<ruled>[\W_]{3,80})(?:[A-Za-z]{2,20} ){0,4}(?:evaluat|validat)(?:ion|ing)\b[^:={}|]{0,60}[\W_]{3,80}"
    r"|(?:(?:start|run|begin)\w{0,6} )?(?:evaluat|validat)(?:ion|ing)\s?(?:\.{2,3}|…|:)\s{0,9}",
    re.IGNORECASE,
)
_LONGEST_EVAL_HEADING = 160
_BELOW_RULED, _BELOW = 3, 1  # lines from such a heading to its result


@dataclass(slots=True)
class _Held:
    """The newest frame of one bar, not yet given. `step` is the step it names, else its position.

    `values`: its metrics, None where they were not yet read; `trained`: the step of training when it was begun.
    """

    bar: Bar
    line: Line
    step: float
    values: dict[str, float | None] | None
    trained: float | None = None


@lru_cache(1024)
def _is_side(label: str) -> bool:
    """Whether a bar beside the training is so called."""
    return _SIDE.search(label) is not None


@lru_cache(1024)
def _is_eval(label: str) -> bool:
    return EVAL_WORD.search(label) is not None


@lru_cache(1024)
def _epoch_of(label: str) -> tuple[float | None, float | None]:
    """The epoch that a label names, and of how many."""
    match = _EPOCH_OF.search(label)
    return (None, None) if match is None else (float(match[1]), float(match[2]) if match[2] else None)


@lru_cache(1024)
def _measures(keys: tuple[str, ...]) -> bool:
    return any(map(METRIC.search, keys))


def _named_step(bar: Bar) -> float | None:
    match = _STEP.search(bar.rest)
    if match is None:
        return None
    try:
        return float(match[1])
    except ValueError:
        return None


def _with_label_metrics(bar: Bar) -> Bar:
    """`bar` with the metrics of its label (``loss: 2.5:  12%|#  | 12/100``) among its others, and out of its label."""
    if not METRIC.search(bar.label) or bar.rest.find("]") < 0:
        return bar
    pairs = [pair for pair in scan(bar.label).pairs if not pair.prose and METRIC.search(pair.key)]
    if not pairs:
        return bar
    label, found = bar.label, ""
    for pair in reversed(pairs):
        found = f", {pair.key}={label[pair.start : pair.end]}{found}"
        label = label[: pair.start] + label[pair.end :]
    close = bar.rest.find("]")
    return Bar(label.strip(), bar.n, bar.total, bar.elapsed, bar.rest[:close] + found + bar.rest[close:])


class Bars(Dialect):
    """Holds the last frame of each step and gives it when the bar moves on.

    A frame that goes back without the bar's clock going back is another worker's late drawing, and is dropped.
    """

    name = "progress bar"
    tokens = (b"validati", b"evaluati", b"training", b"epoch ", b"it/s", b"s/it", b"it]", b"<", b"?,", b"/s,", b"/s]")
    samples = (
        b"train:   1%|1  | 1/200 [00:12<38:20, 12.49s/it, loss=12.6]\rtrain:   1%|1  | 2/200 "
        b"[00:24<38:20, 12.49s/it, loss=12.5]\n",
        b"Epoch 0:  12%|#  | 12/100 [00:01<00:10, 8.50it/s, v_num=0, reduced_train_loss=8.640, global_step=11.00]\n"
        b"Epoch 0:  13%|#  | 13/100 [00:01<00:10, 8.50it/s, v_num=0, reduced_train_loss=8.510, global_step=12.00]\n",
        b"loss: 2.5000:   1%|1  | 1/200 [00:12<38:20, 12.49s/it]\rloss: 2.2500:   1%|1  | 2/200 [00:24<38:20, "
        b"12.49s/it]\n",
    )

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._under_eval = False  # whether the newest heading says that what follows is held out
        self._epoch = ""  # the newest heading of an epoch
        self._named: set[str] = set()  # labels of bars that name their step
        self.newest_label = ""  # of the newest frame that was read in full, with what headings say of it
        self._split: dict[str, dict[str, str]] = {}  # label -> what its keys "train" and "val" are the losses of
        self._passes: dict[str, float] = {}  # label -> steps before the pass that is drawn, if it is not the first
        self._drawn: dict[str, tuple[Bar, Line]] = {}  # label -> newest frame given
        self._newest: tuple[float, dict[str, float | None]] = (0.0, {})  # step and values of the newest frame given
        self._done: dict[str, tuple[float, float | None]] = {}  # label -> newest step given, its elapsed time

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        heading = _HEADING.fullmatch(line.text) if len(line.text) <= _LONGEST_HEADING else None
        if heading is not None:
            self.flush(sink)
            self._under_eval = heading["eval"] is not None
            self._epoch = heading["epoch"] or self._epoch
            sink.is_telling = True
            return False
        if len(line.text) <= _LONGEST_EVAL_HEADING and (said := _EVAL_HEADING.fullmatch(line.text)) is not None:
            sink.held_out = line.line_no + (_BELOW if said["ruled"] is None else _BELOW_RULED)
            sink.is_telling = True
            return False
        bar = read_bar(line.text)
        if bar is None or TUNE_LABEL.match(line.text) or TABLE_ROW.fullmatch(bar.label):
            return False
        measured = _with_label_metrics(bar)
        if (self._under_eval or self._epoch) and (measured is not bar or not bar.label):
            measured = self._below_heading(measured)
        bar = measured
        self.newest_label = bar.label
        is_side = _is_side(bar.label) and _LOSS.search(bar.rest) is None  # "training process", which measures
        if not is_side and not _is_eval(bar.label):
            sink.bar = bar
        behind = bar.rest[end_of(bar) :]
        if bar.has_postfix and not is_side:
            self._offer(bar, line, sink, _named_step(bar), None)
        elif bar.n == 0 and not is_side:
            self._begin(bar, sink)
        if behind.strip():
            sink.behind_bar(Line(behind, line.offset, line.line_no, line.prefix))
        elif bar.has_postfix and not is_side:
            sink.bar_kind = BarKind.METRICS
        else:
            sink.bar_kind = BarKind.PLAIN if sink.bar is bar else BarKind.SIDE
        return True

    def _below_heading(self, bar: Bar) -> Bar:
        """`bar` with what the lines above it said and its own label does not."""
        words = [] if self._epoch == "" or _EPOCH_OF.search(bar.label) else [self._epoch]
        words += [bar.label] if bar.label else []
        words += ["validation"] if self._under_eval and not _is_eval(bar.label) else []
        return Bar(" ".join(words), bar.n, bar.total, bar.elapsed, bar.rest)

    def take(self, frame: QuickFrame, line: Line, sink: Sink) -> None:
        """Takes a frame, no side bar's, that was taken apart already."""
        if not _is_eval(frame.bar.label):
            sink.bar = frame.bar
        if frame.is_plain:
            return
        self._offer(frame.bar, line, sink, frame.named_step, frame.values)

    def _offer(
        self, bar: Bar, line: Line, sink: Sink, named: float | None, values: dict[str, float | None] | None
    ) -> None:
        label = bar.label
        if named is None and label in self._named:
            return  # torn: this bar names its step
        if named is not None:
            self._named.add(label)
        step = bar.n if named is None else named
        held = self._held.get(label)
        if held is not None:
            before = held.bar
            restarted = bar.n < before.n and _restarted(bar, before)
            if not restarted and step == held.step and bar.n >= before.n:
                self._held[label] = replace(held, bar=bar, line=line, step=step, values=values)
                return
            if not restarted and bar.n < before.n:
                return
            if not restarted and _is_eval(label):  # the mean so far, not another result
                self._held[label] = replace(held, bar=bar, line=line, values=values)
                return
        else:
            restarted = label in self._drawn and bar.n < (newest := self._drawn[label][0]).n and _restarted(bar, newest)
        self.flush(sink)  # another bar moved: what it was drawn over is complete
        if restarted:
            self._begin_anew(bar, sink)
        self._held[label] = _Held(bar, line, step, values, sink.step)

    def _begin_anew(self, bar: Bar, sink: Sink) -> None:
        """Steps go on where a bar is begun anew that was drawn to its end (``for batch in tqdm(loader)``, once an
        epoch), unless a program ended or started between: then it is the same bar of another start."""
        self._done.pop(bar.label, None)
        if bar.label not in self._drawn:
            return
        before, line = self._drawn.pop(bar.label)
        is_pass = before.n == before.total == bar.total and sink.turned < line.line_no
        self._passes[bar.label] = self._newest[0] if is_pass else 0.0

    def _begin(self, bar: Bar, sink: Sink) -> None:
        """An empty bar: the same one as before, drawn anew, unless it is a late worker's first frame."""
        done = self._done.get(bar.label)
        held = self._held.get(bar.label)
        newest = max(done[0] if done else 0.0, held.bar.n if held else 0.0)
        if newest > 1 or newest == bar.total:
            self.flush(sink)
            self._begin_anew(bar, sink)

    def _give(self, label: str, sink: Sink) -> None:
        held = self._held.pop(label, None)
        if held is None:
            return
        values = postfix_of(held.bar) if held.values is None else held.values
        bar = held.bar
        if not _measures(tuple(values)):
            named = loss_names(values)
            if named:
                self._split[bar.label] = named  # for good: a loss may fall below 1
            named = self._split.get(bar.label, {})
            if not named.keys() & values.keys():
                return
            values = {named.get(key, key): value for key, value in values.items()}
        reading = Reading(values, dialect=self.name)
        key = next((key for key in _STEP_KEYS if values.get(key) is not None), None)
        if _is_eval(bar.label):
            reading.values = {k if EVAL_WORD.search(k) else f"eval/{k}": v for k, v in values.items() if k != key}
            reading.step, newest = held.trained, sink.step
            sink.emit(reading, held.line)
            sink.step = newest  # training may have gone on since
            return
        if key is not None:
            reading.step, reading.step_key = values.pop(key), key
        else:
            self._by_position(reading, bar)
        if held.line.prefix.time is None:
            reading.time = bar.elapsed
        step = reading.step
        done = self._done.get(bar.label)
        if step is not None and done is not None and step <= done[0] and not _is_before(bar.elapsed, done[1]):
            return
        if bar.n == 0 and values == self._newest[1]:
            return  # not yet drawn anew
        if step is not None:
            self._done[bar.label] = (step, bar.elapsed)
        sink.emit(reading, held.line)
        self._drawn[bar.label] = (bar, held.line)
        self._newest = (sink.step or 0.0, values)

    def _by_position(self, reading: Reading, bar: Bar) -> None:
        reading.step, reading.step_key = bar.n, "bar"
        if math.isnan(bar.total):
            return
        if passed := self._passes.get(bar.label, 0.0):
            reading.step += passed
            return
        reading.total = bar.total
        reading.epoch, reading.epochs = _epoch_of(bar.label)

    def flush(self, sink: Sink) -> None:
        """Gives what is held back."""
        for label in list(self._held):
            self._give(label, sink)


def _is_before(elapsed: float | None, other: float | None) -> bool:
    return elapsed is not None and other is not None and elapsed < other - _RESTART_S


def _restarted(bar: Bar, before: Bar) -> bool:
    """Whether a bar that went back was begun anew."""
    return bar.n == 0 or bar.total != before.total or _is_before(bar.elapsed, before.elapsed)
