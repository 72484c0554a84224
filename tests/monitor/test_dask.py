"""Runs judged by a real dask.distributed cluster of two workers on this machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_cli import BAD, GOOD, run

distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
pytestmark = pytest.mark.xdist_group("dask")  # one cluster for all


class Cluster:
    """A scheduler and workers as processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.file = folder / "scheduler.json"

    def start(self, workers: int) -> str:
        self._spawn(
            "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(self.file)
        )
        deadline = time.monotonic() + 60
        while not self.file.exists() or not self.file.read_text(encoding="utf-8").strip():
            assert time.monotonic() < deadline, "the scheduler did not start"
            time.sleep(0.1)
        self.address: str = json.loads(self.file.read_text(encoding="utf-8"))["address"]
        for _ in range(workers):
            self.worker()
        if workers:
            with distributed.Client(self.address, set_as_default=False) as client:
                client.wait_for_workers(workers, timeout=60)
        return self.address

    def worker(self) -> subprocess.Popen[bytes]:
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.folder))
        return self._spawn("distributed.cli.dask_worker", self.address, *options)

    def _spawn(self, module: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", module, *words]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)
        self.processes.append(process)
        return process

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("dask"))
    try:
        made.start(2)
        yield made
    finally:
        made.stop()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for number in range(8):
        (tmp_path / f"run{number}").mkdir()
        text = BAD if number % 3 == 0 else GOOD
        (tmp_path / f"run{number}" / "metrics.jsonl").write_text(text, encoding="utf-8")
    (tmp_path / "run7" / "metrics.jsonl").write_bytes(b"")
    return tmp_path


def verdicts(made: subprocess.CompletedProcess[str]) -> list[tuple[str, str, list[str]]]:
    runs = json.loads(made.stdout)["runs"]
    return [(one["run"], one["verdict"], [each["id"] for each in one["episodes"]]) for one in runs]


def test_a_cluster_says_what_one_process_says(cluster: Cluster, logs: Path) -> None:
    here = run("check", ".", "--json", "--jobs", "1", cwd=logs)
    there = run("check", ".", "--json", "--dask", cluster.address, cwd=logs)
    assert there.stderr == here.stderr
    assert verdicts(there) == verdicts(here)
    assert there.returncode == here.returncode == 1


def test_calibrate_learns_the_same(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "healthy.jsonl").write_text(
        "".join(
            f'{{"step": {step}, "loss": {3 - step / 2000 + (step * 37 % 101) / 4000:.6f}, "grad_norm": 0.9}}\n'
            for step in range(1, 1500)
        ),
        encoding="utf-8",
    )
    made = [
        run("calibrate", "healthy.jsonl", "-o", name, *flags, cwd=tmp_path)
        for name, flags in (("here.toml", ("--jobs", "1")), ("there.toml", ("--dask", cluster.address)))
    ]
    assert [each.returncode for each in made] == [0, 0], made[1].stderr
    here, there = ((tmp_path / name).read_text(encoding="utf-8") for name in ("here.toml", "there.toml"))
    plain = [[line for line in text.splitlines() if "date" not in line] for text in (here, there)]
    assert plain[0] == plain[1]


def test_a_worker_killed_half_way_loses_nothing(tmp_path: Path, logs: Path) -> None:
    """Its runs go to the other worker; larger logs, so that it dies in the midst of one."""
    for number in range(8):
        lines = "".join(
            f'{{"step": {step}, "loss": {3 - step / 90000:.6f}, "grad_norm": 1.0}}\n' for step in range(60_000)
        )
        (logs / f"run{number}" / "metrics.jsonl").write_text(lines, encoding="utf-8")
    own = Cluster(tmp_path / "own")
    own.folder.mkdir()
    try:
        address = own.start(2)
        victim = own.processes[1]
        timer = threading.Timer(2.5, os.kill, (victim.pid, signal.SIGKILL))
        timer.start()
        there = run("check", ".", "--json", "--dask", address, cwd=logs, TRAINMON_CACHE="off")
        timer.join()
        assert victim.wait(timeout=10) == -signal.SIGKILL
    finally:
        own.stop()
    here = run("check", ".", "--json", "--jobs", "1", cwd=logs, TRAINMON_CACHE="off")
    assert verdicts(there) == verdicts(here)
    assert len(verdicts(there)) == 8


def test_a_scheduler_that_is_not_there_is_said(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("tcp://127.0.0.1:9", "nonsense", "tcp://"):
        made = run("check", ".", "--dask", address, cwd=logs)
        assert made.returncode == 2
        assert f"--dask {address}" in made.stderr
        assert "Traceback" not in made.stderr


def test_a_scheduler_without_workers_is_said(tmp_path: Path, logs: Path) -> None:
    own = Cluster(tmp_path / "own")
    own.folder.mkdir()
    try:
        made = run("check", ".", "--dask", own.start(0), cwd=logs)
    finally:
        own.stop()
    assert made.returncode == 2
    assert "no workers" in made.stderr
