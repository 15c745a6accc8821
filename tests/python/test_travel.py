# SPDX-License-Identifier: Apache-2.0
"""Objects travel: what a pickle keeps, what it needs on the other side, and what it refuses."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import threading
import weakref
from pathlib import Path
from typing import Any

import foreign
import numpy
import pytest
import tvm_ffi
from support import ROOT, compile_library, make_edges, run_python, scaled
from tvm_ffi import _ffi_api, core, testing, travel
from tvm_ffi.dataclasses import Enum, IntEnum, entry, field, py_class


@py_class("tests.travel.Node")
class Node(tvm_ffi.Object):
    """A graph can be built of it."""

    value: Any = None
    child: tvm_ffi.Object | None = None
    items: list[Any] = field(default_factory=list)


class Noted(Node):
    """Carries attributes."""

    __slots__ = ("__dict__",)


class Labelled(testing.TestIntPair):
    """Carries a slot and attributes."""

    __slots__ = ("__dict__", "label")


class Colour(Enum, type_key="tests.travel.Colour"):
    """Members are shared."""

    red = entry()
    a_name_of_more_than_seven_letters = entry()


class Level(IntEnum, type_key="tests.travel.Level"):
    """Members by number."""

    low = entry(value=3)
    high = entry(value=700)


class Adopted(testing.TestIntPair):
    """Says itself what its state is."""

    __slots__ = ("__dict__",)

    def __getstate__(self) -> Any:
        return {**super().__getstate__(), "extra": 5}

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self.extra = state["extra"]


PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def again(value: Any, protocol: int = 5) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


# ---- values -------------------------------------------------------------------------------------


VALUES = [
    None,
    True,
    False,
    *(
        sign * (1 << shift) - less
        for sign in (1, -1)
        for shift in range(0, 63, 7)
        for less in (0, 1)
    ),
    2**63 - 1,
    -(2**63),
    2**63,
    -(2**200) + 5,
    0.0,
    -1.5,
    float("inf"),
    "",
    "seven b",
    "more than seven bytes",
    "ümläut " * 100,
    b"",
    b"\0\xff",
    b"long bytes" * 50,
    tvm_ffi.Shape((1, -2, 1 << 40)),
    tvm_ffi.dtype("float8_e4m3fnx4"),
    tvm_ffi.device("cuda:3"),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_kind_of_value(protocol: int) -> None:
    for make in (tvm_ffi.Array, tvm_ffi.List):
        loaded = again(make(VALUES), protocol)
        assert type(loaded) is make
        for before, after in zip(VALUES, loaded, strict=True):
            assert before == after
            assert str(type(before)) == str(type(after)) or isinstance(before, (str, bytes))
    loaded = again(tvm_ffi.Dict({"list": tvm_ffi.List(VALUES), 1: 2, 2.5: "x"}), protocol)
    assert list(loaded) == ["list", 1, 2.5]
    assert list(loaded["list"]) == VALUES


def test_enums_functions_and_errors() -> None:
    assert again(Colour.red) is Colour.red
    error = testing.echo(core.Error("ValueError", "what", "where"))
    echo = tvm_ffi.get_global_func("testing.echo")
    value = tvm_ffi.Array([*Colour, *Level, echo, error])
    loaded = again(value)
    assert [part is before for part, before in zip(loaded, value, strict=True)] == [True] * 5 + [
        False
    ]
    assert (loaded[5].kind, loaded[5].message, loaded[5].backtrace) == (
        "ValueError",
        "what",
        "where",
    )
    assert again(echo) is echo
    assert copy.copy(echo) is echo


OF_TESTING = [
    testing.TestIntPair(1, 2),
    testing.TestObjectBase(v_i64=3, v_str="text of some length"),
    testing.TestObjectDerived({"k": [1, 2]}, ["a", 2.5, None, True]),
    testing.TestObjectPtrHolder(testing.TestObjectBase()),
    testing.TestNonCopyable(7),
    testing.TestCompare(1, "n", 2),
    testing.TestHash(1, "n", 2),
    testing.TestCustomHash(1, "label"),
    testing.TestCustomCompare(1, "label"),
    testing.TestEqWithoutHash(1, "label"),
    testing._TestCxxClassDerived(1, 2, 3.0),
    testing._TestCxxEnumHolder(10, "+"),
    testing._TestCxxClassBase(1, 2),
    testing._TestCxxClassDerivedDerived(1, 2, 3.0, True, 4.0, "text of some length"),
    testing._TestCxxInitSubset(1),
    testing._TestCxxKwOnly(x=1, y=2, z=3, w=4),
    testing._TestCxxAutoInit(1, 2, c=3),
    testing._TestCxxAutoInitSimple(1, 2),
    testing._TestCxxAutoInitAllInitOff(),
    testing._TestCxxAutoInitKwOnlyDefaults(1, 2, k_required=3, k_default=4),
    testing._TestCxxAutoInitParent(1, 2),
    testing._TestCxxAutoInitChild(1, 2, 3, child_kw_only=4),
]
# No Python code can make an instance, or members are shared.
NOT_MADE = {"TestFrozenCxx", "_TestCxxNoAutoInit", "_TestCxxIntEnum", "_TestCxxStrEnum"}


def test_the_table_of_classes_is_complete() -> None:
    classes = {
        name
        for name, cls in vars(testing).items()
        if isinstance(cls, type) and issubclass(cls, core.CObject)
    }
    assert classes - {type(value).__name__ for value in OF_TESTING} - NOT_MADE == set()
    for member in (*testing._TestCxxIntEnum, *testing._TestCxxStrEnum):
        assert again([member, tvm_ffi.Array([member])]) == [member, [member]]
        assert again(member) is member


def test_a_class_that_nobody_registered_in_python() -> None:
    value = make_edges(1, tvm_ffi.List([2]))
    first, second = again([value, tvm_ffi.Array([value])])
    assert type(first) is type(value)
    assert second[0] is first
    assert (first.v_any, list(first.v_obj)) == (1, [2])


@pytest.mark.parametrize("value", OF_TESTING, ids=lambda value: type(value).__name__)
def test_every_class_of_testing(value: Any) -> None:
    for protocol in PROTOCOLS:
        first, second, third = again([value, value, tvm_ffi.Array([value])], protocol)
        assert type(first) is type(value)
        assert first is second is third[0]
        for info in type(value).__tvm_ffi_type_info__.fields:
            before, after = getattr(value, info.name), getattr(first, info.name)
            assert before == after or _ffi_api.RecursiveEq(before, after)


# ---- sharing, identity and state ----------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_objects_of_one_pickle_stay_the_same(protocol: int) -> None:
    shared = Node("shared")
    first, second = Node(1, shared), Node(2, Node(3, shared))
    loaded = again(
        {"first": first, "all": [second, shared, first], "in": (second.child,)}, protocol
    )
    assert loaded["first"].child is loaded["all"][1]
    assert loaded["all"][0].child is loaded["in"][0]
    assert loaded["in"][0].child is loaded["all"][1]
    assert loaded["all"][2] is loaded["first"]


def test_a_pickler_that_dumps_several_times() -> None:
    import io

    shared = Node(1)
    for make in (pickle.Pickler, pickle._Pickler):  # type: ignore[attr-defined]
        file = io.BytesIO()
        pickler = make(file, 5)
        pickler.dump(Node(2, shared))
        pickle.dumps([shared])  # another pickle in between
        pickler.dump([shared])
        unpickler = pickle.Unpickler(io.BytesIO(file.getvalue()))
        assert unpickler.load().child is unpickler.load()[0]


def test_two_picklers_of_one_thread_see_what_is_there() -> None:
    import io

    node = Node(1)
    files = [io.BytesIO() for _ in range(3)]
    picklers = [pickle.Pickler(file, 5) for file in files]
    for i, pickler in enumerate(picklers):
        node.value = i
        pickler.dump(node)
        pickler.dump([node])
    for i, file in enumerate(files):
        unpickler = pickle.Unpickler(io.BytesIO(file.getvalue()))
        node = unpickler.load()
        assert (node.value, unpickler.load()[0] is node) == (i, True)


class Outer:
    """A pickle inside a pickle."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def __reduce__(self) -> Any:
        return (Outer.load, (self.node, pickle.dumps(self.node), self.node))

    @staticmethod
    def load(node: Any, data: bytes, same: Any) -> Any:
        assert node is same
        return (node, pickle.loads(data))


