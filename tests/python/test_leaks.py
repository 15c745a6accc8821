# SPDX-License-Identifier: Apache-2.0
"""Nothing is kept: every public function and method, called again and again, with good and with bad
arguments, leaves memory and object counts as they were.

The names are found by looking at the package. One that this file does not know how to call fails
`test_every_public_name_is_in_the_table`: add it to `FUNCTIONS`, to `SAMPLES` (a class) or
`ARGUMENTS` (a method), or, with a reason, to `NOT_CALLED`.

The suite makes few calls of each; ten thousand of each take some minutes:

    TETHER_LEAK_CALLS=10000 python -m pytest tests/python/test_leaks.py

What is compared are Python's own blocks, what malloc has handed out, and the wrappers that exist.
A name fails only if it grows in every one of several repetitions: caches that fill up are no leak.
"""

from __future__ import annotations

import copy
import ctypes
import dataclasses as std_dataclasses
import functools
import gc
import importlib
import inspect
import os
import pickle
import pkgutil
import subprocess
import sys
import time
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
import tvm_ffi
from support import FREE_THREADED, scaled
from tvm_ffi import access_path, core, dataclasses, libinfo, structural, testing, travel, tying
from tvm_ffi import inspect as ffi_inspect
from tvm_ffi.core import TypeSchema
from tvm_ffi.cpp import to_cpp_dtype
from tvm_ffi.dataclasses import py_class
from tvm_ffi.error import TracebackManager
from tvm_ffi.module import ModulePropertyMask
from tvm_ffi.utils import FileLock
from tvm_ffi.utils.kwargs_wrapper import make_kwargs_wrapper, make_kwargs_wrapper_from_signature
from tvm_ffi.utils.unpack_dataclass import unpack_dataclass_to_tuple

CALLS = int(os.environ.get("TETHER_LEAK_CALLS", scaled(60)))
# Times so many calls: caches fill up and stop, at the latest when as much is done again.
REPETITIONS = (1, 1, 2, 4, 8, 16, 64, 256, 256)
SECONDS = 0.02 if CALLS < 5000 else 2.0  # the most one repetition may take, if it can


# ---- measuring ----------------------------------------------------------------------------------


class _MallInfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def _mallinfo() -> Any:
    function = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if function is not None:
        function.restype = _MallInfo
    return function


MALLINFO = _mallinfo()


def used() -> tuple[int, int, int]:
    """Return how much there is: Python's blocks, bytes from malloc, wrappers."""
    stats = tying.stats()
    info = MALLINFO() if MALLINFO is not None else _MallInfo()
    wrappers = stats["live"] + stats["dormant"] + stats["waiting"]
    return sys.getallocatedblocks(), info.uordblks + info.hblkhd, wrappers


def grew(before: tuple[int, ...], calls: int) -> str:
    """Say what has grown by more than a little per call, or nothing."""
    limits = (0.5, 12.0, 0.5)
    # CPython 3.10 makes a cache for every function that was called 1,024 times.
    once = (0, 8192 if sys.version_info < (3, 11) else 0, 0)
    names = ("blocks of Python", "bytes from malloc", "wrappers")
    now = used()
    found = [
        f"{(b - a) / calls:.1f} {name}"
        for a, b, limit, extra, name in zip(before, now, limits, once, names, strict=True)
        if b - a > limit * calls + extra
    ]
    return ", ".join(found)


def leak_of(function: Callable[[], Any], most: int, least: int) -> str:
    """Say what calling `function` keeps, or nothing."""
    function()
    begin = time.perf_counter()
    function()
    calls = max(least, min(most, int(SECONDS / (time.perf_counter() - begin + 1e-9))))
    answer = ""
    for more in REPETITIONS:
        gc.collect()
        before = used()
        for _ in range(calls * more):
            function()
        answer = grew(before, calls * more)
        if answer:
            gc.collect()
            answer = grew(before, calls * more)
        if not answer:
            return ""
    return answer


def raises() -> None:
    """Fail in a callback."""
    raise ValueError("from Python")


def fails(kind: Any, function: Callable[..., Any], *arguments: Any) -> None:
    """Call a function that must raise."""
    try:
        function(*arguments)
    except kind:
        return
    raise AssertionError(f"{function} did not fail")


# ---- values to call things with -----------------------------------------------------------------


@py_class("test_leaks.Point")
class Point(tvm_ffi.Object):
    """A class defined in Python."""

    x: int
    y: Any = None


class Color(dataclasses.IntEnum, type_key="test_leaks.Color"):
    """An enum of our own."""

    red = dataclasses.entry(value=1)
    blue = dataclasses.entry(value=2)


class Name(dataclasses.StrEnum, type_key="test_leaks.Name"):
    """Another one."""

    a = dataclasses.entry(value="a")


class Kind(dataclasses.Enum, type_key="test_leaks.Kind"):
    """One without values."""

    one = dataclasses.auto()


WEIGHT = Kind.def_attr("weight")


class Convertible(tvm_ffi.ObjectConvertible):
    """Becomes an array."""

    def asobject(self) -> Any:
        return tvm_ffi.Array([1])


@py_class("test_leaks.Visited")
class Visited(tvm_ffi.Object):
    """Is visited by what it holds."""

    use: Any

    def __s_visit__(visitor: Any, value: Any) -> Any:
        value.use(visitor)


def with_visitor(use: Callable[[Any], Any]) -> Any:
    return tvm_ffi.structural_walk(Visited(use), lambda value: None)


def with_mutator(use: Callable[[Any], Any]) -> Any:
    def callback(value: Any, mutator: Any) -> Any:
        use(mutator)
        return value

    return tvm_ffi.structural_mutate(["x"], (str, callback))


class LeakError(RuntimeError):
    """Registered again and again."""


LIBRARY = str(libinfo._find_library_by_basename("apache-tvm-ffi", "tvm_ffi_testing"))
SYSTEM = tvm_ffi.system_lib("testing.")
NUMBERS = numpy.arange(6, dtype="float32")
CPU = tvm_ffi.device("cpu", 0)
INFO = testing.TestObjectBase.__tvm_ffi_type_info__
FIELD = INFO.fields[0]
METHOD = INFO.methods[0]
PROPERTY = vars(testing.TestObjectBase)["v_i64"]
PATH = access_path.AccessPath.root().attr("x").array_item(1)


