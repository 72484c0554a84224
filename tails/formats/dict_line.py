"""A dictionary inside a text line: HF Trainer, TRL, LLaMA-Factory, fairseq, anyone's ``print(metrics)``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from trainmon.tails.facts import facts_of
from trainmon.tails.formats.at_the_end import is_summary
from trainmon.tails.formats.derived_steps import DerivedSteps
from trainmon.tails.formats.flat import MEASURE, METRIC, SETTING, STEP_KEY
from trainmon.tails.formats.joiner import Joiner
from trainmon.tails.formats.line import Dialect, Line
from trainmon.tails.formats.numbers import NUMBER, to_number
from trainmon.tails.formats.sink import Sink
from trainmon.tails.formats.template import Reading
from trainmon.tails.record import Note, NoteKind
from trainmon.tails.steps import step_key_of

_ITEM = re.compile(
    rf"(?P<q>['\"])(?P<key>[^'\"]{{1,160}})(?P=q)\s*:\s*(?:(?P<v>['\"])(?P<text>[^'\"]*)(?P=v)"
    rf"|(?P<number>{NUMBER})(?=\s*[,}}\]\s])|(?P<array>(?:np\.\w+|tensor)\((?P<inner>{NUMBER})[^)]*\)))"
)
_STEP_KEYS = (
    "num_updates",
    "global_step",
    "train/global_step",
    "trainer/global_step",
    "_step",
    "step",
    "iteration",
    "iter",
    "it",
)
_STEP_BEFORE = re.compile(
    r"(?:^|[\s\[(,|])([A-Za-z_ ]*?(?:step|iter(?:ation)?|update)|rollout|perf)s?\s*[:=#]?\s*(\d+)"
    r"(?:\s*/\s*(\d+))?[\s\])\]:,|>-]*$",
    re.I,
)
# Epoch and step in a list: ``"step": [0, 120]``.
_STEP_LIST = re.compile(r"['\"](?:global_)?step['\"]\s*:\s*\[\s*(?:(\d{1,9})\s*,\s*)?(\d{1,12})\s*\]")
_NO_NUMBER = re.compile(r"['\"]\s*:\s*(?:True|False|None|true|false|null|[{\[]|['\"](?![-+\d.]|nan|inf))")
_FEW_OTHERS = 3
_SETTINGS_WITHIN = 200_000
_MAX_ITEMS = 4000
_OF_OTHERS = 3  # lines of another program among those of a dictionary
_BELOW = 2  # lines from one that names the step to the dictionary
_OF_COMPOSER = ("loss/train/", "metrics/train/", "time/batch_in_epoch", "time/token", "time/sample")
_NEAR = 160  # characters before a dictionary in which its step may stand


def items_of(text: str) -> tuple[dict[str, float | None], dict[str, str]]:
    """The numbers and the words of a dictionary printed in `text`; nested values are passed over."""
    numbers: dict[str, float | None] = {}
    words: dict[str, str] = {}
    for count, match in enumerate(_ITEM.finditer(text)):
        if count >= _MAX_ITEMS:
            break
        raw = match["number"] or match["inner"] or match["text"] or ""
        try:
            numbers[match["key"]] = to_number(raw)
        except ValueError:
            words[match["key"]] = raw
    return numbers, words


class DictLine(Dialect):
    """Dictionaries with a step of their own, or beside a progress bar that has one (`bars`), or without any.

    Without any it is derived from their epoch (`derived_steps`) where the log says how often it logs or how long the
    run is, never guessed: where several dictionaries follow one bar position (buffered output) it is unknown.
    """

    name = "dict"
    tokens = (b"{",)
    samples = (
        b"{'loss': 2.5893, 'grad_norm': 1.5, 'learning_rate': 5e-06, 'epoch': 0.01}\n"
        b"{'loss': '2.4112', 'grad_norm': 'nan', 'learning_rate': '4e-06', 'epoch': '0.02'}\n",
        b"\r  2%|2         | 20/936 [58:53<41:17:29, 162.28s/it]"
        b"{'loss': 0.0043, 'reward': 0.72, 'kl': 0.09, 'epoch': 0.04}\n"
        b"\r  4%|4         | 40/936 [1:58:53<41:17:29, 162.28s/it]"
        b"{'loss': 0.0041, 'reward': 0.73, 'kl': 0.08, 'epoch': 0.09}\n",
        b"{'accuracy': 0.125,\n 'gradient_norm': 1.5,\n 'loss': 10.25,\n 'step': 50}\n",
        b'2021-05-01 10:00:00 | INFO | train_inner | {"epoch": 1, "loss": "8.4", "ppl": "340", '
        b'"num_updates": "100", "lr": "1e-4"}\n',
    )

    def __init__(self) -> None:
        self._held: tuple[Reading, Line] | None = None
        self._bar_used: tuple[str, float, float] | None = None
        self._joiner = Joiner()
        self._derived = DerivedSteps()
        self._idle = 0  # lines since the newest of the dictionary that is begun

    @property
    def is_open(self) -> bool:
        """Whether a dictionary of several lines is begun."""
        return self._joiner.is_open

    def read(self, line: Line, sink: Sink) -> bool:
        """Reads `line` if it is this dialect's own."""
        if self._joiner.take(line):
            self._idle = 0
            if not self._joiner.is_open:
                joined = self._joiner.done()
                if self._read(joined, sink):
                    self._joiner.clear()
                self._let_go(sink)
            return True
        if self._joiner.is_open and self._idle < _OF_OTHERS and _is_beside(line.text):
            self._idle += 1
            return False
        self._let_go(sink)
        return self._read(line, sink)

    def pass_by(self, sink: Sink) -> None:
        """Gives up a dictionary of which nothing has come for a while: it will not be closed."""
        if not self._joiner.may_go_on():
            self._let_go(sink)

    def _let_go(self, sink: Sink) -> None:
        """Gives up what was taken for a dictionary of metrics; its lines may be settings."""
        for line in self._joiner.lines:
            for key, value in facts_of(line.text):
                sink.fact(key, value, line.line_no)
        self._joiner.clear()

    def _read(self, line: Line, sink: Sink) -> bool:
        text = line.text
        start = text.find("{")
        if start < 0 or text[start + 1 : start + 2] not in ("'", '"') or "}" not in text[start:]:
            return False
        numbers, words = items_of(text[start:])
        if is_summary(numbers):
            self._summary(numbers, line, sink)
            return True
        if not any(METRIC.search(key) for key in numbers) or len(words) > 2 + len(numbers):
            return False
        reading = Reading(numbers, dialect="hf_trainer" if "epoch" in numbers and "'" in text else self.name)
        self._own_step(reading, numbers, words, text[:start])
        announced = sink.announced
        if reading.step is None and announced is not None and 0 < line.line_no - announced[2] <= _BELOW:
            reading.step, reading.total, reading.step_key = announced[0], announced[1], "step"
        listed = _STEP_LIST.search(text, start) if reading.step is None else None
        if listed is not None:
            reading.step, reading.step_key = float(listed[2]), "step"
            reading.epoch = float(listed[1]) if listed[1] else None
        if reading.step is not None:
            bar = sink.bar
            if bar is not None and reading.total is None and bar.total > 0 and abs(bar.n - reading.step) <= 1:
                sink.fact("total_steps", bar.total, line.line_no)
            sink.emit(reading, line)
            return True
        return self._beside_bar(reading, line, sink)

    @staticmethod
    def _own_step(reading: Reading, values: dict[str, float | None], words: dict[str, str], before: str) -> None:
        key = next((key for key in _STEP_KEYS if values.get(key) is not None), None)
        if key is None:
            key = step_key_of(values) or _batches_of_composer(values)
        if key is not None:
            reading.step, reading.step_key = values.pop(key), key
            return
        fraction = words.get("step") or words.get("global_step/max_steps") or ""
        match = re.fullmatch(r"(\d+)/(\d+)", fraction)
        if match is not None:
            reading.step, reading.total, reading.step_key = float(match[1]), float(match[2]), "step"
            return
        match = _STEP_BEFORE.search(before[-_NEAR:])
        if match is not None and (STEP_KEY.fullmatch(match[1].strip()) or match[1] in ("rollout", "perf")):
            reading.step, reading.step_key = float(match[2]), match[1].strip()
            reading.total = float(match[3]) if match[3] else None

    def _beside_bar(self, reading: Reading, line: Line, sink: Sink) -> bool:
        keys = list(reading.values)
        settings = sum(SETTING.search(key) is not None for key in keys)
        if not any(MEASURE.search(key) for key in keys) or settings * 4 > len(keys):
            return False
        if _is_settings(line.text, len(keys)):
            return False
        is_evaluation = any(key.startswith(("eval_", "test_")) for key in reading.values)
        bar = sink.bar if not is_evaluation else sink.main_bar
        if bar is None:
            self._give(sink)
            derived = None if is_evaluation else self._derived.of(reading.values.get("epoch"), sink.known)
            if derived is not None:
                reading.step, reading.step_key = derived
            sink.emit(reading, line)
            return True
        place = (bar.label, bar.total, bar.n)
        if is_evaluation:
            self._give(sink)
            reading.step, reading.step_key = bar.n, "bar"
            sink.emit(reading, line)
            return True
        if place == self._bar_used and self._held is not None and _is_same(self._held[0], reading):
            self._held[0].values = _finest(self._held[0].values, reading.values)
            return True
        if place == self._bar_used:  # a second one at the same position: the output was buffered
            if self._held is not None:
                held, at = self._held
                held.step = held.total = held.time = None
                self._held = None
                sink.emit(held, at)
            sink.emit(reading, line)
            return True
        self._give(sink)
        if bar.total > 0:
            sink.fact("total_steps", bar.total, line.line_no)
        self._bar_used, sink.main_bar = place, bar
        reading.step, reading.step_key, reading.total = bar.n, "bar", bar.total
        reading.time = None if line.prefix.time is not None else bar.elapsed
        self._held = (reading, line)
        return True

    def flush(self, sink: Sink) -> None:
        """Gives what is held back."""
        self._let_go(sink)
        self._give(sink)

    def _give(self, sink: Sink) -> None:
        if self._held is not None:
            held, line = self._held
            self._held = None
            sink.emit(held, line)

    @staticmethod
    def _summary(numbers: dict[str, float | None], line: Line, sink: Sink) -> None:
        """The trainer's closing words: means over the run, never a step's values."""
        sink.note(Note(sink.source, line.line_no, line.offset, NoteKind.FINISHED, line.text[:500], sink.step))
        for key, value in numbers.items():
            if value is not None:
                sink.fact(f"final/{key}", value, line.line_no)


