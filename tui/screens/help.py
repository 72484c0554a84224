"""The keys, made from the key table, and what the signs mean."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widget import Widget

from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.snapshot import FleetSnapshot, State
from trainmon.tui import keys
from trainmon.tui.columns import VERDICT_STYLES
from trainmon.tui.filter import NUMBERS, TEXTS
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.keymap import KeyMap
from trainmon.tui.row import FAILED
from trainmon.tui.screens.base import MonitorScreen
from trainmon.tui.span import Line, Span, fit, wrap
from trainmon.tui.trouble import state_words
from trainmon.tui.widgets.panes import TextLines, TextList


class HelpScreen(MonitorScreen):
    """For the screen it was asked on, then for all others."""

    KIND = keys.HELP
    BINDINGS = keys.bindings_of(keys.HELP)

    def __init__(self, asked_on: str) -> None:
        super().__init__()
        self.asked_on = asked_on

    def body(self) -> ComposeResult:
        """The text."""
        yield TextLines(1, "bar", id="head")
        yield TextList(id="text")

    def panes(self) -> list[Widget]:
        """The text."""
        return [self.query_one("#text", TextList)]

    def draw(self, fleet: FleetSnapshot) -> None:
        """See `MonitorScreen`."""
        del fleet
        down, up, back = (self.shown_key(name) for name in ("down", "up", "back"))
        self.query_one("#head", TextLines).show(
            [[Span(" help", "title"), Span(f"  {down} {up} scroll, {back} back", "muted")]]
        )
        pane = self.query_one("#text", TextList)
        text = help_lines(self.asked_on, self.app.size.width, self.glyphs, self.monitor.key_map)
        if text != pane.text:
            pane.show(text)

    def action_help(self) -> None:
        """The same key closes it."""
        self.action_back()


def help_lines(asked_on: str, width: int, glyphs: Glyphs, key_map: KeyMap) -> list[Line]:
    """All keys, those of the screen `asked_on` first, then screen by screen; then the signs."""
    shown = [key for key in key_map.keys if _is_shown(key)]
    here = [key for key in shown if asked_on in key.screens and not _is_everywhere(key)]
    lines = _section(f"on this screen: {keys.title(asked_on)}", here, width, glyphs) if here else []
    everywhere = [key for key in shown if _is_everywhere(key)]
    lines += [*([[]] if lines else []), *_section("on every screen", everywhere, width, glyphs)]
    for screen in keys.SCREENS:  # a key stands where it is met first, on the way from the list into a run
        others = [key for key in shown if _first_screen(key) == screen and key not in (*here, *everywhere)]
        if others:
            lines += [[], *_section(keys.title(screen), others, width, glyphs)]
    lines += [[], [Span(" signs", "heading")]]
    meanings = {
        Verdict.PASS: "PASS: judged, nothing found",
        Verdict.WARN: "WARN: look at it by day",
        Verdict.FAIL: "FAIL: look at it now",
        Verdict.NO_DATA: "NO DATA: should be judged and cannot; says what to log",
        Verdict.NOT_APPLICABLE: "N/A: this run has no such thing",
    }
    for verdict, text in meanings.items():
        lines.append([Span(f"   {glyphs.verdicts[verdict]}  ", VERDICT_STYLES[verdict]), Span(text)])
    signs: dict[str, list[State]] = {}
    for state, glyph in glyphs.states.items():
        signs.setdefault(glyph, []).append(state)
    for glyph, states in signs.items():
        style = "fail" if FAILED.issuperset(states) else "text"
        lines.append([Span(f"   {glyph}  ", style), Span("state: " + ", ".join(map(state_words, states)))])
    rest = (
        (glyphs.severities[Severity.INFO], "info", "INFO: worth knowing, never an alarm"),
        (glyphs.bad, "fail", "on a chart: NaN, Inf or null was logged at this step"),
        (glyphs.cut, "muted", "on a chart: higher than the axis (the first descent of a loss is cut, the rest never)"),
        (glyphs.point, "value", "on the chart of the loss: an evaluation"),
        (glyphs.ticks["checkpoint"], "muted", "under a chart: a checkpoint was saved"),
        (glyphs.ticks["restart"], "key", "under a chart: a restart"),
        (glyphs.ticks["remark"], "key", "under a chart: a note (trainmon note)"),
        (glyphs.ticks["lr"], "note", "under a chart: the LR ends its warm-up or plateau, or jumps"),
        (
            glyphs.ticks["config"],
            "note",
            "under a chart: a setting changes (batch, LR of a new attempt, any that the log tells)",
        ),
        (f"{glyphs.turn[0]}{glyphs.turn[-1]}", "turn8", "on a map of changes: far below, far above"),
        (glyphs.pin, "key", "pinned run; in a log, the line you came for"),
    )
    lines += [[Span(f"   {glyph:<3}", style), Span(text)] for glyph, style, text in rest]
    for text in (
        "A percentage beside a value compares it with the median of the hundred values before it; "
        "an evaluation with the one before.",
        "Dim curves are attempts that a restart left behind. A dashed line is a threshold.",
        f'Filter fields: {", ".join((*TEXTS, *NUMBERS))}; words, and, or, not, ( ), "quoted words".',
    ):
        lines += [[], *([Span(f" {piece}", "muted")] for piece in wrap(text, width - 2))]
    return lines


def _is_shown(key: keys.Key) -> bool:
    """A row of keys that do the same stands as one, and what has no key needs no help."""
    return bool(key.keys) and (not key.id.startswith("chart.") or key.id == "chart.1" or not keys.is_as_made(key))


def _is_everywhere(key: keys.Key) -> bool:
    """Moving about, and what is a key of all screens but this help."""
    return set(keys.SCREENS) - {keys.HELP} <= set(key.screens)


def _first_screen(key: keys.Key) -> str:
    return next(screen for screen in keys.SCREENS if screen in key.screens)


def _section(title: str, entries: list[keys.Key], width: int, glyphs: Glyphs) -> list[Line]:
    lines: list[Line] = [[Span(f" {title}", "heading")]]
    for key in entries:
        text = key.help
        if key.id == "chart.1" and keys.is_as_made(key):
            text = "enlarge a chart; the same key shows all again"
        shown = keys.shown_keys(key, ascii_only=not glyphs.braille)
        for place, piece in enumerate(wrap(text, width - 18)):
            lines.append([Span(f"   {fit(shown if place == 0 else '', 13)} ", "key"), Span(piece)])
    return lines
