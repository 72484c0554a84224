"""How long the fuzz tests run: TRAINMON_FUZZ_EXAMPLES inputs for each (a few in CI, any number by hand).

Without it the inputs are the same in every run, so that a failure in CI is one of the change that is tested. With it
they are new ones each time; hypothesis prints the smallest that fails, which then becomes a fixture in `findings`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings

ASKED = int(os.environ.get("TRAINMON_FUZZ_EXAMPLES", "0"))


def fuzz(few: int, *, share: float = 1.0) -> Callable[[Any], Any]:
    """Settings of a fuzz test: `few` inputs in CI; by hand as many as asked for, times `share` where one is slow."""
    return settings(
        max_examples=max(int(ASKED * share), 1) if ASKED else few,
        derandomize=not ASKED,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
