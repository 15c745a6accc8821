# SPDX-License-Identifier: Apache-2.0
"""Does the soak see what it should? Each fault pretends that something is broken; it must be found.

python tests/soak/soak.py --self-test
"""

from __future__ import annotations

import os
import signal
import time
import weakref
from collections.abc import Callable
from typing import Any

import program
import threads
from objects import BaseDict, PyNode
from shrink import run_in_child, shrink

PROGRAMS = 60
kept: list[Any] = []


def after(name: str, change: Callable[[program.Machine], None]) -> None:
    """Do something to the objects behind the back of the model, after each step of this name."""
    function, weight, group = program.STEPS[name]

    def step(machine: program.Machine, a: int, b: int, c: int) -> None:
        function(machine, a, b, c)
        change(machine)

    program.STEPS[name] = step, weight, group


def lose_state(machine: program.Machine) -> None:
    for real, node in zip(machine.R, machine.M, strict=True):
        if node is not None and node.state and "note" in node.state:
            del real.note


def change_value(machine: program.Machine) -> None:
    for real, node in zip(machine.R, machine.M, strict=True):
        if node is not None and node.kind == program.PY:
            real.x = 5


def keep(machine: program.Machine) -> None:
    kept[:] = [real for real in machine.R if isinstance(real, PyNode)]


def lose_weak_references(machine: program.Machine) -> None:
    for node in machine.nodes:
        node.wrs[:] = [weakref.ref(BaseDict()) for _ in node.wrs]


def keep_ring(machine: program.Machine) -> None:
    if not kept and machine.watchers and machine.watchers[-1][1] is machine.nodes[-1]:
        kept[:] = [machine.watchers[-1][0]()]


def crash(machine: program.Machine) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(machine: program.Machine) -> None:
    time.sleep(600)


def another_wrapper() -> None:
    program.echo = lambda value: program.copy.copy(value) if isinstance(value, PyNode) else value


def wrong_thread_value() -> None:
    threads.Shared.value = lambda self, b: -1


# What is broken, how, and how the finding begins.
FAULTS: dict[str, tuple[Callable[[], None], str]] = {
    "a fetch gives another wrapper": (another_wrapper, "P1/P2"),
    "state is lost": (lambda: after("get_item", lose_state), "P3"),
    "a value is wrong": (lambda: after("new_dict", change_value), "value"),
    "an object is kept": (lambda: after("new_dict", keep), "P4/P5"),
    "a weak reference dies too early": (lambda: after("get_item", lose_weak_references), "P4"),
    "a ring is kept": (lambda: after("ring", keep_ring), "P6"),
    "a crash": (lambda: after("dup", crash), "crash: SIGSEGV"),
    "a hang": (lambda: after("dup", hang), "hang"),
    "threads read what nobody stored": (wrong_thread_value, "value"),
}


def self_test(groups: set[str], client: Any) -> int:
    """Try all faults; returns how many were not found."""
    missed = 0
    for name, (inject, expected) in FAULTS.items():
        kind = threads if name.startswith("threads") else program
        result = "nothing"
        for seed in range(PROGRAMS):
            made = kind.generate(seed, groups, 200)

            def run(programs: list[dict[str, Any]], inject: Any = inject, kind: Any = kind) -> None:
                inject()
                kind.run(programs[0], groups, client)

            got = run_in_child(lambda run=run, made=made: run([made]), 20)
            if got.startswith(expected):
                small, again = shrink([made], got, run, 2 if got == "hang" else 20, 20)
                result = f"found in program {seed}, shrunk to {len(small[0]['steps'])} steps"
                if not again:
                    result = "found, but not again"
                break
        good = result.startswith("found in")
        missed += not good
        print(f"{name}: {result}", flush=True)
    return missed
