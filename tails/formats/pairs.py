"""Key and value pairs of a text line, whatever stands between them: ``loss: 2.1 | lr 1e-4, dt: 401.77ms``.

The key of a number is the text between the value before it and itself. So one reader serves ``key value``,
``key=value`` and ``key: value``, joined by ``|``, ``,``, `` - ``, tabs or spaces.
"""

from __future__ import annotations

import re
from dataclasses import field
from functools import lru_cache

from trainmon.tails.formats.numbers import NUMBER
from trainmon.tails.formats.values_first import values_first
from trainmon.tails.quick_dataclass import dataclass

# What looks like a number and is none: clocks, dates, versions, addresses, hexadecimal ids.
_NOT_A_VALUE = (
    r"\d+ days?\b(?:, \d+:\d\d:\d\d)?|(?:\d+ ?d(?:ays?)?,? ?)?\d+ ?h"
    r"(?:rs?|ours?)?,? ?\d+ ?m(?:ins?)?(?:,? ?\d+ ?s(?:ecs?)?)?\b"
    r"|\d+ ?m(?:in)? ?\d+ ?s(?:ec)?\b|\d+(?::\d\d)+(?:[.,]\d+)?|\d{4}-\d\d-\d\d|\d+\.\d+\.\d+[\w.]*|0x[0-9a-fA-F]+"
)
_NO_VALUE = (
    r"(?:(?<=[:=])|(?<=[:=] )|(?<=[:=]  ))--?(?=[,|;)\]]|$| (?! {0,4}[-+.\d]))|(?<=[a-z] )--?(?=\s{0,4}(?:[|,;)\]%]|$))"
)
_TOKEN = re.compile(
    rf"(?:(?<![\w.@#])|(?<=\A[@#]))(?<!\w[-+])(?<!cuda:)(?<![nx]pu:)(?:(?P<other>{_NOT_A_VALUE})|(?P<number>{NUMBER}|{_NO_VALUE}))"
)
_GLUED = re.compile(r"(?:%|[A-Za-zµ]\w*)(?:/[A-Za-z]\w*)*")
_SPACED = re.compile(r" ([A-Za-z%µ][\w%/µ]*)(?![\w:=/%]| ?[:=])")
_NUMBER_SIGN = re.compile(r"\b(step|iter|iteration|update|epoch|batch)([ :]{0,2})#(?=\d)", re.IGNORECASE)
_PER_SECOND = re.compile(r"/s(?:ec)?(?:/[a-z]{1,12})?(?![\w/])")  # 3400/s, of what is not said
# What makes a number a part of something else, where it stands right behind: 1.#X, 2^8, 1.5*10, 2.5×10.
_PART_OF_MORE = re.compile(r"(?:[#$@^&]\w|\*\*?\d|[×·x]\s?10(?:\^|\*\*|[⁻⁰-⁹¹²³]))\S*")
_UNIT = re.compile(
    r"(?:[mµun]?s|secs?|seconds?|milliseconds|mins?|minutes|m|h|hrs?|hours|%|z|x|W|C|k|K|M|B|G|T|[KMGT]i?[bB]|MHz|GHz"
    r"|[KMGTP]?(?:FLOPs?|FLOPS|flops|flop)(?:/(?:s|sec|GPU|gpu|device|chip))*"
    r"|(?:k|K|M)?(?:tok|toks|tokens?|samples?|it|iter|examples?|img|images|batch(?:es)?|steps?|ex|seqs?|sequences?|records?|rows?|frames?)"
    r"(?:/\w+)+|(?:s|ms|secs?)/(?:it|iter|step|batch)|tps|[KMGT]i?B/s)"
)
# Separators that end the text of the key before.
_CUT = re.compile(r"[|;\t{}]|(?:\.\.\.|…) |, |,(?=[A-Za-z])| [-–—] | {2,}")
_TRIM = " \t,;:=<>|-–—→⇒➜*#'\"[]{}~≈\\"
_NUMBER_AHEAD = re.compile(rf" +(?:{NUMBER})(?= |$)")
_KEYS_FIRST = re.compile(r"\s*[A-Za-z_][^:=|]*\d\s*")  # words and numbers in turn, and a number at the end
_WORDS = re.compile(r"[ \t]*([A-Za-z][\w/%]*(?: [A-Za-z][\w/%]*){0,3})\s*(?=$|[|,;\t])")
_KEY_AHEAD = re.compile(r" [A-Za-z][\w ]{0,60}[:=]")
_WORD_VALUE = re.compile(r"[\w\]]=(?:\"[^\"]*\"|'[^']*'|[^\s\"'=]+)\s+")  # ``msg="train step" step=``
_WRAPPER = re.compile(
    r"\s*[=:]?\s*\b(?:[tT]ensor|(?:Device)?[aA]rray|(?:jnp|np|numpy|torch)\.\w+)$"
)  # loss=tensor(2.5, ...)
_AT_STEP = re.compile(
    r"(?P<what>.*\S)\s+(?:at|after|for|@)\s+(?:the\s+)?(?P<step>(?:global[ _])?(?:step|iter(?:ation)?|update|epoch))",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"\.(?:\s|$)")
