# SPDX-License-Identifier: Apache-2.0
"""The command ``tvm-ffi-stubgen``."""

from __future__ import annotations

import argparse
import ctypes
import importlib
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import consts as C
from .file_utils import (
    CodeBlock,
    FileInfo,
    blocks_of,
    collect_files,
    read_files,
    syntax_for,
    text_of,
)
from .generator import Generator, generator_names, get_generator
from .layout import classify, write_coverage_report
from .lib_state import (
    collect_global_funcs,
    collect_type_keys,
    object_info_from_type_key,
    toposort_objects,
)
from .utils import FuncInfo, InitConfig, ObjectInfo, Options

__all__ = [
    "CodeBlock",
    "FileInfo",
    "FuncInfo",
    "InitConfig",
    "Options",
    "classify",
    "collect_files",
    "collect_global_funcs",
    "collect_type_keys",
    "generator_names",
    "get_generator",
    "object_info_from_type_key",
    "syntax_for",
    "toposort_objects",
    "write_coverage_report",
]


def _say(colour: str, text: str) -> None:
    print(f"{colour}{text}{C.TERM_RESET}")


def _report_failure(file: FileInfo, error: Exception) -> None:
    _say(C.TERM_RED, f'[Failed] File "{file.path}": {text_of(error)}')


def __main__() -> int:
    """Run the command; returns the exit status."""
    opt = _parse_args()
    for module in opt.imports:
        try:
            importlib.import_module(module)
        except (Exception, SystemExit) as error:
            text = f"[Error] --imports: {module}: {error}"
            missing = error.name if isinstance(error, ModuleNotFoundError) else None
            if missing is None or not f"{module}.".startswith(f"{missing}."):
                text = f"{traceback.format_exc().rstrip()}\n{text}"  # what is wrong in the module
            _say(C.TERM_RED, text)
            return 2
    try:
        libraries = [ctypes.CDLL(path) for path in opt.dlls]
    except OSError as error:
        _say(C.TERM_RED, f"[Error] --dlls: {error}")
        return 2
    try:
        return _run(opt)
    except Exception as error:  # 1 would say that a file is out of date
        text = "" if isinstance(error, ValueError) else f"{traceback.format_exc().rstrip()}\n"
        _say(C.TERM_RED, f"{text}[Error] {error}")
        return 2
    finally:
        del libraries  # what they registered was needed until here


def _run(opt: Options) -> int:
    generator = get_generator(opt.target)
    if opt.init is not None and opt.files and not opt.dry_run:
        # New files may need a new folder.
        target = Path(opt.files[0])
        if target.suffix.lower() not in generator.source_exts:
            target.mkdir(parents=True, exist_ok=True)
    files, failures = read_files([Path(file) for file in opt.files], generator.source_exts)
    global_funcs = collect_global_funcs() if opt.files else {}
    ty_map = generator.default_ty_map()

    failed_files = []
    for file in files:
        try:
            _stage_1(file, ty_map)
        except Exception as error:
            failures += 1
            failed_files.append(file)
            _report_failure(file, error)
    files = [file for file in files if file not in failed_files]

    generated: set[str] = set()
    init_path = None
    if opt.init is not None and opt.files and Path(opt.files[0]).exists() and not opt.dry_run:
        init_path = Path(opt.files[0]).resolve()
        init_path = init_path.parent if init_path.is_file() else init_path
        generated = _stage_2(files, ty_map, opt.init, init_path, global_funcs, generator)

    before = {file.path: generator.check_view(file.code_blocks) for file in files}
    failures += _roll_out_prefixes(files, generator, ty_map)
    declared: dict[str, Path] = {}
    for file in files:
        for block in file.code_blocks:
            if block.kind == "object":
                declared.setdefault(block.param, file.path)

    stale = False
    for file in files:
        if opt.verbose:
            _say(C.TERM_CYAN, f"[File] {file.path}")
        try:
            changed = _stage_3(file, opt, ty_map, global_funcs, generator, declared)
        except Exception as error:
            failures += 1
            _report_failure(file, error)
            continue
        if opt.check and changed and generator.check_view(file.code_blocks) != before[file.path]:
            stale = True
            _say(C.TERM_YELLOW, f"[Stale] {file.path}")

    if generated and init_path is not None:
        generator.finalize_init(init_path, generated)
    if opt.coverage_out is not None:
        keys = [key for group in collect_type_keys().values() for key in group]
        infos = {key: object_info_from_type_key(key) for key in keys}
        for info in list(infos.values()):
            for key in info.ancestors:
                infos.setdefault(key, object_info_from_type_key(key))
        try:
            write_coverage_report(opt.coverage_out, classify(infos.values()))
        except OSError as error:
            _say(C.TERM_RED, f"[Error] --coverage-out: {error}")
            failures += 1
    return 2 if failures else int(stale)


