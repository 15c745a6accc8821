# SPDX-License-Identifier: Apache-2.0
"""DLPack: capsules of both kinds, the exchange API, lifetimes, and everything that is refused."""

from __future__ import annotations

import copy
import ctypes
import gc
import sys
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import foreign
import pytest
import tvm_ffi
from support import collect, run_python, run_threads, scaled
from tvm_ffi import Tensor, core, from_dlpack
from tvm_ffi.dataclasses import py_class
from tvm_ffi.testing import echo

GET = tvm_ffi.get_global_func
VIEW = GET("testing.schema_tensor_view_input")
APPLY = GET("testing.apply")


LEFT_BEFORE: dict[int, Any] = {}  # managed tensors of earlier tests, kept so addresses differ


@pytest.fixture(autouse=True)
def fresh_framework() -> Iterator[None]:
    """Every test starts afresh and counts the managed tensors that it made."""
    foreign.reset()
    collect()
    LEFT_BEFORE.update(foreign.live)
    yield
    LEFT_BEFORE.clear()
    foreign.reset()


def alive() -> int:
    collect()
    return len(foreign.live.keys() - LEFT_BEFORE.keys())


# ---- capsules -----------------------------------------------------------------------------------

BOTH = pytest.mark.parametrize("name", ["dltensor", "dltensor_versioned"])


@BOTH
def test_a_capsule_is_consumed_once(name: str) -> None:
    capsule = foreign.make_capsule(name, shape=(2, 3), strides=(3, 1))
    tensor = from_dlpack(capsule)
    assert tensor.shape == (2, 3) and tensor.strides == (3, 1) and tensor.dtype == "float32"
    assert foreign.name_of(capsule) == f"used_{name}"
    with pytest.raises(TypeError, match="take either a compatible tensor or PyCapsule"):
        from_dlpack(capsule)
    assert alive() == 1
    del tensor
    assert alive() == 0


@BOTH
def test_strides_are_filled_in(name: str) -> None:
    assert from_dlpack(foreign.make_capsule(name, shape=(2, 3, 4))).strides == (12, 4, 1)
    assert from_dlpack(foreign.make_capsule(name, shape=())).strides == ()
    assert from_dlpack(foreign.make_capsule(name, shape=(2, 0, 3))).strides == (0, 3, 1)


@BOTH
def test_a_capsule_without_deleter(name: str) -> None:
    tensor = from_dlpack(foreign.make_capsule(name, deleter=False))
    assert tensor.numel() == 6
    del tensor
    assert alive() == 1  # nobody asked for it back


def test_any_device_and_any_element_type() -> None:
    for device in ((2, 3), (13, 0), (8, 1), (99, -2)):
        tensor = from_dlpack(foreign.make_capsule(device=device, byte_offset=8))
        assert tensor.__dlpack_device__() == device
        assert (tensor.device.dlpack_device_type(), tensor.device.index) == device
    tensor = from_dlpack(foreign.make_capsule(dtype=(17, 4, 2)))
    assert tensor.dtype == "float4_e2m1fnx2"
    odd = from_dlpack(foreign.make_capsule(dtype=(99, 32, 1)))
    with pytest.raises(ValueError, match="type_code=99"):
        _ = odd.dtype
    assert repr(odd) == "<dtype code 99, bits 32>[2, 3]@cpu:0"  # printing never fails
    assert repr(tvm_ffi.Array([1, odd])) == f"(1, {odd!r})"
    custom = from_dlpack(foreign.make_capsule(dtype=(255, 32, 1)))
    with pytest.raises(ValueError, match="type_code=255 and 32 bits has no name: codes from 129"):
        _ = custom.dtype
    assert repr(custom) == "<dtype code 255, bits 32>[2, 3]@cpu:0"


def test_the_byte_offset_counts() -> None:
    data = ctypes.create_string_buffer(64)
    tensor = from_dlpack(foreign.make_capsule(data=data, byte_offset=16, shape=(2,)))
    assert tensor.data_ptr() == ctypes.addressof(data) + 16


def test_alignment_and_contiguity_on_request() -> None:
    data = ctypes.create_string_buffer(512)
    base = ctypes.addressof(data)
    address = base + (-base) % 128 + 4
    for name in ("dltensor", "dltensor_versioned"):
        capsule = foreign.make_capsule(name, data=address, shape=(2,))
        with pytest.raises(RuntimeError, match=r"FromDLPack: Data is not aligned to 64 bytes\."):
            from_dlpack(capsule, require_alignment=64)
        assert foreign.name_of(capsule) == name, "what is refused can still be consumed"
        assert from_dlpack(capsule, require_alignment=4, require_contiguous=True).shape == (2,)
        capsule = foreign.make_capsule(name, shape=(2, 3), strides=(1, 2))
        with pytest.raises(RuntimeError, match=r"FromDLPack: Tensor is not contiguous\."):
            from_dlpack(capsule, require_contiguous=True)
        assert from_dlpack(capsule).strides == (1, 2)
    numpy = pytest.importorskip("numpy")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="not contiguous"):
            from_dlpack(numpy.zeros(6)[::2], require_contiguous=True)
        with pytest.raises(RuntimeError, match="not aligned to 1048576 bytes"):
            from_dlpack(numpy.zeros(6)[1:], require_alignment=2**20)
    assert from_dlpack(numpy.zeros(3), require_alignment=8, require_contiguous=True).ndim == 1


def test_export_without_arguments_is_unversioned() -> None:
    tensor = from_dlpack(foreign.make_capsule())
    assert foreign.name_of(tensor.__dlpack__()) == "dltensor"
    assert (
        foreign.name_of(tensor.__dlpack__(stream=None, dl_device=(1, 0), copy=False)) == "dltensor"
    )
    assert foreign.name_of(tensor.__dlpack__(max_version=(0, 8))) == "dltensor"
    assert foreign.name_of(tensor._to_dlpack()) == "dltensor"


def test_export_by_version() -> None:
    tensor = from_dlpack(foreign.make_capsule())
    for keywords in (
        {"max_version": (1, 0)},
        {"max_version": (2, 5), "stream": 7},
        {"max_version": (2**80, 0)},
        {"max_version": (1, 1), "dl_device": (1, 0), "copy": False},
        {"max_version": (1, 1), "dl_device": None, "copy": None, "stream": None},
    ):
        capsule = tensor.__dlpack__(**keywords)
        assert foreign.name_of(capsule) == "dltensor_versioned"
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        managed = foreign.ManagedVersioned.from_address(get(capsule, b"dltensor_versioned"))
        assert (managed.major, managed.minor, managed.flags) == (*core.__dlpack_version__, 0)
        assert managed.dl_tensor.data == tensor.data_ptr()
    assert foreign.name_of(tensor._to_dlpack_versioned()) == "dltensor_versioned"
    assert core.__dlpack_version__ == (1, 3)


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({"max_version": (1, 0), "dl_device": (2, 0)}, BufferError, "dl_device of different type"),
        ({"dl_device": (2, 0)}, BufferError, "dl_device of different type"),
        ({"max_version": 1}, TypeError, "max_version must be a tuple .* got 1"),
        ({"max_version": ()}, TypeError, r"max_version must be a tuple .* got \(\)"),
        ({"max_version": ("1", "0")}, TypeError, "max_version must be a tuple"),
        ({"version": (1, 0)}, TypeError, "unexpected keyword argument 'version'"),
    ],
)
def test_exports_that_are_refused(keywords: Any, error: type[Exception], text: str) -> None:
    tensor = from_dlpack(foreign.make_capsule())
    with pytest.raises(error, match=text):
        tensor.__dlpack__(**keywords)
    with pytest.raises(TypeError, match="no positional arguments"):
        tensor.__dlpack__(None)  # type: ignore[misc]


