"""Long form: one value a record, whose name is itself a value (``{"name": "loss", "step": 3, "value": 1.5}``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trainmon.tails.formats.stamps import stamp_order
from trainmon.tails.steps import step_rank

NAME_KEYS = ("metric_name", "metric", "metricName", "metric.name", "name", "tag", "key")
VALUE_KEYS = ("value", "metric_value", "metricValue", "scalar_value", "val")
_NAME_LIMIT = 200
_OTHER_NUMBERS = 5  # the value and a few labels; with more beside it the record is wide


def could_be_long_form(keys: Iterable[str]) -> bool:
    """Whether records with these keys may be in long form."""
    present = {key.rpartition("/")[2] for key in keys}
    return not present.isdisjoint(NAME_KEYS) and not present.isdisjoint(VALUE_KEYS)


def long_form(values: Mapping[str, float | None], texts: Mapping[str, str]) -> dict[str, float | None] | None:
    """The record as a row, its value under its name, beside step and time; None when it is not in long form.

    >>> long_form({"step": 3.0, "value": 1.5}, {"name": "loss"})
    {'step': 3.0, 'loss': 1.5}
    >>> long_form({"data/step": 3.0, "data/value": 1.5}, {"name": "loss"})
    {'step': 3.0, 'loss': 1.5}
    >>> long_form({"a/step": 3.0, "a/metric/metricValue": 1.5}, {"a/metric/metricName": "loss"})
    {'a/step': 3.0, 'loss': 1.5}
    """
    groups = {key.rpartition("/")[0] for key in values}
    if len(groups) == 1 and "" not in groups:  # its numbers are in a group of their own
        values = {key.rpartition("/")[2]: value for key, value in values.items()}
    name_key = next((key for key in NAME_KEYS if key in texts), None) or _nested_name(values, texts)
    if name_key is None or len(texts[name_key]) > _NAME_LIMIT:
        return None
    group = name_key[: name_key.rfind("/") + 1]
    value_key = next((key for key in (*VALUE_KEYS, *(group + key for key in VALUE_KEYS)) if key in values), None)
    if value_key is None:
        return None
    row = {key: value for key, value in values.items() if step_rank(key) is not None or stamp_order(key) is not None}
    if len(values) - len(row) > _OTHER_NUMBERS:
        return None
    row[texts[name_key]] = values[value_key]
    return row


def _nested_name(values: Mapping[str, float | None], texts: Mapping[str, str]) -> str | None:
    """The text that names the value beside it in an object of a record."""
    for key in texts:
        group, between, last = key.rpartition("/")
        if between and last in NAME_KEYS and any(f"{group}/{value}" in values for value in VALUE_KEYS):
            return key
    return None
