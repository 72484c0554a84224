from __future__ import annotations

import json
import math

import pytest

from tests.monitor.counting import calls_of
from tests.tails.formats.structured import column, marks, read_lines, rows_of, said, steps
from trainmon.tails.formats.jsonl import JsonLines
from trainmon.tails.record import NoteKind, Parsed, TimeKind


def read(*lines: str | bytes | dict[str, object]) -> Parsed:
    encoded = [
        json.dumps(line).encode() if isinstance(line, dict) else line.encode() if isinstance(line, str) else line
        for line in lines
    ]
    return read_lines(JsonLines("m.jsonl"), b"".join(line + b"\n" for line in encoded))


def facts(parsed: Parsed) -> dict[str, float | str]:
    return {fact.key: fact.value for fact in parsed.facts}


def test_flat_records_by_both_ways() -> None:
    parsed = read(*({"step": i, "loss": 1 / (i + 1), "note": "x", "ok": True} for i in range(100)))
    assert steps(parsed) == list(map(float, range(100)))
    assert column(parsed, "loss") == [1 / (i + 1) for i in range(100)]
    assert list(parsed.blocks[0].columns) == ["loss"]
    assert parsed.records == parsed.lines == 100
    assert parsed.blocks[0].step_key == "step"


def test_offsets_and_line_numbers_with_blank_lines_bom_and_crlf() -> None:
    first, second = b'\xef\xbb\xbf{"step": 1, "loss": 2.0}\r\n', b"\r\n"
    third = b'{"step": 2, "loss": 1.5}\r\n'
    parsed = read_lines(JsonLines("m"), first + second + third)
    assert [row[2:4] for row in rows_of(parsed)] == [(3, 1), (len(first + second), 3)]
    assert parsed.unreadable == 0
    assert parsed.lines == 3


@pytest.mark.parametrize("plain_records", [0, 30])
@pytest.mark.parametrize(
    ("value", "number", "mark"),
    [
        ("NaN", "nan", "NAN"),
        ("Infinity", "inf", "POS_INF"),
        ("-Infinity", "-inf", "NEG_INF"),
        ("null", "nan", "NULL"),
        ('"nan"', "nan", "NAN"),
        ('"-inf"', "-inf", "NEG_INF"),
        ('"0.5"', "0.5", "NUMBER"),
        ("1e999", "inf", "POS_INF"),
        ("-" + "1" * 400, "-inf", "NEG_INF"),
        ("12345678901234567890123", "1.2345678901234568e+22", "NUMBER"),
        ("1E+2", "100.0", "NUMBER"),
        ("-0.0", "-0.0", "NUMBER"),
    ],
)
def test_values_that_are_hard(value: str, number: str, mark: str, plain_records: int) -> None:
    before = [f'{{"step": {i}, "loss": 2.5, "lr": 0.1}}' for i in range(plain_records)]
    after = [f'{{"step": {i}, "loss": 2.5, "lr": 0.1}}' for i in range(plain_records + 1, 2 * plain_records + 5)]
    parsed = read(*before, f'{{"step": {plain_records}, "loss": {value}, "lr": 0.1}}', *after)
    row = rows_of(parsed)[plain_records]
    assert row[0] == plain_records
    assert (row[4]["loss"][0], row[4]["loss"][1].name) == (number, mark)
    assert parsed.unreadable == 0
    assert len(rows_of(parsed)) == len(before) + len(after) + 1


def test_booleans_and_texts_are_no_numbers() -> None:
    parsed = read(
        *({"step": i, "loss": 1.0, "skipped": i % 2 == 0, "run": f"r{i}", "sha": "1234567"} for i in range(20))
    )
    assert set(parsed.blocks[0].columns) == {"loss", "sha"}


def test_null_from_the_start_is_logged_null_and_numbers_follow() -> None:
    parsed = read(*({"step": i, "loss": 2.0, "eval_loss": None if i < 10 else 3.0} for i in range(20)))
    assert marks(parsed, "eval_loss") == ["NULL"] * 10 + ["NUMBER"] * 10


def test_nested_records_are_laid_flat() -> None:
    parsed = read(
        *(
            {"step": i, "loss": 2.0, "extras": {"lr/AdamW": 0.1, "memory": {"max(GiB)": i, "note": "a"}}}
            for i in range(40)
        )
    )
    assert set(parsed.blocks[0].columns) == {"loss", "extras/lr/AdamW", "extras/memory/max(GiB)"}
    assert column(parsed, "extras/memory/max(GiB)") == list(map(float, range(40)))


