#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks of the Rust crates against the libraries of build/release (or of TETHER_PACKAGE).
#
#   scripts/rust.sh quick    formatting, clippy, unit and integration tests, a Rust library in Python
#   scripts/rust.sh rest     examples in the documentation, the documentation itself, a library of the
#                            released crates in Python, ASan, Miri
source "$(dirname "$0")/common.sh"

package=${TETHER_PACKAGE:-build/release/package}
if ! command -v cargo >/dev/null; then
  echo "no cargo: the Rust tests are skipped; rustup (https://rustup.rs) installs it"
  report_skipped "rust-$1" "no cargo"
  exit 0
fi
export TVM_FFI_LIBDIR=$ROOT/$package/tvm_ffi/lib CARGO_TERM_COLOR=never
# Scripts that run cargo set these for it; the build must not depend on who called.
unset RUSTFLAGS

# in_crates COMMAND...
in_crates() { (cd rust && "$@"); }

# cargo_test NAME ARGUMENT...: cargo test; its result as a JUnit file.
cargo_test() {
  local name=$1 log status=0
  shift
  log=$(mktemp)
  in_crates cargo "$@" >"$log" 2>&1 || status=1
  [ $status = 0 ] || cat "$log"
  grep '^test result' "$log" || true
  mkdir -p "$REPORTS"
  awk 'BEGIN { print "<testsuite>" }
    /^test .* \.\.\. / {
      name = $0; sub(/^test /, "", name); sub(/ \.\.\. .*/, "", name); gsub(/[<>&"]/, "", name)
      printf "<testcase name=\"%s\">", name
      if ($0 ~ /\.\.\. FAILED/) printf "<failure message=\"see the log\"/>"
      if ($0 ~ /\.\.\. ignored/) printf "<skipped message=\"ignored\"/>"
      print "</testcase>"
    }
    END { print "</testsuite>" }' "$log" >"$REPORTS/$name.xml"
  rm -f "$log"
  return $status
}

# Only what runs without the library: the loader cannot be interpreted.
miri() {
  if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "no Miri: rustup +nightly component add miri"
    return 0
  fi
  MIRIFLAGS=-Zmiri-disable-isolation CARGO_TARGET_DIR=$ROOT/rust/target/miri \
    cargo_test rust-miri +nightly miri test -p tvm-ffi --lib
}

asan() {
  if ! cargo +nightly --version >/dev/null 2>&1; then
    echo "no nightly toolchain: not run under ASan"
    return 0
  fi
  # Running out of memory is tested.
  ASAN_OPTIONS=allocator_may_return_null=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=$ROOT/rust/target/asan \
    cargo_test rust-asan +nightly test --tests --target "$(rustc -vV | sed -n 's/^host: //p')"
}

case $1 in
  quick)
    in_crates cargo fmt --check
    rustfmt --check --edition 2021 --config-path rust/rustfmt.toml tests/rust/*/src/*.rs bench/rust/src/*.rs
    in_crates cargo clippy --quiet --all-targets -- -D warnings
    cargo_test rust test --lib --tests
    PYTHONPATH=$package "$PYTHON" -m pytest -q -p no:cacheprovider tests/rust \
      --junitxml="$REPORTS/rust-python.xml"
    ;;
  rest)
    cargo_test rust-doctests test --doc
    RUSTDOCFLAGS='-D warnings' in_crates cargo doc --quiet --no-deps
    TETHER_RUST_REFERENCE=1 PYTHONPATH=$package "$PYTHON" -m pytest -q -p no:cacheprovider \
      tests/rust/test_reference.py --junitxml="$REPORTS/rust-reference.xml"
    asan
    miri
    ;;
  *) die "usage: scripts/rust.sh quick|rest" ;;
esac
