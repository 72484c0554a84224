"""Which key of a record is its step, and which rows count on another counter.

The choice is made on the first record that offers a candidate and never changes after: it depends on the order of
the records alone, not on how the bytes arrive. The optimiser's step wins over the log call, the micro-step, counts
of samples and the epoch. Counters that may stand still (epochs, batches, samples) are *weak*: they are taken only
when they are seen to rise from one record to the next of the same kind.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.record import FloatArray

BoolArray = NDArray[np.bool_]


def word_set(text: str) -> frozenset[str]:
    """The words of `text`, blanks between."""
    return frozenset(text.split())


_BY_RANK: tuple[tuple[str, ...], ...] = (
    (
        *("global_step", "globalstep", "global_steps", "optimizer_step", "optimizer_steps", "optim_step", "opt_step"),
        "total_train_updates",
    ),
    (
        *("step", "steps", "current_step", "current_steps", "cur_step", "train_step", "training_step", "train_steps"),
        *("trainstep", "step_number", "step_num", "step_idx", "step_id", "step_i", "nstep", "stepnum", "step_count"),
        *("steps_completed", "completed_steps"),
    ),
    (
        *("iteration", "iter", "iters", "iterations", "it", "itr", "iteration_number", "iter_num", "iter_no"),
        *("current_iteration", "current_iter", "cur_iter", "global_iter", "global_iteration", "train_iter", "n_iter"),
        *("training_iteration", "training_iterations", "training_iter"),
    ),
    ("update", "updates", "num_updates", "n_updates", "update_step", "num_update"),
    ("_step",),
    ("checkpoint_step", "ckpt_step", "checkpoint_iteration"),
)
_WEAK_BY_RANK: tuple[tuple[str, ...], ...] = (
    (
        *("consumed_samples", "samples_seen", "num_samples_seen", "n_samples_seen", "consumed_tokens", "tokens_seen"),
        *("n_tokens_seen", "num_tokens_seen", "num_input_tokens_seen", "train_tokens_seen", "totalenvsteps"),
        *("total_env_steps", "env_steps", "total_timesteps", "timesteps", "timestep", "examples_seen"),
        *("environment_steps", "total_environment_steps"),
        *("num_env_steps_sampled_lifetime", "timesteps_total", "num_env_steps_sampled", "agent_timesteps_total"),
        *("cumulative_examples", "cumulative_tokens", "cumulative_samples", "total_tokens_processed", "samples_count"),
    ),
    ("batch", "batches", "batch_idx", "batch_num", "batch_number", "batch_id", "minibatch", "micro_step", "microstep"),
    ("total_tokens", "tokens", "samples", "num_samples", "examples", "total_samples", "num_steps", "n_steps"),
    (
        *("round", "episode", "episodes", "num_episodes", "n_episodes", "generation", "cycle", "i", "idx", "index"),
        *("rollout", "rollouts", "tick", "episode_num", "episode_number", "round_num", "round_number"),
    ),
    ("epoch", "epochs", "epoch_number", "epoch_num", "current_epoch", "cur_epoch", "epoch_idx", "train_epoch"),
)
_RANK = {name: float(rank) for rank, names in enumerate(_BY_RANK) for name in names}
WEAK_RANK = float(len(_BY_RANK) + 1)
_RANK |= {name: WEAK_RANK + rank for rank, names in enumerate(_WEAK_BY_RANK) for name in names}

# Words that may stand before the step's name without making it another thing's counter.
_PLAIN_PREFIXES = word_set(
    "train training trainer progress global metrics metric extras extra counters state stats misc info metadata "
    "data log logs time perf timing general common optim optimizer system meta run loop"
)
_EVAL_WORDS = word_set("eval evaluation evaluate val valid validation validate test testing dev heldout ood")
_LOSS_WORDS = word_set("loss losses nll reward rewards objective")
_TRAINING_WORDS = word_set("loss losses nll ppl perplexity lr reward rewards gnorm grad gradient objective")
_WORD = lazy(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SEPARATORS = lazy(r"[\s\-]+")


@lru_cache(maxsize=65536)
def words_of(key: str) -> frozenset[str]:
    """The words of a key or a type name, lower case.

    >>> sorted(words_of("eval/meanLoss_2"))
    ['2', 'eval', 'loss', 'mean']
    """
    return frozenset(word.lower() for word in _WORD.findall(key[:200]))


def says_eval(key: str) -> bool:
    """Whether the key's own name says that it was measured on held-out data."""
    return not _EVAL_WORDS.isdisjoint(words_of(key))


