"""Whether a falling curve has stopped falling all at once, or flattens as such curves do."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray

_LEAST_BEFORE: Final = 4  # points
_LEAST_BEHIND: Final = 8
_PLACES: Final = 64  # of a kink, at most
_RATES: Final = np.geomspace(1.0, 100.0, 15)  # of an exponential, over the length of the curve
_EXPONENTS: Final = np.array([0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0, 3.0])  # of a power law above a floor
_MOST_CORRELATION: Final = 0.95


@dataclass(frozen=True, slots=True)
class Kink:
    """Where the curve stops: the index `begin`, the fall `promised` from there to the end by the trend before it.

    `evidence`: twice the logarithm of how much better a trend that stops explains the points than any smooth curve,
    with as many points as the noise's autocorrelation leaves. Above 0 it speaks for a stop; some 10 is no chance.
    """

    begin: int
    promised: float
    evidence: float


def kink(steps: FloatArray, u: FloatArray) -> Kink | None:
    """(n,) steps above 0, rising, and (n,) log values. None with too few points.

    A power law that turns into a level is fitted, and against it what healthy curves do: a pure power law, power laws
    and exponentials that approach a floor.

    >>> s = np.arange(1.0, 101.0)
    >>> stopped, smooth = np.log(np.minimum(s, 60.0)), np.log(s)
    >>> found = kink(s, -0.3 * stopped)
    >>> found.begin, round(found.promised, 2), found.evidence > 100
    (59, 0.15, True)
    >>> kink(s, -0.3 * smooth).evidence < 0
    True
    """
    places = np.arange(_LEAST_BEFORE, len(u) - _LEAST_BEHIND, max(1, len(u) // _PLACES))
    if not len(places):
        return None
    x = np.log(steps)
    since = steps - steps[0]
    smooth = np.vstack(
        [
            -x[None, :],
            np.exp(-_RATES[:, None] * since / max(float(since[-1]), 1e-300)),
            (steps / steps[0]) ** -_EXPONENTS[:, None],
        ]
    )
    error_of_smooth, _, _ = _best(smooth, u)
    shapes = np.maximum(x[places][:, None] - x[None, :], 0.0)
    error, at, fall = _best(shapes, u)
    residual = u - u.mean() - fall * (shapes[at] - shapes[at].mean())
    power = float(residual @ residual)
    r = float(residual[1:] @ residual[:-1]) / power if power > 0 else 0.0
    r = min(max(r, 0.0), _MOST_CORRELATION)
    points = len(u) * (1 - r) / (1 + r)
    tiny = 1e-12 * max(float((u - u.mean()) @ (u - u.mean())), 1e-300)
    evidence = points * math.log(max(error_of_smooth, tiny) / max(error, tiny))
    begin = int(places[at])
    return Kink(begin, fall * float(x[-1] - x[begin]), evidence)


def _best(shapes: FloatArray, u: FloatArray) -> tuple[float, int, float]:
    """Of (m, n) falling shapes, the one that leaves the least of (n,) `u` above a level: what is left, which, times."""
    centred = shapes - shapes.mean(axis=1, keepdims=True)
    y = u - u.mean()
    spread = np.einsum("ij,ij->i", centred, centred)
    times = np.maximum(np.divide(centred @ y, spread, out=np.zeros(len(shapes)), where=spread > 0), 0.0)
    left = float(y @ y) - times * times * spread
    at = int(left.argmin())
    return max(float(left[at]), 0.0), at, float(times[at])
