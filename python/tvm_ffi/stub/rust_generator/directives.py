# SPDX-License-Identifier: Apache-2.0
"""One-line directives of Rust files."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_WORD = r"[^\s]+"
_FIELD = r"[^\s.]+(?:\.[^\s.]+)+"
_ENUM = re.compile(
    rf"({_FIELD})\s*->\s*([A-Za-z_]\w*)\s*\(\s*([iu](?:8|16|32|64))\s*\)\s*(?:\{{(.*)\}})?"
)
_MEMBER = re.compile(r"([A-Za-z_]\w*)\s*=\s*(-?\d+)")


@dataclass(frozen=True)
class EnumSpec:
    """An integer type with named values."""

    name: str
    repr: str
    members: tuple[tuple[str, int], ...]


_FIELD_FORM = "<type_key>.<field> -> <RustType>"
_FORMS = {
    "field": _FIELD_FORM,
    "upcast": "<type_key> -> <RustType>",
    "nullable": "<type_key>.<field>",
    "opaque": "<type_key>",
    "custom-new": "<type_key>",
    "enum": "<type_key>.<field> -> Name(i32) { A=0, B=1 }",
}


@dataclass
class Directives:
    """What the directives of a file say."""

    field_types: dict[str, str] = field(default_factory=dict)
    nullable: set[str] = field(default_factory=set)
    enums: dict[str, EnumSpec] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)
    upcasts: dict[str, list[str]] = field(default_factory=dict)
    custom_new: set[str] = field(default_factory=set)

    def add(self, name: str, payload: str, lineno: int) -> None:
        """Take the directive in a line."""
        if name not in _FORMS:
            raise ValueError(f"Unknown directive `{name}` at line {lineno}")
        if not self._parsed(name, payload.strip()):
            raise ValueError(
                f"Invalid `{name}` directive at line {lineno}. Expected `{_FORMS[name]}`"
            )

    def _parsed(self, name: str, payload: str) -> bool:
        if name == "enum":
            return self._parsed_enum(payload)
        if name in ("field", "upcast"):
            source = _FIELD if name == "field" else _WORD
            match = re.fullmatch(rf"({source})\s*->\s*({_WORD}(?:\s+{_WORD})*)", payload)
            if match is None or "->" in match[2]:
                return False
            if name == "field":
                self.field_types[match[1]] = match[2]
            else:
                self.upcasts.setdefault(match[1], []).append(match[2])
            return True
        if re.fullmatch(_FIELD if name == "nullable" else _WORD, payload) is None:
            return False
        keys = {"nullable": self.nullable, "opaque": self.opaque, "custom-new": self.custom_new}
        keys[name].add(payload)
        return True

    def _parsed_enum(self, payload: str) -> bool:
        match = _ENUM.fullmatch(payload)
        if match is None:
            return False
        members = []
        for item in filter(None, map(str.strip, (match[4] or "").split(","))):
            member = _MEMBER.fullmatch(item)
            if member is None:
                return False
            members.append((member[1], int(member[2])))
        self.enums[match[1]] = EnumSpec(match[2], match[3], tuple(members))
        return True
