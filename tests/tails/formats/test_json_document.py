from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tails.formats.structured import by_run, column, marks, rows_of, steps
from trainmon.tails.formats.json_document import JsonDocument
from trainmon.tails.formats.jsonl import JsonLines
from trainmon.tails.formats.run_split import MOST_RUNS
from trainmon.tails.record import NoteKind, Parsed, TimeKind


def read(value: Any, indent: int | None = 2) -> Parsed:
    data = value if isinstance(value, bytes) else json.dumps(value, indent=indent).encode()
    return JsonDocument("d.json").parse(data)


def trainer_state(count: int = 12) -> dict[str, Any]:
    history: list[dict[str, Any]] = []
    for i in range(1, count + 1):
        history.append({"epoch": i / 4, "grad_norm": 0.5, "learning_rate": 1e-5, "loss": 3 - i / 10, "step": 10 * i})
        if i % 4 == 0:
            history.append({"epoch": i / 4, "eval_loss": 2.5, "eval_runtime": 1.5, "step": 10 * i})
    history.append({"epoch": 3.0, "step": 10 * count, "train_loss": 2.75, "train_runtime": 60.5, "total_flos": 1e15})
    return {"best_metric": 2.5, "global_step": 10 * count, "log_history": history, "max_steps": 500,
            "num_train_epochs": 3, "save_steps": 50, "train_batch_size": 4, "is_world_process_zero": True}  # fmt: skip


@pytest.mark.parametrize("indent", [None, 2])
def test_trainer_state(indent: int | None) -> None:
    parsed = read(trainer_state(), indent)
    assert column(parsed, "loss") == [3 - i / 10 for i in range(1, 13)]
    assert column(parsed, "eval_loss") == [2.5] * 3
    assert len(steps(parsed)) == 15
    facts = {fact.key: fact.value for fact in parsed.facts}
    assert (facts["total_steps"], facts["num_train_epochs"], facts["train_batch_size"]) == (500.0, 3.0, 4.0)
    assert [(note.kind, note.step) for note in parsed.notes] == [(NoteKind.FINISHED, 120.0)]


def test_records_tell_where_they_stand() -> None:
    text = json.dumps({"name": "ü", **trainer_state()}, indent=2, ensure_ascii=False)
    parsed = read(text.encode())
    for _, _, offset, line, cells in rows_of(parsed):
        here = text.encode()[offset:]
        assert here.startswith(b"{")
        record = json.JSONDecoder().raw_decode(here.decode())[0]
        assert repr(float(record["epoch"])) == cells["epoch"][0]
        assert text.encode()[:offset].count(b"\n") + 1 == line


def test_nan_tokens() -> None:
    state = trainer_state()
    state["log_history"][3]["grad_norm"] = math.nan
    parsed = read(state)
    assert marks(parsed, "grad_norm").count("NAN") == 1
    assert len(column(parsed, "loss")) == 12


def test_golden_values() -> None:
    values = {str(step): 12 - step / 10 for step in (1, 5, 10, 15)}
    document = {
        "lm loss": {"start_step": 1, "end_step": 15, "step_interval": 5, "values": {**values, "20": "nan"}},
        "iteration-time": {"start_step": 5, "end_step": 20, "step_interval": 5, "values": {"5": 1.5, "20": 1.25}},
    }
    parsed = read(document)
    assert steps(parsed) == [1.0, 5.0, 10.0, 15.0, 20.0]
    assert marks(parsed, "lm loss") == ["NUMBER"] * 4 + ["NAN"]
    assert column(parsed, "iteration-time") == [1.5, 1.25]
    listed = read({"lm loss": {"start_step": 0, "end_step": 20, "step_interval": 10, "values": [3.5, 2.5, 1.5]}})
    assert steps(listed) == [0.0, 10.0, 20.0]


