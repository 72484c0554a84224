"""One target of preflight read: configuration files, or the directory or log of a run (then its own measures too)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from trainmon.monitor.finding import CheckResult, Verdict, worst
from trainmon.monitor.judge import judge
from trainmon.monitor.preflight.check_base import Seen
from trainmon.monitor.preflight.checks import CHECKS
from trainmon.monitor.preflight.flatten import Flat, UnreadableConfigError, flatten
from trainmon.monitor.preflight.frameworks import framework_of
from trainmon.monitor.preflight.measured import measure
from trainmon.monitor.preflight.plan import Plan, plan_of, with_defaults
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.tails.opening import NotRegular, open_regular
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.text import printable

CONFIG_SUFFIXES = frozenset((".json", ".toml", ".yaml", ".yml", ".py", ".sh", ".sbatch", ".slurm", ".bash", ".args"))
_MOST_BYTES = 4 << 20
_HEAD_BYTES = 256 << 10
_MOST_FILES = 50
_NOT_CONFIGS = (
    "trainer_state.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "special_tokens_map.json",
)


@dataclass(frozen=True, slots=True)
class Preflight:
    """What is said of one target. `read`: the files its settings came from."""

    target: str
    verdict: Verdict
    checks: tuple[CheckResult, ...]
    framework: str
    plan: Plan
    read: tuple[str, ...]
    problems: tuple[str, ...]


def look(target: str, cwd: Path, given: dict[str, float]) -> Preflight:
    """Reads `target` and makes every check. `given`: what the command line says, stronger than any file."""
    if not target.strip():
        return _nothing(target, "name a configuration, or the directory or log of a run")
    path = cwd / target
    flats: list[tuple[str, Flat]] = []
    problems: list[str] = []
    run: RunSnapshot | None = None
    if path.is_file() and path.suffix.lower() in CONFIG_SUFFIXES and path.name not in _NOT_CONFIGS:
        _take(path, target, flats, problems, most=_MOST_BYTES)
    else:
        if path.is_dir():
            for config in _configs(path):
                _take(config, str(config), flats, [], most=_MOST_BYTES)
        found = judge([target], cwd=cwd, with_scores=False)
        runs = [each for each in found.runs if each.series]
        run = runs[0] if len(runs) == 1 else None
        if len(runs) > 1:
            problems.append(f"{target}: {len(runs)} runs below it; name one to have its log looked at")
        if run is not None:
            for file in run.files[:4]:
                _take(Path(file.path), file.path, flats, [], most=_HEAD_BYTES, is_log=True)
        elif not runs and path.is_file():  # it printed its arguments and has not trained yet
            _take(path, target, flats, [], most=_HEAD_BYTES, is_log=True)
            flats = [each for each in flats if each[1]]
        if not flats and run is None:
            problems += found.problems or [f"{target}: neither a configuration nor the log of a run"]
    merged: Flat = {}
    for _, flat in flats:
        for key, value in flat.items():
            merged.setdefault(key, value)
    plan = plan_of(merged | dict(given), _facts(run))
    if run is not None:
        measure(plan, run)
    for name, number in given.items():
        plan.values[name], plan.said[name] = number, "the command line"
    framework = framework_of(merged)
    if framework is not None and plan.number("peak_lr"):
        with_defaults(plan, framework.name, framework.defaults)
    logged = None if run is None else frozenset(key.signal for key in run.series)
    checks = tuple(check(plan, Seen(logged, framework)) for check in CHECKS)
    is_known = bool(merged) or run is not None
    verdict = worst([each.verdict for each in checks]) if is_known else Verdict.NO_DATA
    if verdict is Verdict.NO_DATA and not problems:
        problems.append(f"{target}: no settings of training that could be judged")
    name = framework.name if framework else ""
    return Preflight(target, verdict, checks, name, plan, tuple(read for read, _ in flats), tuple(problems))


def _nothing(target: str, problem: str) -> Preflight:
    return Preflight(target, Verdict.NO_DATA, (), "", Plan(), (), (problem,))


def _configs(folder: Path) -> Sequence[Path]:
    """The configuration files of a directory, and of a `.hydra` in it."""
    found: list[Path] = []
    for place in (folder, folder / ".hydra"):
        try:
            found += sorted(each for each in place.iterdir() if each.suffix.lower() in CONFIG_SUFFIXES)
        except OSError:
            continue
    return [each for each in found if each.name not in _NOT_CONFIGS and each.is_file()][:_MOST_FILES]


def _take(
    path: Path, name: str, flats: list[tuple[str, Flat]], problems: list[str], *, most: int, is_log: bool = False
) -> None:
    """Adds the settings of one file, or a line that says why not."""
    try:
        with os.fdopen(open_regular(path)[0], "rb") as file:
            raw = file.read(most + 1)
    except NotRegular:
        problems.append(f"{name}: not a plain file")
        return
    except OSError as error:
        problems.append(f"{name}: {error.strerror or error}; check the name")
        return
    if len(raw) > most and not is_log:
        problems.append(f"{name}: over {most >> 20} MiB, no configuration; name a log with `trainmon check`")
        return
    try:
        text = raw[:most].decode("utf-8-sig", "replace")
        flats.append((name, flatten("x.log" if is_log else path.name, text)))
    except UnreadableConfigError as error:
        problems.append(f"{name}: {printable(str(error), 200)}")


def _facts(run: RunSnapshot | None) -> dict[str, float | str]:
    return {} if run is None else {"total_steps": run.total_steps, **run.facts} if run.total_steps else dict(run.facts)
