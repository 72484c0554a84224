"""Configuration files of any trainer as one flat table: key path -> number, word or switch. Read as text, never run."""

from __future__ import annotations

import ast
import json
import math
import operator
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath

Value = float | str | bool
Flat = dict[str, Value]

_MOST_ENTRIES = 20_000
_MOST_LINES = 50_000
_MAX_LINE = 2_000
_YAML = re.compile(r"^(?P<indent> *)(?:- +)?(?P<key>[\w./-]{1,80}) *:(?: +(?P<value>[^\n]*?))?$")
_MEGATRON = re.compile(r"^\s*([a-z]\w{1,60}) \.{3,} (.{1,200})$")
_ASSIGNED = re.compile(r"^\s*(?:export\s+)?([A-Za-z_]\w{0,60})=(\"[^\"]*\"|'[^']*'|[^\s;#]*)")
_FLAG = re.compile(r"^--?([A-Za-z][\w.-]{0,80})(?:=(.*))?$")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?[-=]([^{}]{0,200}))?\}|(\w+))")
_ARITHMETIC_SPACED = re.compile(r"\$\(\([^()\n]{1,120}\)\)")
_ARITHMETIC = re.compile(r"\$\(\(([\w\s*+/-]{1,120})\)\)")
# What sbatch has short names for, as the long ones.
_SHORT = (
    (re.compile(r"(?<!\S)-N[ =]?(\d+)"), r"--nodes=\1"),
    (re.compile(r"--gres[ =]gpu:(?:\w+:)?(\d+)"), r"--gpus-per-node=\1"),
)
_TYPED_COUNT = re.compile(r"(--gpus-per-node[ =])[a-zA-Z]\w*:(\d+)")
_REPR_ARGUMENT = re.compile(r"^\s*([a-z_]{2,60})=([^,\n]{1,200}),?\s*$")
_NONE = frozenset(("none", "null", "~", ""))
_SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class UnreadableConfigError(ValueError):
    """A file that is no configuration this program knows; the message is one line."""


def flatten(name: str, text: str) -> Flat:
    """The settings in `text` of the file `name`, by its ending, else by what it looks like.

    Raises UnreadableConfigError when it is broken, or nothing in it is a setting.
    """
    suffix = PurePath(name).suffix.lower()
    try:
        if suffix == ".json" or text.lstrip().startswith("{"):
            found = dict(_leaves(json.loads(text)))
        elif suffix == ".toml":
            found = dict(_leaves(tomllib.loads(text)))
        elif suffix in (".yaml", ".yml"):
            found = _yaml(text)
        elif suffix == ".py":
            found = _python(text)
        elif suffix in (".sh", ".sbatch", ".slurm", ".bash", ".args"):
            found = _shell(text)
        else:
            found = _log(text) or _shell(text) or _yaml(text)
    except (ValueError, RecursionError, SyntaxError) as error:
        words = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
        raise UnreadableConfigError(f"not read as {suffix.lstrip('.') or 'a configuration'}: {words}") from None
    if not found:
        raise UnreadableConfigError("no settings found; name a JSON, YAML, TOML or Python config, a script, or a log")
    return found


def scalar(text: str) -> Value | None:
    """A word of a configuration as what it means; None for "none" and the like.

    >>> scalar("3e-4"), scalar("1_000"), scalar("True"), scalar("'cosine'"), scalar("null")
    (0.0003, 1000.0, True, 'cosine', None)
    """
    bare = text.strip().strip("\"'")
    if bare.lower() in _NONE:
        return None
    if bare.lower() in _SWITCHES:
        return _SWITCHES[bare.lower()]
    try:
        number = float(bare.replace("_", "") if re.fullmatch(r"[\d_.eE+-]+", bare) else bare)
    except ValueError:
        return bare[:200]
    return number if math.isfinite(number) else bare[:200]


def _leaves(value: object) -> Iterator[tuple[str, Value]]:
    waiting: list[tuple[str, object]] = [("", value)]
    seen = 0
    while waiting and seen < _MOST_ENTRIES:
        name, item = waiting.pop()
        seen += 1
        if isinstance(item, Mapping):
            waiting += [(f"{name}/{key}" if name else str(key), inner) for key, inner in item.items()]
        elif isinstance(item, (list, tuple)):
            waiting += [(f"{name}/{index}", inner) for index, inner in enumerate(item[:64])]
        elif isinstance(item, (bool, str)):
            found = scalar(item) if isinstance(item, str) else item
            if name and found is not None:
                yield name, found
        elif isinstance(item, (int, float)) and name:
            try:
                number = float(item)
            except OverflowError:
                continue
            if math.isfinite(number):
                yield name, number


def _yaml(text: str) -> Flat:
    """``key: value`` lines nested by indent; tags, anchors and blocks are passed over, never resolved."""
    found: Flat = {}
    open_keys: list[tuple[int, str]] = []
    for line in text.splitlines()[:_MOST_LINES]:
        match = _YAML.match(re.sub(r"\s+#.*$", "", line).rstrip()) if len(line) <= _MAX_LINE else None
        if match is None:
            continue
        indent = len(match["indent"])
        while open_keys and open_keys[-1][0] >= indent:
            open_keys.pop()
        raw = match["value"]
        if raw is None or not raw.strip():
            open_keys.append((indent, match["key"]))
            continue
        value = scalar(raw)
        if value is not None:
            found["/".join((*(key for _, key in open_keys[-8:]), match["key"]))] = value
    return found


