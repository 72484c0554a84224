"""Who judges gives way to a key between any two checks: all of them together take longer than a key should wait."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.monitor import logs
from trainmon.monitor import core
from trainmon.monitor.finding import Finding
from trainmon.monitor.frame import Frame
from trainmon.tails.give_way import GiveWay


def test_before_each_check(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    class Heard(GiveWay):
        def give(self) -> bool:
            done.append("give")
            return super().give()

    class Seen(logs.Jumps):
        def update(self, frame: Frame) -> Iterable[Finding]:
            done.append("check")
            return super().update(frame)

    monkeypatch.setattr(core, "KEYS", Heard())
    logs.read([logs.train(step, 2.5) for step in range(50)], detectors=(Seen, Seen, Seen))
    assert done
    assert done == ["give", "check"] * (len(done) // 2)
