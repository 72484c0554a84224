"""Where a job writes: the patterns of ``sbatch --output`` with what they stand for filled in."""

from __future__ import annotations

import os
import re

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass

_PART = lazy(r"%%|%(\d{0,9})([A-Za-z])")
_HOSTS = lazy(r"([^,\[]+)(?:\[([^\]]*)\])?")
_WIDEST = 10


@dataclass(frozen=True, slots=True)
class Names:
    """What the letters of a pattern stand for. `array` and `task`: an array's id and this task's number."""

    job_id: str
    job_name: str = ""
    user: str = ""
    array: str = ""
    task: str = ""
    node: str = ""


def expand(pattern: str, names: Names) -> str:
    r"""The path that a batch script's output goes to.

    ``%j`` job, ``%A`` array's job, ``%a`` task of the array, ``%x`` name, ``%u`` user, ``%N`` the first node's short
    name, ``%J`` job and step (a script's is the job's), ``%s`` step, ``%t`` and ``%n`` rank and node, 0 of a script,
    ``%b`` task of the array modulo 10; a number between fills with zeros, ``%%`` is a percent sign, and with a
    backslash anywhere nothing is filled in (sbatch(1), "filename pattern"). What is not known stays as it is written.

    >>> expand("logs/%x-%A_%5a.out", Names("17", "pre train", array="12", task="3"))
    'logs/pre train-12_00003.out'
    >>> expand("%N.%J.%t-100%%", Names("17", node="gpu01.cluster")), expand(r"a\%j-%j", Names("17"))
    ('gpu01.17.0-100%', 'a%j-%j')
    >>> expand("%N-%j.out", Names("17"))
    '%N-17.out'
    """
    if "\\" in pattern:
        return re.sub(r"\\(.)", r"\1", pattern)
    return _PART.sub(lambda found: _value(found, names), pattern)


def _value(found: re.Match[str], names: Names) -> str:
    whole, width, letter = found.group(), found.group(1), found.group(2)
    if whole == "%%":
        return "%"
    values = {
        "j": names.job_id,
        "J": names.job_id,
        "A": names.array or names.job_id,
        "a": names.task or "4294967294",  # what Slurm writes for a job of no array
        "b": str(int(names.task) % 10) if names.task.isdigit() else "",
        "x": names.job_name,
        "u": names.user,
        "N": names.node.partition(".")[0],
        "n": "0",
        "t": "0",
        "s": "batch",
    }
    value = values.get(letter, "")
    if not value:
        return whole
    return value.zfill(min(int(width), _WIDEST)) if width and letter in "jJAanbt" else value


def first_node(nodes: str) -> str:
    """The first host of a node list; "" of an empty one.

    >>> first_node("gpu[003-010,12],cpu1"), first_node("vm"), first_node("")
    ('gpu003', 'vm', '')
    """
    found = _HOSTS.match(nodes)
    if not found:
        return ""
    numbers = re.match(r"\d+", found.group(2) or "")
    return found.group(1) + (numbers.group() if numbers else "")


def output_path(pattern: str, work_dir: str, names: Names) -> str:
    """The absolute path of a job's output, the default one where no pattern was given; "" where it goes nowhere.

    >>> output_path("", "/w", Names("17", array="12", task="3")), output_path("o-%j", "/w", Names("17"))
    ('/w/slurm-12_3.out', '/w/o-17')
    >>> output_path("/dev/null", "/w", Names("17")), output_path("", "", Names("17"))
    ('', '')
    """
    if not pattern:
        if not work_dir:
            return ""
        pattern = "slurm-%A_%a.out" if names.task else "slurm-%j.out"
    elif names.task and pattern == os.path.join(work_dir, f"slurm-{names.job_id}.out"):
        # squeue's text form fills the default name of an array's task in wrongly.
        pattern = "slurm-%A_%a.out"
    path = expand(pattern, names)
    if not path.startswith("/"):
        path = f"{work_dir.rstrip('/')}/{path}" if work_dir else path
    return "" if path == "/dev/null" else path
