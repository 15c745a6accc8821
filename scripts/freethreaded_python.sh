#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds a free-threaded CPython from Debian's source package, once, in .cache/freethreaded, and prints
# the path of the interpreter (nothing else goes to stdout). Takes minutes the first time, nothing after.
#
#   scripts/freethreaded_python.sh            build it if it is not there
#   scripts/freethreaded_python.sh --cached   only say where it is
#
# Exit status 3: there is none; the last line on stderr says why. The apt settings and interpreters of
# the system are left alone, except that missing -dev packages are installed (as root, or with sudo).
source "$(dirname "$0")/common.sh"

HOME_DIR=$ROOT/.cache/freethreaded
WORK=$HOME_DIR/work
PREFIX=$HOME_DIR/python
RELEASES=(3.14 3.13)           # the first one that can be downloaded
SUITES=(sid testing trixie)    # of Debian; the index of one may name files the mirror has dropped

say() { echo "free-threaded CPython: $*" >&2; }
give_up() {
  say "$*"
  exit 3
}

cached() {
  local python
  for python in "$PREFIX"/bin/python3.*t; do
    if [ -x "$python" ]; then
      echo "$python"
      return 0
    fi
  done
  return 1
}

if cached; then exit 0; fi
[ "${1:-}" != --cached ] || give_up "not built"
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

# The mirror and the key the system itself uses, "URI KEYRING", from either format of apt's sources.
debian_mirror() {
  local keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  python3 - "$keyring" <<'PY'
import glob, re, sys
default = sys.argv[1]
def entries():
    for name in glob.glob("/etc/apt/sources.list.d/*.sources"):
        for block in open(name).read().split("\n\n"):
            field = dict(re.findall(r"(?m)^(URIs|Signed-By):\s*(\S+)", block))
            yield field.get("URIs", ""), field.get("Signed-By", default)
    for name in ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*.list")]:
        try:
            lines = open(name).read()
        except OSError:
            continue
        for options, uri in re.findall(r"(?m)^deb(?:-src)?\s+(\[[^\]]*\])?\s*(\S+)", lines):
            key = re.search(r"signed-by=([^\s\]]+)", options)
            yield uri, key[1] if key else default
for uri, key in entries():
    if uri.rstrip("/").endswith("debian"):
        print(uri.rstrip("/"), key if key.startswith("/") else default)
        break
PY
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

build() {
  local source=$WORK/source objects=$WORK/objects
  rm -rf "$source" "$objects" "$PREFIX.part"
  mkdir -p "$source" "$objects"
  tar -xJf "$1" -C "$source" --strip-components=1
  cd "$objects"
  # Installed under another name first: an interrupted build must not look like a finished one.
  logged "configure" "$source/configure" --prefix="$PREFIX" --disable-gil --disable-test-modules
  logged "compile" make -j"$JOBS"
  logged "install" make altinstall DESTDIR="$PREFIX.part"
  rm -rf "$PREFIX"
  mv "$PREFIX.part$PREFIX" "$PREFIX"
  rm -rf "$PREFIX.part"
  cd "$ROOT"
}

say "building once, in .cache/freethreaded (a few minutes)"
mkdir -p "$WORK"
install_build_dependencies || give_up "its build dependencies could not be installed"
read -r MIRROR KEYRING < <(debian_mirror) || give_up "no Debian mirror in the apt sources"
tarball=$(fetch_source) || give_up "no source package of ${RELEASES[*]} could be downloaded from $MIRROR"
build "$tarball"
python=$(cached) || give_up "the build left no interpreter"
"$python" -c 'import ssl, sqlite3, ctypes, sys; assert not sys._is_gil_enabled()' ||
  give_up "$python does not work"
rm -rf "$WORK"
say "$("$python" -VV)"
echo "$python"
