from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tails.formats.structured import by_run, column, marks, read_lines, rows_of, said, steps
from trainmon.tails.formats.csv_table import CsvTable
from trainmon.tails.formats.registry import detect
from trainmon.tails.record import NoteKind, Parsed, TimeKind


def read(text: str | bytes) -> Parsed:
    return read_lines(CsvTable("m.csv"), text.encode() if isinstance(text, str) else text)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters(delimiter: str) -> None:
    text = "step,loss,lr\n1,10.5,1e-05\n2,9.25,2e-05\n".replace(",", delimiter)
    assert CsvTable.sniff(text.encode()) > 0.8
    parsed = read(text)
    assert steps(parsed) == [1.0, 2.0]
    assert column(parsed, "loss") == [10.5, 9.25]
    assert [row[2:4] for row in rows_of(parsed)] == [(13, 2), (26, 3)]


def test_single_quotes_around_names_and_values() -> None:
    text = "'step','loss','note'\n'1','10.5','it''s'\n'2','9.25','x'\n"
    assert CsvTable.sniff(text.encode()) > 0.8
    parsed = read(text)
    assert (steps(parsed), column(parsed, "loss")) == ([1.0, 2.0], [10.5, 9.25])


def test_percentages_are_told_in_the_name_of_their_column() -> None:
    parsed = read("step,loss,mfu,acc\n1,10.5,41.5%,\n2,9.25,42%,50%\n3,9.0,nan,51%\n")
    assert column(parsed, "mfu (%)")[:2] == [41.5, 42.0]
    assert column(parsed, "acc (%)") == [50.0, 51.0]


def test_decimal_comma() -> None:
    assert column(read("step;loss\n1;3,5\n2;2,25\n"), "loss") == [3.5, 2.25]


def test_sparse_columns_and_odd_values() -> None:
    parsed = read("epoch,step,train_loss,val_loss\n0,49,7.5,\n0,99,nan,\n0,99,,4.5\n1,149,inf,None\n,,,\n")
    assert marks(parsed, "train_loss") == ["NUMBER", "NAN", "POS_INF"]
    assert marks(parsed, "val_loss") == ["NUMBER", "NULL"]
    assert steps(parsed) == [49.0, 99.0, 99.0, 149.0]


def test_quoted_fields_with_newlines_and_delimiters() -> None:
    text = 'step,note,loss\n1,"two\nlines, and a comma",2.5\n2,"a ""quoted"" word",2.25\n'
    parsed = read(text)
    assert column(parsed, "loss") == [2.5, 2.25]
    assert [row[3] for row in rows_of(parsed)] == [2, 4]
    assert parsed.lines == 4


def test_newlines_in_the_fields_of_every_row_do_not_hide_the_table() -> None:
    text = "step,loss,note\n" + "".join(f'{step},2.5,"one\nand, two"\n' for step in range(1, 9))
    assert CsvTable.sniff(text.encode()) > 0.8
    assert steps(read(text)) == list(range(1, 9))


def test_a_stray_quote_does_not_swallow_the_file() -> None:
    rows = "".join(f"{i},x,{i / 4}\n" for i in range(1, 400))
    parsed = read('step,note,loss\n0,"never closed,1.5\n' + rows)
    assert len(column(parsed, "loss")) >= 398
    inches = read("step,size,loss\n" + '1,5" disk,2.5\n2,6" disk,2.25\n')
    assert column(inches, "loss") == [2.5, 2.25]


def test_keras_epochs() -> None:
    parsed = read("loss,val_loss,lr,epoch\n13.5,3.25,0.0001,1\n10.75,2.5,0.0001,2\n")
    assert parsed.blocks[0].step_key == "epoch"
    assert steps(parsed) == [1.0, 2.0]


def test_wandb_export_leaves_bounds_out() -> None:
    name = "17/04/2025_run - lm_loss"
    parsed = read(f'"Step","{name}","{name}__MIN","{name}__MAX"\n"4","12.5","12.0","13.0"\n"52","9.5","9","10"\n')
    assert list(parsed.blocks[0].columns) == [name]
    assert column(parsed, name) == [12.5, 9.5]


