"""Faults of known size, put into healthy runs from one row on. Sizes are in units of METRICS.md's smallest fault.

Where METRICS.md's smallest fault would drown in the noise of a run (+5% of a loss that swings by 20%), the unit is
raised to what stands out of it: 6 robust sigma of single values for a spike, 4 sigma of a level for a shift or drift.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from benchmarks.accuracy_cases import labelled
from tests.monitor.detectors.synthetic import GRAD, LOSS, LR, TIME, TPS, logged_as
from trainmon.monitor.detectors.heldout_trend import HELD_OUT
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.tails.record import FloatArray, Mark

LEAST_DRIFT: Final = 3000.0  # steps

_NLL = SignalKey("eval.nll")
_OUTPUT = labelled("tensor.abs_max", site="output")
_UPDATE = labelled("update.ratio", layer=1)

Inject = Callable[[Frame, int, float], Frame | None]


@dataclass(frozen=True)
class Fault:
    """`inject` gives the faulty frame from (frame, row of the first fault, size), None where the run lacks the column.

    `horizon`: an alarm that begins so many rows behind the fault's first is no longer about it. `checks`: those whose
    alarm tells of it. `of_loss`: rules that read loss and gradient norm can be asked. `sized`: it has sizes.
    `level`: "told" where METRICS.md says INFO, "page" where it says FAIL at once, else "warned".
    """

    name: str
    inject: Inject
    horizon: int
    checks: tuple[str, ...]
    of_loss: bool = True
    sized: bool = True
    level: str = "warned"


def _logs(frame: Frame, key: SignalKey, row: int) -> FloatArray:
    column = frame.columns[key][:row]
    return np.log(column[np.isfinite(column) & (column > 0)])


def _noise(frame: Frame, row: int) -> float:
    """Robust sigma of a single log loss against the last 100."""
    last = _logs(frame, LOSS, row)[-100:]
    return 1.4826 * float(np.median(np.abs(last - np.median(last))))


def _level_noise(u: FloatArray, values: int = 100) -> float:
    """Sigma of the difference between the means of two neighbouring stretches of so many values."""
    n = len(u) // values
    gaps = np.diff(u[len(u) - n * values :].reshape(n, values).mean(axis=1)[-25:])
    return 1.4826 * float(np.median(np.abs(gaps - np.median(gaps)))) if len(gaps) >= 3 else math.inf


def _scaled(frame: Frame, key: SignalKey, row: int, factor: FloatArray | float) -> Frame:
    column = frame.columns[key].copy()
    if isinstance(factor, np.ndarray):
        end = min(row + len(factor), len(column))
        column[row:end] *= factor[: end - row]
    else:
        column[row:] *= factor
    return replace(frame, columns={**frame.columns, key: column})


def _held_out_too(frame: Frame, before: Frame, row: int) -> Frame:
    """`frame` with held-out loss up by what the training loss of `before` has risen by there: a model that got worse.

    Where it falls on, a rise of the training loss is a change of the data, and METRICS.md makes no FAIL of it.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        rise = frame.columns[LOSS] / before.columns[LOSS]
    known = np.flatnonzero(np.isfinite(rise))
    columns = dict(frame.columns)
    for key in (key for key in frame.columns if key.signal in HELD_OUT):
        told = frame.columns[key].copy()
        for at in np.flatnonzero(np.isfinite(told[row:])) + row:
            near = known[known <= at]
            factor = float(rise[near[-1]]) if len(near) else 1.0
            told[at] = told[at] ** factor if key.signal == "eval.perplexity" else told[at] * factor
        columns[key] = told
    return replace(frame, columns=columns)


def _worse(frame: Frame, row: int, factor: FloatArray | float) -> Frame:
    """Training and held-out loss times `factor` from `row` on."""
    return _held_out_too(_scaled(frame, LOSS, row, factor), frame, row)


def _set(frame: Frame, key: SignalKey, row: int, values: FloatArray | float) -> Frame:
    """`key` is `values` from `row` on, where it was logged."""
    column = frame.columns[key].copy()
    there = np.isfinite(column[row:])
    column[row:] = np.where(there, values, np.nan)
    return replace(frame, columns={**frame.columns, key: column})