def _python(text: str) -> Flat:
    """Assignments and keyword arguments of constants in a Python file. It is parsed, and nothing of it is run."""
    found: Flat = {}
    known: dict[str, Value] = {}
    for node in ast.walk(ast.parse(text)):
        pairs: list[tuple[str, ast.expr]] = []
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            pairs = [(node.targets[0].id, node.value)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            pairs = [(node.target.id, node.value)]
        elif isinstance(node, ast.Call):
            pairs = [(keyword.arg, keyword.value) for keyword in node.keywords if keyword.arg]
        elif isinstance(node, ast.Dict):
            pairs = [
                (key.value, value)
                for key, value in zip(node.keys, node.values, strict=True)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            ]
        for name, expression in pairs:
            value = _constant(expression, known, 0)
            if value is not None and name not in found:
                known[name] = found[name] = value
    return found


_SUMS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


def _constant(node: ast.expr, known: Mapping[str, Value], depth: int) -> Value | None:
    """The value of a constant, of arithmetic on constants, or of a name that was given one before; else None."""
    if depth > 20:
        return None
    if isinstance(node, ast.Constant):
        if isinstance(node.value, (bool, str)):
            return scalar(node.value) if isinstance(node.value, str) else node.value
        return float(node.value) if isinstance(node.value, (int, float)) and abs(node.value) < 1e300 else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _constant(node.operand, known, depth + 1)
        return -inner if isinstance(inner, float) else None
    if isinstance(node, ast.BinOp) and type(node.op) in _SUMS:
        left, right = _constant(node.left, known, depth + 1), _constant(node.right, known, depth + 1)
        if isinstance(left, float) and isinstance(right, float):
            try:
                made = _SUMS[type(node.op)](left, right)
            except (OverflowError, ValueError, ZeroDivisionError):
                return None
            return made if isinstance(made, float) and math.isfinite(made) else None
    return None


def _shell(text: str) -> Flat:
    """``--flag value`` of the commands in a script, variables of the script itself filled in."""
    variables: dict[str, str] = {}
    words: list[str] = []
    for line in text.replace("\\\n", " ").splitlines()[:_MOST_LINES]:
        bare = line.strip()
        if not bare or (bare.startswith("#") and not bare.startswith("#SBATCH")) or len(bare) > 64 * _MAX_LINE:
            continue
        bare = _ARITHMETIC_SPACED.sub(lambda found: re.sub(r"\s+", "", found[0]), bare)
        # Several in a row stand before a command as its environment.
        while (assigned := _ASSIGNED.match(bare)) and "--" not in assigned[2] and assigned[2] not in ('"', "'"):
            variables[assigned[1]] = _filled(assigned[2].strip("\"'"), variables)
            bare = bare[assigned.end() :].lstrip("; ")
        if bare.startswith("#SBATCH"):
            bare = _long_names(bare)
        # No flag takes its value from the next line.
        words += [*re.sub(r"[\"'()]", " ", _filled(bare, variables)).split(), _END_OF_LINE]
    return _flags(words)


_END_OF_LINE = ""


def _long_names(line: str) -> str:
    """An #SBATCH line with -N and --gres as their long names.

    >>> _long_names("#SBATCH -N 8 --gres=gpu:a100:4")
    '#SBATCH --nodes=8 --gpus-per-node=4'
    """
    for short, long in _SHORT:
        line = short.sub(long, line)
    return _TYPED_COUNT.sub(r"\1\2", line)


def _filled(text: str, variables: Mapping[str, str]) -> str:
    """`text` with the script's own variables, their defaults, and sums of them."""
    plain = _VARIABLE.sub(lambda found: variables.get(found[1] or found[3], found[2] or ""), text[: 64 * _MAX_LINE])
    return _ARITHMETIC.sub(lambda found: _sum(found[1], variables), plain)[: 64 * _MAX_LINE]


def _sum(text: str, variables: Mapping[str, str]) -> str:
    """What ``$((A * B))`` comes to; "" where it is not told."""
    known = {name: value for name, text_of in variables.items() if (value := scalar(text_of)) is not None}
    try:
        value = _constant(ast.parse(text.strip(), mode="eval").body, known, 0)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    return f"{value:.15g}" if isinstance(value, float) else ""


def _flags(words: list[str]) -> Flat:
    found: Flat = {}
    for place, word in enumerate(words[:_MOST_ENTRIES]):
        flag = _FLAG.match(word)
        if flag is None:
            continue
        name = flag[1].replace("-", "_")
        following = words[place + 1] if place + 1 < len(words) else ""
        is_value = following and not re.match(r"^--?[A-Za-z]", following)
        value = scalar(flag[2]) if flag[2] is not None else scalar(following) if is_value else True
        if value is not None:
            found.setdefault(name, value)
    return found


def _log(text: str) -> Flat:
    """Megatron's block of arguments, and a printed ``TrainingArguments(...)``, in the first lines of a log."""
    found: Flat = {}
    for line in text.splitlines()[:_MOST_LINES]:
        if len(line) > _MAX_LINE:
            continue
        match = _MEGATRON.match(re.sub(r"^\[?[\w\s:.,-]{0,40}\]?:\s(?=\s)", "", line)) or _REPR_ARGUMENT.match(line)
        value = scalar(match[2]) if match else None
        if match and value is not None:
            found.setdefault(match[1], value)
    return found
