"""Text of monitoring systems, and records that a trainer wraps by hand."""

from __future__ import annotations

import pytest

from tests.tails.formats.stdout_reading import EVERY_TEN, lines, read, values


@pytest.mark.parametrize(
    "form",
    [
        "train,run=a,host=n1 loss={loss},lr=1e-4,step={step}i 170000000{at}000000000",
        "train,run=a,step={step} loss={loss},lr=1e-4 170000000{at}",
        'metrics loss={loss},note="a b",iteration={step}i 170000000{at}000',
    ],
)
def test_line_protocol(form: str) -> None:
    parsed = read(lines(form))
    assert values(parsed, "loss") == EVERY_TEN
    assert [time for block in parsed.blocks for time in block.times] == [1.7e9 + at for at in range(1, 5)]


def test_line_protocol_of_held_out_data_and_of_a_rank() -> None:
    parsed = read(lines("eval,rank=3 loss={loss},step={step}i 1700000000"))
    assert values(parsed, "eval/loss") == EVERY_TEN
    two = read(lines("train,rank=0 loss={loss},step={step}i 1700000000\ntrain,rank=1 loss=9,step={step}i 1700000000"))
    assert values(two, "loss") == EVERY_TEN
    assert [value for _, value in values(two, "loss{rank=1}")] == [9.0] * 4


DUMP = (
    "# HELP train_loss The loss\n# TYPE train_loss gauge\n"
    'train_loss{{run="a"}} {loss}\n# TYPE load gauge\nload{{expert="3",run="a"}} 0.5\n'
    '# TYPE wait histogram\nwait_bucket{{le="0.5"}} 4\n# TYPE train_global_step gauge\ntrain_global_step {step}'
)


@pytest.mark.parametrize("end", ["", "\n# EOF", "\n"])
def test_dumps_of_gauges_one_after_another(end: str) -> None:
    parsed = read(lines(DUMP + end))
    assert values(parsed, "train_loss") == EVERY_TEN
    assert [value for _, value in values(parsed, "load{expert=3}")] == [0.5] * 4
    assert not any("bucket" in key for block in parsed.blocks for key in block.columns)


def test_text_that_speaks_of_types_is_no_dump() -> None:
    assert values(read("# TYPE the loss below\n" + lines("step {step} loss {loss}")), "loss") == EVERY_TEN


@pytest.mark.parametrize(
    "form",
    [
        "step {step}/90 | loss 9 acc 0.5\n | lr {loss}\n | grad_norm 1.5",
        "step {step}/90: loss=9\n    lr={loss}, grad_norm=1.5",
        "[10:00:0{at}] step {step} | loss 9 |\n | lr {loss} |\n | grad_norm 1.5 |",
    ],
)
def test_what_is_set_in_below_a_record_is_of_its_step(form: str) -> None:
    parsed = read(lines(form))
    assert values(parsed, "lr") == EVERY_TEN
    assert [value for _, value in values(parsed, "grad_norm")] == [1.5] * 4
    assert [step for step, _ in values(parsed, "loss")] == [10.0, 20.0, 30.0, 40.0]


@pytest.mark.parametrize(
    "below",
    [
        "    lr=0.5 will be used for the next stage of this run",
        "\n    lr=0.5",
        "    loss=0.5",
        "    eval_loss=0.5 lr=0.5",
        "lr=0.5",
    ],
)
def test_other_lines_below_a_record_are_not(below: str) -> None:
    parsed = read(lines("step {step} | loss {loss} | acc 0.5\n" + below))
    assert values(parsed, "loss") == EVERY_TEN
    assert not any("lr" in block.columns for block in parsed.blocks)