def _spike(shape: FloatArray) -> Inject:
    def inject(frame: Frame, row: int, size: float) -> Frame | None:
        x = frame.columns[LOSS][row]
        if not x > 0:
            return None
        # The peak stands so far above the level: where its own noise pulls it down, that is made good.
        level = float(np.median(_logs(frame, LOSS, row)[-100:]))
        peak = np.where(np.arange(len(shape)) == 0, max(level - math.log(x), 0.0), 0.0)
        return _scaled(frame, LOSS, row, np.exp(size * max(math.log(1.1), 6 * _noise(frame, row)) * shape + peak))

    return inject


def _stays(frame: Frame, row: int, size: float) -> Frame | None:
    """A jump to where a FAIL is due that does not come back."""
    if not frame.columns[LOSS][row] > 0:
        return None
    return _worse(frame, row, 1 + size * max(0.25, math.expm1(6 * _noise(frame, row))))


def _shift(frame: Frame, row: int, size: float) -> Frame | None:
    smallest = max(math.log(1.05), 4 * _level_noise(_logs(frame, LOSS, row)))
    return _worse(frame, row, math.exp(size * smallest)) if math.isfinite(smallest) else None


def _flattened(frame: Frame, row: int) -> FloatArray:
    """What undoes the rest of the curve's fall from `row` on, in logarithms: learning stops."""
    u = np.log(np.maximum(frame.columns[LOSS], 1e-12))
    tail = float(np.nanmedian(u[max(0, row - 50) : row])) - u[row:]
    near = [tail[max(0, i - 50) : i + 51] for i in range(len(tail))]
    return np.array([float(np.median(part[np.isfinite(part)])) if np.isfinite(part).any() else 0.0 for part in near])


def _drift(frame: Frame, row: int, size: float) -> Frame | None:
    rest = frame.steps[row:] - frame.steps[row]
    length = max(LEAST_DRIFT, 300 * float(np.median(np.diff(frame.steps))))
    smallest = math.log(1.05) + 4 * _level_noise(_logs(frame, LOSS, row))
    if not math.isfinite(smallest) or rest[-1] < length or not (frame.columns[LOSS][row:] > 0).any():
        return None
    return _worse(frame, row, np.exp(_flattened(frame, row) + size * smallest * np.minimum(rest / length, 1.0)))


def _divergence(frame: Frame, row: int, size: float) -> Frame | None:
    """Runs away: 25% beyond the noise within 100 values, and on."""
    rest = np.arange(len(frame) - row) / 100.0
    rise = size * max(math.log(1.25), 6 * _noise(frame, row)) * rest
    return _worse(frame, row, np.exp(np.minimum(rise, 8.0)))


def _marked(key: SignalKey, mark: Mark, count: int) -> Inject:
    def inject(frame: Frame, row: int, _: float) -> Frame | None:
        if key not in frame.columns:
            return None
        rows = np.flatnonzero(np.isfinite(frame.columns[key]))
        rows = rows[rows >= row][:count]
        return logged_as(frame, key, rows.tolist(), mark) if len(rows) == count else None

    return inject


def _zeroed(frame: Frame, row: int, _: float) -> Frame | None:
    """0.0 for the rest, with a gradient norm that is not finite."""
    if GRAD not in frame.columns:
        return None
    rows = np.flatnonzero(np.isfinite(frame.columns[GRAD]))
    return _set(logged_as(frame, GRAD, rows[rows >= row].tolist(), Mark.NAN), LOSS, row, 0.0)


def _vanished(frame: Frame, row: int, _: float) -> Frame | None:
    """The loss is no longer logged, the others are."""
    if GRAD not in frame.columns or not np.isfinite(frame.columns[GRAD][row:]).sum() > 20:
        return None
    return _set(frame, LOSS, row, math.nan)


def _gradient(smallest: float, count: int | None = None) -> Inject:
    def inject(frame: Frame, row: int, size: float) -> Frame | None:
        if GRAD not in frame.columns or np.isfinite(frame.columns[GRAD][row:]).sum() < 150:
            return None
        if not frame.columns[GRAD][row] > 0:
            return None
        return _scaled(frame, GRAD, row, smallest * size if count is None else np.full(count, smallest * size))

    return inject


def _gradient_spike(frame: Frame, row: int, size: float) -> Frame | None:
    if GRAD not in frame.columns or not frame.columns[GRAD][row] > 0:
        return None
    u = _logs(frame, GRAD, row)[-100:]
    sigma = 1.4826 * float(np.median(np.abs(u - np.median(u))))
    return _scaled(frame, GRAD, row, np.array([math.exp(size * max(math.log(5), 10 * sigma))]))


