"""Keys whose value tells the runs of one file apart, by what they are called."""

from __future__ import annotations

from functools import lru_cache

from trainmon.tails.formats.kinds import SPLIT_KEYS, TYPE_KEYS
from trainmon.tails.formats.long_form import NAME_KEYS
from trainmon.tails.formats.stamps import stamp_order
from trainmon.tails.steps import step_rank, word_set

# The name or number of a run: two values are two runs, also where their records are written in turn.
_NAMES = word_set(
    "run run_id run_name runid run_uuid run_number run_idx experiment experiment_id experiment_name exp exp_id exp_name"
    " trial trial_id trial_name trial_number variant seed random_seed arm fold config_id config_name ablation"
)
# The start of a job: another value is another attempt of the same run.
_STARTS = word_set("job_id jobid slurm_job_id attempt attempt_id restart_count")
# Settings that are numbers: as for any words, another value tells another run only where the steps begin anew.
_SETTINGS = word_set(
    "lr learning_rate base_lr max_lr batch_size bs train_batch_size hidden_size hidden_dim hidden d_model n_embd"
    " n_layer n_layers num_layers layers depth width n_head n_heads num_heads dropout weight_decay wd momentum"
    " beta beta1 beta2 gamma alpha temperature lora_rank lora_alpha latent_dim embedding_dim kernel_size patch_size"
    " config n_params num_params epochs_total warmup_steps noise rho tau k n"
)
_NOT_RUNS = frozenset((*TYPE_KEYS, *SPLIT_KEYS))


@lru_cache(maxsize=4096)
@lru_cache(maxsize=4096)
def plain(key: str) -> str:
    """The last part of a key in small letters, its words joined by ``_``.

    >>> plain("meta/Run ID"), plain("run-name")
    ('run_id', 'run_name')
    """
    last = key[:200].rpartition("/")[2].rpartition(".")[2]
    return last.strip().lower().replace(" ", "_").replace("-", "_")


def names_run(key: str) -> bool:
    """Whether `key` is what a run is called or numbered by.

    >>> names_run("seed"), names_run("model"), names_run("job_id")
    (True, False, False)
    """
    return plain(key) in _NAMES


def names_start(key: str) -> bool:
    """Whether `key` is that of one start of a run, such as its job's number."""
    return plain(key) in _STARTS


def is_setting(key: str) -> bool:
    """Whether a number under `key` is one that a run keeps from its first record to its last."""
    return plain(key) in _SETTINGS


def may_tell_runs(key: str) -> bool:
    """Whether words under `key` may tell runs apart: not what kind of record it is, its time or its step, nor what was
    measured.

    >>> may_tell_runs("optimizer"), may_tell_runs("event"), may_tell_runs("timestamp")
    (True, False, False)
    """
    if key in _NOT_RUNS or stamp_order(key) is not None or step_rank(key) is not None:
        return False
    return key not in NAME_KEYS or key == "name"
