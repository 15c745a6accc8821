# SPDX-License-Identifier: Apache-2.0
"""Objects as arguments and results of other processes; tensors in memory that they share."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import pytest
import tvm_ffi
from support import FREE_THREADED, run_python
from tvm_ffi import core, testing, travel
from tvm_ffi._impl import shared_memory
from tvm_ffi.dataclasses import py_class

METHODS = ("spawn", "forkserver", "fork")

# CPython warns about a fork while other threads run; this file tests that.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@py_class("tests.processes.Node")
class Node(tvm_ffi.Object):
    """A graph can be built of it."""

    value: Any = None
    child: tvm_ffi.Object | None = None


class Noted(testing.TestIntPair):
    """Carries attributes."""

    __slots__ = ("__dict__",)


def describe(node: Any, shared: Any) -> Any:
    return (node.child is shared, shared.note, type(shared).__name__, os.getpid())


def grow(node: Any) -> Any:
    ring = Node(node.value + 1)
    ring.child = Node("end", ring)
    return ring


def total(tensor: Any) -> Any:
    return (float(view(tensor).sum()), is_read_only(tensor))


def make_shared(size: int) -> Any:
    return travel.share(numpy.full(size, 2.0))


def fail(kind: str) -> None:
    testing.test_raise_error(kind, "raised in C++")


def view(tensor: Any) -> Any:
    return numpy.frombuffer(core._memory_of_tensor(tensor), "float64")


def is_read_only(tensor: Any) -> bool:
    return memoryview(core._memory_of_tensor(tensor)).readonly


@pytest.fixture(params=METHODS)
def pool(request: pytest.FixtureRequest) -> Any:
    context = multiprocessing.get_context(request.param)
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        yield executor


def test_a_pool(pool: Any) -> None:
    shared = Noted(1, 2)
    shared.note = "from the parent"
    same, note, name, pid = pool.submit(describe, Node(1, shared), shared).result()
    assert (same, note, name) == (True, "from the parent", "Noted")
    assert pid != os.getpid()
    ring = pool.submit(grow, Node(41)).result()
    assert ring.value == 42
    assert ring.child.child is ring
    # C++ functions by name, with objects and tensors.
    echo = tvm_ffi.get_global_func("testing.echo")
    assert pool.submit(echo, tvm_ffi.Array([1, "a"])).result() == [1, "a"]
    add_one = tvm_ffi.get_global_func("testing.add_one")
    assert list(pool.map(add_one, range(5))) == [1, 2, 3, 4, 5]
    tensor = tvm_ffi.from_dlpack(numpy.arange(10.0))
    assert pool.submit(total, tensor).result() == (45.0, False)
    assert list(numpy.from_dlpack(pool.submit(echo, tensor).result())) == list(range(10))
    with pytest.raises(ValueError, match=r"raised in C\+\+") as caught:
        pool.submit(fail, "ValueError").result()
    assert "in fail" in str(caught.value.__cause__)
    # Shared memory, both ways.
    sent = travel.share(numpy.arange(10.0))
    assert pool.submit(total, sent).result() == (45.0, True)
    received = pool.submit(make_shared, 1000).result()
    assert (total(received), is_read_only(received)) == ((2000.0, True), True)
    sent_back = pool.submit(echo, received).result()
    assert total(sent_back) == (2000.0, True)
    names = [block_of(t) for t in (sent, received)]
    assert all(name.exists() for name in names)
    del sent, received, sent_back
    gc.collect()
    pool.shutdown()
    assert not any(name.exists() for name in names)


def block_of(tensor: Any) -> Path:
    return Path(shared_memory._blocks[tensor.data_ptr()].path)


def work(connection: Any) -> None:
    while (received := connection.recv()) is not None:
        connection.send(received)


@pytest.mark.parametrize("method", METHODS)
def test_pipes_and_queues(method: str) -> None:
    context = multiprocessing.get_context(method)
    here, there = context.Pipe()
    process = context.Process(target=work, args=(there,))
    process.start()
    there.close()  # else nobody would notice that the child is gone
    node = Node(1, Noted(1, 2))
    here.send([node, node.child])
    back, child = here.recv()
    assert back.child is child
    here.send(None)
    process.join()
    assert process.exitcode == 0
    queue = context.Queue()
    queue.put([node, node.child])
    back, child = queue.get()
    assert back.child is child
    queue.close()
    queue.join_thread()


def child_of_a_fork(connection: Any, objects: Any) -> None:
    node, array, pair = objects
    text = testing.apply(lambda x: f"{x.value}", node)
    copied = pickle.loads(pickle.dumps([node, array, pair]))
    gc.collect()
    connection.send((text, copied[1][0] is copied[0], pair.note, array[0] is node))


@pytest.mark.skipif(FREE_THREADED, reason="without the GIL, a fork may happen while a lock is held")
def test_a_fork_while_threads_of_python_and_of_cpp_run() -> None:
    context = multiprocessing.get_context("fork")
    node, pair = Node(7), Noted(1, 2)
    pair.note = "kept"
    objects = (node, tvm_ffi.Array([node]), pair)
    stop = threading.Event()

    def use() -> None:
        while not stop.is_set():
            testing.echo(tvm_ffi.Array([Node(1), objects[1]]))
            testing.catch_in_thread(tvm_ffi.List(), lambda: 1)

    threads = [threading.Thread(target=use, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            here, there = context.Pipe()
            process = context.Process(target=child_of_a_fork, args=(there, objects))
            process.start()
            there.close()
            assert here.recv() == ("7", True, "kept", True)
            process.join()
            assert process.exitcode == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


# ---- shared memory ------------------------------------------------------------------------------


def test_shared_tensors_in_one_process() -> None:
    source = numpy.arange(12.0).reshape(3, 4)
    shared = travel.share(source)
    assert (shared.shape, str(shared.dtype)) == ((3, 4), "float64")
    assert travel.share(shared) is shared
    data = pickle.dumps(tvm_ffi.Array([shared, shared]))
    assert len(data) < 400
    first, second = pickle.loads(data)
    assert first is second
    view(shared)[5] = 100.0  # one writer
    assert view(first)[5] == 100.0
    assert is_read_only(first)
    path = block_of(shared)
    del shared
    gc.collect()
    assert path.exists()
    assert view(first)[5] == 100.0
    del first, second
    gc.collect()
    assert not path.exists()
    with pytest.raises(FileNotFoundError, match="let go"):
        pickle.loads(data)


def test_memory_waits_for_a_pickle_on_its_way() -> None:
    shared = travel.share(numpy.ones(4))
    data, path = pickle.dumps(shared), block_of(shared)
    del shared
    gc.collect()
    assert path.exists()
    loaded = pickle.loads(data)
    assert view(loaded).sum() == 4.0
    del loaded
    gc.collect()
    assert not path.exists()


def test_odd_shapes_and_sources() -> None:
    for source in (numpy.ones((0, 3)), numpy.ones(()), numpy.ones((4, 4))[:, ::2]):
        shared = travel.share(source)
        assert (numpy.from_dlpack(shared) == source).all()
        assert (numpy.asarray(view(pickle.loads(pickle.dumps(shared)))) == source.ravel()).all()
    with pytest.raises(Exception):  # noqa: B017
        travel.share("text")
    for name, size in (("../etc/passwd", 1), ("tvm_ffi-none", 1), (3, 1)):
        with pytest.raises((ValueError, OSError)):
            shared_memory.attach(name, size)  # type: ignore[arg-type]
    shared = travel.share(numpy.ones(4))
    name = block_of(shared).name
    for size in (-1, 10**9, None):
        with pytest.raises(ValueError):
            shared_memory.attach(name, size)  # type: ignore[arg-type]


def test_a_process_that_is_killed_keeps_nothing(tmp_path: Path) -> None:
    shared = travel.share(numpy.ones(4))
    data, path = pickle.dumps(shared), block_of(shared)
    code = f"""