def test_a_pickle_inside_a_pickle() -> None:
    node = Node(1, Node(2))
    a, (b, other), c = again([node, Outer(node), node])
    assert a is b is c
    assert other is not a
    assert other.child.value == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_cycles_arrive_as_cycles(protocol: int) -> None:
    ring = Node()
    ring.child = Node(1, ring)
    loaded = again(ring, protocol)
    assert loaded.child.child is loaded
    assert loaded is not ring

    self_list = tvm_ffi.List([1])
    self_list.append(self_list)
    loaded = again(self_list, protocol)
    assert loaded[1] is loaded
    loaded.clear()
    self_list.clear()

    self_dict = tvm_ffi.Dict({"a": 1})
    self_dict["b"] = tvm_ffi.Array([self_dict])
    loaded = again(self_dict, protocol)
    assert loaded["b"][0] is loaded
    loaded.clear()
    loaded = again(self_dict["b"], protocol)
    assert loaded[0]["b"] is loaded
    loaded[0].clear()
    self_dict.clear()


def test_a_cycle_through_containers_that_cannot_change() -> None:
    node = Node()
    array = tvm_ffi.Array([tvm_ffi.Map({"k": tvm_ffi.Array([node, 1])}), 2])
    node.items = tvm_ffi.List([array])
    node.child = array
    for root in (node, array, array[0], array[0]["k"], node.items, [array, node]):
        loaded = again(root)
        text, expected = repr(loaded), repr(root)
        assert text == expected
    loaded = again(array)
    assert loaded[0]["k"][0].child is loaded
    assert loaded[0]["k"][0].items[0] is loaded


