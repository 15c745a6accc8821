# SPDX-License-Identifier: Apache-2.0
"""The generator of Python stubs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import consts as stub_consts
from ..file_utils import CodeBlock
from ..utils import FuncInfo, InitConfig, ObjectInfo, Options
from . import bases, codegen
from . import consts as C
from .utils import ImportItem, ImportItems, PythonImports, hidden_in, is_name

__all__ = ["ImportItem", "PythonGenerator", "PythonImports"]


def _names_in(imports: PythonImports) -> dict[str, str]:
    """Return the names of the file, to be added to."""
    if not isinstance(imports.items, ImportItems):
        imports.items = ImportItems(imports.items)
    return imports.items.hidden


class PythonGenerator:
    """Writes Python; see `tvm_ffi.stub.generator.Generator`."""

    name = "python"
    source_exts = frozenset({".py", ".pyi"})
    syntax = stub_consts.PYTHON_SYNTAX
    directive_kinds = frozenset({"import-object"})
    one_namespace = False

    def __init__(self) -> None:
        self._late: dict[str, str] = {}

    def default_ty_map(self) -> dict[str, str]:
        """Return the names of the FFI's own types."""
        return dict(C.TY_MAP_DEFAULTS)

    def new_imports(self) -> PythonImports:
        """Return an empty list of imports."""
        return PythonImports()

    def add_directive(self, imports: PythonImports, name: str, payload: str, lineno: int) -> None:
        """Add the import that an ``import-object`` line asks for."""
        parts = [part.strip() for part in payload.split(";")]
        full_name, checking, alias = [*parts, "", ""][:3]
        if not full_name:
            raise ValueError(f"Invalid `{name}` directive at line {lineno}. Expected a name")
        if alias == "_FFI_LOAD_LIB" or full_name.endswith("libinfo.load_lib_module"):
            imports.has_lib_load = True
        imports.items.append(ImportItem(full_name, checking.lower() == "true", alias or None))

    def canonical_type_name(self, type_key: str) -> str:
        """Return the module and name of a type's class."""
        return ImportItem(type_key).full_name

    def extra_export_names(self, imports: PythonImports) -> set[str]:
        """Return ``LIB`` if the file loads a library."""
        return {"LIB"} if imports.has_lib_load else set()

    def is_builtin(self, type_key: str) -> bool:
        """Return whether the package itself has the class."""
        return type_key in stub_consts.BUILTIN_TYPE_KEYS

    def can_name(self, type_key: str) -> bool:
        """Return whether the type can have a class."""
        return is_name(type_key.rpartition(".")[2])

    def can_place(self, prefix: str) -> bool:
        """Return whether there can be a package for a prefix."""
        return all(map(is_name, prefix.split(".")))

    def reserve(self, imports: PythonImports, type_keys: list[str]) -> None:
        """Note the classes of the file: what has the name of one is imported under another."""
        names = _names_in(imports)
        for key in type_keys:
            names[key.rpartition(".")[2]] = self.canonical_type_name(key)

    def check_view(self, code_blocks: list[CodeBlock]) -> Any:
        """Return all lines: any change counts."""
        return tuple(line for block in code_blocks for line in block.lines)

    def generate_global_funcs_block(
        self,
        code: CodeBlock,
        global_funcs: list[FuncInfo],
        ty_map: dict[str, str],
        imports: PythonImports,
        opt: Options,
    ) -> None:
        """Write functions."""
        names = [function.schema.name.rpartition(".")[2] for function in global_funcs]
        _names_in(imports).update(dict.fromkeys(names, ""))
        codegen.generate_python_global_funcs(code, global_funcs, ty_map, imports.items, opt)
        for function in global_funcs:
            if not is_name(function.schema.name.rpartition(".")[2]):
                text = f"`{function.schema.name}` cannot be the name of a function in {self.name}"
                print(f"{stub_consts.TERM_YELLOW}[Skipped] {text}{stub_consts.TERM_RESET}")

    def generate_object_block(
        self,
        code: CodeBlock,
        ty_map: dict[str, str],
        imports: PythonImports,
        opt: Options,
        obj_info: ObjectInfo,
        declared: Mapping[str, Path] | None = None,
    ) -> None:
        """Write fields and methods of a class."""
        codegen.generate_python_object(code, ty_map, imports.items, opt, obj_info)

    def generate_import_section_block(
        self, code: CodeBlock, imports: PythonImports, opt: Options, defined_types: set[str]
    ) -> None:
        """Write the imports, without those of what the file defines."""
        wanted = (item for item in imports.items if item.full_name not in defined_types)
        items = ImportItems(wanted, hidden_in(imports.items))
        codegen.generate_python_import_section(code, items, opt)

    def generate_all_block(self, code: CodeBlock, names: set[str], opt: Options) -> None:
        """Write the list of exported names."""
        codegen.generate_python_all(code, names, opt)

    def generate_export_block(self, code: CodeBlock) -> None:
        """Export what another module exports."""
        codegen.generate_python_export(code)

    def generate_helpers_block(self, code: CodeBlock, opt: Options) -> None:
        """Do nothing: Python needs no helpers."""

    def api_filename(self) -> str:
        """Return the name of the file for functions and classes."""
        return "_ffi_api.py"

    def init_filename(self) -> str:
        """Return the name of the file of a package."""
        return "__init__.py"

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
        return codegen.ffi_api_text(
            code_blocks,
            ty_map,
            module_name,
            object_infos,
            init_cfg,
            is_root,
            self.syntax,
            self._late,
        )

    def arrange(
        self,
        modules: dict[str, list[ObjectInfo]],
        new: set[str],
        ty_map: dict[str, str],
        root: str,
    ) -> dict[str, list[ObjectInfo]]:
        """Return the classes of files in an order in which the files can be imported."""
        ordered, late = bases.arrange(modules, new, ty_map, root)
        api = Path(self.api_filename()).stem
        self._late = {key: f"{key.rpartition('.')[0]}.{api}" for key in late}
        return ordered

    def generate_classes(
        self, code_blocks: list[CodeBlock], ty_map: dict[str, str], object_infos: list[ObjectInfo]
    ) -> str:
        """Return classes with empty blocks, for a file with these blocks."""
        return codegen.generate_python_classes(code_blocks, ty_map, object_infos, self.syntax)

    def generate_init_file(
        self, code_blocks: list[CodeBlock], module_name: str, submodule: str
    ) -> str:
        """Return what a file with these blocks lacks."""
        return codegen.generate_python_init(code_blocks, module_name, submodule, self.syntax)

    def finalize_init(self, init_path: Path, generated_prefixes: set[str]) -> None:
        """Do nothing: Python finds packages by their folders."""