@BOTH
def test_exported_memory_outlives_the_tensor(name: str) -> None:
    tensor = from_dlpack(foreign.make_capsule())
    capsule = tensor.__dlpack__() if name == "dltensor" else tensor._to_dlpack_versioned()
    del tensor
    assert alive() == 1
    again = from_dlpack(capsule)
    del capsule
    assert alive() == 1 and again.shape == (2, 3)
    unused = again.__dlpack__()
    del again
    assert alive() == 1
    del unused  # a capsule that nobody consumed gives its tensor back
    assert alive() == 0


def test_a_capsule_goes_through_many_hands() -> None:
    tensor = from_dlpack(foreign.make_capsule())
    address = tensor.data_ptr()
    for i in range(100):
        tensor = from_dlpack(tensor._to_dlpack() if i % 2 else tensor._to_dlpack_versioned())
    assert tensor.data_ptr() == address and alive() == 1
    del tensor
    assert alive() == 0


def test_threads_that_want_one_capsule() -> None:
    for _ in range(scaled(50)):
        capsule = foreign.make_capsule()
        got: list[Any] = []

        def body(_: int, capsule: Any = capsule, got: list[Any] = got) -> None:
            try:
                got.append(from_dlpack(capsule))
            except TypeError:
                pass

        run_threads(4, body)
        assert len(got) == 1


# ---- copies -------------------------------------------------------------------------------------


def flags_of(capsule: Any) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return foreign.ManagedVersioned.from_address(get(capsule, b"dltensor_versioned")).flags


READ_ONLY, IS_COPIED = 1, 2


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0)])
def test_a_copy_shares_nothing(max_version: Any) -> None:
    numpy = pytest.importorskip("numpy")
    cube = numpy.arange(2 * 3 * 4, dtype="int32").reshape(2, 3, 4)
    for array in (
        cube,
        cube[:, ::2, ::-1],
        cube.transpose(2, 0, 1),
        cube[1, 2, 3:4].reshape(()),
        cube[:0],
        numpy.broadcast_to(cube[0], (3, 3, 4)).copy()[::-1],
        numpy.ones((2, 1, 3), "float64")[:, :, 1:],
    ):
        tensor = from_dlpack(array)
        capsule = tensor.__dlpack__(max_version=max_version, copy=True)
        if max_version == (1, 0):
            assert flags_of(capsule) == IS_COPIED
        copied = from_dlpack(capsule)
        assert copied.is_contiguous() and copied.data_ptr() != tensor.data_ptr()
        assert (copied.shape, copied.dtype) == (tensor.shape, tensor.dtype)
        assert numpy.array_equal(numpy.from_dlpack(copied), array)
        del tensor, capsule
        assert numpy.array_equal(numpy.from_dlpack(copied), array)


def test_elements_that_share_bytes_are_copied_only_without_gaps() -> None:
    data = ctypes.create_string_buffer(bytes(range(16)))
    packed = from_dlpack(foreign.make_capsule(data=data, shape=(5,), dtype=(1, 4, 1)))
    copied = copy.deepcopy(packed)
    assert ctypes.string_at(copied.data_ptr(), 3) == bytes(range(3))
    gaps = from_dlpack(foreign.make_capsule(shape=(5,), strides=(2,), dtype=(1, 4, 1)))
    with pytest.raises(ValueError, match="elements that share bytes"):
        copy.deepcopy(gaps)
    with pytest.raises(BufferError, match="elements that share bytes"):
        gaps.__dlpack__(copy=True)


# ---- read-only ----------------------------------------------------------------------------------


@py_class("tests.dlpack.Box")
class Box(tvm_ffi.Object):
    """Holds a tensor."""

    tensor: Tensor
    anything: Any = None


WAYS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda t: t,
    "echo": echo,
    "array": lambda t: tvm_ffi.Array([t])[0],
    "dict": lambda t: echo({"a": [t]})["a"][0],
    "field": lambda t: Box(t).tensor,
    "any field": lambda t: Box(t, t).anything,
    "callback": lambda t: APPLY(lambda x: x, t),
    "schema": lambda t: core._to_py_class_value(core.TypeSchema("Tensor").convert(t)),
    "copy": copy.copy,
    "capsule": lambda t: from_dlpack(t._to_dlpack_versioned()),
    "exchange api": lambda t: from_dlpack(t),
    "copied object": lambda t: copy.copy(Box(t)).tensor,
    "test wrapper": lambda t: echo(core.DLTensorTestWrapper(t)),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_read_only_tensor_stays_one(way: str) -> None:
    data = ctypes.create_string_buffer(64)
    make = partial(foreign.make_capsule, "dltensor_versioned", data=data)
    writable = WAYS[way](from_dlpack(make(flags=IS_COPIED)))
    assert flags_of(writable._to_dlpack_versioned()) == 0
    tensor = WAYS[way](from_dlpack(make(flags=READ_ONLY)))
    assert tensor.data_ptr() == ctypes.addressof(data) and tensor.shape == (2, 3)
    for export in (tensor._to_dlpack_versioned, partial(tensor.__dlpack__, max_version=(1, 0))):
        assert flags_of(export()) == READ_ONLY
    for refused in (tensor._to_dlpack, tensor.__dlpack__):
        with pytest.raises(BufferError, match="a read-only tensor cannot be exported without a ve"):
            refused()
    assert flags_of(tensor.__dlpack__(max_version=(1, 0), copy=True)) == IS_COPIED
    assert flags_of(copy.deepcopy(tensor)._to_dlpack_versioned()) == 0
    assert foreign.name_of(tensor.__dlpack__(copy=True)) == "dltensor"
    del tensor, writable, export, refused
    assert alive() == 0


def test_memory_of_a_read_only_tensor_may_be_used_again() -> None:
    """What was read-only says nothing about the tensor that is at the same address later."""
    for i in range(100):
        flags = READ_ONLY if i % 2 else 0
        tensor = from_dlpack(foreign.make_capsule("dltensor_versioned", flags=flags))
        assert flags_of(tensor._to_dlpack_versioned()) == flags
    del tensor
    assert alive() == 0


