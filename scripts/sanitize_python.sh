#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tying tests against an extension built with the address and undefined-behaviour sanitizers, on
# the interpreter of the environment and at a fraction of their size.
source "$(dirname "$0")/common.sh"

runtime() { g++ -print-file-name="lib$1.so"; }

mkdir -p "$REPORTS"
scripts/build.sh asan-python tvm_ffi_core | tail -n 1
# libstdc++ is loaded first too, or the sanitizer does not find the function that throws. Leaks are the
# business of the P5 tests: an interpreter leaves much behind on purpose. Children at their exit (P9)
# are left out, because the interpreter's own memory is gone there.
LD_PRELOAD="$(runtime asan) $(runtime ubsan) $(runtime stdc++)" PYTHONMALLOC=malloc \
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
  TETHER_TEST_SCALE=${TETHER_TEST_SCALE:-0.02} PYTHONPATH=build/asan-python/package \
  "$PYTHON" -X faulthandler -m pytest -q -p no:cacheprovider tests/python/test_tying_p[1-8].py \
  -k 'not memory_stays_flat' --junitxml="$REPORTS/python-asan.xml" | tail -n 3
