r"""Where the last line of a log that has ended without a newline stops in the middle of a number.

A file that is being written is cut anywhere, and ``lr 3`` of ``lr 3e-4`` is a false value. A log that was pasted lacks
its last newline too, and is whole. What tells the two apart is how the lines before it write the number at that place:
fraction digits, exponent, and what is glued to it. Only the number that touches the end can be cut, so only it is
doubted; where no line before is like this one, nothing is known and it is kept. A name whose number is missing goes
with it: at the end of a line, ``loss 6.65 tok/s`` would read as a loss in tokens per second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainmon.tails.lazy_pattern import lazy

RECENT_BYTES = 16 << 10
_MOST_BYTES = 4096  # of a last line that is looked at
_NUMBER = lazy(rb"([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d*)?)")
_GLUED = lazy(rb",(?=\d)|[A-Za-z%]{0,8}")
_THOUSANDS = lazy(rb"(?<![\d,.])\d{1,3}(?:,\d{3}){0,6},\Z")
_EXPONENT = lazy(rb"[eE]")
_SIGNS = lazy(rb"[:=|]")  # where names have these, they are told from units


class _Form(NamedTuple):
    """How a number is written: digits before and behind the point (-1: no point), of the exponent (-1: none)."""

    whole: int
    fraction: int
    exponent: int
    glued: bytes


def torn_at(line: bytes, recent: bytes) -> int | None:
    r"""Where in `line` begins what its end cut off: a number, or the name of one; None when it is whole as far as can
    be told. `recent`: the lines or frames before it.

    >>> torn_at(b"step 9 loss 2.5012 tok/s 17", b"step 8 loss 2.6100 tok/s 17232\n")
    18
    >>> torn_at(b"step 9 loss 2.5012 tok/s", b"step 8 loss 2.6100 tok/s 17232\n")
    18
    """
    if len(line) > _MOST_BYTES:
        return None
    number_at = cut_number_at(line, recent)
    rest = line if number_at is None else line[:number_at]
    name_at = _name_at(rest, recent)
    return number_at if name_at is None or not rest[name_at:].strip() else name_at


def cut_number_at(line: bytes, recent: bytes) -> int | None:
    r"""Where in `line` the number begins that its end cut off; None when its end is whole as far as can be told.
    `recent`: the lines or frames before it.

    >>> cut_number_at(b"step 9 loss 2.5012 lr 3", b"step 8 loss 2.6100 lr 3e-4\n")
    22
    >>> cut_number_at(b"step 9 loss 2.5012 lr 3e-4", b"step 8 loss 2.6100 lr 3e-4\n")
    >>> cut_number_at(b"step 9 loss 2.", b"step 8 loss 2.6100 lr 3e-4\n")
    12
    """
    if len(line) > _MOST_BYTES:
        return None
    text = line[:-1] if line[-2:-1].isdigit() and line.endswith(b",") else line
    parts = _NUMBER.split(text)
    if len(parts) < 3 or parts[-1]:
        return None
    form = _form(parts[-2], b"")
    like = _forms_in_place(parts, recent)
    if not like or _is_one_of(form, like):
        return None
    at = len(text) - len(parts[-2])
    thousands = _THOUSANDS.search(line, max(0, at - 32), at)
    return at if thousands is None else thousands.start()


def _forms_in_place(parts: list[bytes], recent: bytes) -> list[_Form]:
    """How the lines before write the number at the place of the last of `parts`: texts and numbers in turn."""
    texts = [_plain(text) for text in parts[:-1:2]]
    at = len(parts) - 2
    same: list[_Form] = []
    alike: list[_Form] = []  # behind the same words, in a line that is otherwise different
    has_words = any(65 <= byte <= 122 for byte in texts[-1])
    for others in _split_lines(recent):
        if len(others) > at and [_plain(text) for text in others[:at:2]] == texts:
            same.append(_form_at(others, at))
        elif has_words and not same:
            places = range(1, len(others), 2)
            named = [place for place in places if _plain(others[place - 1]) == texts[-1]]
            alike += [_form_at(others, place) for place in named]
    return same or alike


def _name_at(text: bytes, recent: bytes) -> int | None:
    """Where the words at the end of `text` begin that are, or begin, the name of a number that is not there.

    They are that where the last line like this one has them between two numbers and ends with a number, so that names
    stand before their numbers. A unit before them belongs to the number before it.
    """
    *parts, end = _NUMBER.split(text)
    words = end.split()
    if not parts or not words or not end[:1].isspace():
        return None
    texts = [_plain(one) for one in parts[::2]]
    for others in reversed(list(_split_lines(recent))):
        if len(others) > len(parts) + 1 and [_plain(one) for one in others[: len(parts) : 2]] == texts:
            between = others[len(parts)]
            if others[-1].strip() or _SIGNS.search(between) or not _plain(between).startswith(b" ".join(words)):
                return None
            return len(text) - len(_after_unit(end, between.split()))
    return None


def _after_unit(end: bytes, between: list[bytes]) -> bytes:
    """`end` without a unit that it begins with, where `between`, the words that it is cut from, go on behind that."""
    from trainmon.tails.formats.pairs import is_unit  # for a log that ends so: other formats can do without it

    first, *_ = end.split()
    if len(between) > 1 and first == between[0] and is_unit(first.decode("utf-8", "replace")):
        return end[end.index(first) + len(first) :]
    return end


def _split_lines(recent: bytes) -> Iterator[list[bytes]]:
    """Each line or frame as texts and numbers in turn."""
    for line in recent.replace(b"\r", b"\n").split(b"\n"):
        yield _NUMBER.split(line[:_MOST_BYTES])


def _plain(text: bytes) -> bytes:
    return b" ".join(text.split())


def _form_at(parts: list[bytes], place: int) -> _Form:
    return _form(parts[place], b"".join(parts[place + 1 : place + 3]))


def _form(number: bytes, behind: bytes) -> _Form:
    mantissa, *exponent = _EXPONENT.split(number)
    whole, point, fraction = mantissa.partition(b".")
    glued = _GLUED.match(behind)
    return _Form(
        len(whole.lstrip(b"+-")),
        len(fraction) if point else -1,
        len(exponent[0].lstrip(b"+-")) if exponent else -1,
        glued.group() if glued is not None else b"",
    )


def _is_one_of(form: _Form, like: list[_Form]) -> bool:
    """Whether a number of `form` may be whole where the lines before write such as `like`."""
    kin = [one for one in like if one.exponent == form.exponent and one.glued == form.glued]
    if form.exponent >= 0:
        return bool(kin)
    fractions = [one.fraction for one in kin]
    if not kin or not min(fractions) <= form.fraction <= max(fractions):
        return False
    return form.fraction >= 0 or form.whole >= min(one.whole for one in kin if one.fraction < 0)
