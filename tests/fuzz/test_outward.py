"""What goes out to other programs and people, made of runs whose every word and number is hostile."""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from pathlib import Path
from typing import Any
from unicodedata import category
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.budget import fuzz
from tests.fuzz.mutation import changed_from
from tests.hostile.attacks import SEQUENCES, unprintable
from tests.monitor.sinks.made import NOW, episode, fleet_of, run_of
from tests.tui import sample
from trainmon.monitor.ci_reports import junit, sarif
from trainmon.monitor.document import check_document, dumps
from trainmon.monitor.finding import CheckResult, Episode, Severity, Verdict
from trainmon.monitor.frame import SignalKey
from trainmon.monitor.prometheus import exposition
from trainmon.monitor.sinks.base import SinkError
from trainmon.monitor.sinks.event import AlertEvent, Rank
from trainmon.monitor.sinks.notify import words
from trainmon.monitor.sinks.settings import AlertSettings, from_config
from trainmon.monitor.sinks.terminal import WAYS, notification
from trainmon.monitor.snapshot import RunSnapshot, State
from trainmon.monitor.user_config import ConfigError, read_config
from trainmon.tails.naming import name_runs
from trainmon.tui.keymap import key_map_of
from trainmon.tui.keys import KEYS

# Text as logs hold it (bytes that are no text come as lone surrogates), and what would be obeyed somewhere.
_OBEYED = (
    *SEQUENCES,
    'a"b\\c\n{d}',
    "x" * 300 + "1",
    "x" * 300 + "2",
    "\ufffe\uffff",
    "\ud800",
    "]]>",
    "<!--",
    "\0",
    "",
)
_RAW = st.binary(max_size=8).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
TEXTS = st.one_of(st.sampled_from(_OBEYED), st.text(max_size=12), _RAW).map(
    lambda text: "".join(one for one in text if category(one) != "Cn" or one in "\ufffe\uffff")  # others show as boxes
)
FLOATS = st.one_of(st.floats(), st.sampled_from([0.0, 1e308, 5e-324, 2.0**53, -1.0, math.nan, math.inf]))
NAMES = st.lists(TEXTS.map(lambda text: text.replace("\0", "") or "x"), max_size=4, unique=True).map(
    lambda paths: name_runs(paths, Path("/runs"))
)
_VIEW = next(view for run in sample.fleet().runs for view in run.series.values() if view.count)

EPISODES = st.builds(
    episode,
    name=TEXTS,
    signal=st.one_of(st.sampled_from(["loss.train", "grad.norm"]), TEXTS),
    severity=st.sampled_from(Severity),
    kind=TEXTS,
    check=st.sampled_from(["loss.nonfinite", "loss.spike"]),
    incident=TEXTS,
    step=FLOATS,
    recovered=st.booleans(),
    what=TEXTS,
    path=TEXTS.map(lambda text: os.fsdecode(text.encode("utf-8", "replace").replace(b"\0", b"\xff"))),
)
LABELS = st.lists(st.tuples(TEXTS, TEXTS), max_size=3).map(lambda pairs: tuple(sorted(dict(pairs).items())))
SERIES = st.builds(SignalKey, st.one_of(st.sampled_from(["loss.train", "optim.lr"]), TEXTS), LABELS)
CHECKS = st.builds(
    CheckResult,
    st.sampled_from(["loss.nonfinite", "loss.spike"]),
    st.just("A Check"),
    st.sampled_from(Verdict),
    TEXTS,
    why=TEXTS,
    next=TEXTS,
)


def _run(
    name: str, episodes: list[Episode], keys: list[SignalKey], checks: list[CheckResult], number: float
) -> RunSnapshot:
    return run_of(
        *episodes,
        name=name,
        series=dict.fromkeys(keys, _VIEW),
        checks=tuple({check.id: check for check in checks}.values()),
        last_step=number,
        age_s=number,
        state=State.RUNNING if number == number else State.CRASHED,
        verdict_reason=name,
    )


RUNS = NAMES.flatmap(
    lambda names: st.tuples(
        *(
            st.builds(
                _run,
                st.just(name),
                st.lists(EPISODES, max_size=3),
                st.lists(SERIES, max_size=5),
                st.lists(CHECKS, max_size=2),
                FLOATS,
            )
            for name in names
        )
    )
)
EVENTS = st.lists(
    st.builds(
        lambda kind, run, rank: AlertEvent(
            kind,
            NOW,
            run.name,
            run.target,
            run.state.value,
            run.incidents[0],
            rank,
            rank,
            run.episodes[0],
            run.episodes,
        ),
        st.sampled_from(["opened", "louder", "again", "recovered", "withdrawn"]),
        st.builds(lambda name, found: run_of(*found, name=name), TEXTS, st.lists(EPISODES, min_size=1, max_size=3)),
        st.sampled_from(Rank),
    ),
    min_size=1,
    max_size=3,
)
_PAIR = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
_SAMPLE = re.compile(
    rf"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{(?P<labels>(?:{_PAIR},?)*)\}})? (?P<value>NaN|[+-]Inf|-?[0-9.e+-]+)"
)
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')


