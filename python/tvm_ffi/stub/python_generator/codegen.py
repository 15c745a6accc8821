# SPDX-License-Identifier: Apache-2.0
"""The text of blocks and of new files."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterable, Mapping
from io import StringIO

from ...core import _abi, _object_type_key_to_index
from ..consts import MarkerSyntax
from ..file_utils import CodeBlock
from ..utils import FuncInfo, InitConfig, ObjectInfo, Options
from . import consts as C
from .utils import (
    ImportItem,
    ImportItems,
    hidden_in,
    is_name,
    render_func_signature,
    render_object_ffi_init,
    render_object_fields,
    render_object_init,
    render_object_methods,
)

__all__ = [
    "CodeBlock",
    "FuncInfo",
    "ImportItem",
    "InitConfig",
    "ObjectInfo",
    "Options",
    "generate_python_all",
    "generate_python_export",
    "generate_python_ffi_api",
    "generate_python_global_funcs",
    "generate_python_import_section",
    "generate_python_init",
    "generate_python_object",
    "render_func_signature",
    "render_object_ffi_init",
    "render_object_fields",
    "render_object_init",
    "render_object_methods",
]


def _fill(code: CodeBlock, body: Iterable[str], indent: int) -> None:
    """Put lines between the markers of a block."""
    blanks = " " * indent
    code.lines[1:-1] = [blanks + line if line else line for line in body]


def has_class(origin: str) -> bool:
    """Return whether a type can be imported: it has a module, and its names are identifiers."""
    if "." in origin:
        return all(map(is_name, origin.split(".")))
    index = _object_type_key_to_index(origin)
    return (
        index is None or index < _abi.kTVMFFIStaticObjectBegin
    )  # not a type key, but as `int` or `Array`


def _naming(
    ty_map: dict[str, str],
    imports: list[ImportItem],
    taken: Collection[str],
) -> Callable[[str], str]:
    """Return a function that names a type in this block and notes the import it needs.

    :param taken: names that mean something else in the block
    """
    hidden = hidden_in(imports)

    def free(name: str) -> str:
        while name in taken or name in hidden:
            name = f"_{name}"
        return name

    def name_of(origin: str) -> str:
        full = ty_map.get(origin, origin)
        if full == origin and not has_class(origin):
            full = ty_map.get("Object", C.TY_MAP_DEFAULTS["Object"])
        name = full.rpartition(".")[2]
        is_builtin = "." not in full
        if is_builtin and not hasattr(builtins, name):
            return name
        item = ImportItem(f"builtins.{name}" if is_builtin else full, type_checking_only=True)
        alias = None
        if name in taken or hidden.get(name, item.full_name) != item.full_name:
            alias = free(name)
            item = ImportItem(item.full_name, type_checking_only=True, alias=alias)
        elif is_builtin:
            return name
        if item not in imports:
            imports.append(item)
        return alias or name

    return name_of


def _input_map(ty_map: dict[str, str]) -> dict[str, str]:
    """Return the names of parameters' types, which are wider than those of results."""
    changed = dict(ty_map)
    for key, accepted in C.TY_MAP_INPUT_DEFAULTS.items():
        if ty_map.get(key, C.TY_MAP_DEFAULTS[key]) == C.TY_MAP_DEFAULTS[key]:
            changed[key] = accepted
    return changed


def _type_checking(imports: list[ImportItem]) -> str:
    """Name the constant and note its import."""
    if "TYPE_CHECKING" not in hidden_in(imports):
        imports.append(ImportItem("typing.TYPE_CHECKING"))
        return "TYPE_CHECKING"
    imports.append(ImportItem("typing", alias="_typing"))
    return "_typing.TYPE_CHECKING"


def generate_python_global_funcs(
    code: CodeBlock,
    global_funcs: list[FuncInfo],
    ty_map: dict[str, str],
    imports: list[ImportItem],
    opt: Options,
) -> None:
    """Write the functions of a prefix."""
    if not global_funcs:
        return
    prefix, module = code.param
    imports.append(ImportItem(f"{module or 'tvm_ffi'}.init_ffi_api", alias="_FFI_INIT_FUNC"))
    checking = _type_checking(imports)
    taken = {func.schema.name.rpartition(".")[2] for func in global_funcs}
    returned = _naming(ty_map, imports, taken)
    accepted = _naming(_input_map(ty_map), imports, taken)
    lines = ["# fmt: off", f'_FFI_INIT_FUNC("{prefix}", __name__)', f"if {checking}:"]
    shown = [f for f in global_funcs if is_name(f.schema.name.rpartition(".")[2])]
    lines += [render_func_signature(f, returned, opt.indent, accepted) for f in shown]
    if not shown:
        lines.append(f"{' ' * opt.indent}pass")
    _fill(code, [*lines, "# fmt: on"], code.indent)


