# SPDX-License-Identifier: Apache-2.0
"""Can the bytes of a type be written down in another language?

A type is *complete* if its reflected fields fill its own bytes, apart from gaps that alignment
makes, and its parent is complete. Anything else is *opaque*: its size and fields are not all known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from .utils import NamedTypeSchema, ObjectInfo

OBJECT_HEADER_ALIGNMENT = 8

OpaqueReason = Literal[
    "no-mirror",
    "layout-unknown",
    "parent-opaque",
    "field-overlap",
    "uncovered-bytes",
    "unrenderable-field",
    "by-directive",
]


def align_up(value: int, alignment: int) -> int:
    """Return the next multiple of `alignment`."""
    return -(-value // alignment) * alignment


@dataclass(frozen=True)
class ByteRange:
    """Bytes from `start` up to, not including, `end`."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"[{self.start}, {self.end})"

    def to_json_obj(self) -> list[int]:
        """Return the range as JSON."""
        return [self.start, self.end]


@dataclass(frozen=True)
class FieldBytes:
    """Where a field is."""

    name: str
    offset: int
    size: int
    alignment: int

    @property
    def end(self) -> int:
        """The first byte after the field."""
        return self.offset + self.size

    def to_json_obj(self) -> dict[str, Any]:
        """Return the field as JSON."""
        return {
            "name": self.name,
            "offset": self.offset,
            "size": self.size,
            "alignment": self.alignment,
        }


