"""Which signal a key of a log is. The knowledge is in aliases.toml; this is the look-up, and the units."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, lru_cache

from trainmon.monitor import magnitude
from trainmon.monitor.alias_table import aliases
from trainmon.monitor.alike_keys import UnknownKeys
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.key_parts import Parts, has_part, of_part, without_rank
from trainmon.monitor.signals import BY_ID
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass

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
_UNITS: dict[str, dict[str, float]] = {"s": _TIME, "B": _BYTES, "FLOP/s": _FLOPS, "share": _SHARE}

# Where neither key nor value says the unit, the size of the first value does: (above, factor), first match.
# A share above 1 is a percentage; memory in the millions is bytes, in the hundreds and more MB, else GB.
_BY_SIZE: dict[str, tuple[tuple[float, float], ...]] = {
    "share": ((1.5, 0.01),),
    "B": ((1e7, 1.0), (400.0, 1e6), (0.0, 1e9)),
    "FLOP/s": ((1e9, 1.0), (0.0, 1e12)),
}

_BRACKETS = lazy(r"\s*[(\[]([^()\[\]]{1,24})[)\]]\s*$")
_LABELS = lazy(r"\{([^{}]*)\}$")
# What a bracket says of whose number it is: loss[rank=3], loss (layer 2).
_OF_WHOM = lazy(
    r"(?:rank|worker|gpu|device|proc|process|layer|block|expert|source|domain|dataset|modality|task)[ _=:]*[\w.-]+"
)
# "tokens per sec" ends in no unit, "timing in s" does.
_LAST_WORD = lazy(
    r"^(.*\S)(?<![ _/]per)(?<![ _/]over)[ _](us|ms|s|sec|secs|seconds|gb|gib|mb|mib|bytes|pct|percent|tflops)$"
)
_IN = lazy(r"[ _]in$")
_PER_STEP = lazy(r"(us|ms|s|sec|secs|seconds)/(?:it|iter|iteration|step)")
_SAMPLES_A_SECOND = lazy(r"(?:samples?|examples?|ex|records?|rows?|images?|img|seqs?|sequences?)/")
_DATA_TIME = lazy(r"(?:last )?data(?: (?:time|loading|wait))?")
_OF_VERL = lazy(r"perf/(?:max|cpu)[ _]memory[ _](?:allocated|reserved|used)")
_CAMEL = lazy(r"(?<=[a-z])(?=[A-Z][a-z])")  # AverageReturn, gradNorm
_EQUALS = lazy(r"(?<=[a-z])=(?=\w)")
_BLANKS = lazy(r"[_\-.\s]+")
_RUN_PREFIX = lazy(r"^.{1,200} - (?=\S)")
_LEADING = lazy(
    r"^(?:train|training|trainer|metrics?|extras?|logs?|stats?|global|scalars?|charts?|perf|learner|main|core|losses"
    r"|payload|values|fields|data(?=/(?:train|loss|lr|learning rate|grad|optim|throughput|global|actor|critic|policy"
    r"|reward|rollout|response length|prompt length|timing|perf|val|eval|entropy|kl)))/"
)
_INDEX = lazy(r"\[(\d+)\]")
_UNKNOWN = UnknownKeys()
_RANK_SIGNAL = {
    "loss.train": "loss.rank",
    "grad.norm": "grad.rank_norm",
    "sys.step_time": "sys.rank_step_time",
    "sys.peak_memory": "sys.rank_memory",
}
_WHOLE_SIGNAL = {part: whole for whole, part in _RANK_SIGNAL.items()}
_LABEL_NAMES = dict.fromkeys(("worker", "gpu", "proc", "process", "global_rank", "rank_id", "worker_id"), "rank") | {
    "domain": "source", "data_source": "source"
}  # fmt: skip
_BY_GROUP = {"source": "loss.source", "modality": "loss.modality"}
# Told by a rank alone: the same words without one are no signal of the run.
_OF_RANKS = frozenset(("loss.rank", "sys.rank_step_time", "sys.rank_memory"))
_EVALUATION = lazy(r"(?:eval|evaluation|val|valid|validation|test|dev|holdout|heldout)(?:[ /]|$)")


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


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiling them all takes longer than starting Python; most logs' keys are known without one."""
    return re.compile(pattern)


