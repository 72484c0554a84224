"""Against a real Slurm: jobs that finish, fail, are cancelled, reach the limit, are requeued, arrays and chains."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.slurmd import Cluster
from tests.sshd import Sshd
from trainmon.monitor.slurm import squeue
from trainmon.monitor.slurm.runner import Answer, LocalRunner, plainly
from trainmon.monitor.slurm.scheduler import Scheduler
from trainmon.monitor.snapshot import JobInfo
from trainmon.tails.clock import SystemClock

pytestmark = [pytest.mark.xdist_group("slurm"), pytest.mark.slow]

TRAIN = """\
import sys, time
first, last, pause, end = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
for step in range(first, last + 1):
    print(f"step {step} | loss {6 - step / 500:.4f} | grad_norm 1.01 | lr 1.0e-4", flush=True)
    if step % 50 == 0:
        print(f"saved checkpoint to ckpt/step_{step}", flush=True)
    time.sleep(pause)
if end == "raise":
    raise ValueError("shard 7 is damaged")
"""


@dataclass(frozen=True)
class Jobs:
    """Everything is submitted at once and looked at in turn, so that the slow ones are done when they are asked for."""

    root: Path
    ids: dict[str, str]


class Through:
    """The real commands, found by the cluster's own environment; counts what was asked."""

    def __init__(self, cluster: Cluster, forbid: str = "") -> None:
        self.cluster = cluster
        self.forbid = forbid
        self.asked: list[list[str]] = []

    def run(self, argv: Sequence[str], timeout_s: float) -> Answer:
        self.asked.append(list(argv))
        if self.forbid and self.forbid in argv:
            return Answer(1, stderr=f"unrecognized option '{self.forbid}'")
        return LocalRunner().run(["env", f"SLURM_CONF={self.cluster.environ['SLURM_CONF']}", *argv], timeout_s)