def tensor() -> Any:
    return tvm_ffi.from_dlpack(NUMBERS)


def base() -> Any:
    return testing.TestObjectBase(v_i64=1, v_f64=2.0, v_str="a long enough text")


def raised() -> Any:
    try:
        testing.test_raise_error("ValueError", "a message")
    except ValueError as error:
        return error.__tvm_ffi_error__


def pair() -> Any:
    return testing.TestIntPair(1, 2)


def with_lock(use: Callable[[FileLock], Any]) -> Any:
    lock = FileLock(f"/tmp/test_leaks_{os.getpid()}.lock")
    try:
        return use(lock)
    finally:
        lock.release()


def define_bad_class() -> Any:
    @py_class("test_leaks.Bad")
    class Bad(tvm_ffi.Object):
        x: complex


def register_again(decorate: Any) -> Any:
    return decorate(testing.TestObjectBase)


def seen_class() -> weakref.ref[Any]:
    class Seen:
        pass

    testing.echo(Seen())
    return weakref.ref(Seen)


# An instance of each public class, made anew: what a method does to it goes with it.
@functools.cache
def inspected() -> dict[type, Any]:
    """Return an answer of each kind that tvm_ffi.inspect gives."""
    graph = ffi_inspect.graph(tvm_ffi.List([tvm_ffi.Array([1])]))
    taken = ffi_inspect.snapshot()
    kept = tvm_ffi.List([1])
    found = ffi_inspect.diff(taken)
    del kept
    return {
        type(value): value
        for value in (
            *(graph, graph.nodes[0], graph.edges[0], ffi_inspect.why(base()), taken, found),
            *(found.stayed[0], ffi_inspect.Holder("Python", "[0]", "list of 1")),
            ffi_inspect.Ring(["List", "[0]", "List"], ["List"], True, True),
            ffi_inspect.Collected(1, {"List": 1}, []),
            ffi_inspect.LeakError("1 object stayed", found),
        )
    }


def inspect_cycle() -> None:
    """Make a ring of C++ alone, and free it."""
    with ffi_inspect.recording():
        items = tvm_ffi.List([])
        items.append(items)
        del items
        ffi_inspect.collect_rings(no_cpp_threads=True)


def inspect_block() -> None:
    """Record, and check that nothing stays."""
    with ffi_inspect.no_leaks():
        tvm_ffi.List([tvm_ffi.Array([1]), lambda: None])


def inspect_recording() -> None:
    """Record."""
    ffi_inspect.start_recording()
    tvm_ffi.List([tvm_ffi.Array([1]), lambda: None])
    ffi_inspect.stop_recording()


SAMPLES: dict[Any, Callable[[], Any]] = {
    **{
        cls: functools.partial(lambda name: inspected()[getattr(ffi_inspect, name)], cls.__name__)
        for cls in map(functools.partial(getattr, ffi_inspect), ffi_inspect.__all__)
        if isinstance(cls, type)
    },
    access_path.AccessKind: lambda: access_path.AccessKind.ATTR,
    access_path.AccessPath: lambda: access_path.AccessPath.root().attr("a"),
    access_path.AccessStep: lambda: PATH.to_steps()[0],
    core.ArrayBase: lambda: tvm_ffi.Array([1, "a long enough text", 2.5]),
    core.ByteArrayArg: lambda: core.ByteArrayArg(b"abc"),
    core.Bytes: lambda: core.Bytes(b"abc"),
    core.CAny: lambda: core.CAny(1),
    core.CContainerBase: lambda: tvm_ffi.Array([1]),
    core.CObject: base,
    core.DLTensorTestWrapper: lambda: core.DLTensorTestWrapper(tensor()),
    core.DataType: lambda: core.DataType("float32"),
    core.DictBase: lambda: tvm_ffi.Dict({1: "a"}),
    core.Error: raised,
    core.FFIProperty: lambda: core.FFIProperty(FIELD.getter, FIELD.setter, False),
    core.FieldGetter: lambda: FIELD.getter,
    core.MethodDescriptor: lambda: testing.TestObjectBase.__dict__["add_i64"],
    core.Initializer: lambda: testing.TestIntPair.__init__,
    core.FieldSetter: lambda: FIELD.setter,
    core.ListBase: lambda: tvm_ffi.List([1, 2]),
    core.MapBase: lambda: tvm_ffi.Map({1: "a"}),
    core.ObjectRValueRef: lambda: base()._move(),
    core.OpaquePyObject: lambda: core._convert_to_opaque_object(object()),
    core.PyNativeObject: lambda: core.Bytes(b"abc"),
    core.String: lambda: testing.echo("a long enough text"),
    core.TypeField: lambda: core._raw_type_info(INFO.type_index) and FIELD,
    core.TypeInfo: lambda: core.TypeInfo(
        None, INFO.type_index, INFO.type_key, list(INFO.type_ancestors), [], []
    ),
    core.TypeMethod: lambda: METHOD,
    core.TypeSchema: lambda: TypeSchema.from_annotation(list[int]),
    dataclasses.Enum: lambda: Kind.one,
    dataclasses.EnumAttrMap: lambda: WEIGHT,
    dataclasses.EnumState: lambda: dataclasses.EnumState(),
    dataclasses.Field: lambda: dataclasses.field(default=1),
    dataclasses.IntEnum: lambda: Color.red,
    dataclasses.StrEnum: lambda: Name.a,
    dataclasses.init_property: lambda: dataclasses.init_property(lambda self: 1),
    tvm_ffi.Array: lambda: tvm_ffi.Array([1, "a long enough text"]),
    tvm_ffi.DLDeviceType: lambda: tvm_ffi.DLDeviceType.kDLCPU,
    tvm_ffi.DefRegionKind: lambda: next(iter(structural.DefRegionKind)),
    tvm_ffi.Device: lambda: tvm_ffi.Device("cpu", 0),
    tvm_ffi.Dict: lambda: tvm_ffi.Dict({"a": 1, 2: tvm_ffi.Array([1])}),
    tvm_ffi.Function: lambda: tvm_ffi.convert(lambda x=1: x),
    tvm_ffi.List: lambda: tvm_ffi.List([1, "a long enough text"]),
    tvm_ffi.Map: lambda: tvm_ffi.Map({"a": 1, 2: tvm_ffi.Array([1])}),
    tvm_ffi.Module: lambda: SYSTEM,
    tvm_ffi.Object: base,
    tvm_ffi.ObjectConvertible: Convertible,
    tvm_ffi.Shape: lambda: tvm_ffi.Shape((1, 2)),
    tvm_ffi.StreamContext: lambda: tvm_ffi.use_raw_stream(CPU, 0),
    tvm_ffi.InplaceMode: lambda: next(iter(structural.InplaceMode)),
    tvm_ffi.StructuralKey: lambda: tvm_ffi.StructuralKey([1, 2]),
    tvm_ffi.StructuralMutator: lambda: with_mutator(lambda mutator: None),
    tvm_ffi.StructuralVisitor: lambda: with_visitor(lambda visitor: None),
    tvm_ffi.Tensor: tensor,
    tvm_ffi.VisitInterrupt: lambda: tvm_ffi.VisitInterrupt(1),
    tvm_ffi.WalkOrder: lambda: next(iter(structural.WalkOrder)),
    tvm_ffi.WalkResult: lambda: next(iter(structural.WalkResult)),
    tvm_ffi.dtype: lambda: tvm_ffi.dtype("float32"),
    ModulePropertyMask: lambda: ModulePropertyMask(1),
    TracebackManager: TracebackManager,
    FileLock: lambda: FileLock("/tmp/test_leaks_unused.lock"),
    testing.TestCompare: lambda: testing.TestCompare(1, "a", 2),
    testing.TestCustomCompare: lambda: testing.TestCustomCompare(1, "a"),
    testing.TestCustomHash: lambda: testing.TestCustomHash(1, "a"),
    testing.TestEqWithoutHash: lambda: testing.TestEqWithoutHash(1, "a"),
    testing.TestFrozenCxx: None,
    testing.TestHash: lambda: testing.TestHash(1, "a", 2),
    testing.TestIntPair: pair,
    testing.TestNonCopyable: lambda: testing.TestNonCopyable(1),
    testing.TestObjectBase: base,
    testing.TestObjectDerived: lambda: testing.TestObjectDerived(
        v_i64=1, v_f64=2.0, v_str="a", v_map={1: 2}, v_array=[1]
    ),
    testing.TestObjectPtrHolder: lambda: testing.TestObjectPtrHolder(base(), None),
}

