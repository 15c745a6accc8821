# SPDX-License-Identifier: Apache-2.0
"""gdb: objects, strings, containers and the tie.

    (gdb) source .../tvm_ffi/share/gdb/tvm_ffi_printers.py
    (gdb) tvm-ffi 0x55d0c8a3f2b0          an object by its address, or an expression
    (gdb) print any_value                 Any, ObjectRef, String, Array, ... print themselves

The printers read memory by the layout of the C ABI and need no debug information of the library.
Names of types and fields come from the library in the process; in a core file only the kinds that
every process has are known.
"""

import re
import struct

import gdb

KINDS = {
    64: "ffi.Object",
    65: "ffi.String",
    66: "ffi.Bytes",
    67: "ffi.Error",
    68: "ffi.Function",
    69: "ffi.Shape",
    70: "ffi.Tensor",
    71: "ffi.Array",
    72: "ffi.Map",
    73: "ffi.Module",
    74: "ffi.OpaquePyObject",
    75: "ffi.List",
    76: "ffi.Dict",
}
ALLOC_HEADER_MARK = 0x54494544
ADOPTED_MARK = 0x80000000
PLAIN = 1 << 30
MOST_ITEMS = 20
MOST_DEPTH = 3
NO_SLOT = (1 << 64) - 1


def read(address, fmt):
    """Read numbers from memory."""
    size = struct.calcsize("<" + fmt)
    memory = gdb.selected_inferior().read_memory(address, size)
    return struct.unpack("<" + fmt, bytes(memory))


def text(address, size):
    shown = bytes(gdb.selected_inferior().read_memory(address, min(size, 200))) if size else b""
    return shown.decode("utf-8", "replace") + ("..." if size > 200 else "")


def quoted(value):
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


_types: dict = {}


def type_info(index):
    """The key and the fields of a type: (key, [(name, offset, size, static type, flags)])."""
    if index in _types:
        return _types[index]
    try:
        call = f"((unsigned long (*)(int))TVMFFIGetTypeInfo)({index})"
        info = int(gdb.parse_and_eval(call))
        key = text(*read(info + 8, "QQ"))
        depth = read(info + 4, "i")[0]
        ancestors = read(info + 24, "Q")[0]
        infos = [read(ancestors + 8 * i, "Q")[0] for i in range(depth)] + [info]
        fields = [field for one in infos for field in own_fields(one)]
    except (gdb.error, gdb.MemoryError):
        return KINDS.get(index, f"type {index}"), []
    _types[index] = (key, fields)
    return _types[index]


def own_fields(info):
    count, begin = read(info + 40, "i")[0], read(info + 48, "Q")[0]
    for i in range(count):
        field = begin + 120 * i
        name = text(*read(field, "QQ"))
        flags, size, _, offset = read(field + 48, "qqqq")
        yield name, offset, size, read(field + 112, "i")[0], flags


def any_text(address, depth=0):
    """A TVMFFIAny."""
    index, length = read(address, "iI")
    value = address + 8
    if index == 0:
        return "None"
    if index == 1:
        return str(read(value, "q")[0])
    if index == 2:
        return "True" if read(value, "q")[0] else "False"
    if index == 3:
        return repr(read(value, "d")[0])
    if index == 4:
        return f"(void*) {read(value, 'Q')[0]:#x}"
    if index == 5:
        code, bits, lanes = read(value, "BBH")
        return f"dtype(code={code}, bits={bits}, lanes={lanes})"
    if index == 6:
        return "device({}, {})".format(*read(value, "ii"))
    if index == 11:
        return quoted(text(value, length))
    if index == 12:
        return "b" + quoted(text(value, length))
    if index >= 64:
        return object_text(read(value, "Q")[0], depth)
    return f"value of type {index}"


