# SPDX-License-Identifier: Apache-2.0
"""Whichever allocation fails, an operation raises MemoryError or succeeds, and the process lives.

Each operation runs in a child process with fail_malloc.c preloaded, again and again: first its
first allocation fails, then its second, until it needs none of those that fail.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tvm_ffi import libinfo

CC = shlex.split(os.environ.get("CC", "cc"))

pytestmark = [
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the library needs glibc"),
    pytest.mark.skipif(shutil.which(CC[0]) is None, reason="no C compiler"),
    pytest.mark.skipif(
        "ASAN_OPTIONS" in os.environ or "TSAN_OPTIONS" in os.environ or "LD_PRELOAD" in os.environ,
        reason="sanitizers replace malloc, too",
    ),
]

PROLOGUE = """
import copy, ctypes, faulthandler, pickle, sys
from typing import Any
import tvm_ffi
from tvm_ffi import Array, Dict, List, Map
from tvm_ffi.dataclasses import py_class
from tvm_ffi import structural_map, structural_mutate, structural_visit, structural_walk

faulthandler.enable()
this = ctypes.PyDLL(None)
fail_after, fail_no_more = this.FailAfter, this.FailNoMore
fail_after.argtypes, fail_after.restype = [ctypes.c_long, ctypes.c_int], None
fail_no_more.argtypes, fail_no_more.restype = [], ctypes.c_long

@py_class("tests.failed_allocations.Node")
class Node(tvm_ffi.Object):
    x: int = 0
    child: Any = None

def is_equal(a, b):
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(is_equal, a, b))
    return tvm_ffi.structural_equal(a, b)

parts = [1, "x" * 40, Array([2, Map({"key": 3, "other key": [4]})]), List([5]), 6.5]
tree = Node(1, List([*parts, Dict({"key": Node(2, Array(parts))}), Node(3, Node(4))]))
"""

# What runs, and how its result is compared.
OPERATIONS = {
    "map": "lambda: structural_map(tree, (int, lambda v: v + 1))",
    "map in pre-order": "lambda: structural_map(tree, (int, lambda v: v + 1), order='pre')",
    "map all": "lambda: structural_map(tree, (tvm_ffi.Object, lambda v: v))",
    "map that fails": "lambda: structural_map(tree, (float, lambda v: object.none))",
    "mutate": "lambda: structural_mutate(tree, (int, lambda v, m: v + 1))",
    "mutate by default": "lambda: structural_mutate(tree, lambda v, m: m.default_mutate(v))",
    "walk": "lambda: structural_walk(tree, lambda v: None)",
    "walk in post-order": "lambda: structural_walk(tree, lambda v: None, order='post')",
    "walk that fails": "lambda: structural_walk(tree, (float, lambda v: object.none))",
    "visit": "lambda: structural_visit(tree, lambda v, visitor: visitor.default_visit(v))",
    "unpickle": "lambda: pickle.loads(data)",
    "copy of a tensor": "lambda: copy.copy(frozen)",
}

PICKLE = """
bytes_of = bytes(range(64))
frozen = tvm_ffi.core._tensor_over_buffer(bytes_of)
data = pickle.dumps((tree, List([tree, frozen])))
"""

# Each function runs in a new thread in which no allocation ever succeeds.
IN_A_NEW_THREAD = r"""
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

void FailAfter(long n, int only_one);

static TVMFFIAny text;
static const char* wrong;

static void Check(int right, const char* what) {
  if (!right && wrong == NULL) wrong = what;
}

static void CheckRaised(const char* where) {
  TVMFFIObjectHandle error = NULL;
  TVMFFIErrorMoveFromRaised(&error);
  Check(error != NULL, where);
  if (error == NULL) return;
  // The cell comes after the header of the object.
  const TVMFFIErrorCell* cell = (const TVMFFIErrorCell*)((TVMFFIObject*)error + 1);
  Check(strcmp(cell->kind.data, "MemoryError") == 0, where);
  TVMFFIObjectDecRef(error);
}

static void Raise(void) {
  TVMFFIErrorSetRaisedFromCStr("ValueError", "x");
  CheckRaised("an error");
}
static void LeaveRaised(void) { TVMFFIErrorSetRaisedFromCStr("ValueError", "x"); }
static void Backtrace(void) {
  const TVMFFIByteArray* lines = TVMFFIBacktrace("file.c", 1, "function", 0);
  Check(lines != NULL && lines->size < 1000, "a backtrace");
}
static void Release(void) { TVMFFIObjectDecRef(text.v_obj); }
static void SetStream(void) {
  Check(TVMFFIEnvSetStream(2, 0, &text, NULL) == -1, "a stream");
  CheckRaised("the error of a stream");
}

static void* Run(void* body) {
  FailAfter(0, 0);
  ((void (*)(void))body)();
  return NULL;
}

int main(void) {
  void (*const bodies[])(void) = {Raise, LeaveRaised, Backtrace, Release, SetStream};
  TVMFFIByteArray long_text = {"a text that is too long to be a value by itself", 40};
  if (TVMFFIStringFromByteArray(&long_text, &text) != 0) return 1;
  for (unsigned i = 0; i < sizeof(bodies) / sizeof(*bodies); ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, Run, (void*)bodies[i]) != 0) return 1;
    pthread_join(thread, NULL);
  }
  puts(wrong != NULL ? wrong : "alive");
  return 0;
}
"""

EPILOGUE = """
try:
    expected = run()
except AttributeError:
    expected = None
for only_one in (1, 0):
    for n in range(100000):
        print(only_one, n, flush=True)
        made = None
        fail_after(n, only_one)
        try:
            made = run()
            failed = fail_no_more()
        except MemoryError:
            failed = fail_no_more()
            assert failed
            made = expected
        except AttributeError:
            failed = fail_no_more()
        assert is_equal(made, expected)
        if not failed:
            break
print("alive")
"""


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library of fail_malloc.c."""
    source = Path(__file__).with_name("fail_malloc.c")
    output = tmp_path_factory.mktemp("preloaded") / "fail_malloc.so"
    command = [*CC, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, str(source), "-o", str(output)], check=True)
    return str(output)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_allocation_may_fail(name: str, preloaded: str) -> None:
    program = f"{PROLOGUE}{PICKLE}run = {OPERATIONS[name]}\n{EPILOGUE}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "LD_PRELOAD": preloaded},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    where = (done.returncode, done.stdout[-20:], done.stderr[-2000:])
    assert done.stdout.endswith("alive\n"), where


def test_the_first_error_of_a_thread_needs_no_memory(preloaded: str, tmp_path: Path) -> None:
    """In a program that is linked with libstdc++: loaded later, that takes some."""
    source = tmp_path / "program.c"
    source.write_text(IN_A_NEW_THREAD)
    library = libinfo.find_libtvm_ffi()
    command = [*CC, "-pthread", "-Wall", "-Werror", str(source), "-o", str(tmp_path / "program")]
    command += [f"-I{path}" for path in libinfo.include_paths()]
    command += [preloaded, library]
    command += [f"-Wl,-rpath,{Path(path).parent}" for path in (preloaded, library)]
    subprocess.run(command, check=True)
    done = subprocess.run(
        [tmp_path / "program"],
        env={**os.environ, "LD_PRELOAD": preloaded},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "alive\n", (done.returncode, done.stdout, done.stderr[-2000:])