# Methods that need arguments: by name, or by class and name where that differs. A function is given
# the instance.
ARGUMENTS: dict[str, Any] = {
    "__add__": lambda s: s + s,
    "__and__": lambda s: s & s,
    "__call__": (),
    "__class_getitem__": lambda s: type(s)[int],
    "__contains__": (1,),
    "__deepcopy__": lambda s: copy.deepcopy(s),
    "__delitem__": (0,),
    "__enter__": lambda s: s.__enter__() and s.__exit__(None, None, None),
    "__eq__": lambda s: s == s,
    "__exit__": lambda s: s.__enter__() and s.__exit__(None, None, None),
    "__format__": ("",),
    "__ge__": lambda s: s.__ge__(s),
    "__getitem__": (0,),
    "__gt__": lambda s: s.__gt__(s),
    "__iadd__": lambda s: s.__iadd__([1]),
    "__ior__": lambda s: s.__ior__({1: 2}),
    "__iter__": lambda s: list(s),
    "__le__": lambda s: s.__le__(s),
    "__lt__": lambda s: s.__lt__(s),
    "__ne__": lambda s: s != s,
    "__or__": lambda s: s | s,
    "__radd__": lambda s: s.__radd__([1]),
    "__rand__": lambda s: 1 & s,
    "__reduce_ex__": (4,),
    "__reversed__": lambda s: list(reversed(s)),
    "__ror__": lambda s: s.__ror__({1: 2}),
    "__rxor__": lambda s: 1 ^ s,
    "__setitem__": (0, 1),
    "__xor__": lambda s: s ^ s,
    "AccessPath.is_prefix_of": (PATH,),
    "AccessPath.map_item": ("k",),
    "AccessPath.map_item_missing": ("k",),
    "AccessPath.array_item": (1,),
    "AccessPath.array_item_missing": (1,),
    "AccessPath.attr": ("a",),
    "AccessPath.attr_missing": ("a",),
    "CObject.__init_handle_by_constructor__": lambda s: s.__init_handle_by_constructor__(
        testing.TestObjectBase.__tvm_ffi_type_info__ and tvm_ffi.get_global_func("ffi.Array"), 1
    ),
    "CObject.__move_handle_from__": lambda s: core.Object.__new__(core.Object).__move_handle_from__(
        s
    ),
    "CObject.__setattr__": lambda s: fails(AttributeError, s.__setattr__, "nothing", 1),
    "CObject.__setstate__": lambda s: core._new_object(type(s)).__setstate__(s.__getstate__()),
    "CObject.is_": lambda s: s.is_(s),
    "CObject.same_as": lambda s: s.same_as(s),
    "DLTensorTestWrapper.__tvm_ffi_env_stream__": (),
    "Dict.__delitem__": ("a",),
    "Dict.get": ("a",),
    "Dict.pop": ("a",),
    "Dict.setdefault": ("b", 1),
    "Dict.update": ({3: 4},),
    "DictBase.__delitem__": (1,),
    "DictBase.__getitem__": (1,),
    "DictBase.__setitem__": (1, 2),
    "Dict.__getitem__": ("a",),
    "Enum.get": lambda s: Kind.get("one"),
    "Enum.def_attr": lambda s: Kind.def_attr("weight"),
    "Device.index": lambda s: s.index,
    "Enum.attr_dict": lambda s: Kind.attr_dict,
    "Enum.all_entries": lambda s: list(Kind.all_entries()),
    "EnumAttrMap.__contains__": (Kind.one,),
    "EnumAttrMap.__getitem__": lambda s: s.__setitem__(Kind.one, 1) or s[Kind.one],
    "EnumAttrMap.__setitem__": (Kind.one, 1),
    "EnumAttrMap.get": (Kind.one,),
    "Error.update_backtrace": ('  File "x", line 1, in f\n',),
    "FFIProperty.__delete__": lambda s: fails(AttributeError, s.__delete__, base()),
    "FFIProperty.__get__": lambda s: s.__get__(base(), testing.TestObjectBase),
    "FFIProperty.__set__": lambda s: s.__set__(base(), 3),
    "FFIProperty.set": lambda s: s.set(base(), 3),
    "FieldGetter.__call__": lambda s: s(base()),
    "MethodDescriptor.__call__": lambda s: (
        s(base(), 1),
        fails(TypeError, s, 3),
        fails(TypeError, s),
    ),
    "MethodDescriptor.__getattribute__": lambda s: (s.__module__, s.__signature__),
    "MethodDescriptor.__get__": lambda s: s.__get__(base(), None)(1),
    "MethodDescriptor.__reduce__": (),
    "Initializer.__call__": lambda s: (
        s(testing.TestIntPair.__new__(testing.TestIntPair), 1, 2),
        s(testing.TestIntPair(1, 2), 3, b=4),
        fails(TypeError, s, 3),
        fails(TypeError, s),
    ),
    "Initializer.__getattribute__": lambda s: (s.__module__, s.__signature__, s.__code__),
    "Initializer.__setattr__": lambda s: setattr(s, "note", 1),
    "Initializer.__delattr__": lambda s: (setattr(s, "note", 1), delattr(s, "note")),
    "Initializer.__get__": lambda s: s.__get__(testing.TestIntPair(1, 2), None)(1, 2),
    "Initializer.__reduce__": (),
    "FieldSetter.__call__": lambda s: s(base(), 2),
    "FileLock.__enter__": lambda s: with_lock(lambda k: k.__enter__()),
    "FileLock.__exit__": lambda s: with_lock(
        lambda k: k.__enter__() and k.__exit__(None, None, None)
    ),
    "FileLock.acquire": lambda s: with_lock(lambda k: k.acquire()),
    "FileLock.blocking_acquire": lambda s: with_lock(lambda k: k.blocking_acquire(1)),
    "Function.__call__": (1,),
    "Function.__from_extern_c__": lambda s: tvm_ffi.Function.__from_extern_c__(
        testing.get_add_one_c_symbol()
    )(1),
    "Function.__from_mlir_packed_safe_call__": lambda s: (
        tvm_ffi.Function.__from_mlir_packed_safe_call__(testing.get_mlir_add_one_c_symbol())(1)
    ),
    "IntEnum.__ffi_convert__": lambda s: None,
    "IntEnum.__replace__": lambda s: fails(TypeError, s.__replace__),
    "StrEnum.__replace__": lambda s: fails(TypeError, s.__replace__),
    "StrEnum.__ffi_convert__": lambda s: None,
    "TestIntPair.__ffi_convert__": lambda s: None,
    "init_property.__get__": lambda s: s.__get__(None, Point),
    "init_property.__set_name__": (Point, "x"),
    "Map.get": ("a",),
    "Map.__getitem__": ("a",),
    "MapBase.__getitem__": (1,),
    "Module.__call__": lambda s: fails(AttributeError, s, 1),
    "Module.__getattr__": ("add_one",),
    "Module.__getitem__": ("add_one",),
    "Module.get_function": ("add_one",),
    "Module.__dir__": (),
    "Module.get_function_doc": ("add_one",),
    "Module.get_function_metadata": ("add_one",),
    "Module.implements_function": ("add_one",),
    "Module.import_module": lambda s: s.clear_imports(),
    "Module.write_to_file": lambda s: fails(Exception, s.write_to_file, "/nowhere/x"),
    "PyNativeObject.__init_cached_object_by_constructor__": lambda s: (
        s.__init_cached_object_by_constructor__(tvm_ffi.get_global_func("ffi.Array"), 1)
    ),
    "StructuralMutator.__init__": lambda s: None,
    "StructuralMutator.def_region_kind": lambda s: with_mutator(lambda m: m.def_region_kind()),
    "StructuralMutator.default_mutate": lambda s: with_mutator(lambda m: m.default_mutate([1])),
    "StructuralMutator.mutate": lambda s: with_mutator(lambda m: m.mutate(1)),
    "StructuralMutator.var_remap_get": lambda s: with_mutator(
        lambda m: m.var_remap_get(tvm_ffi.Array([1]))
    ),
    "StructuralMutator.var_remap_set": lambda s: with_mutator(
        lambda m: m.var_remap_set(tvm_ffi.Array([1]), 2)
    ),
    "StructuralMutator.with_def_region_kind": lambda s: with_mutator(
        lambda m: m.with_def_region_kind(next(iter(structural.DefRegionKind)), lambda: m.mutate(1))
    ),
    "StructuralVisitor.__init__": lambda s: None,
    "StructuralVisitor.default_visit": lambda s: with_visitor(lambda v: v.default_visit([1])),
    "StructuralVisitor.def_region_kind": lambda s: with_visitor(lambda v: v.def_region_kind),
    "StructuralVisitor.visit": lambda s: with_visitor(lambda v: v.visit([1])),
    "StructuralVisitor.with_def_region_kind": lambda s: with_visitor(
        lambda v: v.with_def_region_kind(next(iter(structural.DefRegionKind)), lambda: v.visit(1))
    ),
    "TestNonCopyable.__copy__": lambda s: fails(Exception, copy.copy, s),
    "TestNonCopyable.__deepcopy__": lambda s: fails(Exception, copy.copy, s),
    "TestNonCopyable.__replace__": lambda s: fails(Exception, copy.copy, s),
    "TestObjectBase.add_i64": (1,),
    "TracebackManager.append_traceback": (None, "f.py", 3, "f"),
    "TypeField.as_property": (testing.TestObjectBase,),
    "TypeField.normalize_value": (1,),
    "TypeMethod.as_callable": (testing.TestObjectBase,),
    "TypeSchema.check_value": ([1],),
    "TypeSchema.convert": ([1],),
    "TypeSchema.from_annotation": lambda s: TypeSchema.from_annotation(testing.TestObjectDerived),
    "TypeSchema.from_json_obj": ({"type": "int"},),
    "TypeSchema.from_json_str": ('{"type": "int"}',),
    "TypeSchema.from_type_index": (INFO.type_index,),
    "TypeSchema.is_subtype_of": (testing.TestObjectBase,),
    "__ffi_compare__": lambda s: None,  # of the type: what the comparisons call
    "__ffi_eq__": lambda s: None,
    "__ffi_hash__": lambda s: None,
    "append": (1,),
    "count": (1,),
    "dtype.from_dlpack_data_type": lambda s: tvm_ffi.dtype.from_dlpack_data_type((2, 32, 1)),
    "dtype.with_lanes": (4,),
    "dtype.is_dtype": lambda s: s.is_dtype,
    "extend": ([1, 2],),
    "index": (1,),
    "insert": (0, 1),
    "remove": (1,),
    "Tensor.size": (0,),
    "__from_tvm_ffi_object__": lambda s: None,  # called by the conversion of a result
}

