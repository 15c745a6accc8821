#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tests, from a fresh clone, in steps, the quick ones two at a time. A step that fails does not stop the
# others. The last lines name the failed steps with the command that runs each alone, and add up every
# test that ran: `N passed, N failed, N skipped`.
#
#   scripts/test.sh quick       the inner loop: make test
#   scripts/test.sh all         the long rest: make test-all
#   scripts/test.sh list        the steps of both
#   scripts/test.sh NAME ...    single steps
source "$(dirname "$0")/common.sh"

# Name, set, the step that must pass before it (or -), what it is. The function of that name runs it.
steps() {
  cat <<'STEPS'
setup            quick  -              what is missing is installed
build            quick  setup          libraries, tests and the package, optimised
python           quick  build          Python suite
old_client       quick  build          a client compiled with released headers
packaging        quick  build          exported symbols, install tree, packaging
cpp              quick  build          C++ suite
c                quick  build          C programs
rust             quick  build          Rust crates, and a Rust library in Python
model            quick  build          model of the tie, the quick rows
lint             all    setup          formatting, types, static checks
headers          all    build          every public header compiles alone
python_full      all    build          Python tests that repeat things, as often as they should, or compile projects
old_clients      all    build          clients of every release, plain and under valgrind
prebuilt         all    build          prebuilt packages
matrix           all    build          Python suite on every other interpreter
projects         all    build          a new project, and the examples
site             all    build          documentation: every block of code, every page in a browser
cluster          all    build          objects as arguments and results of Dask and Ray
wheels           alone  setup          a wheel for x86-64, in a clean environment
soak             all    build          random programs
rust_rest        all    build          Rust crates: format, clippy, documentation, examples, ASan
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

setup_all() { scripts/setup.sh all; }

build() { scripts/build.sh release; }

headers() { scripts/build.sh release tvm_ffi_headers_alone; }

cpp() { run_sharded release build/release/bin/tvm_ffi_cpp_tests; }

c() {
  ctest --test-dir build/release --tests-regex '_c[0-9]+$' --output-on-failure --no-tests=error \
    --output-junit "$REPORTS/c_programs.xml" | tail -n 3
}

# Python checks that need the built libraries.
packaging() {
  "$PYTHON" -m pytest -q tests/abi tests/packaging --junitxml="$REPORTS/python_checks.xml"
}

# Tests that mostly wait for the compiler.
compiling=(tests/python/test_cpp_{build,cmake}.py tests/python/test_examples.py)

# The package as it was built, on the interpreter of the environment. Tests that repeat things do it less
# often here than in python_full, and those that mostly compile are left to it.
python() {
  TETHER_TEST_SCALE=${TETHER_TEST_SCALE:-0.3} PYTEST_ADDOPTS="${compiling[*]/#/--ignore=}" \
    python_suite python "$PYTHON" build/release/package
}

python_full() {
  local files
  mapfile -t files < <(grep -lE '\b(scaled|SCALE)\b' tests/python/test_*.py)
  files+=("${compiling[@]}")
  run_pytest python-full env PYTHONPATH=build/release/package "$PYTHON" -X faulthandler -m pytest -q \
    -p no:cacheprovider "${files[@]}"
}

old_client() { tests/skew/run.sh --quick; }

old_clients() { tests/skew/run.sh; }

# Packages as the index has them, not rebuilt.
prebuilt() {
  PYTHONPATH=build/release/package "$PYTHON" -m pytest -q tests/clients \
    --junitxml="$REPORTS/clients.xml"
}

rust() { scripts/rust.sh quick; }

rust_rest() { scripts/rust.sh rest; }

matrix() { scripts/python_matrix.sh; }

# What users start from: `python -m tvm_ffi.new` and examples/. Skipped tests say why.
projects() {
  PYTHONPATH=build/release/package "$PYTHON" -m pytest -q -rs tests/projects \
    --junitxml="$REPORTS/projects.xml"
}

# The blocks of code run while the site is built and looked at.
site() {
  local pages status=0
  scripts/setup.sh docs
  PYTHONPATH=build/release/package "$PYTHON" -m pytest -q -rs -p no:cacheprovider tests/site \
    --ignore=tests/site/test_browser.py --junitxml="$REPORTS/pages.xml" &
  pages=$!
  {
    TETHER_PACKAGE=build/release/package scripts/docs.sh &&
      .cache/site/bin/python -m pytest -q -rs -p no:cacheprovider tests/site/test_browser.py \
        --junitxml="$REPORTS/browser.xml"
  } || status=1
  wait $pages || status=1
  return $status
}

# In an environment of its own. Ray only where it can be installed: it has no package for some interpreters.
cluster() {
  local home=.cache/cluster
  if [ ! -e $home/installed ]; then
    "$PYTHON" -m venv $home
    if ! $home/bin/python -m pip install -q distributed numpy pytest; then
      report_skipped cluster "distributed cannot be installed"
      echo "cluster: skipped, distributed cannot be installed"
      return 0
    fi
    $home/bin/python -m pip install -q ray || echo "cluster: ray cannot be installed"
    touch $home/installed
  fi
  PYTHONPATH=build/release/package $home/bin/python -m pytest -q -rs tests/cluster \
    --junitxml="$REPORTS/cluster.xml"
  PYTHONPATH=build/release/package:examples/travel $home/bin/python examples/travel/travel.py dask
}

# One of the wheels; `make wheels` makes all.
wheels() {
  local own
  own=$("$PYTHON" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
  scripts/wheels.sh build "$own-x86_64"
  scripts/wheels.sh check "$own-x86_64"
}

soak() { scripts/soak.sh check; }

# The fast paths: instructions per operation against the record in bench/instructions.json.
instructions() {
  "$PYTHON" bench/guard.py check --package build/release/package --junit "$REPORTS/instructions.xml"
}

# Only when something in the folder changed since it last passed: nothing else decides the result.
model() {
  local passed=build/model-passed
  if [ -e $passed ] && [ -z "$(find model -newer $passed -print -quit)" ]; then
    echo "up to date: it passed, and nothing in model/ has changed since"
    return 0
  fi
  model/run.sh --quick
  touch $passed
}

model_rest() { model/run.sh --rest; }

fuzz() { setup_all && scripts/fuzz.sh; }

lint() { scripts/lint.sh; }

# Without the tests that only run the compiler: no instrumented code in them. And without a thread
# that ends itself: the runtime of C++ gives the handler of a forced unwind a null reference.
# intercept_tls_get_addr: for a thread-local block of a loaded library that begins 16 bytes into a page,
# the runtime of GCC 12 takes what lies before it for a header, and the search for leaks ends in a crash.
asan() {
  scripts/build.sh asan
  ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:intercept_tls_get_addr=0 UBSAN_OPTIONS=print_stacktrace=1 \
    run_sharded asan build/asan/bin/tvm_ffi_cpp_tests --gtest_filter=-CompileFail.*:SafeCall.AThreadMayEndItselfInACall
}

asan_python() { scripts/sanitize_python.sh address; }

# The thread sanitizer needs a fixed address layout.
tsan() {
  scripts/build.sh tsan
  run_gtest tsan setarch -R build/tsan/bin/tvm_ffi_cpp_tests
}

tsan_python() { scripts/sanitize_python.sh thread; }

# run_one NAME: this script again, so that the step stops at its first error whoever asks. The shell
# ignores Ctrl-C for what it starts in the background; the steps and the tests of signals need it.
run_one() {
  env --default-signal=INT "$0" --step "$1" 2>&1 || return 1
}

# run_step NAME HEADING: one step of a set; leaves `passed` or `failed` in $STATUS/NAME. Steps may run
# side by side, so every line says which step it is from.
run_step() {
  local begin=$SECONDS status=passed
  printf '== %s\n' "$2"
  run_one "$1" </dev/null | tee "$STATUS/$1.log" | sed -u "s/^/$(printf '%-13s' "$1")| /" || status=failed
  printf -- '-- %s: %s, %d s\n' "$1" $status $((SECONDS - begin))
  echo $status >"$STATUS/$1"
}

# what_failed NAME: the lines of a failed step that say why, cut to a screen, because its output lies far above.
what_failed() {
  local log=$STATUS/$1.log
  [ -e "$log" ] || return 0
  { grep -E 'FAILED|ERROR: |SUMMARY: |[Ee]rror: |leak of ' "$log" || tail -n 5 "$log"; } |
    cut -c 1-200 | tail -n 12 | sed 's/^/    /'
}

status_of() { cat "$STATUS/$1" 2>/dev/null || true; }

# run_set SET: every step of it once the step that it needs has passed, in the order of the table. The
# quick ones two at a time; the others fill the machine themselves.
run_set() {
  local line name set needs title waiting=() left failed=() total count=0 lanes=1 start=$SECONDS
  [ "$1" != quick ] || lanes=2
  STATUS=$(mktemp -d)
  mapfile -t waiting < <(steps | awk -v wanted="$1" '$2 == wanted')
  total=${#waiting[@]}
  # What another set does has been done before.
  steps | awk -v wanted="$1" '$2 != wanted { print $1 }' | while read -r name; do
    echo passed >"$STATUS/$name"
  done
  while [ ${#waiting[@]} -gt 0 ]; do
    left=()
    for line in "${waiting[@]}"; do
      read -r name set needs title <<<"$line"
      case $needs:$(status_of "$needs") in
        -: | *:passed)
          if [ "$(jobs -rp | wc -l)" -lt $lanes ]; then
            count=$((count + 1))
            run_step "$name" "[$count/$total] $name: $title" &
          else
            left+=("$line")
          fi
          ;;
        *:failed)
          count=$((count + 1))
          echo "== [$count/$total] $name: not run, because $needs failed"
          echo failed >"$STATUS/$name"
          ;;
        *) left+=("$line") ;;
      esac
    done
    waiting=("${left[@]}")
    wait -n || true
  done
  wait
  printf '\n%d steps in %d s\n' "$total" $((SECONDS - start))
  while read -r name set needs title; do
    [ "$set" = "$1" ] && [ "$(status_of "$name")" != passed ] || continue
    failed+=("$name")
    echo "failed: $name    alone: scripts/test.sh $name"
    what_failed "$name"
  done < <(steps)
  rm -rf "$STATUS"
  python3 scripts/summary.py "$REPORTS" ${failed:+--failed-step "${failed[*]}"}
  [ ${#failed[@]} = 0 ]
}

wanted=${1:-quick}
case $wanted in
  quick | all)
    rm -rf "$REPORTS" && mkdir -p "$REPORTS"
    # The rest may run where the inner loop did not.
    [ $wanted = quick ] || { setup_all && build; } || exit 1
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