def test_random_graphs() -> None:
    rng = random.Random(7)
    for _ in range(scaled(200)):
        nodes: list[Any] = []
        for i in range(rng.randrange(1, 30)):
            pick = [rng.choice(nodes) for _ in range(rng.randrange(4))] if nodes else []
            kind = rng.randrange(6)
            if kind == 0:
                nodes.append(tvm_ffi.Array([i, *pick]))
            elif kind == 1:
                nodes.append(tvm_ffi.List([i, *pick]))
            elif kind == 2:
                nodes.append(tvm_ffi.Map({f"key number {j}": p for j, p in enumerate(pick)}))
            elif kind == 3:
                nodes.append(tvm_ffi.Dict(dict(enumerate(pick))))
            else:
                made = (Noted if kind == 4 else Node)(i, pick[0] if pick else None, pick)
                if kind == 4:
                    made.note = pick
                nodes.append(made)
        for _ in range(5):  # cycles
            source, target = rng.choice(nodes), rng.choice(nodes)
            if isinstance(source, Node):
                source.child = target
            elif isinstance(source, tvm_ffi.List):
                source.append(target)
        root = [rng.choice(nodes) for _ in range(3)]
        check_same(root, again(root))
        for node in nodes:  # rings of C++ alone are never freed otherwise
            if isinstance(node, (tvm_ffi.List, tvm_ffi.Dict)):
                node.clear()