# Classes whose `__new__` is that of a value, and what makes one.
T = tensor
PLAIN = std_dataclasses.make_dataclass("Plain", ["x"])([1])
SIGNATURE = inspect.signature(lambda a, b=1: None)
FUNCTIONS: dict[str, Callable[[], Any]] = {
    "collect_rings": inspect_cycle,
    "diff": lambda: ffi_inspect.diff(*[inspected()[ffi_inspect.Snapshot]] * 2),
    "graph": lambda: ffi_inspect.graph(tvm_ffi.List([tvm_ffi.Array([1]), lambda: None])),
    "is_recording": ffi_inspect.is_recording,
    "no_leaks": inspect_block,
    "recording": inspect_recording,
    "snapshot": lambda: ffi_inspect.snapshot(collect=False),
    "why": lambda: str(ffi_inspect.why(base())),
    "add_one": lambda: testing.add_one(1),
    "asdict": lambda: dataclasses.asdict(Point(1, [1, base()])),
    "astuple": lambda: dataclasses.astuple(Point(1, [1])),
    "auto": lambda: dataclasses.auto(),
    "c_class": lambda: fails(ValueError, dataclasses.c_class("test_leaks.nobody"), Point),
    "convert": lambda: [
        tvm_ffi.convert(value)
        for value in (1, "a long enough text", [1, [2]], {1: 2}, len, base(), b"x", None, CPU)
    ],
    "convert_func": lambda: tvm_ffi.convert_func(lambda x: x)(1),
    "create_object": lambda: testing.create_object(
        "testing.TestObjectBase", v_i64=1, v_f64=1.0, v_str="a"
    ),
    "device": lambda: (tvm_ffi.device("cpu", 0), tvm_ffi.device("cuda:1")),
    "enabled": tying.enabled,
    "entry": lambda: dataclasses.entry(value=1),
    "field": lambda: dataclasses.field(default=1),
    "fields": lambda: dataclasses.fields(Point),
    "find_cmake_path": libinfo.find_cmake_path,
    "make_kwargs_wrapper": lambda: make_kwargs_wrapper(max, ["a", "b"], (2,))(a=1),
    "make_kwargs_wrapper_from_signature": lambda: make_kwargs_wrapper_from_signature(
        max, SIGNATURE
    )(1, b=2),
    "to_cpp_dtype": lambda: to_cpp_dtype("int8"),
    "unpack_dataclass_to_tuple": lambda: unpack_dataclass_to_tuple([PLAIN, {"a": PLAIN}]),
    "find_dlpack_include_path": libinfo.find_dlpack_include_path,
    "find_include_path": libinfo.find_include_path,
    "find_libtvm_ffi": libinfo.find_libtvm_ffi,
    "find_python_helper_include_path": libinfo.find_python_helper_include_path,
    "find_source_path": libinfo.find_source_path,
    "find_cython_lib": libinfo.find_cython_lib,
    "find_windows_implib": lambda: fails(RuntimeError, libinfo.find_windows_implib),
    "from_dlpack": T,
    "from_json_graph_str": lambda: tvm_ffi.serialization.from_json_graph_str(
        tvm_ffi.serialization.to_json_graph_str(tvm_ffi.Array([1, base()]))
    ),
    "gen_abi_cpp": lambda: dataclasses.gen_abi_cpp("test_leaks.Point"),
    "get_first_structural_mismatch": lambda: tvm_ffi.get_first_structural_mismatch([1, 2], [1, 3]),
    "get_global_func": lambda: tvm_ffi.get_global_func("testing.add_one"),
    "get_global_func_metadata": lambda: tvm_ffi.get_global_func_metadata("testing.add_one"),
    "get_raw_stream": lambda: tvm_ffi.get_raw_stream(CPU),
    "get_registered_type_keys": tvm_ffi.registry.get_registered_type_keys,
    "include_paths": libinfo.include_paths,
    "init_ffi_api": lambda: tvm_ffi.init_ffi_api("testing", __name__),
    "is_dataclass": lambda: dataclasses.is_dataclass(Point),
    "list_global_func_names": tvm_ffi.registry.list_global_func_names,
    "make_unregistered_object": testing.make_unregistered_object,
    "make_visit_region_graph": lambda: testing.make_visit_region_graph(True),
    "method": lambda: tvm_ffi.method(lambda self: 1),
    "object_repr": lambda: core.object_repr(tvm_ffi.Array([1, base()])),
    "py_class": lambda: fails(TypeError, define_bad_class),
    "register_error": lambda: tvm_ffi.register_error("LeakError", LeakError),
    "register_global_func": lambda: tvm_ffi.register_global_func(
        "test_leaks.f", lambda x: x, override=True
    ),
    "register_object": lambda: fails(
        ValueError, tvm_ffi.register_object("test_leaks.nobody"), Point
    ),
    "remove_global_func": lambda: (
        tvm_ffi.register_global_func("test_leaks.g", lambda x: x, override=True),
        tvm_ffi.remove_global_func("test_leaks.g"),
    ),
    "replace": lambda: dataclasses.replace(Point(1), x=2),
    "requires_library": lambda: tvm_ffi.requires_library("test_leaks.", "lib.so"),
    "run_with_gpu_lock": lambda: testing.run_with_gpu_lock(int, 1),
    "share": lambda: pickle.loads(pickle.dumps([base(), tvm_ffi.Array([T()]), travel.share(T())])),
    "state": lambda: tying.state(base()),
    "stats": tying.stats,
    "structural_equal": lambda: tvm_ffi.structural_equal([1, {"a": 2}], [1, {"a": 2}]),
    "structural_hash": lambda: tvm_ffi.structural_hash([1, {"a": Point(1)}]),
    "structural_map": lambda: tvm_ffi.structural_map([1, [2]], (int, lambda value: value + 1)),
    "structural_mutate": lambda: with_mutator(lambda mutator: None),
    "structural_visit": lambda: tvm_ffi.structural_visit([1], lambda value, visitor: None),
    "structural_walk": lambda: tvm_ffi.structural_walk(tvm_ffi.Array([1]), lambda value: None),
    "system_lib": lambda: tvm_ffi.system_lib("testing."),
    "to_json_graph_str": lambda: tvm_ffi.serialization.to_json_graph_str([1, base()]),
    "use_raw_stream": lambda: tvm_ffi.use_raw_stream(CPU, 0),
    "use_torch_stream": lambda: None if "torch" not in sys.modules else tvm_ffi.use_torch_stream(),
    # functions of the testing library
    "TestIntPairSum": lambda: testing.TestIntPairSum(pair()),
    "add_one_short": lambda: testing.add_one_short(1),
    "apply": lambda: testing.apply(lambda x: x, 1),
    "catch_error": lambda: testing.catch_error(raises),
    "catch_in_thread": lambda: testing.catch_in_thread(tvm_ffi.List(), raises),
    "keep_and_throw": lambda: fails(ValueError, testing.keep_and_throw, tvm_ffi.List(), raises),
    "throw_error": lambda: fails(
        ValueError, testing.throw_error, core.Error("ValueError", "m", "")
    ),
    "echo": lambda: [testing.echo(v) for v in (1, "text, long enough", b"x", [1], {1: 2}, base())],
    "enum_variant_get": lambda: None,
    "get_add_one_c_symbol": lambda: testing.get_add_one_c_symbol(),
    "get_mlir_add_one_c_symbol": lambda: testing.get_mlir_add_one_c_symbol(),
    "make_array_with_mixed": lambda: testing.make_array_with_mixed(T(), 1),
    "make_array_with_tensor": lambda: testing.make_array_with_tensor(T()),
    "make_dict_with_tensor": lambda: testing.make_dict_with_tensor(T()),
    "make_empty_array_with_tensor_input": lambda: testing.make_empty_array_with_tensor_input(T()),
    "make_list_with_tensor": lambda: testing.make_list_with_tensor(T(), 1),
    "make_map_with_tensor": lambda: testing.make_map_with_tensor(T()),
    "make_nested_array_with_tensor": lambda: testing.make_nested_array_with_tensor(T()),
    "make_nested_map_with_tensor": lambda: testing.make_nested_map_with_tensor(T(), T()),
    "nop": lambda: testing.nop(1, "a"),
    "object_use_count": lambda: testing.object_use_count(base()),
    "optional_tensor_view_has_value": lambda: testing.optional_tensor_view_has_value(T()),
    "schema_arr_map_opt": lambda: testing.schema_arr_map_opt([1], {"a": [1]}, "x"),
    "schema_id_any": lambda: testing.schema_id_any(base()),
    "schema_id_arr": lambda: testing.schema_id_arr([1]),
    "schema_id_arr_int": lambda: testing.schema_id_arr_int([1]),
    "schema_id_arr_obj": lambda: testing.schema_id_arr_obj([base()]),
    "schema_id_arr_str": lambda: testing.schema_id_arr_str(["a", "a long enough text"]),
    "schema_id_bool": lambda: testing.schema_id_bool(True),
    "schema_id_bytes": lambda: testing.schema_id_bytes(b"a long enough text"),
    "schema_id_device": lambda: testing.schema_id_device(CPU),
    "schema_id_dict_str_int": lambda: testing.schema_id_dict_str_int(tvm_ffi.Dict({"a": 1})),
    "schema_id_dict_str_str": lambda: testing.schema_id_dict_str_str(tvm_ffi.Dict({"a": "b"})),
    "schema_id_dltensor": lambda: fails(RuntimeError, testing.schema_id_dltensor, T()),
    "schema_id_dtype": lambda: testing.schema_id_dtype(tvm_ffi.dtype("int8")),
    "schema_id_float": lambda: testing.schema_id_float(1.5),
    "schema_id_func": lambda: testing.schema_id_func(lambda: 1),
    "schema_id_func_typed": lambda: testing.schema_id_func_typed(lambda: 1),
    "schema_id_int": lambda: testing.schema_id_int(1),
    "schema_id_list_int": lambda: testing.schema_id_list_int(tvm_ffi.List([1])),
    "schema_id_list_obj": lambda: testing.schema_id_list_obj(tvm_ffi.List([base()])),
    "schema_id_list_str": lambda: testing.schema_id_list_str(tvm_ffi.List(["a"])),
    "schema_id_map": lambda: testing.schema_id_map({1: 2}),
    "schema_id_map_str_int": lambda: testing.schema_id_map_str_int({"a": 2}),
    "schema_id_map_str_obj": lambda: testing.schema_id_map_str_obj({"a": base()}),
    "schema_id_map_str_str": lambda: testing.schema_id_map_str_str({"a": "b"}),
    "schema_id_object": lambda: testing.schema_id_object(base()),
    "schema_id_opt_int": lambda: testing.schema_id_opt_int(None),
    "schema_id_opt_obj": lambda: testing.schema_id_opt_obj(base()),
    "schema_id_opt_str": lambda: testing.schema_id_opt_str("a"),
    "schema_id_string": lambda: testing.schema_id_string("a long enough text"),
    "schema_id_tensor": lambda: testing.schema_id_tensor(T()),
    "schema_id_variant_int_str": lambda: testing.schema_id_variant_int_str("a"),
    "schema_no_args": lambda: testing.schema_no_args(),
    "schema_no_args_no_return": lambda: testing.schema_no_args_no_return(),
    "schema_no_return": lambda: testing.schema_no_return(1),
    "schema_packed": lambda: testing.schema_packed(1, 2),
    "schema_tensor_view_input": lambda: testing.schema_tensor_view_input(T()),
    "schema_variant_mix": lambda: testing.schema_variant_mix([1]),
    "test_raise_error": lambda: fails(ValueError, testing.test_raise_error, "ValueError", "m"),
}

