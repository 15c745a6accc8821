# SPDX-License-Identifier: Apache-2.0
"""Rule B: the promises with a collector whose inner workings the frontend could not learn.

The extension falls back to it when its self-check at import fails; here a child process is told to.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tvm_ffi
from support import DEBUG_BUILD, RULE_B

HERE = Path(__file__).parent
if DEBUG_BUILD:
    pytest.skip("debug builds check counts that rule B lets go wrong", allow_module_level=True)


@pytest.mark.parametrize("name", ["test_tying_p2.py", "test_tying_p3.py", "test_tying_p6.py"])
def test_rule_b_keeps_the_promises_of(name: str) -> None:
    if RULE_B:
        pytest.skip("this is the child process already")
    environment = dict(os.environ, TETHER_COLLECTOR_RULE_B="1")
    environment["PYTHONPATH"] = str(Path(tvm_ffi.__file__).parents[1])
    command = [sys.executable, "-X", "faulthandler", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, str(HERE / name)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_rule_b_collections_race_with_fetches() -> None:
    """Whoever gets a wrapper while a collection runs keeps it usable."""
    code = """
import gc, sys, threading
from support import Stateful, make_holder, run_threads
sys.setswitchinterval(1e-6)
holders = []
for i in range(8):
    obj = Stateful(i)
    obj.me = obj
    holders.append(make_holder(obj))
    del obj
stop = threading.Event()

def body(i):
    if i == 0:
        while not stop.is_set():
            gc.collect()
        return
    for step in range(3000):
        value = holders[(step + i) % 8].value
        assert value.me is value
        assert value.v_i64 == (step + i) % 8
    if i == 1:
        stop.set()

run_threads(3, body)
print("ok")
"""
    environment = dict(os.environ, TETHER_COLLECTOR_RULE_B="1")
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(tvm_ffi.__file__).parents[1]), str(HERE)])
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout == "ok\n", done.stdout + done.stderr
