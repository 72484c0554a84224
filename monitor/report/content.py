"""``trainmon report``: one run as a report of one file, for an incident or a hand-over. What it says is here; how it
looks as Markdown, HTML or JSON is in report_markdown, report_html and `document`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from trainmon import version
from trainmon.monitor import unreadable
from trainmon.monitor.amount import amount, named
from trainmon.monitor.document import run_document
from trainmon.monitor.finding import CheckResult, Episode, Incident, Severity
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.job.judging import duration
from trainmon.monitor.job.lines import job_lines
from trainmon.monitor.logbook import Remark, entry
from trainmon.monitor.signals import FIRST_SCREEN
from trainmon.monitor.snapshot import RunSnapshot, SeriesView
from trainmon.tails.clock import SystemClock
from trainmon.tails.history import History
from trainmon.tails.logpane import LineIndex, read_lines
from trainmon.tails.own_files import write_output
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import FloatArray
from trainmon.tails.status import LogLine

_MOST_STORIES = 20
_MOST_CHARTS = 9
_AROUND = (20, 100)  # logged values shown on either side of an episode: twice its length, within these
_PIECE_BYTES = 64 << 20
_LINES = 12  # of the log, on either side of where an episode begins
FORMS = ("md", "html", "json")
_SCALES = {"B": (2.0**30, "GiB"), "B/s": (2.0**20, "MiB/s"), "FLOP/s": (1e12, "TFLOP/s"), "FLOP": (1e18, "EFLOP")}


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Raw lines of the log around where an episode begins; `problem` where they could not be read."""

    path: str
    line: int
    lines: tuple[LogLine, ...]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of one series to draw. `x` and `y` are (n,), in step order, of the newest attempt at each step; `bad`
    (m,) are the steps at which NaN, Inf or null was logged."""

    key: SignalKey
    unit: str
    x: FloatArray
    y: FloatArray
    bad: FloatArray


@dataclass(frozen=True, slots=True)
class Story:
    """One incident: its episodes, loudest first, their curves around it, and the log's own words."""

    incident: Incident
    episodes: tuple[Episode, ...]
    windows: tuple[Window, ...]
    excerpt: Excerpt | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report shows. `made_at` in UTC seconds; `stories` worst first, `untold` how many more there are.
    `seen_by`: by episode id, who of the team acknowledged it and when, in UTC seconds."""

    run: RunSnapshot
    made_at: float
    stories: tuple[Story, ...]
    untold: int
    curves: tuple[Window, ...]
    remarks: tuple[Remark, ...]
    problems: tuple[str, ...] = ()
    seen_by: Mapping[str, tuple[str, float]] = field(default_factory=dict)


def build(
    run: RunSnapshot,
    *,
    made_at: float,
    remarks: Sequence[Remark] = (),
    problems: Iterable[str] = (),
    seen_by: Mapping[str, tuple[str, float]] | None = None,
    with_log: bool = False,
) -> Report:
    """The report of `run`. `seen_by`: by episode id, who acknowledged it and when. `with_log`: read the
    lines around each story from the files (they may hold data samples)."""
    by_id = {episode.id: episode for episode in run.episodes}
    loud = [each for each in run.incidents if each.severity >= Severity.WARN or not each.recovered]
    loud.sort(key=lambda each: (-each.severity, each.recovered, each.first_step))
    stories = [_story(run, incident, by_id) for incident in loud[:_MOST_STORIES]]
    if with_log:
        stories = [replace(story, excerpt=_excerpt(story.episodes)) for story in stories]
    return Report(
        run,
        made_at,
        tuple(stories),
        max(len(loud) - _MOST_STORIES, 0),
        tuple(_curves(run)),
        tuple(remarks),
        tuple(problems),
        seen_by or {},
    )


def _story(run: RunSnapshot, incident: Incident, by_id: dict[str, Episode]) -> Story:
    episodes = [by_id[each] for each in incident.episodes if each in by_id]
    episodes.sort(key=lambda each: (-each.severity, each.first_step))
    first, last = incident.first_step, incident.last_step
    keys = dict.fromkeys([*(each.signal for each in episodes), SignalKey("loss.train")])
    views = [run.series[key] for key in keys if key in run.series][:3]
    attempt = max((each.attempt for each in episodes), default=None)
    return Story(incident, tuple(episodes), tuple(_around(view, first, last, attempt) for view in views))


def _around(view: SeriesView, first: float, last: float, attempt: int | None) -> Window:
    whole = window(view, attempt)
    begin, end = int(np.searchsorted(whole.x, first, "left")), int(np.searchsorted(whole.x, last, "right"))
    around = min(max(2 * (end - begin), _AROUND[0]), _AROUND[1])
    begin, end = max(begin - around, 0), end + around
    shown = whole.x[begin:end]
    inside = (
        (whole.bad >= shown[0]) & (whole.bad <= max(shown[-1], last)) if shown.size else np.zeros(whole.bad.size, bool)
    )
    return replace(whole, x=shown, y=whole.y[begin:end], bad=whole.bad[inside])


def window(view: SeriesView, upto: int | None = None) -> Window:
    """The whole of a series: of steps that were trained twice, the newer attempt's value. With `upto`, what that
    attempt saw: a fault that was trained over again is still in the picture."""
    seen = view.attempts <= upto if upto is not None else np.ones(view.steps.size, bool)
    steps, values, attempts = view.steps[seen], view.values[seen], view.attempts[seen]
    order = np.lexsort((attempts, steps))
    steps, values = steps[order], values[order]
    newest = np.append(steps[1:] != steps[:-1], True) if steps.size else np.zeros(0, bool)
    divisor, unit = _SCALES.get(view.unit, (1.0, view.unit))
    return Window(view.key, unit, steps[newest], values[newest] / divisor, np.sort(view.bad_steps))


def chart_title(drawn: Window) -> str:
    """What a chart shows, and in which unit, unless the name says that already.

    >>> none = np.empty(0)
    >>> chart_title(Window(SignalKey("optim.lr"), "", none, none, none))
    'learning rate'
    >>> chart_title(Window(SignalKey("sys.tokens_per_second"), "tokens/s", none, none, none))
    'tokens/s'
    >>> chart_title(Window(SignalKey("sys.step_time"), "s", none, none, none))
    'step time (s)'
    """
    name = named(drawn.key)
    says_it = not drawn.unit or drawn.unit in name.split() or drawn.unit.lower() == name.lower() or drawn.unit == "1"
    return name if says_it else f"{name} ({drawn.unit})"


def _curves(run: RunSnapshot) -> Iterable[Window]:
    """The first screen's rows that the log carries, the learning rate and the held-out loss."""
    wanted = [*(name for names in FIRST_SCREEN for name in names), "optim.lr", "eval.nll"]
    shown = 0
    for name in dict.fromkeys(wanted):
        view = run.series.get(SignalKey(name))
        if view is not None and np.isfinite(view.values).any() and shown < _MOST_CHARTS:
            shown += 1
            yield window(view)


