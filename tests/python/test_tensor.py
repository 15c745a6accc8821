# SPDX-License-Identifier: Apache-2.0
"""Tensor: what it shows, how it is tied, and how numpy arrays become one."""

from __future__ import annotations

import copy
import ctypes
import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import foreign
import pytest
import tvm_ffi
from support import (
    WAYS,
    NativeClient,
    assert_same_strides,
    collect,
    make_edges,
    run_python,
    run_threads,
    scaled,
    wait_until,
    watch_death,
)
from tvm_ffi import Array, Dict, List, Tensor, core, from_dlpack, tying
from tvm_ffi.testing import echo

numpy = pytest.importorskip("numpy")
GET = tvm_ffi.get_global_func
VIEW = GET("testing.schema_tensor_view_input")


def make(shape: Any = (2, 3), dtype: str = "float32") -> Tensor:
    return from_dlpack(numpy.zeros(shape, dtype))


# ---- members ------------------------------------------------------------------------------------

ARRAYS: dict[str, Callable[[], Any]] = {
    "matrix": lambda: numpy.arange(12, dtype="float32").reshape(3, 4),
    "scalar": lambda: numpy.array(7, "int8"),
    "empty": lambda: numpy.zeros((2, 0, 3), "int16"),
    "one element": lambda: numpy.zeros((1, 1, 1)),
    "fortran order": lambda: numpy.zeros((4, 5), "uint8", order="F"),
    "every other column": lambda: numpy.zeros((3, 8), "int32")[:, ::2],
    "reversed": lambda: numpy.arange(10, dtype="int64")[::-1],
    "broadcast": lambda: numpy.lib.stride_tricks.as_strided(numpy.zeros(3), (4, 3), (0, 8)),
    "transposed": lambda: numpy.zeros((2, 3, 4), "float16").transpose(2, 0, 1),
    "offset": lambda: numpy.arange(10, dtype="uint64")[4:],
    "complex": lambda: numpy.zeros(3, "complex64"),
    "bool": lambda: numpy.zeros(3, "bool"),
    "32 dimensions": lambda: numpy.zeros((1,) * 32, "int8"),
    "row vector": lambda: numpy.zeros((1, 5), "int8")[:, ::2],
}


def row_major(array: Any) -> bool:
    expected = array.itemsize
    if 0 in array.shape:
        return True
    for extent, stride in reversed(list(zip(array.shape, array.strides, strict=True))):
        if extent != 1 and stride != expected:
            return False
        expected *= extent
    return True


@pytest.mark.parametrize("name", ARRAYS)
def test_members_are_those_of_the_array(name: str) -> None:
    array = ARRAYS[name]()
    for _ in range(3):  # the first array of an element type goes another way
        for tensor in (from_dlpack(array), echo(array), from_dlpack(array.__dlpack__())):
            assert type(tensor) is Tensor
            assert tensor.shape == array.shape and type(tensor.shape) is tuple
            assert_same_strides(tensor, array)
            assert tensor.ndim == array.ndim
            assert tensor.numel() == array.size
            assert tensor.data_ptr() == array.__array_interface__["data"][0]
            assert tensor.device == tvm_ffi.device("cpu")
            assert tensor.__dlpack_device__() == (1, 0)
            assert tensor.is_contiguous() is row_major(array)
            assert [tensor.size(i) for i in range(tensor.ndim)] == list(array.shape)
            assert [tensor.size(i - tensor.ndim) for i in range(tensor.ndim)] == list(array.shape)
            if array.dtype.kind != "c":
                assert tensor.dtype == array.dtype.name and type(tensor.dtype) is tvm_ffi.dtype
                extents = ", ".join(map(str, array.shape))
                assert repr(tensor) == f"{array.dtype.name}[{extents}]@cpu:0"
            back = numpy.from_dlpack(tensor)
            assert back.shape == array.shape and back.dtype == array.dtype
            assert numpy.shares_memory(back, array) == (array.size > 0)


def test_sizes_out_of_range() -> None:
    tensor = make((2, 3))
    for index in (2, -3, 100, -(2**40)):
        text = f"Dimension {index} out of range for tensor with 2 dimensions"
        with pytest.raises(IndexError, match=text):
            tensor.size(index)
    for wrong in ("a", 1.0, None):
        with pytest.raises(TypeError, match="the dimension must be an integer"):
            tensor.size(wrong)  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        tensor.size(2**70)
    assert tensor.size(numpy.int64(1)) == 3


