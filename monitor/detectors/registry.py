"""The detectors that are known, in the order of the report. To add one: write the module, add its class here."""

from __future__ import annotations

from collections.abc import Mapping

from trainmon.monitor.detectors.abs_max import AbsMax
from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.detectors.batch_ratio import BatchRatio
from trainmon.monitor.detectors.changes import Changes
from trainmon.monitor.detectors.clip_rate import ClipRate
from trainmon.monitor.detectors.co_spike import CoSpike
from trainmon.monitor.detectors.dead_units import DeadUnits
from trainmon.monitor.detectors.devices import Devices
from trainmon.monitor.detectors.eval_tasks import EvalTasks
from trainmon.monitor.detectors.grad_dead import GradDead
from trainmon.monitor.detectors.grad_elements import GradElements
from trainmon.monitor.detectors.grad_norm import GradNorm
from trainmon.monitor.detectors.heldout import HeldOut
from trainmon.monitor.detectors.jitter import Jitter
from trainmon.monitor.detectors.loss_drift import LossDrift
from trainmon.monitor.detectors.loss_groups import LossGroups
from trainmon.monitor.detectors.loss_nonfinite import LossNonFinite
from trainmon.monitor.detectors.loss_plateau import LossPlateau
from trainmon.monitor.detectors.loss_scale import LossScale
from trainmon.monitor.detectors.loss_shift import LossShift
from trainmon.monitor.detectors.loss_spike import LossSpike
from trainmon.monitor.detectors.lr_schedule import LrSchedule
from trainmon.monitor.detectors.memory import Memory
from trainmon.monitor.detectors.modality import Modality
from trainmon.monitor.detectors.moe_balance import MoeBalance
from trainmon.monitor.detectors.residual import ResidualStream
from trainmon.monitor.detectors.restarts import Restarts
from trainmon.monitor.detectors.rewarm import Rewarm
from trainmon.monitor.detectors.rl_health import RlHealth
from trainmon.monitor.detectors.samples import Samples
from trainmon.monitor.detectors.step_time import StepTime
from trainmon.monitor.detectors.straggler import Straggler
from trainmon.monitor.detectors.throughput import Throughput
from trainmon.monitor.detectors.update_ratio import UpdateRatio
from trainmon.monitor.detectors.waits import Waits
from trainmon.monitor.thresholds import Thresholds

DETECTORS: tuple[type[Detector], ...] = (
    LossSpike,
    GradNorm,
    LrSchedule,
    BatchRatio,
    LossPlateau,
    LossNonFinite,
    LossShift,
    LossDrift,
    CoSpike,
    ClipRate,
    LossGroups,
    RlHealth,
    GradElements,
    GradDead,
    StepTime,
    Throughput,
    Memory,
    Straggler,
    MoeBalance,
    Jitter,
    Waits,
    Devices,
    AbsMax,
    LossScale,
    HeldOut,
    EvalTasks,
    DeadUnits,
    UpdateRatio,
    ResidualStream,
    Modality,
    Samples,
    Restarts,
    Changes,
    Rewarm,
)


def make_detectors(limits: Thresholds, facts: Mapping[str, float | str]) -> list[Detector]:
    """One of each for a run, told of each other, in the order in which they are to be fed."""
    made = [cls(limits, facts) for cls in DETECTORS]
    known = {detector.id: detector for detector in made}
    for detector in made:
        detector.connect(known)
    return made
