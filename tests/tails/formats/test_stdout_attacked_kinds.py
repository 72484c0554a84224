"""Kinds of text that generated logs of many trainers brought up."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import fact, kinds, read, values
from trainmon.tails.facts import facts_of

LOSSES = [3.25, 3.125, 3.0, 2.875]


@pytest.mark.parametrize("first", [1, 8, 98])
@pytest.mark.parametrize(
    "form",
    [
        "Epoch {epoch:03d}/120 - train loss: {loss} - val loss: 3.5 - time: 12.3s",
        "Epoch {epoch:02d}/120 | train loss: {loss} | val acc: 1.12%",
        "Epoch [{epoch}/120] train loss {loss}",
    ],
)
def test_an_epoch_of_several_digits_is_not_taken_apart(form: str, first: int) -> None:
    text = "".join(form.format(epoch=first + at, loss=loss) + "\n" for at, loss in enumerate(LOSSES))
    assert values(read(text), "train loss") == [(float(first + at), loss) for at, loss in enumerate(LOSSES)]
    assert fact(read(text), "total_steps") == 120.0


@pytest.mark.parametrize(
    "form", ["Training ({step}/120) [==  ] loss: {loss} eta: 00:01:02", "({step}/120) loss: {loss}"]
)
def test_a_place_in_parentheses(form: str) -> None:
    text = "".join(form.format(step=at, loss=loss) + "\n" for at, loss in enumerate(LOSSES, 9))
    assert values(read(text), "loss") == [(float(at), loss) for at, loss in enumerate(LOSSES, 9)]


def test_entries_of_a_dictionary_one_a_line_are_not_cut_lines() -> None:
    text = "".join(
        f"{{'grad_norm': 1.5,\n 'learning_rate': {rate},\n 'loss': {loss},\n 'step': {at},\n"
        " 'tokens_per_second': 12011.2}\n"
        for at, (rate, loss) in enumerate(
            zip(["1.5e-05", "0.000299995", "0.000299982", "0.000299958"] * 9, LOSSES * 9, strict=True)
        )
    )
    assert [step for step, _ in values(read(text), "loss")] == [float(at) for at in range(36)]


@pytest.mark.parametrize(
    ("above", "below", "kind"),
    [
        (
            "thread 'main' panicked at src/trainer.rs:112:33:",
            "called `unwrap()` on `Err`: CUDA_ERROR_OUT_OF_MEMORY",
            "cuda_oom",
        ),
        ("[CUDA ERROR] at file train.cu:1012:", "an illegal memory access was encountered", "error"),
    ],
)
def test_an_error_that_ends_in_a_colon_is_told_with_the_line_below(above: str, below: str, kind: str) -> None:
    text = "".join(f"step {at} loss {loss}\n" for at, loss in enumerate(LOSSES)) + f"{above}\n{below}\n"
    for cuts in ((), (5,)):
        parsed = read(text, cuts=cuts)
        assert [note.text for note in parsed.notes] == [f"{above} {below}"]
        assert kinds(parsed) == [kind]
    assert [note.text for note in read(text.removesuffix(f"{below}\n")).notes] == [above]
    goes_on = read(f"[rank1]: {above}\n[rank0]: step 4 loss 2.5\n")
    assert [note.text for note in goes_on.notes] == [above]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Config param: steps: 150", [("total_steps", 150.0)]),
        ("Config param: gradient_clipping_threshold: 1.0", [("clip_threshold", 1.0)]),
        ("Config param: max_target_length: 2048", [("seq_length", 2048.0)]),
        ("Config param: run_name: first", []),
    ],
)
def test_settings_as_maxtext_prints_them(text: str, told: list[tuple[str, float]]) -> None:
    assert facts_of(text) == told
    assert [(one.key, one.value) for one in read(f"{text}\n").facts] == told
