"""Typed records: what a record is, told by its ``event``, ``type``, ``split``, ``phase`` or ``mode``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from functools import lru_cache

from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import NoteKind
from trainmon.tails.steps import says_eval, word_set, words_of

TYPE_KEYS = ("event", "type", "event_type", "record_type", "kind", "_type", "msg_type", "log_type")
SPLIT_KEYS = ("split", "phase", "mode", "stage", "subset", "partition", "data_split", "dataset_split", "eval_set")

_TRAIN = word_set("train training step steps iter iteration iterations metrics metric progress update scalar log")
_CONFIG = word_set("config configuration args arguments hparams hyperparameters hyperparams params settings setup")
_START = word_set("start started launch launched begin init header")
_ABOUT = word_set(
    "environment env system meta metadata compile compiled model dataset data info message samples sample text "
    "example examples generation git hardware banner debug"
)
_END = word_set("summary end ended final finish finished complete completed done success stop stopped")
_CHECKPOINT = word_set("checkpoint checkpoints ckpt save saved checkpointed")
_ERROR = word_set("error exception failure failed crash crashed timeout traceback oom abort aborted fatal")
_RESUME = word_set("resume resumed restore restored restart restarted")
_VALIDATION = word_set("eval evaluation evaluate val valid validation validate dev heldout")
# What an event carries its numbers in, which says nothing of them.
_PAYLOAD = word_set("data payload metrics metric values value scalars body fields content results result stats")
_TYPE_LIMIT = 64


class Role(Enum):
    """What becomes of a record: a row of numbers, or facts and an event."""

    ROW = "row"
    FACTS = "facts"


@dataclass(frozen=True, slots=True)
class RecordKind:
    """`prefix` and `suffix` go round the keys of its numbers; `note` is the event it tells of; `is_start` marks the
    records that only a newly started process writes."""

    role: Role = Role.ROW
    prefix: str = ""
    suffix: str = ""
    note: NoteKind | None = None
    is_start: bool = False

    def key(self, name: str) -> str:
        """The column that `name` of such a record belongs to.

        >>> RecordKind(prefix="eval/").key("data/loss"), RecordKind(prefix="eval/").key("c4/loss")
        ('eval/loss', 'eval/c4/loss')
        """
        if self.prefix == "eval/":
            group, _, rest = name.partition("/")
            name = rest if rest and group.lower() in _PAYLOAD else name
            if says_eval(name):
                return name + self.suffix
        return f"{self.prefix}{name}{self.suffix}"

    def labelled(self, label: str) -> RecordKind:
        """The same with another label (``{rank=3}``) behind its keys.

        >>> RecordKind(suffix="{split=ood}").labelled("{rank=3}").suffix
        '{split=ood,rank=3}'
        """
        both = f"{self.suffix[:-1]},{label[1:]}" if self.suffix and label else self.suffix + label
        return replace(self, suffix=both)


PLAIN = RecordKind()


def kind_of(texts: Mapping[str, str], has_loss: bool) -> RecordKind:
    """The kind of a record with these texts; `has_loss` tells whether it carries a training loss or reward.

    >>> kind_of({"event": "eval"}, True).key("loss"), kind_of({"split": "val"}, True).key("val_loss")
    ('eval/loss', 'val_loss')
    >>> kind_of({"type": "evaluation", "split": "ood"}, True).key("loss")
    'eval/loss{split=ood}'
    >>> kind_of({"type": "config"}, False).role.value
    'facts'
    """
    types = tuple(texts[key] for key in TYPE_KEYS if key in texts)
    splits = tuple((key, texts[key]) for key in SPLIT_KEYS if key in texts)
    return _kind(types, splits, has_loss) if types or splits else PLAIN


@lru_cache(maxsize=4096)
def _kind(types: tuple[str, ...], splits: tuple[tuple[str, str], ...], has_loss: bool) -> RecordKind:
    for text in types:
        if len(text) <= _TYPE_LIMIT:
            kind = _by_type(text, has_loss)
            if kind is not None:
                return _with_split(kind, splits)
    return _with_split(PLAIN, splits)


def _by_type(text: str, has_loss: bool) -> RecordKind | None:
    words = words_of(text)
    if words & _ERROR:
        return RecordKind(Role.FACTS, note=NoteKind.ERROR)
    if words & _CHECKPOINT:
        return RecordKind(Role.FACTS, note=NoteKind.CHECKPOINT_SAVED)
    if "early" in words and words & {"stop", "stopping", "stopped"}:
        return RecordKind(Role.FACTS, note=NoteKind.EARLY_STOP)
    ends = bool(words & _END) and not words & {"iteration", "step", "epoch", "eval", "evaluation", "validation"}
    if ends:
        return RecordKind(Role.FACTS, note=NoteKind.FINISHED)
    if words & _RESUME:
        return RecordKind(Role.FACTS, note=NoteKind.RESUMED)
    if words & _CONFIG or (words & _START and not words & _VALIDATION and not words & {"step", "epoch", "iteration"}):
        return RecordKind(Role.FACTS, is_start=True)
    if says_eval(text):
        return RecordKind(prefix="eval/")
    if words & _TRAIN:
        return PLAIN
    if words & _ABOUT:
        return RecordKind(Role.FACTS)
    # A kind of its own: its numbers must not mix with the training records' unless it is them.
    return PLAIN if has_loss else RecordKind(prefix=f"{_safe(text)}/")


def _with_split(kind: RecordKind, splits: tuple[tuple[str, str], ...]) -> RecordKind:
    if kind.role is not Role.ROW:
        return kind
    for name, text in splits:
        words = words_of(text)
        if len(text) > _TYPE_LIMIT or not words:
            continue
        if words & _VALIDATION:
            return RecordKind(prefix="eval/")
        if says_eval(text) or (kind.prefix == "eval/" and not words & _TRAIN):
            return RecordKind(prefix="eval/", suffix=f"{{{name}={_safe(text)}}}")
    return kind


def _safe(text: str) -> str:
    return text.replace("{", "(").replace("}", ")").replace("=", "-").replace(",", " ")
