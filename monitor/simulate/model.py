"""The arithmetic of a simulated training run: what each step measures, before anything is printed.

Numbers are those of real small pretraining runs: a power-law loss with correlated heavy-tailed noise, a
gradient norm that settles during warm-up, a cosine schedule, step times with a little jitter. What a step
draws at random is a function of (seed, step), so that steps trained again after a restart reproduce; how
long it takes is not, since machines never repeat themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from trainmon.tails.record import FloatArray

Style = Literal["torchtitan", "megatron", "nanochat", "hf", "moe"]

GIB = float(2**30)
_CARD_GIB = 79.10
_PEAK_FLOPS = 989e12  # H100 SXM, dense bf16
_SCAN_EVERY = 100
_TABLE = 1 << 14  # draws repeat after this many steps, long after anyone could tell


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One simulated run. `step_s` is a healthy step, `history_steps` what stands in the log before it goes live.

    `layers` of `experts` each route tokens; `blocks` is how many layers have tensor statistics, every 100 steps.
    `ranks` is the size of the job; the first `simulated_ranks` of them are simulated one by one.
    """

    name: str
    style: Style
    total_steps: int
    history_steps: int
    step_s: float
    parameters: float
    batch_tokens: int
    seq_length: int
    peak_lr: float
    warmup_steps: int
    checkpoint_every: int = 250
    eval_every: int = 250
    ranks: int = 8
    first_loss: float = 10.83
    floor_loss: float = 2.30
    loss_noise: float = 0.008
    grad_level: float = 0.38
    memory_gib: float = 58.4
    layers: int = 0
    experts: int = 0
    blocks: int = 0
    sources: tuple[tuple[str, float, float], ...] = ()  # (name, share of tokens, loss against the mean)

    @property
    def simulated_ranks(self) -> int:
        """How many ranks have numbers of their own."""
        return min(self.ranks, 8)


@dataclass(slots=True)
class Step:
    """What one executed step measured. Effects of faults change it before it is written.

    `tick` counts executed steps (never goes back), `step` is the optimiser's counter (goes back at a restart).
    `rank_loss`, `rank_compute_s`: (ranks,). `source_loss`, `source_share`: (sources,), the losses weighted by the
    shares give `loss`. `load`: (layers, experts) tokens routed, or None for a dense model. `blocks`: statistic ->
    (blocks,) on the steps that scan tensors.
    `crash` names how the job dies right after this step; `resume_after_s` when it comes back (None: never).
    """

    tick: int
    step: int
    loss: float
    grad_norm: float
    lr: float
    rank_loss: FloatArray
    rank_compute_s: FloatArray
    source_loss: FloatArray
    source_share: FloatArray
    memory_gib: float
    output_abs_max: float
    data_wait_s: float = 0.004
    pause_s: float = 0.0
    val_loss: float | None = None
    load: FloatArray | None = None
    blocks: dict[str, FloatArray] = field(default_factory=dict)
    saves_checkpoint: bool = False
    crash: str = ""
    resume_after_s: float | None = None
    restarted_from: int | None = None
    attempt: int = 0
    step_s: float = 0.0
    elapsed_s: float = 0.0

    @property
    def tokens_lost(self) -> bool:
        """Whether the loss is no number any more, and so the weights are gone."""
        return not np.isfinite(self.loss)


Effect = Callable[[Step], None]


@dataclass(slots=True)
class _Noise:
    loss: FloatArray
    grad: FloatArray
    ranks: FloatArray


def _correlated(draws: FloatArray, rho: float) -> FloatArray:
    out = np.empty_like(draws)
    last, gain = 0.0, float(np.sqrt(1.0 - rho * rho))
    for index, value in enumerate(draws.tolist()):
        last = rho * last + gain * value
        out[index] = last
    return out


