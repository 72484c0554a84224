from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from trainmon.tails.discover import Discovery, discover

LOG = b"starting\nstep 1: loss 2.5, lr 1e-4\nstep 2: loss 2.4, lr 1e-4\n"
JSONL = b'{"step": 1, "loss": 2.5}\n{"step": 2, "loss": 2.4}\n'
CSV = b"step,loss,lr\n1,2.5,0.1\n"
STATE = b'{\n  "log_history": [{"loss": 2.5, "step": 1}]\n}\n'


def put(root: Path, tree: dict[str, bytes]) -> None:
    for name, content in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def shape(found: Discovery, root: Path) -> dict[str, dict[str, str]]:
    return {run.name: {str(file.path.relative_to(root)): file.role for file in run.files} for run in found.runs}


def in_tree(tmp_path: Path, tree: dict[str, bytes], *targets: str) -> dict[str, dict[str, str]]:
    put(tmp_path, tree)
    return shape(discover(targets, tmp_path), tmp_path)


def test_each_directory_is_a_run(tmp_path: Path) -> None:
    tree = {}
    for name in ("base", "big"):
        tree |= {
            f"runs/{name}/train.log": LOG,
            f"runs/{name}/metrics.jsonl": JSONL,
            f"runs/{name}/config.yaml": b"lr: 1",
        }
    assert in_tree(tmp_path, tree) == {
        name: {
            f"runs/{name}/metrics.jsonl": "metrics",
            f"runs/{name}/train.log": "stdout",
            f"runs/{name}/config.yaml": "config",
        }
        for name in ("base", "big")
    }


def test_several_logs_of_a_kind_are_several_runs(tmp_path: Path) -> None:
    tree = {"logs/a.log": LOG, "logs/b.log": LOG, "logs/b.jsonl": JSONL, "logs/trainmon.toml": b""}
    assert in_tree(tmp_path, tree, "logs") == {
        "a.log": {"logs/a.log": "stdout", "logs/trainmon.toml": "config"},
        "b.log": {"logs/b.log": "stdout", "logs/b.jsonl": "metrics", "logs/trainmon.toml": "config"},
    }


def test_slurm_pairs(tmp_path: Path) -> None:
    crash = b"Traceback (most recent call last):\n"
    tree = {"slurm-1.out": LOG, "slurm-1.err": crash, "slurm-2.out": LOG, "slurm-2.err": b""}
    assert in_tree(tmp_path, tree) == {
        "slurm-1.out": {"slurm-1.out": "stdout", "slurm-1.err": "log"},
        "slurm-2.out": {"slurm-2.out": "stdout"},
    }


def test_one_slurm_job_beside_its_metrics_is_one_run(tmp_path: Path) -> None:
    tree = {"exp/slurm-1.out": LOG, "exp/metrics.jsonl": JSONL, "exp/tb/events.out.tfevents.1.host": b"x"}
    assert in_tree(tmp_path, tree) == {
        "exp": {
            "exp/metrics.jsonl": "metrics",
            "exp/slurm-1.out": "stdout",
            "exp/tb/events.out.tfevents.1.host": "metrics",
        }
    }


def test_ranks_are_one_run(tmp_path: Path) -> None:
    tree = {"exp/rank0.log": LOG, "exp/rank1.log": LOG, "exp/stdout.log": LOG}
    tree |= {f"torchrun/none_x/attempt_0/{rank}/stdout.log": LOG for rank in range(2)}
    tree |= {f"nodes/node_{rank}/train.log": LOG for rank in range(2)}
    assert in_tree(tmp_path, tree) == {
        "exp": {"exp/rank0.log": "rank", "exp/rank1.log": "rank", "exp/stdout.log": "stdout"},
        "nodes": {f"nodes/node_{rank}/train.log": "rank" for rank in range(2)},
        "attempt_0": {f"torchrun/none_x/attempt_0/{rank}/stdout.log": "rank" for rank in range(2)},
    }


