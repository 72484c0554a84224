"""Bytes of one source to `Parsed`: waits for enough of a head, finds the format, feeds it.

The format is told from the first up to 64 KiB. A log that is just beginning shows less, so the choice is looked
at again as the head grows, until the format has read its first record or the head is full; what was read is then
given to the better format from the start.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from trainmon.tails.formats import registry
from trainmon.tails.formats.base import DocumentFormat, Format, FramedFormat, LineFormat
from trainmon.tails.last_line import counts_as_whole, last_frame
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.lines import Chunk, LineSplitter
from trainmon.tails.logpane import LineIndex, LogPane
from trainmon.tails.record import Note, NoteKind, Parsed
from trainmon.tails.torn_end import RECENT_BYTES, torn_at
from trainmon.tails.utf16 import MARKS, Utf16

_STRANGE = bytes(set(range(32)) - set(b"\t\n\r\x0b\x0c\x1b\x08\x07"))
_NULS = lazy(rb"\0+")
_WHOLE_OR_UNREADABLE = "jsonl"  # the format in which a record that was cut off cannot be read at all
_FEW_HOLES = 4

Detect = Callable[[bytes, str], Format | None]

HEAD_BYTES = 64 << 10
FEW_LINES = 20
_MAX_FRAME_BYTES = 512 << 20

_PACKED = {
    b"\x1f\x8b": ("gzip", "zcat"),
    b"\x28\xb5\x2f\xfd": ("zstd", "zstdcat"),
    b"\xfd7zXZ\x00": ("xz", "xzcat"),
    b"BZh": ("bzip2", "bzcat"),
}


class Ingest:
    """One generation of one source. `pane` and `index` are told of every chunk of lines."""

    def __init__(self, source: str, detect: Detect, pane: LogPane) -> None:
        self.source = source
        self.problem = ""
        self.format: Format | None = None
        self.splitter = LineSplitter()
        self.pane = pane
        self.index = LineIndex()
        self.records = 0
        self.unreadable = 0
        self._detect = detect
        self._last_whole = b""  # line or frame
        self._recent = b""  # the end of what was whole
        self._head: bytearray | None = bytearray()  # all bytes so far, while the format may still change
        self._start = 0  # of the head in the file
        self._look_again_at = 0
        self._said: set[tuple[int, str, str]] = set()
        self._frames = bytearray()
        self._frames_offset = 0
        self._try_frames_at = 0

    @property
    def label(self) -> str:
        """The format's name, "" while it is not known."""
        return self.format.label if self.format is not None else ""

    @property
    def head(self) -> bytes:
        """All bytes so far, while the format may still change or the source is a document."""
        return bytes(self._head or b"")

    @property
    def is_text(self) -> bool:
        """Whether lines are read."""
        return isinstance(self.format, LineFormat)

    @property
    def is_document(self) -> bool:
        """Whether this source must be read whole, by a `DocumentReader`."""
        return isinstance(self.format, DocumentFormat)

    def skip(self, count: int) -> Parsed:
        """The source has a hole of `count` bytes that were not given. What came before it is read now."""
        out = Parsed()
        if count <= 0 or self.is_document:
            return out
        if self._head is not None and not self._head.strip(b"\0"):
            self._start += count
            return out
        if self.format is None and self._head is not None:
            out = self.feed(b"", is_at_end=True, is_final=True)
        self._head = None  # the choice of format stands: the head could not be read again with its offsets right
        self.splitter.skip(count)
        self._frames_offset += count
        return out

    def feed(self, data: bytes, *, is_at_end: bool, is_final: bool = False) -> Parsed:
        """Reads the next bytes. `is_at_end`: there are no more now; `is_final`: there will be no more ever."""
        out = Parsed()
        if self._head is not None:
            if data or is_final:
                self._head += data
                self._choose(is_at_end or is_final, is_final, data, out)
        else:
            self._read(data, out)
        self._count(out)
        return out

    def finish(self, *, is_final: bool, is_still: bool = False) -> Parsed:
        """Gives what is held back: the source has been quiet for a while, or (`is_final`) will stay so.

        A last line without its end is passed on when final, when it is a closed JSON object, and, where the source has
        been quiet for longer (`is_still`), when it counts as whole (`last_line`).
        """
        out = Parsed()
        if self._head is not None and self.format is None and self._head:
            out.add(self.feed(b"", is_at_end=True, is_final=True))
        if isinstance(self.format, LineFormat):
            finished = Parsed()
            pending = self.splitter.pending
            if is_final or _is_closed_object(pending):
                self._read_chunks(self.splitter.flush(), finished, is_final=is_final)
            elif is_still and counts_as_whole(pending, self.splitter.offset, self._last_whole):
                self._read_chunks(self.splitter.flush(b"\r" if self.splitter.is_frame else b"\n"), finished)
            finished.add(self.format.finish())
            if finished.records:
                self._head = None
            self.pane.learn(finished)
            self._count(finished)
            out.add(finished)
        elif isinstance(self.format, FramedFormat) and self._frames:
            self._try_frames_at = 0
            framed = Parsed()
            self._read_frames(b"", framed)
            self._count(framed)
            out.add(framed)
        return out

    def _count(self, out: Parsed) -> None:
        self.records += out.records
        self.unreadable += out.unreadable

    # -- which format ------------------------------------------------------------------------------------------

    def _choose(self, is_at_end: bool, is_final: bool, data: bytes, out: Parsed) -> None:
        assert self._head is not None
        sample = _sample(self._head)
        is_full = len(self._head) >= HEAD_BYTES
        if len(self._head) >= self._look_again_at and _is_enough(sample, is_full, is_at_end, is_final):
            self._look_again_at = 2 * len(self._head)
            found = self._detect(_whole_lines(sample, is_full, is_final), self.source) or self._plain_text(sample)
            if found is None and self.format is None:
                self._not_recognised(sample, is_full)
            if found is not None and type(found) is not type(self.format):
                self.problem = ""
                self._begin(found)
                data = bytes(self._head)
        if self.format is None:
            if is_full:
                del self._head[HEAD_BYTES:]
            return
        if self.is_document:
            return
        self._read(data, out)
        if is_full or out.records:
            self._head = None

    def _begin(self, found: Format) -> None:
        self.format = found
        self.splitter = LineSplitter()
        self.splitter.skip(self._start)
        self.index = LineIndex()
        self._frames.clear()
        self._frames_offset = self._start
        self.unreadable = 0

    def _plain_text(self, sample: bytes) -> Format | None:
        return None if not sample or _is_binary(sample) else registry.format_class("stdout")(self.source)

    def _not_recognised(self, sample: bytes, is_full: bool) -> None:
        for magic, (name, tool) in _PACKED.items():
            if sample.startswith(magic):
                how = f"{tool} FILE | trainmon watch -"
                how += ", or: pip install 'trainmon[zstd]'" if name == "zstd" else ""
                self.problem = f"{self.source}: compressed ({name}); read it with: {how}"
                return
        if is_full or len(sample) >= 16:
            self.problem = f"{self.source}: binary file, not a known format; name a log or a metrics file"

    # -- reading -----------------------------------------------------------------------------------------------

    def _read(self, data: bytes, out: Parsed) -> None:
        if isinstance(self.format, FramedFormat):
            self._read_frames(data, out)
        elif self.is_text:
            self._read_chunks(self.splitter.feed(data), out)

    def _read_chunks(self, chunks: list[Chunk], out: Parsed, *, is_final: bool = False) -> None:
        assert isinstance(self.format, LineFormat)
        for chunk in chunks:
            self._tell_of_losses(out, chunk.offset + len(chunk.data))
            data = self._without_torn_end(chunk, out) if is_final else chunk.data
            parsed = self.format.feed(data, chunk.offset, chunk.line_no)
            self.pane.add(chunk)
            self.pane.learn(parsed)
            self.index.add(chunk)
            out.add(parsed)
        if chunks:
            self._last_whole = last_frame(chunks[-1].data)
            if self.label != _WHOLE_OR_UNREADABLE:
                new = b"".join(chunk.data[-RECENT_BYTES:] for chunk in chunks)  # a line cut in two is one of its own
                self._recent = (self._recent + new)[-RECENT_BYTES:]
        self._tell_of_losses(out)
        if self._head is not None:
            out.notes = [note for note in out.notes if self._is_news(note)]

    def _without_torn_end(self, last: Chunk, out: Parsed) -> bytes:
        """The last line, which had no end, without a number that it ends inside of; `out` is told of that."""
        line = last.data.rstrip(b"\r\n")
        at = None if self.label == _WHOLE_OR_UNREADABLE else torn_at(line, self._recent)
        if at is None:
            return last.data
        text = "the last line is not whole: it ends inside a number or before it, which was left out"
        out.notes.append(Note(self.source, last.line_no, last.offset, NoteKind.UNREADABLE, text))
        out.unreadable += 1
        return line[:at] + b"\n"

    def _is_news(self, note: Note) -> bool:
        key = (note.offset, note.kind.value, note.text)  # no line number: the frames of a progress bar share theirs
        is_news = key not in self._said
        self._said.add(key)
        return is_news

    def _tell_of_losses(self, out: Parsed, before: float = math.inf) -> None:
        """Of those up to the offset `before`: what is read behind a loss is told behind it, as when it comes later."""
        losses = self.splitter.losses
        while losses and losses[0].offset < before:
            loss = losses.pop(0)
            text = "NUL bytes were dropped here: a hole left by a truncation, or by a crash"
            if not loss.is_hole:
                text = f"a line of over {self.splitter.limit >> 20} MiB; only its head was kept"
            out.notes.append(Note(self.source, loss.line_no, loss.offset, NoteKind.UNREADABLE, text))

    def _read_frames(self, data: bytes, out: Parsed) -> None:
        """Gives whole frames on. After a frame that is not whole, waits until twice as much is there."""
        assert isinstance(self.format, FramedFormat)
        self._frames += data
        if len(self._frames) < self._try_frames_at:
            return
        while self._frames:
            parsed, consumed = self.format.feed_frames(bytes(self._frames), self._frames_offset)
            out.add(parsed)
            if not consumed:
                break
            del self._frames[:consumed]
            self._frames_offset += consumed
        self._try_frames_at = 0 if len(self._frames) < HEAD_BYTES else 2 * len(self._frames)
        if len(self._frames) > _MAX_FRAME_BYTES:
            self.problem = f"{self.source}: a record of over 512 MiB, probably torn; reading stopped there"
            self._frames.clear()
            self.format = None


