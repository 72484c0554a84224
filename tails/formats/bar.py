"""Progress bars as tqdm and its kin draw them: one frame taken apart."""

from __future__ import annotations

import re
from enum import Enum, auto

from trainmon.tails.formats.numbers import MULTIPLIERS, NUMBER, clock_seconds, is_absent, to_number, with_multiplier
from trainmon.tails.quick_dataclass import dataclass

_FRAME = re.compile(
    r"(?:^|(?<=[|\s]))(?P<n>\d[\d.]*[kMGT]?)(?:/(?P<total>\d[\d.]*[kMGT]?|\?)|(?= ?[A-Za-z]+ \[))(?: ?[A-Za-z]+)? "
    r"\[(?P<elapsed>(?:\d+ days?, )?\d[\d:]+|\?)"
)
_PERCENT = re.compile(r"(?<!\d)\d{1,9}%\|")
_POSTFIX = re.compile(
    rf"[,\s\[]\s{{0,20}}(?P<key>[A-Za-z_][^=,\]\[]{{0,80}}?)\s{{0,20}}[=:]\s{{0,20}}['\"]?(?P<value>{NUMBER})"
    r"(?:(?<=[nNfF])\.0)?(?P<unit>%|[a-zA-Z/]{1,12})?['\"]?\s{0,20}(?=[,\]]|$| )"
)
_NO_METRIC = frozenset({"v_num", "refresh"})


# A frame with metrics and nothing behind it, as bytes: what comes before the elapsed time tells the bar and its place.
QUICK_BAR = re.compile(rb"([^<=\n]*/[\d.]+[kMGT]?) \[\d[\d:]*<(?=[^=\]]*,)[^=\]]*+=[^\]]*\]\s*(?:\x1b\[[AK]\s*)*$")


class BarKind(Enum):
    """What a frame is good for: nothing, beside the training; its position only; metrics."""

    NONE = auto()
    SIDE = auto()
    PLAIN = auto()
    METRICS = auto()


@dataclass(slots=True)
class Bar:
    """One frame. `label`: the words before it. `total` is NaN when unknown, `elapsed` in seconds or None.

    `rest` is the text from the elapsed time on: rate and postfix, and what was printed behind the bar.
    """

    label: str
    n: float
    total: float
    elapsed: float | None
    rest: str

    @property
    def has_postfix(self) -> bool:
        """Whether metrics stand in the bar. A torn one, without its end, is not trusted with any."""
        return "=" in self.rest[: self.rest.find("]") + 1]


def read_bar(text: str) -> Bar | None:
    """The bar drawn in `text`, None when there is none.

    >>> bar = read_bar("Train epoch [1/3]:  25%|#  | 16/64 [00:01<00:03, 13.5it/s, actor_loss=-.0395, x=nan]")
    >>> bar.label, bar.n, bar.total, bar.elapsed, postfix_of(bar)
    ('Train epoch [1/3]', 16.0, 64.0, 1.0, {'actor_loss': -0.0395, 'x': nan})
    """
    match = _FRAME.search(text)
    if match is None:
        return None
    percent = _PERCENT.search(text, 0, match.start() + 1)
    label = text[: percent.start() if percent is not None else match.start()]
    total = match["total"]
    return Bar(
        label.strip().rstrip(":").strip(),
        with_multiplier(match["n"]),
        with_multiplier(total) if total and total != "?" else float("nan"),
        clock_seconds(match["elapsed"].rpartition(", ")[2])
        if "day" not in match["elapsed"]
        else clock_seconds(match["elapsed"]),
        text[match.end() :],
    )


def end_of(bar: Bar) -> int:
    """Length of `rest` that belongs to the bar itself: up to its closing bracket."""
    close = bar.rest.find("]")
    return len(bar.rest) if close < 0 else close + 1


def postfix_of(bar: Bar) -> dict[str, float | None]:
    """The metrics of a bar."""
    values: dict[str, float | None] = {}
    inner = bar.rest[: end_of(bar)]
    for match in _POSTFIX.finditer(inner):
        key = match["key"].strip()
        if key in _NO_METRIC or is_absent(match["value"]):
            continue
        unit = match["unit"]
        try:
            if unit in MULTIPLIERS:
                values[key] = with_multiplier(match["value"] + unit)
            else:
                values[f"{key} ({unit})" if unit else key] = to_number(match["value"])
        except ValueError:
            continue
    return values


def is_like_a_bar(text: str) -> bool:
    """Whether `text` has what tqdm draws: the bar itself, or (without room for one) its two times and its speed."""
    return "%|" in text or ("<" in text and "[" in text and ("it/s" in text or "s/it" in text))
