#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing for a make target and nothing else; takes no noticeable time when all is
# there. Debian packages through apt-get (as root or with sudo), Python tools into .venv.
#
#   scripts/setup.sh demo|test|all|bench|lint|docs     all: what make test-all needs besides
source "$(dirname "$0")/common.sh"
purpose=${1:-test}

missing=()
# need PACKAGE PROBE: PROBE is a command on PATH, or an absolute path of a file.
need() {
  case $2 in
    /*) [ -e "$2" ] || missing+=("$1") ;;
    *) command -v "$2" >/dev/null || missing+=("$1") ;;
  esac
}

install_packages() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qqy -o Dpkg::Use-Pty=0 \
    --no-install-recommends "$@"
}

need cmake cmake
need ninja-build ninja
need g++ g++
need gcc gcc
need ccache ccache
need binutils nm
case $purpose in
  test | all)
    need libgtest-dev /usr/include/gtest/gtest.h
    need valgrind valgrind
    need spin spin
    need util-linux setarch
    need gdb gdb
    if [ "$purpose" = all ] && ! compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/*/libclang_rt.fuzzer*' >/dev/null; then
      missing+=(clang libclang-rt-14-dev)
    fi
    ;;
  bench)
    need libbenchmark-dev /usr/include/benchmark/benchmark.h
    need valgrind valgrind
    ;;
  lint)
    need clang-format clang-format
    ;;
  docs)
    need doxygen doxygen
    ;;
esac
if [ ! -x "$PYTHON" ]; then
  command -v python3 >/dev/null || missing+=(python3)
  python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
  python3 -c 'import sys, sysconfig, os
sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' 2>/dev/null ||
    missing+=(python3-dev)
fi

if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null ||
    die "missing: ${missing[*]} (Debian package names). No apt-get here: install them by hand."
  echo "installing ${missing[*]}"
  as_root apt-get update -qq
  install_packages "${missing[@]}"
fi
# Lint goes on without it and says so.
if [ "$purpose" = lint ] && ! command -v clang-tidy >/dev/null && command -v apt-get >/dev/null; then
  echo "installing clang-tidy"
  as_root apt-get update -qq
  install_packages clang-tidy || echo "clang-tidy could not be installed: see the lines above"
fi

# The crates need Rust 1.82. Debian 12 has that in packages of their own, cargo-web and rustfmt-web; where
# no package is new enough, the tests of the crates are skipped and say so.
candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/ *Candidate: \([0-9.]*\).*/\1/p'; }
is_new_enough() { [ -n "$1" ] && [ "$(printf '%s\n' 1.82 "$1" | sort -V | head -n1)" = 1.82 ]; }
if [[ $purpose = test || $purpose = all ]] && ! command -v cargo >/dev/null; then
  rust=()
  if command -v apt-get >/dev/null; then
    for suffix in '' -web; do
      is_new_enough "$(candidate "cargo$suffix")" || continue
      rust=("cargo$suffix" "rustfmt$suffix")
      break
    done
  fi
  if [ ${#rust[@]} -gt 0 ]; then
    echo "installing ${rust[*]}"
    install_packages "${rust[@]}" || echo "${rust[*]} could not be installed: see the lines above"
  fi
  command -v cargo >/dev/null ||
    echo "no cargo: the Rust tests will be skipped; rustup (https://rustup.rs) installs it"
fi

cmake_version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
[ "$(printf '%s\n' 3.25 "$cmake_version" | sort -V | head -n1)" = 3.25 ] ||
  die "cmake $cmake_version is too old, 3.25 is needed"

# The stamp holds what was installed, so an edited requirements file is noticed.
requirements=scripts/requirements-dev.txt
stamp=.venv/installed-requirements.txt
if ! cmp -s $requirements $stamp; then
  echo "creating .venv and installing $(grep -vc '^#' $requirements) Python packages"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    die "python3 is $(python3 -V 2>&1), 3.10 is needed"
  [ -x "$PYTHON" ] || python3 -m venv .venv
  "$PYTHON" -m pip install --quiet --disable-pip-version-check -r $requirements
  cp $requirements $stamp
fi

# The site and its checks. Chromium is only needed for the checks, which are skipped without it.
if [ "$purpose" = docs ]; then
  wanted=scripts/requirements-docs.txt
  if ! cmp -s $wanted .cache/site/installed-requirements.txt; then
    echo "creating .cache/site and installing $(grep -vc '^#' $wanted) Python packages"
    "$PYTHON" -m venv --clear .cache/site
    .cache/site/bin/python -m pip install --quiet --disable-pip-version-check -r $wanted
    cp $wanted .cache/site/installed-requirements.txt
  fi
  # The release that docs/from/apache-tvm-ffi.md compares with; the page is not run without it.
  if [ ! -e .cache/site-reference/ready ]; then
    "$PYTHON" -m venv --clear .cache/site-reference
    .cache/site-reference/bin/python -m pip install --quiet --disable-pip-version-check \
      'apache-tvm-ffi==0.1.15.post2' ninja && touch .cache/site-reference/ready ||
      echo "apache-tvm-ffi could not be installed: see the lines above"
  fi
  if ! command -v chromium >/dev/null && command -v apt-get >/dev/null; then
    echo "installing chromium"
    as_root apt-get update -qq
    install_packages chromium || echo "chromium could not be installed: see the lines above"
  fi
fi
