"""Each step of the triage shows the thresholds that it compares with, and where they came from."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.tui import sample
from tests.tui.driver import running, text_of
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.monitor.thresholds import Thresholds
from trainmon.tui import keys
from trainmon.tui.glyphs import UNICODE
from trainmon.tui.limits import limit_lines
from trainmon.tui.span import width_of


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> RunSnapshot:
    """A run as the engine publishes it, with the results of all checks."""
    folder = tmp_path_factory.mktemp("run")
    log = folder / "metrics.jsonl"
    log.write_text("".join(json.dumps({"step": step, "loss": 2.0 + 1 / step}) + "\n" for step in range(1, 200)))
    return judge([str(log)], cwd=folder).runs[0]


def words(run: RunSnapshot, step: str, width: int = 400, rows: int = 20) -> str:
    wanted = next(one for one in run.triage if one.id == step)
    lines = limit_lines(run, wanted, width, rows, UNICODE)
    assert len(lines) <= rows
    assert all(width_of(line) <= width for line in lines)
    return "\n".join("".join(span.text for span in line) for line in lines)


@pytest.mark.parametrize(
    ("step", "name"),
    [
        ("job", "silence.seconds 600"),
        ("loss", "nonfinite.fail_run 3"),
        ("gradients", "grad.spike.z 10"),
        ("step_time", "step_time.warn 1.3"),
        ("memory", "memory.warn 0.9"),
        ("experts", "moe.maxvio.level 1"),
        ("layers", "scale.ratio 10"),
    ],
)
def test_every_step_names_its_thresholds(judged: RunSnapshot, step: str, name: str) -> None:
    text = words(judged, step)
    assert name in text
    assert "defaults: " in text


def test_what_was_set_comes_first_and_says_where(judged: RunSnapshot) -> None:
    limits = Thresholds().override({"memory.warn": 0.8}, "/runs/a/trainmon.toml")
    text = words(replace(judged, limits=limits), "memory")
    assert text.index("from /runs/a/trainmon.toml: memory.warn 0.8") < text.index("defaults: ")


def test_what_does_not_fit_is_said_to_go_on(judged: RunSnapshot) -> None:
    text = words(judged, "loss", width=60, rows=1)
    assert text.endswith(UNICODE.ellipsis)


async def test_it_stands_on_the_screen_at_80x24() -> None:
    fleet = FleetSnapshot((sample.diverged(),))
    async with running(keys.FLEET, (80, 24), fleet) as (app, pilot):
        await pilot.press("t")
        await pilot.pause()
        for _ in range(7):
            assert " limit " in text_of(app)
            await pilot.press("n")
            await pilot.pause()


@pytest.mark.parametrize("width", range(60, 160, 7))
def test_what_does_not_fit_ends_after_a_whole_threshold(judged: RunSnapshot, width: int) -> None:
    last = words(judged, "loss", width, 2).splitlines()[-1]
    assert last.endswith(f", {UNICODE.ellipsis}")
    assert last.count(UNICODE.ellipsis) == 1
    assert last.rpartition(", ")[0].split()[-1].replace(".", "").replace("e-", "").isdigit()