def check_same(before: Any, after: Any) -> None:
    """The same values, classes, sharing and state."""
    partner: dict[int, Any] = {}
    kept = []  # so that no id is used twice
    todo = [(before, after)]
    lists = []
    while todo:
        a, b = todo.pop()
        assert type(a) is type(b)
        if not isinstance(a, (core.CObject, list)):
            assert a == b
            continue
        if id(a) in partner:
            assert partner[id(a)] is b
            continue
        partner[id(a)] = b
        kept.append(a)
        if isinstance(b, (tvm_ffi.List, tvm_ffi.Dict)):
            lists.append(b)
        if isinstance(a, Node):
            todo += [(a.value, b.value), (a.child, b.child), (a.items, b.items)]
            if isinstance(a, Noted):
                todo.append((a.note, b.note))
        elif isinstance(a, (tvm_ffi.Map, tvm_ffi.Dict)):
            assert list(a) == list(b)
            todo += [(a[k], b[k]) for k in a]
        else:
            assert len(a) == len(b)
            todo += list(zip(a, b, strict=True))
    assert len(set(map(id, partner.values()))) == len(partner)
    for container in lists:
        container.clear()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_python_state_travels_with_every_object(protocol: int) -> None:
    inner, leaf = Labelled(1, 2), Noted(3)
    inner.label, inner.also = ["a list"], inner
    leaf.owner = inner
    root = Node(0, leaf, [inner, leaf])
    inner.root = root
    loaded, loaded_inner = again((root, inner), protocol)
    assert type(loaded) is Node
    assert type(loaded.child) is Noted
    assert loaded.items[0] is loaded_inner
    assert type(loaded_inner) is Labelled
    assert (loaded_inner.a, loaded_inner.b, loaded_inner.label) == (1, 2, ["a list"])
    assert loaded_inner.also is loaded_inner
    assert loaded_inner.root is loaded
    assert loaded.child.owner is loaded_inner


def test_state_of_objects_that_nobody_in_python_holds() -> None:
    box = tvm_ffi.List([Labelled(1, 2)])
    box[0].note = "dormant"
    gc.collect()
    loaded = again(box)
    gc.collect()
    assert (type(loaded[0]), loaded[0].note) == (Labelled, "dormant")
    identity = id(loaded[0])
    gc.collect()
    assert id(loaded[0]) == identity


def test_a_class_with_a_state_of_its_own() -> None:
    loaded = again(Adopted(1, 2))
    assert (type(loaded), loaded.a, loaded.extra) == (Adopted, 1, 5)


def test_weak_references_stay_behind() -> None:
    node = Noted(1)
    node.watch = weakref.WeakSet([node])
    with pytest.raises(TypeError, match="weakref"):
        pickle.dumps([node, weakref.ref(node)])


def test_loaded_rings_are_collected() -> None:
    ring = Node()
    ring.child = Node(1, ring)
    data = pickle.dumps(ring)
    loaded = pickle.loads(data)
    died = weakref.ref(loaded)
    del loaded
    gc.collect()
    assert died() is None
    ring.child = None


def test_old_pickles_are_read() -> None:
    text = tvm_ffi.serialization.to_json_graph_str(Node(1, Node(2)))
    old = (core._new_object, (Node,), {"handle": text})

    class Old:
        def __reduce__(self) -> Any:
            return old

    loaded = again(Old())
    assert (type(loaded), loaded.child.value) == (Node, 2)
    assert Node(1).__reduce__()[0] is core._new_object


# ---- tensors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("dtype", ["float64", "int8", "bool", "uint16"])
def test_tensors(protocol: int, dtype: str) -> None:
    array = (numpy.arange(24) % 5).astype(dtype).reshape(2, 3, 4)
    for source in (array, array[:, ::2, 1:], array[:0], array[1, 1, 1:2].reshape(())):
        tensor = tvm_ffi.from_dlpack(source)
        first, second = again(tvm_ffi.Array([tensor, tensor]), protocol)
        assert first is second
        assert (first.shape, first.dtype) == (tensor.shape, tensor.dtype)
        loaded = numpy.from_dlpack(first)
        assert (loaded == source).all()
        assert not numpy.shares_memory(loaded, source)
        loaded[...] = 0  # it can be written


def test_tensors_out_of_band_share_their_memory() -> None:
    tensor = tvm_ffi.from_dlpack(numpy.arange(1000.0))
    buffers: list[Any] = []
    data = pickle.dumps(Node(1, tensor), 5, buffer_callback=buffers.append)
    assert (len(buffers), len(data) < 500) == (1, True)
    loaded = pickle.loads(data, buffers=buffers)
    assert loaded.child.data_ptr() == tensor.data_ptr()
    with pytest.raises(pickle.UnpicklingError):
        pickle.loads(data)
    for wrong in (b"", b"x" * 7999, b"x" * 8001):
        with pytest.raises(ValueError, match="does not have its size"):
            pickle.loads(data, buffers=[wrong])


