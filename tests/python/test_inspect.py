# SPDX-License-Identifier: Apache-2.0
"""tvm_ffi.inspect names who holds what, finds what stays, and breaks the rings it may break."""

from __future__ import annotations

import collections
import contextvars
import ctypes
import functools
import gc
import json
import mmap
import os
import shutil
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tvm_ffi
from support import (
    FREE_THREADED,
    NativeClient,
    Payload,
    Slotted,
    Stateful,
    compile_library,
    make_edges,
    run_python,
)
from tvm_ffi import inspect, testing, tying
from tvm_ffi.dataclasses import py_class
from tvm_ffi.inspect import LeakError, no_leaks, why


@py_class("tests.inspect.Node")
class Node(tvm_ffi.Object):
    """Anything may be stored in it."""

    child: Any = None


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The functions of inspect_client.cc."""
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler: the client cannot be built")
    source = Path(__file__).with_name("inspect_client.cc")
    tvm_ffi.load_module(compile_library(source, tmp_path_factory.mktemp("cpp") / "keeper.so"))

    @tvm_ffi.register_object("inspect_client.Keeper")
    class Keeper(tvm_ffi.Object):
        pass

    names = ("set_static", "set_thread", "push", "clear", "set_weak", "clear_weak", "capture")
    functions = {
        name: tvm_ffi.get_global_func(f"inspect_client.{name}") for name in (*names, "call_with")
    }
    return SimpleNamespace(Keeper=Keeper, **functions)


MODULE_VARIABLE: Any = None
CONTEXT_VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("CONTEXT_VARIABLE")


class Holder:
    """A class of Python."""

    kept: Any = None


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


# ---- who holds it: (keep(target) -> what must stay, what the answer must contain) ---------------

FOUND: dict[str, tuple[Callable[[Any], Any], str]] = {
    "field of an object": (testing.TestObjectPtrHolder, ".value of TestObjectPtrHolder"),
    "optional field": (
        lambda o: testing.TestObjectPtrHolder(testing.TestObjectBase(), o),
        ".optional_value of TestObjectPtrHolder",
    ),
    "field of any type": (make_edges, ".v_any of "),
    "field of any object": (lambda o: make_edges(1, o), ".v_obj of "),
    "field of a Python-defined class": (Node, ".child of Node"),
    "item of an array": (lambda o: tvm_ffi.Array([1, o]), "[1] of Array"),
    "item of a list": (lambda o: tvm_ffi.List([o]), "[0] of List"),
    "value of a map": (lambda o: tvm_ffi.Map({"k": o}), "['k'] of Map"),
    "key of a map": (lambda o: tvm_ffi.Map({o: 1}), "key 0 of Map"),
    "value of a dict by number": (lambda o: tvm_ffi.Dict({3: o}), "[3] of Dict"),
    "key of a dict": (lambda o: tvm_ffi.Dict({"a": 1, o: 1}), "key 1 of Dict"),
    "value of a dict by object": (
        lambda o: tvm_ffi.Dict({testing.TestIntPair(1, 2): o}),
        "[a testing.TestIntPair] of Dict",
    ),
    "three containers deep": (
        lambda o: tvm_ffi.List([tvm_ffi.Map({"k": tvm_ffi.Array([o])})]),
        "[0] of Array",
    ),
    "array in a field": (lambda o: testing.TestObjectDerived({}, [o]), ".v_array of "),
    "closure of a callback": (lambda o: tvm_ffi.List([lambda: o]), "calls of ffi.Function"),
    "default argument of a callback": (
        lambda o: tvm_ffi.List([eval("lambda x=o: x", {"o": o})]),
        "__defaults__ of function",
    ),
    "callback that is a method": (lambda o: tvm_ffi.List([Payload(o).__eq__]), ".tag of "),
    "callback in a field": (lambda o: Node(lambda: o), ".child of Node"),
    "partial in C++": (lambda o: tvm_ffi.List([functools.partial(call, o)]), "functools.partial"),
    "object in an opaque object": (lambda o: tvm_ffi.List([Payload(o)]), ".tag of support.Payload"),
    "attribute of a wrapper": (lambda o: _with(Stateful(), "note", o), ".note of Stateful"),
    "slot of a wrapper": (lambda o: _with(Slotted(), "label", o), ".label of Slotted"),
    "attribute of a wrapper that C++ keeps": (
        lambda o: tvm_ffi.List([_with(Stateful(), "note", o)]),
        ".note of Stateful",
    ),
    "attribute of a function": (
        lambda o: _with(tvm_ffi.convert(lambda: None), "note", o),
        ".note of ",
    ),
    "list of Python": (lambda o: [0, o], "[1] of list of 2"),
    "tuple": (lambda o: (o,), "[0] of tuple of 1"),
    "value of a Python dict": (lambda o: {"k": o}, "['k'] of dict of 1"),
    "key of a Python dict": (lambda o: {o: 1}, "a key of dict of 1"),
    "set": (lambda o: {o}, "an element of set of 1"),
    "deque": (lambda o: collections.deque([o]), "collections.deque"),
    "attribute of an instance": (lambda o: Payload(o), ".tag of support.Payload"),
    "attribute of a class": (lambda o: type("Owner", (), {"kept": o}), ".kept of class "),
    "closure": (lambda o: lambda: o, "captured variable 'o' of cell"),
    "bound method": (lambda o: o.__repr__, "self of method object_repr"),
    "generator": (lambda o: _started(o), "generator"),
    "cache of functools": (lambda o: _cached(o), "lru_cache"),
    "exception": (lambda o: ValueError(o), "[0] of tuple of 1"),
    "traceback": (lambda o: _failed(o), "variable 'local_of_failed'"),
    "cycle of Python": (lambda o: _cycle(o), "[1] of list of 2"),
    "ring of C++": (lambda o: _ring(o), "[0] of List"),
    "global function that captures it": (lambda o: _registered(o), "global function tests.inspect"),
    "variable of a thread": (lambda o: _Thread(o), "variable 'local_of_thread'"),
}


def _with(obj: Any, name: str, value: Any) -> Any:
    setattr(obj, name, value)
    return obj


def _started(target: Any) -> Any:
    def generate(local: Any) -> Iterator[int]:
        yield 1
        print(local)

    generator = generate(target)
    next(generator)
    return generator


def _cached(target: Any) -> Any:
    @functools.lru_cache
    def cached(obj: Any) -> int:
        return 1

    cached(target)
    return cached


def _failed(target: Any) -> Any:
    def fail(local_of_failed: Any) -> None:
        raise ValueError("kept")

    try:
        fail(target)
    except ValueError as error:
        return error


def _cycle(target: Any) -> Any:
    items: list[Any] = [None, target]
    items[0] = items
    return None


def _ring(target: Any) -> Any:
    items = tvm_ffi.List([target])
    items.append(items)
    return weakref.ref(items)


def _registered(target: Any) -> Any:
    tvm_ffi.register_global_func("tests.inspect.kept", lambda: target, override=True)


class _Thread:
    def __init__(self, target: Any) -> None:
        self.begun, self.end = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run, args=(target,))
        self.thread.start()
        self.begun.wait()

    def run(self, target: Any) -> None:
        local_of_thread = target
        self.begun.set()
        self.end.wait()
        del local_of_thread

    def __del__(self) -> None:
        self.end.set()


@pytest.fixture
def clean_up() -> Iterator[None]:
    yield
    tvm_ffi.register_global_func("tests.inspect.kept", lambda: None, override=True)
    inspect.collect_rings(no_cpp_threads=True)


@pytest.mark.parametrize("name", FOUND)
@pytest.mark.usefixtures("clean_up")
def test_why_names_the_holder(name: str) -> None:
    keep, expected = FOUND[name]
    target = testing.TestObjectBase()
    kept = keep(target)
    answer = why(target)
    assert expected in str(answer), str(answer)
    assert answer.unseen_cpp == 0, str(answer)
    assert "variable 'target'" in str(answer)
    assert answer.shortest_path
    if isinstance(kept, _Thread):
        kept.end.set()
        kept.thread.join()
    gc.collect()


def test_why_names_a_class_after_a_thread_was_started() -> None:
    """Free-threaded CPython 3.13 hides classes from its collector from then on."""
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    target = testing.TestObjectBase()
    kept = type("Owner", (), {"kept": target})
    assert ".kept of class " in str(why(target)), kept


def test_why_says_that_an_object_is_immortal() -> None:
    answer = why(5)
    if sys.getrefcount(5) < 1 << 28:
        pytest.skip("this Python counts references to small integers")
    assert answer.is_immortal
    assert "Python references: not counted, it is immortal\n" in str(answer)
    assert not why(testing.TestObjectBase()).is_immortal


def test_why_names_variables() -> None:
    global MODULE_VARIABLE  # noqa: PLW0603
    local = MODULE_VARIABLE = tvm_ffi.List([])
    answer = why(local)
    MODULE_VARIABLE = None
    texts = [str(holder) for holder in answer.holders]
    assert any("variable 'MODULE_VARIABLE' of module test_inspect" in text for text in texts)
    assert any(text.startswith("variable 'local' of test_why_names_variables()") for text in texts)
    assert (answer.python_references, answer.unseen_python, answer.unseen_cpp) == (2, 0, 0)


def test_a_weak_reference_holds_nothing() -> None:
    holder = tvm_ffi.Array([tvm_ffi.List([])])
    weak = weakref.ref(holder[0])
    answer = why(weak())
    assert answer.state == "dormant"
    assert [str(entry).split(" at ")[0] for entry in answer.holders] == ["[0] of Array"]
    assert tying.state(weak()) == "dormant", "asking must not wake it up"


def test_why_names_static_and_thread_local_variables(keeper: Any) -> None:
    target = tvm_ffi.List([])
    for function, expected in (
        (keeper.set_static, "static variable (anonymous namespace)::in_static of keeper.so"),
        (keeper.set_thread, "thread-local variable (anonymous namespace)::in_thread of keeper.so"),
    ):
        function(target)
        answer = why(target)
        outer = why(tvm_ffi.Array([target])[0])
        function(None)
        assert [str(h) for h in answer.holders if h.kind == "static"] == [expected], str(answer)
        assert answer.unseen_cpp == outer.unseen_cpp == 0
        assert answer.shortest_path[0] == expected
        assert not any(holder.kind == "static" for holder in why(target).holders)


def test_why_names_the_variable_that_holds_a_holder(keeper: Any) -> None:
    target = tvm_ffi.List([])
    outer = tvm_ffi.Array([target])
    keeper.set_static(outer)
    answer = why(target)
    keeper.set_static(None)
    (holder,) = [holder for holder in answer.holders if holder.kind == "C++"]
    assert [above.kind for above in holder.holders] == ["static", "variable"], str(answer)
    assert holder.unseen_cpp == 0


def test_why_counts_a_thread_local_variable_of_another_thread(keeper: Any) -> None:
    target = tvm_ffi.List([])
    ready, end = threading.Event(), threading.Event()

    def hold() -> None:
        keeper.set_thread(target)
        ready.set()
        end.wait()
        keeper.set_thread(None)

    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait()
    answer = why(target)
    end.set()
    thread.join()
    assert answer.unseen_cpp == 1
    assert not any(holder.kind == "static" for holder in answer.holders)


def test_why_is_not_sure_about_an_address_that_may_not_be_a_reference(keeper: Any) -> None:
    target = tvm_ffi.List([])
    keeper.set_weak(target)  # in a static variable
    keeper.push(target)
    answer = why(target)
    keeper.clear()
    keeper.clear_weak()
    (holder,) = [holder for holder in answer.holders if holder.kind == "static"]
    assert str(holder) == "perhaps static variable (anonymous namespace)::weak of keeper.so"
    assert answer.unseen_cpp == 1


def test_memory_that_is_not_there_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm_ffi.inspect import _statics

    page = mmap.mmap(-1, 1 << 16)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    gc.collect()  # the view of the buffer
    page.close()
    gone = _statics.Region("gone.so", address, 1 << 16, address, False)
    monkeypatch.setattr(_statics, "regions", lambda: [gone])
    assert _statics.variables({1 << 60}) == {}
    monkeypatch.setattr(os, "open", _no_memory)
    assert _statics.variables({1 << 60}) == {}


def _no_memory(*_: Any) -> int:
    raise PermissionError("/proc is not for this process")


UNSEEN: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "vector": (lambda k, o: k.push(o), lambda k: k.clear()),
    "capture of a C++ function": (lambda k, o: k.capture(o), lambda k: None),
    "member that is not registered": (lambda k, o: k.Keeper(Node(), o), lambda k: None),
}


@pytest.mark.parametrize("name", UNSEEN)
def test_why_counts_what_does_not_show_itself(keeper: Any, name: str) -> None:
    keep, release = UNSEEN[name]
    target = tvm_ffi.List([])
    kept = keep(keeper, target)
    answer = why(target)
    release(keeper)
    del kept
    assert answer.unseen_cpp == 1
    assert "1 reference from C++ code that cannot be inspected" in str(answer)
    assert why(target).unseen_cpp == 0


def test_why_tells_a_shown_member_from_a_secret_one(keeper: Any) -> None:
    target = tvm_ffi.List([])
    kept = keeper.Keeper(target, target)
    answer = why(target)
    assert answer.unseen_cpp == 1
    assert any(str(holder).startswith(".shown of Keeper") for holder in answer.holders)
    assert answer.cpp_references == 3
    del kept


def test_why_counts_weak_references_of_cpp(keeper: Any) -> None:
    target = tvm_ffi.List([])
    keeper.set_weak(target)
    answer = why(target)
    keeper.clear_weak()
    assert (answer.weak_references, answer.unseen_cpp) == (1, 0)


@pytest.mark.skipif(FREE_THREADED, reason="calls in progress are not listed there")
def test_why_sees_calls_in_progress(keeper: Any) -> None:
    target, answers = tvm_ffi.List([]), []

    def callback(obj: Any) -> None:
        answers.extend([why(obj), why(callback)])

    keeper.call_with(callback, target)
    of_argument, of_callback = answers
    assert any(holder.kind == "call" for holder in of_argument.holders), of_argument
    assert "calls of ffi.Function" in str(of_callback)
    assert "a call in progress" in str(of_callback)


def test_why_sees_objects_of_old_clients(client: NativeClient) -> None:
    page = client.page_new(1)
    client.hold(page)
    answer = why(page)
    client.release_all()
    assert answer.unseen_cpp == 0
    assert "static variable held of native_client.so" in str(answer)
    kept = tvm_ffi.Array([page])
    assert any(str(holder).startswith("[0] of Array") for holder in why(page).holders)
    del kept


def test_why_of_a_wrapper_without_object() -> None:
    empty = tvm_ffi.Array([])
    testing.echo(empty._move())
    assert "empty" in str(why(empty))
    assert "variable 'empty'" in str(why(empty))


def test_why_does_not_keep_anything() -> None:
    target = tvm_ffi.List([Stateful()])
    weak = weakref.ref(target)
    str(why(target))
    why(target[0])
    del target
    assert weak() is None


# ---- the graph ----


def sample() -> Any:
    items = tvm_ffi.List([])
    noted = Stateful()
    noted.note = items
    items.append(lambda: noted)
    return tvm_ffi.Dict({"a": items, "b": tvm_ffi.Array([noted])})


def test_graph_has_both_languages() -> None:
    root = sample()
    graph = inspect.graph(root)
    assert graph.by_type() == {
        **dict.fromkeys(["Array", "Dict", "List", "Stateful", "ffi.Function", "function"], 1)
    }
    found = {(graph.nodes[e.source].name, e.place, graph.nodes[e.target].name) for e in graph.edges}
    assert found == {
        ("Dict", "['a']", "List"),
        ("Dict", "['b']", "Array"),
        ("List", "[0]", "ffi.Function"),
        ("ffi.Function", "calls", "function"),
        ("function", "noted", "Stateful"),
        ("Array", "[0]", "Stateful"),
        ("Stateful", ".note", "List"),
    }
    assert {edge.kind for edge in graph.edges} == {"C++", "Python"}
    assert [graph.nodes[i].name for i in graph.roots] == ["Dict"]
    assert graph.nodes[graph.roots[0]].python_references == 1
    gc.collect()


def test_graph_as_text_dot_and_svg(tmp_path: Path) -> None:
    from xml.etree import ElementTree

    graph = inspect.graph(sample())
    text = graph.to_text()
    assert text.splitlines()[0].startswith("Dict 0x")
    assert "['a'] List" in text
    assert "(shown above)" in text
    dot = graph.to_dot(tmp_path / "graph.dot")
    assert dot.count("->") == len(graph.edges)
    assert (tmp_path / "graph.dot").read_text() == dot
    picture = ElementTree.fromstring(graph.to_svg())
    boxes = picture.findall(".//{http://www.w3.org/2000/svg}rect")
    assert len(boxes) == len(graph.nodes)
    gc.collect()


def test_graph_of_everything_finds_what_c_holds(keeper: Any) -> None:
    with inspect.recording():
        target = tvm_ffi.List([Node()])
        keeper.set_static(target)
        address = target.__chandle__()
        del target
        graph = inspect.graph()
        keeper.set_static(None)
    assert any(f"List {address:#x}" == node.label for node in graph.nodes)


def test_page_is_one_file(tmp_path: Path) -> None:
    inspect.graph(tvm_ffi.Dict({"</script><b>": tvm_ffi.List([])})).to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("</script>") == 2
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


ODD_NAMES = ["<!--<script>", "]]>&amp;", "nul\0", "\x1b[0m", "\uffff", "a\nb", "\u2028", "@DATA@"]


@pytest.mark.parametrize("name", [*ODD_NAMES, "\ud800"])
def test_any_name_can_be_shown(name: str, tmp_path: Path) -> None:
    from html.parser import HTMLParser
    from xml.etree import ElementTree

    class Scripts(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.found: list[str] = []
            self.depth = 0

        def handle_starttag(self, tag: str, attrs: object) -> None:
            self.depth += tag == "script"
            if tag == "script":
                self.found.append("")

        def handle_endtag(self, tag: str) -> None:
            self.depth -= tag == "script"

        def handle_data(self, data: str) -> None:
            if self.depth:
                self.found[-1] += data

    holder = tvm_ffi.List([Stateful()])
    setattr(holder[0], name, tvm_ffi.Array([]))
    if name != "\ud800":  # C++ text is UTF-8
        holder.append(tvm_ffi.Dict({name: tvm_ffi.Array([])}))
    holder.append(type(name.replace("\0", "0").replace("\ud800", ""), (), {})())
    graph = inspect.graph(holder)
    shown = repr(name)[1:-1]

    graph.to_html(tmp_path / "page.html", title=name)
    scripts = Scripts()
    scripts.feed((tmp_path / "page.html").read_text(encoding="utf-8"))
    data = json.loads(scripts.found[0])
    assert len(scripts.found) == 2 and "<" not in scripts.found[0]
    assert f".{shown}" in data["places"]
    assert len(data["type"]) == len(graph.nodes)

    picture = ElementTree.fromstring(graph.to_svg(tmp_path / "graph.svg"))
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert f".{shown}" in texts
    lines = [str(graph), graph.to_dot(tmp_path / "graph.dot"), str(inspect.why(holder[0]))]
    lines += [str(inspect.why(getattr(holder[0], name)))]
    for text in lines:
        assert all(line.isprintable() for line in text.split("\n"))
        text.encode()


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: the page is not opened")
def test_page_of_many_objects(tmp_path: Path) -> None:
    import re

    big = tvm_ffi.List([tvm_ffi.List([tvm_ffi.Array([i])]) for i in range(50_000)])
    inspect.graph(big).to_html(tmp_path / "page.html")
    address = f"file://{tmp_path / 'page.html'}#q=array"
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", address]
    done = subprocess.run(
        [*command, f"--user-data-dir={tmp_path}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    body = re.search(r"<body[^>]*>", done.stdout)
    assert body is not None, done.stderr
    numbers = dict(re.findall(r'data-([a-z-]+)="([0-9.]+)"', body[0]))
    assert int(numbers["found"]) == 50_000
    # Measured without load: 200 ms and 30 ms. What takes 50 times that is quadratic, no load.
    assert float(numbers["ready-ms"]) < 10_000
    assert float(numbers["search-ms"]) < 1_500


# ---- what stays ----


def test_snapshots_tell_the_line() -> None:
    with inspect.recording():
        before = inspect.snapshot()
        kept = tvm_ffi.List([tvm_ffi.Array([1])])
        line = sys._getframe().f_lineno - 1
        found = inspect.diff(before)
    assert found.by_type() == {"Array": 1, "List": 1}
    assert {entry.line for entry in found.stayed} == {
        (__file__, line, "test_snapshots_tell_the_line")
    }
    assert f"{__file__}:{line}" in str(found)
    assert not inspect.is_recording()
    del kept


def test_recording_off_finds_objects_without_lines() -> None:
    before = inspect.snapshot()
    kept = tvm_ffi.List([1])
    found = inspect.diff(before)
    assert found.by_type() == {"List": 1}
    assert found.stayed[0].line is None
    del kept
    assert not inspect.diff(before)


def test_recorded_objects_are_tied_as_others_are() -> None:
    with inspect.recording():
        outer = tvm_ffi.Array([tvm_ffi.List([1])])
        first = outer[0]
        weak, identity = weakref.ref(first), id(first)
        del first
        assert id(outer[0]) == identity
        assert weak() is outer[0]
        kept = tvm_ffi.Dict({"k": outer})
        del outer
    # After recording has ended, too.
    assert weak() is kept["k"][0]
    del kept
    assert weak() is None


KEPT: list[Any] = []


class _Leaks:
    """Ten ways to keep something."""

    @staticmethod
    def ring_of_a_list(_: Any) -> None:
        items = tvm_ffi.List([])
        items.append(items)

    @staticmethod
    def ring_of_two(_: Any) -> None:
        items = tvm_ffi.List([])
        items.append(tvm_ffi.Dict({"k": items}))

    @staticmethod
    def static_variable(keeper: Any) -> None:
        keeper.set_static(tvm_ffi.List([]))

    @staticmethod
    def vector(keeper: Any) -> None:
        keeper.push(Node())

    @staticmethod
    def callback_in_cpp(keeper: Any) -> None:
        keeper.push(lambda: None)

    @staticmethod
    def opaque_object_in_cpp(keeper: Any) -> None:
        keeper.push(Payload())

    @staticmethod
    def never_fetched(keeper: Any) -> None:
        keeper.set_static([[1, 2], [3]])

    @staticmethod
    def list_of_python(_: Any) -> None:
        KEPT.append(tvm_ffi.Array([1]))

    @staticmethod
    def closure_of_python(_: Any) -> None:
        pair = testing.TestIntPair(1, 2)
        KEPT.append(lambda: pair)

    @staticmethod
    def traceback_of_python(_: Any) -> None:
        local = tvm_ffi.Map({"k": 1})
        try:
            raise ValueError(str(len(local)))
        except ValueError as error:
            KEPT.append(error)

    @staticmethod
    def capture_of_cpp(keeper: Any) -> None:
        KEPT.append(keeper.capture(tvm_ffi.List([])))

    @staticmethod
    def attribute_of_a_class(_: Any) -> None:
        Holder.kept = Stateful()


LEAKS = [name for name in vars(_Leaks) if not name.startswith("_")]


@pytest.mark.parametrize("name", LEAKS)
def test_no_leaks_catches(keeper: Any, name: str) -> None:
    leak = getattr(_Leaks, name)
    try:
        with pytest.raises(LeakError) as caught, no_leaks():
            leak(keeper)
    finally:
        KEPT.clear()
        Holder.kept = None
        keeper.set_static(None)
        keeper.clear()
        inspect.collect_rings(no_cpp_threads=True)
    assert caught.value.diff.stayed
    assert "stayed" in str(caught.value)


def test_no_leaks_catches_what_is_made_of_spare_parts(keeper: Any) -> None:
    # What was an argument is used again for the next callback or array, and not made anew.
    array = pytest.importorskip("numpy").zeros(3)
    for leaked in (lambda: None, array):
        keeper.push(leaked)  # not kept: cleared, and made again below
        keeper.clear()
        for _ in range(40):
            testing.nop(leaked)
        with pytest.raises(LeakError), no_leaks():
            keeper.push(leaked)
        keeper.clear()


def test_no_leaks_lets_go_what_goes() -> None:
    def work() -> None:
        node = Node()
        node.child = lambda: node
        testing.echo(tvm_ffi.List([tvm_ffi.Array([Stateful()]), node]))

    with no_leaks():
        work()


def test_no_leaks_passes_on_exceptions_and_may_be_nested() -> None:
    with pytest.raises(KeyError), no_leaks(), no_leaks():
        raise KeyError("mine")
    assert not inspect.is_recording()


def test_no_leaks_can_ignore() -> None:
    with no_leaks(ignore=lambda entry: entry.name == "List"):
        kept = tvm_ffi.List([])
    del kept


def test_the_pytest_plugin_fails_tests_that_leak(tmp_path: Path) -> None:
    test = tmp_path / "test_of_user.py"
    test.write_text(
        "import pytest, tvm_ffi\n"
        "kept = []\n"
        "def test_leaks(no_leaks): kept.append(tvm_ffi.List([]))\n"
        "def test_does_not(no_leaks): tvm_ffi.List([])\n"
        "def test_is_not_asked(): kept.append(tvm_ffi.List([]))\n"
        "@pytest.mark.no_leaks\n"
        "def test_with_mark(): kept.append(tvm_ffi.List([]))\n"
    )
    out = run_python(
        "import pytest\n"
        f"print(int(pytest.main(['-q', '-p', 'tvm_ffi.inspect.pytest_plugin', {str(test)!r}])))"
    )
    assert "2 failed, 2 passed" in out, out
    assert "LeakError: 1 object stayed" in out
    assert "variable 'kept' of module test_of_user" in out
    assert "test_of_user.py:3: LeakError" in out
    assert "pluggy" not in out, "the calls in pytest are of no use to the reader"


# ---- rings ----


def test_rings_are_found_and_collected() -> None:
    items = tvm_ffi.List([])
    inner = tvm_ffi.Dict({"k": items})
    items.append(tvm_ffi.Array([inner]))
    weak = weakref.ref(items)
    in_use = [ring for ring in inspect.rings() if "Dict" in ring.names]
    assert [ring.is_garbage for ring in in_use] == [False]
    assert inspect.collect_rings(no_cpp_threads=True).freed == 0
    del items, inner
    leaked = [ring for ring in inspect.rings() if ring.is_garbage]
    assert len(leaked) == 1
    assert sorted(leaked[0].names) == ["Array", "Dict", "List"]
    assert "['k']" in str(leaked[0])
    assert weak() is not None
    collected = inspect.collect_rings(no_cpp_threads=True)
    assert (collected.freed, collected.by_type) == (3, {"Array": 1, "Dict": 1, "List": 1})
    assert weak() is None
    assert not inspect.rings()


def test_what_hangs_on_a_ring_goes_with_it() -> None:
    deaths: list[bool] = []
    with inspect.recording():
        items = tvm_ffi.List([tvm_ffi.Array([1]), Stateful()])
        items.append(items)
        weakref.finalize(items[1], deaths.append, True).atexit = False
        del items
        gc.collect()
        assert not deaths
        assert inspect.collect_rings(no_cpp_threads=True).freed == 3
    assert deaths


def test_a_ring_that_cpp_still_uses_is_left_alone(keeper: Any) -> None:
    items = tvm_ffi.List([])
    items.append(items)
    weak = weakref.ref(items)
    keeper.set_static(items)
    del items
    assert inspect.collect_rings(no_cpp_threads=True).freed == 0
    assert len(weak()) == 1
    keeper.set_static(None)
    assert inspect.collect_rings(no_cpp_threads=True).freed == 1


def test_a_ring_behind_a_kept_wrapper_is_left_alone() -> None:
    items = tvm_ffi.List([])
    items.append(items)
    weak = weakref.ref(items)
    del items
    dormant = weak()
    assert inspect.collect_rings(no_cpp_threads=True).freed == 0
    assert len(dormant) == 1
    del dormant
    assert inspect.collect_rings(no_cpp_threads=True).freed == 1


def _ring_with_a_callback() -> Any:
    items = tvm_ffi.List([])
    items.extend([items, lambda: items])
    return items


def _ring_through_a_class() -> Any:
    items = tvm_ffi.List([])

    class Local:
        kept = items

    items.extend([items, Local])
    return items


def _ring_through_a_generator() -> Any:
    def generate(local: Any) -> Iterator[Any]:
        yield
        del local

    items = tvm_ffi.List([])
    generator = generate(items)
    next(generator)
    items.extend([items, lambda: generator])
    return items


def _rings_that_hold_each_other_through_python() -> Any:
    one, two = tvm_ffi.List([]), tvm_ffi.Dict({})
    one.extend([one, lambda: two])
    two["self"] = two
    two["other"] = lambda: one
    return one


def _ring_with_a_note_on_a_hidden_wrapper() -> Any:
    items, noted = tvm_ffi.List([]), Stateful()
    noted.note = [items]
    items.extend([items, noted])
    return items


RINGS_THROUGH_PYTHON = [
    _ring_with_a_callback,
    _ring_through_a_generator,
    _rings_that_hold_each_other_through_python,
    _ring_with_a_note_on_a_hidden_wrapper,
]


@pytest.mark.parametrize("make", RINGS_THROUGH_PYTHON)
def test_a_ring_that_only_it_holds_through_python_is_leaked(make: Callable[[], Any]) -> None:
    with inspect.recording():
        weak = weakref.ref(make())
        for _ in range(3):
            gc.collect()
        assert weak() is not None, "the collector breaks it: nothing is tested"
        assert [ring.is_garbage for ring in inspect.rings()] == [True] * len(inspect.rings())
        assert inspect.collect_rings(no_cpp_threads=True).freed >= 1
        gc.collect()
        assert weak() is None


@pytest.mark.parametrize("make", [*RINGS_THROUGH_PYTHON, _ring_through_a_class])
def test_a_ring_through_python_that_is_used_is_left_alone(make: Callable[[], Any]) -> None:
    def holders(target: Any) -> Iterator[Any]:
        yield [target]
        yield {"k": [target]}
        yield lambda: target
        yield _started(target)
        if not FREE_THREADED:  # classes may be immortal there
            yield type("Owner", (), {"kept": target})
        yield _Thread(target)
        yield tvm_ffi.Array([target])
        yield contextvars.copy_context().run(in_context, target)
        yield _with(Stateful(), "note", target)

    def in_context(target: Any) -> Any:
        CONTEXT_VARIABLE.set([target])
        return contextvars.copy_context()

    with inspect.recording():
        weak = weakref.ref(make())
        for kept in holders(weak()):
            gc.collect()
            collected = inspect.collect_rings(no_cpp_threads=True)
            assert collected.freed == 0, type(kept)
            assert "rings in use: " in str(collected)
            if isinstance(kept, _Thread):
                kept.end.set()
                kept.thread.join()
        del kept
        gc.collect()
        inspect.collect_rings(no_cpp_threads=True)
        is_left = weak() is not None
        if is_left and make is _ring_through_a_class:
            weak().clear()
        else:
            assert not is_left


def test_collect_rings_says_why_it_freed_nothing() -> None:
    assert str(inspect.collect_rings(no_cpp_threads=True)) == (
        "0 objects were freed; no leaked ring was found"
    )
    with inspect.recording():
        ring = make_edges(1, None)
        ring.v_any = ring
        del ring
        collected = inspect.collect_rings(no_cpp_threads=True)
        (found,) = [ring for ring in inspect.rings() if ring.is_garbage]
        assert not found.can_be_collected
        assert "0 objects were freed; leaked rings that cannot be broken: 1" in str(collected)


def test_collect_rings_wants_a_promise() -> None:
    with pytest.raises(ValueError, match="no_cpp_threads"):
        inspect.collect_rings()


# ---- no cost when not used ----


def test_import_does_not_load_it() -> None:
    out = run_python("import sys, tvm_ffi\nprint('tvm_ffi.inspect' in sys.modules)")
    assert out.strip() == "False"


# ---- the command ----


def run_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(tvm_ffi.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def run_command(*arguments: str, script: str, tmp_path: Path) -> tuple[int, str, str]:
    (tmp_path / "program.py").write_text(script)
    code = (
        "import sys; from tvm_ffi.inspect.__main__ import main; "
        f"main({[*arguments, str(tmp_path / 'program.py'), 'one']!r})"
    )
    done = run_in(tmp_path, "-c", code)
    return done.returncode, done.stdout, done.stderr


def test_the_command_writes_a_page(tmp_path: Path) -> None:
    script = "import sys, tvm_ffi\nkept = tvm_ffi.List([tvm_ffi.Dict({})])\nprint(sys.argv[1:])\n"
    code, out, err = run_command("-o", "page.html", script=script, tmp_path=tmp_path)
    assert (code, out) == (0, "['one']\n"), err
    assert "page.html" in err
    assert '"Dict"' in (tmp_path / "page.html").read_text()


def test_the_command_writes_a_page_of_a_program_that_fails(tmp_path: Path) -> None:
    script = "import tvm_ffi\nkept = tvm_ffi.List([])\nraise SystemExit(3)\n"
    code, _, _ = run_command("--record", script=script, tmp_path=tmp_path)
    assert code == 3
    assert "program.py:2" in (tmp_path / "objects.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "nowhere/page.html", "program.py"], "cannot write"),
        (["no_such_file.py"], "there is no file no_such_file.py"),
        (["."], "there is no file ."),
        (["--signal", "SIGFOO", "program.py"], "there is no signal SIGFOO"),
        (["--signal", "SIG_DFL", "program.py"], "there is no signal SIG_DFL"),
        (["--signal", "signal", "program.py"], "there is no signal signal"),
        (["--signal", "SIGKILL", "program.py"], "cannot wait for SIGKILL"),
        (["-m", "no_such_package.module"], "there is no module no_such_package.module"),
        ([], "the following arguments are required: SCRIPT\n"),
    ],
)
def test_the_command_stops_before_the_program_runs(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "program.py").write_text("print('it ran')\n")
    done = run_in(tmp_path, "-m", "tvm_ffi.inspect", *arguments)
    assert done.returncode != 0
    assert done.stdout == ""
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_the_command_says_that_the_page_could_not_be_written(tmp_path: Path) -> None:
    code, out, err = run_command("-o", "/dev/full", script="print(1)\n", tmp_path=tmp_path)
    assert (code, out) == (1, "1\n")
    assert err == "tvm_ffi.inspect: cannot write /dev/full: No space left on device\n"


def test_the_summary_of_the_command_names_what_the_program_made(tmp_path: Path) -> None:
    script = "import tvm_ffi\nkept = tvm_ffi.List([tvm_ffi.Dict({})])\n"
    _, _, err = run_command(script=script, tmp_path=tmp_path)
    assert "1 List" in err
    assert "1 Dict" in err


def test_the_command_writes_a_page_at_a_signal(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, signal, tvm_ffi\n"
        "kept = tvm_ffi.List([])\n"
        "os.kill(os.getpid(), signal.SIGUSR2)\n"
        "print(pathlib.Path('objects.html').exists())\n"
    )
    code, out, err = run_command("--signal", "SIGUSR2", script=script, tmp_path=tmp_path)
    assert (code, out) == (0, "True\n"), err


# ---- gdb ----

GDB = shutil.which("gdb")
PRINTERS = Path(inspect.__file__).parents[1] / "share" / "gdb" / "tvm_ffi_printers.py"

GDB_PROGRAM = """
import gc, os, signal, weakref
import tvm_ffi
from tvm_ffi import testing
items = tvm_ffi.List([1, 2.5, True, None, "a text that is longer than seven", "short"])
table = tvm_ffi.Dict({"k": items, 3: tvm_ffi.Array([7])})
pair = testing.TestIntPair(4, 5)
dormant = tvm_ffi.Array([tvm_ffi.List([])])
for obj in (items, table, pair, dormant, dormant[0]):
    print(hex(obj.__chandle__()), flush=True)
