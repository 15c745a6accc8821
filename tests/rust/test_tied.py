# SPDX-License-Identifier: Apache-2.0
"""The promises of docs/tying.md on a class written in Rust."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from crates import build_crate

if shutil.which("cargo") is None:
    pytest.skip("no cargo: the Rust library cannot be built", allow_module_level=True)


REGISTER_NODE = """
rust.make_node(0, None)
@tvm_ffi.register_object("tied.Node")
class Node(tvm_ffi.Object):
    __slots__ = ("__dict__",)
"""


@pytest.fixture(scope="session")
def library_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_crate("tied", tmp_path_factory.mktemp("bin"))


@pytest.fixture(scope="session")
def rust(library_path: Path) -> Any:
    return tvm_ffi.load_module(library_path)


@pytest.fixture(scope="session")
def node_class(rust: Any) -> Any:
    rust.make_node(0, None)  # the type is registered at its first use

    @tvm_ffi.register_object("tied.Node")
    class Node(tvm_ffi.Object):
        __slots__ = ("__dict__",)

    return Node


def test_a_function_of_rust(rust: Any) -> None:
    assert rust.greet("Python") == "hello, Python"
    with pytest.raises(ValueError, match="no good"):
        rust.fail("no good")
    with pytest.raises(Exception, match="panicked: from Rust"):
        rust.explode()
    with pytest.raises(TypeError, match=r"Argument #0: Cannot convert from type `int`"):
        rust.greet(1)
    assert rust.greet("again") == "hello, again"


def test_objects_of_rust_carry_the_header(rust: Any, node_class: Any) -> None:
    before = tvm_ffi.tying.stats()
    kept = [rust.make_node(i, None) for i in range(100)]
    after = tvm_ffi.tying.stats()
    assert len(kept) == 100
    # Nothing is adopted: the allocator that Python registered made them.
    assert after["adopted"] == before["adopted"]


def test_p1_one_wrapper(rust: Any, node_class: Any) -> None:
    child = rust.make_node(1, None)
    parent = rust.make_node(2, child)
    assert type(parent) is node_class
    assert parent.next is child
    assert parent.next is parent.next
    assert rust.next_of(parent) is child
    assert rust.apply(lambda node: node, parent) is parent
    array = rust.nodes(3)
    assert array[1] is array[1]
    function = rust.hold(parent)
    assert function() is parent


def test_p2_identity_outlives_the_last_python_reference(rust: Any, node_class: Any) -> None:
    parent = rust.make_node(1, rust.make_node(2, None))
    identity = id(parent.next)
    parent.next  # noqa: B018
    spoilers = [rust.make_node(i, None) for i in range(10)]
    assert id(parent.next) == identity
    del spoilers


def test_p3_state_outlives_too(rust: Any, node_class: Any) -> None:
    parent = rust.make_node(1, rust.make_node(2, None))
    parent.next.note = "kept"
    gc.collect()
    assert parent.next.note == "kept"


def test_p3_a_python_subclass(rust: Any, node_class: Any) -> None:
    class Special(node_class):  # type: ignore[misc]
        def __init__(self, value: int) -> None:
            self.__move_handle_from__(rust.make_node(value, None))
            self.extra = {"value": value}

    holder = rust.hold(Special(7))
    gc.collect()
    back = holder()
    assert type(back) is Special
    assert back.extra == {"value": 7}
    assert back.value == 7
    assert holder() is back


def test_p4_weak_references_follow_the_object(rust: Any, node_class: Any) -> None:
    died: list[int] = []
    parent = rust.make_node(1, rust.make_node(2, None))
    reference = weakref.ref(parent.next, lambda _: died.append(1))
    gc.collect()
    assert reference() is parent.next
    parent.next = None
    assert reference() is None
    assert died == [1]


def test_p5_none_of_a_million_objects_is_kept(rust: Any, node_class: Any) -> None:
    # The functions stay with the module once they were looked up.
    rust.hold(rust.make_counted(None))()
    rust.many_counted(1)
    assert rust.live_counted() == 0
    before = tvm_ffi.tying.stats()
    for _ in range(200_000):
        parent = rust.make_counted(rust.make_counted(None))
        parent.next  # noqa: B018
        rust.hold(parent)()
        # A ring through a field of Rust and a function of Python, for the collector.
        parent.next = tvm_ffi.convert(lambda owner=parent: owner)
    del parent
    for _ in range(150):
        array = rust.many_counted(4000)
        kept = array[7]
    del array, kept
    gc.collect()
    assert rust.live_counted() == 0
    after = tvm_ffi.tying.stats()
    for state in ("live", "dormant", "adopted", "waiting"):
        assert after[state] == before[state]


def test_a_long_chain_is_dropped_without_a_deep_stack(rust: Any, node_class: Any) -> None:
    head = rust.make_node(0, None)
    middle = None
    for i in range(300_000):
        head = rust.make_node(i, head)
        if i == 150_000:
            middle = weakref.ref(head)
    assert middle is not None and middle() is not None
    del head
    assert middle() is None


def test_what_was_made_before_python_came_is_adopted(library_path: Path) -> None:
    code = """
