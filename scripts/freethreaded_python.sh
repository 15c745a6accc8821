#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds a free-threaded CPython from Debian's source package, once, in .cache/freethreaded, and prints
# the path of the interpreter (nothing else goes to stdout). Takes minutes the first time, nothing after.
#
#   scripts/freethreaded_python.sh            build it if it is not there
#   scripts/freethreaded_python.sh --cached   only say where it is
#   scripts/freethreaded_python.sh --tsan     one with the thread sanitizer, beside the other: only what
#                                             is compiled is its own. Run it under setarch -R.
#
# Exit status 3: there is none; the last line on stderr says why. The apt settings and interpreters of
# the system are left alone, except that missing -dev packages are installed (as root, or with sudo).
source "$(dirname "$0")/common.sh"

HOME_DIR=$ROOT/.cache/freethreaded
WORK=$HOME_DIR/work
PREFIX=$HOME_DIR/python
TSAN_PREFIX=$HOME_DIR/tsan
SOURCE=$HOME_DIR/source.tar.xz  # kept, with the findings of configure, for the second build
CONFIGURE_CACHE=$HOME_DIR/configure.cache
RELEASES=(3.14 3.13)           # the first one that can be downloaded
SUITES=(sid testing trixie)    # of Debian; the index of one may name files the mirror has dropped

say() { echo "free-threaded CPython: $*" >&2; }
give_up() {
  say "$*"
  exit 3
}

# cached PREFIX
cached() {
  local python
  for python in "$1"/bin/python3.*t; do
    if [ -x "$python" ]; then
      echo "$python"
      return 0
    fi
  done
  return 1
}

if [ "${1:-}" = --tsan ]; then
  if cached "$TSAN_PREFIX"; then exit 0; fi
  plain=$("$0") || exit 3
else
  if cached "$PREFIX"; then exit 0; fi
  [ "${1:-}" != --cached ] || give_up "not built"
fi
command -v apt-get >/dev/null || give_up "no apt-get here, and no other source is known"

install_build_dependencies() {
  local package missing=()
  for package in gcc make pkg-config xz-utils libssl-dev zlib1g-dev libffi-dev libsqlite3-dev \
    libbz2-dev liblzma-dev libreadline-dev uuid-dev; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  as_root apt-get update -qq >&2 &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qqy -o Dpkg::Use-Pty=0 \
      --no-install-recommends "${missing[@]}" >&2
}

# download RELEASE SUITE: the upstream tarball of the newest version that really downloads; signatures
# are checked. Lists and caches of apt live in $WORK.
download() {
  local package=python$1 suite=$2 apt=$WORK/apt-$2 version options
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  options=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o "APT::Sandbox::User=$(id -un)"
    -o Acquire::Languages=none)
  if [ ! -e "$apt/updated" ]; then
    echo "deb-src [signed-by=$KEYRING] $MIRROR $suite main" >"$apt/sources.list"
    apt-get "${options[@]}" update -qq >&2 || return 1
    touch "$apt/updated"
  fi
  for version in $(apt-cache "${options[@]}" showsrc --only-source "$package" 2>/dev/null |
    awk '/^Version:/ { print $2 }' | sort -Vru); do
    say "trying $package $version of $suite"
    if (cd "$WORK" && apt-get "${options[@]}" source -qq --download-only "$package=$version") >"$apt/log" 2>&1; then
      echo "$WORK/${package}_${version%-*}.orig.tar.xz"
      return 0
    fi
    say "$package $version: $(grep -m1 -oE '[0-9]{3}  [A-Z].*' "$apt/log" || tail -n 1 "$apt/log")"
  done
  return 1
}

fetch_source() {
  local release suite
  for release in "${RELEASES[@]}"; do
    for suite in "${SUITES[@]}"; do
      if download "$release" "$suite"; then return 0; fi
    done
  done
  return 1
}

# logged TITLE COMMAND...: quiet unless it fails.
logged() {
  local title=$1 begin=$SECONDS
  shift
  say "$title"
  "$@" >"$WORK/build.log" 2>&1 || {
    tail -n 30 "$WORK/build.log" >&2
    give_up "$title failed"
  }
  say "$title: $((SECONDS - begin)) s"
}