def test_lists_become_indexed_keys_and_long_ones_are_left_out() -> None:
    parsed = read(*({"step": i, "load": [i, 2, [3]], "tokens": list(range(1000)), "words": ["a"]} for i in range(20)))
    assert set(parsed.blocks[0].columns) == {"load[0]", "load[1]", "load[2][0]"}


def test_keys_change_over_time() -> None:
    parsed = read(
        *({"step": i, "loss": 2.0} for i in range(20)),
        *({"step": i, "loss": 2.0, "grad_norm": 0.5} for i in range(20, 40)),
        {"step": 40, "val_loss": 2.25},
        *({"step": i, "grad_norm": 0.5} for i in range(41, 60)),
    )
    assert steps(parsed) == list(map(float, range(60)))
    assert len(column(parsed, "loss")) == 40
    assert len(column(parsed, "grad_norm")) == 39
    assert column(parsed, "val_loss") == [2.25]


def test_duplicate_keys_last_one_counts() -> None:
    parsed = read(*('{"step": 1, "loss": 5.0, "loss": 2.0}' for _ in range(12)))
    assert column(parsed, "loss") == [2.0] * 12


def test_glued_torn_interleaved_and_foreign_lines() -> None:
    good = [f'{{"step": {i}, "loss": 2.0}}' for i in range(20)]
    parsed = read(
        *good,
        '{"step": 20, "loss": 1.0}{"step": 21, "loss": 1.5}',
        '{"step": 22, "los',
        "plain words",
        "",
        "[1, 2, 3]",
        '{"step": 23, "lo{"step": 24, "loss": 3.0}',
        '{"step": 25, "cfg": {"a": 1}, "lo',
        *good,
    )
    assert steps(parsed)[20:23] == [20.0, 21.0, 24.0]
    assert len(steps(parsed)) == 43
    assert parsed.unreadable == 4
    assert "a" not in parsed.blocks[0].columns
    assert sum(note.kind is NoteKind.UNREADABLE for note in parsed.notes) == 2  # stretches


def test_invalid_utf8_in_text_does_not_lose_the_record() -> None:
    line = b'{"step": 1, "loss": 2.5, "name": "\xff\xfe"}'
    assert column(read(line, *([b'{"step": 2, "loss": 2.0, "name": "x"}'] * 10)), "loss") == [2.5] + [2.0] * 10


def test_typed_events() -> None:
    train = [{"event": "train_step", "iter": i, "loss": 2.0, "lr": 0.1} for i in range(50)]
    parsed = read(
        {"event": "environment", "device_name": "H100", "dtype": "bfloat16"},
        {"event": "run_start", "config": {"max_iters": 2000, "grad_clip": 1.0, "batch_size": 4, "grad_accum_steps": 8}},
        {"event": "eval", "iter": 0, "val_loss": 9.0, "lr": 0.1},
        *train,
        {"event": "optimizer", "iter": 49, "grad_norm": 0.5},
        {"event": "checkpoint", "iter": 49, "best_val_loss": 8.0},
        {"event": "eval", "iter": 49, "loss": 8.0},
        {"event": "summary", "best_val_loss": 8.0, "total_tokens": 5},
    )
    assert len(column(parsed, "loss")) == len(column(parsed, "lr")) == 50
    assert column(parsed, "val_loss") == [9.0]
    assert column(parsed, "eval/loss") == [8.0]
    assert column(parsed, "optimizer/grad_norm") == [0.5]
    known = facts(parsed)
    assert known["total_steps"] == 2000.0
    assert known["gpu"] == "H100"
    assert known["batch_size"] == 32.0
    kinds = [(note.kind, note.step) for note in parsed.notes]
    assert (NoteKind.CHECKPOINT_SAVED, 49.0) in kinds
    assert (NoteKind.FINISHED, 49.0) in kinds
    assert sum(kind is NoteKind.LAUNCH for kind, _ in kinds) == 1


def test_split_and_phase() -> None:
    parsed = read(
        *({"step": i, "split": "train", "loss": 2.0} for i in range(30)),
        {"step": 30, "split": "val", "loss": 2.5},
        {"type": "evaluation", "split": "ood_t", "loss": 2.75},
        *({"step": i, "split": "train", "phase": "warmup", "loss": 2.0} for i in range(31, 60)),
    )
    assert len(column(parsed, "loss")) == 59
    assert column(parsed, "eval/loss") == [2.5]
    assert column(parsed, "eval/loss{split=ood_t}") == [2.75]