@lru_cache(maxsize=65536)
def is_training_key(key: str) -> bool:
    """Whether only a training record carries such a key: its loss, reward, learning rate or gradient."""
    words = words_of(key)
    return not says_eval(key) and (not _TRAINING_WORDS.isdisjoint(words) or {"learning", "rate"} <= words)


@lru_cache(maxsize=65536)
def is_loss_key(key: str) -> bool:
    """Whether `key` is what training makes better: a loss or reward that is not held-out.

    >>> is_loss_key("loss/total"), is_loss_key("grad_norm")
    (True, False)
    """
    return not says_eval(key) and not _LOSS_WORDS.isdisjoint(words_of(key))


@lru_cache(maxsize=65536)
def step_rank(key: str) -> float | None:
    """How well `key` serves as the step by its name: lower is better, None not at all, from `WEAK_RANK` on only
    when nothing better is there and its values rise.

    >>> step_rank("trainer/global_step") < step_rank("step") < step_rank("_step") < step_rank("epoch")
    True
    >>> step_rank("step_time") is None
    True
    """
    if key == "_step":
        return _RANK["_step"]
    *before, last = re.split(r"[/.]", key[:200])
    rank = _RANK.get(_SEPARATORS.sub("_", last.strip().lower()).strip("_"))
    if rank is None:
        return None
    strange = any(part.strip().lower() not in _PLAIN_PREFIXES for part in before if part)
    return rank + 100.0 if strange else rank


def ranked_step_keys(keys: Iterable[str]) -> list[str]:
    """The keys that could be the step, best first; equal ranks in the order given."""
    ranked = [(rank, key) for key in keys if (rank := step_rank(key)) is not None]
    return [key for _, key in sorted(ranked, key=lambda pair: pair[0])]


_FALLING = 0.9  # of the changes: a restart is a rise among them


def falls(steps: Sequence[float]) -> bool:
    """Whether steps fall from the first to the last, but for a few rises: the newest record stands on top.

    >>> falls([50, 40, 30, 20, 10]), falls([50, 40, 30, 40, 50])
    (True, False)
    """
    changes = [after < before for before, after in pairwise(steps) if after != before]
    return bool(changes) and sum(changes) >= _FALLING * len(changes)


Values = Mapping[str, float | None]


def step_key_of(values: Values) -> str | None:
    """The key of one record that is its step for certain: a strong name and a whole number; None when there is none.

    >>> step_key_of({"perf/train_step": 12.5, "loss": 2.0}), step_key_of({"epoch": 1.0, "train/step": 7.0})
    (None, 'train/step')
    """
    for key in ranked_step_keys(values):
        value = values[key]
        if (step_rank(key) or 0.0) < WEAK_RANK and value is not None and math.isfinite(value) and value == int(value):
            return key
    return None


class StepChooser:
    """Decides once which key is the step.

    `consider` is given each record in order until it returns True. While only weak candidates are there it asks for
    the records that follow (`LOOK_AHEAD` at most); with too few of them and `final` false it returns None: hold the
    record back and ask again.

    >>> chooser = StepChooser()
    >>> chooser.consider({"epoch": 1.0, "loss": 2.0}, [{"epoch": 1.0, "loss": 1.9}], final=True), chooser.key
    (False, '')
    >>> chooser.consider({"iter": 10.0, "loss": 2.0}, [], final=False), chooser.key
    (True, 'iter')
    """

    LOOK_AHEAD = 16

    def __init__(self) -> None:
        self.key = ""
        self._refused: set[str] = set()

    @property
    def decided(self) -> bool:
        """Whether a key was chosen."""
        return bool(self.key)

    def offers(self, values: Values) -> bool:
        """Whether `consider` could come to a decision on this record."""
        return bool(self._candidates(values))

    def could_choose(self, key: str) -> bool:
        """Whether `key` may still become the step."""
        return not self.key and key not in self._refused and step_rank(key) is not None

    def consider(self, values: Values, following: Sequence[Values], *, final: bool) -> bool | None:
        """True once a key is chosen, False when this record decides nothing, None when more must be seen first."""
        mine = self._candidates(values)
        if not mine or self.key:
            return bool(self.key)
        following = following[: self.LOOK_AHEAD]
        is_all = final or len(following) == self.LOOK_AHEAD
        for at, record in enumerate((values, *following)):
            strong = [key for key in self._candidates(record) if (step_rank(key) or 0.0) < WEAK_RANK]
            if strong:
                key = _moving(strong, record, following[at:], is_all=is_all)
                self.key = key or ""
                return True if key is not None else None
        if not is_all:
            return None  # a better key may come, and must win however the log is cut
        for key in mine:
            rising = _rises(key, values, following)
            if rising or rising is None:
                self.key = key
                return True
            self._refused.add(key)
        return False

    def _candidates(self, values: Values) -> list[str]:
        ranked = ranked_step_keys(values)
        return [key for key in ranked if key not in self._refused and _could_be_step(key, values[key])]


