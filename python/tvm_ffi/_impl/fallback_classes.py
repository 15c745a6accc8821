# SPDX-License-Identifier: Apache-2.0
"""Classes for types that no class is registered for.

>>> import tvm_ffi
>>> tvm_ffi.core._class_of_index(tvm_ffi.core._abi.kTVMFFIModule).__name__
'Module'
"""

from __future__ import annotations

import sys
from _thread import RLock
from weakref import WeakSet

from .objects import Object, _ObjectSlotsMeta
from .operators import install_methods
from .type_info import cls_to_info, info_of_index

TYPE_CHECKING = False  # typing costs a third of the import time, and only checkers need it
if TYPE_CHECKING:
    from typing import Any

# Half initialised at this point: its C types and functions exist.
core: Any = sys.modules["tvm_ffi.core"]


_FALLBACK_DOC = """Auto-generated fallback class for {key}.

No Python class was registered for this type when its first object arrived. Give it one with
``@tvm_ffi.register_object("{key}")`` before that.
"""


_fallback_lock = RLock()
_fallback_classes: WeakSet[type] = WeakSet()
# Classes of the package that are defined when an object of theirs, or their module, is first used.
_DEFINED_ON_USE = {
    "ffi.Enum": "tvm_ffi.dataclasses.enum",
    "ffi.EnumState": "tvm_ffi.dataclasses.enum",
    "ffi.IntEnum": "tvm_ffi.dataclasses.enum",
    "ffi.StrEnum": "tvm_ffi.dataclasses.enum",
}


def fallback_class(type_index: int) -> type:
    """Make and register the class of a type that has none; its parents' classes come first."""
    with _fallback_lock:
        cls = core._class_of_index(type_index)
        if cls is None:
            module = _DEFINED_ON_USE.get(info_of_index(type_index).type_key)
            if module is not None and module not in sys.modules:
                __import__(module)
                cls = core._class_of_index(type_index)
        return cls or _make_class(type_index)


def _is_fallback_class(cls: type) -> bool:
    """Whether a class was made here, to be replaced by one that is registered."""
    return cls in _fallback_classes


def _make_class(type_index: int) -> type:
    info = info_of_index(type_index)
    base: type = Object
    for ancestor in info.type_ancestors:
        base = fallback_class(ancestor)
    module, _, name = info.type_key.rpartition(".")
    namespace = {
        "__slots__": (),
        "__module__": module,
        "__qualname__": info.type_key,
        "__doc__": _FALLBACK_DOC.format(key=info.type_key),
    }
    cls: Any = _ObjectSlotsMeta(name, (base,), namespace)
    _fallback_classes.add(cls)
    cls.__tvm_ffi_type_info__ = info
    for field in info.fields or ():
        field._install(cls)
    install_methods(cls, info.methods)
    if info.type_cls is None:
        info.type_cls = cls
    cls_to_info[cls] = info
    core._set_class_of_index(type_index, cls)
    return cls