def test_tensors_that_hold_nothing() -> None:
    empty = Tensor()
    assert repr(empty) == "Tensor(chandle=None)"
    for name in ("shape", "strides", "ndim", "dtype", "device"):
        with pytest.raises(ValueError, match="Tensor object has no C\\+\\+ object"):
            getattr(empty, name)
    for use in (
        empty.numel,
        empty.is_contiguous,
        empty.data_ptr,
        empty.__dlpack__,
        empty.__dlpack_device__,
        empty._to_dlpack,
        empty._to_dlpack_versioned,
        lambda: empty.size(0),
        lambda: echo(empty),
        lambda: VIEW(empty),
        lambda: from_dlpack(empty),
    ):
        with pytest.raises(ValueError, match="no C\\+\\+ object"):
            use()


def test_a_tensor_class_around_another_object() -> None:
    odd = Tensor()
    odd.__move_handle_from__(tvm_ffi.Array([1]))
    for use in (lambda: odd.shape, odd.numel, odd.__dlpack__, lambda: from_dlpack(odd)):
        with pytest.raises(TypeError, match="Tensor object holds a `ffi.Array`"):
            use()


def test_tensors_are_not_objects_of_the_reflected_kind() -> None:
    tensor = make()
    assert not isinstance(tensor, tvm_ffi.Object) and isinstance(tensor, core.CObject)
    assert not hasattr(tensor, "_move") and not hasattr(tensor, "__dict__")
    with pytest.raises(AttributeError):
        tensor.x = 1  # type: ignore[attr-defined]
    assert core._type_cls_to_type_info(Tensor).type_key == "ffi.Tensor"
    assert tensor == tensor and tensor != make() and hash(tensor) == tensor.__chandle__()


# ---- numpy --------------------------------------------------------------------------------------


def test_memory_is_shared_both_ways() -> None:
    array = numpy.zeros(4, "int32")
    tensor = from_dlpack(array)
    array[1] = 5
    back = numpy.from_dlpack(tensor)
    assert back.tolist() == [0, 5, 0, 0]
    back[2] = 6
    assert array.tolist() == [0, 5, 6, 0]


def test_the_array_lives_as_long_as_its_tensor() -> None:
    array = numpy.zeros(1000)
    count = sys.getrefcount(array)
    tensor = from_dlpack(array)
    box = tvm_ffi.Array([tensor, array])
    assert sys.getrefcount(array) == count + 2
    dead = weakref.ref(array)
    address = tensor.data_ptr()
    del array
    assert dead() is not None and box[1].data_ptr() == address
    del tensor, box
    assert dead() is None


def test_arguments_are_given_back() -> None:
    array = numpy.zeros(3)
    count = sys.getrefcount(array)
    for _ in range(10):
        VIEW(array)
        with pytest.raises(TypeError):
            GET("testing.add_one")(array)
        assert echo([array, 2**70])[1] == 2**70
        assert type(echo([array, {"a": array}])[0]) is Tensor
    assert sys.getrefcount(array) == count


def test_results_of_callbacks() -> None:
    array = numpy.arange(5)
    result = tvm_ffi.convert(lambda: array)()
    assert type(result) is Tensor and numpy.shares_memory(numpy.from_dlpack(result), array)
    seen: list[Any] = []
    tvm_ffi.convert(seen.append)(array)
    assert type(seen[0]) is Tensor and seen[0].data_ptr() == result.data_ptr()
    assert type(tvm_ffi.convert(array)) is Tensor


def test_arrays_that_cannot_be_shared() -> None:
    fixed = numpy.zeros(3)
    fixed.flags.writeable = False
    bad: dict[str, Any] = {
        "readonly": fixed,
        "dtypes": numpy.zeros(3, "U4"),
        "byte order": numpy.zeros(3, "f4").astype(">f4"),
        "IEEE": numpy.zeros(3, "longdouble"),
        "supports": numpy.zeros(3, object),
        "multiple|itemsize": numpy.zeros(4, "i2,i4")["f1"],
    }
    for text, array in bad.items():
        for use in (echo, VIEW, from_dlpack, tvm_ffi.convert):
            count = sys.getrefcount(array)
            with pytest.raises(BufferError, match=text):
                use(array)
            assert sys.getrefcount(array) == count
    # A known element type does not hide a new defect.
    VIEW(numpy.zeros(3))
    with pytest.raises(BufferError, match="readonly"):
        VIEW(fixed)