import pickle, sys, time
tensor = pickle.loads({data!r})
print("ready", flush=True)
time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert path.exists()
    del shared
    gc.collect()
    assert not path.exists()


def test_what_is_still_shared_at_exit_is_freed() -> None:
    code = """
import numpy, tvm_ffi
from tvm_ffi import travel
from tvm_ffi._impl import shared_memory
shared = travel.share(numpy.ones(4))
print(shared_memory._blocks[shared.data_ptr()].path)
"""
    path = Path(run_python(code).strip())
    assert path.name.startswith("tvm_ffi-")
    assert not path.exists()


def tickets_of(path: Path) -> int:
    with path.open("rb") as file:
        head = memoryview(file.read(shared_memory.HEAD)).cast("Q")
    return head[0] + sum(number != 0 for number in head[1:])


def test_a_pickle_that_fails_holds_nothing() -> None:
    import io

    shared = travel.share(numpy.ones(4))
    path = block_of(shared)
    bad = Node(tvm_ffi.convert(lambda: 1))
    for value in ([shared, bad], Node(shared, bad), [tvm_ffi.Array([shared]), threading.Lock()]):
        with pytest.raises(TypeError):
            pickle.dumps(value)
        with pytest.raises(TypeError):
            pickle.Pickler(io.BytesIO(), 5).dump(value)
        assert tickets_of(path) == 0
    data = pickle.dumps([shared, shared])
    assert tickets_of(path) == 1
    del shared
    gc.collect()
    assert path.exists()
    del data, value, bad
    loaded = shared_memory.attach(path.name, 32)  # without the ticket
    del loaded
    gc.collect()
    assert path.exists()
    path.unlink()


