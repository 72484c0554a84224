"""Against a real Slurm: jobs that write nowhere, whose output cannot be opened, that are cancelled while they wait."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.monitor.slurm.test_real import TRAIN, check, run_of
from tests.slurmd import Cluster

pytestmark = [pytest.mark.xdist_group("slurm"), pytest.mark.slow]


def test_outputs_that_are_not_there(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    train = f"{sys.executable} {tmp_path}/train.py 1 100 0.001 ok"
    quiet = cluster.submit(f"{train} > train.log", "-o", "/dev/null", cwd=tmp_path / "quiet")
    empty = cluster.submit(train, "-o", "/dev/null", cwd=tmp_path / "empty")
    unopened = cluster.submit(train, "-o", "no/such/%j.log", cwd=tmp_path / "unopened")
    waits = cluster.submit("true", "--hold", cwd=tmp_path / "waits")
    for job in (quiet, empty):
        cluster.wait_state(job, "COMPLETED")
    cluster.wait_state(unopened, "FAILED")
    cluster.call("scancel", waits)
    cluster.wait_state(waits, "CANCELLED")

    run = run_of(cluster, f"slurm:{quiet}")
    assert (run["state"], run["job"]["id"], run["steps"]["last"]) == ("finished", quiet, 100)
    assert [Path(file["path"]).name for file in run["files"]] == ["train.log"]
    document = check(cluster, f"slurm:{empty}")
    assert (document["runs"], document["exit"]) == ([], 2)
    assert f"the output of job {empty} goes to /dev/null" in document["problems"][0]
    run = run_of(cluster, f"slurm:{unopened}")
    assert (run["state"], run["verdict"]) == ("crashed", "FAIL")
    assert f"is there a directory {tmp_path}/unopened/no/such on the node?" in run["state_reason"]
    run = run_of(cluster, f"slurm:{waits}")
    assert (run["state"], run["state_reason"]) == ("cancelled", f"Slurm job {waits} CANCELLED, before it started")
    assert "its job has ended" in run["files"][0]["problem"]
