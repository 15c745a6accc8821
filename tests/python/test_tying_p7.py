# SPDX-License-Identifier: Apache-2.0
"""P7: the promises hold for objects from binaries that never heard of tying.

Three clients: objects at the very start of a page with an unmapped page before it (one byte read in
front of an object ends the process), an object in static memory without deleter, and libraries
compiled from the headers of old releases (built by tests/skew/run.sh, or named by
TETHER_SKEW_CLIENTS).
"""

from __future__ import annotations

import ctypes
import gc
import os
import weakref
from pathlib import Path

import pytest
import tvm_ffi
from support import (
    ROOT,
    NativeClient,
    Payload,
    collect,
    run_threads,
    scaled,
    wait_until,
    watch_death,
)
from tvm_ffi import testing, tying

CLIENTS = Path(os.environ.get("TETHER_SKEW_CLIENTS", ROOT / "build" / "skew"))
RELEASES = ["0.1.9", "0.1.12", "0.1.13", "0.1.13.post3", "0.1.15.post1", "ours"]
loaded: dict[str, ctypes.CDLL] = {}


class OldClient:
    """The functions a client of one release registered."""

    def __init__(self, release: str) -> None:
        self.release = release

    def __getattr__(self, name: str) -> tvm_ffi.Function:
        return tvm_ffi.get_global_func(f"skew.{self.release}.{name}")


@pytest.fixture(params=RELEASES)
def old(request: pytest.FixtureRequest) -> OldClient:
    release = request.param
    path = CLIENTS / f"client_{release}.so"
    if release not in loaded:
        if not path.exists():
            pytest.skip(f"{path.name} is not built; tests/skew/run.sh builds it")
        loaded[release] = ctypes.CDLL(str(path))
    return OldClient(release)


# ---- objects with an unmapped page before them --------------------------------------------------


def test_p7_p1_a_page_object_has_one_wrapper(client: NativeClient) -> None:
    page = client.page_new(1)
    assert testing.echo(page) is page
    box = tvm_ffi.Array([page])
    assert box[0] is page
    assert tying.state(page) == "active"


def test_p7_p2_a_page_object_keeps_its_wrapper(client: NativeClient) -> None:
    box = tvm_ffi.Array([client.page_new(1)])
    watcher = weakref.ref(box[0])
    for _ in range(scaled(1000)):
        assert box[0] is watcher()
    collect()
    assert box[0] is watcher()


def test_p7_p3_a_page_object_keeps_state(client: NativeClient) -> None:
    fallback = type(client.page_new(1))

    class Mine(fallback):
        __slots__ = ("__dict__",)

    mine = Mine.__new__(Mine)
    mine.__move_handle_from__(client.page_new(5))
    mine.note = "kept"
    box = tvm_ffi.Array([mine])
    del mine
    collect()
    assert type(box[0]) is Mine
    assert box[0].note == "kept"
    assert client.page_child(box[0]) == 5


def test_p7_p4_a_weak_reference_follows_a_page_object(client: NativeClient) -> None:
    fired: list[object] = []
    page = client.page_new(1)
    watcher = weakref.ref(page, fired.append)
    client.hold(page)
    del page
    collect()
    assert fired == []
    promoted = watcher()
    assert client.page_child(promoted) == 1
    del promoted
    client.release_all()
    assert wait_until(lambda: fired == [watcher])


def test_p7_p5_every_page_is_given_back(client: NativeClient) -> None:
    before = client.pages()
    payload = Payload()
    deaths = watch_death(payload)
    page = client.page_new(payload)
    box = tvm_ffi.Array([page, page])
    del payload, page
    assert box[0] is box[1]
    del box
    assert deaths == [True]
    after = client.pages()
    assert {key: after[key] - before[key] for key in after} == {
        "made": 1,
        "destroyed": 1,
        "freed": 1,
    }


def test_p7_nested_page_objects(client: NativeClient) -> None:
    inner = client.page_new("child")
    outer = client.page_new(inner)
    watcher = weakref.ref(inner)
    del inner
    collect()
    assert client.page_child(outer) is watcher()
    assert client.page_child(client.page_child(outer)) == "child"
    del outer
    collect()
    assert watcher() is None


def test_p7_address_reuse_gives_no_old_wrapper(client: NativeClient) -> None:
    addresses = set()
    for i in range(scaled(2000)):
        page = client.page_new(i)
        addresses.add(page.__chandle__())
        assert client.page_child(page) == i
        watcher = weakref.ref(page)
        del page
        assert watcher() is None
    assert len(addresses) < scaled(2000), "addresses were never reused, so this proved nothing"


def test_p7_dropped_by_a_c_thread(client: NativeClient) -> None:
    before = client.pages()["freed"]
    watchers = []
    for i in range(100):
        page = client.page_new(i)
        watchers.append(weakref.ref(page))
        client.hold(page)
    del page
    assert client.release_all_in_thread() == 100
    assert client.pages()["freed"] - before == 100
    assert wait_until(lambda: all(watcher() is None for watcher in watchers))


def test_p7_threads_race_on_page_objects(client: NativeClient, fast_switching: None) -> None:
    box = tvm_ffi.Array([client.page_new(i) for i in range(8)])

    def body(i: int) -> None:
        for step in range(scaled(2000)):
            at = (i + step) % 8
            first, second = box[at], box[at]
            assert first is second
            assert client.page_child(first) == at

    run_threads(4, body)


