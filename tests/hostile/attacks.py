"""Logs, names and configurations written by someone who wants a reader's terminal, files or network."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

MARK = "OWNED"  # stands in whatever would be carried out; where it is only shown, nothing happened
SEQUENCES = (
    f"\x1b]52;c;{MARK}\x07",
    f"\x1b]52;c;{MARK}\x1b\\",
    f"\x1b]0;{MARK}\x07",
    f"\x1b]2;{MARK}\x1b\\",
    f"\x1b]8;;http://{MARK}/\x1b\\link\x1b]8;;\x1b\\",
    f"\x1b]1337;File=inline=1:{MARK}\x07",
    f"\x1bP+q{MARK}\x1b\\",
    f"\x1bP$q{MARK}",
    f"\x1b_G{MARK}\x1b\\",
    f"\x1b^{MARK}\x1b\\",
    f"\x1bX{MARK}\x1b\\",
    f"\x1b[200~{MARK}\x1b[201~",
    "\x1b[2J\x1b[H\x1b[?1049l\x1b[?25h\x1b[?2004h",
    "\x1bc\x1b(0\x0e\x1b#8\x1b[6n\x1b[c\x1b[21t",
    f"\x9d0;{MARK}\x9c\x9b2J\x90q{MARK}\x9c\x85\x84\x8d",
    "\x07\x08\x08\x0b\x0c\x7f",
    f"[bold red]{MARK}[/] [@click=app.quit]{MARK}[/] [/nothing] [link=http://{MARK}]x[/link] \\[",
    "\u202eright to left\u202c \u2066isolate\u2069 \u200b\u200d\u2060zero width\ufeff \u2028\u2029 \U000e0041tag",
    "全角の字 🏳️‍🌈 👩‍👩‍👧‍👦 ﷽ e\u0301\u0301\u0301 \u1160\u115f",
    "$(touch OWNED) `touch OWNED` ; touch OWNED | tee OWNED && rm -rf / %s%n%x {0.__class__} ${HOME}",
    "../../../../OWNED /etc/passwd C:\\OWNED file:///OWNED",
)
NUMBERS = ("1e999", "-1e999", "1" + "0" * 400, "1e-999", "-0", "NaN", "Infinity", "0." + "1" * 400)
_CSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# Keypad modes, character sets, and the shape of the mouse pointer, which the screens set themselves.
_SENT_BY_OURSELVES = re.compile(r"\x1b(?:[=>]|\([AB0]|\]22;[a-z-]*(?:\x07|\x1b\\))")
# What a reader cannot see, or that changes what is seen around it.
_BAD = frozenset(("Cc", "Cs", "Cn", "Zl", "Zp"))
_HIDDEN = re.compile(
    "[\u00ad\u061c\u115f\u1160\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\u3164\ufeff"
    "\U000e0000-\U000e007f]"
)


def json_log(count: int = 120) -> bytes:
    """A run with a fault, in JSON lines; keys, words and numbers are hostile."""
    rows = []
    for step in range(count):
        row: dict[str, object] = {"step": step, "loss": 3 - step / 100 if step != 90 else 40.0, "grad_norm": 0.5}
        row[SEQUENCES[step % len(SEQUENCES)]] = 1.5 + step
        row[f"layer/{SEQUENCES[step % 7]}/grad"] = 0.5
        row["message"] = SEQUENCES[(step + 3) % len(SEQUENCES)]
        row["Loss"] = row["LOSS"] = 2.5
        row["lo\u0301ss"] = row["l\u00f3ss"] = 1.5
        text = json.dumps(row)
        rows.append(text[:-1] + f', "odd": {NUMBERS[step % len(NUMBERS)]}}}')
    return "\n".join([*rows, ""]).encode()


def text_log(count: int = 120) -> bytes:
    """The same in a trainer's words, with raw control sequences in them and a traceback at the end."""
    lines = []
    for step in range(count):
        attack = SEQUENCES[step % len(SEQUENCES)]
        loss = 3 - step / 100 if step != 90 else 40.0
        lines.append(f"step {step} | loss: {loss:.4f} | grad_norm: 0.5 | {attack}: {step} | x: {NUMBERS[step % 8]}")
        lines.append(f"INFO {attack} saving checkpoint to /ckpt/{attack}/step_{step}")
    lines.append("Traceback (most recent call last):")
    for attack in SEQUENCES:
        lines.append(f'  File "{attack}.py", line 3, in {attack}'.replace("\n", " "))
    lines.append(f"RuntimeError: {''.join(SEQUENCES[:14])} CUDA error")
    return "\n".join([*lines, ""]).encode("utf-8", "surrogateescape") + b"\x9b2J\x9d0;OWNED\x9c\xff\xfe\n"


def names() -> tuple[str, ...]:
    """File names; none holds a slash or a NUL."""
    return tuple(
        f"{number}{attack.replace('/', '_')[:60]}.jsonl" for number, attack in enumerate(SEQUENCES) if number % 4 == 0
    )


CONFIG_YAML = f"""a: !!python/object/apply:os.system ["touch {MARK}"]
b: !!python/name:os.system
bomb: &a ["x", *a]
learning_rate: 3e-4
name: "\x1b]0;{MARK}\x07"
"""
CONFIG_PY = f"""import os, socket, subprocess
subprocess.run(["touch", "{MARK}"])
open("{MARK}", "w").write("x")
socket.create_connection(("127.0.0.1", 9))
learning_rate = 3e-4 if os.environ else 1
max_iters = 10 ** 10 ** 10
"""
CONFIG_TOML = "a" + ".a" * 400 + " = 1\n" + "b = " + "[" * 400 + "]" * 400 + "\n[thresholds]\nloss.spike.z = 1e999\n"


def fill(folder: Path) -> None:
    """Writes all of it into `folder`, one run a sub-folder."""
    for name, data in (("structured", json_log()), ("worded", text_log())):
        (folder / name).mkdir(parents=True)
        (folder / name / ("metrics.jsonl" if name == "structured" else "train.log")).write_bytes(data)
        (folder / name / "config.yaml").write_text(CONFIG_YAML)
        (folder / name / "config.py").write_text(CONFIG_PY)
        (folder / name / "trainmon.toml").write_text(CONFIG_TOML)
        (folder / name / "sitecustomize.py").write_text(CONFIG_PY)
        (folder / name / "config.json").write_text('{"a":' * 5000)
    (folder / "named").mkdir()
    for name in names():
        (folder / "named" / name).write_bytes(b"".join(b'{"step": %d, "loss": 2.5}\n' % step for step in range(30)))


def unprintable(shown: str) -> list[str]:
    """What in `shown`, text without any control sequence but line ends, a terminal would not simply show."""
    return [
        f"{character!a} in {shown[max(at - 30, 0) : at + 30]!a}"
        for at, character in enumerate(shown)
        if (unicodedata.category(character) in _BAD and character not in "\n\t") or _HIDDEN.match(character)
    ]


def misused(output: bytes) -> list[str]:
    """What in the bytes that a screen wrote to a terminal is more than styles, cursor moves, modes and text."""
    text = output.decode("utf-8", "backslashreplace")
    rest = _SENT_BY_OURSELVES.sub("", _CSI.sub("", text))
    return unprintable(rest.replace("\r", "").replace("\x08", ""))
