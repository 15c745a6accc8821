#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the library and the Python package, installs the library into build/install, builds the two
# examples against that as any user's project would, and runs them: a tour in C++, then a C++ library
# used from Python.
source "$(dirname "$0")/common.sh"

build_library() {
  scripts/build.sh demo
  cmake --install build/demo --prefix build/install >/dev/null
}

# build_example NAME: in build/NAME.
build_example() {
  cmake -S "examples/$1" -B "build/$1" -G Ninja --log-level=WARNING \
    -Dtvm_ffi_ROOT="$ROOT/build/install"
  cmake --build "build/$1"
}

run_graph() {
  PYTHONPATH=build/demo/package "$PYTHON" examples/graph/demo.py build/graph/libgraph.so \
    build/graph/objects.html
}

step "setup" scripts/setup.sh demo
step "build: library and package" build_library
step "build: C++ tour" build_example cpp_tour
step "run: C++ tour" build/cpp_tour/cpp_tour
step "build: a C++ library for Python" build_example graph
step "run: one Python object for one C++ object" run_graph
