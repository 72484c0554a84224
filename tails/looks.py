"""Which files look like training logs: by name where that is enough, by their first bytes where it leaves doubt."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import Literal

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.opening import NotRegular, close, open_regular
from trainmon.tails.quick_dataclass import dataclass

Role = Literal["stdout", "metrics", "rank", "config", "log"]

HEAD_BYTES = 64 << 10
_FIRST_BYTES = 8 << 10

PATTERNS = (
    "*.log *.out *.err *.txt *.jsonl *.json *.csv *.tsv *tfevents* *.wandb *.parquet, and names without an ending"
)


class Doubt(Enum):
    """What a file's content must show before it counts, given its name."""

    NONE = 0  # the name says it all
    TEXT = 1  # a log by its name: numbers of a training, or words of one
    NUMBERS = 2  # could be anything: numbers of a training
    JSON = 3
    TABLE = 4
    PARQUET = 5
    SQLITE = 7
    METRIC = 6  # a metric by its place: rows of it


NAMED_UNREAD = (Doubt.TEXT, Doubt.NUMBERS)  # logs by their names: they count, so that they are named


@dataclass(frozen=True, slots=True)
class Look:
    """What a name says. `key`: what is left of it without the words that every run uses, the same for all its files.
    `is_series`: the newest of the documents that the run writes, one a step (`numbered_documents`)."""

    role: Role
    doubt: Doubt
    key: str = ""
    is_state: bool = False
    is_series: bool = False


# Settings of a training, whatever stands before the word; those of other things than the training are none.
_CONFIG = lazy(
    r"trainmon\.toml|(?!(?:generation|adapter|(?:pre)?processor|preprocessor|tokenizer|quant\w*|feature|image|video|audio"
    r"|inference|vllm|sampling|eval\w*|test|data\w*|log|logging|lm|sentence|pooling|special|added|bnb|chat|serv\w*"
    r"|deploy|slurm|sbatch|cluster|wandb|docker|pre|build|cmake|pip)[_-])"
    r"(?:[a-z0-9]{1,24}[_-]){0,4}(?:train|training|run|experiment|exp|model|ds|deepspeed|trainer|job)?"
    r"(?:(?:config|args|arguments|hparams|params|hyperparameters|hyperparams|flags)(?:[_-][a-z0-9_-]{1,24})?"
    r"\.(?:json|ya?ml|toml|gin)|(?:config|cfg|args|opts?|options|hparams|params|hyperparameters|flags)\.(?:txt|cfg|ini))"
)
_JUNK = lazy(
    r"(?:readme|licen[cs]e|changelog|notice|authors|contributing|makefile|dockerfile|requirements|environment|setup"
    r"|merges|vocab|tokenizer|special_tokens|added_tokens|generation_config|adapter_config|preprocessor_config"
    r"|dataset_infos?|package|wandb-(?:metadata|summary)|(?:all|train|eval|test|predict)_results|model\.safetensors"
    r"|pytorch_model\.bin|debug-internal|debug-cli|latest_checkpointed_iteration|pip[-_]freeze|conda|cmakelists|gitignore)"
    r"(?![a-z0-9]).*|.*\.index\.json"
)
_SURE_TEXT = lazy(r"(?:train|training|pretrain|finetune)(?:[._-]?(?:log|stdout|output|rank[._-]?\d+))*\.(?:log|out)")
_SURE_METRICS = lazy(r"(?:train[._-]?|training[._-]?|trainer[._-]?|eval[._-]?)?(?:metrics|log)\.jsonl|metrics\.csv")
_RANK_WORDS = r"rank|worker|node|host|gpu|device|npu|proc|process|task|replica"
_RANK = lazy(rf"(?:^|[._-])(?:(?:global|local)[._-]?)?(?:{_RANK_WORDS})[._-]?\d+(?=$|[._-])")
RANK_FOLDER = lazy(rf"(?:(?:global|local)[._-]?)?(?:{_RANK_WORDS})[._-]?\d{{1,6}}", re.IGNORECASE)
_NUMBERED = lazy(r"((?:.+\.)?(?:log|out|err|stdout|stderr))\.(\d{1,4})")  # of a rank, or a part that was rotated
_BATCH_SYSTEM = lazy(r"(.+)\.([oe])\d{2,}")  # PBS and SGE: name.o123, name.e123
_UNPACKERS = {"gz": "zcat", "zst": "zstdcat", "xz": "xzcat", "bz2": "bzcat"}
_PACKED = tuple(f".{ending}" for ending in _UNPACKERS)
_SPLIT = lazy(r"[._\- ]+")
_COMMON = frozenset(
    {"train", "training", "trainer", "pretrain", "finetune", "main", "run", "all", "nohup", "screen"}
    | {"eval", "evaluation", "val", "valid", "validation", "test", "loss", "losses", "throughput"}
    | {"log", "logs", "stdout", "stderr", "std", "out", "err", "error", "errors", "output", "outputs", "console"}
    | {"debug", "info", "warning", "warnings", "metrics", "metric", "history", "progress", "events", "monitor"}
    | {"system", "stats", "results", "scalars", "summary", "report"}
    # What is measured: trackers export, and DeepSpeed's monitor writes, a file for each metric of one run.
    | {"lr", "learning", "rate", "grad", "gradient", "norm", "accuracy", "acc", "ppl", "perplexity", "nll", "bpb"}
    | {"reward", "rewards", "kl", "entropy", "mfu", "samples", "tokens", "scale"}
)
_SIDE = frozenset(["debug", "err", "error", "errors", "stderr", "warning", "warnings"])
_EXTENSIONS: dict[str, tuple[Role, Doubt]] = {
    "log": ("stdout", Doubt.TEXT),
    "out": ("stdout", Doubt.TEXT),
    "err": ("log", Doubt.TEXT),
    "txt": ("stdout", Doubt.NUMBERS),
    "": ("stdout", Doubt.NUMBERS),
    "jsonl": ("metrics", Doubt.JSON),
    "ndjson": ("metrics", Doubt.JSON),
    "json": ("metrics", Doubt.JSON),
    "csv": ("metrics", Doubt.TABLE),
    "tsv": ("metrics", Doubt.TABLE),
    "parquet": ("metrics", Doubt.PARQUET),
    **dict.fromkeys(("db", "sqlite", "sqlite3"), ("metrics", Doubt.SQLITE)),
}