@dataclass
class Verdict:
    """Whether a type is complete, why, and the bytes that show it."""

    type_key: str
    verdict: Literal["complete", "opaque"]
    reason: OpaqueReason | None
    detail: str
    parent_type_key: str | None
    ancestors: list[str]
    total_size: int | None
    is_final: bool | None
    alignment: int | None = None
    own_bytes: ByteRange | None = None
    fields: list[FieldBytes] = field(default_factory=list)
    uncovered: list[ByteRange] = field(default_factory=list)
    padding: list[ByteRange] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether all bytes are known."""
        return self.verdict == "complete"

    def to_json_obj(self) -> dict[str, Any]:
        """Return the entry of the report."""
        return {
            "verdict": self.verdict,
            "reason": self.reason,
            "detail": self.detail,
            "parent": self.parent_type_key,
            "ancestors": list(self.ancestors),
            "total_size": self.total_size,
            "is_final": self.is_final,
            "own_bytes": None if self.own_bytes is None else self.own_bytes.to_json_obj(),
            "fields": [item.to_json_obj() for item in self.fields],
            "uncovered": [item.to_json_obj() for item in self.uncovered],
            "padding": [item.to_json_obj() for item in self.padding],
        }

    def _opaque(self, reason: OpaqueReason, detail: str) -> Verdict:
        self.verdict, self.reason, self.detail = "opaque", reason, detail
        return self


def _ranges(items: Iterable[ByteRange]) -> str:
    return ", ".join(map(str, items))


def _judge(
    info: ObjectInfo,
    parent: Verdict | None,
    forced_opaque: Collection[str],
    unmirrored: Collection[str],
    field_renderable: Callable[[NamedTypeSchema], bool] | None,
) -> Verdict:
    key = info.type_key
    assert key is not None, "a type to classify has a key"
    result = Verdict(
        type_key=key,
        verdict="complete",
        reason=None,
        detail="",
        parent_type_key=info.parent_type_key,
        ancestors=list(info.ancestors),
        total_size=info.total_size,
        is_final=info.is_final,
    )
    if key in unmirrored:
        return result._opaque(
            "no-mirror", "its bytes are owned by the target's runtime and never mirrored"
        )
    size = info.total_size
    if size is None:
        return result._opaque("layout-unknown", "no metadata of its own: total_size is unknown")
    for item in info.fields:
        if item.size is None or item.alignment is None or item.offset is None:
            return result._opaque(
                "layout-unknown", f"field {item.name!r} carries no native layout facts"
            )
        result.fields.append(FieldBytes(item.name, item.offset, item.size, item.alignment))
    result.fields.sort(key=lambda item: item.offset)
    if parent is None:
        result.alignment = OBJECT_HEADER_ALIGNMENT
        result.own_bytes = ByteRange(size, size)
        result.detail = f"object header [0, {size}): owned by the C ABI"
        return result
    if not parent.is_complete:
        return result._opaque(
            "parent-opaque", f"parent {parent.type_key!r} is opaque ({parent.reason})"
        )
    assert parent.total_size is not None and parent.alignment is not None
    result.own_bytes = ByteRange(parent.total_size, size)
    result.alignment = max([parent.alignment, *(item.alignment for item in result.fields)])
    overlap = _fill(result, result.own_bytes, result.alignment)
    if overlap is not None:
        return result._opaque("field-overlap", overlap)
    if result.uncovered:
        return result._opaque(
            "uncovered-bytes",
            f"bytes {_ranges(result.uncovered)} of {result.own_bytes} "
            "are not accounted for by reflected fields",
        )
    for item in info.fields if field_renderable is not None else ():
        if not field_renderable(item):  # type: ignore[misc]
            return result._opaque(
                "unrenderable-field", f"field {item.name!r} ({item.repr()}) has no native mirror"
            )
    if key in forced_opaque:
        return result._opaque(
            "by-directive", "vetoed by directive although the layout is reproducible"
        )
    result.detail = f"reflected fields fill {result.own_bytes} exactly"
    if result.padding:
        result.detail += f" (alignment padding {_ranges(result.padding)})"
    return result


def _fill(result: Verdict, own: ByteRange, alignment: int) -> str | None:
    """Note the gaps between the fields; returns what is wrong if fields overlap."""
    overlap = None
    cursor = own.start

    def gap_up_to(end: int, aligned: int) -> None:
        if end > cursor:
            gaps = result.padding if align_up(cursor, aligned) == end else result.uncovered
            gaps.append(ByteRange(cursor, end))

    for item in result.fields:
        if item.offset < cursor:
            at = ByteRange(item.offset, item.end)
            overlap = overlap or f"field {item.name!r} at {at} starts before byte {cursor}"
        else:
            gap_up_to(item.offset, item.alignment)
        cursor = max(cursor, item.end)
    if cursor > own.end:
        overlap = overlap or f"fields extend to byte {cursor}, past total_size {own.end}"
    else:
        gap_up_to(own.end, alignment)
    return overlap


def classify(
    infos: Iterable[ObjectInfo],
    *,
    forced_opaque: Collection[str] = frozenset(),
    unmirrored: Collection[str] = frozenset(),
    field_renderable: Callable[[NamedTypeSchema], bool] | None = None,
) -> dict[str, Verdict]:
    """Return the verdict of each type, by key. All ancestors must be among `infos`."""
    by_key = {str(info.type_key): info for info in infos}
    verdicts: dict[str, Verdict] = {}

    def verdict_of(key: str) -> Verdict:
        if key not in verdicts:
            info = by_key.get(key)
            if info is None:
                raise KeyError(f"Ancestor {key!r} is not among the types to classify")
            parent = None if info.parent_type_key is None else verdict_of(info.parent_type_key)
            verdicts[key] = _judge(info, parent, forced_opaque, unmirrored, field_renderable)
        return verdicts[key]

    for key in by_key:
        verdict_of(key)
    return verdicts


def coverage_report(verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    """Return the verdicts as JSON, sorted by key."""
    return {key: verdicts[key].to_json_obj() for key in sorted(verdicts)}


def write_coverage_report(path: str | Path, verdicts: Mapping[str, Verdict]) -> None:
    """Write the report to a file."""
    Path(path).write_text(json.dumps(coverage_report(verdicts), indent=2) + "\n", "utf-8")