def test_error_records_become_notes() -> None:
    parsed = read({"step": 1, "loss": 2.0}, {"type": "train_error", "error": "TIMEOUT: 3600 s", "iteration": 2})
    assert [(note.kind, note.text) for note in parsed.notes] == [(NoteKind.ERROR, "TIMEOUT: 3600 s")]


def test_untyped_config_first_and_summary_last() -> None:
    parsed = read(
        {"model": "m", "batch_size": 8, "max_steps": 500, "lr": 0.001, "seed": 1},
        *({"step": i, "loss": 2.0} for i in range(10)),
        {"train_runtime": 12.5, "train_loss": 2.0, "epoch": 1.0},
    )
    assert steps(parsed) == list(map(float, range(10)))
    assert facts(parsed)["total_steps"] == 500.0
    assert [note.kind for note in parsed.notes] == [NoteKind.LAUNCH, NoteKind.FINISHED]


def test_constants_in_records_become_facts_counters_do_not() -> None:
    parsed = read(*({"current_steps": i, "total_steps": 80, "loss": 1.0} for i in range(1, 60)))
    assert facts(parsed) == {"total_steps": 80.0}
    assert facts(read(*({"step": i, "total_steps": i, "loss": 1.0} for i in range(1, 60)))) == {}


def test_long_form() -> None:
    parsed = read(
        *(
            line
            for i in range(20)
            for line in ({"name": "loss", "step": i, "value": 2.5}, {"name": "lr", "step": i, "value": 1})
        )
    )
    assert column(parsed, "loss") == [2.5] * 20
    assert column(parsed, "lr") == [1.0] * 20
    assert steps(parsed)[:4] == [0.0, 0.0, 1.0, 1.0]


def test_times() -> None:
    epoch = read(*({"step": i, "loss": 1.0, "timestamp": 1784048753.5 + i} for i in range(20)))
    assert epoch.blocks[0].time_kind is TimeKind.ABSOLUTE
    assert epoch.blocks[0].times.tolist() == [1784048753.5 + i for i in range(20)]
    assert "timestamp" in epoch.blocks[0].columns
    milliseconds = read(*({"step": i, "loss": 1.0, "time_ms": (1784048753 + i) * 1000} for i in range(20)))
    assert milliseconds.blocks[0].times[3] == 1784048756.0
    naive = read(*({"step": i, "loss": 1.0, "timestamp": f"2026-03-25 10:10:{i:02d}"} for i in range(20)))
    assert naive.blocks[0].time_kind is TimeKind.NAIVE
    assert (naive.blocks[0].times[1:] - naive.blocks[0].times[:-1]).tolist() == [1.0] * 19
    zoned = read(*({"step": i, "loss": 1.0, "date": f"2026-03-25T10:10:{i:02d}.250Z"} for i in range(20)))
    assert zoned.blocks[0].time_kind is TimeKind.ABSOLUTE
    duration = read(*({"step": i, "loss": 1.0, "time": 9.5, "elapsed_time": "0:01:03"} for i in range(20)))
    assert duration.blocks[0].time_kind is TimeKind.NONE
    assert column(duration, "time") == [9.5] * 20


def test_epochs_are_the_step_only_when_they_rise() -> None:
    assert steps(read(*({"epoch": i, "loss": 1.0} for i in range(5)))) == [0.0, 1.0, 2.0, 3.0, 4.0]
    still = read(*({"epoch": 1, "progress": i, "loss": 1.0} for i in range(30)))
    assert steps(still) == [None] * 30
    assert still.blocks[0].step_key == ""


def test_first_records_by_epoch_are_held_until_no_step_can_come() -> None:
    reader = JsonLines("m")
    line = b'{"epoch": 1, "loss": 2.0}\n'
    held = reader.feed(line, 0, 1)
    assert held.records == 0
    later = reader.feed(b'{"epoch": 2, "loss": 1.0}\n', len(line), 2)
    later.add(reader.finish())
    assert steps(later) == [1.0, 2.0]
    assert held.lines + later.lines == 2
    alone = JsonLines("m")
    alone.feed(line, 0, 1)
    assert steps(alone.finish()) == [1.0]


def test_validation_rows_with_the_epoch_as_step_look_like_no_restart() -> None:
    lines: list[dict[str, object]] = []
    for epoch in range(1, 30):
        lines += [
            {"lr": 0.1, "loss": 1.0, "iter": 69 * epoch, "step": 69 * epoch},
            {"accuracy/top1": 50.0, "step": epoch},
        ]
    parsed = read(*lines)
    known = [step for step in steps(parsed) if step is not None]
    assert known == sorted(known)
    assert len(column(parsed, "accuracy/top1")) == 29