def test_numpy_cannot_write_what_was_read_only() -> None:
    numpy = pytest.importorskip("numpy", minversion="2.1")
    secret = bytes(range(65, 75))
    given = numpy.frombuffer(secret, dtype="uint8")
    tensor = from_dlpack(given.__dlpack__(max_version=(1, 0)))
    for back in (numpy.from_dlpack(tensor), numpy.from_dlpack(echo([tensor])[0])):
        assert back.tobytes() == secret and not back.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            back[0] = 1
    own = numpy.from_dlpack(tensor, copy=True)
    own[:] = 0
    assert secret == bytes(range(65, 75))
    for use in (echo, from_dlpack):  # as an argument it must be writable, as numpy says itself
        with pytest.raises(BufferError, match="readonly"):
            use(given)


def test_a_read_only_tensor_becomes_no_tensor_of_a_framework() -> None:
    """Frameworks need not know read-only tensors, and a DLTensor cannot say that it is one."""
    tensor = from_dlpack(foreign.make_capsule("dltensor_versioned", flags=READ_ONLY))
    writable = from_dlpack(foreign.make_capsule())
    second = tvm_ffi.convert_func(lambda a, b: b)
    assert type(second(foreign.Tensor(), writable)) is foreign.Tensor
    assert second(foreign.Tensor(), tensor) is tensor
    with pytest.raises(BufferError, match="a read-only tensor cannot be converted"):
        tvm_ffi.convert_func(print, tensor_cls=foreign.Tensor)(tensor)
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    api = get(Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api")
    lend = foreign.DLTENSOR(foreign.ExchangeAPI.from_address(api).dltensor_from_py)
    view = foreign.DLTensor()
    assert lend(writable, ctypes.byref(view)) == 0
    with pytest.raises(BufferError, match="cannot be lent as a DLTensor"):
        lend(tensor, ctypes.byref(view))


# ---- what is refused ----------------------------------------------------------------------------

BIG = 2**62
DEFECTS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "negative dimensions": ({"ndim": -1}, ValueError, "a tensor cannot have -1 dimensions"),
    "most negative dimensions": ({"ndim": -(2**31)}, ValueError, "cannot have -2147483648 dim"),
    "no shape": ({"shape": None, "ndim": 2}, ValueError, "tensor of 2 dimensions needs a shape"),
    "negative extent": ({"shape": (2, -3)}, ValueError, "extent 1 of .* negative: -3"),
    "negative first extent": ({"shape": (-1,)}, ValueError, "extent 0 of .* negative: -1"),
    "negative beside zero": ({"shape": (0, -1)}, ValueError, "extent 1 of .* negative: -1"),
    "most negative extent": ({"shape": (-(2**63),)}, ValueError, "negative: -9223372036854775808"),
    "product overflows": ({"shape": (BIG, 4)}, ValueError, rf"shape \({BIG}, 4\)"),
    "product wraps to zero": ({"shape": (2**32, 2**32)}, ValueError, "overflows 64 bits"),
    "bytes overflow": ({"shape": (BIG,), "dtype": (2, 64, 1)}, ValueError, "64 bits per element"),
    "lanes overflow": (
        {"shape": (2**50,), "dtype": (2, 64, 65535)},
        ValueError,
        "4194240 bits per element",
    ),
    "too many dimensions": ({"ndim": 1025}, ValueError, "a tensor cannot have 1025 dimensions"),
    "most dimensions": ({"ndim": 2**31 - 1}, ValueError, "cannot have 2147483647 dimensions"),
    "no memory": ({"data": 0}, ValueError, r"shape \(2, 3\) has no memory: its address is 0"),
    "no memory of a scalar": ({"data": 0, "shape": ()}, ValueError, r"shape \(\) has no memory"),
    "no memory, an offset": ({"data": 0, "byte_offset": 64}, ValueError, "has no memory"),
    "no memory on a device": ({"data": 0, "device": (2, 0)}, ValueError, "has no memory"),
    "no bits": ({"dtype": (2, 0, 1)}, ValueError, "elements of 0 bits and 1 lanes"),
    "no lanes": ({"dtype": (2, 32, 0)}, ValueError, "elements of 32 bits and 0 lanes"),
    "no type": ({"dtype": (3, 0, 0), "shape": (0,)}, ValueError, "elements of 0 bits and 0 lanes"),
    "stride overflows": ({"strides": (BIG, 1)}, ValueError, rf"strides \({BIG}, 1\) .* overflows"),
    "negative stride overflows": ({"strides": (-(2**63), 1)}, ValueError, "strides .* overflows"),
    "sum of strides overflows": ({"strides": (2**60, 2**59)}, ValueError, "strides .* overflows"),
    "offset overflows": ({"byte_offset": 2**64 - 8}, ValueError, "byte offset .* 18446744073709"),
}
VERSIONED_DEFECTS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "version 2": ({"version": (2, 0)}, BufferError, r"DLPack version 2\.0; only 1\.x"),
    "version 0": ({"version": (0, 8)}, BufferError, r"DLPack version 0\.8"),
    "version of garbage": ({"version": (2**32 - 1, 7)}, BufferError, r"version 4294967295\.7"),
    "padded narrow types": (
        {"flags": 4, "dtype": (1, 4, 1)},
        RuntimeError,
        "Subbyte type padded is not yet supported",
    ),
}


def check_refused(name: str, defect: dict[str, Any], error: type[Exception], text: str) -> None:
    capsule = foreign.make_capsule(name, **defect)
    for _ in range(2):
        with pytest.raises(error, match=text):
            from_dlpack(capsule)
        assert foreign.name_of(capsule) == name and alive() == 1

    class Offers:
        def __dlpack__(self) -> Any:
            return capsule

    if name == "dltensor":
        for use in (from_dlpack, echo, VIEW, tvm_ffi.convert):
            with pytest.raises(error, match=text):
                use(Offers())
    assert alive() == 1, "it still belongs to whoever offered it"


@BOTH
@pytest.mark.parametrize("defect", DEFECTS)
def test_impossible_tensors(name: str, defect: str) -> None:
    check_refused(name, *DEFECTS[defect])


@pytest.mark.parametrize("defect", VERSIONED_DEFECTS)
def test_impossible_versions(defect: str) -> None:
    check_refused("dltensor_versioned", *VERSIONED_DEFECTS[defect])


@BOTH
def test_empty_tensors_need_no_memory(name: str) -> None:
    for keywords in (
        {"shape": (0,)},
        {"shape": (2, 0, 3)},
        {"shape": (0, BIG, BIG), "strides": (BIG, BIG, BIG)},
    ):
        tensor = from_dlpack(foreign.make_capsule(name, data=0, **keywords))
        assert tensor.numel() == 0 and tensor.data_ptr() == 0
        assert tvm_ffi.structural_equal(tensor, tensor)
        assert isinstance(tvm_ffi.structural_hash(tensor), int)
        assert copy.deepcopy(tensor).shape == keywords["shape"]


