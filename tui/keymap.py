"""The keys as they are now: the table of `keys`, with what the user's configuration puts in their place.

A key still means one thing on every screen: a setting that would break this is left out, and said in one line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from textual.binding import Binding, BindingType
from textual.keys import KEY_ALIASES, KEY_TO_UNICODE_NAME, Keys, _character_to_key

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.text import printable
from trainmon.tui.keys import KEYS, Key

_NEEDED: Final = ("quit", "help", "back")  # nobody may lock himself in
_RESERVED: Final = {"ctrl+c": "quit", "ctrl+q": "quit", "ctrl+p": "palette"}
_SAME_BYTES: Final = {"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+left_square_bracket": "escape"}
_MOST_KEYS: Final = 8
_MODIFIERS: Final = ("ctrl", "shift", "alt", "super", "hyper", "meta")
_SHOWN: Final = {
    "escape": "Esc",
    "enter": "Enter",
    "space": "Space",
    "tab": "Tab",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "home": "Home",
    "end": "End",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "backspace": "Backspace",
    "delete": "Del",
    "insert": "Ins",
}
_NAMED: Final = frozenset(key.value for key in Keys if not key.value.startswith("<"))


@dataclass(frozen=True, slots=True)
class KeyMap:
    """`keys` as in the table; `problems`: one line for each setting that was left out."""

    keys: tuple[Key, ...] = KEYS
    problems: tuple[str, ...] = ()

    def of(self, screen: str) -> tuple[Key, ...]:
        """The keys that work on `screen`, in the order of the table."""
        return tuple(key for key in self.keys if screen in key.screens)

    def shown(self, name: str) -> str:
        """How a person reads the first key of the action `name`."""
        return next(key.shown for key in self.keys if key.id == name).partition(" ")[0]

    def bindings(self, screen: str) -> list[BindingType]:
        """As Textual has them."""
        return [Binding(key.keys, key.action, key.help, show=False, id=key.id) for key in self.of(screen) if key.keys]


def key_map_of(table: Mapping[str, object]) -> KeyMap:
    """The keys with the table [keys] of the configuration: action = "key", or a list of keys, or [] for none.

    >>> changed = key_map_of({"log": ["L", "ctrl+l"], "layers": "l", "help": "t", "nap": "n"})
    >>> changed.shown("log"), changed.shown("layers"), changed.shown("help")
    ('L', 'l', '?')
    >>> for problem in changed.problems: print(problem)
    keys.nap: trainmon has no such action; docs/keys.md lists them
    keys.help: t is the key of triage; left as it was
    """
    if not table:
        return KeyMap()
    by_id = {key.id: key for key in KEYS}
    problems, wanted = [], {}
    for name, value in table.items():
        if name not in by_id:
            problems.append(f"keys.{printable(str(name), 40)}: trainmon has no such action; docs/keys.md lists them")
            continue
        try:
            key = _written(by_id[name], value)
        except ValueError as error:
            problems.append(f"keys.{name}: {printable(str(error), 120)}; left as it was")
            continue
        if key.keys != by_id[name].keys:
            wanted[name] = key
    while clash := _clash({**by_id, **wanted}, wanted):
        name, twice, other = clash
        del wanted[name]
        problems.append(f"keys.{name}: {shown_key(twice)} is the key of {other}; left as it was")
    return KeyMap(tuple(wanted.get(key.id, key) for key in KEYS), tuple(problems))


def _written(key: Key, value: object) -> Key:
    some = [value] if isinstance(value, str) else value
    if not isinstance(some, list) or len(some) > _MOST_KEYS or not all(isinstance(one, str) for one in some):
        raise ValueError('must be a key such as "ctrl+l", or a list of keys')
    keys = list(dict.fromkeys(normal(one) for one in some))
    if not keys and key.id in _NEEDED:
        raise ValueError("needs a key")
    for one in keys:
        if _RESERVED.get(one, key.id) != key.id:
            raise ValueError(f"{one} always means {_RESERVED[one]}")
    return replace(key, keys=",".join(keys), shown=" ".join(shown_key(one) for one in keys))


def normal(text: str) -> str:
    """A key as Textual names it. Raises ValueError for what is none.

    >>> normal("?"), normal("Ctrl+L"), normal("G"), normal("Esc"), normal("PgDn"), normal("f5")
    ('question_mark', 'ctrl+l', 'G', 'escape', 'pagedown', 'f5')
    """
    *modifiers, name = text.strip().split("+") if text.strip() not in ("+", "") else [text.strip()]
    if name == "" and modifiers:  # "ctrl++"
        modifiers, name = modifiers[:-1], "+"
    lower = [modifier.lower() for modifier in modifiers]
    if not name or any(modifier not in _MODIFIERS for modifier in lower):
        raise ValueError(f"{text!r} is no key")
    if len(name) == 1:
        if not name.isprintable():
            raise ValueError(f"{text!r} is no key")
        if "shift" in lower and name.isalpha():
            lower.remove("shift")
            name = name.upper()
        plain = _character_to_key(name.lower() if lower else name)
    else:
        plain = _name(name)
        if not plain:
            raise ValueError(f"{text!r} is no key")
    key = "+".join([*(one for one in _MODIFIERS if one in lower), plain])
    return _SAME_BYTES.get(key, key)  # most terminals send the same for both


def _name(name: str) -> str:
    """The name of a key that is written out, "" where there is none."""
    lower = name.lower()
    lower = {"esc": "escape", "pgdn": "pagedown", "pgup": "pageup", "del": "delete", "ins": "insert"}.get(lower, lower)
    lower = {"return": "enter", "page_down": "pagedown", "page_up": "pageup"}.get(lower, lower)
    aliases = {alias for some in KEY_ALIASES.values() for alias in some}
    known = lower in _NAMED or lower in KEY_TO_UNICODE_NAME or lower in aliases or lower in _CHARACTERS
    return lower if known else ""


_CHARACTERS: Final = frozenset(_character_to_key(chr(code)) for code in range(33, 127) if not chr(code).isalnum())


def shown_key(key: str) -> str:
    """How a person reads a key of Textual's.

    >>> shown_key("ctrl+l"), shown_key("question_mark"), shown_key("escape"), shown_key("shift+tab")
    ('ctrl+l', '?', 'Esc', 'shift+Tab')
    """
    *modifiers, name = key.split("+")
    plain = _SHOWN.get(name) or _TO_CHARACTER.get(name, name)
    return "+".join([*modifiers, plain])


_TO_CHARACTER: Final = {_character_to_key(chr(code)): chr(code) for code in range(33, 127)}


def _clash(keys: Mapping[str, Key], wanted: Mapping[str, Key]) -> tuple[str, str, str] | None:
    """A setting, one of its keys, and the other action that has the key; None where no key means two things."""
    owner: dict[str, str] = {}
    for name in sorted(keys, key=lambda name: name in wanted):  # of two, the one that was set gives way
        for key in filter(None, keys[name].keys.split(",")):
            if key in owner:
                return name, key, owner[key]
            owner[key] = name
    return None
