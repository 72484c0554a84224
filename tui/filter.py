"""The filter language of the fleet list: ``llama state:failed or (step>1000 and not verdict:pass)``.

    filter  = or
    or      = and ("or" and)*
    and     = not (["and"] not)*            terms beside each other must all hold
    not     = ("not" | "-" | "!") not | term
    term    = "(" or ")" | field op value | word | "quoted words"
    op      = ":" (is, or begins with)  "="  "!="  ">"  ">="  "<"  "<="

A word is looked for in name, target, state, verdict and its reason. Numbers may end in k, M, G, T or %;
ages in s, m, h or d.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tui.row import ALIVE, ENDED, FAILED, Row

Predicate = Callable[[Row], bool]
_DEEPEST = 40
_LONGEST = 1000

_TOKEN = lazy(
    r"\s*(?:(?P<open>\()|(?P<close>\))"
    r"|(?P<test>[A-Za-z_/.]+(?:!=|>=|<=|[:=<>])(?:\"[^\"]*\"|[^\s()]*))"
    r"|(?P<minus>[-!](?=[^\s]))"
    r"|\"(?P<quoted>[^\"]*)\"?"
    r"|(?P<word>[^\s()\"]+))"
)
_TEST = lazy(r"([A-Za-z_/.]+)(!=|>=|<=|[:=<>])(.*)", re.DOTALL)
_NUMBER = lazy(r"([-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?)\s*([a-zA-Z%]*)$", re.IGNORECASE)
_SUFFIX = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "%": 0.01}
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ":": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}

NUMBERS: dict[str, Callable[[Row], float]] = {
    "step": lambda row: row.step,
    "total": lambda row: row.total,
    "progress": lambda row: row.progress,
    "loss": lambda row: row.loss,
    "z": lambda row: row.z,
    "tps": lambda row: row.tokens_per_second,
    "mem": lambda row: row.memory,
    "mfu": lambda row: row.mfu,
    "age": lambda row: row.age_s,
    "eta": lambda row: row.eta_s,
    "attempts": lambda row: float(len(row.run.attempts)),
    "alerts": lambda row: float(sum(not one.recovered for one in row.run.episodes)),
}
TEXTS: dict[str, Callable[[Row], tuple[str, ...]]] = {
    "name": lambda row: (row.run.name,),
    "target": lambda row: (row.run.target,),
    "state": lambda row: (row.run.state.value, *_state_groups(row)),
    "verdict": lambda row: (row.run.verdict.value, row.run.verdict.value.replace(" ", "").replace("/", "")),
    "kind": lambda row: tuple(one.kind for one in row.run.episodes),
    "signal": lambda row: tuple(one.signal.signal for one in row.run.episodes),
    "why": lambda row: (row.explained_by.id,) if row.explained_by else (),
}
_TIMES = ("age", "eta")


class FilterError(ValueError):
    """The text is no filter; the message says why, in one line."""


def _state_groups(row: Row) -> tuple[str, ...]:
    groups = (("failed", FAILED), ("ended", ENDED), ("alive", ALIVE))
    return tuple(name for name, members in groups if row.run.state in members)


def parse_filter(text: str) -> Predicate:
    """What `text` asks for; an empty text holds for every run. Raises FilterError.

    >>> parse_filter("step>")
    Traceback (most recent call last):
    trainmon.tui.filter.FilterError: step> needs a number
    """
    if len(text) > _LONGEST:
        raise FilterError(f"a filter may have {_LONGEST} characters")
    tokens = _tokens(text)
    if not tokens:
        return lambda _row: True
    parser = _Parser(tokens)
    predicate = parser.either(0)
    if parser.peek() is not None:
        raise FilterError("a ) without its (")
    return predicate


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def _tokens(text: str) -> list[_Token]:
    tokens = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:  # nothing but a lone quote can come here
            raise FilterError("a word cannot begin here: " + text[at : at + 10])
        kind = match.lastgroup or "quoted"
        value = match[kind] or ""
        if kind == "word" and value.lower() in ("and", "or", "not"):
            kind = value.lower()
        tokens.append(_Token(kind, value))
        at = match.end()
    return tokens


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.at = 0

    def peek(self) -> str | None:
        return self.tokens[self.at].kind if self.at < len(self.tokens) else None

    def either(self, depth: int) -> Predicate:
        parts = [self.both(depth)]
        while self.peek() == "or":
            self.at += 1
            parts.append(self.both(depth))
        return parts[0] if len(parts) == 1 else lambda row: any(part(row) for part in parts)

    def both(self, depth: int) -> Predicate:
        parts = [self.unless(depth)]
        while self.peek() not in (None, "or", "close"):
            if self.peek() == "and":
                self.at += 1
            parts.append(self.unless(depth))
        return parts[0] if len(parts) == 1 else lambda row: all(part(row) for part in parts)

    def unless(self, depth: int) -> Predicate:
        negated = False
        while self.peek() in ("not", "minus"):
            self.at += 1
            negated = not negated
        part = self.term(depth)
        return (lambda row: not part(row)) if negated else part

    def term(self, depth: int) -> Predicate:
        kind = self.peek()
        if kind in (None, "or", "and", "close"):
            raise FilterError("something is missing" + (" at the end" if kind is None else f" before {self._text()}"))
        token = self.tokens[self.at]
        self.at += 1
        if kind == "open":
            if depth >= _DEEPEST:
                raise FilterError("too many ( inside each other")
            inner = self.either(depth + 1)
            if self.peek() != "close":
                raise FilterError("a ( without its )")
            self.at += 1
            return inner
        if kind == "test":
            return _test(token.text)
        return _word(token.text)

    def _text(self) -> str:
        return self.tokens[self.at].text


def _word(text: str) -> Predicate:
    wanted = text.lower()

    def holds(row: Row) -> bool:
        run = row.run
        places = (run.name, run.target, run.state.value, run.verdict.value, run.verdict_reason, *_state_groups(row))
        return any(wanted in place.lower() for place in places)

    return holds


def _test(text: str) -> Predicate:
    match = _TEST.match(text)
    assert match is not None
    field, op, value = match[1].lower(), match[2], match[3].strip('"')
    if field in NUMBERS:
        return _compare(field, op, value)
    if field in TEXTS:
        if op not in (":", "=", "!="):
            raise FilterError(f"{field} is a word: write {field}:{value or '...'}")
        return _match(field, op, value)
    raise FilterError(f"no field {field}; there are {', '.join((*TEXTS, *NUMBERS))}")


def _match(field: str, op: str, value: str) -> Predicate:
    read, wanted = TEXTS[field], value.lower()
    if op == ":" and field in ("name", "target"):
        return lambda row: any(wanted in text.lower() for text in read(row))
    if op == ":":
        return lambda row: any(text.lower().startswith(wanted) for text in read(row))
    return lambda row: any(text.lower() == wanted for text in read(row)) != (op == "!=")


def _compare(field: str, op: str, value: str) -> Predicate:
    match = _NUMBER.match(value)
    units = _SECONDS if field in _TIMES else _SUFFIX
    if match is None or match[2] not in units:
        raise FilterError(f"{field}{op}{value} is no number" if value else f"{field}{op} needs a number")
    limit, read, holds = float(match[1]) * units[match[2]], NUMBERS[field], _COMPARE[op]

    def test(row: Row) -> bool:
        known = read(row)
        return not math.isnan(known) and holds(known, limit)

    return test
