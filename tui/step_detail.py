"""What a step of the walk found, in words: as much as there is room for."""

from __future__ import annotations

from dataclasses import replace

from trainmon.monitor.snapshot import TriageStep
from trainmon.tui.span import Line, Span, fit, wrap


def step_detail(step: TriageStep, width: int) -> list[Line]:
    """What, why and what next of one step, wrapped."""
    lines: list[Line] = []
    for label, text, style in (("what", step.what, "text"), ("why", step.why, "muted"), ("next", step.next, "value")):
        for place, piece in enumerate(wrap(text, width - 6)):
            lines.append([Span(f"{label if place == 0 else '':<5} ", "key"), Span(piece, style)])
    if step.explains:
        lines.append([Span("the walk stops here: first cause", "faint")])
    return lines


def short_detail(step: TriageStep, width: int, rows: int, ellipsis: str) -> list[Line]:
    """The same where `rows` are too few: what to do comes before why, and before the end of a long what."""
    lines = step_detail(replace(step, why=""), width)
    if len(lines) <= rows or not (step.what and step.next):
        return lines
    # The first half says which and since when; the rest is on the next screen.
    kept, whole = max(1, rows // 2), wrap(step.what, width - 6)
    if len(whole) > kept:
        what = " ".join([*whole[: kept - 1], fit(whole[kept - 1], width - 7, "").rstrip() + ellipsis])
        lines = step_detail(replace(step, what=what, why=""), width)
    return lines
