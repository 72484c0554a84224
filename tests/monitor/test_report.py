"""`trainmon report` and `note`: complete, safe to open, true to the run."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.test_cli import run
from trainmon.monitor.logbook import Logbook, Remark
from trainmon.monitor.report.markdown import code, plain
from trainmon.monitor.report.svg_chart import Band, svg_chart
from trainmon.monitor.text_chart import Line, pieces, text_chart, thinned
from trainmon.tails.sealed import sealed

EVIL = "<script>alert(1)</script> [x](javascript:y) \x1b]52;c;aGk=\x07 `````` & \u202e @all"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(tmp_path / "data"), "HOME": str(tmp_path / "home")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of 300 steps whose loss is NaN from 200 to 209, with a hostile error line."""
    lines = []
    for step in range(1, 301):
        loss = "nan" if 200 <= step < 210 else f"{3 - step / 1000 + step * 37 % 11 / 500:.4f}"
        lines.append(
            f"step: {step} | loss: {loss} | grad_norm: {1 + step % 5 / 50:.2f} | lr: 1e-4 | {step % 3} samples\n"
        )
    lines.append(f'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nRuntimeError: {EVIL}\n')
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "train.log").write_text("".join(lines), encoding="utf-8")
    return tmp_path / "runs"


class Page(HTMLParser):
    """Collects tags; a page of ours has no script and takes nothing from outside."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.outside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.outside += [name for name, _ in attrs if name in ("src", "href", "onload", "onclick", "onerror")]


def test_a_page_holds_all_and_obeys_nothing(folder: Path, home: dict[str, str]) -> None:
    made = run("report", "train.log", "--log-excerpts", "-o", "out.html", cwd=folder, **home)
    assert made.returncode == 0, made.stderr
    text = (folder / "out.html").read_text(encoding="utf-8")
    page = Page(text)
    assert not {"script", "img", "link", "iframe", "a"}.intersection(page.tags)
    assert not page.outside
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "svg" in page.tags
    for words in ("What happened", "RuntimeError", "is NaN from step 200", "Checks", "Curves", "Files"):
        assert words in text
    for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ET.fromstring(svg)


def test_markdown_escapes_what_a_log_says(folder: Path, home: dict[str, str]) -> None:
    made = run("report", "train.log", "--log-excerpts", cwd=folder, **home)
    assert made.returncode == 0
    outside = re.sub(r"(?ms)^(`{3,})text$.*?^\1$", "", made.stdout)
    assert "<script>" not in outside
    assert not re.search(r"(?<!\\)\]\(", outside)
    assert "\x1b" not in made.stdout
    assert "│" in made.stdout  # a chart


def test_log_lines_are_only_shown_when_asked_for(folder: Path, home: dict[str, str]) -> None:
    assert "2 samples" not in run("report", "train.log", cwd=folder, **home).stdout
    assert "2 samples" in run("report", "train.log", "--log-excerpts", cwd=folder, **home).stdout


def test_json_is_one_document(folder: Path, home: dict[str, str]) -> None:
    document = json.loads(run("report", "train.log", "--json", cwd=folder, **home).stdout)
    assert document["schema"] == "trainmon.report/1"
    assert document["run"]["verdict"] == "FAIL"
    assert document["stories"]


def test_a_note_is_kept_and_told(folder: Path, home: dict[str, str], tmp_path: Path) -> None:
    assert run("note", "train.log", "lowered the LR", "--step", "210", cwd=folder, **home).returncode == 0
    assert run("note", "train.log", EVIL, cwd=folder, **home).returncode == 0
    listed = run("note", "train.log", cwd=folder, **home).stdout
    assert "lowered the LR" in listed
    assert "\x1b" not in listed
    document = json.loads(run("report", "train.log", "--json", cwd=folder, **home).stdout)
    assert [(each["step"], each["text"]) for each in document["notes"]] == [(210, "lowered the LR"), (300, EVIL)]
    assert "lowered the LR" in run("report", "train.log", cwd=folder, **home).stdout
    books = list((tmp_path / "data" / "trainmon" / "logbook").iterdir())
    assert [oct(book.stat().st_mode & 0o777) for book in books] == ["0o600"]
    assert [path.name for path in folder.iterdir()] == ["train.log"]  # nothing is ever written beside a log


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("report", "nope.log"), "nope.log"),
        (("report", "."), "report is of one run"),
        (("report", "train.log", "-o", "out.docx"), ".html"),
        (("report", "train.log", "-o", "no/such/out.md"), "no/such/out.md"),
        (("note", "nope.log", "x"), "nope.log"),
        (("note", "train.log", "   "), "empty note"),
        (("note", "train.log", "x" * 3000), "too long"),
        (("note", "train.log", "x", "--step", "nan"), "--step"),
        (("note", ".", "x"), "name one"),
    ],
)
def test_what_cannot_be_done_is_said(folder: Path, home: dict[str, str], words: tuple[str, ...], told: str) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "metrics.jsonl").write_text('{"step": 1, "loss": 2.0}\n' * 3, encoding="utf-8")
    made = run(*words, cwd=folder, **home)
    assert made.returncode == 2
    assert told in made.stderr
    assert "Traceback" not in made.stderr


def test_a_book_of_another_or_a_torn_line_is_no_trouble(tmp_path: Path) -> None:
    book = Logbook(tmp_path / "book")
    book.add(Remark(path="/logs/a.log", time=1.0, text="one"))
    (file,) = (tmp_path / "book").iterdir()
    with file.open("ab") as out:
        out.write(b'{"schema": "trainmon.note/1", "pa')
    book.add(Remark(path="/logs/a.log", time=2.0, text="two"))
    remarks, problems = book.read(["/logs/a.log", "/logs/a.log", "/logs/b.log"])
    assert [each.text for each in remarks] == ["one", "two"]
    assert len(problems) == 1


@given(places=st.lists(st.tuples(st.floats(0, 0.9999), st.integers(1, 255)), min_size=1, max_size=3))
def test_a_remark_of_which_a_byte_was_flipped_is_skipped_and_said(
    tmp_path_factory: pytest.TempPathFactory, places: list[tuple[float, int]]
) -> None:
    book = Logbook(tmp_path_factory.mktemp("book"))
    for time, text in enumerate(("one", "two", "three")):
        book.add(Remark(path="/logs/a.log", time=float(time), text=text))
    (file,) = book.folder.iterdir()
    whole = file.read_bytes()
    content = bytearray(whole)
    for place, flip in places:
        content[int(place * len(content))] ^= flip
    file.write_bytes(content)
    remarks, problems = book.read(["/logs/a.log"])
    before = whole.splitlines()
    untouched = [line for line in bytes(content).splitlines() if line in before]
    assert [each.text.encode() for each in remarks] == [line.split(b'"text":"')[1].split(b'"')[0] for line in untouched]
    assert bool(problems) == (len(untouched) < 3)


def test_a_book_that_cannot_be_read_is_named_once(tmp_path: Path) -> None:
    book = Logbook(tmp_path / "book")
    book.add(Remark(path="/logs/a.log", time=1.0, text="one"))
    (file,) = book.folder.iterdir()
    file.unlink()
    file.symlink_to(tmp_path)
    remarks, (problem,) = book.read(["/logs/a.log"])
    assert not remarks
    assert problem.startswith(f"{file}: ")
    assert problem.count(str(file)) == 1
    assert "Errno" not in problem


def test_a_book_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    book = Logbook(tmp_path / "book")
    book.add(Remark(path="/logs/a.log", time=1.0, text="one"))
    (file,) = (tmp_path / "book").iterdir()
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert book.read(["/logs/a.log"])[0] == ()
    with pytest.raises(OSError):
        book.add(Remark(path="/logs/a.log", time=1.0, text="two"))


@given(st.lists(st.text(max_size=80), max_size=5))
def test_no_line_ends_a_fence(lines: list[str]) -> None:
    block = code(lines)
    fence = block[0].removesuffix("text")
    assert not any(line.strip().startswith(fence) for line in block[1:-1])


@given(st.text(max_size=200))
def test_plain_text_is_one_line_without_markup(text: str) -> None:
    made = plain(text)
    assert "\n" not in made
    assert not re.search(r"(?<!\\)[<>\[\]`|@]", made)


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), max_size=300), st.integers(1, 20))
def test_thinning_keeps_every_extreme(values: list[float], columns: int) -> None:
    y = np.array(values, dtype=np.float64)
    x = np.arange(y.size, dtype=np.float64)
    kept_x, kept_y = thinned(x, y, columns)
    fine = y[np.isfinite(y)]
    assert kept_x.size <= max(2 * columns, 1) or fine.size <= 2 * columns
    if fine.size:
        assert (kept_y.min(), kept_y.max()) == (fine.min(), fine.max())
        assert (np.diff(kept_x) > 0).all()


def test_no_line_is_drawn_over_values_that_are_not_finite() -> None:
    x = np.array([1.0, 2.0, 5.0, 6.0])
    parts = pieces(x, x, np.array([3.0, 4.0]))
    assert [part.tolist() for part, _ in parts] == [[1.0, 2.0], [5.0, 6.0]]


@pytest.mark.parametrize("values", [[], [float("nan")], [1.0], [1.0, 1.0], [0.0, 0.0], [-1e308, 1e308], [1e-320, 2.0]])
def test_odd_series_are_drawn_or_left_out(values: list[float]) -> None:
    y = np.array(values, dtype=np.float64)
    x = np.arange(y.size, dtype=np.float64)
    drawn = svg_chart(x, y, title="<b>", bands=[Band(0.0, 1.0, "&")], ticks=[(0.0, "<i>")])
    assert bool(drawn) == bool(np.isfinite(y).any())
    if drawn:
        ET.fromstring(drawn)
        assert "nan" not in re.sub(r"<title>.*?</title>", "", drawn)
    assert bool(text_chart([Line("a", x, y)])) == bool(drawn)


def test_a_chart_can_be_plain_ascii() -> None:
    x = np.arange(50.0)
    text_chart([Line("a", x, x), Line("b", x, -x)], ascii_only=True).encode("ascii")


def test_an_excerpt_of_a_rotated_log_shows_the_right_lines(folder: Path, home: dict[str, str]) -> None:
    text = (folder / "train.log").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "train.log.1").write_text("".join(text[:150]), encoding="utf-8")
    (folder / "train.log").write_text("".join(text[150:]), encoding="utf-8")
    made = run("report", "train.log", "--log-excerpts", cwd=folder, **home)
    assert "    200  step: 200 | loss: nan" in made.stdout


def test_a_fault_that_was_trained_over_again_is_still_in_its_picture() -> None:
    from trainmon.monitor.frame import SignalKey
    from trainmon.monitor.report.content import window
    from trainmon.monitor.snapshot import SeriesView

    steps, values = np.array([1.0, 2.0, 3.0, 2.0, 3.0]), np.array([2.0, 9.0, 9.0, 1.0, 1.0]) * 2**30
    attempts, key = np.array([0, 0, 0, 1, 1]), SignalKey("sys.peak_memory")
    view = SeriesView(key, "B", steps, values, values, values, attempts, np.empty(0), 5, 2**30)
    assert window(view).y.tolist() == [2.0, 1.0, 1.0]
    assert window(view, upto=0).y.tolist() == [2.0, 9.0, 9.0]
    assert window(view).unit == "GiB"


def test_what_a_team_acknowledged_is_told_with_who_and_when(folder: Path, home: dict[str, str], tmp_path: Path) -> None:
    checked = json.loads(run("check", "train.log", "--json", cwd=folder, **home).stdout)
    episode = next(each for each in checked["runs"][0]["episodes"] if each["kind"] == "nonfinite")
    team = tmp_path / "team"
    team.mkdir()
    line = {
        "schema": "trainmon.shared/1",
        "what": "acknowledge",
        "episode": episode["id"],
        "log": str((folder / "train.log").resolve()),
        "at": 1767225600.0,
    }
    (team / "ann@login1.acks.jsonl").write_bytes(sealed(json.dumps(line).encode()))
    words = ("report", "train.log", "--shared-state", str(team))
    document = json.loads(run(*words, "--json", cwd=folder, **home).stdout)
    assert document["acknowledged"] == [episode["id"]]
    (seen,) = document["acknowledged_by"]
    assert (seen["episode"], seen["time"]) == (episode["id"], 1767225600.0)
    assert seen["by"]
    text = run(*words, cwd=folder, **home).stdout
    assert "2026-01-01 00:00 UTC" in text.partition("## What was done")[2]
    assert "acknowledged" in text
    by_variable = run("report", "train.log", "--json", cwd=folder, **home, TRAINMON_SHARED_STATE=str(team)).stdout
    assert json.loads(by_variable)["acknowledged"] == [episode["id"]]
    gone = run("report", "train.log", "--shared-state", str(tmp_path / "nowhere"), cwd=folder, **home)
    assert gone.returncode == 2
    assert "nowhere" in gone.stderr


@pytest.mark.parametrize("last", [37.0, 4_629.0, 12_345_678.0, 9e11])
def test_no_two_words_of_a_chart_lie_over_each_other(last: float) -> None:
    x = np.linspace(1.0, last, 400)
    drawn = ET.fromstring(svg_chart(x, np.sin(x), title="loss " * 60, bands=[Band(1, 5, "a"), Band(2, 7, "b")]))
    spans: dict[str, list[tuple[float, float]]] = {}
    for text in drawn.iter("text"):
        wide, at = 7.2 * len(text.text or ""), float(text.attrib["x"])
        kind = text.attrib["class"]
        begin = at if kind in ("title", "x first") else at - wide if kind in ("unit", "x last", "y") else at - wide / 2
        assert begin >= 0
        assert begin + wide <= 760
        if not kind.startswith("y"):
            spans.setdefault(text.attrib["y"], []).append((begin, begin + wide))
    for row in spans.values():
        assert all(a[1] <= b[0] for a, b in pairwise(sorted(row))), row
    assert len(list(drawn.iter("rect"))) == 1
