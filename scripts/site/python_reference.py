# SPDX-License-Identifier: Apache-2.0
"""Writes the reference of the Python package, a page for each module, and of its commands.

    PYTHONPATH=PACKAGE python scripts/site/python_reference.py FOLDER

It imports the package, so that what is written in C++ is shown like the rest.
"""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

MODULES = [
    "tvm_ffi",
    "tvm_ffi.core",
    "tvm_ffi.tying",
    "tvm_ffi.inspect",
    "tvm_ffi.container",
    "tvm_ffi.dataclasses",
    "tvm_ffi.registry",
    "tvm_ffi.module",
    "tvm_ffi.error",
    "tvm_ffi.structural",
    "tvm_ffi.serialization",
    "tvm_ffi.travel",
    "tvm_ffi.access_path",
    "tvm_ffi.stream",
    "tvm_ffi.cpp",
    "tvm_ffi.libinfo",
    "tvm_ffi.utils",
]
# What core holds for the package itself has an underscore or is named here.
CORE = ["Bytes", "ByteArrayArg", "DataType", "Error", "String", "TypeField", "TypeInfo"]
CORE += ["TypeMethod", "TypeSchema", "MethodDescriptor", "Initializer", "OpaquePyObject"]
CORE += ["CAny", "CObject", "ObjectRValueRef", "PyNativeObject", "object_repr"]
COMMANDS = {
    "python -m tvm_ffi.new": "Writes a project to start from.",
    "python -m tvm_ffi.doctor": "Says whether an installation works, and which clients it has.",
    "python -m tvm_ffi.inspect": "Runs a program and writes the page of its objects.",
    "tvm-ffi-config": "Prints what a compiler needs; the same as `python -m tvm_ffi.config`.",
    "tvm-ffi-stubgen": "Writes type hints; the same as `python -m tvm_ffi.stub.cli`.",
    "python -m tvm_ffi.utils.embed_cubin": "Puts GPU code into an object file.",
}
SAME_AS = {"tvm-ffi-config": "tvm_ffi.config", "tvm-ffi-stubgen": "tvm_ffi.stub.cli"}


def markdown(docstring: object) -> str:
    """Return a docstring with its examples as blocks of code."""
    text = docstring if isinstance(docstring, str) else ""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text))
    out: list[str] = []
    for text in paragraphs:
        if text.lstrip().startswith(">>>"):
            out.append(f"```pycon\n{inspect.cleandoc(text)}\n```")
        elif text.startswith(("    ", "====")):
            out.append(f"```text\n{inspect.cleandoc(text)}\n```")
        else:
            out.append(re.sub(r"(?<!`)<(?=\w)", r"\\<", text))
    # What an example prints may have an empty line; it is still one block.
    return "\n\n".join(out).replace("```\n\n```pycon\n", "\n")


def signature(value: Any) -> str:
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return "(...)" if callable(value) and not inspect.isclass(value) else ""
    text = re.sub(r": '([^']*)'", r": \1", text)
    text = re.sub(r"-> '([^']*)'", r"-> \1", text)
    return re.sub(r"<object object at 0x\w+>|<\w+ object at 0x\w+>", "...", text)


def members(kind: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(kind).items():
        own = not name.startswith("_") and not isinstance(value, type)
        if (
            own
            and isinstance(getattr(value, "__doc__", None), str)
            and not isinstance(value, (int, str, tuple))
        ):
            yield name, value


def entry(name: str, value: Any) -> Iterator[str]:
    yield f"## {name}"
    if inspect.isclass(value):
        yield f"```python\nclass {name}{signature(value)}\n```"
        yield markdown(value.__doc__)
        for member, what in members(value):
            function = what.__func__ if isinstance(what, (staticmethod, classmethod)) else what
            is_property = isinstance(function, property) or inspect.isdatadescriptor(function)
            yield f"### {name}.{member}"
            if not is_property:
                yield f"```python\n{member}{signature(function)}\n```"
            yield markdown(function.__doc__)
    elif callable(value):
        yield f"```python\n{name}{signature(value)}\n```"
        yield markdown(value.__doc__)
    elif isinstance(value, ModuleType):
        yield f"A module: `{value.__name__}`. " + markdown(value.__doc__).split("\n\n")[0]
    else:
        yield f"A value of type `{type(value).__name__}`."


def module_page(module_name: str) -> str:
    module = importlib.import_module(module_name)
    names = CORE if module_name == "tvm_ffi.core" else getattr(module, "__all__", None)
    if names is None:
        own = (n for n, v in vars(module).items() if getattr(v, "__module__", "") == module_name)
        names = [name for name in own if inspect.isroutine(getattr(module, name))]
    out = [f"# `{module_name}`", markdown(module.__doc__)]
    for name in sorted(names, key=str.lower):
        value = getattr(module, name, None)
        if value is not None and not name.startswith("_"):
            out += entry(name, value)
    return "\n\n".join(part for part in out if part) + "\n"


def commands_page() -> str:
    out = ["# Command lines", "What each command says with `--help`."]
    for command, purpose in COMMANDS.items():
        module = SAME_AS.get(command) or command.split()[-1]
        done = subprocess.run(
            [sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True
        )
        used = done.stdout.strip().replace(f"{Path(sys.executable).name} -m {module}", command)
        out += [f"## {command}", purpose, f"```text\n{used}\n```"]
    return "\n\n".join(out) + "\n"


def index_page() -> str:
    out = ["# Python", "Made from the docstrings. Every example is run by the tests.", ""]
    out += ["| module | what it is for |", "|---|---|"]
    for name in MODULES:
        about = markdown(importlib.import_module(name).__doc__).split("\n\n")[0]
        out.append(f"| [`{name}`](python/{name}.md) | {' '.join(about.split())} |")
    return "\n".join(["", *out]).strip() + "\n"


def main() -> None:
    target = Path(sys.argv[1])
    (target / "python").mkdir(parents=True, exist_ok=True)
    (target / "python.md").write_text(index_page(), encoding="utf-8")
    for name in MODULES:
        page = target / "python" / f"{name}.md"
        page.write_text(module_page(name), encoding="utf-8")
    (target / "commands.md").write_text(commands_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
