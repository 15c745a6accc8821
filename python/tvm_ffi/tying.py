# SPDX-License-Identifier: Apache-2.0
"""Inspect the tie between Python objects and C++ objects.

>>> import tvm_ffi
>>> from tvm_ffi import tying
>>> inner = tvm_ffi.Array([1])
>>> outer = tvm_ffi.Array([inner])
>>> tying.state(inner)
'active'
>>> before = tying.stats()["dormant"]
>>> del inner                            # outer still holds the C++ object, so its wrapper is kept
>>> tying.stats()["dormant"] - before
1
>>> tying.state(outer[0])                # fetched again: the same wrapper
'active'
"""

from __future__ import annotations

from . import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["enabled", "state", "stats"]


def state(obj: Any) -> str:
    """Return the state of a wrapper with respect to its C++ object.

    ``"active"``: it owns a reference and is the wrapper that every fetch returns. ``"dormant"``:
    the object outlived the last Python reference and keeps the wrapper (seen through a weak
    reference before its first use). ``"untied"``: it owns a reference but another wrapper is handed
    out. ``"empty"``: never filled, or moved from. ``"gone"``: its C++ object has died.
    """
    return core._tie_state(obj)


def stats() -> dict[str, Any]:
    """Count the wrappers of this process.

    ========= ======================================================================
    live      with a Python reference
    dormant   kept by their C++ object until it comes back to Python, or dies
    adopted   C++ objects of binaries built without tying
    waiting   Python objects whose C++ owner died on a thread that cannot use
              Python; the next operation on any Python thread frees them
    by_type   live and dormant wrappers together, by Python class
    ========= ======================================================================

    Costs some microseconds, whatever the number of objects.

    >>> import tvm_ffi
    >>> from tvm_ffi import tying
    >>> kept = [tvm_ffi.Map({"k": i}) for i in range(3)]
    >>> tying.stats()["by_type"][tvm_ffi.Map] >= 3
    True
    """
    return core._tie_stats()


def enabled() -> bool:
    """Say whether tying is on. It always is; this is for code that also runs elsewhere.

    >>> from tvm_ffi import tying
    >>> tying.enabled()
    True
    """
    return True