def test_arrays_that_change_their_shape_later() -> None:
    array = numpy.zeros((2, 6), "int16")
    tensor = from_dlpack(array)
    array.shape = (3, 4)
    assert tensor.shape == (2, 6) and tensor.strides == (6, 1)


def test_subclasses_and_scalars() -> None:
    class Sub(numpy.ndarray):
        pass

    for array in (numpy.zeros((2, 2)).view(Sub), numpy.ma.zeros((2, 2)).data):
        assert echo(array).shape == (2, 2)
    assert echo(numpy.float32(1.5)) == 1.5 and type(echo(numpy.int8(3))) is int
    assert echo(numpy.bool_(True)) is not None


def test_optional_parameters_take_none_and_arrays() -> None:
    has_value = GET("testing.optional_tensor_view_has_value")
    assert has_value(numpy.zeros(3)) is True and has_value(None) is False
    assert has_value(make()) is True
    assert GET("testing.schema_id_tensor")(None) is None
    with pytest.raises(TypeError, match="Mismatched type on argument #0"):
        VIEW(None)
    with pytest.raises(RuntimeError, match="DLTensor\\* cannot be held in Any"):
        GET("testing.schema_id_dltensor")(make())


def test_numpy_is_not_imported_for_others() -> None:
    program = """
import sys, tvm_ffi
from tvm_ffi.testing import echo
class Fake:
    def __dlpack__(self): raise BufferError("mine")
try:
    echo(Fake())
except BufferError as error:
    print(error, "numpy" in sys.modules, "torch" in sys.modules)
"""
    assert run_python(program) == "mine False False\n"


def test_arrays_of_another_layout_go_the_long_way() -> None:
    """A numpy whose arrays look different inside is never looked into."""
    program = """
import numpy, tvm_ffi
zeros = numpy.zeros
numpy.zeros = lambda *args: zeros((3, 5, 8), "int16")[:, :, 1:]   # not what the probe expects
from tvm_ffi.testing import echo
a = zeros((2, 3))[:, 1:]
t = echo(a)
print(t.shape, t.strides, t.data_ptr() == a.__array_interface__["data"][0])
"""
    assert run_python(program) == "(2, 2) (3, 1) True\n"


# ---- tied ---------------------------------------------------------------------------------------


def test_p1_one_wrapper_per_tensor() -> None:
    tensor = make()
    assert echo(tensor) is tensor and tvm_ffi.convert(tensor) is tensor
    assert tvm_ffi.convert(lambda x: x)(tensor) is tensor
    seen: list[Any] = []
    tvm_ffi.convert(seen.append)(tensor)
    assert seen[0] is tensor
    assert from_dlpack(tensor) is not tensor and from_dlpack(tensor).data_ptr() == tensor.data_ptr()


@pytest.mark.parametrize("way", WAYS)
def test_p2_identity_outlives_the_last_reference(way: str) -> None:
    keep, fetch = WAYS[way]
    if "field" in way and way not in ("any field", "array field", "map field"):
        pytest.skip("the field is of another type")
    tensor = make()
    address = tensor.data_ptr()
    weak = weakref.ref(tensor)
    holder = keep(tensor)
    del tensor
    collect()
    again = fetch(holder)
    assert again is weak() and again.data_ptr() == address
    assert fetch(holder) is again


def test_p3_state_of_a_subclass_stays() -> None:
    class Named(Tensor):
        pass

    tensor = Named()
    tensor.__move_handle_from__(make())
    tensor.name = "weights"
    box = tvm_ffi.Array([tensor])
    del tensor
    collect()
    assert type(box[0]) is Named and box[0].name == "weights"


def test_p4_weak_references_follow_the_tensor() -> None:
    array = numpy.zeros(3)
    tensor = from_dlpack(array)
    deaths = watch_death(tensor)
    weak = weakref.ref(tensor)
    capsule = tensor.__dlpack__()
    del tensor
    collect()
    assert weak() is not None and deaths == []
    del capsule
    collect()
    assert weak() is None and deaths == [True]


def test_p5_nothing_is_lost_and_nothing_kept() -> None:
    array = numpy.zeros(3)
    collect()
    before, count = tying.stats(), sys.getrefcount(array)
    for _ in range(scaled(2000)):
        tensor = echo(array)
        numpy.from_dlpack(tensor)
        tensor.__dlpack__(max_version=(1, 0))
        box = tvm_ffi.Array([tensor])
        del tensor
        assert box[0].shape == (3,)
    del box
    collect()
    assert tying.stats() == before and sys.getrefcount(array) == count


