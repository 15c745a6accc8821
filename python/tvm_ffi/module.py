# SPDX-License-Identifier: Apache-2.0
"""Libraries of functions that are loaded at run time.

>>> import tvm_ffi
>>> library = tvm_ffi.system_lib("testing.")     # functions linked into the process
>>> library["add_one"](10), library.kind
(11, 'library')
"""

from __future__ import annotations

import enum
import os

from . import _ffi_api, core
from .registry import register_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["Module", "ModulePropertyMask", "load_module", "system_lib"]


class ModulePropertyMask(enum.IntFlag):
    """What a module can be used for."""

    BINARY_SERIALIZABLE = 1
    RUNNABLE = 2
    COMPILATION_EXPORTABLE = 4


@register_object("ffi.Module")
class Module(core.Object):
    """A loaded library; its functions are attributes and items."""

    __slots__ = ("__dict__",)

    imports_: Sequence[Module]
    entry_name = "main"

    @property
    def kind(self) -> str:
        """The kind of library, ``"library"`` for shared libraries."""
        return _ffi_api.ModuleGetKind(self)

    @property
    def imports(self) -> Sequence[Module]:
        """The modules that functions are also looked up in."""
        return self.imports_

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Say whether the module (or one it imports) has a function `name`."""
        return _ffi_api.ModuleImplementsFunction(self, name, query_imports)

    def get_function(self, name: str, query_imports: bool = False) -> core.Function:
        """Return the function `name`."""
        function = _ffi_api.ModuleGetFunction(self, name, query_imports)
        if function is None:
            raise AttributeError(
                f"Module has no function '{name}'; functions that a library registers by name are "
                f"returned by tvm_ffi.get_global_func"
            )
        if function._origin is None:
            doc = _ffi_api.ModuleGetFunctionDoc(self, name, query_imports) or ""
            metadata = _ffi_api.ModuleGetFunctionMetadata(self, name, query_imports) or ""
            file = self.__dict__.get("__file__", "")
            core._describe_function(function, name, doc, metadata, file)
        return function

    def __getattr__(self, name: str) -> core.Function:
        function = self.get_function(name)
        # A function keeps its module alive, so a module that keeps the function makes a cycle. Keep
        # it only where the garbage collector sees that.
        if core._keeps_its_module(function):
            self.__dict__[name] = function
        return function

    def __repr__(self) -> str:
        file = self.__dict__.get("__file__")
        if file is None or not self.__chandle__():
            return core.object_repr(self)
        return f"<ffi.Module '{self.kind}' from '{file}'>"

    def __dir__(self) -> list[str]:
        file = self.__dict__.get("__file__")
        symbols = () if file is None else _functions_in(file)
        return sorted({*super().__dir__(), *symbols})

    def __getitem__(self, name: str) -> core.Function:
        if not isinstance(name, str):
            raise ValueError("Can only take string as function name")
        return self.get_function(name)

    def __call__(self, *args: Any) -> Any:
        return self.get_function(self.entry_name)(*args)

    def get_function_metadata(
        self, name: str, query_imports: bool = False
    ) -> dict[str, Any] | None:
        """Return the metadata the library stores for a function, None if there is none."""
        text = _ffi_api.ModuleGetFunctionMetadata(self, name, query_imports)
        if not text:
            return None
        import json

        return json.loads(text)

    def get_function_doc(self, name: str, query_imports: bool = False) -> str | None:
        """Return the documentation the library stores for a function, None if there is none."""
        return _ffi_api.ModuleGetFunctionDoc(self, name, query_imports) or None

    def import_module(self, module: Module) -> None:
        """Add a module to the imports."""
        _ffi_api.ModuleImportModule(self, module)

    def clear_imports(self) -> None:
        """Forget all imported modules."""
        _ffi_api.ModuleClearImports(self)

    def inspect_source(self, fmt: str = "") -> str:
        """Return the source text, if the module has one in this format."""
        return _ffi_api.ModuleInspectSource(self, fmt)

    def get_write_formats(self) -> Sequence[str]:
        """Return the formats that `write_to_file` accepts."""
        return _ffi_api.ModuleGetWriteFormats(self)

    def write_to_file(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """Write the module in one of its formats."""
        _ffi_api.ModuleWriteToFile(self, os.fspath(file_name), fmt)

    def get_property_mask(self) -> int:
        """Return the bits of `ModulePropertyMask` that hold."""
        return _ffi_api.ModuleGetPropertyMask(self)

    def is_binary_serializable(self) -> bool:
        """Say whether the module can be written as bytes."""
        return bool(self.get_property_mask() & ModulePropertyMask.BINARY_SERIALIZABLE)

    def is_runnable(self) -> bool:
        """Say whether functions of the module can be called."""
        return bool(self.get_property_mask() & ModulePropertyMask.RUNNABLE)

    def is_compilation_exportable(self) -> bool:
        """Say whether the module can be written as input of a compiler."""
        return bool(self.get_property_mask() & ModulePropertyMask.COMPILATION_EXPORTABLE)


def load_module(path: str | os.PathLike[str], keep_module_alive: bool = True) -> Module:
    """Load a library from a file.

    A name without a directory means a file in the working directory, or else a library that the
    system's loader finds. With `keep_module_alive` the library stays loaded until the process ends,
    so that objects whose code lives in it may outlive the module object. Each call makes a new
    module, about a kilobyte, which stays as long. Without it, the library is unloaded when nothing
    holds the module or a function of it; but it stays, too, once it has returned an object (a text
    of more than seven bytes is one) or registered something, because to delete that may need code
    of the library.

    While a library is loaded, the system's loader gives it again for the same path. So a file that
    was built again runs its old code, of which a warning tells, and static initialisers that failed
    do not run again: their error is raised each time. In both cases load a copy of the file under
    another name, or start a new process.
    """
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"load_module expects the path as str, got {type(name).__name__}")
    # The system's loader does not look for a bare name in the working directory.
    if os.sep not in name and os.access(name, os.F_OK):
        name = f".{os.sep}{name}"
    if core._get_global_func("ffi.tether.IsChangedSinceLoaded", False)(name):
        import warnings

        warnings.warn(
            f"{name} has changed since this process loaded it; the code that was loaded then is "
            "used. To run the new code, load a copy under another name, or start a new process",
            RuntimeWarning,
            stacklevel=2,
        )
    try:
        module = _ffi_api.ModuleLoadFromFile(name)
    except RuntimeError as error:
        if "." in name:
            raise
        raise RuntimeError(
            f"{error}; the name of a library ends with .so, .dylib or .dll"
        ) from None
    if keep_module_alive:
        _ffi_api.ModuleGlobalsAdd(module)
    if os.access(path, os.F_OK):
        module.__dict__["__file__"] = os.path.abspath(path)  # noqa: PTH100  (as it was given)
    return module


def _functions_in(file: str) -> list[str]:
    """Return the names of the functions that a library's file exports."""
    from ._impl.elf import exported_symbols

    prefix = "__tvm_ffi_"  # with one more underscore: what belongs to the library or to a function
    try:
        names = [
            symbol.removeprefix(prefix)
            for symbol in exported_symbols(file)
            if symbol.startswith(prefix)
        ]
    except OSError:  # it is gone
        return []
    return [name for name in names if not name.startswith("_")]


def system_lib(symbol_prefix: str = "") -> Module:
    """Return the functions that were linked into the process under a prefix."""
    if not isinstance(symbol_prefix, str):
        kind = type(symbol_prefix).__name__
        raise TypeError(f"system_lib expects a prefix of symbols, got {kind}")
    return _ffi_api.SystemLib(symbol_prefix)
