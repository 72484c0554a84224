"""Several runs in one file: each is judged by itself and named, in every command; what cannot be told is said."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from tests.monitor.logs import Line, read, train
from tests.monitor.test_session import wait
from trainmon.monitor import inventory
from trainmon.monitor.export.content import export_to
from trainmon.monitor.finding import Verdict
from trainmon.monitor.judge import judge
from trainmon.monitor.runs_in_file import words
from trainmon.monitor.session import Monitor
from trainmon.tails.record import NoteKind


def rows(names: str, steps: int = 200, *, broken: str = "") -> str:
    """One run after the other; the loss of `broken` ends as NaN."""
    lines = []
    for place, name in enumerate(names):
        for step in range(1, steps + 1):
            loss = place + 2 + math.exp(-step / 50) + 0.01 * math.sin(7.0 * step)
            if name == broken and step > steps - 20:
                loss = math.nan
            lines.append(json.dumps({"run": name, "step": step, "loss": loss}))
    return "\n".join(lines) + "\n"


def test_each_run_is_judged_by_itself_and_none_is_a_restart(tmp_path: Path) -> None:
    (tmp_path / "sweep.jsonl").write_text(rows("abc", broken="b"))
    runs = judge(["sweep.jsonl"], cwd=tmp_path).runs
    assert [run.name for run in runs] == ["sweep.jsonl", "sweep.jsonl [run=b]", "sweep.jsonl [run=c]"]
    assert [run.verdict for run in runs] == [Verdict.PASS, Verdict.FAIL, Verdict.PASS]
    for run, name in zip(runs, "abc", strict=True):
        assert (run.attempts, run.step_count, run.goodput) == (((1.0, 200.0),), 200, None)
        assert run.facts["run_in_file"] == f"run={name}"
        assert run.problems[0] == (f"3 runs in one file, by `run`: a, b, c; this is {name}, each is judged by itself")


def test_inventory_and_export_tell_the_runs_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sweep.jsonl").write_text(rows("ab", steps=5))
    documents = inventory.documents(judge(["sweep.jsonl"], cwd=tmp_path).runs)["runs"]
    assert isinstance(documents, list)
    assert [one["run"] for one in documents] == ["sweep.jsonl", "sweep.jsonl [run=b]"]
    assert all("2 runs in one file" in one["problems"][0] for one in documents)
    assert "2 runs in one file, by `run`" in inventory.text(judge(["sweep.jsonl"], cwd=tmp_path).runs[1])
    assert export_to(
        ["sweep.jsonl"], ["loss.train"], cwd=tmp_path, raw_keys=False, form="csv", output=None
    ) == 0  # fmt: skip
    written = [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]]
    assert [(name, step) for name, _, step, *_ in written] == [
        *(("sweep.jsonl", str(step)) for step in range(1, 6)),
        *(("sweep.jsonl [run=b]", str(step)) for step in range(1, 6)),
    ]


def test_a_run_that_begins_in_a_file_that_is_watched_is_listed(tmp_path: Path) -> None:
    log = tmp_path / "sweep.jsonl"
    log.write_text(rows("a"))
    session = Monitor([str(log)], cwd=tmp_path)
    session.start()
    try:
        wait(session, lambda fleet: any(run.last_step == 200 for run in fleet.runs))
        with log.open("a") as more:
            more.write(rows("ab").removeprefix(rows("a")))
        fleet = wait(session, lambda fleet: len(fleet.runs) == 2 and fleet.runs[1].last_step == 200)
        assert [run.name for run in fleet.runs] == ["sweep.jsonl", "sweep.jsonl [run=b]"]
        assert [run.attempts for run in fleet.runs] == [((1.0, 200.0),)] * 2
    finally:
        session.stop()


def test_steps_that_begin_anew_without_a_word_are_told_and_no_work_is_called_lost() -> None:
    twice = [train(step, 3.0) for _ in range(2) for step in range(1, 51)]
    made = read(twice)
    assert made.began_anew
    assert "the steps begin anew (1 after 50) and nothing says why" in made.problems[0]


def test_a_word_of_a_restart_or_a_step_of_a_checkpoint_leaves_no_doubt() -> None:
    first = [train(step, 3.0) for step in range(1, 51)]
    assert not read([*first, Line(note=NoteKind.LAUNCH), *first]).began_anew
    assert not read([*first, *(train(step, 3.0) for step in range(31, 80))]).began_anew


@pytest.mark.parametrize("word", [None, NoteKind.RESUMED, NoteKind.ERROR])
def test_a_crash_loop_from_one_checkpoint_is_restarts_whatever_the_log_says(word: NoteKind | None) -> None:
    said = [Line(note=word)] if word is not None else []
    again = [train(step, 3.0) for step in range(101, 131)]
    first = [train(step, 3.0) for step in range(1, 131)]
    made = read([*first, *said, *again, *said, *again, *said, *again, *(train(step, 3.0) for step in range(131, 200))])
    assert made.attempts == ((1.0, 130.0), (101.0, 130.0), (101.0, 130.0), (101.0, 199.0))
    assert not made.began_anew
    assert not made.problems


def test_a_log_that_begins_at_a_checkpoint_it_names_goes_back_to_it() -> None:
    again = [train(step, 3.0) for step in range(101, 131)]
    assert read([*again, *again]).began_anew
    assert not read([Line(note=NoteKind.RESUMED), *again, *again]).began_anew


def test_runs_that_all_begin_at_the_first_step_stay_in_doubt_after_a_restart_of_one() -> None:
    first = [train(step, 3.0) for step in range(1, 131)]
    made = read([*first, *(train(step, 3.0) for step in range(101, 200)), *first])
    assert made.attempts == ((1.0, 130.0), (101.0, 199.0), (1.0, 130.0))
    assert made.began_anew


def test_many_runs_are_not_all_listed() -> None:
    labels = [f"seed={seed}" for seed in range(12)]
    assert words(labels, "seed=0").startswith("12 runs in one file, by `seed`: 0, 1, 2, 3, 4, 5, 6, 7 and 4 more;")
