"""Every formula of D1-D17 on hand-worked numbers, with the reduction rules: sums and counts, missing ranks, maxima."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.monitor.logs import Line, engine, feed_cut, read
from trainmon.monitor.derive.derivation import Derivation
from trainmon.monitor.derive.experts import balance
from trainmon.monitor.detectors.registry import DETECTORS
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.stats.robust_score import RobustScore
from trainmon.monitor.thresholds import Thresholds

NAN = math.nan
Columns = dict[str, list[float]]


def key_of(text: str) -> SignalKey:
    name, _, labels = text.partition("{")
    pairs = [part.split("=") for part in labels.rstrip("}").split(",") if part]
    return SignalKey(name, tuple(sorted((label, value) for label, value in pairs)))


def frame_of(columns: Columns, steps: list[float] | None = None) -> Frame:
    n = len(next(iter(columns.values())))
    at = np.array(steps if steps is not None else range(1, n + 1), dtype=np.float64)
    values = {key_of(name): np.array(column, dtype=np.float64) for name, column in columns.items()}
    return Frame(0, "log", at, np.full(n, NAN), np.arange(1, n + 1), values)


def derived(columns: Columns, facts: dict[str, float | str] | None = None, steps: list[float] | None = None) -> Frame:
    return Derivation(Thresholds(), facts or {}).apply(frame_of(columns, steps))


# rule, what is logged, facts, signal, what must come out (None: nothing at all)
CASES: list[tuple[str, Columns, dict[str, float | str], str, list[float] | None]] = [
    # D1: (6 + 1) / (2 + 2) = 1.75, not the mean of 3.0 and 0.5.
    (
        "D1 sums and counts over ranks",
        {
            "loss.sum{rank=0}": [6.0, 8.0],
            "loss.tokens{rank=0}": [2.0, 4.0],
            "loss.sum{rank=1}": [1.0, 4.0],
            "loss.tokens{rank=1}": [2.0, 2.0],
        },
        {},
        "loss.train",
        [1.75, 2.0],
    ),
    (
        "D2 worst rank of sums and counts; a rank that lacks one of them is left out",
        {
            "loss.sum{rank=0}": [6.0, 8.0, 8.0],
            "loss.tokens{rank=0}": [2.0, 4.0, 4.0],
            "loss.sum{rank=1}": [1.0, 6.0, 6.0],
            "loss.tokens{rank=1}": [2.0, 2.0, NAN],
        },
        {},
        "loss.worst_rank",
        [3.0, 3.0, NAN],
    ),
    (
        "D1 weighs means by their tokens",
        {
            "loss.rank{rank=0}": [3.0],
            "loss.tokens{rank=0}": [300.0],
            "loss.rank{rank=1}": [1.0],
            "loss.tokens{rank=1}": [100.0],
        },
        {},
        "loss.train",
        [2.5],
    ),
    (
        "D1 a rank without data is left out, not counted as 0",
        {
            "loss.sum{rank=0}": [6.0, 6.0],
            "loss.tokens{rank=0}": [2.0, 2.0],
            "loss.sum{rank=1}": [4.0, NAN],
            "loss.tokens{rank=1}": [2.0, 2.0],
            "loss.sum{rank=2}": [2.0, 3.0],
            "loss.tokens{rank=2}": [2.0, 1.0],
        },
        {},
        "loss.train",
        [2.0, 3.0],
    ),
    (
        "D1 means without counts weigh the same",
        {
            "loss.rank{rank=0}": [3.0, 2.0, 4.0],
            "loss.rank{rank=1}": [1.0, NAN, 3.0],
            "loss.rank{rank=2}": [2.0, 4.0, NAN],
        },
        {},
        "loss.train",
        [2.0, 3.0, 3.5],
    ),
    ("D1 one process", {"loss.sum": [12.0], "loss.tokens": [4.0]}, {}, "loss.train", [3.0]),
    ("D1 no tokens, no mean", {"loss.sum": [0.0, 3.0], "loss.tokens": [0.0, 1.0]}, {}, "loss.train", [NAN, 3.0]),
    (
        "D2 the worst rank",
        {"loss.rank{rank=0}": [2.0, 1.0], "loss.rank{rank=1}": [2.5, 1.5]},
        {},
        "loss.worst_rank",
        [2.5, 1.5],
    ),
    (
        "D2 a rank that is silent is skipped",
        {"loss.rank{rank=0}": [-2.0, NAN], "loss.rank{rank=1}": [NAN, -3.0], "loss.rank{rank=2}": [-1.5, -2.5]},
        {},
        "loss.worst_rank",
        [-1.5, -2.5],
    ),
    (
        "D2 peak memory",
        {"sys.rank_memory{rank=0}": [5e9], "sys.rank_memory{rank=1}": [7e9]},
        {},
        "sys.peak_memory",
        [7e9],
    ),
    ("D2 longest wait", {"sys.comm_wait{rank=0}": [0.1], "sys.comm_wait{rank=1}": [0.3]}, {}, "sys.comm_wait", [0.3]),
    # D3: (10 + 2) / (5 + 1) = 2 for code, 30 / 10 = 3 for web; 6 of 16 tokens are code.
    (
        "D3 loss of a source over ranks",
        {
            "loss.sum{rank=0,source=code}": [10.0],
            "loss.tokens{rank=0,source=code}": [5.0],
            "loss.sum{rank=1,source=code}": [2.0],
            "loss.tokens{rank=1,source=code}": [1.0],
            "loss.sum{source=web}": [30.0],
            "loss.tokens{source=web}": [10.0],
        },
        {},
        "loss.source{source=code}",
        [2.0],
    ),
    (
        "D3 token share of a source",
        {"loss.tokens{source=code}": [5.0, 0.0], "loss.tokens{source=web}": [15.0, 4.0]},
        {},
        "source.token_share{source=code}",
        [0.25, 0.0],
    ),
    (
        "D3 a source that is not logged on a row has no share there",
        {"loss.tokens{source=code}": [NAN, 1.0], "loss.tokens{source=web}": [15.0, 3.0]},
        {},
        "source.token_share{source=code}",
        [NAN, 0.25],
    ),
    (
        "D3 modality",
        {
            "loss.sum{modality=image}": [4.0],
            "loss.tokens{modality=image}": [8.0],
            "loss.tokens{modality=text}": [24.0],
        },
        {},
        "loss.modality{modality=image}",
        [0.5],
    ),
    (
        "D3 modality share",
        {"loss.tokens{modality=image}": [8.0], "loss.tokens{modality=text}": [24.0]},
        {},
        "modality.token_share{modality=image}",
        [0.25],
    ),
    ("D8 tokens a second", {"sys.step_time": [2.0], "batch.tokens": [1000.0]}, {}, "sys.tokens_per_second", [500.0]),
    (
        "D9 six FLOPs a parameter and token",
        {"sys.tokens_per_second": [1e5]},
        {"active_parameters": 1e9, "parameters": 8e9, "world_size": 8.0},
        "sys.compute_rate",
        [7.5e13],
    ),
    ("D9 MFU", {"sys.compute_rate": [4.945e14]}, {"gpu": "H100", "precision": "bf16"}, "sys.mfu", [0.5]),
    # D10: slowest 1.5 over the median of 1.0, 1.2, 1.5.
    (
        "D10 straggler over the median of the ranks",
        {"sys.rank_step_time{rank=0}": [1.0], "sys.rank_step_time{rank=1}": [1.2], "sys.rank_step_time{rank=2}": [1.5]},
        {},
        "sys.straggler",
        [1.25],
    ),
    (
        "D11 from RMS",
        {"update.rms{layer=3}": [2e-4], "param.rms{layer=3}": [0.1]},
        {},
        "update.ratio{layer=3}",
        [2e-3],
    ),
    ("D11 from norms", {"update.norm": [3.0], "param.norm": [1500.0]}, {}, "update.ratio", [2e-3]),
    (
        "D11 never of two tensors",
        {"update.rms{layer=3}": [2e-4], "param.rms{layer=4}": [0.1]},
        {},
        "update.ratio{layer=3}",
        None,
    ),
    # D12: loads 5 4 4 3, mean 4: the fullest has 25% more than the mean.
    (
        "D12 MaxVio 0.25 is 25% above the mean",
        {f"moe.load{{expert={i},layer=0}}": [load] for i, load in enumerate([5.0, 4.0, 4.0, 3.0])},
        {},
        "moe.maxvio{layer=0}",
        [0.25],
    ),
    (
        "D12 I is MaxVio + 1",
        {f"moe.load{{expert={i},layer=0}}": [load] for i, load in enumerate([5.0, 4.0, 4.0, 3.0])},
        {},
        "moe.imbalance{layer=0}",
        [1.25],
    ),
    (
        "D12 the worst layer is not averaged away",
        {
            **{f"moe.load{{expert={i},layer=0}}": [4.0] for i in range(4)},
            **{f"moe.load{{expert={i},layer=1}}": [load] for i, load in enumerate([12.0, 4.0, 0.0, 0.0])},
        },
        {},
        "moe.maxvio",
        [2.0],
    ),
    (
        "D12 shards",
        {"moe.shard_load{shard=0}": [30.0], "moe.shard_load{shard=1}": [10.0]},
        {},
        "moe.shard_imbalance",
        [0.5],
    ),
    (
        "D12 shards from experts: 5 + 4 against 4 + 3, mean 8",
        {f"moe.load{{expert={i},layer=0}}": [load] for i, load in enumerate([5.0, 4.0, 4.0, 3.0])},
        {"expert_parallel_size": 2.0},
        "moe.shard_imbalance{layer=0}",
        [0.125],
    ),
    (
        "D13 1 at uniform",
        {f"moe.load{{expert={i},layer=0}}": [7.0] for i in range(8)},
        {},
        "moe.entropy{layer=0}",
        [1.0],
    ),
    (
        "D13 two of four experts: log 2 / log 4",
        {f"moe.load{{expert={i},layer=0}}": [load] for i, load in enumerate([8.0, 8.0, 0.0, 0.0])},
        {},
        "moe.entropy{layer=0}",
        [0.5],
    ),
    (
        "D13 a layer that no token reached is missing, not 0",
        {f"moe.load{{expert={i},layer=0}}": [0.0, 1.0] for i in range(4)},
        {},
        "moe.entropy{layer=0}",
        [NAN, 1.0],
    ),
    ("D14 importance", {"residual.cosine{layer=1}": [0.75]}, {}, "residual.block_importance{layer=1}", [0.25]),
    ("D14 angle", {"residual.cosine{layer=1}": [0.5]}, {}, "residual.angle{layer=1}", [1 / 3]),
    ("D14 angle of importance", {"residual.block_importance{layer=1}": [1.0]}, {}, "residual.angle{layer=1}", [0.5]),
    ("D14 importance of angle", {"residual.angle{layer=1}": [1 / 3]}, {}, "residual.block_importance{layer=1}", [0.5]),
    ("D15 squares", {"grad.norm": [2.0], "modality.encoder_grad": [1.0]}, {}, "modality.encoder_grad_share", [0.25]),
    (
        "D15 nothing of nothing",
        {"grad.norm": [0.0], "modality.encoder_grad": [0.0]},
        {},
        "modality.encoder_grad_share",
        None,
    ),
    ("D16 perplexity", {"eval.nll": [math.log(20.0)]}, {}, "eval.perplexity", [20.0]),
    ("D16 loss of a perplexity", {"eval.perplexity": [math.e**3]}, {}, "eval.nll", [3.0]),
    # BPB: 2 nats a token, 1,000 tokens of 4,000 bytes: 2 * 1000 / 4000 / log 2.
    (
        "D16 BPB from NLL, tokens and bytes",
        {"eval.nll": [2.0], "eval.tokens": [1000.0], "eval.bytes": [4000.0]},
        {},
        "eval.bits_per_byte",
        [0.5 / math.log(2)],
    ),
    (
        "D16 BPB from the sum of losses is the same",
        {"eval.loss_sum": [2000.0], "eval.bytes": [4000.0]},
        {},
        "eval.bits_per_byte",
        [0.5 / math.log(2)],
    ),
    ("D16 NLL from the sum", {"eval.loss_sum": [2000.0], "eval.tokens": [1000.0]}, {}, "eval.nll", [2.0]),
    ("D17 gain", {"eval.with_media": [0.7], "eval.without_media": [0.4]}, {}, "eval.media_gain", [0.3]),
    (
        "D2 reserved memory of the fullest rank",
        {"sys.reserved_memory{rank=0}": [3e9, 9e9], "sys.reserved_memory{rank=1}": [5e9, 4e9]},
        {},
        "sys.reserved_memory",
        [5e9, 9e9],
    ),
    ("fragmentation", {"sys.peak_memory": [5e9], "sys.reserved_memory": [8e9]}, {}, "sys.fragmentation", [3e9]),
    ("memory share", {"sys.peak_memory": [4e10]}, {"gpu_memory_bytes": 8e10}, "sys.memory_share", [0.5]),
]


@pytest.mark.parametrize(("logged", "facts", "signal", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_formulas(logged: Columns, facts: dict[str, float | str], signal: str, expected: list[float] | None) -> None:
    column = derived(logged, facts).columns.get(key_of(signal))
    if expected is None:
        assert column is None
        return
    assert column is not None
    assert column.tolist() == pytest.approx(expected, nan_ok=True)


def test_what_is_logged_is_never_derived() -> None:
    logged: Columns = {"loss.sum": [12.0], "loss.tokens": [4.0], "loss.train": [3.1]}
    assert derived(logged).columns[SignalKey("loss.train")].tolist() == [3.1]


def test_ranks_with_rows_of_their_own_are_added_at_the_last_ranks_row() -> None:
    nothing = NAN
    logged: Columns = {
        "loss.sum{rank=0,source=code}": [6.0, nothing, 2.0, nothing],
        "loss.tokens{rank=0,source=code}": [2.0, nothing, 2.0, nothing],
        "loss.sum{rank=1,source=code}": [nothing, 1.0, nothing, 4.0],
        "loss.tokens{rank=1,source=code}": [nothing, 2.0, nothing, 1.0],
    }
    found = derived(logged, steps=[1.0, 1.0, 2.0, 2.0]).columns[key_of("loss.source{source=code}")]
    assert found.tolist() == pytest.approx([NAN, 1.75, NAN, 2.0], nan_ok=True)


def test_the_clip_rate_is_the_share_of_the_last_window() -> None:
    limits = Thresholds().override({"window": 4.0, "clip": 1.0}, "flag")
    norms = [0.5, 2.0, 3.0, 0.1, 0.2, 1.0, 1.1]
    found = Derivation(limits, {}).apply(frame_of({"grad.norm": norms})).columns[SignalKey("grad.clip_rate")]
    assert found.tolist() == pytest.approx([NAN, NAN, NAN, 0.5, 0.5, 0.25, 0.25], nan_ok=True)


def test_the_score_is_two_sided_on_log_values() -> None:
    # Window e^-1 .. e^1 in steps of 0.5: median of u 0, MAD 0.5; u = 3 scores 0.6745 * 3 / 0.5.
    stat = RobustScore(window=100)
    for u in (-1.0, -0.5, 0.0, 0.5, 1.0):
        stat.update(math.exp(u))
    assert stat.score(math.exp(3.0)) == pytest.approx(0.6745 * 3 / 0.5, rel=1e-6)
    assert stat.score(math.exp(-3.0)) == pytest.approx(-0.6745 * 3 / 0.5, rel=1e-6)
    assert stat.score(1.0) == pytest.approx(0.0, abs=1e-6)


@given(st.integers(1, 12), st.integers(2, 64))
def test_maxvio_and_entropy_at_their_ends(tokens: int, experts: int) -> None:
    violation, entropy = balance(np.full((experts, 1), float(tokens)))
    assert violation[0] == pytest.approx(0.0, abs=1e-9)
    assert entropy[0] == pytest.approx(1.0)
    one = np.zeros((experts, 1))
    one[0] = tokens
    violation, entropy = balance(one)
    assert violation[0] == pytest.approx(experts - 1)
    assert entropy[0] == pytest.approx(0.0, abs=1e-9)


NAMES = (
    "loss.sum{rank=0}", "loss.tokens{rank=0}", "loss.sum{rank=1}", "loss.tokens{rank=1}", "loss.sum{source=a}",
    "loss.tokens{source=a}", "loss.tokens{source=b}", "sys.comm_wait{rank=0}", "sys.comm_wait{rank=1}", "eval.nll",
    "eval.tokens", "eval.bytes", "moe.shard_load{shard=0}", "moe.shard_load{shard=1}", "update.rms", "param.rms",
    "residual.cosine{layer=0}", "modality.encoder_grad", "grad.norm", "sys.peak_memory", "sys.reserved_memory",
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(
    data=st.lists(
        st.dictionaries(st.sampled_from(NAMES), st.sampled_from([0.0, 1.0, 2.5, 1e9]), min_size=1),
        min_size=2,
        max_size=12,
    ),
    repeats=st.lists(st.integers(1, 3), min_size=12, max_size=12),
    at=st.integers(1, 11),
)
def test_the_cut_into_frames_does_not_matter(data: list[dict[str, float]], repeats: list[int], at: int) -> None:
    steps = np.repeat(np.arange(12.0), repeats)[: len(data)].tolist()
    names = sorted({name for row in data for name in row})
    whole = frame_of({name: [row.get(name, NAN) for row in data] for name in names}, steps)
    at = min(at, len(data) - 1)
    once, twice = Derivation(Thresholds(), {}), Derivation(Thresholds(), {})
    expected = once.apply(whole)
    parts = [twice.apply(piece) for piece in (rows(whole, slice(0, at)), rows(whole, slice(at, None)))]
    for key, column in expected.columns.items():
        got = np.concatenate([part.columns.get(key, np.full(len(part), NAN)) for part in parts])
        assert np.array_equal(got, column, equal_nan=True), key


@pytest.mark.parametrize("labels", ["", ",source=code"])
def test_a_ranks_sum_and_its_count_in_rows_of_their_own(labels: str) -> None:
    """Sums stand in the step's first row, counts in its second: 6 + 1 over 2 + 2, wherever the frames were cut."""
    told = {f"loss.sum{{rank=0{labels}}}": [6.0, NAN], f"loss.sum{{rank=1{labels}}}": [NAN, 1.0]}
    told |= {f"loss.tokens{{rank={rank}{labels}}}": [NAN, 2.0] for rank in (0, 1)}
    whole = frame_of(told, [1.0, 1.0])
    key = SignalKey("loss.source", (("source", "code"),)) if labels else SignalKey("loss.train")
    assert np.array_equal(derived(told, steps=[1.0, 1.0]).columns[key], [NAN, 1.75], equal_nan=True)
    rule = Derivation(Thresholds(), {})
    first, second = rule.apply(rows(whole, slice(0, 1))), rule.apply(rows(whole, slice(1, 2)))
    assert key not in first.columns
    assert second.columns[key].tolist() == [1.75]


