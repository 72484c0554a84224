"""Log text made safe to show: control sequences and invisible characters are shown, never obeyed."""

from __future__ import annotations

from trainmon.tails.lazy_pattern import lazy

_ESCAPES = lazy(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colour, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC strings
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
# C0 (but tab), DEL, C1, bidirectional controls, zero-width and invisible characters (what Unicode calls ignorable by
# default, but for the two that choose between a sign and its picture), line separators, BOM, surrogates, tags, formats
# of scripts and of music, and the noncharacters that no XML may hold.
UNPRINTABLE = lazy(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_FORMULA = ("=", "+", "-", "@")  # how one begins


def strip_escapes(text: str) -> str:
    r"""`text` without terminal control sequences.

    >>> strip_escapes("\x1b[31mstep: 27\x1b[0m")
    'step: 27'
    """
    return _ESCAPES.sub("", text) if "\x1b" in text or "\x9b" in text else text


def printable(text: str, limit: int = 2000) -> str:
    r"""`text` as one line that a terminal can only show: sequences dropped, other controls as ``\xNN``.

    >>> printable("loss\x07 1.5\t\u202eok")
    'loss\\x07 1.5 \\u202eok'
    """
    if text.isascii() and text.isprintable() and len(text) <= limit:
        return text
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    plain = strip_escapes(cut).replace("\t", " ").rstrip("\r\n")
    return UNPRINTABLE.sub(lambda match: _escape(match.group()), plain)


def table_cell(text: str) -> str:
    """`text` as a word in a table that somebody may open in a spreadsheet: what would be a formula there is none.

    >>> table_cell("=cmd|' /C calc'!A0"), table_cell("run-1")
    ("'=cmd|' /C calc'!A0", 'run-1')
    """
    plain = printable(text)
    return f"'{plain}" if plain.lstrip()[:1] in _FORMULA else plain


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
