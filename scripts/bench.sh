#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Benchmarks against the reference release and other bindings, from a fresh clone: everything is
# built, then measured, then written to bench/results/ and into the tables of README.md and docs/.
# What is built takes as long as it takes; the measurements share the rest of BENCH_SECONDS and make
# fewer rounds when that is little (the output and the tables say so).
#
#   scripts/bench.sh
#   BENCH_SECONDS=3600 scripts/bench.sh     more time, or less
source "$(dirname "$0")/common.sh"

LIMIT=${BENCH_SECONDS:-1140}
BENCH_BEGIN=$(date +%s)
export BENCH_BEGIN

# Parts and how they share the time; each is a runner of bench/ with its arguments.
PARTS=(
  "30 run_python.py"
  "10 run_threads.py gil"
  "30 run_scale.py"
  "7 run_package.py"
  "4 run_tensors.py"
  "10 run_structural.py"
  "8 run_travel.py"
  "12 run_core.py"
)
failed=()

# The time of a part: what is left, by weight, among it and those after it.
measure_all() {
  local part weight rest=0 left
  for part in "${PARTS[@]}"; do rest=$((rest + ${part%% *})); done
  for part in "${PARTS[@]}"; do
    weight=${part%% *}
    left=$((LIMIT - SECONDS))
    [ $left -gt 0 ] || left=0
    # One part that fails does not take the others with it.
    # shellcheck disable=SC2086
    (step "${part#* } (at $SECONDS s, has $((left * weight / rest)) s)" \
      "$PYTHON" bench/${part#* } --seconds $((left * weight / rest))) || failed+=("${part#* }")
    rest=$((rest - weight))
  done
}

step "setup" scripts/setup.sh bench
# Beside the peers: much of both keeps only one core busy.
scripts/freethreaded_python.sh >/dev/null &
interpreter=$!
step "build: this tree and its peers" "$PYTHON" bench/run_python.py --prepare
step "environment of the pictures" "$PYTHON" bench/run_plots.py --prepare
if wait $interpreter; then
  step "build: for a free-threaded interpreter" "$PYTHON" bench/run_threads.py free --prepare
  PARTS+=("12 run_threads.py free")
else
  echo "threads without the interpreter lock are not measured, the reason is above"
fi
measure_all
step "pictures" "$PYTHON" bench/run_plots.py
step "tables of README.md and docs" "$PYTHON" bench/write_tables.py
printf '\nmake bench: %d s, results in bench/results/\n' $SECONDS
[ ${#failed[@]} = 0 ] || die "these parts failed, their results are old: ${failed[*]}"