def test_sweeps_are_not_ranks(tmp_path: Path) -> None:
    tree = {f"multirun/12-00/{number}/train.log": LOG for number in range(2)}
    assert list(in_tree(tmp_path, tree)) == ["0", "1"]


def test_only_the_newest_checkpoint_counts(tmp_path: Path) -> None:
    tree = {f"out/checkpoint-{step}/trainer_state.json": STATE for step in (500, 1000, 1500)}
    tree |= {"out/checkpoint-1000/train.log": LOG, "out/training_args.json": b"{}"}
    put(tmp_path, tree)
    os.utime(tmp_path / "out/checkpoint-1500/trainer_state.json", (1, 1))
    assert shape(discover(["out"], tmp_path), tmp_path) == {
        "out": {"out/checkpoint-1000/trainer_state.json": "metrics", "out/training_args.json": "config"}
    }


def test_huggingface_event_directories_join_their_run(tmp_path: Path) -> None:
    tree = {"out/trainer_state.json": STATE, "out/runs/Dec01_12-30-00_host/events.out.tfevents.1.host": b"x"}
    assert in_tree(tmp_path, tree) == {
        "out": {
            "out/trainer_state.json": "metrics",
            "out/runs/Dec01_12-30-00_host/events.out.tfevents.1.host": "metrics",
        }
    }


def test_wandb_runs(tmp_path: Path) -> None:
    tree = {}
    for name in ("run-20240101_120000-abc", "offline-run-20240102_120000-def"):
        tree |= {
            f"wandb/{name}/run-x.wandb": b":W&B",
            f"wandb/{name}/files/output.log": LOG,
            f"wandb/{name}/files/config.yaml": b"lr: 1",
            f"wandb/{name}/files/requirements.txt": b"torch==2",
            f"wandb/{name}/files/wandb-summary.json": b'{"loss": 1, "step": 2, "val_loss": 3}',
            f"wandb/{name}/logs/debug.log": b"wandb: loss 2.5 step 1",
        }
    put(tmp_path, tree)
    (tmp_path / "wandb/latest-run").symlink_to("run-20240101_120000-abc")
    (tmp_path / "wandb/debug.log").symlink_to("run-20240101_120000-abc/logs/debug.log")
    found = shape(discover([], tmp_path), tmp_path)
    assert set(found) == {"run-20240101_120000-abc", "offline-run-20240102_120000-def"}
    assert found["run-20240101_120000-abc"] == {
        "wandb/run-20240101_120000-abc/run-x.wandb": "metrics",
        "wandb/run-20240101_120000-abc/files/output.log": "stdout",
        "wandb/run-20240101_120000-abc/files/config.yaml": "config",
    }


def test_keras_train_and_validation_are_one_run(tmp_path: Path) -> None:
    tree = {f"logs/{part}/events.out.tfevents.1": b"x" for part in ("train", "validation")}
    assert in_tree(tmp_path, tree) == {"logs": dict.fromkeys(tree, "metrics")}


@pytest.mark.parametrize(("train", "val"), [("loss_train", "loss_val"), ("Loss/train", "Loss/val")])
def test_the_lines_of_a_chart_join_the_run_whose_event_file_lies_beside(tmp_path: Path, train: str, val: str) -> None:
    places = ("", f"{train}/", f"{val}/")
    tree = {f"logs/a/{place}events.out.tfevents.1": b"x" for place in places}
    assert in_tree(tmp_path, tree) == {"a": dict.fromkeys(tree, "metrics")}


def test_models_that_are_trained_into_one_directory_are_no_lines_of_a_chart(tmp_path: Path) -> None:
    tree = {f"logs/{place}/events.out.tfevents.1": b"x" for place in (".", "bert/train", "bert/val", "gpt_val")}
    assert len(in_tree(tmp_path, tree)) == 3