@BOTH
def test_memory_that_python_cannot_read_is_never_read(name: str) -> None:
    """What looks like a GPU is an address that nobody can follow."""
    tensor = from_dlpack(foreign.make_capsule(name, data=0x10, device=(2, 0)))
    assert repr(tensor) and tvm_ffi.structural_equal(tensor, tensor, skip_tensor_content=True)
    for read in (tvm_ffi.structural_hash, lambda t: tvm_ffi.structural_equal(t, echo([t, t])[0])):
        try:
            read(tensor)
        except (RuntimeError, ValueError) as error:
            assert "CPU" in str(error)
    for copies in (copy.deepcopy, lambda t: copy.deepcopy(tvm_ffi.Array([t]))):
        with pytest.raises(ValueError, match="only a tensor on the CPU can be copied"):
            copies(tensor)
    with pytest.raises(BufferError, match="only a tensor on the CPU can be copied"):
        tensor.__dlpack__(copy=True)
    assert copy.copy(tensor).data_ptr() == 0x10


def test_later_minor_versions_and_other_flags_are_fine() -> None:
    others = [{"shape": (BIG, 0, BIG)}, {"flags": 4}]  # which says nothing of whole bytes
    for keywords in ({"version": (1, 99)}, {"flags": 1}, {"flags": 2}, *others):
        tensor = from_dlpack(foreign.make_capsule("dltensor_versioned", **keywords))
        assert isinstance(tensor, Tensor)


@pytest.mark.parametrize("name", ["dltensor", "dltensor_versioned"])
@pytest.mark.parametrize("case", ["consumed", "consumed, with a context", "refused"])
def test_the_destructor_of_a_capsule(name: str, case: str) -> None:
    """It runs unless the tensor was taken, which leaves it nothing to do, or it has a context."""
    seen: list[str] = []

    @ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
    def destructor(address: int) -> None:
        get = ctypes.pythonapi.PyCapsule_GetName
        get.restype, get.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
        seen.append(get(address).decode())

    api = ctypes.pythonapi
    capsule = foreign.make_capsule(name, shape=(-1,) if case == "refused" else (2, 3))
    api.PyCapsule_SetDestructor(ctypes.py_object(capsule), destructor)
    if case == "consumed, with a context":
        api.PyCapsule_SetContext(ctypes.py_object(capsule), ctypes.c_void_p(1))
    if case == "refused":
        with pytest.raises(ValueError):
            from_dlpack(capsule)
    else:
        from_dlpack(capsule)
    del capsule
    collect()
    expected = {"consumed": [], "refused": [name], "consumed, with a context": ["used_" + name]}
    assert seen == expected[case]


NO_TENSORS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "int": lambda: 3,
    "str": lambda: "tensor",
    "bytes": lambda: b"tensor",
    "list": lambda: [1.0, 2.0],
    "object": lambda: object(),
    "memoryview": lambda: memoryview(b"abc"),
    "capsule of another name": lambda: foreign.make_capsule("tensor"),
    "capsule without name": lambda: foreign.capsule_of(foreign.make_managed(), None),
    "used capsule": lambda: foreign.make_capsule("used_dltensor"),
    "used versioned capsule": lambda: foreign.make_capsule("used_dltensor_versioned"),
    "almost the name": lambda: foreign.make_capsule("dltensor_"),
    "Array": lambda: tvm_ffi.Array([1]),
    "Shape": lambda: tvm_ffi.Shape((1,)),
}


@pytest.mark.parametrize("name", NO_TENSORS)
def test_what_is_no_tensor(name: str) -> None:
    value = NO_TENSORS[name]()
    text = "Expect from_dlpack to take either a compatible tensor or PyCapsule"
    with pytest.raises(TypeError, match=text):
        from_dlpack(value)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda: None, "got NoneType$"),
        (lambda: 5, "got int$"),
        (lambda: "dltensor", "got str$"),
        (lambda: (1,), "got tuple$"),
        (
            lambda: foreign.make_capsule("used_dltensor"),
            "was consumed, which can be done only once",
        ),
        (lambda: foreign.make_capsule("used_dltensor_versioned"), "was consumed"),
        (lambda: foreign.make_capsule("other"), "got a capsule called 'other'$"),
        (lambda: foreign.capsule_of(foreign.make_managed(), None), "got a capsule called ''$"),
    ],
)
def test_producers_that_give_something_else(result: Any, text: str) -> None:
    made = result()

    class Odd:
        def __dlpack__(self) -> Any:
            return made

    for use in (from_dlpack, echo, VIEW, tvm_ffi.convert):
        with pytest.raises(ValueError, match="__dlpack__.. to return a dltensor capsule.*" + text):
            use(Odd())


def test_producers_may_give_a_versioned_capsule_unasked() -> None:
    class Eager:
        def __dlpack__(self) -> Any:
            return foreign.make_capsule("dltensor_versioned")

    for use in (from_dlpack, echo, tvm_ffi.convert):
        assert use(Eager()).shape == (2, 3)


def test_producers_that_raise() -> None:
    class Raises:
        def __dlpack__(self) -> Any:
            raise KeyError("mine")

    for use in (from_dlpack, echo, VIEW):
        with pytest.raises(KeyError, match="mine"):
            use(Raises())


