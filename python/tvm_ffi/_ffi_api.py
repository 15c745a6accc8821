# SPDX-License-Identifier: Apache-2.0
"""Every global function ``ffi.<name>`` as an attribute.

>>> from tvm_ffi import _ffi_api
>>> _ffi_api.ArraySize(_ffi_api.Array(1, 2, 3))
3
"""

from . import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    def __getattr__(name: str) -> Any: ...


registry.init_ffi_api("ffi", __name__)

__all__ = [name for name, value in vars().items() if isinstance(value, registry.core.Function)]
