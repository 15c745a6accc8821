# SPDX-License-Identifier: Apache-2.0
"""Writes the reference of the C++ API and of the C ABI: one page for each header.

    python scripts/site/cpp_reference.py FOLDER

doxygen reads the headers, with their comments turned into ones that it understands (comments.py);
what it found becomes Markdown. Namespaces `detail` and `tether` are not part of the API.
Standard library only.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import textwrap
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import comments

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"
C_HEADERS = ("tvm/ffi/c_api.h", "tvm/ffi/extra/c_env_api.h")
# How parts of the library work inside: named in no client's code.
INTERNAL = re.compile(
    r"_details?\.h$|/map_(base|dense|layout|ops)\.h$|/(records|info_traits|class_functions|ref_count)\.h$|/internal/"
)
KINDS = (("define", "Macros"), ("enum", "Enumerations"), ("typedef", "Types"))
KINDS += (("variable", "Constants"), ("function", "Functions"))

OPTIONS = """
INPUT = {folder}/include
STRIP_FROM_PATH = {folder}/include
OUTPUT_DIRECTORY = {folder}
FILE_PATTERNS = *.h
RECURSIVE = YES
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
EXTRACT_ALL = YES
QUIET = YES
WARNINGS = NO
WARN_IF_INCOMPLETE_DOC = NO
HAVE_DOT = NO
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = "TVM_FFI_INLINE=inline" "TVM_FFI_DLL=" "TVM_FFI_EXTRA_CXX_API=" "TVM_FFI_COLD_CODE=" \
             "TVM_FFI_NO_INLINE=" "TVM_FFI_ENUM_BEGIN_(x)=enum x {{" "TVM_FFI_ENUM_END_(x)=}};" \
             "__cplusplus=201703" "TVM_FFI_DOXYGEN_MODE=1"