@lru_cache(maxsize=65536)
def look_at_name(name: str) -> Look | None:
    """What `name` says; None when a file of that name is never read.

    >>> look_at_name("slurm-12.err"), look_at_name("README.txt")
    (Look(role='log', doubt=<Doubt.TEXT: 1>, key='slurm-12', is_state=False, is_series=False), None)
    """
    lower = name.lower()
    if _CONFIG.fullmatch(lower):
        return Look("config", Doubt.NONE)
    if lower.startswith(".") or _JUNK.fullmatch(lower):
        return None
    if "tfevents" in lower or lower.endswith(".wandb") or lower == "backup.swanlab":
        return Look("metrics", Doubt.NONE)
    if lower == "trainer_state.json":
        return Look("metrics", Doubt.NONE, is_state=True)
    if match := _BATCH_SYSTEM.fullmatch(lower):
        return Look("stdout" if match.group(2) == "o" else "log", Doubt.TEXT, match.group(1))
    if numbered := numbered_name(lower):
        return Look("rank", Doubt.TEXT, _key(numbered[0].rpartition(".")[0] or numbered[0]))
    stem, _, extension = lower.rpartition(".") if "." in lower else (lower, "", "")
    if extension not in _EXTENSIONS:
        return None
    role, doubt = _EXTENSIONS[extension]
    tokens = _SPLIT.split(stem)
    if role == "stdout" and not _SIDE.isdisjoint(tokens):
        role = "log"
    if _RANK.search(stem):
        role = "rank"
    if _SURE_TEXT.fullmatch(lower) or _SURE_METRICS.fullmatch(lower):
        doubt = Doubt.NONE
    return Look(role, doubt, _key(stem))


def numbered_name(name: str) -> tuple[str, int] | None:
    """The name and the number of a log whose name ends in a number: one rank's own, or one part of several.

    >>> numbered_name("train.log.3"), numbered_name("out.0"), numbered_name("v1.0")
    (('train.log', 3), ('out', 0), None)
    """
    match = _NUMBERED.fullmatch(name.lower())
    return (name[: match.end(1)], int(match[2])) if match else None


def unpacker_of(name: str) -> str:
    """The command that gives the text of a compressed log of that name; "" for names of anything else.

    >>> unpacker_of("metrics.jsonl.gz"), unpacker_of("train.log.zst"), unpacker_of("weights.bin.gz")
    ('zcat', 'zstdcat', '')
    """
    if not name[-4:].lower().endswith(_PACKED):
        return ""
    stem, _, ending = name.rpartition(".")
    tool = _UNPACKERS.get(ending.lower(), "")
    look = look_at_name(stem) if tool and stem else None
    return tool if look is not None and look.role != "config" and "." in stem else ""


