# SPDX-License-Identifier: Apache-2.0
"""Draws the tie: its states, and who owns whom in each step of a program.

    python scripts/site/lifelines.py            writes docs/pictures/*.svg
    python scripts/site/lifelines.py --check    only says whether they are up to date

States, owners and transitions are read from the table at the head of src/tie/tie.h. A step that
the table does not allow is an error. tests/site runs the statements of every program and compares
the states. Standard library only.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"

INK, FAINT, PAPER = "#1f2937", "#9ca3af", "#ffffff"
COLOURS = {"Detached": "#6b7280", "Active": "#047857", "Inactive": "#b45309", "gone": "#b91c1c"}
# What tying.state() says, and what the pictures say to users.
PUBLIC = {"Detached": "no wrapper", "Active": "active", "Inactive": "dormant", "gone": "gone"}
FONT = "font-family='system-ui, sans-serif'"
CODE = "font-family='ui-monospace, monospace'"


@dataclass
class Machine:
    """The table of tie.h."""

    owners: dict[str, tuple[str, str] | None]  # of a state: (owner, owned)
    transitions: dict[tuple[str, str], dict[str, str]]  # (from, to): {function: when}


def read_machine() -> Machine:
    head = (ROOT / "src/tie/tie.h").read_text(encoding="utf-8").split("// Invariants")[0]
    states, transitions = head.split("//   transition ")
    owners: dict[str, tuple[str, str] | None] = {}
    for name, text in re.findall(r"//   (Detached|Active|Inactive)\S*\s+(.*)", states):
        pattern = r"\b(W|the word) (?:is alive in Python and )?owns .*?reference to (H|W)"
        found = re.search(pattern, text)
        owners[name] = ("H" if found[1] == "the word" else "W", found[2]) if found else None
    table: dict[tuple[str, str], dict[str, str]] = {}
    pair = ("", "")
    for line in transitions.splitlines()[1:]:
        found = re.match(r"//   (\w+) -> (\w+)\s+(.*)|//\s{10,}(.*)", line)
        if found is None:
            continue
        if found[1]:
            pair = (found[1], found[2])
        functions = re.match(r"((?:[A-Z]\w+)(?:, [A-Z]\w+)*)\s+(.*)", found[3] or found[4])
        assert functions is not None, line
        for function in functions[1].split(", "):
            table.setdefault(pair, {})[function] = functions[2]
    return Machine(owners, table)


@dataclass
class Step:
    """One statement and what is true after it."""

    statement: str
    state: str
    cpp: bool  # C++ holds the object
    function: str = ""  # of the transition, if there is one
    python: bool = True  # Python holds the wrapper
    weak: bool = False  # a weak reference to the wrapper exists


@dataclass
class Program:
    title: str
    steps: list[Step]


PROGRAMS = {
    "drop-refetch": Program(
        "Drop and fetch again",
        [
            Step("inner = Array([1])", "Active", False, "Attach"),
            Step("outer = Array([inner])", "Active", True),
            Step("del inner", "Inactive", True, "Drop", python=False),
            Step("inner = outer[0]", "Active", True, "Fetch"),
            Step("del outer", "Active", False),
            Step("del inner", "gone", False, "Drop", python=False),
        ],
    ),
    "weak-reference": Program(
        "A weak reference follows the object",
        [
            Step("outer = parse('[[1]]')", "Detached", True, python=False),
            Step("inner = outer[0]", "Active", True, "Fetch"),
            Step("wr = weakref.ref(inner)", "Active", True, weak=True),
            Step("del inner", "Inactive", True, "Drop", python=False, weak=True),
            Step("inner = wr(); len(inner)", "Active", True, "Promote", weak=True),
            Step("del inner", "Inactive", True, "Drop", python=False, weak=True),
            Step("del outer", "gone", False, "Settle", python=False, weak=True),
        ],
    ),
    "move": Program(
        "Moving an object away",
        [
            Step("inner = Array([1])", "Active", False, "Attach"),
            Step("keep(inner._move())", "Detached", True, "Take"),
        ],
    ),
}


def check(program: Program, machine: Machine) -> None:
    """Raise ValueError for a step that the machine does not take."""
    before = "Detached"
    for step in program.steps:
        functions = machine.transitions.get((before, step.state), {})
        stays = before == step.state and not step.function
        if not stays and step.function not in functions:
            raise ValueError(f"{program.title}: {before} -> {step.state} by {step.function!r}")
        before = step.state


def text(x: float, y: float, content: str, size: int = 13, **attributes: str) -> str:
    more = "".join(f" {key.replace('_', '-')}='{value}'" for key, value in attributes.items())
    fill = "" if "fill" in attributes else f" fill='{INK}'"
    family = "" if "font_family" in attributes else f" {FONT}"
    return f"<text x='{x}' y='{y}' font-size='{size}'{fill}{family}{more}>{escape(content)}</text>"


def arrow(x1: float, y1: float, x2: float, y2: float, colour: str, dashed: bool = False) -> str:
    dash = " stroke-dasharray='4 3'" if dashed else ""
    return (
        f"<line x1='{x1}' y1='{y1}' x2='{x2}' y2='{y2}' stroke='{colour}' stroke-width='2'"
        f"{dash} marker-end='url(#{colour[1:]})'/>"
    )


def svg(width: int, height: int, title: str, body: list[str]) -> str:
    markers = [
        f"<marker id='{colour[1:]}' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='6' "
        f"markerHeight='6' orient='auto'><path d='M0 0 L8 4 L0 8 z' fill='{colour}'/></marker>"
        for colour in (INK, FAINT, *COLOURS.values())
    ]
    return "\n".join(
        [
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' "
            f"width='{width}' height='{height}' role='img'>",
            f"<title>{escape(title)}</title>",
            f"<defs>{''.join(markers)}</defs>",
            f"<rect width='{width}' height='{height}' rx='8' fill='{PAPER}'/>",
            *body,
            "</svg>\n",
        ]
    )


# Where the lifelines are: Python code, the wrapper, the object, C++ code.
LINES = {"Python code": 270, "wrapper": 370, "object": 470, "C++ code": 570}
TOP, ROW, WIDTH = 74, 44, 700


def draw_program(program: Program, machine: Machine) -> str:
    check(program, machine)
    bottom = TOP + ROW * len(program.steps)
    body = [text(16, 26, program.title, 16, font_weight="600")]
    for name, x in LINES.items():
        body.append(text(x, 52, name, 12, text_anchor="middle", fill="#4b5563"))
    python, wrapper, object_, cpp = LINES.values()
    for x in (python, cpp):
        body.append(f"<line x1='{x}' y1='60' x2='{x}' y2='{bottom}' stroke='#e5e7eb'/>")
    for number, step in enumerate(program.steps):
        y = TOP + ROW * number + ROW / 2
        colour = COLOURS[step.state]
        lives = step.state != "gone"
        tied = step.state in ("Active", "Inactive")
        for x, alive, tint in ((wrapper, tied, colour), (object_, lives, INK)):
            if alive:
                body.append(
                    f"<line x1='{x}' y1='{y - ROW / 2}' x2='{x}' y2='{y + ROW / 2}' "
                    f"stroke='{tint}' stroke-width='3'/><circle cx='{x}' cy='{y}' r='7' "
                    f"fill='{tint}'/>"
                )
            elif step.state == "gone":
                body.append(text(x, y + 5, "✕", 15, text_anchor="middle", fill=colour))
        if step.python and tied:
            body.append(arrow(python + 4, y, wrapper - 9, y, INK))
        if step.weak and tied:
            body.append(arrow(python + 4, y + 12, wrapper - 9, y + 4, FAINT, dashed=True))
        owner = machine.owners.get(step.state)
        if owner is not None:
            ends = (wrapper + 9, object_ - 9) if owner[0] == "W" else (object_ - 9, wrapper + 9)
            body.append(arrow(ends[0], y, ends[1], y, colour))
        if step.cpp:
            body.append(arrow(cpp - 4, y, object_ + 9, y, INK))
        body.append(
            f"<text x='16' y='{y + 4}' font-size='12.5' fill='{INK}' {CODE}>"
            f"{escape(step.statement)}</text>"
        )
        body.append(text(600, y + 4, PUBLIC[step.state], 13, fill=colour, font_weight="600"))
    legend = "An arrow points from an owner to what it keeps alive. Dashed: a weak reference."
    body.append(text(16, bottom + 24, legend, 12, fill="#4b5563"))
    return svg(WIDTH, bottom + 38, program.title, body)


# Centres of the boxes of the state machine.
BOXES = {"Detached": (110, 70), "Active": (400, 70), "Inactive": (400, 210), "gone": (110, 210)}
# Where each arrow begins and ends, and where its label is, so that none crosses another.
ROUTES = {
    ("Detached", "Active"): ((170, 60), (338, 60), (254, 50), "middle"),
    ("Active", "Detached"): ((338, 84), (172, 84), (254, 102), "middle"),
    ("Active", "Inactive"): ((385, 92), (385, 186), (377, 140), "end"),
    ("Inactive", "Active"): ((415, 188), (415, 94), (423, 140), "start"),
    ("Active", "gone"): ((345, 94), (150, 186), (214, 142), "end"),
    ("Inactive", "gone"): ((338, 214), (172, 214), (254, 236), "middle"),
}


def draw_machine(machine: Machine) -> str:
    title = "The states of a tie"
    body = []
    for name, (x, y) in BOXES.items():
        colour = COLOURS[name]
        body.append(
            f"<rect x='{x - 60}' y='{y - 22}' width='120' height='44' rx='8' fill='{colour}'/>"
        )
        body.append(text(x, y - 2, PUBLIC[name], 15, text_anchor="middle", fill=PAPER))
        owner = machine.owners.get(name)
        words = {"W": "wrapper", "H": "object"}
        owns = f"{words[owner[0]]} → {words[owner[1]]}" if owner else ""
        body.append(text(x, y + 15, owns, 11, text_anchor="middle", fill=PAPER))
    assert set(ROUTES) == set(machine.transitions), "tie.h has other transitions than the picture"
    for pair, functions in machine.transitions.items():
        begin, end, (x, y), anchor = ROUTES[pair]
        body.append(arrow(*begin, *end, INK))
        body.append(text(x, y, ", ".join(functions), 12, text_anchor=anchor))
    return svg(520, 262, title, body)


def pictures() -> dict[str, str]:
    machine = read_machine()
    drawn = {f"lifeline-{name}.svg": draw_program(p, machine) for name, p in PROGRAMS.items()}
    return {"states.svg": draw_machine(machine), **drawn}


def main() -> int:
    stale = []
    for name, content in pictures().items():
        path = PICTURES / name
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(content, encoding="utf-8")
    if "--check" not in sys.argv:
        print("written: " + (", ".join(stale) or "nothing new"))
        return 0
    if stale:
        print(f"not the pictures of src/tie/tie.h: {', '.join(stale)}", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
