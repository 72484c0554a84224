"""How preflight prints: the shape of `check`'s report, and ``trainmon.preflight/1``."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from trainmon import version
from trainmon.monitor.document import check_entry
from trainmon.monitor.finding import Verdict
from trainmon.monitor.preflight.look import Preflight
from trainmon.tails.text import printable

_WIDTH = 100
_SHOWN = (
    *("total_steps", "warmup_steps", "peak_lr", "min_lr", "schedule", "tokens_per_batch", "batch_size", "seq_length"),
    *("parameters", "world_size", "gpu", "precision", "clip", "checkpoint_interval", "eval_interval", "log_interval"),
)


def text(found: Preflight, *, quiet: bool = False) -> str:
    """The report of one target, for people."""
    title = f"Preflight: {printable(found.target, 80)}  [{found.verdict.value}]"
    lines = [title]
    if not quiet:
        lines += ["=" * len(title)]
        lines += [f"settings   {printable(name, 200)}" for name in found.read]
        lines += [f"trainer    {found.framework}"] if found.framework else []
        lines += ["", "Read as:"] if any(name in found.plan.values for name in _SHOWN) else []
        for name in _SHOWN:
            if name in found.plan.values:
                value = found.plan.values[name]
                shown = f"{value:,.6g}" if isinstance(value, float) else printable(str(value), 60)
                lines.append(f"  {name:<20} {shown:<14} ({printable(found.plan.said[name], 80)})")
        lines.append("")
    for check in found.checks:
        if check.verdict in (Verdict.NO_DATA, Verdict.NOT_APPLICABLE) or (quiet and check.verdict is Verdict.PASS):
            continue
        lines += _wrap(f"[{check.verdict.value}] {check.name}: {printable(check.what, 400)}", "", "       ")
        for words in (check.why, f"next: {check.next}" if check.next else ""):
            if words and not (quiet and words == check.why):
                lines += _wrap(printable(words, 600), "       ", "       ")
    missing = [check for check in found.checks if check.verdict is Verdict.NO_DATA]
    if missing and not quiet:
        lines += ["", "Not checked (NO DATA):"]
        for check in missing:
            lines += _wrap(f"{check.name}: {printable(check.what, 300)}", "  ", "    ")
    if not quiet:
        fails = sum(check.verdict is Verdict.FAIL for check in found.checks)
        warns = sum(check.verdict is Verdict.WARN for check in found.checks)
        lines += ["", f"CRITICAL ISSUES: {fails}", f"WARNINGS: {warns}"]
    return "\n".join(lines)


def document(found: Sequence[Preflight], status: int) -> dict[str, object]:
    """``trainmon.preflight/1``."""
    return {
        "schema": "trainmon.preflight/1",
        "version": version(),
        "exit": status,
        "targets": [
            {
                "target": each.target,
                "verdict": each.verdict.value,
                "framework": each.framework or None,
                "files": list(each.read),
                "settings": {
                    name: {"value": value, "from": each.plan.said[name]} for name, value in each.plan.values.items()
                },
                "checks": [check_entry(check) for check in each.checks],
                "problems": list(each.problems),
            }
            for each in found
        ],
        "problems": [problem for each in found for problem in each.problems],
    }


def _wrap(words: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(words, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False) or [first]