_IS = frozenset({":", "=", "is", "was", "->", "=>", "-", "–"})
# "After 10 steps: loss 2.5", "10 steps | loss 2.5": the word behind the number tells what it counts.
_COUNTED_STEPS = re.compile(
    r" ?(?:(?:training|train|optimi[sz]er|global) )?(steps?|iterations?|iters?|updates?)(?=\s*[:,|)—–-]|$)", re.I
)
_BEFORE_COUNT = frozenset({"", "after", "at", "completed", "done", "finished"})
# "Train Metrics (step 100) - loss: 2.5"
_STEP_ALONE = re.compile(r"(?:global[ _]?)?(?:step|iter(?:ation)?|update)", re.IGNORECASE)
# "completed (loss: 2.5)": no group of its own, as "lr(adamw: 1e-3)" is
_ASIDE = re.compile(r"(?:[a-z]+[ _])?(?:loss|lr|acc|accuracy|ppl|perplexity|reward)", re.IGNORECASE)
_DEFAULT = re.compile(r"(\w+)=\{\s{0,4}['\"](?:\d+_)?default['\"]?$")  # grad_norm={'0_default': 1.5}
# "the training loss is", "with loss"
_FILLERS = re.compile(r"^(?:the|with|a|an|and|current|our)\s+|\s+(?:is|was|of|at|to|now)$", re.IGNORECASE)
_ENDED = re.compile(
    r"(?: ?[\w]{1,20}/[\w]{1,20})?\. +"
)  # the value before ended a sentence: "447.2 records/second. Loss is"
_ABBREVIATION = re.compile(r"\b[A-Za-z]{1,4}\. (?=[A-Za-z])")  # Grad. Norm
_MULTIPLIERS = frozenset("kKMGT")
_COUNTED = re.compile(r"tok|param|flop", re.IGNORECASE)
_PARENTHESES = re.compile(r"\([^()]{0,100}\)")
MOST_PAIRS = 4000  # a line of more is no record
_MAX_KEY = 60
_MAX_WORDS = 8


@dataclass(slots=True)
class Pair:
    """One value. `start` and `end` bound its digits in the text; `key` carries its unit, ``dt (ms)``.

    `name` is the key without the unit. `prose` marks a value whose text before it reads like a sentence: kept
    for the shape of the line, never a metric. `slash` bounds the number behind a slash, ``29`` of ``28/29``.
    """

    key: str
    name: str
    start: int
    end: int
    prose: bool = False
    slash: tuple[int, int] | None = None


@dataclass(slots=True)
class Scan:
    """All values of a line, and the spans of number-like text that is no value (times, versions)."""

    pairs: list[Pair] = field(default_factory=list)
    others: list[tuple[int, int]] = field(default_factory=list)