def _draw(rng: np.random.Generator, ranks: int) -> _Noise:
    # Student-t, clipped: batches differ with heavy tails, but a healthy run has no batch off by 10%.
    loss = np.clip(rng.standard_t(5.0, _TABLE) * 0.775, -5.0, 5.0)
    grad = np.clip(rng.standard_t(6.0, _TABLE) * 0.816, -4.0, 5.0)
    per_rank = rng.normal(size=(_TABLE, ranks))
    return _Noise(_correlated(loss, 0.35), _correlated(grad, 0.2), per_rank - per_rank.mean(axis=1, keepdims=True))


@dataclass(slots=True)
class RunModel:
    """Executes a `RunSpec` step by step. `effects` are applied to each step in order, before it takes effect."""

    spec: RunSpec
    seed: Sequence[int]
    effects: Sequence[Effect] = ()
    step: int = 0
    attempt: int = 0
    tick: int = 0
    elapsed_s: float = 0.0
    last_checkpoint: int = 0
    _noise: _Noise = field(init=False)
    _clockwork: np.random.Generator = field(init=False)
    _diverged: bool = False

    def __post_init__(self) -> None:
        self._noise = _draw(np.random.default_rng([*self.seed, 1]), self.spec.simulated_ranks)
        self._clockwork = np.random.default_rng([*self.seed, 2])

    def run(self) -> Iterator[Step]:
        """Every executed step until the run is complete or has died for good."""
        restarted_from: int | None = None
        while self.step < self.spec.total_steps:
            now = self._measure()
            now.restarted_from, restarted_from = restarted_from, None
            yield now
            if now.crash:
                if now.resume_after_s is None:
                    return
                self.elapsed_s += now.resume_after_s
                self.step = restarted_from = self.last_checkpoint
                self.attempt += 1

    def _measure(self) -> Step:
        spec, step = self.spec, self.step + 1
        compute = spec.step_s * 0.88 * np.exp(self._clockwork.normal(0.0, 0.006, spec.simulated_ranks))
        row = step % _TABLE
        loss = self._trend(step) * (1.0 + spec.loss_noise * float(self._noise.loss[row]))
        now = Step(
            tick=self.tick,
            step=step,
            loss=loss,
            grad_norm=self._grad_trend(step) * float(np.exp(0.11 * self._noise.grad[row])),
            lr=learning_rate(spec, step),
            rank_loss=loss * (1.0 + 1.8 * spec.loss_noise * self._noise.ranks[row]),
            rank_compute_s=compute,
            source_loss=loss * self._source_ratios(row),
            source_share=np.array([share for _, share, _ in spec.sources]),
            output_abs_max=14.0 + 3.0 * (1.0 - float(np.exp(-step / 2000.0))) + 0.5 * float(self._noise.grad[row]),
            memory_gib=spec.memory_gib + 0.02 * float(self._clockwork.random()),
            load=self._load(),
            blocks=self._blocks(step),
            attempt=self.attempt,
        )
        self._housekeeping(now)
        for effect in self.effects:
            effect(now)
        self._settle(now)
        return now

    def _housekeeping(self, now: Step) -> None:
        if now.step % self.spec.checkpoint_every == 0:
            now.saves_checkpoint = True
            now.pause_s += 5.0 * self.spec.step_s * (1.0 + 0.1 * float(self._clockwork.random()))
        if now.step % self.spec.eval_every == 0:
            now.val_loss = self._trend(now.step) * 1.012
            now.pause_s += 7.0 * self.spec.step_s

    def _settle(self, now: Step) -> None:
        """What follows from the step: its duration, and weights that stay lost once the loss was no number."""
        if self._diverged or now.tokens_lost:
            self._diverged = True
            now.loss = now.grad_norm = float("nan")
            now.rank_loss = np.full(self.spec.simulated_ranks, np.nan)
            now.source_loss = np.full(len(self.spec.sources), np.nan)
            now.output_abs_max = float("nan")
            now.val_loss = None if now.val_loss is None else float("nan")
        overhead = self.spec.step_s * 0.12 * (1.0 + 0.1 * float(self._clockwork.normal()))
        now.step_s = float(now.rank_compute_s.max()) + max(overhead, 0.0)
        self.elapsed_s += now.step_s + now.pause_s
        now.elapsed_s = self.elapsed_s
        if now.saves_checkpoint:
            self.last_checkpoint = now.step
        self.step = now.step
        self.tick += 1

    def _trend(self, step: int) -> float:
        """Loss = floor + (first - floor) * (1 + step / s0) ** -alpha, s0 = 60 steps, alpha = 0.46."""
        spec = self.spec
        return spec.floor_loss + (spec.first_loss - spec.floor_loss) * float((1.0 + step / 60.0) ** -0.46)

    def _grad_trend(self, step: int) -> float:
        return self.spec.grad_level * float(1.0 + 14.0 * np.exp(-step / 40.0) + 1.2 * np.exp(-step / 600.0))

    def _source_ratios(self, row: int) -> FloatArray:
        """(sources,) loss of each source against the mean, so that the share-weighted mean is exactly 1."""
        count = len(self.spec.sources)
        if not count:
            return np.empty(0)
        ratios = np.array([ratio for _, _, ratio in self.spec.sources])
        ratios = ratios * (1.0 + self.spec.loss_noise * np.resize(self._noise.ranks[row], count))
        shares = np.array([share for _, share, _ in self.spec.sources])
        scaled: FloatArray = ratios * (shares.sum() / float(shares @ ratios))
        return scaled

    def _blocks(self, step: int) -> dict[str, FloatArray]:
        """What a scan of the tensors of each block finds; deeper blocks carry larger activations."""
        count = self.spec.blocks
        if not count or step % _SCAN_EVERY:
            return {}
        noise = np.exp(0.04 * np.random.default_rng([*self.seed, 3, step]).normal(size=(4, count)))
        depth = np.linspace(0.0, 1.0, count)
        settled = 1.0 + 2.0 * float(np.exp(-step / 600.0))
        return {
            "update_ratio": 1.1e-3
            * learning_rate(self.spec, step)
            / self.spec.peak_lr
            * (1.3 - 0.5 * depth)
            * noise[0],
            "rms": (0.6 + 1.4 * depth) * settled**0.3 * noise[1],
            "abs_max": (9.0 + 14.0 * depth) * settled**0.5 * noise[2],
            "branch_scale": (0.42 - 0.27 * depth) * settled**0.2 * noise[3],
        }

    def _load(self) -> FloatArray | None:
        if not self.spec.experts:
            return None
        tokens = self.spec.batch_tokens * 2 / self.spec.experts
        spread = self._clockwork.normal(1.0, 0.07, (self.spec.layers, self.spec.experts))
        return np.round(tokens * np.clip(spread, 0.5, 1.5))


def learning_rate(spec: RunSpec, step: int) -> float:
    """Linear warm-up to the peak, then a cosine to a tenth of it."""
    if step <= spec.warmup_steps:
        return spec.peak_lr * step / spec.warmup_steps
    share = (step - spec.warmup_steps) / max(spec.total_steps - spec.warmup_steps, 1)
    return spec.peak_lr * (0.1 + 0.45 * (1.0 + float(np.cos(np.pi * min(share, 1.0)))))


def tokens_per_second(spec: RunSpec, step: Step) -> float:
    """Over all ranks, without the pauses for checkpoints and evaluation."""
    return spec.batch_tokens / step.step_s


def flops_per_rank(spec: RunSpec, step: Step) -> float:
    """FLOP/s of one card: 6 N tokens / s (METRICS.md D9)."""
    return 6.0 * spec.parameters * tokens_per_second(spec, step) / spec.ranks


def flops_share(spec: RunSpec, step: Step) -> float:
    """MFU, 0 to 1, against an H100's dense bf16 peak."""
    return flops_per_rank(spec, step) / _PEAK_FLOPS


def card_gib() -> float:
    """What a simulated card holds, GiB."""
    return _CARD_GIB