def test_rows_without_a_step_have_none() -> None:
    parsed = read(*({"step": i, "loss": 1.0} for i in range(20)), {"acc": 0.5}, {"step": "eval", "acc": 0.6})
    assert steps(parsed)[20:] == [None, None]


def test_hostile_input_is_bounded() -> None:
    many = "".join(f'{{"key{i}": {i}}}\n' for i in range(30_000)).encode()
    parsed = read_lines(JsonLines("m"), many)
    assert len({key for block in parsed.blocks for key in block.columns}) == 20_000
    assert sum(len(block) * len(block.columns) for block in parsed.blocks) < 30_000_000
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"\n"
    assert read_lines(JsonLines("m"), deep + b'{"step": 1, "loss": 2}\n').records == 1
    huge = b'{"step": 1, "loss": 2.0, "text": "' + b"{" * 5_000_000 + b'"}\n'
    assert column(read_lines(JsonLines("m"), huge), "loss") == [2.0]
    torn = b'{"a' * 1_000_000 + b"\n"
    assert read_lines(JsonLines("m"), torn).unreadable == 1


def test_a_traceback_between_records_is_told() -> None:
    parsed = read(
        *({"step": i, "loss": 2.0} for i in range(30)),
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "    step()",
        "RuntimeError: boom",
    )
    assert [(note.kind, note.text, note.step) for note in parsed.notes] == [
        (NoteKind.TRACEBACK, "RuntimeError: boom", 29.0)
    ]
    assert parsed.unreadable == 0


def test_samples_and_sniff() -> None:
    for sample in JsonLines.samples:
        assert JsonLines.sniff(sample) > 0.4
        assert said(read_lines(JsonLines("m"), sample))["unreadable"] == 0
    assert JsonLines.sniff(b"step 1 loss 2\n" * 10) == 0.0
    assert JsonLines.sniff(b"{'loss': 2.0, 'epoch': 1}\n" * 10) == 0.0
    assert JsonLines.sniff(b"") == 0.0
    assert JsonLines.sniff(b'epoch begins\n{"step": 1, "loss": 2.0}\n' * 10) == 0.0


def test_ranks_that_repeat_a_step_are_labelled_and_the_first_speaks() -> None:
    parsed = read(*({"step": step, "rank": rank, "loss": step + rank / 10} for step in range(40) for rank in range(3)))
    assert column(parsed, "loss") == list(range(40))
    assert column(parsed, "loss{rank=2}") == [step + 0.2 for step in range(40)]
    assert column(parsed, "rank{rank=2}") == []


