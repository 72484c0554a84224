"""What published pretraining recipes and critical-batch fits say of learning rate and batch size."""

from __future__ import annotations

import math

# Peak learning rates under Adam(W), fitted in log N through GPT-3's table (Brown et al. 2020, table 2.1: 125M 6e-4,
# 1.3B 2e-4, 13B 1e-4, 175B 6e-5) and the Llama, OLMo and Pythia families, which lie up to 3x above it.
_LR_AT_125M = 6e-4
_LR_POWER = -0.32
# Tokens a batch: GPT-3's 0.5M at 125M to 3.2M at 175B; Llama, OLMo and Pythia 2M to 16M.
_BATCH_AT_125M = 0.5e6
_BATCH_POWER = 0.25
# Critical batch size, Kaplan et al. 2020, eq. 5.3: B = 2e8 / L^(1/0.21) tokens at loss L (nats).
_CRITICAL = 2e8
_CRITICAL_POWER = 1 / 0.21


def recipe_peak_lr(parameters: float) -> float:
    """The usual peak learning rate (Adam) for so many parameters.

    >>> f"{recipe_peak_lr(1.3e9):.1e}"
    '2.8e-04'
    """
    return float(_LR_AT_125M * (parameters / 125e6) ** _LR_POWER)


def recipe_batch_tokens(parameters: float) -> tuple[float, float]:
    """The range of tokens a batch of published pretraining runs of that size.

    >>> [f"{tokens:.2g}" for tokens in recipe_batch_tokens(7e9)]
    ['6.8e+05', '5.5e+06']
    """
    middle = _BATCH_AT_125M * (parameters / 125e6) ** _BATCH_POWER
    return middle / 2, 4 * middle


def critical_batch_tokens(loss: float) -> float:
    """The batch beyond which more tokens a step save few steps, at that loss in nats.

    >>> f"{critical_batch_tokens(3.0):.1e}"
    '1.1e+06'
    """
    return float(_CRITICAL / math.pow(loss, _CRITICAL_POWER))
