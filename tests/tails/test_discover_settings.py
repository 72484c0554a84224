"""Settings beside and above logs, and directories that one run makes anew: what belongs to which run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tails.formats import binary_writers as wandb
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.judge import judge
from trainmon.tails.discover import discover
from trainmon.tails.looks import look_at_name

LOSS = SignalKey("loss.train")


def write(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


def table(steps: range) -> str:
    return "step,loss\n" + "".join(f"{step},{3 - step / 100}\n" for step in steps)


def lines(steps: range) -> str:
    return "".join(f"step {step} | loss {3 - step / 100:.4f}\n" for step in steps)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("args.txt", "Namespace(lr=0.0003, max_steps=400, seq_len=1024, name='x')\n"),
        ("args.txt", json.dumps({"lr": 3e-4, "max_steps": 400, "seq_len": 1024})),
        ("params.txt", "lr: 0.0003\nmax_steps: 400\nseq_len: 1024\n"),
        ("operative_config.gin", "train.max_steps = 400\noptim.lr = 0.0003  # peak\ntrain.seq_len = 1024\n"),
        ("torchtune_config.yaml", "max_steps: 400\nseq_len: 1024\noptimizer:\n  lr: 3e-4\n"),
        ("config.yaml", "max_steps:\n  value: 400\nseq_len:\n  value: 1024\nlr:\n  desc: null\n  value: 0.0003\n"),
    ],
)
def test_settings_in_the_forms_that_trainers_write_them(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path / "log.csv", table(range(40)))
    write(tmp_path / name, text)
    (run,) = judge([], cwd=tmp_path).runs
    assert (run.total_steps, run.facts["peak_lr"], run.facts["seq_length"]) == (400, 3e-4, 1024)


@pytest.mark.parametrize(
    "name", ["generation_config.json", "eval_config.yaml", "tokenizer_config.json", "log_config.yaml"]
)
def test_settings_of_other_things_are_not_the_trainings(name: str) -> None:
    look = look_at_name(name)
    assert look is None or look.role != "config"


@pytest.mark.parametrize(
    "name", ["config.json", "trainconfig.yaml", "ds_config_zero3.json", "my_run_args.toml", "opt.txt"]
)
def test_settings_by_their_names(name: str) -> None:
    look = look_at_name(name)
    assert look is not None
    assert look.role == "config"


def test_settings_above_the_only_run_are_its_own(tmp_path: Path) -> None:
    write(tmp_path / "config.yaml", "max_steps: 400\n")
    write(tmp_path / "outputs" / "lora" / "log.csv", table(range(40)))
    (run,) = judge([], cwd=tmp_path).runs
    assert run.total_steps == 400
    write(tmp_path / "outputs" / "other" / "log.csv", table(range(40)))
    assert [run.total_steps for run in judge([], cwd=tmp_path).runs] == [None, None]


def test_settings_beside_the_parts_of_a_run(tmp_path: Path) -> None:
    write(tmp_path / "config.yaml", "max_steps: 400\n")
    write(tmp_path / "logs" / "train.log", lines(range(40)))
    (run,) = judge([], cwd=tmp_path).runs
    assert run.total_steps == 400


def offline(folder: Path, day: int, name: str, steps: range) -> None:
    records = [wandb.history(step, loss=3 - step / 100) for step in steps]
    place = folder / "wandb" / f"offline-run-2025010{day}_120000-{name}"
    write(place / f"run-{name}.wandb", wandb.wandb_file(records))
    write(place / "files" / "output.log", "starting\n")


def test_a_wandb_run_that_was_resumed_is_one_run_of_several_starts(tmp_path: Path) -> None:
    offline(tmp_path, 1, "abc", range(60))
    offline(tmp_path, 2, "abc", range(50, 100))
    offline(tmp_path, 3, "xyz", range(40))
    first, second = judge([], cwd=tmp_path).runs
    assert first.attempts == ((0.0, 59.0), (50.0, 99.0))
    assert (first.series[LOSS].count, second.series[LOSS].count) == (110, 40)


def test_the_text_of_mmengine_belongs_to_its_numbers(tmp_path: Path) -> None:
    rows = "".join(json.dumps({"loss": 3 - step / 100, "lr": 1e-3, "step": step}) + "\n" for step in range(40))
    write(tmp_path / "20250101_120000" / "20250101_120000.log", lines(range(40)))
    for name in ("20250101_120000.json", "scalars.json"):
        write(tmp_path / "20250101_120000" / "vis_data" / name, rows)
    (run,) = judge([], cwd=tmp_path).runs
    assert (len(run.files), run.series[LOSS].count) == (3, 40)


@pytest.mark.parametrize(("name", "runs"), [("lr-AdamW", 1), ("learning_rate", 1), ("lr_0.01", 2)])
def test_a_rates_folder_of_a_writer_is_no_run_but_that_of_a_sweep_is(tmp_path: Path, name: str, runs: int) -> None:
    for folder, tag in (("", "loss"), (name, "lr" if runs == 1 else "loss")):
        events = b"".join(wandb.event(step, wandb.simple(tag, 0.5)) for step in range(20))
        write(tmp_path / folder / "events.out.tfevents.1.h.1.0", wandb.version() + events)
    assert len(discover([], tmp_path).runs) == runs