# Names that are in the table without being called.
NOT_CALLED = {
    "pytest_configure": "called by pytest",
    "rings": "looks as collect_rings does, which is called",
    "start_recording": "recording, which is called, calls it",
    "stop_recording": "recording, which is called, calls it",
    "build": "starts a compiler",
    "build_inline": "starts a compiler",
    "build_ninja": "starts a process",
    "embed_cubin": "starts processes",
    "load": "starts a compiler, and the module stays loaded",
    "load_inline": "starts a compiler, and the module stays loaded",
    "nvrtc_compile": "needs a GPU",
    "load_lib_ctypes": "every ctypes.CDLL is a class, whose tables in CPython grow now and then",
    "load_lib_module": "a module stays loaded unless the caller says otherwise",
    "load_module": "a module stays loaded unless the caller says otherwise",
    "main": "prints; report, which it prints, is called by the doctor's own tests",
    "on_fields_resolved": "a part of py_class, which defines a type for good",
    "report": "starts processes",
    "run_check_signal": "prints",
    "write_stand_in": "writes files",
    "CObject.__del__": "the interpreter calls it",
    "TestFrozenCxx": "its objects cannot be made from Python",
    "Function.__vectorcalloffset__": "a number for the interpreter",
}
if FREE_THREADED and sys.version_info < (3, 14):
    NOT_CALLED["catch_in_thread"] = "from the second thread on this CPython keeps every class"
