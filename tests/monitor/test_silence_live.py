"""The job's state by silence: a real session on a log that grows, with a clock that can be put forward."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import pytest

from trainmon.monitor.explain import explain
from trainmon.monitor.session import Monitor
from trainmon.monitor.snapshot import RunSnapshot, State
from trainmon.tails.clock import SystemClock


class Ahead(SystemClock):
    """The system's clock, put forward."""

    ahead_s = 0.0

    def wall(self) -> float:
        return super().wall() + self.ahead_s

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s


@pytest.fixture
def clock() -> Ahead:
    return Ahead()


@pytest.fixture
def session(tmp_path: Path, clock: Ahead) -> Iterator[Monitor]:
    write(tmp_path, "Loading the data set\n")
    made = Monitor([str(tmp_path / "train.log")], cwd=tmp_path, clock=clock)
    made.start()
    yield made
    made.stop()


def write(folder: Path, text: str) -> None:
    with (folder / "train.log").open("a", encoding="utf-8") as file:
        file.write(text)


def rows(first: int, last: int) -> str:
    return "".join(f"step {i}/1000 | loss {3 - 0.001 * i:.4f} | lr 3.0e-04\n" for i in range(first, last + 1))


def becomes(session: Monitor, state: State, step: float | None = None, seconds: float = 30.0) -> RunSnapshot:
    end = monotonic() + seconds
    while True:
        fleet = session.latest()
        if fleet.runs and fleet.runs[0].state is state and step in (None, fleet.runs[0].last_step):
            return fleet.runs[0]
        assert monotonic() < end, fleet.runs and (fleet.runs[0].state, fleet.runs[0].state_reason)
        sleep(0.02)


def test_silence_of_a_live_run(session: Monitor, clock: Ahead, tmp_path: Path) -> None:
    becomes(session, State.STARTING)
    write(tmp_path, "Compiling the model\n")
    sleep(0.3)
    write(tmp_path, rows(1, 30))
    becomes(session, State.RUNNING, 30)
    clock.ahead_s += 310.0
    assert "no new data for 5 min" in becomes(session, State.SLOW).state_reason
    clock.ahead_s += 300.0
    hung = becomes(session, State.HUNG)
    assert "step 30 of 1000; no new data for 10 min, limit 10 min" in hung.state_reason
    assert any("hung from 10 min" in number for number in explain("job.state", hung).numbers)
    write(tmp_path, rows(31, 40))
    assert "step 40" in becomes(session, State.RUNNING, 40).state_reason
    write(tmp_path, "Saving checkpoint to out/step-40\n")
    sleep(0.3)
    clock.ahead_s += 200.0
    saving = becomes(session, State.CHECKPOINTING)
    assert "Saving checkpoint to out/step-40" in saving.state_reason
    assert not any(one.check == "job.state" for one in saving.episodes)
    write(tmp_path, "Training completed.\n")
    becomes(session, State.FINISHED)
    clock.ahead_s += 9000.0
    sleep(1.5)
    becomes(session, State.FINISHED)
