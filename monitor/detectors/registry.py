"""The detectors that are known, in the order of the report. To add one: write the module, add its class here."""

from __future__ import annotations

from trainmon.monitor.detectors.base import Detector
from trainmon.monitor.detectors.loss_drift import LossDrift
from trainmon.monitor.detectors.loss_nonfinite import LossNonFinite
from trainmon.monitor.detectors.loss_shift import LossShift
from trainmon.monitor.detectors.loss_spike import LossSpike

DETECTORS: tuple[type[Detector], ...] = (LossSpike, LossNonFinite, LossShift, LossDrift)