def _split(raw: str) -> tuple[str, str, dict[str, str]]:
    """The normalised key, its unit ("" when the key does not say) and the labels that a format hung on it."""
    labels: dict[str, str] = {}
    found = _LABELS.search(raw)
    if found:
        pairs = (part.split("=", 1) for part in found.group(1).split(",") if "=" in part)
        labels = {name.strip(): value.strip(" \"'") for name, value in pairs}
        raw = raw[: found.start()]
    text = _CAMEL.sub(" ", raw.strip()).lower()
    if "expert" in text:
        text = _INDEX.sub(r"/\1", text)  # a list of them
    unit = ""
    found = _BRACKETS.search(text)
    if found:
        unit, text = found.group(1).strip(), text[: found.start()]
        if _OF_WHOM.fullmatch(unit):
            unit, text = "", f"{text}/{re.sub('[=:]', ' ', unit)}"
    if not unit:
        found = _LAST_WORD.match(text)
        if found:
            text, unit = _IN.sub("", found.group(1)), found.group(2)
    if text in _TIME and text != "s":  # "3589 ms": the unit is all there is of the key
        unit = text
    elif found := _PER_STEP.fullmatch(text):
        text, unit = "time/step", found.group(1)
    return _BLANKS.sub(" ", _EQUALS.sub(" ", text)).strip(), unit, labels


def _candidates(text: str) -> Iterable[str]:
    yield text
    plain = _RUN_PREFIX.sub("", text)
    if plain != text:
        yield plain
    while found := _LEADING.match(plain):
        plain = plain[found.end() :]
        yield plain


def _look_up(text: str) -> tuple[int, str, dict[str, str]] | None:
    table = aliases()
    for candidate in _candidates(text):
        hit = table.exact.get(candidate)
        if hit:
            return hit[0], hit[1], {}
    if text in _UNKNOWN:
        return None
    is_evaluation = _EVALUATION.match(text) is not None
    for candidate in _candidates(text):
        for place, signal, pattern in table.patterns:
            if is_evaluation and not signal.startswith(("eval.", "reward.", "sample.")):
                continue  # what an evaluation measured is never a signal of training
            found = _compiled(pattern).fullmatch(candidate)
            if found:
                named = {name.rstrip("0123456789"): value for name, value in found.groupdict().items() if value}
                return None if named.get("set") in ("train", "training") else (place, signal, named)
    _UNKNOWN.add(text)
    return None


_Hit = tuple[int, str, dict[str, str]]


def _look_up_unit(text: str, unit: str) -> _Hit | None:
    hit = _look_up(f"{text}({unit})" if unit and f"{text}({unit})" in aliases().exact else text)
    return _aliases_of_whole(text, unit) if hit is None and unit else hit


def _look_up_parts(text: str, unit: str) -> tuple[_Hit | None, str]:
    """The alias of a key and its unit, whatever rank, layer and expert it names and wherever it names them.

    A pattern that tells them itself goes first. One that leaves them aside is none: it would give one rank's (one
    layer's) number as the run's.
    """
    whole = _look_up_unit(text, unit)
    if whole is not None and whole[2].keys() & _WHOSE:
        return whole, unit
    ranked = None if text.startswith("system") else without_rank(text)
    if ranked is not None:
        return _of_rank(ranked, unit)
    if has_part(text):
        part = of_part(text)
        if part is not None:
            return (1000, *part), unit
        return (whole if whole is not None and (whole[2] or whole[0] < 1000) else None), unit
    return whole or _look_up_end(text), unit


_WHOSE = frozenset(("rank", "layer", "expert", "device", "shard"))


def _of_rank(ranked: Parts, unit: str) -> tuple[_Hit | None, str]:
    """As `_look_up_parts`, of a key that a rank was taken out of; a unit may stand at the end of what is left."""
    rest = ranked.rest
    if not unit:
        rest, unit, _ = _split(rest)
    if ranked.is_card and (hit := _look_up_unit(f"gpu {rest}", unit)) is not None and hit[1].startswith("device."):
        return (hit[0], hit[1], hit[2] | {"device": ranked.labels["rank"]}), unit
    hit, unit = _look_up_parts(rest, unit)
    return (None if hit is None else (hit[0], hit[1], hit[2] | ranked.labels)), unit


def _look_up_end(text: str) -> _Hit | None:
    """The alias of the last part of a path, where it can be nothing else: ``info/learner/stats/total loss``."""
    head, slash, last = text.rpartition("/")
    if not slash or _EVALUATION.match(text) or any(_EVALUATION.match(part) for part in head.split("/")):
        return None
    if last in ("kl", "entropy") and not re.search("policy|actor|learner|ppo|grpo", head):
        return None
    hit = aliases().exact.get(last)
    return (
        (hit[0] + 3000, hit[1], {})
        if hit is not None and (" " in last or last in ("kl", "entropy", "gnorm")) and hit[1] in _BY_LAST_PART
        else None
    )


