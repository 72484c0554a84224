"""The memory of a card and the limit of a response, as records, configurations and text tell them."""

from __future__ import annotations

import json

import pytest

from tests.tails.formats.structured import read_lines
from trainmon.tails.facts import facts_of
from trainmon.tails.formats.config_facts import config_facts, fact_of_constant
from trainmon.tails.formats.jsonl import JsonLines


@pytest.mark.parametrize(
    ("key", "value", "size"),
    [
        ("gpu_capacity_gb", 80.0, 80e9),
        ("gpu_memory_total_gib", 79.15, 79.15 * 2**30),
        ("cuda_total_memory_bytes", 85e9, 85e9),
        ("device_total_memory_mib", 40960.0, 40 * 2.0**30),
        ("gpu_total_memory", 85899345920.0, 80 * 2.0**30),
        ("gpu_total_memory", 81920.0, 80 * 2.0**30),
        ("gpu_memory_capacity", 80.0, 80 * 2.0**30),
    ],
)
def test_a_capacity_beside_every_value_is_the_cards(key: str, value: float, size: float) -> None:
    lines = [json.dumps({"step": i, "loss": 2.5, "peak_memory_gb": 60.0, key: value}) for i in range(1, 5)]
    parsed = read_lines(JsonLines("m.jsonl"), "\n".join([*lines, ""]).encode())
    assert [(fact.key, fact.value) for fact in parsed.facts] == [("gpu_memory_bytes", size)]
    assert dict(config_facts({f"hardware/{key}": value}, {})) == {"gpu_memory_bytes": size}
    assert facts_of(f"{key}: {value:.15g}") == [("gpu_memory_bytes", size)]


def test_what_is_in_use_is_no_capacity() -> None:
    keys = (
        "gpu_memory_gb",
        "peak_gpu_memory_gb",
        "max_gpu_memory",
        "gpu_memory_used_gb",
        "total_memory",
        "memory_total",
    )
    assert [fact_of_constant(key) for key in keys] == [None] * len(keys)


def test_the_limit_of_responses_is_a_setting_and_their_length_is_none() -> None:
    assert dict(config_facts({"data/max_response_length": 1024.0}, {})) == {"max_response_length": 1024.0}
    assert fact_of_constant("max_completion_length") == "max_response_length"
    assert fact_of_constant("response_length") is None
