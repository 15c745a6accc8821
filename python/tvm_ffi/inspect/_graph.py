# SPDX-License-Identifier: Apache-2.0
"""The object graph, as a page, a picture or text."""

from __future__ import annotations

import html
import json
import re
import sys
import types
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import tying
from . import _quiet, _referrers
from ._world import NO_WRAPPER, World, is_wrapper

CPP_EDGE = "C++"
PYTHON_EDGE = "Python"


@dataclass
class GraphNode:
    """An object of the graph."""

    name: str  # the class
    label: str  # what is shown
    state: str  # of the tie: "active", "dormant", "" (no wrapper), "python" (no C++ object)
    python_references: int
    cpp_references: int
    line: str = ""  # that made or first fetched it, if that was recorded


@dataclass
class GraphEdge:
    """A reference. `kind` is "C++" or "Python"."""

    source: int
    target: int
    place: str
    kind: str


class Graph:
    """The answer of `graph`: `nodes`, `edges` by the index of nodes, `roots`."""

    def __init__(self) -> None:
        self.nodes: list[GraphNode] = []
        self.edges: list[GraphEdge] = []
        self.roots: list[int] = []

    def __repr__(self) -> str:
        return f"<Graph of {len(self.nodes)} objects and {len(self.edges)} references>"

    def __str__(self) -> str:
        return self.to_text()

    def children(self) -> list[list[GraphEdge]]:
        """The edges from each node."""
        below: list[list[GraphEdge]] = [[] for _ in self.nodes]
        for edge in self.edges:
            below[edge.source].append(edge)
        return below

    def by_type(self) -> dict[str, int]:
        """Count the nodes by class; the most frequent first."""
        counts: dict[str, int] = {}
        for node in self.nodes:
            counts[node.name] = counts.get(node.name, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def below_roots(self) -> Graph:
        """Return the part of the graph that the roots lead to."""
        below = self.children()
        order = list(dict.fromkeys(self.roots))
        index_of = {old: i for i, old in enumerate(order)}
        found = Graph()
        found.roots = [index_of[root] for root in self.roots]
        for old in order:  # which grows meanwhile
            found.nodes.append(self.nodes[old])
            for edge in below[old]:
                if edge.target not in index_of:
                    index_of[edge.target] = len(order)
                    order.append(edge.target)
                found.edges.append(
                    replace(edge, source=index_of[old], target=index_of[edge.target])
                )
        return found

    # ---- text ----

    def to_text(self, *, depth: int = 6, width: int = 10, limit: int = 200) -> str:
        """Draw a tree for a terminal, from the roots."""
        below = self.children()
        lines: list[str] = []
        shown: set[int] = set()

        def text_of(index: int, place: str) -> str:
            node = self.nodes[index]
            counts = f"Python {node.python_references}, C++ {node.cpp_references}"
            state = "" if node.state == "python" else f" [{node.state or NO_WRAPPER}; {counts}]"
            return f"{place + ' ' if place else ''}{node.label}{state}"

        def draw(index: int, place: str, lead: str, indent: str, level: int) -> None:
            again = index in shown
            shown.add(index)
            rest = " (shown above)" if again and below[index] else ""
            lines.append(f"{lead}{text_of(index, place)}{rest}")
            if again or len(lines) >= limit:
                return
            edges = below[index]
            if level == depth and edges:
                lines.append(f"{indent}└─ ... {len(edges)} below")
                return
            for i, edge in enumerate(edges[:width]):
                last = i == len(edges) - 1
                mark = "└─ " if last else "├─ "
                draw(
                    edge.target,
                    edge.place,
                    indent + mark,
                    indent + ("   " if last else "│  "),
                    level + 1,
                )
            if len(edges) > width:
                lines.append(f"{indent}└─ ... {len(edges) - width} more")

        for root in self.roots:
            if root not in shown:
                draw(root, "", "", "", 0)
            if len(lines) >= limit:
                lines.append(f"... {len(self.nodes) - len(shown)} objects are not shown")
                break
        return "\n".join(map(_quiet.printable, lines))

    # ---- DOT ----

    def to_dot(self, path: str | Path | None = None) -> str:
        """Return the graph in the language of Graphviz; also write it, if a path is given."""
        lines = ["digraph objects {", '  node [shape=box, style="rounded,filled", fontsize=10];']
        for i, node in enumerate(self.nodes):
            color = _FILL[node.state]
            label, counts = _dot_text(node.label), _dot_text(_counts(node))
            lines.append(f'  n{i} [label="{label}\\n{counts}", fillcolor="{color}"];')
        for edge in self.edges:
            style = "" if edge.kind == CPP_EDGE else ", style=dashed"
            place = _dot_text(edge.place)
            lines.append(
                f'  n{edge.source} -> n{edge.target} [label="{place}", fontsize=9{style}];'
            )
        return _written("\n".join([*lines, "}", ""]), path)

    # ---- SVG ----

    def to_svg(self, path: str | Path | None = None, *, limit: int = 300) -> str:
        """Return a picture, drawn in layers from the roots; also write it, if a path is given."""
        rows, layer_of = self._layers(limit)
        box_width, box_height, gap, gap_y = 190.0, 40.0, 30.0, 70.0
        width = max((len(row) for row in rows), default=1) * (box_width + gap) + gap
        height = len(rows) * (box_height + gap_y) + gap
        place_of: dict[int, tuple[float, float]] = {}
        for y, row in enumerate(rows):
            begin = (width - len(row) * (box_width + gap) + gap) / 2
            for x, index in enumerate(row):
                place_of[index] = (begin + x * (box_width + gap), gap + y * (box_height + gap_y))
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" font-family="sans-serif" font-size="11">',
            '<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>',
        ]
        for edge in self.edges:
            if edge.source not in place_of or edge.target not in place_of:
                continue
            (x1, y1), (x2, y2) = place_of[edge.source], place_of[edge.target]
            dash = "" if edge.kind == CPP_EDGE else ' stroke-dasharray="4 3"'
            if layer_of[edge.target] > layer_of[edge.source]:
                x1, y1, x2 = x1 + box_width / 2, y1 + box_height, x2 + box_width / 2
                line = f"M{x1:.0f} {y1:.0f}L{x2:.0f} {y2:.0f}"
            else:  # back up, or beside: around the right of the boxes
                x1, y1 = x1 + box_width, y1 + box_height / 2
                x2, y2 = x2 + box_width, y2 + box_height / 2
                far = max(x1, x2) + box_width * 0.3
                line = f"M{x1:.0f} {y1:.0f}C{far:.0f} {y1:.0f} {far:.0f} {y2:.0f} {x2:.0f} {y2:.0f}"
            parts.append(
                f'<path d="{line}" fill="none" stroke="#555" marker-end="url(#a)"{dash}/>'
                f'<text x="{(x1 + x2) / 2 + 4:.0f}" y="{(y1 + y2) / 2:.0f}" fill="#333">'
                f"{_xml_text(edge.place)}</text>"
            )
        for index, (left, top) in place_of.items():
            node = self.nodes[index]
            parts.append(
                f'<g transform="translate({left:.0f} {top:.0f})"><rect width="{box_width:.0f}" '
                f'height="{box_height:.0f}" rx="6" fill="{_FILL[node.state]}" stroke="#333"/>'
                f'<text x="8" y="16">{_xml_text(node.label[:30])}</text>'
                f'<text x="8" y="32" fill="#444">{_xml_text(_counts(node))}</text></g>'
            )
        rest = len(self.nodes) - len(place_of)
        if rest:
            parts.append(f'<text x="8" y="14">{rest} more objects are not drawn</text>')
        return _written("\n".join([*parts, "</svg>", ""]), path)

    def _layers(self, limit: int) -> tuple[list[list[int]], dict[int, int]]:
        below = self.children()
        layer_of = dict.fromkeys(self.roots[:limit], 0)
        rows = [list(layer_of)]
        while rows[-1] and len(layer_of) < limit:
            row = []
            for index in rows[-1]:
                for edge in below[index]:
                    if edge.target not in layer_of and len(layer_of) < limit:
                        layer_of[edge.target] = len(rows)
                        row.append(edge.target)
            rows.append(row)
        return [row for row in rows if row], layer_of

    # ---- the page ----

    def to_html(self, path: str | Path | None = None, *, title: str = "Objects") -> str:
        """Return a page that needs nothing else; also write it, if a path is given."""
        names = list(self.by_type())
        index_of = {name: i for i, name in enumerate(names)}
        places = list(dict.fromkeys(edge.place for edge in self.edges))
        index_of_place = {place: i for i, place in enumerate(places)}
        states = list(_FILL)
        data = {
            "types": list(map(_quiet.printable, names)),
            "states": states,
            "places": list(map(_quiet.printable, places)),
            "type": [index_of[node.name] for node in self.nodes],
            "state": [states.index(node.state) for node in self.nodes],
            "label": [_quiet.printable(node.label) for node in self.nodes],
            "py": [node.python_references for node in self.nodes],
            "cpp": [node.cpp_references for node in self.nodes],
            "line": {i: _quiet.printable(n.line) for i, n in enumerate(self.nodes) if n.line},
            "from": [edge.source for edge in self.edges],
            "to": [edge.target for edge in self.edges],
            "place": [index_of_place[edge.place] for edge in self.edges],
            "kind": "".join("c" if edge.kind == CPP_EDGE else "p" for edge in self.edges),
            "roots": self.roots,
        }
        # Some of these characters would end the script element, or begin another.
        text = json.dumps(data, separators=(",", ":")).translate(_IN_SCRIPT)
        template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
        parts = {"@TITLE@": _xml_text(title), "@DATA@": text}
        page = re.sub("|".join(parts), lambda found: parts[found.group()], template)
        return _written(page, path)