def items_of_map(h):
    """The addresses of the entries of a Map or Dict, in order."""
    data, size, slots = read(h + 24, "QQQ")
    if slots >> 63:
        yield from (data + 32 * i for i in range(size))
        return
    slot = read(h + 64, "Q")[0]
    while slot != NO_SLOT:
        item = data + (slot // 16) * (16 + 16 * 48) + 16 + (slot % 16) * 48
        yield item
        slot = read(item + 40, "Q")[0]


def field_text(h, field, depth):
    _, offset, size, static_type, flags = field
    address = h + offset
    if static_type == -1 and size == 16:
        return any_text(address, depth)
    if static_type >= 64 and size == 8:
        pointer = read(address, "Q")[0]
        return object_text(pointer, depth) if pointer else "None"
    if (static_type == 65 and size == 16) or (static_type == 66 and size == 16):
        return any_text(address, depth)
    if flags & PLAIN and static_type in (1, 2) and size in (1, 2, 4, 8):
        return str(read(address, {1: "b", 2: "h", 4: "i", 8: "q"}[size])[0])
    if flags & PLAIN and static_type == 3 and size in (4, 8):
        return repr(read(address, {4: "f", 8: "d"}[size])[0])
    return f"<{size} bytes>"


def object_text(h, depth=0):
    """An object on one line."""
    if h == 0:
        return "None"
    index = read(h + 8, "i")[0]
    key, fields = type_info(index)
    if index == 65:
        return quoted(text(*read(h + 24, "QQ")))
    if index == 66:
        return "b" + quoted(text(*read(h + 24, "QQ")))
    if depth >= MOST_DEPTH:
        return f"{key} at {h:#x}"
    if index in (71, 75):
        data, size = read(h + 24, "Qq")
        items = [any_text(data + 16 * i, depth + 1) for i in range(min(size, MOST_ITEMS))]
        more = [f"... {size - MOST_ITEMS} more"] if size > MOST_ITEMS else []
        return f"{key} [{', '.join(items + more)}]"
    if index in (72, 76):
        items = []
        for item in items_of_map(h):
            if len(items) == MOST_ITEMS:
                items.append("...")
                break
            items.append(f"{any_text(item, depth + 1)}: {any_text(item + 16, depth + 1)}")
        return f"{key} {{{', '.join(items)}}}"
    if index == 69:
        data, size = read(h + 24, "QQ")
        return f"{key} {list(read(data, f'{min(size, MOST_ITEMS)}q'))}"
    if index == 67:
        cells = [text(*read(h + 24 + 16 * i, "QQ")) for i in range(2)]
        return f"{key} {cells[0]}: {cells[1]}"
    shown = [f"{field[0]} = {field_text(h, field, depth + 1)}" for field in fields]
    return f"{key} {{{', '.join(shown)}}}" if shown else f"{key} at {h:#x}"


def tie_text(h):
    """Counts, and the state of the Python wrapper."""
    combined, _, padding = read(h, "QiI")
    counts = f"{combined & 0xFFFFFFFF} strong, {(combined >> 32) - 1} weak"
    if padding == ALLOC_HEADER_MARK:
        deleter = read(h - 8, "Q")[0]
        owner = gdb.execute(f"info symbol {deleter:#x}", to_string=True)
        if "Tie<" not in owner and "DeleteSpace" not in owner:
            return f"{counts}; no place for a wrapper"
        if "Builtin" in owner:
            return f"{counts}; made before Python"
        word = read(h - 16, "Q")[0]
        if word == 0:
            return f"{counts}; no wrapper"
        state = "dormant" if word & 1 else "active"
        return f"{counts}; {state} wrapper at {word & ~3:#x}"
    if padding & ADOPTED_MARK:
        return f"{counts}; adopted, slot {padding & ~ADOPTED_MARK}"
    return f"{counts}; no wrapper"


class PrintObject(gdb.Command):
    """Print a TVM FFI object: tvm-ffi ADDRESS."""

    def __init__(self):
        super().__init__("tvm-ffi", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, _from_tty):
        value = gdb.parse_and_eval(argument)
        if value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
            h = pointer_in(value)
        else:
            h = int(value)
        print(f"{object_text(h)}\n  at {h:#x}: {tie_text(h)}")


def pointer_in(value):
    """The object pointer in the first eight bytes of an ObjectRef, ObjectPtr or Arc."""
    return read(int(value.address), "Q")[0]


class ReferencePrinter:
    """ObjectRef and the classes that derive from it, ObjectPtr."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        if self.value.address is None:
            return "<not in memory>"
        return object_text(pointer_in(self.value))


class AnyPrinter:
    """Any, AnyView, TVMFFIAny, String, Bytes: one cell."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        if self.value.address is None:
            return "<not in memory>"
        return any_text(int(self.value.address))


class HeaderPrinter:
    """TVMFFIObject: what is behind a handle."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        h = int(self.value.address)
        return f"{object_text(h)}; {tie_text(h)}"


CELL = re.compile(r"^(tvm::ffi::(Any|AnyView|String|Bytes)|TVMFFIAny)$")
REFERENCE = re.compile(
    r"^tvm::ffi::(ObjectRef|ObjectPtr<.*>|Arc<.*>|Function|TypedFunction<.*>|Array<.*>|List<.*>"
    r"|Map<.*>|Dict<.*>|Shape|Tensor|Module|Error|Tuple<.*>)$"
)


def find_printer(value):
    kind = value.type.strip_typedefs().unqualified()
    name = kind.name or kind.tag or ""
    if CELL.match(name):
        return AnyPrinter(value)
    if REFERENCE.match(name):
        return ReferencePrinter(value)
    if name == "TVMFFIObject" and value.address is not None:
        return HeaderPrinter(value)
    if kind.code == gdb.TYPE_CODE_STRUCT and kind.fields() and derives_from_reference(kind):
        return ReferencePrinter(value)
    return None


def derives_from_reference(kind):
    while True:
        bases = [field for field in kind.fields() if field.is_base_class]
        if not bases:
            return False
        kind = bases[0].type.strip_typedefs()
        if kind.name == "tvm::ffi::ObjectRef":
            return True


PrintObject()
gdb.pretty_printers.append(find_printer)
