"""Writes the pages of docs/ that are made from the program's own tables: ``python docs/reference.py``.

A test compares the pages with what this gives, so that they cannot fall behind.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from trainmon.cli import COMMANDS, Entry, main
from trainmon.monitor import alias_table
from trainmon.monitor.focus import CHECK_IDS
from trainmon.monitor.signals import SIGNALS
from trainmon.monitor.thresholds import DEFAULTS
from trainmon.tails.formats.dialects import DIALECTS
from trainmon.tails.text import printable
from trainmon.tui.keys import KEYS, SCREENS, title

_MADE = "<!-- made by docs/reference.py: change the program, then run it -->\n"


def commands() -> str:
    """Every command with its arguments and options."""
    parts = [f"# Commands\n\n{_MADE}"]
    context = click.Context(main, info_name="trainmon")
    for name in sorted(main.list_commands(context)):
        parts.append(_command(name, _loaded(name, context), context))
    return "\n".join(parts)


def _loaded(name: str, context: click.Context) -> click.Command:
    command = main.get_command(context, name)
    assert command is not None
    return command


def _command(name: str, command: click.Command, parent: click.Context) -> str:
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"## trainmon {name}\n", f"`trainmon {name} {usage}`\n", _plain(command.help), ""]
    options = [option for option in command.params if isinstance(option, click.Option)]
    if options:
        lines += ["| option | what it does |", "| --- | --- |"]
        lines += [f"| {_names(option)} | {_cell(option.help)} |" for option in options]
        lines.append("")
    if command.epilog:
        lines += [*map(_paragraph, command.epilog.replace("\b\n", "").split("\n\n")), ""]
    return "\n".join(lines)


def _paragraph(text: str) -> str:
    """A paragraph of a help's foot: examples as lines for a shell."""
    if not text.startswith("Examples:"):
        return _plain(text) + "\n"
    lines = text.replace("\n      ", "  ").splitlines()[1:]
    parts = [line.strip().partition("  ") for line in lines]
    return "\n".join(["```sh", *(f"{words}  # {told.strip()}" if told else words for words, _, told in parts), "```\n"])


def _names(option: click.Option) -> str:
    value = "" if option.is_flag or option.count else " " + _value(option)
    return ", ".join(f"`{name}{_cell(value)}`" for name in option.opts)


