"""Metrics in SQLite: Trackio's and MLflow's tables, home-made ones, and what a live database has in its log."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.tails.clocks import FakeClock
from tests.tails.formats.structured import by_run, column, marks, steps
from trainmon.tails.discover import discover
from trainmon.tails.document import DocumentReader
from trainmon.tails.formats.registry import detect
from trainmon.tails.formats.sqlite_store import SqliteStore
from trainmon.tails.record import Parsed

TRACKIO = (
    "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT NOT NULL, run_name TEXT NOT NULL,"
    " step INTEGER NOT NULL, metrics TEXT NOT NULL)"
)
MLFLOW = (
    "CREATE TABLE {} (key VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL,"
    " run_uuid VARCHAR(32) NOT NULL, step BIGINT NOT NULL, is_nan BOOLEAN NOT NULL)"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def store(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path)) as store:
        yield store


def read(path: Path) -> Parsed:
    return SqliteStore(path.name).parse(path.read_bytes())


def add_trackio(store: sqlite3.Connection, step: int, run: str = "a") -> None:
    values = json.dumps({"train/loss": 3 - step / 100, "train/lr": 1e-4})
    row = (f"2025-01-15T10:00:{step:02d}", run, step, values)
    store.execute("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?)", row)
    store.commit()


def test_all_metrics_of_a_step_in_json(path: Path, store: sqlite3.Connection) -> None:
    store.execute(TRACKIO)
    for step in range(30):
        add_trackio(store, step)
    parsed = read(path)
    assert steps(parsed) == list(range(30))
    assert column(parsed, "train/loss") == [3 - step / 100 for step in range(30)]
    assert parsed.blocks[0].times[1] - parsed.blocks[0].times[0] == 1.0
    assert isinstance(detect(path.read_bytes(), "x"), SqliteStore)


def test_several_runs_in_one_database(path: Path, store: sqlite3.Connection) -> None:
    store.execute(TRACKIO)
    for step in range(30):
        add_trackio(store, step, "a")
        add_trackio(store, step, "b")
    assert {run: steps(parsed) for run, parsed in by_run(read(path)).items()} == {
        "": list(range(30)),
        "run_name=b": list(range(30)),
    }


def test_a_metric_a_row_and_the_newest_of_each_in_a_table_of_their_own(path: Path, store: sqlite3.Connection) -> None:
    store.execute(MLFLOW.format("metrics"))
    store.execute(MLFLOW.format("latest_metrics"))
    for step in range(1, 31):
        row = ("train_loss", 0.0 if step == 30 else 2.5, 1736935200000 + step, "ab", step, step == 30)
        store.execute("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", row)
    store.execute("INSERT INTO latest_metrics VALUES ('train_loss', 7, 1, 'ab', 99, 0)")
    store.commit()
    parsed = read(path)
    assert steps(parsed) == list(range(1, 31))
    assert marks(parsed, "train_loss")[-2:] == ["NUMBER", "NAN"]


def test_a_metric_a_column_and_tables_of_other_things(path: Path, store: sqlite3.Connection) -> None:
    store.execute('CREATE TABLE "log""; DROP TABLE x; --" (step INTEGER, loss REAL, "a ""note""" TEXT, state BLOB)')
    store.execute('CREATE TABLE "other ""things""" (step INTEGER, name TEXT)')
    store.execute("CREATE VIEW losses AS SELECT step, loss FROM x")
    for step in range(1, 11):
        store.execute(
            'INSERT INTO "log""; DROP TABLE x; --" VALUES (?, ?, 7, ?)', (step, None if step == 5 else 2.5, b"\0\xff")
        )
    store.commit()
    parsed = read(path)
    assert steps(parsed) == list(range(1, 11))
    assert marks(parsed, "loss")[3:6] == ["NUMBER", "NULL", "NUMBER"]


def test_what_is_only_in_the_log_of_a_live_database_is_read(path: Path, store: sqlite3.Connection) -> None:
    store.execute("PRAGMA journal_mode = WAL")
    store.execute(TRACKIO)
    store.commit()
    store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    clock = FakeClock()
    reader = DocumentReader(path, SqliteStore("runs.db"), clock)
    seen: list[float | None] = []
    for step in range(200):
        add_trackio(store, step)
        if step % 20 == 19:
            clock.sleep(60.0)
            seen += steps(reader.poll())
            assert seen == list(range(step + 1))
        if step == 99:
            store.execute("PRAGMA wal_checkpoint(RESTART)")
    store.execute("BEGIN")
    store.execute("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES ('', 'a', 999, '{\"loss\": 1}')")
    clock.sleep(60.0)
    assert steps(reader.poll()) == []
    assert sorted(each.name for each in path.parent.iterdir()) == ["runs.db", "runs.db-shm", "runs.db-wal"]


def test_damage_is_told_and_never_raised(path: Path, store: sqlite3.Connection) -> None:
    store.execute(TRACKIO)
    for step in range(200):
        add_trackio(store, step)
    whole = path.read_bytes()
    torn = SqliteStore("runs.db").parse(whole[: len(whole) // 2])
    assert torn.unreadable == 1
    chance = random.Random(7)
    for _ in range(40):
        data = bytearray(whole)
        for _ in range(20):
            data[chance.randrange(16, len(data))] = chance.randrange(256)
        SqliteStore("runs.db").parse(bytes(data))
        SqliteStore("runs.db").joined(whole, bytes(data))


def test_only_databases_with_metrics_by_step_are_found(tmp_path: Path) -> None:
    tables = {
        "cookies.sqlite": "CREATE TABLE cookies (id INTEGER, name TEXT, value TEXT)",
        "home.sqlite3": "CREATE TABLE log (run_id INTEGER, step INTEGER, name TEXT, value REAL)",
        "trackio.db": TRACKIO,
    }
    for name, table in tables.items():
        with closing(sqlite3.connect(tmp_path / name)) as store:
            store.execute(table)
    found = {file.path.name for run in discover([], tmp_path).runs for file in run.files}
    assert found == {"home.sqlite3", "trackio.db"}