def test_what_is_no_training_log_is_left_alone(tmp_path: Path) -> None:
    tree = {
        "README.md": LOG,
        "README.txt": LOG,
        "requirements.txt": b"torch>=2\nloss 2.5 step 1\n",
        "train.py": b"loss = 2.5",
        "data.txt": b"It was the best of times, it was the worst of times.\n" * 100,
        "data.csv": b"name,age\nx,3\n",
        "data.jsonl": b'{"text": "a loss of 3 and more", "id": 1}\n',
        "server.log": b"GET / 200\nGET /favicon.ico 404\n",
        "config.json": b'{"learning_rate": 1, "num_steps": 3}',
        "tokenizer.json": b'{"step": 1, "loss": 2}',
        ".git/train.log": LOG,
        "node_modules/x/train.log": LOG,
        "__pycache__/train.log": LOG,
        "model.bin": b"\0" * 100,
        "LICENSE": LOG,
        "noise": bytes(range(256)) * 40,
    }
    put(tmp_path, tree)
    found = discover([], tmp_path)
    assert found.runs == ()
    assert "*.jsonl" in found.searched
    assert len(found.problems) == 1
    assert "no training logs" in found.problems[0]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.log", LOG),
        ("output", LOG),
        ("nohup.out", b" iteration       10/  100 | lm loss: 1.05E+01 | grad norm: 1.2 |\n"),
        ("x.txt", b"{'loss': 2.5, 'grad_norm': 1.0, 'epoch': 0.1}\n"),
        ("job.o123456", b"epoch: 1, train_loss=2.5\n"),
        ("h.json", b'[{"epoch": 1, "train_loss": 2.5}]'),
        ("h.jsonl", b'{"name": "train/loss", "step": 1, "value": 2}\n'),
        ("p.csv", CSV),
        ("p.tsv", b"epoch\tval_acc\tloss\n1\t0.5\t2\n"),
        ("crash.err", b"Traceback (most recent call last):\n  File x\n"),
        ("start.log", b"[rank0] initialising torch.distributed\n"),
        ("train.log", b""),
        ("late.log", b"x" * 30_000 + b"\n" + LOG),
    ],
)
def test_what_looks_like_a_log(tmp_path: Path, name: str, content: bytes) -> None:
    put(tmp_path, {name: content})
    assert [file.path.name for run in discover([], tmp_path).runs for file in run.files] == [name]


def test_a_named_file_is_a_run_whatever_it_is(tmp_path: Path) -> None:
    put(tmp_path, {"x.bin": b"\0\1", "exp/notes.md": b"", "exp/trainmon.toml": b""})
    found = discover(["x.bin", "exp/notes.md", "exp/later.log", "no/such/dir.log"], tmp_path)
    assert [run.name for run in found.runs] == ["x.bin", "notes.md", "later.log", "dir.log"]
    assert [[file.role for file in run.files] for run in found.runs][1] == ["stdout", "config"]
    assert found.problems == ()


def test_a_run_with_a_directory_to_itself_is_called_by_it(tmp_path: Path) -> None:
    """But by its file where the user named that, where the directory tells nothing, and where another run is below."""
    tree = {"ppo/ray.log": LOG, "sft/measurements.csv": b"step,loss\n1,2\n2,3\n", "logs/llama.log": LOG}
    put(tmp_path, {**tree, "two/a.log": LOG, "two/b.log": LOG, "up/own.log": LOG, "up/x/a.log": LOG, "up/y/b.log": LOG})
    names = {run.name for run in discover(["."], tmp_path).runs}
    assert names == {"ppo", "sft", "llama.log", "a.log", "b.log", "own.log", "x", "y"}
    assert [run.name for run in discover(["ppo/ray.log", "sft"], tmp_path).runs] == ["ray.log", "sft"]
    assert [run.name for run in discover(["ppo"], tmp_path).runs] == ["ray.log"], "of one run nothing is to be told"