def _batches_of_composer(values: Mapping[str, float | None]) -> str | None:
    """Composer's count of batches, which alone would be the seconds of one.

    >>> _batches_of_composer({"time/batch": 7.0, "loss/train/total": 2.5}), _batches_of_composer({"time/batch": 7.0})
    ('time/batch', None)
    """
    count = values.get("time/batch")
    is_count = count is not None and count >= 0 and count == count // 1
    return "time/batch" if is_count and any(key.startswith(_OF_COMPOSER) for key in values) else None


def _is_beside(text: str) -> bool:
    """Whether a line among those of a dictionary is another program's: a server's, a warning."""
    return text.lstrip()[:1] not in ("'", '"', "{", "}") and METRIC.search(text) is None


def _is_settings(text: str, numbers: int) -> bool:
    """Whether a dictionary without a step is a printed configuration: switches, words and groups among its numbers.

    >>> _is_settings("{'lr': 1e-4, 'model': {'path': 'a', 'bf16': True}, 'reward_fn': None}", 1)
    True
    """
    others = len(_NO_NUMBER.findall(text, 0, _SETTINGS_WITHIN))
    return others >= _FEW_OTHERS and 4 * others > numbers


def _is_same(one: Reading, other: Reading) -> bool:
    """Whether two dictionaries tell of the same step, one of them rounded: what both hold agrees."""
    common = [key for key in one.values if key in other.values]
    return len(common) >= 2 and all(_is_close(one.values[key], other.values[key]) for key in common)


def _finest(one: Mapping[str, float | None], other: Mapping[str, float | None]) -> dict[str, float | None]:
    """What two dictionaries of one step hold; of a value in both, the one with more digits."""
    both = {**other, **one}
    for key in other:
        both[key] = max(both[key], other[key], key=lambda value: len(repr(value)))
    return both


def _is_close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-3) or (one != one and other != other)
