"""What a model wrote is scored where it is read, and never kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmon.monitor.document import dumps, run_document
from trainmon.monitor.finding import Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.judge import judge
from trainmon.tails.samples import mean_scores, scores_of

PROSE = (
    "The river rose after three days of rain, and the people of the valley carried what they could to the old church "
    "on the hill. Nobody spoke of the bridge. By morning the water had taken it, and with it the road to the market."
)
CODE = """
def mean(values):
    total = 0.0
    for value in values:
        total += value
    return total / len(values)
"""
CHINESE = "河水在三天的大雨之后上涨，山谷里的人们把能带走的东西都搬到了山上的老教堂。没有人提起那座桥。"


@pytest.mark.parametrize("text", [PROSE, CODE, CHINESE])
def test_writing_is_neither_empty_nor_repeated_nor_gibberish(text: str) -> None:
    found = mean_scores([text])
    assert found["sample_text/empty"] == 0
    assert found["sample_text/repetition"] < 0.1
    assert found["sample_text/gibberish"] < 0.3
    assert found["sample_text/length"] > 5


@pytest.mark.parametrize(
    ("text", "name", "least"),
    [
        ("", "empty", 1.0),
        (" \n\t", "empty", 1.0),
        ("the the the the the the the the the the the the the the", "repetition", 0.9),
        ("I am a robot. " * 40, "repetition", 0.9),
        ("好" * 200, "repetition", 0.9),
        ("xkqzt brtwpl \ufffd\ufffd qq}{%4f sdkfjhg wrtplkj zzzxxxccc", "gibberish", 0.7),
        ("a1b2c3d4e5 x9y8z7w6v5u4 \x01\x02 ;;;;{{{{", "gibberish", 0.7),
        ("xq#zjk v$kwpb %gqx#j pw%$zk", "gibberish", 0.9),
    ],
)
def test_collapsed_output_scores_high(text: str, name: str, least: float) -> None:
    assert mean_scores([text])[f"sample_text/{name}"] >= least


def test_only_a_record_with_a_step_is_scored() -> None:
    assert scores_of({"step": 1, "loss": 2.0}) == {}
    assert scores_of({"prompt": "a", "completion": "b c"}) == {}
    assert scores_of({"step": 3, "samples": ["a b", "", 7]})["sample_text/empty"] == 0.5


@settings(max_examples=80, deadline=None)
@given(st.lists(st.text(max_size=400), max_size=6))
def test_scores_are_numbers_of_their_range(texts: list[str]) -> None:
    found = mean_scores(texts)
    assert bool(found) == bool(texts)
    for name, value in found.items():
        assert value >= 0
        assert name.endswith("length") or value <= 1


def test_a_huge_text_is_scored_by_its_beginning() -> None:
    assert mean_scores(["word " * 2_000_000])["sample_text/length"] == 4000


def test_a_run_whose_samples_collapse_is_told_and_keeps_no_text(tmp_path: Path) -> None:
    words = PROSE.split()
    log = tmp_path / "metrics.jsonl"
    with log.open("w", encoding="utf-8") as file:
        for step in range(1, 301):
            record: dict[str, object] = {"step": step, "loss": 2.0 + 0.01 * (step % 7)}
            if step % 5 == 0:
                turned = words[step % 30 :] + words[: step % 30]
                record["completion"] = " ".join(turned) if step < 200 else "secret " * 50
            file.write(json.dumps(record) + "\n")
    (run,) = judge([str(log)], cwd=tmp_path).runs
    check = next(check for check in run.checks if check.id == "output.samples")
    assert check.verdict is Verdict.WARN
    assert run.series[SignalKey("sample.repetition")].count == 60
    assert "secret" not in dumps(run_document(run))
