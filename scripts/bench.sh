#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Benchmarks against the reference release and other bindings; tables go to stdout and
# bench/results/.
source "$(dirname "$0")/common.sh"

step "setup" scripts/setup.sh bench
step "build: release library" scripts/build.sh release tvm_ffi_shared
step "bench: Python frontend" "$PYTHON" bench/run_python.py
step "bench: very many objects, import" "$PYTHON" bench/run_scale.py
step "bench: threads" "$PYTHON" bench/run_threads.py
step "pictures" "$PYTHON" bench/run_plots.py
step "bench: core" "$PYTHON" bench/run_core.py "$@"
