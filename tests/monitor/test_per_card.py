"""Rates of one card: told by the key's words, or by who printed it."""

from __future__ import annotations

from pathlib import Path

import trainmon
from trainmon.monitor.inventory import rows

LINE = (
    "[rank0]:[titan] 2026-05-03 02:{minute:02}:{second:02},461 - root - INFO - step: {step}  loss:  {loss}  "
    "grad_norm:  1.5  memory:  7.12GiB(22.71%)  tps: {rate}  tflops: 0.73  mfu: 0.23%\n"
)


def run_of(tmp_path: Path, text: str) -> trainmon.Run:
    (tmp_path / "train.log").write_text(text, encoding="utf-8")
    return trainmon.read(tmp_path / "train.log")


def test_torchtitan_prints_one_cards_rate_and_does_not_say_so(tmp_path: Path) -> None:
    lines = [
        LINE.format(minute=step // 60, second=step % 60, step=step, loss=9 - step / 100, rate=f"7,{200 + step % 5}")
        for step in range(1, 120)
    ]
    run = run_of(tmp_path, "".join(lines))
    (row,) = [row for row in rows(run.snapshot) if row.signal == "sys.tokens_per_second"]
    assert (row.keys, row.per_card) == (("tps",), True)
    (check,) = [check for check in run.checks if check.id == "sys.throughput"]
    assert "tokens/s a card" in check.what + check.why


def test_others_rates_are_the_whole_runs(tmp_path: Path) -> None:
    run = run_of(tmp_path, "".join(f"step {n} loss {9 - n / 100} tps 7200 dt 1.5s\n" for n in range(1, 120)))
    (row,) = [row for row in rows(run.snapshot) if row.signal == "sys.tokens_per_second"]
    assert not row.per_card
    assert not any("a card" in check.what + check.why for check in run.checks)
