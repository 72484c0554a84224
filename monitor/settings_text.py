"""Settings as text: an argparse Namespace, gin bindings, ``key: value`` and ``key = value`` lines, Megatron's dots."""

from __future__ import annotations

from trainmon.tails.lazy_pattern import lazy

_MOST = 20_000
_LONGEST_LINE = 500  # of a setting by itself
_LINE = lazy(
    r"\s*(?:--)?(?P<key>[A-Za-z_][\w./-]{0,79}) ?(?:=|:|\.{3,}|\s)\s*(?P<value>[^\s#\n][^#\n]{0,120}?),?\s*(?:#.*)?"
)
_INLINE = lazy(r"(?<![\w.])['\"]?(?P<key>[A-Za-z_]\w{0,79})['\"]? ?[=:] ?(?P<value>[^\s,()\[\]{}]{1,120})")


def plain_settings(text: str) -> dict[str, object]:
    """Name and value of what a text sets; the text is never run.

    >>> plain_settings("Namespace(lr=0.0003, max_steps=400, name='a b')")
    {'lr': 0.0003, 'max_steps': 400.0, 'name': 'a'}
    >>> plain_settings("train.total_steps = 900  # all\\nlr: 3e-4\\n--seq-len 128\\n  clip_grad ........ 1.0\\n[data]")
    {'train.total_steps': 900.0, 'lr': 0.0003, 'seq-len': 128.0, 'clip_grad': 1.0}
    """
    found: dict[str, object] = {}
    for line in text.splitlines()[:_MOST]:
        match = _LINE.fullmatch(line) if len(line) <= _LONGEST_LINE and "(" not in line else None
        for each in (match,) if match is not None else _INLINE.finditer(line):
            if len(found) < _MOST:
                found.setdefault(each["key"].rstrip("."), scalar(each["value"].strip("\"'")))
    return found


def scalar(text: str) -> float | str:
    """A number where `text` is one.

    >>> scalar("1_000"), scalar("bf16")
    (1000.0, 'bf16')
    """
    try:
        return float(text.replace("_", ""))
    except ValueError:
        return text