def _value(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    return option.metavar or option.type.name.partition(" ")[0].upper()


def _plain(text: str | None) -> str:
    return "\n".join(line.strip() for line in (text or "").replace("\b", "").strip().splitlines())


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|")


def keys() -> str:
    """Every key, what it does and where it works."""
    lines = [
        f"# Keys\n\n{_MADE}",
        "A key means the same wherever it works. The mouse works and is never needed. "
        "Other keys can be set by name in\n"
        "the table `[keys]` of your [configuration](alerts.md#the-configuration-file).\n",
        "| key | what it does | where | name |",
        "| --- | --- | --- | --- |",
    ]
    for key in KEYS:
        where = "everywhere" if set(key.screens) == set(SCREENS) else ", ".join(map(title, key.screens))
        lines.append(f"| `{_cell(key.shown)}` | {_cell(key.help)} | {where} | `{key.id}` |")
    return "\n".join(lines) + "\n"


def signals() -> str:
    """Every signal of the metric table."""
    lines = [
        f"# Signals\n\n{_MADE}",
        "The rows are those of Chunyuan Deng, *Reading a Pretraining Run* (2026). P0 is looked at on every step and\n"
        "may wake a person, P1 is opened when a P0 fires, P2 on demand. A rule (D1 to D17) says that the signal can\n"
        "be derived from others; without one it must be logged. `trainmon inventory` prints this table for a run.\n",
        "| row | signal | what it is | unit | priority | every | rule | to get it |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for signal in SIGNALS:
        row = str(signal.row) if signal.row else ""
        cells = (row, f"`{signal.id}`", signal.title, signal.unit, signal.priority, signal.cadence, signal.rule)
        lines.append("| " + " | ".join(_cell(cell) for cell in (*cells, signal.to_get_it)) + " |")
    return "\n".join(lines) + "\n"


def thresholds() -> str:
    """Every cut-off and its default."""
    lines = [
        f"# Thresholds\n\n{_MADE}",
        "Defaults, until they are calibrated on healthy runs of your own.\n"
        "[checks.md](checks.md) says what each is for.\n",
        "| name | default |",
        "| --- | --- |",
    ]
    return "\n".join(lines + [f"| `{name}` | {value:g} |" for name, value in DEFAULTS.items()]) + "\n"


def dialects() -> str:
    """Every dialect of standard output, with a sample."""
    lines = [
        f"# Dialects of standard output\n\n{_MADE}",
        "What a trainer prints is told by its lines, tried in this order. The last one takes what no other knows.\n",
    ]
    for dialect in DIALECTS:
        shown = [printable(line, 150) for line in dialect.samples[0].decode().splitlines()[:4]]
        lines += [f"## {dialect.name}\n", "```text", *shown, "```\n"]
    return "\n".join(lines)


def manual() -> str:
    """The man page: every command, its options and its statuses, from the same tables as the help."""
    context = click.Context(main, info_name="trainmon")
    lines = [
        '.\\" made by docs/reference.py: change the program, then run it',
        '.TH TRAINMON 1 "" "trainmon" "User Commands"',
        ".SH NAME",
        "trainmon \\- a terminal monitor for language\\-model training runs",
        ".SH SYNOPSIS",
        ".B trainmon\n.I COMMAND\n[OPTIONS] [TARGET]...",
        ".SH DESCRIPTION",
        *_paragraphs(main.help),
        ".SH COMMANDS",
    ]
    for entry in COMMANDS:
        lines += _of_command(entry, _loaded(entry.name, context), context)
    lines += [".SH CHECKS", "Ids for \\-\\-only, \\-\\-skip, \\-\\-explain and \\-\\-accept:", ".PP"]
    lines += [", ".join(_roff(check) for check in CHECK_IDS) + "."]
    lines += [".SH EXIT STATUS, FILES, ENVIRONMENT", *_paragraphs(main.epilog)]
    return "\n".join(lines) + "\n"


def _of_command(entry: Entry, command: click.Command, parent: click.Context) -> list[str]:
    context = click.Context(command, info_name=entry.name, parent=parent)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f".SS trainmon {entry.name} {_roff(usage)}", *_paragraphs(command.help)]
    for option in command.params:
        if isinstance(option, click.Option):
            lines += [
                ".TP",
                f".B {_roff(_names(option).replace('`', '').replace(chr(92), ''))}",
                _roff(option.help or ""),
            ]
    return [*lines, *([".PP", *_paragraphs(command.epilog)] if command.epilog else [])]


def _paragraphs(text: str | None) -> list[str]:
    """Text of the help: paragraphs filled, those that the help keeps as they are kept so."""
    lines: list[str] = []
    for part in (text or "").strip().split("\n\n"):
        kept = part.lstrip().startswith("\b")
        rows = [row.rstrip() for row in part.replace("\b", "").strip("\n").splitlines()]
        lines += [".PP", *([".nf"] if kept else []), *(_roff(row if kept else row.strip()) for row in rows)]
        lines += [".fi"] if kept else []
    return lines


def _roff(text: str) -> str:
    r"""One line of text for a man page.

    >>> _roff(".a -b \\ c")
    '\\&.a \\-b \\e c'
    """
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands,
    "dialects.md": dialects,
    "keys.md": keys,
    "signals.md": signals,
    "thresholds.md": thresholds,
    "trainmon.1": manual,
}


def write() -> None:
    """Writes every page beside this file, and the quick form of the table of key names."""
    for name, page in PAGES.items():
        (Path(__file__).parent / name).write_text(page(), encoding="utf-8")
    alias_table.QUICK.write_text(alias_table.quick_form(), encoding="utf-8")


if __name__ == "__main__":
    write()