def _key(stem: str) -> str:
    """`stem` without its rank and without common words at its ends."""
    words = [word for word in _SPLIT.split(_RANK.sub("", stem)) if word]
    while words and words[0] in _COMMON:
        words.pop(0)
    while words and words[-1] in _COMMON:
        words.pop()
    return "-".join(words)


_NUMBER = rb"[-+]?(?:\d|\.\d|nan|inf)"
_STRONG = lazy(
    rb"(?:loss|grad(?:ient)?[ _-]?norm|perplexity|\bppl\b|learning[ _-]rate|\blr\b|tflops?|\bmfu\b|reward|\bbpb\b"
    rb"|tok(?:en)?s?(?:/|[ _]per[ _])s)[\w/ ().-]{0,24}[\"']?[ \t]*[:=|]?[ \t]*[\[(\"']?" + _NUMBER,
    re.IGNORECASE,
)
_WEAK = lazy(
    rb"\b(?:global[ _]?step|step|iter(?:ation)?|epoch|update|batch|accuracy|acc)\b[\"']?[ \t]*[:=|\[(]?[ \t]*"
    rb"[\[(\"']?\d",
    re.IGNORECASE,
)
_WORDS = lazy(
    rb"Traceback \(most recent call last\)|torch\.distributed|torchrun|deepspeed|megatron|\bNCCL\b|CUDA|slurmstepd"
    rb"|srun:|\*\*\*\*\* Running training|Num examples =|world[ _]size|[Ss]tarting training|Start training|\bwandb:"
    rb"|number of parameters|[Ll]oading checkpoint|tensor[-_ ]parallel|gradient_accumulation|Epoch \d+|\[rank ?\d+\]"
)
_JSON_LOSS = lazy(
    rb'"[^"\n]{0,80}(?:loss|grad_norm|perplexity|\bppl\b|bpb)[^"\n]{0,60}"\s{0,9}:\s{0,9}(?:\{\s{0,9}"[^"\n]{1,40}"\s{0,9}:|[\[{"])?\s{0,40}[-\dnNI]'
    rb'|"(?:_?name|key|tag|metric(?:_?name)?)"[ \t]*:[ \t]*"[^"\n]{0,80}(?:loss|reward)|"log_history"[ \t\r\n]*:',
    re.IGNORECASE,
)
_JSON_COLUMN = lazy(  # a column or a series of its own: {"lm loss": {"values": ...}}, {"x": {"steps": [...]}}
    rb'"[^"\n]{0,80}loss[^"\n]{0,60}"\s{0,9}:\s{0,9}(?:\[\s{0,40}(?:\[\s{0,40})?[-\d]|\{\s{0,40}"(?:start_step|values|steps|\d)'
    rb'|\[\s{0,40}\{\s{0,40}"(?:global_step|step|iter|iteration|epoch)")'
    rb'|"[^"\n]{0,80}loss[^"\n]{0,60}"\s{0,9}:\s{0,9}\{\s{0,40}"[^"\n]{1,60}"\s{0,9}:\s{0,9}\{\s{0,40}"(?:name|x|y)"\s{0,9}:'
    rb'|"columns"\s{0,9}:\s{0,9}\[[^\[\]]{0,2000}loss'
    rb'|"steps"\s{0,9}:\s{0,9}\[\s{0,40}\d|"system\.gpu[^"\n]{0,80}"\s{0,9}:\s{0,9}\d',
    re.IGNORECASE,
)
_JSON_TRIPLES = lazy(  # TensorBoard's export of one chart: [[time, step, value], ...]
    rb"\s*\[\s*(?:\[\s*1\d{9}(?:\.\d{1,20})?\s*,\s*\d{1,12}\s*,\s*[-\dN][\w.+-]{0,40}\s*\]\s*,?\s*){2}"
)
_JSON_OTHER = lazy(
    rb'"[^"\n]{0,80}(?:reward|accuracy|_acc|learning_rate|\blr\b|kl)[^"\n]{0,60}"\s{0,9}:\s{0,9}[-\d]', re.I
)
# Records of what a model said (rollouts, completions, test sets): their rewards and steps are no log of a training.
_JSON_SAID = lazy(
    rb'"(?:prompts?|completions?|responses?|inputs?|outputs?|messages|generations?|questions?|answers?|conversations)"'
    rb'\s{0,9}:\s{0,9}(?:"|\[\s{0,9}["{])',
    re.IGNORECASE,
)
_COLUMN_SAID = lazy(rb"\b(?:prompts?|completions?|responses?|messages|conversations)\b")
_JSON_HINT = lazy(rb"loss|norm|perplexity|ppl|bpb|log_history|reward|acc|learning_rate|lr|kl", re.IGNORECASE)
_JSON_STEP = lazy(
    rb'"[^"\n]{0,40}(?:step|iter|iteration|epoch|update)[^"\n]{0,20}"\s{0,9}:\s{0,9}(?:\{\s{0,9}"\w{1,40}"\s{0,9}:\s{0,9})?\d',
    re.I,
)
# A file of one metric without a header: MLflow's milliseconds, value, step; Neptune's step, time, value.
_BARE_ROWS = lazy(
    rb"(?:\d{13} " + _NUMBER + rb"\S{0,40} \d{1,12}\r?\n){1,3}|(?:\d{1,12}(?:\.0{1,9})?,(?:\d{13}|\d{10}\.\d{1,9}"
    rb"|\d{4}-\d\d-\d\d[ T][\d:.]{1,20}[ \w:+-]{0,8})," + _NUMBER + rb"[^\s,]{0,40}\r?\n){3}",
    re.IGNORECASE,
)
_SQL_TABLE = lazy(
    rb"CREATE TABLE (?=[^;]{0,900}\bstep\b)(?:[^;]{0,900}(?:metrics?\b|loss)"
    rb"|(?=[^;]{0,900}\bvalue\b)[^;]{0,900}\b(?:name|key|tag)\b)",
    re.IGNORECASE,
)
_SCHEMA_BYTES = 1 << 20  # within which the pages of a new database's schema lie
_MARKDOWN = lazy(  # the header of a table between bars, and the line of dashes below it
    rb"(?im)^\|[^\n]{0,200}\b(?:step|iter|iteration|epoch)\b[^\n]{0,300}\bloss\b[^\n]{0,300}\|\r?\n\|[-:| ]{3,400}\|"
)
_MARKS = (b":::MLLOG", b'"type": "LogFloats"')  # of MLPerf, of Neptune's queue
_TABLE_METRIC = lazy(
    rb"loss|reward|perplexity|ppl|grad_norm|accuracy|learning_rate|return|bpb|(?<![a-z])lr(?![a-z])", re.IGNORECASE
)
_WHOLE_NUMBER = lazy(rb"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}|nan|inf)(?:e[-+]?\d{1,4})?", re.IGNORECASE)
_MOST_REMARKS = 50  # lines above a table's header
_TABLE_STEP = lazy(rb"(?:^|[,;\t\"_ ])(?:step|iter|iteration|epoch|update)s?(?=$|[,;\t\"_ ])", re.IGNORECASE)