def _stage_1(file: FileInfo, ty_map: dict[str, str]) -> None:
    """Collect the names that a file gives to types."""
    for block in file.code_blocks:
        if block.kind != "directive" or block.param[0] != "ty-map":
            continue
        parts = [part.strip() for part in block.param[1].split("->")]
        if len(parts) != 2 or not all(parts):
            raise ValueError(
                f"Invalid ty_map format at line {block.lineno_start}. Example: `A.B -> C.D`"
            )
        ty_map[parts[0]] = parts[1]


def _directives(files: list[FileInfo], name: str) -> set[str]:
    return {
        block.param[1]
        for file in files
        for block in file.code_blocks
        if block.kind == "directive" and block.param[0] == name
    }


def _stage_2(
    files: list[FileInfo],
    ty_map: dict[str, str],
    init_cfg: InitConfig,
    init_path: Path,
    global_funcs: dict[str, list[FuncInfo]],
    generator: Generator,
) -> set[str]:
    """Make or extend files for what is registered under a prefix and in no file yet."""
    root = init_cfg.prefix.rstrip(".")
    blocks = [block for file in files for block in file.code_blocks]
    known_prefixes = {block.param[0] for block in blocks if block.kind == "global"}
    known_types = {block.param for block in blocks if block.kind == "object"}
    known_types |= _directives(files, "skip")
    types = collect_type_keys()
    prefixes = [
        prefix
        for prefix in sorted({*types, *global_funcs})
        if prefix == root or prefix.startswith(f"{root}.")
    ]
    if not prefixes:
        print(f"[Warning] --init-prefix: nothing is registered under `{root}`", file=sys.stderr)
    found: dict[str, list[str]] = {}
    for prefix in prefixes:
        functions = [] if prefix in known_prefixes else global_funcs.get(prefix, [])
        keys = [
            key
            for key in sorted(types.get(prefix, ()))
            if key not in known_types and not generator.is_builtin(key)
        ]
        keys = _nameable(keys, generator)
        if (functions or keys) and _can_place(prefix, types, generator):
            found[prefix] = keys
    infos = _arranged(found, files, ty_map, root, init_path, generator)
    for prefix in found:
        directory = init_path.joinpath(*prefix.split("."))
        directory.mkdir(parents=True, exist_ok=True)
        api = _opened(directory / generator.api_filename(), files, generator)
        _append(
            api,
            generator.generate_api_file(
                api.code_blocks, ty_map, prefix, infos[prefix], init_cfg, prefix == root
            ),
        )
        package = _opened(directory / generator.init_filename(), files, generator)
        submodule = Path(generator.api_filename()).stem
        _append(package, generator.generate_init_file(package.code_blocks, prefix, submodule))
    return set(found)


def _can_place(prefix: str, types: dict[str, list[str]], generator: Generator) -> bool:
    """Return whether there can be a module for a prefix, and say if not."""
    parts = prefix.split(".")
    outer = [".".join(parts[:i]) for i in range(1, len(parts) + 1)]
    taken = [key for key in outer if key in types.get(key.rpartition(".")[0], ())]
    if not generator.can_place(prefix):
        text = f"[Skipped] `{prefix}` cannot be the name of a module in {generator.name}"
    elif taken and generator.one_namespace:
        text = f"[Skipped] `{prefix}`: in {generator.name} `{taken[0]}` is already a type"
    else:
        return True
    _say(C.TERM_YELLOW, text)
    return False


