# SPDX-License-Identifier: Apache-2.0
"""Objects of classes written in Rust make the round trip through pickle."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import tvm_ffi
from crates import build_crate

if shutil.which("cargo") is None:
    pytest.skip("no cargo: the Rust library cannot be built", allow_module_level=True)

MODULE = '''
"""Loads the library and registers its classes."""
import tvm_ffi

rust = tvm_ffi.load_module({path!r})
part = rust.make_part("")
rust.make_parcel("", part, part)
rust.make_fixed(0)
rust.make_grumpy(0)
rust.make_hidden(0)


@tvm_ffi.register_object("tied.Part")
class Part(tvm_ffi.Object):
    __slots__ = ("__dict__",)


@tvm_ffi.register_object("tied.Parcel")
class Parcel(Part):
    __slots__ = ()


class Special(Part):
    __slots__ = ()

    def __init__(self, name):
        self.__move_handle_from__(rust.make_part(name))
'''

FIELDS = ["name", "weight", "small", "ratio", "is_open", "label"]


@pytest.fixture(scope="session")
def module_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = build_crate("tied", tmp_path_factory.mktemp("bin"))
    folder = tmp_path_factory.mktemp("modules")
    (folder / "rust_parcels.py").write_text(MODULE.format(path=str(library)))
    return folder


@pytest.fixture
def parcels(module_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(module_folder))
    import rust_parcels  # type: ignore[import-not-found]

    return rust_parcels


@pytest.fixture
def parcel(parcels: Any) -> Any:
    part = parcels.rust.make_part("a part")
    made = parcels.rust.make_parcel("a parcel", part, tvm_ffi.Array([part, 2]))
    made.next = parcels.Special("special")
    made.next.note = ["state", part]
    made.extra = {"a": [1, part]}
    return made


def check(parcel: Any, parcels: Any) -> None:
    """What the fixture made, whoever made it."""
    assert type(parcel) is parcels.Parcel
    values = ["a parcel", 1 << 40, -5, 0.25, True, "a label of more than seven bytes"]
    assert [getattr(parcel, name) for name in FIELDS] == values
    assert list(parcel.numbers) == [0, 1, 2]
    assert dict(parcel.table) == {"one": 1}
    part = parcel.part
    assert type(part) is parcels.Part
    assert part.name == "a part"
    assert parcel.object[0] is part
    assert parcel.parts[0] is part
    assert parcel.parts[1] is part
    assert parcel.extra["a"][1] is part
    assert type(parcel.next) is parcels.Special
    assert parcel.next.note[1] is part
    assert parcel.next.note[0] == "state"


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_round_trip(parcels: Any, parcel: Any, protocol: int) -> None:
    check(parcel, parcels)
    made, again = pickle.loads(pickle.dumps([parcel, parcel], protocol))
    assert made is again
    assert made is not parcel
    check(made, parcels)


def test_a_ring_through_a_field(parcels: Any, parcel: Any) -> None:
    parcel.next = parcel
    made = pickle.loads(pickle.dumps(parcel))
    assert made.next is made
    # A ring of fields of C++ and Rust alone is broken by hand (docs/tying.md).
    reference = weakref.ref(made)
    made.next = parcel.next = None
    del made
    assert reference() is None


def test_a_ring_through_a_container(parcels: Any, parcel: Any) -> None:
    parcel.items.append(parcel)
    parcel.items.append(parcel.items)
    made = pickle.loads(pickle.dumps(parcel))
    assert made.items[0] is made
    assert made.items[1] is made.items
    made.items.clear()
    parcel.items.clear()


def test_another_process(parcels: Any, parcel: Any, module_folder: Path, tmp_path: Path) -> None:
    parcel.items.append(parcel)
    sent, back = tmp_path / "sent", tmp_path / "back"
    sent.write_bytes(pickle.dumps(parcel, 5))
    parcel.items.clear()
    code = """
import pickle, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
assert "rust_parcels" not in sys.modules
parcel = pickle.loads(Path(sys.argv[2]).read_bytes())
assert parcel.items[0] is parcel
parcel.items.clear()
Path(sys.argv[3]).write_bytes(pickle.dumps(parcel, 5))
"""
    arguments = [str(module_folder), str(sent), str(back)]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)
    check(pickle.loads(back.read_bytes()), parcels)


def test_a_class_without_default_says_what_to_add(parcels: Any) -> None:
    fixed = parcels.rust.make_fixed(1)
    wanted = r"`tied\.Fixed` cannot be pickled .*#\[derive\(Default\)\]"
    with pytest.raises(TypeError, match=wanted):
        pickle.dumps(fixed)
    assert copy.copy(fixed).value == 1


def test_a_default_that_panics_is_an_exception(parcels: Any) -> None:
    data = pickle.dumps(parcels.rust.make_grumpy(1))
    for _ in range(3):
        with pytest.raises(Exception, match="panicked: no default today"):
            pickle.loads(data)


def test_a_hidden_field_is_that_of_the_default(parcels: Any) -> None:
    hidden = parcels.rust.make_hidden(7)
    made = pickle.loads(pickle.dumps(hidden))
    assert made.value == 7
    assert list(parcels.rust.cache_of(hidden)) == [7, 7, 7]
    assert list(parcels.rust.cache_of(made)) == []


def graph_of(value: Any) -> Any:
    return json.loads(tvm_ffi.serialization.to_json_graph_str(value))


def test_json(parcels: Any, parcel: Any) -> None:
    parcel.next = None
    text = tvm_ffi.serialization.to_json_graph_str(parcel)
    made = tvm_ffi.serialization.from_json_graph_str(text)
    assert made.part is made.parts[1]
    assert made.weight == parcel.weight


def test_wrong_fields_are_an_exception(parcels: Any, parcel: Any) -> None:
    parcel.next = None
    document = graph_of(parcel)
    (node,) = [node for node in document["nodes"] if node["type"] == "tied.Parcel"]
    fields = node["data"]
    assert "weight" in fields
    for name, value in list(fields.items()):
        del fields[name]
        with pytest.raises(TypeError, match=f"`{name}`"):
            tvm_ffi.serialization.from_json_graph_str(json.dumps(document))
        fields[name] = value
    number = document["nodes"].index(next(n for n in document["nodes"] if n["type"] == "int"))
    for name in ("name", "part", "object", "numbers", "parts", "items", "table"):
        value, fields[name] = fields[name], number
        with pytest.raises(TypeError, match=f"`{name}`"):
            tvm_ffi.serialization.from_json_graph_str(json.dumps(document))
        fields[name] = value


def test_damaged_pickles_are_exceptions(parcels: Any, parcel: Any) -> None:
    parcel.items.append(parcel)
    data = pickle.dumps(parcel, 5)
    parcel.items.clear()
    read = 0
    for position in range(data.index(b"tied.Parcel"), len(data)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[position] ^= flip
            try:
                made = pickle.loads(bytes(damaged))
            except Exception:
                continue
            read += 1
            if isinstance(made, parcels.Parcel):
                repr(made)
                made.items.clear()
    assert read < 3 * len(data)
