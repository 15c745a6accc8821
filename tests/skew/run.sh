#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Old binaries against the library in build/release: builds the clients and runs
#   - the C++ driver with all of them in one process, each with its own copies of inline code;
#   - the C++ driver with each release and a client of ours where equal weak symbols merge, once so
#     that the client runs our copies of them and once so that our client runs its copies;
#   - test_matrix.py: all of them in one Python process, loaded after tvm_ffi and before it;
# each plain and under valgrind. What cannot be run, because the package index cannot be reached, is
# reported as skipped, with the reason.
#
#   tests/skew/run.sh            everything
#   tests/skew/run.sh --quick    one release, plain: the driver and test_matrix.py
source "$(dirname "$0")/../../scripts/common.sh"
build=build/skew
only=()
if [ "${1:-}" = --quick ]; then
  only=(0.1.13.post3)
  build=build/skew-quick
fi

mkdir -p "$REPORTS" $build
status=0
wheels=$("$PYTHON" tests/skew/fetch_headers.py "${only[@]}" 2>$build/missing.txt) || status=$?
missing=$(<$build/missing.txt)
[ $status = 0 ] || [ $status = 3 ] || die "cannot fetch the released headers: $missing"
[ -z "$missing" ] || sed 's/^/SKIPPED: /' <<<"$missing"
if [ -z "$wheels" ]; then
  report_skipped skew "the package index cannot be reached"
  exit 0
fi
releases=()
for wheel in $wheels; do releases+=("$(basename "$wheel")"); done

cmake -S tests/skew -B $build -G Ninja --log-level=WARNING \
  -DTETHER_LIB_DIR="$ROOT/build/release/lib" -DSKEW_WHEELS="$(dirname "$wheel")" \
  -DSKEW_RELEASES="$(IFS=';' && echo "${releases[*]}")"
cmake --build $build --parallel "$JOBS"

client() { echo "$1=$ROOT/$build/client_$1.so"; }
memcheck="valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite
  --errors-for-leak-kinds=definite"

# run_matrix NAME PREFIX...: test_matrix.py, with one line when it passes.
run_matrix() {
  local name=$1 log=$REPORTS/$1.log
  shift
  if ! "$@" "$PYTHON" -X faulthandler -m pytest -q -p no:cacheprovider tests/skew/test_matrix.py \
    --junitxml="$REPORTS/$name.xml" >"$log" 2>&1; then
    echo "$name: FAILED"
    cat "$log" >&2
    return 1
  fi
  printf '%-44s%s\n' "$name" "$(tail -n 1 "$log")"
  grep '^SKIPPED' "$log" | sed 's/.*py:[0-9]*: //' | sort | uniq -c || true
}
export -f run_matrix
export PYTHONPATH=$ROOT/build/release/package SKEW_CLIENTS=$ROOT/$build SKEW_MISSING=$missing
[ ${#only[@]} = 0 ] || SKEW_MISSING="0.1.13: make test-all builds it"
export SKEW_RELEASES="${releases[*]} $(cut -d: -f1 $build/missing.txt | tr '\n' ' ')"

# Invalid accesses only: an interpreter leaves much behind on purpose and computes with what it has
# not initialised; leaks and uninitialised values are the business of the driver.
python_memcheck="env PYTHONMALLOC=malloc TETHER_TEST_SCALE=0.01 valgrind --quiet --error-exitcode=9
  --suppressions=tests/skew/valgrind.supp
  --leak-check=no --undef-value-errors=no"

# JOBS runs at a time, the longest first; xargs fails if one of them does.
schedule() { printf '%q ' "$@" && echo; }
quick_runs() {
  schedule run_matrix "skew quick python" env
  schedule run_gtest "skew quick" $build/driver "$(client "${releases[0]}")" "$(client ours)"
}
runs() {
  local tool prefix release driver
  schedule run_matrix "skew python memcheck" $python_memcheck
  # The rest does not depend on when a client was loaded.
  schedule run_matrix "skew python preloaded memcheck" env SKEW_PRELOADED=1 \
    PYTEST_ADDOPTS="-k 'p1 or p5 or load or drop'" $python_memcheck
  schedule run_matrix "skew python plain" env
  schedule run_matrix "skew python preloaded plain" env SKEW_PRELOADED=1
  for tool in memcheck plain; do
    prefix=
    [ $tool = plain ] || prefix=$memcheck
    schedule run_gtest "skew all $tool" $prefix $build/driver \
      $(for release in "${releases[@]}"; do client "$release"; done) "$(client ours)"
    for release in "${releases[@]}"; do
      for driver in driver driver_exporting; do
        schedule run_gtest "skew $release $driver $tool" $prefix $build/$driver --merged \
          "$(client "$release")" "$(client ours)"
      done
    done
  done
}
if [ ${#only[@]} = 0 ]; then runs; else quick_runs; fi |
  xargs -d '\n' -P "$JOBS" -I COMMAND bash -c 'source scripts/common.sh; COMMAND'
