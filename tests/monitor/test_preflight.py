"""`trainmon preflight`: what a plan says, read from every kind of settings file, and held against published runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_cli import run
from trainmon.monitor.finding import CheckResult, Verdict
from trainmon.monitor.preflight import operation_checks
from trainmon.monitor.preflight.check_base import Seen
from trainmon.monitor.preflight.checks import CHECKS
from trainmon.monitor.preflight.flatten import Flat, UnreadableConfigError, flatten
from trainmon.monitor.preflight.frameworks import FRAMEWORKS, framework_of
from trainmon.monitor.preflight.look import look
from trainmon.monitor.preflight.plan import plan_of
from trainmon.monitor.preflight.published import best_interval_s, failures_apart_s

# One plan in the words of each trainer: 1,000,000-token batches, 3e-4, 2,000 of 100,000 steps, clip 1, bf16.
CONFIGS = {
    "run.sh": "NODES=4\ntorchrun --nnodes $NODES --nproc_per_node 8 train.py --num-layers 24 --hidden-size 2048 \\\n"
    "  --seq-length 4096 --micro-batch-size 1 --global-batch-size 256 --train-iters 100000 --lr 3e-4 \\\n"
    "  --lr-warmup-iters 2000 --lr-decay-style cosine --min-lr 3e-5 --clip-grad 1.0 --bf16 --save-interval 1000\n",
    "titan.toml": "[training]\nsteps = 100000\nglobal_batch_size = 256\nseq_len = 4096\nmax_norm = 1.0\n"
    'mixed_precision_param = "bfloat16"\n'
    "[optimizer]\nlr = 3e-4\n[lr_scheduler]\nwarmup_steps = 2000\n[metrics]\nlog_freq = 1\n"
    "[checkpoint]\ninterval = 1000\n",
    "hf.json": json.dumps(
        {"max_steps": 100000, "learning_rate": 3e-4, "warmup_steps": 2000, "max_grad_norm": 1.0, "bf16": True,
         "per_device_train_batch_size": 8, "gradient_accumulation_steps": 4, "world_size": 8, "seq_length": 4096,
         "save_steps": 1000, "logging_steps": 1, "output_dir": "o", "lr_scheduler_type": "cosine"}
    ),
    "olmo.yaml": "model:\n  d_model: 2048\n  n_layers: 24\noptimizer:\n  learning_rate: 3.0e-4\n"
    "max_steps: 100000\nwarmup_steps: 2000  # two percent\nglobal_train_batch_size: 256\nmax_sequence_length: 4096\n"
    "max_grad_norm: 1.0\nprecision: amp_bf16\nsave_interval: 1000\ndevice_train_microbatch_size: 4\n",
    "nano.py": "max_iters = 100_000\nlearning_rate = 6e-4 / 2\nwarmup_iters = max_iters // 50\nbatch_size = 32\n"
    "gradient_accumulation_steps = 8\nblock_size = 4 * 1024\ngrad_clip = 1.0\ndtype = 'bfloat16'\n"
    "save_interval = 1000\n",
    "block.log": "".join(
        f"  {name} {'.' * (48 - len(name))} {value}\n"
        for name, value in {
            "train_iters": 100000, "lr": 0.0003, "lr_warmup_iters": 2000, "global_batch_size": 256, "seq_length": 4096,
            "clip_grad": 1.0, "bf16": True, "save_interval": 1000, "lr_decay_style": "cosine", "fp16": False,
        }.items()
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_the_same_plan_in_every_trainers_words(name: str) -> None:
    plan = plan_of(flatten(name, CONFIGS[name]))
    numbers = ("total_steps", "peak_lr", "warmup_steps", "clip", "tokens_per_batch", "checkpoint_interval")
    assert {each: plan.number(each) for each in numbers} == {
        "total_steps": 100_000,
        "peak_lr": 3e-4,
        "warmup_steps": 2_000,
        "clip": 1.0,
        "tokens_per_batch": 256 * 4096,
        "checkpoint_interval": 1_000,
    }
    assert verdict("precision", flatten(name, CONFIGS[name])).verdict is Verdict.PASS


def verdict(name: str, flat: Flat, **given_too: float) -> CheckResult:
    plan = plan_of({**flat, **given_too})
    found = {check.id: check for check in (each(plan, Seen()) for each in CHECKS)}
    return found[f"preflight.{name}"]


@pytest.mark.parametrize(
    ("name", "flat", "expected"),
    [
        ("warm_up", {"warmup_steps": 100.0, "max_steps": 100_000.0}, Verdict.WARN),
        ("warm_up", {"warmup_steps": 2000.0, "max_steps": 1e6}, Verdict.PASS),
        ("warm_up", {"max_steps": 1e6}, Verdict.WARN),
        ("warm_up", {"warmup_steps": 1000.0, "max_steps": 1000.0}, Verdict.FAIL),
        ("warm_up", {"warmup_ratio": 0.03, "max_steps": 1000.0}, Verdict.PASS),
        ("warm_up", {"seed": 1.0}, Verdict.NO_DATA),
        ("peak_lr", {"lr": 3e-4, "num_params": 7e9}, Verdict.PASS),
        ("peak_lr", {"lr": 1e-2, "num_params": 7e9}, Verdict.WARN),
        ("peak_lr", {"lr": 1e-6, "num_params": 7e9}, Verdict.WARN),
        ("peak_lr", {"lr": 0.02, "num_params": 1e8, "optimizer": "muon"}, Verdict.NOT_APPLICABLE),
        ("batch", {"tokens_per_batch": 4e6, "num_params": 7e9}, Verdict.PASS),
        ("batch", {"tokens_per_batch": 4e4, "num_params": 7e9}, Verdict.WARN),
        ("batch", {"tokens_per_batch": 4e8, "num_params": 7e9}, Verdict.WARN),
        ("batch", {"global_batch_size": 256.0, "num_params": 7e9}, Verdict.NO_DATA),
        ("schedule", {"lr_scheduler_type": "constant"}, Verdict.WARN),
        ("schedule", {"lr_decay_iters": 5e5, "train_iters": 1e6, "lr_decay_style": "cosine"}, Verdict.WARN),
        ("schedule", {"lr": 1e-4, "min_lr": 1e-3}, Verdict.FAIL),
        ("clip", {"clip_grad": 0.0}, Verdict.WARN),
        ("clip", {"clip_grad": 10.0}, Verdict.WARN),
        ("precision", {"fp16": True}, Verdict.WARN),
        ("precision", {"fp16": True, "bf16": True}, Verdict.FAIL),
        ("precision", {"precision": "16-true"}, Verdict.FAIL),
        ("optimizer", {"adam_beta2": 0.999, "tokens_per_batch": 4e6}, Verdict.WARN),
        ("optimizer", {"adam_beta2": 0.999, "tokens_per_batch": 2e4}, Verdict.PASS),
        ("checkpoints", {"save_interval": 0.0}, Verdict.FAIL),
        ("checkpoints", {"save_interval": 1000.0, "train_iters": 500.0}, Verdict.WARN),
        ("evaluation", {"max_steps": 1e5}, Verdict.WARN),
        ("evaluation", {"max_steps": 1e5, "eval_interval": 1e3}, Verdict.PASS),
        ("evaluation", {"max_steps": 1e5, "eval_interval": 5e4}, Verdict.WARN),
        ("logging", {"logging_steps": 1.0}, Verdict.PASS),
        ("logging", {"logging_steps": 100.0}, Verdict.WARN),
    ],
)
def test_each_check(name: str, flat: Flat, expected: Verdict) -> None:
    assert verdict(name, flat).verdict is expected


def test_the_checkpoint_interval_is_youngs() -> None:
    # 16,384 cards: Llama 3's 419 interruptions in 54 days are one in 3.1 hours.
    assert failures_apart_s(16_384)[1] == pytest.approx(3.1 * 3600, rel=0.02)
    assert best_interval_s(30.0, 3.1 * 3600) == pytest.approx(818, rel=0.01)
    seldom = plan_of({"save_interval": 5000.0, "world_size": 16_384.0}, {"step_time_s": 5.0})
    assert operation_checks.checkpoints(seldom, Seen()).verdict is Verdict.WARN
    often_enough = plan_of({"save_interval": 200.0, "world_size": 16_384.0}, {"step_time_s": 5.0})
    assert operation_checks.checkpoints(often_enough, Seen()).verdict is Verdict.PASS


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda each: each.name)
def test_each_trainer_is_told_by_its_keys(framework: object) -> None:
    assert isinstance(framework, type(FRAMEWORKS[0]))
    assert framework_of(dict.fromkeys(framework.marks, 1.0)) == framework


def test_a_switch_that_is_on_fills_its_gap(tmp_path: Path) -> None:
    for switch, missing in (("", True), (" --log-throughput --log-memory-to-tensorboard", False)):
        (tmp_path / "run.sh").write_text(CONFIGS["run.sh"].rstrip() + switch + "\n", encoding="utf-8")
        made = run("preflight", "run.sh", cwd=tmp_path)
        assert ("will not log: peak memory" in made.stdout) == missing


def test_python_is_parsed_and_never_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(
        f"import os, pathlib\npathlib.Path({str(marker)!r}).touch()\nos.system('touch {marker}')\n"
        "learning_rate = 3e-4\nmax_iters = 9**9**9**9\nx = 'a' * 10**10\nwarmup_iters = __import__('os').getpid()\n",
        encoding="utf-8",
    )
    made = run("preflight", "evil.py", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert not marker.exists()


def test_yaml_tags_are_not_resolved() -> None:
    flat = flatten("x.yaml", "lr: 3e-4\nevil: !!python/object/apply:os.system ['touch x']\nbomb: &a [*a, *a]\n")
    assert flat["lr"] == 3e-4
    assert isinstance(flat["evil"], str)


def test_reading_opens_only_what_was_named(tmp_path: Path) -> None:
    for name, text in CONFIGS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    script = (
        "import sys\n"
        "from trainmon.monitor.preflight.flatten import flatten\n"
        "texts = {name: open(name).read() for name in sys.argv[1:]}\n"
        "seen = []\n"
        "watched = ('open', 'exec', 'import', 'os.system', 'subprocess.Popen')\n"
        "sys.addaudithook(lambda event, args: seen.append(event) if event in watched else None)\n"
        "for name, text in texts.items(): flatten(name, text)\n"
        "print(seen)\n"
    )
    command = [sys.executable, "-c", script, *CONFIGS]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "[]"


def test_the_log_of_a_run_is_looked_at_too(tmp_path: Path) -> None:
    lines = [CONFIGS["block.log"]]
    lines += [
        f"[2026-05-01 10:{step // 60:02d}:{step % 60:02d}] iteration {step}/ 100000 | lm loss: {5 - step / 200:.4f} | "
        "grad norm: 1.1 | learning rate: 3.0E-04 | elapsed time per iteration (ms): 1000.0 |\n"
        for step in range(1, 300)
    ]
    (tmp_path / "train.log").write_text("".join(lines), encoding="utf-8")
    document = json.loads(run("preflight", "train.log", "--json", "--gpus", "8", cwd=tmp_path).stdout)
    (target,) = document["targets"]
    assert target["settings"]["step_time_s"]["value"] == 1
    found = {check["id"]: check["verdict"] for check in target["checks"]}
    assert found["preflight.checkpoints"] == "PASS"
    assert found["preflight.first_screen"] == "WARN"
    assert found["preflight.warm_up"] == "PASS"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"max_steps": -1, "num_train_epochs": 3, "warmup_steps": 100}, "100 steps; the total is not told"),
        ({"max_steps": 1000, "warmup_steps": 0, "warmup_ratio": 0.1}, "100 of 1,000 steps (10.00%)"),
        (
            {"max_steps": -1, "warmup_steps": 0, "warmup_ratio": 0.1},
            "10.0% of the steps, of which the number is not told",
        ),
        ({"max_steps": 1000, "warmup_steps": 0, "warmup_ratio": 0.0}, "no warm-up"),
        ({"max_steps": 1000, "warmup_steps": -1}, "no warm-up"),
        ({"max_steps": 0, "train": {"max_steps": 1000}, "warmup_steps": 20}, "20 of 1,000 steps (2.00%)"),
        ({"max_steps": 1000, "warmup_steps": 1e308}, "no warm-up"),
    ],
)
def test_what_is_written_for_not_set_is_no_setting(settings: dict[str, object], told: str, tmp_path: Path) -> None:
    (tmp_path / "args.json").write_text(json.dumps({**settings, "learning_rate": 2e-5}), encoding="utf-8")
    said = {check.id: check.what for check in look("args.json", tmp_path, {}).checks}
    assert said["preflight.warm_up"] == told


def rates_logged(folder: Path, first: int, rate: Callable[[int], float], last: int = 3000) -> dict[str, CheckResult]:
    lines = [f"step {step}/3000 | loss {5 - step / 1000:.4f} | lr {rate(step):.4e}\n" for step in range(first, last, 5)]
    lines += [f"step {step}/3000 | val_loss {5 - step / 1000:.4f}\n" for step in range(500, last, 500) if step >= first]
    (folder / "train.log").write_text("".join(sorted(lines, key=lambda line: int(line[5:].split("/")[0]))), "utf-8")
    return {check.id.partition(".")[2]: check for check in look("train.log", folder, {"parameters": 1e8}).checks}


def test_what_no_file_says_is_seen_in_the_log(tmp_path: Path) -> None:
    said = rates_logged(tmp_path, 0, lambda step: 3e-4 * min(1, step / 200) * (1 if step < 200 else 1.07 - step / 3000))
    assert said["warm_up"].what == "200 of 3,000 steps (6.67%)"
    assert said["peak_lr"].verdict is Verdict.PASS
    assert said["schedule"].what == "decay to 7% of the peak"
    assert said["logging"].what == "every 5 steps"
    assert said["evaluation"].what == "every 500 steps (16.67% of the run) is seldom"


@pytest.mark.parametrize(
    ("first", "last", "rate", "warm_up", "schedule"),
    [
        (0, 3000, lambda _: 3e-4, Verdict.WARN, Verdict.WARN),  # at its peak from the first step to the last
        (1000, 3000, lambda step: 3e-4 - step * 5e-8, Verdict.NO_DATA, Verdict.NO_DATA),  # how it began is not there
        (0, 100, lambda step: step * 1e-6, Verdict.NO_DATA, Verdict.NO_DATA),  # still rising
        (0, 1500, lambda step: 3e-4 * min(1, (step + 1) / 200), Verdict.PASS, Verdict.NO_DATA),  # not at its end
    ],
)
def test_of_the_rates_only_what_the_log_shows(
    first: int, last: int, rate: Callable[[int], float], warm_up: Verdict, schedule: Verdict, tmp_path: Path
) -> None:
    said = rates_logged(tmp_path, first, rate, last)
    assert (said["warm_up"].verdict, said["schedule"].verdict) == (warm_up, schedule)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("broken.json", "{", "json"),
        ("broken.toml", "= 3", "toml"),
        ("broken.py", "def (", "py"),
        ("empty.yaml", "", "no settings"),
        ("deep.json", "[" * 100_000, "json"),
        ("nope.json", None, "nope.json"),
        ("words.txt", "hello there\n", "words.txt"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, name: str, content: str | None, told: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    made = run("preflight", name, cwd=tmp_path)
    assert made.returncode == 2
    assert told in made.stderr
    assert "Traceback" not in made.stderr


def test_statuses(tmp_path: Path) -> None:
    (tmp_path / "warn.json").write_text('{"max_steps": 100000, "warmup_steps": 0}', encoding="utf-8")
    (tmp_path / "fail.json").write_text('{"fp16": true, "bf16": true}', encoding="utf-8")
    assert run("preflight", "warn.json", cwd=tmp_path).returncode == 0
    assert run("preflight", "warn.json", "--strict", cwd=tmp_path).returncode == 1
    assert run("preflight", "fail.json", "warn.json", cwd=tmp_path).returncode == 1


@given(st.sampled_from(["a.json", "a.toml", "a.yaml", "a.py", "a.sh", "a.log", "a"]), st.text(max_size=400))
def test_no_text_breaks_it(name: str, text: str) -> None:
    try:
        flat = flatten(name, text)
    except UnreadableConfigError:
        return
    plan = plan_of(flat)
    for check in CHECKS:
        check(plan, Seen(None, framework_of(flat)))


@given(
    st.dictionaries(
        st.sampled_from(sorted({mark for each in FRAMEWORKS for mark in each.marks} | {"lr", "fp16", "save_steps"})),
        st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.text(max_size=10)),
    )
)
def test_no_settings_break_a_check(flat: Flat) -> None:
    plan = plan_of(flat, {"step_time_s": 1.0})
    for check in CHECKS:
        assert check(plan, Seen(frozenset(), framework_of(flat))).what


# What the trainers' own words for the same things must come to: (file, its text, what is planned).
WORDS = [
    ("mosaic.yaml", "max_duration: 63900ba\nscheduler:\n  name: cosine_with_warmup\n  t_warmup: 100ba\n"
     "save_interval: 1000ba\neval_interval: 500ba\nalgorithms:\n  gradient_clipping:\n    clipping_threshold: 1.0\n",
     {"total_steps": 63900, "warmup_steps": 100, "checkpoint_interval": 1000, "eval_interval": 500, "clip": 1}),
    ("olmo.yaml", "max_duration: 2e9T\nglobal_train_batch_size: 100\nmodel:\n  max_sequence_length: 1000\n",
     {"total_tokens": 2e9, "total_steps": 20000}),
    ("levanter.yaml", "trainer:\n  train_batch_size: 256\n  num_train_steps: 1000\n  checkpointer:\n"
     "    save_interval: 10m\noptimizer:\n  warmup: 0.02\n",
     {"batch_size": 256, "warmup_steps": 20, "checkpoint_s": 600}),
    ("ds.json", '{"train_batch_size": 512, "train_micro_batch_size_per_gpu": 4, "scheduler": {"type": "WarmupDecayLR",'
     ' "params": {"warmup_num_steps": 30, "total_num_steps": 3000}}}',
     {"batch_size": 512, "warmup_steps": 30, "total_steps": 3000}),
    ("titan.toml", '[model]\nflavor = "8B"\n', {"parameters": 8e9}),
    ("lit.yaml", "model_name: tiny-llama-1.1b\n", {"parameters": 1.1e9}),
    ("moe.yaml", "model_name: mixtral-8x7b\n", {"parameters": None}),
    ("sft.yaml", "base_model: some/llama-7b\nmodel_name: llama-7b\nlearning_rate: 1e-5\n", {"parameters": None}),
    ("job.sbatch", "#SBATCH -N 4 --gres=gpu:a100:8\nMBS=2\nGBS=$((MBS * 8 * ${GA:-4}))\n"
     "OMP_NUM_THREADS=1 LR=3e-4 srun python t.py --lr ${LR:-1e-4} --global-batch-size $GBS\n",
     {"world_size": 32, "batch_size": 64, "peak_lr": 3e-4}),
    ("args.sh", 'ARGS="\n --lr 1e-4 \\\n --bf16\n"\nMORE="--log-interval 5"\ntrain $ARGS $MORE\n',
     {"peak_lr": 1e-4, "log_interval": 5}),
    ("acc.sh", "accelerate launch --num_processes 16 x.py --per_device_train_batch_size 4 --checkpointing_steps 50\n"
     "  --gradient_accumulation_steps 2\n", {"batch_size": 128, "checkpoint_interval": 50}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "planned"), WORDS, ids=[name for name, _, _ in WORDS])
def test_a_trainers_own_words(name: str, text: str, planned: dict[str, float | None]) -> None:
    plan = plan_of(flatten(name, text))
    assert {each: plan.number(each) for each in planned} == pytest.approx(planned)


def test_a_switch_at_the_end_of_a_quoted_block_is_on() -> None:
    flat = flatten("run.sh", 'ARGS="\n --lr 1e-4 \\\n --bf16\n"\nMORE="--log-interval 5"\n')
    assert flat["bf16"] is True


@pytest.mark.parametrize(
    ("name", "content"), [("launch.yaml", "mixed_precision: bf16\n"), ("x.yaml", "a: [1,2\n  b: }")]
)
def test_a_file_without_training_settings_is_not_blamed_for_them(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    made = run("preflight", name, cwd=tmp_path)
    assert "[WARN]" not in made.stdout
    assert made.returncode == (0 if "bf16" in content else 2)
    assert bool(made.stderr) == (made.returncode == 2)


SILENT = {  # a trainer's own default counts where its configuration is silent
    "nanogpt.py": (
        "max_iters = 600000\nblock_size = 1024\nn_layer = 12\nn_head = 12\nn_embd = 768\nlearning_rate = 6e-4\n"
        "eval_interval = 1000\nlog_interval = 1\nbatch_size = 12\ngradient_accumulation_steps = 40\n",
        {"warm_up": Verdict.PASS, "clip": Verdict.PASS, "precision": Verdict.PASS, "peak_lr": Verdict.PASS},
    ),
    "titan.toml": (
        '[job]\ndump_folder = "x"\n[training]\nsteps = 10000\nlocal_batch_size = 1\nseq_len = 8192\n'
        '[optimizer]\nlr = 3e-4\n[model]\nflavor = "8B"\n[checkpoint]\nenable_checkpoint = false\ninterval = 500\n'
        "[metrics]\nlog_freq = 1\n",
        {"precision": Verdict.PASS, "clip": Verdict.PASS, "checkpoints": Verdict.FAIL, "peak_lr": Verdict.PASS},
    ),
    "sft.json": (
        '{"model_name_or_path": "x/Llama-8B", "learning_rate": 1e-3, "output_dir": "x", "logging_steps": 1,'
        ' "per_device_train_batch_size": 4, "save_steps": 500, "max_steps": 5000}',
        {"warm_up": Verdict.WARN, "peak_lr": Verdict.WARN, "clip": Verdict.PASS},
    ),
    "lora.yaml": (
        "base_model: x/Llama-8B\nadapter: lora\nlora_r: 16\nlearning_rate: 2.0e-4\nsequence_len: 4096\n"
        "micro_batch_size: 2\nwarmup_steps: 100\nmax_steps: 3000\nsave_strategy: 'no'\n",
        {"warm_up": Verdict.PASS, "peak_lr": Verdict.PASS, "checkpoints": Verdict.FAIL},
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_silence_is_the_trainers_default(tmp_path: Path, name: str) -> None:
    text, expected = SILENT[name]
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = {each.id.removeprefix("preflight."): each for each in look(name, tmp_path, {"world_size": 8.0}).checks}
    assert {check: found[check].verdict for check in expected} == expected, found


def test_recommendations_are_ranges_with_their_source(tmp_path: Path) -> None:
    (tmp_path / "nanogpt.py").write_text(SILENT["nanogpt.py"][0], encoding="utf-8")
    (tmp_path / "lora.yaml").write_text(SILENT["lora.yaml"][0], encoding="utf-8")
    plan = {each.id: each.why for each in look("nanogpt.py", tmp_path, {}).checks}
    for check in ("preflight.peak_lr", "preflight.batch"):
        assert re.search(r"GPT-3.* use \S+ to \S+", plan[check]), plan[check]
    assert "Kaplan et al. 2020" in plan["preflight.batch"]
    tuned = {each.id: each.why for each in look("lora.yaml", tmp_path, {}).checks}
    assert "an adapter uses 5e-05 to 4e-04 (LoRA" in tuned["preflight.peak_lr"]


def test_a_log_that_only_printed_its_arguments_is_read(tmp_path: Path) -> None:
    names = {"global_batch_size": 512, "lr": 0.01, "lr_warmup_iters": 10, "seq_length": 2048, "train_iters": 100000}
    rows = "".join(f"  {name} {'.' * (48 - len(name))} {value}\n" for name, value in names.items())
    text = f"------------ arguments ------------\n{rows}-------- end of arguments ---------\n"
    (tmp_path / "job.out").write_text(text, encoding="utf-8")
    found = look("job.out", tmp_path, {})
    assert found.plan.number("total_steps") == 100000
    assert found.verdict is Verdict.WARN
    (tmp_path / "words.out").write_text("hello\nworld\n", encoding="utf-8")
    assert look("words.out", tmp_path, {}).verdict is Verdict.NO_DATA