def test_a_rank_that_is_a_setting_labels_nothing() -> None:
    parsed = read(*({"step": step, "rank": 16 - step // 10, "loss": 2.5} for step in range(40)))
    assert column(parsed, "loss") == [2.5] * 40
    assert column(parsed, "rank") == [16 - step // 10 for step in range(40)]


def test_a_list_that_is_still_growing_has_lost_nothing() -> None:
    parsed = read("[", '  {"step": 1, "loss": 2.5},', '  {"step": 2, "loss": 2.25},')
    assert (column(parsed, "loss"), parsed.unreadable) == ([2.5, 2.25], 0)


def test_a_hundred_percent_of_all_steps_is_the_end() -> None:
    rows = [{"current_steps": step, "total_steps": 20, "loss": 2.5, "percentage": 5.0 * step} for step in range(1, 20)]
    last = {"current_steps": 20, "total_steps": 20, "loss": None, "percentage": 100.0}
    assert read(*rows).notes == []
    (note,) = read(*rows, last, last).notes
    assert (note.kind, note.step, note.line_no) == (NoteKind.FINISHED, 20.0, 20)
    # An evaluation's progress, or one that is rounded up, says nothing of the run's end.
    assert read(*rows, {"current_steps": 19, "total_steps": 20, "loss": 2.5, "percentage": 100.0}).notes == []


def test_a_list_of_names_and_values_is_laid_flat_by_name() -> None:
    rows = [
        {"step": at, "metrics": [{"name": "loss", "value": 3.0 - at}, {"name": "lr", "value": 1e-4}]} for at in (0, 1)
    ]
    parsed = read(*rows)
    assert column(parsed, "metrics/loss") == [3.0, 2.0]
    assert column(read({"step": 1, "load": [{"name": "a"}, {"value": 2}]}), "load[1]/value") == [2.0]


def test_a_long_line_of_brackets_is_unreadable_a_short_one_surrounds_records() -> None:
    parsed = read(b"[", {"step": 1, "loss": 2.0}, b"],", b"[" * 100_000, {"step": 2, "loss": 1.5})
    assert steps(parsed) == [1.0, 2.0]
    assert parsed.unreadable == 1
    assert [note.line_no for note in parsed.notes if note.kind is NoteKind.UNREADABLE] == [4]


@pytest.mark.parametrize("late", [2, 5, 14, 20, 40])
@pytest.mark.parametrize("weak", ["epoch", "num_tokens"])
def test_a_step_that_comes_late_is_the_step_or_not_wherever_the_log_is_cut(late: int, weak: str) -> None:
    rows = [{weak: at, "loss": 3 - at / 99, **({"step": 100 * at} if at >= late else {})} for at in range(1, 60)]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    whole = said(read_lines(JsonLines("m"), data))
    for size in (1, 2, 3, 7, 16, 17, 30):
        assert said(read_lines(JsonLines("m"), data, range(size, 60, size))) == whole


@pytest.mark.parametrize("front", [b"\xff\xff\xff", "全角 ".encode(), b"\xe5\x85"])
def test_records_behind_bytes_that_are_no_text_stand_where_they_are(front: bytes) -> None:
    lines = [front + b'{"step": %d, "loss": 2.5}' % step for step in range(1, 9)]
    data = b"\n".join(lines) + b"\n"
    blocks = JsonLines("a.jsonl").feed(data, 0, 1).blocks
    places = [at for block in blocks for at in block.offsets.tolist()]
    assert len(places) == 8
    assert all(data[at:].startswith(b'{"step": %d,' % step) for step, at in enumerate(places, 1))


def test_a_string_of_a_number_and_its_unit_is_the_number_in_that_unit() -> None:
    told = {"mem": "40.5 GiB", "util": "55%", "rate": "12,345 tok/s", "perf": {"time_ms": "12ms"}, "size": "7B"}
    times = ["1.25s", "900 ms", "soon", None, "2 GiB", "2s"] * 20
    parsed = read(*({"step": i, "loss": 2.5, "dt": text, **told} for i, text in enumerate(times)))
    assert column(parsed, "mem (GiB)") == [40.5] * 120
    assert column(parsed, "util (%)") == [55.0] * 120
    assert column(parsed, "rate (tok/s)") == [12345.0] * 120
    assert column(parsed, "perf/time_ms") == [12.0] * 120
    assert column(parsed, "dt (s)")[:3] == [1.25, 0.9, pytest.approx(math.nan, nan_ok=True)]
    assert marks(parsed, "dt (s)") == ["NUMBER", "NUMBER", "NULL", "NUMBER"] * 20
    assert not any("size" in key for block in parsed.blocks for key in block.columns)


def test_what_a_run_is_called_is_no_measurement() -> None:
    parsed = read(*({"step": i, "loss": 2.5, "variant": text} for text in ("10%", "20%") for i in range(30)))
    assert [block.run for block in parsed.blocks] == ["", "variant=20%"]
    assert all(list(block.columns) == ["loss"] for block in parsed.blocks)


def test_records_of_few_of_many_keys_cost_no_look_at_each_key() -> None:
    def lines(count: int) -> bytes:
        return b"".join(b'{"step": %d, "loss": 2.5, "m%d": 1.5}\n' % (step, step % 300) for step in range(count))

    def cost(count: int) -> int:
        data = lines(count)
        return calls_of(lambda: read_lines(JsonLines("m.jsonl"), data))

    few, many = cost(2000), cost(8000)
    assert many - few < 60 * 6000, (few, many)
    parsed = read_lines(JsonLines("m.jsonl"), lines(2000))
    assert column(parsed, "m7") == [1.5] * 7
    assert marks(parsed, "m7") == ["NUMBER"] * 7


def test_infinity_and_null_among_absent_keys_keep_what_they_are() -> None:
    text = b"".join(b'{"step": %d, "loss": 2.5, "a": 1.5}\n' % step for step in range(20))
    text += b'{"step": 20, "loss": 2.5}\n{"step": 21, "loss": null}\n{"step": 22, "loss": NaN, "a": Infinity}\n'
    parsed = read_lines(JsonLines("m.jsonl"), text)
    assert marks(parsed, "a")[-2:] == ["NUMBER", "POS_INF"]
    assert marks(parsed, "loss")[-3:] == ["NUMBER", "NULL", "NAN"]