def _excerpt(episodes: Sequence[Episode]) -> Excerpt | None:
    at = next((each for each in episodes if each.path and each.line > 0), None)
    if at is None:
        return None
    # Line numbers run on through the rotated parts of a log (log.1, log.2.gz), so these are found first.
    log = History(at.path, SystemClock())
    while log.poll(_PIECE_BYTES).more:
        pass
    lines = tuple(read_lines(at.path, LineIndex(), at.line, _LINES, log.blocks))
    log.release()
    return Excerpt(at.path, at.line, lines, "" if lines else "these lines cannot be read any more")


def document(report: Report) -> dict[str, object]:
    """``trainmon.report/1``: the run's entry of ``trainmon.check/1`` and what only a report holds."""
    return {
        "schema": "trainmon.report/1",
        "version": version(),
        "made_at": report.made_at,
        "run": run_document(report.run),
        "facts": dict(report.run.facts),
        "stories": [
            {
                "incident": story.incident.id,
                "title": story.incident.title,
                "episodes": [each.id for each in story.episodes],
                "excerpt": None if story.excerpt is None else [line.text for line in story.excerpt.lines],
            }
            for story in report.stories
        ],
        "notes": [entry(remark) for remark in report.remarks],
        "acknowledged": [each.id for each in report.run.episodes if each.acknowledged],
        "acknowledged_by": [
            {"episode": episode, "by": by, "time": at} for episode, (by, at) in sorted(report.seen_by.items())
        ],
        "problems": list(report.problems),
    }


def render(report: Report, form: str) -> str:
    """The report as ``md``, ``html`` or ``json``. Raises ValueError for another form."""
    if form == "md":
        from trainmon.monitor.report.markdown import markdown

        return markdown(report)
    if form == "html":
        from trainmon.monitor.report.html_page import html

        return html(report)
    if form == "json":
        from trainmon.monitor.document import dumps

        return dumps(document(report)) + "\n"
    raise ValueError(f"{form!r} is none of {', '.join(FORMS)}")


