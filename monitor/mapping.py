"""Which signal a key of a log is. The knowledge is in aliases.toml; this is the look-up, and the units."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import resources

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.signals import BY_ID

# Factors into the unit of the signal (monitor/signals.py).
_TIME = {
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "secs": 1.0,
    "seconds": 1.0,
    "min": 60.0,
    "h": 3600.0,
}
_BYTES = {
    "b": 1.0, "bytes": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
    "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30, "tib": 2.0**40,
}  # fmt: skip
_FLOPS = {  # per second
    "flops": 1.0, "gflops": 1e9, "tflops": 1e12, "pflops": 1e15, "flop/s": 1.0, "gflop/s": 1e9, "tflop/s": 1e12,
          "tflop/s/gpu": 1e12, "tflops/gpu": 1e12, "pflop/s": 1e15, "tflop/s/device": 1e12}  # fmt: skip
_SHARE = {"%": 0.01, "percent": 0.01, "pct": 0.01}
_RATE = {"tok/s": 1.0, "tokens/s": 1.0, "tps": 1.0, "tgs": 1.0, "ktok/s": 1e3, "k": 1e3, "tokens/s/gpu": 1.0}
_UNITS: dict[str, dict[str, float]] = {"s": _TIME, "B": _BYTES, "FLOP/s": _FLOPS, "share": _SHARE, "tokens/s": _RATE}

# Where neither key nor value says the unit, the size of the first value does: (above, factor), first match.
# A share above 1 is a percentage; memory in the millions is bytes, in the hundreds and more MB, else GB.
_BY_SIZE: dict[str, tuple[tuple[float, float], ...]] = {
    "share": ((1.5, 0.01),),
    "B": ((1e7, 1.0), (400.0, 1e6), (0.0, 1e9)),
    "FLOP/s": ((1e9, 1.0), (0.0, 1e12)),
}

_BRACKETS = re.compile(r"\s*[(\[]([^()\[\]]{1,24})[)\]]\s*$")
_LABELS = re.compile(r"\{([^{}]*)\}$")
# "tokens per sec" ends in no unit, "timing in s" does.
_LAST_WORD = re.compile(
    r"^(.*\S)(?<![ _/]per)(?<![ _/]over)[ _](us|ms|s|sec|secs|seconds|gb|gib|mb|mib|bytes|pct|percent|tflops)$"
)
_IN = re.compile(r"[ _]in$")
_PER_STEP = re.compile(r"(us|ms|s|sec|secs|seconds)/(?:it|iter|iteration|step)")
_DATA_TIME = re.compile(r"(?:last )?data(?: (?:time|loading|wait))?")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")  # AverageReturn, gradNorm
_BLANKS = re.compile(r"[_\-.\s]+")
_RUN_PREFIX = re.compile(r"^.{1,200} - (?=\S)")
_LEADING = re.compile(
    r"^(?:train|training|trainer|metrics?|extras?|logs?|stats?|global|scalars?|charts?|perf|learner|main|core|losses)/"
)
_RANK_SIGNAL = {
    "loss.train": "loss.rank",
    "grad.norm": "grad.rank_norm",
    "sys.step_time": "sys.rank_step_time",
    "sys.peak_memory": "sys.rank_memory",
}
_EVALUATION = re.compile(r"(?:eval|evaluation|val|valid|validation|test|dev|holdout|heldout)(?:[ /]|$)")


@dataclass(frozen=True, slots=True)
class Mapped:
    """A raw key's signal. ``values * scale_for(first)`` is in the signal's unit.

    `rank`: place in the alias table, lower is better; a key that is no alias has none and keeps its own name.
    """

    key: SignalKey
    scale: float = 1.0
    by_size: tuple[tuple[float, float], ...] = ()
    rank: int = 1 << 30

    def scale_for(self, first: float) -> float:
        """The factor, given the first finite value: needed where only the size of the numbers tells the unit."""
        for above, factor in self.by_size:
            if abs(first) > above:
                return factor
        return self.scale


@dataclass(frozen=True, slots=True)
class _Aliases:
    exact: dict[str, tuple[int, str]]
    patterns: tuple[tuple[int, str, re.Pattern[str]], ...]
    units: dict[str, str]


@cache
def _aliases() -> _Aliases:
    text = resources.files("trainmon.monitor").joinpath("aliases.toml").read_text(encoding="utf-8")
    exact: dict[str, tuple[int, str]] = {}
    patterns: list[tuple[int, str, re.Pattern[str]]] = []
    units: dict[str, str] = {}
    for entry in tomllib.loads(text)["alias"]:
        signal = entry["signal"]
        if "unit" in entry:
            units[signal] = entry["unit"].lower()
        for place, key in enumerate(entry.get("keys", ())):
            exact.setdefault(key, (place, signal))
        for place, pattern in enumerate(entry.get("patterns", ())):
            patterns.append((1000 + place, signal, re.compile(pattern)))
    return _Aliases(exact, tuple(patterns), units)


def _split(raw: str) -> tuple[str, str, dict[str, str]]:
    """The normalised key, its unit ("" when the key does not say) and the labels that a format hung on it."""
    labels: dict[str, str] = {}
    found = _LABELS.search(raw)
    if found:
        labels = dict(part.split("=", 1) for part in found.group(1).split(",") if "=" in part)
        raw = raw[: found.start()]
    text = _CAMEL.sub(" ", raw.strip()).lower()
    unit = ""
    found = _BRACKETS.search(text)
    if found:
        unit, text = found.group(1).strip(), text[: found.start()]
    else:
        found = _LAST_WORD.match(text)
        if found:
            text, unit = _IN.sub("", found.group(1)), found.group(2)
    if text in _TIME and text != "s":  # "3589 ms": the unit is all there is of the key
        unit = text
    elif found := _PER_STEP.fullmatch(text):
        text, unit = "time/step", found.group(1)
    return _BLANKS.sub(" ", text).strip(), unit, labels


def _candidates(text: str) -> Iterable[str]:
    yield text
    plain = _RUN_PREFIX.sub("", text)
    if plain != text:
        yield plain
    while found := _LEADING.match(plain):
        plain = plain[found.end() :]
        yield plain


def _look_up(text: str) -> tuple[int, str, dict[str, str]] | None:
    table = _aliases()
    for candidate in _candidates(text):
        hit = table.exact.get(candidate)
        if hit:
            return hit[0], hit[1], {}
    is_evaluation = _EVALUATION.match(text) is not None
    for candidate in _candidates(text):
        for place, signal, pattern in table.patterns:
            if is_evaluation and not signal.startswith(("eval.", "reward.", "sample.")):
                continue  # what an evaluation measured is never a signal of training
            found = pattern.fullmatch(candidate)
            if found:
                named = {name.rstrip("0123456789"): value for name, value in found.groupdict().items() if value}
                return None if named.get("set") in ("train", "training") else (place, signal, named)
    return None


def _aliases_of_whole(text: str, unit: str) -> tuple[int, str, dict[str, str]] | None:
    """A key that is listed with its unit, such as ``step ms``."""
    hit = _aliases().exact.get(f"{text} {unit}")
    return None if hit is None else (hit[0], hit[1], {})


@lru_cache(maxsize=1 << 16)
def map_key(raw: str) -> Mapped:
    """The signal of one raw key, looked at alone.

    >>> str(map_key("lm loss").key), str(map_key("eval_g3_loss").key), str(map_key("loss scale").key)
    ('loss.train', 'eval.nll{set=g3}', 'optim.loss_scale')
    >>> map_key("elapsed time per iteration (ms)").scale, map_key("my_own_counter").key.signal
    (0.001, 'my_own_counter')
    """
    text, unit, labels = _split(raw[:300])
    if text == "time" and unit not in ("ms", "s"):
        return Mapped(SignalKey(raw))  # a bare "time" is as often a clock as a duration
    if text in ("memory", "mem", "gpu memory", "gpu mem", "peak memory", "memory/max active") and unit in _SHARE:
        return Mapped(SignalKey("sys.memory_share"), 0.01, rank=0)
    hit = _look_up(f"{text}({unit})" if unit and f"{text}({unit})" in _aliases().exact else text)
    if hit is None and unit:
        hit = _aliases_of_whole(text, unit)
    if hit is None:
        return Mapped(SignalKey(raw))
    place, signal, named = hit
    if signal == "sys.reserved_memory" and unit in _SHARE:
        signal, place = "sys.memory_share", place + 3000  # what is allocated tells the share better, where it is logged
    if signal == "sys.peak_memory" and unit in _SHARE:
        signal = "sys.memory_share"
    named |= labels
    if "rank" in named and signal in _RANK_SIGNAL:
        signal = _RANK_SIGNAL[signal]
    key = SignalKey(signal, tuple(sorted(named.items())))
    return _with_unit(key, unit, place)


def _with_unit(key: SignalKey, unit: str, place: int) -> Mapped:
    wanted = BY_ID[key.signal].unit
    table = _UNITS.get(wanted, {})
    given = unit or _aliases().units.get(key.signal, "")
    if given in table and (unit or wanted not in _BY_SIZE):
        return Mapped(key, table[given], rank=place)
    if wanted in _BY_SIZE:
        return Mapped(key, 1.0, _BY_SIZE[wanted], rank=place)
    return Mapped(key, 1.0, rank=place)


class Mapper:
    """Gives each signal of one source to one raw key: first come; within a row, the key listed first wins.

    >>> mapper = Mapper()
    >>> {raw: str(mapped.key) for raw, mapped in mapper.claim(["loss", "lm loss", "lr"]).items()}
    {'loss': 'loss', 'lm loss': 'loss.train', 'lr': 'optim.lr'}
    """

    def __init__(self) -> None:
        self._owner: dict[SignalKey, str] = {}
        self.mapped: dict[str, Mapped] = {}

    def claim(self, keys: Sequence[str]) -> dict[str, Mapped]:
        """Maps the raw keys that were first seen together on one row. Each raw key is claimed once."""
        claimed: dict[str, Mapped] = {}
        first = {raw: map_key(raw) for raw in keys}
        self._lift_lone_rank(first)
        self._lift_reserved(first)
        self._lift_time(first)
        for raw in sorted(keys, key=lambda raw: first[raw].rank):
            mapped = first[raw]
            if mapped.key in self._owner:
                mapped = self._second(raw, mapped)
            self._owner[mapped.key] = raw
            claimed[raw] = mapped
        self.mapped.update(claimed)
        return {raw: claimed[raw] for raw in keys}

    def _lift_lone_rank(self, mapped: dict[str, Mapped]) -> None:
        # A log in which one rank alone speaks gives that rank's numbers as the run's: there is nothing to reduce.
        for whole, part in _RANK_SIGNAL.items():
            ranks = [raw for raw, found in mapped.items() if found.key.signal == part]
            taken = SignalKey(whole) in self._owner or any(found.key.signal == whole for found in mapped.values())
            if len(ranks) == 1 and not taken and dict(mapped[ranks[0]].key.labels).get("rank"):
                lone = mapped[ranks[0]]
                mapped[ranks[0]] = replace(lone, key=SignalKey(whole), rank=lone.rank + 2000)

    def _lift_reserved(self, mapped: dict[str, Mapped]) -> None:
        # Reserved memory is the run's memory where the log has no other.
        peak = SignalKey("sys.peak_memory")
        if peak in self._owner or any(found.key == peak for found in mapped.values()):
            return
        for raw, found in mapped.items():
            if found.key == SignalKey("sys.reserved_memory"):
                mapped[raw] = replace(found, key=peak, rank=found.rank + 2000)

    @staticmethod
    def _lift_time(mapped: dict[str, Mapped]) -> None:
        # A bare "time" says nothing by itself; beside the time that the data took it is the step's.
        names = {raw: _split(raw[:300])[0] for raw in mapped}
        if not any(_DATA_TIME.fullmatch(name) for name in names.values()):
            return
        for raw, name in names.items():
            if name == "time" and mapped[raw].key.signal == raw:
                mapped[raw] = map_key(f"{raw} (s)")

    def _second(self, raw: str, mapped: Mapped) -> Mapped:
        # A second training loss beside the first is a part or another view of it: charted, not judged as the loss.
        aux = SignalKey("loss.aux", (("name", raw),))
        if mapped.key.signal == "loss.train" and aux not in self._owner and mapped.rank >= 1000:
            return Mapped(aux, rank=mapped.rank)
        return Mapped(SignalKey(raw))