def looks_like_log(path: str, doubt: Doubt, unread: Callable[[str, OSError], None] | None = None) -> bool:
    """Whether the first or the last 64 KiB of `path` show what `doubt` asks for (a long start-up comes before the
    first numbers). An unreadable file counts, so that it is named, when its name is a log's; `unread` is told of
    another one."""
    try:
        fd, status = open_regular(path)
    except NotRegular:
        return False
    except OSError as error:
        return doubt in NAMED_UNREAD or _is_none(path, error, unread)
    try:
        return content_looks_like_log(lambda size, place: os.pread(fd, size, place), status.st_size, doubt)
    except OSError as error:
        return doubt is Doubt.TEXT or _is_none(path, error, unread)
    finally:
        close(fd)


def _is_none(path: str, error: OSError, unread: Callable[[str, OSError], None] | None) -> bool:
    if unread is not None and error.errno != errno.ENOENT:  # gone meanwhile
        unread(path, error)
    return False


def content_looks_like_log(read: Callable[[int, int], bytes], file_size: int, doubt: Doubt) -> bool:
    """As `looks_like_log`, of a file of which `read` gives so many bytes from an offset on; it may raise OSError."""
    if doubt is Doubt.PARQUET:
        return _parquet_has_metrics(read, file_size)
    if doubt is Doubt.SQLITE:
        return _sqlite_has_metrics(read, file_size)
    for size, place in ((_FIRST_BYTES, 0), (HEAD_BYTES, 0), (HEAD_BYTES, max(file_size - HEAD_BYTES, 0))):
        part = read(size, place)
        if shows_training(part, doubt):
            return True
        if len(part) < size:
            break
    return False