def rows(frame: Frame, where: slice) -> Frame:
    """Some rows, without the columns that are empty there, as the engine gives them."""
    columns = {key: values[where] for key, values in frame.columns.items() if not np.isnan(values[where]).all()}
    return replace(frame, steps=frame.steps[where], times=frame.times[where], lines=frame.lines[where], columns=columns)


def test_co_spikes_are_counted_whatever_the_pieces() -> None:
    rng = np.random.default_rng(3)
    n = 400
    values = {"loss": 2.0 * np.exp(0.005 * rng.normal(size=n)), "grad_norm": 0.4 * np.exp(0.05 * rng.normal(size=n))}
    for at in (200, 300, 301):
        values["loss"][at] *= 2
        values["grad_norm"][at] *= 20
    values["grad_norm"][250] *= 20
    lines = [Line({name: float(x[i]) for name, x in values.items()}, float(i)) for i in range(n)]
    key = SignalKey("spike.co_count")
    whole = read(lines, detectors=DETECTORS).series_views()[key]
    assert dict(zip(whole.steps.tolist(), whole.values.tolist(), strict=True)) == {200.0: 1.0, 300.0: 2.0, 301.0: 3.0}
    watched = engine(detectors=DETECTORS)
    feed_cut(watched, lines, [50, 200, 201, 260, 300, 301, 333])
    assert watched.series_views()[key].values.tolist() == whole.values.tolist()
    assert key not in read(lines[:150], detectors=DETECTORS).series_views()


def test_steps_per_second_tell_the_step_time_and_are_no_samples() -> None:
    made = read([Line({"loss": 2.5, "it/s": 4.0}, step) for step in range(1, 5)])
    views = made.series_views()
    assert views[SignalKey("sys.step_time")].values.tolist() == [0.25] * 4
    made = read([Line(fact=("seq_length", 2048.0)), *(Line({"loss": 2.5, "it/s": 4.0}, step) for step in range(1, 5))])
    assert SignalKey("sys.tokens_per_second") not in made.series_views()
