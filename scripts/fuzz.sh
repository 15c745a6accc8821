#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Throws bytes at the JSON parser and at the readers of object graphs, JSON and binary, under the address and
# undefined-behaviour sanitizers. Needs clang for libFuzzer; where there is none it is reported as
# skipped.
#
#   scripts/fuzz.sh [seconds per target] [target ...]      10 by default, what make test-all does
#
# With 0 seconds the targets are only built. build/fuzz/NAME_fuzz then runs on any machine of the same
# architecture with a C library that is not older; for a number of inputs on all its processors:
#
#   build/fuzz/travel_fuzz -jobs=16 -workers=16 -runs=625000 -timeout=10 \
#     -dict=tests/fuzz/travel.dict WORK tests/fuzz/corpus/travel
#
# WORK is an empty folder. Each job writes fuzz-N.log; the exit status is 0 if none found anything.
# What it finds new stays in build/fuzz/work, and an input that fails in build/fuzz.
source "$(dirname "$0")/common.sh"
seconds=${1:-10}
targets=("${@:2}")
[ ${#targets[@]} -gt 0 ] || targets=(json graph travel)
out=build/fuzz

# The newest clang that comes with the runtime of libFuzzer.
compiler=
for candidate in $(compgen -c clang++ | grep -E '^clang\+\+(-[0-9]+)?$' | sort -uV); do
  runtime=$("$candidate" -print-resource-dir)
  [ -z "$(find "$runtime" -name 'libclang_rt.fuzzer*.a' -print -quit)" ] || compiler=$candidate
done
if [ -z "$compiler" ]; then
  echo "fuzz: skipped, no clang++ with libFuzzer"
  report_skipped fuzz "no clang++ with libFuzzer"
  exit 0
fi
flags=(-std=c++17 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
  -DTVM_FFI_EXPORTS -DTVM_FFI_USE_LIBBACKTRACE=0 -Iinclude -Isrc)

# compile_one SOURCE: through the cache where there is one.
compile_one() {
  local object=$out/${1//\//_}.o
  [ "$object" -nt "$1" ] && [ -z "$(find include src -newer "$object" -name '*.h' -print -quit)" ] ||
    ${CMAKE_CXX_COMPILER_LAUNCHER:-} "$compiler" "${flags[@]}" -fsanitize=fuzzer-no-link -c "$1" -o "$object"
}

mkdir -p $out
sources=(src/core/*.cc src/extra/*.cc src/tie/*.cc)
export compiler out
export -f compile_one
declare -p flags >$out/flags.sh
printf '%s\0' "${sources[@]}" tests/fuzz/*.cc |
  xargs -0 -n 1 -P "$JOBS" bash -c 'set -euo pipefail; source build/fuzz/flags.sh; compile_one "$1"' --
objects=("${sources[@]//\//_}")
objects=("${objects[@]/#/$out/}")
objects=("${objects[@]/%/.o}")

cases=
for target in "${targets[@]}"; do
  "$compiler" -static-libstdc++ -static-libgcc -fsanitize=fuzzer,address,undefined "$out/tests_fuzz_${target}_fuzz.cc.o" \
    "${objects[@]}" -pthread -ldl -o "$out/${target}_fuzz"
  [ "$seconds" != 0 ] || continue
  mkdir -p $out/work/$target
  if ! $out/${target}_fuzz -dict=tests/fuzz/$target.dict -max_total_time="$seconds" -timeout=10 \
    -artifact_prefix=$out/ -print_final_stats=1 $out/work/$target tests/fuzz/corpus/$target \
    >$out/$target.log 2>&1; then
    tail -n 40 $out/$target.log >&2
    die "$target: see $out/$target.log"
  fi
  echo "$target: $(grep -o 'number_of_executed_units: *[0-9]*' $out/$target.log | tr -s ' ')"
  cases+="<testcase name=\"fuzz $target\"/>"
done
mkdir -p "$REPORTS"
echo "<testsuite>$cases</testsuite>" >"$REPORTS/fuzz.xml"