def _arranged(
    new: dict[str, list[str]],
    files: list[FileInfo],
    ty_map: dict[str, str],
    root: str,
    init_path: Path,
    generator: Generator,
) -> dict[str, list[ObjectInfo]]:
    """Return the new types of each prefix, parents first, or as the generator wants it."""
    arrange = getattr(generator, "arrange", None)
    if arrange is None:
        return {prefix: toposort_objects(keys) for prefix, keys in new.items()}
    api = generator.api_filename()
    folders = {file.path.parent: file for file in files if file.path.name == api}
    modules, there = {}, set()
    for prefix in sorted({*new, *(_prefix_of(folder, init_path) for folder in folders)}):
        file = folders.get(init_path.joinpath(*prefix.split(".")))
        blocks = file.code_blocks if file is not None else []
        keys = [block.param for block in blocks if block.kind == "object"]
        keys = [k for k in keys if k.rpartition(".")[0] == prefix and _is_registered(k)]
        modules[prefix] = toposort_objects(keys) if keys else []
        there |= {info.type_key for info in modules[prefix]}
        if prefix in new:
            modules[prefix] = [*modules[prefix], *toposort_objects(new[prefix])]
    names = {key for keys in new.values() for key in keys}
    ordered = arrange(modules, names, ty_map, root)
    return {
        prefix: [info for info in ordered[prefix] if info.type_key not in there] for prefix in new
    }


def _prefix_of(folder: Path, init_path: Path) -> str:
    return ".".join(folder.relative_to(init_path).parts) if init_path in folder.parents else ""


def _nameable(keys: list[str], generator: Generator) -> list[str]:
    """Return the types that can have a name, and say which cannot."""
    for key in keys:
        if not generator.can_name(key):
            text = f"[Skipped] `{key}` cannot be the name of a type in {generator.name}"
            _say(C.TERM_YELLOW, text)
    return [key for key in keys if generator.can_name(key)]


def _opened(path: Path, files: list[FileInfo], generator: Generator) -> FileInfo:
    """Return the file of the run, which it becomes part of if it is not."""
    path = path.resolve()
    for file in files:
        if file.path == path:
            return file
    path.touch()
    file_or_none = FileInfo.from_file(path, include_empty=True, syntax=generator.syntax)
    if file_or_none is None:
        raise ValueError(f"{path} asks to be skipped, but something has to be added to it")
    files.append(file_or_none)
    return file_or_none


def _append(file: FileInfo, text: str) -> None:
    if text:
        with file.path.open("a", encoding="utf-8") as stream:
            stream.write(text)
    file.reload()


def _roll_out_prefixes(
    files: list[FileInfo], generator: Generator, ty_map: dict[str, str] | None = None
) -> int:
    """Add and remove ``object`` blocks in files that ask for all types of a prefix.

    Returns how many files failed.
    """
    types: dict[str, list[str]] | None = None
    owners: dict[str, Path] = {}
    failures = 0
    for file in files:
        asked = [
            block
            for block in file.code_blocks
            if block.kind == "directive" and block.param[0] == "prefix"
        ]
        if not asked:
            continue
        prefix = asked[0].param[1].rstrip(".")
        problem = None
        if len(asked) > 1:
            problem = f"more than one `prefix` directive (line {asked[1].lineno_start})"
        elif prefix in owners:
            problem = f"prefix `{prefix}` is already declared by {owners[prefix]}"
        if problem is not None:
            failures += 1
            _say(C.TERM_RED, f'[Failed] File "{file.path}": {problem}')
            continue
        owners[prefix] = file.path
        if types is None:
            types = collect_type_keys()
        _remove_unregistered(file, prefix, set(types.get(prefix, ())))
        if prefix not in types:
            _say(C.TERM_YELLOW, f"[Skipped] No registered object under prefix `{prefix}`")
            continue
        known = {
            block.param for other in files for block in other.code_blocks if block.kind == "object"
        }
        known |= _directives([file], "skip")
        keys = [k for k in types[prefix] if k not in known and not generator.is_builtin(k)]
        infos = toposort_objects(_nameable(keys, generator))
        classes = getattr(generator, "generate_classes", None)
        if classes is None:
            _insert_blocks(file, asked[0], [str(info.type_key) for info in infos])
            continue
        # The blocks of this language are parts of classes, which come last in the file.
        _insert_blocks(file, asked[0], [])
        text = classes(file.code_blocks, ty_map or {}, infos)
        file.code_blocks += blocks_of(text.splitlines(), file.syntax)
    return failures