def is_read_only(tensor: Any) -> bool:
    return memoryview(core._memory_of_tensor(tensor)).readonly


def test_read_only_tensors_stay_read_only() -> None:
    writable = tvm_ffi.from_dlpack(numpy.arange(6.0))
    buffers: list[Any] = []
    data = pickle.dumps(writable, 5, buffer_callback=buffers.append)
    read_only = pickle.loads(data, buffers=[bytes(buffers[0].raw())])
    assert (is_read_only(writable), is_read_only(read_only)) == (False, True)
    for protocol in PROTOCOLS:
        loaded = again(read_only, protocol)
        assert is_read_only(loaded)
        assert bytes(core._memory_of_tensor(loaded)) == numpy.arange(6.0).tobytes()
        assert not is_read_only(again(writable, protocol))
    data = pickle.dumps(read_only, 5, buffer_callback=buffers.append)
    assert is_read_only(pickle.loads(data, buffers=[bytearray(48)]))
    odd = memoryview(b"x" + bytes(48))[1:]
    assert is_read_only(pickle.loads(data, buffers=[odd]))


def test_memory_at_an_odd_address_is_copied() -> None:
    tensor = tvm_ffi.from_dlpack(numpy.arange(4.0))
    buffers: list[Any] = []
    data = pickle.dumps(tensor, 5, buffer_callback=buffers.append)
    odd = memoryview(bytearray(b"x" + bytes(buffers[0].raw())))[1:]
    loaded = pickle.loads(data, buffers=[odd])
    assert loaded.data_ptr() % 8 == 0
    assert (numpy.from_dlpack(loaded) == numpy.arange(4.0)).all()


def test_a_tensor_in_the_memory_of_python_keeps_it() -> None:
    memory = bytearray(numpy.arange(4.0).tobytes())
    tensor = tvm_ffi.from_dlpack(numpy.arange(4.0))
    buffers: list[Any] = []
    data = pickle.dumps(tensor, 5, buffer_callback=buffers.append)
    loaded = pickle.loads(data, buffers=[memory])
    with pytest.raises(BufferError):
        memory.clear()
    del loaded
    gc.collect()
    memory.clear()


def test_deep_copies_of_tensors() -> None:
    tensor = tvm_ffi.from_dlpack(numpy.arange(4.0))
    for value in (tensor, tvm_ffi.Array([tensor])[0], Node(1, tensor).child):
        copied = copy.deepcopy(value)
        assert copied.data_ptr() != tensor.data_ptr()
    copied = copy.deepcopy(Node(1, tensor, [tensor]))
    assert copied.child is copied.items[0]


# ---- what cannot travel -------------------------------------------------------------------------


def test_what_cannot_travel_is_named_and_leaves_nothing_behind() -> None:
    good = Node(1)
    bad: Any
    for bad, name in (
        (lambda: 1, "ffi.Function.*register_global_func"),
        (object(), "`object`"),
        (tvm_ffi.system_lib("testing."), "ffi.Module"),
    ):
        with pytest.raises(TypeError, match=f"cannot pickle `Node` object: .*{name}"):
            pickle.dumps([good, Node(1, good, [good, bad])])

    class Tolerant(pickle._Pickler):  # type: ignore[name-defined]
        def save(self, obj: Any, *args: Any) -> Any:
            if not isinstance(obj, Node):
                return super().save(obj, *args)
            try:
                return super().save(obj, *args)
            except TypeError:
                return super().save("left out")

    import io

    file = io.BytesIO()
    Tolerant(file, 0).dump(good)
    assert pickle.loads(file.getvalue()).value == 1


def test_a_tensor_on_a_gpu_is_refused() -> None:
    tensor = tvm_ffi.from_dlpack(foreign.make_capsule(shape=(4,), device=(2, 1)))
    assert str(tensor.device) == "cuda:1"
    for value in (tensor, Node(1, tensor), [tvm_ffi.Array([tensor])]):
        with pytest.raises(TypeError, match=r"on device 2:1 cannot be pickled.*\.cpu\(\)"):
            pickle.dumps(value)
    with pytest.raises(TypeError, match="CPU"):
        travel.share(tensor)


