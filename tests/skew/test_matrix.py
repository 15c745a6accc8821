# SPDX-License-Identifier: Apache-2.0
"""Clients built with every release and with our headers, all in this one process, on our runtime.

tests/skew/run.sh builds old_client.cc once per release and runs this file, plain and under
valgrind. A release whose headers could not be had is a skipped cell that says why.

    SKEW_CLIENTS   folder of client_<release>.so    SKEW_RELEASES  the releases, space separated
    SKEW_MISSING   lines `<release>: <reason>`      SKEW_PRELOADED  set: load clients, then tvm_ffi
"""

from __future__ import annotations

import ctypes
import gc
import os
import random
import re
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RELEASES = [*os.environ["SKEW_RELEASES"].split(), "ours"]
MISSING = dict(
    line.split(": ", 1) for line in os.environ.get("SKEW_MISSING", "").splitlines() if line
)
PATHS = {
    r: Path(os.environ["SKEW_CLIENTS"], f"client_{r}.so") for r in RELEASES if r not in MISSING
}
# 1.0 is the full size; runs under valgrind use less.
SCALE = float(os.environ.get("TETHER_TEST_SCALE", "1"))

if os.environ.get("SKEW_PRELOADED"):
    # Static initialisers of all clients run before there is a frontend: their functions, types and
    # objects come from the allocator of the library.
    assert "tvm_ffi" not in sys.modules
    for entry in sys.path:
        library = Path(entry, "tvm_ffi", "lib", "libtvm_ffi.so")
        if library.exists():
            break
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    for path in PATHS.values():
        ctypes.CDLL(str(path))

import tvm_ffi  # noqa: E402
from tvm_ffi import tying  # noqa: E402

MODULES = {release: tvm_ffi.load_module(path) for release, path in PATHS.items()}


class Client:
    """What one client registered: `client.make_node(1, "a")`."""

    def __init__(self, release: str) -> None:
        self.release = release

    def __getattr__(self, name: str) -> tvm_ffi.Function:
        return tvm_ffi.get_global_func(f"skew.{self.release}.{name}")

    def __repr__(self) -> str:
        return f"Client({self.release})"

    @property
    def has_modules(self) -> bool:
        """Say whether module functions of this release can be called by others."""
        return self.release != "0.1.13"


CLIENTS = [Client(release) for release in PATHS]
# The second side of an exchange; in a small run the withdrawn release and us, which differ most.
KEEPERS = CLIENTS if SCALE >= 1 else [*CLIENTS[4:5], CLIENTS[-1]]


class Stateful(tvm_ffi.Object):
    """The Python side of the clients' classes: it carries state."""

    __slots__ = ("__dict__",)


@tvm_ffi.register_object("skew.Point")
class Point(tvm_ffi.Object):
    """A class that every client compiles from the same source."""

    __slots__ = ("__dict__",)


for release in PATHS:
    base: type = Stateful
    for kind in ("Node", "Machine", "Engine"):
        base = type(kind, (base if kind == "Engine" else Stateful,), {"__slots__": ()})
        tvm_ffi.register_object(f"skew.{release}.{kind}")(base)

# The collector runs thousands of times here; what exists so far is not its business.
gc.collect()
gc.freeze()


def scaled(count: int) -> int:
    return max(10, int(count * SCALE))


def collect() -> None:
    for _ in range(3):
        gc.collect()


@pytest.fixture(params=RELEASES)
def client(request: pytest.FixtureRequest) -> Client:
    release = request.param
    if release in MISSING:
        pytest.skip(f"no client of {release}: {MISSING[release]}")
    return Client(release)


@pytest.fixture(params=KEEPERS, ids=lambda keeper: keeper.release)
def other(request: pytest.FixtureRequest) -> Client:
    """A second client, for exchanges."""
    return request.param


