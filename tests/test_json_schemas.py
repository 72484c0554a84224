"""docs/json.md is what the commands print: every field is there with its type, and none that the page does not name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.test_cli import BAD, GOOD
from trainmon.cli import COMMANDS
from trainmon.monitor.document import dumps, run_document
from trainmon.monitor.job.lines import job_entry
from trainmon.monitor.judge import judge
from trainmon.monitor.snapshot import Goodput, JobInfo, WorkAtRisk

pytestmark = pytest.mark.requires("checkout")

Table = dict[str, str]
TOLD = ("string", "number", "integer", "boolean", "map")


@cache
def tables() -> dict[str, Table]:
    """Heading -> field -> type, of the tables of the page."""
    text = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    found: dict[str, Table] = {}
    for part in re.split(r"^##+ ", text, flags=re.MULTILINE)[1:]:
        rows = re.findall(r"^\| `(\w+)` \| ([\w ?]+) \|", part, re.MULTILINE)
        if "| field | type |" in part:
            found[part.splitlines()[0]] = dict(rows)
    return found


def faults(value: object, kind: str, where: str) -> Iterator[str]:
    """What in `value` is not as the page says of a `kind`."""
    if kind.endswith("?"):
        if value is None:
            return
        kind = kind[:-1]
    if kind.startswith("list of "):
        if not isinstance(value, list):
            yield f"{where} is no list"
            return
        for each in value:
            yield from faults(each, kind.removeprefix("list of "), f"{where}[]")
    elif kind in TOLD:
        if not _fits(value, kind):
            yield f"{where} is {value!r:.60}, no {kind}"
    elif not isinstance(value, dict):
        yield f"{where} is {value!r:.60}, no {kind}"
    else:
        table = tables()[kind]
        yield from (f"{where}.{name} is not in docs/json.md" for name in value.keys() - table.keys())
        yield from (f"{where} has no {name}" for name in table.keys() - value.keys())
        for name in value.keys() & table.keys():
            yield from faults(value[name], table[name], f"{where}.{name}")


def _fits(value: object, kind: str) -> bool:
    if kind == "number":
        return (isinstance(value, (int, float)) and not isinstance(value, bool)) or value in ("nan", "inf", "-inf")
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "boolean": bool, "map": dict}[kind])


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    (folder / "good.jsonl").write_text(GOOD, encoding="utf-8")
    (folder / "bad.jsonl").write_text(BAD + BAD, encoding="utf-8")
    (folder / "worse.jsonl").write_text(BAD, encoding="utf-8")
    steady = [f'{{"step": {n}, "loss": {2 + 1 / n + 0.02 * (n * 7 % 11)}, "grad_norm": 1}}\n' for n in range(1, 1500)]
    (folder / "steady.jsonl").write_text("".join(steady), encoding="utf-8")
    (folder / "plan.yaml").write_text("learning_rate: 3e-4\nmax_steps: 1000\nwarmup_steps: 10\n", encoding="utf-8")
    (folder / "words.log").write_text("hello\n", encoding="utf-8")
    return folder


CALLS = [
    ("check", "good.jsonl", "bad.jsonl", "words.log"),
    ("check", "nope"),
    ("report", "bad.jsonl", "--log-excerpts"),
    ("compare", "good.jsonl", "bad.jsonl", "worse.jsonl"),
    ("inventory", "good.jsonl", "bad.jsonl"),
    ("preflight", "plan.yaml", "good.jsonl", "nope"),
    ("history",),
    ("note", "bad.jsonl"),
    ("note", "bad.jsonl", "a remark"),
    ("export", "good.jsonl", "nope"),
    ("export", "good.jsonl", "bad.jsonl", "-s", "loss.train", "-s", "grad.norm"),
    ("calibrate", "steady.jsonl", "bad.jsonl", "-o", "learned.toml", "--force"),
    ("demo", "--out", "simulated", "--runs", "1", "--faults", "nan,stall"),
    ("replay", "good.jsonl", "--speed", "1000000000x", "--out", "played"),
]


@pytest.mark.parametrize("words", CALLS, ids=" ".join)
def test_what_is_printed_is_what_the_page_says(
    logs: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    from click.testing import CliRunner

    from trainmon.cli import main

    home = str(tmp_path_factory.getbasetemp() / "home")
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, home)
    monkeypatch.chdir(logs)
    runner = CliRunner()
    runner.invoke(main, ["check", "bad.jsonl", "worse.jsonl", "-q"])  # for the history
    runner.invoke(main, ["note", "bad.jsonl", "lowered the rate"])
    made = runner.invoke(main, [*words, "--json"])
    document = json.loads(made.stdout)
    assert list(faults(document, document["schema"], "document")) == []
    assert document["schema"] == next(entry.schema for entry in COMMANDS if entry.name == words[0])


def test_every_schema_of_a_command_has_its_page() -> None:
    assert {entry.schema for entry in COMMANDS if entry.schema} == {name for name in tables() if "/" in name}


def test_every_type_of_the_page_is_told() -> None:
    used = {kind.removeprefix("list of ").rstrip("?") for table in tables().values() for kind in table.values()}
    assert used - set(TOLD) <= tables().keys()
    assert {name for name in tables() if "/" not in name} <= used


def test_what_a_scheduler_says_is_on_the_page(logs: Path) -> None:
    job = JobInfo("4711", "RUNNING", exit_code=1, gpus=8.0, sources={"state": "squeue"})
    assert list(faults(json.loads(dumps(job_entry(job))), "job", "job")) == []
    from dataclasses import replace

    (run,) = judge(["good.jsonl"], cwd=logs).runs
    told = replace(run, job=job, job_chain=(job,), at_risk=WorkAtRisk(60.0, 90.0, None, 5.0), goodput=Goodput(5, 1, 1))
    assert list(faults(json.loads(dumps(run_document(told))), "run", "run")) == []


def test_events_are_those_of_the_page(logs: Path) -> None:
    from tests.test_cli import run

    text = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", text, re.MULTILINE)
    page = {event: set(re.findall(r"`(\w+)`", fields)) for event, fields in rows}
    made = run("watch", "bad.jsonl", "nope*", "--headless", "--records", "--until-idle", "0", cwd=logs)
    seen = set()
    for line in made.stdout.splitlines():
        event = json.loads(line)
        seen.add(event["event"])
        allowed = (
            page[event["event"]] | {"event"} | (tables()["episode"].keys() if event["event"] == "episode" else set())
        )
        assert event.keys() <= allowed
    assert {"run", "state", "episode", "record", "problem", "end"} <= seen