def test_p7_an_object_without_deleter(client: NativeClient) -> None:
    first = client.eternal_get()
    assert client.eternal_get() is first
    watcher = weakref.ref(first)
    del first
    gc.collect()
    assert watcher() is client.eternal_get()


# ---- clients of old releases --------------------------------------------------------------------


def test_p7_p1_old_objects_have_one_wrapper(old: OldClient) -> None:
    node = old.make_node(3, "name")
    old.hold(node)
    try:
        assert old.held() is node
        assert testing.echo(node) is node
        assert tvm_ffi.Array([node])[0] is node
        assert tvm_ffi.convert(lambda x: x)(node) is node
    finally:
        old.drop()


def test_p7_p2_old_objects_keep_their_wrapper(old: OldClient) -> None:
    old.hold(old.make_node(3, "name"))
    try:
        watcher = weakref.ref(old.held())
        for _ in range(200):
            assert old.held() is watcher()
        collect()
        assert old.held() is watcher()
        assert old.held().value == 3
    finally:
        old.drop()
    collect()
    assert watcher() is None


def test_p7_p3_old_objects_keep_state(old: OldClient) -> None:
    node_class = type(old.make_node(0, ""))

    class Mine(node_class):
        __slots__ = ("__dict__", "slot")

    mine = Mine.__new__(Mine)
    mine.__move_handle_from__(old.make_node(8, "mine"))
    mine.note, mine.slot = "kept", ["slot"]
    old.hold(mine)
    del mine
    collect()
    try:
        again = old.held()
        assert type(again) is Mine
        assert (again.note, again.slot, again.value) == ("kept", ["slot"], 8)
    finally:
        del again
        old.drop()


def test_p7_p4_weak_references_follow_old_objects(old: OldClient) -> None:
    fired: list[object] = []
    old.hold(old.make_node(3, "name"))
    watcher = weakref.ref(old.held(), fired.append)
    collect()
    assert fired == []
    assert watcher().value == 3
    old.drop()
    assert wait_until(lambda: fired == [watcher])


def test_p7_p4_a_weak_pointer_of_the_client_keeps_no_wrapper(
    old: OldClient,
) -> None:
    point = old.make_point(1, "label", None)
    old.watch(point)
    watcher = weakref.ref(point)
    try:
        assert old.watched_alive()
        assert old.watched() is point
        del point
        collect()
        assert watcher() is None
        assert not old.watched_alive()
    finally:
        old.unwatch()


def test_p7_p5_old_objects_die_with_their_holder(old: OldClient) -> None:
    payload = Payload()
    deaths = watch_death(payload)
    point = old.make_point(1, "label", payload)
    del payload
    box = tvm_ffi.Array([point])
    del point
    assert box[0] is box[0]
    assert deaths == []
    del box
    assert wait_until(lambda: deaths == [True])


def test_p7_old_client_drops_on_its_own_thread(old: OldClient) -> None:
    old.hold(old.make_node(3, "name"))
    watcher = weakref.ref(old.held())
    old.drop_on_thread()
    assert wait_until(lambda: watcher() is None)


def test_p7_objects_made_while_the_client_was_loaded(old: OldClient) -> None:
    made = old.made_at_load()
    watcher = weakref.ref(made)
    assert old.made_at_load() is made
    del made
    collect()
    assert old.made_at_load() is watcher()
    assert old.made_at_load()[4] is old.made_at_load()[4]
    assert old.made_at_load()[4]["key"] == 7


def test_p7_old_copies_are_objects_of_their_own(old: OldClient) -> None:
    point = old.make_point(1, "label", None)
    clone = old.point_copy(point)
    assert clone is not point
    assert old.point_x(clone) == 1
    assert testing.echo(clone) is clone
    assert testing.echo(point) is point


def test_p7_an_object_whose_header_is_not_at_its_start(old: OldClient) -> None:
    shifted = old.make_shifted(4)
    box = tvm_ffi.Array([shifted])
    watcher = weakref.ref(shifted)
    del shifted
    assert box[0] is watcher()
    assert old.shifted_value(box[0]) == 4 + 0x5EED


def test_p7_reflected_fields_of_old_objects(old: OldClient) -> None:
    node = old.make_node(3, "name")
    node.value = 4
    node.payload = tvm_ffi.Array([1])
    assert node.value == 4
    assert node.name == "name"
    assert node.payload is node.payload
    node.children.append(node.payload)
    assert node.children is node.children
    assert node.children[0] is node.payload


def test_p7_containers_made_by_old_clients(old: OldClient) -> None:
    array = old.make_array(3)
    items = old.make_list(3)
    box = tvm_ffi.Array([array, items])
    watchers = weakref.ref(array), weakref.ref(items)
    del array, items
    assert box[0] is watchers[0]()
    assert box[1] is watchers[1]()
    assert list(box[0]) == list(box[1]) == [0, 1, 2]


def test_p7_rings_through_old_objects_are_collected(old: OldClient) -> None:
    watchers = []
    for link in (
        lambda n: setattr(n, "payload", lambda: n),
        lambda n: n.children.append(lambda: n),
    ):
        node = old.make_node(1, "ring")
        link(node)
        watchers.append(weakref.ref(node))
        del node, link
    gc.collect()
    assert [watcher() for watcher in watchers] == [None, None]
