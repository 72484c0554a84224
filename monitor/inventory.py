"""Which of the 39 rows a run's log carries, which can be derived, which are missing, and how to get them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from trainmon import version
from trainmon.monitor import logging_cost
from trainmon.monitor.folded_names import told
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.logging_cost import DEFAULT_SHARE
from trainmon.monitor.per_card import is_per_card
from trainmon.monitor.signals import BY_ID, SIGNALS, Signal
from trainmon.monitor.snapshot import RunSnapshot
from trainmon.monitor.stats.middle import median
from trainmon.monitor.step_unit import counted
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.text import printable

Status = Literal["present", "derivable", "missing", "not applicable"]
# What follows from others and has no value until something happens: of a run without a co-spike there is none to draw.
_FROM: Final = {"spike.co_count": ("loss.train", "grad.norm")}
_RATES: Final = frozenset(("sys.tokens_per_second", "sys.samples_per_second"))
_MOST_KEYS: Final = 12  # of one row, and of those without one, that people are told; --json has them all
_MOST_UNMAPPED: Final = 60
_ORDER = {"missing": 0, "derivable": 1, "present": 2, "not applicable": 3}


@dataclass(frozen=True, slots=True)
class Row:
    """One row: `keys` are the log's own names, `rule` the derivation (D1-D17) where it is not logged as such.

    `per_card`: the rate that is logged is one card's, not the whole run's. `derived`: how it is worked out here, ""
    where it is logged or only could be worked out. `counted`: what `cadence_steps` counts, as `counted_in` has it.
    """

    row: int
    signal: str
    title: str
    status: Status
    keys: tuple[str, ...]
    rule: str | None
    cadence_steps: float | None
    priority: str
    to_get_it: str
    per_card: bool = False
    derived: str = ""
    counted: str = "steps"


def counted_in(run: RunSnapshot) -> str:
    """What the steps of `run` count: steps, the tokens or samples so far, epochs, or its records, which have none."""
    if run.step_key == "line":
        return "records"
    words = "epochs" if (run.step_key or "").rpartition("/")[2].lower() == "epoch" else ""
    return words or counted(run.facts)


def every(row: Row) -> str:
    """How often the row is logged; "" where that is not known.

    >>> from dataclasses import replace
    >>> row = Row(1, "loss.train", "loss", "present", ("loss",), None, 1.0, "P0", "", counted="records")
    >>> every(row), every(replace(row, cadence_steps=12800.0, counted="samples"))
    ('every record', 'every 12,800 samples')
    """
    if not row.cadence_steps:
        return ""
    if row.cadence_steps == 1:
        return f"every {row.counted.removesuffix('s')}"
    shown = f"{row.cadence_steps:,.0f}" if row.cadence_steps.is_integer() else f"{row.cadence_steps:g}"
    return f"every {shown} {row.counted}"


def rows(run: RunSnapshot) -> tuple[Row, ...]:
    """The rows of `run`, P0 gaps first, then by priority and row number."""
    found = [_row(signal, run) for signal in SIGNALS if signal.row]
    return tuple(sorted(found, key=lambda row: (row.priority, _ORDER[row.status], row.row)))


def unmapped(run: RunSnapshot) -> tuple[str, ...]:
    """Keys of the log that are no signal: charted under their own names."""
    return tuple(sorted(key.signal for key in run.series if key.signal not in BY_ID))


def documents(
    runs: Sequence[RunSnapshot], share: float = DEFAULT_SHARE, problems: Sequence[str] = ()
) -> dict[str, object]:
    """``trainmon.inventory/1``: the first run's rows at the top, and each run's under ``runs``.

    `share`: of the time that logging may take, for the intervals under ``logging``; `problems`: a line for each target
    or run that could not be read.
    """
    each = [document(run, share) for run in runs]
    top = each[0] if each else {"rows": [], "unmapped": []}
    return {"schema": "trainmon.inventory/1", "version": version(), **top, "runs": each, "problems": list(problems)}


def document(run: RunSnapshot, share: float = DEFAULT_SHARE) -> dict[str, object]:
    """The inventory of one run."""
    return {
        "run": run.name,
        "target": run.target,
        "rows": [
            {
                "row": row.row,
                "signal": row.signal,
                "status": row.status,
                "keys": list(row.keys),
                "rule": row.rule,
                "cadence_steps": row.cadence_steps,
                "priority": row.priority,
                "to_get_it": row.to_get_it,
                "per_card": row.per_card,
                "derived": row.derived,
            }
            for row in rows(run)
        ],
        "unmapped": list(unmapped(run)),
        "logging": logging_cost.document(logging_cost.logging_cost(run, share)),
        "facts": dict(run.facts),
        "problems": list(run.problems),
    }


def _row(signal: Signal, run: RunSnapshot) -> Row:
    series = [view for key, view in run.series.items() if key.signal == signal.id and view.count]
    logged = [view for view in series if not view.derived]
    status: Status = "missing"
    rule: str | None = None
    if logged:
        status = "present"
    elif series:
        status, rule = "derivable", signal.rule or series[0].derived or None
    elif signal.id in _FROM and all(SignalKey(needed) in run.series for needed in _FROM[signal.id]):
        status, rule = "derivable", signal.rule or None
    elif signal.condition and not _applies(signal, run):
        status = "not applicable"
    keys = tuple(dict.fromkeys(view.raw_key for view in logged if view.raw_key))
    cadence = cadence_steps(series[0].steps) if series else None
    return Row(
        signal.row, signal.id, signal.title, status, keys, rule, cadence, signal.priority,
        "" if status == "present" else signal.to_get_it,
        signal.id in _RATES and any(is_per_card(key, run.facts) for key in keys),
        next((view.derived for view in series), "") if not logged else "",
        counted_in(run),
    )  # fmt: skip


def _applies(signal: Signal, run: RunSnapshot) -> bool:
    """Whether a conditional row means anything for this run: experts, modalities, sources, ranks."""
    groups = {key.signal.partition(".")[0] for key in run.series}
    if signal.condition == "moe":
        return "moe" in groups or bool(run.facts.get("num_experts"))
    if signal.condition == "modality":
        return "modality" in groups or any(key.signal == "loss.modality" for key in run.series)
    if signal.condition == "ranks":
        world = run.facts.get("world_size")
        return world is None or (isinstance(world, (int, float)) and world > 1)
    if signal.condition == "residual_gates":
        return any(key.signal == "residual.gate_saturation" for key in run.series)
    return True


def cadence_steps(steps: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float | None:
    """The usual distance between logged values, in steps: the median of the rises; None with fewer than two.

    >>> cadence_steps(np.array([10.0, 20.0, 30.0, 5.0, 15.0]))
    10.0
    """
    rises = np.diff(steps[-5000:])
    rises = rises[rises > 0]
    return median(rises) if len(rises) else None


def text(run: RunSnapshot, share: float = DEFAULT_SHARE, *, quiet: bool = False) -> str:
    """The inventory for people. `quiet`: only what is missing."""
    lines = [f"Inventory: {printable(run.name)}"]
    for row in rows(run):
        if quiet and row.status != "missing":
            continue
        source = printable(told(row.keys, _MOST_KEYS), 300) if row.keys else (_by_rule(row) or row.to_get_it)
        source += " (of one card)" if row.per_card else ""
        lines.append(f"  {row.priority} {row.status:<14} {row.row:>2} {row.signal:<28} {source} {every(row)}".rstrip())
    if quiet:
        return "\n".join(lines)
    lines += [printable(f"Note: {problem}", 600) for problem in run.problems]
    names = unmapped(run)
    if names:
        lines.append(f"Not mapped to a row ({len(names)}): {printable(told(names, _MOST_UNMAPPED))}")
    lines += [printable(line, 400) for line in logging_cost.lines(logging_cost.logging_cost(run, share))]
    return "\n".join(lines)


def _by_rule(row: Row) -> str:
    """How it is worked out, in words where it is; the rule's number where it could be; "" for neither."""
    return printable(row.derived, 300) or (f"by rule {row.rule}" if row.rule else "")


def key_of(text_key: str) -> SignalKey:
    """``loss.source{source=code}`` as a key. Raises ValueError when it is not one.

    >>> key_of("loss.source{source=code}")
    SignalKey(signal='loss.source', labels=(('source', 'code'),))
    """
    name, brace, labels = text_key.partition("{")
    if not brace:
        return SignalKey(text_key)
    if not labels.endswith("}"):
        raise ValueError(f"{text_key!r}: labels need a closing brace, as in loss.source{{source=code}}")
    pairs = [part.partition("=") for part in labels[:-1].split(",") if part]
    return SignalKey(name, tuple(sorted((label.strip(), value.strip()) for label, _, value in pairs)))
