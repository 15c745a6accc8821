#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The tying tests against an extension built with sanitizers, at a fraction of their size.
#
#   scripts/sanitize_python.sh address   ASan and UBSan, on the interpreter of the environment
#   scripts/sanitize_python.sh thread    TSan, on a free-threaded CPython that is instrumented itself:
#                                        otherwise its locks are invisible, and all of them reported
source "$(dirname "$0")/common.sh"

runtime() { g++ -print-file-name="lib$1.so"; }
pytest=(-X faulthandler -m pytest -q -p no:cacheprovider)

address() {
  scripts/build.sh asan-python tvm_ffi_core | tail -n 1
  # libstdc++ is loaded first too, or the sanitizer does not find the function that throws. Leaks are
  # the business of the P5 tests: an interpreter leaves much behind on purpose. Children at their exit
  # (P9) are left out, because the interpreter's own memory is gone there.
  LD_PRELOAD="$(runtime asan) $(runtime ubsan) $(runtime stdc++)" PYTHONMALLOC=malloc \
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
    TETHER_TEST_SCALE=${TETHER_TEST_SCALE:-0.02} PYTHONPATH=build/asan-python/package \
    "$PYTHON" "${pytest[@]}" tests/python/test_tying_p[1-8]*.py tests/python/test_user_code_in_calls.py \
    -k 'not memory_stays_flat' --junitxml="$REPORTS/python-asan.xml" | tail -n 3
}

skip() {
  echo "skipped: $1"
  report_skipped python-tsan "$1"
}

thread() {
  local python version plain status=0 reports=$REPORTS/tsan
  if ! python=$(scripts/freethreaded_python.sh --tsan 2> >(tee "$REPORTS/freethreaded-tsan.log" >&2)); then
    skip "$(tail -n 1 "$REPORTS/freethreaded-tsan.log")"
    return 0
  fi
  version=${python##*/python}
  plain=$ROOT/.cache/venv-$version
  if ! test_environment "$version" "$(scripts/freethreaded_python.sh --cached)"; then
    skip "the test tools could not be installed"
    return 0
  fi
  # The headers are the same, and cmake asks a quick interpreter.
  TETHER_PYTHON=$plain/bin/python scripts/build.sh tsan-python tvm_ffi_core | tail -n 1
  rm -rf "$reports" && mkdir -p "$reports"
  # Reports go to files, because pytest swallows what a test that passes prints; children have theirs.
  # What these leave out runs on one thread.
  env -u PYTHONDONTWRITEBYTECODE \
    PYTHONPATH="build/tsan-python/package:$plain/lib/python$version/site-packages" \
    CC="cc -fsanitize=thread" TETHER_TEST_SCALE=${TETHER_TEST_SCALE:-0.02} \
    TSAN_OPTIONS="suppressions=$ROOT/tests/python/tsan.supp log_path=$reports/report history_size=7 exitcode=0" \
    setarch -R "$python" "${pytest[@]}" -k 'p8 or p9 or property or threads' \
    tests/python/test_{tying_{p1,p7,p8,p8_walks,p9,classes,property},errors_identity}.py \
    --junitxml="$REPORTS/python-tsan.xml" | tail -n 3 || status=$?
  python3 scripts/tsan_reports.py "$reports" || die "see above; all reports are in build/reports/tsan"
  return $status
}

mkdir -p "$REPORTS"
case ${1:-} in
  address | thread) "$@" ;;
  *) die "which sanitizer: address or thread?" ;;
esac
