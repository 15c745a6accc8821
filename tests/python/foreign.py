# SPDX-License-Identifier: Apache-2.0
"""Tensors of a framework that does not exist, made with ctypes: any device, any defect.

>>> tensor = Tensor((2, 3), device=(2, 0))      # "on a GPU", which nothing here looks at
>>> capsule = make_capsule(shape=(2, -3))       # a capsule no consumer should take
"""

from __future__ import annotations

import ctypes
from typing import Any

DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


INTEGERS = ctypes.POINTER(ctypes.c_int64)  # one type for good: the cache of ctypes may be emptied


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", INTEGERS),
        ("strides", INTEGERS),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [
        ("dl_tensor", DLTensor),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", DELETER),
    ]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("dl_tensor", DLTensor),
    ]


class ExchangeAPI(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("prev_api", ctypes.c_void_p),
        ("allocator", ctypes.c_void_p),
        ("from_py", ctypes.c_void_p),
        ("to_py", ctypes.c_void_p),
        ("dltensor_from_py", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    ]


assert ctypes.sizeof(DLTensor) == 48
assert ctypes.sizeof(Managed) == 64
assert ctypes.sizeof(ManagedVersioned) == 80
assert ctypes.sizeof(ExchangeAPI) == 56

live: dict[int, Any] = {}  # managed tensors that nobody has deleted, by address


@DELETER
def _delete(address: int) -> None:
    del live[address]


def fill(
    tensor: DLTensor,
    data: int,
    shape: tuple[int, ...] | None,
    strides: tuple[int, ...] | None,
    dtype: tuple[int, int, int],
    device: tuple[int, int],
    ndim: int | None = None,
    byte_offset: int = 0,
) -> list[Any]:
    """Write a DLTensor; returns what must stay alive with it."""
    keep = []
    tensor.data = data
    tensor.device_type, tensor.device_id = device
    tensor.code, tensor.bits, tensor.lanes = dtype
    tensor.ndim = ndim if ndim is not None else len(shape or ())
    tensor.byte_offset = byte_offset
    for name, values in (("shape", shape), ("strides", strides)):
        if values is not None:
            array = (ctypes.c_int64 * max(1, len(values)))(*values)
            keep.append(array)
            setattr(tensor, name, ctypes.cast(array, INTEGERS))
    return keep


def make_managed(
    kind: type[Managed | ManagedVersioned] = Managed,
    *,
    shape: tuple[int, ...] | None = (2, 3),
    strides: tuple[int, ...] | None = None,
    dtype: tuple[int, int, int] = (2, 32, 1),
    device: tuple[int, int] = (1, 0),
    ndim: int | None = None,
    byte_offset: int = 0,
    data: Any = None,
    version: tuple[int, int] = (1, 3),
    flags: int = 0,
    deleter: bool = True,
) -> int:
    """Return the address of a managed tensor; it is in `live` until its deleter is called."""
    if data is None:
        data = ctypes.create_string_buffer(256)
    managed = kind()
    keep = fill(
        managed.dl_tensor,
        ctypes.addressof(data) if not isinstance(data, int) else data,
        shape,
        strides,
        dtype,
        device,
        ndim,
        byte_offset,
    )
    if kind is ManagedVersioned:
        managed.major, managed.minor = version
        managed.flags = flags
    address = ctypes.addressof(managed)
    if deleter:
        managed.deleter = _delete
    live[address] = (managed, data, keep)
    return address


_names: dict[bytes, bytes] = {}  # a capsule keeps only the address of its name


def capsule_of(address: int, name: bytes | None) -> Any:
    name = _names.setdefault(name, name) if name is not None else None
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address, name, None)


def make_capsule(name: str = "dltensor", **kwargs: Any) -> Any:
    """Return a capsule of that name around a managed tensor of the matching kind."""
    kind = ManagedVersioned if "versioned" in name else Managed
    return capsule_of(make_managed(kind, **kwargs), name.encode())


def name_of(capsule: Any) -> str:
    get = ctypes.pythonapi.PyCapsule_GetName
    get.restype = ctypes.c_char_p
    get.argtypes = [ctypes.py_object]
    return get(capsule).decode()


# ---- a framework --------------------------------------------------------------------------------

calls: list[Any] = []  # what the framework was asked, newest last
streams: dict[tuple[int, int], int] = {}  # current stream by device
refuse = {"from_py": False, "to_py": False}  # makes the framework raise


