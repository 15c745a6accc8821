# SPDX-License-Identifier: Apache-2.0
"""Names, imports, module paths and types in Rust."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ...core import TypeSchema
from . import consts as C
from .directives import Directives

__all__ = [
    "Directives",
    "RustImports",
    "RustUse",
    "builtin_mirror_name",
    "check_tokens",
    "is_crate_type_key",
    "is_rust_module",
    "is_rust_name",
    "is_rust_type_name",
    "render_rust_type",
    "rust_class",
    "rust_ident",
    "rust_module_path",
]


@dataclass(frozen=True)
class RustUse:
    """A ``use`` line. The name is a path with ``::`` or a type key with dots."""

    name: str

    @property
    def path(self) -> str:
        """The path with ``::``."""
        if "::" in self.name:
            return self.name
        head, dot, rest = self.name.partition(".")
        if dot:
            head = C.RUST_MOD_MAP.get(head, head)
        return (head + dot + rest).replace(".", "::")

    @property
    def leaf(self) -> str:
        """The last part."""
        return self.path.rpartition("::")[2]

    def as_use_line(self) -> str:
        """Return the line, or nothing for a name without a path."""
        return f"use {self.path};" if "::" in self.path else ""


@dataclass
class RustImports:
    """What a file needs beside its own items."""

    items: list[RustUse] = field(default_factory=list)
    directives: Directives = field(default_factory=Directives)
    builtin_mirrors: dict[str, str] = field(default_factory=dict)
    reserved: set[str] = field(default_factory=set)

    def reserve(self, type_keys: Iterable[str]) -> None:
        """Keep the names of types that the file defines free of imports."""
        owners: dict[str, str] = {}
        for key in type_keys:
            if not is_rust_type_name(key.rpartition(".")[2]):
                raise ValueError(f"`{key}` cannot be the name of a type in rust")
            for name in (rust_class(key), rust_class(key, "Obj")):
                if owners.setdefault(name, key) != key:
                    raise ValueError(
                        f"`{owners[name]}` and `{key}` both define `{name}` in Rust; "
                        "put one of them into another file"
                    )
        self.reserved |= owners.keys()

    def record(self, name: str) -> str:
        """Return how to write a name in this file, and import it if that is possible."""
        use = RustUse(name)
        if "::" not in use.path:
            return use.path
        if any(item.path == use.path for item in self.items):
            return use.leaf
        if use.leaf in self.reserved or any(item.leaf == use.leaf for item in self.items):
            return use.path
        self.items.append(use)
        return use.leaf

    def record_builtin_base(self, chain: Iterable[str]) -> str:
        """Return the stand-in for the last of these built-in types, each the parent of the next."""
        base = self.record("tvm_ffi::Object")
        for key in chain:
            self.builtin_mirrors[key] = base
            base = builtin_mirror_name(key)
        return base


def is_crate_type_key(type_key: str) -> bool:
    """Return whether the crate ``tvm_ffi`` has the type."""
    return type_key.split(".", 1)[0] == "ffi"


def builtin_mirror_name(type_key: str) -> str:
    """Return the name of the stand-in for a built-in type."""
    head, _, leaf = type_key.rpartition(".")
    head = head.replace(".", "_")
    return f"{head[:1].upper()}{head[1:]}{leaf}Obj"


@functools.cache
def rust_module_path(path: Path) -> tuple[str, ...]:
    """Return the module of a file: ``src/a/b.rs`` is ``("crate", "a", "b")``."""
    path = Path(path)
    crate = next((p for p in path.parents if (p / "Cargo.toml").is_file()), None)
    if crate is None:
        raise ValueError(f"{path} is in no Cargo crate: no `Cargo.toml` above it")
    source = crate / "src"
    if source not in path.parents:
        raise ValueError(f"{path} is not under `{source}`, so it is in no module of the crate")
    parts = list(path.relative_to(source).with_suffix("").parts)
    if parts in (["lib"], ["main"]):
        return ("crate",)
    if parts[-1] == "mod":
        parts.pop()
    return ("crate", *map(rust_module, parts))


def rust_class(type_key: str, suffix: str = "") -> str:
    """Return the name of the wrapper of a type or, with the suffix ``Obj``, of its object."""
    name = type_key.rpartition(".")[2] + suffix
    if name in C.RUST_NOT_RAW_IDENTIFIERS:
        return f"{name}_"
    return f"r#{name}" if name in C.RUST_KEYWORDS else name


def is_rust_name(name: str) -> bool:
    """Return whether a name can be written in Rust, perhaps as a raw identifier."""
    return name.isidentifier() and name != "_"


def is_rust_type_name(name: str) -> bool:
    """Return whether a type can have this name; some would hide what generated code uses."""
    return is_rust_name(name) and name not in C.RUST_NOT_TYPE_NAMES


def is_rust_module(name: str) -> bool:
    """Return whether a folder of this name can be a module; ``mod.rs`` has another meaning."""
    return is_rust_name(name) and name not in (*C.RUST_NOT_RAW_IDENTIFIERS, "mod")


def rust_module(name: str) -> str:
    """Return the name of a module."""
    return f"r#{name}" if name in C.RUST_KEYWORDS else name


def render_rust_type(
    schema: TypeSchema, ty_render: Callable[[str, str | None], str | None]
) -> str | None:
    """Return the Rust type of a schema, or None if it has none."""
    origin = schema.origin
    if origin in C.RUST_UNSUPPORTED_ORIGINS:
        return None
    if origin == "Callable":
        return ty_render("Callable", None)
    arguments = schema.args or ()
    count = {"Array": 1, "List": 1, "Map": 2, "Optional": 1}.get(origin)
    if count is None:
        return ty_render(origin, getattr(schema, "type_key", None))
    inner = [render_rust_type(argument, ty_render) for argument in arguments[:count]]
    inner += [ty_render("Any", None)] * (count - len(inner))
    outer = "Option" if origin == "Optional" else ty_render(origin, None)
    if outer is None or any(item is None for item in inner):
        return None
    return f"{outer}<{', '.join(map(str, inner))}>"


def rust_ident(name: str) -> str:
    """Return a name as a Rust identifier."""
    if len(name) > 4 and name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    elif len(name) > 1 and name.endswith("_") and not name.endswith("__"):
        name = name[:-1]
    if name in C.RUST_NOT_RAW_IDENTIFIERS or name in C.RUST_RESERVED_MEMBERS:
        return f"{name}_"
    return f"r#{name}" if name in C.RUST_KEYWORDS else name


_QUALIFIER = re.compile(r"(?:(?<![\w:])::)?(?:\b[a-z_][a-z0-9_]*::)+(?=[A-Za-z_])")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def check_tokens(lines: Iterable[str]) -> list[str]:
    """Return what a text defines, without how it is spelled: line breaks, paths, last commas."""
    stripped = (line.strip() for line in lines)
    text = " ".join(line for line in stripped if not line.startswith(("use ", "//")))
    tokens = _TOKEN.findall(_QUALIFIER.sub("", text))
    return [
        token
        for token, after in zip(tokens, [*tokens[1:], ""], strict=False)
        if not (token == "," and after in (")", "]", "}"))
    ]
