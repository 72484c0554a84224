"""Bad input for every command: a clear line on stderr, the right exit status, no traceback, a document for --json."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from trainmon.cli import COMMANDS, Entry, main


def lines(*values: str) -> str:
    return "".join(
        f'{{"step": {step}, "loss": {loss}, "grad_norm": {norm}}}\n' for step, loss, norm in map(str.split, values)
    )


def steps(make: Callable[[int], str], count: int = 120) -> str:
    return lines(*(make(number) for number in range(1, count + 1)))


# What cannot be judged, and a word of the line that says so.
NOTHING = {
    "nope.jsonl": "check the spelling",
    "nope/": "no such directory",
    "no*pe": "nothing matches",
    "": "",
    "empty.jsonl": "empty",
    "blank.log": "",
    "words.log": "",
    "noise.bin": "binary",
    "folder": "",
    "loop": "circle",
    "pipe": "",
    "/dev/null": "device",
    "a\0b": "NUL",
    "slurm:": "job id",
    "x" * 5000: "",
}
# What is odd and still a run.
ODD = {
    "nan.jsonl": steps(lambda n: f"{n} NaN Infinity"),
    "huge.jsonl": steps(lambda n: f"{10**18 + 1000 * n} {3 - n / 1000} 1e300"),
    "negative.jsonl": steps(lambda n: f"{n - 60} {3 - n / 1000} 1"),
    "beyond.jsonl": steps(lambda n: f"{10**400} 1e999 -1e999", 9),
    "extreme.jsonl": steps(lambda n: f"{n} {(-1) ** n * 1.7e308} 1e-320"),
    "one.jsonl": lines("1 2.0 1.0"),
    "same.jsonl": steps(lambda n: "7 2.0 1.0"),
    "back.jsonl": steps(lambda n: f"{121 - n} 2.0 1.0"),
    "-dash.jsonl": steps(lambda n: f"{n} {3 - n / 1000} 1"),
}
WORDS: dict[str, tuple[str, ...]] = {
    "check": ("check", "{}", "--no-slurm"),
    "check --json": ("check", "{}", "--json", "--no-slurm"),
    "report": ("report", "{}", "--no-slurm"),
    "report --html": ("report", "{}", "--html", "--no-slurm"),
    "report --json": ("report", "{}", "--json", "--no-slurm"),
    "compare": ("compare", "{}", "good.jsonl"),
    "compare --json": ("compare", "{}", "good.jsonl", "--json"),
    "export": ("export", "{}", "-s", "loss.train", "--by", "step"),
    "export list": ("export", "{}"),
    "inventory": ("inventory", "{}"),
    "inventory --json": ("inventory", "{}", "--json"),
    "note": ("note", "{}", "a remark"),
    "preflight": ("preflight", "{}"),
    "preflight --json": ("preflight", "{}", "--json"),
    "replay": ("replay", "{}", "--out", "played", "--speed", "1000000000x"),
    "calibrate": ("calibrate", "{}", "-o", "learned.toml", "--force"),
    "watch --headless": ("watch", "{}", "--headless", "--until-idle", "0", "--no-slurm"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("bad")
    for name, text in {**ODD, "good.jsonl": steps(lambda n: f"{n} {3 - n / 1000} 1")}.items():
        (base / name).write_text(text, encoding="utf-8")
    (base / "empty.jsonl").write_bytes(b"")
    (base / "blank.log").write_text("\n" * 200, encoding="utf-8")
    (base / "words.log").write_text("hello\nworld\n" * 20, encoding="utf-8")
    (base / "noise.bin").write_bytes(bytes(range(256)) * 100)
    (base / "folder").mkdir()
    (base / "loop").symlink_to("loop")
    os.mkfifo(base / "pipe")
    (base / "mixed" / "sub").mkdir(parents=True)
    (base / "mixed" / "a.jsonl").write_text(ODD["-dash.jsonl"], encoding="utf-8")
    (base / "mixed" / "sub" / "b.jsonl").write_text(ODD["-dash.jsonl"], encoding="utf-8")
    return base


@pytest.fixture(autouse=True)
def _there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(folder / ".home"))


def called(words: tuple[str, ...], target: str) -> Result:
    made = CliRunner().invoke(main, [target if word == "{}" else word for word in words])
    told = f"{words} {target[:40]!r}: {made.exit_code} {made.stderr[:300]!r}"
    assert made.exception is None or isinstance(made.exception, SystemExit), told
    assert not [word for word in ("Traceback", "internal error", "\x1b", "\0") if word in made.output], told
    if "--json" in words:
        document = json.loads(made.stdout, parse_constant=pytest.fail)
        assert made.exit_code != 2 or document["problems"], told
    return made


@pytest.mark.parametrize("command", [name for name in WORDS if f"{name} --json" not in WORDS and "--html" not in name])
def test_what_is_no_run_is_said(command: str) -> None:
    for target, word in NOTHING.items():
        if command.startswith("preflight") and target == "folder":
            continue
        made = called(WORDS[command], target)
        assert made.exit_code == 2, (command, target[:40], made.stderr)
        assert made.stderr.strip(), (command, target[:40])
        if word and not command.startswith(("preflight", "watch")):
            assert word in made.stderr, (command, target[:40], made.stderr)


@pytest.mark.parametrize("command", WORDS)
def test_odd_numbers_break_nothing(command: str) -> None:
    for target in ODD:
        made = called(WORDS[command], f"./{target}")
        assert made.exit_code in (0, 1, 2)
        assert made.exit_code != 2 or made.stderr.strip(), (command, target)


@pytest.mark.parametrize("command", WORDS)
def test_several_runs_where_one_is_wanted_are_said(command: str) -> None:
    made = called(WORDS[command], "mixed")
    if WORDS[command][0] in ("report", "note", "replay", "preflight"):
        assert made.exit_code == 2
        assert " 2" in made.stderr
        assert "name one" in made.stderr
    elif WORDS[command][0] != "calibrate":
        assert made.exit_code == 0, made.stderr


@pytest.mark.parametrize(
    "command",
    [name for name, words in WORDS.items() if not {"--until-idle", "-o", "--out", "-s"} & {*words}],
)
def test_a_name_that_begins_with_a_dash(command: str) -> None:
    name, *rest = (word for word in WORDS[command] if word != "{}")
    options = [word for word in rest if word.startswith("-")]
    others = [word for word in rest if word not in options]
    assert called((name, *options, "--", "-dash.jsonl", *others), "").exit_code in (0, 1)
    wrong = called((name, *options, "-dash.jsonl", *others), "")
    assert wrong.exit_code == 2
    assert "./-NAME" in wrong.stderr


WRONG = [
    ("check", "good.jsonl", "--bogus"),
    ("check", "good.jsonl", "--window", "3"),
    ("check", "good.jsonl", "--threshold", "nan"),
    ("check", "good.jsonl", "--only", "nothing.such"),
    ("check", "good.jsonl", "--since", "yesterday-ish"),
    ("check", "good.jsonl", "--max-age", "old"),
    ("check", "good.jsonl", "--explain", "nothing.such"),
    ("check", "good.jsonl", "--jobs", "0"),
    ("check", "good.jsonl", "--sarif", "no/such/place.json"),
    ("report", "good.jsonl", "-o", "report.docx"),
    ("report", "good.jsonl", "-o", "no/such/place.md"),
    ("compare",),
    ("compare", "good.jsonl"),
    ("compare", "good.jsonl", "one.jsonl", "--by", "moons"),
    ("compare", "good.jsonl", "one.jsonl", "-s", "no.such.signal"),
    ("export",),
    ("export", "good.jsonl", "-s", "no.such.signal"),
    ("export", "good.jsonl", "-s", "loss.train{"),
    ("export", "good.jsonl", "-s", "loss.train", "--by", "tokens"),
    ("export", "good.jsonl", "-s", "loss.train", "--format", "parquet"),
    ("export", "good.jsonl", "-s", "loss.train", "-o", "no/such/place.csv"),
    ("export", "good.jsonl", "-s", "loss.train", "--format", "xml"),
    ("inventory", "good.jsonl", "--share", "200%"),
    ("note", "good.jsonl", " "),
    ("note", "good.jsonl", "x" * 3000),
    ("note", "good.jsonl", "x", "--step", "nan"),
    ("preflight",),
    ("preflight", "good.jsonl", "--gpus", "0"),
    ("replay", "good.jsonl", "--speed", "fast", "--out", "x"),
    ("replay", "good.jsonl"),
    ("demo", "--faults", "no_such_fault", "--out", "x"),
    ("demo", "--runs", "0", "--out", "x"),
    ("demo", "--out", "good.jsonl"),
    ("demo",),
    ("calibrate", "good.jsonl", "--false-alarms", "often"),
    ("calibrate", "-"),
    ("history", "--limit", "0"),
    ("completion", "tcsh"),
    ("watch", "good.jsonl"),
    ("watch", "good.jsonl", "--records"),
    ("demo", "--json"),
    ("demo", "--faults", "nan@", "--out", "x"),
    ("replay", "good.jsonl", "--json"),
    ("export", "good.jsonl", "--format", "parquet", "-o", "names.parquet"),
    ("report", "good.jsonl", "--shared-state", "no-such-folder"),
    ("calibrate", "good.jsonl", "--accept", "no.such.check"),
    ("history", "--limit", "many"),
    ("nonsense",),
    ("--nonsense",),
]


@pytest.mark.parametrize("words", WRONG, ids=lambda words: " ".join(words)[:60])
def test_wrong_words_are_said(words: tuple[str, ...]) -> None:
    made = called(words, "")
    assert made.exit_code == 2, made.output
    assert made.stderr.strip()
    assert made.stdout == "" or words[0] in ("compare", "export") or "--json" in words
    if words[0] in {entry.name for entry in COMMANDS if entry.schema} and not {"-o", "--sarif", "--json"} & {*words}:
        assert json.loads(called((*words, "--json"), "").stdout)["problems"] if words[0] != "export" else True


@pytest.mark.parametrize("command", [entry.name for entry in COMMANDS])
def test_the_help_tells_the_exit_statuses(command: str) -> None:
    made = called((command, "--help"), "")
    assert made.exit_code == 0
    assert "Exit status: 0" in made.output
    assert made.stderr == ""


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_every_command_can_be_quiet_and_speak_json_and_shows_examples(entry: Entry) -> None:
    command = main.get_command(click.Context(main), entry.name)
    assert command is not None
    names = {name for option in command.params for name in option.opts}
    assert {"-q", "--quiet"} <= names
    assert "--json" in names or entry.name == "completion"  # which prints a script
    assert f"trainmon {entry.name}" in called((entry.name, "--help"), "").output.partition("Examples:")[2]


@pytest.mark.parametrize(
    "words",
    [
        ("check", "good.jsonl", "-q", "--no-slurm"),
        ("export", "good.jsonl", "-s", "loss.train", "-s", "eval.nll", "-q"),
        ("note", "good.jsonl", "a remark", "-q"),
        ("completion", "bash", "-q"),
        ("demo", "--out", "quiet", "--runs", "1", "--faults", "none", "-q"),
        ("replay", "good.jsonl", "--speed", "1000000000x", "--out", "quiet-replay", "-q"),
        ("report", "good.jsonl", "-o", "quiet.md", "-q", "--no-slurm"),
        ("watch", "good.jsonl", "--headless", "--until-idle", "0", "--no-slurm", "-q"),
    ],
    ids=lambda words: words[0],
)
def test_what_is_quiet_says_no_word_beside_its_data(words: tuple[str, ...]) -> None:
    made = called(words, "")
    assert made.exit_code == 0
    assert made.stderr == ""
    if words[0] in ("note", "demo", "replay", "report"):
        assert made.stdout == ""
    if words[0] == "watch":
        assert [json.loads(line)["event"] for line in made.stdout.splitlines()] == ["end"]


def trainmon(*words: str, stdout: int) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "trainmon", *words], check=False, stderr=subprocess.PIPE, stdout=stdout
    )


@pytest.mark.parametrize("words", [("check", "good.jsonl"), ("export", "good.jsonl", "-s", "loss.train"), ("--help",)])
def test_a_reader_that_has_gone_is_no_trouble(words: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    made = trainmon(*words, stdout=write)
    os.close(write)
    assert (made.returncode, made.stderr) == (0, b"")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(mode=0)
    made = called(("check", "{}"), str(tmp_path / "shut"))
    assert made.exit_code == 2
    assert "ermission" in made.stderr