def test_a_pickle_that_is_read_twice_holds_once() -> None:
    shared = travel.share(numpy.ones(4))
    path = block_of(shared)
    first, second = pickle.dumps(shared), pickle.dumps(shared)
    del shared
    for _ in range(3):
        assert view(pickle.loads(first)).sum() == 4.0
    gc.collect()
    assert path.exists()
    assert view(pickle.loads(second)).sum() == 4.0
    gc.collect()
    assert not path.exists()


def test_many_pickles_on_their_way() -> None:
    shared = travel.share(numpy.ones(4))
    path = block_of(shared)
    data = [pickle.dumps(shared) for _ in range(600)]  # more than there are places for tickets
    assert tickets_of(path) == 600
    del shared
    gc.collect()
    for pickled in data:
        assert path.exists()
        pickle.loads(pickled)
    gc.collect()
    assert not path.exists()


def make_block(*, pickled: bool) -> Path:
    """Return the memory of a process that was killed."""
    code = f"""
import numpy, os, pickle, signal
from tvm_ffi import travel
from tvm_ffi._impl import shared_memory
shared = travel.share(numpy.ones(4))
if {pickled}:
    pickle.dumps(shared)
print(shared_memory._blocks[shared.data_ptr()].path, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False
    )
    assert run.returncode == -signal.SIGKILL
    return Path(run.stdout.strip())


def test_what_a_killed_process_left_is_removed_later() -> None:
    mine = travel.share(numpy.ones(4))
    path = make_block(pickled=False)
    travel.share(numpy.ones(4))
    assert not path.exists()
    path = make_block(pickled=True)
    travel.share(numpy.ones(4))
    assert path.exists()  # somebody may read the pickle
    long_ago = path.stat().st_mtime - 2 * shared_memory.PATIENCE
    os.utime(path, (long_ago, long_ago))
    os.utime(block_of(mine), (long_ago, long_ago))
    travel.share(numpy.ones(4))
    assert not path.exists()
    assert block_of(mine).exists()
    assert view(mine).sum() == 4.0
