"""Kinds of lines that logs pasted into bug reports brought up: excerpts, old trainers, other people's conventions."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import Cell, kinds, read, rows, values
from trainmon.tails.record import Mark

LOSSES = [3.25, 3.125, 3.0, 2.875]
EVERY_TEN: list[tuple[Cell, Cell]] = [(10.0 * at, loss) for at, loss in enumerate(LOSSES, 1)]


def lines(form: str) -> str:
    return "".join(form.format(step=int(step), loss=loss) + "\n" for step, loss in EVERY_TEN)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("form", "key"),
    [
        ("{step} | loss {loss} | lr 1.0e-05 | 8060.5ms | mfu 0.21%", "loss"),
        ("{step} loss={loss} time=0.04", "loss"),
        ("    {step} 7.34 s run, {loss} loss, 0.000001 LR, 14.5 GB used,  2362.78 GFLOPS", "loss"),
        ("iterations:{step}, train acc:0.5, train loss:{loss},", "train loss"),
        ("[Epoch 4 736/1281][Iteration {step}][Wall Clock 1.5s] Throughput is 408.5 records/second. Loss is {loss}. "
         "Current learning rate is 0.05.", "Loss"),
        ("训练次数：{step}, Loss：{loss}", "Loss"),
        ("[INFO:trainer.loop] step {step} loss={loss}", "loss"),
        ("[2021-08-16 13:51:04,434 INFO train.py line 404 34387] step {step} loss={loss}", "loss"),
    ],
)  # fmt: skip
def test_the_step_however_it_is_told(form: str, key: str) -> None:
    assert values(read(lines(form)), key) == EVERY_TEN


def test_epoch_and_batch_that_nothing_names() -> None:
    text = "".join(f"{epoch} {batch} Loss={3 - epoch / 4} Time=0.04\n" for epoch in (1, 2) for batch in (1, 2, 3))
    assert [value for _, value in values(read(text), "Loss")] == [2.75] * 3 + [2.5] * 3
    assert [step for step, _ in values(read(text), "Loss")] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_a_semicolon_between_epoch_and_iteration() -> None:
    text = "".join(f"Epoch {e} ; Iteration {i}/20 ; Perplexity {90 - 10 * e}\n" for e in (1, 2) for i in (10, 20))
    assert values(read(text), "Perplexity") == [(10.0, 80.0), (20.0, 80.0), (30.0, 70.0), (40.0, 70.0)]


@pytest.mark.parametrize("written", ["2,800, lr: 1e-4", "2,800 | lr: 1e-4", "2800, lr: 1e-4"])
def test_thousands_before_a_comma_that_separates(written: str) -> None:
    (row,) = rows(read(f"iter: {written}, loss: 2.5\n"))
    assert row[0] == 2800.0


def test_a_sentence_ends_behind_a_value() -> None:
    text = "".join(
        f"[Iteration {i}] Throughput is 408.5 records/second. Loss is Infinity. Rate is 0.5.\n" for i in (1, 2)
    )
    (first, _) = rows(read(text))
    assert first[4]["Loss"] == float("inf")
    assert first[4]["Throughput (records/second)"] == 408.5


def test_a_comparison_is_no_value() -> None:
    text = (
        "tests/test_loss.py::test_step_2 FAILED        [ 50%]\n    def test_step_2():\n>       assert loss == 2.31\n"
        "E       AssertionError: assert 2.30 == 2.31\n========== 1 failed, 3 passed in 0.42s ==========\n"
    )
    assert rows(read(text)) == []


def test_a_rate_in_parentheses_is_a_value_of_its_own() -> None:
    assert values(read("global step 1: loss = 79.5 (57.125 sec/step)\n"), "sec/step") == [(1.0, 57.125)]
    assert values(read("step 1: loss = 79.5 (80.5)\n"), "loss avg") == [(1.0, 80.5)]


KERAS = "  {n}/102 [..............................] - ETA: 8:29 - loss: {loss} - mse: {mse}\n"


@pytest.mark.parametrize(
    ("mse", "cells"),
    [("nan(283, 446, 3)", "nan"), ("0.5Batch 3: Invalid loss, terminating training", 0.5), ("0.5 ", 0.5)],
)
def test_a_keras_bar_that_something_is_glued_to(mse: str, cells: Cell) -> None:
    text = "".join(KERAS.format(n=n, loss=loss, mse=mse) for n, loss in ((1, 0.5), (2, "inf")))
    assert [row[0] for row in rows(read(text))] == [1.0, 2.0]
    assert rows(read(text))[1][4]["loss"] == float("inf")
    assert rows(read(text))[0][4]["mse"] == cells


def test_bars_of_epochs_by_another_name_are_added_up() -> None:
    text = "".join(f"miniE {e} : loss {3 - e / 4}: 100%|##| 833/833 [03:21<00:00,  4.1it/s]\n" for e in (1, 2, 3))
    assert values(read(text), "loss") == [(833.0, 2.75), (1666.0, 2.5), (2499.0, 2.25)]


def test_espnets_own_names_of_times() -> None:
    text = "1epoch:train:1-100batch: iter_time=0.002, loss=6.5, train_time=1.5\n"
    assert values(read(text), "espnet/train_time") == [(100.0, 1.5)]
    assert values(read(text), "espnet/iter_time") == [(100.0, 0.002)]


@pytest.mark.parametrize(
    "said",
    [
        "[CUDNN ERROR] at file cudnn_att.cpp:141:",
        "worker-1: EH9999: Inner Error!",
        "EI0006: 2024-07-03-11:28:40.450.757 getting socket failed",
        "rtDeviceSynchronize execute failed, reason=[task timeout][FUNC:FuncErrorReason][FILE:manage.cc][LINE:53]",
    ],
)
def test_a_drivers_last_words(said: str) -> None:
    assert kinds(read(said + "\n"), teardown=False) == ["error"]


def test_hydra_says_that_a_job_failed_and_not_why() -> None:
    said = "[2025-10-31 05:07:11,062][__main__][ERROR] - Error executing job with overrides: ['a=1']\n"
    assert kinds(read(said), teardown=True) == ["error"]


def test_a_checkpoint_tells_its_updates() -> None:
    text = "step 9165 loss 2.5\nsaved checkpoint ckpt/checkpoint28.pt (epoch 28 @ 9165 updates, score 9.3)\n"
    (note,) = [note for note in read(text).notes if note.kind.value == "checkpoint_saved"]
    assert note.step == 9165.0


def test_the_error_begins_behind_what_the_library_puts_before() -> None:
    (note, *_) = read("[E ProcessGroupNCCL.cpp:458] [Rank 7] Watchdog caught collective operation timeout: X\n").notes
    assert note.text.startswith("Watchdog caught")


def test_a_test_set_in_chinese_is_no_training() -> None:
    text = "".join(f"训练次数：{n}, Loss：2.5\n" for n in (100, 200, 300)) + "整体测试集上的Loss: 262.5\n"
    parsed = read(text)
    assert [step for step, _ in values(parsed, "Loss")] == [100.0, 200.0, 300.0]
    assert any("test" in key for row in rows(parsed) for key in row[4])


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("step 1 loss nan lr 0.1\nstep 2 loss nan lr 0.1\n", Mark.SAID_NAN),
        ("{'loss': nan, 'epoch': 0.5}\n{'loss': nan, 'epoch': 0.75}\n", Mark.SAID_NAN),
        ("   step   loss  lr\n0    10   3.25  0.5\n1    20    NaN  0.5\n2    30    NaN  0.5\n", Mark.NAN),
    ],
)
def test_nan_in_words_is_told_from_the_gap_of_a_table(text: str, mark: Mark) -> None:
    found = {int(one) for block in read(text).blocks if "loss" in block.marks for one in block.marks["loss"]}
    assert found - {Mark.NUMBER, Mark.ABSENT} == {mark}


def test_bars_below_a_heading_that_says_validation_are_held_out() -> None:
    bar = "loss: {loss} ||: 100%|###| 9/9 [00:0{n}<00:00, 10.31it/s]\n"
    text = "".join(
        f"{{}} - INFO - trainer - Epoch {e}/3\n{{}} - INFO - trainer - Training\n{bar.format(loss=3 - e, n=1)}"
        f"{{}} - INFO - trainer - Validating\n{bar.format(loss=3.5 - e, n=2)}"
        for e in range(2)
    ).replace("{}", "2018-05-18 00:15:37,750")
    parsed = read(text)
    assert values(parsed, "loss") == [(9.0, 3.0), (18.0, 2.0)]
    assert [value for _, value in values(parsed, "eval/loss")] == [3.5, 2.5]


def test_nan_as_some_formats_print_it() -> None:
    text = "Epoch 0:   3%|3  | 9000/301500 [1:42:42<55:37:46, reduced_train_loss=nan.0, global_step=9e+3]\n"
    assert values(read(text), "reduced_train_loss") == [(9000.0, "nan")]


def test_a_process_number_before_a_loggers_name_is_no_step() -> None:
    text = "2020-07-24 15:20:56,429 [24] my.pkg.writer.log l283 INFO | loss: 1.084\n"
    assert all(row[0] != 24.0 for row in rows(read(text)))
    assert values(read("[24] loss: 1.084\n"), "loss") == [(24.0, 1.084)]


def test_a_notebooks_traceback() -> None:
    text = (
        "----------------------------------------\nValueError                       Traceback (most recent call last)\n"
        "Cell In[28], line 10\n      1 import torch\n---> 10 trainer.train()\n\nFile ~/x/t.py:1885, in train()\n"
        "   1884 else:\n-> 1885     return loop(\n\nValueError: 3 is not 4\n"
    )
    (note,) = read(text).notes
    assert (note.kind.value, note.text) == ("traceback", "ValueError: 3 is not 4")
