"""Losses that no word calls so: ``step 0 | train 3.2 | val 3.3``, ``iter 50: trn 2.5, vld 2.625``."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TRAIN = re.compile(r"train(?:ing)?|trn|tr", re.IGNORECASE)
_HELD_OUT = re.compile(r"val(?:id(?:ation)?)?|vld|test|dev|eval", re.IGNORECASE)
_BARE_VAL = re.compile(r"val(?:id(?:ation)?)?|vld", re.IGNORECASE)
_LOSS = re.compile(r"(?:train(?:ing)?[ _/])?loss", re.IGNORECASE)
_DECIMAL = re.compile(r"\d{1,4}\.\d{1,12}")
_LEAST = 1.0  # accuracies are no greater; where all are smaller nothing tells
_MOST = 20.0  # percentages soon are greater, a model's loss per token is not


def named_losses(text: str, fields: list[tuple[str, tuple[int, int]]]) -> list[tuple[str, tuple[int, int]]]:
    """`fields` of `text`, none of which is called by what it measures, with those of the two sets called losses where
    their numbers can be no counts and no accuracies.

    >>> named_losses("train 3.2 val 3.3", [("train", (6, 9)), ("val", (14, 17))])
    [('train loss', (6, 9)), ('val loss', (14, 17))]
    >>> named_losses("train 0.2 val 0.3", [("train", (6, 9)), ("val", (14, 17))])
    [('train', (6, 9)), ('val', (14, 17))]
    """
    if not _DECIMAL.search(text):
        return fields
    told = {key: text[start:end] for key, (start, end) in fields if _set_of(key)}
    if not all(map(_DECIMAL.fullmatch, told.values())):
        return fields
    names = _names({key: float(value) for key, value in told.items()})
    return [(names.get(key, key), span) for key, span in fields] if names else fields


def named_beside(text: str, fields: list[tuple[str, tuple[int, int]]]) -> list[tuple[str, tuple[int, int]]]:
    """`fields` of `text` with a bare ``val`` beside the training's loss called a loss, where it is about as large and
    no share.

    >>> named_beside("loss 3.2 val 3.3", [("loss", (5, 8)), ("val", (13, 16))])
    [('loss', (5, 8)), ('val loss', (13, 16))]
    >>> named_beside("loss 3.2 val 0.8", [("loss", (5, 8)), ("val", (13, 16))])
    [('loss', (5, 8)), ('val', (13, 16))]
    """
    bare = [(key, span) for key, span in fields if _BARE_VAL.fullmatch(key)]
    losses = [span for key, span in fields if _LOSS.fullmatch(key)]
    if len(bare) != 1 or len(losses) != 1:
        return fields
    (name, (start, end)), loss, value = bare[0], text[slice(*losses[0])], text[slice(*bare[0][1])]
    if not (_DECIMAL.fullmatch(loss) and _DECIMAL.fullmatch(value)):
        return fields
    if not _LEAST < float(value) < _MOST or not 0.5 <= float(value) / max(float(loss), 1e-9) <= 2.0:
        return fields
    return [("val loss" if key == name and span == (start, end) else key, span) for key, span in fields]


def loss_names(values: Mapping[str, float | None]) -> dict[str, str]:
    """What the keys of the two sets among `values` are to be called; none where they are no losses.

    >>> loss_names({"train": 3.25, "val": 3.5}), loss_names({"train": 12000.0, "val": 3000.0}), loss_names({"val": 3.5})
    ({'train': 'train loss', 'val': 'val loss'}, {}, {})
    """
    return _names({key: value for key, value in values.items() if value is not None and _set_of(key)})


def _set_of(key: str) -> str:
    if _TRAIN.fullmatch(key):
        return "train"
    return "val" if _HELD_OUT.fullmatch(key) else ""


def _names(told: Mapping[str, float]) -> dict[str, str]:
    sets = [_set_of(key) for key in told]
    if sorted(set(sets)) != ["train", "val"] or sets.count("train") != 1:
        return {}
    if not (max(told.values()) > _LEAST and min(told.values()) > 0.0 and max(told.values()) < _MOST):
        return {}
    return {key: "test loss" if key.lower() == "test" else f"{_set_of(key)} loss" for key in told}
