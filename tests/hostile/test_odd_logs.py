"""Logs of an odd kind through the command: giant lines, keys that are nearly the same, numbers out of all range, time
zones."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT


def check(folder: Path, *words: str, memory_mib: int = 0, **environment: str) -> dict[str, Any]:
    """The one run of ``check --json`` of all that is in `folder`."""

    def limit() -> None:
        if memory_mib:
            resource.setrlimit(resource.RLIMIT_AS, (memory_mib << 20, memory_mib << 20))

    made = subprocess.run(
        [sys.executable, "-m", "trainmon", *(words or ("check", "--json", "--no-history", "--no-slurm", "."))],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", **environment},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert made.returncode in (0, 1), made.stderr
    assert "Traceback" not in made.stderr
    [run] = json.loads(made.stdout)["runs"]
    return dict(run)


def rows(first: int, last: int) -> bytes:
    return b"".join(b'{"step": %d, "loss": 2.5, "grad_norm": 1.0}\n' % step for step in range(first, last))


@pytest.mark.parametrize("piece", [b"9", b'{"a":', b"loss 2.5 ", b"\0"])
def test_a_line_of_a_hundred_megabytes(tmp_path: Path, piece: bytes) -> None:
    """What comes before and after it is read, and the process never holds the whole of it several times over."""
    with (tmp_path / "metrics.jsonl").open("wb") as log:
        log.write(rows(0, 50))
        block = piece * ((1 << 20) // len(piece))
        for _ in range(100):
            log.write(block)
        log.write(b"\n" + rows(50, 100))
    run = check(tmp_path, memory_mib=900)
    assert (run["steps"]["first"], run["steps"]["last"], run["steps"]["count"]) == (0, 99, 100)


def test_keys_that_differ_in_case_or_normalisation_or_look_like_paths_and_code(tmp_path: Path) -> None:
    keys = (
        "Loss",
        "LOSS",
        "lo\u0301ss",
        "l\u00f3ss",
        "../../etc/passwd",
        "$(reboot)",
        "__class__",
        "a/../b",
        "constructor",
    )
    with (tmp_path / "metrics.jsonl").open("w") as log:
        for step in range(60):
            odd = {key: 100.0 * (1 + place) + step for place, key in enumerate(keys)}
            log.write(json.dumps({"step": step, "loss": 2.5, **odd}) + "\n")
    made = subprocess.run(
        [
            sys.executable,
            "-m",
            "trainmon",
            "export",
            "--raw-keys",
            ".",
            *(word for key in keys for word in ("-s", key)),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    values = [float(word) for word in made.stdout.splitlines()[1].split(",") if word.replace(".", "").isdigit()]
    assert {100.0 * (1 + place) for place in range(len(keys))} <= set(values), "each key has its own values"


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" + "0" * 400, "1e-999", "0." + "0" * 400 + "1", "9" * 5000])
def test_numbers_out_of_all_range(tmp_path: Path, number: str) -> None:
    lines = [f'{{"step": {step}, "loss": {2.5 if step != 30 else number}, "grad_norm": 1.0}}' for step in range(60)]
    (tmp_path / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    run = check(tmp_path)
    assert run["steps"]["count"] >= 59
    is_huge = not number.startswith(("0.", "1e-"))
    said = json.dumps(run)
    assert ("nonfinite" in said or "spike" in said or "unreadable" in said) if is_huge else run["steps"]["count"] == 60


ZONES = ("UTC", "America/New_York", "Asia/Kathmandu", "XXX-14", "nonsense/zone")


def test_time_zones_change_no_judgement(tmp_path: Path) -> None:
    """A log without a zone in its stamps, over the hour that a change of clocks has twice."""
    with (tmp_path / "train.log").open("w") as log:
        for step in range(240):
            minute = step % 60
            hour = (0, 1, 1, 2)[step // 60]  # 1 comes twice
            log.write(f"2024-11-03 {hour:02d}:{minute:02d}:00,000 INFO step {step} | loss: 2.5 | grad_norm: 1.0\n")
    os.utime(tmp_path / "train.log", (1.73e9, 1.73e9))
    told = []
    for zone in ZONES:
        run = check(tmp_path, TZ=zone)
        told.append({key: run[key] for key in ("verdict", "steps", "state")} | {"checks": len(run["checks"])})
    assert all(each == told[0] for each in told), told
