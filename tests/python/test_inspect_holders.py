# SPDX-License-Identifier: Apache-2.0
"""tvm_ffi.inspect runs no code of the objects that it looks at, names what holds an object in all
kinds of containers, counts every reference once, and takes many holders."""

from __future__ import annotations

import collections
import contextvars
import gc
import sys
import threading
import types
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import tvm_ffi
from support import Stateful
from tvm_ffi import inspect, testing
from tvm_ffi.inspect import LeakError, no_leaks, why

# ---- hostile objects ----


class Ran(Exception):
    """Code of an object was run."""


def raises(*_: Any, **__: Any) -> Any:
    raise Ran


HOSTILE_METHODS = (
    *("__getattribute__", "__getattr__", "__repr__", "__str__", "__format__", "__eq__", "__len__"),
    *("__iter__", "__bool__", "__contains__", "__getitem__", "__dir__", "__sizeof__", "__index__"),
    *("__length_hint__", "__reduce_ex__"),
)


class HostileMeta(type):
    """Answers no question about its classes."""

    __getattribute__ = __repr__ = __eq__ = __instancecheck__ = __subclasscheck__ = raises
    __iter__ = __len__ = __dir__ = __call__ = raises
    __hash__ = raises  # type: ignore[assignment]


def hostile_class(*bases: type) -> type:
    """Return a class whose objects, and which itself, run code whenever they are asked."""
    space: dict[str, Any] = dict.fromkeys(HOSTILE_METHODS, raises)
    space["__class__"] = property(raises)
    space["__module__"] = property(raises)
    space["_fields"] = property(raises)
    meta = type("Meta", (HostileMeta, *(type(base) for base in bases)), {})
    return type.__call__(meta, "Hostile", bases, space)


def lies_about_class(answer: Any) -> type:
    return type("Lies", (), {"__class__": property(lambda self: answer)})


def with_slot(cls: type, target: Any) -> Any:
    """Return an object of a class with `target` as an attribute; nothing of the class runs."""
    obj = object.__new__(cls)
    object.__setattr__(obj, "kept", target)
    return obj


class StrangeKey:
    """Breaks as a key of a namespace."""

    __repr__ = __str__ = __format__ = raises


def strange_namespace(target: Any) -> Any:
    obj = Stateless()
    vars(obj)[StrangeKey()] = target  # type: ignore[index]
    return obj


class Stateless:
    """A plain class."""


def container(base: type) -> Callable[[Any], Any]:
    def make(target: Any) -> Any:
        obj = base.__new__(hostile_class(base))
        base.__init__(obj, {0: target} if issubclass(base, dict) else [target])
        return obj

    return make


def tuple_of(target: Any) -> Any:
    return tuple.__new__(hostile_class(tuple), [target])


def exception_with(target: Any) -> Any:
    return BaseException.__new__(hostile_class(ValueError), target)


def module_with(target: Any) -> Any:
    cls = hostile_class(types.ModuleType)
    obj = types.ModuleType.__new__(cls)
    types.ModuleType.__init__(obj, "hostile_module")
    types.ModuleType.__dict__["__dict__"].__get__(obj)["kept"] = target
    sys.modules["hostile_module"] = obj
    return obj


def function_with_defaults(target: Any) -> Any:
    def function(*, a: Any = 1) -> None: ...

    function.__defaults__ = tuple_of(target)
    function.__kwdefaults__ = container(dict)(target)
    return function


def class_with(target: Any) -> Any:
    cls = hostile_class(object)
    type.__setattr__(cls, "kept", target)
    return cls


