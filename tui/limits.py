"""The thresholds of a step of the triage: what its checks compare with, and where each number came from."""

from __future__ import annotations

from trainmon.monitor.assemble import STEP_OF_CHECK
from trainmon.monitor.explain import Limit, limits_of
from trainmon.monitor.finding import CheckResult, Verdict
from trainmon.monitor.snapshot import RunSnapshot, TriageStep
from trainmon.tails.text import printable
from trainmon.tui.glyphs import Glyphs
from trainmon.tui.span import Line, Span, clip, wrap

_RANK = {Verdict.FAIL: 0, Verdict.WARN: 1, Verdict.PASS: 2, Verdict.NO_DATA: 3, Verdict.NOT_APPLICABLE: 4}
_MARGIN = 8


def checks_of(run: RunSnapshot, step: TriageStep) -> list[CheckResult]:
    """The checks that speak for `step`, the loudest first; those that do not apply only where no other is there."""
    mine = [check for check in run.checks if STEP_OF_CHECK.get(check.id, "layers") == step.id]
    apply = [check for check in mine if check.verdict is not Verdict.NOT_APPLICABLE]
    return sorted(apply or mine, key=lambda check: (_RANK[check.verdict], check.advisory))


def limit_lines(run: RunSnapshot, step: TriageStep, width: int, rows: int, glyphs: Glyphs) -> list[Line]:
    """At most `rows` lines: each threshold once, those of the loudest check first, grouped by where they came from."""
    by_source: dict[str, dict[str, Limit]] = {}
    for check in checks_of(run, step):
        for limit in limits_of(check.id, run):
            by_source.setdefault(limit.source, {}).setdefault(limit.name, limit)
    if not by_source:
        return [[Span(" limit ", "key"), Span("none: this step compares with no threshold", "muted")]][:rows]
    texts = []
    for source, limits in sorted(by_source.items(), key=lambda item: item[0] == "default"):  # what was set comes first
        told = "defaults" if source == "default" else f"from {printable(source, 200)}"
        texts.append(f"{told}: " + ", ".join(f"{one.name} {one.value:g}" for one in limits.values()))
    pieces = [piece for text in texts for piece in wrap(text, width - _MARGIN)]
    lines: list[Line] = []
    for place, piece in enumerate(pieces[:rows]):
        text = clip(piece, width - _MARGIN, glyphs.ellipsis)
        if place == rows - 1 and len(pieces) > rows:
            text = _whole(piece, width - _MARGIN - 2) + f" {glyphs.ellipsis}"
        lines.append([Span(" limit " if place == 0 else " " * 7, "key"), Span(text, "muted")])
    return lines


def _whole(piece: str, width: int) -> str:
    """As many whole thresholds of `piece` as fit: half a name or a name without its number says nothing.

    >>> _whole("window 100, spike.z 6, spike.relative", 40), _whole("window 100, spike.z 6,", 20)
    ('window 100, spike.z 6,', 'window 100,')
    """
    kept = piece[: width + 1].rpartition(",")[0]
    return f"{kept}," if kept else clip(piece, width, "")
