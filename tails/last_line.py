r"""When the last line of a live log counts as whole although no end of it was written.

A progress bar's frame has its ``\r`` before it, so that the newest frame never has an end: that is worth showing before
the next one comes. But a writer may also have stopped in mid-line (an output buffer that was full), and half a line
must never be read as a whole one: ``loss 2.3`` may become ``loss 2.34``. So a line that has been still for a while
counts as whole only when all of this holds:

- it ends with a closing bracket, or with a full stop or an exclamation mark after a letter; never with a number;
- its brackets are balanced, and closed as often as those of the last whole line or frame before it;
- it does not end where an output buffer would: at a multiple of 4096 bytes.

What does not count is read when its end comes, or when the log has ended.
"""

from __future__ import annotations

from trainmon.tails.lazy_pattern import lazy

_BUFFER_BYTES = 4096  # stdio's and Python's buffers are multiples of it
_MAX_BYTES = 4096
_STYLES = lazy(rb"(?:\x1b\[[0-9;]*[A-Za-z])+\Z")
_CLOSING = b")]}"
_PAIRS = (b"()", b"[]", b"{}")
_SENTENCE = lazy(rb"[A-Za-z\)][.!]\Z")


def counts_as_whole(line: bytes, end_offset: int, before: bytes) -> bool:
    """Whether `line`, which ends at byte `end_offset` of the log and has been still, is whole; `before`: the last whole
    line or frame.

    >>> counts_as_whole(b" 51%|##  | 51/100 [00:02, loss=2.3]", 99, b" 50%|##  | 50/100 [00:01, loss=2.4]")
    True
    >>> counts_as_whole(b"step 51 loss 2.3", 99, b"step 50 loss 2.4")
    False
    """
    if end_offset % _BUFFER_BYTES == 0 or len(line) > _MAX_BYTES:
        return False
    text = _STYLES.sub(b"", line.strip()).rstrip()
    if any(text.count(pair[:1]) != text.count(pair[1:]) for pair in _PAIRS):
        return False
    if text[-1:] and text[-1:] in _CLOSING:
        shape = _STYLES.sub(b"", before.strip()).rstrip()
        return shape[-1:] == text[-1:] and _closings(shape) == _closings(text)
    return _SENTENCE.search(text) is not None and not any(48 <= byte <= 57 for byte in text)


def last_frame(data: bytes) -> bytes:
    """The last line or frame of a chunk of whole lines, without its end."""
    text = data[-_MAX_BYTES:].rstrip(b"\r\n")  # a longer one is cut, and no line is like it
    return text[max(text.rfind(b"\n"), text.rfind(b"\r")) + 1 :]


def _closings(text: bytes) -> int:
    return sum(text.count(pair[1:]) for pair in _PAIRS)