HOSTILE: dict[str, Callable[[Any], Any]] = {
    "everything raises": lambda o: with_slot(hostile_class(object), o),
    "class is a type": lambda o: with_slot(lies_about_class(type), o),
    "class is a module": lambda o: with_slot(lies_about_class(types.ModuleType), o),
    "class is a wrapper's": lambda o: with_slot(lies_about_class(tvm_ffi.List), o),
    "class is no class": lambda o: with_slot(lies_about_class(7), o),
    "attribute of a class": class_with,
    "namespace with a strange key": strange_namespace,
    "dict": container(dict),
    "OrderedDict": container(collections.OrderedDict),
    "list": container(list),
    "deque": container(collections.deque),
    "tuple": tuple_of,
    "exception": exception_with,
    "module": module_with,
    "method of a hostile callable": lambda o: types.MethodType(with_slot(Nameless, o), o),
    "defaults of a function": function_with_defaults,
}


class Nameless:
    """May be called, and does not say its name."""

    __getattribute__ = raises
    __call__ = raises


@pytest.fixture
def clean_up() -> Iterator[None]:
    yield
    sys.modules.pop("hostile_module", None)
    gc.collect()


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.usefixtures("clean_up")
def test_no_code_of_a_holder_runs(name: str) -> None:
    target = tvm_ffi.List([])
    kept = HOSTILE[name](target)
    str(why(target))
    str(why(kept))
    with inspect.recording():
        in_cpp = tvm_ffi.List([lambda: kept, target])
        for roots in (None, kept, [kept], in_cpp):
            graph = inspect.graph(roots)
            str(graph), graph.to_dot(), graph.to_svg(), graph.to_html()
        before = inspect.snapshot()
        str(inspect.diff(before))
        in_cpp.append(in_cpp)
        str(inspect.rings())
        str(inspect.collect_rings(no_cpp_threads=True))
        in_cpp.clear()
    places: list[Any] = []
    with pytest.raises(LeakError) as caught, no_leaks():
        made = tvm_ffi.List([])
        places.append(HOSTILE[name](made))
        del made
    assert "1 object stayed" in str(caught.value)
    places.clear()


def test_no_code_of_a_wrapper_runs() -> None:
    """Only what may be defined in a class of wrappers."""

    class Hostile(Stateful):
        __repr__ = __eq__ = __len__ = __iter__ = __bool__ = __str__ = raises
        __hash__ = Stateful.__hash__
        __class__ = property(raises)  # type: ignore[assignment]
        __module__ = property(raises)  # type: ignore[assignment]

    target = Hostile()
    target.note = target
    str(why(target))
    outer = tvm_ffi.List([target])
    for roots in (None, target, [target], outer):
        inspect.graph(roots).to_text()
    inspect.snapshot()
    with pytest.raises(LeakError), no_leaks():
        kept = Hostile()
    del kept, target.note


def test_a_class_body_with_a_namespace_of_its_own_kind() -> None:
    class Space(dict):  # type: ignore[type-arg]
        keys = values = items = __iter__ = raises

    class Meta(type):
        @classmethod
        def __prepare__(cls, *_: Any) -> Any:
            return Space()

        def __new__(cls, name: str, bases: Any, space: Any) -> Any:
            return type.__new__(cls, name, bases, dict(list(dict.items(space))))

    class Body(metaclass=Meta):
        inner = tvm_ffi.List([])
        found = str(why(inner))

    assert "variable 'inner' of Body()" in Body.found


# ---- names, and one holder for each reference: (keep, what the answer must contain) -------------

Pair = collections.namedtuple("Pair", ["left", "right"])
VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("VARIABLE")


def generator(target: Any) -> Any:
    def generate(local: Any) -> Iterator[int]:
        yield 1
        del local

    found = generate(target)
    next(found)
    return found


def coroutine(target: Any) -> Any:
    @types.coroutine
    def pause() -> Iterator[None]:
        yield

    async def work(local: Any) -> None:
        await pause()
        del local

    found = work(target)
    found.send(None)
    return found


def async_generator(target: Any) -> Any:
    async def generate(local: Any) -> AsyncIterator[int]:
        yield 1
        del local

    found = generate(target)
    with pytest.raises(StopIteration):
        found.__anext__().send(None)
    return found


def failed(target: Any) -> Any:
    try:
        raise ValueError(target)
    except ValueError as error:
        return error


def in_context(target: Any) -> Any:
    context = contextvars.Context()
    context.run(VARIABLE.set, target)
    return context


