"""Which run each record of a file belongs to: told from restarts, in every structured format, however it is cut."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tails.formats.structured import by_run, column, read_lines
from trainmon.tails.formats.csv_table import CsvTable
from trainmon.tails.formats.jsonl import JsonLines
from trainmon.tails.formats.parquet import Parquet
from trainmon.tails.formats.run_split import MOST_RUNS, RunSplit
from trainmon.tails.record import NoteKind, Parsed

Rows = list[dict[str, object]]


def jsonl(rows: Iterable[Mapping[str, object]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def csv(rows: Rows) -> bytes:
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    return "\n".join(lines).encode() + b"\n"


def parquet(rows: Rows) -> bytes:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    out = io.BytesIO()
    pandas.DataFrame(rows).to_parquet(out)
    return out.getvalue()


def read(form: str, rows: Rows, cuts: list[int] | None = None) -> dict[str, Parsed]:
    """Each run of the file that `rows` are written to."""
    return by_run(whole(form, rows, cuts or []))


def whole(form: str, rows: Rows, cuts: list[int]) -> Parsed:
    if form == "parquet":
        return Parquet("m.parquet").parse(parquet(rows))
    reader = JsonLines("m.jsonl") if form == "jsonl" else CsvTable("m.csv")
    return read_lines(reader, jsonl(rows) if form == "jsonl" else csv(rows), cuts)


def one_after_the_other(key: str, names: Iterable[object], steps: int = 40) -> Rows:
    return [
        {key: name, "step": step, "loss": place + 1 / (1 + step)}
        for place, name in enumerate(names)
        for step in range(steps)
    ]


def in_turn(key: str, names: Iterable[object], steps: int = 40) -> Rows:
    return sorted(one_after_the_other(key, names, steps), key=lambda row: row["step"])  # type: ignore[arg-type,return-value]


FORMS = pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])


@FORMS
@pytest.mark.parametrize("write", [one_after_the_other, in_turn])
@pytest.mark.parametrize(("key", "names"), [("run", "abc"), ("seed", (1, 2, 3)), ("run_name", ("x y", "x=1", "{z}"))])
def test_runs_that_are_named_are_runs_of_their_own(form: str, write: object, key: str, names: Iterable[object]) -> None:
    runs = read(form, write(key, names))  # type: ignore[operator]
    assert list(runs) == ["", *(f"{key}={name}" for name in list(names)[1:])]
    for place, run in enumerate(runs.values()):
        assert column(run, "loss") == [place + 1 / (1 + step) for step in range(40)]
        assert [step for block in run.blocks for step in block.steps.tolist()] == list(range(40))


@FORMS
def test_words_that_change_as_the_steps_begin_anew_tell_runs_apart(form: str) -> None:
    assert list(read(form, one_after_the_other("optimizer", ("sgd", "adam")))) == ["", "optimizer=adam"]
    assert list(read(form, one_after_the_other("batch_size", (32, 64)))) == ["", "batch_size=64"]


@FORMS
def test_words_that_change_while_the_steps_go_on_tell_none(form: str) -> None:
    rows: Rows = [{"mood": "ab"[step % 2], "step": step, "loss": 2.5} for step in range(40)]
    assert list(read(form, rows)) == [""]
    rows = [{"batch_size": 32 if step < 20 else 64, "step": step, "loss": 2.5} for step in range(40)]
    assert list(read(form, rows)) == [""]


@FORMS
def test_another_name_for_a_run_that_goes_on_is_a_launch(form: str) -> None:
    rows: Rows = [{"run_id": "a" if step < 30 else "b", "step": step, "loss": 2.5} for step in range(60)]
    parsed = whole(form, rows, [])
    assert list(by_run(parsed)) == [""]
    assert [(note.kind, note.text) for note in parsed.notes] == [(NoteKind.LAUNCH, "run_id=b")]


@FORMS
def test_a_resume_under_another_name_is_a_launch(form: str) -> None:
    rows: Rows = [{"run_id": "a", "step": step, "loss": 2.5} for step in range(60)]
    rows += [{"run_id": "b", "step": step, "loss": 2.5} for step in range(40, 100)]
    parsed = whole(form, rows, [])
    assert list(by_run(parsed)) == [""]
    assert [note.kind for note in parsed.notes] == [NoteKind.LAUNCH]


@FORMS
def test_a_new_job_is_a_launch_also_from_scratch(form: str) -> None:
    parsed = whole(form, one_after_the_other("job_id", (4711, 4712)), [])
    assert list(by_run(parsed)) == [""]
    assert [note.text for note in parsed.notes] == ["job_id 4712 after 4711"]


def test_what_changes_all_the_time_names_nothing() -> None:
    rows: Rows = [{"run": f"trace {step}", "step": step, "loss": 2.5} for step in range(200)]
    parsed = whole("jsonl", rows, [])
    assert list(by_run(parsed)) == [""]
    assert len(parsed.notes) <= 32


def test_a_table_of_results_keeps_a_label_a_run() -> None:
    rows: Rows = [{"run": name, "step": 1000, "accuracy": place} for place, name in enumerate("abc")]
    parsed = whole("csv", rows, [])
    assert {key for block in parsed.blocks for key in block.columns} == {f"accuracy{{run={name}}}" for name in "abc"}


def test_two_keys_name_a_run_by_what_differs() -> None:
    rows: Rows = [
        {"optimizer": opt, "seed": seed, "epoch": epoch, "loss": 2.5}
        for opt in ("sgd", "adam")
        for seed in (1, 2)
        for epoch in range(1, 11)
    ]
    assert list(read("csv", rows)) == ["", "seed=2", "optimizer=adam", "seed=2,optimizer=adam"]


def test_long_form_tells_its_runs_apart_by_their_name_alone() -> None:
    rows: Rows = [
        {"run": run, "name": name, "unit": unit, "step": step, "value": step + place}
        for place, run in enumerate("ab")
        for name, unit in (("loss", "nats"), ("acc", "%"))
        for step in range(20)
    ]
    for form in ("jsonl", "csv"):
        runs = read(form, rows)
        assert list(runs) == ["", "run=b"]
        assert column(runs["run=b"], "loss") == [step + 1.0 for step in range(20)]


def test_more_runs_than_are_kept_are_told_and_left_out() -> None:
    rows = one_after_the_other("run", range(MOST_RUNS + 3), steps=5)
    parsed = whole("jsonl", rows, [])
    assert len(by_run(parsed)) == MOST_RUNS
    assert [note.text for note in parsed.notes] == ["more than 100 runs: the rows of the others are left out"]
    assert sum(len(block) for block in parsed.blocks) == 5 * MOST_RUNS


def test_what_happens_in_a_run_is_noted_there() -> None:
    rows = one_after_the_other("run", "ab")
    rows.append({"event": "error", "message": "out of luck"})
    notes = whole("jsonl", rows, []).notes
    assert [(note.kind, note.run) for note in notes] == [(NoteKind.ERROR, "run=b")]


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.integers(0, 9)), min_size=1, max_size=150
    ),
    cuts=st.lists(st.integers(1, 150), max_size=6),
    form=st.sampled_from(["jsonl", "csv"]),
)
def test_any_cut_gives_the_same_runs(rows: list[tuple[str, str, int]], cuts: list[int], form: str) -> None:
    written: Rows = [{"run": run, "tag2": word, "step": step, "loss": 2.5 + step} for run, word, step in rows]
    at_once, cut = whole(form, written, []), whole(form, written, cuts)
    told = [[(label, column(part, "loss")) for label, part in by_run(one).items()] for one in (at_once, cut)]
    assert told[0] == told[1]
    assert [(note.line_no, note.text, note.run) for note in at_once.notes] == [
        (note.line_no, note.text, note.run) for note in cut.notes
    ]


def test_a_table_of_a_single_value_costs_no_look_at_its_rows() -> None:
    split = RunSplit()
    split.place({"run": ["a"]}, [1.0])
    placed = split.place({"run": ["a"] * 4096}, [float(step) for step in range(4096)])
    assert placed.runs is None


def test_a_column_for_each_run_is_a_run_each() -> None:
    header = '"Step","lr - 1 - loss","lr - 1 - loss__MIN","lr 2 - loss","lr 2 - loss__MIN"'
    rows = [f'"{10 * i}","{3 - i / 10}","1","{4 - i / 10 if i % 2 == 0 else ""}","1"' for i in range(6)]
    runs = by_run(read_lines(CsvTable("export.csv"), "\n".join([header, *rows, ""]).encode()))
    assert {label: column(run, "loss") for label, run in runs.items()} == {
        "": [3.0, 2.9, 2.8, 2.7, 2.6, 2.5],
        "run=lr 2": [4.0, 3.8, 3.6],
    }
    assert [step for block in runs["run=lr 2"].blocks for step in block.steps.tolist()] == [0.0, 20.0, 40.0]


@pytest.mark.parametrize("cuts", [(), (1,), (1, 2)])
def test_another_job_at_the_record_that_may_begin_another_run(cuts: tuple[int, ...]) -> None:
    """The start is told of before it is known which run the record belongs to."""
    rows = [{"seed": seed, "job_id": f"{seed}7", "step": 5, "loss": 2.0} for seed in (1, 2, 3)]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    parsed = read_lines(JsonLines("m"), data, cuts)
    assert parsed.records == 3
    assert [note.text for note in parsed.notes if note.kind is NoteKind.LAUNCH] == [
        "job_id 27 after 17",
        "job_id 37 after 27",
    ]
