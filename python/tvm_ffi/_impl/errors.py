# SPDX-License-Identifier: Apache-2.0
"""Errors from C++ as Python exceptions: which class stands for which kind.

>>> from tvm_ffi import core
>>> core.ERROR_NAME_TO_TYPE["ValueError"]
<class 'ValueError'>
"""

from __future__ import annotations

import builtins
import re
import sys

TYPE_CHECKING = False  # typing costs a third of the import time, and only checkers need it
if TYPE_CHECKING:
    from typing import Any

# Half initialised at this point: its C types and functions exist.
core: Any = sys.modules["tvm_ffi.core"]


ERROR_NAME_TO_TYPE: dict[str, type[Exception]] = {}
ERROR_TYPE_TO_NAME: dict[type[Exception], str] = {}


def _class_of_kind(kind: str, message: str) -> tuple[type[BaseException], str]:
    """Return the class and the text for a kind that is not registered."""
    found = getattr(builtins, kind, None)
    if kind in _BUILTIN_KINDS and found is not None:
        return found, message
    if kind == "InternalError":  # of failed checks in C++: the name says nothing more
        return RuntimeError, message
    return RuntimeError, f"{kind}: {message}"


# Kinds that C++ may raise and Python has a class for, built from one message.
_BUILTIN_KINDS = (
    "ArithmeticError",
    "EOFError",
    "FileExistsError",
    "FileNotFoundError",
    "FloatingPointError",
    "ImportError",
    "LookupError",
    "NotImplementedError",
    "OSError",
    "OverflowError",
    "PermissionError",
    "RecursionError",
    "TimeoutError",
    "ZeroDivisionError",
)
# Types of values that Python gives under names of its own.
_PYTHON_NAMES = {
    "ffi.SmallStr": "str",
    "ffi.String": "str",
    "ffi.SmallBytes": "bytes",
    "ffi.Bytes": "bytes",
    "ffi.OpaquePyObject": "object",
    "ffi.BigInt": "int",
}
# Clients look for the texts with these.
_FIXED_TEXT = ("ffi.OpaquePyObject", "ffi.BigInt")
# What C++ found where it expected something else.
_ACTUAL = re.compile(r"(but got|from type) `([^`]*)`")
_EXPECTS_NUMBER = re.compile(r"(?:Expected|to) `[^`]*\b(?:int|float|bool)\b")
_KEY = re.compile(r"\bffi\.\w+")
_ARGUMENT = re.compile(r"Mismatched type on argument #(\d+) when calling: ")
_REMEDIES = {
    "DLTensor*": "pass an array that supports DLPack, such as numpy.asarray(value)",
    "ffi.Tensor": "pass an array that supports DLPack, such as numpy.asarray(value)",
    "DataType": 'pass a dtype, such as "float32"',
    "Device": 'pass a device, such as tvm_ffi.device("cpu")',
}


def _is_of(cls: type, key: str) -> bool:
    """Whether values of a class arrive in C++ as what it calls `key`.

    The error may be about a call inside C++, whose arguments Python did not give.
    """
    if issubclass(cls, core.CObject):
        info = getattr(cls, "__tvm_ffi_type_info__", None)
        return key == (f"ffi.{cls.__name__}" if info is None else info.type_key)
    for bases, keys in _KEYS_OF_CLASSES:
        if issubclass(cls, bases):
            return key in keys
    return key in _KEYS_OF_OTHERS


_KEYS_OF_CLASSES: tuple[tuple[tuple[type, ...], tuple[str, ...]], ...] = (
    ((str,), ("ffi.SmallStr", "ffi.String", "DataType")),
    ((bytes, bytearray), ("ffi.SmallBytes", "ffi.Bytes")),
    ((tuple, list), ("ffi.Array", "ffi.Shape")),
    ((dict,), ("ffi.Map",)),
)
_KEYS_OF_OTHERS = (
    "DLTensor*",
    "ffi.Error",
    "ffi.Function",
    "ffi.OpaquePyObject",
    "ffi.Tensor",
)


def _actual_name(key: str, cls: type | None) -> str:
    """Say in words of Python what C++ calls `key`; `cls` is the class of the value, if known."""
    # Keys of other types say more than the class of a proxy.
    is_builtin = key.startswith("ffi.") or key == "DLTensor*"
    if cls is not None and is_builtin and _is_of(cls, key):
        # numpy.bool is no bool
        is_namesake = getattr(builtins, cls.__name__, cls) is not cls
        return f"{cls.__module__}.{cls.__name__}" if is_namesake else cls.__name__
    return _KEY.sub(lambda found: _PYTHON_NAMES.get(found.group(), found.group()), key)


def _is_too_large(key: str, message: str) -> bool:
    """Whether a message is about an int that was expected, but has too many bits."""
    return key == "ffi.BigInt" and _EXPECTS_NUMBER.search(message) is not None


def _in_python_words(message: str, classes: tuple[type, ...]) -> str:
    """Name the values that a message of C++ is about by their Python types."""
    cls = None
    argument = _ARGUMENT.match(message)
    if argument is not None:
        position = int(argument.group(1))
        cls = classes[position] if position < len(classes) else None

    def replace(found: re.Match[str]) -> str:
        name = _actual_name(found.group(2), cls)
        beyond = "out of range for int64" if _is_too_large(found.group(2), message) else ""
        if argument is not None and found.group(2) in _FIXED_TEXT:
            said = f"`{name}` in Python, {beyond}" if beyond else f"`{name}` in Python"
            return f"{found.group()} ({said})"
        return f"{found.group(1)} `{name}` ({beyond})" if beyond else f"{found.group(1)} `{name}`"

    text = _ACTUAL.sub(replace, message)
    if argument is not None and "`. Expected `" in text:
        expected = text.rsplit("`. Expected `", 1)[1].split("`", 1)[0]
        if expected in _REMEDIES:
            text = f"{text}; {_REMEDIES[expected]}"
    return text


_CANNOT_CONVERT = re.compile(r"Cannot convert from type `([^`]*)` to `([^`]*)`")


def _of_field(message: str, field: str, type_key: str, cls: type) -> str:
    """Say which field a message is about."""
    about = f"field `{field}` of `{type_key}`"
    failed = _CANNOT_CONVERT.fullmatch(message)
    if failed is None:
        return f"{about}: {message}"
    return f"{about}: expected `{failed.group(2)}`, got `{_actual_name(failed.group(1), cls)}`"


def class_and_text(
    kind: str,
    message: str,
    classes: tuple[type, ...] = (),
    field: str | None = None,
    type_key: str = "",
) -> tuple[type[BaseException], str]:
    """Return the class of the Python exception for an error of C++, and what it says.

    C++ asks where a table does not say it: the kind is not registered, or the message may name
    types. `classes` are those of the arguments that Python gave. With `field` the error is about
    the value given for a field.
    """
    cls: Any = ERROR_NAME_TO_TYPE.get(kind)
    if cls is None:
        cls, message = _class_of_kind(kind, message)
    if cls is TypeError or cls is OverflowError:
        if field is not None:
            message = _of_field(message, field, type_key, classes[0])
        elif "`" in message:
            message = _in_python_words(message, classes)
    return cls, message


EXPORTS = (
    "ERROR_NAME_TO_TYPE",
    "ERROR_TYPE_TO_NAME",
)
