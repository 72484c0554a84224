"""Against a real Slurm that keeps no accounts and soon forgets its jobs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.monitor.slurm.conftest import start
from tests.monitor.slurm.test_real import Through
from tests.slurmd import Cluster
from trainmon.monitor.slurm.scheduler import Scheduler
from trainmon.tails.clock import SystemClock

pytestmark = [pytest.mark.xdist_group("slurm"), pytest.mark.slow]


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    yield from start(Cluster(tmp_path_factory.mktemp("f"), with_dbd=False, min_job_age_s=2))


def test_a_job_is_followed_until_slurm_forgets_it(forgetful: Cluster, tmp_path_factory: pytest.TempPathFactory) -> None:
    job = forgetful.submit("sleep 2", "-J", "short", cwd=tmp_path_factory.mktemp("j"))
    forgetful.wait_state(job, "RUNNING")
    runner = Through(forgetful)
    scheduler = Scheduler(SystemClock(), runner)
    scheduler.want([job])
    seen = [scheduler.look().jobs[job].state]
    deadline = time.monotonic() + 120
    while seen[-1] in ("RUNNING", "COMPLETING") and time.monotonic() < deadline:
        # Minutes pass between two looks in life: then a job may end and be forgotten unseen.
        while forgetful.state(job) != "" and time.monotonic() < deadline:
            time.sleep(0.2)
        seen.append(scheduler.look().jobs[job].state)
    assert (seen[0], seen[-1]) == ("RUNNING", "GONE")
    assert scheduler.board.problem == ""
    asked = sum("sacct" in argv for argv in runner.asked)
    scheduler.look()
    assert sum("sacct" in argv for argv in runner.asked) == asked  # where there are no accounts, none are asked for
