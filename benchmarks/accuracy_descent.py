"""Loss spikes inside the steep fall with which runs begin, where the window's own spread is mostly the fall.

    python -m benchmarks.accuracy_descent [--half 4] [--seeds N] [--corpus FOLDER]

Synthetic: five shapes of fall, the noises of `benchmarks.accuracy_cases` at three levels, logged every 1, 10 or 100
steps, spikes of twice the smallest size (of the noise, or +10%) at four places. Real: the healthy logs whose loss falls
by a tenth or more within 60 values, at the steepest such place. A spike is found when the product tells of it within
its first values where it did not in the healthy run; for the peers' rules likewise. The rule and its constants were
chosen on half 0 and on seeds of their own; half 1 was looked at for false alarms; the others are fresh.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.accuracy_cases import LEVELS, NOISES, Run, frame_of, longest_attempt, real
from benchmarks.accuracy_ours import watch
from benchmarks.accuracy_peers import PEERS, Asked
from benchmarks.accuracy_tables import Score, rate
from tests.monitor.detectors.synthetic import LOSS, power_law, rows_of, with_columns
from trainmon.monitor.frame import Frame
from trainmon.monitor.thresholds import Thresholds
from trainmon.tails.record import FloatArray

N: Final = 500
PLACES: Final = (45, 90, 150, 250)
LENGTHS: Final = (1, 3, 5)
FALLING: Final = 60  # values
STEEP: Final = 0.1  # of a real loss that is to fall within so many values
CHECKS: Final = ("loss.spike", "spike.co")
FALLS: Final[dict[str, Callable[[FloatArray], FloatArray]]] = {
    "exponential": lambda i: 2.5 + 8.5 * np.exp(-i / 60.0),
    "slow exponential": lambda i: 2.5 + 8.5 * np.exp(-i / 250.0),
    "power law": power_law,
    "behind a warm-up": lambda i: 2.6 + 8.3 / (1 + np.exp((i - 150) / 35.0)),
    "towards zero": lambda i: 0.004 + 0.9 * np.exp(-i / 50.0),
}


def synthetic(half: int, seeds: int) -> Iterator[tuple[str, Frame, tuple[int, ...], float]]:
    """(noise, frame, places of faults, sigma of the log noise)."""
    index = np.arange(N, dtype=np.float64)
    for number, (noise, draw) in enumerate(NOISES.items()):
        for level in LEVELS:
            for seed in range(1000 * half, 1000 * half + seeds):
                rng = np.random.default_rng([seed, number, int(10 * level)])
                for turn, curve in enumerate(FALLS.values()):
                    told = level * draw(N, rng)
                    sigma = 1.4826 * float(np.median(np.abs(told - np.median(told))))
                    frame = frame_of((1, 10, 100)[(seed + turn) % 3], N, {LOSS: curve(index) * np.exp(told)})
                    yield noise, frame, PLACES, sigma


def real_falls(corpus: Path, half: int | None) -> Iterator[tuple[str, Frame, tuple[int, ...], float]]:
    """The beginnings of healthy logs, with the place where each falls most steeply."""
    for run in real(corpus, half):
        whole = longest_attempt(run)
        frame = _loss_alone(whole) if whole is not None else None
        if frame is None:
            continue
        u = np.log(frame.columns[LOSS])
        levels = np.array([np.median(u[at - 5 : at + 5]) for at in range(5, len(u) - 5)])
        falls = levels[:-FALLING] - levels[FALLING:]
        if len(falls) and falls.max() >= STEEP:
            at = int(falls.argmax()) + 5 + FALLING
            apart = np.diff(u[at - FALLING : at])
            sigma = 1.4826 * float(np.median(np.abs(apart - np.median(apart)))) / np.sqrt(2)
            yield "real logs", frame, (max(at, PLACES[0]),), sigma


def _loss_alone(run: Run) -> Frame | None:
    (frame,) = run.frames
    rows = np.flatnonzero(np.isfinite(frame.columns[LOSS]) & (frame.columns[LOSS] > 0))[:N]
    if len(rows) < PLACES[0] + FALLING:
        return None
    return frame_of(1, len(rows), {LOSS: frame.columns[LOSS][rows]})


class Bench:
    """Counts what is found, by noise and method, and the false alarms."""

    def __init__(self) -> None:
        self.steps: dict[str, int] = defaultdict(int)
        self.false: dict[tuple[str, str], int] = defaultdict(int)
        self.scores: dict[tuple[str, int, str], Score] = defaultdict(Score)
        self.asked = Asked()

    def add(self, noise: str, frame: Frame, places: tuple[int, ...], sigma: float) -> None:
        """One healthy run, and spikes in it."""
        self.asked.forget()
        self.steps[noise] += len(frame)
        healthy = watch([frame], Thresholds())
        for alarm in healthy.alarms:
            self.false[noise, alarm.level] += 1
        flagged = {name: {row for _, row in self.asked.flags(name, frame)} for name in PEERS}
        for name in PEERS:
            self.false[noise, name] += self.asked.alarms(name, frame)
        known = {alarm.raised for alarm in healthy.alarms}.union(*flagged.values())
        for place in places:
            free = [
                row
                for row in range(place, min(place + 40, len(frame) - 60))
                if not known & set(range(row - 3, row + 8))
            ]
            for length in LENGTHS if free else ():
                self._one(noise, frame, free[0], length, sigma, flagged)

    def _one(self, noise: str, frame: Frame, row: int, length: int, sigma: float, flagged: dict[str, set[int]]) -> None:
        loss = frame.columns[LOSS].copy()
        level = np.log(np.median(loss[row - 5 : row + 6]))
        loss[row] *= np.exp(max(level - np.log(loss[row]), 0.0))  # where its own noise pulls it down, that is made good
        loss[row : row + length] *= np.exp(2 * max(np.log(1.1), 6 * sigma))
        faulty = with_columns(rows_of(frame, slice(0, row + 60)), {LOSS: loss[: row + 60]})
        ours = [a for a in watch([faulty], Thresholds()).alarms if a.check in CHECKS and row <= a.raised < row + 20]
        for level_name in ("told", "warned"):
            self._count(
                noise, length, level_name, min((a.raised - row for a in ours if a.level == level_name), default=None)
            )
        for name in PEERS:
            new = {at for _, at in self.asked.flags(name, faulty)} - flagged[name]
            self._count(noise, length, name, min((at - row for at in new if row <= at < row + 20), default=None))

    def _count(self, noise: str, length: int, method: str, delay: int | None) -> None:
        score = self.scores[noise, length, method]
        score.cases += 1
        if delay is not None:
            score.delays.append(float(delay))

    def say(self) -> None:
        """Prints the tables."""
        methods = ("told", "warned", *PEERS)
        print(f"{'':28s}{'n':>6s}" + "".join(f"{name:>13s}" for name in methods))
        for noise, steps in self.steps.items():
            cells = "".join(f"{rate(self.false[noise, name], steps):>13s}" for name in methods)
            print(f"{noise + ', false per 100k':28s}{steps:6d}{cells}")
            for length in LENGTHS:
                cases = self.scores[noise, length, "told"].cases
                cells = "".join(f"{self.scores[noise, length, name].recall:13.2f}" for name in methods)
                print(f"{f'  spike of {length}':28s}{cases:6d}{cells}")


def main() -> int:
    """Prints recall and false alarms by noise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--corpus", type=Path, default=Path(__file__).parents[2] / "shared" / "corpus")
    options = parser.parse_args()
    bench = Bench()
    for case in synthetic(options.half, options.seeds):
        bench.add(*case)
    for case in real_falls(options.corpus, options.half) if options.corpus.is_dir() else ():
        bench.add(*case)
    bench.say()
    return 0


if __name__ == "__main__":
    sys.exit(main())
