# SPDX-License-Identifier: Apache-2.0
"""Object graphs as JSON text: shared objects stay shared.

>>> import tvm_ffi
>>> from tvm_ffi import serialization
>>> text = serialization.to_json_graph_str(tvm_ffi.Array([1, 2]))
>>> serialization.from_json_graph_str(text)
(1, 2)
"""

from __future__ import annotations

from . import _ffi_api

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["from_json_graph_str", "to_json_graph_str"]


def to_json_graph_str(obj: Any, metadata: dict[str, Any] | None = None) -> str:
    """Write `obj` and everything it reaches; `metadata` is stored beside the graph."""
    return _ffi_api.ToJSONGraphString(obj, metadata)


def from_json_graph_str(json_str: str) -> Any:
    """Build the value that `to_json_graph_str` wrote."""
    return _ffi_api.FromJSONGraphString(json_str)
