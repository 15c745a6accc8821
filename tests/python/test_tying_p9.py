# SPDX-License-Identifier: Apache-2.0
"""P9: C++ threads never wait for Python: before, during and after interpreter shutdown."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import weakref

import pytest
import tvm_ffi
from support import (
    FREE_THREADED,
    NativeClient,
    Payload,
    Stateful,
    collect,
    run_python,
    scaled,
    wait_until,
    watch_death,
)
from tvm_ffi import core, testing, tying

PRELUDE = """
import gc, os, sys, threading, time, weakref
import tvm_ffi
from tvm_ffi import testing, tying
from support import NativeClient, Payload, Stateful, make_edges, make_holder, wait_until
client = NativeClient({path!r})
"""


def child(path: str, code: str) -> str:
    return run_python(PRELUDE.format(path=path) + code)


# ---- while the interpreter runs -----------------------------------------------------------------


def test_p9_a_c_thread_drops_the_last_reference_while_python_keeps_the_gil(
    client: NativeClient,
) -> None:
    """The call holds the GIL and waits for the thread: taking the GIL there would never end."""
    watchers = []
    for i in range(scaled(1000)):
        pair = testing.TestIntPair(i, i)
        watchers.append(weakref.ref(pair))
        client.hold(pair)
    del pair
    assert client.release_all_in_thread() == scaled(1000)
    assert wait_until(lambda: all(watcher() is None for watcher in watchers))


@pytest.mark.parametrize("versioned", [False, True])
def test_p9_a_c_thread_drops_memory_that_python_lent_in_a_capsule(
    client: NativeClient, versioned: bool
) -> None:
    """The deleter of numpy takes the GIL: it runs on a Python thread, some time later."""
    numpy = pytest.importorskip("numpy", minversion="2.1" if versioned else None)
    wanted = {"max_version": (1, 0)} if versioned else {}
    watchers = []
    for i in range(scaled(100)):
        array = numpy.full(4, i)
        watchers.append(weakref.ref(array))
        tensor = tvm_ffi.from_dlpack(array.__dlpack__(**wanted))
        client.hold(tensor)
        del array, tensor
    assert all(watcher() is not None for watcher in watchers)
    assert client.release_all_in_thread() == len(watchers)
    assert wait_until(lambda: all(watcher() is None for watcher in watchers))


def test_p9_wrappers_with_state_are_reclaimed_on_a_python_thread(client: NativeClient) -> None:
    where: list[int] = []
    obj = Stateful()
    obj.payload = Payload()
    weakref.finalize(obj.payload, lambda: where.append(threading.get_ident())).atexit = False
    client.hold(obj)
    del obj
    assert client.release_all_in_thread() == 1
    assert wait_until(lambda: where == [threading.get_ident()])


def test_p9_python_callables_and_opaque_values_are_reclaimed(client: NativeClient) -> None:
    payload, captured = Payload(), Payload()
    deaths = watch_death(payload), watch_death(captured)
    client.hold(tvm_ffi.convert(payload), tvm_ffi.convert(lambda captured=captured: captured))
    del payload, captured
    collect()
    assert deaths == ([], [])
    assert client.release_all_in_thread() == 2
    assert wait_until(lambda: deaths == ([True], [True]))


def test_p9_whole_structures_are_reclaimed(client: NativeClient) -> None:
    payload = Payload()
    deaths = watch_death(payload)
    client.hold(tvm_ffi.convert([{"k": [payload, lambda: payload]}]))  # noqa: F821
    del payload
    assert client.release_all_in_thread() == 1
    assert wait_until(lambda: deaths == [True])


def test_p9_a_python_thread_that_sleeps_in_c_does_not_hold_up_the_drop(
    client: NativeClient,
) -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        for i in range(100):
            client.hold(testing.TestIntPair(i, i))
        assert client.release_all_in_thread() == 100
    finally:
        stop.set()
        thread.join()


def test_p9_reclaim_reaches_a_main_thread_that_only_runs_python(client: NativeClient) -> None:
    obj = Stateful()
    deaths = watch_death(obj)
    client.hold(obj)
    del obj
    client.release_all_in_thread()
    deadline = time.monotonic() + 60
    while not deaths and time.monotonic() < deadline:
        # Nothing of the FFI: the request alone must be enough. CPython up to 3.11 notices it only
        # when the main thread takes the GIL again.
        time.sleep(0.001)
    assert deaths == [True]


def test_p9_stats_return_to_where_they_were(client: NativeClient) -> None:
    collect()
    before = tying.stats()
    for i in range(100):
        client.hold(testing.TestIntPair(i, i))
    assert tying.stats()["dormant"] == before["dormant"] + 100
    client.release_all_in_thread()
    assert wait_until(lambda: tying.stats()["dormant"] == before["dormant"])
    assert tying.stats()["live"] == before["live"]


def test_p9_the_deleter_of_python_objects_needs_no_thread_state() -> None:
    for _ in range(100):
        assert core._testing_drop_last_ref_without_thread_state() is None


def test_p9_a_callback_on_a_foreign_thread_works() -> None:
    thread_ids: list[int] = []
    callback = tvm_ffi.convert(lambda: thread_ids.append(threading.get_ident()))
    thread = threading.Thread(target=lambda: testing.apply(callback))
    thread.start()
    thread.join()
    assert len(thread_ids) == 1


# ---- at exit ------------------------------------------------------------------------------------


def test_p9_held_by_c_when_the_process_ends(client_path: str) -> None:
    out = child(
        client_path,
        """
