"""The checks of preflight, one function each, in the order in which they are printed."""

from __future__ import annotations

from collections.abc import Callable

from trainmon.monitor.finding import CheckResult
from trainmon.monitor.preflight import operation_checks as operation
from trainmon.monitor.preflight import recipe_checks as recipe
from trainmon.monitor.preflight.check_base import Seen
from trainmon.monitor.preflight.plan import Plan

CHECKS: tuple[Callable[[Plan, Seen], CheckResult], ...] = (
    recipe.warm_up,
    recipe.peak_lr,
    recipe.batch,
    recipe.tokens_per_parameter,
    recipe.schedule,
    recipe.clipping,
    recipe.precision,
    recipe.optimizer,
    operation.checkpoints,
    operation.evaluation,
    operation.logging,
    operation.dead_time,
    operation.first_screen,
)