_FILL = {"active": "#c9e7cb", "dormant": "#d5d9f2", "": "#eeeeee", "python": "#fbe6bd"}


def _counts(node: GraphNode) -> str:
    if node.state == "python":
        return f"Python {node.python_references}"
    state = node.state or NO_WRAPPER
    return f"{state}, Python {node.python_references}, C++ {node.cpp_references}"


_IN_SCRIPT = {ord(c): f"\\u{ord(c):04x}" for c in "<>&"}


def _dot_text(text: str) -> str:
    return _quiet.printable(text).replace("\\", "\\\\").replace('"', '\\"')


def _xml_text(text: str) -> str:
    """Text in XML, which has no way to write control characters and the like."""
    return html.escape(_quiet.printable(text))


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


_SEVERAL: tuple[type, ...] = (list, tuple, set, frozenset, types.GeneratorType, type({}.values()))


def graph(roots: Any = None, *, limit: int = 1_000_000) -> Graph:
    """Return the graph of objects below `roots`: an object, or a list, tuple, set or generator of
    objects. Anything else, such as a dict, is one object.

    Without roots it is everything that can be found. References lead from C++ objects to C++
    objects, to Python objects that C++ holds, and from those and from the Python state of wrappers
    to objects again.

    >>> import tvm_ffi
    >>> from tvm_ffi.inspect import graph
    >>> found = graph(tvm_ffi.List([tvm_ffi.Array([1, 2]), "text"]))
    >>> found.by_type()
    {'Array': 1, 'List': 1}
    """
    if roots is None:
        seeds: list[Any] = []
    elif _quiet.is_exactly(roots, _SEVERAL):
        seeds = list(roots)
    else:
        seeds = [roots]
    everything = roots is None
    # Before 3.11 the caller keeps the arguments of a call.
    is_kept = sys.version_info < (3, 11) and is_wrapper(roots)
    del roots
    if everything:
        return _look(None, True, False, limit)[0]
    found, is_complete = _look(seeds, False, is_kept, limit)
    if is_complete:
        return found
    # Python objects below the roots lead to C++ objects that C++ does not lead to.
    return _look(seeds, True, is_kept, limit)[0].below_roots()