# What looks at everything that is in memory.
WALKS = {"collect_rings", "diff", "graph", "no_leaks", "recording", "snapshot", "why"}
# Not with bad arguments: they would wait, or mean something.
ONLY_GOOD = {"FileLock", "py_class", "use_torch_stream", "gen_abi_cpp"}
ONLY_GOOD |= {"Graph", "diff", "graph", "recording", "snapshot", "collect_rings", "no_leaks", "why"}

_NOT_METHODS = {"__module__", "__doc__", "__dict__", "__weakref__", "__slots__", "__annotations__"}
_NOT_METHODS |= {"__init_subclass__", "__subclasshook__", "__weaklistoffset__", "__dictoffset__"}
_NOT_METHODS |= {"__class_getitem__", "__abstractmethods__", "__annotate_func__", "__annotate__"}


# ---- the names ----------------------------------------------------------------------------------


def public_modules() -> Iterator[types.ModuleType]:
    yield tvm_ffi
    for found in pkgutil.walk_packages(tvm_ffi.__path__, "tvm_ffi."):
        # Commands: plain Python in a process of its own, which then ends.
        is_command = found.name.startswith(("tvm_ffi.stub", "tvm_ffi.new"))
        if not is_command and not any(part.startswith("_") for part in found.name.split(".")):
            yield importlib.import_module(found.name)


