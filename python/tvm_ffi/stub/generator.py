# SPDX-License-Identifier: Apache-2.0
"""What a generator is, and which there are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from .consts import MarkerSyntax
from .file_utils import CodeBlock
from .python_generator import PythonGenerator
from .rust_generator import RustGenerator
from .utils import FuncInfo, InitConfig, ObjectInfo, Options

__all__ = ["Generator", "PythonGenerator", "RustGenerator", "generator_names", "get_generator"]


class Generator(Protocol):
    """Writes the text of blocks in one language.

    The ``*_block`` methods replace the lines between the first and the last of ``code.lines``.
    `imports` is what `new_imports` returned for the file; blocks add to it what they need.
    """

    name: str
    source_exts: frozenset[str]
    syntax: MarkerSyntax
    directive_kinds: frozenset[str]
    one_namespace: bool  # a type and a module beside it cannot have the same name

    def default_ty_map(self) -> dict[str, str]:
        """Return the names of types that the user need not map."""
        ...

    def new_imports(self) -> Any:
        """Return what collects the imports of a file."""
        ...

    def add_directive(self, imports: Any, name: str, payload: str, lineno: int) -> None:
        """Take a one-line directive that is not the pipeline's."""
        ...

    def canonical_type_name(self, type_key: str) -> str:
        """Return the full name of the class that a block of this type defines."""
        ...

    def extra_export_names(self, imports: Any) -> set[str]:
        """Return names that the file exports beside its functions and classes."""
        ...

    def is_builtin(self, type_key: str) -> bool:
        """Return whether the frontend has a class of its own for this type."""
        ...

    def can_name(self, type_key: str) -> bool:
        """Return whether the language can have a name for the type."""
        ...

    def can_place(self, prefix: str) -> bool:
        """Return whether there can be a module for a prefix."""
        ...

    def reserve(self, imports: Any, type_keys: list[str]) -> None:
        """Keep the names of types that the file defines free of imports."""
        ...

    def check_view(self, code_blocks: list[CodeBlock]) -> Any:
        """Return what must not change for a file to be up to date."""
        ...

    def generate_global_funcs_block(
        self,
        code: CodeBlock,
        global_funcs: list[FuncInfo],
        ty_map: dict[str, str],
        imports: Any,
        opt: Options,
    ) -> None:
        """Write functions."""
        ...

    def generate_object_block(
        self,
        code: CodeBlock,
        ty_map: dict[str, str],
        imports: Any,
        opt: Options,
        obj_info: ObjectInfo,
        declared: Mapping[str, Path],
    ) -> None:
        """Write a class; `declared` has the file of every class of the run."""
        ...

    def generate_import_section_block(
        self, code: CodeBlock, imports: Any, opt: Options, defined_types: set[str]
    ) -> None:
        """Write the imports, without those of what the file defines."""
        ...

    def generate_all_block(self, code: CodeBlock, names: set[str], opt: Options) -> None:
        """Write the list of exported names."""
        ...

    def generate_export_block(self, code: CodeBlock) -> None:
        """Export what another module exports."""
        ...

    def generate_helpers_block(self, code: CodeBlock, opt: Options) -> None:
        """Write helpers."""
        ...

    def api_filename(self) -> str:
        """Return the name of the file for functions and classes in a new package."""
        ...

    def init_filename(self) -> str:
        """Return the name of the file that makes a folder a package."""
        ...

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
        ...

    def generate_init_file(
        self, code_blocks: list[CodeBlock], module_name: str, submodule: str
    ) -> str:
        """Return what a file with these blocks lacks."""
        ...

    def finalize_init(self, init_path: Path, generated_prefixes: set[str]) -> None:
        """Finish after new files were written."""
        ...


_GENERATORS: dict[str, type[Any]] = {"python": PythonGenerator, "rust": RustGenerator}


def generator_names() -> list[str]:
    """Return the targets."""
    return list(_GENERATORS)


def get_generator(target: str) -> Generator:
    """Return the generator of a target."""
    if target not in _GENERATORS:
        known = ", ".join(_GENERATORS)
        raise ValueError(f"Unknown stubgen generator: {target!r}. Known generators: {known}")
    return _GENERATORS[target]()
