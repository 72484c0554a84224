"""Documents for scripts: valid JSON whatever the values, with the shapes that CLI.md fixes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from trainmon import version
from trainmon.monitor.finding import CheckResult, Episode, Severity, Verdict
from trainmon.monitor.job.lines import job_document
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.text import UNPRINTABLE


def dumps(document: object) -> str:
    """One line of JSON; non-finite numbers as the strings "nan", "inf", "-inf".

    >>> dumps({"loss": float("inf"), "step": 3.0})
    '{"loss": "inf", "step": 3}'
    """
    text = json.dumps(plain(document), ensure_ascii=False, allow_nan=False)
    # What a terminal would obey or a reader not see; within JSON these only stand inside strings.
    return UNPRINTABLE.sub(lambda found: _escaped(found.group()), text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def plain(value: object) -> object:
    """`value` with only what JSON has: whole floats as integers, non-finite ones as strings."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {str(plain(str(name))): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value)


def check_document(runs: Sequence[RunSnapshot], exit_status: int, problems: Sequence[str] = ()) -> dict[str, object]:
    """``trainmon.check/1``."""
    every = [check for run in runs for check in run.checks]
    return {
        "schema": "trainmon.check/1",
        "version": version(),
        "exit": exit_status,
        "critical": sum(check.verdict is Verdict.FAIL for check in every),
        "warnings": sum(check.verdict is Verdict.WARN for check in every),
        "problems": list(problems),
        "runs": [run_document(run) for run in runs],
    }


def run_document(run: RunSnapshot) -> dict[str, object]:
    """One entry of ``runs``."""
    return {
        "run": run.name,
        "target": run.target,
        "verdict": run.verdict.value,
        "reason": run.verdict_reason,
        "state": run.state.value,
        "state_reason": run.state_reason,
        "age_s": run.age_s,
        "root_error": run.root_error,
        "outlived_error": run.outlived_error,
        **job_document(run),
        "files": [
            {
                "path": file.path,
                "format": file.format,
                "lines": file.lines,
                "records": file.records,
                "unreadable": file.unreadable,
                "problem": file.problem or None,
            }
            for file in run.files
        ],
        "steps": {
            "first": run.first_step,
            "last": run.last_step,
            "count": run.step_count,
            "total": run.total_steps,
            "key": run.step_key or None,
        },
        "attempts": [{"first": first, "last": last} for first, last in run.attempts],
        "checks": [check_entry(check) for check in run.checks],
        "episodes": [episode_entry(episode) for episode in run.episodes],
        "incidents": [
            {
                "id": incident.id,
                "title": incident.title,
                "severity": incident.severity.name,
                "first_step": incident.first_step,
                "last_step": incident.last_step,
                "recovered": incident.recovered,
                "pages": incident.pages,
                "cause": incident.cause or None,
                "worst_step": incident.worst_step,
                "episodes": list(incident.episodes),
            }
            for incident in run.incidents
        ],
        "not_checked": [{"id": name, "reason": reason} for name, reason in run.not_checked],
        "actions": list(run.actions),
        "thresholds": run.thresholds_source,
        "problems": list(run.problems),
    }


def check_entry(check: CheckResult) -> dict[str, object]:
    """One check: names of thresholds lose the detector's own prefix."""
    thresholds = {name.rpartition(".")[2] if "." in name else name: value for name, value in check.thresholds.items()}
    if len(thresholds) < len(check.thresholds):
        thresholds = dict(check.thresholds)
    return {
        "id": check.id,
        "name": check.name,
        "verdict": check.verdict.value,
        "advisory": check.advisory,
        "what": check.what,
        "why": check.why,
        "next": check.next,
        "thresholds": thresholds,
    }


def episode_entry(episode: Episode) -> dict[str, object]:
    """One episode."""
    return {
        "id": episode.id,
        "incident": episode.incident,
        "check": episode.check,
        "attempt": episode.attempt,
        "origin": episode.origin,
        "first_time": episode.first_time,
        "path": episode.path,
        "line": episode.line,
        "kind": episode.kind,
        "signal": episode.signal.signal,
        "labels": episode.signal.label_dict,
        "severity": Severity(episode.severity).name,
        "first_step": episode.first_step,
        "worst_step": episode.worst_step,
        "last_step": episode.last_step,
        "worst_value": episode.worst_value,
        "recovered": episode.recovered,
        "what": episode.what,
    }