# What a client can make; each is an object of its own, never a shared empty one.
KINDS: dict[str, Callable[[Client], Any]] = {
    "reflected object": lambda c: c.make_node(1, "a"),
    "object of a class known to all": lambda c: c.make_point(1, "p", None),
    "derived object": lambda c: c.make_point3(1, 2),
    "object behind a data base": lambda c: c.make_shifted(5),
    "virtual class": lambda c: c.make_engine(7, None),
    "array": lambda c: c.make_array(3),
    "list": lambda c: c.make_list(3),
    "small map": lambda c: c.make_map(2),
    "dense map": lambda c: c.make_map(20),
    "dict": lambda c: c.make_dict(5),
    "function": lambda c: c.make_adder(1),
    "tensor": lambda c: c.make_ramp(4),
    "module": lambda c: c.make_module(),
}
STATEFUL = ["reflected object", "object of a class known to all", "virtual class"]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, client: Client) -> Callable[[], Any]:
    kind = request.param
    if kind == "module" and not client.has_modules:
        pytest.skip("module functions of 0.1.13 cannot be called by any other release")
    return lambda: KINDS[kind](client)


def holders() -> list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]]:
    """Return ways to keep an object in C++: (name, keep(obj) -> holder, fetch(holder))."""

    def hold_in(keeper: Client) -> tuple[str, Callable[[Any], Any], Callable[[Any], Any]]:
        return (f"held by {keeper.release}", keeper.hold, lambda _: keeper.held())

    def field_of(maker: Client) -> tuple[str, Callable[[Any], Any], Callable[[Any], Any]]:
        def keep(obj: Any) -> Any:
            node = maker.make_node(0, "holder")
            node.payload = obj
            return node

        return (f"field of {maker.release}", keep, lambda node: node.payload)

    def list_of(maker: Client) -> tuple[str, Callable[[Any], Any], Callable[[Any], Any]]:
        def keep(obj: Any) -> Any:
            box = maker.make_list(1)
            maker.list_push(box, obj)
            return box

        return (f"list of {maker.release}", keep, lambda box: box[1])

    def map_of(maker: Client) -> tuple[str, Callable[[Any], Any], Callable[[Any], Any]]:
        return (
            f"map of {maker.release}",
            lambda obj: maker.map_set(maker.make_map(9), "k", obj),
            lambda box: box["k"],
        )

    ways = [("array", lambda obj: tvm_ffi.Array([obj]), lambda box: box[0])]
    for keeper in KEEPERS:
        ways += [hold_in(keeper), field_of(keeper), list_of(keeper), map_of(keeper)]
    return ways


def let_go() -> None:
    for keeper in CLIENTS:
        keeper.drop()


# ---- the promises, every kind of object of every client in every holder of every client ----------


def test_p1_one_wrapper(make: Callable[[], Any]) -> None:
    obj = make()
    for name, keep, fetch in holders():
        holder = keep(obj)
        assert fetch(holder) is obj, name
        assert fetch(holder) is fetch(holder), name
        del holder
        let_go()
    for caller in KEEPERS:
        assert caller.echo(obj) is obj
        assert caller.apply(lambda arg: arg is obj, obj) is True
        assert caller.apply_on_thread(lambda arg: arg is obj, obj) is True
    assert tying.state(obj) == "active"


def test_p2_identity_outlives_the_last_python_reference(make: Callable[[], Any]) -> None:
    for name, keep, fetch in holders():
        obj = make()
        number = id(obj)
        holder = keep(obj)
        del obj
        junk = [make() for _ in range(3)]  # takes the address if it was given back
        gc.collect()
        assert id(fetch(holder)) == number, name
        del holder, junk
        let_go()


@pytest.mark.parametrize("kind", STATEFUL)
def test_p3_state_outlives_the_last_python_reference(client: Client, kind: str) -> None:
    for name, keep, fetch in holders():
        obj = KINDS[kind](client)
        obj.note = ["state", name]
        note = obj.note
        holder = keep(obj)
        del obj
        gc.collect()
        assert fetch(holder).note is note, name
        del holder
        let_go()


