"""What was begun and is never ended must not have every later line looked at as if it were the first of its shape."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trainmon.tails.formats.stdout import Stdout

LINES = 400
MOST_LOOKS = 60
BEGUN = {
    "rule": "=" * 40,
    "two rules": "-" * 30 + "  " + "-" * 12,
    "box": "┌────────────────────┬──────────┐",
    "panel": "╭──────────── settings ────────────╮",
    "row of a box": "------------------------\n|   entropy  |  0.25 |",
    "dictionary": "args = {",
    "dictionary with an entry": "{'weight_decay': 0.1,",
    "table": "  step   loss    lr\n-------------------",
    "heading": "======== Step 1/100 ========",
}
RECORDS: dict[str, Callable[[int], str]] = {
    "megatron": lambda step: (
        f" iteration {step:8d}/  500000 | consumed samples: {step * 8:12d} | elapsed time per iteration (ms): 512.5 | "
        f"learning rate: 1.250E-05 | lm loss: {2 + step % 7 / 8:.6E} | grad norm: 0.{step % 10}25 |"
    ),
    "modded-nanogpt": lambda step: (
        f"step:{step}/4578 train_loss:{2 + step % 7 / 8:.4f} train_time:{step * 140}ms step_avg:141.50ms"
    ),
    "torchtitan": lambda step: (
        f"[rank0]:[titan] 2026-03-04 10:{step // 60:02d}:{step % 60:02d},250 - root - INFO - \x1b[31mstep: {step:2}  "
        f"\x1b[32mloss: {2 + step % 7 / 8:7.4f}  \x1b[33mmemory: 10.50GiB(20.50%)  \x1b[34mtps: 161,{step % 10}03"
    ),
    "pairs": lambda step: f"step={step} loss={2 + step % 7 / 8:.4f} lr=1.0e-04",
}


def _read(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[float, float], int]:
    looks = 0
    look = Stdout._look

    def counted(self: Stdout, raw: bytes, outline: bytes, offset: int, line_no: int) -> None:
        nonlocal looks
        looks += 1
        look(self, raw, outline, offset, line_no)

    monkeypatch.setattr(Stdout, "_look", counted)
    reader = Stdout("train.log")
    parsed = reader.feed(text.encode(), 0, 0)
    parsed.add(reader.finish())
    losses: dict[float, float] = {}
    for block in parsed.blocks:
        for key in block.columns:
            if key.endswith("loss"):
                losses |= dict(zip(block.steps.tolist(), block.columns[key].tolist(), strict=True))
    return losses, looks


@pytest.mark.parametrize("begun", BEGUN)
@pytest.mark.parametrize("record", RECORDS)
def test_lines_behind_it_are_read_as_known_ones(begun: str, record: str, monkeypatch: pytest.MonkeyPatch) -> None:
    line = RECORDS[record]
    text = "\n".join(
        [*(line(step) for step in range(10)), BEGUN[begun], *(line(step) for step in range(10, LINES)), ""]
    )
    losses, looks = _read(text, monkeypatch)
    expected = {float(step): 2 + step % 7 / 8 for step in range(LINES)}
    assert {step: round(loss, 4) for step, loss in losses.items()} == expected
    assert looks < MOST_LOOKS


def test_a_box_goes_on_behind_one_record_of_another_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    row = "| rollout/     |      |\n|   ep_rew_mean | 20.5 |\n| train/       |      |\n"
    behind = "|   loss        | 6.25 |\n| time/        |      |\n|   iterations | 3    |\n"
    text = f"------------------------\n{row}step=3 acc=0.5 lr=1.0e-04\n{behind}------------------------\n"
    losses, _ = _read(text, monkeypatch)
    assert losses == {3.0: 6.25}


def test_a_dictionary_goes_on_behind_one_record_of_another_writer() -> None:
    reader = Stdout("train.log")
    text = f"{{'loss': 2.5,\n{RECORDS['megatron'](7)}\n 'grad_norm': 1.5,\n 'step': 50}}\n"
    parsed = reader.feed(text.encode(), 0, 0)
    parsed.add(reader.finish())
    assert any(50.0 in block.steps for block in parsed.blocks)


def test_colours_do_not_change_what_is_read() -> None:
    line = RECORDS["torchtitan"]
    plain = "".join(line(step) + "\n" for step in range(60))
    bare = plain
    for code in ("31", "32", "33", "34"):
        bare = bare.replace(f"\x1b[{code}m", "")
    read = []
    for text in (plain, bare):
        reader = Stdout("train.log")
        parsed = reader.feed(text.encode(), 0, 0)
        parsed.add(reader.finish())
        read.append(
            [(block.steps.tolist(), {k: v.tolist() for k, v in block.columns.items()}) for block in parsed.blocks]
        )
        ends = [at for block in parsed.blocks for at in block.offsets.tolist()]
        lengths = [len(one) + 1 for one in text.encode().split(b"\n")]
        assert ends == [sum(lengths[:at]) for at in range(60)]
    assert read[0] == read[1]
