"""A log whose keys never end: no piece of it on its way is both wide and long. (That it is capped: test_engine.)"""

from __future__ import annotations

import json

from tests.tails.clocks import FakeClock
from trainmon.monitor.engine import RunEngine
from trainmon.monitor.frame import Frame, SignalKey
from trainmon.monitor.rows import MOST_CELLS
from trainmon.tails.formats.jsonl import JsonLines

LOSS = SignalKey("loss.train")
GRAD = SignalKey("grad.norm")


def fed(lines: list[dict[str, float]]) -> tuple[RunEngine, list[int]]:
    """The engine that read `lines`, and the cells of every block and frame on the way."""
    log, engine, cells = JsonLines("log"), RunEngine("run", "log", clock=FakeClock(), sources=["log"]), []

    def hear(frame: Frame) -> None:
        cells.append(len(frame) * len(frame.columns))

    engine.on_frame = hear
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    for parsed in (log.feed(data, 0, 1), log.finish()):
        cells += [len(block) * len(block.columns) for block in parsed.blocks]
        engine.feed("log", parsed)
    engine.settle()
    return engine, cells


def test_a_new_key_in_every_record() -> None:
    count = 2200  # so many records of so many keys would be more than twice `MOST_CELLS`
    lines = [{"step": step, f"key{step}/x": 1.0, "loss": 2.0 + step % 3 / 100} for step in range(count)]
    lines += [{"step": count + step, "loss": 2.0, "grad_norm": 1.5} for step in range(50)]
    engine, cells = fed(lines)
    assert count * count > 2 * MOST_CELLS
    assert max(cells) <= MOST_CELLS + count
    views = engine.series_views(with_scores=False)
    assert views[LOSS].count == count + 50
    assert views[GRAD].count == 50
    assert all(view.count == 1 for key, view in views.items() if key.signal.startswith("key"))
    assert len(views) > count
    verdicts = {check.id: check.verdict.value for check in engine.checks()}
    assert verdicts["loss.nonfinite"] == "PASS"
