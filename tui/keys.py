"""The keys: one table feeds the bindings of every screen, the help, the palette and the docs.

A key means one thing wherever it works.
"""

from __future__ import annotations

from textual.binding import Binding, BindingType

from trainmon.tails.quick_dataclass import dataclass

FLEET, RUN, TRIAGE, EVIDENCE, COMPARE, LOG, HELP = "fleet", "run", "triage", "evidence", "compare", "log", "help"
ALERTS, INVENTORY, SIGNALS, LAYERS, EXPERTS = "alerts", "inventory", "signals", "layers", "experts"
SCREENS = (FLEET, RUN, TRIAGE, EVIDENCE, COMPARE, LAYERS, EXPERTS, LOG, ALERTS, INVENTORY, SIGNALS, HELP)
_TITLES = {FLEET: "list of runs", LOG: "raw log", ALERTS: "all alerts", SIGNALS: "add chart"}
_RUNS = (RUN, TRIAGE, EVIDENCE, LOG, LAYERS, EXPERTS)
_BUT_LOG = (RUN, TRIAGE, EVIDENCE, LAYERS, EXPERTS)
_CURVES = (RUN, TRIAGE, EVIDENCE, COMPARE, LAYERS, EXPERTS)
_FULL = tuple(screen for screen in SCREENS if screen != HELP)
_OPENING = (FLEET, RUN, TRIAGE, EVIDENCE, COMPARE, LAYERS, EXPERTS, ALERTS, SIGNALS)
_CHARTS = (RUN, TRIAGE, EVIDENCE, COMPARE)
_EPISODES = (RUN, TRIAGE, EVIDENCE, ALERTS)


@dataclass(frozen=True, slots=True)
class Key:
    """`id` is its name in the config; `action` what the screen does; `keys` as Textual writes them.

    `shown` as a person reads them; `label` for the bar at the foot ("" keeps it off); `help` one sentence.
    `screens` where it works.
    """

    id: str
    action: str
    keys: str
    shown: str
    label: str
    help: str
    screens: tuple[str, ...] = SCREENS


