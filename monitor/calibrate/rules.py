"""Which cut-offs are learned from healthy runs, and how they move together.

A family is a check and the cut-offs that decide its warnings. All of them move with one number, the scale: 1 is the
default, 2 stands twice as far from what is usual. So there is one curve to learn for each family: how many alarms
healthy runs give at each scale.
"""

from __future__ import annotations

from typing import Final, Literal

from trainmon.monitor.finding import Episode
from trainmon.monitor.thresholds import DEFAULTS
from trainmon.tails.quick_dataclass import dataclass

SCALES: Final = (0.5, 0.71, 1.0, 1.41, 2.0, 2.83, 4.0, 5.66)
WINDOWS: Final = (50, 100, 200, 400)
FAIL_OVER_WARN: Final = 2.0  # a FAIL stays at least so many times as far out as the warning

Kind = Literal["cut", "above_one"]


@dataclass(frozen=True, slots=True)
class Scaled:
    """A cut-off. "cut": distance from 0; "above_one": a ratio, whose distance from 1 is scaled. Kept within bounds."""

    name: str
    kind: Kind = "cut"
    least: float = 0.0
    most: float = 1e6

    def at(self, scale: float) -> float:
        """The value at `scale`, three digits."""
        default = DEFAULTS[self.name]
        value = default * scale if self.kind == "cut" else 1 + (default - 1) * scale
        return float(f"{min(max(value, self.least), self.most):.3g}")


@dataclass(frozen=True, slots=True)
class Family:
    """`checks`: whose warnings are counted, a lone value's apart (`alarm_name`).

    `follows`: (FAIL cut-off, the WARN cut-off that it stays beyond).
    """

    name: str
    checks: tuple[str, ...]
    scaled: tuple[Scaled, ...]
    follows: tuple[tuple[str, str], ...] = ()

    def at(self, scale: float) -> dict[str, float]:
        """The cut-offs at `scale`."""
        values = {one.name: one.at(scale) for one in self.scaled}
        kinds = {one.name: one for one in self.scaled}
        for fail, warn in self.follows:
            one = kinds[warn]
            least = FAIL_OVER_WARN * values[warn]
            if one.kind == "above_one":
                least = 1 + FAIL_OVER_WARN * (values[warn] - 1)
            values[fail] = max(DEFAULTS[fail], float(f"{least:.3g}"))
        return values


FAMILIES: Final = (
    Family(
        "loss spikes of one value",
        ("loss.spike/lone",),
        (Scaled("spike.lone_z", least=6.0), Scaled("spike.lone_ratio", "above_one", least=1.1)),
    ),
    Family(
        "loss spikes of several values",
        ("loss.spike",),
        (Scaled("spike.z", least=4.0, most=12.0), Scaled("spike.relative", least=0.03, most=0.3)),
    ),
    Family(
        "level of the loss, of ranks and sources",
        ("loss.shift", "loss.groups"),
        (Scaled("shift.warn", least=0.02, most=0.4),),
        (("shift.fail", "shift.warn"),),
    ),
    Family(
        "drift of the loss",
        ("loss.drift",),
        (Scaled("drift.relative", least=0.02, most=0.4),),
        (("drift.fail", "drift.relative"),),
    ),
    Family(
        "gradient norm",
        ("grad.norm",),
        (Scaled("grad.level.warn", "above_one", least=2.0, most=50.0),),
        (),
    ),
    Family("clip rate", ("grad.clip_rate",), (Scaled("clip_rate.rise", least=0.1, most=0.9),)),
    Family(
        "step time",
        ("sys.step_time",),
        (Scaled("step_time.warn", "above_one", least=1.1),),
        (("step_time.fail", "step_time.warn"),),
    ),
    Family("throughput", ("sys.throughput",), (Scaled("throughput.warn", least=0.08, most=0.5),)),
    Family(
        "straggler",
        ("sys.straggler",),
        (Scaled("straggler.warn", "above_one", least=1.05),),
        (("straggler.fail", "straggler.warn"),),
    ),
    Family(
        "expert balance",
        ("moe.balance",),
        (Scaled("moe.maxvio.ratio", "above_one", least=1.3), Scaled("moe.entropy.drop", least=0.03, most=0.6)),
    ),
    Family("scale of tensors", ("numerics.abs_max",), (Scaled("scale.ratio", "above_one", least=3.0),)),
    Family(
        "held-out loss",
        ("eval.heldout",),
        (Scaled("eval.warn", least=0.005, most=0.3),),
        (("eval.fail", "eval.warn"),),
    ),
)


def alarm_name(episode: Episode) -> str:
    """The check of an episode; that of a single bad value, which has cut-offs of its own, ends with "/lone"."""
    is_lone = episode.check == "loss.spike" and episode.kind == "spike" and episode.last_step == episode.first_step
    return f"{episode.check}/lone" if is_lone else episode.check


def values_at(scale: float) -> dict[str, float]:
    """Every learned cut-off at `scale`."""
    values: dict[str, float] = {}
    for family in FAMILIES:
        values |= family.at(scale)
    return values