_LAST_PARTS = (
    "loss.train|grad.norm|optim.lr|policy.kl|policy.entropy|reward.mean|policy.length|sys.mfu|optim.loss_scale"
    "|sys.tokens_per_second|sys.step_time|sys.peak_memory|sys.reserved_memory|count.skipped_steps"
)
_BY_LAST_PART = frozenset(_LAST_PARTS.split("|"))


def _aliases_of_whole(text: str, unit: str) -> tuple[int, str, dict[str, str]] | None:
    """A key that is listed with its unit, such as ``step ms``, whatever group it stands in: ``perf/step seconds``."""
    hit = aliases().exact.get(f"{text} {unit}")
    last = text.rpartition("/")[2]
    if hit is None and last != text and _EVALUATION.match(text) is None:
        hit = aliases().exact.get(f"{last} {unit}")
        hit = hit if hit is not None and hit[1] in _BY_LAST_PART else None
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
    if text == "time" and unit not in ("us", "µs", "ms", "s"):
        return Mapped(SignalKey(raw))  # a bare "time" is as often a clock as a duration
    if text in ("memory", "mem", "gpu memory", "gpu mem", "peak memory", "memory/max active") and unit in _SHARE:
        return Mapped(SignalKey("sys.memory_share", _of_format(labels)), 0.01, rank=0)
    if unit == "gb" and _OF_VERL.fullmatch(text):
        unit = "gib"  # it divides torch's bytes by 1024 ** 3
    hit, unit = _look_up_parts(text, unit)
    times = 1.0
    if hit is None and (counted := magnitude.told_in(text)) is not None:
        hit, unit = _look_up_parts(counted[0], unit)
        times = counted[1]
    if hit is None or (times != 1.0 and BY_ID[hit[1]].unit not in magnitude.COUNTS):
        return Mapped(SignalKey(raw))
    place, signal, named = hit
    if signal == "sys.reserved_memory" and unit in _SHARE:
        signal, place = "sys.memory_share", place + 3000  # what is allocated tells the share better, where it is logged
    if signal == "sys.tokens_per_second" and _SAMPLES_A_SECOND.match(unit):  # "throughput: 408 records/second"
        signal = "sys.samples_per_second"
    if signal == "sys.peak_memory" and unit in _SHARE:
        signal = "sys.memory_share"
    if signal == "sys.memory_share" and unit in _BYTES:
        signal = "sys.peak_memory"
    named |= dict(_of_format(labels))
    if signal == "loss.train":
        signal = next((_BY_GROUP[name] for name in named if name in _BY_GROUP), signal)
    if "rank" in named:
        place -= signal == "sys.rank_step_time"  # what a rank computed tells a straggler better than its whole step
        signal = _RANK_SIGNAL.get(signal, signal)
    elif signal in _OF_RANKS:
        return Mapped(SignalKey(raw))
    key = SignalKey(signal, tuple(sorted(named.items())))
    return _with_unit(key, unit, place, times)


def _of_format(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """The labels that a format hung on a key, under the names that signals have for them."""
    return tuple(sorted((_LABEL_NAMES.get(name, name), value) for name, value in labels.items()))


def _with_unit(key: SignalKey, unit: str, place: int, times: float) -> Mapped:
    wanted = BY_ID[key.signal].unit
    if wanted in magnitude.COUNTS:
        return Mapped(key, times * magnitude.of_unit(unit), rank=place)
    table = _UNITS.get(wanted, {})
    given = unit or aliases().units.get(key.signal, "")
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
        # Not where each number has a row of its own: the next may be another rank's.
        ranked = {raw: found for raw, found in mapped.items() if dict(found.key.labels).get("rank")}
        if len(mapped) < 2 or len({dict(found.key.labels)["rank"] for found in ranked.values()}) != 1:
            return
        keys = {found.key for found in mapped.values()}
        for raw, lone in ranked.items():
            signal = _WHOLE_SIGNAL.get(lone.key.signal, lone.key.signal)
            if lone.key.signal == "grad.rank_norm" and len(lone.key.labels) > 1:
                continue  # of one part of the model
            whole = SignalKey(signal, tuple(label for label in lone.key.labels if label[0] != "rank"))
            if whole not in self._owner and whole not in keys:
                mapped[raw] = replace(lone, key=whole, rank=lone.rank + 2000)
                keys.add(whole)

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
        step = SignalKey("sys.step_time", mapped.key.labels)
        if mapped.key.signal == "sys.rank_step_time" and step not in self._owner:
            return replace(mapped, key=step)  # beside its compute time: the slowest one's is the run's
        return Mapped(SignalKey(raw))