def public_objects() -> dict[str, Any]:
    """Return every callable that a public module of the package offers, by its short name."""
    found: dict[str, Any] = {}
    for module in public_modules():
        names = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
        for name in names:
            value = getattr(module, name)
            ours = str(getattr(value, "__module__", None)).startswith("tvm_ffi")
            if callable(value) and ours and value not in found.values():
                found[name] = value
    return found


def is_method(name: str, value: Any) -> bool:
    is_public = name[0] != "_" or (name.startswith("__") and name.endswith("__"))
    return is_public and name not in _NOT_METHODS and hasattr(type(value), "__get__")


def methods_of(cls: type, public: set[Any]) -> dict[str, Any]:
    """Return what a class defines, also through private bases and those of collections.abc."""
    found: dict[str, Any] = {}
    for owner in cls.__mro__:
        is_ours = owner is cls or (
            str(owner.__module__).startswith("tvm_ffi") and owner not in public
        )
        if not is_ours and owner.__module__ != "collections.abc":
            continue
        for name, value in vars(owner).items():
            if is_method(name, value):
                found.setdefault(name, value)
    return found


def all_names() -> Iterator[tuple[str, Any, str]]:
    """Yield key, object or class, and the name of the method or nothing."""
    objects = public_objects()
    public = {value for value in objects.values() if isinstance(value, type)}
    for name, value in sorted(objects.items()):
        if not isinstance(value, type):
            yield name, value, ""
            continue
        for method in methods_of(value, public):
            yield f"{name}.{method}", value, method


# Called without arguments, or made anew, or read.
_PLAIN = {"__repr__", "__str__", "__hash__", "__len__", "__reduce__", "__copy__", "__getstate__"}
_PLAIN |= {"__chandle__", "__ctypes_handle__", "__dlpack__", "__dlpack_device__", "__invert__"}
_PLAIN |= {"__replace__", "__tvm_ffi_value__", "__device_type_name__", "__bool__"}
_MAKING = {"__init__", "__new__", "__ffi_init__"}


def call_of(key: str, owner: Any, method: str) -> Callable[[], Any] | None:
    """Return what calls this name with good arguments, None if that is not known."""
    if not method:
        return FUNCTIONS.get(key)
    make = SAMPLES.get(owner)
    if make is None:
        return None
    if method in _MAKING:
        return make
    how = ARGUMENTS.get(key, ARGUMENTS.get(method))
    if callable(how):
        return lambda: how(make())
    if how is not None:
        return lambda: getattr(make(), method)(*how)
    kind = type(getattr(owner, method, None))
    value = next(vars(base)[method] for base in owner.__mro__ if method in vars(base))
    is_value = not callable(value) and not isinstance(value, (staticmethod, classmethod))
    if is_value or kind.__name__ == "FFIProperty":
        return lambda: getattr(make(), method)
    if method[0] != "_" or method in _PLAIN:
        return lambda: getattr(make(), method)()
    return None


