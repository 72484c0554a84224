"""The cut-offs by which one series is judged for spikes."""

from __future__ import annotations

from trainmon.tails.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class SpikeRule:
    """Cut-offs. `relative` is the least rise over the median (0.10 = +10%), `recovery_*` R of METRICS.md.

    A single value that is back at once is told and no warning below both `lone_z` and `lone_ratio` (value over median).
    `follows_falls`: where the window falls steeply, a value is also held against the trend.
    `minds_changes`: a new level below `fail_rise` that begins where the work of a step was changed is a note.
    """

    window: int
    z: float
    relative: float
    min_history: int
    recovery_steps: float
    recovery_values: float
    lone_is_info: bool = False
    lone_z: float = 8.5
    lone_ratio: float = 1.5
    fail_rise: float = 0.25
    noun: str = "loss"
    minds_changes: bool = False
    follows_falls: bool = False
