"""The trainmon.toml that a calibration writes: thresholds, and where each of them comes from."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path

from trainmon import version
from trainmon.monitor.calibrate.learning import Calibration
from trainmon.monitor.thresholds import DEFAULTS
from trainmon.tails.target import TargetKind, parse
from trainmon.tails.text import printable

SCHEMA = 1
_HERE = (TargetKind.PATH, TargetKind.DIR, TargetKind.GLOB)
_RATE = re.compile(r"(?P<alarms>\d+(?:\.\d+)?) */ *(?P<steps>\d[\d_,]*(?:e\d{1,2})?) *(?P<k>[kM]?) *(?:steps?)?")
_FACTOR = {"": 1.0, "k": 1e3, "M": 1e6}


def parse_rate(text: str) -> float:
    """Alarms a step from a budget such as ``1/100000steps``. Raises ValueError.

    >>> parse_rate("1/100000steps"), parse_rate("2 / 100k steps"), parse_rate("1/1e6")
    (1e-05, 2e-05, 1e-06)
    """
    found = _RATE.fullmatch(text.strip())
    if found is None:
        raise ValueError("write the budget as ALARMS/STEPS, such as 1/100000steps")
    steps = float(found["steps"].replace("_", "").replace(",", "")) * _FACTOR[found["k"]]
    rate = float(found["alarms"]) / steps if steps else 0.0
    if not 0 < rate <= 0.01:
        raise ValueError("the budget must be above 0 and at most 1/100steps")
    return rate


def beside(targets: Sequence[str], cwd: Path) -> Path:
    """``trainmon.toml`` in the deepest directory that holds all of the runs, and their configurations with them.

    `targets` may be globs, of which the part before the first wildcard counts. In `cwd` where one lies elsewhere.

    >>> str(beside(["/usr/a/log.jsonl", "/usr/b*/**"], Path("/etc")))
    '/usr/trainmon.toml'
    """
    folders = []
    for target in targets:
        if parse(target, cwd).kind not in _HERE:
            return Path("trainmon.toml")
        parts = list(takewhile(lambda part: not set(part) & set("*?["), Path(cwd, target).parts))
        whole = Path(*parts)
        folders.append(whole if whole.is_dir() else whole.parent)
    shared = Path(os.path.commonpath(folders))
    return (shared.relative_to(cwd) if shared.is_relative_to(cwd) else shared) / "trainmon.toml"


def content(calibration: Calibration, wall_s: float) -> str:
    """The file's text. `wall_s`: now, seconds since the epoch."""
    return "\n".join(_lines(calibration, wall_s)) + "\n"


def _lines(found: Calibration, wall_s: float) -> Iterator[str]:
    alarms = sum(found.alarms.values())
    yield "# Thresholds of trainmon, learned from healthy runs by `trainmon calibrate`. Runs whose logs lie in this"
    yield "# directory or below inherit them; flags of the command line go before. Edit or delete freely."
    yield ""
    yield f"schema = {SCHEMA}"
    yield ""
    yield "[calibration]"
    yield f"date = {datetime.fromtimestamp(wall_s, UTC).strftime('%Y-%m-%dT%H:%M:%SZ')}"
    yield f"trainmon = {_quoted(version())}"
    yield f"false_alarms = {_quoted(rate_text(found.rate))}"
    yield f"steps = {round(found.steps)}"
    yield f"logged_steps = {sum(run.logged for run in found.runs)}"
    yield f"alarms = {alarms}  # warnings of these runs with the thresholds below"
    bound = found.bound_per_100k
    yield (
        f"bound_per_100k = {bound:.3g}  # 95% upper bound that the steps bear out"
        + ("; what lies below it is drawn out from the tail" if bound > 1e5 * found.rate else "")
    )
    for run in found.runs:
        yield ""
        yield "[[calibration.runs]]"
        yield f"name = {_quoted(run.name)}"
        yield f"files = [{', '.join(_quoted(path) for path in run.files[:20])}]"
        yield f"steps = {round(run.steps)}"
        yield f"logged_steps = {run.logged}"
        for remark in run.remarks:
            yield f"# {_comment(remark)}"
    yield ""
    yield "[thresholds]"
    yield f"# window: {_comment(found.window_how)}"
    if found.window != DEFAULTS["window"]:
        yield f'"window" = {found.window}  # default {DEFAULTS["window"]:.15g}'
    for one in found.learned:
        yield f"# {one.family}: {_comment(one.fit.how)}"
        for name, value in one.values.items():
            yield f"{_quoted(name)} = {_number(value)}  # default {DEFAULTS[name]:.15g}"
    if not found.learned:
        yield "# no alarm at any of the cut-offs that were tried: the defaults stay"