def _co_spike(frame: Frame, row: int, size: float) -> Frame | None:
    spiked = _spike(np.ones(1))(frame, row, size)
    return None if spiked is None else _gradient_spike(spiked, row, size)


def _clip_rate(frame: Frame, row: int, size: float) -> Frame | None:
    """So many more steps above the clip threshold of 1, where the run goes on for the 1,000 steps that it must last."""
    if frame.steps[-1] - frame.steps[row] < 1500:
        return None
    if GRAD not in frame.columns or np.mean(frame.columns[GRAD][max(row - 200, 0) : row] > 1) > 0.2:
        return None
    column = frame.columns[GRAD].copy()
    rng = np.random.default_rng(row)
    hit = rng.random(len(column) - row) < min(0.3 * size, 1.0)
    column[row:] = np.where(hit, np.maximum(column[row:], 1.5), column[row:])
    return replace(frame, columns={**frame.columns, GRAD: column})


def _times(key: SignalKey, smallest: float) -> Inject:
    """A level that moves by `smallest` of itself for each unit of size."""

    def inject(frame: Frame, row: int, size: float) -> Frame | None:
        return _scaled(frame, key, row, 1 + size * smallest) if key in frame.columns else None

    return inject


def _group(key: SignalKey) -> Inject:
    """A level of one of several that moves by 5%, or what stands out of its own noise."""

    def inject(frame: Frame, row: int, size: float) -> Frame | None:
        if key not in frame.columns:
            return None
        smallest = max(math.log(1.05), 4 * _level_noise(_logs(frame, key, row)))
        return _scaled(frame, key, row, math.exp(size * smallest))

    return inject


def _factor(key: SignalKey, smallest: float) -> Inject:
    """A level that moves to `smallest` times itself, for each doubling of the size twice as far."""

    def inject(frame: Frame, row: int, size: float) -> Frame | None:
        return _scaled(frame, key, row, smallest * size) if key in frame.columns else None

    return inject


def _memory(frame: Frame, row: int, size: float) -> Frame | None:
    key = SignalKey("sys.memory_share")
    if key not in frame.columns:
        return None
    grown = np.minimum(frame.columns[key][row:] + size * 0.2 * np.arange(len(frame) - row) / 1000, 0.995)
    return _set(frame, key, row, grown) if np.nanmax(grown) > 0.92 else None


def _dead_expert(frame: Frame, row: int, _: float) -> Frame | None:
    key = labelled("moe.load", layer=1, expert=3)
    return _scaled(frame, key, row, 0.002) if key in frame.columns else None


def _entropy(frame: Frame, row: int, size: float) -> Frame | None:
    key = labelled("moe.entropy", layer=1)
    return None if key not in frame.columns else _set(frame, key, row, frame.columns[key][row:] - 0.1 * size)


def _to_zero(key: SignalKey) -> Inject:
    return lambda frame, row, _: _scaled(frame, key, row, 0.0) if key in frame.columns else None


def _reward(frame: Frame, row: int, size: float) -> Frame | None:
    key = SignalKey("reward.mean")
    if key not in frame.columns or not np.isfinite(frame.columns[key][:row]).any():
        return None
    before = frame.columns[key][:row]
    span = float(np.quantile(before, 0.98) - np.quantile(before[:50], 0.5))
    return _set(frame, key, row, frame.columns[key][row:] - 0.5 * size * max(span, 0.0))


def _held_out(frame: Frame, row: int, size: float) -> Frame | None:
    """2%, or what stands out of how evaluations differ from one to the next."""
    if _NLL not in frame.columns or np.isfinite(frame.columns[_NLL][row:]).sum() < 6:
        return None
    jumps = np.diff(_logs(frame, _NLL, row))[-25:]
    if len(jumps) < 5:
        return None
    sigma = 1.4826 * float(np.median(np.abs(jumps - np.median(jumps))))
    return _scaled(frame, _NLL, row, math.exp(size * max(math.log(1.02), 4 * sigma)))


def _slower(frame: Frame, row: int, size: float) -> Frame | None:
    """30%, or what stands out of the noise of a level over 50 values."""
    if TIME not in frame.columns:
        return None
    smallest = max(0.3, math.expm1(4 * _level_noise(_logs(frame, TIME, row), 50)))
    return _scaled(frame, TIME, row, 1 + size * smallest) if math.isfinite(smallest) else None