NAMES = list(all_names())


def test_every_public_name_is_in_the_table() -> None:
    unknown = [
        key
        for key, owner, method in NAMES
        if key not in NOT_CALLED
        and getattr(owner, "__name__", "") not in NOT_CALLED
        and call_of(key, owner, method) is None
    ]
    assert not unknown, "test_leaks.py does not say how to call these"
    keys = {key for key, _, _ in NAMES} | {getattr(owner, "__name__", "") for _, owner, _ in NAMES}
    assert not {name for name in (*FUNCTIONS, *NOT_CALLED) if name not in keys}, "gone"


# ---- the calls ----------------------------------------------------------------------------------


class Nothing:
    """A value that fits nowhere, and on which nothing can be stored."""

    __slots__ = ()


def bad_calls(function: Any, first: Any) -> None:
    """Call `function` in ways that must fail, and leave nothing behind either."""
    bad = Nothing()
    given = [(), (bad,), (bad, bad), (bad,) * 9, ("\ud800",), (2**70,), (None, None)]
    if first is not None:
        given += [(first,) + more for more in given]
    for arguments in given:
        try:
            function(*arguments)
        except Exception:
            pass
    try:
        function(nonsense=1)
    except Exception:
        pass


def bad_call_of(key: str, owner: Any, method: str) -> Callable[[], Any]:
    if not method:
        return lambda: bad_calls(owner, None)
    function = getattr(owner, method)
    make = SAMPLES[owner]
    value = next(vars(base)[method] for base in owner.__mro__ if method in vars(base))
    if not callable(function):
        return lambda: bad_calls(getattr(value, "__get__", None), None)
    if isinstance(value, (staticmethod, classmethod)) or method == "__new__":
        return lambda: bad_calls(function, owner)
    return lambda: bad_calls(function, make())


@pytest.fixture(scope="module", autouse=True)
def quick_collections() -> Iterator[None]:
    """Let the collections of this file look at what is made here only."""
    gc.collect()
    if not FREE_THREADED:
        gc.freeze()
    yield
    if not FREE_THREADED:
        gc.unfreeze()


def in_own_process(test: Callable[[], None]) -> Callable[[], None]:
    """Run a test in a process of its own, where only what it calls changes what is counted.

    malloc counts the blocks that a thread keeps for itself as handed out, so it keeps none here.
    And free-threaded 3.13 makes every function and class immortal once a second thread has run.
    """
    if "TETHER_LEAKS_ALONE" in os.environ:
        return test

    @functools.wraps(test)
    def run() -> None:
        command = [sys.executable, "-m", "pytest", "-q", f"{__file__}::{test.__name__}"]
        environment = {**os.environ, "TETHER_LEAKS_ALONE": "1"}
        environment["GLIBC_TUNABLES"] = "glibc.malloc.tcache_count=0"
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout

    return run


def leaks(
    calls: dict[str, Callable[[], Any]], most: int = CALLS, least: int = 20
) -> dict[str, str]:
    found = {key: leak_of(call, most, least) for key, call in calls.items()}
    return {key: text for key, text in found.items() if text}


@in_own_process
def test_calls_keep_nothing() -> None:
    calls = {}
    for key, owner, method in NAMES:
        call = call_of(key, owner, method)
        if call is not None and key not in NOT_CALLED and key not in WALKS:
            calls[key] = call
    assert not leaks(calls), "kept by each call"


@in_own_process
def test_walks_through_the_process_keep_nothing() -> None:
    """The larger the process, the longer each of these takes."""
    calls = {key: FUNCTIONS[key] for key in sorted(WALKS)}
    assert not leaks(calls, least=5), "kept by each call"


@in_own_process
def test_bad_calls_keep_nothing() -> None:
    calls = {}
    for key, owner, method in NAMES:
        is_known = key not in NOT_CALLED and call_of(key, owner, method) is not None
        if is_known and key.split(".")[0] not in ONLY_GOOD:
            calls[key] = bad_call_of(key, owner, method)
    assert not leaks(calls, CALLS // 10), "kept by each call"  # each makes more than ten


@py_class("test_leaks.Ring")
class Ring(tvm_ffi.Object):
    """What refers to itself, alone and through others, and how many times."""

    me: Any = None
    others: Any = None
    names: dict[str, Any] = dataclasses.field(default_factory=dict)


def make_ring(kind: str) -> Any:
    ring = Ring()
    ring.me = ring
    if kind == "containers":
        ring.others = tvm_ffi.Array([tvm_ffi.List([ring]), tvm_ffi.Dict({"a": Ring(ring)})])
    elif kind == "chain":
        for _ in range(5):
            ring.others = Ring(ring, ring.others)
    elif kind == "bad":
        ring.names[1] = ring  # a copy of the field is checked again, and refused
    return tvm_ffi.List([ring])


@in_own_process
def test_copies_of_rings_can_be_collected() -> None:
    """Nobody fetches anything of the copy but its root."""
    kinds = ("alone", "containers", "chain")
    calls = {kind: lambda kind=kind: copy.deepcopy(make_ring(kind)) for kind in kinds}
    assert not leaks(calls), "kept by each call"
    for call in calls.values():
        copied = call()[0]
        assert copied.me is copied


@in_own_process
def test_a_copy_that_fails_leaves_nothing_of_a_ring() -> None:
    calls = {"bad": lambda: fails(TypeError, copy.deepcopy, make_ring("bad"))}
    assert not leaks(calls), "kept by each call"


def test_places_of_generated_code_are_not_kept_for_ever() -> None:
    manager = TracebackManager()
    for number in range(10000):
        manager.append_traceback(None, f"<generated {number}>", 1, "f")
    assert len(manager._functions) <= 4096