def generate_python_object(
    code: CodeBlock,
    ty_map: dict[str, str],
    imports: list[ImportItem],
    opt: Options,
    obj_info: ObjectInfo,
) -> None:
    """Write the fields and methods of a class."""
    taken = {method.schema.name.rpartition(".")[2] for method in obj_info.methods}
    taken.update(field.name for field in obj_info.fields)
    returned = _naming(ty_map, imports, taken)
    accepted = _naming(_input_map(ty_map), imports, taken)
    lines = ["# fmt: off", *render_object_fields(obj_info, returned, 0)]
    callables = [
        *render_object_init(obj_info, returned, opt.indent, accepted),
        *render_object_ffi_init(obj_info, returned, opt.indent, accepted),
        *render_object_methods(obj_info, returned, opt.indent, accepted),
    ]
    if callables:
        checking = _type_checking(imports)
        if obj_info.has_overloaded_methods():
            imports.append(ImportItem("typing.overload", type_checking_only=True))
        lines += [f"if {checking}:", *callables]
    _fill(code, [*lines, "# fmt: on"], code.indent)


def _import_lines(items: Iterable[ImportItem]) -> list[str]:
    by_module: dict[str, set[str]] = {}
    for item in items:
        by_module.setdefault(item.mod, set()).add(item.name_with_alias)
    lines = []
    for module in sorted(by_module):
        names = ", ".join(sorted(by_module[module]))
        lines.append(f"from {module} import {names}" if module else f"import {names}")
    return lines


def generate_python_import_section(
    code: CodeBlock,
    imports: list[ImportItem],
    opt: Options,
) -> None:
    """Write the imports."""
    if not imports:
        return
    always = ImportItems(
        (item for item in imports if not item.type_checking_only), hidden_in(imports)
    )
    checking = [item for item in imports if item.type_checking_only]
    constant = _type_checking(always) if checking else ""
    lines = ["# fmt: off", "# isort: off", "from __future__ import annotations"]
    lines += _import_lines(always)
    if checking:
        lines.append(f"if {constant}:")
        lines += [" " * opt.indent + line for line in _import_lines(checking)]
    _fill(code, [*lines, "# isort: on", "# fmt: on"], 0)


def generate_python_all(code: CodeBlock, names: set[str], opt: Options) -> None:
    """Write the names that a module exports: constants, classes, then the rest."""
    if not names:
        return

    def order(name: str) -> tuple[int, str]:
        if name.isupper():
            return 0, name
        is_class = name[:1].isupper() and "_" not in name
        return (1 if is_class else 2), name

    leaves = sorted(filter(is_name, {name.rpartition(".")[2] for name in names}), key=order)
    _fill(code, [f'"{name}",' for name in leaves], code.indent)


def generate_python_export(code: CodeBlock) -> None:
    """Write what exports everything of a submodule."""
    module = code.param
    lines = [
        "# fmt: off",
        "# isort: off",
        f"from .{module} import *  # noqa: F403",
        f"from .{module} import __all__ as {module}__all__",
        'if "__all__" not in globals():',
        "    __all__ = []",
        f"__all__.extend({module}__all__)",
        "# isort: on",
        "# fmt: on",
    ]
    _fill(code, lines, 0)


# ---- new files ----------------------------------------------------------------------------------


def _class_text(info: ObjectInfo, bases: dict[str, str], syntax: MarkerSyntax) -> str:
    key = info.type_key
    assert key is not None
    return f'''\
@_FFI_REG_OBJ("{key}")
class {key.rpartition(".")[2]}({bases[key]}):
    """FFI binding for `{key}`."""

    {syntax.begin} object/{key}
    {syntax.end}

'''


def generate_python_ffi_api(
    code_blocks: list[CodeBlock],
    ty_map: dict[str, str],
    module_name: str,
    object_infos: list[ObjectInfo],
    init_cfg: InitConfig,
    is_root: bool,
    syntax: MarkerSyntax,
) -> str:
    """Return what a file of functions and classes lacks."""
    return ffi_api_text(
        code_blocks, ty_map, module_name, object_infos, init_cfg, is_root, syntax, {}
    )


