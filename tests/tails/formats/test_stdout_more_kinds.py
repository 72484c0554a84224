"""Kinds of lines that tell by what stands around them: numbers before words, folds, headings, other languages."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import fact, read, rows, values

STEPS = [(float(at), 3.25 - at / 100) for at in range(0, 60, 10)]


def lines(form: str, steps: list[tuple[float, float]] = STEPS) -> str:
    return "".join(form.format(step=int(step), loss=loss, pad=" " * 20) + "\n" for step, loss in steps)


@pytest.mark.parametrize(
    "form", ["{step}: loss {loss}", "{step:5d}: loss={loss}, lr=1e-4", "[10:00:01] {step}: loss {loss}"]
)
def test_a_number_that_counts_up_is_the_step(form: str) -> None:
    assert values(read(lines(form)), "loss") == STEPS


def test_many_that_count_by_one_are_steps_too() -> None:
    steps = [(float(at), 2.5) for at in range(40)]
    assert values(read(lines("{step}: loss {loss}", steps)), "loss") == steps


def test_numbers_that_come_again_are_ranks() -> None:
    text = "".join(f"{rank}: loss: {step + rank / 10}\n" for step in range(5) for rank in range(3))
    parsed = read(text)
    assert [value for _, value in values(parsed, "loss")] == [0, 1, 2, 3, 4]
    assert [value for _, value in values(parsed, "loss{rank=2}")] == [0.2, 1.2, 2.2, 3.2, 4.2]


def test_a_rank_before_a_line_with_its_own_step_is_a_rank() -> None:
    assert values(read("3: step 10 loss 3.25\n3: step 20 loss 3.0\n"), "loss") == [(10, 3.25), (20, 3.0)]


def test_lines_without_a_step_count_once_there_are_several() -> None:
    assert [value for _, value in values(read("loss: 2.5\nloss: 2.25\nloss: 2.0\nloss: 1.75\n"), "loss")] == [
        2.5,
        2.25,
        2,
        1.75,
    ]
    assert read("loss: 2.5\nLoading data\n").records == 0


FOLDED = [
    "step {step} | loss: {loss} | lr:\n1.0e-04 | tok/s: 123",
    "step {step} | loss: {loss} |\nlr: 1.0e-04 | tok/s: 123",
    "step {step} loss {loss} lr\n1.0e-04 tok/s 123",
    "[10:00:01] INFO     step {step} | loss: {loss} | lr:       train.py:88\n{pad}1.0e-04 | tok/s: 123",
    "[10:00:01] INFO     step {step} | loss: {loss}             train.py:88\n{pad}| lr: 1.0e-04 | tok/s: 123",
    "[10:00:01] INFO     step {step} |                          train.py:88\n{pad}loss: {loss} |\n"
    "{pad}lr: 1.0e-04 | tok/s: 123",
]


@pytest.mark.parametrize("form", FOLDED)
def test_a_record_that_the_console_folded_is_one(form: str) -> None:
    parsed = read(lines(form))
    assert values(parsed, "loss") == STEPS
    assert values(parsed, "lr") == [(step, 1e-4) for step, _ in STEPS]
    assert [row[1] for row in rows(parsed)][:2] == [1, 1 + form.count("\n") + 1]


def test_lines_that_end_open_and_never_go_on_are_whole() -> None:
    text = lines(" step {step} | loss: {loss} |", [(float(at), 2.5) for at in range(200)])
    assert len(values(read(text), "loss")) == 200
    mixed = lines("step {step} | loss: {loss} |\nSaving checkpoint at iteration {step}")
    assert values(read(mixed), "loss") == STEPS


@pytest.mark.parametrize(
    "form",
    [
        "[训练] 步数: {step} 训练损失: {loss} 学习率: 1e-4",
        "第 {step} 步，loss：{loss}，学习率：0.0001",
        "ステップ {step}: 損失 {loss}",
        "Schritt {step}: Verlust {loss}",
        "étape {step} - perte : {loss}",
        "paso {step} pérdida {loss}",
        "шаг {step} потеря {loss}",
        "스텝 {step} 손실 {loss}",
    ],
)
def test_other_languages(form: str) -> None:
    parsed = read(lines(form))
    [key] = {key for *_, cells in rows(parsed) for key in cells if "loss" in key}
    assert values(parsed, key) == STEPS


def test_an_epochs_heading_and_its_results() -> None:
    text = "".join(
        f"Epoch {n}/3\n----------\ntrain Loss: {4 - n}.5 Acc: 0.5\nval Loss: 4.25 Acc: 0.5\n\n" for n in (1, 2, 3)
    )
    parsed = read(text)
    assert values(parsed, "train Loss") == [(1, 3.5), (2, 2.5), (3, 1.5)]
    assert values(parsed, "val Loss") == [(1, 4.25), (2, 4.25), (3, 4.25)]
    assert fact(parsed, "total_steps") == 3


def test_an_epochs_heading_over_steps_says_nothing() -> None:
    text = "Epoch 1/2\nstep 10 loss: 3.25\nstep 20 loss: 3.0\nEpoch 2/2\nstep 30 loss: 2.5\n"
    assert values(read(text), "loss") == [(10, 3.25), (20, 3.0), (30, 2.5)]


def test_a_box_belongs_to_the_step_named_above_it() -> None:
    box = (
        "Epoch 1/10 Train step {step}/580 done.\nStats (1/1):\n┌─────────────────┬────────┐\n"
        "│ Metric          │ Value  │\n├─────────────────┼────────┤\n│ actor/loss      │ {loss} │\n"
        "│ time/train_step │ 12.03  │\n└─────────────────┴────────┘"
    )
    parsed = read(lines(box))
    assert values(parsed, "actor/loss") == STEPS
    assert fact(parsed, "total_steps") == 580


def test_metrics_in_a_bars_label() -> None:
    text = "".join(
        f"\r[loss: {3 - n / 10:.2f} | kl: 0.5]:   {n}%|1  | {n}/200 [00:12<38:20, 1.49s/it]" for n in (1, 2, 3)
    )
    parsed = read(text + "\n")
    assert values(parsed, "loss") == [(1, 2.9), (2, 2.8), (3, 2.7)]
    assert fact(parsed, "total_steps") == 200


def test_a_duration_is_no_step() -> None:
    parsed = read("".join(f'[loop] {{"time/step": 0.25, "system/step": {n}, "loss": 2.5}}\n' for n in (1, 2)))
    assert values(parsed, "loss") == [(1, 2.5), (2, 2.5)]


def test_keras_bars_drawn_over_with_backspaces_are_a_record_a_step() -> None:
    frames = [f" {n}/3 [{'=' * n}>{'.' * (3 - n)}] - ETA: 3s - loss: {4 - n}.5" for n in (1, 2)]
    frames.append(" 3/3 [===] - 4s 9ms/step - loss: 1.5 - val_loss: 2.0")
    text = "".join(f"Epoch {epoch}/2\n" + "".join("\b" * len(f) + f for f in frames) + "\n" for epoch in (1, 2))
    parsed = read(text)
    assert values(parsed, "loss") == [(1, 3.5), (2, 2.5), (3, 1.5), (4, 3.5), (5, 2.5), (6, 1.5)]
    assert values(parsed, "val_loss") == [(3, 2.0), (6, 2.0)]


def test_a_table_whose_rows_are_drawn_with_a_bar_gives_a_record_an_epoch() -> None:
    text = ""
    for epoch in (1, 2):
        text += "      Epoch    GPU_mem   box_loss   cls_loss  Instances       Size\n"
        for n in (1, 2):
            text += (
                f"\r      {epoch}/9      2.61G      {4 - n}.5      1.25        81        640:  50%|1 | {n}/2 [00:01<?]"
            )
        text += "\n                 Class     Images  Instances\n                   all         24         74\n\n"
    parsed = read(text)
    assert values(parsed, "box_loss") == [(1, 2.5), (2, 2.5)]
    assert fact(parsed, "total_steps") == 9


def test_rows_of_a_box_are_no_lines_of_their_own() -> None:
    box = "------------------\n| iteration | {step} |\n| loss      | {loss} |\n------------------"
    assert values(read(lines(box)), "loss") == STEPS


def test_llama_cpps_batches_go_on_from_epoch_to_epoch() -> None:
    bar = "{what}: [==>  ] data={n:07d}/0000002 loss={loss:.5f}±0.00500 acc=10.00±1.00% t=00:00:01 \r"
    train = "".join(bar.format(what="train", n=n, loss=4 - n) for n in (1, 2))
    parsed = read((train + bar.format(what="val", n=1, loss=3.5) + "\n") * 2)
    assert values(parsed, "loss") == [(1, 3.0), (2, 2.0), (3, 3.0), (4, 2.0)]
    assert values(parsed, "eval/loss") == [(2, 3.5), (4, 3.5)]
