"""``trainmon check`` looking at a part: some checks, since when, how fresh; and what it writes for CI."""

from __future__ import annotations

import json
import os
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.test_cli import run
from trainmon.monitor.focus import Since, chosen
from trainmon.monitor.time_span import seconds


def record(step: int, loss: float, seconds: int) -> str:
    when = f"2026-05-01T{10 + seconds // 3600:02d}:{seconds // 60 % 60:02d}:00"
    return f'{{"step": {step}, "loss": {loss}, "grad_norm": 1.0, "time": "{when}"}}\n'


def healthy(first: int, last: int) -> str:
    return "".join(
        record(step, round(3 - step / 1000 + (step * 37 % 11) / 500, 4), 60 * step) for step in range(first, last)
    )


@pytest.fixture
def spiked(tmp_path: Path) -> Path:
    """Steps 1 to 400, a minute each, the losses of 201 to 215 NaN."""
    lines = (
        healthy(1, 201) + "".join(record(step, float("nan"), 60 * step) for step in range(201, 216)) + healthy(216, 401)
    )
    (tmp_path / "run.jsonl").write_text(lines.replace("nan", "NaN"), encoding="utf-8")
    return tmp_path


def verdicts(folder: Path, *options: str) -> tuple[int, dict[str, str]]:
    made = run("check", "run.jsonl", "--json", *options, cwd=folder)
    document = json.loads(made.stdout)
    return made.returncode, {check["id"]: check["verdict"] for check in document["runs"][0]["checks"]}


def test_only_and_skip_choose_checks(spiked: Path) -> None:
    assert set(verdicts(spiked, "--only", "grad.norm")[1]) == {"grad.norm"}
    assert set(verdicts(spiked, "--only", "loss.*", "--skip", "loss.spike")[1]) > {"loss.nonfinite"}
    assert "loss.spike" not in verdicts(spiked, "--only", "loss", "--skip", "loss.spike")[1]


def test_a_fault_that_is_skipped_does_not_count(spiked: Path) -> None:
    status, found = verdicts(spiked, "--strict")
    assert (status, found["loss.nonfinite"]) == (1, "FAIL")
    assert verdicts(spiked, "--strict", "--skip", "loss", "--skip", "grad", "--skip", "lr")[0] == 0


@pytest.mark.parametrize(
    ("begin", "verdict"),
    [("1", "FAIL"), ("215", "FAIL"), ("216", "PASS"), ("2026-05-01T13:00", "FAIL"), ("2026-05-01T14:00", "PASS")],
)
def test_since_leaves_out_what_ended_before(spiked: Path, begin: str, verdict: str) -> None:
    assert verdicts(spiked, "--since", begin)[1]["loss.nonfinite"] == verdict


def test_time_ago_is_counted_back_from_the_newest_record(spiked: Path) -> None:
    """The log's clock has no zone and its file was written just now."""
    assert verdicts(spiked, "--since", "2h")[1]["loss.nonfinite"] == "PASS"
    assert verdicts(spiked, "--since", "4h")[1]["loss.nonfinite"] == "FAIL"


def test_a_log_without_times_cannot_be_cut_by_time(spiked: Path) -> None:
    (spiked / "run.jsonl").write_text(
        "".join(f'{{"step": {step}, "loss": 2.5}}\n' for step in range(50)), encoding="utf-8"
    )
    made = run("check", "run.jsonl", "--since", "2h", cwd=spiked)
    assert made.returncode == 2
    assert "no times" in made.stderr


def test_an_old_log_is_not_judged_when_only_a_fresh_one_counts(spiked: Path) -> None:
    old = time.time_ns() - 3 * 3600 * 10**9
    os.utime(spiked / "run.jsonl", ns=(old, old))
    assert verdicts(spiked, "--max-age", "4h")[1]
    made = run("check", "run.jsonl", "--max-age", "2h", "-q", cwd=spiked)
    assert made.returncode == 2
    assert "over --max-age" in made.stdout
    assert "[PASS]" not in made.stdout


def test_a_run_that_logged_nothing_since_is_not_passed(tmp_path: Path) -> None:
    records = [{"step": step, "loss": 3.0 - step / 1000} for step in range(300)]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    made = run("check", "run.jsonl", "--since", "5000", cwd=tmp_path)
    assert made.returncode == 2
    assert "nothing was logged since step 5000; the newest step is 299" in made.stdout


def test_sarif_names_the_line(spiked: Path) -> None:
    run("check", "run.jsonl", "--sarif", "out.sarif", cwd=spiked)
    log = json.loads((spiked / "out.sarif").read_text(encoding="utf-8"))
    assert log["version"] == "2.1.0"
    (only,) = log["runs"]
    rules = {rule["id"] for rule in only["tool"]["driver"]["rules"]}
    nonfinite = [result for result in only["results"] if result["ruleId"] == "loss.nonfinite"]
    place = nonfinite[0]["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("run.jsonl", 201)
    assert {result["ruleId"] for result in only["results"]} <= rules
    assert {result["level"] for result in only["results"]} <= {"warning", "error"}


def test_junit_counts_add_up(spiked: Path) -> None:
    (spiked / "empty.jsonl").write_bytes(b"")
    run("check", "run.jsonl", "empty.jsonl", "nope.jsonl", "--strict", "--junit", "out.xml", cwd=spiked)
    suites = ET.parse(spiked / "out.xml").getroot()
    for suite in suites:
        cases = list(suite)
        counted = [
            len(cases),
            *(sum(case.find(word) is not None for case in cases) for word in ("failure", "error", "skipped")),
        ]
        assert counted == [int(suite.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")]
    assert [suite.get("name") for suite in suites] == ["run.jsonl", "empty.jsonl", "nope.jsonl"]
    assert suites.find("testsuite/testcase[@classname='loss.nonfinite']/failure") is not None


def test_hostile_names_stay_text(spiked: Path) -> None:
    name = "a<b>&\"c'\x1b]52;c;aGk=\x07 \n.jsonl"
    (spiked / "run.jsonl").rename(spiked / name)
    run("check", name, "--junit", "out.xml", "--sarif", "out.sarif", cwd=spiked)
    for made in ("out.xml", "out.sarif"):
        assert b"\x1b" not in (spiked / made).read_bytes()
    ET.parse(spiked / "out.xml")
    json.loads((spiked / "out.sarif").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "options", [("--only", "nope"), ("--since", "soon"), ("--max-age", "old"), ("--since", ""), ("--max-age", "-1")]
)
def test_what_cannot_be_understood_is_said(spiked: Path, options: tuple[str, ...]) -> None:
    made = run("check", "run.jsonl", *options, cwd=spiked)
    assert made.returncode == 2
    assert "Error:" in made.stderr
    assert not made.stdout


def test_a_report_that_cannot_be_written_is_said(spiked: Path) -> None:
    made = run("check", "run.jsonl", "--junit", "no/such/folder/out.xml", cwd=spiked)
    assert made.returncode == 2
    assert "no/such/folder/out.xml" in made.stderr


def test_lengths_of_time() -> None:
    assert [seconds(text) for text in ("90s", "10m", "2h", "3d", "1w", "0")] == [90, 600, 7200, 259200, 604800, 0]


def test_times_with_a_zone_are_utc() -> None:
    assert Since.parse("2026-05-01T12:00+02:00").time == Since.parse("2026-05-01T10:00Z").time


def test_all_checks_are_chosen_when_none_is_named() -> None:
    assert chosen((), ()) == chosen(("*",), ())
