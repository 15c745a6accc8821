#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Debian packages of any architecture, with what they depend on, unpacked into a folder. Nothing is
# installed, and the apt settings of the system are left alone. Nothing is done if the folder has them.
#
#   scripts/debian_root.sh arm64 .cache/wheels-aarch64/root python3 libstdc++-12-dev
#
# Exit status 3: there is none; the last line on stderr says why. The packages are those of the release
# that the system runs.
source "$(dirname "$0")/common.sh"
architecture=$1
folder=$(realpath -m "$2")
shift 2

give_up() {
  echo "Debian packages for $architecture: $*" >&2
  exit 3
}

# The stamp holds what was unpacked, so a longer list is noticed.
[ "$(cat "$folder/unpacked" 2>/dev/null)" != "$*" ] || exit 0
command -v apt-get >/dev/null || give_up "no apt-get here"
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
read -r mirror keyring < <(debian_mirror) || give_up "no Debian mirror in the apt sources"

state=$folder.apt
rm -rf "$state" "$folder"
trap 'rm -rf "$state"' EXIT
mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$folder"
touch "$state/status"
echo "deb [signed-by=$keyring] $mirror $suite main" >"$state/sources.list"
options=(-o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture"
  -o "Dir::State=$state" -o "Dir::State::status=$state/status" -o "Dir::State::lists=$state/lists"
  -o "Dir::Cache=$state/cache" -o "Dir::Etc::sourcelist=$state/sources.list"
  -o Dir::Etc::sourceparts=/dev/null -o "APT::Sandbox::User=$(id -un)" -o Acquire::Languages=none)
apt-get "${options[@]}" update -qq >&2 || give_up "the package list of $suite could not be downloaded"
# As if nothing were installed, so everything that is needed comes along.
apt-get "${options[@]}" install --download-only -qqy --no-install-recommends -o Debug::NoLocking=true \
  "$@" >&2 || give_up "$* could not be downloaded"
for package in "$state"/cache/archives/*.deb; do
  dpkg-deb --extract "$package" "$folder" || give_up "$package could not be unpacked"
done
echo "$*" >"$folder/unpacked"
