"""The two lines that head every screen of one run, and the status lines at the foot."""

from __future__ import annotations

import math

from trainmon.monitor.finding import Verdict
from trainmon.monitor.snapshot import FleetSnapshot
from trainmon.tui import numbers
from trainmon.tui.columns import VERDICT_STYLES, bar
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.row import FAILED, Row
from trainmon.tui.span import Line, Span, clip, width_of


def run_head(row: Row, width: int, glyphs: Glyphs, age_s: float, *, pinned: bool) -> list[Line]:
    """Who, in which state, judged how and why; then how far, how fast, how old."""
    return [_first(row, width, glyphs, pinned), _second(row, width, glyphs, age_s)]


def _first(row: Row, width: int, glyphs: Glyphs, pinned: bool) -> Line:
    run, why = row.run, row.explained_by
    state_style = "fail" if run.state in FAILED else "text"
    line: Line = [
        Span(f"{glyphs.pin} " if pinned else " ", "key"),
        Span(clip(run.name, max(12, width // 3), glyphs.ellipsis), "title"),
        Span(f"  {glyphs.states[run.state]} {run.state.value}", state_style),
        Span(f"  {glyphs.verdicts[run.verdict]} {run.verdict.value}", VERDICT_STYLES[run.verdict]),
    ]
    reason = f"{why.title}: {why.what}" if why else run.verdict_reason
    room = width - width_of(line) - 1
    return [*line, Span(" " + clip(reason, room, glyphs.ellipsis))] if room > 5 else line


def _second(row: Row, width: int, glyphs: Glyphs, age_s: float) -> Line:
    run = row.run
    if run.progress < 1:
        done = numbers.percent(run.progress)
        return [Span(" reading history ", "text"), *bar(run.progress, 20, glyphs), Span(f" {done}", "value")]
    line: Line = [Span(" ")]
    if not math.isnan(row.progress):
        line += [*bar(row.progress, 10, glyphs), Span(f" {numbers.percent(row.progress)} ", "value")]
    total = "" if math.isnan(row.total) else f" of {numbers.step(row.total)}"
    parts = [f"step {numbers.step(row.step)}{total}"]
    if not math.isnan(row.eta_s):
        parts.append(f"ETA {numbers.duration(row.eta_s)}")
    if not math.isnan(age_s):
        parts.append(f"data {numbers.age(age_s)} old")
    if not math.isnan(row.tokens_per_second):
        parts.append(numbers.with_unit(row.tokens_per_second, "tokens/s"))
    if not math.isnan(row.mfu):
        parts.append(f"MFU {numbers.percent(row.mfu)}")
    if len(run.attempts) > 1:
        parts.append(f"attempt {len(run.attempts)}")
    if run.thresholds_source:
        parts.append(f"thresholds: {run.thresholds_source}")
    text = f" {glyphs.dot} ".join(parts)
    return [*line, Span(clip(text, max(0, width - width_of(line)), glyphs.ellipsis), "muted")]


def fleet_head(rows: list[Row], shown: int, order: str, filtered: str, width: int, glyphs: Glyphs) -> Line:
    """The first line of the list: how many are in trouble, what is shown, in which order."""
    failing = sum(row.trouble >= 4 for row in rows)
    warned = sum(row.trouble in (2, 3) for row in rows)
    line: Line = [Span(" trainmon ", "title")]
    if failing:
        line.append(Span(f" {glyphs.verdicts[Verdict.FAIL]} {failing} failing ", "fail"))
    if warned:
        line.append(Span(f" {glyphs.verdicts[Verdict.WARN]} {warned} warned ", "warn"))
    if rows and not failing and not warned:
        line.append(Span(f" {glyphs.verdicts[Verdict.PASS]} no run in trouble ", "pass"))
    count = f"{len(rows)} run{'s' if len(rows) != 1 else ''}" if shown == len(rows) else f"{shown} of {len(rows)} runs"
    line.append(Span(f" {count}, by {order}", "muted"))
    if filtered and (room := width - width_of(line) - 12) > 4:
        line.append(Span(f", filter: {clip(filtered, room, glyphs.ellipsis)}", "value"))
    return line


def status_line(fleet: FleetSnapshot, width: int, glyphs: Glyphs, problems: tuple[str, ...] = ()) -> Line:
    """How sources are watched; a problem takes its place, with how many more there are."""
    every = (*problems, *fleet.problems)
    if every:
        more = f"  (+{len(every) - 1} more)" if len(every) > 1 else ""
        head = f" {glyphs.verdicts[Verdict.WARN]} "
        room = max(0, width - len(head) - len(more))
        return [Span(head, "warn"), Span(clip(every[0], room, glyphs.ellipsis)), Span(more, "muted")]
    text = fleet.status or ("reading" if fleet.reading else "")
    return [Span(" " + clip(text, max(0, width - 1), glyphs.ellipsis), "faint")]
