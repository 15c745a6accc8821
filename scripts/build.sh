#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Configures and builds one flavour of the tree in build/<flavour>, with progress.
#
#   scripts/build.sh release            optimised, all tests
#   scripts/build.sh demo               optimised, libraries only
#   scripts/build.sh asan               ASan + UBSan, all tests
#   scripts/build.sh tsan               TSan, the concurrency tests
#   scripts/build.sh release tvm_ffi_shared     given targets only
#   scripts/build.sh asan-python tvm_ffi_core   the extension with ASan + UBSan; tsan-python likewise
#   TETHER_PYTHON=PATH scripts/build.sh python-3.12 tvm_ffi_core      for another interpreter
source "$(dirname "$0")/common.sh"
flavour=${1:-release}
shift || true

tests=-DTETHER_BUILD_TESTS=ON
precompile=-DTETHER_PRECOMPILE=ON
python=(-DTETHER_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$PYTHON")
case $flavour in
  release) options=($tests "${python[@]}" $precompile) ;;
  asan-python) options=("${python[@]}" -DTETHER_SANITIZE=address) ;;
  tsan-python) options=("${python[@]}" -DTETHER_SANITIZE=thread) ;;
  demo) options=("${python[@]}" $precompile) ;;
  python-*) options=("${python[@]}") ;;
  asan) options=($tests -DTETHER_SANITIZE=address) ;;
  tsan) options=($tests -DTETHER_SANITIZE=thread -DTETHER_TEST_SOURCES=concurrency_test.cc) ;;
  *) die "unknown flavour '$flavour': release, demo, asan, tsan or python-*" ;;
esac

# While an older precompiled header is in place, the preprocessor gives ccache that instead of the
# headers, and ccache may answer with what another state or another clone made of it.
drop_old_precompiled_headers() {
  local found
  [ -d "build/$flavour" ] || return 0
  find "build/$flavour" -name '*.gch' | while read -r found; do
    [ -z "$(find include src tests/cpp -name '*.h' -newer "$found" -print -quit)" ] || rm "$found"
  done
}
drop_old_precompiled_headers

cmake -S . -B "build/$flavour" -G Ninja --log-level=WARNING \
  "${options[@]}"
cmake --build "build/$flavour" --parallel "$JOBS" ${1:+--target "$@"}
