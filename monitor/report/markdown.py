"""A report as Markdown, with charts of characters."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trainmon import version
from trainmon.monitor.finding import Verdict
from trainmon.monitor.report.content import (
    Report,
    Story,
    Window,
    chart_title,
    done_rows,
    episode_words,
    facts_rows,
    files_lines,
    incident_words,
    limits_words,
    moment,
    settings_rows,
)
from trainmon.monitor.text_chart import Line, text_chart
from trainmon.tails.text import printable

_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~!&$@])")


def plain(text: str, limit: int = 500) -> str:
    r"""Text that no Markdown reader takes for markup: no link, no picture, no HTML, no mention.

    >>> plain("see [here](javascript:x) <b> @all https://x.y")
    'see \\[here\\](javascript:x) \\<b\\> \\@all https\\://x.y'
    >>> plain("97.9% done"), plain("1. not a list"), plain("- nor this")
    ('97.9% done', '1\\. not a list', '\\- nor this')
    """
    escaped = _MARKUP.sub(r"\\\1", printable(text, limit)).replace("://", "\\://").replace("www.", "www\\.")
    return re.sub(r"^(\s*\d*)([-+=]|(?<=\d)[.)](?=\s|$))", r"\1\\\2", escaped)


def code(lines: Iterable[str]) -> list[str]:
    """A fenced block that its content cannot end."""
    body = [printable(line, 400) for line in lines]
    longest = max((len(found) for line in body for found in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *body, fence]


def markdown(report: Report) -> str:
    """The whole report."""
    run = report.run
    lines = [f"# {plain(run.name)}: {run.verdict.value}", ""]
    if run.verdict_reason:
        lines += [plain(run.verdict_reason), ""]
    lines += [*_facts(report), "", *_actions(report), *_stories(report), *_checks(report), *_book(report)]
    lines += [*_curves(report), *_config(report), *_files(report)]
    lines += ["", f"Made by trainmon {version()} at {moment(report.made_at)}, from the logs alone.", ""]
    return "\n".join(lines)


def _facts(report: Report) -> list[str]:
    return ["| | |", "| --- | --- |", *(f"| {name} | {plain(words)} |" for name, words in facts_rows(report))]


def _actions(report: Report) -> list[str]:
    if not report.run.actions:
        return []
    numbered = [f"{number}. {plain(action)}" for number, action in enumerate(report.run.actions, 1)]
    return ["## What to do", "", *numbered, ""]


def _stories(report: Report) -> list[str]:
    if not report.stories:
        return ["## What happened", "", "No episode at or above WARN.", ""]
    lines = ["## What happened", ""]
    for story in report.stories:
        lines += _story(story)
    if report.untold:
        lines += [f"And {report.untold} more incidents, in `trainmon check --json`.", ""]
    return lines


def _story(story: Story) -> list[str]:
    incident = story.incident
    lines = [f"### {incident.severity.name}: {plain(incident.title)}", "", incident_words(incident), ""]
    lines += [f"- {plain(episode_words(each), 1000)}" for each in story.episodes]
    lines.append("")
    for drawn in story.windows:
        lines += _chart(drawn, (incident.first_step, incident.last_step))
    if story.excerpt is not None:
        where = f"{plain(story.excerpt.path)}, around line {story.excerpt.line}"
        lines += [f"The log, {where}:" if not story.excerpt.problem else f"{where}: {plain(story.excerpt.problem)}", ""]
        lines += [*code(f"{line.line_no:>7}  {line.text}" for line in story.excerpt.lines), ""]
    return lines


def _chart(drawn: Window, marked: tuple[float, ...]) -> list[str]:
    upright = [x for x in dict.fromkeys(marked) if drawn.x.size and drawn.x[0] < x < drawn.x[-1]]
    text = text_chart(
        [Line("", drawn.x, drawn.y, drawn.bad)],
        title=chart_title(drawn),
        upright=upright,
        height=12,
        clip=True,
    )
    return [*code(text.splitlines()), ""] if text else []


def _checks(report: Report) -> list[str]:
    shown = [each for each in report.run.checks if each.verdict not in (Verdict.NOT_APPLICABLE, Verdict.NO_DATA)]
    rows = [
        f"| {each.verdict.value} | {each.name} | {plain(each.what)} | {plain(limits_words(each))} |" for each in shown
    ]
    lines = ["## Checks", "", "| | check | what | thresholds |", "| --- | --- | --- | --- |", *rows, ""]
    missing = [f"{each.name} ({plain(each.what)})" for each in report.run.checks if each.verdict is Verdict.NO_DATA]
    return [*lines, f"Not checked: {'; '.join(missing)}.", ""] if missing else lines


def _book(report: Report) -> list[str]:
    lines = []
    for when, step, by, what in done_rows(report):
        head = ", ".join(part for part in (when, step, plain(by, 60)) if part)
        lines.append(f"- {head}: {plain(what, 2000)}" if head else f"- {plain(what, 2000)}")
    return ["## What was done", "", *lines, ""] if lines else []


def _curves(report: Report) -> list[str]:
    lines = ["## Curves", ""] if report.curves else []
    for drawn in report.curves:
        lines += _chart(drawn, ())
    return lines


def _config(report: Report) -> list[str]:
    rows = [f"| {plain(name)} | {plain(value)} |" for name, value in settings_rows(report)]
    return ["## Settings found in the log and beside it", "", "| | |", "| --- | --- |", *rows, ""] if rows else []


def _files(report: Report) -> list[str]:
    return ["## Files", "", *(f"- {plain(line)}" for line in files_lines(report))]
