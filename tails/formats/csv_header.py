"""The header of a table: what its columns are, and how the rows are to be read."""

from __future__ import annotations

import re

from trainmon.tails.formats.csv_columns import number_of
from trainmon.tails.formats.kinds import SPLIT_KEYS, TYPE_KEYS
from trainmon.tails.formats.long_form import NAME_KEYS, VALUE_KEYS
from trainmon.tails.formats.numbers import NUMBER
from trainmon.tails.formats.run_keys import names_run, names_start
from trainmon.tails.formats.stamps import stamp_order
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.steps import is_training_key, says_eval, step_rank, word_set, words_of

# Columns that tell sources, tasks, models or ranks apart in a table that holds several, a row each.
_LABELS = word_set(
    "method model model_name task task_name source dataset domain subset_name rank worker "
    "config setting condition arch architecture algorithm algo agent model_size width depth"
)
_MEASURES = word_set("loss losses nll ppl perplexity accuracy acc bpb")
_SPLITS = word_set("train training val valid validation test testing eval dev")
# Names so plain that a line of them is a header though nothing follows.
_BARE_NAME = re.compile(r"[A-Za-z_][\w ./()%-]{0,79}")
_FEWEST_OF_WORDS = 3  # columns, and rows below them
_SAID = word_set("message msg text log line event content output stdout stderr record body")
_HOLDS_VALUE = re.compile(r"\s\d|\d[./]\d")
INDEX = "index"
_ROW_NUMBERS = frozenset(("", INDEX, "unnamed: 0"))  # a data frame's rows
_LOGGED = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|\d%\|"
)  # a time, a bar: a line of text, whose commas part no columns
# Files of one metric that have no header -> delimiter and columns, "" for the metric.
_BARE_FORMS = (  # MLflow's: milliseconds, value, step; Neptune's: step, time, value
    (re.compile(rf"\d{{13}} (?:{NUMBER}) \d{{1,12}}"), " ", ("timestamp", "", "step")),
    (
        re.compile(
            r"\d{1,12}(?:\.0+)?,(?:\d{13}|\d{10}(?:\.\d+)?|\d{4}-\d\d-\d\d[ T][\d:.]+(?: ?[A-Z]{1,4}|[-+][\d:]+)?)"
            rf",(?:{NUMBER})"
        ),
        ",",
        ("step", "timestamp", ""),
    ),
)
_TYPE_OF_NAME = (
    *("metric_type", "metric.context.subset", "context.subset", "metric.context", "runcontext", "context"),
    *("subset", "split", "phase", "group", "category"),
)


@dataclass(frozen=True, slots=True)
class Header:
    """`names`: the columns in order, "" for one that is left out. `numbers`: indices of the columns that may hold
    numbers; `texts`: of those whose texts are needed; `labels`: of those that tell series apart; `runs`: of those that
    name a run; `long`: the indices of metric type (-1 when there is none), metric name and value of a table in long
    form, else empty."""

    names: tuple[str, ...]
    numbers: tuple[int, ...]
    texts: tuple[int, ...]
    labels: tuple[int, ...]
    long: tuple[int, ...] = ()
    runs: tuple[int, ...] = ()

    @classmethod
    def of(cls, fields: list[str]) -> Header:
        """The header that these fields are.

        >>> Header.of(["step", "run - loss", "run - loss__MIN", ""]).names
        ('step', 'run - loss', '', '')
        """
        names = _names(fields)
        lower = [name.lower() for name in names]
        name_at = next((lower.index(key) for key in map(str.lower, NAME_KEYS) if key in lower), -1)
        value_at = next((lower.index(key) for key in map(str.lower, VALUE_KEYS) if key in lower), -1)
        is_long = name_at >= 0 and value_at >= 0
        type_at = next((lower.index(key) for key in _TYPE_OF_NAME if key in lower), -1) if is_long else -1
        taken = {name_at, value_at, type_at} if is_long else set()
        kept = [index for index, name in enumerate(names) if name and index not in taken]
        runs = tuple(index for index in kept if names_run(names[index]))
        labels = tuple(index for index in kept if lower[index] in _LABELS)
        if not any(step_rank(names[index]) is not None for index in kept):
            runs, labels = (), tuple(sorted((*runs, *labels)))  # without steps a table of results, a row each
        return cls(
            tuple(names),
            tuple(index for index in kept if index not in (*labels, *runs) and not names_start(names[index])),
            tuple(
                index
                for index in kept
                if names[index] in TYPE_KEYS or names[index] in SPLIT_KEYS or stamp_order(names[index]) is not None
            ),
            labels,
            (type_at, name_at, value_at) if is_long else (),
            runs,
        )


def _names(fields: list[str]) -> list[str]:
    """The columns' own names; a name that comes twice gets a number, the bounds beside a mean are left out."""
    if len(fields) > 1 and not fields[0] and INDEX not in fields:
        fields = [INDEX, *fields[1:]]  # a data frame's
    known = set(fields)
    names: list[str] = []
    count: dict[str, int] = {}
    for field in fields:
        base, _, bound = field.rpartition("__")
        if not field or (bound in ("MIN", "MAX") and base in known):
            names.append("")
            continue
        count[field] = count.get(field, -1) + 1
        names.append(f"{field}.{count[field]}" if count[field] else field)
    return names