def ffi_api_text(
    code_blocks: list[CodeBlock],
    ty_map: dict[str, str],
    module_name: str,
    object_infos: list[ObjectInfo],
    init_cfg: InitConfig,
    is_root: bool,
    syntax: MarkerSyntax,
    late: Mapping[str, str],
) -> str:
    """Return the same where some bases must not be imported before a class needs them.

    :param late: the modules of these bases
    """
    kinds = {block.kind for block in code_blocks}
    text = StringIO()
    if not code_blocks:
        text.write(f'"""FFI API bindings for {module_name}."""\n')
    if "import-section" not in kinds:
        text.write(f"\n{syntax.begin} import-section\n{syntax.end}\n")
    if is_root and not _has_import(code_blocks, "load_lib_module"):
        loader = "tvm_ffi.libinfo.load_lib_module;False;_FFI_LOAD_LIB"
        text.write(f"{syntax.import_object} {loader}\n")
        text.write(f'LIB = _FFI_LOAD_LIB("{init_cfg.pkg}", "{init_cfg.shared_target}")\n')
    if "global" not in kinds:
        text.write(f"{syntax.begin} global/{module_name}\n{syntax.end}\n")
    if object_infos:
        if not _has_import(code_blocks, "register_object"):
            text.write(f"{syntax.import_object} tvm_ffi.register_object;False;_FFI_REG_OBJ\n")
        there = {block.param for block in code_blocks if block.kind == "object"}
        text.write(_classes_text(ty_map, object_infos, syntax, there, late))
    if "__all__" not in kinds:
        text.write(f"\n__all__ = [\n    {syntax.begin} __all__\n    {syntax.end}\n]\n")
    return text.getvalue()


def _has_import(code_blocks: list[CodeBlock], name: str) -> bool:
    return any(
        block.kind == "directive"
        and block.param[0] == "import-object"
        and block.param[1].split(";")[0].strip().endswith(f".{name}")
        for block in code_blocks
    )


def generate_python_classes(
    code_blocks: list[CodeBlock],
    ty_map: dict[str, str],
    object_infos: list[ObjectInfo],
    syntax: MarkerSyntax,
) -> str:
    """Return classes for a file that has these blocks already."""
    if not object_infos:
        return ""
    text = "\n\n"
    if not _has_import(code_blocks, "register_object"):
        text += f"{syntax.import_object} tvm_ffi.register_object;False;_FFI_REG_OBJ\n"
    there = {block.param for block in code_blocks if block.kind == "object"}
    return (text + _classes_text(ty_map, object_infos, syntax, there)).rstrip("\n")


def base_of(info: ObjectInfo, ty_map: Mapping[str, str]) -> str:
    """Return the key of the nearest ancestor that has a class."""
    for key in (info.parent_type_key, *reversed(info.ancestors)):
        if key is not None and (key in ty_map or ("." in key and has_class(key))):
            return key
    return "ffi.Object"


def _classes_text(
    ty_map: dict[str, str],
    object_infos: list[ObjectInfo],
    syntax: MarkerSyntax,
    there: Collection[str] = (),
    late: Mapping[str, str] | None = None,
) -> str:
    late = late or {}
    text = StringIO()
    defined = {info.type_key for info in object_infos} | set(there)
    for info in object_infos:
        if not is_name((info.type_key or "").rpartition(".")[2]):
            continue
        parent = base_of(info, ty_map)
        if parent in defined:
            base = parent.rpartition(".")[2]
        elif parent not in ty_map and parent in late:
            base = "_" + parent.replace(".", "_")
            name = parent.rpartition(".")[2]
            text.write(f"from {late[parent]} import {name} as {base}  # noqa: E402\n")
        else:
            full = ty_map.get(parent, parent)
            base = "_" + full.replace(".", "_")
            text.write(f"{syntax.import_object} {full};False;{base}\n")
        assert info.type_key is not None
        text.write(_class_text(info, {info.type_key: base}, syntax))
    return text.getvalue()


def generate_python_init(
    code_blocks: list[CodeBlock], module_name: str, submodule: str, syntax: MarkerSyntax
) -> str:
    """Return what the file of a package lacks."""
    if any(block.kind == "export" for block in code_blocks):
        return ""
    title = "" if code_blocks else f'"""Package {module_name}."""\n'
    return f"{title}\n{syntax.begin} export/{submodule}\n{syntax.end}\n"
