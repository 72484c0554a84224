"""Runs side by side: aligned by what they cost, judged against their noise."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from trainmon.monitor.compare.judging import _judge, compare
from trainmon.monitor.compare.text import document, table_csv, text
from trainmon.monitor.document import dumps
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import RunSnapshot


def runs(folder: Path, **logs: list[dict[str, float]]) -> list[RunSnapshot]:
    for name, records in logs.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    found = judge([str(folder / f"{name}.jsonl") for name in logs], cwd=folder).runs
    assert [run.name for run in found] == [f"{name}.jsonl" for name in logs]
    return list(found)


def records(
    seed: int, offset: float = 0.0, first: int = 1, last: int = 1000, **constant: float
) -> list[dict[str, float]]:
    noise = np.random.default_rng(seed).normal(0.0, 0.02, last + 1)
    return [
        {"step": step, "loss": 2.0 + 5.0 * step**-0.3 + offset + float(noise[step]), **constant}
        for step in range(first, last + 1)
    ]


def test_the_same_run_with_other_noise_is_no_difference(tmp_path: Path) -> None:
    result = compare(runs(tmp_path, a=records(1), b=records(2)))
    assert result.differences[0].verdict == "cannot tell"
    assert result.x == 1000.0


@pytest.mark.parametrize(("offset", "verdict"), [(0.05, "worse"), (-0.05, "better")])
def test_a_difference_beyond_the_noise_is_told(tmp_path: Path, offset: float, verdict: str) -> None:
    result = compare(runs(tmp_path, a=records(1), b=records(2, offset)))
    assert result.differences[0].verdict == verdict
    assert result.differences[0].difference == pytest.approx(offset, abs=0.01)


def test_runs_of_other_batch_sizes_are_aligned_by_tokens(tmp_path: Path) -> None:
    small = records(1, tokens_per_batch=1000.0)
    large = [dict(record, tokens_per_batch=2000.0) for record in records(1, last=500)]
    result = compare(runs(tmp_path, a=small, b=large))
    assert (result.axis, result.x) == ("tokens", 1e6)


def test_a_branch_that_was_trained_again_does_not_count(tmp_path: Path) -> None:
    broken = records(1, last=600) + [dict(record, loss=9.0) for record in records(1, first=601, last=700)]
    result = compare(runs(tmp_path, a=records(2), b=broken + records(1, first=601)))
    assert result.differences[0].verdict == "cannot tell"
    assert result.standings[1].steps_lost == 100.0


def test_what_cannot_be_told_is_said(tmp_path: Path) -> None:
    found = runs(tmp_path, a=records(1), b=records(1, first=2000, last=2100))
    assert compare(found).differences[0].why == "the runs have no stretch in common"
    assert "cannot be placed by flops" in text(compare(found, axis="flops"))
    assert compare(found, "grad.norm").standings[0].value is None


def test_a_run_apart_does_not_keep_others_from_being_compared(tmp_path: Path) -> None:
    apart, early = records(4, first=2000, last=3000), records(3, 0.05, last=300)
    result = compare(runs(tmp_path, a=records(1), b=records(2, 0.05), c=early, d=apart))
    assert [each.verdict for each in result.differences] == ["worse", "worse", "cannot tell"]
    assert "200 values, 800.2 to 1000 steps" in result.differences[0].why
    assert result.x == 300.0
    assert [one.value is None for one in result.standings] == [False, False, False, True]


def test_tokens_that_are_logged_align_runs_too(tmp_path: Path) -> None:
    small, large = (
        [dict(record, tokens=record["step"] * batch) for record in records(1, last=last)]
        for batch, last in ((1000.0, 1000), (2000.0, 500))
    )
    found = runs(tmp_path, a=small, b=large)
    assert (compare(found).axis, compare(found).x) == ("tokens", 1e6)
    assert "--by tokens is fair" in compare(found, axis="step").remarks[0]
    assert compare([found[0], found[0]]).axis == "step"


def test_why_a_run_has_no_place_is_said(tmp_path: Path) -> None:
    nowhere = [dict(record, loss=float("nan")) for record in records(1)]
    ended = [dict(record, loss=float("nan") if record["step"] > 700 else record["loss"]) for record in records(2)]
    found = runs(tmp_path, a=records(1), b=nowhere, c=ended)
    assert compare(found).remarks == (
        "b.jsonl: loss.train is never a finite number",
        "c.jsonl: loss.train is no finite number any more after step 700; compared until there",
    )
    assert compare(found, "eval.nll").remarks[0] == "a.jsonl: eval.nll is not in its log"
    assert "number of parameters" in compare(found, axis="flops").remarks[0]


def test_correlated_noise_is_not_taken_for_a_difference() -> None:
    generator = np.random.default_rng(0)
    told = 0
    for _ in range(200):
        noise = generator.normal(size=(2, 1200))
        kernel = np.exp(-np.arange(200) / 50.0)
        first, second = (np.convolve(each, kernel, "valid")[:1000] for each in noise)
        told += _judge("b", second - first, 10.0, "loss.train", "").verdict != "cannot tell"
    assert told <= 10


def test_every_form_holds_the_same_numbers(tmp_path: Path) -> None:
    result = compare(runs(tmp_path, a=records(1), b=records(2, 0.05)))
    rows = list(csv.DictReader(table_csv(result).splitlines()))
    made = json.loads(dumps(document([result])))["comparisons"][0]
    assert [float(row["value"]) for row in rows] == [one["value"] for one in made["runs"]]
    assert f"{result.standings[0].value:.4g}" in text(result)
    assert "| run | verdict |" in text(result, markdown=True)
    assert "\n- b.jsonl against a.jsonl: worse" in text(result, markdown=True)
