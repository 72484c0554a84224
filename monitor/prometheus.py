"""The fleet in Prometheus' text format, for the node exporter's text-file collector: replaced in one piece.

What is not known has no sample: an absent series is not a zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2s
from pathlib import Path

from trainmon.monitor.finding import Severity, Verdict
from trainmon.monitor.signals import FIRST_SCREEN
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tails.own_files import write_output
from trainmon.tails.text import printable

INTERVAL_S = 5.0
_VERDICTS = {Verdict.PASS: 0.0, Verdict.WARN: 1.0, Verdict.FAIL: 2.0}
_SIGNALS = frozenset((*(name for names in FIRST_SCREEN for name in names), "optim.lr", "sys.mfu", "reward.mean"))
_MOST_SERIES = 64  # of one signal of one run: a label for every layer or rank would drown a server
_LONGEST = 200

Sample = tuple[dict[str, str], float]


def exposition(fleet: FleetSnapshot) -> str:
    """All samples of one moment; each metric with its help and type, series in a stable order."""
    lines: list[str] = []
    for name, help_text, samples_of in _FAMILIES:
        lines += [f"# HELP {name} {help_text}", f"# TYPE {name} gauge"]
        series: dict[str, str] = {}
        for labels, value in _all(samples_of, fleet.runs):
            # Of a file that has a series twice a server takes nothing: the first stands.
            series.setdefault(_labels(labels), _number(value))
        lines += [f"{name}{labels} {value}" for labels, value in series.items()]
    looked = "trainmon_looked_seconds"
    lines += [f"# HELP {looked} When trainmon last looked, seconds since the epoch.", f"# TYPE {looked} gauge"]
    return "\n".join([*lines, f"{looked} {_number(fleet.taken_at)}"]) + "\n"


def write(fleet: FleetSnapshot, path: Path) -> None:
    """Replaces the file in one piece. Raises OSError, for a pipe too: nobody need ever read it, and a watch waits for
    no one."""
    if path.is_fifo():
        raise OSError("a pipe, which may have no reader; name a plain file")
    write_output(path, exposition(fleet).encode())


def _all(samples_of: Callable[[RunSnapshot], Iterable[Sample]], runs: Iterable[RunSnapshot]) -> Iterator[Sample]:
    for run in runs:
        for labels, value in samples_of(run):
            yield {"run": run.name, **labels}, value


def _verdict(run: RunSnapshot) -> list[Sample]:
    return [({}, _VERDICTS[run.verdict])] if run.verdict in _VERDICTS else []


def _checks(run: RunSnapshot) -> list[Sample]:
    return [({"check": check.id}, _VERDICTS[check.verdict]) for check in run.checks if check.verdict in _VERDICTS]


def _state(run: RunSnapshot) -> list[Sample]:
    return [({"state": run.state.value}, 1.0)]


def _steps(run: RunSnapshot) -> list[Sample]:
    return [] if run.last_step is None else [({}, run.last_step)]


def _totals(run: RunSnapshot) -> list[Sample]:
    return [] if run.total_steps is None else [({}, run.total_steps)]


def _ages(run: RunSnapshot) -> list[Sample]:
    return [] if run.age_s is None else [({}, run.age_s)]


def _open_episodes(run: RunSnapshot) -> list[Sample]:
    if run.verdict not in _VERDICTS:
        return []
    still = [episode.severity for episode in run.episodes if not episode.recovered]
    return [({"severity": each.name}, float(still.count(each))) for each in (Severity.WARN, Severity.FAIL)]


def _signals(run: RunSnapshot) -> Iterator[Sample]:
    told: dict[str, int] = {}
    for key, view in sorted(run.series.items(), key=lambda item: str(item[0])):
        if key.signal not in _SIGNALS or not view.count:
            continue
        told[key.signal] = told.get(key.signal, 0) + 1
        if told[key.signal] <= _MOST_SERIES:
            yield {"signal": key.signal, **_names(key.labels)}, view.last


def _names(labels: Iterable[tuple[str, str]]) -> dict[str, str]:
    """A log's labels under names that Prometheus takes, each name once.

    >>> _names((("a b", "1"), ("a-b", "2")))
    {'of_a_b': '1', 'of_a_b_2': '2'}
    """
    named: dict[str, str] = {}
    for name, value in labels:
        whole = "of_" + ("".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name) or "_")
        number = next(n for n in range(1, len(named) + 2) if (whole if n == 1 else f"{whole}_{n}") not in named)
        named[whole if number == 1 else f"{whole}_{number}"] = str(value)
    return named


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_value(value)}"' for name, value in labels.items()) + "}"


def _value(text: str) -> str:
    if len(text) > _LONGEST:  # what begins alike stays apart
        text = f"{text[:_LONGEST]}… {blake2s(text.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}"
    return printable(text, 2 * _LONGEST).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    """As Prometheus writes numbers.

    >>> _number(float("nan")), _number(float("-inf")), _number(3.0), _number(0.1)
    ('NaN', '-Inf', '3', '0.1')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


_FAMILIES: tuple[tuple[str, str, Callable[[RunSnapshot], Iterable[Sample]]], ...] = (
    ("trainmon_verdict", "Verdict of the run: 0 PASS, 1 WARN, 2 FAIL; absent while nothing can be judged.", _verdict),
    ("trainmon_check_verdict", "Verdict of one check: 0 PASS, 1 WARN, 2 FAIL.", _checks),
    ("trainmon_run_state", "1 for the state that the job is in.", _state),
    ("trainmon_step", "Newest step in the log.", _steps),
    ("trainmon_step_total", "Planned steps.", _totals),
    ("trainmon_data_age_seconds", "Age of the newest data.", _ages),
    ("trainmon_open_episodes", "Faults that have not recovered, by severity.", _open_episodes),
    ("trainmon_signal", "Newest value of a first-screen signal, in the unit of docs/signals.md.", _signals),
)
