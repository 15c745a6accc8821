# SPDX-License-Identifier: Apache-2.0
"""What the workers import: a class, and a task that is C++ at heart."""

from __future__ import annotations

import tvm_ffi
from tvm_ffi.dataclasses import py_class


@py_class("examples.travel.Layer")
class Layer(tvm_ffi.Object):
    """A node of a model."""

    name: str
    inputs: tvm_ffi.Array[tvm_ffi.Object]
    weight: tvm_ffi.Tensor


def summary(model: tvm_ffi.Array) -> tuple[int, int, bool]:
    """Count layers and elements, and say whether they still share the first layer."""
    elements = sum(layer.weight.numel() for layer in model)
    return len(model), elements, all(layer.inputs[0] is model[0] for layer in list(model)[1:])


def shrink(model: tvm_ffi.Array) -> tvm_ffi.Array:
    """Give back a part of the model: a graph as a result."""
    return tvm_ffi.Array(list(model)[:3])
