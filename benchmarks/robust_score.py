"""The robust score: spikes found in a million values of two signals, against the sorted-list loop written out.

The loop is what one would write by hand: a sorted list of the last W values, the k-th smallest deviation by two
pointers, everything inlined, no track of recovery or restarts. Beside it the same with that found by bisection,
which is quicker; back-fill is held against that one. Back-fill: frames of 10,000 rows, as `check` judges.
Live: frames of 1, 4 and 10 rows, which is what a poll of a log that grows brings, and of 200, which is too few for
anything but value by value. The engine makes the frames once for all of some sixty checks: what that costs for one row
is shown beside, and is in none of the other lines.
Targets: back-fill 0.75x (stretch 0.4x) of the loop with the same flags, live 1.2x; W = 100 and 1000.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, insort
from collections import deque
from time import process_time

import numpy as np

from benchmarks.timing import interleaved
from trainmon.monitor.detectors.spike_rule import SpikeRule
from trainmon.monitor.detectors.spike_track import SpikeTrack
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.robust_score import EPS, NORMAL
from trainmon.monitor.stats.rolling_robust import RollingRobust
from trainmon.tails.record import FloatArray

LOSS = SignalKey("loss.train")
ROWS = 10_000


def signal(count: int, seed: int, noise: float) -> FloatArray:
    """A falling loss with a lone spike every 20,000 steps."""
    rng = np.random.default_rng(seed)
    values = (2 + 8 * np.exp(-np.arange(count) / 20_000)) * np.exp(noise * rng.standard_normal(count))
    values[5000::20_000] *= 1.8 + rng.random(len(values[5000::20_000]))
    return values


def by_loop(values: FloatArray, window: int, z: float, relative: float) -> list[int]:
    """Rows out of the window's own noise; they do not enter it."""
    order: deque[float] = deque()
    ranked: list[float] = []
    rise_log, flags = math.log1p(relative), []
    half = window >> 1
    for row, x in enumerate(values.tolist()):
        u = math.log(x + EPS)
        if len(ranked) == window:
            middle = ranked[half] if window & 1 else (ranked[half - 1] + ranked[half]) / 2
            # The k-th smallest deviation, k = half: walk out from the median to both sides.
            left = bisect_left(ranked, middle) - 1
            right, mad, before = left + 1, 0.0, 0.0
            for _ in range(half + 1):
                if right >= window or (left >= 0 and middle - ranked[left] < ranked[right] - middle):
                    before, mad = mad, middle - ranked[left]
                    left -= 1
                else:
                    before, mad = mad, ranked[right] - middle
                    right += 1
            spread = mad if window & 1 else (before + mad) / 2
            if u - middle > rise_log and NORMAL * (u - middle) / (spread + EPS) > z:
                flags.append(row)
                continue
            del ranked[bisect_left(ranked, order.popleft())]
        order.append(u)
        insort(ranked, u)
    return flags


def by_bisection(values: FloatArray, window: int, z: float, relative: float) -> list[int]:
    """The same, with the deviation found by bisection (the quickest exact way in plain Python that was measured)."""
    stat = RollingRobust(window)
    order, ranked = stat._order, stat._sorted
    rise_log, flags = math.log1p(relative), []
    half = window >> 1
    for row, x in enumerate(values.tolist()):
        u = math.log(x + EPS)
        if len(ranked) == window:
            middle = ranked[half] if window & 1 else (ranked[half - 1] + ranked[half]) / 2
            split = bisect_left(ranked, middle)
            spread = 0.0
            for k in (half,) if window & 1 else (half - 1, half):
                low, high = max(0, k + 1 - window + split), min(split, k + 1)
                while low < high:
                    i = (low + high) // 2
                    if middle - ranked[split - i - 1] < ranked[split + k - i] - middle:
                        low = i + 1
                    else:
                        high = i
                far = middle - ranked[split - low] if low else 0.0
                spread += max(far, ranked[split + k - low] - middle if k + 1 > low else 0.0)
            spread = spread if window & 1 else spread / 2
            if u - middle > rise_log and NORMAL * (u - middle) / (spread + EPS) > z:
                flags.append(row)
                continue
            del ranked[bisect_left(ranked, order.popleft())]
        order.append(u)
        insort(ranked, u)
    return flags


def frames_of(values: FloatArray, rows: int) -> list[Frame]:
    """`values` in frames of `rows` rows."""
    steps, lines = np.arange(len(values), dtype=np.float64), np.arange(len(values))
    places = (slice(begin, begin + rows) for begin in range(0, len(values), rows))
    return [Frame(0, "log", steps[at], steps[at], lines[at], {LOSS: values[at]}) for at in places]


def by_track(frames: list[Frame], window: int) -> list[int]:
    """The rows that `SpikeTrack` flags."""
    rule = SpikeRule(window, 6.0, 0.1, window, 200, 20)
    track = SpikeTrack(LOSS, rule)
    flags, begin = [], 0
    for frame in frames:
        track.feed(frame, [])
        if track.flags:
            flags += [begin + row for row in track.flags]
        begin += len(frame)
    return flags


def timed(way: object, *about: object) -> float:
    began = process_time()
    way(*about)  # type: ignore[operator]
    return process_time() - began


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for window in (100, 1000):
        for noise in (0.01, 0.08):
            values = [signal(count, seed, noise) for seed in (1, 2)]
            blocks = [frames_of(one, ROWS) for one in values]
            same = [
                by_track(frames, window) == by_bisection(one, window, 6.0, 0.1)
                for frames, one in zip(blocks, values, strict=True)
            ]
            found = interleaved(
                {
                    "two pointers": lambda w=window, v=values[0][: count // 10]: 20 * timed(by_loop, v, w, 6.0, 0.1),  # type: ignore[misc]
                    "bisection": lambda w=window, v=values: sum(timed(by_bisection, one, w, 6.0, 0.1) for one in v),  # type: ignore[misc]
                    "back-fill": lambda w=window, f=blocks: sum(timed(by_track, one, w) for one in f),  # type: ignore[misc]
                }
            )
            base = found["bisection"]
            print(f"W {window}, noise {noise:.0%}, {count:,} x 2, the same flags: {'yes' if all(same) else 'NO'}")
            for name, seconds in found.items():
                print(f"  {name:14s} {1e6 * seconds / count / 2:6.2f} us a value {seconds / base:5.2f}x")
            few = values[0][:20_000]
            live = interleaved(
                {
                    "two pointers": lambda w=window, v=few: timed(by_loop, v, w, 6.0, 0.1),  # type: ignore[misc]
                    "bisection": lambda w=window, v=few: timed(by_bisection, v, w, 6.0, 0.1),  # type: ignore[misc]
                    "making frames": lambda v=few: timed(frames_of, v, 1),  # type: ignore[misc]
                }
                | {
                    f"frames of {rows}": lambda w=window, f=frames: timed(by_track, f, w)  # type: ignore[misc]
                    for rows, frames in ((rows, frames_of(few, rows)) for rows in (1, 4, 10, 200))
                }
            )
            for name, seconds in live.items():
                of_loop, of_bisection = (seconds / live[base] for base in ("two pointers", "bisection"))
                per_value = 1e6 * seconds / len(few)
                print(
                    f"  live {name:14s} {per_value:6.2f} us a value {of_loop:5.2f}x, of bisection {of_bisection:5.2f}x"
                )


if __name__ == "__main__":
    main()
