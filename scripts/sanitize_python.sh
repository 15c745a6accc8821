#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tying tests against an instrumented extension, at a fraction of their size.
#
#   scripts/sanitize_python.sh asan     address and undefined-behaviour sanitizer, environment's Python
source "$(dirname "$0")/common.sh"
kind=${1:-asan}
mkdir -p "$REPORTS"

runtime() { g++ -print-file-name="lib$1.so"; }

# Leaks are the business of the P5 tests: an interpreter leaves much behind on purpose.
asan() {
  scripts/build.sh asan-python tvm_ffi_core | tail -n 1
  # libstdc++ too, or the sanitizer does not find the function that throws.
  LD_PRELOAD="$(runtime asan) $(runtime ubsan) $(runtime stdc++)" PYTHONMALLOC=malloc \
    ASAN_OPTIONS=detect_leaks=0:strict_string_checks=1:detect_stack_use_after_return=0 \
    UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
    TETHER_TEST_SCALE=${TETHER_TEST_SCALE:-0.02} PYTHONPATH=build/asan-python/package \
    "$PYTHON" -X faulthandler -m pytest -q -p no:cacheprovider tests/python/test_tying_*.py \
    -k 'not memory_stays_flat' \
    --junitxml="$REPORTS/python-asan.xml" | tail -n 30
}

case $kind in
  asan) asan ;;
  *) die "unknown sanitizer '$kind': asan" ;;
esac