@pytest.mark.parametrize(
    ("arguments", "keywords", "error", "text"),
    [
        ((), {}, TypeError, "missing required argument 'ext_tensor'"),
        ((1, 2), {}, TypeError, "takes 1 positional argument but 2 were given"),
        ((1,), {"align": 2}, TypeError, "unexpected keyword argument 'align'"),
        ((1,), {"require_alignment": "x"}, TypeError, "integer is required as require_alignment"),
        ((1,), {"require_alignment": 1.5}, TypeError, "require_alignment, got float"),
        ((1,), {"require_alignment": -1}, OverflowError, "require_alignment -1"),
        ((1,), {"require_alignment": 2**40}, OverflowError, "require_alignment 1099511627776"),
    ],
)
def test_bad_arguments(
    arguments: Any, keywords: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        from_dlpack(*arguments, **keywords)


def test_keyword_arguments() -> None:
    capsule = foreign.make_capsule()
    tensor = from_dlpack(ext_tensor=capsule, require_alignment=1, require_contiguous=True)
    assert tensor.shape == (2, 3)


# ---- the exchange API ---------------------------------------------------------------------------

FRAMEWORKS = pytest.mark.parametrize("cls", [foreign.Tensor, foreign.ViewTensor])


@FRAMEWORKS
def test_framework_tensors_come_back_as_such(cls: type[foreign.Tensor]) -> None:
    given = cls((4, 5))
    got = echo(given)
    assert type(got) is foreign.Tensor
    assert (got.shape, got.address, got.dtype) == ((4, 5), given.address, (2, 32, 1))
    del given, got
    foreign.calls.clear()
    assert alive() == 0


@FRAMEWORKS
def test_what_cpp_keeps_keeps_the_memory(cls: type[foreign.Tensor]) -> None:
    given = cls((2, 2))
    memory = weakref.ref(given)
    box = tvm_ffi.Array([given])
    foreign.calls.clear()
    del given
    collect()
    assert memory() is not None and box[0].shape == (2, 2)
    del box
    collect()
    assert memory() is None and alive() == 0


def test_p6_a_ring_through_the_memory_of_a_tensor() -> None:
    """A framework's tensor with an attribute that leads, through C++, back to itself."""
    given = foreign.ViewTensor((2, 2))
    given.cache = tvm_ffi.Array([{"self": given}])  # type: ignore[attr-defined]
    other = foreign.ViewTensor()
    other.cache = echo(tvm_ffi.List([other]))  # type: ignore[attr-defined]
    gone = weakref.ref(given), weakref.ref(other)
    foreign.calls.clear()
    del given, other
    collect()
    assert [ref() for ref in gone] == [None, None]
    kept = foreign.ViewTensor((3,))
    box = tvm_ffi.Array([kept])
    kept.cache = box  # type: ignore[attr-defined]
    gone_too = weakref.ref(kept)
    foreign.calls.clear()
    del kept
    collect()
    assert gone_too() is not None and box[0].shape == (3,)
    del box
    collect()
    assert gone_too() is None


def test_from_dlpack_uses_the_exchange_api() -> None:
    given = foreign.Tensor((3,))
    tensor = from_dlpack(given)
    assert type(tensor) is Tensor and tensor.data_ptr() == given.address
    assert [kind for kind, _ in foreign.calls] == ["from_py"]


def test_a_framework_that_refuses() -> None:
    foreign.refuse["from_py"] = True
    for use in (echo, VIEW, lambda x: echo([x])):
        with pytest.raises(BufferError, match="Tensor could not be exported"):
            use(foreign.Tensor())

    class Falls(foreign.Tensor):
        def __dlpack__(self) -> Any:
            return foreign.make_capsule(shape=(9,))

    assert from_dlpack(Falls()).shape == (9,), "a BufferError leads to the next way"
    foreign.refuse.update(from_py=False, to_py=True)
    assert type(echo(foreign.Tensor())) is Tensor, "a result that is refused stays a Tensor"
    function = tvm_ffi.convert_func(lambda x: type(x), tensor_cls=foreign.Tensor)
    with pytest.raises(BufferError, match="could not take over the tensor"):
        try:
            function(foreign.Tensor())
        except RuntimeError as error:  # crosses C++ as the nearest kind
            raise BufferError(str(error)) from None


def test_exchange_apis_that_are_none() -> None:
    class NoAPI(foreign.Tensor):
        __dlpack_c_exchange_api__ = 1.5

    class WrongCapsule(foreign.Tensor):
        __dlpack_c_exchange_api__ = foreign.capsule_of(1, b"something else")

    class Zero(foreign.Tensor):
        __dlpack_c_exchange_api__ = 0

    empty = foreign.ExchangeAPI(major=1, minor=3)

    class Empty(foreign.Tensor):
        __dlpack_c_exchange_api__ = ctypes.addressof(empty)

    for cls in (NoAPI, WrongCapsule, Zero):
        for use in (echo, VIEW, from_dlpack):
            with pytest.raises(ValueError, match="Expect a dlpack_exchange_api field"):
                use(cls())
        with pytest.raises(ValueError, match="Expect a dlpack_exchange_api field"):
            tvm_ffi.convert_func(print, tensor_cls=cls)
    for use in (echo, from_dlpack):
        with pytest.raises(ValueError, match="the exchange API cannot export tensors"):
            use(Empty())
    with pytest.raises(BufferError, match=r"exchange API has DLPack version 2\.3; only 1\.x"):
        echo(foreign.Lagging())
    for wrong in (int, object()):
        with pytest.raises(TypeError, match="must expose __dlpack_c_exchange_api__"):
            tvm_ffi.convert_func(print, tensor_cls=wrong)  # type: ignore[arg-type]


def test_impossible_tensors_of_a_framework() -> None:
    for cls in (foreign.Tensor, foreign.ViewTensor):
        for use in (echo, VIEW, from_dlpack, lambda x: echo({"a": x})):
            with pytest.raises(ValueError, match="extent 0 of .* negative: -2"):
                use(cls((-2, 3)))
    foreign.calls.clear()
    assert alive() == 0, "what was exported in vain is given back"


def test_callbacks_get_the_tensors_they_ask_for() -> None:
    seen: list[Any] = []

    def body(*args: Any) -> Any:
        seen.append([type(arg) for arg in args])
        return args[0] if args else None

    plain, framework = tvm_ffi.convert_func(body), tvm_ffi.convert_func(body, foreign.Tensor)
    tensor = from_dlpack(foreign.make_capsule())
    assert type(plain(foreign.Tensor())) is foreign.Tensor
    assert type(framework(foreign.Tensor())) is foreign.Tensor
    assert type(framework(tensor)) is Tensor, "no argument of the call was of the framework"
    assert seen == [[Tensor], [foreign.Tensor], [foreign.Tensor]]
    seen.clear()
    got: list[Any] = []
    deep = tvm_ffi.convert_func(lambda x: got.append(x[0]["t"]), foreign.Tensor)
    deep([{"t": tensor}])
    assert type(got[0]) is foreign.Tensor
    framework(1, "a", None, [tensor])
    assert seen == [[int, str, type(None), tvm_ffi.Array]]


def test_exceptions_pass_through_calls_with_framework_tensors() -> None:
    def fail(_: Any) -> None:
        raise ValueError("boo")

    for function in (tvm_ffi.convert_func(fail), tvm_ffi.convert_func(fail, foreign.Tensor)):
        with pytest.raises(ValueError, match="boo"):
            function(foreign.Tensor())
    foreign.calls.clear()
    assert alive() == 0


def test_own_tensors_have_an_exchange_api_too() -> None:
    api = tvm_ffi.Tensor.__dlpack_c_exchange_api__
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    struct = foreign.ExchangeAPI.from_address(get(api, b"dlpack_exchange_api"))
    assert (struct.major, struct.minor, struct.prev_api) == (1, 3, None)
    tensor = from_dlpack(foreign.make_capsule(shape=(4,)))
    out = ctypes.c_void_p()
    assert foreign.FROM_PY(struct.from_py)(tensor, ctypes.byref(out)) == 0
    managed = foreign.ManagedVersioned.from_address(out.value or 0)
    assert managed.dl_tensor.data == tensor.data_ptr() and managed.dl_tensor.shape[0] == 4
    made = ctypes.c_void_p()
    assert foreign.TO_PY(struct.to_py)(out, ctypes.byref(made)) == 0
    again = ctypes.cast(made, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(again))
    assert type(again) is Tensor and again is not tensor
    assert again.data_ptr() == tensor.data_ptr()
    view = foreign.DLTensor()
    assert foreign.DLTENSOR(struct.dltensor_from_py)(tensor, ctypes.byref(view)) == 0
    assert view.data == tensor.data_ptr()
    stream = ctypes.c_void_p(5)
    assert foreign.STREAM(struct.stream)(1, 0, ctypes.byref(stream)) == 0 and not stream.value
    with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), 77):
        foreign.STREAM(struct.stream)(2, 0, ctypes.byref(stream))
        assert stream.value == 77
    function = tvm_ffi.convert_func(lambda x: x, tensor_cls=Tensor)
    assert function(tensor) is tensor, "there is nothing to translate"