obj = Stateful(); obj.note = "x"
client.hold(obj, tvm_ffi.Array([obj]), tvm_ffi.convert(lambda: obj))
print("end")
""",
    )
    assert out == "end\n"


def test_p9_released_by_c_after_finalisation(client_path: str) -> None:
    out = child(
        client_path,
        """
client.library.release_after_finalisation()
obj = Stateful(); obj.note = "x"
client.hold(obj, tvm_ffi.Array([obj, Payload()]), tvm_ffi.convert(lambda: obj))
client.hold(client.page_new(Payload()))
print("end", flush=True)
""",
    )
    assert out == "end\nreleased after the interpreter\n"


def test_p9_c_thread_drops_while_the_interpreter_shuts_down(client_path: str) -> None:
    out = child(
        client_path,
        """
import atexit
client.library.start_releasing()
def feed():
    for i in range(20000):
        client.hold(testing.TestIntPair(i, i), tvm_ffi.convert(lambda: i))
atexit.register(feed)
feed()
print("end", flush=True)
""",
    )
    assert out == "end\n"


def test_p9_daemon_threads_use_the_ffi_at_exit(client_path: str) -> None:
    out = child(
        client_path,
        """
box = tvm_ffi.Array([testing.TestIntPair(1, 2)])
def spin():
    while True:
        assert box[0] is box[0]
        tvm_ffi.convert(lambda x: x)(box)
for _ in range(3):
    threading.Thread(target=spin, daemon=True).start()
time.sleep(0.2)
print("end", flush=True)
""",
    )
    assert out == "end\n"


def test_p9_module_globals_die_in_any_order(client_path: str) -> None:
    out = child(
        client_path,
        """
a = Stateful(); a.note = a
b = make_holder(a)
c = tvm_ffi.Dict({"b": b, "f": lambda: (a, b)})
d = weakref.ref(a, lambda _: None)
e = tvm_ffi.convert(lambda: e)
tvm_ffi.register_global_func("tests.p9.exit", lambda: (a, b, c, d))
class Noisy:
    def __del__(self):
        try:
            tvm_ffi.Array([1])
        except Exception:
            pass
noisy = tvm_ffi.Array([Noisy()])
sys.modules["keep"] = [a, b, c, d, e, noisy]
print("end")
""",
    )
    assert out == "end\n"


def test_p9_os_exit_and_sys_exit_inside_a_callback(client_path: str) -> None:
    code = """
import os
tvm_ffi.convert(lambda: (print("bye", flush=True), os._exit(0)))()
"""
    assert child(client_path, code) == "bye\n"


def test_p9_import_and_leave(client_path: str) -> None:
    assert run_python("import tvm_ffi; print('in')") == "in\n"


def test_p9_unraisable_errors_stay_quiet_at_exit(client_path: str) -> None:
    code = """