def test_an_object_that_was_moved_away() -> None:
    node = Node(1)
    tvm_ffi.convert(lambda x: x)(node._move())
    with pytest.raises(ValueError):
        pickle.dumps(node)


# ---- the other side -----------------------------------------------------------------------------

MODULE = """
import tvm_ffi
from tvm_ffi.dataclasses import py_class

@py_class("tests.travel.elsewhere.Thing")
class Thing(tvm_ffi.Object):
    x: int = 1
"""


def test_the_module_of_a_class_is_imported(tmp_path: Path) -> None:
    (tmp_path / "travel_things.py").write_text(MODULE, encoding="utf-8")
    setup = f"import sys, pickle, tvm_ffi; sys.path.insert(0, {str(tmp_path)!r})\n"
    write = setup + "import travel_things as t; print(pickle.dumps(tvm_ffi.Array([t.Thing(5)])))"
    data = run_python(write).strip()
    read = f"print(pickle.loads({data})[0].x, 'travel_things' in sys.modules)"
    assert run_python(setup + read) == "5 True\n"
    code = f"""
import pickle, tvm_ffi
try:
    pickle.loads({data})
except pickle.UnpicklingError as error:
    print(error)
"""
    message = run_python(code)
    assert "class `tests.travel.elsewhere.Thing` does not exist" in message
    assert "module `travel_things`" in message
    assert "requires_library" in message


def test_a_library_is_loaded(tmp_path: Path) -> None:
    library = compile_library(ROOT / "tests/python/travel_client.cc", tmp_path / "libtravel.so")
    write = f"""
import pickle, tvm_ffi
tvm_ffi.requires_library("travel.", {str(library)!r})
lib = tvm_ffi.load_module({str(library)!r})
make = tvm_ffi.get_global_func("travel.make")
print([pickle.dumps(v) for v in (tvm_ffi.Array([make(41)]), make, lib.double_it)])
"""
    things, function, member = eval(run_python(write))
    read = "import pickle, tvm_ffi; print(pickle.loads({})"
    assert run_python(read.format(things) + "[0].x)") == "41\n"
    assert run_python(read.format(function) + "(7).x)") == "7\n"
    assert run_python(read.format(member) + "(7))") == "14\n"
    library.unlink()
    code = f"""
import pickle, tvm_ffi
for data in ({things!r}, {function!r}):
    try:
        pickle.loads(data)
    except pickle.UnpicklingError as error:
        print(error)
"""
    messages = run_python(code)
    assert messages.count(f"needs the library `{library}`") == 2
    assert "class `travel.Thing` does not exist" in messages
    assert "function `travel.make` does not exist" in messages