def test_p4_a_weak_reference_follows_the_object(make: Callable[[], Any]) -> None:
    for name, keep, fetch in holders():
        fired: list[Any] = []
        obj = make()
        watcher = weakref.ref(obj, fired.append)
        holder = keep(obj)
        del obj
        gc.collect()
        assert watcher() is not None and fired == [], name
        assert fetch(holder) is watcher(), name
        del holder
        let_go()
        assert watcher() is None and fired == [watcher], name


class Opaque:
    """A Python object that C++ can hold."""

    def __init__(self, link: Any) -> None:
        self.link = link


RINGS: dict[str, Callable[[Any], None]] = {
    "callback in a field": lambda n: setattr(n, "payload", lambda: n),
    "callback that was read": lambda n: (setattr(n, "payload", lambda: n), n.payload()),
    "opaque object in a field": lambda n: setattr(n, "payload", Opaque(n)),
    "callback in a list in a field": lambda n: n.children.append(lambda: n),
    "callback in an optional field": lambda n: setattr(n, "partner", tvm_ffi.convert(lambda: n)),
    "list in an attribute": lambda n: setattr(n, "link", tvm_ffi.List([n])),
}


@pytest.mark.parametrize("ring", RINGS)
def test_p6_a_ring_through_an_object_of_a_client_is_collected(client: Client, ring: str) -> None:
    if client.release == "0.1.13" and ring == "callback in an optional field":
        pytest.skip("an Optional of 0.1.13 has the size of a std::optional: it is not looked into")
    collect()
    live, watchers = client.live(), []
    for _ in range(10):
        node = client.make_node(1, "ring")
        RINGS[ring](node)
        watchers.append(weakref.ref(node))
        del node
    gc.collect()
    assert [watcher() for watcher in watchers] == [None] * 10
    assert client.live() == live


def test_p6_a_raw_pointer_in_a_field_owns_nothing(client: Client) -> None:
    """It is neither counted nor followed, also when what it pointed to is gone."""
    pointer, pointed = client.make_node(1, "a"), client.make_node(2, "b")
    pointer.borrowed = pointed
    pointed.note = ["kept"]
    pointed.link = Opaque(pointed)
    watcher = weakref.ref(pointed)
    holder = tvm_ffi.List([pointed])
    del pointed
    collect()
    assert watcher() is holder[0]
    assert holder[0].note == ["kept"]
    del holder
    collect()
    assert watcher() is None
    collect()
    assert pointer.value == 1


def test_p5_nothing_is_lost_and_nothing_is_kept(client: Client) -> None:
    collect()
    live, adopted = client.live(), tying.stats()["adopted"]
    for make_one in (lambda: client.make_node(1, "a"), lambda: client.make_engine(1, None)):
        for _, keep, fetch in holders():
            obj = make_one()
            holder = keep(obj)
            del obj
            fetch(holder)
            del holder
            let_go()
    collect()
    assert client.live() == live
    assert tying.stats()["adopted"] == adopted


# ---- exchanges ----------------------------------------------------------------------------------


def test_objects_of_one_are_used_by_another(client: Client, other: Client) -> None:
    point = client.make_point(3, "a label that needs the heap", [1, 2])
    assert other.point_x(point) == 3
    other.point_write(point, 4, "another label that needs the heap", {"k": 1})
    assert client.point_label(point) == "another label that needs the heap"
    assert client.point_extra(point)["k"] == 1
    assert other.is_point(client.make_point3(1, 2))
    assert other.shifted_value(client.make_shifted(1)) == 1 + 0x5EED
    copy = other.point_copy(point)
    assert copy is not point and client.point_x(copy) == 4


