"""Every fault of the doctrine in a log of a shape nobody wrote: told by its name, its steps, its level, its advice.

And told apart from its neighbours: a check that the case does not name must not be loud.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from tests.monitor.faults import changes, loss, model, system
from tests.monitor.faults.shape import Case, Told, loud, play
from trainmon.monitor.finding import Episode, Severity, Verdict
from trainmon.monitor.snapshot import RunSnapshot

CASES = tuple(chain(loss.CASES, system.CASES, model.CASES))


def find(run: RunSnapshot, told: Told) -> Episode:
    """The episode that the case names."""
    found = [
        one
        for one in run.episodes
        if (one.check, one.kind, one.signal.signal) == (told.check, told.kind, told.signal)
        and told.labels.items() <= one.signal.label_dict.items()
    ]
    assert len(found) == 1, [(one.check, one.kind, str(one.signal), one.what) for one in run.episodes]
    return found[0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_fault_is_told_and_nothing_else(case: Case, tmp_path: Path) -> None:
    run = play(case, tmp_path)
    pages = {incident.id: incident.pages for incident in run.incidents}
    for told in case.told:
        one = find(run, told)
        assert one.severity is told.severity, one.what
        assert abs(one.first_step - case.cadence * told.first) <= case.cadence * told.slack, one.first_step
        assert one.first_step <= one.worst_step <= one.last_step
        if told.worst is not None:
            assert told.worst[0] <= one.worst_step <= told.worst[1]
        assert told.recovered is None or one.recovered is told.recovered, one.what
        assert pages[one.incident] is told.pages
        for words in told.says:
            assert words in one.what
    named = {told.check for told in case.told if told.severity > Severity.INFO} | set(case.beside)
    assert {one.check for one in loud(run)} <= named, [one.what for one in loud(run) if one.check not in named]
    for check in run.checks:
        if check.verdict in (Verdict.WARN, Verdict.FAIL):
            assert check.id in named, check.what
            assert check.next
    for check_id in case.beside_must:
        assert next(check for check in run.checks if check.id == check_id).verdict is not Verdict.PASS
    for words in case.advice:
        assert any(words in action for action in run.actions), run.actions


@pytest.mark.parametrize("cadence", [1, 10])
@pytest.mark.parametrize(("make", "kind"), [c[1:] for c in changes.CHANGES], ids=[c[0] for c in changes.CHANGES])
def test_what_was_meant_is_a_note(make: changes.Change, kind: str, cadence: int, tmp_path: Path) -> None:
    run = play(Case("", make, (), head=changes.CARD, cadence=cadence), tmp_path)
    assert loud(run) == []
    if kind:
        assert any(one.kind == kind for one in run.episodes)
    assert not any(incident.pages for incident in run.incidents)
