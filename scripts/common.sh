# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the other scripts: strict mode, the repository root as working directory, headings with
# elapsed time.
#
#   source "$(dirname "$0")/common.sh"
#   step "compile" scripts/build.sh release
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
ROOT=$PWD
JOBS=${TETHER_JOBS:-$(nproc)}

die() {
  echo "error: $*" >&2
  exit 1
}

# as_root COMMAND...
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "root is needed for: $*. Run it as root, or make sudo available."
  fi
}

# step TITLE COMMAND...: heading, the command, its wall time. A step that fails ends the script. The command
# may be a function, and ends at its first command that fails: so it must not stand in a condition (before ||
# or &&, after if), where bash ignores `set -e` in everything that the function does.
step() {
  STEP=$1 STEP_BEGIN=$SECONDS
  shift
  printf '\n== %s\n' "$STEP"
  trap 'echo "error: step '"'"'$STEP'"'"' failed after $((SECONDS - STEP_BEGIN)) s" >&2' EXIT
  "$@"
  local status=$?
  # A failure only comes here where the caller wrote `step ... || ...`.
  [ $status = 0 ] || exit $status
  trap - EXIT
  printf -- '-- %s: %d s\n' "$STEP" $((SECONDS - STEP_BEGIN))
}

# Every cmake started from here, also the one inside pip, compiles through the cache; paths are taken
# relative to the tree, so its build folders and other clones of it share results.
if command -v ccache >/dev/null; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=1
  # What ccache asks for before it caches a precompiled header and what is compiled with one.
  export CCACHE_SLOPPINESS=pch_defines,time_macros
fi

# The interpreter of the project's own environment (made by scripts/setup.sh), unless told otherwise.
PYTHON=${TETHER_PYTHON:-$ROOT/.venv/bin/python}

# Every test run leaves one JUnit file here; scripts/summary.py adds them up.
REPORTS=$ROOT/build/reports

# run_gtest NAME COMMAND...: one line when it passes, with the reasons of skipped tests; all of the
# output when it fails.
run_gtest() {
  local name=$1 log=$REPORTS/$1.log
  shift
  if ! "$@" --gtest_brief=1 --gtest_output="xml:$REPORTS/$name.xml" >"$log" 2>&1; then
    echo "$name: FAILED"
    cat "$log" >&2
    return 1
  fi
  printf '%-44s%s\n' "$name" "$(grep -m1 '^\[=* *\]' "$log" | cut -d' ' -f2-)"
  grep -A1 ': Skipped$' "$log" | grep -v -e ': Skipped$' -e '^--$' | sort | uniq -c || true
}

# run_sharded NAME COMMAND...: the same, the tests dealt out to JOBS processes.
run_sharded() {
  local name=$1
  shift
  seq "$JOBS" | xargs -P "$JOBS" -I PART \
    bash -c 'source scripts/common.sh; GTEST_SHARD_INDEX=$((PART - 1)) run_gtest "$@"' \
    -- "$name, part PART of $JOBS" env GTEST_TOTAL_SHARDS="$JOBS" "$@"
}

# run_pytest NAME COMMAND...: the last line and the reasons of skipped tests; all of it when it fails.
run_pytest() {
  local name=$1 log=$REPORTS/$1.log
  shift
  if ! "$@" -o junit_suite_name="$name" --junitxml="$REPORTS/$name.xml" >"$log" 2>&1; then
    echo "$name: FAILED"
    cat "$log" >&2
    return 1
  fi
  grep '^SKIPPED' "$log" || true
  printf '%-24s%s\n' "$name" "$(tail -n 1 "$log")"
}

# python_suite NAME INTERPRETER PACKAGE: all of tests/python, in two processes side by side. Some files
# collect garbage thousands of times or look at all that is in memory, which is fast where there is little.
python_suite() {
  local run=(env PYTHONPATH="$3" "$2" -X faulthandler -m pytest -q -p no:cacheprovider) tying status=0
  local collecting=(tests/python/test_{tensor,dlpack,pickle}.py tests/python/test_tying_*.py tests/python/test_inspect*.py)
  run_pytest "$1-tying" "${run[@]}" "${collecting[@]}" &
  tying=$!
  run_pytest "$1" "${run[@]}" tests/python "${collecting[@]/#/--ignore=}" || status=1
  wait $tying || status=1
  return $status
}

# report_skipped NAME REASON: a whole run that could not be made. report_failed: one that failed before its first test.
report_skipped() { report_run "$1" skipped "$2"; }
report_failed() { report_run "$1" failure "$2"; }
report_run() {
  mkdir -p "$REPORTS"
  printf '<testsuite><testcase name="%s"><%s message="%s"/></testcase></testsuite>\n' "$@" >"$REPORTS/$1.xml"
}

# test_environment VERSION INTERPRETER: .cache/venv-VERSION with the test tools, made once. Wheels only:
# what has none for this interpreter is taken in an older version, or, numpy, left out.
test_environment() {
  local home=.cache/venv-$1
  [ ! -e "$home/ready" ] || return 0
  rm -rf "$home"
  # The pip of the project's environment: not every interpreter comes with one.
  "$2" -m venv --without-pip "$home" || return 1
  local pip=("$PYTHON" -m pip --python "$home/bin/python" install --quiet --disable-pip-version-check
    --only-binary :all:)
  "${pip[@]}" 'pytest>=8' 'hypothesis>=6.100' || return 1
  "${pip[@]}" numpy || echo "python $1: no numpy for this interpreter; the tests that need it skip"
  touch "$home/ready"
}

# find_python VERSION: the newest of pyenv's, or the one on PATH that runs and has its headers.
find_python() {
  local candidate
  for candidate in $(ls -d "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python"$1" 2>/dev/null |
    sort -Vr) "$(command -v "python$1" || true)"; do
    if "$candidate" -c "$usable" "$1" 2>/dev/null; then
      echo "$candidate"
      return 0
    fi
  done
  return 1
}
usable='import os, sys, sysconfig, ensurepip
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit("%d.%d" % sys.version_info[:2] != sys.argv[1] or not os.path.exists(header))'

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
