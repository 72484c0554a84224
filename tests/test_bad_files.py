"""Files as they lie about where training went wrong, and some that nobody should write: each command says what it makes
of them, with the right status, and breaks on none."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from tests.test_bad_input import called

GOOD = "".join(f'{{"step": {n}, "loss": {3 - n / 1000}, "grad_norm": 1}}\n' for n in range(1, 150))
NOISE = random.Random(7).randbytes(3000)


def rows(line: str, count: int = 60) -> str:
    return "".join(line.replace("#", str(n)) + "\n" for n in range(1, count + 1))


# name -> (content, status of check, status of export -s loss.train, word that stderr of check holds)
FILES: dict[str, tuple[str | bytes, int, int, str]] = {
    "all-nan.jsonl": (rows('{"step": NaN, "loss": NaN, "grad_norm": NaN}'), 1, 0, ""),
    "all-inf.csv": ("step,loss,lr\n" + rows("#,inf,-inf"), 1, 0, ""),
    "nulls.jsonl": (rows('{"step": #, "loss": null, "lr": null}'), 2, 2, ""),
    "big-integers.jsonl": (rows(f'{{"step": {10**25}#, "loss": {10**400}}}'), 1, 0, ""),
    "minus.jsonl": (rows('{"step": -#, "loss": -#}'), 0, 0, ""),
    "fractions.jsonl": (rows('{"step": #.37, "loss": 2}'), 0, 0, ""),
    "words.jsonl": (rows('{"step": "#", "loss": "two"}'), 2, 2, "no training metrics"),
    "deep.jsonl": ('{"a":' * 5000 + "1" + "}" * 5000 + "\n" + GOOD, 0, 0, ""),
    "twice-named.jsonl": (rows('{"step": #, "loss": 2, "loss": 3, "step": 4}'), 0, 0, ""),
    "half-a-line.jsonl": (GOOD + '{"step": 151, "lo', 0, 0, ""),
    "several-formats.log": (GOOD + rows("step: 2# | loss: 2.0") + rows("2#,3.0"), 0, 0, ""),
    "crlf.log": (rows("step: # loss: 2.#").replace("\n", "\r\n"), 0, 0, ""),
    "colours.log": (rows("\x1b[31mstep: #\x1b[0m \x1b]0;pwn\x07loss: 2.5"), 0, 0, ""),
    "latin1.log": (rows("step: # loss: 2.5 caf\xe9").encode("latin1"), 0, 0, ""),
    "nul-tail.jsonl": (GOOD.encode() + b"\0" * 4096, 0, 0, ""),
    "bom.jsonl": (b"\xef\xbb\xbf" + GOOD.encode(), 0, 0, ""),
    "torn.jsonl.gz": (gzip.compress(GOOD.encode() * 50, mtime=0)[:300], 0, 0, "ends in the midst of its packed data"),
    "false.parquet": (b"PAR1" + NOISE[:500] + b"PAR1", 2, 2, "not a whole document"),
    "events.out.tfevents.1.x": (NOISE[:2000], 2, 2, "binary"),
    "run-x.wandb": (b":W&B\xbe\xef\x00" + NOISE[:2000], 2, 2, ""),
    "one-long-line.jsonl": (f'{{"step": 1, "loss": 2, "pad": "{"x" * 1_000_000}"}}\n' + GOOD, 0, 0, ""),
    "torn.toml": ("[[[[\n", 2, 2, ""),
    "circles.yaml": ("a: &a [*a, *a]\nlearning_rate: 1e400\nmax_steps: -5\nwarmup_steps: .nan\n", 2, 2, ""),
    "no-numbers.json": ('{"learning_rate": NaN, "max_steps": 1e999, "per_device_train_batch_size": -4}', 2, 2, ""),
    "bomb.py": ('lr = 10**10**10\nx = __import__("os").system("touch PWNED")\n' + "(" * 2000, 2, 2, ""),
    "empty.yaml": ("", 2, 2, "empty"),
    "list.json": ("[1, 2, 3]", 2, 2, ""),
    "a name with spaces & $(touch PWNED) ;.jsonl": (GOOD, 0, 0, ""),
    "trainmon.toml": ('[thresholds]\nclip = "high"\n', 2, 2, ""),
    "steps-of-words.csv": ("step,loss\n" + rows("first,2.5"), 0, 0, ""),
    "zeros.jsonl": (rows('{"step": 0, "loss": 0, "grad_norm": 0, "lr": 0}'), 0, 0, ""),
    "tiny.jsonl": (rows('{"step": #, "loss": 5e-324, "grad_norm": 1e308}'), 0, 0, ""),
}


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / ".home"))


@pytest.mark.parametrize("name", FILES)
def test_each_command_says_what_it_makes_of_it(name: str, tmp_path: Path) -> None:
    content, checked, exported, word = FILES[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    made = called(("check", "{}", "--no-slurm", "--json"), name)
    assert made.exit_code == checked, made.stderr
    assert word in made.stderr
    assert made.exit_code != 2 or made.stderr.strip()
    assert json.loads(made.stdout)["exit"] == checked
    made = called(("export", "{}", "-s", "loss.train"), name)
    assert made.exit_code == exported, made.stderr
    for words in (("inventory", "{}"), ("report", "{}", "--no-slurm"), ("preflight", "{}"), ("note", "{}", "seen")):
        made = called(words, name)
        assert made.exit_code in (0, 1, 2)
        assert made.exit_code != 2 or made.stderr.strip(), words
    assert not (tmp_path / "PWNED").exists()


def test_a_folder_of_all_of_them_is_read_whole(tmp_path: Path) -> None:
    """What cannot be read is told by name and keeps nothing else from being read."""
    (tmp_path / "runs" / "deep" / "er").mkdir(parents=True)
    for name, (content, *_) in FILES.items():
        if name != "trainmon.toml":
            (tmp_path / "runs" / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "runs" / "deep" / "er" / "up").symlink_to("../..")
    (tmp_path / "runs" / "deep" / "er" / "metrics.jsonl").write_text(GOOD, encoding="utf-8")
    made = called(("check", "{}", "--no-slurm", "--json"), "runs")
    document = json.loads(made.stdout)
    assert made.exit_code == 1
    assert len({run["run"] for run in document["runs"]}) == len(document["runs"])
    for name, (_, checked, *_) in FILES.items():
        if checked == 0:
            assert any(file["path"].endswith(f"runs/{name}") for run in document["runs"] for file in run["files"]), name
    assert any("events.out.tfevents" in problem for problem in document["problems"]), document["problems"]


@pytest.mark.parametrize("text", ["schema = 99\n", "[thresholds]\nclip = -1\n", "[thresholds\n", "\0\0"])
def test_settings_that_cannot_be_taken_are_told_and_the_defaults_hold(text: str, tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_text(GOOD, encoding="utf-8")
    (tmp_path / "trainmon.toml").write_text(text, encoding="utf-8")
    (run,) = json.loads(called(("check", "{}", "--no-slurm", "--json"), "good.jsonl").stdout)["runs"]
    assert run["verdict"] == "PASS"
    assert "default" in run["thresholds"]
    assert any("trainmon.toml" in problem for problem in run["problems"])