def test_tensorboard_export() -> None:
    parsed = read("Wall time,Step,Value\n1696394223.5,0,49.5\n1696394797.5,8000,34.5\n")
    assert parsed.blocks[0].time_kind is TimeKind.ABSOLUTE
    assert parsed.blocks[0].times.tolist() == [1696394223.5, 1696394797.5]
    assert column(parsed, "Value") == [49.5, 34.5]


def test_long_form_and_runs_kept_apart() -> None:
    text = "metric_type,metric_name,run,step,value\n" + "".join(
        f"loss,validation_loss,{run},{step},{step + len(run)}\n" for run in ("a", "bb") for step in (0, 10, 20)
    )
    runs = by_run(read(text))
    assert column(runs[""], "loss/validation_loss") == [1.0, 11.0, 21.0]
    assert column(runs["run=bb"], "loss/validation_loss") == [2.0, 12.0, 22.0]


def test_variants_and_text_in_the_step() -> None:
    text = "variant,step,train_loss,eval_loss\n"
    for variant in ("r8", "r16"):
        text += "".join(f"{variant},{10 * i},{2.5 / i},\n" for i in range(1, 40)) + f"{variant},eval,,1.25\n"
    parsed = read(text)
    runs = by_run(parsed)
    assert len(column(runs[""], "train_loss")) == 39
    assert column(runs["variant=r16"], "eval_loss") == [1.25]
    assert steps(parsed).count(None) == 2


def test_one_run_needs_no_label_until_another_comes() -> None:
    rows = "".join(f"log.txt,{i},{i / 2}\n" for i in range(300))
    runs = by_run(read("source,step,loss\n" + rows + "other.txt,0,9.5\n"))
    assert len(column(runs[""], "loss")) == 300
    assert column(runs["source=other.txt"], "loss") == [9.5]


def test_header_again_is_a_launch() -> None:
    parsed = read("step,loss\n1,2.5\n2,2.25\nstep,loss\n1,2.5\nstep,loss,lr\n2,2.0,0.1\n")
    assert [note.kind for note in parsed.notes] == [NoteKind.LAUNCH, NoteKind.LAUNCH]
    assert column(parsed, "loss") == [2.5, 2.25, 2.5, 2.0]
    assert column(parsed, "lr") == [0.1]


def test_torn_rows_are_counted() -> None:
    parsed = read("step,loss,lr\n1,2.5,0.1\n2,2.\n3,2.0,0.1\n4,1.5,0.1,,\n5,1,1,1\n")
    assert parsed.unreadable == 2
    assert steps(parsed) == [1.0, 3.0, 4.0]


def test_header_only_and_nothing() -> None:
    assert read("step,loss\n").records == 0
    assert read("").records == 0
    assert CsvTable.sniff(b"step,loss,grad_norm,train/loss,step_2,lr(x)\n") > 0.4
    assert read("step,loss\n1,2.5\n").records == 1


def test_typed_rows() -> None:
    parsed = read("step,split,loss\n" + "".join(f"{i},train,2.5\n{i},val,2.75\n" for i in range(20)))
    assert column(parsed, "loss") == [2.5] * 20
    assert column(parsed, "eval/loss") == [2.75] * 20


def test_comments_bom_and_crlf() -> None:
    parsed = read(b'\xef\xbb\xbf#{"t_start": 1.5}\r\n# step,loss\r\n1,2.5\r\n2,2.25\r\n')
    assert column(parsed, "loss") == [2.5, 2.25]