import ctypes, sys
from pathlib import Path
libraries, library = Path(sys.argv[1]), sys.argv[2]
ctypes.CDLL(str(libraries / "libtvm_ffi.so"), ctypes.RTLD_GLOBAL)
ctypes.CDLL(library).tied_make_early()
assert "tvm_ffi" not in sys.modules

import gc, tvm_ffi, weakref
rust = tvm_ffi.load_module(library)
@tvm_ffi.register_object("tied.Node")
class Node(tvm_ffi.Object):
    __slots__ = ("__dict__",)

before = tvm_ffi.tying.stats()["adopted"]
node = rust.early_node()
assert type(node) is Node and (node.value, node.next.value) == (7, 8)
assert tvm_ffi.tying.stats()["adopted"] > before
assert rust.early_node() is node and rust.early_function()() is node
assert rust.early_function() is rust.early_function()
node.note, node.next.note = "kept", "too"
references = [weakref.ref(node), weakref.ref(node.next)]
del node
gc.collect()
assert rust.early_node().note == "kept" and rust.early_node().next.note == "too"
assert rust.early_node() is references[0]()
rust.drop_early()
gc.collect()
assert [reference() for reference in references] == [None, None]
assert rust.make_node(1, None).value == 1
"""
    libraries = Path(tvm_ffi.__file__).parent / "lib"
    command = [sys.executable, "-X", "faulthandler", "-c", code, str(libraries), str(library_path)]
    subprocess.run(command, check=True)


def test_p6_rings_through_a_field_of_rust(rust: Any, node_class: Any) -> None:
    node = rust.make_node(1, rust.make_node(2, None))
    node.callback = lambda owner=node: owner
    node.next.note = node
    references = [weakref.ref(node), weakref.ref(node.next)]
    assert node.callback() is node
    del node
    gc.collect()
    assert [reference() for reference in references] == [None, None]


def test_p6_a_rust_closure_lets_go_of_python(rust: Any, node_class: Any) -> None:
    class Payload:
        pass

    payload = Payload()
    reference = weakref.ref(payload)
    closure = rust.hold(lambda kept=payload: kept)
    node = rust.make_node(1, None)
    node.callback = closure
    del payload, closure
    gc.collect()
    assert reference() is not None
    assert node.callback()() is reference()
    del node
    gc.collect()
    assert reference() is None


def test_p6_a_ring_through_a_capture_is_broken_by_hand(rust: Any, node_class: Any) -> None:
    # The collector does not see captures of Rust (docs/rust.md); clearing the field is enough.
    node = rust.make_node(1, None)
    node.callback = rust.hold(node)
    reference = weakref.ref(node)
    node.callback = None
    del node
    gc.collect()
    assert reference() is None


def test_p8_threads(rust: Any, node_class: Any) -> None:
    shared = rust.make_node(1, rust.make_node(2, None))
    child = shared.next
    child.note = "kept"
    errors: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(300):
                assert shared.next is child
                assert rust.hold(shared)() is shared
                rust.nodes(5)[3].value  # noqa: B018
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    callback = tvm_ffi.convert(lambda: None)
    assert rust.churn(callback, 4, 500) == 500 * (0 + 1 + 2 + 3)
    for thread in threads:
        thread.join()
    assert not errors
    assert shared.next.note == "kept"


def test_p9_a_rust_thread_does_not_wait_for_python(library_path: Path) -> None:
    code = """
import ctypes, sys, tvm_ffi, weakref
rust = tvm_ffi.load_module(sys.argv[1])
node = rust.make_node(1, None)
node.note = "kept"
rust.stash(rust.hold(node))
reference = weakref.ref(node)
del node
assert reference().note == "kept"
# A function of PyDLL keeps the interpreter. The thread drops the last reference meanwhile.
ctypes.PyDLL(sys.argv[1]).tied_drop_stash()
for _ in range(10):
    rust.make_node(2, None)
assert reference() is None
"""
    code = code.replace("node = rust", REGISTER_NODE + "node = rust", 1)
    command = [sys.executable, "-c", code, str(library_path)]
    subprocess.run(command, check=True, timeout=120)


def test_fields_check_their_types(rust: Any, node_class: Any) -> None:
    node = rust.make_node(1, None)
    with pytest.raises(TypeError):
        node.value = "text"
    with pytest.raises(TypeError):
        node.next = 3
    assert node.value == 1
    assert node.next is None


def test_a_clean_exit(library_path: Path) -> None:
    code = (
        "import sys, tvm_ffi\n"
        "rust = tvm_ffi.load_module(sys.argv[1])\n"
        "keep = rust.hold(lambda: rust)\n"
        "node = rust.make_node(1, rust.make_node(2, None))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(library_path)], check=True)
