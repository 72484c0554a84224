r"""Lines that a container runtime wrote in parts, put together again.

Docker keeps no more than 16 KiB of a line in one object (``{"log": "...", "stream": "stdout"}``, where only the last
part ends in ``\n``); the runtimes of Kubernetes tag parts ``P`` and the last one ``F`` behind the time and the stream.
Half of a record must not be read, so the parts of each stream are held until the last one is there.
"""

from __future__ import annotations

import re

import msgspec

from trainmon.tails.formats.cut_lines import Piece
from trainmon.tails.quick_dataclass import dataclass

_STAMP = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,12})?(?:Z|[+-]\d\d:\d\d)"
_TAGGED = re.compile(rb"(?P<head>" + _STAMP + rb" (?P<stream>stdout|stderr) )(?P<tag>[PF])(?: |$)")
_FIRST_TAGGED = re.compile(rb"(?m)^" + _STAMP + rb" (?:stdout|stderr) P(?: |$)")
_OBJECT = re.compile(rb'\{\s?"log"\s?:\s?"')
_FIRST_OBJECT = re.compile(rb'(?m)^\{\s?"log"\s?:\s?"')
_TORN = re.compile(rb"(?:[A-Za-z_][\w/.-]{0,60}\s{0,4}[:=]?\s{0,4})?[-+]?[\d.][\d.,]{0,40}(?:[eE][-+]?\d*)?$")
_NEAR = 120
_DECODER = msgspec.json.Decoder()
_MOST_BYTES = 2 << 20  # of one line; the reader keeps the head of one that is longer
_PART_BYTES = 8 << 10  # no writer that leaves the line's end away makes longer lines than this, as a rule


@dataclass(slots=True)
class _Held:
    """The parts of one stream so far: their text, and where the first one stands. `head`: what was before the text;
    `record`: the first one's object, None for a tagged line."""

    text: bytes
    head: bytes
    offset: int
    line_no: int
    record: dict[str, str] | None = None

    def whole(self) -> Piece:
        """What is held as one line, in the writer's own form."""
        text = self.text
        if self.record is not None:
            text = msgspec.json.encode(self.record | {"log": text.decode("utf-8", "replace")})
        return Piece(self.head + text, self.offset, self.line_no)


@dataclass(slots=True)
class _Part:
    """One line of the file, taken apart. `record`: Docker's object; None for a tagged line."""

    stream: bytes
    text: bytes
    head: bytes
    is_last: bool
    record: dict[str, str] | None = None


class ContainerParts:
    r"""Takes the lines of a file from the first part on (`begin_in`), and gives them back whole.

    >>> parts = ContainerParts()
    >>> lines = b"2025-01-15T10:00:00Z stdout P step 1 lo\n2025-01-15T10:00:00Z stdout F ss 2.5\n"
    >>> parts.begin_in(lines), parts.begin_in(b"step 1 loss 2.5\n")
    (0, 16)
    >>> [piece.raw for piece in parts.take(lines, 0, 1)]
    [b'2025-01-15T10:00:00Z stdout F step 1 loss 2.5']
    """

    def __init__(self) -> None:
        self._is_used = False
        self._is_within = False
        self._held: dict[bytes, _Held] = {}
        self._ends_lines: bool | None = None  # whether this writer of objects keeps the ends of lines

    def begin_in(self, data: bytes) -> int:
        """Where in `data` (whole lines, or up to a frame's end) lines that may be parts begin; its length if none."""
        if self._is_used:
            return 0
        # Of most logs a letter alone says that there are none.
        found = [_FIRST_TAGGED.search(data)] if b"P" in data and b"std" in data and b" P" in data else []
        if b'"' in data and b'"stream"' in data:
            found.append(_FIRST_OBJECT.search(data))
        starts = [one.start() for one in found if one is not None and (one.start() or not self._is_within)]
        self._is_within = not data.endswith(b"\n")
        return min(starts, default=len(data))

    def take(self, data: bytes, offset: int, line_no: int) -> list[Piece]:
        """The lines that are whole now."""
        out: list[Piece] = []
        if not self._is_used:
            self._is_used, self._is_within = True, False
        is_rest, self._is_within = self._is_within, not data.endswith(b"\n")
        lines = data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        for raw in lines:
            part = None if is_rest or b"\r" in raw else self._part_of(raw)
            if part is None:
                out += self.flush()
                out.append(Piece(raw, offset, line_no))
            else:
                out += self._join(part, raw, offset, line_no)
            is_rest = False
            offset += len(raw) + 1
            line_no += 1
        return out

    def flush(self) -> list[Piece]:
        """What is held, whose last part did not come: without the number at its end, which may go on there."""
        held, self._held = self._held, {}
        out = []
        for one in held.values():
            may_go_on = one.record is None or bool(self._ends_lines) or len(one.text) >= _PART_BYTES
            torn = _TORN.search(one.text[-_NEAR:]) if may_go_on else None
            if torn is not None:
                one.text = one.text[: len(one.text) - len(torn[0])]
            whole = one.whole()
            whole.is_torn = torn is not None
            out.append(whole)
        return out

    def _part_of(self, raw: bytes) -> _Part | None:
        match = _TAGGED.match(raw)
        if match is not None:
            return _Part(match["stream"], raw[match.end() :], match["head"] + b"F ", match["tag"] == b"F")
        if _OBJECT.match(raw) is None:
            return None
        try:
            record = _DECODER.decode(raw)
        except (msgspec.MsgspecError, RecursionError):
            return None
        text, stream = record.get("log"), record.get("stream")
        if not isinstance(text, str) or stream not in ("stdout", "stderr"):
            return None
        return _Part(stream.encode(), text.encode("utf-8", "replace"), b"", self._ends(text, stream.encode()), record)

    def _ends(self, text: str, stream: bytes) -> bool:
        """Whether `text` is the end of a line. Writers that leave every line's end away are told from Docker by it."""
        if text.endswith("\n"):
            self._ends_lines = True
            return True
        if len(text) >= _PART_BYTES or self._ends_lines:
            return False
        if self._ends_lines is None and stream in self._held:
            self._ends_lines = False  # the second one without an end
        return self._ends_lines is False

    def _join(self, part: _Part, raw: bytes, offset: int, line_no: int) -> list[Piece]:
        held = self._held.pop(part.stream, None)
        if held is not None and part.record is not None and self._ends_lines is False and part.is_last:
            return [held.whole(), Piece(raw, offset, line_no)]
        if held is None and part.is_last:
            return [Piece(raw, offset, line_no)]
        if held is None:
            held = _Held(b"", part.head, offset, line_no, part.record)
        if len(held.text) < _MOST_BYTES:
            held.text += part.text
        if part.is_last:
            return [held.whole()]
        frames, mark, rest = held.text.rpartition(b"\r")
        self._held[part.stream] = held
        if not mark or len(held.text) >= _MOST_BYTES:
            return []
        # A bar is drawn for hours on one line: its frames are given as they come.
        self._held[part.stream] = _Held(mark + rest, part.head, offset, line_no, part.record)
        held.text = frames
        return [held.whole()] if frames else []