@pytest.mark.parametrize(
    "text",
    [
        "step: 1, loss: 2.5, lr: 0.1\nstep: 2, loss: 2.25, lr: 0.1\n",
        "[2026-01-01 10:00:00] iteration 1/ 10 | lm loss: 2.5 | grad norm: 1.0 |\n" * 3,
        '{"step": 1, "loss": 2.5}\n{"step": 2, "loss": 2.25}\n',
        "Epoch 1, batch 2, done\nEpoch 1, batch 3, done\n",
        "",
        "one\ntwo\n",
        "step    1/19560 | loss 11.0091 (+nanz)| norm 15.3715 (+nanz)",
        "step 10, loss 2.5\n",
    ],
)
def test_other_texts_are_no_tables(text: str) -> None:
    assert CsvTable.sniff(text.encode()) == 0.0


def test_samples() -> None:
    for sample in CsvTable.samples:
        assert CsvTable.sniff(sample) > 0.8
        assert read(sample).records > 0


_FIELDS = st.one_of(
    st.floats().map(repr),
    st.sampled_from(["", "nan", "-inf", "None", "eval", "x y", '"a', '"b,c"', "1_0", "3,5", "1e999"]),
)
_HEADERS = st.sampled_from(
    ["step,loss,lr", "epoch,loss", "run,step,loss", "name,step,value", "loss,split,iter", "x,y", "timestamp,step,loss"]
)


@settings(max_examples=150, deadline=None)
@given(
    _HEADERS, st.lists(st.lists(_FIELDS, min_size=1, max_size=4), max_size=30), st.lists(st.integers(1, 30), max_size=5)
)
def test_any_rows_in_any_pieces_say_the_same(header: str, rows: list[list[str]], cuts: list[int]) -> None:
    data = "\n".join([header, *(",".join(row) for row in rows)]).encode() + b"\n"
    assert said(read_lines(CsvTable("m"), data, cuts)) == said(read_lines(CsvTable("m"), data))


_HOSTILE = st.sampled_from(
    [
        "run,step,loss",
        "model,step,loss",
        "run,task,step,acc",
        "seed,optimizer,epoch,step,loss",
        "lr,batch_size,iter,loss",
        "run,metric,step,value",
        "rank,step,loss",
        "flavour,mood,step,loss",
    ]
)
_COLUMNS = {"step": 0, "iter": 0, "epoch": 1, "loss": 2, "acc": 2, "value": 2, "lr": 1}


