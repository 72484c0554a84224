"""Python tracebacks whole: from ``Traceback (most recent call last):`` to the line that names the exception.

Several ranks may write theirs at once, each line behind its rank; chained exceptions belong together.
"""

from __future__ import annotations

import re
from dataclasses import field

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass

_START = lazy(
    r"(?P<before>.*?)Traceback \(most recent call last\)(?::\s*$| ─+╮\s*$)"
    r"|\s{0,8}[A-Za-z_][\w.]{0,80}\s{2,}Traceback \(most recent call last\)\s*$"  # a notebook's: the name, and blanks
)
# ray.exceptions.RayTaskError(ValueError): ray::Worker.step() (pid=1, ip=...): the frames and the exception follow.
_REMOTE = lazy(r"(?:\S{1,80}\s+)?ray\.exceptions\.\w+(?:\(\w+\))?: .{0,20}ray::")
_CHAIN = lazy(
    r"\s*(?:During handling of the above exception|The above exception was the direct cause of the following)"
)
_EXCEPTION = lazy(r"\s*(?:\|\s*)?(?P<name>[A-Za-z_][\w.]*)(?::(?:\s|$)|\s*$)")
_KNOWN = lazy(
    r"(?:[A-Za-z_]\w*\.)*_{0,2}[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Failed|Timeout|Iteration|Group)?"
)
_GROUP = lazy(r"[\s|]*(?:[\w.]+\.)?(?:Base)?ExceptionGroup\b")
_IGNORED = lazy(r"Exception ignored (?:in|while)")
_MAX_LINES = 600
_SLACK_LINES = 12  # lines of others between two of one traceback


@dataclass(slots=True)
class Trace:
    """One traceback. `line_no`, `offset` are of its first line; `exceptions` are the lines that name them, in order."""

    line_no: int
    offset: int
    rank: str
    exceptions: list[str] = field(default_factory=list)
    is_ignored: bool = False
    is_group: bool = False
    lines: int = 0
    idle: int = 0
    frames: int = 0
    is_chained: bool = False
    is_done: bool = False

    @property
    def cause(self) -> str:
        """The exception that began it: of a chain, the first; of a group, the first that is in it."""
        own = [text for text in self.exceptions if not _GROUP.match(text)] or self.exceptions
        return own[0].strip(" |") if own else ""


class Tracebacks:
    """Gathers the tracebacks of all ranks of one file. Feed it every line while `is_open`."""

    def __init__(self) -> None:
        self._open: dict[str, Trace] = {}
        self._ignored_line = -9

    @property
    def is_open(self) -> bool:
        """Whether a traceback is begun whose lines are still to come."""
        return bool(self._open)

    def holds(self, rank: str, line_no: int) -> bool:
        """Whether a line of `rank` may belong to a traceback, or to an exception that was ignored just before."""
        return rank in self._open or 0 <= line_no - self._ignored_line <= 1

    def feed(self, text: str, rank: str, line_no: int, offset: int, *, is_caught: bool = False) -> list[Trace]:
        """Takes one line (behind its prefix, indentation kept); gives the tracebacks that it completes. `is_caught`: a
        traceback that begins here is shown by a program that goes on."""
        done: list[Trace] = []
        if _IGNORED.search(text):
            self._ignored_line = line_no
        if ("Traceback (most" in text and _START.match(text) is not None) or self._is_remote(text, rank):
            trace = self._open.get(rank)
            if trace is not None and (trace.is_chained or (trace.is_group and "Group" not in text)):
                trace.is_chained, trace.idle, trace.frames = False, 0, 0
                trace.exceptions = [one for one in trace.exceptions if not _GROUP.match(one)]
                return done
            if trace is not None:
                done.append(self._open.pop(rank))
            is_ignored = is_caught or 0 <= line_no - self._ignored_line <= 1
            self._open[rank] = Trace(line_no, offset, rank, is_ignored=is_ignored, is_group="Exception Group" in text)
            return done
        for key, trace in list(self._open.items()):
            if key == rank:
                self._advance(trace, text)
            else:
                trace.idle += 1
            if trace.is_done or trace.idle > _SLACK_LINES * (1 + len(self._open)) or trace.lines > _MAX_LINES:
                done.append(self._open.pop(key))
        return done

    def _is_remote(self, text: str, rank: str) -> bool:
        """Whether a worker's traceback begins that is told by its caller alone."""
        return rank not in self._open and "ray.exceptions." in text and _REMOTE.match(text) is not None

    def _advance(self, trace: Trace, text: str) -> None:
        trace.lines += 1
        if trace.exceptions and not trace.is_chained:
            # the exception was named; blank lines and a message's further lines may come before a chain
            if _CHAIN.match(text):
                trace.is_chained, trace.idle = True, 0
            elif text.strip():
                trace.idle += 1
                if trace.idle >= 3 or _looks_new(text):
                    trace.is_done = True
            return
        if text[:1] in (" ", "\t", "|", "│", "╰") and not (
            text.startswith("  ") and _is_exception(text.strip(" \t|"), indented=True, frames=trace.frames)
        ):
            trace.frames += 1
            trace.idle = 0
            return
        stripped = text.strip(" \t|") if text[:1] in (" ", "|") else text.strip()
        if trace.frames and stripped and _is_exception(stripped, indented=False, frames=trace.frames):
            trace.exceptions.append(stripped)
            trace.is_chained, trace.idle = False, 0
        elif stripped:
            trace.idle += 1

    def flush(self) -> list[Trace]:
        """The tracebacks that are open, as far as they came."""
        done = list(self._open.values())
        self._open.clear()
        return done


def _looks_new(text: str) -> bool:
    """Whether a line behind an exception starts something else than more of its message."""
    return text[:1] not in (" ", "\t") and ("Traceback" in text or text[:1] in "[(")


def _is_exception(text: str, *, indented: bool, frames: int) -> bool:
    match = _EXCEPTION.match(text)
    if match is None:
        return False
    name = match["name"].rpartition(".")[2]
    if indented:
        return bool(
            frames > 1
            and re.fullmatch(r"_{0,2}[A-Z]\w*(?:Error|Exception|Interrupt)", name)
            and text.startswith(match["name"] + ":")
        )
    return name.lstrip("_")[:1].isupper() and _KNOWN.fullmatch(match["name"]) is not None
