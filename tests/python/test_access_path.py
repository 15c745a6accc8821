# SPDX-License-Identifier: Apache-2.0
"""Paths inside a value."""

from __future__ import annotations

from typing import Any

import pytest
import tvm_ffi
from tvm_ffi.access_path import AccessKind, AccessPath, AccessStep


def sample() -> AccessPath:
    return AccessPath.root().attr("body").array_item(2).map_item("k")


def test_the_root_has_no_parent_and_no_step() -> None:
    root = AccessPath.root()
    assert root.parent is None
    assert root.step is None
    assert root.depth == 0
    assert len(root.to_steps()) == 0


def test_each_method_adds_one_step() -> None:
    root = AccessPath.root()
    for path, kind, key in [
        (root.attr("a"), AccessKind.ATTR, "a"),
        (root.attr_missing("a"), AccessKind.ATTR_MISSING, "a"),
        (root.array_item(3), AccessKind.ARRAY_ITEM, 3),
        (root.array_item_missing(3), AccessKind.ARRAY_ITEM_MISSING, 3),
        (root.map_item("k"), AccessKind.MAP_ITEM, "k"),
        (root.map_item_missing((1, 2)), AccessKind.MAP_ITEM_MISSING, None),
    ]:
        assert type(path.step) is AccessStep
        assert path.step.kind == kind
        if key is not None:
            assert path.step.key == key
        assert path.parent is root
        assert path.depth == 1


def test_steps_lead_from_the_root() -> None:
    steps = sample().to_steps()
    assert [step.kind for step in steps] == [AccessKind.ATTR, 1, 2]
    assert [step.key for step in steps] == ["body", 2, "k"]
    assert sample().depth == 3
    assert steps[0] is steps[0]


def test_paths_compare_by_content() -> None:
    assert sample() == sample()
    assert sample() != AccessPath.root()
    for other in (3, "text", None, tvm_ffi.Array([])):
        assert (sample() == other) is False
        assert (sample() != other) is True
    path = sample()
    assert hash(path) == hash(path)


def test_prefixes() -> None:
    path = sample()
    current: Any = path
    while current is not None:
        assert current.is_prefix_of(path)
        current = current.parent
    assert not path.is_prefix_of(AccessPath.root())
    assert not AccessPath.root().attr("other").is_prefix_of(path)


def test_text() -> None:
    assert repr(sample()) == '<root>.body[2]["k"]'
    assert repr(AccessPath.root().array_item_missing(1)) == "<root>[<missing:1>]"


def test_paths_are_not_constructed_directly() -> None:
    with pytest.raises(ValueError, match="can't be initialized directly. Use AccessPath.root()"):
        AccessPath()
    with pytest.raises(TypeError, match="cannot be constructed directly"):
        AccessStep()


def test_kinds_are_integers() -> None:
    assert [kind.value for kind in AccessKind] == [0, 1, 2, 3, 4, 5]
    assert AccessKind(3) is AccessKind.ATTR_MISSING


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError):
        AccessPath.root().attr(3)
    with pytest.raises(TypeError):
        AccessPath.root().array_item("x")
    with pytest.raises(TypeError):
        AccessPath.root().is_prefix_of(tvm_ffi.Array([]))