def hostile_table(
    header: str, shape: list[int], odd: list[tuple[int, int, str]], short: list[tuple[int, int]]
) -> bytes:
    """A table whose steps rise, begin anew or stand still, its names in turn or one after the other, a few of its
    fields (row, column, text) odd, a few of its rows cut short."""
    names, (rows, period, *modes) = header.split(","), shape
    table = [
        [
            str([i, i // period, i % period, 1][modes[(place + _COLUMNS.get(name, 3)) % 4]])
            for place, name in enumerate(names)
        ]
        for i in range(rows)
    ]
    for name in {"model", "task", "optimizer", "flavour", "mood", "metric"} & set(names):
        for row in table:
            row[names.index(name)] = "abc"[int(row[names.index(name)]) % 3]
    for row_at, place, text in odd:
        table[row_at % rows][place % len(names)] = text
    for row_at, width in short:
        del table[row_at % rows][1 + width % len(names) :]
    return "\n".join([header, *map(",".join, table)]).encode() + b"\n"


_AT = st.integers(0, 400)


@settings(max_examples=60, deadline=None)
@given(
    _HOSTILE,
    st.tuples(st.integers(3, 330), st.integers(1, 40), *[st.integers(0, 3)] * 4).map(list),
    st.lists(st.tuples(_AT, _AT, st.sampled_from(["", "nan", "a", "7", "eval", "1e999"])), max_size=20),
    st.lists(st.tuples(_AT, _AT), max_size=8),
    st.lists(_AT, max_size=6),
)
def test_what_labels_and_what_names_a_run_is_told_by_the_rows_alone(
    header: str, shape: list[int], odd: list[tuple[int, int, str]], short: list[tuple[int, int]], cuts: list[int]
) -> None:
    data = hostile_table(header, shape, odd, short)
    whole = said(read_lines(CsvTable("m"), data))
    assert said(read_lines(CsvTable("m"), data, cuts)) == whole
    assert said(read_lines(CsvTable("m"), data, range(40))) == whole


def test_a_column_of_runs_that_are_numbers_is_no_label_because_two_rows_came_first() -> None:
    rows = [f"{run},{step},{2.5 + run}" for step in range(6) for run in (0, 1)]
    data = "\n".join(["run,step,loss", *rows]).encode() + b"\n"
    for cut in range(1, 13):
        assert list(by_run(read_lines(CsvTable("m"), data, [cut]))) == ["", "run=1"]


def test_an_epoch_that_rises_first_does_not_keep_the_step_from_being_it() -> None:
    data = b"epoch,step,loss\n1,,2.5\n2,,2.4\n2,30,2.3\n3,40,2.2\n"
    assert steps(read_lines(CsvTable("m"), data, [3])) == steps(read_lines(CsvTable("m"), data)) == [None, None, 30, 40]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_numbers_print_back_as_they_were_written(numbers: list[float]) -> None:
    data = "step,loss\n" + "".join(f"{i},{number!r}\n" for i, number in enumerate(numbers))
    assert list(map(repr, column(read(data), "loss"))) == list(map(repr, numbers))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_never_raise(data: bytes) -> None:
    read_lines(CsvTable("m"), data)
    assert not math.isnan(CsvTable.sniff(data))


def names(parsed: Parsed) -> set[str]:
    return {key for block in parsed.blocks for key in block.columns}


def test_words_that_tell_runs_apart_label_them() -> None:
    rows = "".join(
        f"{flavour},{step},{loss}\n" for step in (0, 5, 10) for flavour, loss in (("plain", 2), ("spicy", 3))
    )
    parsed = read("flavour,step,loss\n" + rows)
    assert names(parsed) == {"loss{flavour=plain}", "loss{flavour=spicy}"}


def test_words_beside_steps_that_go_on_label_nothing() -> None:
    assert names(read("mood,step,loss\n" + "".join(f"{'ab'[step % 2]},{step},2.5\n" for step in range(8)))) == {"loss"}


def test_words_in_long_form_under_other_names() -> None:
    assert names(read("metricName,step,metricValue\nloss,1,2.5\nlr,1,0.1\n")) == {"loss", "lr"}


def test_the_first_rank_speaks_for_the_run() -> None:
    assert names(
        read("rank,step,loss\n" + "".join(f"{rank},{step},2.5\n" for step in range(3) for rank in (0, 1)))
    ) == {
        "loss",
        "loss{rank=1}",
    }


def test_remarks_before_the_header_and_a_last_comma() -> None:
    data = b"# run: x, host: y\n# 2025-03-04\nstep,loss,\n" + b"".join(b"%d,2.5,\n" % step for step in range(1, 5))
    assert CsvTable.sniff(data) > 0.5
    parsed = read_lines(CsvTable("metrics.csv"), data)
    assert [step for block in parsed.blocks for step in block.steps.tolist()] == [1, 2, 3, 4]
    assert parsed.unreadable == 0


def test_a_table_of_other_things_is_no_log_whatever_its_cells_tell() -> None:
    told = "step 10: loss 2.5, nan at step 9, CUDA out of memory"
    rows = "".join(f"logs/{i}.log\tMegatron\t{i} lines, {told}\n" for i in range(9))
    table = b"file\tframework\twhat it shows\n" + rows.encode()
    assert isinstance(detect(table, "INDEX.tsv"), CsvTable)
    parsed = read_lines(CsvTable("INDEX.tsv"), table)
    assert (parsed.blocks, parsed.notes) == ([], [])
    lines = b"time\tlevel\tmessage\n" + b"".join(b"12:00:0%d\tINFO\tstep 1%d: loss 2.5\n" % (i, i) for i in range(9))
    assert not isinstance(detect(lines, "train.log"), CsvTable)
