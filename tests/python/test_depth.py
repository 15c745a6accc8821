# SPDX-License-Identifier: Apache-2.0
"""Chains of 10^5 objects, in a thread with a small stack: every operation ends, none overflows."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import tvm_ffi
from support import run_python
from tvm_ffi import structural, testing
from tvm_ffi.access_path import AccessPath
from tvm_ffi.dataclasses import asdict, astuple, py_class
from tvm_ffi.serialization import from_json_graph_str, to_json_graph_str

DEPTH = 100_000
STACK = 512 * 1024  # what threads get by default on some platforms
GET = tvm_ffi.get_global_func


@py_class("tests.depth.Node", structural_eq="tree", eq=True, order=True, unsafe_hash=True)
class Node(tvm_ffi.Object):
    """Defined in Python."""

    value: int
    child: Any = None


@py_class("tests.depth.Hooked", structural_eq="tree")
class Hooked(tvm_ffi.Object):
    """Its hooks recurse on the native stack."""

    child: Any = None

    def __ffi_repr__(self, fn: Any) -> str:
        return "H" + fn(self.child)

    def __ffi_hash__(self, fn: Any) -> int:
        return fn(self.child)

    def __ffi_eq__(self, other: Any, fn: Any) -> bool:
        return fn(self.child, other.child)

    def __s_equal__(self, other: Any, cb: Any) -> bool:
        return cb(self.child, other.child, 0, "child")

    def __s_hash__(self, init: int, cb: Any) -> int:
        return cb(self.child, init, 0)

    @staticmethod
    def __s_visit__(visitor: Any, value: Any) -> Any:
        return visitor.visit(value.child)


# Each makes one link of a chain around the rest of it.
LINKS: dict[str, Callable[[Any], Any]] = {
    "array": lambda rest: tvm_ffi.Array([rest]),
    "dict": lambda rest: tvm_ffi.Dict({"k": rest}),
    "node": lambda rest: Node(1, rest),
    "reflected": lambda rest: rest.array_item(0),
}


def chain(kind: str, end: int = 0, depth: int = DEPTH) -> Any:
    """Return a chain that ends with a number."""
    result: Any = AccessPath.root().array_item(end) if kind == "reflected" else end
    for _ in range(depth):
        result = LINKS[kind](result)
    return result


@cache
def pair(kind: str) -> tuple[Any, Any]:
    return chain(kind), chain(kind)


@pytest.fixture(scope="module", autouse=True)
def _chains_go_away() -> Any:
    yield
    pair.cache_clear()


def on_small_stack(body: Callable[[], Any]) -> Any:
    """Return what `body` returns, or raise what it raises, in a thread of its own."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.extend((body(), None))
        except BaseException as error:
            outcome.extend((None, error.with_traceback(None)))

    before = threading.stack_size(STACK)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    result, error = outcome
    if error is not None:
        raise error
    return result


def count_walked(value: Any, order: str) -> int:
    seen = 0

    def count(_: Any) -> None:
        nonlocal seen
        seen += 1

    structural.structural_walk(value, count, order=order)
    return seen


def mismatch(one: Any, kind: str) -> bool:
    lhs, rhs = structural.get_first_structural_mismatch(one, chain(kind, end=1))
    return lhs == rhs and lhs.is_prefix_of(rhs) and len(str(lhs)) > DEPTH


