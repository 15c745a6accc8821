#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Formatting and static checks; changes nothing. Goes on after a check that fails.
#
#   scripts/lint.sh                    everything
#   scripts/lint.sh --fix              first rewrite files with clang-format and ruff
#   scripts/lint.sh --tidy FILE ...    clang-tidy on these sources only
source "$(dirname "$0")/common.sh"

mapfile -t cpp_files < <(git ls-files --cached --others --exclude-standard '*.h' '*.cc' '*.c')
mapfile -t sources < <(printf '%s\n' "${cpp_files[@]}" | grep -E '^src/.*\.cc$')
python_dirs=(python scripts tests bench)

format() { clang-format --dry-run --Werror "${cpp_files[@]}"; }
python_lint() { "$PYTHON" -m ruff check "${python_dirs[@]}" && "$PYTHON" -m ruff format --check "${python_dirs[@]}"; }

# tidy FILE...: with the compile commands of the libraries and of the extension. Without libbacktrace,
# whose header only gcc finds, and without the options that only gcc knows.
tidy() {
  cmake -S . -B build/lint -G Ninja --log-level=WARNING -DTETHER_BUILD_PYTHON=ON \
    "-DPython_EXECUTABLE=$PYTHON" -Dtvm_ffi_LIBBACKTRACE_LINKS=0 >/dev/null || return 1
  sed -i 's/ -fno-ipa-modref//' build/lint/compile_commands.json
  printf '%s\0' "$@" | xargs -0 -n 1 -P "$JOBS" scripts/lint.sh --tidy-one
}

# tidy_one FILE: its findings, without the count of those in other people's headers.
tidy_one() {
  clang-tidy --quiet -p build/lint --extra-arg=-Wno-unknown-warning-option "$1" 2> >(
    grep -vE '^[0-9]+ warnings? (generated|treated)|^Suppressed|^Use -header-filter' >&2
  )
}

# Every file of the project says under which licence it is.
licence_lines() {
  local missing
  missing=$(git ls-files --cached --others --exclude-standard '*.h' '*.cc' '*.c' '*.py' '*.sh' '*.cmake' \
    '*CMakeLists.txt' | xargs grep -L 'SPDX-License-Identifier: Apache-2.0' || true)
  [ -z "$missing" ] || {
    echo "no SPDX line in: $missing" >&2
    return 1
  }
}

# What tools wrote and what programs read to the byte is left alone, as in .pre-commit-config.yaml.
whitespace() {
  git ls-files --cached --others --exclude-standard | grep -vE '^(tests/fuzz/corpus/|LICENSE$)|\.svg$' |
    xargs -d '\n' "$PYTHON" scripts/check_whitespace.py
}

failed=()
# check NAME COMMAND...
check() {
  local name=$1 begin=$SECONDS
  shift
  printf '== %s\n' "$name"
  "$@" || failed+=("$name")
  printf -- '-- %s: %d s\n' "$name" $((SECONDS - begin))
}

case ${1:-} in
  --tidy-one) tidy_one "$2" && exit || exit 1 ;;
  --tidy)
    shift
    tidy "$@"
    exit
    ;;
esac
scripts/setup.sh lint
if [ "${1:-}" = --fix ]; then
  clang-format -i "${cpp_files[@]}"
  "$PYTHON" -m ruff check --fix "${python_dirs[@]}"
  "$PYTHON" -m ruff format "${python_dirs[@]}"
fi
check "licence lines" licence_lines
check "whitespace" whitespace
check "clang-format" format
check "ruff" python_lint
check "mypy" "$PYTHON" -m mypy
if command -v clang-tidy >/dev/null; then
  check "clang-tidy" tidy "${sources[@]}"
else
  echo "clang-tidy: skipped, it could not be installed"
  report_skipped clang-tidy "it could not be installed"
fi
[ ${#failed[@]} = 0 ] || die "lint: $(printf '%s, ' "${failed[@]}" | sed 's/, $//')"
