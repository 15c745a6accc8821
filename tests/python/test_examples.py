# SPDX-License-Identifier: Apache-2.0
"""The examples compile, run and pass their own tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tvm_ffi
from support import ROOT, compile_library

EXAMPLES = ROOT / "examples"


def run(arguments: list[str], **variables: str) -> str:
    environment = {**os.environ, **variables}
    package = str(Path(tvm_ffi.__file__).parents[1])
    paths = [package, environment.pop("MORE_PATHS", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_graph(tmp_path: Path) -> None:
    library = compile_library(EXAMPLES / "graph" / "graph.cc", tmp_path / "libgraph.so")
    page = tmp_path / "objects.html"
    printed = run([str(EXAMPLES / "graph" / "demo.py"), str(library), str(page)])
    assert "children[1] of a graph.Node must be a graph.Node, got ffi.String" in printed
    assert "index 7 is not below the number of nodes, 0" in printed
    assert ".children List" in printed
    assert '"Node"' in page.read_text()


TRAVEL = """
import pickle, sys
import tvm_ffi
sys.path.insert(0, {folder!r})
{setup}
def again(value):
    return pickle.loads(pickle.dumps(value, 5))
{check}
print("arrived")
"""


def arrives(folder: Path, setup: str, check: str, **variables: str) -> bool:
    code = TRAVEL.format(folder=str(folder), setup=setup, check=check)
    return run(["-c", code], **variables) == "arrived\n"


def test_objects_of_graph_travel(tmp_path: Path) -> None:
    library = compile_library(EXAMPLES / "graph" / "graph.cc", tmp_path / "libgraph.so")
    setup = f"""
tvm_ffi.load_module({str(library)!r})
@tvm_ffi.register_object("graph.Node")
class Node(tvm_ffi.Object):
    __slots__ = ("__dict__",)
"""
    check = """
root, leaf = Node(1), Node(2)
root.left = leaf
root.children.append(leaf)
leaf.note = root
loaded, same = again([root, leaf])
assert type(loaded) is Node and loaded.left is loaded.children[0] is same
assert same.note is loaded
"""
    assert arrives(EXAMPLES / "graph", setup, check)


def test_objects_of_zoo_travel(zoo_library: Path) -> None:
    check = """
dog, bird = zoo.Dog("Rex", True), zoo.Bird("Tweety", 0.5)
animal = zoo.Animal("Cow", 4)
animal.tags.append("brown and white")
dog.friend = bird
house = zoo.Enclosure(5)
for one in (dog, bird, animal):
    house.add(one)
loaded, rex = again([house, dog])
assert [type(one) for one in loaded.animals] == [zoo.Dog, zoo.Bird, zoo.Animal]
assert loaded.animals[0] is rex and rex.friend is loaded.animals[1]
assert (rex.name, rex.trained, rex.friend.wingspan) == ("Rex", True, 0.5)
assert loaded.animals[2].tags == ["brown and white"] and loaded.capacity == 5
assert again(zoo._mean) is zoo._mean
"""
    assert arrives(EXAMPLES / "zoo", "import zoo", check, ZOO_LIBRARY=str(zoo_library))


def test_objects_of_travel_travel() -> None:
    pytest.importorskip("numpy")
    check = """
import numpy
weight = tvm_ffi.from_dlpack(numpy.arange(3.0))
first = workers.Layer("first", [], weight)
second = workers.Layer("second", [first], weight)
a, b = again([second, first])
assert type(a) is workers.Layer and a.inputs[0] is b and a.weight is b.weight
assert (a.name, list(numpy.from_dlpack(a.weight))) == ("second", [0, 1, 2])
"""
    assert arrives(EXAMPLES / "travel", "import workers", check)


def test_zoo(zoo_library: Path) -> None:
    pytest.importorskip("numpy")
    folder = EXAMPLES / "zoo"
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder / "tests")]
    printed = run(arguments, ZOO_LIBRARY=str(zoo_library), MORE_PATHS=str(folder))
    assert " passed" in printed
