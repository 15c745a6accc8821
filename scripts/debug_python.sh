#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A debug build of CPython (Py_DEBUG: it checks reference counts, the lists of the collector and much
# else as it runs), from Debian's packages: unpacked once, into .cache/debug-python, and not installed.
# Prints the path of the interpreter (nothing else goes to stdout). Seconds.
#
#   scripts/debug_python.sh            fetch it if it is not there
#   scripts/debug_python.sh --cached   only say where it is
#
# Exit status 3: there is none; the last line on stderr says why.
source "$(dirname "$0")/common.sh"

HOME_DIR=$ROOT/.cache/debug-python

say() { echo "debug CPython: $*" >&2; }
give_up() {
  say "$*"
  exit 3
}

# The interpreter, if it works from where it is.
find_interpreter() {
  local python
  for python in "$HOME_DIR"/usr/bin/python3.*-dbg; do
    if env -u PYTHONHOME -u PYTHONPATH "$python" -c '
import ctypes, os, ssl, sys, sysconfig, venv
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(not hasattr(sys, "gettotalrefcount") or not os.path.exists(header))' 2>/dev/null; then
      echo "$python"
      return 0
    fi
  done
  return 1
}

# The newest release that the system has a debug build of: python3.11
newest_release() {
  apt-cache pkgnames | grep -oE '^python3\.[0-9]+-dbg$' | sed 's/-dbg$//' | sort -V | tail -n 1
}

if find_interpreter; then exit 0; fi
[ "${1:-}" != --cached ] || give_up "not downloaded"
command -v apt-get >/dev/null || give_up "no apt-get here, and no other source is known"
release=$(newest_release)
if [ -z "$release" ]; then
  as_root apt-get update -qq >&2 || give_up "the package lists could not be fetched"
  release=$(newest_release)
fi
[ -n "$release" ] || give_up "the system's package lists have no debug build"

rm -rf "$HOME_DIR.part" "$HOME_DIR"
mkdir -p "$HOME_DIR.part/packages"
cd "$HOME_DIR.part/packages"
say "downloading $release-dbg once, into .cache/debug-python"
# -dev: the headers that the debug build's refer to.
apt-get download -qq "$release-dbg" "lib$release-dbg" "lib$release-dev" "lib$release-stdlib" \
  "lib$release-minimal" 2>"$HOME_DIR.part/log" >&2 || {
  cat "$HOME_DIR.part/log" >&2
  give_up "the packages of $release-dbg could not be downloaded"
}
for package in *.deb; do dpkg -x "$package" "$HOME_DIR.part"; done
cd "$ROOT"
rm -rf "$HOME_DIR.part/packages"
# Its headers are links to those of the plain build, and a compiler that follows them would take the
# settings of that one too: copies, with the settings beside them.
headers=$HOME_DIR.part/usr/include/${release}d
cp -rL "$headers" "$headers.copy"
cp "$HOME_DIR.part"/usr/include/*/"${release}d"/pyconfig.h "$headers.copy"
rm -rf "$headers"
mv "$headers.copy" "$headers"
mv "$HOME_DIR.part" "$HOME_DIR"
find_interpreter || give_up "$release-dbg does not run from there"
