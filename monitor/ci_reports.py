"""The judgement for continuous integration: SARIF 2.1.0 and JUnit XML."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from trainmon import version
from trainmon.monitor.finding import CheckResult, Episode, Severity, Verdict
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.text import printable

_LEVEL = {Verdict.FAIL: "error", Verdict.WARN: "warning"}
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
_LONG = 2000


def sarif(runs: Sequence[RunSnapshot], problems: Sequence[str], cwd: Path) -> dict[str, object]:
    """One SARIF log: a rule a check, a result an episode of at least WARN (or a check that has none)."""
    results = [result for run in runs for result in _results(run, cwd)]
    checks = {check.id: check for run in runs for check in run.checks}
    notices = [{"level": "warning", "message": {"text": printable(text, _LONG)}} for text in problems]
    for run in runs:
        if run.verdict is Verdict.NO_DATA:
            text = printable(f"{run.name}: not judged: {run.verdict_reason}", _LONG)
            notices.append({"level": "warning", "message": {"text": text}})
    return {
        "$schema": _SARIF,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "trainmon",
                        "version": version(),
                        "rules": [
                            {"id": check.id, "shortDescription": {"text": check.name}}
                            for check in sorted(checks.values(), key=lambda check: check.id)
                        ],
                    }
                },
                "invocations": [{"executionSuccessful": not notices, "toolExecutionNotifications": notices}],
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }


def _results(run: RunSnapshot, cwd: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for check in run.checks:
        if check.verdict not in _LEVEL:
            continue
        mine = [each for each in run.episodes if each.check == check.id and each.severity >= Severity.WARN]
        found += [_of_episode(run, check, each, cwd) for each in mine] or [_of_check(run, check, cwd)]
    return found


def _of_episode(run: RunSnapshot, check: CheckResult, episode: Episode, cwd: Path) -> dict[str, object]:
    # An episode is never louder than its check: what recovered, or was left behind, is a warning.
    is_error = episode.severity is Severity.FAIL and check.verdict is Verdict.FAIL and not episode.recovered
    text = f"{run.name}: {check.name}: {episode.what}" + (f". {check.next}" if check.next else "")
    return {
        "ruleId": check.id,
        "level": "error" if is_error else "warning",
        "message": {"text": printable(text, _LONG)},
        "locations": [_location(episode.path or _first_path(run), episode.line, cwd)],
        "partialFingerprints": {"episode/v1": f"{printable(run.name, 200)}:{episode.id}"},
        "properties": {"firstStep": episode.first_step, "lastStep": episode.last_step, "recovered": episode.recovered},
    }


def _of_check(run: RunSnapshot, check: CheckResult, cwd: Path) -> dict[str, object]:
    text = f"{run.name}: {check.name}: {check.what}" + (f". {check.next}" if check.next else "")
    return {
        "ruleId": check.id,
        "level": _LEVEL[check.verdict],
        "message": {"text": printable(text, _LONG)},
        "locations": [_location(_first_path(run), 0, cwd)],
        "partialFingerprints": {"check/v1": f"{printable(run.name, 200)}:{check.id}"},
    }


def _first_path(run: RunSnapshot) -> str:
    return run.files[0].path if run.files else run.target


def _location(path: str, line: int, cwd: Path) -> dict[str, object]:
    place = os.path.relpath(cwd / path, cwd) if (cwd / path).is_relative_to(cwd) else path
    uri = quote(os.fsencode(place)) if not place.startswith("/") else "file://" + quote(os.fsencode(place))
    physical: dict[str, object] = {"artifactLocation": {"uri": uri}}
    if line > 0:
        physical["region"] = {"startLine": line}
    return {"physicalLocation": physical}


def junit(runs: Sequence[RunSnapshot], problems: Sequence[str], *, strict: bool) -> str:
    """JUnit XML: a suite a run, a case a check. FAIL (and WARN, `strict`) is a failure, NO DATA is skipped, and what
    could not be judged is an error."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<testsuites name="trainmon">']
    for run in runs:
        lines += _suite(run, strict)
    if problems:
        lines.append(f'  <testsuite name="targets" tests="{len(problems)}" errors="{len(problems)}">')
        for number, problem in enumerate(problems, 1):
            lines += [f'    <testcase classname="targets" name="target {number}">']
            lines += [f"      <error message={_attribute(problem)}/>", "    </testcase>"]
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"])


def _suite(run: RunSnapshot, strict: bool) -> list[str]:
    bad = (Verdict.FAIL, Verdict.WARN) if strict else (Verdict.FAIL,)
    cases = [check for check in run.checks if check.verdict is not Verdict.NOT_APPLICABLE]
    failures = sum(check.verdict in bad for check in cases)
    skipped = sum(check.verdict is Verdict.NO_DATA for check in cases)
    is_judged = run.verdict is not Verdict.NO_DATA
    counts = f'tests="{len(cases) + (not is_judged)}" failures="{failures}" errors="{int(not is_judged)}"'
    lines = [f'  <testsuite name={_attribute(run.name)} {counts} skipped="{skipped}">']
    for check in cases:
        head = f"    <testcase classname={_attribute(check.id)} name={_attribute(check.name)}"
        inside = _inside(check, bad)
        lines += [f"{head}>", *inside, "    </testcase>"] if inside else [f"{head}/>"]
    if not is_judged:
        lines += ['    <testcase classname="run" name="can be judged">']
        lines += [f"      <error message={_attribute(run.verdict_reason)}/>", "    </testcase>"]
    return [*lines, "  </testsuite>"]


def _inside(check: CheckResult, bad: tuple[Verdict, ...]) -> list[str]:
    told = "\n".join(part for part in (check.what, check.why, check.next) if part)
    if check.verdict in bad:
        word = check.verdict.value
        return [f'      <failure type="{word}" message={_attribute(check.what)}>{_text(told)}</failure>']
    if check.verdict is Verdict.NO_DATA:
        return [f"      <skipped message={_attribute(check.what)}/>"]
    return [f"      <system-out>{_text(f'{check.verdict.value}: {told}')}</system-out>"]


def _attribute(text: str) -> str:
    return quoteattr(printable(text, _LONG))


def _text(text: str) -> str:
    return escape("\n".join(printable(line, _LONG) for line in text.splitlines()))
