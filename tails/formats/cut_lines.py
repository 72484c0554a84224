"""Logs whose lines were cut at a fixed width (``fold``, a terminal's copy): their pieces, joined again.

A number in such a log may go on in the next line, so half of one must never be read. Nothing but the file's own lines
tells: none is longer than the width, and those that reach it go on below in the middle of a key or a number. Lines are
held from the first that shows it until another one does. Where none does, a number that
seems to go on below is left out.
"""

from __future__ import annotations

import re

from trainmon.tails.error_lines import tells_error
from trainmon.tails.formats.flat import EVAL_WORD, MEASURE, METRIC
from trainmon.tails.formats.glued import between_writers
from trainmon.tails.prefix import read_prefix
from trainmon.tails.quick_dataclass import dataclass

_NARROWEST = 20
_SHORT = 20  # characters behind a prefix, fewer of which need not say anything
_NARROW = 60  # below this, records are wrapped by hand too
_WIDEST = 1000
_ENOUGH = 6  # what pieces must show together
_STRONG, _WEAK, _NONE = 3, 2, 0
_PATIENCE = 48  # lines held until then
_TRIES = 8  # lines of one width that were whole
_MOST_PIECES = 64
_HEAD = 12  # characters by which the beginnings of two lines are told apart
_NEVER = 1 << 62

