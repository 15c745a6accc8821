#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# One wheel for each interpreter given, into dist/: built with `pip wheel .`, checked by
# tests/packaging/audit_wheel.py, installed into a fresh environment of that interpreter and used.
#
#   scripts/wheels.sh                                 the interpreter of the environment
#   scripts/wheels.sh python3.10 PATH/python3.13t     these
source "$(dirname "$0")/common.sh"

# In a subshell, which removes its environment however it ends.
wheel_for() (
  python=$1
  env=$(mktemp -d)
  trap 'rm -rf "$env"' EXIT
  "$python" -m venv "$env"
  "$env/bin/python" -m pip install --quiet --disable-pip-version-check 'scikit-build-core>=0.10'
  "$env/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps \
    --no-build-isolation --wheel-dir "$env/wheel" .
  "$env/bin/python" tests/packaging/audit_wheel.py "$env"/wheel/*.whl
  "$env/bin/python" -m pip install --quiet --disable-pip-version-check "$env"/wheel/*.whl
  (cd "$env" && bin/python -c 'import tvm_ffi
box = tvm_ffi.Array([tvm_ffi.Map({"a": 1})])
assert box[0] is box[0]
print(tvm_ffi.__file__)' && bin/tvm-ffi-config --libs)
  mkdir -p dist
  cp "$env"/wheel/*.whl dist/
)

for python in "${@:-$PYTHON}"; do
  step "wheel: $("$python" -VV | head -n1)" wheel_for "$python"
done