EXCLUDE_SYMBOLS = *detail* *tether* std*
"""


def run_doxygen(folder: Path) -> None:
    for header in sorted(INCLUDE.rglob("*.h")):
        copy = folder / "include" / header.relative_to(INCLUDE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(comments.filtered(header.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / "Doxyfile").write_text(OPTIONS.format(folder=folder), encoding="utf-8")
    subprocess.run(["doxygen", folder / "Doxyfile"], check=True, stderr=subprocess.DEVNULL)


def plain(element: ET.Element | None) -> str:
    """Return the text of an element on one line, as code."""
    words = "" if element is None else " ".join("".join(element.itertext()).split())
    return re.sub(r"< (.*?) >", r"<\1>", words)


def prose(element: ET.Element) -> str:
    """Return a description as Markdown."""

    def inline(node: ET.Element) -> str:
        parts = [escaped(node.text)]
        for child in node:
            if child.tag == "computeroutput":
                parts.append(f"`{''.join(child.itertext())}`")
            elif child.tag in ("verbatim", "programlisting"):
                parts.append(f"\n\n{fence(child)}\n\n")
            elif child.tag in ("itemizedlist", "orderedlist"):
                items = (inline(item).strip() for item in child)
                parts.append("\n\n" + "\n".join(f"- {' '.join(i.split())}" for i in items) + "\n\n")
            elif child.tag == "sp":
                parts.append(" ")
            else:
                parts.append(inline(child))
            parts.append(escaped(child.tail))
        return "".join(parts)

    paragraphs = (inline(child).strip() for child in element)
    return "\n\n".join(text for text in paragraphs if text)


def escaped(text: str | None) -> str:
    return re.sub(r"([<>*_\[\]])", r"\\\1", text or "")


def fence(node: ET.Element) -> str:
    for space in node.iter("sp"):
        space.text = " "
    lines = ["".join(line.itertext()) for line in node.iter("codeline")]
    code = "\n".join(lines) if lines else "".join(node.itertext())
    return f"```cpp\n{code.strip()}\n```"


def description(node: ET.Element) -> str:
    found = [
        prose(part)
        for name in ("briefdescription", "detaileddescription")
        if (part := node.find(name)) is not None
    ]
    return "\n\n".join(text for text in found if text)


def template(node: ET.Element) -> str:
    """Return the line `template <...>`, without the parameters that only restrict the others."""
    parameters = node.find("templateparamlist")
    if parameters is None:
        return ""
    words = []
    for parameter in parameters:
        text = f"{plain(parameter.find('type'))} {plain(parameter.find('declname'))}".strip()
        if "enable_if" not in plain(parameter.find("defval")) and "enable_if" not in text:
            words.append(text)
    return f"template <{', '.join(words)}>\n" if words else ""


def declaration(member: ET.Element) -> str:
    kind, name = member.get("kind"), plain(member.find("name"))
    if kind == "define":
        names = [plain(parameter) for parameter in member.findall("param")]
        return f"#define {name}({', '.join(names)})" if names else f"#define {name}"
    if kind == "enum":
        values = [
            f"  {plain(value.find('name'))} {plain(value.find('initializer'))}".rstrip() + ","
            for value in member.findall("enumvalue")
        ]
        return "\n".join([f"enum {name} {{", *values, "};"])
    kinds = "static " if member.get("static") == "yes" and kind == "function" else ""
    type_ = plain(member.find("type"))
    if kind == "typedef":
        text = plain(member.find("definition"))
        text = re.sub(r"\btvm::ffi::(\w+::)*(?=\w+ =|\w+$)", "", text)
    else:
        text = f"{type_} {name}{plain(member.find('argsstring'))}".strip()
        value = plain(member.find("initializer"))
        if kind == "variable" and value and len(value) < 60:
            text += f" {value}"
    return f"{template(member)}{kinds}{text};".replace("static static", "static")


def wrapped(code: str) -> str:
    """Break long parameter lists."""
    lines = []
    for line in code.splitlines():
        if len(line) > 96 and "(" in line and not line.startswith("#define"):
            head, _, rest = line.partition("(")
            lines.append(f"{head}(")
            lines += [f"    {part}" for part in re.split(r"(?<=,) (?![^<(]*[>)])", rest)]
        else:
            lines.append(line)
    return "\n".join(lines)


def member_lines(member: ET.Element) -> Iterator[str]:
    yield f"```cpp\n{wrapped(declaration(member))}\n```"
    text = description(member)
    if text:
        yield text


def hidden(member: ET.Element) -> bool:
    name = plain(member.find("name"))
    return (
        member.get("prot", "public") != "public"
        or name.endswith("_")
        or name.startswith(("_", "~", "@"))
        or (member.get("kind") == "define" and not name.startswith("TVM_FFI_"))
        or (member.get("kind") == "function" and name.startswith("TVM_FFI_"))
        or plain(member.find("argsstring")).endswith("=delete")
    )


class Header:
    """What one header declares."""

    def __init__(self) -> None:
        self.classes: list[ET.Element] = []
        self.members: list[ET.Element] = []


def read(xml: Path) -> dict[str, Header]:
    headers: dict[str, Header] = {}

    def header(node: ET.Element) -> Header:
        location = node.find("location")
        assert location is not None
        return headers.setdefault(location.get("file", ""), Header())

    seen = set()
    for path in sorted(xml.glob("*.xml")):
        compound = ET.parse(path).getroot().find("compounddef")
        if compound is None:
            continue
        if compound.get("kind") in ("class", "struct", "union"):
            header(compound).classes.append(compound)
        elif compound.get("kind") in ("namespace", "file"):
            for member in compound.iter("memberdef"):
                if member.get("id") not in seen and not hidden(member):
                    seen.add(member.get("id"))
                    header(member).members.append(member)
    return headers


def head_comment(header: Path) -> str:
    """Return what the header says about itself, code as a block of code."""
    lines = []
    for line in header.read_text(encoding="utf-8").splitlines():
        if not line.startswith(("//", "/*", " *")):
            break
        lines.append(re.sub(r"^(// ?|/\*+ ?| \*/| \* ?)", "", line).replace("*/", "").rstrip())
    lines = [line for line in lines if "SPDX" not in line]
    parts = re.split(r"\n\s*\n", "\n".join(lines).strip("\n"))
    out = []
    for part in parts:
        code = all(line.startswith("  ") for line in part.splitlines() if line)
        block = f"```cpp\n{textwrap.dedent(part)}\n```"
        out.append(block if code and part else escaped_outside_code(part))
    return "\n\n".join(out)


def escaped_outside_code(text: str) -> str:
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"([<>*])", r"\\\1", p) for p in pieces)


def short(compound: ET.Element) -> str:
    return re.sub(r"^tvm::ffi::", "", plain(compound.find("compoundname")))


def page(name: str, found: Header) -> str:
    out = [f"# `{name}`", head_comment(INCLUDE / name)]
    order = lambda node: int(node.find("location").get("line"))  # noqa: E731
    is_c = name in C_HEADERS
    for kind, title in KINDS:
        members = sorted((m for m in found.members if m.get("kind") == kind), key=order)
        if members and (is_c or kind != "function"):
            out.append(f"## {title}")
            for member in members:
                out += [f"### {plain(member.find('name'))}"] if is_c else []
                out += member_lines(member)
    for compound in sorted(found.classes, key=order):
        title = short(compound)
        specialised = "<" in title
        members = sorted((m for m in compound.iter("memberdef") if not hidden(m)), key=order)
        text = description(compound)
        if not members and not text:
            continue
        out.append(f"## {compound.get('kind')} `{title}`" if specialised else f"## {title}")
        bases = [plain(base) for base in compound.findall("basecompoundref")]
        public = [re.sub(r"^tvm::ffi::", "", base) for base in bases if "tether" not in base]
        out += [f"Derives from `{'`, `'.join(public)}`."] if public else []
        out += [text] if text else []
        for member in members:
            out += member_lines(member)
    functions = sorted((m for m in found.members if m.get("kind") == "function"), key=order)
    if functions and not is_c:
        out.append("## Functions")
        for member in functions:
            out += member_lines(member)
    return "\n\n".join(part for part in out if part) + "\n"


ABOUT = {
    "c": (
        "C ABI",
        "What every language links to, made from the headers. Layouts never change.",
    ),
    "cpp": (
        "C++",
        "Made from the headers. `<tvm/ffi/tvm_ffi.h>` includes most of the first three tables.",
    ),
}
FOLDERS = {".": "Values, objects, functions", "reflection": "Registering classes and functions"}
FOLDERS |= {"container": "Containers and tensors", "extra": "More, each included by itself"}
FOLDERS |= {"extra/cuda": "CUDA"}


def index_page(kind: str, folder: Path) -> str:
    title, about = ABOUT[kind]
    out = [f"# {title}", "", about]
    for name, heading in FOLDERS.items():
        pages = sorted((folder / name).glob("*.md"))
        if not pages:
            continue
        out += ["", f"## {heading}", "", "| header | what is in it |", "|---|---|"]
        for page in pages:
            path = page.relative_to(folder).with_suffix("").as_posix()
            said = head_comment(INCLUDE / f"tvm/ffi/{path}.h").split("\n\n")[0]
            first = re.split(r"(?<=\.)\s", " ".join(said.split()), maxsplit=1)[0]
            out.append(f"| [`{path}.h`]({kind}/{path}.md) | {first} |")
    return "\n".join(out) + "\n"


def main() -> None:
    target = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as scratch:
        run_doxygen(Path(scratch))
        headers = read(Path(scratch) / "xml")
    for header in sorted((INCLUDE / "tvm/ffi").rglob("*.h")):
        name = header.relative_to(INCLUDE).as_posix()
        if INTERNAL.search(name):
            continue
        # A header that only specialises templates has a page, too: what it says about itself.
        found = headers.get(name, Header())
        folder = "c" if name in C_HEADERS else "cpp"
        path = target / folder / name.removeprefix("tvm/ffi/").replace(".h", ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page(name, found), encoding="utf-8")
    for kind in ABOUT:
        (target / f"{kind}.md").write_text(index_page(kind, target / kind), encoding="utf-8")


if __name__ == "__main__":
    main()