_BEGINS = re.compile(
    r"\s*[\[({<#*=>-]{0,3}\s*(?:(?:\w{1,12} )?(?:global[_ ]?)?(?:step|iter(?:ation)?|it|epoch|update|batch)|steps)\b"
    r"(?! ?(?:time|size))[\s:=#\[(]{0,12}\d"
    r"|.{0,40}\b(?:at|after|for|@) (?:global[ _]?)?(?:step|iter(?:ation)?|epoch) \d",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[A-Za-z][\w.-]*: |[A-Z]{4,8}:[A-Za-z_][\w.]*:")  # of a host; of Python's logging
_AVERAGE = re.compile(r"\s?\(\s?[-+]?\d[\d.eE+-]{0,20}\s?%?\)(?!:)")
_DIGITS = re.compile(r"\d+|\s+")
# The first piece of a record names its step or something measured; without either a line is another program's.
_SAYS = re.compile(rf"{METRIC.pattern}|step|iter|epoch|update|batch|time|samples|memory|[\w)]=", re.IGNORECASE)
# Where a piece ends: behind a value, in a number, between key and value, between two pairs, in a key.
_AFTER_UNIT = re.compile(
    r"\d ?(?:[mµun]?s|secs?|%|[KMGT]i?B|[kKMGTB]|it/s|s/it|tok(?:ens)?/s(?:ec)?|T?FLOPS?|tokens|samples)\)?$|\d\)$"
)
_IN_NUMBER = re.compile(r"\d(?:\.|,|[eE][-+]?|[eE][-+]?\d+)?$|[\s:=][-+.]$")
_BAR = re.compile(r"\s{0,8}[|│]\s{1,4}[A-Za-z_∇]")
_BEFORE_LAST = re.compile(r"\d\s?/\s{0,12}$")
_BEFORE_VALUE = re.compile(r"[A-Za-z_)\]%]['\"]?(?:\s{0,12}[:=]\s{0,40}|\s{1,40})$")
_OPEN_UNIT = re.compile(r"\d ?(?:[KMGT]i?|m|to?k?)$|(?P<e>\d[eE][-+]?)$|(?P<bracket>[\w%]\($)")
_OPENED = re.compile(r"[\[(]\s{0,12}$")  # before the place in brackets, [  10/500]
_ENTRY = re.compile(r"\s{1,40}(?:'[^']{1,160}'|\"[^\"]{1,160}\")\s?:")  # of a dictionary printed with one a line
_PLACE = re.compile(r"\s{0,12}\d{1,12}\s{0,8}[/\])]")
_IN_WORD = re.compile(r"\w=(?:[A-Za-z]\w{0,30})?$")  # in a value that is a word, split=tra
_REST_OF_WORD = re.compile(r"(?:[a-z\d]\w{0,30})?,? [A-Za-z_][\w/.-]{0,60}=")
_DASHED = re.compile(r"\d(?: - \0| -\0 | \0- |\0 - )[A-Za-z_][\w/.()@-]{0,80}:[-+.\dnNi]")  # step:1 - |loss:2.5
_BETWEEN = re.compile(r"[\w.%)\]](?:\s?[|,;]\s{0,4}| {1,4})$")
_IN_KEY = re.compile(
    r"[\d%)\]a-z\"'][|,;\s-]{1,12}(?:[A-Za-z](?:[\w /.()-]{0,60}?[\w/()-])?|['\"](?:[A-Za-z_][\w /.()-]{0,60})?['\"]?)$"
)
# How one begins that goes on: with a value, the rest of a number, what parts two pairs, a pair, the rest of a key.
_VALUE = re.compile(r"\s{0,40}(?:[-+]?\.?\d|[-+]?(?:nan|inf)\b)", re.IGNORECASE)
_REST = re.compile(
    r"\.?\d*(?:\.\d*)?(?:[eE]?[-+]?\d{1,4})?(?:%|[mµ]?s|[KMGT]i?B|[kKMGTB])?"
    r"(?:\s?[|,;()%\]}]| - [A-Za-z_]|\s{1,4}[A-Za-z_][\w /.()%-]{0,60}?(?:\s?[:=]\s{0,12}|\s{1,12})[-+.\d]|$)"
)
_UNIT = re.compile(r"(?:[mµun]?s|%|[KMGT]i?B|[kKMGTB]|it/s|s/it|tok/s)(?=\s?[|,;(]|\s{1,4}[A-Za-z_]|$)")
_ROW = re.compile(rb"(?:\s{2,40}[-+.\d][-+.\deE]{0,30}[a-z%]{0,2}){2,60}\s*")
_EXPONENT = re.compile(r"[eE][-+]?\d{1,3}(?![\w.])")
_TORN = re.compile(
    rb"(?<![\w/.-])(?:[A-Za-z_][\w/.-]{0,60}\s{0,4}[:=]?\s{0,4})?[-+]?[\d.][\d.,]{0,40}(?:[eE][-+]?\d*)?$"
)
_TORN_OFF = re.compile(rb"[\d.,eE+-]{1,40}")
_PARTED = re.compile(r"\s?[|,;)\]}]|\s?/\s{0,4}\d|\([\w/%]{1,12}\)\s?[:=]")
_REST_OF_UNIT = re.compile(r"(?:i?B|s|ok(?:ens)?/s|k?/s)(?![\w/])")
_PAIR = re.compile(r"\s{0,4}['\"]?(?P<key>[A-Za-z_][\w /.()%-]{0,60}?)['\"]?(?:\s?[:=]\s{0,12}|\s{1,12})[-+.\dnNi]")
_REST_OF_KEY = re.compile(
    r"(?P<key>[\w /.()%-]{0,60}?)['\"]?(?:\s?[:=]\s{0,12}|\s{1,12})(?:[-+.\dnNi]|$)"
    r"|\w{0,20}=\w{1,40}[ ,]|[a-z_]\w{0,20} ?(?:\(|\||:)"
)


@dataclass(slots=True)
class Piece:
    """A line of the file, without its end. `is_torn`: a number at its end may not be whole, and was left out."""

    raw: bytes
    offset: int
    line_no: int
    is_torn: bool = False


class CutLines:
    """Takes the lines of a file in order and gives them back, joined where they were cut.

    `watch`: only a line of so many bytes or more has to be given to `take`, as long as none is held (`is_open`).

    >>> cut, whole = CutLines(), b"step=1 loss=2.875 grad_norm=1.25 lr=1.0e-04 tokens_per_second=41250 mfu=41.5"
    >>> lines = [Piece(part, 0, n) for n in (1, 2) for part in (whole[:61], whole[61:])]
    >>> [[one.raw == whole for one in cut.take(line)] for line in lines]
    [[], [], [], [True, True]]
    """

    def __init__(self) -> None:
        self.watch = _NARROWEST
        self._width = _NARROWEST - 1  # of the longest line so far, or nearly none
        self._is_cut = False
        self._held: list[Piece] = []
        self._shown = 0
        self._whole = 0

    @property
    def is_open(self) -> bool:
        """Whether a line is held."""
        return bool(self._held)

    @property
    def least(self) -> int:
        """Only a line of so many bytes or more has to be given to `take`: each, while one is held."""
        return 0 if self._held else self.watch

    def take(self, piece: Piece) -> list[Piece]:
        """The lines that are whole now."""
        raw = piece.raw
        if b"\r" in raw or b"\x1b" in raw or b"\0" in raw:
            return [*self.flush(), piece]
        size = len(raw) if raw.isascii() else len(raw.decode("utf-8", "replace"))
        if self._is_cut:
            return self._joined(piece, size)
        done: list[Piece] = []
        if size > self._width:  # the held ones were not cut, at least not at this width
            done, self._held = self._doubted(), []
            self._width, self._whole, self._shown = size, 0, 0
            self.watch = size if size <= _WIDEST else _NEVER
        if not self._held:
            if size == self.watch and raw.isascii() and any(map(chr(raw[0]).__ne__, raw.decode())):
                self._held = [piece]
                return done
            return [*done, piece]
        before, shows = self._held[-1].raw, None
        self._held.append(piece)
        if len(before) == self._width:
            is_other = len(self._held) == 2 and _is_of_another(before)
            shows = _NONE if is_other else _goes_on(before, raw)
            self._shown += shows or _NONE
            if self._shown >= max(_ENOUGH, _STRONG * self._whole):
                self._is_cut = True
                return self._rejoined()
            self._whole += shows is None
        is_open = self._shown or (shows is not None and _BAR.match(raw[:40].decode("utf-8", "replace")))
        if not is_open or len(self._held) > _PATIENCE:
            return self._let_go()
        return []

    def flush(self) -> list[Piece]:
        """What is held, at the end: joined, where what there is shows a cut."""
        if self._shown >= (_STRONG if self._width >= _NARROW else _ENOUGH) and not self._is_cut:
            self._is_cut = True
            whole = self._rejoined()
            self._is_cut = False
            return [*whole, *self._flushed()]
        if self._is_cut:
            return self._flushed()
        done = self._let_go()
        rest, self._held = self._held, []
        return [*done, *rest]

    def _flushed(self) -> list[Piece]:
        held, self._held = self._held, []
        self._shown = 0
        return [_join(held)] if held else []

    def _let_go(self) -> list[Piece]:
        """Gives what is held as it is; the newest may be the first piece of another line."""
        held, self._held = self._doubted(), []
        self._shown = 0
        if self._whole >= _TRIES:
            self.watch = min(self._width + 1, _NEVER)
        if len(held) > 1 and len(held[-1].raw) == self.watch:
            self._held = [held.pop()]
        return held

    def _doubted(self) -> list[Piece]:
        """What is held, without the numbers that seem to go on in the line below."""
        held = self._held
        for at in range(len(held) - 1) if self._shown else ():
            raw, below = held[at].raw, held[at + 1].raw
            if len(raw) == self._width and (torn := _TORN.search(raw)) is not None and _goes_on(raw, below) == _STRONG:
                held[at] = Piece(raw[: torn.start()], held[at].offset, held[at].line_no, is_torn=True)
                held[at + 1] = Piece(_TORN_OFF.sub(b"", below, count=1), held[at + 1].offset, held[at + 1].line_no)
        return held

    def _rejoined(self) -> list[Piece]:
        """What is held, taken again from a file that is cut."""
        held, self._held = self._held, []
        return [whole for piece in held for whole in self._joined(piece, len(piece.raw))]

    def _joined(self, piece: Piece, size: int) -> list[Piece]:
        if size > self._width:  # it is cut no longer
            self._is_cut, self._width, self.watch = False, size, _NEVER
            return [*self._flushed(), piece]
        done: list[Piece] = []
        if self._held and (len(self._held) >= _MOST_PIECES or _begins(piece.raw, self._held[0].raw)):
            done = self._flushed()
        self._held.append(piece)
        if size < self._width:
            done += self._flushed()
        return done


def _join(pieces: list[Piece]) -> Piece:
    first = pieces[0]
    return first if len(pieces) == 1 else Piece(b"".join(piece.raw for piece in pieces), first.offset, first.line_no)


def _begins(raw: bytes, first: bytes) -> bool:
    """Whether a line begins as only a whole one does: with a prefix, a step, or the words that `first` begins with; or
    tells of an error, which is none of a record's words."""
    text = raw[:400].decode("utf-8", "replace")
    if _BEGINS.match(text) is not None or _head_of(text) == _head_of(first[:400].decode("utf-8", "replace")):
        return True
    prefix = read_prefix(text)
    is_same = prefix.is_bare and read_prefix(first[:400].decode("utf-8", "replace")).rank == prefix.rank
    is_labelled = (
        is_same or (bool(prefix.rank) and not prefix.is_bare) or _LABEL.fullmatch(text, 0, prefix.at) is not None
    )
    return prefix.time is not None or is_labelled or tells_error(text)


def _is_of_another(raw: bytes) -> bool:
    """Whether a line is no first piece of a record: its words tell of no step and nothing measured."""
    text = raw[:400].decode("utf-8", "replace")
    at = read_prefix(text).at
    return len(text) - at >= _SHORT and _SAYS.search(text, at) is None


def _head_of(text: str) -> str:
    return _DIGITS.sub("0", text)[:_HEAD]


def _is_heading(text: str) -> bool:
    """Whether there is no number behind a line's prefix: what looks like a key is a word of its own."""
    return re.search(r"\d", text[read_prefix(text).at :]) is None


def _goes_on(before: bytes, raw: bytes) -> int | None:
    """How much the line `raw` shows that `before` was cut (`_STRONG`, `_WEAK`, `_NONE`); None when it was not.

    Where the cut is between two pairs it could as well be two lines, which are both read right when they are joined.
    """
    if not raw or not raw.isascii() or _begins(raw, before) or between_writers(before.decode("utf-8", "replace")):
        return None  # what goes on below two writers' lines is the rest of the first, not of the second
    if re.search(rb"\d", before) is None or _ROW.fullmatch(raw) is not None:
        return _NONE  # a heading, a row of a table
    head, tail = before[-100:].decode("utf-8", "replace"), raw[:120].decode()
    if len(before) < _NARROW and _BAR.match(tail) is not None:
        return _NONE  # as likely wrapped by hand
    if head.endswith(",") and _ENTRY.match(tail) is not None:
        return _NONE
    if tail.lstrip()[:1] == "(" and not head[-1:].isalpha():  # an average; else as likely a remark of its own
        return _STRONG if head[-1:].isdigit() and _AVERAGE.match(tail) is not None else _NONE
    pair = _PAIR.match(tail)
    if pair is not None and tail[:2] == "  " and (MEASURE.search(pair["key"]) or EVAL_WORD.search(pair["key"])):
        return _NONE  # as likely a result of its own, set in
    inner = _OPEN_UNIT.search(head)
    if inner is not None and (_VALUE if inner["e"] or inner["bracket"] else _REST_OF_UNIT).match(tail) is not None:
        return _STRONG
    if _BEFORE_LAST.search(head) is not None and _VALUE.match(tail) is not None:
        return _STRONG
    if len(before) >= _NARROW and _DASHED.search(f"{head[-4:]}\0{tail}") is not None:
        return _WEAK
    if _OPENED.search(head) is not None and _PLACE.match(tail) is not None:
        return _STRONG
    if _IN_WORD.search(head) is not None and _REST_OF_WORD.match(tail) is not None:
        return _WEAK
    if _IN_NUMBER.search(head) is not None:
        if _EXPONENT.match(tail) is not None and head[-1:].isdigit():
            return _STRONG
        if pair is not None:
            return _WEAK if tail[:1] == " " else _STRONG if _UNIT.match(tail) is not None else None
        is_rest = _PARTED.match(tail) or _UNIT.match(tail) or (tail[:1] not in " -+" and _REST.match(tail))
        return _STRONG if is_rest else _NONE
    if _BEFORE_VALUE.search(head) is not None and _VALUE.match(tail) is not None:
        return _STRONG
    if _AFTER_UNIT.search(head) is not None:
        if _PARTED.match(tail) is not None:
            return _STRONG
        if tail[:1] not in ("_", "/"):  # which makes the unit the beginning of a key
            return _WEAK if pair is not None and tail[:1] == " " else _NONE
    if _BETWEEN.search(head) is not None:
        if pair is None:
            return _STRONG if _PARTED.match(tail) is not None else _NONE
        return _WEAK if METRIC.search(pair["key"]) is not None else _STRONG
    if _IN_KEY.search(head) is None:
        return _NONE
    if pair is not None and METRIC.search(pair["key"]) is not None and _is_heading(head):
        return _NONE
    if tail[:1] == " " and _VALUE.match(tail) is not None:
        return _STRONG
    match = _REST_OF_KEY.match(tail)
    if match is None or (tail[:1].isupper() and head[-1:].isalnum()):
        return _NONE
    return _WEAK if METRIC.match(match["key"] or "") is not None else _STRONG