def test_containers_of_one_are_changed_by_another(client: Client, other: Client) -> None:
    nodes = [client.make_node(i, "n") for i in range(3)]
    box = client.make_list(0)
    for node in nodes:
        other.list_push(box, node)
    assert all(box[i] is node for i, node in enumerate(nodes))
    other.list_erase(box, 0)
    assert list(box) == nodes[1:]
    table = other.make_dict(0)
    for node in nodes:
        client.dict_set(table, node, [node])
    assert all(other.dict_get(table, node)[0] is node for node in nodes)
    grown = other.map_take_and_fill(client.make_map(2)._move(), 0, 40)
    assert client.map_get(grown, 39) == 39 * 39


def test_virtual_classes_dispatch_in_their_own_binary(client: Client, other: Client) -> None:
    engine = client.make_engine(7, None)
    box = other.make_list(0)
    other.list_push(box, engine)
    assert box[0].describe() == f"engine {client.release}"
    assert box[0].power == 7
    part = other.make_node(1, "part")
    engine.part = part
    assert engine.part is part
    engine.part = None


def test_reflected_fields_methods_and_constructor(client: Client) -> None:
    node = client.make_node(3, "name")
    assert (node.value, node.weight, node.name) == (3, 0.5, "name")
    node.value, node.weight = 5, 2.5
    assert node.total(10) == 15
    assert node.children is node.children
    with pytest.raises((AttributeError, TypeError)):
        node.name = "read only"
    with pytest.raises(TypeError):
        node.value = "not a number"
    assert isinstance(node, Stateful)


def test_callbacks_and_errors_cross(client: Client, other: Client) -> None:
    def fail(_: Any) -> None:
        raise IndexError("from Python")

    with pytest.raises(IndexError, match="from Python"):
        client.apply(lambda arg: other.apply(fail, arg), 1)
    with pytest.raises(ValueError, match="thrown in C"):
        other.apply(lambda _: client.throw_error("thrown in C++"), 1)
    with pytest.raises(RuntimeError, match=r"on a thread: .*from Python"):
        client.apply_on_thread(fail, 1)
    text = other.describe(lambda: client.throw_error("told"))
    assert text == "ValueError: told"
    with pytest.raises(RuntimeError, match="wrapped"):
        client.wrap_error(lambda: other.throw_error("inner"))
    adder = client.make_adder(3)
    assert other.apply(adder, 4) == 7
    assert other.apply_typed(adder, 5) == 8
    assert other.apply_through_c(adder, 6) == 9
    with pytest.raises(TypeError):
        other.apply_typed(adder, "text")


def test_strings_bytes_and_shapes_cross(client: Client, other: Client) -> None:
    for size in (0, 7, 8, 100):
        text = client.make_string(size)
        assert text == "s" * size and other.string_size(text) == size
        assert other.bytes_size(client.make_bytes(size)) == size
        assert client.any_hash(text) == other.any_hash(text)
    assert other.shape_product(client.make_shape(3, 4)) == 12


def test_json_of_the_runtime_through_the_client(client: Client) -> None:
    value = {"a": [1, 2.5, None]}
    assert client.stringify(value, 2) == '{\n  "a": [\n    1,\n    2.5,\n    null\n  ]\n}'
    assert client.stringify_on_one_line(value) == '{"a":[1,2.5,null]}'


def test_tensors_cross(client: Client, other: Client) -> None:
    ramp = client.make_ramp(10)
    assert other.ramp_sum(ramp) == 45.0
    assert other.view_length(ramp) == 10
    other.hold(ramp)
    assert other.held() is ramp
    other.drop()
    copy = other.import_dlpack(client.export_dlpack(ramp))
    assert client.ramp_sum(copy) == 45.0
    copy = other.import_dlpack_versioned(client.export_dlpack_versioned(ramp))
    assert client.ramp_sum(copy) == 45.0


def test_modules_cross(client: Client, other: Client) -> None:
    assert MODULES[client.release]["skew_add"](2, 3) == 5
    with pytest.raises(ValueError, match="b is negative"):
        MODULES[client.release]["skew_add"](2, -3)
    if not (client.has_modules and other.has_modules):
        pytest.skip("module functions of 0.1.13 cannot be called by any other release")
    module = client.make_module()
    assert module["triple"](5) == 15
    assert other.module_call(module, "triple", 6) == 18
    outer = other.make_module()
    outer.import_module(module)
    assert outer.imports[0] is module
    with pytest.raises(AttributeError):
        module.get_function("absent")