def is_unit(word: str) -> bool:
    """Whether `word` is a unit that may stand behind a number: ``ms``, ``tok/s``."""
    return _UNIT.fullmatch(word) is not None


def _unit_at(text: str, end: int, *, keys_first: bool) -> tuple[str, int, bool]:
    """Unit behind a number that ends at `end`, where the unit (or the word) ends, and whether it is a word's part.

    In a line of `keys_first` (``lr 1e-4 tok/s 123``) what stands between two numbers is the second one's key.
    """
    if (match := _PER_SECOND.match(text, end)) is not None:
        return match.group(), match.end(), False
    if (match := _PART_OF_MORE.match(text, end)) is not None:
        return "", match.end(), True
    match = _GLUED.match(text, end)
    if match is not None:
        word = match.group().rstrip("./")
        if _UNIT.fullmatch(word):
            return word, end + len(word), False
        return "", end, True
    if text[end : end + 1] in ("-", "_") and text[end + 1 : end + 2].isalnum():
        return "", end, True
    match = _SPACED.match(text, end)
    is_unit = match is not None and _UNIT.fullmatch(match.group(1)) is not None
    if match is not None and is_unit and not (keys_first and _NUMBER_AHEAD.match(text, match.end())):
        return match.group(1), match.end(), False
    return "", end, False


@lru_cache(maxsize=4096)
def _key_before(gap: str) -> tuple[str, bool]:
    """The key in the text before a number, and whether that text is prose rather than a key."""
    inner = gap.removeprefix("('").removeprefix('("').rstrip(_TRIM)  # a tuple, as Python 2 prints several values
    ended = _ENDED.match(inner)
    cut = ended.end() if ended is not None else 0
    for match in _CUT.finditer(inner):
        cut = match.end()
    for match in _WORD_VALUE.finditer(inner, cut):
        cut = match.end()
    default = _DEFAULT.search(inner, max(0, len(inner) - 100))
    if default is not None:
        return default[1], False
    key = _without_symbols(inner[cut:].strip(_TRIM)).removeprefix("/ ")  # "Epoch 0 / Step 10"
    for closing, opening in ((")", "("), ("]", "[")):  # what a bracket closes belongs to what is before
        head, bracket, behind = key.partition(opening)
        if closing in head:
            key = (head.rpartition(closing)[2] + bracket + behind).strip(_TRIM)
    if ": " in key:  # "validation: loss=2.5"
        key = key.rpartition(": ")[2].strip(_TRIM)
    if "[" in key and gap.rfind("[") > gap.rfind("]"):  # "tot_loss[loss=", which goes on behind the value
        group, _, name = key.rpartition("[")
        key = group.strip(_TRIM) if group.lower().endswith(name.lower()) else name.strip(_TRIM)
    key = _FILLERS.sub("", _FILLERS.sub("", key)) if len(key) <= 2 * _MAX_KEY else key
    is_sentence = ". " in key and ". " in _ABBREVIATION.sub("", key)
    prose = len(key) > _MAX_KEY or key.count(" ") >= _MAX_WORDS or is_sentence or "--" in gap
    prose = (
        prose or "://" in key or "::" in key or gap.rstrip().endswith("==")
    )  # an address, a test's name, a comparison
    return key, prose


def _without_symbols(key: str) -> str:
    """`key` without the emoji or bullets before it; ``∇`` and its like are names."""
    at = 0
    while at < len(key) and (
        key[at] == " " or (key[at] > "\u2000" and not key[at].isalnum() and not _is_operator(key[at]))
    ):
        at += 1
    return key[at:]


def _is_operator(char: str) -> bool:
    return "\u2200" <= char <= "\u22ff"


def _key_behind(text: str, unit: str, end: int) -> tuple[str, int]:
    """Key of a number that has none before it, from the words behind it: ``37.6% bf16 MFU |``, ``3589 ms |``."""
    match = _WORDS.match(text, end)
    if match is None:
        return unit, end
    words = match.group(1)
    return (f"{words} ({unit})" if unit else words), match.end(1)