def test_dormant_tensors_cost_the_collector_nothing() -> None:
    box = tvm_ffi.Array([make() for _ in range(100)])
    collect()
    assert not [obj for obj in gc.get_objects() if type(obj) is Tensor]
    assert len({id(x) for x in box}) == 100 or all(isinstance(x, Tensor) for x in box)


def test_the_class_can_be_replaced() -> None:
    class Mine(Tensor):
        def total(self) -> float:
            return float(numpy.from_dlpack(self).sum())

    array = numpy.ones(3)
    assert core._CLASS_TENSOR is Tensor
    core._set_class_tensor(Mine)
    try:
        assert core._CLASS_TENSOR is Mine
        assert type(echo(array)) is Mine and echo(array).total() == 3.0
        assert type(from_dlpack(array)) is Mine
        assert type(tvm_ffi.Array([array])[0]) is Mine
        seen: list[Any] = []
        tvm_ffi.convert(lambda x: seen.append(type(x)))(array)
        assert seen == [Mine]
    finally:
        core._set_class_tensor(Tensor)
    assert type(echo(array)) is Tensor
    for wrong in (int, core.CObject, tvm_ffi.Array, None):
        with pytest.raises(TypeError, match="subclass of Tensor"):
            core._set_class_tensor(wrong)  # type: ignore[arg-type]


def test_many_threads_share_arrays_and_tensors() -> None:
    arrays = [numpy.full((3, i + 1), i, dtype) for i, dtype in enumerate(("f4", "f8", "i2", "u1"))]
    shared = from_dlpack(arrays[0])

    def body(thread: int) -> None:
        for i in range(scaled(500)):
            array = arrays[(thread + i) % 4]
            tensor = echo(array)
            assert tensor.shape == array.shape and tensor.dtype == array.dtype.name
            assert echo(shared) is shared
            assert numpy.from_dlpack(tensor)[0, 0] == array[0, 0]

    run_threads(4, body)


def test_p9_a_thread_of_cpp_drops_the_last_reference(client: NativeClient) -> None:
    for _ in range(scaled(50)):
        array = numpy.zeros(100)
        gone = weakref.ref(array)
        client.hold(array)
        client.hold(from_dlpack(array))
        del array
        assert gone() is not None
        client.release_all_in_thread()  # while this thread has the GIL
        assert wait_until(lambda gone=gone: gone() is None)


def test_arrays_that_cpp_still_has_at_exit() -> None:
    program = """
import numpy, tvm_ffi
a = numpy.zeros(10)
box = tvm_ffi.List([a, tvm_ffi.from_dlpack(a)])
box.append(tvm_ffi.convert(lambda: box))      # a ring that reaches the end of the process
tvm_ffi.register_global_func("tests.keeps_array", box[2])
print(box[0].shape)
"""
    assert run_python(program) == "(10,)\n"


# ---- protocols ----------------------------------------------------------------------------------


class HasObject:
    def __init__(self, tensor: object) -> None:
        self.tensor = tensor

    def __tvm_ffi_object__(self) -> object:
        return self.tensor


class HasValue:
    def __init__(self, value: object) -> None:
        self.value = value

    def __tvm_ffi_value__(self) -> object:
        return self.value


def test_a_class_that_stands_for_a_tensor() -> None:
    tensor = make()
    assert echo(HasObject(tensor)) is tensor
    assert echo((1, HasObject(tensor)))[1] is tensor
    assert echo(HasValue(HasObject(tensor))) is tensor
    assert echo(HasValue(HasValue((tensor, 2))))[0].same_as(tensor)
    assert tvm_ffi.convert(HasObject(tensor)) is tensor
    with pytest.raises(TypeError, match="HasObject must return an FFI object, got int"):
        echo(HasObject(1))


# ---- tensors that C++ only lends ----------------------------------------------------------------


class Any16(ctypes.Structure):
    _fields_ = [
        ("type_index", ctypes.c_int32),
        ("padding", ctypes.c_uint32),
        ("pointer", ctypes.c_void_p),
    ]


def call_with_view(function: Any, view: foreign.DLTensor) -> Any16:
    """Call an FFI function from C with a bare DLTensor*."""
    args = (Any16 * 1)(Any16(7, 0, ctypes.addressof(view)))
    result = Any16(0, 0, None)
    call = tvm_ffi.LIB.TVMFFIFunctionCall
    call.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p]
    code = call(function.__chandle__(), args, 1, ctypes.byref(result))
    assert code == 0, "the callback failed"
    return result


