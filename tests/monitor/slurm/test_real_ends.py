"""Ends that a Slurm of two nodes really makes: no memory, preempted, a node that fails; het jobs; met dependencies."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.monitor.slurm.conftest import start
from tests.monitor.slurm.test_real import TRAIN, _wait_for, check, run_of
from tests.slurmd import Cluster

pytestmark = [pytest.mark.xdist_group("slurm"), pytest.mark.slow]

_MORE = """\
SelectTypeParameters=CR_Core_Memory
DefMemPerNode=100
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=weak Nodes=ALL MaxTime=INFINITE State=UP PreemptMode=CANCEL
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10
"""
_EATER = """\
import time
kept = []
for step in range(1, 101):
    kept.append(bytearray(20 << 20))
    print(f"step {step} | loss 2.5", flush=True)
    time.sleep(0.2)
"""


class Ends:
    """The cluster, and where its jobs write."""

    def __init__(self, cluster: Cluster, root: Path) -> None:
        self.cluster = cluster
        self.root = root
        (root / "train.py").write_text(TRAIN, encoding="utf-8")
        (root / "eat.py").write_text(_EATER, encoding="utf-8")
        self.forever = f"{sys.executable} {root}/train.py 1 5000 0.05 ok"

    def submit(self, name: str, script: str, *options: str) -> str:
        return self.cluster.submit(script, "-J", name, *options, cwd=self.root / name)

    def trains(self, name: str, script: str, *options: str) -> str:
        """Submits it and waits until it trains."""
        job = self.submit(name, script, *options)
        _wait_for(self.root / name / f"slurm-{job}.out", "step 5 ")
        return job

    def run(self, job: str) -> dict[str, Any]:
        return run_of(self.cluster, f"slurm:{job}")


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ends]:
    for cluster in start(Cluster(tmp_path_factory.mktemp("e"), nodes=("n1", "n2"), more=_MORE)):
        yield Ends(cluster, tmp_path_factory.mktemp("jobs"))


@pytest.mark.parametrize("how", ["", "srun "])
def test_a_job_that_takes_more_memory_than_it_may(ends: Ends, how: str) -> None:
    job = ends.submit("eater", f"{how}{sys.executable} {ends.root}/eat.py", "--mem=200")
    ends.cluster.wait_state(job, "FAILED", "OUT_OF_MEMORY")
    _wait_for(ends.root / "eater" / f"slurm-{job}.out", "exceeded memory limit")
    run = ends.run(job)
    assert (run["state"], run["verdict"]) == ("oom", "FAIL")
    assert "memory limit" in run["root_error"]  # slurmstepd says it twice, in either order


def test_a_job_that_gives_way_to_a_more_urgent_one(ends: Ends) -> None:
    job = ends.trains("weak", ends.forever, "-p", "weak", "-w", "n1", "-c", "64")
    urgent = ends.submit("urgent", "true", "-p", "urgent", "-w", "n1", "-c", "64")
    ends.cluster.wait_state(job, "PREEMPTED")
    run = ends.run(job)
    assert (run["state"], run["verdict"]) == ("preempted", "WARN")
    assert run["job"]["state"] == "PREEMPTED"
    ends.cluster.wait_state(urgent, "COMPLETED")


def test_a_job_that_gives_way_and_waits_for_its_next_turn(ends: Ends) -> None:
    job = ends.trains("polite", ends.forever, "-w", "n1", "-c", "64")
    # It holds the node until it is cancelled: else the next turn may begin, and the log anew, meanwhile.
    urgent = ends.submit("urgent", "sleep 600", "-p", "urgent", "-w", "n1", "-c", "64")
    ends.cluster.wait_state(job, "PENDING")
    _wait_for(ends.root / "polite" / f"slurm-{job}.out", "DUE TO PREEMPTION ***\n")  # the node says so in its own time
    run = ends.run(job)
    assert (run["state"], run["job"]["restarts"]) == ("requeued", 1)
    assert "DUE TO PREEMPTION" in (run["root_error"] or ""), run
    ends.cluster.call("scancel", job, urgent)
    ends.cluster.wait_state(urgent, "CANCELLED")


def test_a_het_job_is_one_run_by_any_of_its_names(ends: Ends) -> None:
    job = ends.submit("het", ends.forever, "-w", "n1", ":", "-w", "n2")
    log = ends.root / "het" / f"slurm-{job}.out"
    _wait_for(log, "step 5 ")
    for target in (f"slurm:{job}", f"slurm:{job}+0", f"slurm:{job}+1", str(log)):
        run = run_of(ends.cluster, target)
        assert (run["state"], run["job"]["id"], run["job"]["nodes"]) == ("running", f"{job}+0", "n1,n2"), target
        assert [Path(file["path"]).name for file in run["files"]] == [log.name]
    assert check(ends.cluster, f"slurm:{job}+7")["problems"] == [
        f"slurm:{job}+7: Slurm knows no job {job}+7; check the number, or name the job's log file"
    ]
    ends.cluster.call("scancel", job)


def test_jobs_whose_dependency_was_met_are_one_run(ends: Ends) -> None:
    """Each finished, their scripts differ, and squeue says no more that one waited for the other."""
    folder = ends.root / "pre"

    def part(first: int, last: int, *options: str) -> str:
        script = f"{sys.executable} {ends.root}/train.py {first} {last} 0.001 ok"
        job = ends.submit("pre", script, "-o", "pre-%j.log", *options)
        (folder / "job.sh").rename(folder / f"{job}.sh")
        return job

    first = part(1, 50)
    ends.cluster.wait_state(first, "COMPLETED")
    second = part(51, 90, f"--dependency=afterok:{first}")
    third = part(91, 120, "-d", f"afterany:{second}")
    other = part(1, 40)
    for job in (third, other):
        ends.cluster.wait_state(job, "COMPLETED")
    deadline = time.monotonic() + 120  # the accounting learns of it later than the controller
    while len(ends.run(third)["job_chain"]) < 3 and time.monotonic() < deadline:
        time.sleep(0.5)
    for targets in ([f"slurm:{third}"], [str(folder / f"pre-{job}.log") for job in (third, first, second)]):
        run = run_of(ends.cluster, *targets)
        assert [job["id"] for job in run["job_chain"]] == [first, second, third], targets
        assert [attempt["first"] for attempt in run["attempts"]] == [1, 51, 91]
    runs = check(ends.cluster, str(folder))["runs"]
    assert sorted(len(run["job_chain"]) or 1 for run in runs) == [1, 3]


def test_a_node_that_fails(ends: Ends) -> None:
    """Last: it takes a node away."""
    job = ends.trains("lost", ends.forever, "--no-requeue", "-w", "n2")
    again = ends.trains("again", ends.forever, "--requeue", "-w", "n2")
    ends.cluster.call("scontrol", "update", "nodename=n2", "state=down", "reason=test")
    ends.cluster.wait_state(job, "NODE_FAIL")
    run = ends.run(job)
    assert (run["state"], run["verdict"]) == ("node_fail", "FAIL")
    ends.cluster.wait_state(again, "PENDING")
    run = ends.run(again)
    assert (run["state"], run["job"]["restarts"]) == ("requeued", 1)