def test_values_by_place_and_ranks_aside() -> None:
    document = {
        "lm loss": [12.5, 11.5, 10.5],
        "grad norm": [33.5, 32.5, 31.5],
        "memo info": [{"rank": 0, "max memory": 100.5, "format": "x"}, {"rank": 1, "max memory": 200.5, "format": "x"}],
    }
    parsed = read(document)
    assert column(parsed, "lm loss") == [12.5, 11.5, 10.5]
    assert column(parsed, "memo info/max memory{rank=1}") == [200.5]
    assert set(steps(parsed)) == {None}


def test_columns_with_a_list_of_steps() -> None:
    parsed = read({"iters": [0, 10, 20], "train_loss": [3.5, 2.5, 1.5], "val_loss": [3.0, 2.0]})
    assert steps(parsed)[:3] == [0.0, 10.0, 20.0]
    assert column(parsed, "train_loss") == [3.5, 2.5, 1.5]
    assert column(parsed, "val_loss") == [3.0, 2.0]


def test_sacred_metrics_all_nan() -> None:
    entry = {
        "steps": [73, 147],
        "values": [math.nan, math.nan],
        "timestamps": ["2023-07-08T17:36:26.618822", "2023-07-08T17:36:27.618822"],
    }
    parsed = read({"a": entry, "b": entry})
    assert marks(parsed, "a") == marks(parsed, "b") == ["NAN", "NAN"]
    assert steps(parsed) == [73.0, 147.0]
    assert parsed.blocks[0].time_kind is TimeKind.NAIVE


def test_lists_of_records_and_several_runs() -> None:
    records = [{"step": i, "loss": 2.5} for i in range(10)]
    assert steps(read(records)) == list(map(float, range(10)))
    several = by_run(read({"run a": {"log_history": records}, "run b": {"log_history": records[:4]}}))
    assert len(column(several[""], "loss")) == 10
    assert len(column(several["run=run b"], "loss")) == 4
    parts = read({"train": records, "eval": [{"step": 9, "loss": 2.75}]})
    assert column(parts, "eval/loss") == [2.75]
    assert len(column(parts, "loss")) == 10


def test_runs_by_name_hold_series_or_records_and_a_validation_beside_the_training_is_none() -> None:
    histories = {name: {"train_loss": [3, 2, start], "val_loss": [3, 2.5, 2]} for name, start in (("a", 1), ("b", 0.5))}
    runs = by_run(read({"histories": histories}))
    assert [column(one, "train_loss") for one in runs.values()] == [[3, 2, 1], [3, 2, 0.5]]
    facts = [(fact.run, fact.value) for fact in read({"histories": histories}).facts]
    assert facts == [("", "run=a"), ("run=b", "run=b")]
    one = read({"train": {"loss": [3, 2, 1]}, "val": {"loss": [3.5, 2.5, 1.5]}})
    assert {block.run for block in one.blocks} == {""}
    assert (column(one, "loss"), column(one, "val/loss")) == ([3, 2, 1], [3.5, 2.5, 1.5])


def test_more_runs_than_are_read_are_told_and_left_out() -> None:
    parsed = read({f"run{n}": {"loss": [2, 1, n]} for n in range(MOST_RUNS + 5)})
    assert len(by_run(parsed)) == MOST_RUNS
    assert [note.text for note in parsed.notes if "more than 100 runs" in note.text]
    assert 104.0 not in column(parsed, "loss")


def test_tensorboard_json_export() -> None:
    parsed = read([[1696394223.5, 0, 49.5], [1696394797.5, 8000, 34.5]])
    assert steps(parsed) == [0.0, 8000.0]
    assert parsed.blocks[0].times.tolist() == [1696394223.5, 1696394797.5]


def test_several_values_one_after_the_other() -> None:
    text = "\n".join(json.dumps({"step": i, "loss": 2.5, "opt": {"lr": 0.1}}, indent=2) for i in range(10)) + "\n"
    assert JsonDocument.sniff(text.encode()) > 0.5
    parsed = read(text.encode())
    assert steps(parsed) == list(map(float, range(10)))
    assert parsed.unreadable == 0