def named_by_file(fields: list[str], source: str) -> list[str]:
    """The fields, but for a lone ``Value`` (an export of one metric, a file each) what the file's name says it is.

    >>> named_by_file(["Wall time", "Step", "Value"], "logs/run-a-tag-train_loss.csv")
    ['Wall time', 'Step', 'train_loss']
    >>> named_by_file(["", "step", "value", "timestamp"], "loss.csv")
    ['', 'step', 'loss', 'timestamp']
    """
    fields = losses_by_file(fields, source)
    rows = fields[1:] if len(fields) > 2 and fields[0].lower() in _ROW_NUMBERS else fields
    beside = [field for field in rows if field.lower() != "value"]
    if len(beside) != len(rows) - 1 or not all(
        step_rank(one) is not None or stamp_order(one) is not None for one in beside
    ):
        return fields
    name = metric_of_file(source)
    return fields if name is None else [name if field.lower() == "value" else field for field in fields]


def losses_by_file(names: list[str], source: str) -> list[str]:
    """The names, where they say no more than ``train`` and ``val`` and the file is one of losses, as those losses.

    >>> losses_by_file(["step", "train", "val"], "loss_history.json"), losses_by_file(["train", "val"], "history.json")
    (['step', 'train/loss', 'val/loss'], ['train', 'val'])
    """
    if (
        not any(map(_is_split, names))
        or (metric := metric_of_file(source)) is None
        or words_of(metric).isdisjoint(("loss", "losses"))
    ):
        return names
    return [f"{name}/loss" if _is_split(name) else name for name in names]


def _is_split(name: str) -> bool:
    return bool(words_of(name)) and words_of(name) <= _SPLITS


def bare_form(text: str) -> tuple[str, tuple[str, ...]] | None:
    """The delimiter and the columns ("" for the metric) of a row of a file of one metric that has no header.

    >>> bare_form("1736935200000 2.5 10"), bare_form("0,2025-01-15 10:00:00 UTC,2.5"), bare_form("1,2,3")
    ((' ', ('timestamp', '', 'step')), (',', ('step', 'timestamp', '')), None)
    """
    return next(((mark, names) for form, mark, names in _BARE_FORMS if form.fullmatch(text)), None)


def metric_of_file(source: str) -> str | None:
    """The metric that the name of a file tells, None when it tells none.

    >>> metric_of_file("mlruns/0/ab/metrics/val_loss"), metric_of_file("metrics.csv")
    ('val_loss', None)
    """
    stem = re.split(r"[/\\]", source)[-1]
    stem = re.sub(r"\.(?:csv|tsv|txt|log|json)$", "", stem)
    name = stem.rpartition("-tag-")[2]
    return name if names_metric(name) else None


def metric_of_place(source: str) -> str:
    """The metric of a file that holds one and has no header: what follows the directory ``metrics``, as MLflow has it.

    >>> metric_of_place("mlruns/0/ab/metrics/train/mfu"), metric_of_place("val_loss"), metric_of_place("a.txt")
    ('train/mfu', 'val_loss', 'value')
    """
    _, between, name = source.replace("\\", "/").rpartition("/metrics/")
    return name if between else metric_of_file(source) or "value"


def names_metric(name: str) -> bool:
    """Whether a column is a loss, or another measure, of training or held-out data.

    >>> names_metric("train_loss"), names_metric("val_acc"), names_metric("note")
    (True, True, False)
    """
    return is_training_key(name) or (says_eval(name) and not words_of(name).isdisjoint(_MEASURES))


def are_plain(names: list[str]) -> bool:
    """Whether these can be nothing but a header: bare names, among them one that trainers write."""
    known = any(step_rank(name) is not None or is_training_key(name) for name in names)
    return known and all(not name or (_BARE_NAME.fullmatch(name) and not _HOLDS_VALUE.search(name)) for name in names)


def is_of_words(names: list[str], rows: list[list[str]]) -> bool:
    """Whether a table is one of other things than a training's numbers: a list of files, of papers, of people.

    What its cells tell (``loss 2.5 at step 10``) was not logged by it. A table whose cells are a log's lines is none.

    >>> rows = [["a.log", "Megatron", "clean to step 100, loss 2.5"]] * 3
    >>> is_of_words(["file", "framework", "what it shows"], rows), is_of_words(["time", "level", "message"], rows)
    (True, False)
    """
    if len(names) < _FEWEST_OF_WORDS or len(rows) < _FEWEST_OF_WORDS:
        return False
    if not all(_BARE_NAME.fullmatch(name) and not _HOLDS_VALUE.search(name) for name in names):
        return False
    if any(name.lower() in _SAID or step_rank(name) is not None or names_metric(name) for name in names):
        return False
    return sum(len(row) == len(names) for row in rows) * 10 >= 9 * len(rows)


def looks_like_header(fields: list[str]) -> bool:
    """Whether these fields are names: two or more of them, none a number, most of them filled.

    The first may be empty: a data frame's rows are numbered under no name.
    """
    filled = [field for field in fields if field]
    if any(map(_LOGGED.search, filled)):
        return False
    named = len(filled) + (not fields[0] and len(fields) > 1)
    return len(fields) >= 2 and named * 2 > len(fields) and not any(is_number(field) for field in filled)


def is_number(text: str) -> bool:
    """Whether a field holds a number.

    >>> is_number("1e-3"), is_number("3,25"), is_number("None"), is_number("adam")
    (True, True, False, False)
    """
    try:
        return number_of(text) is not None
    except ValueError:
        return False
