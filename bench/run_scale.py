# SPDX-License-Identifier: Apache-2.0
"""Very many objects: ours and its peers.

    python bench/run_scale.py [--peers ours,nanobind] [--repeat 3]

A million wrappers (bytes, fetch, drop, collection, interpreter exit), and the time of an operation
while 10^3 to 10^7 objects live. Every measurement has a process of its own; peers and sizes take
turns, and the best of the repetitions counts. Writes bench/results/scale.md and scale.json.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "python"))
import run_python
import setup_peers as build

MILLION = 1_000_000
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
FLAT_PEERS = ("ours", "adopted")
BYTES = ("object", "live wrapper", "dropped wrapper", "left")
NANOSECONDS = ("make", "first fetch", "fetch, live", "drop", "refetch + drop", "destroy")
MILLISECONDS = (
    "collection, nothing yet",
    "collection, all live",
    "collection, all dropped",
    "collection, all dropped, kept by native code",
)
EXITS = ("nothing", "objects", "dropped")


def best(results: list[dict[str, float]]) -> dict[str, float]:
    return {key: min(result[key] for result in results) for key in results[0]}


def in_turns(peers: dict[str, build.Peer], repeat: int, one: Any, what: str) -> dict[str, Any]:
    """Return {peer: best of one(peer)}; a peer that fails is left out, with the reason."""
    results: dict[str, list[dict[str, float]]] = {}
    failed: dict[str, str] = {}
    for number in range(repeat):
        for name, peer in peers.items():
            if name in failed:
                continue
            run_python.progress(f"{what}: {name}, {number + 1} of {repeat}")
            try:
                results.setdefault(name, []).append(one(peer))
            except build.Unavailable as reason:
                failed[name] = str(reason)
                run_python.progress(f"  not measured: {reason}")
    return {name: best(found) for name, found in results.items() if name not in failed}


def exit_seconds(peer: build.Peer) -> dict[str, float]:
    """Seconds from the end of the script to the end of the process, for each kind of leftovers."""
    result = {}
    for kind in EXITS:
        ended = build.ask(peer, "scale.py", "exit", MILLION, kind)["ended"]
        result[kind] = time.monotonic() - ended
    return result


def flat_times(peers: dict[str, build.Peer], repeat: int) -> dict[str, dict[str, Any]]:
    result: dict[str, dict[str, Any]] = {}
    for name in FLAT_PEERS:
        if name not in peers:
            continue
        sizes: dict[str, list[dict[str, float]]] = {}
        for number in range(repeat):
            for size in SIZES:
                run_python.progress(f"{size} live objects: {name}, {number + 1} of {repeat}")
                answer = build.ask(peers[name], "scale.py", "flat", size)
                sizes.setdefault(str(size), []).append(answer)
        result[name] = {size: best(answers) for size, answers in sizes.items()}
    return result


def import_times(peers: dict[str, build.Peer], rounds: int = 15) -> dict[str, dict[str, float]]:
    """CPU milliseconds of a process that imports the package, less those of one that does not."""
    packages = {name: peers[name] for name in ("ours", "reference") if name in peers}
    spent: dict[str, list[float]] = {name: [] for name in packages}
    for _ in range(rounds):
        for name, peer in packages.items():
            spent[name].append(cpu_ms(peer, "import tvm_ffi") - cpu_ms(peer, "pass"))
    loaded = "import sys, tvm_ffi; print(len(sys.modules), *{'numpy', 'torch'} & set(sys.modules))"
    result = {}
    for name, peer in packages.items():
        variables = {**os.environ, **peer.environment}
        modules, *heavy = build.run(peer.python, "-c", loaded, env=variables).split()
        result[name] = {
            "import, ms": statistics.median(spent[name]),
            "modules loaded": float(modules),
            "numpy or torch among them": float(len(heavy)),
        }
    return result


def cpu_ms(peer: build.Peer, code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    build.run(peer.python, "-c", code, env={**os.environ, **peer.environment})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1e3


def transposed(title: str, keys: tuple[str, ...], data: dict[str, Any], digits: int) -> list[str]:
    heads = [run_python.label(name) for name in data]
    lines = ["", f"| {title} | {' | '.join(heads)} |", "|---|" + "---:|" * len(heads)]
    for key in keys:
        cells = [f"{data[name][key]:.{digits}f}" if key in data[name] else "-" for name in data]
        lines.append(f"| {key} | {' | '.join(cells)} |")
    return lines


def flat_table(name: str, sizes: dict[str, dict[str, float]]) -> list[str]:
    heads = [f"10^{len(size) - 1}" for size in sizes]
    title = f"{run_python.label(name)}, ns while this many live"
    columns = [*heads, "last / first"]
    lines = ["", f"| {title} | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    first, last = next(iter(sizes)), list(sizes)[-1]
    for key in sizes[first]:
        cells = [f"{answer[key]:.1f}" for answer in sizes.values()]
        growth = sizes[last][key] / sizes[first][key]
        lines.append(f"| {key} | {' | '.join(cells)} | {growth:.2f} |")
    return lines


def report(data: dict[str, Any]) -> str:
    lines = [
        "# Very many objects",
        "",
        *run_python.heading(data),
        f"Times are the best of {data['repeat']} processes, in turns.",
        "",
        "## 10^6 objects of the native library, all fetched, all dropped",
        "",
        "Resident bytes per object; *dropped wrapper*: what stays when Python has let go, *left*:",
        "when the native objects are gone, too.",
        *transposed("bytes", BYTES, data["million"], 0),
        "",
        "Nanoseconds per object.",
        *transposed("ns", NANOSECONDS, data["million"], 1),
        "",
        "Milliseconds per full collection.",
        *transposed("ms", MILLISECONDS, data["million"], 1),
        "",
        "Seconds from the end of the script to the end of the process: with nothing, with 10^6",
        "objects that native code keeps and Python has never seen, and with 10^6 that Python has",
        "fetched and dropped.",
        *transposed("s", EXITS, data["exit"], 3),
        "",
        "## Import",
        "",
        "CPU time of `import tvm_ffi` beyond an empty script's.",
        *transposed("", tuple(data["import"]["ours"]), data["import"], 1),
        "",
        "## Time of an operation while N objects and their wrappers live",
        "",
        "On 100 objects picked from all of them; the sweep touches each one, in allocation order.",
    ]
    for name, sizes in data["flat"].items():
        lines += flat_table(name, sizes)
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    everybody = [name for name in build.PREPARE if name != "floor"]
    parser.add_argument("--peers", default=",".join(everybody))
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    ready, missing = build.prepare(options.peers.split(","))
    if "ours" not in ready:
        sys.exit(f"ours cannot be built: {missing['ours']}")
    native = {name: peer for name, peer in ready.items() if name != "slots"}
    data = run_python.circumstances(ready, missing)
    data["repeat"] = options.repeat
    # One core for everything: moving between cores costs more than what is measured.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    data["million"] = in_turns(
        ready, options.repeat, lambda p: build.ask(p, "scale.py", "memory", MILLION), "10^6 objects"
    )
    run_python.progress("import time")
    data["import"] = import_times(ready)
    data["exit"] = in_turns(native, options.repeat, exit_seconds, "exit with 10^6 objects")
    data["flat"] = flat_times(ready, options.repeat)
    run_python.write_results("scale", data, report(data))


if __name__ == "__main__":
    main()