del obj
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.skipif(GDB is None, reason="no gdb: the pretty printers are not tried")
def test_gdb_prints_objects(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(GDB_PROGRAM)
    child = subprocess.Popen(
        [sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": str(Path(tvm_ffi.__file__).parents[1])},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        addresses = [child.stdout.readline().strip() for _ in range(5)]
        command = [str(GDB), "-nx", "-batch", "-p", str(child.pid), "-ex", f"source {PRINTERS}"]
        for address in addresses:
            command += ["-ex", f"tvm-ffi {address}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    finally:
        child.kill()
        child.wait()
    if "ptrace: Operation not permitted" in done.stderr:
        pytest.skip("gdb may not attach to a process here")
    assert (
        'ffi.List [1, 2.5, True, None, "a text that is longer than seven", "short"]' in done.stdout
    )
    assert 'ffi.Dict {"k": ffi.List' in done.stdout, done.stdout + done.stderr
    assert "testing.TestIntPair {a = 4, b = 5}" in done.stdout
    assert "active wrapper" in done.stdout
    assert "dormant wrapper" in done.stdout
    assert "strong" in done.stdout


GDB_SOURCE = """
#include <tvm/ffi/tvm_ffi.h>
namespace ffi = tvm::ffi;
__attribute__((noinline)) void stop_here() { __asm__ volatile(""); }
int main() {
  ffi::Any number = 42, none;
  ffi::String text = "a text that is longer than seven";
  ffi::List<ffi::Any> items{ffi::Any(1), ffi::Any(text)};
  ffi::Map<ffi::Any, ffi::Any> table;
  for (int i = 0; i < 6; ++i) table.Set(i, i * i);
  ffi::ObjectRef object = items;
  ffi::Shape shape{2, 3};
  stop_here();
}
"""


@pytest.mark.skipif(GDB is None, reason="no gdb: the pretty printers are not tried")
@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_gdb_prints_variables(tmp_path: Path) -> None:
    (tmp_path / "main.cc").write_text(GDB_SOURCE)
    library = tvm_ffi.libinfo.find_libtvm_ffi()
    command = ["c++", "-std=c++17", "-O0", "-g", str(tmp_path / "main.cc"), "-o", "main", library]
    command += [f"-I{path}" for path in tvm_ffi.libinfo.include_paths()]
    command += [f"-Wl,-rpath,{Path(library).parent}"]
    subprocess.run(command, check=True, cwd=tmp_path)
    gdb = [str(GDB), "-nx", "-batch", "-ex", f"source {PRINTERS}", "-ex", "break stop_here"]
    gdb += ["-ex", "run", "-ex", "up"]
    for name in ("number", "none", "text", "items", "table", "object", "shape"):
        gdb += ["-ex", f"print {name}"]
    gdb += ["-ex", "tvm-ffi items", str(tmp_path / "main")]
    done = subprocess.run(gdb, capture_output=True, text=True, timeout=300, check=False)
    if "ptrace: Operation not permitted" in done.stderr or "Could not trace" in done.stderr:
        pytest.skip("gdb may not start a process here")
    expected = [
        "$1 = 42",
        "$2 = None",
        '$3 = "a text that is longer than seven"',
        '$4 = ffi.List [1, "a text that is longer than seven"]',
        "$5 = ffi.Map {0: 0, 1: 1, 2: 4, 3: 9, 4: 16, 5: 25}",
        '$6 = ffi.List [1, "a text that is longer than seven"]',
        "$7 = ffi.Shape [2, 3]",
        "2 strong, 0 weak",
    ]
    assert [text for text in expected if text not in done.stdout] == [], done.stdout + done.stderr


def test_rings_through_tensors_are_collected_while_recording() -> None:
    import foreign

    with inspect.recording():
        node, memory = Node(), foreign.ViewTensor((2,))
        memory.owner = node
        node.child = memory
        foreign.calls.clear()
        assert isinstance(node.child, tvm_ffi.Tensor)
        weak = weakref.ref(node)
        del node, memory
        gc.collect()
        assert weak() is None
