#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tests, from a fresh clone, in steps. A step that fails does not stop the others; at the end
# stand the failed steps with the command that runs each alone, and, as the last line, every test
# that ran, added up: `N passed, N failed, N skipped`.
#
#   scripts/test.sh quick       the inner loop: make test
#   scripts/test.sh all         the long rest: make test-all
#   scripts/test.sh list        the steps of both
#   scripts/test.sh NAME ...    single steps
source "$(dirname "$0")/common.sh"

# name, set, the step without which it makes no sense (or -), what it is. A function of the name runs it.
steps() {
  cat <<'STEPS'
setup            quick  -              what is missing is installed
build            quick  setup          libraries, tests and the package, optimised
cpp              quick  build          C++ suite
c                quick  build          C programs
packaging        quick  build          exported symbols, install tree, packaging
python           quick  build          Python suite
old_client       quick  build          a client compiled with released headers
model            quick  setup          model of the tie, the quick rows
old_clients      all    build          clients of every release, plain and under valgrind
prebuilt         all    build          prebuilt packages
matrix           all    build          Python suite on every other interpreter
soak             all    build          random programs
instructions     all    build          instruction counts
model_rest       all    setup          model of the tie, the other rows
fuzz             all    setup          fuzzing, a few seconds
asan             all    setup          C++ suite under ASan and UBSan
asan_python      all    setup          Python package under ASan and UBSan
tsan             all    setup          concurrency suite under TSan
tsan_python      all    setup          Python package under TSan
STEPS
}

setup() { scripts/setup.sh test; }

build() { scripts/build.sh release; }

cpp() { run_sharded release build/release/bin/tvm_ffi_cpp_tests; }

c() {
  ctest --test-dir build/release --tests-regex '_c[0-9]+$' --output-on-failure --no-tests=error \
    --output-junit "$REPORTS/c_programs.xml" | tail -n 3
}

# Python checks that need the built libraries.
packaging() {
  "$PYTHON" -m pytest -q tests/abi tests/packaging --junitxml="$REPORTS/python_checks.xml"
}

# The package as it was built, on the interpreter of the environment.
python() { python_suite python "$PYTHON" build/release/package; }

old_client() { tests/skew/run.sh --quick; }

old_clients() { tests/skew/run.sh; }

# Packages as the index has them, not rebuilt.
prebuilt() {
  PYTHONPATH=build/release/package "$PYTHON" -m pytest -q tests/clients \
    --junitxml="$REPORTS/clients.xml"
}

matrix() { scripts/python_matrix.sh; }

soak() { scripts/soak.sh check; }

# The fast paths: instructions per operation against the record in bench/instructions.json.
instructions() {
  "$PYTHON" bench/guard.py check --package build/release/package --junit "$REPORTS/instructions.xml"
}

model() { model/run.sh --quick; }

model_rest() { model/run.sh --rest; }

fuzz() { scripts/fuzz.sh; }

# Without the tests that only run the compiler: no instrumented code in them. And without a thread
# that ends itself: the runtime of C++ gives the handler of a forced unwind a null reference.
asan() {
  scripts/build.sh asan
  ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 \
    run_sharded asan build/asan/bin/tvm_ffi_cpp_tests --gtest_filter=-CompileFail.*:SafeCall.AThreadMayEndItselfInACall
}

asan_python() { scripts/sanitize_python.sh address; }

# The thread sanitizer needs a fixed address layout.
tsan() {
  scripts/build.sh tsan
  run_gtest tsan setarch -R build/tsan/bin/tvm_ffi_cpp_tests
}

tsan_python() { scripts/sanitize_python.sh thread; }

# run_one NAME: this script again, so that the step stops at its first error whoever asks.
run_one() {
  "$0" --step "$1" 2>&1 || return 1
}

run_set() {
  local name set needs title failed=() count=0 total begin start=$SECONDS
  total=$(steps | awk -v wanted="$1" '$2 == wanted' | wc -l)
  while read -r name set needs title <&3; do
    [ "$set" = "$1" ] || continue
    count=$((count + 1)) begin=$SECONDS
    printf '\n== [%d/%d] %s: %s\n' $count "$total" "$name" "$title"
    if [[ " ${failed[*]} " == *" $needs "* ]]; then
      echo "-- $name: not run, because $needs failed"
      failed+=("$name")
    elif run_one "$name" </dev/null; then
      printf -- '-- %s: %d s\n' "$name" $((SECONDS - begin))
    else
      printf -- '-- %s: FAILED after %d s\n' "$name" $((SECONDS - begin))
      failed+=("$name")
    fi
  done 3< <(steps)
  printf '\n%d steps in %d s\n' $count $((SECONDS - start))
  for name in "${failed[@]}"; do echo "failed: $name    alone: scripts/test.sh $name"; done
  python3 scripts/summary.py "$REPORTS" ${failed:+--failed-step "${failed[*]}"}
  [ ${#failed[@]} = 0 ]
}

wanted=${1:-quick}
case $wanted in
  quick | all)
    rm -rf "$REPORTS" && mkdir -p "$REPORTS"
    # The rest may run where the inner loop did not.
    [ $wanted = quick ] || { setup && build; } || exit 1
    run_set $wanted
    ;;
  list) steps | awk '{ printf "%-16s%-7s", $1, $2; $1 = $2 = $3 = ""; print substr($0, 4) }' ;;
  --step)
    mkdir -p "$REPORTS"
    "$2"
    ;;
  *)
    for name; do
      steps | grep -q "^$name " || die "no step '$name'; scripts/test.sh list shows them"
      step "$name" run_one "$name"
    done
    ;;
esac