def cycle(target: Any) -> Any:
    items: list[Any] = [target]
    items.append(items)


def counting(target: Any) -> Any:
    """Return a class with a slot and a `__dict__` that both refer to the object."""

    class Both:
        __slots__ = ("__dict__", "slot")

    found = Both()
    found.slot = found.note = target
    return found


NAMED: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "defaultdict": (
        lambda o: collections.defaultdict(list, {"k": o}),
        ["['k'] of collections.defaultdict of 1"],
    ),
    "OrderedDict": (
        lambda o: collections.OrderedDict(k=o),
        ["['k'] of collections.OrderedDict of 1"],
    ),
    "Counter": (lambda o: collections.Counter([o]), ["a key of collections.Counter of 1"]),
    "namedtuple": (lambda o: Pair(1, o), [".right of test_inspect_holders.Pair of 2"]),
    "deque": (lambda o: collections.deque([1, o]), ["[1] of collections.deque of 2"]),
    "class derived from list": (
        lambda o: type("Items", (list,), {})([o]),
        ["[0] of test_inspect_holders.Items of 1"],
    ),
    "class derived from set": (
        lambda o: type("Items", (set,), {})([o]),
        ["an element of test_inspect_holders.Items of 1"],
    ),
    "generator": (generator, ["variable 'local' of "]),
    "coroutine": (coroutine, ["variable 'local' of "]),
    "async generator": (async_generator, ["variable 'local' of "]),
    "closure": (
        lambda o: lambda: o,
        ["captured variable 'o' of cell", "captured variable 'o' of function"],
    ),
    "traceback": (failed, [".__traceback__ of exception ValueError", ".args of exception"]),
    "context": (in_context, ["context variable 'VARIABLE' of a part of a context"]),
    "cycle of Python": (cycle, ["[0] of list of 2", "(garbage that waits for the collector)"]),
    "slot and attribute": (counting, [".slot of ", ".note of "]),
    "attribute of a wrapper that the collector does not list": (
        lambda o: hidden(o),
        [".note of Stateful"],
    ),
}


def hidden(target: Any) -> Any:
    wrapper = Stateful()
    wrapper.note = target
    outer = tvm_ffi.List([wrapper])
    del wrapper
    for _ in range(5):
        gc.collect()
    return outer


@pytest.mark.parametrize("name", NAMED)
def test_why_names_the_place(name: str) -> None:
    keep, expected = NAMED[name]
    target = testing.TestObjectBase()
    kept = keep(target)
    answer = why(target)
    assert [text for text in expected if text not in str(answer)] == [], str(answer)
    counts = (answer.unseen_python, answer.unseen_cpp)
    of_python = [holder for holder in answer.holders if holder.kind in ("Python", "variable")]
    assert (len(of_python), counts) == (answer.python_references, (0, 0)), str(answer)
    if name == "coroutine":
        kept.close()
    del kept
    gc.collect()


def test_what_is_in_use_is_not_called_garbage() -> None:
    items: list[Any] = [testing.TestObjectBase()]
    items.append(items)
    text = str(why(items[0]))
    assert "waits for" not in text


def test_why_names_a_context_variable_that_is_set() -> None:
    target = testing.TestObjectBase()
    token = VARIABLE.set(target)
    answer = why(target)
    VARIABLE.reset(token)
    assert [str(holder).split(" at ")[0] for holder in answer.holders] == [
        "variable 'target' of test_why_names_a_context_variable_that_is_set()",
        "context variable 'VARIABLE' of the current context",
    ]
    assert all(holder.is_root for holder in answer.holders)
    del token


def test_why_in_a_generator_or_coroutine_counts_a_variable_once() -> None:
    def generate() -> Iterator[Any]:
        local = testing.TestObjectBase()
        yield why(local)

    async def work() -> Any:
        local = testing.TestObjectBase()
        return why(local)

    with pytest.raises(StopIteration) as ended:
        work().send(None)
    for answer in (next(generate()), ended.value.value):
        (holder,) = answer.holders
        assert str(holder).startswith("variable 'local' of "), str(answer)
        assert (holder.is_root, answer.python_references, answer.unseen_python) == (True, 1, 0)


