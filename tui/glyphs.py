"""The characters that carry meaning, so that colour never has to: one set for UTF-8 terminals, one in ASCII."""

from __future__ import annotations

from collections.abc import Mapping

from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.snapshot import State
from trainmon.tails.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One character each, one cell wide; `spark`, `heat` (values) and `turn` (changes, the usual
    in the middle) from low to high."""

    verdicts: Mapping[Verdict, str]
    severities: Mapping[Severity, str]
    states: Mapping[State, str]
    spark: str
    braille: bool
    bad: str
    cut: str
    cut_below: str
    cursor: str
    pin: str
    bar_full: str
    bar_empty: str
    horizontal: str
    vertical: str
    corner: str
    ellipsis: str
    dot: str
    recovered: str
    acknowledged: str
    arrow: str
    point: str
    heat: str
    turn: str
    ticks: Mapping[str, str]


UNICODE = Glyphs(
    verdicts={
        Verdict.PASS: "✔",
        Verdict.WARN: "▲",
        Verdict.FAIL: "✖",
        Verdict.NO_DATA: "○",
        Verdict.NOT_APPLICABLE: "–",
    },
    severities={Severity.INFO: "•", Severity.WARN: "▲", Severity.FAIL: "✖"},
    states={
        State.QUEUED: "◦",
        State.STARTING: "◌",
        State.RUNNING: "▶",
        State.CHECKPOINTING: "▣",
        State.EVALUATING: "◆",
        State.SLOW: "▷",
        State.BUFFERED: "≈",
        State.HUNG: "‖",
        State.FINISHED: "■",
        State.CRASHED: "†",
        State.OOM: "†",
        State.TIME_LIMIT: "□",
        State.PREEMPTED: "□",
        State.REQUEUED: "↻",
        State.CANCELLED: "□",
        State.NODE_FAIL: "†",
        State.UNKNOWN: "?",
    },
    spark="▁▂▃▄▅▆▇",
    braille=True,
    bad="✗",
    cut="↑",
    cut_below="↓",
    cursor="▸",
    pin="●",
    bar_full="━",
    bar_empty="─",
    horizontal="─",
    vertical="│",
    corner="└",
    ellipsis="…",
    dot="·",
    recovered="↩",
    acknowledged="✓",
    arrow="→",
    point="◆",
    heat="·░▒▓█",
    turn="▼▿·▵▲",
    ticks={"checkpoint": "┴", "restart": "↻", "lr": "λ", "config": "Δ", "remark": "✎"},
)

ASCII = Glyphs(
    verdicts={
        Verdict.PASS: "+",
        Verdict.WARN: "!",
        Verdict.FAIL: "X",
        Verdict.NO_DATA: "o",
        Verdict.NOT_APPLICABLE: "-",
    },
    severities={Severity.INFO: "i", Severity.WARN: "!", Severity.FAIL: "X"},
    states={
        State.QUEUED: ".",
        State.STARTING: ":",
        State.RUNNING: ">",
        State.CHECKPOINTING: "#",
        State.EVALUATING: "E",
        State.SLOW: "~",
        State.BUFFERED: "=",
        State.HUNG: "|",
        State.FINISHED: "*",
        State.CRASHED: "%",
        State.OOM: "%",
        State.TIME_LIMIT: "[",
        State.PREEMPTED: "[",
        State.REQUEUED: "@",
        State.CANCELLED: "[",
        State.NODE_FAIL: "%",
        State.UNKNOWN: "?",
    },
    spark="_.-=+*#@",
    braille=False,
    bad="x",
    cut="^",
    cut_below="v",
    cursor=">",
    pin="*",
    bar_full="#",
    bar_empty=".",
    horizontal="-",
    vertical="|",
    corner="+",
    ellipsis="~",
    dot="-",
    recovered="<",
    acknowledged="v",
    arrow=">",
    point="E",
    heat=".:+*#",
    turn="=-.+#",
    ticks={"checkpoint": "'", "restart": "@", "lr": "L", "config": "C", "remark": "N"},
)


def choose_glyphs(environment: Mapping[str, str], encoding: str) -> Glyphs:
    """ASCII on request (``TRAINMON_ASCII``) and wherever the locale or the terminal's `encoding` is not UTF-8.

    In the C locale Python writes UTF-8 all the same, so that `encoding` alone does not tell. The fonts of a Linux
    console have no braille; with ``TRAINMON_ASCII=0`` it is drawn there too.
    """
    if environment.get("TERM") == "linux" and not environment.get("TRAINMON_ASCII"):
        return ASCII
    if environment.get("TRAINMON_ASCII", "") not in ("", "0") or environment.get("LC_ALL") in ("C", "POSIX"):
        return ASCII
    return UNICODE if encoding.lower().replace("-", "") == "utf8" else ASCII
