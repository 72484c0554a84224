"""Arrays to bytes and back, without pickle: raw numbers, and shorter forms of what is regular."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_KINDS: Final = {"<f8", "<i8", "|u1", "<u2", "<u4"}
_NARROW: Final = (np.dtype("<u2"), np.dtype("<u4"))

Described = list[Any]


def pack(array: NDArray[Any], out: bytearray) -> Described:
    """What is needed to have `array` again: `unpack` of it and of the bytes that were added to `out`.

    >>> out = bytearray()
    >>> told = pack(np.arange(5.0, 9.0), out), pack(np.array([0, 90, 181]), out)
    >>> told[0], [unpack(one, bytes(out)).tolist() for one in told]
    (['even', '<f8', 4, 5.0, 1.0], [[5.0, 6.0, 7.0, 8.0], [0, 90, 181]])
    """
    array = np.ascontiguousarray(array)
    kind, count = array.dtype.newbyteorder("<").str, len(array)
    if kind not in _KINDS:
        raise ValueError(f"arrays of {kind} are not kept")
    if count and array.dtype.kind == "f" and np.isnan(array).all():
        return ["nan", count]
    if count > 1 and (even := _even(array)) is not None:
        return ["even", kind, count, *even]
    if count > 1 and array.dtype.kind == "i":
        gaps = np.diff(array)
        for narrow in _NARROW:
            if int(gaps.min()) >= 0 and int(gaps.max()) <= np.iinfo(narrow).max:
                return ["gaps", count, int(array[0]), narrow.str, _put(gaps.astype(narrow), out)]
    return ["raw", kind, count, _put(array, out)]


def unpack(told: Described, data: bytes) -> NDArray[Any]:
    """The array that `pack` described. Raises ValueError for what it cannot have written."""
    try:
        if any(isinstance(part, int) and part < 0 for part in told[1:3]) and told[0] != "gaps":
            raise ValueError("not a packed array")
        match told:
            case ["nan", int(count)]:
                return np.full(count, np.nan)
            case ["even", str(kind), int(count), first, gap] if kind in _KINDS:
                return np.asarray(first + gap * np.arange(count, dtype=kind))
            case ["gaps", int(count), int(first), str(kind), int(offset)] if kind in _KINDS and count > 1:
                gaps = np.frombuffer(data, kind, count - 1, offset)
                return np.asarray(first + np.concatenate([[0], np.cumsum(gaps, dtype=np.int64)]))
            case ["raw", str(kind), int(count), int(offset)] if kind in _KINDS:
                return np.frombuffer(data, kind, count, offset)
    except (TypeError, OverflowError, MemoryError) as error:
        raise ValueError("not a packed array") from error
    raise ValueError("not a packed array")


def _even(array: NDArray[Any]) -> tuple[Any, Any] | None:
    """The first value and the gap of values that are evenly spaced."""
    if array.dtype.kind == "u" or not np.isfinite(array[[0, 1, -1]]).all():
        return None
    first, gap = array[0].item(), array[1].item() - array[0].item()
    if first + gap * (len(array) - 1) != array[-1].item():
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        made = first + gap * np.arange(len(array), dtype=array.dtype)
    return (first, gap) if np.array_equal(made.view(np.int64), array.view(np.int64)) else None  # -0.0 is not 0.0


def _put(array: NDArray[Any], out: bytearray) -> int:
    out += b"\0" * (-len(out) % 8)
    offset = len(out)
    out += array.tobytes()
    return offset