def test_modules_of_the_one_release_that_differs_are_refused() -> None:
    path = Path(os.environ["SKEW_CLIENTS"], "modules_0.1.13.so")
    if "0.1.13" in MISSING:
        pytest.skip(f"no client of 0.1.13: {MISSING['0.1.13']}")
    with pytest.raises(RuntimeError, match=r"Cannot load .*: it was built with 0\.1\.13, whose"):
        tvm_ffi.load_module(path)


def test_clients_say_what_they_were_built_with(client: Client) -> None:
    info = tvm_ffi.get_global_func("ffi.tether.ClientInfo")(str(PATHS[client.release]))
    assert info["is_client"] and info["runtime"] == "libtvm_ffi.so"
    assert info["by_note"] is (client.release == "ours")
    if client.release == "ours":
        assert info["at_least"] == info["at_most"] == tvm_ffi.__version__
        return
    at_least, at_most = (release_key(info[name]) for name in ("at_least", "at_most"))
    assert (at_least or (0,)) <= release_key(client.release) <= (at_most or (99,))
    assert at_least or at_most


def release_key(release: str) -> tuple[int, ...]:
    return tuple(int(part.removeprefix("post")) for part in release.split(".") if part)


def test_objects_made_while_the_library_was_loading(client: Client) -> None:
    node = client.node_made_at_load()
    assert client.node_made_at_load() is node
    assert node.name == "made at load"
    number = id(node)
    node.note = note = object()
    del node
    collect()
    assert id(client.node_made_at_load()) == number
    assert client.node_made_at_load().note is note
    made = client.made_at_load()
    assert made[4] is made[4] and made[4]["key"] == 7


# ---- threads, and many of them ------------------------------------------------------------------


def test_worker_threads_drop_last_references(client: Client, other: Client) -> None:
    deaths: list[int] = []
    live = client.live()
    for i in range(scaled(100)):
        node = client.make_node(i, "n")
        weakref.finalize(node, deaths.append, i).atexit = False
        node.note = i
        other.pool_add(node)
    del node
    other.pool_drop_on_threads(3, 1)
    for _ in range(1000):
        tvm_ffi.Array([])  # drains what the threads left behind
        if client.live() == live and len(deaths) == scaled(100):
            break
    assert sorted(deaths) == list(range(scaled(100)))
    assert client.live() == live


