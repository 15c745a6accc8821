#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A CPython that neither pyenv nor the system has, from a prebuilt archive: downloaded once, into
# .cache/cpython-3.14. Prints the path of the interpreter (nothing else goes to stdout). It has venv,
# pip, ssl, ctypes and its headers, and needs no environment variable. Half a minute the first time.
#
#   scripts/prebuilt_python.sh            fetch it if it is not there
#   scripts/prebuilt_python.sh --cached   only say where it is
#   TETHER_PREBUILT=FOLDER                put it elsewhere
#
# Exit status 3: there is none; the last line on stderr says why. The archive is the Maven package
# org.bytedeco:cpython; missing tools are installed (as root, or with sudo).
source "$(dirname "$0")/common.sh"

RELEASE=3.14
PACKAGE=org.bytedeco:cpython:3.14.3-1.5.13:jar:linux-x86_64
HOME_DIR=$(realpath -m "${TETHER_PREBUILT:-$ROOT/.cache/cpython-$RELEASE}")
INTERPRETER=$HOME_DIR/bin/python$RELEASE

say() { echo "prebuilt CPython $RELEASE: $*" >&2; }
give_up() {
  say "$*"
  exit 3
}

# In an environment without help, as its users have it.
works() {
  env -u PYTHONHOME -u PYTHONPATH -u LD_LIBRARY_PATH "$INTERPRETER" -c '
import ctypes, ensurepip, os, sqlite3, ssl, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' 2>/dev/null
}

if works; then
  echo "$INTERPRETER"
  exit 0
fi
[ "${1:-}" != --cached ] || give_up "not downloaded"
[ "$(uname -sm)" = "Linux x86_64" ] || give_up "there is no archive for $(uname -sm)"

install_tools() {
  local missing=()
  command -v mvn >/dev/null || missing+=(maven)
  command -v unzip >/dev/null || missing+=(unzip)
  command -v patchelf >/dev/null || missing+=(patchelf)
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || return 1
  say "installing ${missing[*]}"
  as_root apt-get update -qq >&2 &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qqy -o Dpkg::Use-Pty=0 \
      --no-install-recommends "${missing[@]}" >&2
}

# The libraries lie at the top of the archive, three folders above the modules.
set_search_paths() {
  local file
  chmod +x "$HOME_DIR.part"/bin/*
  for file in "$HOME_DIR.part/bin/python$RELEASE" "$HOME_DIR.part"/*.so*; do
    [ -L "$file" ] || patchelf --set-rpath '$ORIGIN/..:$ORIGIN' "$file" 2>/dev/null || true
  done
  for file in "$HOME_DIR.part/lib/python$RELEASE"/lib-dynload/*.so; do
    patchelf --set-rpath '$ORIGIN/../../..' "$file" || return 1
  done
}

fetch() {
  mvn -q -B dependency:get -Dartifact="$PACKAGE" -Dtransitive=false >&2 &&
    mvn -q -B dependency:copy -Dartifact="$PACKAGE" -DoutputDirectory="$work" >&2 &&
    unzip -qo "$work"/cpython-*.jar -d "$work/jar" >&2
}

install_tools || give_up "maven, unzip and patchelf are needed and could not be installed"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say "downloading once, into ${HOME_DIR#"$ROOT"/}"
fetch || give_up "$PACKAGE could not be downloaded"
# Under another name first: an interrupted run must not look like a finished one.
rm -rf "$HOME_DIR.part"
mkdir -p "$(dirname "$HOME_DIR")"
mv "$work/jar/org/bytedeco/cpython/linux-x86_64" "$HOME_DIR.part"
set_search_paths || give_up "the search paths of its libraries could not be set"
rm -rf "$HOME_DIR"
mv "$HOME_DIR.part" "$HOME_DIR"
works || give_up "$INTERPRETER does not work here"
echo "$INTERPRETER"
