"""Many lines at once: each that was written is judged once, however far behind the reader falls."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import ROOT

PATIENCE_S = 240.0
WRITE_S = 2.0


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "per_second"), [(1, 5000), (200, 10)], ids=["one-run", "two-hundred-runs"])
def test_every_line_is_counted_once(tmp_path: Path, runs: int, per_second: int) -> None:
    """`benchmarks.load` measures the same for longer, beside a peer."""
    logs = [tmp_path / f"run{number:03d}" / "metrics.jsonl" for number in range(runs)]
    for log in logs:
        log.parent.mkdir()
        log.write_text("".join(f'{{"step": {step}, "loss": 2.0, "lr": 0.1}}\n' for step in range(20)))
    process = subprocess.Popen(
        [sys.executable, "-m", "trainmon", "watch", "--headless", "--records", "--no-slurm", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "TRAINMON_HISTORY": "off"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    out = process.stdout
    writer = threading.Thread(target=write, args=(logs, per_second))
    stop = threading.Timer(PATIENCE_S, process.kill)
    stop.start()
    seen: Counter[tuple[str, int]] = Counter()
    wanted = runs * (20 + int(per_second * WRITE_S))
    for line in out:
        event = json.loads(line)
        if event["event"] == "record":
            seen[event["run"], event["step"]] += 1
            if not writer.ident:
                writer.start()  # it is at work: what comes now comes live
            if len(seen) == wanted:
                break
    stop.cancel()
    process.terminate()
    rest, errors = process.communicate(timeout=60)
    for line in rest.splitlines():
        event = json.loads(line)
        if event["event"] == "record":
            seen[event["run"], event["step"]] += 1
    assert len(seen) == wanted, (len(seen), wanted)
    assert set(seen.values()) == {1}
    assert "Traceback" not in errors


def write(logs: list[Path], per_second: int) -> None:
    """A line to each log in turn, as many a second as asked for, whoever reads."""
    files = [log.open("a", buffering=1) for log in logs]
    began, total = time.monotonic(), int(per_second * WRITE_S)
    for number in range(total):
        time.sleep(max(0.0, began + number / per_second - time.monotonic()))
        for file in files:
            file.write(f'{{"step": {20 + number}, "loss": 2.0, "lr": 0.1}}\n')
    for file in files:
        file.close()