obj = Stateful(); obj.note = [obj]
box = tvm_ffi.Array([obj])
"""
    done = child(client_path, code)
    assert done == ""


# ---- fork ---------------------------------------------------------------------------------------


def wait_for_child(pid: int, seconds: float = 120.0) -> int:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done == pid:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pytest.fail("the forked child hangs")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_p9_a_forked_child_keeps_wrappers_and_drops_them(client: NativeClient) -> None:
    obj = Stateful(4)
    obj.note = "kept"
    box = tvm_ffi.Array([obj])
    watcher = weakref.ref(obj)
    del obj
    client.hold(testing.TestIntPair(1, 2))
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            assert box[0] is watcher()
            assert box[0].note == "kept"
            assert client.release_all_in_thread() == 1
            pair = testing.TestIntPair(1, 2)
            assert testing.echo(pair) is pair
            del box
            collect()
            assert watcher() is None
            status = 0
        finally:
            os._exit(status)
    assert wait_for_child(pid) == 0
    assert box[0].note == "kept"
    client.release_all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_p9_fork_under_load(client: NativeClient) -> None:
    assert client.library.start_releasing() == 0
    try:
        for round_number in range(scaled(20)):
            for i in range(100):
                client.hold(testing.TestIntPair(i, i), client.page_new(i))
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    page = client.page_new(round_number)
                    assert client.page_child(page) == round_number
                    box = tvm_ffi.Array([page])
                    assert box[0] is page
                    status = 0
                finally:
                    os._exit(status)
            assert wait_for_child(pid) == 0
    finally:
        client.library.stop_releasing()
        client.release_all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_p9_a_forked_child_does_not_wait_for_threads_of_its_parent_at_exit() -> None:
    """Told by how often it slept: each look whether they have left is a short sleep."""
    run_python("""
import os, sys, threading, warnings
from tvm_ffi import testing

warnings.simplefilter("ignore", DeprecationWarning)
stop = False
def call():
    while not stop:
        testing.apply(lambda: None)
sys.setswitchinterval(1000)  # the thread gets in and out of Python only in its calls
thread = threading.Thread(target=call)
thread.start()
sleeps = []
for _ in range(10):
    testing.apply(lambda: None)  # lets the thread come in
    pid = os.fork()
    if pid == 0:
        sys.exit(0)
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, status
    sleeps.append(usage.ru_nvcsw)
stop = True
thread.join()
assert max(sleeps) < 2000, sleeps
""")


FORKS = """
import os, sys, threading, time
import tvm_ffi
from tvm_ffi import testing

def use():
    while True:  # every call enters Python on a thread that it has never seen
        testing.catch_in_thread(tvm_ffi.List(), lambda: 1)

for _ in range(4):
    threading.Thread(target=use, daemon=True).start()
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        os._exit(testing.apply(lambda x: x, 0))
    end = time.monotonic() + 60
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, 9)
            sys.exit("a child hangs")
        time.sleep(0.001)
print("done", flush=True)
os._exit(0)
"""


@pytest.mark.skipif(FREE_THREADED, reason="without the GIL, a fork may happen while a lock is held")
def test_p9_forks_while_threads_of_cpp_enter_python() -> None:
    """CPython 3.10 and 3.11 leave the lock of the list of thread states as it is in the child."""
    code = f"import sys; sys.argv[1:] = ['{scaled(300)}']\n{FORKS}"
    assert run_python(code, PYTHONWARNINGS="ignore").strip() == "done"


# ---- sub-interpreters ---------------------------------------------------------------------------


def test_p9_a_second_interpreter_is_refused() -> None:
    subinterpreters = pytest.importorskip(
        "_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters",
        reason="this Python has no sub-interpreter module",
    )
    code = """
try:
    import tvm_ffi
except ImportError as error:
    assert "interpreter" in str(error), error
else:
    raise AssertionError("tvm_ffi was imported in a second interpreter")
"""
    options = {"isolated": False} if sys.version_info < (3, 13) else {}
    interpreter = subinterpreters.create(**options)
    try:
        failure = subinterpreters.run_string(interpreter, code)
        assert failure is None, failure
    finally:
        subinterpreters.destroy(interpreter)
    assert tvm_ffi.Array([1])[0] == 1