def test_python_and_cpp_threads_race_on_shared_objects(client: Client) -> None:
    live = client.live()
    box = tvm_ffi.Array([client.make_node(i, "n") for i in range(8)])
    identity = [id(x) for x in box]
    failures: list[str] = []

    def fetch(box: tvm_ffi.Array = box) -> None:
        for i in range(scaled(2000)):
            if id(box[i % 8]) != identity[i % 8]:
                failures.append(f"wrapper {i % 8} changed")

    threads = [threading.Thread(target=fetch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(8):
        client.share_between_threads(box[i], 2, scaled(1000))
    for thread in threads:
        thread.join()
    assert failures == []
    del box, fetch, threads
    collect()
    assert client.live() == live


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def churn(client: Client, count: int, seed: int) -> None:
    """Fetch and drop `count` objects of the client in random order, half of them on C++ threads."""
    chance = random.Random(seed)
    client.pool_fill(count)
    seen = [client.pool_get(chance.randrange(count)) for _ in range(count)]
    chance.shuffle(seen)
    del seen[count // 2 :]
    for left in range(count, count // 2, -1):
        client.pool_take(chance.randrange(left))
    client.pool_drop_on_threads(2, seed)
    seen.clear()
    tvm_ffi.Array([])


def test_a_million_adopted_objects_leave_memory_flat() -> None:
    size = scaled(20_000)
    rounds = max(1, scaled(1_000_000) // (size * len(CLIENTS)))
    lives = [c.live() for c in CLIENTS]
    for i, client in enumerate(CLIENTS):  # the high-water mark, and every function has been seen
        churn(client, size, i)
    adopted, before = tying.stats()["adopted"], resident_bytes()
    for turn in range(rounds):
        for client in CLIENTS:
            churn(client, size, turn)
    collect()
    assert [c.live() for c in CLIENTS] == lives
    assert tying.stats()["adopted"] == adopted
    if SCALE >= 1:
        assert resident_bytes() - before < 8 << 20


# ---- keys, integers and mutation ----------------------------------------------------------------


@pytest.mark.parametrize("keeper", KEEPERS, ids=repr)
def test_keys_of_every_client_are_found(client: Client, keeper: Client) -> None:
    """Whoever makes the map, Python and both clients find every key and see the same order."""
    values = [0, 1, 2, 66, 67, 68, 1 << 40]
    keys = [client.make_key(value) for value in values]
    again = [client.make_key(value) for value in values]
    others = [keeper.make_key(value) for value in values]
    maps = [tvm_ffi.Map({k: i for i, k in enumerate([*keys, *others])})]
    maps += [side.map_of_keys([*keys, *others]) for side in (client, keeper)]
    expected = [*keys, *others] if client.release != keeper.release else keys
    for made in maps:
        assert len(made) == len(expected)
        assert all(a.same_as(b) for a, b in zip(made, expected, strict=True))
        for key in [*again, *others]:
            assert key in made and client.key_count(made, key) == keeper.key_count(made, key) == 1
        assert client.make_key(5) not in made
        for side in (client, keeper):
            assert all(a.same_as(b) for a, b in zip(side.keys_in_order(made), made, strict=True))
    made = tvm_ffi.Dict({key: i for i, key in enumerate(keys)})
    assert [made[key] for key in again] == list(range(len(values)))
    with pytest.raises(ValueError, match=f"a bad key of {re.escape(client.release)}"):
        tvm_ffi.Map({key: 0 for key in [*keys, *others, client.make_key(-1)]})


def test_integers_beyond_64_bits(client: Client) -> None:
    for value in (2**63, -(2**63) - 1, 2**200 + 1):
        assert client.echo(value) == value
        assert client.map_set({1: 2}, value, "big")[value] == "big"
        with pytest.raises(TypeError):
            client.make_node(value, "n")
    if has_mutator(client):
        assert client.power_of_two(200) == 2**200
        assert client.big_sum(2**200, -1) == 2**200 - 1
        assert client.big_product(2**100, 2**100) == 2**200


@pytest.mark.parametrize("keeper", KEEPERS, ids=repr)
def test_mutators_drive_hooks_of_other_clients(client: Client, keeper: Client) -> None:
    if not has_mutator(client) or not has_mutator(keeper):
        pytest.skip("older than mutation")
    inner = keeper.make_pair(10, "text")
    pair = client.make_pair([1, inner], "rest")
    for made in (
        keeper.add_to_ints(pair, 5),
        tvm_ffi.structural_map(pair, (int, lambda number: number + 5)),
        tvm_ffi.structural_mutate(pair, (int, lambda number, mutator: number + 5)),
    ):
        first = client.pair_first(made)
        assert first[0] == 6 and keeper.pair_first(first[1]) == 15
        assert client.pair_second(made) == "rest"
    assert keeper.pair_first(client.pair_first(pair)[1]) == 10
    with pytest.raises(ValueError, match=f"a bad number for {re.escape(keeper.release)}"):
        keeper.add_to_ints(client.make_pair(-1, 2), 5)


def has_mutator(client: Client) -> bool:
    return (
        tvm_ffi.get_global_func(f"skew.{client.release}.add_to_ints", allow_missing=True)
        is not None
    )
