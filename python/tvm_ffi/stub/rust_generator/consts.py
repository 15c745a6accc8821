# SPDX-License-Identifier: Apache-2.0
"""Names of types in Rust, and the rules of its names."""

from __future__ import annotations

RUST_DIRECTIVE_KINDS = frozenset(
    {"import-object", "field", "nullable", "enum", "opaque", "upcast", "custom-new"}
)

RUST_TY_MAP_DEFAULTS = {
    "int": "i64",
    "float": "f64",
    "bool": "bool",
    "None": "()",
    "str": "tvm_ffi::String",
    "bytes": "tvm_ffi::Bytes",
    "Any": "tvm_ffi::Any",
    "Callable": "tvm_ffi::Function",
    "Array": "tvm_ffi::Array",
    "List": "tvm_ffi::List",
    "Map": "tvm_ffi::Map",
    "Tensor": "tvm_ffi::Tensor",
    "Shape": "tvm_ffi::Shape",
    "Object": "tvm_ffi::object::ObjectRef",
    "Device": "tvm_ffi::DLDevice",
    "dtype": "tvm_ffi::DLDataType",
    "DataType": "tvm_ffi::DLDataType",
    "ffi.String": "tvm_ffi::String",
    "ffi.Bytes": "tvm_ffi::Bytes",
    "ffi.BigInt": "tvm_ffi::BigInt",
    "ffi.Module": "tvm_ffi::Module",
    "ffi.Error": "tvm_ffi::Error",
    "ffi.Tensor": "tvm_ffi::Tensor",
    "ffi.Shape": "tvm_ffi::Shape",
    "ffi.Function": "tvm_ffi::Function",
    "ffi.Object": "tvm_ffi::object::ObjectRef",
    "ffi.reflection.AccessPath": "tvm_ffi::reflection::AccessPath",
    "ffi.reflection.AccessStep": "tvm_ffi::reflection::AccessStep",
}

RUST_UNSUPPORTED_ORIGINS = frozenset({"Dict", "Union", "tuple"})

RUST_SCALAR_BY_SIZE = {
    ("int", 1): "i8",
    ("int", 2): "i16",
    ("int", 4): "i32",
    ("int", 8): "i64",
    ("float", 4): "f32",
    ("float", 8): "f64",
}
RUST_SCALAR_WIDTHS = {
    **{"i8": 1, "u8": 1, "bool": 1, "i16": 2, "u16": 2},
    **{"i32": 4, "u32": 4, "f32": 4, "i64": 8, "u64": 8, "f64": 8},
}
# Parameters of these types are taken as they are, others through `impl Into<T>`.
RUST_EXACT_PARAMS = frozenset(
    {
        *("bool", "i8", "i16", "i32", "i64", "isize"),
        *("u8", "u16", "u32", "u64", "usize", "f32", "f64"),
    }
)
RUST_POINTER_SIZE = 8
RUST_OPTIONAL_PATH = "tvm_ffi::Optional"
RUST_OPTIONAL_FIELD_SIZE = 16
RUST_OBJECT_OPTIONAL_FIELD_SIZE = 8
# `Optional` of these is stored as an `Any`, of objects as a pointer.
RUST_ANY_BACKED_OPTIONAL_PAYLOADS = frozenset(
    {"int", "float", "bool", "Device", "dtype", "DataType", "str", "bytes"}
)

RUST_MOD_MAP = {"ffi": "tvm_ffi"}
RUST_ROOT_TYPE_KEY = "ffi.Object"

RUST_KEYWORDS = frozenset(
    {
        *("as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum"),
        *("extern", "false", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod"),
        *("move", "mut", "pub", "ref", "return", "self", "Self", "static", "struct", "super"),
        *("trait", "true", "type", "unsafe", "use", "where", "while", "abstract", "become"),
        *("box", "do", "final", "gen", "macro", "override", "priv", "try", "typeof", "unsized"),
        *("virtual", "yield"),
    }
)
# What the text of blocks takes from the prelude, with paths for a file that defines such a name.
RUST_PRELUDE = {
    "Option": (r"(?<![\w:])Option<", "::core::option::Option<"),
    "Into": (r"(?<![\w:])Into<", "::core::convert::Into<"),
    "TryFrom": (r"(?<![\w:])TryFrom<", "::core::convert::TryFrom<"),
    "Clone": (r"(?<![\w:])Clone::", "::core::clone::Clone::"),
}
RUST_NOT_RAW_IDENTIFIERS = frozenset({"self", "Self", "super", "crate"})
# A type of this name would hide a primitive type or a crate from generated code.
RUST_NOT_TYPE_NAMES = frozenset(
    {
        *RUST_EXACT_PARAMS,
        *("char", "str", "i128", "u128", "f16", "f128", "std", "core", "alloc", "tvm_ffi"),
    }
)
RUST_RESERVED_MEMBERS = frozenset({"base"})
RUST_MAX_WIDTH = 100
