"""What a history took to read does not stay with a program that then watches for weeks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.tails.clocks import FakeClock
from tests.tails.formats_for_tests import detect
from trainmon.tails import give_back
from trainmon.tails.intake import Intake

_CHURN = """
from pathlib import Path
from trainmon.tails.give_back import give_back
rss = lambda: int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / (1 << 20)
held = [bytes(2000) for _ in range(30_000)]
held = held[::500]  # few are left, spread over all of it
before = rss()
print(give_back(), before - rss())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="malloc_trim is of the GNU C library")
def test_what_is_free_between_what_is_held_is_given_back() -> None:
    made = subprocess.run(
        [sys.executable, "-c", _CHURN], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    was_asked, less_mib = made.stdout.split()
    if was_asked == "False":
        pytest.skip("another C library")
    assert float(less_mib) > 30


def test_it_is_done_now_and_then_while_files_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[float] = []
    clock = FakeClock()

    def give() -> bool:
        called.append(clock.monotonic())
        return True

    monkeypatch.setattr(give_back, "give_back", give)
    (tmp_path / "a.txt").write_text("1 2.5\n")
    follows, once = (Intake([str(tmp_path / "a.txt")], clock=clock, detect=detect, follow=way) for way in (True, False))
    try:
        began = clock.monotonic()
        for _ in range(100):
            clock.sleep(7.0)
            follows.get(0.0)
            once.get(0.0)
    finally:
        follows.stop()
        once.stop()
    assert [round(at - began) for at in called] == [21, 322, 623]
