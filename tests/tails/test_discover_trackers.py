"""Directories as experiment trackers write them: what is a run, and what is only a part or a summary of one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainmon.monitor.frame import SignalKey
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.discover import discover

LOSS, HELD_OUT, NORM = SignalKey("loss.train"), SignalKey("eval.nll"), SignalKey("grad.norm")
STEPS = range(1, 31)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def runs_below(folder: Path) -> list[list[str]]:
    return [[str(file.path.relative_to(folder)) for file in run.files] for run in discover([], folder).runs]


def values(run: RunSnapshot, key: SignalKey) -> list[float]:
    series = run.series.get(key)
    return [] if series is None else series.values.tolist()


def loss(step: int) -> float:
    return 3 - step / 20


def test_mlflow_keeps_one_metric_a_file_and_each_directory_is_one_run(tmp_path: Path) -> None:
    for run in ("ab", "cd"):
        for name in ("loss", "val/loss", "grad_norm", "mfu", "train.ppl"):
            rows = "".join(f"{1736935200000 + step} {loss(step)} {step}\n" for step in STEPS)
            write(tmp_path / "mlruns" / "0" / run / "metrics" / name, rows)
        write(tmp_path / "mlruns" / "0" / run / "meta.yaml", "run_id: x\n")
        write(tmp_path / "mlruns" / "0" / run / "params" / "lr", "0.1")
    assert [len(files) for files in runs_below(tmp_path)] == [6, 6]  # with the rate, which is one of its settings
    first, _ = judge([], cwd=tmp_path).runs
    assert first.facts["peak_lr"] == 0.1
    assert values(first, LOSS) == values(first, HELD_OUT) == values(first, NORM) == [loss(step) for step in STEPS]
    (alone,) = judge([str(tmp_path / "mlruns" / "0" / "ab" / "metrics")], cwd=tmp_path).runs
    assert len(values(alone, LOSS)) == 30


def test_a_directory_that_is_only_called_metrics_may_hold_several_runs(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / "metrics" / name / "metrics.csv", "step,loss\n" + "".join(f"{s},{loss(s)}\n" for s in STEPS))
    assert len(runs_below(tmp_path)) == 2


def test_dvclives_summary_is_no_second_run(tmp_path: Path) -> None:
    live = tmp_path / "dvclive"
    write(live / "metrics.json", json.dumps({"train": {"loss": 1.5}, "step": 29}))
    for name in ("train/loss", "val/loss", "gpu/util"):
        rows = "".join(f"{step}\t{loss(step)}\n" for step in STEPS)
        write(live / "plots" / "metrics" / f"{name}.tsv", "step\t" + name.partition("/")[2] + "\n" + rows)
    (files,) = runs_below(tmp_path)
    assert sorted(files) == [f"dvclive/plots/metrics/{name}.tsv" for name in ("gpu/util", "train/loss", "val/loss")]


def test_a_table_in_a_text_file_is_found(tmp_path: Path) -> None:
    rows = "".join(f"{step}\t{step * 1.5}\t{loss(step)}\n" for step in STEPS)
    write(tmp_path / "a" / "progress.txt", "Epoch\tAverageEpRet\tLossV\n" + rows)
    write(tmp_path / "b" / "notes.txt", "step one, then loss\nand 3, 4\n")
    write(tmp_path / "b" / "classes.txt", "epoch\treward\ncat\tdog\n")
    assert runs_below(tmp_path) == [["a/progress.txt"]]


def test_a_table_and_json_lines_of_one_ray_trial_are_one_run(tmp_path: Path) -> None:
    rows = [{"training_iteration": step, "loss": loss(step)} for step in STEPS]
    write(tmp_path / "trial" / "result.json", "".join(json.dumps(row) + "\n" for row in rows))
    table = "".join(f"{row['training_iteration']},{row['loss']}\n" for row in rows)
    write(tmp_path / "trial" / "progress.csv", "training_iteration,loss\n" + table)
    (run,) = judge([], cwd=tmp_path).runs
    assert values(run, LOSS) == [loss(step) for step in STEPS]


def test_states_of_checkpoints_beside_the_root_one_are_one_run(tmp_path: Path) -> None:
    for folder, last in (("checkpoint-10", 10), ("checkpoint-20", 20), (".", 30)):
        history = [{"loss": loss(step), "step": step} for step in STEPS if step <= last]
        write(tmp_path / "out" / folder / "trainer_state.json", json.dumps({"log_history": history}))
    (run,) = judge([], cwd=tmp_path).runs
    assert values(run, LOSS) == [loss(step) for step in STEPS]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "# run: x\n# lr=0.1, step 3\nstep,loss\n1,2.5\n"),
        ("a.csv", "sep=;\nstep;loss\n1;2,5\n"),
        ("a.json", '{"loss": [[1, 2.5], [2, 2.25]]}'),
        ("a.json", '{"loss": [{"step": 1, "value": 2.5}]}'),
        ("a.json", '{"columns": ["step", "loss"], "data": [[1, 2.5], [2, 2.25]]}'),
        ("a.jsonl", '{"step": {"global": 1}, "loss": {"train": 2.5}}\n'),
    ],
)
def test_other_shapes_are_found_by_what_they_hold(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path / name, text)
    write(tmp_path / "data" / name, text.replace("loss", "name").replace("step", "page"))
    assert runs_below(tmp_path) == [[name]]


def test_guild_keeps_its_runs_out_of_sight(tmp_path: Path) -> None:
    for name in ("1f3a", "2b4c"):
        output = "".join(f"step: {step} loss: {loss(step)}\n" for step in STEPS)
        write(tmp_path / ".guild" / "runs" / name / ".guild" / "output", output)
        write(tmp_path / ".guild" / "runs" / name / ".guild" / "attrs" / "flags", "lr: 0.1\n")
    write(tmp_path / ".cache" / "train.log", output)
    runs = [[f".guild/runs/{name}/.guild/output"] for name in ("1f3a", "2b4c")]
    assert runs_below(tmp_path) == runs
    assert values(judge([], cwd=tmp_path).runs[0], LOSS) == [loss(step) for step in STEPS]


def test_what_waits_to_be_sent_to_neptune_is_a_run(tmp_path: Path) -> None:
    def logged(step: int) -> dict[str, object]:
        values = [{"value": loss(step), "step": float(step), "ts": 1.7e9 + step}]
        return {"obj": {"type": "LogFloats", "path": ["train", "loss"], "values": values}, "version": step}

    write(
        tmp_path / ".neptune" / "offline" / "run__4f3c" / "exec-1" / "data-1.log",
        "".join(json.dumps(logged(step)) + "\n" for step in STEPS),
    )
    (run,) = judge([], cwd=tmp_path).runs
    assert values(run, LOSS) == [loss(step) for step in STEPS]


def test_a_store_that_only_its_tracker_reads_is_named(tmp_path: Path) -> None:
    write(tmp_path / "exp" / ".aim" / "VERSION", "0.4.0")
    [problem] = discover([str(tmp_path)], tmp_path).problems
    assert "but a store that only Aim can read: exp/.aim; have the trainer log" in problem
    write(tmp_path / "exp" / "train.log", "".join(f"step: {step} loss: {loss(step)}\n" for step in STEPS))
    assert discover([str(tmp_path)], tmp_path).problems == ()


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("vdl/vdlrecords.1700000000.log", "VisualDL"),
        ("summary/ms.events.summary.1700000000.host_MS", "MindInsight"),
        ("swanlog/run-20240501_101500-a1b2c3d4/logs/loss/10.log", "the SwanLab that wrote it"),
    ],
)
def test_a_store_that_is_not_read_is_named_with_what_to_do(tmp_path: Path, path: str, owner: str) -> None:
    write(tmp_path / path, '{"index": 1, "data": 2.5}\n' if "swanlog" in path else "\x18\0\0\0\0\0\0\0abcd")
    found = discover([], tmp_path)
    assert not found.runs
    [problem] = found.problems
    assert f"but a store that only {owner} can read" in problem
    assert "have the trainer log JSON lines or event files too" in problem


def test_event_files_and_a_metrics_file_of_one_experiment_are_one_run(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"step": step, "loss": loss(step)}) + "\n" for step in STEPS)
    for project in ("math", "code"):
        write(tmp_path / project / "ppo_a.jsonl", rows)
        write(tmp_path / "tensorboard_log" / project / "ppo_a" / "events.out.tfevents.1.host.1.0", "")
    write(tmp_path / "tensorboard_log" / "math" / "ppo_b" / "events.out.tfevents.1.host.1.0", "")
    write(tmp_path / "tensorboard_log" / "exp" / "events.out.tfevents.1.host.1.0", "")
    write(tmp_path / "exp.jsonl", rows)
    assert sorted(map(len, runs_below(tmp_path))) == [1, 2, 2, 2]


@pytest.mark.parametrize("events", ["tensorboard_log/ppo_b", "ppo_a", "runs/version_0", "other/ppo_a"])
def test_event_files_of_another_experiment_stay_a_run(tmp_path: Path, events: str) -> None:
    rows = "".join(json.dumps({"step": step, "loss": loss(step)}) + "\n" for step in STEPS)
    for name in ("ppo_a", "version_0"):
        write(tmp_path / "here" / f"{name}.jsonl", rows)
    write(tmp_path / events / "events.out.tfevents.1.host.1.0", "")
    write(tmp_path / "there" / "loss_b.jsonl", rows)
    assert len(runs_below(tmp_path)) == 4
