# SPDX-License-Identifier: Apache-2.0
"""The generator of Rust bindings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .. import consts as stub_consts
from ..file_utils import CodeBlock
from ..utils import FuncInfo, InitConfig, ObjectInfo, Options
from . import consts as C
from .codegen import (
    finalize_rust_module_tree,
    generate_rust_api_file,
    generate_rust_import_section,
    generate_rust_object,
)
from .utils import (
    RustImports,
    RustUse,
    check_tokens,
    is_crate_type_key,
    is_rust_module,
    is_rust_type_name,
    rust_module_path,
)

__all__ = [
    "RustGenerator",
    "RustImports",
    "RustUse",
    "check_tokens",
    "finalize_rust_module_tree",
    "generate_rust_api_file",
    "generate_rust_import_section",
    "generate_rust_object",
    "is_crate_type_key",
    "rust_module_path",
]


class _Modules(Mapping[str, tuple[str, ...]]):
    """The module of each declared type; looked up late, since not every path has one."""

    def __init__(self, declared: Mapping[str, Path]) -> None:
        self._declared = declared

    def __getitem__(self, type_key: str) -> tuple[str, ...]:
        return rust_module_path(self._declared[type_key])

    def __contains__(self, type_key: object) -> bool:
        return type_key in self._declared

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)


class RustGenerator:
    """Writes Rust; see `tvm_ffi.stub.generator.Generator`."""

    name = "rust"
    source_exts = frozenset({".rs"})
    syntax = stub_consts.RUST_SYNTAX
    directive_kinds = C.RUST_DIRECTIVE_KINDS
    one_namespace = True

    def default_ty_map(self) -> dict[str, str]:
        """Return the names of the FFI's own types."""
        return dict(C.RUST_TY_MAP_DEFAULTS)

    def new_imports(self) -> RustImports:
        """Return an empty collection."""
        return RustImports()

    def add_directive(self, imports: RustImports, name: str, payload: str, lineno: int) -> None:
        """Take a one-line directive."""
        if name == "import-object":
            imports.record(payload.split(";", 1)[0].strip())
        else:
            imports.directives.add(name, payload, lineno)

    def canonical_type_name(self, type_key: str) -> str:
        """Return the path of a type."""
        return RustUse(type_key).path

    def extra_export_names(self, imports: RustImports) -> set[str]:
        """Return nothing: Rust has no list of exports."""
        return set()

    def is_builtin(self, type_key: str) -> bool:
        """Return whether the crate has the type."""
        return is_crate_type_key(type_key)

    def can_name(self, type_key: str) -> bool:
        """Return whether the type can have a name in Rust."""
        return is_rust_type_name(type_key.rpartition(".")[2])

    def can_place(self, prefix: str) -> bool:
        """Return whether there can be a module for a prefix."""
        return all(map(is_rust_module, prefix.split(".")))

    def reserve(self, imports: RustImports, type_keys: list[str]) -> None:
        """Keep the names that the file defines free of imports."""
        imports.reserve(type_keys)

    def check_view(self, code_blocks: list[CodeBlock]) -> Any:
        """Return what the generated blocks define."""
        view = {
            (block.kind, block.param): check_tokens(block.lines)
            for block in code_blocks
            if block.kind in ("object", "import-section")
        }
        return {key: tokens for key, tokens in view.items() if tokens}

    def generate_global_funcs_block(
        self,
        code: CodeBlock,
        global_funcs: list[FuncInfo],
        ty_map: dict[str, str],
        imports: RustImports,
        opt: Options,
    ) -> None:
        """Do nothing: functions are not bound."""

    def generate_object_block(
        self,
        code: CodeBlock,
        ty_map: dict[str, str],
        imports: RustImports,
        opt: Options,
        obj_info: ObjectInfo,
        declared: Mapping[str, Path],
    ) -> None:
        """Write the items of a type."""
        generate_rust_object(code, ty_map, imports, opt, obj_info, _Modules(declared))

    def generate_import_section_block(
        self, code: CodeBlock, imports: RustImports, opt: Options, defined_types: set[str]
    ) -> None:
        """Write the ``use`` lines and stand-ins."""
        generate_rust_import_section(code, imports, opt, defined_types)

    def generate_all_block(self, code: CodeBlock, names: set[str], opt: Options) -> None:
        """Do nothing: Rust has no list of exports."""

    def generate_export_block(self, code: CodeBlock) -> None:
        """Do nothing: modules are declared by `finalize_init`."""

    def generate_helpers_block(self, code: CodeBlock, opt: Options) -> None:
        """Do nothing: the crate has the helpers."""

    def api_filename(self) -> str:
        """Return the name of the file of a module."""
        return "mod.rs"

    def init_filename(self) -> str:
        """Return the name of the file of a module."""
        return "mod.rs"

    def generate_api_file(
        self,
        code_blocks: list[CodeBlock],
        ty_map: dict[str, str],
        module_name: str,
        object_infos: list[ObjectInfo],
        init_cfg: InitConfig,
        is_root: bool,
    ) -> str:
        """Return what a file with these blocks lacks."""
        return generate_rust_api_file(
            code_blocks, ty_map, module_name, object_infos, init_cfg, is_root, self.syntax
        )

    def generate_init_file(
        self, code_blocks: list[CodeBlock], module_name: str, submodule: str
    ) -> str:
        """Return nothing: the file is that of the types."""
        return ""

    def finalize_init(self, init_path: Path, generated_prefixes: set[str]) -> None:
        """Declare the modules that were made."""
        finalize_rust_module_tree(init_path, generated_prefixes)
