# SPDX-License-Identifier: Apache-2.0
"""Very many objects: ours and its peers.

    python bench/run_scale.py [--peers ours,nanobind] [--repeat 3] [--seconds N]

A million wrappers (bytes, fetch, drop, collection, interpreter exit), and the time of an operation
while 10^3 to 10^7 objects live. Every measurement has a process of its own; peers and sizes take
turns, and the best of the repetitions counts. Writes bench/results/scale.md and scale.json.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import report
import setup_peers as build
from report import Budget, label, progress

MILLION = 1_000_000
NOT_NATIVE = ("floor", "slots")  # no native code that could keep an object
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
FLAT_PEERS = ("floor", "ours", "adopted", "nanobind", "reference")
BYTES = ("object", "live wrapper", "dropped wrapper", "left")
NANOSECONDS = ("make", "first fetch", "fetch, live", "drop", "refetch + drop", "destroy")
MILLISECONDS = (
    "collection, nothing yet",
    "collection, all live",
    "collection, all live, in pairs",
    "collection, all live, of numbers only",
    "collection, all dropped",
    "collection, all dropped, kept by native code",
)
EXITS = ("nothing", "objects", "dropped", "live")


def best(results: list[dict[str, float]]) -> dict[str, float]:
    return {key: min(result[key] for result in results) for key in results[0]}


def in_turns(
    peers: dict[str, build.Peer], rounds: Any, one: Any, what: str
) -> dict[str, dict[str, float]]:
    """Return {peer: best of one(peer)}; a peer that fails is left out, with the reason."""
    results: dict[str, list[dict[str, float]]] = {}
    failed: set[str] = set()
    for number in rounds:
        for name, peer in peers.items():
            if name in failed:
                continue
            progress(f"{what}, round {number + 1}: {name}")
            try:
                results.setdefault(name, []).append(one(peer))
            except build.Unavailable as reason:
                failed.add(name)
                progress(f"  not measured: {reason}")
    return {name: best(found) for name, found in results.items() if name not in failed}


def cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def exit_seconds(peer: build.Peer) -> dict[str, float]:
    """CPU seconds from the end of the script to that of the process, for each kind of leftovers."""
    result = {}
    for kind in EXITS:
        if peer.name in NOT_NATIVE and kind in ("objects", "dropped"):
            continue
        before = cpu_of_children()
        ended = build.ask(peer, "scale.py", "exit", MILLION, kind)["ended"]
        result[kind] = cpu_of_children() - before - ended
    return result


def flat_times(peers: dict[str, build.Peer], repeat: int, budget: Budget) -> dict[str, Any]:
    """Return {peer: {size: {operation: ns}}}."""
    chosen = {name: peers[name] for name in FLAT_PEERS if name in peers}
    found: dict[str, dict[str, Any]] = {name: {} for name in chosen}
    for size in SIZES:
        share = 1 / (len(SIZES) - SIZES.index(size))
        what = f"10^{len(str(size)) - 1} live objects"
        rounds = budget.rounds(what, repeat, share)
        ask = lambda peer, n=size: build.ask(peer, "scale.py", "flat", n)  # noqa: E731
        for name, answer in in_turns(chosen, rounds, ask, what).items():
            found[name][str(size)] = answer
    return found


def transposed(
    title: str, keys: tuple[str, ...], peers: list[str], data: dict[str, Any], digits: int
) -> list[str]:
    heads = [label(name) for name in peers]
    lines = ["", f"| {title} | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for key in keys:
        found = [data.get(name, {}).get(key) for name in peers]
        cells = ["-" if number is None else f"{number:.{digits}f}" for number in found]
        lines.append(f"| {key} | {' | '.join(cells)} |")
    return lines


def in_ms(exits: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {name: {key: s * 1e3 for key, s in kinds.items()} for name, kinds in exits.items()}


def flat_table(name: str, sizes: dict[str, dict[str, float]]) -> list[str]:
    heads = [f"10^{len(size) - 1}" for size in sizes]
    title = f"{label(name)}, ns while this many live"
    columns = [*heads, "largest / first"]
    lines = ["", f"| {title} | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    first = next(iter(sizes))
    for key in sizes[first]:
        cells = [f"{answer[key]:.1f}" for answer in sizes.values()]
        growth = max(answer[key] for answer in sizes.values()) / sizes[first][key]
        lines.append(f"| {key} | {' | '.join(cells)} | {growth:.2f} |")
    return lines


def page(data: dict[str, Any]) -> str:
    native = report.columns(data, "floor")
    lines = [
        "# Very many objects",
        "",
        *report.heading(data),
        "",
        "Times are CPU times, the best of several processes that take turns.",
        "",
        "## 10^6 objects of the native library, all fetched, all dropped",
        "",
        "Resident bytes per object; *dropped wrapper*: what stays when Python has let go, *left*:",
        "when the native objects are gone, too.",
        *transposed("bytes", BYTES, native, data["million"], 0),
        "",
        "Nanoseconds per object.",
        *transposed("ns", NANOSECONDS, native, data["million"], 1),
        "",
        "Milliseconds per full collection. *In pairs*: every second object has another one as a",
        "field. *Of numbers only*: objects of a class whose only field is an integer.",
        *transposed("ms", MILLISECONDS, native, data["million"], 1),
        "",
        "Milliseconds from the end of the script to that of the process: with nothing, with",
        "10^6 objects that native code keeps and Python has never seen (*objects*), with 10^6 that",
        "native code keeps and Python has fetched and dropped (*dropped*), and with 10^6 that a",
        "list of Python's has as well (*live*).",
        *transposed("ms", EXITS, report.columns(data), in_ms(data["exit"]), 0),
        "",
        "## Time of an operation while N objects and their wrappers live",
        "",
        "The first rows work on 100 objects picked from all of them. *All in turn* fetches each",
        "one, in the order in which they were made; *all at random* picks 10^5 of them, so that",
        "with many objects nearly every step misses the caches: the growth of the floor is that of",
        "the machine. The floor's objects are one block of memory each, ours two, a native object",
        "and a Python object, so a step at random misses once more.",
    ]
    for name, sizes in data["flat"].items():
        lines += flat_table(name, sizes)
    return "\n".join(lines) + "\n"


def main() -> None:
    options, budget = report.arguments(
        ("--peers", {"default": ",".join(build.PREPARE)}),
        ("--repeat", {"type": int, "default": 3}),
    )
    ready, missing = build.prepare(options.peers.split(","))
    if "ours" not in ready:
        sys.exit(f"ours cannot be built: {missing['ours']}")
    data = report.circumstances(ready, missing)
    data["shortened"] = budget.shortened
    report.one_core()
    many = {name: peer for name, peer in ready.items() if name != "floor"}
    rounds = budget.rounds("10^6 objects", options.repeat, 0.4)
    data["million"] = in_turns(
        many, rounds, lambda peer: build.ask(peer, "scale.py", "memory", MILLION), "10^6 objects"
    )
    rounds = budget.rounds("exit with 10^6 objects", options.repeat, 0.5)
    data["exit"] = in_turns(ready, rounds, exit_seconds, "exit with 10^6 objects")
    data["flat"] = flat_times(ready, options.repeat, budget)
    report.write("scale", data, page(data))


if __name__ == "__main__":
    main()
