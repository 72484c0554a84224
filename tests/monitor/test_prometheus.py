"""The Prometheus file: valid, complete, replaced in one piece, and honest about what is not known."""

from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path

import pytest

from tests.test_cli import GOOD, run
from trainmon.monitor.prometheus import write
from trainmon.monitor.snapshot import FleetSnapshot

_SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_][a-z0-9_]*="(?:[^"\\]|\\[\\"n])*",?)+)\})? (NaN|[+-]Inf|-?[0-9.e+-]+)')


def samples(path: Path) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    typed: set[str] = set()
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# TYPE "):
            typed.add(line.split()[2])
        elif not line.startswith("#"):
            match = _SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] in typed
            assert (match[1], match[2] or "") not in found
            found[match[1], match[2] or ""] = float(match[3].replace("Inf", "inf"))
    return found


def test_first_screen_and_verdicts_are_there(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text(GOOD, encoding="utf-8")
    made = run("watch", "good.jsonl", "--headless", "--until-idle", "0", "--prometheus", "t.prom", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    found = samples(tmp_path / "t.prom")
    assert found["trainmon_signal", 'run="good.jsonl",signal="loss.train"'] == 2.8
    assert found["trainmon_step", 'run="good.jsonl"'] == 200
    assert found["trainmon_verdict", 'run="good.jsonl"'] == 0
    assert ("trainmon_step_total", 'run="good.jsonl"') not in found
    assert found["trainmon_looked_seconds", ""] > 1.7e9
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".tmp")] == []


def test_a_run_that_cannot_be_judged_has_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_bytes(b"")
    run("watch", "empty.jsonl", "--headless", "--until-idle", "0", "--prometheus", "t.prom", cwd=tmp_path)
    names = {name for name, _ in samples(tmp_path / "t.prom")}
    assert not names & {"trainmon_verdict", "trainmon_step", "trainmon_open_episodes", "trainmon_signal"}


def test_names_of_any_kind_are_escaped(tmp_path: Path) -> None:
    name = 'a"\\b\n{c}\x1b[31m.jsonl'
    lines = [json.dumps({"step": step, "loss": 2.5, 'loss/so"ur\\ce': 1.0}) for step in range(60)]
    (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    run("watch", ".", "--headless", "--until-idle", "0", "--prometheus", "t.prom", cwd=tmp_path)
    assert any(name == "trainmon_verdict" for name, _ in samples(tmp_path / "t.prom"))


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    from trainmon.monitor.prometheus import write
    from trainmon.monitor.snapshot import FleetSnapshot

    path = tmp_path / "t.prom"
    write(FleetSnapshot(()), path)
    stop = threading.Event()

    def again() -> None:
        while not stop.is_set():
            write(FleetSnapshot((), taken_at=1e9), path)

    writer = threading.Thread(target=again)
    writer.start()
    try:
        for _ in range(300):
            assert path.read_text(encoding="utf-8").endswith("\n")
    finally:
        stop.set()
        writer.join()


def test_a_place_that_cannot_be_written_is_said_and_watching_goes_on(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text(GOOD, encoding="utf-8")
    made = run("watch", "good.jsonl", "--headless", "--until-idle", "0", "--prometheus", "no/t.prom", cwd=tmp_path)
    assert made.returncode == 0
    problems = [json.loads(line) for line in made.stdout.splitlines() if '"problem"' in line]
    assert len(problems) == 1
    assert "no/t.prom" in problems[0]["text"]


def test_it_goes_with_headless(tmp_path: Path) -> None:
    made = run("watch", "--prometheus", "t.prom", cwd=tmp_path)
    assert made.returncode == 2
    assert "--headless" in made.stderr


def test_a_pipe_that_nobody_reads_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.prom")
    (tmp_path / "link.prom").symlink_to("run.prom")
    for name in ("run.prom", "link.prom"):
        with pytest.raises(OSError, match="plain file"):
            write(FleetSnapshot(()), tmp_path / name)