def _remove_unregistered(file: FileInfo, prefix: str, registered: set[str]) -> None:
    for block in list(file.code_blocks):
        if (
            block.kind != "object"
            or block.param.rpartition(".")[0] != prefix
            or block.param in registered
        ):
            continue
        at = next(i for i, other in enumerate(file.code_blocks) if other is block)
        in_class = block.indent > 0 and file.syntax == C.PYTHON_SYNTAX
        begin = _begin_of_class(file.code_blocks, at) if in_class else at
        if begin is None:
            continue  # a class with more in it; `_stage_3` asks the user to delete it
        where = f"`object/{block.param}` (line {block.lineno_start})"
        text = f'[Removed] File "{file.path}": {where}: the type is no longer registered'
        _say(C.TERM_YELLOW, text)
        if begin and _is_blank(file.code_blocks[begin - 1]):
            begin -= 1
        del file.code_blocks[begin : at + 1]


def _is_blank(block: CodeBlock) -> bool:
    return block.kind is None and not block.lines[0].strip()


def _begin_of_class(blocks: list[CodeBlock], at: int) -> int | None:
    """Return where the class around a block begins, if it has nothing but the block and a text.

    Without the block the rest of the class would still ask for the type, and fail.
    """
    after = next((block for block in blocks[at + 1 :] if not _is_blank(block)), None)
    if after is not None and after.indent > 0:
        return None
    index = at - 1
    while index >= 0 and blocks[index].kind is None:
        text = blocks[index].lines[0].strip()
        if text.startswith("class "):
            break
        if text and not (len(text) > 5 and text[:3] == text[-3:] == '"""'):
            return None
        index -= 1
    else:
        return None
    while index and blocks[index - 1].kind is None and blocks[index - 1].lines[0].startswith("@"):
        index -= 1
    above = blocks[index - 1] if index else None
    if above is not None and above.kind == "directive" and above.param[0] == "import-object":
        # The import of the parent, unless only this line says what others need.
        alias = above.param[1].rpartition(";")[2].strip()
        others = [*blocks[: index - 1], *blocks[at + 1 :]]
        plain = [block.lines[0] for block in others if block.kind is None]
        if any(other.lines == above.lines for other in others) or all(
            alias not in line for line in [*plain, "@_FFI_REG_OBJ"]
        ):
            index -= 1
    return index


def _insert_blocks(file: FileInfo, directive: CodeBlock, keys: list[str]) -> None:
    syntax, blocks = file.syntax, file.code_blocks

    def empty(kind: Any, param: str, text: str) -> list[CodeBlock]:
        lineno = directive.lineno_start
        lines = [f"{syntax.begin} {text}", syntax.end]
        return [
            CodeBlock(None, "", lineno, lineno, [""]),
            CodeBlock(kind, param, lineno, lineno, lines),
        ]

    if not any(block.kind == "import-section" for block in blocks):
        at = next(i for i, block in enumerate(blocks) if block is directive) + 1
        blocks[at:at] = empty("import-section", "", "import-section")
    if not keys:
        return
    at = 1 + max(i for i, block in enumerate(blocks) if block.kind in ("object", "import-section"))
    blocks[at:at] = [block for key in keys for block in empty("object", key, f"object/{key}")]


def _is_registered(type_key: str) -> bool:
    from ..core import _object_type_key_to_index

    return _object_type_key_to_index(type_key) is not None


