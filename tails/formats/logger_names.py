"""Words that a logger puts bare before every record: ``trainer step=5 loss=2.5``, ``my.pkg.train Training step 5``.

Nothing fences such a name off, so one line alone does not tell it from a part of the key (``micro step 5``). That the
same words stand before steps that go on, in lines that are no records otherwise, does.
"""

from __future__ import annotations

import re
from dataclasses import replace

from trainmon.tails.formats.line import Line
from trainmon.tails.prefix import Prefix

_HEAD = re.compile(
    r"(?P<names>[A-Za-z_][\w./-]{0,80}(?: [A-Za-z_][\w./-]{0,80}){0,2}?)[ \t]{1,40}"
    r"(?P<words>\(?\[?(?:train(?:ing)? |global[_ ]?|train_|Epoch \d{1,9},? )?(?:step|iter(?:ation)?|epoch|update)\b)"
    r"[ \t]{0,8}[:=#\[(]{0,2}[ \t]{0,8}(?P<number>\d{1,15})",
    re.IGNORECASE,
)
# Lines that are read as records with a name in a key, if it is not told apart first: ``trainer epoch 1 step 5``, and a
# name that no measure is called by before any key (``__main__ loss=2.5``).
_IN_KEY = re.compile(
    r"(?:(?P<name>[A-Za-z_][\w./-]{0,80})[ \t]{1,40}"
    r"(?=[(\[]{0,2}epoch[ \t:=#\[(]{0,12}\d{1,9}(?:/\d{1,9})?[\]),|:]{0,3}[ \t]{1,8}"
    r"[(\[]?(?:step|iter(?:ation)?|batch)\b)"
    r"|(?P<code>__\w{1,80}__|trainer|main|root|[A-Za-z_]\w{0,80}(?:\.[A-Za-z_]\w{0,80}){1,8})[ \t]{1,40}"
    r"(?=[A-Za-z_][\w/]{0,60}[ \t]?[:=][ \t]{0,8}[-+.\d]))",
    re.IGNORECASE,
)
# Words that say which steps are counted, when, or what was done: parts of the key or the sentence.
_OF_THE_KEY = re.compile(
    r"(?:micro|mini|inner|outer|sub|warm-?up|total|max|min|num|number|last|first|next|best|final|every|per|each|grad"
    r"|gradient|accum\w*|diffusion|env\w*|rollout|ppo|game|agent|eval\w*|val|valid\w*|test|dev|train|training|global"
    r"|current|cur|opt|optimi[sz]er|lr|loss|at|after|before|for|in|on|of|to|from|until|since|by|the|a|and|with|is|was"
    r"|step|iter|iteration|epoch|update|batch|(?!pre-?train|post-?train|fine-?tun)[a-z]{2,60}(?:ing|ed|tion))",
    re.IGNORECASE,
)
_RANK = re.compile(r"(?:rank|worker|gpu|proc|process)[-_]?(\d{1,6})", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_OF_A_KIND = 3
_MOST_KINDS = 20
_MOST_LINES = 256  # of one kind
_SHOWN = 80  # characters of a line by which two are told apart


_Held = tuple[Line, str, bool]  # without its name; what it is told apart by; whether it would be read with it


class LoggerNames:
    """Learns the names in one log.

    >>> from trainmon.tails.prefix import NO_PREFIX
    >>> names = LoggerNames()
    >>> [[one.text for one in names.hold(Line(f"trainer step={n} loss=2.5", 0, n)) or ()] for n in (1, 2, 3)]
    [[], [], ['step=1 loss=2.5', 'step=2 loss=2.5', 'step=3 loss=2.5']]
    >>> names.behind("trainer step=4 loss=2.5", NO_PREFIX).at, names.behind("loss=2.5", NO_PREFIX).at
    (8, 0)
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._held: dict[str, list[_Held]] = {}

    def behind(self, text: str, prefix: Prefix) -> Prefix:
        """`prefix` of `text` with a known name behind it; its rank where the name tells one."""
        match = self._pattern.match(text, prefix.at) if self._pattern is not None else None
        return prefix if match is None else _longer(prefix, text[prefix.at : match.end()])

    def hold(self, line: Line, *, is_read: bool = False) -> list[Line] | None:
        """Keeps a line that is no record, if a name may be all that hides one; None: it is no such line. The third
        step of a kind gives all that were kept, without their names. `is_read`: as it stands the line is a record.
        """
        if is_read:
            match = _IN_KEY.match(line.text)
            names = "" if match is None else match["name"] or match["code"]
            rest = "" if match is None else line.text[match.end() : match.end() + _SHOWN]
        else:
            match = _HEAD.match(line.text)
            names, rest = ("", "") if match is None else match.group("names", "number")
        if match is None or _is_of_the_key(names):
            return None
        kind = _DIGITS.sub("0", names)
        held = self._held.get(kind, [])
        if kind in self._known or len(self._held) >= _MOST_KINDS or len(held) >= _MOST_LINES:
            return None
        head = line.text[: match.end() if is_read else match.start("words")]
        prefix = _longer(line.prefix, head)
        held.append((Line(line.text[len(head) :], line.offset, line.line_no, prefix), rest, is_read))
        self._held[kind] = held
        if len({said for _, said, _ in held}) < _OF_A_KIND:  # other ranks say the same number
            return []
        return self._learn(kind)

    def _learn(self, kind: str) -> list[Line]:
        """Takes the words that are a name, whatever their digits; the lines that were kept for them."""
        self._known.add(kind)
        names = sorted(self._known, key=len, reverse=True)
        either = "|".join(re.escape(name).replace("0", r"\d{1,9}") for name in names)
        self._pattern = re.compile(rf"(?:{either})[ \t]+(?=[^\s=:])")
        return [line for line, _, _ in self._held.pop(kind)]

    def flush(self) -> list[Line]:
        """The lines that are records with the name or without, of which too few came; they are kept no longer."""
        held = [one for kept in self._held.values() for one in kept]
        self._held = {kind: kept for kind, kept in self._held.items() if not kept[0][2]}
        return [line for line, _, is_read in held if is_read]


def _is_of_the_key(names: str) -> bool:
    return any(_OF_THE_KEY.fullmatch(name) is not None for name in names.split(" "))


def _longer(prefix: Prefix, head: str) -> Prefix:
    """`prefix` with the name `head` and the blanks behind it."""
    name = _RANK.fullmatch(head.strip())
    return replace(
        prefix, at=prefix.at + len(head), rank=prefix.rank or (str(int(name[1])) if name is not None else "")
    )
