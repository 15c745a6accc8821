# SPDX-License-Identifier: Apache-2.0
"""Every global function ``testing.<name>`` as an attribute."""

from .. import registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    def __getattr__(name: str) -> Any: ...


registry.init_ffi_api("testing", __name__)

__all__ = [name for name, value in vars().items() if isinstance(value, registry.core.Function)]
