# SPDX-License-Identifier: Apache-2.0
"""The order of imports in a new package whose classes have bases in its other modules.

Usually a module imports what it needs in its import section. That fails if the base class is in
a module that needs this one, or if the library, which the root loads, is not there yet. Then base
classes are imported just before the class that needs them, and classes with bases in other modules
come after those without: a module that is imported half-way has them already. What cannot be
imported even so is an error. All this is found out by playing the imports through.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ..utils import ObjectInfo
from .codegen import base_of

_Modules = dict[str, list[ObjectInfo]]


def _module(type_key: str | None) -> str:
    return (type_key or "").rpartition(".")[0]


class _Import:
    """A process that imports modules of a package; only what fails is of interest."""

    def __init__(self, modules: _Modules, bases: Mapping[str, str], root: str, late: bool) -> None:
        self.modules, self.bases, self.root, self.late = modules, bases, root, late
        self.begun: set[str] = set()
        self.done: set[str] = set()
        self.defined: set[str | None] = set()
        self.has_library = root not in modules
        self.missing: str | None = None  # the first class whose base is not there

    def load(self, module: str) -> None:
        parts = module.split(".")
        for i in range(1, len(parts)):
            outer = ".".join(parts[:i])
            if outer in self.modules:
                self.load(outer)
        if module in self.begun:
            return
        self.begun.add(module)
        infos = self.modules[module]
        if not self.late:
            for other in sorted({_module(key) for key in map(self._foreign, infos) if key}):
                self.load(other)
                if other not in self.done:
                    self.missing = self.missing or next(
                        i.type_key for i in infos if _module(self._foreign(i)) == other
                    )
        self.has_library |= module == self.root
        for info in infos:
            foreign = self._foreign(info)
            if foreign is not None and self.late:
                self.load(_module(foreign))
                if foreign not in self.defined:
                    self.missing = self.missing or info.type_key
            if not self.has_library:
                self.missing = self.missing or info.type_key
            self.defined.add(info.type_key)
        self.done.add(module)

    def _foreign(self, info: ObjectInfo) -> str | None:
        """Return the base of a class if another module of the package has it."""
        base = self.bases[info.type_key or ""]
        is_foreign = base in self.bases and _module(base) != _module(info.type_key)
        return base if is_foreign else None


def _first_failure(
    modules: _Modules, bases: Mapping[str, str], root: str, late: bool
) -> str | None:
    for first in modules:
        process = _Import(modules, bases, root, late)
        process.load(first)
        if process.missing is not None:
            return process.missing
    return None


def _crossings(key: str, bases: Mapping[str, str]) -> int:
    """Return how often the line of ancestors goes from one module to another."""
    count = 0
    while key in bases:
        count += bases[key] in bases and _module(bases[key]) != _module(key)
        key = bases[key]
    return count


def _line(key: str, bases: Mapping[str, str]) -> Iterable[str]:
    while key in bases:
        yield f"`{key}`"
        key = bases[key]


def arrange(
    modules: _Modules, new: Collection[str], ty_map: Mapping[str, str], root: str
) -> tuple[_Modules, set[str]]:
    """Return the modules with their classes in order, and the bases that are imported late.

    :param new: the keys of classes that are not in a file yet
    """
    bases = {
        info.type_key or "": base_of(info, ty_map) for infos in modules.values() for info in infos
    }
    # What has another name is not imported from this package.
    bases = {key: "" if base in ty_map else base for key, base in bases.items()}
    if _first_failure(modules, bases, root, late=False) is None:
        return modules, set()

    def place(info: ObjectInfo) -> tuple[bool, int]:
        key = info.type_key or ""
        return key in new, _crossings(key, bases)

    ordered = {module: sorted(infos, key=place) for module, infos in modules.items()}
    failed = _first_failure(ordered, bases, root, late=True)
    if failed is not None and failed in new:
        raise ValueError(
            f"No order of imports can define {' of '.join(_line(failed, bases))}: the line of base "
            "classes goes back to a module that it left. Write these classes by hand, in one file, "
            "or leave them out with `skip`"
        )
    return ordered, {
        base for key, base in bases.items() if base in bases and _module(base) != _module(key)
    }