# What is done with two equal chains; True is the right answer.
USES: dict[str, Callable[[Any, Any, str], bool]] = {
    "structural equal": lambda a, b, _: structural.structural_equal(a, b, map_free_vars=True),
    "structural hash": lambda a, b, _: (
        structural.structural_hash(a, map_free_vars=True)
        == structural.structural_hash(b, map_free_vars=True)
    ),
    "first mismatch": lambda a, _, kind: mismatch(a, kind),
    "walk": lambda a, *_: count_walked(a, "pre") > DEPTH,
    "walk, children first": lambda a, *_: count_walked(a, "post") > DEPTH,
    "recursive equal": lambda a, b, _: GET("ffi.RecursiveEq")(a, b),
    "recursive unequal": lambda a, _, kind: not GET("ffi.RecursiveEq")(a, chain(kind, end=1)),
    "recursive less": lambda a, b, _: not GET("ffi.RecursiveLt")(a, b),
    "recursive hash": lambda a, b, _: GET("ffi.RecursiveHash")(a) == GET("ffi.RecursiveHash")(b),
    "deepcopy": lambda a, *_: GET("ffi.RecursiveEq")(copy.deepcopy(a), a),
    "pickle": lambda a, *_: GET("ffi.RecursiveEq")(pickle.loads(pickle.dumps(a)), a),
    "repr": lambda a, *_: len(repr(a)) > DEPTH,
    "graph": lambda a, *_: GET("ffi.RecursiveEq")(from_json_graph_str(to_json_graph_str(a)), a),
    "search for a device": lambda a, *_: (
        str(GET("ffi.ContainerFindFirstNonCPUDevice")(a)) == "cpu:0"
    ),
    "collection": lambda *_: gc.collect() >= 0,
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", LINKS)
def test_long_chains_need_no_native_stack(kind: str, use: str) -> None:
    one, other = pair(kind)
    assert on_small_stack(lambda: USES[use](one, other, kind))


@pytest.mark.parametrize("kind", LINKS)
def test_long_chains_are_made_and_destroyed(kind: str) -> None:
    def run() -> None:
        made = chain(kind)
        ring = [made]
        ring.append(ring)
        del made, ring
        gc.collect()

    on_small_stack(run)


def test_json_of_any_depth() -> None:
    parse, write = GET("ffi.json.Parse"), GET("ffi.json.Stringify")
    for text in ("[" * DEPTH + "]" * DEPTH, '{"a":' * DEPTH + "1" + "}" * DEPTH):
        assert on_small_stack(lambda text=text: write(parse(text), None)) == text
    with pytest.raises(ValueError, match="Expecting value"):
        on_small_stack(lambda: parse("[" * DEPTH))


@pytest.mark.parametrize("convert", [asdict, astuple])
def test_plain_python_values_have_the_limit_of_python(convert: Any) -> None:
    made = chain("node", depth=20_000)
    with pytest.raises(RecursionError):
        convert(made)


HOOKED: dict[str, Callable[[Any, Any], Any]] = {
    "structural equal": structural.structural_equal,
    "structural hash": lambda a, _: structural.structural_hash(a),
    "recursive equal": GET("ffi.RecursiveEq"),
    "recursive hash": lambda a, _: GET("ffi.RecursiveHash")(a),
    "walk": lambda a, _: structural.structural_walk(a, lambda _: None),
}


@pytest.mark.parametrize("use", HOOKED)
def test_hooks_that_nest_too_deeply_are_an_error(use: str) -> None:
    one: Any = 0
    other: Any = 0
    for _ in range(5_000):
        one, other = Hooked(one), Hooked(other)
    with pytest.raises((ValueError, RuntimeError), match="too deeply|recursion depth"):
        on_small_stack(lambda: HOOKED[use](one, other))
    try:
        shown = on_small_stack(lambda: repr(one))
    except RecursionError as error:  # the interpreter's limit came first, not that of C++
        shown = str(error)
    assert isinstance(shown, str)
    assert testing.echo(one) is one


@pytest.mark.parametrize(
    "make", [lambda rest: [rest], lambda rest: (rest,), lambda rest: {1: rest}]
)
def test_nested_python_values_have_the_limit_of_python(make: Callable[[Any], Any]) -> None:
    nested: Any = 0
    for _ in range(20_000):
        nested = make(nested)
    with pytest.raises(RecursionError, match="while converting"):
        on_small_stack(lambda: tvm_ffi.convert(nested))
    assert on_small_stack(lambda: tvm_ffi.convert([[[1]]])) == [[[1]]]


@pytest.mark.parametrize("limit", [3_000, 100_000])
@pytest.mark.parametrize("in_thread", [False, True])
def test_python_and_cpp_that_call_each_other_do_not_overflow_the_stack(
    limit: int, in_thread: bool
) -> None:
    """Whatever limit the program has set: the stack of a thread does not grow with it."""
    run_python(f"""
import sys
import threading
from tvm_ffi import testing
sys.setrecursionlimit({limit})
def nest(*args):
    return testing.apply(nest, *args)
def run():
    for args in ((), (1,), tuple(range(20))):
        try:
            nest(*args)
        except RecursionError as error:
            assert "maximum recursion depth exceeded" in str(error), error
            reached.append(True)
reached = []
if {in_thread}:
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
else:
    run()
assert len(reached) == 3
""")


def test_json_numbers_are_those_of_json() -> None:
    parse = GET("ffi.json.Parse")
    for text in ("01", "1.", ".5", "+1", "-01", "1e400"):
        with pytest.raises(ValueError, match="Expecting value: line 1 column 1"):
            parse(text)
    for text in ("1e-400", "-1e-400", "5e-324", "0.1", "-0.0", "1E+2"):
        assert str(parse(text)) == str(float(text))
