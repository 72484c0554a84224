"""Scores of texts that a model wrote: length, emptiness, repetition, gibberish. The texts themselves are not kept."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Final

from trainmon.tails.lazy_pattern import lazy

# Keys under which trainers log what the model wrote. A record of a log names its step too; one of a data set does not.
SAMPLE_KEYS: Final = frozenset(
    [
        "sample",
        "samples",
        "sample_text",
        "sample_texts",
        "generated",
        "generated_text",
        "generated_texts",
        "generation",
        "generations",
        "completion",
        "completions",
        "model_output",
        "output_text",
        "response",
        "responses",
        "decoded",
    ]
)
STEP_KEYS: Final = frozenset(
    [
        *("step", "global_step", "iteration", "iter", "_step", "train_step", "steps", "update", "updates"),
        *("num_updates", "optimizer_step", "opt_step", "trainer/global_step", "train/global_step", "train/step"),
        *("it", "itr"),
    ]
)

_MOST_CHARACTERS: Final = 20_000
_MOST_TEXTS: Final = 64
_GRAM: Final = 4
_FEWEST_GRAMS: Final = 8
_LONG_WORD: Final = 25
_MOST_RUNS: Final = 5  # letters, digits and signs in turn
# Five or more, signs within counted, and two letters among them.
_NO_VOWEL: Final = lazy(r"(?=[^a-z]*[a-z][^a-z]*[a-z])[b-df-hj-np-tv-xz#$%&^~|+=@!?\\]{5,}", re.IGNORECASE)
_RUNS: Final = lazy(r"[^\W\d_]+|\d+|[^\w\s]+|_+")


def scores_of(record: Mapping[str, object]) -> dict[str, float]:
    """The scores of a record's sample texts, as columns; nothing when it holds none, or no step.

    >>> scores_of({"step": 5, "completion": "the cat sat"})["sample_text/length"], scores_of({"completion": "a b"})
    (3.0, {})
    """
    if SAMPLE_KEYS.isdisjoint(record) or STEP_KEYS.isdisjoint(record):
        return {}
    texts: list[str] = []
    for key in SAMPLE_KEYS & record.keys():
        value = record[key]
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, list | tuple):
            texts += [part for part in value[:_MOST_TEXTS] if isinstance(part, str)]
    return mean_scores(texts) if texts else {}


def mean_scores(texts: Iterable[str]) -> dict[str, float]:
    """Means over texts: words, share of empty texts, of repeated 4-grams, and of words that are none."""
    rows = [_score(text[:_MOST_CHARACTERS]) for text in list(texts)[:_MOST_TEXTS]]
    names = ("length", "empty", "repetition", "gibberish")
    return {
        f"sample_text/{name}": sum(known) / len(known)
        for index, name in enumerate(names)
        if (known := [row[index] for row in rows])
    }


def _score(text: str) -> tuple[float, float, float, float]:
    words = text.split()
    if not words:
        return 0.0, 1.0, 0.0, 0.0
    units: list[str] = words
    if len(words) * 12 < len(text):  # scripts without blanks: their characters are the words
        units = [letter for letter in text if not letter.isspace()]
    return float(len(units)), 0.0, repetition(units), sum(map(_is_odd, words)) / len(words)


def repetition(units: list[str]) -> float:
    """The share of 4-grams that were there before; 0 for texts too short to tell.

    >>> repetition("the cat sat on the mat and then it ran far away".split())
    0.0
    >>> repetition(["yes", "no"] * 50) > 0.95
    True
    """
    grams = list(zip(*(units[start:] for start in range(_GRAM)), strict=False))
    return 1.0 - len(set(grams)) / len(grams) if len(grams) >= _FEWEST_GRAMS else 0.0


def _is_odd(word: str) -> bool:
    """Whether a word is none of any script: broken characters, no vowel, endless, or letters and signs in turn.

    >>> [word for word in ("x#qz$k", "rhythm", "strengths", "x+=b", "=====", "bgh%k|z", "npm") if _is_odd(word)]
    ['x#qz$k', 'bgh%k|z']
    """
    if any(letter == "\ufffd" or unicodedata.category(letter) in ("Cc", "Co", "Cn", "Cs") for letter in word[:200]):
        return True
    core = word.strip(".,;:!?\"'()[]{}<>*-_`")
    if not core:
        return len(word) > 3
    if not core.isascii() or "/" in core:
        return False
    return (
        len(core) > _LONG_WORD or _NO_VOWEL.fullmatch(core) is not None or len(_RUNS.findall(core[:200])) > _MOST_RUNS
    )
