# SPDX-License-Identifier: Apache-2.0
"""Markers, colours and names that both generators use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class MarkerSyntax:
    """How a marker looks in a language, given the token that begins a comment."""

    comment: str

    def directive(self, name: str) -> str:
        """Return how a one-line directive begins."""
        return f"{self.prefix}{name}):"

    @property
    def prefix(self) -> str:
        """How every marker begins."""
        return f"{self.comment} tvm-ffi-stubgen("

    @property
    def begin(self) -> str:
        """How the first line of a block begins."""
        return self.directive("begin")

    @property
    def end(self) -> str:
        """The last line of a block."""
        return f"{self.prefix}end)"

    @property
    def ty_map(self) -> str:
        """How a line that renames a type begins."""
        return self.directive("ty-map")

    @property
    def import_object(self) -> str:
        """How a line that adds an import begins."""
        return self.directive("import-object")

    @property
    def skip_file(self) -> str:
        """The line that excludes a file."""
        return f"{self.prefix}skip-file)"


PYTHON_SYNTAX = MarkerSyntax("#")
RUST_SYNTAX = MarkerSyntax("//")
SYNTAX_BY_EXT = {".py": PYTHON_SYNTAX, ".pyi": PYTHON_SYNTAX, ".rs": RUST_SYNTAX}

# Directives that the pipeline handles; the others belong to the generator.
PIPELINE_DIRECTIVE_KINDS = frozenset({"ty-map", "prefix", "skip"})
STUB_BLOCK_KINDS = Literal[
    "global", "object", "import-section", "directive", "export", "__all__", None
]

TERM_RESET = "\033[0m"
TERM_BOLD = "\033[1m"
TERM_BLACK = "\033[30m"
TERM_RED = "\033[31m"
TERM_GREEN = "\033[32m"
TERM_YELLOW = "\033[33m"
TERM_BLUE = "\033[34m"
TERM_MAGENTA = "\033[35m"
TERM_CYAN = "\033[36m"
TERM_WHITE = "\033[37m"

DOC_URL = "https://tvm.apache.org/ffi/packaging/stubgen.html"
FN_NAME_MAP: dict[str, str] = {}

# Types that every frontend has classes of its own for.
BUILTIN_TYPE_KEYS = {
    "ffi.BigInt",
    "ffi.Bytes",
    "ffi.Error",
    "ffi.Function",
    "ffi.Object",
    "ffi.OpaquePyObject",
    "ffi.SmallBytes",
    "ffi.SmallStr",
    "ffi.String",
    "ffi.Tensor",
}