def test_why_names_a_captured_variable_of_a_running_function() -> None:
    target = testing.TestObjectBase()

    def inner() -> Any:
        return target

    answer = why(target)
    (cell,) = answer.holders
    assert str(cell) == "captured variable 'target' of cell"
    assert any(holder.is_root and "'target'" in holder.place for holder in cell.holders), answer
    del inner


def test_why_names_the_thread() -> None:
    class Hostile(threading.Thread):
        name = property(raises, raises)  # type: ignore[assignment]

    target = testing.TestObjectBase()
    begun, end = threading.Event(), threading.Event()

    def hold(local_of_thread: Any) -> None:
        begun.set()
        end.wait()

    for cls, expected in ((threading.Thread, " in thread 'worker'"), (Hostile, " in thread ")):
        begun.clear()
        end.clear()
        thread = cls(target=hold, args=(target,))
        thread._name = "worker"  # type: ignore[attr-defined]
        thread.start()
        begun.wait()
        answer = why(target)
        end.set()
        thread.join()
        found = [str(h) for h in answer.holders if "local_of_thread" in h.place]
        assert found, str(answer)
        assert expected in found[0]


# ---- many holders ----


@pytest.mark.parametrize("kind", ["list", "attribute", "closure", "List"])
def test_why_does_not_compare_each_holder_with_each_reference(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`gc.get_referrers` of many objects takes a time that is quadratic."""
    asked = []
    get_referrers = gc.get_referrers

    def watched(*objects: Any) -> Any:
        asked.append(len(objects))
        return get_referrers(*objects)

    class Plain:
        def __init__(self, note: Any) -> None:
            vars(self)["note"] = note

    make: dict[str, Callable[[Any], Any]] = {
        "list": lambda o: [o],
        "attribute": Plain,
        "closure": lambda o: lambda: o,
        "List": lambda o: tvm_ffi.List([o]),
    }
    target = testing.TestObjectBase()
    kept = [make[kind](target) for _ in range(3000)]
    monkeypatch.setattr(gc, "get_referrers", watched)
    answer = why(target)
    assert max(asked) <= 100
    assert len(asked) <= 100
    # `watched` itself is seen, too.
    assert len([h for h in answer.holders if not h.description.startswith("tuple")]) == 3001
    assert (answer.unseen_python, answer.unseen_cpp) == (0, 0)
    (note,) = [note for note in answer.notes if "freeze" not in note]
    assert note.endswith(" holders were not followed: more than depth or limit allows")
    assert any(path[0].startswith("variable 'kept'") for path in answer.paths)
    del kept


# ---- graphs ----


def test_graph_takes_one_object_or_several() -> None:
    one, two = tvm_ffi.List([]), tvm_ffi.Array([tvm_ffi.Dict({})])
    for roots in ([one, two], (one, two), {one, two}):
        assert len(inspect.graph(roots).roots) == 2
    assert len(inspect.graph(obj for obj in (one, two)).roots) == 2
    assert len(inspect.graph({"a": one, "b": two}.values()).roots) == 2
    graph = inspect.graph({"a": one, "b": two})
    (root,) = graph.roots
    assert graph.nodes[root].label == "dict of 2"
    below = {(edge.place, graph.nodes[edge.target].name) for edge in graph.children()[root]}
    assert below == {("['a']", "List"), ("['b']", "Array")}
    assert graph.by_type() == {"Array": 1, "Dict": 1, "List": 1, "dict": 1}
    assert len(inspect.graph("abc").nodes) == 1


def test_an_object_whose_wrapper_died_was_in_python() -> None:
    class Mortal(tvm_ffi.List):  # type: ignore[type-arg]
        def __del__(self) -> None: ...

    outer = tvm_ffi.List([Mortal([])])
    gc.collect()
    assert "[no wrapper;" in inspect.graph(outer).to_text()