def _sample(head: bytearray) -> bytes:
    """What formats are told from: the head without a hole before it, a byte-order mark, or the NULs of UTF-16."""
    sample = bytes(head[: HEAD_BYTES + 4096]).lstrip(b"\0")[:HEAD_BYTES]
    if sample[:2] in MARKS:
        return b"".join(text for text, _ in Utf16(sample[:2]).take(sample[2:])).replace(b"\0", b"")
    return sample.removeprefix(b"\xef\xbb\xbf")


def _is_enough(sample: bytes, is_full: bool, is_at_end: bool, is_final: bool) -> bool:
    if is_full or is_final:
        return True
    newlines = sample.count(b"\n") + sample.count(b"\r")
    return newlines >= FEW_LINES or (is_at_end and (newlines > 0 or b"\0" in sample))


def _whole_lines(sample: bytes, is_full: bool, is_final: bool) -> bytes:
    """The sample without a last line that is still being written."""
    end = max(sample.rfind(b"\n"), sample.rfind(b"\r")) + 1
    return sample if is_full or is_final or b"\0" in sample or not end else sample[:end]


def _is_binary(sample: bytes) -> bool:
    """Whether more than one in fifty of the sample's bytes are control codes that no log writes, or holes that are
    too many to be holes."""
    text = sample.replace(b"\0", b"")
    strange = len(text) - len(text.translate(None, delete=_STRANGE))
    holes = len(_NULS.findall(sample))
    return 50 * strange > len(text) or (holes > _FEW_HOLES and 50 * holes > len(text))


def _is_closed_object(pending: bytes) -> bool:
    line = pending.strip()
    return line.startswith(b"{") and line.endswith(b"}") and line.count(b"{") == line.count(b"}")
