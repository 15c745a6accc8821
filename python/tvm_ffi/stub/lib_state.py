# SPDX-License-Identifier: Apache-2.0
"""Questions to the registry."""

from __future__ import annotations

import functools
import heapq
from collections import defaultdict
from collections.abc import Iterable

from .. import _ffi_api
from ..core import TypeSchema, _lookup_or_register_type_info_from_type_key
from ..registry import get_global_func, get_global_func_metadata, list_global_func_names
from . import consts as C
from .utils import FuncInfo, NamedTypeSchema, ObjectInfo

__all__ = [
    "FuncInfo",
    "NamedTypeSchema",
    "ObjectInfo",
    "TypeSchema",
    "collect_global_funcs",
    "collect_type_keys",
    "get_global_func_metadata",
    "list_global_func_names",
    "object_info_from_type_key",
    "toposort_objects",
]


@functools.cache
def object_info_from_type_key(type_key: str) -> ObjectInfo:
    """Return what is registered about a type; it is an error if there is no such type."""
    return ObjectInfo.from_type_info(_lookup_or_register_type_info_from_type_key(str(type_key)))


def collect_global_funcs() -> dict[str, list[FuncInfo]]:
    """Return the global functions by the part of their names before the last dot."""
    found: defaultdict[str, list[FuncInfo]] = defaultdict(list)
    for name in sorted(list_global_func_names()):
        prefix, dot, _ = name.rpartition(".")
        if not dot:
            text = f"[Skipped] Invalid name in global function: {name}"
            print(f"{C.TERM_YELLOW}{text}{C.TERM_RESET}")
            continue
        schema = (get_global_func_metadata(name) or {}).get("type_schema")
        if schema is None:
            text = f"[Skipped] Function has no type schema: {name}"
            print(f"{C.TERM_YELLOW}{text}{C.TERM_RESET}")
            continue
        function = get_global_func(name, allow_missing=True)
        info = FuncInfo.from_schema(name, TypeSchema._from_maybe_json(schema), function=function)
        found[prefix].append(info)
    return dict(found)


def collect_type_keys() -> dict[str, list[str]]:
    """Return the keys of types by the part before the last dot."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for key in sorted(map(str, _ffi_api.GetRegisteredTypeKeys())):
        prefix, dot, _ = key.rpartition(".")
        if dot:
            found[prefix].append(key)
    return dict(found)


def toposort_objects(type_keys: Iterable[str]) -> list[ObjectInfo]:
    """Return the types with parents before children, otherwise in alphabetical order."""
    infos = {key: object_info_from_type_key(key) for key in type_keys}
    children: defaultdict[str | None, list[str]] = defaultdict(list)
    for key, info in infos.items():
        children[info.parent_type_key].append(key)
    heap = [key for key, info in infos.items() if info.parent_type_key not in infos]
    heapq.heapify(heap)
    ordered = []
    while heap:
        key = heapq.heappop(heap)
        ordered.append(infos[key])
        for child in children[key]:
            heapq.heappush(heap, child)
    return ordered
