"""What the quick decorator makes is a dataclass: each one of the program against its twin of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import math
import pickle
import pkgutil
from typing import Any, ClassVar

import msgspec
import pytest

from trainmon.tails.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """A frozen one, with what a class may hold."""

    step: float
    names: list[str] = dataclasses.field(default_factory=list)
    note: object = None
    MOST: ClassVar[int] = 3

    @property
    def is_far(self) -> bool:
        """Of more than the most."""
        return self.step > self.MOST


@dataclass(slots=True)
class Counter:
    """A mutable one."""

    seen: int = 0
    doubled: int = 0

    def __post_init__(self) -> None:
        self.doubled = 2 * self.seen


@dataclass(slots=True, eq=False)
class Thing:
    """One that is only ever itself."""

    name: str


def made_here() -> list[type[Any]]:
    """Every class of the program that the decorator made."""
    found: dict[str, type[Any]] = {}
    for folder in ("tails", "monitor", "tui"):
        package = importlib.import_module(f"trainmon.{folder}")
        for module in pkgutil.walk_packages(package.__path__, f"trainmon.{folder}."):
            for one in vars(importlib.import_module(module.name)).values():
                if isinstance(one, type) and issubclass(one, msgspec.Struct) and dataclasses.is_dataclass(one):
                    found[f"{one.__module__}.{one.__qualname__}"] = one
    return list(found.values())


def twin(cls: type[Any]) -> type[Any]:
    """The same fields, made by the standard library."""
    fields = [(each.name, each.type, _again(each)) for each in dataclasses.fields(cls)]
    frozen = cls.__struct_config__.frozen
    made = dataclasses.make_dataclass(cls.__name__, fields, eq=cls.__struct_config__.eq, frozen=frozen, slots=True)
    made.__qualname__ = cls.__qualname__
    return made


def _again(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return dataclasses.field(default_factory=field.default_factory)
    return dataclasses.field(default=field.default)


def test_many_classes_are_made_so() -> None:
    assert len(made_here()) > 150


def test_each_is_made_compared_changed_and_shown_as_its_twin() -> None:
    for cls in made_here():
        if hasattr(cls, "__post_init__"):
            continue
        other = twin(cls)
        names = [field.name for field in dataclasses.fields(cls)]
        assert tuple(names) == cls.__struct_fields__ == cls.__match_args__ == other.__match_args__
        values = range(len(names))
        one, again = cls(*values), cls(**dict(zip(names, values, strict=True)))
        assert (one == again) is (other(*values) == other(*values))
        if "__repr__" not in vars(cls):
            assert repr(one) == repr(other(*values))
        changed = dataclasses.replace(one, **{names[-1]: "other"}) if names else one
        assert [getattr(changed, name) for name in names] == [*list(values)[:-1], "other"][: len(names)]
        assert dataclasses.asdict(changed) == dataclasses.asdict(other(*(getattr(changed, name) for name in names)))
        if cls.__struct_config__.frozen and cls.__struct_config__.eq:
            assert hash(one) == hash(again)


def test_each_asks_for_what_its_twin_asks_for() -> None:
    for cls in made_here():
        needed = [
            field.name
            for field in dataclasses.fields(cls)
            if field.default is field.default_factory is dataclasses.MISSING
        ]
        if hasattr(cls, "__post_init__"):
            continue
        one, other = cls(*needed), twin(cls)(*needed)
        for name in cls.__struct_fields__:
            mine, theirs = getattr(one, name), getattr(other, name)
            assert type(mine) is type(theirs)
            assert type(mine).__eq__ is object.__eq__ or repr(mine) == repr(theirs)
        if needed:
            with pytest.raises(TypeError):
                cls(*needed[:-1])
        with pytest.raises(TypeError):
            cls(*needed, no_such_field=1)


def test_a_frozen_one_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Place(1.0).step = 2.0  # type: ignore[misc]  # what is tested
    with pytest.raises(AttributeError):
        del Place(1.0).step
    with pytest.raises(AttributeError):
        Counter().other = 2  # type: ignore[attr-defined]  # what is tested


def test_what_a_class_holds_is_kept() -> None:
    assert (Place(4.0).is_far, Place(2.0).is_far, Place.MOST, Place.__doc__) == (
        True,
        False,
        3,
        "A frozen one, with what a class may hold.",
    )
    assert Place(1.0).names is not Place(1.0).names
    assert Counter(3).doubled == 6
    assert Thing("a") != Thing("a")


def test_values_that_are_the_same_object_are_equal_as_in_tuples() -> None:
    nan = math.nan
    assert (Place(nan) == Place(nan)) is ((nan,) == (nan,))
    assert Place(1.0) != (1.0, [], None)


def test_copies_and_pickles() -> None:
    shared = ["a"]
    one = Place(1.0, shared, Counter(2))
    deep = copy.deepcopy((one, shared))
    assert deep[0] == one
    assert deep[0].names is deep[1]
    assert deep[0].names is not shared
    assert copy.copy(one).names is shared
    assert pickle.loads(pickle.dumps(one)) == one


def test_what_it_cannot_make_is_refused() -> None:
    with pytest.raises(TypeError):
        dataclass(slots=True)(type("Child", (Thing,), {}))
    with pytest.raises(TypeError):

        @dataclass(slots=True)
        class Secret:
            word: str = dataclasses.field(repr=False)