def test_wrong_requirements() -> None:
    bad = [("",), (1,), ("p", b"bytes"), ("p", "a\nb"), ("p", ""), ("p", "\0"), ("\udc80",)]
    for arguments in [*bad, ("p", "lib\udc80.so")]:
        with pytest.raises((TypeError, ValueError)):
            tvm_ffi.requires_library(*arguments)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        tvm_ffi.requires_library("p", module=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must not be empty"):
        tvm_ffi.requires_library("p", module="")


# ---- bad input ----------------------------------------------------------------------------------


def chunks() -> list[bytes]:
    found = []
    node = Node("text of some length", Node(1.5, None, [2**70, b"bytes of some length"]))
    node.child.child = node
    array = tvm_ffi.from_dlpack(numpy.arange(3.0))
    dictionary = tvm_ffi.Dict({"a": tvm_ffi.Map({1: 2})})
    for value in (node, tvm_ffi.Array([array, Colour.red, Level.high, dictionary, *VALUES])):
        _, chunk, *_ = travel._write(travel._Writer(), value, ())
        found.append(bytes(core._memory_of_tensor(chunk)))
    return found


def read(chunk: bytes) -> Any:
    reader = travel._Reader()
    buffers = [bytes(24)] * (b"kDL" in chunk)
    try:
        return travel._read(reader, chunk, buffers)
    except Exception as error:
        return error


def test_damaged_chunks_raise() -> None:
    rng = random.Random(3)
    for chunk in chunks():
        for size in range(len(chunk)):
            assert isinstance(read(chunk[:size]), Exception)
        for i in range(len(chunk)):
            for byte in (0, 1, 0x7F, 0x80, 0xFF, chunk[i] ^ 1, rng.randrange(256)):
                read(chunk[:i] + bytes([byte]) + chunk[i + 1 :])
        for _ in range(scaled(2000)):
            damaged = bytearray(chunk)
            for _ in range(rng.randrange(1, 6)):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
            read(bytes(damaged))
    gc.collect()


def test_a_later_version_and_large_counts() -> None:
    chunk = chunks()[0]
    error = read(chunk[:3] + b"\2" + chunk[4:])
    assert isinstance(error, ValueError)
    assert "version is 2" in str(error)
    huge = b"\xff" * 8 + b"\x7f"
    for bad in (
        b"",
        b"TFG",
        b"XXX\1\0\0\1\0",
        b"TFG\1" + huge,  # types
        b"TFG\1\0\0" + huge,  # records
        b"TFG\1\0\5\0\1",  # the part before is missing
        b"TFG\1\0\0\1\0" + huge,  # a string
        *(b"TFG\1\0\0\1" + bytes([op]) + huge + b"\1" for op in range(18)),
        b"TFG\1\0\0\1\11\1\x80\1",  # refers to itself
        b"TFG\1\0\0\1\16\1",  # declared, never filled
        b"TFG\1\0\0\1\11\0\1\0",  # something follows
    ):
        assert isinstance(read(bad), Exception), bad


def test_damaged_pickles_raise() -> None:
    rng = random.Random(5)
    data = pickle.dumps([Labelled(1, 2), Node(1, Node(2)), tvm_ffi.from_dlpack(numpy.ones(3))])
    # What can be named in it is code: only the parts that are ours are changed.
    begin = data.index(b"TFG")
    for _ in range(scaled(2000)):
        damaged = bytearray(data)
        damaged[begin + rng.randrange(40)] = rng.randrange(256)
        try:
            pickle.loads(bytes(damaged))
        except Exception:
            continue


def test_parts_in_the_wrong_place() -> None:
    for call in (
        lambda: travel._read(3, b""),
        lambda: travel._read(travel._Reader(), 3),
        lambda: travel._read(travel._Reader(), b"", 3),
        lambda: travel._read(travel._Reader(), chunks()[0], (), [(0, int)]),
        lambda: travel._read(travel._Reader(), chunks()[0], (), [(10**9, Node)]),
        lambda: travel._pick(travel._Reader(), 0),
        lambda: travel._pick(travel._Reader(), -1),
        lambda: travel._pick(None, 0),
        lambda: travel._set_states(None, (None, [(0, {}, {})])),
        lambda: pickle.dumps(travel._Reader()),
        lambda: core._tensor_over_buffer(3),
        lambda: core._tensor_over_buffer(memoryview(b"abcd")[::2]),
        lambda: core._memory_of_tensor(3),
        lambda: core._memory_of_tensor(tvm_ffi.from_dlpack(numpy.ones((4, 4))[:, ::2])),
    ):
        with pytest.raises(Exception):  # noqa: B017  any exception, no crash
            call()


# ---- depth and threads --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fields", "arrays", "lists"])
def test_depth(kind: str) -> None:
    depth = scaled(1_000_000)
    head: Any = Node(0)
    for _ in range(depth):
        if kind == "fields":
            head = make_edges(None, head)
        else:
            head = (tvm_ffi.Array if kind == "arrays" else tvm_ffi.List)([head])
    loaded = again(head)
    for _ in range(depth):
        loaded = loaded.v_obj if kind == "fields" else loaded[0]
    assert loaded.value == 0


def test_threads_pickle_the_same_objects() -> None:
    shared = Noted(1)
    shared.note = "note"
    roots = [Node(i, shared, [shared]) for i in range(20)]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(scaled(50)):
                loaded = again([*roots, shared])
                assert all(node.child is loaded[-1] for node in loaded[:-1])
                assert loaded[-1].note == "note"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
