"""NumPy without what it loads only for those who check types while a program runs, or read its documentation there.

Loading NumPy is half of what a short command takes, and an eighth of that goes into these parts. They are put off, not
taken away: who asks one of them for anything but `NDArray` is given the whole part, as it is. Docstrings of compiled
functions are left out, as ``python -OO`` leaves them out.
"""

from __future__ import annotations

import sys
from types import GenericAlias, ModuleType
from typing import Any, TypeVar

_PACKAGES = ("numpy._typing", "numpy.typing")
_MODULES = ("numpy._core._add_newdocs", "numpy._core._add_newdocs_scalars")


class PutOff(ModuleType):
    """Stands for a module of NumPy until more is asked of it."""

    def __getattr__(self, name: str) -> object:
        if name == "NDArray":
            value: object = _nd_array()
        elif name == "__path__" and self.__name__ in _PACKAGES:
            value = [f"{place}/{self.__name__.partition('.')[2]}" for place in sys.modules["numpy"].__path__]
        elif name.startswith("__"):
            raise AttributeError(name)
        else:
            return getattr(self._whole(), name)
        setattr(self, name, value)
        return value

    def _whole(self) -> object:
        from importlib import import_module

        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return import_module(self.__name__)


def put_off() -> None:
    """From now on, as long as this process lives. Does nothing where NumPy is loaded already."""
    if "numpy" not in sys.modules:
        for name in _PACKAGES + _MODULES:
            sys.modules.setdefault(name, PutOff(name))


def _nd_array() -> object:
    """What ``numpy.typing.NDArray`` is; NumPy has its arrays before it asks for this."""
    numpy, core = sys.modules["numpy"], sys.modules["numpy._core.multiarray"]
    for name in _PACKAGES:  # ``import numpy.typing as npt`` takes it from there
        numpy.__dict__.setdefault(name.partition(".")[2], sys.modules[name])
    return GenericAlias(core.ndarray, (tuple[Any, ...], GenericAlias(core.dtype, (TypeVar("scalar"),))))