class _Scanner:
    """The state of one pass over a line."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.keys_first = _KEYS_FIRST.fullmatch(text) is not None
        self.out = Scan()
        self.last_end = 0
        self.run: list[tuple[int, int, str]] = []  # the values of ``a/b/c`` behind one key
        self.group = ""  # ``lr`` while inside ``lr(adamw:4e-2, muon:7e-3)``

    def scan(self) -> Scan:
        text = self.text
        position = 0
        while (match := _TOKEN.search(text, position)) is not None:
            start, end = match.span()
            if len(self.out.pairs) + len(self.out.others) > MOST_PAIRS:
                break
            if match.lastgroup == "other":
                self._close_run()
                self.out.others.append((start, end))
                position = self.last_end = end
                continue
            unit, unit_end, is_word = _unit_at(text, end, keys_first=self.keys_first)
            if unit_end == end + 1 and self._is_multiplier(unit, start):
                end = unit_end
                unit, unit_end, is_word = _unit_at(text, end, keys_first=self.keys_first)
            if is_word or (text[start].isalpha() and not self._stands_alone(start, end, unit)):
                position = max(unit_end, start + 1)
                continue
            self.last_end = position = self._value(start, end, unit, unit_end)
        self._close_run()
        return self.out

    def _is_multiplier(self, unit: str, start: int) -> bool:
        """Whether the letter behind a number belongs to it, as in ``43.1K``."""
        return unit in _MULTIPLIERS or (unit == "B" and _COUNTED.search(self.text, self.last_end, start) is not None)

    def _stands_alone(self, start: int, end: int, unit: str) -> bool:
        """Whether a word such as ``nan`` or ``None`` stands where a value would."""
        text = self.text
        before = text[max(0, start - 1) : start]
        behind = text[end : end + 1]
        if before and before not in " :=(/|,\t[":
            return False
        if not unit and behind and behind not in " ,;|)]/}\t%(" and not _SENTENCE_END.match(text, end):
            return False
        # "number of nan iterations: 0": the word belongs to the key of the number behind it
        is_marked = text[max(0, start - 12) : start].rstrip()[-1:] in tuple(":=(/|,[")
        return is_marked or _KEY_AHEAD.match(text, end) is None

    def _value(self, start: int, end: int, unit: str, unit_end: int) -> int:
        pairs = self.out.pairs
        gap = self.text[self.last_end : start]
        stripped = gap.strip()
        if stripped in ("/", "of") and self.run:
            self.run.append((start, end, unit))
            return unit_end
        if stripped == "=" and len(self.run) > 1:  # 2497/10042=0.2487
            self.out.others += [span[:2] for span in self.run]
            self.run = []
            pairs[-1].start, pairs[-1].end = start, end
            return unit_end
        in_parentheses = stripped == "(" and bool(self.run)
        self._close_run()
        if in_parentheses and pairs:
            name = pairs[-1].name
            key = f"{name} (%)" if unit == "%" else unit if "/" in unit else f"{name} {unit or 'avg'}"
            pairs.append(Pair(key, key, start, end, pairs[-1].prose))
        else:
            unit_end = self._pair(gap, start, end, unit, unit_end)
        self.run = [(start, end, unit)]
        return unit_end

    def _pair(self, gap: str, start: int, end: int, unit: str, unit_end: int) -> int:
        before = self.out.pairs[-1] if self.out.pairs else None
        is_named = before is not None and len(before.name) <= 2 * _MAX_KEY and gap.strip() in _IS
        match = _AT_STEP.fullmatch(before.name) if before is not None and is_named else None
        if match is not None and before is not None:  # "loss at step 10: 2.5"
            before.key = before.name = match["step"]
            before.prose = False
            self.out.pairs.append(Pair(match["what"], match["what"], start, end))
            return unit_end
        if (wrapped := gap.rstrip()).endswith("("):  # "loss: tensor(2.5"
            inner = _WRAPPER.sub("", wrapped[:-1])
            gap = f"{inner} " if inner != wrapped[:-1] else gap
        name, prose = _key_before(gap)
        if not unit and name.lower() in _BEFORE_COUNT and (counted := _COUNTED_STEPS.match(self.text, end)) is not None:
            self.group = ""
            self.out.pairs.append(Pair("step", "step", start, end))
            return counted.end()
        if gap.rstrip().endswith("(") and len(name) <= 2 * _MAX_KEY:
            name = _WRAPPER.sub("", name.rstrip("( "))
        if "(" in name and ")" not in name[name.rindex("(") :]:
            group, _, inner = name.rpartition("(")
            self.group, name = group.strip(), inner.strip()
            if not name:
                self.group, name = "", group.strip()
            elif _STEP_ALONE.fullmatch(name) or (_ASIDE.fullmatch(name) and gap.rstrip().find(" (") >= 0):
                self.group = ""
        elif ")" in gap or "|" in gap or not name:
            self.group = ""
        if self.group:
            name = f"{self.group}({name})"
        if name:
            key = f"{name} ({unit})" if unit else name
        else:
            key, unit_end = _key_behind(self.text, unit, unit_end)
            name = key
        self.out.pairs.append(Pair(key, name, start, end, prose))
        return unit_end

    def _close_run(self) -> None:
        """Gives the values behind slashes their keys: a total, an average, or one part of the key each."""
        run, self.run = self.run, []
        if len(run) < 2:
            return
        pairs = self.out.pairs
        first = pairs[-1]
        parts = _PARENTHESES.sub("", first.name).strip().split("/")
        if len(parts) == len(run) and all(parts):
            head = parts[0].rpartition(" ")[0]
            pairs.pop()
            for part, (start, end, unit) in zip(parts, run, strict=True):
                name = part.strip() if part is parts[0] or not head else f"{head} {part.strip()}"
                pairs.append(Pair(f"{name} ({unit})" if unit else name, name, start, end, first.prose))
            return
        if len(run) == 2:
            first.slash = run[1][:2]
            return
        self.out.others += [span[:2] for span in run[1:]]


def scan(text: str) -> Scan:
    """All pairs of `text`, in order.

    >>> def show(text):
    ...     for pair in scan(text).pairs:
    ...         print(pair.key, "=", text[pair.start : pair.end], end="; ")
    >>> show("step 5/9 (2%) | loss: 2.5 (2.6) | dt: 4.1ms | 37.6% bf16 MFU")
    step = 5; step (%) = 2; loss = 2.5; loss avg = 2.6; dt (ms) = 4.1; bf16 MFU (%) = 37.6;...
    >>> show("memory:  7.12GiB(22.71%) lr(adamw:4.344e-02, muon:7.567e-03) eta 1:20:03")
    memory (GiB) = 7.12; memory (%) = 22.71; lr(adamw) = 4.344e-02; lr(muon) = 7.567e-03;...
    >>> show("train loss at step 10: 2.5")
    step = 10; train loss = 2.5;...
    """
    if "#" in text:
        text = _NUMBER_SIGN.sub(r"\1\2 ", text)  # "update #12": as long as before, so that places stay
    if "`" in text:
        text = text.replace("`", " ")
    if "... (" in text:
        text = text.replace("... (", ":    ")  # Step... (10 | Loss: 2.5)
    turned = values_first(text)
    if turned is None:
        return _Scanner(text).scan()
    out = _Scanner(text[: turned.start]).scan()
    out.pairs += [Pair(*_with_unit(key), start, end) for key, start, end in turned.values]
    if turned.step is not None:
        others = [pair for pair in out.pairs if pair.start != turned.step[0]]
        out.pairs = [Pair("step", "step", *turned.step), *others]
    return out


def _with_unit(words: str) -> tuple[str, str]:
    """Key and name of a value that these words stand behind: ``tok/s`` is a unit, ``loss`` a name."""
    first, _, rest = words.partition(" ")
    return (f"{rest} ({first})", rest) if rest and _UNIT.fullmatch(first) else (words, words)
