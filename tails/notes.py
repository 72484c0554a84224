"""What a log says in words: failures, signals, the scheduler's messages, checkpoints, overflow, start and end."""

from __future__ import annotations

import re
from dataclasses import replace

from trainmon.tails.death_rules import CAUGHT, EXCEPTION, EXCEPTION_TOKENS, WENT_ON
from trainmon.tails.last_words import LastWords
from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.logpane import MILD
from trainmon.tails.note_rules import RULES, TOKENS
from trainmon.tails.prefix import NO_PREFIX, Prefix, read_prefix
from trainmon.tails.record import Note, NoteKind
from trainmon.tails.rule import Rule
from trainmon.tails.text import strip_escapes
from trainmon.tails.token_groups import TokenGroups
from trainmon.tails.traceback import Trace, Tracebacks

__all__ = ["TOKENS", "NoteScanner"]

_K = NoteKind
_MAX_TEXT = 500
_MAX_LINE = 20_000
_TABLE_ROW = lazy(r"\s*[\"']?[\w.-]+[\"']?\s*(?:\.{4,}|[:=]\s+(?:true|false|none|null|\d+),?\s*$)", re.IGNORECASE)
_SOURCE_LINE = lazy(r"\s*(?:raise |return |print\w*\(|log\w*\.|warnings\.|def |if |assert |f?['\"]|File \"|#)")
_STEP = lazy(r"\b(?:global_?step|step|iteration|iter|checkpoint|ckpt|epoch_step)[-_ =:#]*(\d+)", re.IGNORECASE)
_UPDATES = lazy(r"[(@ ](\d{1,11}) (?:updates|steps|iterations)\b", re.IGNORECASE)
_NUMBERED = lazy(r"(?<=[/_-])0*(\d{3,11})(?=[./_-]|\b)")
_NOT_CAUSES = lazy(
    r"ChildFailedError|CalledProcessError|PythonFinalizationError|SystemExit|ProcessExitedException|BrokenPipeError"
    r"|Python is likely shutting down"
)
# Kinds of which one a step is enough, and how many lines apart two are still the same event told by another rank.
_ONCE = {_K.CHECKPOINT_SAVED: 10_000, _K.RESUMED: 1000, _K.FINISHED: 1000, _K.LAUNCH: 100}
# Behind one of these the same event is another start's, though it comes soon and at the same step.
_ENDS = frozenset(
    {_K.ERROR, _K.TRACEBACK, _K.CUDA_OOM, _K.HOST_OOM, _K.SEGFAULT, _K.SIGKILL, _K.SIGTERM, _K.NCCL_TIMEOUT, _K.XID}
)
_RULE_TOKENS = TokenGroups(
    [[token.encode() for token in tokens] for tokens in (*(rule.tokens for rule in RULES), EXCEPTION_TOKENS)]
)
_RULES = tuple((rule, 1 << place) for place, rule in enumerate(RULES))
_EXCEPTIONS = 1 << len(RULES)
_CAUGHT_WITHIN = 3  # lines from what says that the program goes on to the traceback, among which others may write
_HARMLESS_AS_WARNING = frozenset({_K.ERROR, _K.CUDA_OOM})


