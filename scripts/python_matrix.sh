#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The Python suite on every interpreter there is besides the one of the environment: CPython 3.10 to
# 3.14 from pyenv or PATH, 3.14 also prebuilt (scripts/prebuilt_python.sh), a free-threaded build
# (scripts/freethreaded_python.sh), and a debug build (scripts/debug_python.sh). Only the extension is
# compiled again; an interpreter that is missing is reported as skipped, with the reason.
#
#   scripts/python_matrix.sh [3.12 3.13t debug ...]
source "$(dirname "$0")/common.sh"
wanted=("$@")

skip() {
  echo "python $1: skipped, $2"
  report_skipped "python-$1" "$2"
}

is_wanted() {
  [ ${#wanted[@]} = 0 ] || [[ " ${wanted[*]} " == *" $1 "* ]]
}

# run_on VERSION INTERPRETER. A failure is remembered, and the other interpreters have their turn.
failed=()
run_on() {
  local version=$1 begin=$SECONDS
  if ! test_environment "$version" "$2"; then
    skip "$version" "the test tools could not be installed"
    return 0
  fi
  if build_extension "$version"; then
    suite "python-$version" ".cache/venv-$version/bin/python" "build/python-$version/package" ||
      failed+=("$version")
  else
    report_failed "python-$version" "the extension does not compile"
    failed+=("$version")
  fi
  printf -- '-- python %s: %d s\n' "$version" $((SECONDS - begin))
}

# The last line; all of the output when it fails.
build_extension() {
  local log=$REPORTS/build-python-$1.log
  if ! TETHER_PYTHON=$ROOT/.cache/venv-$1/bin/python scripts/build.sh "python-$1" tvm_ffi_core >"$log" 2>&1; then
    cat "$log" >&2
    return 1
  fi
  tail -n 1 "$log"
}

suite() { python_suite "$@"; }

# Debug builds check every step of a collection, and take their time: the promises that are about
# reference counts and collections, without those that repeat things very often.
debug_suite() {
  run_pytest "$1" env PYTHONPATH="$3" "$2" -X faulthandler -m pytest -q -p no:cacheprovider \
    tests/python/test_tying_{p[1-46],rings}.py
}

# Fewer repetitions than in `scripts/test.sh python_full`, and fewer still where checks cost time.
debug_scale=${TETHER_TEST_SCALE:-0.05}
export TETHER_TEST_SCALE=${TETHER_TEST_SCALE:-0.3}

mkdir -p "$REPORTS"
own=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
for version in 3.10 3.11 3.12 3.13 3.14; do
  is_wanted $version && [ $version != "$own" ] || continue
  if python=$(find_python $version); then
    run_on $version "$python"
  elif [ $version = 3.14 ] && python=$(scripts/prebuilt_python.sh); then
    run_on $version "$python"
  else
    skip $version "no CPython $version with headers in pyenv or on PATH"
  fi
done

if [ ${#wanted[@]} = 0 ] || [[ " ${wanted[*]} " == *t\ * ]]; then
  if python=$(scripts/freethreaded_python.sh 2> >(tee "$REPORTS/freethreaded.log" >&2)); then
    run_on "${python##*/python}" "$python"
  else
    skip freethreaded "$(tail -n 1 "$REPORTS/freethreaded.log")"
  fi
fi

if is_wanted debug; then
  if python=$(scripts/debug_python.sh 2> >(tee "$REPORTS/debug.log" >&2)); then
    suite() { debug_suite "$@"; }
    TETHER_TEST_SCALE=$debug_scale run_on debug "$python"
  else
    skip debug "$(tail -n 1 "$REPORTS/debug.log")"
  fi
fi

[ ${#failed[@]} = 0 ] || die "failed on ${failed[*]}"