def test_targets_that_lead_nowhere_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    put(tmp_path, {"notes/a.md": b"x"})
    targets = ["gone/", "empty", "*.nothing", "notes/*", "ssh://-x/y", "slurm:1", ""]
    found = discover(targets, tmp_path)
    assert found.runs == ()
    assert len(found.problems) == len(targets)
    for target, problem in zip(targets, found.problems, strict=True):
        assert target in problem
        assert "\n" not in problem


def test_globs(tmp_path: Path) -> None:
    tree = {"runs/a/train.log": LOG, "runs/b/train.log": LOG, "runs/b/metrics.jsonl": JSONL, "runs/README.md": b""}
    assert in_tree(tmp_path, tree, "runs/*") == {
        "a": {"runs/a/train.log": "stdout"},
        "b": {"runs/b/metrics.jsonl": "metrics", "runs/b/train.log": "stdout"},
    }
    assert list(in_tree(tmp_path, tree, "runs/*/train.log")) == ["a", "b"]


def test_the_same_file_is_in_one_run_only(tmp_path: Path) -> None:
    put(tmp_path, {"exp/train.log": LOG, "exp/metrics.jsonl": JSONL})
    (tmp_path / "exp/latest.log").symlink_to("train.log")
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "other").symlink_to("exp")
    found = discover(["exp", "exp/train.log", "."], tmp_path)
    assert [sorted(file.path.name for file in run.files) for run in found.runs] == [["metrics.jsonl", "train.log"]]


def test_a_deep_glob_gives_each_run_once(tmp_path: Path) -> None:
    tree = {"runs/a/train.log": LOG, "runs/b/metrics.jsonl": JSONL}
    found = in_tree(tmp_path, tree, "**")
    assert sorted(file for files in found.values() for file in files) == sorted(tree)


def test_a_run_behind_a_symbolic_link_is_found(tmp_path: Path) -> None:
    put(tmp_path, {"store/exp/train.log": LOG})
    (tmp_path / "here").mkdir()
    (tmp_path / "here/logs").symlink_to(tmp_path / "store")
    found = discover(["here"], tmp_path)
    assert [run.files[0].path for run in found.runs] == [tmp_path / "here/logs/exp/train.log"]


def test_what_is_no_file_never_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.log")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "b.log"))
    (tmp_path / "metrics.jsonl").mkdir()
    found = discover([], tmp_path)
    assert found.runs == ()
    assert any("metrics.jsonl" in problem and "directory" in problem for problem in found.problems)
    server.close()


def test_names_are_printable_and_unique(tmp_path: Path) -> None:
    put(tmp_path, {"a\x1b[31m/train.log": LOG, "x/a/train.log": LOG, "y/a/train.log": LOG})
    names = [run.name for run in discover([], tmp_path).runs]
    assert names == ["a", "x/a", "y/a"]


def test_a_directory_of_a_thousand_texts_is_no_thousand_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {f"{number}.txt": b"words\n" for number in range(1000)})
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda *args, **kwargs: opened.append(args) or real(*args, **kwargs))
    assert discover([], tmp_path).runs == ()
    assert len(opened) < 100


def test_stdin(tmp_path: Path) -> None:
    [run] = discover(["-"], tmp_path).runs
    assert (run.name, str(run.files[0].path)) == ("stdin", "-")


def test_hydra_keeps_the_settings_in_a_hidden_directory(tmp_path: Path) -> None:
    tree = {"out/train.log": LOG, "out/.hydra/config.yaml": b"lr: 1", "out/.hydra/overrides.yaml": b"- lr=1"}
    files = {"out/train.log": "stdout", "out/.hydra/config.yaml": "config"}
    assert in_tree(tmp_path, tree) == {"out": files} or in_tree(tmp_path, tree) == {"train.log": files}
    assert list(in_tree(tmp_path, tree, "out/train.log").values()) == [files]