def test_a_lent_tensor_ends_with_the_call() -> None:
    view = foreign.DLTensor()
    memory = ctypes.create_string_buffer(64)
    keep = foreign.fill(view, ctypes.addressof(memory), (2, 3), None, (2, 32, 1), (1, 0))
    kept: list[Any] = []

    def body(x: Any) -> Any:
        assert type(x) is Tensor and x.__chandle__() == 0
        assert x.shape == (2, 3) and x.strides == (3, 1) and x.is_contiguous()
        assert x.dtype == "float32" and x.data_ptr() == ctypes.addressof(memory)
        VIEW(x)
        assert echo(x) is x, "a borrowed tensor that comes back is the one that went"
        for export in (x.__dlpack__, x._to_dlpack_versioned):
            with pytest.raises(BufferError, match="only valid during the call"):
                export()
        with pytest.raises((TypeError, BufferError, ValueError)):
            from_dlpack(x)
        with pytest.raises(TypeError, match="argument #0"):
            GET("testing.schema_id_tensor")(x)
        kept.append(x)
        return x

    result = call_with_view(tvm_ffi.convert(body), view)
    assert (result.type_index, result.pointer) == (7, ctypes.addressof(view))
    del keep
    with pytest.raises(ValueError, match="no C\\+\\+ object"):
        _ = kept[0].shape
    with pytest.raises(ValueError, match="no C\\+\\+ object"):
        echo(kept[0])


def lend(callback: Callable[[Any], Any]) -> Any:
    """What the callback returns for a tensor that is lent to it; its memory goes then."""
    view = foreign.DLTensor()
    memory = ctypes.create_string_buffer(64)
    keep = foreign.fill(view, ctypes.addressof(memory), (2, 3), None, (2, 32, 1), (1, 0))
    results: list[Any] = []
    call_with_view(tvm_ffi.convert(lambda x: results.append(callback(x))), view)
    del keep
    view.ndim, view.shape = 1 << 20, None
    return results[0]


@tvm_ffi.dataclasses.py_class("test_tensor.Holder")
class Holder(tvm_ffi.Object):
    value: Any = None
    values: list[Any] = tvm_ffi.dataclasses.field(default_factory=list)


def set_item(container: Any, key: Any, value: Any) -> None:
    container[key] = value


class Value:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __tvm_ffi_value__(self) -> Any:
        return self.value


KEEPERS: dict[str, Callable[[Any], Any]] = {
    "append": lambda x: List([]).append(x),
    "insert": lambda x: List([]).insert(0, x),
    "extend": lambda x: List([]).extend([x]),
    "a place of a list": lambda x: set_item(List([1]), 0, x),
    "a slice of a list": lambda x: set_item(List([1]), slice(0, 1), [x]),
    "a list": lambda x: List([x]),
    "an array": lambda x: Array([x]),
    "a sum": lambda x: Array([1]) + [x],
    "a map": lambda x: tvm_ffi.Map({"k": x}),
    "a key of a map": lambda x: tvm_ffi.Map({x: 1}),
    "a dict": lambda x: Dict({"k": x}),
    "a place of a dict": lambda x: set_item(Dict({}), "k", x),
    "a key of a dict": lambda x: set_item(Dict({}), x, 1),
    "update": lambda x: Dict({}).update({"k": x}),
    "setdefault": lambda x: Dict({}).setdefault("k", x),
    "a nested list": lambda x: tvm_ffi.convert([1, [{"k": x}]]),
    "a list as an argument": lambda x: echo([x]),
    "a field": lambda x: setattr(Holder(), "value", x),
    "a constructor": lambda x: Holder(x),
    "a list of a constructor": lambda x: Holder(values=[x]),
    "a field of C++": lambda x: setattr(make_edges(), "v_any", x),
    "create_object": lambda x: make_edges(v_any=x).v_any,
    "a result": lambda x: tvm_ffi.convert(lambda: x)(),
    "a result in a list": lambda x: tvm_ffi.convert(lambda y: [y])(x),
    "an object that stands for it": lambda x: List([Value(x)]),
    "a cell": lambda x: core.CAny(x),
    "Any": lambda x: core.TypeSchema.from_annotation(Any).convert(x),
    "a key by structure": lambda x: tvm_ffi.StructuralKey(x),
    "an interrupt": lambda x: tvm_ffi.VisitInterrupt(x),
    "structural_map": lambda x: tvm_ffi.structural_map(Array([Holder()]), (Holder, lambda _: x)),
    "ffi.Array": lambda x: GET("ffi.Array")(x),
    "ffi.List": lambda x: GET("ffi.List")(x),
    "ffi.Map": lambda x: GET("ffi.Map")(1, x),
    "ffi.Dict": lambda x: GET("ffi.Dict")(x, 1),
    "ffi.ListAppend": lambda x: GET("ffi.ListAppend")(List([]), x),
    "ffi.ListInsert": lambda x: GET("ffi.ListInsert")(List([]), 0, x),
    "ffi.ListSetItem": lambda x: GET("ffi.ListSetItem")(List([1]), 0, x),
    "ffi.DictSetItem": lambda x: GET("ffi.DictSetItem")(Dict({}), 1, x),
}


