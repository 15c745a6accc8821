#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Formatting and static checks; changes nothing.
#
#   scripts/lint.sh            everything
#   scripts/lint.sh --fix      rewrite files with clang-format and ruff instead of complaining
source "$(dirname "$0")/common.sh"

mapfile -t cpp_files < <(git ls-files --cached --others --exclude-standard '*.h' '*.cc' '*.c')
mapfile -t sources < <(printf '%s\n' "${cpp_files[@]}" | grep -E '^src/.*\.cc$')
python_dirs=(python scripts tests bench)

format() { clang-format --dry-run --Werror "${cpp_files[@]}"; }
python_lint() { "$PYTHON" -m ruff check "${python_dirs[@]}" && "$PYTHON" -m ruff format --check "${python_dirs[@]}"; }

tidy() {
  cmake -S . -B build/lint -G Ninja --log-level=WARNING -DTETHER_BUILD_TESTS=ON
  printf '%s\0' "${sources[@]}" |
    xargs -0 -n 1 -P "$JOBS" clang-tidy --quiet -p build/lint --extra-arg=-Wno-unknown-warning-option
}

# Every file of the project says under which licence it is.
licence_lines() {
  local missing
  missing=$(git ls-files --cached --others --exclude-standard '*.h' '*.cc' '*.c' '*.py' '*.sh' '*.cmake' \
    '*CMakeLists.txt' | xargs grep -L 'SPDX-License-Identifier: Apache-2.0' || true)
  [ -z "$missing" ] || die "no SPDX line in: $missing"
}

step "setup" scripts/setup.sh lint
if [ "${1:-}" = --fix ]; then
  clang-format -i "${cpp_files[@]}"
  "$PYTHON" -m ruff check --fix "${python_dirs[@]}"
  "$PYTHON" -m ruff format "${python_dirs[@]}"
fi
step "licence lines" licence_lines
step "clang-format" format
step "ruff" python_lint
step "mypy" "$PYTHON" -m mypy
step "clang-tidy" tidy
