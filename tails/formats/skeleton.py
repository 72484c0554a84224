"""Lines of one shape, many at once: what stands between their numbers is compared as bytes, whatever their widths.

An expression costs so much for each line and each number; a skeleton costs so much for each byte. What it says of a
line is what `AnyWidth` says, or nothing: blanks may come or go only where the expression lets them, all words are the
same, and each number is one that `float` reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import DecodeError, ValidationError
from msgspec.json import Decoder
from numpy.typing import NDArray

from trainmon.tails.formats.any_width import AnyWidth
from trainmon.tails.record import FloatArray, IntArray

_Bytes = NDArray[np.uint8]
_Bools = NDArray[np.bool_]

_TOKEN, _SPACED = 1, 0x80  # in a skeleton: a number, whatever its digits; and a bit for what a blank stands before
_NEWLINE, _COMMA, _MINUS = b"\n,-"
_BLANKS = b" \t"
_TAKEN = (b"\0", b"\1")
_PLAIN = bytes(code if 1 < code < _SPACED else 0x7F for code in range(256))  # no shape is learned of others
_DROPPED = bytes([0, *_BLANKS, *(code | _SPACED for code in _BLANKS)])  # 0: all but the first byte of a number
_NUMBERS: Final = Decoder(list[float])


class Chunk:
    """(n,) whole lines, each with its end: where numbers stand in them, and the skeleton of each.

    A number is what holds a digit, with the signs, points and exponents that stand next to one.

    >>> chunk = Chunk(b"loss: -2.5e-3, lr 7\\nsame  here\\n")
    >>> [chunk.data[begin:end] for begin, end in zip(chunk.token_begins, chunk.token_ends)], chunk.skeletons[0]
    ([b'-2.5e-3', b'7'], b'loss:\\x81,\\xecr\\x81')
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.codes: _Bytes = np.frombuffer(data, np.uint8)
        self.ends: IntArray = np.flatnonzero(self.codes == _NEWLINE)
        self.begins: IntArray = np.concatenate([[0], self.ends[:-1] + 1])
        is_numeric = _is_numeric(self.codes)
        edges = np.flatnonzero(is_numeric[1:] != is_numeric[:-1]) + 1  # the last byte ends a line
        edges = np.concatenate([[0], edges]) if is_numeric[0] else edges
        self.token_begins: IntArray = edges[0::2]
        self.token_ends: IntArray = edges[1::2]
        self.first_tokens: IntArray = np.searchsorted(self.token_begins, self.begins)
        self.is_blank: _Bools = (self.codes == _BLANKS[0]) | (self.codes == _BLANKS[1])
        plain = data if data.isascii() and not any(map(data.__contains__, _TAKEN)) else data.translate(_PLAIN)
        words = np.frombuffer(plain, np.uint8) * ~is_numeric
        words[self.token_begins] = _TOKEN
        words[1:] |= self.is_blank[:-1].view(np.uint8) * np.uint8(_SPACED)
        words[self.ends] = _NEWLINE
        self.skeletons: list[bytes] = words.tobytes().translate(None, _DROPPED).split(b"\n")[:-1]

    def __len__(self) -> int:
        return len(self.ends)


def _is_numeric(codes: _Bytes) -> _Bools:
    is_digit = codes - np.uint8(ord("0")) < 10
    is_near = np.zeros(len(codes), np.bool_)
    is_near[1:] = is_digit[:-1]
    is_near[:-1] |= is_digit[1:]
    from_plus = codes - np.uint8(ord("+"))  # and behind it comma, minus and point
    is_sign = ((from_plus < 4) & (from_plus != 1)) | (codes | np.uint8(32) == ord("e"))
    return np.asarray(is_digit | (is_near & is_sign))