@pytest.mark.parametrize("way", KEEPERS)
def test_nothing_keeps_a_lent_tensor(way: str) -> None:
    def body(x: Any) -> Any:
        with pytest.raises((ValueError, TypeError), match="DLTensor\\* cannot be held in Any"):
            KEEPERS[way](x)
        return x.shape

    assert lend(body) == (2, 3)


def test_a_lent_tensor_is_passed_on_and_copied() -> None:
    def body(x: Any) -> Any:
        assert tvm_ffi.testing.apply(lambda y: y, x) is x
        assert tvm_ffi.testing.apply(lambda y: y.shape, x) == (2, 3)
        assert tvm_ffi.convert(x) is x
        kept = copy.deepcopy(x)
        return List([kept]), tvm_ffi.convert(lambda y: y)

    kept, identity = lend(body)
    assert kept[0].shape == (2, 3)
    assert identity(kept[0]) is kept[0]


def test_a_lent_tensor_that_an_object_holds_all_the_same_is_not_read() -> None:
    """C++ may copy what it is lent into an Any."""
    view = foreign.DLTensor()

    def result_of(_self: int, _args: int, _num_args: int, result: int) -> int:
        cell = Any16.from_address(result)
        cell.type_index, cell.pointer = 7, ctypes.addressof(view)
        return 0

    safe_call = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p
    )(result_of)
    address = ctypes.cast(safe_call, ctypes.c_void_p).value
    function = core.Function.__from_extern_c__(address)
    box = List([1])
    cells = ctypes.c_void_p.from_address(box.__chandle__() + 24).value
    assert cells is not None
    cell = Any16.from_address(cells)
    cell.type_index, cell.pointer = 7, ctypes.addressof(view)
    readers: list[Callable[[], Any]] = [function, lambda: function(1), lambda: function(make())]
    readers += [lambda: box[0], lambda: list(box), lambda: box[:], lambda: echo(box)[0], box.pop]
    for read in readers:
        with pytest.raises(ValueError, match="DLTensor\\* cannot be held in Any"):
            read()
    assert len(box) == 1
    cell.type_index, cell.pointer = 0, None


def test_what_else_is_borrowed_is_owned_where_it_is_kept() -> None:
    rvalue = Array([1])
    assert List([rvalue._move()])[0] == [1]
    text = core.ByteArrayArg(b"more than seven bytes")
    assert List([text])[0] == b"more than seven bytes"
    assert List([ctypes.c_void_p(16)])[0].value == 16


def test_size_survives_an_index_that_takes_the_tensor_away() -> None:
    tensor = make()
    spare = Tensor.__new__(Tensor)

    class Thief:
        def __index__(self) -> int:
            spare.__move_handle_from__(tensor)
            return 1

    with pytest.raises(ValueError, match="moved from"):
        tensor.size(Thief())
    assert spare.shape == (2, 3)


def test_threads_read_a_tensor_that_moves_away() -> None:
    tensor = make()

    def body(i: int) -> None:
        for _ in range(scaled(500)):
            try:
                if i == 0:
                    spare = Tensor.__new__(Tensor)
                    spare.__move_handle_from__(tensor)
                    tensor.__move_handle_from__(spare)
                else:
                    assert tensor.shape == (2, 3)
                    assert tensor.strides == (3, 1)
                    assert tensor.__dlpack_device__() == (1, 0)
            except ValueError as error:
                assert "moved from" in str(error)

    run_threads(3, body)