def _look(
    roots: list[Any] | None, everything: bool, is_kept: bool, limit: int
) -> tuple[Graph, bool]:
    """The graph, and whether it has all C++ objects that its Python objects refer to."""
    seeds = roots or []
    with World(list(seeds), everything=everything) as world:
        world.objects.update((id(seed), seed) for seed in seeds if not is_wrapper(seed))
        for seed in map(id, seeds):
            world.leave_out(seed)
            if is_kept:
                world.leave_out(seed)
        builder = _Builder(world)
        graph = builder.build([id(seed) for seed in seeds], roots is None, limit)
        return graph, builder.is_complete


class _Builder:
    """Adds Python objects between C++ objects to what a world knows."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.graph = Graph()
        self.index_of_python: dict[int, int] = {}
        self.tied = {n.wrapper_id: i for i, n in enumerate(world.nodes) if n.wrapper_id}
        self.is_complete = True
        self.pending: list[int] = []  # ids of Python objects whose references are to be followed

    def build(self, seeds: list[int], everything: bool, limit: int) -> Graph:
        world, graph = self.world, self.graph
        for i in range(len(world.nodes)):
            graph.nodes.append(self.cpp_node(i))
        for source, target, place in world.edges:
            graph.edges.append(GraphEdge(source, target, place, CPP_EDGE))
        for source, object_id, place in world.python_edges:
            target = self.python_node(world.objects[object_id])
            graph.edges.append(GraphEdge(source, target, place, CPP_EDGE))
        for seed in seeds:
            node = world.node_of_wrapper.get(seed)
            if node is not None:
                graph.roots.append(node)
            elif seed in world.objects:
                graph.roots.append(self.python_node(world.objects[seed]))
        self.add_state_of_wrappers()
        self.follow_python(limit)
        if everything:
            held = {edge.target for edge in graph.edges}
            inner = range(len(graph.nodes))
            graph.roots = [i for i in inner if i not in held] + [i for i in inner if i in held]
        return graph

    def cpp_node(self, i: int) -> GraphNode:
        world, node = self.world, self.world.nodes[i]
        line = world.line_of(i)
        return GraphNode(
            name=world.type_name(i),
            label=f"{world.type_name(i)} {node.address:#x}",
            state=node.state,
            python_references=world.python_references(i),
            cpp_references=node.strong,
            line=f"{line[0]}:{line[1]}" if line else "",
        )

    def python_node(self, obj: Any) -> int:
        if is_wrapper(obj):
            index = self.world.node_of_wrapper.get(id(obj), self.tied.get(id(obj)))
            if index is not None:
                return index
        index = self.index_of_python.get(id(obj))
        if index is None:
            index = self.index_of_python[id(obj)] = len(self.graph.nodes)
            self.world.objects[id(obj)] = obj
            name = _quiet.name(type(obj))
            label = _referrers.describe(obj)
            self.graph.nodes.append(GraphNode(name, label, "python", 0, 0))
            self.pending.append(id(obj))
        return index

    def is_shown(self, value: Any) -> bool:
        """Say whether to show it: objects found and what may lead to them, no plain values."""
        if is_wrapper(value):
            is_known = id(value) in self.tied or id(value) in self.world.node_of_wrapper
            self.is_complete = self.is_complete and (is_known or tying.state(value) == "empty")
            return is_known
        return _referrers.may_lead_on(value)

    def add_state_of_wrappers(self) -> None:
        for index, node in enumerate(self.world.nodes):
            if node.cls is None or not _quiet.has_state(node.cls):
                continue
            for name, value in _referrers.state_of(self.world.wrapper(index)):
                if self.is_shown(value):
                    target = self.python_node(value)
                    self.graph.edges.append(GraphEdge(index, target, f".{name}", PYTHON_EDGE))

    def follow_python(self, limit: int) -> None:
        """From the Python objects that C++ holds to the objects they refer to."""
        while self.pending and len(self.graph.nodes) < limit:
            obj = self.world.objects[self.pending.pop()]
            source = self.index_of_python[id(obj)]
            for name, value in _referrers.parts_of(obj):
                if self.is_shown(value):
                    target = self.python_node(value)
                    self.graph.edges.append(GraphEdge(source, target, name, PYTHON_EDGE))
