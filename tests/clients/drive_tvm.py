# SPDX-License-Identifier: Apache-2.0
"""Build, compile and run a function with apache-tvm, and look at the identity of its objects."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import tvm
from tvm import te

SIZE = 1024


def make_function() -> tvm.IRModule:
    a = te.placeholder((SIZE,), name="A", dtype="float32")
    b = te.placeholder((SIZE,), name="B", dtype="float32")
    c = te.compute((SIZE,), lambda i: a[i] + b[i], name="C")
    assert a.op is a.op
    return tvm.IRModule({"main": te.create_prim_func([a, b, c])})


def check_identity(module: tvm.IRModule) -> None:
    function = module["main"]
    assert module["main"] is function and function.body is function.body
    assert function.params[0] is function.params[0]
    number, watcher = id(function.body), weakref.ref(function.body)
    gc.collect()
    assert id(function.body) == number and watcher() is function.body


def main() -> None:
    module = make_function()
    check_identity(module)
    assert "T.Buffer" in module.script()
    again = tvm.ir.load_json(tvm.ir.save_json(module))
    tvm.ir.assert_structural_equal(module, again)
    compiled = tvm.compile(module, target="llvm")
    a, b = (tvm.runtime.tensor(np.random.rand(SIZE).astype("float32")) for _ in range(2))
    c = tvm.runtime.tensor(np.zeros(SIZE, dtype="float32"))
    compiled["main"](a, b, c)
    np.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())
    try:
        te.compute((SIZE,), lambda i: a_is_not_defined[i])  # noqa: F821
    except NameError:
        print("ok")


main()
