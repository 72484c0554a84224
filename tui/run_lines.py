"""The two lines that head every screen of one run, and the status lines at the foot."""

from __future__ import annotations

import math

from trainmon.monitor.finding import Episode, Verdict
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tails.record import NoteKind
from trainmon.tails.text import printable
from trainmon.tui import numbers
from trainmon.tui.columns import VERDICT_STYLES, bar, verdict_word
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.loading import read_bytes
from trainmon.tui.rates import PER_CARD
from trainmon.tui.row import FAILED, Row
from trainmon.tui.span import Line, Span, clip, fit, width_of, wrap
from trainmon.tui.trouble import found_words, state_words

_MOST_CHANGES = 8


def run_head(row: Row, width: int, glyphs: Glyphs, age_s: float, *, pinned: bool) -> list[Line]:
    """Who, in which state, judged how and why; then how far, how fast, how old."""
    return [_first(row, width, glyphs, pinned), _second(row, width, glyphs, age_s)]


def _first(row: Row, width: int, glyphs: Glyphs, pinned: bool) -> Line:
    run, why = row.run, row.explained_by
    state_style = "fail" if run.state in FAILED else "text"
    line: Line = [
        Span(f"{glyphs.pin} " if pinned else " ", "key"),
        Span(clip(run.name, max(12, width // 3), glyphs.ellipsis), "title"),
        Span(f"  {glyphs.states[run.state]} {state_words(run.state)}", state_style),
        Span(f"  {glyphs.verdicts[run.verdict]} {verdict_word(run)}", VERDICT_STYLES[run.verdict]),
    ]
    reason = found_words(run, why) if why else run.verdict_reason
    room = width - width_of(line) - 1
    return [*line, Span(" " + clip(reason, room, glyphs.ellipsis))] if room > 5 else line


def _second(row: Row, width: int, glyphs: Glyphs, age_s: float) -> Line:
    run = row.run
    if run.progress < 1:
        done = numbers.percent(run.progress)
        reading: Line = [Span(" reading history ", "text"), *bar(run.progress, 20, glyphs), Span(f" {done} ", "value")]
        read, size = read_bytes([run])
        drawn = "the charts are a preview, not judged" if run.preview else "what is shown so far may change"
        told = f"{numbers.size(read)} of {numbers.size(size)}; {drawn}" if size > 0 else "not begun yet"
        return [*reading, Span(clip(told, max(0, width - width_of(reading)), glyphs.ellipsis), "muted")]
    line: Line = [Span(" ")]
    if not math.isnan(row.progress):
        line += [*bar(row.progress, 10, glyphs), Span(f" {numbers.percent(row.progress)} ", "value")]
    total = "" if math.isnan(row.total) else f" of {numbers.step(row.total)}"
    parts = [f"step {numbers.step(row.step)}{total}"]
    if not math.isnan(row.eta_s):
        parts.append(f"ETA {numbers.duration(row.eta_s)}")
    if not math.isnan(age_s):
        parts.append(f"data {numbers.age(age_s)} old")
    if saved := checkpoint_words(run):
        parts.append(saved)
    if not math.isnan(row.tokens_per_second):
        unit = "tokens/s" + PER_CARD * row.per_card
        parts.append(numbers.with_unit(row.tokens_per_second, unit))
    if not math.isnan(row.mfu):
        parts.append(f"MFU {numbers.percent(row.mfu)}")
    if len(run.attempts) > 1:
        parts.append(f"attempt {len(run.attempts)}")
    if run.thresholds_source:
        parts.append(f"thresholds: {run.thresholds_source}")
    room = width - width_of(line)
    text = parts[0]
    for part in parts[1:]:  # whole parts only, the less important last
        if len(text) + 3 + len(part) <= room:
            text += f" {glyphs.dot} {part}"
    return [*line, Span(clip(text, max(0, room), glyphs.ellipsis), "muted")]


def checkpoint_words(run: RunSnapshot) -> str:
    """The last checkpoint that the log names with its step; in trouble, the last one before it began."""
    saved = sorted(
        {note.step for note in run.notes if note.kind == NoteKind.CHECKPOINT_SAVED and note.step is not None}
    )
    if not saved:
        return ""
    explaining = {name for step in run.triage if step.explains for name in step.episodes}
    begun = [one.first_step for one in run.episodes if one.id in explaining and not one.recovered]
    good = [step for step in saved if not begun or step < min(begun)]
    if not good:
        return "no checkpoint before it"
    return f"{'good ' if begun else ''}checkpoint {numbers.step(good[-1])}"


def run_words(row: Row) -> str:
    """A run in one line of text, as one would send it to a colleague."""
    run, why = row.run, row.explained_by
    reason = found_words(run, why) if why else run.verdict_reason
    step = "" if math.isnan(row.step) else f", step {numbers.step(row.step)}"
    return printable(f"{run.name} ({run.target}): {run.state.value}, {verdict_word(run)}{step}. {reason}", 2000)


def episode_words(run: str, one: Episode) -> str:
    """An episode in one line of text."""
    last = f"-{numbers.step(one.last_step)}" if one.last_step > one.first_step else ""
    place = f" ({one.path}:{one.line})" if one.path and one.line > 0 else ""
    what = one.what or one.kind
    words = f"{run}: {one.severity.name} step {numbers.step(one.first_step)}{last} {one.signal}: {what}{place}"
    return printable(words, 2000)


def setting(value: float | str) -> str:
    """A setting as one would write it.

    >>> setting(128.0), setting(0.0003), setting(1.24338e8), setting("bf16")
    ('128', '0.0003', '124M', 'bf16')
    """
    if isinstance(value, str):
        return printable(value, 60)
    return numbers.count(value) if abs(value) >= 1e5 else f"{value:.10g}"


def run_extra(run: RunSnapshot, width: int, glyphs: Glyphs) -> list[Line]:
    """Where there is room: what else to do, the last checkpoint, how many attempts, settings and their changes."""
    lines: list[Line] = []
    explained = " ".join(step.next.lower() for step in run.triage if step.explains)
    more = [action for action in run.actions if action.lower() not in explained]  # the others stand right above
    if more:
        lines += [[], [Span("also recommended" if len(more) < len(run.actions) else "recommended", "heading")]]
        for number, action in enumerate(more, 1):
            for place, piece in enumerate(wrap(action, width - 3)):
                lines.append([Span(f"{number}. " if place == 0 else "   ", "key"), Span(piece)])
    lines += [[], [Span("about this run", "heading")]]
    is_read = run.progress >= 1  # before that, what was not found may still come
    facts = [("last checkpoint", checkpoint_words(run) or f"none seen in the log{'' if is_read else ' so far'}")]
    for number, (first, last) in enumerate(run.attempts[-3:], max(1, len(run.attempts) - 2)):
        facts.append((f"attempt {number}", f"steps {numbers.step(first)}-{numbers.step(last)}"))
    for name, value in run.facts.items():
        facts.append((printable(name.replace("_", " "), 40), setting(value)))
    for change in run.setting_changes[-_MOST_CHANGES:]:
        changed = f"{change.name.replace('_', ' ')} {setting(change.before)} {glyphs.arrow} {setting(change.after)}"
        facts.append((f"from step {numbers.step(change.step)}", changed))
    facts += [("not checked", f"{name}: {reason}") for name, reason in run.not_checked if is_read]
    names = min(18, width // 2)
    for name, text in facts:
        lines.append([Span(fit(name, names) + " ", "muted"), Span(clip(text, width - names - 1))])
    return lines


def fleet_head(
    rows: list[Row],
    shown: int,
    order: str,
    filtered: str,
    width: int,
    glyphs: Glyphs,
    hidden: tuple[int, int] = (0, 0),
) -> Line:
    """The first line of the list: how many are in trouble, what is shown, in which order; how many are `hidden` above
    and below, as there is no bar that tells."""
    failing = sum(row.trouble >= 4 for row in rows)
    warned = sum(row.trouble in (2, 3) for row in rows)
    line: Line = [Span(" trainmon ", "title")]
    if failing:
        line.append(Span(f" {glyphs.verdicts[Verdict.FAIL]} {failing} failing ", "fail"))
    if warned:
        line.append(Span(f" {glyphs.verdicts[Verdict.WARN]} {warned} warned ", "warn"))
    read = sum(row.run.progress >= 1 for row in rows)
    if read < len(rows):
        line.append(Span(f" {read} of {len(rows)} read ", "value"))
    elif rows and not failing and not warned:
        line.append(Span(f" {glyphs.verdicts[Verdict.PASS]} no run in trouble ", "pass"))
    count = f"{len(rows)} run{'s' if len(rows) != 1 else ''}" if shown == len(rows) else f"{shown} of {len(rows)} runs"
    line.append(Span(f" {count}, by {order}", "muted"))
    if filtered and (room := width - width_of(line) - 12) > 4:
        line.append(Span(f", filter: {clip(filtered, room, glyphs.ellipsis)}", "value"))
    more = ", ".join(f"{count} more {where}" for count, where in zip(hidden, ("above", "below"), strict=True) if count)
    if more and (room := width - width_of(line) - len(more) - 1) > 0:
        line += [Span(" " * room), Span(more, "text")]
    return line


def row_detail(row: Row, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """What the list has no room for, of the run at the cursor: what was found and what to do, in `height` lines."""
    run, why = row.run, row.explained_by
    state = ": ".join(filter(None, (state_words(run.state), run.state_reason)))
    told = [("what", why.what if why else run.verdict_reason, "text")]
    told.append(("next", why.next, "value") if why is not None and why.next else ("state", state, "muted"))
    lines: list[Line] = []
    for label, text, style in told:
        pieces = wrap(text, width - 8)
        room = 1 if label == "what" else height - len(lines)
        if len(pieces) > room > 0:
            pieces = [*pieces[: room - 1], clip(" ".join(pieces[room - 1 :]), width - 8, glyphs.ellipsis)]
        for place, piece in enumerate(pieces[:room]):
            lines.append([Span(f" {label if place == 0 else '':<5} ", "key"), Span(piece, style)])
    return lines


def status_line(
    fleet: FleetSnapshot,
    width: int,
    glyphs: Glyphs,
    problems: tuple[str, ...] = (),
    loading: tuple[float, str] | None = None,
) -> Line:
    """How sources are watched; a problem takes its place, with how many more there are; before all, how far the
    histories are read (`loading`: share and words)."""
    every = (*problems, *fleet.problems)
    if loading is not None:
        share, words = loading
        more = f"  {glyphs.verdicts[Verdict.WARN]} {every[0]}" if every else ""
        head = [
            Span(" reading history ", "text"),
            *bar(share, 20, glyphs),
            Span(f" {numbers.percent(share)} ", "value"),
        ]
        return [*head, Span(clip(f"{words}{more}", max(0, width - width_of(head)), glyphs.ellipsis), "muted")]
    if every:
        more = f"  (+{len(every) - 1} more)" if len(every) > 1 else ""
        sign = f" {glyphs.verdicts[Verdict.WARN]} "
        room = max(0, width - len(sign) - len(more))
        return [Span(sign, "warn"), Span(clip(every[0], room, glyphs.ellipsis)), Span(more, "muted")]
    text = fleet.status or ("reading" if fleet.reading else "")
    return [Span(" " + clip(text, max(0, width - 1), glyphs.ellipsis), "faint")]