def _could_be_step(key: str, value: float | None) -> bool:
    """Whether `value` may be that of the step `key`: a whole number (``time/step: 0.25`` is none), or an epoch."""
    if value is None or not math.isfinite(value):
        return False
    return value == int(value) or (step_rank(key) or 0.0) >= WEAK_RANK


def _moving(keys: Sequence[str], values: Values, following: Sequence[Values], *, is_all: bool) -> str | None:
    """The first of the `keys` that does not stand still while another one rises from each record to the next (how many
    steps each iteration takes is no step); None when more must be seen to tell. `is_all`: there is no more to see.

    >>> rows = [{"train_steps": 300.0, "iteration": float(i)} for i in (12, 13, 14)]
    >>> _moving(["train_steps", "iteration"], rows[0], rows[1:], is_all=True)
    'iteration'
    """
    best, *others = keys
    behind = [record for record in following if all(record.get(key) is not None for key in keys)]
    if not others or any(record[best] != values[best] for record in behind):
        return best
    if not is_all:
        return None
    for other in others if len(behind) > 1 else ():
        counted = [record[other] or 0.0 for record in (values, *behind)]
        if all(a < b for a, b in pairwise(counted)):
            return other
    return best


def _rises(key: str, values: Values, following: Sequence[Values]) -> bool | None:
    """Whether `key` grows from this record to the next of its kind; None when there is none yet."""
    own = {name for name in values if step_rank(name) is None}
    start = values[key]
    for record in following:
        value = record.get(key)
        if value is None or start is None or not math.isfinite(value):
            continue
        if not own or any(name in own for name in record):
            return value > start
    return None


class StepTrack:
    """Takes the step away from rows that count on another counter than the training rows.

    Validation rows that carry an epoch number under the step's name would look like restarts: a row that holds
    nothing only a training record carries, and whose step lies behind the newest training step, has no step.
    """

    def __init__(self) -> None:
        self._newest = -math.inf

    def own_steps(self, steps: FloatArray, training_rows: BoolArray | None = None) -> FloatArray:
        """`steps` (n,) with NaN where the row counts on another counter; rows are in file order.

        `training_rows` (n,) may be left out when every row is one.
        """
        known = ~np.isnan(steps)
        if training_rows is None:
            if known.any():
                self._newest = float(steps[known][-1])
            return steps
        anchors = np.where(known & training_rows, np.arange(1, len(steps) + 1), 0)
        newest = np.concatenate(([self._newest], steps))[np.maximum.accumulate(anchors)]
        if len(newest):
            self._newest = float(newest[-1])
        foreign = known & ~training_rows & (steps < newest)
        return np.where(foreign, math.nan, steps) if foreign.any() else steps

    def own_step(self, step: float, *, is_training: bool) -> float:
        """The same for one row."""
        if is_training:
            self._newest = step if step == step else self._newest
        elif step < self._newest:
            return math.nan
        return step


class EpochSteps:
    """Steps that may count inside an epoch whose length nobody tells.

    Where the count goes on from one epoch to the next it is the run's own; where it begins again, the epochs before
    are added, as far as their steps were seen.

    >>> steps = EpochSteps()
    >>> [steps.step(epoch, step) for epoch, step in [(0, 0), (0, 50), (0, 100), (1, 0), (1, 50), (2, 0)]]
    [0, 50, 100, 150, 200, 250]
    >>> steps = EpochSteps()
    >>> [steps.step(epoch, step) for epoch, step in [(1, 50), (1, 100), (2, 150)]]
    [50, 100, 150]
    """

    def __init__(self) -> None:
        self._epoch = -math.inf
        self._before: float = 0
        self._last: float = -math.inf
        self._stride: float = 1

    def step(self, epoch: float, step: float) -> float:
        """The step of the run that `step` of `epoch` is. Call once a record, in file order."""
        if epoch < self._epoch:  # the run begins again
            self._before = 0
        elif epoch > self._epoch:
            if step <= self._last:
                self._before += self._last + (self._stride if step == 0 else 0)
        elif step > self._last:
            self._stride = step - self._last
        self._epoch, self._last = epoch, step
        return self._before + step
