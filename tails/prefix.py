"""What stands before a log line's own words: rank, host, time, logger. Read once, kept for the record.

Launchers, schedulers and loggers each put something in front, one before the other:
``2024-08-04T16:36:37.169590636Z [rank3]:[titan] 2026-05-03 02:03:00,104 - root - INFO - step: 5 ...``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

from trainmon.tails.lazy_pattern import lazy
from trainmon.tails.quick_dataclass import dataclass
from trainmon.tails.record import TimeKind

_ZONED = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d| [+-](?:0\d|1[0-4])(?:00|30|45))"
_NAIVE = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?"
_US = r"\d\d/\d\d/(?:\d{4}|\d\d)[ T]\d\d:\d\d:\d\d(?: ?[AP]M)?"
_MONTH = r"\d\d-[A-Z][a-z]{2}-\d{4} \d\d:\d\d:\d\d"
_UNIX = r"(?:1[4-9]|2[01])\d{8}(?:\.\d+)?"
_CTIME = r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?: [A-Z]{3,4})? \d{4}"
_SYSLOG = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
_SHORT = r"\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?"
_NO_YEAR = r"\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?"
_COMPACT = r"\d{8} \d\d:\d\d:\d\d"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_LEVEL = r"(?:TRACE|DEBUG|INFO|SUCCESS|WARNING|WARN|ERROR|CRITICAL|FATAL|NOTICE|[DIWEF])"

# Tried in turn at the place reached, as often as one fits. Each alternative has one group at most, which is named:
# rank, level, or the kind of time.
_PREFIX = lazy(
    r"\s*(?:"
    r"\[(?:[^\]\s]*:)?(?:rank(?:[-_ =]|: )?|default)(?P<rank>\d+)(?:/\d+)?\]:?"  # [rank3]: [default0]: [rank: 7/8]
    r"|\[\d+,(?:mpirank:)?(?P<rank4>\d+)(?:,[\w.-]+)?\]<std(?:out|err)>:"  # mpirun: [1,3]<stdout>:
    r"|\[(?:pod/[\w./-]+|std(?:out|err))\](?=\s)"  # kubectl logs --prefix
    r"|workerpool\d+-\d+\t{1,2}"  # Vertex: INFO, time, workerpool0-0, tabs between
    r"|std(?:out|err) [FP](?=\s)"  # a container's own log, behind its time
    r"|\[[Rr]ank[ -]?(?P<rank2>-?\d+)\](?=[\s\[])"  # [Rank 0]
    r"|rank(?P<rank5>\d+)\[\d+\]\[\w+\]:(?=\s)"  # LLM Foundry: rank0[2211][MainThread]: INFO: llmfoundry.train:
    r"|\[[A-Za-z][\w.-]*:(?P<rank3>\d+)\]:"  # [ip-26-0-147-189:1]:
    rf"|\(\w[\w:.]* pid=(?P<pid>\d+)(?:, ip=[\d.]+)?\)"  # ray: (TaskRunner pid=1, ip=1.2.3.4)
    rf"|\[(?:(?P<naive4>{_NAIVE})|(?P<day>{_NO_YEAR}))\|{_LEVEL}\|[\w./-]+\.py:\d+(?::\w+)?\](?=\s)"  # joined by bars
    rf"|\[?(?P<zoned>{_ZONED})\]?(?=[\s:,|\[]|$)"
    rf"|\[(?P<naive3>{_NAIVE})"  # and who wrote it, up to the bracket's end
    r"(?![^\]]*\b(?:loss|step|iter|epoch))(?: [\w.:/,-]{1,60}){2,8}\](?=\s)"
    rf"|\[?(?P<naive>{_NAIVE})(?: [\w.-]+(?=\]))?(?: (?:UTC|GMT))?\]?(?=[\s:,|\[-]|$)"
    rf"|\((?P<naive2>{_NAIVE})\)"
    rf"|\[(?P<colons>\d{{4}}-\d\d-\d\d:\d\d:\d\d:\d\d):{_LEVEL}:[\w.]+(?::\w+)?\]"  # [2025-03-04:10:00:00:INFO:a.b:c]
    rf"|\[?(?P<us>{_US})\]?(?=\s|$)"
    rf"|\[?(?P<month>{_MONTH})\]?(?=\s|$)"
    rf"|\[?(?P<ctime>{_CTIME})\]?(?=[\s\[:]|$)"
    rf"|(?P<syslog>{_SYSLOG})\s+"  # journalctl: Jan 15 10:00:00 host python[9]:
    r"(?:[\w.-]+ (?:[\w./-]+\[\d+\]|kernel)|(?=\S*[\d.])[\w.-]+ (?!\d+:)[\w./-]+):(?=\s)"
    rf"|\[?(?P<syslog2>{_SYSLOG})\]?(?=\s)"  # ts: Jan 15 10:00:00
    rf"|\[?(?P<unix>{_UNIX})\]?(?=\s+(?:[A-Za-z\[{{('|\u2500-\u257f]|\d{{2,4}}[-/]\d\d[-/]\d{{2,4}}[T ]|\d{{1,5}}: ))"
    rf"|\[?(?P<short>{_SHORT})\]?(?=\s|$)"
    rf"|\[?(?P<compact>{_COMPACT})\]?(?=[\s\[]|$)"
    rf"|\[?(?P<clock>{_CLOCK})\]?(?=\s|$)"
    rf"|\[?(?P<glog>[DIWEF](?:20\d\d)?\d{{3,4}} \d\d:\d\d:\d\d(?:\.\d+)?)\s+(?:\d+\s+)?(?:[\w.]+\s+)?"  # glog
    r"[\w./+-]+:\d+\]"
    rf"|\[{_LEVEL}\|[\w./-]+\.py:\d+\]\s+(?P<hf>\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d,\d+) >>"
    rf"|\[{_LEVEL}\|(?P<hf2>{_NAIVE})\]\s+[\w./-]+:\d+ >>"  # [INFO|2024-11-26 23:01:20] logging.py:157 >>
    rf"|\[NeMo {_LEVEL} (?P<nemo>{_NAIVE}) [\w.]+:\d+\]"
    r"|##\[(?P<level6>error|warning|debug|section|command)\]"  # GitHub, Azure
    rf"|\[{_LEVEL}\|[A-Z]+=\d+(?:\|[^\]\s|]+)*\]:"  # nanotron: [INFO|DP=0|PP=0|TP=0|host]:
    rf"|\[(?P<level5>{_LEVEL}):[A-Za-z_][\w.]*\](?=\s)"  # [INFO:sockeye.training]
    rf"|\[[DIWEF] [\w./+-]+:\d+\](?=\s)"  # [E ProcessGroupNCCL.cpp:458]
    rf"|\b(?P<level2>{_LEVEL}):[A-Za-z_][\w.]*:(?=\S)"  # logging.basicConfig: INFO:__main__:
    rf"|\[[\w.]+\]\[{_LEVEL}\]"  # hydra: [__main__][INFO]
    r"|\[[A-Za-z][\w.-]*\](?=\s\[(?i:debug|info|warning|warn|error|critical|trace)\]\s)"  # spdlog: [trainer] [info]
    r"|\[\s*(?P<level3>(?i:debug|info|warning|warn|error|critical|exception))\s*\](?=[\s\[])"  # structlog: [info     ]
    rf"|\[?\b(?P<level>{_LEVEL})\b\]?(?=[\s:|\[-])(?:\s*::?)?"
    r"|[\w.]+:[\w<>.]+:\d+(?=\s+-\s)"  # loguru: __main__:train:123 -
    r"|(?:\[MainThread\]|(?:MainProcess|MainThread|SpawnProcess-\d+)\b)(?:\s+[\w.]+:(?=\s))?"
    r"|\[[-\w./]+:\d+(?::\w+)?\](?: ?:)?"  # [logging.py:96:log_dist]
    r"|\([\w./-]+ \d+\):"  # (main.py 506):
    r"|[\w./]+\.py:\d+(?:\](?=\s)|(?=\s*[-|\]:\s]))"
    r"|DLL(?=\s\d{4}-\d\d-\d\d)|\[titan\]|\[Primus[:\w]*\]"
    r"|-\s*(?P<names>\d+:\d\d:\d\d|[\w.]+(?:\s+-\s+[\w.]+)*)\s+-(?=\s)"  # - root -, - 0:00:45 -
    r"|\[\d\d/\d\d \d\d:\d\d:\d\d [\w.]+\]:"
    r"|(?:::|[-|:])(?=\s)"
    r")"
)
_SRUN = lazy(r"\s{0,3}(\d{1,5}): (?!\d+(?:\.\d+)?\s*$)")
_CARD = lazy(r"(?:GPU|NPU|Worker|Node|Process) (\d{1,5})\s?[:|>]+\s+(?=[A-Za-z\[])")  # GPU 3: step 5
_SERVICE = lazy(r"(?!step|iter|epoch)[a-z][\w.]*(?:-[\w.]+)*-\d+ +\| ", re.IGNORECASE)  # docker compose: trainer-1  |
# What only a line's beginning looks like: another prefix, a box, a part of a traceback.
_BEGINNING = (
    r"(?=[\u2500-\u257f{\[]|[DIWEF](?:20\d\d)?\d{4} \d\d:|\d\d:\d\d:\d\d\b|\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:"
    r"|(?:DEBUG|INFO|WARNING|ERROR)\b|Traceback \(|\s{2,}[a-z_^~]"
    r"|(?:[a-z_]\w{0,60}\.){0,8}\w{1,60}(?:Error|Exception|Interrupt)\b)"
)
_POD = lazy(  # stern: pod and container
    r"(?!(?:global[ _]?)?(?:step|iter|epoch))[a-z][a-z0-9]*(?:-[a-z0-9]+)+ [a-z][a-z0-9-]* "
    r"(?=\[|\W*(?:global_?)?(?:step|iter|epoch)\b)"
    rf"|(?=\S*\d)[a-z][a-z0-9]*(?:-[a-z0-9]+)+ [a-z][a-z0-9-]* {_BEGINNING}",
    re.IGNORECASE,
)
_BULLET = lazy(r"(?:[^\w\s\x00-\x7f\u2500-\u257f]+|[-=]{1,3}>)\s+(?=[A-Za-z])")  # an emoji, an arrow
# A word with a digit right before the word for the step: a host, a worker, a task, however it is fenced.
_WHO = lazy(
    r"(?!\W?(?:global|train|step|iter|epoch|rank|batch|update|loss|default))(?=\S*\d)[\[<(]?(?P<name>[A-Za-z][\w.-]{0,200})"
    r"(?::(?P<rank>\d+))?[\]>)]?(?: \(\d+\))?(?:[:>]|\s*\|)?\s+(?=(?:global[_ ]?)?(?:step|iter(?:ation)?|epoch)\b)",
    re.IGNORECASE,
)
# The same with a path in place of the word, behind a time: CloudWatch's log streams.
_STREAM = lazy(
    r"[A-Za-z][\w.-]{0,100}/(?=\S*\d)[\w./-]{1,200} (?=\W?(?:global[_ ]?)?(?:step|iter(?:ation)?|epoch)\b)",
    re.IGNORECASE,
)
_JOB = lazy(r"[^\t]{1,100}\t[^\t]{1,100}\t(?=\d{4}-\d\d-\d\dT)")  # GitHub: job and step, tabs between, and a time
_WORKER = lazy(r"(?:gpu|worker|proc|process|device|npu|trainer|task|node|host)[-_.]?(\d{1,6})", re.IGNORECASE)
# A word with a digit and a colon: a host; no code of Ascend's (EI0002: ), no exception (http2.errors.StreamError: ).
_HOST = lazy(
    r"(?!slurmstepd-|E[A-Z0-9]\d{4}: |[\w.]{1,200}(?:Error|Exception): )"
    r"(?=[\w.-]*\d)(?=.[\w.]*[-\d])(?>[A-Za-z\d][\w.-]*): "
    r"(?:(?![-+\d.])|(?=-{3}|\d{2,4}[-/]\d\d[-/]\d{2,4}[T ]\d\d:|\d\d:\d\d:\d\d\b"
    r"|\d{1,9}(?:\s{2,20}-?\d| +[A-Za-z]\w{0,30}=)))"
    r"|(?>[A-Za-z][\w.-]*\[\d+(?:[-,]\d+)+\][\w.-]*): "  # clush -b: gpu[01-04]:
)
# A container's or an actor's label, behind which a launcher writes those of its hosts.
_WRAPPER = lazy(
    r"(?:\[pod/[\w./-]+\]|\(\w[\w:.]* pid=\d+(?:, ip=[\d.]+)?\)|(?!step|iter|epoch)[a-z][\w.]*(?:-[\w.]+)*-\d+ +\|)\s+",
    re.IGNORECASE,
)
# Behind an outer stamp (``srun -l | ts``, ``pdsh | ts``): the task's number, or its host before a line's beginning.
_LABEL = lazy(
    r"\s{1,4}(?:(?P<task>\d{1,5}): (?!\d+(?:\.\d+)?\s*$)"
    rf"|(?!step|iter|epoch|layer|block|rank)(?=[\w.-]*\d)[a-z][\w.-]*-[\w.-]*: {_BEGINNING})",
    re.IGNORECASE,
)
_LOGGER = lazy(
    r"[\w.]+:\d+\s+(?:INFO|DEBUG|WARNING)\s+|[\w.-]+(?::\d+)?\s+[\w.]+:\d+\s+(?:INFO|DEBUG|WARNING)\s+"
    r"|[\w.-]+ [\w./-]+\[\d+\]: "  # syslog behind an ISO time: host train[991]:
)
_STARTERS = frozenset("[(0123456789DIWEFN-|: \t#")
_MAX_PARTS = 10
_LONGEST = 400  # characters that all the parts together may have


@dataclass(frozen=True, slots=True)
class Prefix:
    """What was before the words. `time` is seconds since the epoch for a zoned stamp (kind ABSOLUTE), else seconds
    on the log's own calendar (NAIVE). `at` is where the words begin. `rank` is a launcher's label, "" without one.
    `is_warning`: the logger says that the program went on; `is_error`: that something failed; `is_fatal`: that it ends
    here. `is_bare`: the rank is a number and a colon alone (srun's label), which could as well be a step.
    """

    at: int = 0
    rank: str = ""
    time: float | None = None
    time_kind: TimeKind = TimeKind.NONE
    is_clock: bool = False
    is_warning: bool = False
    is_bare: bool = False
    is_fatal: bool = False
    is_error: bool = False


NO_PREFIX = Prefix()


def read_prefix(text: str) -> Prefix:
    """The prefix of `text`.

    >>> line = "[rank3]:[titan] 2026-05-03 02:03:00,104 - root - INFO - step: 5"
    >>> prefix = read_prefix(line)
    >>> line[prefix.at:], prefix.rank, prefix.time_kind.value
    ('step: 5', '3', 'naive')
    >>> read_prefix(" 3: loss 2.5").rank, read_prefix("loss: 2.5").at
    ('3', 0)
    """
    text = text[:_LONGEST]
    at = 0
    rank = ""
    time: float | None = None
    kind = TimeKind.NONE
    is_clock = is_warning = is_bare = is_fatal = is_error = False
    match = _SRUN.match(text)
    if match is not None:
        rank, at, is_bare = match.group(1), match.end(), True
    elif (match := _WHO.match(text)) is not None:
        at = match.end()
        rank = _rank_of(match)
    elif (match := _CARD.match(text)) is not None:
        rank, at = match.group(1), match.end()
    elif text[:1] not in _STARTERS or text[:1].isalnum():
        match = _HOST.match(text) or _SERVICE.match(text) or _POD.match(text) or _JOB.match(text)
        if match is None and (text[:1] in "-=" or text[:1] > "\x7f"):
            match = _BULLET.match(text)
        if match is not None:
            at = match.end()
    elif at == 0 and text[:1] not in _STARTERS:
        return NO_PREFIX
    begun = at > 0
    for _ in range(_MAX_PARTS):
        start = text[at : at + 4]
        if start[:1] not in _STARTERS and start not in _LEVEL_STARTS and start not in _DATE_STARTS:
            break
        match = _PREFIX.match(text, at)
        if match is None or match.end() == at:
            break
        at = match.end()
        name = match.lastgroup  # of the one alternative that fits
        if name is None:
            continue
        said = match[name]
        if name in _RANK_GROUPS:
            rank = said
        elif name in _LEVEL_GROUPS:
            is_warning = is_warning or said[:1] in ("W", "w")
            is_fatal = is_fatal or said[:1] == "F"
            is_error = is_error or said[:1] in _ERROR_LETTERS
        elif name == "names":  # of the logger and, before or behind it, of the level
            is_warning = is_warning or "WARN" in said
            is_fatal = is_fatal or "FATAL" in said
            is_error = is_error or "ERROR" in said or "CRITICAL" in said
        if name in _TIME_GROUPS and kind is not TimeKind.ABSOLUTE and (kind is TimeKind.NONE or name == "zoned"):
            stamp = _time_of(name, said)
            if stamp is not None:
                time, kind = stamp
                is_clock = name == "clock"
                if not (begun or rank) and (match := _LABEL.match(text, at)) is not None:
                    rank, at, is_bare = match["task"] or "", match.end(), match["task"] is not None
        begun = True
    if at and kind is TimeKind.NONE and not rank and (match := _WRAPPER.match(text)) is not None:
        words = match.end()
        if _HOST.match(text, words) is not None:  # kubectl logs of a launcher that runs pdsh
            inner = read_prefix(text[words:])
            return replace(inner, at=words + inner.at)
    if at:
        match = _LOGGER.match(text, at + (len(text[at:]) - len(text[at:].lstrip()) if at < len(text) else 0))
        if match is not None:
            at = match.end()
        words = at + len(text[at:]) - len(text[at:].lstrip())
        if (kind is not TimeKind.NONE or not rank) and (match := _WHO.match(text, words)) is not None:
            at, rank = match.end(), rank or _rank_of(match)
        elif kind is TimeKind.ABSOLUTE and (match := _STREAM.match(text, words)) is not None:
            at = match.end()
        while text[at : at + 1] in (" ", "\t") and text[at + 1 : at + 2] not in (" ", "\t"):
            at += 1
    return Prefix(at, rank, time, kind, is_clock, is_warning, is_bare, is_fatal, is_error) if at else NO_PREFIX


def dated(prefix: Prefix, other: Prefix) -> Prefix:
    """`prefix` with the time of `other`, and its rank where it has none of its own."""
    rank = prefix.rank or other.rank
    return replace(prefix, rank=rank, time=other.time, time_kind=other.time_kind, is_clock=other.is_clock)


def _rank_of(who: re.Match[str]) -> str:
    """The rank in a word for who wrote the line, "" where it names but a host."""
    worker = _WORKER.fullmatch(who["name"])
    return who["rank"] or (str(int(worker.group(1))) if worker is not None else "")


_ERROR_LETTERS = frozenset("ECec")  # ERROR, CRITICAL
_LEVEL_STARTS = frozenset({"DEBU", "INFO", "WARN", "ERRO", "CRIT", "FATA", "NOTI", "SUCC", "TRAC"})
_DATE_STARTS = frozenset(
    {
        *("Jan ", "Feb ", "Mar ", "Apr ", "May ", "Jun ", "Jul ", "Aug ", "Sep ", "Oct ", "Nov ", "Dec "),
        *("Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "),
    }
)
_ZONE_NAME = lazy(r" [A-Z]{3,4}(?= \d{4}$)")


def _time_of(name: str, text: str) -> tuple[float, TimeKind] | None:
    """The time that a prefix's group tells; None when it is no date of the calendar."""
    try:
        return _parse(name, text)
    except ValueError:
        return None


def _of_us(text: str) -> datetime:
    """A stamp that begins with the month: year of two or four digits, clock of 12 or 24 hours."""
    if text.endswith("M"):
        year = "%y" if text[8:9] in " T" else "%Y"
        return datetime.strptime(text, f"%m/%d/{year} %I:%M:%S %p")
    day, _, clock = text.replace("T", " ").partition(" ")
    month, day, year = day.split("/")
    return datetime.fromisoformat(f"{year if len(year) == 4 else '20' + year}-{month}-{day} {clock}")


_TIME_GROUPS = frozenset(
    (
        *("zoned", "naive", "naive2", "naive3", "naive4", "day", "colons", "hf", "hf2", "nemo", "short"),
        *("us", "month", "ctime", "syslog", "syslog2", "unix", "compact", "glog", "clock"),
    )
)
_RANK_GROUPS = frozenset(("rank", "rank2", "rank3", "rank4", "rank5"))
_LEVEL_GROUPS = frozenset(("level", "level2", "level3", "level5", "level6", "glog"))
_FRACTION = lazy(r"[.,](\d+)")


def _parse(name: str, text: str) -> tuple[float, TimeKind]:
    """Seconds of a stamp of kind `name`. Raises ValueError when it is no date."""
    if name == "unix":
        return float(text), TimeKind.ABSOLUTE
    fraction = 0.0
    match = _FRACTION.search(text)
    if match is not None:
        fraction = float("0." + match.group(1))
        text = text[: match.start()] + text[match.end() :]
    if name == "zoned":
        return datetime.fromisoformat(text).timestamp() + fraction, TimeKind.ABSOLUTE
    if name == "clock":
        hours, minutes, seconds = text.split(":")
        return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + fraction, TimeKind.NAIVE
    if name == "glog":  # no year: only differences count, and 2000 has a 29th of February
        day, clock = text[1:].split(" ")
        day = day.rjust(4, "0")[-4:]
        moment = datetime.fromisoformat(f"2000-{day[:2]}-{day[2:]}T{clock}")
    elif name in ("syslog", "syslog2"):  # no year either
        moment = datetime.strptime(f"2000 {text}", "%Y %b %d %H:%M:%S")
    elif name == "ctime":
        moment = datetime.strptime(_ZONE_NAME.sub("", text)[4:], "%b %d %H:%M:%S %Y")
    elif name == "us":
        moment = _of_us(text)
    elif name == "day":
        moment = datetime.fromisoformat(f"2000-{text}")  # as for "glog"
    elif name == "short":
        moment = datetime.fromisoformat(f"20{text}")
    elif name == "month":
        moment = datetime.strptime(text, "%d-%b-%Y %H:%M:%S")
    elif name == "compact":
        moment = datetime.fromisoformat(f"{text[:4]}-{text[4:6]}-{text[6:]}")
    elif name == "colons":
        moment = datetime.fromisoformat(f"{text[:10]} {text[11:]}")
    else:
        moment = datetime.fromisoformat(text.replace("/", "-"))
    return moment.replace(tzinfo=UTC).timestamp() + fraction, TimeKind.NAIVE