def shows_training(head: bytes, doubt: Doubt) -> bool:
    """Whether `head` holds numbers of a training (or words of one, where the name is a log's).

    >>> shows_training(b"step 10: train loss 2.5, lr 1e-4", Doubt.NUMBERS)
    True
    >>> shows_training(b"numpy>=1.26", Doubt.NUMBERS)
    False
    """
    text = head.replace(b"\0", b"") if b"\0" in head[:4096] else head
    if doubt is Doubt.JSON:
        return _json_shows(text)
    if doubt is Doubt.TABLE:
        return _table_shows(text) or _BARE_ROWS.match(text) is not None
    if doubt is Doubt.METRIC:
        return _BARE_ROWS.match(text) is not None or _TABLE_STEP.search(text.partition(b"\n")[0].strip()) is not None
    if any(mark in text for mark in _MARKS) or _BARE_ROWS.match(text) is not None:
        return True
    if _is_table(text) or _is_aligned(text) or _MARKDOWN.search(text) is not None:
        return True
    strong = _STRONG.search(text)
    if strong is not None and (_WEAK.search(text) or _STRONG.search(text, strong.end())):
        return True
    return doubt is Doubt.TEXT and _WORDS.search(text) is not None


def _json_shows(text: bytes) -> bool:
    if not text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return shows_training(text, Doubt.NUMBERS)
    if _JSON_COLUMN.search(text) is not None or _JSON_TRIPLES.match(text) is not None:
        return True
    if _JSON_HINT.search(text) is None:
        return False
    first = _JSON_LOSS.search(text)
    if first is not None and (b"log_history" in first.group() or _JSON_STEP.search(text)):
        return True
    if first is not None and _JSON_LOSS.search(text, first.end()):
        return True
    return bool(_JSON_OTHER.search(text) and _JSON_STEP.search(text)) and not _JSON_SAID.search(text)


def _table_shows(text: bytes) -> bool:
    rest = text.lstrip(b"\xef\xbb\xbf\r\n")
    for _ in range(_MOST_REMARKS):
        header, _, rest = rest.partition(b"\n")
        is_remark = header.startswith((b"#", b"sep=", b'"sep='))
        if not is_remark or not (b":" in header or b"=" in header):
            if _is_table_header(header, rest):
                return True
            if not is_remark:
                return False
    return False


def _is_table_header(header: bytes, rest: bytes) -> bool:
    if len(header) > 32768 or not any(mark in header for mark in b",;\t|"):
        return False
    has_step = _TABLE_STEP.search(header.strip()) is not None
    has_metric = _TABLE_METRIC.search(header) is not None
    return (has_metric or (has_step and b"alue" in header)) and (
        has_step or not rest or rest[:1] in b'-+.0123456789"n,'
    )


def _is_table(text: bytes) -> bool:
    """Whether a file of any name begins with a table of a training: its header, and a row of as many fields."""
    header, _, rest = text.lstrip(b"\xef\xbb\xbf\r\n").partition(b"\n")
    mark = b"\t" if b"\t" in header else b","
    row = rest.partition(b"\n")[0]
    has_row = row[:1] in b'-+.0123456789"' and row.count(mark) == header.count(mark)
    return bool(row) and has_row and mark in header and b":" not in header and _table_shows(text)


def _is_aligned(text: bytes) -> bool:
    """Whether a file of any name begins with names of a training's columns over numbers, blanks between."""
    header, _, rest = text.lstrip(b"\xef\xbb\xbf\r\n").partition(b"\n")
    header = header[:4096].strip(b"# \t\r")
    names, row = header.split(), rest[:8192].partition(b"\n")[0].split()
    return (
        2 <= len(names) == len(row)
        and _TABLE_METRIC.search(header) is not None
        and _TABLE_STEP.search(header) is not None
        and all(_WHOLE_NUMBER.fullmatch(field) for field in row)
    )


def _sqlite_has_metrics(read: Callable[[int, int], bytes], size: int) -> bool:
    """The statements that made the tables stand in pages of their own: a training's has a step beside metrics."""
    head = read(HEAD_BYTES, 0)
    if not head.startswith(b"SQLite format 3\0"):
        return False
    places = {0, max(size - HEAD_BYTES, 0)} | set(range(HEAD_BYTES, min(size, _SCHEMA_BYTES), HEAD_BYTES))
    return any(_SQL_TABLE.search(read(HEAD_BYTES, place)) for place in sorted(places))


def _parquet_has_metrics(read: Callable[[int, int], bytes], size: int) -> bool:
    """The column names stand in the footer: a training's has a step and something that is measured."""
    end = read(8, max(size - 8, 0))
    if len(end) < 8 or end[4:] != b"PAR1":
        return False
    length = min(int.from_bytes(end[:4], "little"), 1 << 20, size - 8)
    footer = read(length, size - 8 - length)
    if b"_step" in footer:  # W&B's history
        return True
    if _COLUMN_SAID.search(footer) and b"loss" not in footer:
        return False
    return bool(_TABLE_METRIC.search(footer) and re.search(rb"step|epoch|iter", footer, re.IGNORECASE))