KEYS: tuple[Key, ...] = (
    Key(
        "open",
        "open",
        "enter",
        "Enter",
        "open",
        "open what is under the cursor; in a list of signals, draw it or no longer",
        _OPENING,
    ),
    Key(
        "triage",
        "triage",
        "t",
        "t",
        "triage",
        "walk through the triage of this run, step by step",
        (FLEET, *_RUNS, ALERTS),
    ),
    Key(
        "step.next",
        "next_step(1)",
        "n",
        "n",
        "next",
        "next step of the triage; in a log, the next line with the words last searched for, in the whole file",
        (TRIAGE, EVIDENCE, LOG),
    ),
    Key(
        "step.previous",
        "next_step(-1)",
        "N",
        "N",
        "",
        "the step of the triage, or the line with the words, before",
        (TRIAGE, EVIDENCE, LOG),
    ),
    Key(
        "filter",
        "filter",
        "slash",
        "/",
        "filter",
        "show only what matches what you type",
        (FLEET, LOG, ALERTS, SIGNALS),
    ),
    Key(
        "log",
        "log",
        "l",
        "l",
        "log",
        "raw log lines, at the episode or step you are looking at",
        (FLEET, *_BUT_LOG, ALERTS),
    ),
    Key("error.next", "next_error(1)", "e", "e", "next error", "next error of the log", (LOG,)),
    Key("error.previous", "next_error(-1)", "E", "E", "", "previous error of the log", (LOG,)),
    Key(
        "acknowledge",
        "acknowledge",
        "a",
        "a",
        "ack",
        "acknowledge the episode under the cursor: seen by a person, no longer first in the list",
        _EPISODES,
    ),
    Key("snooze", "snooze", "z", "z", "", "silence the episode under the cursor for an hour", _EPISODES),
    Key("pin", "pin", "space", "Space", "pin", "pin this run, or let it go", (FLEET, *_RUNS, ALERTS)),
    Key(
        "compare",
        "compare",
        "c",
        "c",
        "compare",
        "the pinned runs side by side (pin two or more first)",
        (FLEET, *_RUNS),
    ),
    Key(
        "view",
        "view",
        "v",
        "v",
        "other view",
        "another view of the same: runs in one chart or side by side, the next family of layers",
        (COMPARE, LAYERS),
    ),
    Key(
        "heat",
        "heat",
        "w",
        "w",
        "value/change",
        "the map by value, or each row against its own usual level",
        (LAYERS, EXPERTS),
    ),
    Key("axis", "axis", "x", "x", "axis", "x axis by step, tokens, FLOPs or time, as far as the log tells", _CHARTS),
    Key(
        "alerts",
        "alerts",
        "A",
        "A",
        "all alerts",
        "every episode of every run, open ones first",
        (FLEET, *_RUNS, COMPARE),
    ),
    Key(
        "inventory",
        "inventory",
        "i",
        "i",
        "inventory",
        "which signals this run logs, and how to get those it does not",
        (FLEET, *_RUNS),
    ),
    Key(
        "layers",
        "layers",
        "L",
        "L",
        "layers",
        "every layer by step as a map, and the layers that moved most",
        (FLEET, *_RUNS),
    ),
    Key(
        "experts",
        "experts",
        "X",
        "X",
        "experts",
        "load of the experts by layer; which are dead or hot",
        (FLEET, *_RUNS),
    ),
    Key("draw", "draw", "d", "d", "add chart", "choose any other signal of the log to be drawn as a chart too", (RUN,)),
    Key(
        "zoom.in",
        "zoom(1)",
        "plus,equals_sign",
        "+ =",
        "zoom",
        "zoom into the charts, around the cursor or the newest value",
        _CURVES,
    ),
    Key("zoom.out", "zoom(-1)", "minus,underscore", "- _", "", "zoom out", _CURVES),
    Key("fit", "fit", "0", "0", "", "charts show everything again, without a cursor", _CURVES),
    Key("follow", "follow", "F", "F", "", "charts show the newest part and move along with it", _CURVES),
    Key(
        "read.left",
        "read(-1)",
        "comma",
        ",",
        "",
        "cursor of the charts to the left; every chart tells its value there",
        _CURVES,
    ),
    Key("read.right", "read(1)", "full_stop", ".", "", "cursor of the charts to the right", _CURVES),
    Key("smooth", "smooth", "m", "m", "", "running mean over the raw curves, or not", _CURVES),
    Key("log_y", "log_y", "y", "y", "", "y axis logarithmic, linear, or as the values ask", _CURVES),
    Key(
        "outliers",
        "outliers",
        "o",
        "o",
        "",
        "keep the highest and lowest values out of the y axis, or let it reach all",
        _CURVES,
    ),
    Key("sort", "sort", "s", "s", "sort", "next order: trouble, name, step, loss, spike score, ...", (FLEET,)),
    Key("troubled", "troubled", "exclamation_mark", "!", "troubled", "only runs in trouble, or all again", (FLEET,)),
    *(
        Key(f"chart.{n}", f"chart({n})", str(n), str(n), "chart" if n == 1 else "", f"enlarge chart {n}", (RUN,))
        for n in range(1, 10)
    ),
    Key("run.previous", "other_run(-1)", "left_square_bracket", "[", "", "the run before in the list", _BUT_LOG),
    Key("run.next", "other_run(1)", "right_square_bracket", "]", "", "the next run of the list", _BUT_LOG),
    Key("full", "full", "f", "f", "", "the pane with the cursor in all of the terminal, or all panes again", _FULL),
    Key("copy", "copy", "Y", "Y", "", "copy what the cursor is on to the terminal's clipboard (OSC 52)"),
    Key("report", "report", "r", "r", "", "write a report of this run to a file", (FLEET, *_RUNS, ALERTS)),
    Key("back", "back", "escape", "Esc", "back", "back; in the list of runs, take the filter off"),
    Key("theme", "theme", "T", "T", "", "dark or light ground"),
    Key("help", "help", "question_mark", "?", "help", "this help"),
    Key("palette", "palette", "colon,ctrl+p", ": ctrl+p", "", "all commands by name"),
    Key("quit", "quit", "q,ctrl+c", "q", "quit", "quit; the training runs never notice"),
    Key("down", "move('down')", "j,down", "j ↓", "", "down"),
    Key("up", "move('up')", "k,up", "k ↑", "", "up"),
    Key("page.down", "move('page_down')", "pagedown,ctrl+f", "PgDn ctrl+f", "", "a page down"),
    Key("page.up", "move('page_up')", "pageup,ctrl+b", "PgUp ctrl+b", "", "a page up"),
    Key("top", "move('top')", "g,home", "g Home", "", "to the top"),
    Key("bottom", "move('bottom')", "G,end", "G End", "", "to the bottom; a log follows its newest line again"),
    Key("left", "sideways(-1)", "left", "←", "", "to the left: of long lines, of zoomed charts", (*_CURVES, LOG)),
    Key("right", "sideways(1)", "right", "→", "", "to the right: of long lines, of zoomed charts", (*_CURVES, LOG)),
    Key("pane.next", "pane(1)", "tab", "Tab", "", "next pane"),
    Key("pane.previous", "pane(-1)", "shift+tab", "shift+Tab", "", "previous pane"),
)


def title(screen: str) -> str:
    """What a person calls the screen.

    >>> title(FLEET), title(RUN)
    ('list of runs', 'run')
    """
    return _TITLES.get(screen, screen)


def is_as_made(key: Key) -> bool:
    """Whether the user's configuration left it alone."""
    return key in KEYS


def shown_keys(key: Key, ascii_only: bool = False) -> str:
    """How a person reads the keys of `key`; a row of keys that do the same stands as one."""
    shown = "1-9" if key.id == "chart.1" and is_as_made(key) else key.shown
    if ascii_only:
        for arrow, word in (("↓", "down"), ("↑", "up"), ("←", "left"), ("→", "right")):
            shown = shown.replace(arrow, word)
    return shown


def keys_of(screen: str) -> tuple[Key, ...]:
    """The keys that work on `screen`, in the order of the table."""
    return tuple(key for key in KEYS if screen in key.screens)


def bindings_of(screen: str) -> list[BindingType]:
    """The same as Textual's bindings, each under its id, so that a config may give it another key."""
    return [Binding(key.keys, key.action, key.help, show=False, id=key.id, priority=False) for key in keys_of(screen)]
