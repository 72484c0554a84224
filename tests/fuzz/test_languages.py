"""Configurations, settings, filters and command-line targets, from whoever wrote them."""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.budget import fuzz
from tests.fuzz.mutation import changed_from
from tests.tui import sample
from trainmon.monitor.preflight.flatten import UnreadableConfigError, flatten
from trainmon.monitor.preflight.plan import plan_of
from trainmon.monitor.settings import Settings
from trainmon.monitor.thresholds import DEFAULTS, Thresholds
from trainmon.tails.target import TargetError, parse
from trainmon.tui.filter import NUMBERS, TEXTS, FilterError, parse_filter
from trainmon.tui.row import row_of

CONFIGS = (
    b'{"optimizer": {"lr": 3e-4, "betas": [0.9, 0.95]}, "max_steps": 1000, "bf16": true, "name": null}\n',
    b"optimizer:\n  lr: 3e-4  # peak\n  betas: [0.9, 0.95]\nmax_steps: 1000\n"
    b"name: !!python/object/apply:os.system [id]\n",
    b"[optimizer]\nlr = 3e-4\nbetas = [0.9, 0.95]\n[training]\nsteps = 1000\n"
    b'when = 2024-01-01T00:00:00Z\n"a.b" = {c = 1}\n',
    b"batch_size = 8 * 64\nmax_iters = 600_000\nlr = 6e-4 / 2 ** 3\nconfig = dict(name='x', n_layer=12)\n"
    b"import os; os.getpid()\n",
    b'#SBATCH --nodes=4\nARGS="--lr 3e-4"\nexport N=8\n'
    b"srun torchrun --nproc-per-node $N train.py --lr 3e-4 \\\n  --bf16 $ARGS\n",
    b"  adam_beta1 ...................................... 0.9\n"
    b"  lr .............................................. 0.0003\n",
    b"TrainingArguments(\nlearning_rate=5e-05,\nmax_steps=1000,\nbf16=True,\n)\n",
    b'[thresholds]\n"loss.spike.z" = 6.0\nloss.shift = {sigma = 4}\n[facts]\ntotal_steps = 1000\ngpu = "H100"\n',
    b"[calibration]\ndate = 2024-01-01T00:00:00Z\nruns = ['a', 'b']\n[thresholds]\ngrad.norm.z = -1\n",
    b"a.a.a.a.a.a.a.a = 1\nb = [[[[[[[[1]]]]]]]]\nc = ((((((((1))))))))\nd = -----1\ne: {f: {g: 1}}\n",
)
NAMES = ("a.json", "a.toml", "a.yaml", "a.py", "a.sh", "a.log", "a", "trainmon.toml", "config.yml", "x.ini", "c.args")
ROWS = [row_of(run) for run in sample.fleet().runs]


@fuzz(300)
@given(st.sampled_from(NAMES), changed_from(CONFIGS))
def test_no_configuration_breaks_what_reads_it(name: str, content: bytes) -> None:
    settings = Settings()
    settings.read(f"/runs/{name}", content)
    limits = settings.limits(Thresholds())
    assert all(limits[each] > 0 for each in settings.thresholds)
    assert set(settings.thresholds) <= set(DEFAULTS)
    assert all("\n" not in problem and problem.isprintable() for problem in settings.problems.values())


@pytest.mark.parametrize("size", ["9" * 400, "-" + "9" * 400, "9" * 5000, "inf", "nan"], ids=lambda size: size[:6])
@pytest.mark.parametrize("name", ["thresholds.'spike.z'", "facts.total_steps"])
def test_a_setting_of_any_size_is_refused_in_one_line(name: str, size: str) -> None:
    settings = Settings()
    settings.read("/runs/trainmon.toml", f"{name} = {size}\n".encode())
    assert not settings.thresholds
    assert not settings.facts
    assert len(settings.problems) == 1
    assert all("\n" not in problem and len(problem) < 300 for problem in settings.problems.values())


@fuzz(300)
@given(st.sampled_from(NAMES), changed_from(CONFIGS))
def test_no_plan_breaks_preflight(name: str, content: bytes) -> None:
    said = ""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            flat = flatten(name, content.decode("utf-8", "replace"))
        except UnreadableConfigError as error:
            said = str(error)
            flat = {}
    assert "\n" not in said
    assert all(isinstance(value, (float, str, bool)) for value in flat.values())
    plan_of(flat)


PARTS = (
    *(
        "(",
        ")",
        " and ",
        " or ",
        " not ",
        "-",
        "!",
        '"',
        " ",
        "state:failed",
        "step>1k",
        "loss<=2.3",
        "age>3h",
        "mem>90%",
    ),
    *(f"{field}{op}" for field in (*NUMBERS, *TEXTS) for op in (":", "!=", ">=")),
    *("9" * 400, "1e999", "nan", "inf", "x:y", "::", "\\", "\0", "\x1b[31m", "損失", "İ", "ß", "\u202e"),
)


@fuzz(300)
@given(st.lists(st.one_of(st.sampled_from(PARTS), st.text(max_size=4)), max_size=30).map("".join))
def test_a_filter_is_understood_or_refused_in_one_line(text: str) -> None:
    try:
        holds = parse_filter(text)
    except FilterError as error:
        said = str(error)
        holds = None
    if holds is None:
        assert "\n" not in said.replace(text, "")
        return
    kept = [row for row in ROWS if holds(row)]
    if text.strip():
        with contextlib.suppress(FilterError):
            assert [row for row in ROWS if not parse_filter(f"not ({text})")(row)] == kept


@fuzz(200)
@given(
    st.text(max_size=60)
    | st.lists(
        st.sampled_from(["ssh://", "a@", "host", ":", "/", "-", "*", "[", "~", "slurm:", "1", "..", "\0", "\n"]),
        max_size=9,
    ).map("".join)
)
def test_a_target_is_understood_or_refused(text: str) -> None:
    with contextlib.suppress(TargetError):
        parse(text, Path("/"))
