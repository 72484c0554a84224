"""A hard day in simulated time, and a hard minute in real time: nothing lost, nothing doubled, nothing that grows."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from trainmon.monitor.judge import judge
from trainmon.monitor.session import Monitor
from trainmon.tails.clock import SystemClock

pytest.importorskip("benchmarks.soak", reason="a source archive has no benchmarks")
from benchmarks.soak import Held, held, said, soak
from benchmarks.soak_trainers import Trainer

REAL_S = float(os.environ.get("TRAINMON_SOAK_S", "60"))
WARM_SHARE = 0.5
INTERVAL_S = 0.05


def test_a_day_of_simulated_time(tmp_path: Path) -> None:
    found = soak(tmp_path, days=1.0, runs=3)
    assert found.restarts + found.rotations + found.drops > 0
    assert found.read == found.written
    assert found.episodes > 0
    assert found.lost == []
    assert found.doubled == []
    assert {(day.threads, day.children) for day in found.days} == {(found.days[0].threads, found.days[0].children)}


@pytest.mark.slow
def test_a_minute_of_real_time(tmp_path: Path) -> None:
    """The session itself, with its threads, on runs that write, are rotated, restart, and whose directory goes away."""
    trainers = [Trainer(tmp_path / f"run{n}", n, INTERVAL_S, time.time()) for n in range(4)]  # noqa: TID251
    for trainer in trainers:
        trainer.write(time.time() + 100 * INTERVAL_S)  # noqa: TID251 - files carry the machine's time
    session = Monitor([str(tmp_path)], cwd=tmp_path)
    session.start()
    began, turn = time.monotonic(), 0
    measured: list[tuple[float, Held]] = []
    try:
        while (passed := time.monotonic() - began) < REAL_S:
            turn += 1
            now = time.time()  # noqa: TID251
            for n, trainer in enumerate(trainers):
                trainer.write(now)
                what = (turn + 37 * n) % 150
                if what == 50:
                    trainer.rotate(now)
                elif what == 90:
                    trainer.restart(now)
                elif what == 120:
                    trainer.go_away()
                elif what == 130:
                    trainer.come_back()
            if turn % 10 == 0:
                measured.append((passed, held()))
            time.sleep(0.1)
        now = time.time()  # noqa: TID251
        for trainer in trainers:
            trainer.come_back()
            trainer.write(now)
            trainer.close_line(now)
        written = sum(trainer.lines for trainer in trainers)
        deadline = time.monotonic() + 60
        while _records(session) < written and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(2.0)  # what is held back until a log is quiet
        live = {run.name: said(run.episodes) for run in session.latest().runs}
        assert _records(session) == written
    finally:
        session.stop()
    once = {run.name: said(run.episodes) for run in judge([str(tmp_path)], cwd=tmp_path, clock=SystemClock()).runs}
    assert live == once
    assert session.latest().problems == ()
    warm = [one for passed, one in measured if passed >= WARM_SHARE * REAL_S]
    assert max(one.threads for one in warm) == min(one.threads for one in warm)
    assert max(one.children for one in warm) <= measured[0][1].children
    assert max(one.descriptors for one in warm) <= min(one.descriptors for one in warm) + 2 * len(trainers)
    print("MiB over the second half:", *(f"{one.rss_mib:.0f}" for one in warm))
    assert warm[-1].rss_mib < 1.15 * warm[0].rss_mib


def _records(session: Monitor) -> int:
    return sum(file.records for run in session.latest().runs for file in run.files)