def test_own_tensors_can_be_allocated_by_others() -> None:
    api = tvm_ffi.Tensor.__dlpack_c_exchange_api__
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    struct = foreign.ExchangeAPI.from_address(get(api, b"dlpack_exchange_api"))
    errors: list[Any] = []
    set_error = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
    on_error = set_error(lambda _, kind, text: errors.append((kind, text)))
    allocate = ctypes.PYFUNCTYPE(
        ctypes.c_int,
        ctypes.POINTER(foreign.DLTensor),
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.c_void_p,
        set_error,
    )(struct.allocator)
    prototype, out = foreign.DLTensor(), ctypes.c_void_p()
    keep = foreign.fill(prototype, 0, (5, 7), None, (2, 32, 1), (1, 0))
    assert allocate(prototype, ctypes.byref(out), None, on_error) == 0
    managed = foreign.ManagedVersioned.from_address(out.value or 0)
    tensor = managed.dl_tensor
    assert tensor.data % 256 == 0 and (tensor.shape[0], tensor.strides[0]) == (5, 7)
    ctypes.memset(tensor.data, 1, 5 * 7 * 4)
    managed.deleter(out.value)
    prototype.device_type = 2
    assert allocate(prototype, ctypes.byref(out), None, on_error) == -1
    assert errors == [(b"RuntimeError", b"tvm_ffi.Tensor can only be allocated on the CPU")]
    del keep