def write(report: Report, path: Path) -> None:
    """Writes the report in the form that the file's name asks for (.md, .html, .json). Raises OSError, ValueError."""
    write_output(path, render(report, form_of(path)).encode())


def form_of(path: Path) -> str:
    """The form by a file's name. Raises ValueError.

    >>> form_of(Path("incident.HTML")), form_of(Path("a.markdown"))
    ('html', 'md')
    """
    known = {".md": "md", ".markdown": "md", ".html": "html", ".htm": "html", ".json": "json"}
    form = known.get(path.suffix.lower())
    if form is None:
        raise ValueError(f"{path}: end the name in .md, .html or .json, or choose with --md, --html or --json")
    return form


def facts_rows(report: Report) -> list[tuple[str, str]]:
    """The head of the report: name and words, not yet escaped for any form."""
    run = report.run
    rows = [("state", f"{run.state.value}: {run.state_reason}"), ("age of the newest data", duration(run.age_s))]
    if run.last_step is not None:
        total = f" of {run.total_steps:.15g}" if run.total_steps is not None else ""
        rows.append(("steps", f"{run.first_step:.15g} to {run.last_step:.15g}{total}, {run.step_count} logged"))
    if len(run.attempts) > 1:
        rows.append(("attempts", ", ".join(f"{first:.15g}-{last:.15g}" for first, last in run.attempts[-8:])))
    rows += job_lines(run)
    if run.root_error and not run.outlived_error:
        rows.append(("root error", run.root_error))
    if run.outlived_error:
        rows.append(("outlived error", run.outlived_error))
    return [*rows, ("thresholds", run.thresholds_source)]


def settings_rows(report: Report) -> list[tuple[str, str]]:
    """The facts that were found in the log and beside it, by name."""
    rows = sorted(report.run.facts.items())
    return [(name, f"{value:.15g}" if isinstance(value, (int, float)) else value) for name, value in rows]


def files_lines(report: Report) -> list[str]:
    """One line a file, then what was the matter, each once."""
    lines = []
    for file in report.run.files:
        where = unreadable.told(report.run, file.path, has_lines=file.lines > 0)
        lines.append(f"{file.path}: {file.format or 'unknown'}, {file.counted}{'; ' * bool(where)}{where}")
    problems = dict.fromkeys((*report.problems, *report.run.problems, *(each.problem for each in report.run.files)))
    return lines + [problem for problem in problems if problem]


def episode_words(episode: Episode) -> str:
    """One episode: of which signal, what, the worst value, where in the log, and whether somebody has seen it."""
    is_known = episode.worst_value == episode.worst_value
    worst = f"; worst {amount(episode.signal.signal, episode.worst_value)}" if is_known else ""
    where = f" ({episode.path}, line {episode.line})" if episode.line else ""
    return f"{named(episode.signal)}: {episode.what}{worst}{where}{'; acknowledged' if episode.acknowledged else ''}"


def done_rows(report: Report) -> list[tuple[str, str, str, str]]:
    """What people did: when, at which step, who, and what; acknowledgements whose time is not known come last."""
    rows = [
        (each.time, f"step {each.step:.15g}" if each.step is not None else "", each.by, each.text)
        for each in report.remarks
    ]
    for each in report.run.episodes:
        if each.acknowledged:
            by, at = report.seen_by.get(each.id, ("", math.inf))
            rows.append((at, f"step {each.first_step:.15g}", by, f"acknowledged: {each.what}"))
    rows.sort(key=lambda row: row[0])
    return [(moment(at) if math.isfinite(at) else "", step, by, what) for at, step, by, what in rows]


def incident_words(incident: Incident) -> str:
    """Where an incident lies and whether it is over."""
    span = f"step {incident.first_step:.15g}"
    if incident.last_step != incident.first_step:
        span = f"steps {incident.first_step:.15g} to {incident.last_step:.15g}"
    return f"{span}, {'recovered' if incident.recovered else 'not recovered'}"


def limits_words(check: CheckResult) -> str:
    """The thresholds that a check used and where they came from."""
    limits = [f"{name} {value:.15g}" for name, value in check.thresholds.items() if isinstance(value, (int, float))]
    source = check.thresholds.get("source")
    return ", ".join(limits) + (f" ({source})" if source and limits else "")


def moment(time: float | None) -> str:
    """A wall-clock time for a report.

    >>> moment(1767225600.0), moment(None), moment(1e40)
    ('2026-01-01 00:00 UTC', 'unknown', 'unknown')
    """
    if time is None or not math.isfinite(time):
        return "unknown"
    try:
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, OSError, ValueError):
        return "unknown"
