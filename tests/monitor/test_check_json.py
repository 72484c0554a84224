"""``trainmon check --json`` keeps the shapes of CLI.md, whatever stands in the log."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainmon.cli import main
from trainmon.monitor.snapshot import State

NUMBER = (int, float)
TEXT_OR_NUMBER = (str, int, float)
CHECK = {"id": str, "name": str, "verdict": str, "what": str, "why": str, "next": str, "thresholds": dict}
EPISODE = {
    "id": str,
    "incident": str,
    "attempt": int,
    "origin": str,
    "first_time": (*NUMBER, type(None)),
    "path": str,
    "line": int,
    "kind": str,
    "signal": str,
    "labels": dict,
    "severity": str,
    "first_step": NUMBER,
    "worst_step": NUMBER,
    "last_step": NUMBER,
    "worst_value": TEXT_OR_NUMBER,
    "recovered": bool,
}
RUN = {
    "run": str,
    "target": str,
    "verdict": str,
    "state": str,
    "age_s": (*NUMBER, type(None)),
    "root_error": (str, type(None)),
    "outlived_error": (str, type(None)),
    "files": list,
    "steps": dict,
    "attempts": list,
    "checks": list,
    "episodes": list,
    "not_checked": list,
    "actions": list,
}
FIRST_FIVE = ["loss.spike", "grad.norm", "lr.schedule", "batch.ratio", "loss.plateau"]
NAMED = {
    "loss.nonfinite", "loss.shift", "loss.drift", "spike.co", "grad.clip_rate", "run.restarts", "sys.step_time",
    "sys.throughput", "sys.memory", "sys.straggler", "moe.balance", "numerics.abs_max", "eval.heldout", "job.state",
}  # fmt: skip


def refuse(constant: str) -> float:
    raise AssertionError(f"{constant} is not JSON")


def document(*arguments: str, status: int | None = None) -> dict[str, object]:
    result: Result = CliRunner().invoke(main, ["check", *arguments, "--json"])
    assert result.exit_code in (0, 1, 2), result.exception
    found = json.loads(result.stdout, parse_constant=refuse)
    assert isinstance(found, dict)
    assert found["exit"] == result.exit_code
    if status is not None:
        assert result.exit_code == status
    return found


def has_shape(entry: object, shape: dict[str, object]) -> dict[str, object]:
    assert isinstance(entry, dict)
    for name, kinds in shape.items():
        assert isinstance(entry[name], kinds), (name, entry[name])  # type: ignore[arg-type]
    return entry


def holds_to_the_shapes(found: dict[str, object]) -> None:
    assert found["schema"] == "trainmon.check/1"
    assert isinstance(found["version"], str)
    runs = found["runs"]
    assert isinstance(runs, list)
    verdicts = []
    for run in runs:
        has_shape(run, RUN)
        assert run["verdict"] in ("PASS", "WARN", "FAIL", "NO DATA")
        assert run["state"] in {state.value for state in State}
        for file in run["files"]:
            has_shape(file, {"path": str, "format": str, "lines": int, "records": int, "unreadable": int})
        assert set(run["steps"]) >= {"first", "last", "count", "total", "key"}
        assert all(set(attempt) == {"first", "last"} for attempt in run["attempts"])
        ids = [has_shape(check, CHECK)["id"] for check in run["checks"]]
        assert ids[:5] == FIRST_FIVE
        assert set(ids) >= NAMED
        assert len(set(ids)) == len(ids)
        for check in run["checks"]:
            assert check["verdict"] in ("PASS", "WARN", "FAIL", "NO DATA", "N/A")
            assert check["what"]
            assert not check["thresholds"] or "source" in check["thresholds"]
            verdicts.append(check["verdict"])
        for episode in run["episodes"]:
            has_shape(episode, EPISODE)
            assert episode["severity"] in ("INFO", "WARN", "FAIL")
            assert episode["origin"] in ("log", "live")
            assert episode["first_step"] <= episode["last_step"]
        assert len({episode["id"] for episode in run["episodes"]}) == len(run["episodes"])
        missing = {check["id"] for check in run["checks"] if check["verdict"] in ("NO DATA", "N/A")}
        assert {entry["id"] for entry in run["not_checked"]} == missing
        assert all(entry["reason"] for entry in run["not_checked"])
        assert all(isinstance(action, str) and action for action in run["actions"])
    assert found["critical"] == verdicts.count("FAIL")
    assert found["warnings"] == verdicts.count("WARN")


def write(path: Path, records: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def spiked(count: int = 400, at: int = 301) -> list[dict[str, object]]:
    losses = {step: 2.5 + 5.0 / step + 0.01 * math.sin(7.3 * step) for step in range(1, count + 1)}
    losses.update({at: 9.0, at + 1: 8.0, at + 2: 6.0})
    return [
        {"step": step, "loss": loss, "grad_norm": 0.5 + 0.01 * math.cos(step), "_timestamp": 1.7e9 + step}
        for step, loss in losses.items()
    ]


def test_a_spike_is_told_as_the_page_shows_it(tmp_path: Path) -> None:
    found = document(str(write(tmp_path / "run.jsonl", spiked())), status=0)
    holds_to_the_shapes(found)
    (run,) = found["runs"]  # type: ignore[misc]
    assert run["verdict"] == "WARN"
    spike = run["checks"][0]
    assert spike["thresholds"]["z"] == 6
    assert spike["thresholds"]["source"] == "default"
    (episode,) = [e for e in run["episodes"] if e["signal"] == "loss.train"]
    assert (episode["kind"], episode["first_step"], episode["last_step"], episode["line"]) == ("spike", 301, 303, 301)
    assert (episode["worst_step"], episode["worst_value"], episode["recovered"]) == (301, 9, True)
    assert episode["first_time"] == pytest.approx(1.7e9 + 301)
    assert episode["labels"] == {}
    assert run["steps"] == {"first": 1, "last": 400, "count": 400, "total": None, "key": "step"}


def test_a_threshold_given_as_a_flag_says_so(tmp_path: Path) -> None:
    log = write(tmp_path / "run.jsonl", spiked())
    (run,) = document(str(log), "--window", "50")["runs"]  # type: ignore[misc]
    assert run["checks"][0]["thresholds"]["window"] == 50
    assert "flag" in run["checks"][0]["thresholds"]["source"]


def test_ids_are_the_same_while_the_log_grows(tmp_path: Path) -> None:
    records = spiked()
    log = write(tmp_path / "run.jsonl", records[:310])
    seen: dict[str, tuple[object, object]] = {}
    for end in (302, 310, 330, 400):
        write(log, records[:end])
        (run,) = document(str(log))["runs"]  # type: ignore[misc]
        now = {episode["id"]: (episode["kind"], episode["first_step"]) for episode in run["episodes"]}
        assert {name: now.get(name) for name in seen} == seen
        seen = now
    assert seen


@pytest.mark.parametrize("content", ["", "not a log\n", "{\n", "\x00\xff\n"])
def test_a_document_also_when_nothing_can_be_judged(tmp_path: Path, content: str) -> None:
    log = tmp_path / "run.jsonl"
    log.write_bytes(content.encode("latin-1"))
    holds_to_the_shapes(document(str(log), status=2))
    holds_to_the_shapes(document(str(tmp_path / "nowhere.jsonl"), status=2))


ODD = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(10**30), 10**30),
    st.sampled_from(
        [None, True, "", "nan", "12.5", "1e400", "\x1b[31mred\x1b[0m", "[b]bold[/b]", "é\u202e", [1], {"a": 1}]
    ),
)
KEYS = st.sampled_from(["loss", "grad_norm", "lr", "step_time", "eval/loss", "moe/load/0", "\x1b]0;t\x07", "a b", "日"])


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(
    rows=st.lists(st.dictionaries(KEYS, ODD, max_size=5), max_size=40),
    steps=st.lists(st.one_of(st.integers(0, 10**6), st.floats(-1e3, 1e9), st.none()), max_size=40),
)
def test_odd_values_keep_the_shapes(tmp_path: Path, rows: list[dict[str, object]], steps: list[float | None]) -> None:
    for row, step in zip(rows, steps, strict=False):
        if step is not None:
            row["step"] = step
    holds_to_the_shapes(document(str(write(tmp_path / "odd.jsonl", rows))))
