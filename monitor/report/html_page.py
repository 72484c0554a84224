"""A report as one HTML file: charts inline as SVG, no script, nothing fetched; every word from a log escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from trainmon import version
from trainmon.monitor.finding import Episode, Severity, Verdict
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
from trainmon.monitor.report.svg_chart import STYLE, Band, svg_chart
from trainmon.tails.record import NoteKind
from trainmon.tails.text import printable

_STYLE = f"""body{{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;
background:#fff}} @media (prefers-color-scheme:dark){{body{{color:#e6e6e6;background:#161616}}}}
h1{{font-size:1.5rem}} h2{{margin-top:2rem;font-size:1.2rem}} h3{{font-size:1rem}} svg{{display:block;max-width:100%;
height:auto;margin:.5rem 0}} table{{border-collapse:collapse}} td,th{{padding:.2rem .8rem .2rem 0;text-align:left;
vertical-align:top;border-bottom:1px solid #8884}} pre{{overflow-x:auto;background:#8882;padding:.6rem;font-size:12px}}
.v{{font-weight:700;padding:0 .5rem;border:2px solid currentColor;border-radius:.3rem}} .FAIL{{color:#b33c00}}
.WARN{{color:#8a6100}} .PASS{{color:#00704f}} @media (prefers-color-scheme:dark){{.FAIL{{color:#ff8a50}}
.WARN{{color:#ffc43d}} .PASS{{color:#4fd1a5}}}} footer{{margin:2rem 0;opacity:.7}}
{STYLE}"""
_TICKS = {NoteKind.CHECKPOINT_SAVED: "checkpoint", NoteKind.RESUMED: "resumed"}


def text(words: str, limit: int = 500) -> str:
    """Words of a log as text of a page."""
    return escape(printable(words, limit), quote=True)


def html(report: Report) -> str:
    """The whole page."""
    run = report.run
    title = f"{printable(run.name, 200)}: {run.verdict.value}"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{text(run.name)} {_mark(run.verdict)}</h1>",
        f"<p>{text(run.verdict_reason)}</p>" if run.verdict_reason else "",
        _table((name, text(words)) for name, words in facts_rows(report)),
        _actions(report),
        _stories(report),
        _checks(report),
        _book(report),
        _curves(report),
        _config(report),
        _files(report),
        f"<footer>Made by trainmon {escape(version())} at {moment(report.made_at)}, from the logs alone.</footer>",
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _mark(verdict: Verdict) -> str:
    return f'<span class="v {verdict.value.split()[0]}">{verdict.value}</span>'


def _table(rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """A table of cells that are HTML already."""
    top = "<tr>" + "".join(f"<th>{cell}</th>" for cell in head) + "</tr>" if head else ""
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{top}{body}</table>" if body else ""


def _actions(report: Report) -> str:
    items = "".join(f"<li>{text(action)}</li>" for action in report.run.actions)
    return f"<h2>What to do</h2><ol>{items}</ol>" if items else ""


def _stories(report: Report) -> str:
    if not report.stories:
        return "<h2>What happened</h2><p>No episode at or above WARN.</p>"
    more = f"<p>And {report.untold} more incidents, in <code>trainmon check --json</code>.</p>" if report.untold else ""
    return "<h2>What happened</h2>" + "".join(_story(report, story) for story in report.stories) + more


def _story(report: Report, story: Story) -> str:
    incident = story.incident
    word = "FAIL" if incident.severity is Severity.FAIL else "WARN" if incident.severity is Severity.WARN else "INFO"
    items = "".join(f"<li>{text(episode_words(each), 1000)}</li>" for each in story.episodes)
    charts = "".join(_chart(report, drawn, story.episodes) for drawn in story.windows)
    excerpt = ""
    if story.excerpt is not None:
        lines = "\n".join(f"{line.line_no:>7}  {text(line.text, 400)}" for line in story.excerpt.lines)
        problem = f": {text(story.excerpt.problem)}" if story.excerpt.problem else ""
        excerpt = f"<p>{text(story.excerpt.path)}, around line {story.excerpt.line}{problem}</p><pre>{lines}</pre>"
    head = f'<h3><span class="v {word}">{word}</span> {text(incident.title)}</h3><p>{incident_words(incident)}</p>'
    return f"{head}<ul>{items}</ul>{charts}{excerpt}"


def _chart(report: Report, drawn: Window, episodes: Sequence[Episode]) -> str:
    bands = [
        Band(each.first_step, each.last_step, each.what, each.severity is Severity.FAIL)
        for each in episodes
        if each.severity >= Severity.WARN
    ]
    ticks = [
        (note.step, _TICKS[note.kind]) for note in report.run.notes if note.kind in _TICKS and note.step is not None
    ]
    ticks += [(each.step, each.text) for each in report.remarks if each.step is not None]
    return svg_chart(drawn.x, drawn.y, title=chart_title(drawn), bad=drawn.bad, bands=bands, ticks=ticks)


def _checks(report: Report) -> str:
    rows = [
        (_mark(each.verdict), escape(each.name), text(each.what), text(limits_words(each)))
        for each in report.run.checks
        if each.verdict not in (Verdict.NOT_APPLICABLE, Verdict.NO_DATA)
    ]
    missing = [f"{each.name} ({each.what})" for each in report.run.checks if each.verdict is Verdict.NO_DATA]
    rest = f"<p>Not checked: {text('; '.join(missing), 4000)}.</p>" if missing else ""
    return "<h2>Checks</h2>" + _table(rows, ("", "check", "what", "thresholds")) + rest


def _book(report: Report) -> str:
    rows = [(when, step, text(by, 60), text(what, 2000)) for when, step, by, what in done_rows(report)]
    return f"<h2>What was done</h2>{_table(rows)}" if rows else ""


def _curves(report: Report) -> str:
    charts = "".join(_chart(report, drawn, report.run.episodes) for drawn in report.curves)
    return f"<h2>Curves</h2>{charts}" if charts else ""


def _config(report: Report) -> str:
    rows = [(text(name), text(value)) for name, value in settings_rows(report)]
    return f"<h2>Settings found in the log and beside it</h2>{_table(rows)}" if rows else ""


def _files(report: Report) -> str:
    return "<h2>Files</h2><ul>" + "".join(f"<li>{text(line)}</li>" for line in files_lines(report)) + "</ul>"
