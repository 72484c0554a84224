"""The run screen where there is little room: who gets how many rows, and the words that a decision needs."""

from __future__ import annotations

from typing import NamedTuple

from trainmon.monitor.snapshot import RunSnapshot, TriageStep
from trainmon.tui import numbers
from trainmon.tui.columns import VERDICT_STYLES
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.span import Line, Span, wrap

CHECKLIST = 8  # the triage with its title; the chart beside it is as high
_LEAST_ACTION = 3


class Rows(NamedTuple):
    """Rows of each part, from top to bottom."""

    upper: int
    action: int
    signals: int
    alerts: int


def is_compact(width: int, height: int) -> bool:
    """Whether the nine charts, the checklist with its detail and the alerts have no room beside each other.

    >>> is_compact(80, 24), is_compact(100, 30), is_compact(160, 48)
    (True, True, False)
    """
    return width < 120 or height < 36


def budget(rows: int, action: int, signals: int, episodes: int) -> Rows:
    """`rows` to share; `action` and `signals` as they would like, `episodes` to list under a title.

    What to do comes first, then the newest alerts, then the other signals; what is left makes the chart higher.

    >>> budget(20, 4, 4, 2)
    Rows(upper=9, action=4, signals=4, alerts=3)
    >>> budget(11, 5, 4, 9)
    Rows(upper=7, action=3, signals=1, alerts=0)
    """
    upper = min(CHECKLIST, max(4, rows - _LEAST_ACTION - 1))
    rest = rows - upper
    alerts = min(episodes + 1, 4 if rows < 24 else 6, max(0, rest - _LEAST_ACTION))
    if alerts < 2:
        alerts = 0
    given = min(action, max(_LEAST_ACTION, rest - alerts - signals))
    given = min(given, rest - alerts)
    strip = min(signals, rest - alerts - given)
    return Rows(rows - given - strip - alerts, given, strip, alerts)


def action_lines(run: RunSnapshot, step: TriageStep, width: int, rows: int, glyphs: Glyphs) -> list[Line]:
    """What is wrong, since which step, and what to do, in at most `rows` lines; what to do is cut last."""
    what = _wrapped(_what(run, step), width)
    todo = _wrapped(step.next or (run.actions[0] if run.actions else ""), width)
    room_for_what = max(1, rows - len(todo)) if todo else rows
    if len(todo) >= rows:
        room_for_what = max(1, rows // 3)
    what = _cut(what, room_for_what, glyphs)
    todo = _cut(todo, rows - len(what), glyphs)
    lines: list[Line] = []
    head = f" {glyphs.verdicts[step.verdict]} what "
    for place, text in enumerate(what):
        lines.append([Span(head if place == 0 else " " * len(head), VERDICT_STYLES[step.verdict]), Span(text)])
    for place, text in enumerate(todo):
        lines.append([Span("   next " if place == 0 else " " * 8, "key"), Span(text, "value")])
    return lines


def wanted_rows(run: RunSnapshot, step: TriageStep, width: int) -> int:
    """Rows that `action_lines` would fill."""
    return len(_wrapped(_what(run, step), width)) + len(_wrapped(step.next, width))


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, max(10, width - 9))


def _what(run: RunSnapshot, step: TriageStep) -> str:
    """The step's own words, and where it began if they do not say."""
    text = step.what or step.verdict.value
    begun = [one.first_step for one in run.episodes if one.id in step.episodes and not one.recovered]
    since = numbers.step(min(begun)) if begun else ""
    return f"{text} (since step {since})" if since and since not in text else text


def _cut(lines: list[str], rows: int, glyphs: Glyphs) -> list[str]:
    if len(lines) <= rows:
        return lines
    return [*lines[: rows - 1], f"{lines[rows - 1]} {glyphs.ellipsis}"] if rows > 0 else []
