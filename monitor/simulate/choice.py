"""What of the simulator `trainmon demo` is asked for: how many runs, of what kind, with which faults."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trainmon import version
from trainmon.monitor.simulate.faults import DEFAULT_SCRIPT, FAULTS, Fault, size_of
from trainmon.monitor.simulate.model import RunSpec

MOST_RUNS = 200
_FIRST_AT, _APART = 40, 60  # steps after going live, so that faults of one run can be told apart
_SLOW = {"plateau": 0.7}  # what takes long to be seen has begun before, this share of the history ago
_HISTORY_STEPS = 20_000  # of all runs together: more runs have shorter histories, the demo begins as soon
_FAULT = re.compile(r"(?:(?P<run>[^:@/]+)/)?(?P<name>\w+)(?::(?P<size>\d+(?:\.\d+)?))?(?:@(?P<at>\d+))?")


def choose_runs(defaults: Sequence[RunSpec], count: int | None, ranks: int | None, moe: bool) -> tuple[RunSpec, ...]:
    """`count` runs made from the defaults (only the mixtures of experts with `moe`), of `ranks` ranks each.

    >>> from trainmon.monitor.simulate.simulation import DEFAULT_RUNS
    >>> [run.name for run in choose_runs(DEFAULT_RUNS, 2, 64, moe=True)]
    ['moe-8x160m', 'moe-8x160m-2']
    """
    kinds = [run for run in defaults if run.experts or not moe]
    wanted = count if count is not None else len(kinds)
    history = max(_HISTORY_STEPS // max(wanted, 1), 200)
    runs = []
    for number in range(wanted):
        kind, round_ = kinds[number % len(kinds)], number // len(kinds) + 1
        run = kind if round_ == 1 else replace(kind, name=f"{kind.name}-{round_}")
        run = replace(run, history_steps=min(run.history_steps, history))
        runs.append(run if ranks is None else replace(run, ranks=ranks))
    return tuple(runs)


def choose_faults(words: Sequence[str], runs: Sequence[RunSpec]) -> tuple[Fault, ...]:
    """Faults from ``NAME``, ``NAME:SIZE``, ``NAME@STEP`` and ``RUN/NAME``, comma-separated; ``none`` for none.

    Without words the demo's own story, as far as its runs are there. A fault that names no run strikes one that can
    show it. Raises ValueError for what is not known.
    """
    names = [run.name for run in runs]
    if not words:
        return tuple(fault for fault in DEFAULT_SCRIPT if (fault.run or "llama-350m") in names)
    chosen: list[Fault] = []
    for word in (part.strip() for text in words for part in text.split(",")):
        if word in ("", "none"):
            continue
        found = _FAULT.fullmatch(word)
        if found is None or found["name"] not in FAULTS:
            raise ValueError(f"{word!r} is no fault; there are: {', '.join(sorted(FAULTS))}")
        if found["run"] and found["run"] not in names:
            raise ValueError(f"{word!r}: no run is called {found['run']}; there are: {', '.join(names)}")
        run = found["run"] or _run_for(found["name"], runs, chosen)
        before = sum(fault.run == run for fault in chosen)
        at = int(found["at"]) if found["at"] else _first_at(found["name"], run, runs) + _APART * before
        size = float(found["size"]) if found["size"] else None
        chosen.append(Fault(found["name"], at=at, size=size, run=run))
    return tuple(chosen)


def document(folder: Path, runs: Sequence[RunSpec], faults: Sequence[Fault]) -> dict[str, object]:
    """``trainmon.demo/1``: the runs that were written, and which fault strikes which of them from which step on."""
    return {
        "schema": "trainmon.demo/1",
        "version": version(),
        "runs": [
            {
                "run": run.name,
                "folder": str(folder / run.name),
                "ranks": run.ranks,
                "faults": [
                    {"name": fault.name, "first_step": max(run.history_steps + fault.at, 0) + 1, "size": size_of(fault)}
                    for fault in faults
                    if (fault.run or runs[0].name) == run.name
                ],
            }
            for run in runs
        ],
        "problems": [],
    }


def _first_at(name: str, run: str, runs: Sequence[RunSpec]) -> int:
    history = next(each.history_steps for each in runs if each.name == run)
    return -int(_SLOW[name] * history) if name in _SLOW else _FIRST_AT


def _run_for(name: str, runs: Sequence[RunSpec], chosen: Sequence[Fault]) -> str:
    """The first run that can show the fault, of those with the fewest faults."""
    can = [run for run in runs if _shows(name, run)] or list(runs)
    return min(can, key=lambda run: sum(fault.run == run.name for fault in chosen)).name


def _shows(name: str, run: RunSpec) -> bool:
    if name == "expert_collapse":
        return run.experts > 0
    if name == "bad_source":
        return bool(run.sources)
    if name == "eval_regression":
        return run.eval_every < run.total_steps
    return True
