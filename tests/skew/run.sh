#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Old binaries against the library in build/release: builds the clients and runs the driver
#   - with all of them in one process, each with its own copies of inline code;
#   - with each release and a client of ours where equal weak symbols merge, once so that the client
#     runs our copies of them and once so that our client runs its copies;
# each plain and under valgrind. Skipped, with the reason, when the package index cannot be reached.
source "$(dirname "$0")/../../scripts/common.sh"
build=build/skew

status=0
wheels=$("$PYTHON" tests/skew/fetch_headers.py) || status=$?
if [ $status = 3 ]; then
  echo "SKIPPED: old-binary tests, because the package index cannot be reached"
  report_skipped skew "the package index cannot be reached"
  exit 0
fi
[ $status = 0 ] || die "cannot fetch the released headers"
releases=()
for wheel in $wheels; do releases+=("$(basename "$wheel")"); done

cmake -S tests/skew -B $build -G Ninja --log-level=WARNING \
  -DTETHER_LIB_DIR="$ROOT/build/release/lib" -DSKEW_WHEELS="$(dirname "$wheel")" \
  -DSKEW_RELEASES="$(IFS=';' && echo "${releases[*]}")"
cmake --build $build --parallel "$JOBS"

client() { echo "$1=$ROOT/$build/client_$1.so"; }
memcheck="valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite
  --errors-for-leak-kinds=definite"

# JOBS runs at a time; xargs fails if one of them does.
schedule() { printf '%q ' run_gtest "$@" && echo; }
runs() {
  local tool prefix release driver
  for tool in plain memcheck; do
    prefix=
    [ $tool = plain ] || prefix=$memcheck
    schedule "skew all $tool" $prefix $build/driver \
      $(for release in "${releases[@]}"; do client "$release"; done) "$(client ours)"
    for release in "${releases[@]}"; do
      for driver in driver driver_exporting; do
        schedule "skew $release $driver $tool" $prefix $build/$driver --merged \
          "$(client "$release")" "$(client ours)"
      done
    done
  done
}
mkdir -p "$REPORTS"
runs | xargs -d '\n' -P "$JOBS" -I COMMAND bash -c 'source scripts/common.sh; COMMAND'