def test_the_wrapper_for_tests() -> None:
    tensor = from_dlpack(foreign.make_capsule(device=(2, 1)))
    wrapper = core.DLTensorTestWrapper(tensor)
    got = echo(wrapper)
    assert type(got) is Tensor and got.data_ptr() == tensor.data_ptr()
    assert wrapper.tensor is tensor and wrapper.__dlpack_device__() == (2, 1)
    assert from_dlpack(wrapper).data_ptr() == tensor.data_ptr()
    assert foreign.name_of(wrapper.__dlpack__()) == "dltensor"
    assert foreign.name_of(wrapper.__dlpack__(max_version=(1, 0))) == "dltensor_versioned"
    assert wrapper.__tvm_ffi_env_stream__() == 0
    with tvm_ffi.use_raw_stream(tensor.device, 9):
        assert wrapper.__tvm_ffi_env_stream__() == 9
    for wrong in (3, None, wrapper):
        with pytest.raises(TypeError):
            core.DLTensorTestWrapper(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        core.DLTensorTestWrapper()  # type: ignore[call-arg]


# ---- containers ---------------------------------------------------------------------------------


def test_containers_hand_out_framework_tensors() -> None:
    array = GET("testing.make_array_with_tensor")(foreign.Tensor((4,)))
    assert type(array) is tvm_ffi.Array
    assert [type(x) for x in (array[0], array[-1], *array, *array[:])] == [foreign.Tensor] * 4
    assert type(echo(array)[0]) is foreign.Tensor, "the tag travels with the container"
    assert array[0].shape == (4,)

    nested = GET("testing.make_nested_array_with_tensor")(foreign.Tensor())
    assert type(nested[0]) is tvm_ffi.Array and type(nested[0][0]) is foreign.Tensor

    items = GET("testing.make_list_with_tensor")(foreign.Tensor(), 7)
    assert isinstance(items, tvm_ffi.List)
    assert {type(x) for x in items} == {foreign.Tensor, int}
    assert type(items.pop(0)) is foreign.Tensor

    for maker in ("map", "dict"):
        mapping = GET(f"testing.make_{maker}_with_tensor")(foreign.Tensor())
        assert type(mapping["tensor"]) is foreign.Tensor and mapping["value"] == 42
        assert type(mapping.get("tensor")) is foreign.Tensor and mapping.get("none") is None
        assert type(next(iter(mapping.values()))) is Tensor, "views do not translate"

    empty = GET("testing.make_empty_array_with_tensor_input")(foreign.Tensor())
    assert type(empty) is tvm_ffi.Array and len(empty) == 0

    both = GET("testing.make_nested_map_with_tensor")(foreign.Tensor((1,)), foreign.Tensor((2,)))
    assert type(both) is tvm_ffi.Map


def test_containers_built_for_a_call() -> None:
    t = foreign.Tensor()
    assert type(echo([t])[0]) is foreign.Tensor
    assert type(echo((1, (t,)))[1][0]) is foreign.Tensor
    assert type(echo({"a": [t]})["a"][0]) is foreign.Tensor
    assert type(tvm_ffi.Array([t])[0]) is Tensor
    assert type(tvm_ffi.convert([t])[0]) is Tensor
    assert type(echo(tvm_ffi.Array([t]))[0]) is Tensor


def test_tags_are_not_part_of_the_value() -> None:
    plain = tvm_ffi.Array([1, 2])
    tagged = APPLY(lambda t: plain, foreign.Tensor())
    assert tagged is plain and tagged == tvm_ffi.Array([1, 2]) and repr(tagged) == "(1, 2)"


def test_without_framework_tensors_there_is_no_tag() -> None:
    numpy = pytest.importorskip("numpy")
    array = GET("testing.make_array_with_tensor")(numpy.zeros(3))
    assert type(array[0]) is Tensor and array[0] is array[0]


# ---- the call's context -------------------------------------------------------------------------


def current_stream(*arguments: Any, device: tuple[int, int] = (2, 0)) -> int:
    """The stream that is current in a call with these arguments."""
    where = tvm_ffi.device(*device)
    return APPLY(lambda *_: tvm_ffi.get_raw_stream(where), *arguments)


@FRAMEWORKS
def test_the_stream_of_the_framework_is_the_call_s(cls: type[foreign.Tensor]) -> None:
    foreign.streams.update({(2, 0): 0x111, (2, 1): 0x222})
    where = tvm_ffi.device("cuda:0")
    gpu, other, host = cls(device=(2, 0)), cls(device=(2, 1)), cls()
    assert current_stream(gpu) == 0x111 and tvm_ffi.get_raw_stream(where) == 0
    assert current_stream(host) == 0 and current_stream() == 0
    assert current_stream(host, gpu, other) == 0x111
    assert current_stream(other, gpu) == 0, "the first device counts"
    assert current_stream(other, gpu, device=(2, 1)) == 0x222
    assert current_stream([{"a": gpu}]) == 0x111
    assert current_stream([other], gpu) == 0
    with tvm_ffi.use_raw_stream(where, 5):
        assert current_stream(gpu) == 0x111 and current_stream(host) == 5
        assert tvm_ffi.get_raw_stream(where) == 5
    tagged = GET("testing.make_array_with_tensor")(gpu)
    assert current_stream(tagged) == 0x111, "a container brings the stream of its tensors"

    def fail(*_: Any) -> None:
        raise ValueError("boo")

    with pytest.raises(ValueError, match="boo"):
        APPLY(fail, gpu)
    assert tvm_ffi.get_raw_stream(where) == 0, "restored after a failure"


def test_nested_calls_have_contexts_of_their_own() -> None:
    foreign.streams.update({(2, 0): 0x111, (2, 1): 0x222})
    gpu, other = foreign.Tensor(device=(2, 0)), foreign.Tensor(device=(2, 1))
    seen: list[int] = []

    def outer(_: Any) -> None:
        seen.append(current_stream(other, device=(2, 1)))
        seen.append(tvm_ffi.get_raw_stream(tvm_ffi.device("cuda:0")))
        seen.append(tvm_ffi.get_raw_stream(tvm_ffi.device("cuda:1")))

    APPLY(outer, gpu)
    assert seen == [0x222, 0x111, 0]


def test_streams_of_producers_without_api() -> None:
    class OnGPU:
        def __init__(self, stream: object) -> None:
            self.stream = stream

        def __dlpack__(self) -> Any:
            return foreign.make_capsule(device=(2, 0))

        def __tvm_ffi_env_stream__(self) -> Any:
            return self.stream

    assert current_stream(OnGPU(0x333)) == 0x333
    foreign.streams[2, 1] = 0x222
    assert current_stream(foreign.Tensor(device=(2, 1)), OnGPU(0x333)) == 0x333
    with pytest.raises(TypeError, match="__tvm_ffi_env_stream__.. of OnGPU must return an int"):
        current_stream(OnGPU("x"))


def allocator() -> int | None:
    get = tvm_ffi.LIB.TVMFFIEnvGetDLPackManagedTensorAllocator
    get.restype = ctypes.c_void_p
    return get()


def test_the_allocator_of_the_framework_is_the_call_s() -> None:
    before = allocator()
    assert APPLY(lambda _: allocator() or 0, foreign.Tensor()) == 0x1234
    assert APPLY(lambda _: allocator() or 0, [foreign.Tensor()]) == 0x1234
    assert allocator() == before
    assert APPLY(lambda _: allocator() or 0, 1) == (before or 0)


def test_constructors_do_not_set_a_context() -> None:
    foreign.streams[2, 0] = 0x111
    seen: list[int] = []

    class Spy:
        def __tvm_ffi_value__(self) -> int:
            seen.append(tvm_ffi.get_raw_stream(tvm_ffi.device("cuda:0")))
            return 1

    tvm_ffi.Array([foreign.Tensor(device=(2, 0)), Spy()])
    assert seen == [0]


def test_the_exchange_api_can_be_switched_off() -> None:
    program = """
import os
os.environ["TVM_FFI_SKIP_DLPACK_C_EXCHANGE_API"] = "1"
import foreign, tvm_ffi
from tvm_ffi.testing import echo
class Both(foreign.Tensor):
    def __dlpack__(self): return foreign.make_capsule(shape=(9,))
print(type(echo(Both())).__name__, echo(Both()).shape, foreign.calls)
"""
    assert run_python(program) == "Tensor (9,) []\n"


# ---- signs that are not in the memory -----------------------------------------------------------


def values_of(tensor: Any) -> list[float]:
    address = tensor.address if isinstance(tensor, foreign.Tensor) else tensor.data_ptr()
    return list((ctypes.c_float * 6).from_address(address))


@pytest.mark.parametrize("cls", [foreign.Signed, foreign.SignedView])
@pytest.mark.parametrize(("conj", "neg"), [(True, False), (False, True), (True, True)])
def test_lazy_signs_are_resolved(cls: Any, conj: bool, neg: bool) -> None:
    plain = cls([1, 2, 3, 4, 5, 6])
    assert echo(plain).address == plain.address, "nothing to resolve, nothing copied"
    lazy = cls([1, 2, 3, 4, 5, 6], conj=conj, neg=neg)
    expected = lazy.meant()
    for way in (
        echo,
        lambda t: echo([t])[0],
        lambda t: tvm_ffi.Array([t])[0],
        lambda t: Box(t).tensor,
    ):
        got = way(lazy)
        assert values_of(got) == expected
    assert values_of(lazy) == [1, 2, 3, 4, 5, 6], "the given one stays as it is"
    with pytest.raises(BufferError, match="with the (conj|neg) bit set cannot share its memory"):
        from_dlpack(lazy)


def test_lazy_signs_that_cannot_be_asked_for() -> None:
    class Raises(foreign.Signed):
        def is_neg(self) -> bool:
            raise KeyError("mine")

    class Fails(foreign.Signed):
        def resolve_neg(self) -> Any:
            raise KeyError("mine")

    class Lies(foreign.Signed):
        def resolve_neg(self) -> Any:
            return 3

    one = [1, 2, 3, 4, 5, 6]
    for tensor in (Raises(one), Fails(one, neg=True)):
        with pytest.raises(KeyError, match="mine"):
            echo(tensor)
    with pytest.raises(TypeError, match="resolve_neg.. of Lies returned int"):
        echo(Lies(one, neg=True))


# ---- torch --------------------------------------------------------------------------------------


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def test_torch_tensors_come_back_as_such(torch: Any) -> None:
    for given in (
        torch.arange(6, dtype=torch.float32).reshape(2, 3),
        torch.zeros(4, 6)[::2, 1::2],
        torch.zeros(()),
        torch.zeros(0, 3),
        torch.zeros(3, dtype=torch.bfloat16),
        torch.zeros(3, dtype=torch.bool),
        torch.nn.Parameter(torch.zeros(2)),
    ):
        got = echo(given)
        assert isinstance(got, torch.Tensor)
        assert got.data_ptr() == given.data_ptr() and got.dtype == given.dtype
        assert got.shape == given.shape and got.device == given.device
        assert got.numel() < 2 or got.stride() == given.stride()
        tensor = from_dlpack(given)
        assert tensor.data_ptr() == given.data_ptr() and tensor.shape == tuple(given.shape)


def test_torch_tensors_with_a_sign_bit_arrive_with_their_values(torch: Any) -> None:
    numbers = torch.tensor([1 + 2j, 3 - 1j])
    plain = [torch.ones(2), torch.nn.Parameter(torch.ones(2)), torch.ones(2, 2)[:, 1], numbers]
    for _ in range(3):  # the first of a class is looked at more closely
        for tensor in [*plain, numbers.conj(), numbers.conj().imag, torch._neg_view(plain[0])]:
            got = echo(tensor)
            assert got.tolist() == tensor.resolve_conj().resolve_neg().tolist()
            has_bit = tensor.is_conj() or tensor.is_neg()
            if not has_bit:
                assert got.data_ptr() == tensor.data_ptr()
                from_dlpack(tensor)
                continue
            with pytest.raises(BufferError, match="bit set cannot share its memory"):
                from_dlpack(tensor)


def test_torch_shares_memory_both_ways(torch: Any) -> None:
    tensor = from_dlpack(torch.zeros(3))
    back = torch.from_dlpack(tensor)
    back[1] = 4
    assert torch.utils.dlpack.from_dlpack(tensor.__dlpack__()).tolist() == [0, 4, 0]
    del tensor
    gc.collect()
    assert back.tolist() == [0, 4, 0]


def test_torch_tensors_live_with_cpp(torch: Any) -> None:
    given = torch.zeros(3)
    count = sys.getrefcount(given)
    box = tvm_ffi.Array([given])
    VIEW(given), echo(given), echo([given, {"a": given}])
    address = given.data_ptr()
    del box
    assert sys.getrefcount(given) == count
    box = tvm_ffi.Array([given])
    del given
    collect()
    assert box[0].data_ptr() == address and torch.from_dlpack(box[0]).tolist() == [0, 0, 0]


def test_torch_results_do_not_keep_the_argument(torch: Any) -> None:
    given = torch.arange(3.0)
    count = sys.getrefcount(given)
    results = [echo(given) for _ in range(10)]
    assert sys.getrefcount(given) <= count + 1  # torch's own, while it shares the tensor
    del given
    assert results[0].tolist() == [0, 1, 2]


def test_torch_tensors_that_change_while_cpp_has_them(torch: Any) -> None:
    given = torch.arange(6.0).reshape(2, 3)
    kept = echo([given])
    given.unsqueeze_(0)
    assert kept[0].shape == (2, 3) and kept[0].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_torch_in_containers_and_callbacks(torch: Any) -> None:
    t = torch.ones(2, 2)
    assert isinstance(GET("testing.make_array_with_tensor")(t)[0], torch.Tensor)
    assert isinstance(echo({"a": [t]})["a"][0], torch.Tensor)
    seen: list[Any] = []
    tvm_ffi.convert_func(seen.append, tensor_cls=torch.Tensor)(t)
    tvm_ffi.convert_func(seen.append)(t)
    assert isinstance(seen[0], torch.Tensor) and type(seen[1]) is Tensor
    assert type(tvm_ffi.convert(t)) is Tensor
    with pytest.raises(ValueError, match="boo"):
        tvm_ffi.convert_func(lambda x: (_ for _ in ()).throw(ValueError("boo")))(t)


def test_torch_resolves_lazy_signs(torch: Any) -> None:
    neg = torch._neg_view(torch.ones(2))
    conj = torch.complex(torch.ones(2), torch.ones(2)).conj()
    for given in (neg, conj, conj.imag, torch._neg_view(torch.ones(2, dtype=torch.int32))):
        assert given.is_neg() or given.is_conj()
        assert echo(given).tolist() == given.tolist()
        assert echo([given])[0].tolist() == given.tolist()
        assert torch.from_dlpack(tvm_ffi.Array([given])[0]).tolist() == given.tolist()
        for refused in (from_dlpack, tvm_ffi.convert):
            with pytest.raises(BufferError, match="bit set cannot share its memory"):
                refused(given)
        assert from_dlpack(given.resolve_conj().resolve_neg()).shape == (2,)
    assert echo(torch.ones(2)).tolist() == [1, 1]


def test_torch_tensors_without_memory_are_refused(torch: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.ones(2)
    for given in (
        torch.eye(2).to_sparse(),
        torch.ones(2, device="meta"),
        torch._efficientzerotensor(3),
        fake,
    ):
        for use in (echo, from_dlpack, VIEW):
            with pytest.raises((BufferError, RuntimeError, ValueError)):
                use(given)


def test_torch_does_not_get_read_only_tensors(torch: Any) -> None:
    tensor = from_dlpack(foreign.make_capsule("dltensor_versioned", flags=READ_ONLY))
    assert tvm_ffi.convert_func(lambda a, b: b)(torch.ones(1), tensor) is tensor


def test_torch_without_exchange_api(torch: Any) -> None:
    program = """
import os
os.environ["TVM_FFI_SKIP_DLPACK_C_EXCHANGE_API"] = "1"
import torch, tvm_ffi
from tvm_ffi.testing import echo
t = torch.arange(6.0).reshape(2, 3)
got = echo(t)
print(type(got).__name__, got.data_ptr() == t.data_ptr(), got.tolist() == t.tolist())
print(type(echo([t])[0]).__name__, type(echo(t.to(torch.bfloat16))).__name__)
c = torch.complex(torch.ones(1), torch.ones(1)).conj()
print(echo(c).item(), echo(torch._neg_view(torch.ones(1))).item())
"""
    assert run_python(program) == "Tensor True True\nTensor Tensor\n(1-1j) -1.0\n"


def test_torch_is_found_without_being_imported_first(torch: Any) -> None:
    program = """
import sys, tvm_ffi
from tvm_ffi.testing import echo
print("torch" in sys.modules)
import torch
print(type(echo(torch.zeros(2))) is torch.Tensor, echo(torch.float16))
"""
    assert run_python(program) == "False\nTrue float16\n"


# ---- the extension for older torch --------------------------------------------------------------


class FakeTorch:
    """Enough of torch for the functions that look at its version."""

    def __init__(self, available: bool, cuda: str | None, hip: str | None) -> None:
        self.cuda = type("cuda", (), {"is_available": staticmethod(lambda: available)})
        self.version = type("version", (), {"cuda": cuda, "hip": hip})


def test_the_device_of_the_torch_extension() -> None:
    from tvm_ffi._optional_torch_c_dlpack import _torch_extension_device

    assert _torch_extension_device(FakeTorch(False, "12.1", None)) == "cpu"
    assert _torch_extension_device(FakeTorch(True, "12.1", None)) == "cuda"
    assert _torch_extension_device(FakeTorch(True, None, "6.0")) == "rocm"
    assert _torch_extension_device(FakeTorch(True, None, None)) == "cuda"


def test_old_names_of_the_api_are_understood() -> None:
    from tvm_ffi._optional_torch_c_dlpack import _check_and_update_dlpack_c_exchange_api as check

    class Old:
        __c_dlpack_exchange_api__ = ctypes.addressof(foreign.api)

    class OldCapsule:
        __c_dlpack_exchange_api__ = foreign.Tensor.__dlpack_c_exchange_api__

    assert not check(object) and check(foreign.Tensor)
    assert check(Old) and check(OldCapsule)
    assert "dlpack_exchange_api" in repr(Old.__dlpack_c_exchange_api__)  # type: ignore[attr-defined]
    assert OldCapsule.__dlpack_c_exchange_api__ is OldCapsule.__c_dlpack_exchange_api__  # type: ignore[attr-defined]


def test_the_extension_is_loaded_only_where_it_is_missing() -> None:
    program = """
import sys, types
torch = types.ModuleType("torch")
torch.Tensor = type("Tensor", (), {"__dlpack_c_exchange_api__": 1})
torch.cuda = types.SimpleNamespace(is_available=lambda: False)
torch.dtype = type("dtype", (), {})
sys.modules["torch"] = torch
import tvm_ffi
from tvm_ffi._optional_torch_c_dlpack import load_torch_c_dlpack_extension as load
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "torch_c_dlpack_ext":
            print("looked for it")
sys.meta_path.insert(0, Finder())
print(load())
del torch.Tensor.__dlpack_c_exchange_api__
print(load())
"""
    assert run_python(program) == "None\nlooked for it\nNone\n"


def test_from_dlpack_takes_each_argument_once() -> None:
    first, second = foreign.Tensor((2,)), foreign.Tensor((3,))
    with pytest.raises(TypeError, match="multiple values for argument 'ext_tensor'"):
        tvm_ffi.from_dlpack(first, ext_tensor=second)  # type: ignore[call-arg]
    assert tvm_ffi.from_dlpack(ext_tensor=second, require_alignment=8).shape == (3,)