@pytest.fixture(scope="module")
def jobs(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Jobs:
    root = tmp_path_factory.mktemp("jobs")
    (root / "train.py").write_text(TRAIN, encoding="utf-8")
    ids: dict[str, str] = {}

    def submit(name: str, run: str, *options: str, folder: str = "") -> str:
        ids[name] = cluster.submit(run, "-J", folder or name, *options, cwd=root / (folder or name))
        return ids[name]

    def train(first: int, last: int, pause: float, end: str = "ok") -> str:
        return f"{sys.executable} {root}/train.py {first} {last} {pause} {end}"

    submit("limit", train(1, 5000, 0.05), "--time=5", "-o", "train-%j.log", folder="chain")
    submit("next", train(51, 300, 0.001), "-o", "train-%j.log", "-d", f"afterany:{ids['limit']}", folder="chain")
    submit("finish", f"echo SLURM_JOB_ID=$SLURM_JOB_ID\n{train(1, 300, 0.001)}", "-o", "my train.log")
    submit("fail", train(1, 300, 0.001, "raise"), "-o", "%x-%5j|%N.log", "-e", "err.%A")
    submit("hidden", train(1, 300, 0.001, "raise") + "\necho all done")
    submit("cancel", train(1, 5000, 0.05))
    submit("array", train(1, 200, 0.001), "--array=1-2%2")
    submit("held", "true", "--hold")
    submit("odd", "sleep 3000", "-J", "two\nlines | \x1b[31mred", "-o", "odd-%j.log")
    again = f'if [ "$SLURM_RESTART_COUNT" ]; then {train(41, 2000, 0.3)}; else {train(1, 60, 0.005)}; sleep 99; fi'
    submit("requeue", again, "--open-mode=append")
    for name in ("limit", "cancel", "requeue"):
        cluster.wait_state(ids[name], "RUNNING")
    _wait_for(root / "requeue" / f"slurm-{ids['requeue']}.out", "step 60 ")
    _wait_for(root / "cancel" / f"slurm-{ids['cancel']}.out", "step 5 ")
    _wait_for(root / "chain" / f"train-{ids['limit']}.log", "step 60 ")
    # A limit is counted in minutes; its end can be moved to now, and is seen within half a minute.
    cluster.call("scontrol", "update", f"jobid={ids['limit']}", "EndTime=now+1")
    cluster.call("scancel", ids["cancel"])
    cluster.call("scontrol", "requeue", ids["requeue"])
    return Jobs(root, ids)


def _wait_for(path: Path, text: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if path.exists() and text in path.read_text(encoding="utf-8"):
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} never held {text!r}")


def check(cluster: Cluster, *arguments: str) -> dict[str, Any]:
    """The document of ``trainmon check --json``."""
    done = subprocess.run(
        [sys.executable, "-m", "trainmon", "check", "--json", *arguments],
        env=cluster.environ, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def run_of(cluster: Cluster, *arguments: str) -> dict[str, Any]:
    runs = check(cluster, *arguments)["runs"]
    assert len(runs) == 1, [run["run"] for run in runs]
    found: dict[str, Any] = runs[0]
    return found


def test_a_job_that_finished(cluster: Cluster, jobs: Jobs) -> None:
    job = jobs.ids["finish"]
    cluster.wait_state(job, "COMPLETED")
    run = run_of(cluster, f"slurm:{job}")
    assert (run["run"], run["state"], run["verdict"]) == (f"finish-{job}", "finished", "PASS")
    assert run["steps"]["last"] == 300
    assert [Path(file["path"]).name for file in run["files"]] == ["my train.log"]
    assert (run["job"]["exit_code"], run["job"]["signal"], run["job"]["nodes"]) == (0, None, cluster.host)


def test_the_same_by_its_path_and_not_when_slurm_may_not_be_asked(cluster: Cluster, jobs: Jobs) -> None:
    path = str(jobs.root / "finish" / "my train.log")
    assert run_of(cluster, path)["job"]["id"] == jobs.ids["finish"]
    silent = run_of(cluster, "--no-slurm", path)
    assert (silent["job"], silent["job_chain"]) == (None, [])
    assert silent["state"] != "finished"


def test_a_job_that_failed_quotes_the_error_and_the_exit_code(cluster: Cluster, jobs: Jobs) -> None:
    job = jobs.ids["fail"]
    cluster.wait_state(job, "FAILED")
    run = run_of(cluster, f"slurm:{job}")
    assert (run["state"], run["verdict"]) == ("crashed", "FAIL")
    assert run["root_error"] == "ValueError: shard 7 is damaged"
    assert "FAILED" in run["state_reason"]
    assert "exit code 1" in run["state_reason"]
    assert {Path(file["path"]).name for file in run["files"]} == {
        f"fail-{int(job):05d}|{cluster.host}.log", f"err.{job}",
    }  # fmt: skip


def test_a_script_that_hides_a_failure_does_not_hide_it_here(cluster: Cluster, jobs: Jobs) -> None:
    job = jobs.ids["hidden"]
    cluster.wait_state(job, "COMPLETED")
    run = run_of(cluster, f"slurm:{job}")
    assert run["state"] == "crashed"
    assert "hid the failure" in run["state_reason"]


def test_a_job_that_was_cancelled(cluster: Cluster, jobs: Jobs) -> None:
    job = jobs.ids["cancel"]
    cluster.wait_state(job, "CANCELLED")
    run = run_of(cluster, f"slurm:{job}")
    assert (run["state"], run["verdict"]) == ("cancelled", "WARN")
    assert run["job"]["state"] == "CANCELLED"


def test_a_job_that_is_held_waits_for_what_waiting_does_not_bring(cluster: Cluster, jobs: Jobs) -> None:
    run = run_of(cluster, f"slurm:{jobs.ids['held']}")
    assert (run["state"], run["verdict"]) == ("queued", "WARN")
    assert "JobHeldUser" in run["state_reason"]


def test_the_tasks_of_an_array_are_runs_of_their_own(cluster: Cluster, jobs: Jobs) -> None:
    job = jobs.ids["array"]
    for task in ("1", "2"):
        cluster.wait_state(f"{job}_{task}", "COMPLETED")
    runs = check(cluster, f"slurm:{job}")["runs"]
    assert sorted(run["run"] for run in runs) == [f"array-{job}_1", f"array-{job}_2"]
    assert sorted(Path(run["files"][0]["path"]).name for run in runs) == [
        f"slurm-{job}_1.out", f"slurm-{job}_2.out",
    ]  # fmt: skip
    one = run_of(cluster, f"slurm:{job}_2")
    assert (one["run"], one["state"]) == (f"array-{job}_2", "finished")


def test_a_name_with_a_newline_and_escapes_is_only_text(cluster: Cluster, jobs: Jobs) -> None:
    job = jobs.ids["odd"]
    cluster.wait_state(job, "RUNNING")
    run = run_of(cluster, f"slurm:{job}")
    assert run["job"]["name"] == "two\\x0alines | red"
    assert (run["job"]["id"], run["state"]) == (job, "starting")


def test_both_forms_of_squeue_say_the_same(cluster: Cluster, jobs: Jobs) -> None:
    runner = LocalRunner()
    conf = ["env", f"SLURM_CONF={cluster.environ['SLURM_CONF']}"]
    for _ in range(5):  # jobs move on between the two calls
        text = runner.run([*conf, *plainly(["squeue", "-h", "-a", "-t", "all", "-O", squeue.text_format()])], 10.0)
        document = runner.run([*conf, *plainly(["squeue", "--json"])], 10.0)
        first, second = (_known(squeue.parse_text(text.stdout, 1e9)), _known(squeue.parse_json(document.stdout, 1e9)))
        if first == second:
            break
    assert first == second
    assert set(jobs.ids.values()) - {jobs.ids["array"]} <= set(first)


def _known(jobs: list[JobInfo]) -> dict[str, dict[str, object]]:
    return {job.id: asdict(job) | {"sources": None} for job in jobs}


def test_the_text_forms_alone_tell_it_too(cluster: Cluster, jobs: Jobs) -> None:
    runner = Through(cluster, forbid="--json")
    scheduler = Scheduler(SystemClock(), runner)
    scheduler.want_mine()
    board = scheduler.look()
    assert board.problem == ""
    assert set(jobs.ids.values()) - {jobs.ids["array"]} <= set(board.jobs)
    scheduler.look()
    assert (
        sum("squeue" in argv and "--version" not in argv for argv in runner.asked) == 3
    )  # one try of --json, two looks


def test_one_call_a_round_for_all_jobs_together(cluster: Cluster, jobs: Jobs) -> None:
    runner = Through(cluster)
    scheduler = Scheduler(SystemClock(), runner)
    scheduler.want_mine()
    scheduler.want(jobs.ids.values())
    scheduler.look()
    scheduler.look()
    before = len(runner.asked)
    scheduler.look()
    assert len(runner.asked) - before == 1


def test_a_job_that_nobody_knows_is_one_line_and_the_others_go_on(cluster: Cluster, jobs: Jobs) -> None:
    document = check(cluster, "slurm:99999999", f"slurm:{jobs.ids['finish']}")
    assert [run["run"] for run in document["runs"]] == [f"finish-{jobs.ids['finish']}"]
    assert document["problems"] == [
        "slurm:99999999: Slurm knows no job 99999999; check the number, or name the job's log file"
    ]
    assert document["exit"] == 2


@pytest.fixture(scope="module")
def sshd(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A login node of that cluster: nothing of Slurm is known on our side of it."""
    made = Sshd(tmp_path_factory.mktemp("d"), [f"SetEnv SLURM_CONF={cluster.environ['SLURM_CONF']}"])
    made.start()
    yield made
    made.stop()


def far_check(sshd: Sshd, *targets: str) -> dict[str, Any]:
    """The document of ``trainmon check --json`` from a machine without Slurm."""
    done = subprocess.run(
        [sys.executable, "-m", "trainmon", "check", "--json", "-F", str(sshd.config), *targets],
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_the_job_of_a_log_on_another_host_is_asked_for_there(cluster: Cluster, jobs: Jobs, sshd: Sshd) -> None:
    cluster.wait_state(jobs.ids["fail"], "FAILED")
    [run] = far_check(sshd, f"{sshd.HOST}:{jobs.root / 'fail'}")["runs"]
    assert run["job"]["id"] == jobs.ids["fail"]
    assert (run["state"], run["job"]["exit_code"]) == ("crashed", 1)


def test_jobs_of_another_host_are_named_by_their_numbers(cluster: Cluster, jobs: Jobs, sshd: Sshd) -> None:
    fail, array = jobs.ids["fail"], jobs.ids["array"]
    cluster.wait_state(fail, "FAILED")
    cluster.wait_state(f"{array}_2", "COMPLETED")
    document = far_check(
        sshd, f"{sshd.HOST}:slurm:{fail},{array}", f"ssh://{sshd.HOST}/slurm:99999999", f"{sshd.HOST}:slurm:x"
    )
    runs = {run["run"]: run for run in document["runs"]}
    assert sorted(runs) == sorted([f"fail-{fail}", f"array-{array}_1", f"array-{array}_2"])
    assert (runs[f"fail-{fail}"]["state"], runs[f"fail-{fail}"]["root_error"]) == (
        "crashed",
        "ValueError: shard 7 is damaged",
    )
    assert runs[f"array-{array}_2"]["steps"]["last"] == 200
    assert all(file["path"].startswith(f"{sshd.HOST}:/") for run in runs.values() for file in run["files"])
    assert document["problems"] == [
        f"{sshd.HOST}:slurm:x: names no job; write slurm:123456, slurm:123456_7 (array), slurm:me, host:slurm:123456",
        f"ssh://{sshd.HOST}/slurm:99999999: Slurm knows no job 99999999; check the number, or name the job's log file",
    ]


def test_my_jobs_on_another_host(cluster: Cluster, jobs: Jobs, sshd: Sshd) -> None:
    cluster.wait_state(jobs.ids["fail"], "FAILED")
    runs = {run["run"]: run for run in far_check(sshd, f"{sshd.HOST}:slurm:me")["runs"]}
    assert runs[f"fail-{jobs.ids['fail']}"]["job"]["id"] == jobs.ids["fail"]
    assert runs[f"held-{jobs.ids['held']}"]["state"] == "queued"


def test_a_job_that_was_requeued_is_one_run_with_attempts(cluster: Cluster, jobs: Jobs) -> None:
    job = jobs.ids["requeue"]
    cluster.call("scontrol", "update", f"jobid={job}", "StartTime=now", check=False)
    cluster.wait_state(job, "RUNNING", timeout_s=150)
    _wait_for(jobs.root / "requeue" / f"slurm-{job}.out", "step 70 ")
    run = run_of(cluster, f"slurm:{job}")
    assert run["state"] == "running"
    assert [start["state"] for start in run["job_chain"]] == ["REQUEUED", "RUNNING"]
    assert len(run["attempts"]) == 2
    assert run["attempts"][1]["first"] == 41
    assert run["goodput"]["restarts"] == 1
    assert run["goodput"]["steps_lost"] == 20
    assert run["goodput"]["downtime_s"] > 0
    cluster.call("scancel", job)


def test_a_chain_is_one_run_and_the_limit_of_an_earlier_job_is_not_its_end(cluster: Cluster, jobs: Jobs) -> None:
    first, second = jobs.ids["limit"], jobs.ids["next"]
    assert cluster.wait_state(first, "TIMEOUT", timeout_s=180) == "TIMEOUT"
    by_path = run_of(cluster, str(jobs.root / "chain" / f"train-{first}.log"))
    assert by_path["job_chain"][0]["state"] == "TIMEOUT"
    cluster.wait_state(second, "COMPLETED")
    run = run_of(cluster, f"slurm:{second}")
    assert run["run"] == f"chain-{second}"
    assert [job["id"] for job in run["job_chain"]] == [first, second]
    assert [job["state"] for job in run["job_chain"]] == ["TIMEOUT", "COMPLETED"]
    assert run["state"] == "finished"
    assert [attempt["first"] for attempt in run["attempts"]] == [1, 51]
    alone = run_of(cluster, str(jobs.root / "chain" / f"train-{first}.log"))
    assert (alone["state"], alone["verdict"]) == ("time_limit", "WARN")


def test_logs_of_a_chain_that_are_named_by_their_paths_are_one_run(cluster: Cluster, jobs: Jobs, sshd: Sshd) -> None:
    first, second = jobs.ids["limit"], jobs.ids["next"]
    cluster.wait_state(second, "COMPLETED")
    logs = [str(jobs.root / "chain" / f"train-{job}.log") for job in (first, second)]
    for targets in (logs, [str(jobs.root / "chain" / "train-*.log")], [str(jobs.root / "chain")], logs[::-1]):
        run = run_of(cluster, *targets)
        assert (run["run"], run["state"]) == (f"chain-{second}", "finished"), targets
        assert [job["id"] for job in run["job_chain"]] == [first, second]
        assert [attempt["first"] for attempt in run["attempts"]] == [1, 51]
    [far] = far_check(sshd, f"{sshd.HOST}:{jobs.root / 'chain'}")["runs"]
    assert (far["run"], [attempt["first"] for attempt in far["attempts"]]) == (f"chain-{second}", [1, 51])
    apart = check(cluster, "--no-slurm", *logs)["runs"]
    assert len(apart) == 2


def test_tasks_of_an_array_and_jobs_of_other_names_stay_apart(cluster: Cluster, jobs: Jobs) -> None:
    array = jobs.ids["array"]
    cluster.wait_state(f"{array}_2", "COMPLETED")
    logs = [jobs.root / "array" / f"slurm-{array}_{task}.out" for task in (1, 2)]
    logs += [jobs.root / "hidden" / f"slurm-{jobs.ids['hidden']}.out", jobs.root / "finish" / "my train.log"]
    assert len(check(cluster, *map(str, logs))["runs"]) == 4


def test_accounting_tells_of_jobs_that_squeue_has_forgotten(cluster: Cluster, jobs: Jobs) -> None:
    job = jobs.ids["cancel"]

    class Forgetful(Through):
        def run(self, argv: Sequence[str], timeout_s: float) -> Answer:
            if "squeue" in argv and "--version" not in argv:
                return Answer(1, stderr="slurm_load_jobs error: Invalid job id specified")
            return super().run(argv, timeout_s)

    scheduler = Scheduler(SystemClock(), Forgetful(cluster))
    scheduler.want([job, jobs.ids["fail"]])
    deadline = time.monotonic() + 90  # slurmctld tells slurmdbd in its own time
    while time.monotonic() < deadline:
        board = scheduler.look()
        if len(board.jobs) == 2 and all(one.state in ("CANCELLED", "FAILED") for one in board.jobs.values()):
            break
        scheduler = Scheduler(SystemClock(), Forgetful(cluster))
        scheduler.want([job, jobs.ids["fail"]])
        time.sleep(0.5)
    assert board.jobs[job].state == "CANCELLED"
    assert board.jobs[job].reason == f"by user {os.geteuid()}"
    assert (board.jobs[jobs.ids["fail"]].state, board.jobs[jobs.ids["fail"]].exit_code) == ("FAILED", 1)
    assert board.jobs[job].sources["state"] == "sacct"
    assert board.jobs[job].work_dir == str(jobs.root / "cancel")
