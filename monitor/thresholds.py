"""Cut-offs: METRICS.md's defaults, the run's trainmon.toml, flags, and where each number came from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from trainmon.tails.quick_dataclass import dataclass

DEFAULTS: dict[str, float] = {
    "window": 100.0,
    "clip": 1.0,
    "spike.z": 6.0,
    "spike.relative": 0.10,
    "spike.lone_z": 8.5,
    "spike.lone_ratio": 1.5,
    "spike.min_history": 30.0,
    "spike.recovery_steps": 200.0,
    "spike.recovery_values": 20.0,
    "spike.ratio": 2.5,
    "shift.warn": 0.05,
    "shift.fail": 0.25,
    "shift.steps": 100.0,
    "shift.values": 20.0,
    "drift.relative": 0.05,
    "drift.sigmas": 4.0,
    "drift.fail": 0.25,
    "drift.steps": 500.0,
    "drift.values": 100.0,
    "nonfinite.fail_run": 3.0,
    "vanished.records": 3.0,
    "zeroed.records": 5.0,
    "grad.spike.z": 10.0,
    "grad.spike.ratio": 5.0,
    "grad.level.warn": 5.0,
    "grad.level.fail": 100.0,
    "grad.level.steps": 100.0,
    "grad.level.fail_values": 3.0,
    "clip_rate.rise": 0.3,
    "clip_rate.steps": 1000.0,
    "step_time.warn": 1.3,
    "step_time.fail": 3.0,
    "step_time.steps": 50.0,
    "step_time.single": 10.0,
    "throughput.warn": 0.20,
    "throughput.fail": 0.60,
    "throughput.steps": 50.0,
    "memory.warn": 0.90,
    "memory.fail": 0.97,
    "memory.fail_share": 0.05,
    "straggler.warn": 1.1,
    "straggler.fail": 1.5,
    "straggler.steps": 100.0,
    "moe.maxvio.ratio": 2.0,
    "moe.maxvio.level": 1.0,
    "moe.imbalance.fail": 8.0,
    "moe.dead_share": 0.01,
    "moe.dead_steps": 200.0,
    "moe.dead_fail": 0.1,
    "moe.entropy.drop": 0.1,
    "moe.entropy.fail": 0.3,
    "scale.ratio": 10.0,
    "scale.samples": 3.0,
    "abs_max.fp16": 1e4,
    "eval.warn": 0.02,
    "eval.fail": 0.10,
    "eval.evaluations": 3.0,
    "plateau.steps": 1000.0,
    "plateau.share": 0.05,
    "warmup.share": 0.01,
    "warmup.steps": 2000.0,
    "batch.factor": 4.0,
    "share.rise": 0.3,
    "share.bar": 0.99,
    "wait.rise": 0.15,
    "wait.steps": 50.0,
    "jitter.ratio": 3.0,
    "jitter.least": 0.05,
    "jitter.periodic": 0.20,
    "device.temperature": 90.0,
    "host.memory": 0.95,
    "task.drop": 0.10,
    "resume.rise": 0.10,
    "silence.gaps": 10.0,
    "silence.seconds": 600.0,
    "silence.starting_seconds": 1800.0,
}


REST = ""  # in `Thresholds.sources`: of all that have no source of their own


def short_names(names: Iterable[str]) -> dict[str, str]:
    """The names as a check's own thresholds are shown: without the part before the last dot, unless two would be alike.

    >>> short_names(["spike.z", "window"]), short_names(["spike.z", "grad.spike.z"])
    ({'spike.z': 'z', 'window': 'window'}, {'spike.z': 'spike.z', 'grad.spike.z': 'grad.spike.z'})
    """
    short = {name: name.rpartition(".")[2] for name in names}
    return short if len(set(short.values())) == len(short) else {name: name for name in short}


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A value for every name of `DEFAULTS`, each with its source: "default", "flag --window", a file's path.

    >>> limits = Thresholds().override({"spike.z": 8.0}, source="flag")
    >>> limits["spike.z"], limits.source("spike.z"), limits.source("clip")
    (8.0, 'flag', 'default')
    """

    values: dict[str, float] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.values.get(name, DEFAULTS[name])

    def source(self, name: str) -> str:
        """Where the value of `name` came from."""
        return self.sources.get(name) or self.sources.get(REST, "default")

    def is_set(self, name: str) -> bool:
        """Whether a file or a flag has set `name`."""
        return name in self.values

    def override(self, values: dict[str, float], source: str) -> Thresholds:
        """A copy with `values` set. Raises KeyError for a name that no detector has."""
        unknown = sorted(set(values) - set(DEFAULTS))
        if unknown:
            raise KeyError(", ".join(unknown))
        return Thresholds({**self.values, **values}, {**self.sources, **dict.fromkeys(values, source)})

    def used(self, *names: str) -> dict[str, float | str]:
        """What a verdict shows: the named values and one "source" (the sources joined where they differ)."""
        shown: dict[str, float | str] = {name: self[name] for name in names}
        shown["source"] = ", ".join(dict.fromkeys(self.source(name) for name in names)) or "default"
        return shown
