# SPDX-License-Identifier: Apache-2.0
"""Build add_one.c and call it. By hand:

cc -shared -fPIC -std=c11 add_one.c $(tvm-ffi-config --cflags --ldflags --libs) -o add_one.so
"""

from pathlib import Path

import numpy
import tvm_ffi.cpp


def main() -> None:
    source = Path(__file__).with_name("add_one.c")
    module = tvm_ffi.cpp.load(
        "c_library", sources=[str(source)], extra_cflags=["-std=c11", "-Wall"]
    )
    x = numpy.arange(5, dtype="float32")
    y = numpy.empty_like(x)
    module.add_one(x, y)
    print(y)
    for wrong in ((x,), (x, 1), (x, y[:3])):
        try:
            module.add_one(*wrong)
        except (TypeError, ValueError) as error:
            print(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
