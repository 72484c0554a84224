"""A JSON log is found in a directory however it writes the name of a metric and its value."""

from __future__ import annotations

import pytest

from trainmon.tails.looks import Doubt, shows_training


@pytest.mark.parametrize(
    "line",
    [
        b'{"metricName": "train_loss", "metricValue": "8.5", "timestamp": 1700000001000, "step": 1}\n',
        b'{"metric_name": "train/loss", "metric_value": 8.5, "step": 1}\n',
        b'{"global_step": 1, "metrics": {"train": {"loss": {"value": 8.5}}}}\n',
    ],
)
def test_a_named_or_wrapped_loss_beside_a_step_is_a_log(line: bytes) -> None:
    assert shows_training(line, Doubt.JSON)


def test_a_wrapped_loss_without_a_number_is_no_log() -> None:
    assert not shows_training(b'{"loss": {"value": "mse"}, "step": 1}\n', Doubt.JSON)
