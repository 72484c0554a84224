from __future__ import annotations

import json
import math
import re
import threading
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest

from trainmon.monitor.finding import Severity
from trainmon.monitor.judge import judge
from trainmon.monitor.simulate.faults import effect_of
from trainmon.monitor.simulate.model import RunModel, Step
from trainmon.monitor.simulate.simulation import (
    DEFAULT_RUNS,
    DEFAULT_SCRIPT,
    FAULTS,
    Fault,
    RunSpec,
    Simulation,
    serve,
    write_finished,
)

MAIN = replace(DEFAULT_RUNS[0], history_steps=300, checkpoint_every=50, eval_every=50)


@dataclass
class ManualClock:
    """Time moves only when someone sleeps."""

    now: float = 1_750_000_000.0
    slept: float = 0.0

    def wall(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        self.now += seconds


def written(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def simulate(folder: Path, *faults: Fault, run: RunSpec = MAIN, live_s: float = 60.0, seed: int = 0) -> Path:
    Simulation(folder, seed=seed, faults=faults, runs=(run,), clock=ManualClock()).run_to_end(live_s)
    return folder / run.name


def rows(folder: Path) -> list[dict[str, float]]:
    records = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [record for record in records if "step" in record]


def executed(*faults: Fault, run: RunSpec = MAIN, steps: int = 600) -> list[Step]:
    model = RunModel(run, (0, 0), [effect_of(fault, 0) for fault in faults])
    return list(islice(model.run(), steps))


def test_same_seed_gives_the_same_bytes_and_another_seed_does_not(tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        Simulation(tmp_path / name, seed=seed, clock=ManualClock(), history_steps=80).run_to_end(live_s=12.0)
    assert written(tmp_path / "a") == written(tmp_path / "b")
    assert written(tmp_path / "a") != written(tmp_path / "c")


def test_live_writes_what_run_to_end_writes(tmp_path: Path) -> None:
    clock = ManualClock()
    short = replace(MAIN, total_steps=360, history_steps=300)
    Simulation(tmp_path / "live", runs=(short,), faults=(), clock=clock).run_live(threading.Event())
    Simulation(tmp_path / "end", runs=(short,), faults=(), clock=ManualClock()).run_to_end()
    assert written(tmp_path / "live") == written(tmp_path / "end")
    assert rows(tmp_path / "live" / MAIN.name)[-1]["step"] == 360
    assert clock.slept == pytest.approx(60 * MAIN.step_s, rel=0.35)


def test_history_ends_where_the_run_goes_live(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path, runs=(MAIN,), faults=(), clock=ManualClock())
    simulation.write_history()
    history = rows(tmp_path / MAIN.name)
    assert [row["step"] for row in history] == list(range(1, 301))
    assert 0.0 <= ManualClock().now - history[-1]["_timestamp"] < 3.0
    simulation.run_to_end(live_s=5.0)
    assert rows(tmp_path / MAIN.name)[: len(history)] == history
    assert rows(tmp_path / MAIN.name)[len(history)]["step"] == 301


def test_serve_writes_live_until_it_is_told_to_stop(tmp_path: Path) -> None:
    class StopsAfterAWhile(ManualClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if self.slept > 5.0:
                stop.set()

    stop = threading.Event()
    serve(tmp_path / "served", seed=1, clock=StopsAfterAWhile(), stop_event=stop)
    write_finished(tmp_path / "finished", seed=1, clock=ManualClock(), live_s=30.0)
    served, finished = written(tmp_path / "served"), written(tmp_path / "finished")
    assert {path.name for path in (tmp_path / "served").iterdir()} == {run.name for run in DEFAULT_RUNS}
    assert served.keys() == finished.keys()
    assert all(finished[name].startswith(content) for name, content in served.items())
    assert len(rows(tmp_path / "served" / MAIN.name)) > DEFAULT_RUNS[0].history_steps + 30


@pytest.mark.parametrize("run", DEFAULT_RUNS, ids=lambda run: run.style)
def test_a_healthy_run_stays_within_the_bounds_of_health(run: RunSpec) -> None:
    steps = executed(run=run, steps=3000)
    loss = np.array([step.loss for step in steps])
    smooth = np.array([np.median(loss[max(0, at - 100) : at]) for at in range(30, len(loss))])
    assert (loss[30:] < 1.10 * smooth).all(), "no value is 10% above the median of those before it"
    assert loss[-300:].mean() < loss[300:600].mean() < loss[:30].mean()
    grad = np.array([step.grad_norm for step in steps])
    assert grad[100:].max() < 5 * np.median(grad[100:])
    rate = np.array([step.lr for step in steps])
    assert rate.argmax() == run.warmup_steps - 1
    assert rate[0] == pytest.approx(run.peak_lr / run.warmup_steps)


def test_parts_agree_with_the_whole() -> None:
    for step in executed(steps=200):
        assert step.rank_loss.mean() == pytest.approx(step.loss, rel=1e-9)
        assert float(step.source_loss @ step.source_share) == pytest.approx(step.loss * step.source_share.sum())
        assert step.step_s >= step.rank_compute_s.max()


@pytest.mark.parametrize("run", [MAIN, replace(DEFAULT_RUNS[2], eval_every=50)], ids=lambda run: run.style)
def test_every_fault_changes_what_a_step_measures(run: RunSpec) -> None:
    healthy = [repr(step) for step in executed(run=run, steps=160)]
    for name in FAULTS:
        faulty = [repr(step) for step in executed(Fault(name, at=100), run=run, steps=160)]
        assert faulty[:100] == healthy[:100], f"{name} acts before its step"
        applies = {"expert_collapse": run.experts > 0, "bad_source": bool(run.sources)}.get(name, True)
        assert (faulty[100:] != healthy[100:]) == applies, f"{name} changes nothing, or what it should leave alone"


def test_sizes_are_what_the_faults_say() -> None:
    healthy = executed(steps=400)

    def after(name: str, size: float) -> list[Step]:
        return executed(Fault(name, at=300, size=size), steps=400)

    assert after("co_spike", 1.7)[300].loss == pytest.approx(1.7 * healthy[300].loss)
    assert after("co_spike", 1.7)[399].loss == pytest.approx(healthy[399].loss)
    assert after("level_shift", 1.15)[399].loss == pytest.approx(1.15 * healthy[399].loss)
    assert after("slow_rank", 1.4)[350].rank_compute_s[5] == pytest.approx(1.4 * healthy[350].rank_compute_s[5])
    assert after("lr_jump", 10.0)[350].lr == pytest.approx(10 * healthy[350].lr)
    assert after("grad_spike", 20.0)[300].grad_norm == pytest.approx(20 * healthy[300].grad_norm)
    assert after("bad_source", 1.3)[350].loss == pytest.approx(healthy[350].loss)
    assert after("nan", 8.0)[307].loss < float("inf")
    assert all(math.isnan(step.loss) for step in after("nan", 8.0)[308:])


def test_expert_collapse_floods_one_expert_of_every_second_layer() -> None:
    run = DEFAULT_RUNS[2]
    load = executed(Fault("expert_collapse", at=0, rank=3), run=run, steps=300)[-1].load
    assert load is not None
    violation = load.max(axis=1) / load.mean(axis=1) - 1.0
    assert (violation[::2] > 3.0).all()
    assert (violation[1::2] < 0.5).all()
    assert load.argmax(axis=1)[::2].tolist() == [3] * len(load[::2])


def test_a_crash_goes_back_to_the_last_checkpoint_and_repeats_the_same_losses(tmp_path: Path) -> None:
    folder = simulate(tmp_path, Fault("oom_crash", at=70, size=6.0), live_s=40.0)
    steps = [row["step"] for row in rows(folder)]
    back = next(at for at in range(1, len(steps)) if steps[at] <= steps[at - 1])
    assert (steps[back - 1], steps[back]) == (371, 351)
    by_step = [(row["step"], row["loss_metrics/global_avg_loss"]) for row in rows(folder)]
    assert by_step[back : back + 20] == by_step[back - 21 : back - 1]
    times = [row["_timestamp"] for row in rows(folder)]
    assert times[back] - times[back - 1] > 6.0
    text = (folder / "train.log").read_text()
    died, loaded = (
        text.index("CUDA out of memory"),
        text.index("Loading the checkpoint from ./outputs/checkpoint/step-350."),
    )
    assert died < loaded < text.index("Training starts at step 351")


def test_a_run_that_dies_for_good_ends(tmp_path: Path) -> None:
    folder = simulate(tmp_path, Fault("nccl_crash", at=10), live_s=1e9)
    assert rows(folder)[-1]["step"] == 311
    assert "collective operation timeout" in (folder / "train.log").read_text().splitlines()[-16]


def test_both_files_of_the_main_run_say_the_same(tmp_path: Path) -> None:
    folder = simulate(tmp_path, live_s=3.0)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", (folder / "train.log").read_text())
    printed = re.findall(r"INFO - step: +(\d+) +loss: +([\d.]+)", plain)
    assert len(printed) == len(rows(folder))
    for (step, loss), row in zip(printed, rows(folder), strict=True):
        assert int(step) == row["step"]
        assert float(loss) == pytest.approx(row["loss_metrics/global_avg_loss"], abs=1e-5)


def test_a_finished_run_says_so(tmp_path: Path) -> None:
    words = ("Training completed", "Total training time", "eval/loss", "after training is done", "Training completed")
    for run, word in zip(DEFAULT_RUNS, words, strict=True):
        small = replace(run, total_steps=60, history_steps=10, warmup_steps=5, eval_every=60)
        folder = simulate(tmp_path, run=small, live_s=1e9)
        last = max(folder.glob("*.log*"), default=folder / "metrics.jsonl")
        assert word in last.read_text()[-300:] or word in last.read_text().splitlines()[-1]


def test_the_demo_script_tells_its_story_within_a_minute(tmp_path: Path) -> None:
    Simulation(tmp_path, seed=0, faults=DEFAULT_SCRIPT, clock=ManualClock()).run_to_end(live_s=60.0)
    main = tmp_path / DEFAULT_RUNS[0].name
    table = rows(main)
    live = table[DEFAULT_RUNS[0].history_steps :]
    assert max(row["loss_metrics/global_avg_loss"] for row in live) > 1.5 * live[0]["loss_metrics/global_avg_loss"]
    assert max(row["step_time/rank5(s)"] for row in live) > 1.3 * max(row["step_time/rank0(s)"] for row in live)
    assert max(row["memory/max_reserved(%)"] for row in live) > 99.0
    steps = [row["step"] for row in live]
    assert any(after < before for before, after in pairwise(steps)), "restarted within the minute"
    assert "loss: nan" in (tmp_path / DEFAULT_RUNS[1].name / "train.log").read_text()


def test_the_product_judges_the_demo_as_its_script_has_it(tmp_path: Path) -> None:
    clock = ManualClock()
    write_finished(tmp_path, seed=0, clock=clock)
    runs = {run.name: run for run in judge([str(tmp_path)], cwd=tmp_path, clock=clock).runs}
    assert {name: run.verdict.value for name, run in runs.items()} == {
        "llama-350m": "WARN",
        "gpt-124m-lr6e-3": "FAIL",
        "moe-8x160m": "WARN",
        "llama-7b-base": "PASS",
        "qwen-1.5b-sft": "PASS",
    }
    wrong = {name: {check.id for check in run.checks if check.verdict.value == "FAIL"} for name, run in runs.items()}
    assert wrong["llama-350m"] == set(), "the second attempt is healthy: what the first died of is over"
    memory = [e for e in runs["llama-350m"].episodes if e.check == "sys.memory" and e.severity >= Severity.WARN]
    assert memory
    assert all(e.recovered and "ended with its attempt" in e.what for e in memory)
    assert wrong["gpt-124m-lr6e-3"] == {"loss.nonfinite"}
    warned = {check.id for check in runs["llama-350m"].checks if check.verdict.value == "WARN"}
    assert warned >= {"loss.spike", "spike.co", "sys.step_time", "sys.straggler", "sys.memory"}
    assert runs["llama-350m"].attempts[0] == (1.0, 4351.0)
    assert "out of memory" in str(runs["llama-350m"].outlived_error)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_the_product_finds_nothing_wrong_with_healthy_runs(tmp_path: Path, seed: int) -> None:
    clock = ManualClock()
    write_finished(tmp_path, seed=seed, clock=clock, faults=(), live_s=200.0)
    for run in judge([str(tmp_path)], cwd=tmp_path, clock=clock).runs:
        worst = [(check.id, check.what) for check in run.checks if check.verdict.value in ("WARN", "FAIL")]
        assert all(check == "grad.norm" for check, _ in worst), (run.name, worst)  # nanochat logs no gradient norm


def test_an_unknown_fault_or_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no_such_fault"):
        Simulation(tmp_path, faults=(Fault("no_such_fault", at=1),))
    with pytest.raises(ValueError, match="no run is called nowhere"):
        Simulation(tmp_path, faults=(Fault("nan", at=1, run="nowhere"),))
    assert not any(tmp_path.iterdir())
