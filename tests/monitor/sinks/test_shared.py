"""A team's acknowledgements: several writers, each its own file, nothing but marks, and what is hostile stays data."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.monitor.sinks.made import Marked, Said, episode, fleet_of, run_of
from trainmon.monitor.finding import Episode
from trainmon.monitor.sinks.base import SinkError
from trainmon.monitor.sinks.shared import Mark, SharedState
from trainmon.monitor.sinks.shared_book import parsed, with_shared
from trainmon.monitor.snapshot import FleetSnapshot, RunSnapshot
from trainmon.tails.clock import SystemClock
from trainmon.tails.sealed import sealed

CLOCK = SystemClock()


class Member:
    """One of the team."""

    def __init__(self, folder: Path, name: str) -> None:
        self.marked, self.said = Marked(), Said()
        self.heard: list[Mark] = []
        self.state = SharedState(
            folder, self.marked, self.said, CLOCK, heard=self.heard.append, writer=name, look_s=0.05
        )


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Callable[[str], Member]]:
    made: list[Member] = []

    def make(name: str) -> Member:
        made.append(Member(tmp_path / "team", name))
        return made[-1]

    yield make
    for one in made:
        one.state.close(5.0)


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "train.log"
    path.write_text("")
    return str(path)


def fleet(*episodes: Episode, name: str = "a") -> tuple[FleetSnapshot, RunSnapshot]:
    run = run_of(*episodes, name=name)
    return fleet_of(run), run


def test_what_one_has_seen_the_other_need_not(member: Callable[[str], Member], log: str) -> None:
    ann, bob = member("ann@login1"), member("bob@login2")
    ours, theirs = episode("e1", path=log), episode("e2", path=log)
    snapshot, run = fleet(ours, theirs)
    bob.state.look(snapshot)
    ann.state.acknowledged(run, ours)
    assert bob.marked.wait() == [("acknowledge", "a", "e1")]
    ann.state.snoozed(run, theirs, CLOCK.wall() + 3600.0)
    what, name, identity, seconds = bob.marked.wait(2)[1]
    assert (what, name, identity) == ("snooze", "a", "e2")
    assert isinstance(seconds, float)
    assert 3500 < seconds <= 3600
    assert [mark.what for mark in bob.heard] == ["acknowledge", "snooze"]
    assert "acknowledged a" in bob.heard[0].words
    assert ann.heard == []
    assert bob.said.lines == ann.said.lines == []


def test_it_comes_back_after_a_restart(member: Callable[[str], Member], log: str) -> None:
    one = episode("e1", path=log)
    snapshot, run = fleet(one)
    first = member("ann@login1")
    first.state.acknowledged(run, one)
    first.state.close(5.0)
    again = member("ann@login1")
    again.state.look(snapshot)
    assert again.marked.wait() == [("acknowledge", "a", "e1")]
    assert again.heard == [], "her own word is no news to her"


def test_a_log_that_is_reached_another_way_is_the_same(
    member: Callable[[str], Member], tmp_path: Path, log: str
) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    ann, bob, eve = member("ann"), member("bob"), member("eve")
    there = os.path.realpath(log)
    bob.state.look(fleet(episode("e1", path=f"login1:{there}"), name="remote")[0])
    eve.state.look(fleet(episode("e1", path=str(tmp_path / "other.log")), name="other")[0])
    _, run = fleet(episode("e1", path=str(link / "train.log")))
    ann.state.acknowledged(run, run.episodes[0])
    assert bob.marked.wait() == [("acknowledge", "remote", "e1")]
    assert eve.marked.marks == [], "the same fault in another run is another"


def test_many_writers_lose_nothing(tmp_path: Path, member: Callable[[str], Member], log: str) -> None:
    """Threads of one user write to one file, processes of others to theirs, all at the same time."""
    episodes = [episode(f"e{number}", path=log) for number in range(60)]
    snapshot, run = fleet(*episodes)
    reader = member("reader")
    reader.state.look(snapshot)
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        "from tests.monitor.sinks.made import *\nfrom trainmon.monitor.sinks.shared import SharedState\n"
        "from trainmon.tails.clock import SystemClock\n"
        "folder, name, log, first, last = sys.argv[1:]\n"
        "state = SharedState(Path(folder), Marked(), Said(), SystemClock(), writer=name, look_s=0.01)\n"
        "for number in range(int(first), int(last)):\n"
        "    one = episode(f'e{number}', path=log)\n"
        "    state.acknowledged(run_of(one), one)\n"
        "    time.sleep(0.002)\n"
        "state.close(10.0)\n"
    )
    programs = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "team"), name, log, str(first), str(first + 20)])
        for name, first in (("ann", 0), ("ann", 20))
    ]
    mine = member("bob")
    threads = [threading.Thread(target=mine.state.acknowledged, args=(run, one)) for one in episodes[40:]]
    for thread in threads:
        thread.start()
    assert [program.wait(60) for program in programs] == [0, 0]
    marks = reader.marked.wait(60, seconds=30.0)
    assert {mark[2] for mark in marks} == {one.id for one in episodes}
    for file in (tmp_path / "team").iterdir():
        for line in file.read_text().splitlines():
            assert json.loads(line)["schema"] == "trainmon.shared/1"
        assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_what_is_not_a_mark_is_left_out(tmp_path: Path, member: Callable[[str], Member], log: str) -> None:
    team = tmp_path / "team"
    team.mkdir()
    place = os.path.realpath(log)
    good = {"schema": "trainmon.shared/1", "what": "acknowledge", "episode": "e1", "log": place, "at": 1.0}
    bad: list[dict[str, object]] = [
        {**good, "what": "delete"},
        {**good, "schema": "trainmon.shared/9", "episode": "e2"},
        {**good, "at": "now", "episode": "e2"},
        {**good, "episode": "e2", "log": "x" * 9000},
        {**good, "what": "snooze", "episode": "e2", "until": 1.0},
    ]
    lines = [sealed(json.dumps(one).encode()) for one in bad]
    lines += [b"[]\n", b'"\x1b]0;owned\x07"\n', b"\xff\xfe\n", b"[" * 3000 + b"\n", b"\n"]
    lines += [json.dumps({**good, "episode": "e2"}).encode() + b"\n", sealed(json.dumps(good).encode())]
    (team / "eve.acks.jsonl").write_bytes(b"".join(lines) + b'{"schema": "trainmon.shared/1", "wh')
    (team / "notes.txt").write_text("not ours")
    (team / "link.acks.jsonl").symlink_to("/etc/passwd")
    os.mkfifo(team / "pipe.acks.jsonl")
    (team / "folder.acks.jsonl").mkdir()
    bob = member("bob")
    bob.state.look(fleet(episode("e1", path=log), episode("e2", path=log))[0])
    assert bob.marked.wait() == [("acknowledge", "a", "e1")]
    bob.state.close(5.0)
    assert len(bob.marked.marks) == 1
    said = "\n".join(bob.said.lines)
    for name in ("link", "pipe", "folder"):
        assert f"{team}/{name}.acks.jsonl" in said
    assert f"{team}/eve.acks.jsonl: lines left out, not as trainmon wrote it: 6;" in said
    assert f"{team}/eve.acks.jsonl: lines left out, of another version of trainmon: 3;" in said
    assert f"{team}/eve.acks.jsonl: its last line is not whole" in said
    assert len(bob.said.lines) == 6, "each is said once"


def test_a_byte_that_was_changed_is_told_and_never_followed(tmp_path: Path, log: str) -> None:
    """Each byte of a line, and each length that it can be cut at: the line is left out, and that is said."""
    team = tmp_path / "team"
    state = SharedState(team, Marked(), Said(), CLOCK, writer="ann")
    one, two = episode("e1", path=log), episode("e2", path=log)
    run = run_of(one, two)
    state.acknowledged(run, one)
    state.acknowledged(run, two)
    state.close(5.0)
    [file] = team.iterdir()
    whole = file.read_bytes()
    assert [each.acknowledged for each in with_shared(run, team)[0].episodes] == [True, True]
    assert with_shared(run, team)[2] == []
    first = whole.index(b"\n") + 1
    damaged = [bytes((*whole[:at], whole[at] ^ 0x10, *whole[at + 1 :])) for at in range(first)]
    cut = [whole[:at] + whole[first:] for at in range(first)]
    for raw in [*damaged, *cut[1:]]:
        file.write_bytes(raw)
        marked, _, problems = with_shared(run, team)
        assert not marked.episodes[0].acknowledged, raw
        assert [str(file) in problem for problem in problems] == [True], raw
    for at in range(1, first - 1):
        file.write_bytes(whole[: first + at])
        marked, _, problems = with_shared(run, team)
        assert [each.acknowledged for each in marked.episodes] == [True, False]
        assert ["not whole" in problem for problem in problems] == [True]


def test_what_cannot_be_shared_is_said(tmp_path: Path, log: str) -> None:
    team, said = tmp_path / "team", Said()
    state = SharedState(team, Marked(), said, CLOCK, writer="ann", look_s=0.01)
    far = episode("e1", path="login1:/" + "deep/" * 1000)
    state.acknowledged(run_of(far), far)
    state.close(5.0)
    assert ["too long" in line for line in said.lines] == [True]
    (team / "bob.acks.jsonl").mkdir()
    state = SharedState(team, Marked(), said, CLOCK, writer="bob", look_s=0.01)
    one = episode("e1", path=log)
    state.acknowledged(run_of(one), one)
    state.close(5.0)
    assert f"{team}/bob.acks.jsonl: 1 marks could not be written in time" in said.lines[-1]


def test_a_snooze_lasts_a_week_at_most(tmp_path: Path, member: Callable[[str], Member], log: str) -> None:
    team = tmp_path / "team"
    team.mkdir()
    line = {"schema": "trainmon.shared/1", "what": "snooze", "episode": "e1", "log": os.path.realpath(log), "at": 1.0}
    (team / "eve.acks.jsonl").write_bytes(sealed(json.dumps({**line, "until": 1e15}).encode()))
    bob = member("bob")
    bob.state.look(fleet(episode("e1", path=log))[0])
    assert bob.marked.wait()[0][3] == 7 * 86400.0


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_no_line_does_harm(raw: bytes) -> None:
    for each in (raw, sealed(raw).rstrip(b"\n")):
        with pytest.raises(ValueError):
            parsed(each)


def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match="shared-state"):
        SharedState(tmp_path / "file" / "team", Marked(), Said(), CLOCK)