def rate_text(rate: float) -> str:
    """The budget in words that `parse_rate` reads.

    >>> rate_text(1e-5), rate_text(3e-4)
    ('1/100000steps', '3/10000steps')
    """
    steps = 10.0 ** math.ceil(-math.log10(rate) - 1e-9)
    return f"{rate * steps:.3g}/{steps:.0f}steps"


def summary(found: Calibration, output: str) -> str:
    """What the command prints."""
    lines = []
    for run in found.runs:
        lines.append(f"learned from  {printable(run.name, 80)}: {run.steps:,.0f} steps, {run.logged:,} logged")
        lines += [f"              {printable(remark, 200)}" for remark in run.remarks]
    for refusal in found.refused:
        lines.append(f"refused       {printable(refusal.name, 80)}: {printable(refusal.why, 400)}")
    asked = rate_text(found.rate).replace("steps", " steps")
    lines += ["", f"budget        {asked} for all checks together", ""]
    values = found.values
    width = max((len(name) for name in values), default=0)
    for name, value in values.items():
        lines.append(f"{name:{width}s}  {value:<8.6g} (default {DEFAULTS[name]:.15g})")
    kept = [one.family for one in found.learned if not one.values]
    if not values:
        lines.append("every default stays: these runs give no reason for another cut-off")
    elif kept:
        lines.append(f"defaults stay for: {', '.join(kept)}")
    alarms = sum(found.alarms.values())
    told = f" ({', '.join(f'{check} {count}' for check, count in sorted(found.alarms.items()))})" if alarms else ""
    bound = found.bound_per_100k
    lines += [
        "",
        f"With them, these runs give {alarms} warning{'s' if alarms != 1 else ''}{told} in {found.steps:,.0f} steps.",
    ]
    if bound > 1e5 * found.rate:
        need = math.ceil(3 / found.rate)
        lines.append(
            f"That bears out at most {bound:.3g} per 100,000 steps (95%); the rest of the way to {asked} is drawn out"
            f" from the tail. {need:,} healthy steps would show it."
        )
    lines.append(f"Written to {printable(output, 200)}; logs in its directory and below are judged by it.")
    return "\n".join(lines)


def document(found: Calibration, output: str) -> dict[str, object]:
    """``trainmon.calibrate/1``: what was learned, from what, and how far the runs bear it out."""
    return {
        "schema": "trainmon.calibrate/1",
        "version": version(),
        "output": output,
        "false_alarms": rate_text(found.rate),
        "steps": found.steps,
        "alarms": dict(found.alarms),
        "bound_per_100k": found.bound_per_100k,
        "window": found.window,
        "thresholds": dict(found.values),
        "runs": [
            {
                "run": run.name,
                "files": list(run.files),
                "steps": run.steps,
                "logged_steps": run.logged,
                "remarks": list(run.remarks),
            }
            for run in found.runs
        ],
        "refused": [{"run": each.name, "check": each.check, "why": each.why} for each in found.refused],
        "problems": list(found.problems),
    }


def _number(value: float) -> str:
    return f"{value:.6g}" if not float(value).is_integer() else f"{value:.1f}"


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's. What cannot be printed or encoded is replaced."""
    return json.dumps(_comment(text), ensure_ascii=False)


def _comment(text: str) -> str:
    return printable(text, 300).encode("utf-8", "replace").decode("utf-8")
