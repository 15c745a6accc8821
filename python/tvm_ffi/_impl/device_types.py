# SPDX-License-Identifier: Apache-2.0
"""The device types of DLPack.

>>> from tvm_ffi import DLDeviceType
>>> DLDeviceType.kDLCUDA
<DLDeviceType.kDLCUDA: 2>
"""

from __future__ import annotations

import sys
from enum import IntEnum

TYPE_CHECKING = False  # typing costs a third of the import time, and only checkers need it
if TYPE_CHECKING:
    from typing import Any

core: Any = sys.modules["tvm_ffi.core"]
_abi = core._abi


class DLDeviceType(IntEnum):
    """The device types of DLPack.

    >>> from tvm_ffi import Device, DLDeviceType
    >>> Device(DLDeviceType.kDLCUDA, 1)
    device(type='cuda', index=1)
    """

    kDLCPU = _abi.kDLCPU
    kDLCUDA = _abi.kDLCUDA
    kDLCUDAHost = _abi.kDLCUDAHost
    kDLOpenCL = _abi.kDLOpenCL
    kDLVulkan = _abi.kDLVulkan
    kDLMetal = _abi.kDLMetal
    kDLVPI = _abi.kDLVPI
    kDLROCM = _abi.kDLROCM
    kDLROCMHost = _abi.kDLROCMHost
    kDLExtDev = _abi.kDLExtDev
    kDLCUDAManaged = _abi.kDLCUDAManaged
    kDLOneAPI = _abi.kDLOneAPI
    kDLWebGPU = _abi.kDLWebGPU
    kDLHexagon = _abi.kDLHexagon
    kDLMAIA = _abi.kDLMAIA
    kDLTrn = _abi.kDLTrn


EXPORTS = ("DLDeviceType",)