def test_a_named_log_among_whole_runs_does_not_own_the_metrics_of_another(tmp_path: Path) -> None:
    tree = {"night.log": LOG, "csv/history.csv": CSV, "a/train.log": LOG, "b/train.log": LOG}
    assert [sorted(files) for files in in_tree(tmp_path, tree).values()] == [
        ["night.log"],
        ["a/train.log"],
        ["b/train.log"],
        ["csv/history.csv"],
    ]
    # Beside its own metrics alone it is their run, and so is a log that has no name of its own.
    one = {key: tree[key] for key in ("night.log", "csv/history.csv")}
    assert len(in_tree(tmp_path / "one", one)) == 1
    tree["train.log"] = tree.pop("night.log")
    assert len(in_tree(tmp_path / "plain", tree)) == 3


def as_nobody(folder: Path, target: str) -> Discovery:
    """What somebody else finds: root may read everything."""
    for place in list(folder.parents)[:-2]:
        place.chmod(place.stat().st_mode | 0o055)
    folder.chmod(0o755)
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        return discover([target], folder)
    finally:
        os.seteuid(before)


@pytest.mark.parametrize("pattern", ["shut/*.log", "s*/*.log", "sh[u]t/x/*.log"])
def test_a_pattern_in_a_directory_that_may_not_be_read_says_so(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "shut").mkdir(mode=0)
    [problem] = as_nobody(tmp_path, str(tmp_path / pattern)).problems
    [other] = as_nobody(tmp_path, str(tmp_path / "n*.log")).problems
    assert f"{tmp_path}/shut: permission denied; ask its owner" in problem
    assert "nothing matches" in other


@pytest.mark.parametrize("name", ["metrics.jsonl", "history.csv", "train.log", "any", "log.json"])
@pytest.mark.parametrize("pattern", ["", "/*"])
def test_a_log_that_may_not_be_read_is_named_beside_others(tmp_path: Path, name: str, pattern: str) -> None:
    """As the problem of a run, where the name is a log's, else as one of the search: never left out in silence."""
    for at in ("runs/a", "runs/b"):
        (tmp_path / at).mkdir(parents=True)
        (tmp_path / at / name).write_bytes(CSV if name.endswith("csv") else LOG if "json" not in name else JSONL)
    (tmp_path / "runs/b" / name).chmod(0)
    found = as_nobody(tmp_path, f"{tmp_path}/runs{pattern}")
    named = [str(file.path) for run in found.runs for file in run.files]
    assert any(f"runs/b/{name}" in told for told in [*named, *found.problems])
    assert f"{tmp_path}/runs/a/{name}" in named


def test_of_many_files_that_may_not_be_read_a_few_are_named(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number:02d}.jsonl").write_bytes(JSONL)
        (tmp_path / f"{number:02d}.jsonl").chmod(0)
    problems = as_nobody(tmp_path, str(tmp_path)).problems
    assert sum("permission denied" in problem for problem in problems) == 5
    assert any("35 more files that cannot be read and may be logs" in problem for problem in problems)


@pytest.mark.parametrize(
    ("name", "tool"), [("metrics.jsonl.gz", "zcat"), ("train.log.zst", "zstdcat"), ("a.csv.xz", "xzcat")]
)
def test_a_compressed_log_alone_is_named_with_what_reads_it(tmp_path: Path, name: str, tool: str) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / name).write_bytes(b"packed")
    (tmp_path / "weights.bin.gz").write_bytes(b"packed")
    [problem] = discover([str(tmp_path)], tmp_path).problems
    assert f"compressed ones, which are not read as they are: old/{name}; unpack it, or: {tool} FILE" in problem


def test_compressed_parts_of_a_log_that_is_read_are_not_named(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("step 1 loss 2.5\nstep 2 loss 2.4\n")
    (tmp_path / "train.log.1.gz").write_bytes(b"packed")
    assert discover([str(tmp_path)], tmp_path).problems == ()