class NoteScanner:
    """Finds the notes of one file. `step` is given by the caller: the newest step seen. `line_before`: of a line that
    begins a traceback, the one before it."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.line_before = b""
        self._traces = Tracebacks()
        self._last_words = LastWords(source)
        self._caught: tuple[str, int] = ("", -9)  # the rank and line of what last said that the program goes on
        self._newest: dict[NoteKind, tuple[float | None, int]] = {}
        self._headed: tuple[Note, str] | None = (
            None  # an error that ends in a colon and its rank: what it is comes below
        )

    @property
    def is_open(self) -> bool:
        """Whether every next line must be seen: a traceback is open, or what is wrong stands on the next one."""
        return self._traces.is_open or self._headed is not None

    def scan(self, text: str, prefix: Prefix, line_no: int, offset: int, step: float | None) -> list[Note]:
        """The notes of one line; `text` is what follows its prefix.

        A traceback that a logger prints as a warning was survived, and is no note. An error that ends in a colon
        (``thread 'main' panicked at src/main.rs:12:5:``) is given with the line below it, which tells what is wrong.
        """
        headed, self._headed = self._headed, None
        notes = self._notes_of(text, prefix, line_no, offset, step)
        if headed is not None:
            notes = _below(*headed, text, prefix, notes)
        newest = notes[-1] if notes else None
        is_heading = (
            newest is not None and newest.line_no == line_no and newest.kind is _K.ERROR and not newest.teardown
        )
        if newest is not None and is_heading and newest.text.endswith(":") and text.rstrip().endswith(":"):
            self._headed = (notes.pop(), prefix.rank)
        return notes

    def _notes_of(self, text: str, prefix: Prefix, line_no: int, offset: int, step: float | None) -> list[Note]:
        notes: list[Note] = []
        is_traced = self._traces.holds(prefix.rank, line_no)
        if not prefix.is_warning:
            is_caught = "Traceback (most" in text and (
                _is_caught(self.line_before, prefix.rank)
                or (self._caught[0] == prefix.rank and line_no - self._caught[1] <= _CAUGHT_WITHIN)
            )
            for trace in self._traces.feed(text, prefix.rank, line_no, offset, is_caught=is_caught):
                notes += self._of_trace(trace, prefix, step)
        if notes:
            self._newest.clear()
        if not is_traced and CAUGHT.search(text[:_MAX_TEXT]) is not None:
            self._caught = (prefix.rank, line_no)
        if len(text) > _MAX_LINE or _TABLE_ROW.match(text) or _SOURCE_LINE.match(text):
            return notes
        heard = _RULE_TOKENS.of(text.lower().encode("utf-8", "replace"))
        seen: set[NoteKind] = set()
        for rule, bit in _RULES if heard else ():
            if rule.kind in seen or not heard & bit:
                continue
            match = rule.pattern.search(text)
            if match is None or (rule.unless is not None and rule.unless.search(text) is not None):
                continue
            seen.add(rule.kind)
            note = self._note(rule, text, match.start(), prefix, line_no, offset, step)
            if note.kind is _K.LAUNCH and self._traces.is_open:  # another start: what was being told is over
                told = [one for trace in self._traces.flush() for one in self._of_trace(trace, prefix, step)]
                notes = told + notes
                self._newest.clear()
            if note.kind in _ENDS and not note.teardown:
                self._newest.clear()
            if not self._is_repeated(note):
                notes.append(note)
        if seen <= MILD and (
            prefix.is_fatal or (heard & _EXCEPTIONS and not is_traced and _is_exception(text, prefix))
        ):
            words = text[:_MAX_TEXT].strip()
            teardown = _NOT_CAUSES.search(words) is not None
            notes.append(
                Note(self.source, line_no, offset, _K.ERROR, words, step, prefix.time, prefix.time_kind, teardown)
            )
        return self._with_last_words(notes, text, prefix, line_no, offset, step)

    def _with_last_words(
        self, notes: list[Note], text: str, prefix: Prefix, line_no: int, offset: int, step: float | None
    ) -> list[Note]:
        """`notes`, and before an end that names no cause what was last said to be an error."""
        ends = [note for note in notes if note.kind in _ENDS]
        if not ends:
            if not notes and not self.is_open:
                self._last_words.hear(text, prefix, line_no, offset, step)
            return notes
        said = self._last_words.before(line_no, step) if all(note.teardown for note in ends) else None
        self._last_words.forget()
        return [said, *notes] if said is not None else notes

    def _note(
        self, rule: Rule, text: str, at: int, prefix: Prefix, line_no: int, offset: int, step: float | None
    ) -> Note:
        start = max(0, at - 200) if len(text) > _MAX_TEXT else 0
        words = text[start : start + _MAX_TEXT].strip()
        if rule.kind in (_K.CHECKPOINT_SAVED, _K.RESUMED):
            named = _named_step(text)
            step = named if named is not None else step
        teardown = rule.teardown or (prefix.is_warning and rule.kind in _HARMLESS_AS_WARNING)
        return Note(self.source, line_no, offset, rule.kind, words, step, prefix.time, prefix.time_kind, teardown)

    def _is_repeated(self, note: Note) -> bool:
        """Whether each rank, or each part of a checkpoint, tells of the same event again."""
        if note.kind not in _ONCE:
            return False
        last = self._newest.get(note.kind)
        self._newest[note.kind] = (note.step, note.line_no)
        return last is not None and last[0] == note.step and note.line_no - last[1] <= _ONCE[note.kind]

    def _of_trace(self, trace: Trace, prefix: Prefix, step: float | None) -> list[Note]:
        cause = trace.cause
        if not cause:
            return []
        teardown = trace.is_ignored or _NOT_CAUSES.search(cause) is not None
        return [
            Note(
                self.source,
                trace.line_no,
                trace.offset,
                _K.TRACEBACK,
                cause[:_MAX_TEXT],
                step,
                prefix.time,
                prefix.time_kind,
                teardown,
            )
        ]

    def flush(self, step: float | None) -> list[Note]:
        """The notes of what is still open."""
        headed, self._headed = self._headed, None
        notes = [headed[0]] if headed is not None else []
        for trace in self._traces.flush():
            notes += self._of_trace(trace, NO_PREFIX, step)
        return notes


def _below(note: Note, rank: str, text: str, prefix: Prefix, notes: list[Note]) -> list[Note]:
    """`note`, which ends in a colon, with the words of the line below it, and what else was noted there."""
    words = text.strip()
    if prefix.rank != rank or not words or prefix.is_warning:
        return [note, *notes]
    told = [one for one in notes if one.line_no > note.line_no and one.kind in _ENDS and one.kind is not _K.TRACEBACK]
    kind = told[0].kind if told else note.kind
    whole = replace(note, text=f"{note.text} {words}"[:_MAX_TEXT], kind=kind)
    return [whole, *(one for one in notes if one not in told)]


def _is_caught(before: bytes, rank: str) -> bool:
    """Whether the line before a traceback says that the program goes on: a logger prints the exception that it warns of
    below its own line, without a prefix."""
    if not before:
        return False
    text = strip_escapes(before[-_MAX_TEXT:].decode("utf-8", "replace"))
    prefix = read_prefix(text)
    return prefix.rank == rank and (prefix.is_warning or CAUGHT.search(text, prefix.at) is not None)


def _is_exception(text: str, prefix: Prefix) -> bool:
    """Whether a line is an exception as Python prints it, where no traceback is open that it could belong to.

    Not one that a logger only warns of, nor one of a program that says that it goes on; and a bare name behind a bullet
    is an entry of a list.
    """
    if prefix.is_warning:
        return False
    match = EXCEPTION.match(text)
    if match is None or WENT_ON.search(text) is not None:
        return False
    return match.end("name") < len(text.rstrip()) or not prefix.at or bool(prefix.rank) or prefix.time is not None


def _named_step(text: str) -> float | None:
    """The step that a checkpoint's message or path names."""
    match = _UPDATES.search(text) or _STEP.search(text)
    if match is not None:
        return float(match[1]) if len(match[1]) < 12 else None
    numbered = _NUMBERED.findall(text)
    return float(numbered[-1]) if numbered else None