class Skeleton:
    """What is the same in all lines that `known` reads, learned from one of them.

    >>> from trainmon.tails.formats.template import Shape, Template
    >>> shape = Shape([("loss", (12, 15)), ("lr", (19, 23))], step=(5, 6), step_key="step")
    >>> template = Template("step 5 loss 2.5 lr 1e-4", shape, "generic")
    >>> skeleton = Skeleton.learn(AnyWidth(template, b"", None), b"step 5 loss 2.5 lr 1e-4")
    >>> lines = Chunk(b"step 16 loss 3 lr 2.5E-07\\nstep 17 loss nan lr 1e-4\\nstep  18 loss 2. lr .5\\n")
    >>> rows = np.array([index for index, line in enumerate(lines.skeletons) if skeleton.fits(line)])
    >>> rows, numbers = skeleton.read(lines, rows)
    >>> rows.tolist(), numbers.tolist()
    ([0, 2], [[16.0, 3.0, 2.5e-07], [18.0, 2.0, 0.5]])
    """

    def __init__(self, known: AnyWidth, line: bytes, values: Sequence[int]) -> None:
        self.known = known
        one = Chunk(line + b"\n")
        self._words = np.frombuffer(one.skeletons[0], np.uint8)
        self._begin: _Bytes = np.frombuffer(known.begin, np.uint8)
        self._begins_blank = bool(one.is_blank[len(known.begin)])
        self._values = np.array(values)
        # Of the prefix the outline is compared; what else holds a digit and is no value is part of a word.
        first = int(np.searchsorted(one.token_begins, len(known.begin)))
        spans = zip(one.token_begins.tolist(), one.token_ends.tolist(), strict=True)
        self._fixed = [
            (index, line[begin:end])
            for index, (begin, end) in enumerate(spans)
            if index >= first and index not in values
        ]

    @classmethod
    def learn(cls, known: AnyWidth, line: bytes) -> Skeleton | None:
        """The skeleton of `line`, which `known` reads; None where a number does not stand alone, or more than numbers
        changes."""
        match = known.template.regex.fullmatch(line.decode("ascii"), len(known.begin))
        if match is None or not known.is_quick or b"\x7f" in line:
            return None
        chunk = Chunk(line + b"\n")
        spans = zip(chunk.token_begins.tolist(), chunk.token_ends.tolist(), strict=True)
        tokens = {span: index for index, span in enumerate(spans)}
        if any(begin < len(known.begin) < end for begin, end in tokens):
            return None
        values = [tokens.get(match.span(group)) for group in range(1, match.re.groups + 1)]
        places = [value for value in values if value is not None]
        return cls(known, line, places) if places and len(places) == len(values) else None

    def fits(self, skeleton: bytes) -> bool:
        """Whether a line of this skeleton has the same words, and blanks only where there may be some."""
        if len(skeleton) != len(self._words):
            return False
        differs = np.frombuffer(skeleton, np.uint8) ^ self._words
        return bool(((differs == 0) | ((differs == _SPACED) & (self._words >= _SPACED))).all())

    def read(self, chunk: Chunk, rows: IntArray) -> tuple[IntArray, FloatArray]:
        """Which of the lines `rows` of `chunk`, which fit, are of this shape, and their numbers: (m,), (m, numbers)."""
        rows = rows[self._has_begin(chunk, rows)]
        first = chunk.first_tokens[rows]
        is_worded = np.ones(len(rows), np.bool_)
        for index, word in self._fixed:
            begins, ends = chunk.token_begins[first + index], chunk.token_ends[first + index]
            is_worded &= ends - begins == len(word)
            for at, code in enumerate(word):
                is_worded &= chunk.codes[np.minimum(begins + at, ends)] == code
        rows, first = rows[is_worded], first[is_worded]
        if not len(rows):
            return rows, np.empty((0, len(self._values)))
        tokens = first[:, None] + self._values
        found = numbers_at(chunk.codes, chunk.token_begins[tokens], chunk.token_ends[tokens])
        is_whole = ~np.isnan(found).any(axis=1)
        return (rows, found) if is_whole.all() else (rows[is_whole], found[is_whole])

    def _has_begin(self, chunk: Chunk, rows: IntArray) -> _Bools:
        """Whether the prefixes are of this outline, and what stands behind them begins there."""
        size = len(self._begin)
        behind = chunk.begins[rows] + size
        has = chunk.ends[rows] > behind
        if not self._begins_blank:
            has &= ~chunk.is_blank[np.minimum(behind, chunk.ends[rows])]
        if size:
            prefixes = chunk.codes[np.minimum(chunk.begins[rows][:, None] + np.arange(size), len(chunk.codes) - 1)]
            prefixes = np.where((prefixes > 48) & (prefixes < 58), 48, prefixes)
            has &= (prefixes == self._begin).all(axis=1)
        return np.asarray(has)


def numbers_at(codes: _Bytes, begins: IntArray, ends: IntArray) -> FloatArray:
    """(m, n) what `float` gives for the bytes from `begins` to `ends` (m, n each), NaN where it gives nothing.

    Behind each of them stands at least one byte more.
    """
    sizes = (ends - begins + 1).ravel()
    behind = np.add.accumulate(sizes)
    places = np.repeat(begins.ravel() - (behind - sizes), sizes) + np.arange(behind[-1])
    text = codes[places]
    text[behind - 1] = _COMMA
    joined = text.tobytes()[:-1]
    try:
        decoded = _NUMBERS.decode(b"[%b]" % joined)
        found = np.fromiter(decoded, np.float64, len(decoded))
    except (DecodeError, ValidationError):  # ``1.``, ``+1``, ``007``, beyond all floats, or no number at all
        found = np.array([_float_or_nan(one) for one in joined.split(b",")])
    is_negative_zero = (found == 0.0) & (codes[begins.ravel()] == _MINUS)  # ``-0`` is an integer there
    return np.where(is_negative_zero, -0.0, found).reshape(begins.shape)


def _float_or_nan(raw: bytes) -> float:
    try:
        return float(raw)
    except ValueError:
        return np.nan
