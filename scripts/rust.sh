#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks of the Rust crates against the libraries of build/release (or of TETHER_PACKAGE).
#
#   scripts/rust.sh quick    unit and integration tests, a Rust library in Python
#   scripts/rust.sh rest     formatting, clippy, examples in the documentation, one for every item, the
#                            documentation itself, the code in docs/rust.md, the programs of
#                            examples/rust_*, generated bindings, a library of the released crates in
#                            Python, ASan
#   scripts/rust.sh nightly  TSan and Miri, which build the standard library first: ten minutes, not part of
#                            test-all
source "$(dirname "$0")/common.sh"

package=${TETHER_PACKAGE:-build/release/package}
if ! command -v cargo >/dev/null; then
  echo "no cargo: the Rust tests are skipped; rustup (https://rustup.rs) installs it"
  report_skipped "rust-$1" "no cargo"
  exit 0
fi
export TVM_FFI_LIBDIR=$ROOT/$package/tvm_ffi/lib CARGO_TERM_COLOR=never
# The build and the tests must not depend on who called; with backtraces a panic takes seconds under TSan.
unset RUSTFLAGS RUST_BACKTRACE

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

# python_test NAME FILE...: tests in Python, with the reason of every test that is skipped.
python_test() {
  local name=$1
  shift
  PYTHONPATH=$package "$PYTHON" -m pytest -q -rs -p no:cacheprovider "$@" \
    --junitxml="$REPORTS/$name.xml"
}

style() {
  if cargo fmt --version >/dev/null 2>&1; then
    in_crates cargo fmt --check
    rustfmt --check --edition 2021 --config-path rust/rustfmt.toml tests/rust/*/src/*.rs \
      bench/rust/src/*.rs examples/rust_*/src/*.rs
  else
    echo "no rustfmt: the format is not checked"
  fi
  if cargo clippy --version >/dev/null 2>&1; then
    in_crates cargo clippy --quiet --all-targets -- -D warnings
  else
    echo "no clippy: not checked"
  fi
}

host() { rustc -vV | sed -n 's/^host: //p'; }
has_nightly() { cargo +nightly --version >/dev/null 2>&1; }
has_rust_src() { [ -d "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library" ]; }

# What the crate does without calling C++, with a stand-in for the library: Miri cannot call it.
miri() {
  if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "no Miri (it needs the nightly toolchain and its component miri): not run"
    return 0
  fi
  MIRIFLAGS=-Zmiri-disable-isolation CARGO_TARGET_DIR=$ROOT/rust/target/miri \
    cargo_test rust-miri +nightly miri test -p tvm-ffi --lib --test pure
}

# Every public item has an example; those run as doc tests.
every_item_has_an_example() {
  local crate
  if ! has_nightly; then
    echo "no nightly toolchain, which lists the items: not checked that each has an example"
    return 0
  fi
  for crate in tvm-ffi tvm-ffi-sys; do
    RUSTDOCFLAGS='-Zunstable-options --output-format json' CARGO_TARGET_DIR=$ROOT/rust/target/examples \
      in_crates cargo +nightly doc --quiet --no-deps -p $crate
  done
  python3 scripts/rust_examples.py rust/target/examples/doc/tvm_ffi.json rust/target/examples/doc/tvm_ffi_sys.json
}

asan() {
  if ! has_nightly; then
    echo "no nightly toolchain: not run under ASan"
    return 0
  fi
  # Running out of memory is tested.
  ASAN_OPTIONS=allocator_may_return_null=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=$ROOT/rust/target/asan \
    cargo_test rust-asan +nightly test --tests --target "$(host)"
}

# Everything is instrumented: the standard library, which is built for it, libtvm_ffi and, below, the
# interpreter. Locks of code that is not would be invisible, and each of them reported. There is one runtime
# for all, that of g++. It has no functions for memcpy and its like; it watches those themselves. In a shell
# of its own: the variables are for this build only.
tsan() (
  local runtime flags target
  if ! has_nightly || ! has_rust_src; then
    echo "no nightly toolchain with the component rust-src: not run under TSan"
    return 0
  fi
  runtime=$(g++ -print-file-name=libtsan.so)
  target=$(host)
  flags="-Zsanitizer=thread -Zexternal-clangrt -Cllvm-args=-tsan-instrument-memintrinsics=0"
  scripts/build.sh tsan tvm_ffi_shared tvm_ffi_testing | tail -n 1
  export RUSTFLAGS="$flags -Clink-arg=$runtime" CARGO_TARGET_DIR=$ROOT/rust/target/tsan
  export "CARGO_TARGET_$(tr a-z- A-Z_ <<<"$target")_RUNNER=setarch -R env LD_PRELOAD=$runtime"
  # The tests that start threads. All tests of a file run side by side, too.
  TVM_FFI_LIBDIR=$ROOT/build/tsan/lib TSAN_OPTIONS=allocator_may_return_null=1 \
    cargo_test rust-tsan +nightly test -Zbuild-std --target "$target" --test objects --test pure \
    --test functions --test forms_classes
  tsan_python "$target"
)

# tsan_python TARGET: threads of Python and of Rust on objects of Rust.
tsan_python() {
  local python version plain reports=$REPORTS/tsan-rust status=0
  if ! python=$(scripts/freethreaded_python.sh --tsan) ||
    ! test_environment "${python##*/python}" "$(scripts/freethreaded_python.sh --cached)"; then
    echo "no free-threaded CPython with TSan: Rust in Python is not run under TSan"
    return 0
  fi
  version=${python##*/python}
  plain=$ROOT/.cache/venv-$version
  TETHER_PYTHON=$plain/bin/python scripts/build.sh tsan-python tvm_ffi_core tvm_ffi_testing | tail -n 1
  TVM_FFI_LIBDIR=$ROOT/build/tsan-python/package/tvm_ffi/lib \
    cargo +nightly build --quiet -Zbuild-std --target "$1" --manifest-path tests/rust/tied/Cargo.toml
  rm -rf "$reports" && mkdir -p "$reports"
  env -u PYTHONDONTWRITEBYTECODE TETHER_RUST_LIBRARIES="$CARGO_TARGET_DIR/$1/debug" \
    PYTHONPATH="build/tsan-python/package:$plain/lib/python$version/site-packages" \
    TSAN_OPTIONS="suppressions=$ROOT/tests/python/tsan.supp log_path=$reports/report history_size=7 exitcode=0" \
    setarch -R "$python" -X faulthandler -m pytest -q -p no:cacheprovider tests/rust/test_tied.py \
    -k 'not million' --junitxml="$REPORTS/rust-python-tsan.xml" | tail -n 3 || status=$?
  python3 scripts/tsan_reports.py "$reports" || die "see above; all reports are in $reports"
  return $status
}

case $1 in
  quick)
    cargo_test rust test --lib --tests
    python_test rust-python tests/rust/test_tied.py tests/rust/test_pickle.py tests/rust/test_interface.py
    ;;
  rest)
    style
    cargo_test rust-doctests test --doc
    RUSTDOCFLAGS='-D warnings' in_crates cargo doc --quiet --no-deps
    every_item_has_an_example
    python_test rust-examples tests/rust/test_examples.py tests/rust/test_stub.py tests/rust/test_docs.py
    TETHER_RUST_REFERENCE=1 python_test rust-reference tests/rust/test_reference.py
    asan
    ;;
  nightly)
    tsan
    miri
    ;;
  *) die "usage: scripts/rust.sh quick|rest|nightly" ;;
esac
