#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Everything that must pass, from a fresh clone. Stops at the first failure; the last line adds up
# every test that ran: `N passed, N failed, N skipped`.
source "$(dirname "$0")/common.sh"

current=setup
finish() {
  local status=$?
  [ $status = 0 ] && current=
  echo
  python3 scripts/summary.py "$REPORTS" ${current:+--failed-step "$current"}
  exit $status
}
trap finish EXIT

run() {
  current=$1
  step "$@"
}

c_programs() {
  ctest --test-dir build/release --tests-regex '_c[0-9]+$' --output-on-failure --no-tests=error \
    --output-junit "$REPORTS/c_programs.xml" | tail -n 3
}

# Python checks that need the built libraries: exported symbols, install tree, packaging.
python_checks() {
  "$PYTHON" -m pytest -q tests/abi tests/packaging --junitxml="$REPORTS/python_checks.xml"
}

# The package as it was built, on the interpreter of the environment.
python_tests() {
  python_suite python "$PYTHON" build/release/package
}

# Packages as the index has them, not rebuilt.
prebuilt_clients() {
  PYTHONPATH=build/release/package "$PYTHON" -m pytest -q tests/clients \
    --junitxml="$REPORTS/clients.xml"
}

# The fast paths: instructions per operation against the record in bench/instructions.json.
instruction_counts() {
  "$PYTHON" bench/guard.py check --package build/release/package --junit "$REPORTS/instructions.xml"
}

# The model of the tie: a quick selection by hand, every configuration in CI.
model_checks() {
  if [ -n "${CI:-}" ]; then model/run.sh --all; else model/run.sh --quick; fi
}

# Without the tests that only run the compiler: no instrumented code in them.
asan_tests() {
  ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 \
    run_sharded asan build/asan/bin/tvm_ffi_cpp_tests --gtest_filter=-CompileFail.*
}

# The thread sanitizer needs a fixed address layout.
tsan_tests() {
  run_gtest tsan setarch -R build/tsan/bin/tvm_ffi_cpp_tests
}

rm -rf "$REPORTS" && mkdir -p "$REPORTS"
run "setup" scripts/setup.sh test
run "build: release" scripts/build.sh release
run "test: C++ suite" run_sharded release build/release/bin/tvm_ffi_cpp_tests
run "test: C programs" c_programs
run "test: exported symbols, packaging" python_checks
run "test: old binaries" tests/skew/run.sh
run "test: prebuilt clients" prebuilt_clients
run "test: Python package" python_tests
run "test: Python package on every other interpreter" scripts/python_matrix.sh
run "test: instruction counts" instruction_counts
run "test: model of the tie" model_checks
run "test: fuzzing, a few seconds" scripts/fuzz.sh
run "build: address and undefined-behaviour sanitizers" scripts/build.sh asan
run "test: C++ suite under ASan and UBSan" asan_tests
run "test: tying tests of the Python package under ASan and UBSan" scripts/sanitize_python.sh address
run "test: tying tests of the Python package under TSan" scripts/sanitize_python.sh thread
run "build: thread sanitizer" scripts/build.sh tsan
run "test: concurrency suite under TSan" tsan_tests
