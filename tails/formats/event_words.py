"""What a record that tells of an event says in words, wherever in it they stand, judged as a line of text is."""

from __future__ import annotations

import re
from collections.abc import Mapping

from trainmon.tails.logpane import MILD
from trainmon.tails.notes import NoteScanner
from trainmon.tails.prefix import read_prefix
from trainmon.tails.record import Note, NoteKind

_MESSAGE_KEYS = ("error", "exception", "message", "msg", "reason", "text", "traceback", "path", "checkpoint")
_CLASS_KEYS = ("type", "error_type", "exception_type", "exc_type", "name", "class", "kind")
_CLASS = re.compile(r"[\w.]{1,100}(?:Error|Exception|Exit|Interrupt)")
_ENDINGS = frozenset(NoteKind) - MILD - {NoteKind.ERROR, NoteKind.TRACEBACK}  # what tells more than that it failed


def message_in(texts: Mapping[str, str]) -> str:
    """The message among `texts`, the outermost of the likeliest name; "" without one.

    >>> message_in({"type": "error", "data/message": "disk is full"})
    'disk is full'
    >>> message_in({"event": "crash", "error/type": "KeyError", "error/message": "'x'"})
    "KeyError: 'x'"
    """
    places = sorted(texts, key=lambda key: key.count("/"))
    for name in _MESSAGE_KEYS:
        key = next((key for key in places if key.rpartition("/")[2].lower() == name), None)
        if key is not None and texts[key].strip():
            return _with_class(texts, key)
    return ""


def _with_class(texts: Mapping[str, str], key: str) -> str:
    """The text of `key` behind the name of the exception that stands beside it."""
    group, text = key.rpartition("/")[0], texts[key]
    beside = (texts.get(f"{group}/{name}" if group else name, "") for name in _CLASS_KEYS)
    found = next((name for name in beside if _CLASS.fullmatch(name)), None)
    return text if found is None or found in text else f"{found}: {text}"


def judged(words: str) -> tuple[NoteKind, str, bool]:
    """What an error of these words is: its kind, the words to show, and whether it is the noise of an end.

    >>> judged("CUDA out of memory. Tried to allocate 1.00 GiB")[0].value, judged("shard 12 is truncated")[0].value
    ('cuda_oom', 'error')
    """
    scanner = NoteScanner("")
    notes: list[Note] = []
    for number, line in enumerate(words.splitlines(), 1):
        prefix = read_prefix(line)
        notes += scanner.scan(line[prefix.at :], prefix, number, 0, None)
    notes += scanner.flush(None)
    endings = [note for note in notes if note.kind in _ENDINGS]
    told = next((note for note in endings if not note.teardown), None)
    cause = next((note for note in notes if note.kind is NoteKind.TRACEBACK), None)
    shown = words if cause is None else cause.text
    is_noise = bool(notes) and all(note.teardown for note in notes)
    return (NoteKind.ERROR if told is None else told.kind), shown, is_noise
