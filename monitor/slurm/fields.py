"""What stands in a field of Slurm's answers: times, spans, exit codes, counts of GPUs, states."""

from __future__ import annotations

import re
from calendar import timegm
from typing import Final

from trainmon.tails.lazy_pattern import lazy

_TIME = lazy(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)", re.ASCII)
_SPAN = lazy(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9})(?:\.\d+)?", re.ASCII)
_CODES = lazy(r"(\d{1,9}):(\d{1,9})", re.ASCII)
_DEPENDENCY = lazy(r"(?:^|\s)(?:-d ?|--dep[a-z]*[= ])((?:after\w*:[\d:_+(),?\w]+|singleton)\S*)", re.ASCII)
_GPUS = lazy(r"gres/gpu(:[^=,]*)?=(\d{1,9})(?!\d)", re.ASCII)
_LONGEST_LINE: Final = 10_000
# Options of sbatch that stand alone; all others have a value behind them.
_SHORT_FLAGS: Final = "HhkOQsVvW"
_FLAGS: Final = frozenset(
    (
        "--contiguous", "--disable-stdout-job-summary", "--exclusive", "--get-user-env", "--hold", "--ignore-pbs",
        "--nice", "--no-kill", "--no-requeue", "--overcommit", "--oversubscribe", "--parsable", "--propagate",
        "--quiet", "--reboot", "--requeue", "--share", "--spread-job", "--test-only", "--usage", "--use-min-nodes",
        "--verbose", "--version", "--wait", "--help",
    )
)  # fmt: skip
NOTHING: Final = frozenset(("", "(null)", "N/A", "None", "Unknown", "None assigned", "Invalid", "NOT_SET"))

# States that end a job, and words that say what a job in another state is doing.
ENDED: Final = frozenset(
    (
        "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "DEADLINE", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL",
        "OUT_OF_MEMORY", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL", "GONE",
    )
)  # fmt: skip
_SHORT: Final = {
    "PD": "PENDING", "R": "RUNNING", "CD": "COMPLETED", "CG": "COMPLETING", "F": "FAILED", "CA": "CANCELLED",
    "TO": "TIMEOUT", "DL": "DEADLINE", "PR": "PREEMPTED", "NF": "NODE_FAIL", "BF": "BOOT_FAIL", "OOM": "OUT_OF_MEMORY",
    "CF": "CONFIGURING", "RQ": "REQUEUED", "RH": "REQUEUE_HOLD", "RF": "REQUEUE_FED", "SE": "SPECIAL_EXIT",
    "SO": "STAGE_OUT", "S": "SUSPENDED", "ST": "STOPPED", "SI": "SIGNALING", "RV": "REVOKED", "RS": "RESIZING",
    "RD": "RESV_DEL_HOLD",
}  # fmt: skip


def word(text: str) -> str:
    """`text` without the words that Slurm has for "nothing".

    >>> word("(null)"), word(" vm ")
    ('', 'vm')
    """
    text = text.strip()
    return "" if text in NOTHING else text


def dependency(submit_line: str) -> str:
    """What a job was told to wait for by the words that submitted it: squeue forgets it once that has come.

    >>> dependency("sbatch -J a --dependency=afterok:5,afterany:6:7 job.sh"), dependency("sbatch job.sh -d 3")
    ('afterok:5,afterany:6:7', '')
    """
    found = _DEPENDENCY.search(submit_line[:_LONGEST_LINE])
    return found[1] if found else ""


def outputs(submit_line: str) -> tuple[str, str]:
    """(stdout, stderr) patterns by the words that submitted a job, "" where they name none; the script may do so too.

    What stands behind the script's name are words of its own.

    >>> outputs("sbatch -J a -o logs/%j.out --error=%j.err --hold job.sh -o mine"), outputs("sbatch -W job.sh -e x")
    (('logs/%j.out', '%j.err'), ('', ''))
    """
    told = {"o": "", "e": ""}
    words = iter(submit_line[:_LONGEST_LINE].split()[1:])
    for word_ in words:
        long, mark, value = word_.partition("=")
        if not word_.startswith("-"):
            break
        if word_.startswith("--"):
            key = {"--output": "o", "--error": "e"}.get(long, "")
            value = value if mark or long in _FLAGS else next(words, "")
        else:
            key, value = word_[1:2], word_[2:]
            value = value if value or key in _SHORT_FLAGS else next(words, "")
        if key in told:
            told[key] = value
    return told["o"], told["e"]


def state_word(text: str) -> str:
    """The long word of a state; what stands behind it is cut ("CANCELLED by 1000", "CANCELLED+").

    >>> state_word("CANCELLED by 1000"), state_word("R"), state_word("OUT_OF_ME+")
    ('CANCELLED', 'RUNNING', 'OUT_OF_MEMORY')
    """
    first = text.split()[0].upper() if text.split() else ""
    if first.endswith("+"):
        stem = first[:-1]
        return next((full for full in _SHORT.values() if stem and full.startswith(stem)), stem)
    return _SHORT.get(first, first)


def moment(text: str) -> float | None:
    """Seconds since the epoch of a UTC time as Slurm writes it; None where it is not known.

    >>> moment("1970-01-02T00:00:01"), moment("Unknown"), moment("1795977482")
    (86401.0, None, 1795977482.0)
    """
    text = text.strip()
    found = _TIME.fullmatch(text)
    if found:
        year, month, day, hour, minute, second = map(int, found.groups())
        return float(timegm((year, month, day, hour, minute, second))) if 1 <= month <= 12 and 1 <= day <= 31 else None
    return float(text) if text.isascii() and text.isdigit() and 0 < len(text) <= 11 and int(text) else None


def span_s(text: str) -> float | None:
    """Seconds of a span such as ``1-02:03:04``; None where there is none or no limit.

    >>> span_s("1-02:03:04"), span_s("01:30"), span_s("UNLIMITED")
    (93784.0, 90.0, None)
    """
    found = _SPAN.fullmatch(text.strip())
    if not found:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(days * 86400 + hours * 3600 + minutes * 60 + seconds)


def exit_codes(text: str) -> tuple[int | None, int | None]:
    """(exit code, signal) of ``3:0`` or of a wait status.

    >>> exit_codes("3:0"), exit_codes("768"), exit_codes("15"), exit_codes("0:9"), exit_codes("")
    ((3, None), (3, None), (0, 15), (0, 9), (None, None))
    """
    found = _CODES.fullmatch(text.strip())
    if found:
        code, signal = map(int, found.groups())
        return code, signal or None
    if not text.strip().isdigit() or len(text.strip()) > 9:
        return None, None
    return wait_status(int(text))


def wait_status(status: int) -> tuple[int, int | None]:
    """(exit code, signal) of what wait(2) gives."""
    return status >> 8 & 0xFF, (status & 0x7F) or None


def gpus(tres: str) -> float | None:
    """How many GPUs a list of trackable resources holds; a count by type is part of the count of all.

    >>> gpus("cpu=8,gres/gpu=8,gres/gpu:a100=8"), gpus("gres/gpu:a=2,gres/gpu:b=2"), gpus("cpu=8")
    (8.0, 4.0, None)
    """
    found = _GPUS.findall(tres)
    whole = [int(count) for kind, count in found if not kind]
    if whole:
        return float(whole[0])
    return float(sum(int(count) for _, count in found)) if found else None
