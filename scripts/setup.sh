#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing for a make target and nothing else; takes no noticeable time when all is
# there. Debian packages through apt-get (as root or with sudo), Python tools into .venv.
#
#   scripts/setup.sh demo|test|bench|lint
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
  test)
    need libgtest-dev /usr/include/gtest/gtest.h
    need valgrind valgrind
    need spin spin
    need util-linux setarch
    compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/*/libclang_rt.fuzzer*' >/dev/null ||
      missing+=(clang libclang-rt-14-dev)
    ;;
  bench)
    need libbenchmark-dev /usr/include/benchmark/benchmark.h
    need valgrind valgrind
    ;;
  lint)
    need clang-format clang-format
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

# Debian's is too old, and rustup installs per user: said, not done.
if [ "$purpose" = test ] && ! command -v cargo >/dev/null; then
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
