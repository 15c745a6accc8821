# SPDX-License-Identifier: Apache-2.0
"""Who keeps what alive: look at objects, over both languages.

>>> import tvm_ffi
>>> from tvm_ffi import inspect
>>> outer = tvm_ffi.List([tvm_ffi.Array([1])])
>>> inspect.why(outer[0]).cpp_references
2
"""

from ._graph import Graph, GraphEdge, GraphNode, graph
from ._rings import Collected, Ring, collect_rings, rings
from ._snapshot import (
    Diff,
    Entry,
    LeakError,
    Snapshot,
    diff,
    is_recording,
    no_leaks,
    recording,
    snapshot,
    start_recording,
    stop_recording,
)
from ._why import Holder, Why, why

__all__ = [
    "Collected",
    "Diff",
    "Entry",
    "Graph",
    "GraphEdge",
    "GraphNode",
    "Holder",
    "LeakError",
    "Ring",
    "Snapshot",
    "Why",
    "collect_rings",
    "diff",
    "graph",
    "is_recording",
    "no_leaks",
    "recording",
    "rings",
    "snapshot",
    "start_recording",
    "stop_recording",
    "why",
]