def _lr_jump(frame: Frame, row: int, size: float) -> Frame | None:
    return _scaled(frame, LR, row, 1 + 2 * size) if LR in frame.columns else None


_SHIFTS = ("loss.shift", "loss.spike", "loss.drift")

FAULTS: Final[tuple[Fault, ...]] = (
    Fault("loss spike, 1 value", _spike(np.ones(1)), 20, ("loss.spike", "spike.co")),
    Fault("loss spike, 5 values", _spike(np.linspace(1.0, 0.6, 5)), 20, ("loss.spike", "spike.co")),
    Fault("loss spike, 100 values", _spike(np.linspace(1.0, 0.0, 100)), 60, _SHIFTS),
    Fault("loss spike that stays", _stays, 600, _SHIFTS, level="page"),
    Fault("loss level shift", _shift, 300, _SHIFTS),
    Fault("loss drift", _drift, 4000, _SHIFTS),
    Fault("divergence", _divergence, 600, _SHIFTS, level="page"),
    Fault("loss NaN, 1 value", _marked(LOSS, Mark.NAN, 1), 20, ("loss.nonfinite",), sized=False),
    Fault("loss NaN, 3 values", _marked(LOSS, Mark.NAN, 3), 20, ("loss.nonfinite",), sized=False, level="page"),
    Fault("loss Inf, 3 values", _marked(LOSS, Mark.POS_INF, 3), 20, ("loss.nonfinite",), sized=False, level="page"),
    Fault("loss null, 3 values", _marked(LOSS, Mark.NULL, 3), 20, ("loss.nonfinite",), sized=False, level="page"),
    Fault("loss 0.0", _zeroed, 20, ("loss.nonfinite",), sized=False, level="page"),
    Fault("loss vanished", _vanished, 40, ("loss.nonfinite",), sized=False, level="page"),
    Fault("gradient spike, lone", _gradient_spike, 20, ("grad.norm",), level="told"),
    Fault("co-spike", _co_spike, 20, ("spike.co", "loss.spike")),
    Fault("gradient level", _gradient(5.0), 300, ("grad.norm",)),
    Fault("gradient explosion", _gradient(100.0), 300, ("grad.norm",), level="page"),
    Fault("gradient NaN, 3 values", _marked(GRAD, Mark.NAN, 3), 20, ("grad.norm",), sized=False, level="page"),
    Fault("clip rate", _clip_rate, 2500, ("grad.clip_rate",), of_loss=False),
    Fault("LR jump", _lr_jump, 200, ("lr.schedule",), of_loss=False),
    Fault("step time", _slower, 300, ("sys.step_time",), of_loss=False),
    Fault("throughput", _times(TPS, -0.2), 300, ("sys.throughput",), of_loss=False),
    Fault("one rank's loss", _group(labelled("loss.rank", rank=2)), 600, ("loss.groups",), of_loss=False),
    Fault("one source's loss", _group(labelled("loss.source", source="code")), 600, ("loss.groups",),
          of_loss=False),
    Fault("straggler", _times(labelled("sys.rank_step_time", rank=1), 0.1), 300, ("sys.straggler",), of_loss=False),
    Fault("memory creep", _memory, 3000, ("sys.memory",), of_loss=False),
    Fault("MaxVio", _factor(labelled("moe.maxvio", layer=1), 2.0), 600, ("moe.balance",), of_loss=False),
    Fault("dead expert", _dead_expert, 600, ("moe.balance",), of_loss=False, sized=False),
    Fault("router entropy", _entropy, 1200, ("moe.balance",), of_loss=False),
    Fault("output AbsMax", _factor(_OUTPUT, 10.0), 600, ("numerics.abs_max",), of_loss=False),
    Fault("update ratio to zero", _to_zero(_UPDATE), 600, ("update.ratio",), of_loss=False, sized=False),
    Fault("held-out loss", _held_out, 800, ("eval.heldout",), of_loss=False),
    Fault("reward collapse", _reward, 400, ("rl.health",), of_loss=False),
    Fault("KL blow-up", _factor(SignalKey("policy.kl"), 10.0), 400, ("rl.health",), of_loss=False),
    Fault("policy entropy", _factor(SignalKey("policy.entropy"), 5.0), 400, ("rl.health",), of_loss=False),
    Fault("length to 0", _to_zero(SignalKey("policy.length")), 400, ("rl.health",), of_loss=False, sized=False),
)  # fmt: skip