# unpack: into $WORK/source, with an empty folder for the objects beside it.
unpack() {
  rm -rf "$WORK/source" "$WORK/objects"
  mkdir -p "$WORK/source" "$WORK/objects"
  tar -xJf "$SOURCE" -C "$WORK/source" --strip-components=1
}

# configure OPTION...
configure() {
  logged "configure" "$WORK/source/configure" --cache-file="$CONFIGURE_CACHE" --disable-gil \
    --disable-test-modules "$@"
}

build() {
  rm -rf "$PREFIX.part"
  unpack
  cd "$WORK/objects"
  # Installed under another name first: an interrupted build must not look like a finished one.
  configure --prefix="$PREFIX"
  logged "compile" make -j"$JOBS"
  logged "install" make altinstall DESTDIR="$PREFIX.part"
  rm -rf "$PREFIX"
  mv "$PREFIX.part$PREFIX" "$PREFIX"
  rm -rf "$PREFIX.part"
  cd "$ROOT"
}

# build_tsan PLAIN: the interpreter and the modules it needs most, compiled again. All that is written
# in Python, and the headers, are those of the plain build.
build_tsan() {
  local name=${1##*/} module
  local library=$TSAN_PREFIX.part/lib/$name
  rm -rf "$TSAN_PREFIX.part"
  unpack
  cd "$WORK/objects"
  for module in _bz2 _codecs_cn _codecs_hk _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _curses \
    _curses_panel _dbm _decimal _gdbm _lzma _sqlite3 _ssl _tkinter nis readline; do
    export "py_cv_module_$module=n/a"
  done
  # Little optimisation: it is compiled more often than it runs long. The programs of the build are
  # instrumented too, so they need the fixed address layout.
  configure --prefix="$TSAN_PREFIX" --with-thread-sanitizer
  logged "compile, thread sanitizer" setarch -R make -j"$JOBS" OPT="-O1 -g1 -DNDEBUG" python sharedmods
  [ "$(setarch -R ./python -V)" = "$("$1" -V)" ] ||
    give_up "the source package is no longer the one of the plain build; remove .cache/freethreaded"
  mkdir -p "$TSAN_PREFIX.part/bin" "$library/lib-dynload"
  cp python "$TSAN_PREFIX.part/bin/$name"
  cp "$(<pybuilddir.txt)"/*.so "$library/lib-dynload"
  ln -sr "$PREFIX/include" "$TSAN_PREFIX.part"
  find "$PREFIX/lib/$name" -mindepth 1 -maxdepth 1 ! -name lib-dynload ! -name site-packages \
    -exec ln -sr {} "$library" \;
  rm -rf "$TSAN_PREFIX"
  mv "$TSAN_PREFIX.part" "$TSAN_PREFIX"
  cd "$ROOT"
}

say "building once, in .cache/freethreaded (a few minutes)"
mkdir -p "$WORK"
install_build_dependencies || give_up "its build dependencies could not be installed"
if [ ! -e "$SOURCE" ]; then
  read -r MIRROR KEYRING < <(debian_mirror) || give_up "no Debian mirror in the apt sources"
  tarball=$(fetch_source) || give_up "no source package of ${RELEASES[*]} could be downloaded from $MIRROR"
  mv "$tarball" "$SOURCE"
fi
if [ -n "${plain:-}" ]; then
  build_tsan "$plain"
  python=$(cached "$TSAN_PREFIX") || give_up "the build left no interpreter"
  probe=(setarch -R "$python" -c 'import ctypes, sys; assert not sys._is_gil_enabled()')
else
  build
  python=$(cached "$PREFIX") || give_up "the build left no interpreter"
  probe=("$python" -c 'import ssl, sqlite3, ctypes, sys; assert not sys._is_gil_enabled()')
fi
"${probe[@]}" || give_up "$python does not work"
rm -rf "$WORK"
say "$("${probe[@]:0:${#probe[@]}-2}" -VV)"
echo "$python"