class Tensor:
    """A tensor of the framework."""

    __dlpack_c_exchange_api__: Any

    def __init__(
        self,
        shape: tuple[int, ...] = (2, 3),
        device: tuple[int, int] = (1, 0),
        dtype: tuple[int, int, int] = (2, 32, 1),
    ) -> None:
        self.shape, self.device, self.dtype = shape, device, dtype
        self.memory = ctypes.create_string_buffer(256)
        self.address = ctypes.addressof(self.memory)
        self.imported: int | None = None

    @classmethod
    def over(cls, managed: int) -> Tensor:
        """Take a managed tensor over."""
        self = cls.__new__(cls)
        view = ManagedVersioned.from_address(managed).dl_tensor
        self.shape = tuple(view.shape[i] for i in range(view.ndim))
        self.device = (view.device_type, view.device_id)
        self.dtype = (view.code, view.bits, view.lanes)
        self.address = view.data
        self.imported = managed
        return self

    def __del__(self) -> None:
        if getattr(self, "imported", None) is not None:
            ManagedVersioned.from_address(self.imported).deleter(self.imported)


class ViewTensor(Tensor):
    """One whose framework also lends a DLTensor without an owner."""

    strides: tuple[int, ...] = ()  # none: its elements lie side by side


class Signed(Tensor):
    """One that may be conjugated or negated by a bit, as those of torch: six numbers, or three
    complex ones. The memory has the values from before."""

    def __init__(self, values: list[float], conj: bool = False, neg: bool = False) -> None:
        super().__init__(shape=(3,), dtype=(5, 64, 1))
        ctypes.memmove(self.memory, (ctypes.c_float * 6)(*values), 24)
        self.conj, self.neg = conj, neg

    def stored(self) -> list[float]:
        return list((ctypes.c_float * 6).from_address(self.address))

    def meant(self) -> list[float]:
        signs = (-1 if self.neg else 1, -1 if self.neg != self.conj else 1)
        return [value * signs[i % 2] for i, value in enumerate(self.stored())]

    def is_conj(self) -> bool:
        return self.conj

    def is_neg(self) -> bool:
        return self.neg

    def resolve_conj(self) -> Any:
        values = [-v if self.conj and i % 2 else v for i, v in enumerate(self.stored())]
        return type(self)(values, neg=self.neg)

    def resolve_neg(self) -> Any:
        values = [-v if self.neg else v for v in self.stored()]
        return type(self)(values, conj=self.conj)


class SignedView(Signed):
    """The same, lent as a DLTensor."""

    strides = ()


class Lagging(Tensor):
    """One whose framework is of a DLPack version that is not understood."""


FROM_PY = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.c_void_p))
TO_PY = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
DLTENSOR = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
STREAM = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p)
)


@FROM_PY
def _from_py(tensor: Any, out: Any) -> int:
    calls.append(("from_py", tensor))
    if refuse["from_py"]:
        return _refusal()
    address = make_managed(
        ManagedVersioned,
        shape=tensor.shape,
        device=tensor.device,
        dtype=tensor.dtype,
        data=tensor.address,
    )
    live[address] += (tensor,)
    out[0] = address
    return 0


@TO_PY
def _to_py(managed: int, out: Any) -> int:
    calls.append(("to_py", managed))
    if refuse["to_py"]:
        ManagedVersioned.from_address(managed).deleter(managed)
        return _refusal()
    tensor = Tensor.over(managed)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(tensor))
    out[0] = id(tensor)
    return 0


@DLTENSOR
def _dltensor(tensor: Any, out: Any) -> int:
    calls.append(("dltensor", tensor))
    strides = tensor.strides or strides_of(tensor.shape)
    tensor.keep = fill(out[0], tensor.address, tensor.shape, strides, tensor.dtype, tensor.device)
    return 0


@STREAM
def _stream(device_type: int, device_id: int, out: Any) -> int:
    calls.append(("stream", (device_type, device_id)))
    out[0] = streams.get((device_type, device_id), 0)
    return 0


def _refusal() -> int:
    # ctypes clears an exception that is set inside a callback, so a refusal has no text here.
    return -1


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _make_api(major: int, with_view: bool) -> ExchangeAPI:
    return ExchangeAPI(
        major=major,
        minor=3,
        allocator=0x1234,  # never called here
        from_py=_address(_from_py),
        to_py=_address(_to_py),
        dltensor_from_py=_address(_dltensor) if with_view else None,
        stream=_address(_stream),
    )


api = _make_api(1, False)
view_api = _make_api(1, True)
lagging_api = _make_api(2, False)
Tensor.__dlpack_c_exchange_api__ = capsule_of(ctypes.addressof(api), b"dlpack_exchange_api")
ViewTensor.__dlpack_c_exchange_api__ = ctypes.addressof(view_api)  # older producers have an int
SignedView.__dlpack_c_exchange_api__ = ctypes.addressof(view_api)
Lagging.__dlpack_c_exchange_api__ = capsule_of(
    ctypes.addressof(lagging_api), b"dlpack_exchange_api"
)


def reset() -> None:
    """Forget what happened."""
    calls.clear()
    streams.clear()
    refuse.update(from_py=False, to_py=False)
