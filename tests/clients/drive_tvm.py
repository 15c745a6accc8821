# SPDX-License-Identifier: Apache-2.0
"""Drive apache-tvm step by step: build, passes, compile with LLVM, run, save and load.

Prints a line for each step, `<step>: ok` or `<step>: <error>`, and last `ok` if all of them were.
Steps named on the command line are left out.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax, te, tirx

SIZE = 1024
VERSION = tuple(map(int, tvm.__version__.split(".")[:2]))
# Its name changed in 0.26.
TensorType: Any = getattr(relax, "TensorStructInfo", None) or relax.TensorType


def make_function() -> tvm.IRModule:
    a = te.placeholder((SIZE,), name="A", dtype="float32")
    b = te.placeholder((SIZE,), name="B", dtype="float32")
    c = te.compute((SIZE,), lambda i: a[i] + b[i], name="C")
    return tvm.IRModule({"main": te.create_prim_func([a, b, c])})


def make_graph() -> tvm.IRModule:
    """Return a function on tensors: (x + y) * y."""
    x, y = (relax.Var(name, TensorType([SIZE], "float32")) for name in "xy")
    builder = relax.BlockBuilder()
    with builder.function("main", [x, y]):
        with builder.dataflow():
            total = builder.emit(relax.op.add(x, y))
            result = builder.emit_output(relax.op.multiply(total, y))
        builder.emit_func_output(result)
    return builder.get()


def identity() -> None:
    """What only we promise: leave this step out to try another runtime."""
    a = te.placeholder((SIZE,), name="A", dtype="float32")
    assert a.op is a.op
    module = make_function()
    function = module["main"]
    assert module["main"] is function and function.body is function.body
    assert function.params[0] is function.params[0]
    number, watcher = id(function.body), weakref.ref(function.body)
    gc.collect()
    assert id(function.body) == number and watcher() is function.body


def text_and_json() -> None:
    module = make_function()
    assert "T.Buffer" in module.script()
    again = tvm.ir.load_json(tvm.ir.save_json(module))
    tvm.ir.assert_structural_equal(module, again)


def arrays() -> list[Any]:
    return [tvm.runtime.tensor(np.random.rand(SIZE).astype("float32")) for _ in range(2)]


def compile_and_run() -> None:
    compiled = tvm.compile(make_function(), target="llvm")
    a, b = arrays()
    c = tvm.runtime.tensor(np.zeros(SIZE, dtype="float32"))
    compiled["main"](a, b, c)
    np.testing.assert_allclose(c.numpy(), a.numpy() + b.numpy())


def passes() -> None:
    legal = relax.transform.LegalizeOps()(make_graph())
    assert len(legal.get_global_vars()) == 3
    fused = relax.transform.FuseOps()(relax.transform.AnnotateTIROpPattern()(legal))
    assert len(fused.get_global_vars()) > 3
    fused = relax.transform.FuseTIR()(fused)
    assert "fused" in fused.script()


def save_and_load() -> None:
    built = tvm.compile(make_graph(), target="llvm")
    x, y = arrays()
    expected = (x.numpy() + y.numpy()) * y.numpy()
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "graph.so")
        built.export_library(path)
        for executable in (built, tvm.runtime.load_module(path)):
            machine = relax.VirtualMachine(executable, tvm.cpu())
            np.testing.assert_allclose(machine["main"](x, y).numpy(), expected, rtol=1e-6)


def keyed_by_type() -> None:
    """Keys with hooks for maps."""
    types = [tvm.ir.PrimType(name) for name in ("int32", "float32", "int32", "bool")]
    keyed = tvm_ffi.Map({key: i for i, key in enumerate(types)})
    assert len(keyed) == 3 and keyed[tvm.ir.PrimType("int32")] == 2


def structural_map() -> None:
    x = tirx.Var("x", "int32")
    old = x * 2 + x

    def other(value: Any) -> Any:
        return tirx.IntImm("int32", 5)

    new = tvm_ffi.structural_map(old, [(tirx.IntImm, other)])
    tvm.ir.assert_structural_equal(new, x * 5 + x)
    tvm.ir.assert_structural_equal(old, x * 2 + x)
    assert tvm_ffi.structural_map(old, [(tirx.Var, lambda value: value)]).same_as(old)


def big_integers() -> None:
    assert tirx.IntImm("uint64", 2**64 - 1).value == 2**64 - 1


def errors() -> None:
    try:
        te.compute((SIZE,), lambda i: a_is_not_defined[i])  # noqa: F821
    except NameError:
        return
    raise AssertionError("no error")


STEPS: dict[str, Callable[[], None]] = {
    "identity": identity,
    "text and JSON": text_and_json,
    "errors": errors,
    "LegalizeOps, FuseOps": passes,
    "LLVM, run": compile_and_run,
    "save and load": save_and_load,
}
if VERSION >= (0, 26):
    STEPS |= {"keys with hooks": keyed_by_type}
if VERSION >= (0, 27):
    STEPS |= {"structural_map": structural_map, "integers beyond 64 bits": big_integers}


def main(left_out: list[str]) -> None:
    failed = False
    for name, step in STEPS.items():
        if name in left_out:
            continue
        try:
            step()
        except Exception as error:
            lines = str(error).strip().splitlines() or [""]
            print(f"{name}: {type(error).__name__}: {lines[-1]}")
            failed = True
        else:
            print(f"{name}: ok")
    if failed:
        sys.exit(1)
    print("ok")


main(sys.argv[1:])