@fuzz(60)
@given(RUNS)
def test_the_prometheus_file_is_one_that_a_server_takes(runs: tuple[RunSnapshot, ...]) -> None:
    """Its grammar, each label once a sample, each series once: of a file with one fault a server takes nothing."""
    text = exposition(fleet_of(*runs))
    text.encode()
    typed: set[str] = set()
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("#"):
            typed.add(line.split()[2])
            continue
        found = _SAMPLE.fullmatch(line)
        assert found, line
        assert found["name"] in typed
        labels = _LABEL.findall(found["labels"] or "")
        assert len({name for name, _ in labels}) == len(labels), line
        series = (found["name"], tuple(sorted(labels)))
        assert series not in seen, line
        seen.add(series)
        float(found["value"])
        assert unprintable(line) == []
    judged = sum(run.verdict in (Verdict.PASS, Verdict.WARN, Verdict.FAIL) for run in runs)
    assert sum(name == "trainmon_verdict" for name, _ in seen) == judged


@fuzz(60)
@given(EVENTS, st.sampled_from(WAYS), st.sampled_from([{}, {"TERM": "foot"}, {"TMUX": "x"}, {"STY": "x"}]))
def test_an_alert_is_text_for_whoever_gets_it(events: list[AlertEvent], way: str, environment: dict[str, str]) -> None:
    for event in events:
        line = dumps(event.document())
        assert unprintable(line) == []
        assert json.loads(line)["event"] == event.kind
        line.encode()
        shown = notification(event.headline, {}, way)
        begin, end = ("\x1b]777;notify;trainmon;" if way == "osc777" else "\x1b]9;trainmon: "), "\x1b\\"
        assert shown.startswith(begin)
        assert shown.endswith(end)
        assert unprintable(shown[len(begin) : -len(end)]) == []
        assert notification(event.headline, environment, way).count("\x1b\\") >= 1
    for text in words(events):
        assert unprintable(text) == []
        assert not set(text) & set("<>@[]`*")
        text.encode()


@fuzz(60)
@given(RUNS, st.lists(TEXTS, max_size=2), st.booleans())
def test_reports_for_other_programs_can_be_read_by_them(
    runs: tuple[RunSnapshot, ...], problems: list[str], strict: bool
) -> None:
    ElementTree.fromstring(junit(runs, problems, strict=strict).encode())
    for document in (sarif(runs, problems, Path("/cwd")), check_document(runs, 1, problems)):
        text = dumps(document)
        json.loads(text, parse_constant=lambda word: (_ for _ in ()).throw(AssertionError(word)))
        assert unprintable(text) == []
        text.encode()


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        TEXTS,
        FLOATS,
        st.booleans(),
        st.integers(),
        st.sampled_from(["10m", "page", "1e999h", "-1s", "ctrl+x", "~nobody/x"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(TEXTS, inner, max_size=2)),
    max_leaves=3,
)
CONFIGS = (
    b'[alerts]\nlevel = "fail"\nlevels = { log = "warn" }\ncooldown = "5m"\nbell = true\nping = ["x"]\n'
    b'[keys]\nlog = "ctrl+l"\n',
    b"keys.a.a.a.a.a = 1\nalerts = [[[[[[[[1]]]]]]]]\n",
)
SETTINGS = sorted(AlertSettings.__dataclass_fields__)


@fuzz(150)
@given(st.dictionaries(st.one_of(st.sampled_from(SETTINGS), TEXTS), VALUES, max_size=3))
def test_alert_settings_are_understood_or_refused_in_one_line(table: dict[str, Any]) -> None:
    said = ""
    try:
        wanted = from_config(table)
    except SinkError as error:
        said = str(error)
    else:
        assert 0 <= wanted.cooldown < 1e9
        assert 60 <= wanted.again < 1e9
    assert unprintable(said) == []
    assert "\n" not in said


@fuzz(100)
@given(st.dictionaries(st.one_of(st.sampled_from([key.id for key in KEYS]), TEXTS), VALUES, max_size=3))
def test_key_settings_that_cannot_be_are_said_in_one_line_each(table: dict[str, Any]) -> None:
    made = key_map_of(table)
    assert [key.id for key in made.keys] == [key.id for key in KEYS]
    for problem in made.problems:
        assert unprintable(problem) == []
        assert "\n" not in problem


@fuzz(100)
@given(changed_from(CONFIGS))
def test_a_users_configuration_is_understood_or_refused_in_one_line(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config.toml")
        path.write_bytes(content)
        try:
            read = read_config(path)
        except ConfigError as error:
            said = [str(error)]
        else:
            said = [*read.problems, *key_map_of(read.keys).problems]
    assert all(unprintable(line) == [] and "\n" not in line for line in said)
