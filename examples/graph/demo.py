# SPDX-License-Identifier: Apache-2.0
"""One Python object for one C++ object, live: the promises P1 to P6 on a small C++ library.

demo.py LIBRARY [PAGE]
"""

import gc
import sys
import weakref

import tvm_ffi
from tvm_ffi import inspect

graph_library = tvm_ffi.load_module(sys.argv[1])


@tvm_ffi.register_object("graph.Node")
class Node(tvm_ffi.Object):
    """A C++ node. Python may give it attributes of its own."""

    __slots__ = ("__dict__",)


make, alive = (tvm_ffi.get_global_func(f"graph.{name}") for name in ("make", "alive"))
keep, kept, forget, visit = (
    tvm_ffi.get_global_func(f"graph.{name}") for name in ("keep", "kept", "forget", "visit")
)


def show(promise: str, expression: str, value: object) -> None:
    print(f"  {promise}  {expression:<58} {value}")
    assert value is True, expression


print("P1  one live wrapper per object, wherever it comes from")
root, leaf = Node(1), Node(2)
root.left = leaf
root.children.append(leaf)
seen = []
visit(root, seen.append)
show("P1", "root.left is leaf", root.left is leaf)
show("P1", "root.children[0] is leaf", root.children[0] is leaf)
show("P1", "a callback gets the caller's objects", seen[0] is root and seen[1] is leaf)
again = tvm_ffi.get_global_func("graph.make")
show("P1", "get_global_func(n) is get_global_func(n)", again is make)

print("P2  identity outlives the last Python reference")
identity = id(leaf)
seen.clear()
del leaf
gc.collect()
show("P2", "id(root.left) is what it was", id(root.left) == identity)

print("P3  so does the wrapper's state")
root.left.note = "written before the wrapper was dropped"
gc.collect()
show("P3", "root.left.note is still there", root.left.note.startswith("written"))

print("P4  a weak reference follows the object, not the wrapper")
died = []
keep(make(3))
weak = weakref.ref(kept(0), lambda _: died.append(True))
gc.collect()
show("P4", "weak() is the node C++ keeps", weak() is kept(0))
forget()
show("P4", "when C++ lets go, weak() is None", weak() is None)
show("P4", "and its callback has run", died == [True])

print("P5  nothing is lost, nothing is kept")
before = alive()
for i in range(100_000):
    make(i).note = i
show("P5", f"after 100,000 nodes {before} are alive, as before", alive() == before)

print("P6  cycles through C++ are collected")
owner = Node(4)
owner.callback = tvm_ffi.convert(lambda: owner)
owner.children.append(Node(5))
watch = weakref.ref(owner)
del owner
gc.collect()
show("P6", "Python object -> C++ function -> same Python object", watch() is None)

print("    mistakes are named")
for mistake in (lambda: kept(7), lambda: make("one"), lambda: visit(root, 3), lambda: keep(None)):
    try:
        mistake()
    except (IndexError, TypeError) as error:
        print(f"      {type(error).__name__}: {error}")
    else:
        raise AssertionError("a mistake went through")
root.children.append("not a node")
try:
    root.total()
except TypeError as error:
    print(f"      TypeError: {error}")
root.children.pop()

print(f"\n  {root!r}")
print("  state:", tvm_ffi.tying.state(root), " stats:", tvm_ffi.tying.stats())
print("\n  who keeps what alive (tvm_ffi.inspect):")
root.left.callback = tvm_ffi.convert(lambda: root)
graph = inspect.graph(root)
print("    " + graph.to_text().replace("\n", "\n    "))
print("\n    " + str(inspect.why(root.children)).replace("\n", "\n    "))
if len(sys.argv) > 2:
    graph.to_html(sys.argv[2], title="The objects of the demo")
    print(f"\n  the same as a page, to click through: {sys.argv[2]}")
print(
    """
To start your own: python -m tvm_ffi.new NAME writes a package with tests and type hints. It
needs an installed Tether (pip install . in this folder). Or copy examples/graph and rename the
classes."""
)
