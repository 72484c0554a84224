"""A rate that a log tells of one card is shown as one card's, wherever it stands."""

from dataclasses import replace

from tests.tui import sample
from trainmon.monitor.compare.judging import compare
from trainmon.monitor.compare.text import text
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tui.columns import draw_row
from trainmon.tui.glyphs import UNICODE
from trainmon.tui.rates import unit_of
from trainmon.tui.row import row_of
from trainmon.tui.run_lines import run_head
from trainmon.tui.side_by_side import end_table
from trainmon.tui.slots import first_screen

RATE = SignalKey("sys.tokens_per_second")


def told_as(raw_key: str) -> RunSnapshot:
    run = sample.fleet().runs[0]
    return replace(run, series={**run.series, RATE: replace(run.series[RATE], raw_key=raw_key)})


def words(lines: object) -> str:
    assert isinstance(lines, list)
    return "\n".join("".join(span.text for span in line) for line in lines)


def everywhere(run: RunSnapshot) -> list[str]:
    row = row_of(run)
    head = words(run_head(row, 160, UNICODE, 1.0, pinned=False)).split("tok/s")[1][:4]
    listed = words([draw_row(row, 180, UNICODE, 1.0)])
    charts = " ".join(f"{chart.value} {chart.beside}" for chart in first_screen(run, UNICODE).charts)
    found = compare([run, run])
    table = words(end_table([run, run], "step", 160, UNICODE, found))
    return [head, listed, charts, table, text(found), unit_of(run, run.series[RATE])]


def test_a_rate_of_one_card_says_so_in_every_place() -> None:
    assert all("/GPU" in shown for shown in everywhere(told_as("tokens_per_sec_per_gpu")))


def test_a_rate_of_the_whole_run_does_not() -> None:
    assert not any("/GPU" in shown for shown in everywhere(told_as("tokens/s")))
