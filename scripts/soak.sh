#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Random programs against the promises of docs/tying.md (tests/soak).
#
#   scripts/soak.sh [seconds] [option of tests/soak/soak.py...]    60 seconds by default, a fixed seed
#   scripts/soak.sh 60 freethreaded [option...]     on the free-threaded interpreter
#   scripts/soak.sh 60 address [option...]          under ASan and UBSan
#   scripts/soak.sh check                           what make test-all does: a part of each, and faults
#                                                   on purpose, which must be found
#
# TETHER_PYTHON names another interpreter. A finding is made small and left in build/soak; the message
# says how to run it again.
source "$(dirname "$0")/common.sh"
seconds=${1:-60}
shift || true
if [ "$seconds" = check ]; then
  status=0
  # A fixed number of steps of a fixed seed: the same programs wherever it runs.
  "$0" 1 --self-test || status=1
  "$0" 240 --steps 1e6 || status=1
  "$0" 240 freethreaded --steps 1e6 || status=1
  "$0" 240 address --steps 3e5 || status=1
  exit $status
fi
where=plain
case ${1:-} in
  freethreaded | address)
    where=$1
    shift
    ;;
esac
environment=()
options=()
report=soak
package=

plain() {
  local version
  if [ "$PYTHON" = "$ROOT/.venv/bin/python" ]; then
    package=build/release/package
    [ -e "$package/tvm_ffi/core.pyi" ] || package=build/demo/package
    [ -e "$package/tvm_ffi/core.pyi" ] || scripts/build.sh demo | tail -n 1
  else
    version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2] + getattr(sys, "abiflags", ""))')
    package=build/python-$version/package
    report=soak-$version
    scripts/build.sh "python-$version" tvm_ffi_core | tail -n 1
  fi
}

freethreaded() {
  local base version
  if ! base=$(scripts/freethreaded_python.sh 2> >(tail -n 1 >"$REPORTS/soak-freethreaded.log")); then
    echo "skipped: $(<"$REPORTS/soak-freethreaded.log")"
    report_skipped soak-freethreaded "$(<"$REPORTS/soak-freethreaded.log")"
    exit 0
  fi
  version=${base##*/python}
  test_environment "$version" "$base"
  PYTHON=$ROOT/.cache/venv-$version/bin/python
  TETHER_PYTHON=$PYTHON scripts/build.sh "python-$version" tvm_ffi_core | tail -n 1
  package=build/python-$version/package
  report=soak-freethreaded
}

# The settings of scripts/sanitize_python.sh; children at their exit are left out as there.
address() {
  runtime() { g++ -print-file-name="lib$1.so"; }
  scripts/build.sh asan-python tvm_ffi_core | tail -n 1
  package=build/asan-python/package
  report=soak-asan
  environment=(LD_PRELOAD="$(runtime asan) $(runtime ubsan) $(runtime stdc++)" PYTHONMALLOC=malloc
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:handle_segv=0:handle_abort=0
    UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1)
  options=(--without exit,deep --hang-seconds 120 --length 100)
}

mkdir -p "$REPORTS"
$where
env "${environment[@]}" PYTHONPATH="$package" "$PYTHON" tests/soak/soak.py --duration "$seconds" \
  --jobs "$JOBS" --regressions --junit "$REPORTS/$report.xml" --name "$report" "${options[@]}" "$@"
