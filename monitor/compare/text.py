"""How ``trainmon compare`` prints: a table and a chart for people, CSV and JSON for programs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence

from trainmon import version
from trainmon.monitor.compare.alignment import UNITS
from trainmon.monitor.compare.judging import PER, Comparison, Difference, Outlook, Standing, smoothed
from trainmon.monitor.job.judging import duration
from trainmon.monitor.text_chart import Line, text_chart
from trainmon.tails.text import printable, table_cell

_COLUMNS = (
    "run",
    "verdict",
    "value",
    "best",
    "slope",
    "tokens/s",
    "step s",
    "spikes",
    "steps lost",
    "time lost",
    "x end",
)


def _short(name: str) -> str:
    """A long name cut in its middle: runs of a sweep differ at their ends.

    >>> len(_short("a" * 60)), _short("run-1")
    (40, 'run-1')
    """
    shown = printable(name)
    return shown if len(shown) <= 40 else f"{shown[:14]}…{shown[-25:]}"


def _cells(standing: Standing) -> tuple[str, ...]:
    numbers = (
        standing.value,
        standing.best,
        standing.slope,
        standing.tokens_per_second,
        standing.step_time_s,
    )
    shown = tuple("-" if number is None or math.isnan(number) else f"{number:.4g}" for number in numbers)
    if standing.per_card:
        shown = (*shown[:3], f"{shown[3]}/GPU", *shown[4:])
    end = "-" if standing.x_end is None else f"{standing.x_end:.4g}"
    return (
        _short(standing.name),
        standing.verdict,
        *shown,
        str(standing.spikes),
        f"{standing.steps_lost:g}",
        "-" if standing.time_lost_s is None else duration(standing.time_lost_s),
        end,
    )


def _chart(result: Comparison, *, ascii_only: bool) -> str:
    """The smoothed curves over each other."""
    drawn = [Line(_short(name), smooth.x, smooth.y) for name, curve in result.curves for smooth in (smoothed(curve),)]
    return text_chart(drawn, title=result.signal, x_label=UNITS[result.axis], height=18, ascii_only=ascii_only)


def text(result: Comparison, *, markdown: bool = False, ascii_only: bool = False) -> str:
    """For people: the table, the differences, the settings that differ, the curves, and where they lead."""
    where = "no common stretch" if result.x is None else f"values at {result.x:.6g} {UNITS[result.axis]}"
    lines = [f"{result.signal} by {result.axis}: {where}; slope per {PER[result.axis][1]}", ""]
    lines += _table([_COLUMNS, *(_cells(standing) for standing in result.standings)], markdown=markdown)
    if result.differences:
        lines.append("")
        lines += [f"- {line}" if markdown else line for line in verdicts(result)]
    if result.settings:
        names = ("setting", *(_short(standing.name) for standing in result.standings))
        lines += ["", *_table([names, *((name, *values) for name, values in result.settings)], markdown=markdown)]
    if result.remarks:
        lines += ["", *(f"{'- ' if markdown else ''}{printable(remark, 200)}" for remark in result.remarks)]
    drawn = _chart(result, ascii_only=ascii_only)
    if drawn:
        lines += ["", *(["```text", drawn, "```"] if markdown else [drawn])]
    if result.outlook:
        unit = UNITS[result.axis]
        lines += ["", "If the curves go on as a power law (a range, not a number; nothing a schedule does is in it):"]
        lines += [""] if markdown else []  # a list begins after an empty line
        lines += [
            f"{'- ' if markdown else '  '}{_short(o.what)} at {o.x:.6g} {unit}: {o.low:.4g} to {o.high:.4g}"
            for o in result.outlook
        ]
    return "\n".join(lines)


def verdicts(result: Comparison) -> list[str]:
    """One line for each run held against the first."""
    first = _short(result.standings[0].name)
    return [f"{_short(each.name)} against {first}: {each.verdict} ({each.why})" for each in result.differences]


def _table(rows: Sequence[Sequence[str]], *, markdown: bool) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    if markdown:
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
        return [lines[0], "| " + " | ".join("---" for _ in widths) + " |", *lines[1:]]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def table_csv(result: Comparison) -> str:
    """The table of standings as CSV, numbers as they are."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    fields = list(Standing.__dataclass_fields__)
    writer.writerow([*fields, "x"])
    for standing in result.standings:
        values = [getattr(standing, name) for name in fields]
        cells = [table_cell(value) if isinstance(value, str) else value for value in (*values, result.x)]
        writer.writerow(["" if value is None else value for value in cells])
    return out.getvalue()


def document(results: Sequence[Comparison], problems: Sequence[str] = ()) -> dict[str, object]:
    """``trainmon.compare/1``. `problems`: a line for each run that could not be read."""
    return {
        "schema": "trainmon.compare/1",
        "version": version(),
        "comparisons": [
            {
                "signal": result.signal,
                "by": result.axis,
                "x": result.x,
                "runs": [
                    {name: getattr(one, name) for name in Standing.__dataclass_fields__} for one in result.standings
                ],
                "differences": [
                    {name: getattr(one, name) for name in Difference.__dataclass_fields__} for one in result.differences
                ],
                "settings": {name: list(values) for name, values in result.settings},
                "remarks": list(result.remarks),
                "outlook": [
                    {name: getattr(one, name) for name in Outlook.__dataclass_fields__} for one in result.outlook
                ],
            }
            for result in results
        ],
        "problems": list(problems),
    }