def test_torn_document_keeps_what_is_whole() -> None:
    text = json.dumps(trainer_state(), indent=2).encode()
    parsed = read(text[: text.find(b'"step": 80')])
    assert parsed.unreadable == 1
    assert steps(parsed)[-1] == 70.0
    assert read(b"").records == 0
    assert read(b"no json").unreadable == 1


def test_settings_alone_are_facts() -> None:
    parsed = read({"max_steps": 100, "learning_rate": 0.1, "train_batch_size": 4, "optim": "adamw"})
    assert parsed.records == 0
    assert {fact.key for fact in parsed.facts} >= {"total_steps", "peak_lr", "optimizer"}


def test_told_from_json_lines_by_content() -> None:
    lines = b'{"lr": 0.1, "loss": 1.5, "step": 1}\n{"acc": 43.5, "step": 1}\n'
    assert JsonDocument.sniff(lines) == 0.0
    assert JsonLines.sniff(lines) > 0.8
    for sample in JsonDocument.samples:
        assert JsonDocument.sniff(sample) > max(JsonLines.sniff(sample), 0.7)
    assert JsonDocument.sniff(b"[2026-01-01 10:00:00] step 1 loss 2.5\n") == 0.0
    assert JsonDocument.sniff(b"{'loss': 2.5}\n{'loss': 2.25}\n") == 0.0
    one_line = json.dumps({"lm loss": {"values": {str(i): i / 7 for i in range(20_000)}}}).encode()
    assert JsonDocument.sniff(one_line[:65536]) > JsonLines.sniff(one_line[:65536])


_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(
                ["log_history", "values", "steps", "loss", "step", "1", "2", "eval", "timestamps", "start_step"]
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(_JSON)
def test_any_document_never_raises(value: Any) -> None:
    data = json.dumps(value).encode()
    parsed = read(data)
    assert parsed.records == sum(len(block) for block in parsed.blocks)
    JsonDocument.sniff(data)
    read(data[: len(data) // 2])


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_never_raise(data: bytes) -> None:
    read(data)
    JsonDocument.sniff(data)


def test_a_trainers_state_says_when_all_steps_are_done() -> None:
    history = [{"step": step, "loss": 2.5} for step in (100, 200)]
    done = read({"global_step": 250, "max_steps": 250, "log_history": history})
    assert [(note.kind, note.step) for note in done.notes] == [(NoteKind.FINISHED, 250.0)]
    assert not read({"global_step": 200, "max_steps": 250, "log_history": history}).notes


def test_a_summary_of_the_last_values_is_their_step() -> None:
    parsed = read({"train/loss": 1.5, "train/global_step": 600, "train_loss": 2.25, "train_runtime": 556.5})
    assert steps(parsed) == [600.0]
    assert column(parsed, "train/loss") == [1.5]


@pytest.mark.parametrize("front", [b"", b"\xef\xbb\xbf", b"\0" * 700, b"\xff\xff\xfe", b"\xef\xbb\xbf\0\0"])
@pytest.mark.parametrize("odd", [b"", b"\xff\xff\xff", b"\xe5\x85", "全角 é".encode(), b"\xed\xa0\x80"])
def test_places_are_those_of_the_bytes_also_where_these_are_no_text(front: bytes, odd: bytes) -> None:
    """Bytes that are no UTF-8, and a hole of NULs before the document."""
    records = [b'{"step": %d, "loss": 2.5, "note": "%s"}' % (step, odd * step) for step in range(1, 9)]
    data = front + b'{"log_history": [\n' + b",\n".join(records) + b"\n]}"
    [block] = read(data).blocks
    assert block.steps.tolist() == list(range(1, 9))
    assert [data[at:].startswith(record) for at, record in zip(block.offsets.tolist(), records, strict=True)] == [
        True
    ] * 8
    assert block.lines.tolist() == list(range(2, 10))
