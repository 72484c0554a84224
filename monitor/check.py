"""The stability report: what ``trainmon check`` computes, prints and exits with."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from trainmon.monitor import unreadable
from trainmon.monitor.amount import amount, named
from trainmon.monitor.detectors.registry import DETECTORS
from trainmon.monitor.finding import CheckResult, Episode, Severity, Verdict
from trainmon.monitor.job.judging import ENDED, duration
from trainmon.monitor.job.lines import job_lines
from trainmon.monitor.signals import BY_ID
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.thresholds import short_names
from trainmon.tails.text import printable

FIRST_FIVE = ("loss.spike", "grad.norm", "lr.schedule", "batch.ratio", "loss.plateau")
_LATER: Final = "; it will be read when it appears"
_TOLD_ABOVE = ("job.state", "job.risk")
_WIDTH = 100
_NAME = 64
_EPISODES = 5


def exit_status(runs: Sequence[RunSnapshot], *, strict: bool, named_unjudged: bool = False) -> int:
    """CLI.md: 1 with a FAIL (or a WARN, `strict`), 2 when nothing was judged or a named target could not be."""
    verdicts = [run.verdict for run in runs]
    warned = any(check.verdict is Verdict.WARN for run in runs for check in run.checks)
    if Verdict.FAIL in verdicts:
        return 1
    if named_unjudged or not any(verdict in (Verdict.PASS, Verdict.WARN) for verdict in verdicts):
        return 2
    return 1 if strict and (warned or Verdict.WARN in verdicts) else 0


def is_worth_a_report(run: RunSnapshot) -> bool:
    """Whether there is anything to report: a number, an event, or a state that is known."""
    return run.job is not None or bool(run.series or run.root_error or run.notes) or run.state in ENDED


def of_one_look(problem: str, run: RunSnapshot | None = None) -> str:
    """The words of a problem for a command that looks once: what is "read when it appears" holds while watching.

    `run`: whose file it is; where a job writes it, nobody spelled its path.
    """
    if run is None or run.job is None:
        return problem.replace(_LATER, "; check the spelling")
    if run.state in ENDED:
        return problem.replace(f" yet{_LATER}", ": its job has ended, and it was removed or never written")
    return problem.replace(_LATER, ": its job has not begun to write")


def told_once(run: RunSnapshot) -> RunSnapshot:
    """`run` with the problems of its files in the words of a command that looks once.

    That a job wrote nothing to its standard error is none.
    """
    words: dict[str, str] = {}
    for file in run.files:
        is_quiet = not file.size_bytes and any(file.path.endswith(job.stderr or "\0") for job in run.job_chain)
        of_nothing = is_quiet and ": empty; " in file.problem
        words[file.problem] = "" if of_nothing else of_one_look(file.problem, run)
    files = tuple(replace(file, problem=words[file.problem]) for file in run.files)
    problems = (words.get(problem, of_one_look(problem, run)) for problem in run.problems)
    return replace(run, files=files, problems=tuple(filter(None, problems)))


def why_nothing(run: RunSnapshot) -> str:
    """One line for a run that holds nothing to judge: which files, and what is the matter."""
    problems = [file.problem for file in run.files if file.problem]
    if not problems:
        names = ", ".join(file.path for file in run.files[:3]) or run.name
        is_empty = not sum(file.size_bytes for file in run.files)
        nothing = "no training metrics found; docs/formats.md says what is read"
        why = "empty; nothing was logged yet" if is_empty else nothing
        problems = [f"{names}: {why}"]
    return of_one_look("; ".join(dict.fromkeys((*problems, *run.problems))))


def report(run: RunSnapshot, *, quiet: bool = False) -> str:
    """The report of one run, for people. With `quiet` only its title line and what is wrong."""
    lines = [_title(run)]
    if not quiet:
        lines += ["=" * min(_WIDTH, len(lines[0])), *_header(run), ""]
    order = {name: place for place, name in enumerate(FIRST_FIVE)}
    checks = sorted(run.checks, key=lambda check: order.get(check.id, len(order)))
    shown = [check for check in checks if check.verdict is not Verdict.NOT_APPLICABLE]
    first = [check for check in shown if check.id in order]
    rest = [check for check in shown if check.id not in order and check.verdict is not Verdict.NO_DATA]
    # What the header says already is not said again.
    rest = [check for check in rest if check.id not in _TOLD_ABOVE or check.verdict is not Verdict.PASS]
    for check in first + rest:
        if not quiet or check.verdict in (Verdict.FAIL, Verdict.WARN):
            lines += _check(check, run.episodes, has_steps=run.last_step is not None)
    if quiet:
        untold = run.verdict is Verdict.NO_DATA and run.verdict_reason
        return "\n".join(lines + (_wrap(printable(run.verdict_reason, 400), "       ", "       ") if untold else []))
    lines += _not_checked(run, order)
    critical = sum(check.verdict is Verdict.FAIL for check in checks)
    warnings = sum(check.verdict is Verdict.WARN for check in checks)
    lines += ["", f"CRITICAL ISSUES: {critical}", f"WARNINGS: {warnings}"]
    if run.actions:
        lines += ["", "Recommended Actions:"]
        for number, action in enumerate(run.actions, 1):
            lines += _wrap(f"{number}. {action}", "  ", "     ")
    return "\n".join(lines)


def _title(run: RunSnapshot) -> str:
    return f"Training Stability Report: {printable(run.name, _NAME)}  [{run.verdict.value}]"


def _header(run: RunSnapshot) -> list[str]:
    lines = []
    if run.verdict_reason:
        lines += _wrap(f"verdict    {run.verdict.value}: {printable(run.verdict_reason, 400)}", "", " " * 11)
    if run.last_step is not None:
        total = f" of {run.total_steps:.15g}" if run.total_steps is not None else ""
        key = f" (key: {printable(run.step_key, 60)})" if run.step_key else " (no step in the log: records are counted)"
        lines.append(f"steps      {run.first_step:.15g} to {run.last_step:.15g}{total}, {run.step_count} logged{key}")
    if len(run.attempts) > 1:
        spans = ", ".join(f"{first:.15g}-{last:.15g}" for first, last in run.attempts[-8:])
        more = f"{len(run.attempts) - 8} earlier, " if len(run.attempts) > 8 else ""
        lines.append(f"attempts   {len(run.attempts)}: {more}{spans}")
    is_told = run.age_s is None or f" {duration(run.age_s)}" in run.state_reason
    age = "" if is_told else f"; newest data {duration(run.age_s)} old"
    # Where the state is the verdict its reason stands two lines above.
    why = "" if run.state_reason in run.verdict_reason else f": {printable(run.state_reason, 400)}"
    lines += _wrap(f"state      {run.state.value}{why}{age}", "", " " * 11)
    for heading, words in job_lines(run):
        lines += _wrap(f"{heading:<10} {printable(words, 600)}", "", " " * 11)
    if run.root_error and not run.outlived_error:
        lines += _wrap(f"root error {printable(run.root_error, 400)}", "", " " * 11)
    if run.outlived_error:
        lines += _wrap(f"outlived   {printable(run.outlived_error, 400)} (not what ended the run)", "", " " * 11)
    for file in run.files:
        lines.append(f"file       {printable(file.path, 200)} ({file.format or 'unknown'}: {file.counted})")
        if where := unreadable.told(run, file.path, has_lines=file.lines > 0):
            lines.append(f"           {where}")
        if file.problem:
            lines.append(f"           {printable(file.problem, 300)}")
    lines.append(f"thresholds {run.thresholds_source}")
    told = {file.problem for file in run.files}
    lines += [f"problem    {printable(problem, 300)}" for problem in run.problems if problem not in told]
    return lines


def _check(check: CheckResult, episodes: Sequence[Episode], *, has_steps: bool) -> list[str]:
    lines = _wrap(f"[{check.verdict.value}] {check.name}: {printable(check.what, 500)}", "", "       ")
    if check.verdict in (Verdict.FAIL, Verdict.WARN):
        if check.why:
            lines += _wrap(printable(check.why, 600), "       ", "       ")
        mine = [episode for episode in episodes if episode.check == check.id and episode.severity >= Severity.WARN]
        mine.sort(key=lambda episode: (episode.recovered, -episode.severity, episode.first_step))
        for episode in mine[:_EPISODES]:
            lines += _wrap(f"- {_episode(episode, alone=len(mine) == 1, has_steps=has_steps)}", "       ", "         ")
        if len(mine) > _EPISODES:
            lines.append(f"       - and {len(mine) - _EPISODES} more (--json lists all)")
        lines += _limits(check)
    return lines


def _limits(check: CheckResult) -> list[str]:
    """The cut-offs by the names that --json gives them."""
    limits = {name: value for name, value in check.thresholds.items() if name != "source"}
    if not limits:
        return []
    short = short_names(limits)
    text = ", ".join(
        f"{short[name]} {value:.15g}" if isinstance(value, float) else f"{short[name]} {printable(str(value), 60)}"
        for name, value in limits.items()
    )
    return _wrap(f"limits: {text} ({check.thresholds.get('source', 'default')})", "       ", "         ")


def _episode(episode: Episode, *, alone: bool, has_steps: bool) -> str:
    """Where and how far. An episode that is `alone` was named above."""
    span = f"step {episode.first_step:.15g}" if has_steps else "before the first step"
    if episode.last_step != episode.first_step:
        span = f"steps {episode.first_step:.15g} to {episode.last_step:.15g}"
    value = ""
    if not math.isnan(episode.worst_value):
        value = f", worst {amount(episode.signal.signal, episode.worst_value)}"
        if episode.worst_step != episode.first_step:
            value += f" at step {episode.worst_step:.15g}"
    where = f", line {episode.line}" if episode.line else ""
    state = str(episode.detail.get("ended", "recovered" if episode.recovered else "not recovered"))
    if alone:
        return printable(f"{span}{value}{where}", 300)
    return printable(f"{named(episode.signal)}: {span}{value}{where}; {state}", 300)


def _not_checked(run: RunSnapshot, first: dict[str, int]) -> list[str]:
    """One line for all checks that miss the same thing, and one a group for those of rows that page nobody (P1)."""
    missing: dict[str, list[str]] = {}
    second: dict[str, list[str]] = {}
    firsts = {detector.id: detector.signals[0] for detector in DETECTORS}
    for check in run.checks:
        if check.verdict is Verdict.NO_DATA and check.id not in first and check.id != "job.state":
            signal = BY_ID.get(firsts.get(check.id, ""))
            if signal is not None and signal.priority != "P0" and check.what.startswith("no "):
                second.setdefault(signal.group, []).append(check.name)
            else:
                missing.setdefault(printable(check.what, 200), []).append(check.name)
    if not missing and not second:
        return []
    lines = ["", "Not checked (NO DATA):"]
    for what, names in missing.items():
        lines += _wrap(f"{', '.join(names)}: {what}", "  ", "    ")
    if second:
        lines.append("  for a second look (`trainmon inventory` says what to log):")
    for group, names in second.items():
        lines += _wrap(f"{group}: {', '.join(names)}", "    ", "      ")
    return lines


def _wrap(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False) or [first]