def _stage_3(
    file: FileInfo,
    opt: Options,
    ty_map: dict[str, str],
    global_funcs: dict[str, list[FuncInfo]],
    generator: Generator,
    declared: Mapping[str, Path] | None = None,
) -> bool:
    """Write the blocks of a file; returns whether something changed."""
    by_kind: dict[str | None, list[CodeBlock]] = {}
    for block in file.code_blocks:
        by_kind.setdefault(block.kind, []).append(block)
    objects = by_kind.get("object", [])
    if declared is None:
        declared = {block.param: file.path for block in objects}

    imports = generator.new_imports()
    generator.reserve(imports, [block.param for block in objects])
    for block in by_kind.get("directive", []):
        name, payload = block.param
        if name in C.PIPELINE_DIRECTIVE_KINDS:
            continue
        if name not in generator.directive_kinds:
            raise ValueError(f"Unknown directive `{name}` at line {block.lineno_start}")
        generator.add_directive(imports, name, payload, block.lineno_start)

    names: set[str] = set()
    for block in by_kind.get("global", []):
        functions = global_funcs.get(block.param[0], [])
        if not functions:
            del block.lines[1:-1]  # what was registered before is not there any more
        generator.generate_global_funcs_block(block, functions, ty_map, imports, opt)
        names |= {function.schema.name for function in functions}

    defined: set[str] = set()
    lost = []
    for block in objects:
        try:
            info = object_info_from_type_key(block.param)
        except Exception:
            if _is_registered(block.param):
                raise
            lost.append(block)
            continue
        generator.generate_object_block(block, ty_map, imports, opt, info, declared)
        defined.add(generator.canonical_type_name(ty_map.get(block.param, block.param)))

    for block in by_kind.get("import-section", [])[:1]:
        generator.generate_import_section_block(block, imports, opt, defined)
    for block in by_kind.get("__all__", [])[:1]:
        exported = names | defined | generator.extra_export_names(imports)
        generator.generate_all_block(block, exported, opt)
    for block in by_kind.get("export", []):
        generator.generate_export_block(block)
    changed = file.update(opt.verbose, opt.dry_run)
    if lost:
        where = ", ".join(f"`object/{b.param}` (line {b.lineno_start})" for b in lost)
        raise ValueError(f"{where}: the type is no longer registered; delete the block")
    return changed


def _parse_args() -> Options:
    def items(text: str) -> list[str]:
        return [item for part in text.split(";") if (item := part.strip())]

    parser = argparse.ArgumentParser(
        prog="tvm-ffi-stubgen",
        description="Fill marked regions of source files with type hints of what is registered.",
    )
    parser.add_argument("files", nargs="*", metavar="PATH", help="files, or folders to search")
    parser.add_argument("--imports", default="", help="modules to import first: a;b.c")
    parser.add_argument("--dlls", default="", help="libraries to load first: a.so;b.so")
    parser.add_argument("--init-pypkg", default="", help="new files: name of the distribution")
    parser.add_argument("--init-lib", default="", help="new files: name of the library")
    parser.add_argument("--init-prefix", default="", help="new files: prefix of the names")
    parser.add_argument("--indent", type=int, default=4, help="indent in Python blocks")
    parser.add_argument("--target", choices=generator_names(), default="python", help="language")
    parser.add_argument("--verbose", action="store_true", help="show what changes")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with 1 if a file is out of date"
    )
    parser.add_argument("--coverage-out", metavar="JSON", help="write which layouts are known")
    asked = parser.parse_args()
    if asked.indent < 1:
        parser.error(f"--indent must be a positive number, got {asked.indent}")
    for name in ("init_pypkg", "init_lib"):
        value = getattr(asked, name)
        if not value.isprintable() or set(value) & set('"\\'):
            option = "--" + name.replace("_", "-")
            parser.error(f"{option} must be a name without quotes and backslashes, got {value!r}")
    init = (asked.init_pypkg, asked.init_lib, asked.init_prefix)
    if any(init) and not all(init):
        parser.error("--init-pypkg, --init-lib, and --init-prefix must be provided together")
    if any(init) and asked.check:
        parser.error("--check cannot be combined with --init-* flags")
    if not asked.files and asked.coverage_out is None:
        parser.print_help()
        sys.exit(1)
    return Options(
        imports=items(asked.imports),
        dlls=items(asked.dlls),
        init=InitConfig(*init) if all(init) else None,
        indent=asked.indent,
        files=asked.files,
        verbose=asked.verbose,
        dry_run=asked.dry_run or asked.check,
        check=asked.check,
        target=asked.target,
        coverage_out=asked.coverage_out,
    )


if __name__ == "__main__":
    sys.exit(__main__())
