"""Errors are found in a log that nobody has read yet, and plain lines are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.monitor.test_file_search import Reading
from trainmon.monitor import file_search
from trainmon.monitor.error_search import ErrorSearch
from trainmon.monitor.file_search import Places
from trainmon.tails.error_lines import ERROR_TOKENS, tells_error
from trainmon.tails.logpane import MILD
from trainmon.tails.note_rules import RULES

METRIC = "step {} | loss 2.5 | token error 0.25 | lr 3e-4"
ERRORS = {
    7: "[rank3]: RuntimeError: CUDA error: an illegal memory access was encountered",
    150: "Traceback (most recent call last):",
    230: "slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch",
}


def _log(folder: Path) -> Path:
    path = folder / "train.log"
    path.write_text("".join(f"{ERRORS.get(n, METRIC.format(n))}\n" for n in range(1, 301)), encoding="utf-8")
    return path


def _walk(path: Path, start: int, by: int) -> list[int]:
    found, places = [], Places()
    while True:
        search = ErrorSearch(Reading(path), str(path), start, by, places)
        search.run()
        assert search.problem == ""
        if search.found is None:
            return found
        start = search.found
        found.append(start)


@pytest.mark.parametrize("block", [25_000, 1 << 24])
def test_each_error_is_stopped_at_in_both_directions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(file_search, "_BLOCK", block)
    path = _log(tmp_path)
    assert _walk(path, 1, 1) == sorted(ERRORS)
    assert _walk(path, 300, -1) == sorted(ERRORS, reverse=True)


def test_back_from_a_line_that_is_counted_from_the_end(tmp_path: Path) -> None:
    path = _log(tmp_path)
    search = ErrorSearch(Reading(path), str(path), -1, -1, Places())
    search.run()
    assert search.found == 230


def test_every_rule_for_an_error_has_a_token_that_is_searched_for() -> None:
    tokens = [token for rule in RULES if rule.kind not in MILD for token in rule.tokens]
    assert tokens
    assert all(any(short in token.encode() for short in ERROR_TOKENS) for token in tokens)


def test_a_logger_that_goes_on_and_a_row_of_numbers_tell_no_error() -> None:
    assert not tells_error(METRIC.format(3))
    assert not tells_error("saved checkpoint to out/step_100.pt")
    assert tells_error("torch.OutOfMemoryError: CUDA out of memory.")
