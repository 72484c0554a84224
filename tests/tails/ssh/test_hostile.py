"""Nothing of a target, a name or an answer becomes a command or an option; answers may be anything."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tails.ssh.server import Near
from trainmon.tails.ssh import answer
from trainmon.tails.ssh.address import Address, parse_remote
from trainmon.tails.ssh.ask import AskProgram
from trainmon.tails.ssh.command import Resolved, command_line
from trainmon.tails.ssh.frame import BadAnswer, FrameBuffer, escaped, word
from trainmon.tails.ssh.options import SshOptions
from trainmon.tails.target import TargetError, TargetKind, parse

BAD_HOSTS = [
    "-oProxyCommand=touch hacked:/x",
    "ssh://-oProxyCommand=x/y",
    "ssh://a@-oProxyCommand=x/y",
    "ssh://-l@host/y",
    "-F@host:/x",
    "a;b:/x",
    "a`id`:/x",
    "$(id):/x",
    "a b:/x",
    "a\nb:/x",
    "u'@host:/x",
    "ssh://host:0/x",
    "ssh://host:99999/x",
    "ssh://host:22:22/x",
    "ssh://host",
    "ssh://ho st/x",
    "host:~other/x",
]


@pytest.mark.parametrize("text", BAD_HOSTS)
def test_targets_that_name_no_host(text: str, tmp_path: Path) -> None:
    try:
        target = parse(text, tmp_path)
    except TargetError:
        return
    assert target.kind is not TargetKind.SSH, target


@given(st.text(max_size=40))
def test_whatever_names_a_host_is_harmless(text: str) -> None:
    for target in (text, f"ssh://{text}", f"{text}:/x", f"a@{text}:/x", f"{text}@b:/x"):
        try:
            remote = parse_remote(target)
        except ValueError:
            continue
        if remote is None:
            continue
        address = remote.address
        for part in (address.host, address.user):
            assert not part.startswith("-")
            assert not set(part) & set(" \t\n'\"`$;&|<>(){}\\!*?~#")
        argv = command_line(address, SshOptions(), Resolved(), batch=True, command="C")
        assert argv[-3:] == ["--", address.host, "C"]
        assert parse_remote(remote.name) == remote


@given(st.binary(min_size=1, max_size=60).filter(lambda raw: b"\0" not in raw))
def test_a_path_is_one_harmless_word(raw: bytes) -> None:
    coded = word(raw)
    assert set(coded) <= set(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+=:,@-\\")
    assert coded.startswith((b"/", b"./"))


def test_both_readers_undo_what_is_escaped() -> None:
    raw = bytes(range(1, 256))
    coded = escaped(raw)
    from trainmon.tails.ssh.far_python import unescape

    assert unescape(coded) == raw
    shell = ["sh", "-c", "plain=$(printf '%b.' \"$1\"); printf '%s' \"${plain%.}\"", "sh", coded.decode()]
    done = subprocess.run(shell, capture_output=True, check=True, env={**os.environ, "LC_ALL": "C"})
    assert done.stdout == raw


@given(st.binary(max_size=300), st.integers(1, 50))
def test_packets_of_any_bytes(data: bytes, cut: int) -> None:
    buffer = FrameBuffer()
    readers = (
        answer.stat_or_errno,
        answer.data_of,
        answer.difference_of,
        answer.piece_of,
        answer.entries_of,
        answer.end_of_listing,
        answer.result_of,
    )
    for read in readers:
        with contextlib.suppress(BadAnswer):
            read(data)
    with contextlib.suppress(BadAnswer):
        for start in range(0, len(data), cut):
            buffer.add(data[start : start + cut])
            list(buffer.take())


def test_a_packet_that_would_fill_the_memory() -> None:
    buffer = FrameBuffer()
    buffer.add(b"D 00000001 ffffffff\n")
    with pytest.raises(BadAnswer):
        list(buffer.take())
    bomb = zlib.compress(b"\0" * (64 << 20))
    with pytest.raises(BadAnswer):
        answer.data_of(b"1 1 1 1 1 0 1000 z\n" + bomb)
    with pytest.raises(BadAnswer):
        answer.data_of(b"1 1 1 1 1 0 99999999 -\n" + b"x")


def test_only_a_schedulers_programs_are_run() -> None:
    for words in (("sh", "-c", "id"), ("squeue\0",), (), ("/tmp/squeue",)):
        with pytest.raises(ValueError):
            AskProgram(words, 5)
    line = AskProgram(("squeue", "--format", "%i|%j $(id) 'x'\n", ""), 5).line(7)
    assert line.count(b"\n") == 1
    assert b"$" not in line
    assert b"'" not in line


_FAKE = """#!{python}
import sys, time
if "-G" in sys.argv or "-O" in sys.argv:
    sys.exit(0 if "-G" in sys.argv else 1)
size = int(sys.stdin.buffer.readline())
text = sys.stdin.buffer.read(size)
nonce = text.split(b"\\n")[0].partition(b"=")[2]
out = sys.stdout.buffer
def say(data):
    out.write(data); out.flush()
def packet(kind, number, payload):
    say(b"%s %08x %08x\\n" % (kind, number, len(payload)) + payload)
say(b"trainmon-ready " + nonce + b" python\\n")
sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
packet(b"h", 0, b"1e999")
{rest}
time.sleep(60)
"""

_LIES = {
    "no packets": "while True: say(b'x' * 65536)",
    "endless packets for nobody": "for i in range(3000): packet(b'L', i, b'z' * 60000)\nsay(b'end')",
    "data that was not asked for": "packet(b'D', 1, b'1 1 1 9 1 0 9 -\\n' + b'y' * 9)\n"
    "packet(b'D', 1, b'2 1 1 9 1 0 9 -\\n' + b'y' * 9)\npacket(b'D', 1, b'1 1 1 9 1 5 900000 -\\n' + b'y' * 900000)",
    "a size beyond all": "packet(b'S', 1, b'1 1 99999999999999999999 1 81a4')",
    "a wrong length": "packet(b'D', 1, b'1 1 1 9 1 0 500 -\\n' + b'y' * 9)",
    "words for numbers": "packet(b'S', 1, b'-1 0x10 nan 1')",
    "an unknown side": "say(b'Q')",
}


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    return tmp_path / "ssh"


@pytest.mark.parametrize("lie", _LIES)
def test_a_host_that_lies_is_left_and_said_so(fake: Path, lie: str) -> None:
    fake.write_text(_FAKE.format(python=sys.executable, rest=_LIES[lie]))
    fake.chmod(0o755)
    near = Near(SshOptions(program=str(fake)), Address("liar"))
    try:
        got = near.follow("/a.log")
        got.until_true(lambda: near.host.problem != "")
        assert near.host.problem.startswith("liar: ")
        assert "internal error" not in near.host.problem
        assert len(got.data) < 1 << 20
    finally:
        near.close()


def test_what_a_host_says_is_only_shown(fake: Path) -> None:
    fake.write_text("#!/bin/sh\nprintf '\\033]0;owned\\007\\033[2J Permission denied\\n' >&2\nexit 255\n")
    fake.chmod(0o755)
    near = Near(SshOptions(program=str(fake)), Address("liar"))
    try:
        got = near.follow("/a.log")
        got.until_true(lambda: near.host.problem != "")
        assert "\x1b" not in near.host.problem
        assert "Permission denied" in near.host.problem
    finally:
        near.close()
