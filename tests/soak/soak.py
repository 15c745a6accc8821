# SPDX-License-Identifier: Apache-2.0
"""Random programs against the promises P1 to P6, for as long as you like.

    python tests/soak/soak.py --duration 600 --seed 1
    python tests/soak/soak.py --without hooks,reinit        leave groups of steps out
    python tests/soak/soak.py --replay FILE                 run what a finding left behind

`make soak` and scripts/soak.sh call this with the right package. Workers are children of this
process; each runs program after program, made from the seed and a number. A worker that dies,
hangs or finds something wrong is replaced, and its program is made small (shrink.py) and written
to a file that `--replay` runs.

program.py   programs of one thread, with a model that says what every step must give
threads.py   programs of several threads on the same objects
objects.py   the classes they use
faults.py    what is broken on purpose, to see that it is found (`--self-test`)
found/       small programs that failed once; `--regressions` runs them

The last line is `N passed, N failed` (programs); the exit status is 0 if none failed.
"""

from __future__ import annotations

import argparse
import copy
import faulthandler
import gc
import itertools
import json
import mmap
import os
import pickle
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import objects
import program as plain
import threads
import tvm_ffi
from faults import FAULTS, self_test
from objects import FREE_THREADED, Broken, ChildEnds, load_client
from shrink import run_in_child, shrink, signature

KINDS = {"plain": plain, "threads": threads}
GROUPS = sorted({*plain.GROUPS, *(group for _, _, group in threads.STEPS.values()), "threads"})
MAX_FINDINGS = 8
MAX_UNCLEAR = 0.02  # of the programs: more, and the model is not good enough


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Random programs against the promises.")
    parser.add_argument("--duration", type=float, default=60, help="seconds")
    parser.add_argument("--steps", type=float, default=0, help="end after so many steps")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--length", type=int, default=1000 if FREE_THREADED else 300, help="steps of a program"
    )
    parser.add_argument(
        "--without", action="append", default=[], help=f"groups to leave out: {', '.join(GROUPS)}"
    )
    parser.add_argument("--only", default="", help="groups to use besides core")
    parser.add_argument("--threads-share", type=float, default=0.5 if FREE_THREADED else 0.04)
    parser.add_argument(
        "--per-worker", type=int, default=4000, help="programs until a worker is replaced"
    )
    parser.add_argument("--hang-seconds", type=float, default=30)
    parser.add_argument("--shrink-seconds", type=float, default=60)
    parser.add_argument("--out", type=Path, default=Path("build/soak"))
    parser.add_argument("--junit", type=Path)
    parser.add_argument("--name", default="soak", help="name of the test case in the JUnit file")
    parser.add_argument("--replay", type=Path)
    parser.add_argument("--self-test", action="store_true", help="break things; they must be found")
    parser.add_argument(
        "--regressions", action="store_true", help="run the programs in found/ first"
    )
    options = parser.parse_args()
    without = set(",".join(options.without).split(","))
    unknown = {*without, *options.only.split(",")} - {"", "core", *GROUPS}
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    chosen = {"core", *options.only.split(",")} if options.only else set(GROUPS)
    options.groups = chosen - without
    return options


def make(options: argparse.Namespace, number: int) -> dict[str, Any]:
    """Make a program from the seed and its number."""
    seed = options.seed * 2**40 + number
    share = options.threads_share if "threads" in options.groups else 0
    kind = threads if (number * 2654435761 >> 8) % 1000 < share * 1000 else plain
    return kind.generate(seed, options.groups, options.length)


def run(programs: list[dict[str, Any]], groups: set[str], client: Any) -> int:
    """Run programs one after the other."""
    return sum(KINDS[p["kind"]].run(p, groups, client) for p in programs)


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


class Worker:
    """A child that runs program after program."""

    def __init__(self, options: argparse.Namespace, client: Any, slot: int, first: int) -> None:
        self.slot = slot
        self.first = first
        # Number of the program, programs and steps so far, when it last went on, programs that
        # ended early: whole words, so that the parent never sees half of one.
        self.shared = memoryview(mmap.mmap(-1, 40)).cast("q")
        self.log = options.out / f"worker-{slot}.log"
        self.finding = options.out / f"worker-{slot}.finding"
        self.finding.unlink(missing_ok=True)
        self.write(first, 0, 0)
        self.pid = os.fork()
        if self.pid == 0:
            output = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.dup2(output, 1)
            os.dup2(output, 2)
            self.work(options, client)

    def write(self, number: int, programs: int, steps: int) -> None:
        shared = self.shared
        shared[0], shared[1], shared[2] = number, programs, steps
        shared[4] = len(plain.unclear)
        self.go_on()

    def go_on(self) -> None:
        """Say that this process does not hang.

        Beside much other work a program of several threads may take minutes: with every collection
        each of them waits for the processor.
        """
        self.shared[3] = time.monotonic_ns()

    def read(self) -> tuple[int, int, int, float, int]:
        number, programs, steps, went_on, unclear = self.shared
        return number, programs, steps, went_on / 1e9, unclear

    def work(self, options: argparse.Namespace, client: Any) -> None:
        number, steps, sizes = self.first, 0, []
        threads.went_on = self.go_on
        every = max(1, options.per_worker // 10)
        try:
            for done in range(options.per_worker):
                self.write(number, done, steps)
                steps += run([make(options, number)], options.groups, client)
                number += options.jobs
                if done % every == every - 1:
                    gc.collect()
                    sizes.append(resident())
            self.write(number, options.per_worker, steps)
            check_growth(sizes)
        except ChildEnds:
            raise
        except BaseException as error:
            if not isinstance(error, Broken):
                error = Broken(f"unexpected {type(error).__name__}: {error}")
            traceback.print_exception(error)
            sys.stderr.flush()
            self.finding.write_text(str(error))
            os._exit(10)
        os._exit(0)


def check_growth(sizes: list[int]) -> None:
    """P5: resident memory is flat over many programs, once everything was used."""
    later = sizes[len(sizes) // 2 :]
    growth = [b - a for a, b in itertools.pairwise(later)]
    if growth and min(growth) > 256 * 1024:
        raise Broken(f"P5: resident memory grew every time: {[g >> 10 for g in growth]} KiB")


class Soak:
    """The run: workers, what they found, and the count."""

    def __init__(self, options: argparse.Namespace, client: Any) -> None:
        self.options = options
        self.client = client
        self.owner = os.getpid()
        self.programs = self.steps = self.failed = self.unclear = 0
        self.findings: dict[str, dict[str, Any]] = {}
        self.workers: list[Worker] = []

    def start(self, slot: int, first: int) -> Worker:
        return Worker(self.options, self.client, slot, first)

    def found(self, worker: Worker, number: int, text: str) -> None:
        self.failed += 1
        log = worker.log.read_text(errors="replace") if worker.log.exists() else ""
        said = re.search(r"Sanitizer: [\w-]+|runtime error: .*", log)
        if said:
            text += f", {said[0]}"
        key = signature(text)
        print(f"found in program {number}: {text.splitlines()[0][:300]}", flush=True)
        if key in self.findings:
            self.findings[key]["again"] += 1
            return
        self.findings[key] = {
            "text": text,
            "number": number,
            "first": worker.first,
            "again": 0,
            "log": log[-6000:],
        }

    def poll(self, worker: Worker) -> Worker:
        """Look after a worker; returns it or the one that takes its place."""
        options = self.options
        number, programs, steps, went_on, _ = worker.read()
        pid, status = os.waitpid(worker.pid, os.WNOHANG)
        if not pid:
            if time.monotonic() - went_on < options.hang_seconds:
                return worker
            os.kill(worker.pid, signal.SIGABRT)  # faulthandler tells where
            time.sleep(0.5)
            try:
                os.kill(worker.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            os.waitpid(worker.pid, 0)
            text = "hang"
        elif status == 0:
            number, programs, steps, _, _ = worker.read()
            text = ""
            number -= options.jobs
        elif os.WIFSIGNALED(status):
            text = f"crash: {signal.Signals(os.WTERMSIG(status)).name}"
        elif worker.finding.exists():
            text = worker.finding.read_text()
        else:
            text = f"crash: exit status {status >> 8}"
        number2, programs, steps, _, unclear = worker.read()
        self.programs += programs
        self.steps += steps
        self.unclear += unclear
        if text:
            number = number2
            self.found(worker, number, text)
        return self.start(worker.slot, number + options.jobs)

    def totals(self) -> tuple[int, int, int]:
        records = [worker.read() for worker in self.workers]
        return (
            self.programs + sum(r[1] for r in records),
            self.steps + sum(r[2] for r in records),
            self.unclear + sum(r[4] for r in records),
        )

    def run(self) -> None:
        options = self.options
        begin = said = time.monotonic()
        self.workers = [self.start(slot, slot) for slot in range(options.jobs)]
        try:
            while True:
                time.sleep(0.05)
                self.workers = [self.poll(worker) for worker in self.workers]
                now = time.monotonic()
                programs, steps, _ = self.totals()
                if now - said > 10:
                    said = now
                    rate = steps / (now - begin)
                    print(
                        f"{now - begin:.0f} s: {programs} programs, {steps} steps,"
                        f" {rate:.0f} per second, {self.failed} failed",
                        flush=True,
                    )
                if now - begin > options.duration or (options.steps and steps > options.steps):
                    break
                if len(self.findings) >= MAX_FINDINGS or self.failed >= 10 * MAX_FINDINGS:
                    break
        finally:
            if os.getpid() == self.owner:  # not a child that ends as programs do
                for worker in self.workers:
                    os.kill(worker.pid, signal.SIGKILL)
                    os.waitpid(worker.pid, 0)
        self.programs, self.steps, self.unclear = self.totals()

    def report(self) -> None:
        """Make the findings small, and say how to run them."""
        options = self.options

        def run_again(programs: list[dict[str, Any]]) -> None:
            run(programs, options.groups, self.client)

        for i, finding in enumerate(self.findings.values()):
            numbers = range(finding["first"], finding["number"] + 1, options.jobs)
            programs = [make(options, number) for number in numbers]
            small, again = shrink(
                programs,
                finding["text"],
                run_again,
                options.hang_seconds / 3,
                options.shrink_seconds,
            )
            path = options.out / f"finding-{i}.json"
            write(path, finding["text"], options.groups, small)
            print(f"\n== {finding['text'].splitlines()[0][:600]}")
            again_text = f"{finding['again']} more like it"
            print(f"   program {finding['number']} of seed {options.seed}; {again_text}")
            if not again:
                print("   not seen again when run alone")
            if not again or finding["text"].startswith(("crash", "hang")):
                print("   " + "\n   ".join(finding["log"].splitlines()[-30:]))
            for p in small:
                print(f"   {p['kind']}, {len(p['steps'])} steps:")
                for s in p["steps"][:24]:
                    print(f"     {s}")
            print(f"   replay: {sys.executable} tests/soak/soak.py --replay {path}")


def write(path: Path, text: str, groups: set[str], programs: list[dict[str, Any]]) -> None:
    lines = []
    for p in programs:
        head = {k: v for k, v in p.items() if k != "steps"}
        steps = ",\n   ".join(json.dumps(s) for s in p["steps"])
        lines.append(f'{json.dumps(head)[:-1]}, "steps": [\n   {steps}]}}')
    joined = ",\n  ".join(lines)
    path.write_text(
        f'{{"found": {json.dumps(text)},\n "groups": {json.dumps(sorted(groups))},\n'
        f' "programs": [\n  {joined}]}}\n'
    )


def load(path: Path) -> tuple[list[dict[str, Any]], set[str]]:
    data = json.loads(path.read_text())
    return data["programs"], set(data["groups"])


def build_client(out: Path) -> str | None:
    """Build the C library that holds references; without a compiler the steps are left out."""
    if shutil.which(os.environ.get("CC", "cc").split()[0]) is None:
        return None
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
    from support import build_native_client

    preload = os.environ.pop("LD_PRELOAD", None)  # the compiler runs without a sanitizer
    try:
        return build_native_client(Path(tempfile.mkdtemp(dir=out)))
    finally:
        if preload is not None:
            os.environ["LD_PRELOAD"] = preload


def regressions(client: Any, seconds: float) -> int:
    """Run the programs in found/, each in a child; returns how many fail."""
    failed = 0
    for path in sorted((Path(__file__).parent / "found").glob("*.json")):
        programs, groups = load(path)
        if client is None and "native" in groups:
            continue
        got = run_in_child(lambda p=programs, g=groups: run(p, g, client), seconds)
        if got:
            failed += 1
            print(f"found/{path.name}: {got.splitlines()[0][:300]}")
    return failed


def warm_up() -> None:
    """Use what is made at its first use, so that it does not count as left behind."""
    for value in (objects.Converted(1), objects.Key(1), objects.PyNode(1), [1], {"a": 1}, "text"):
        made = tvm_ffi.List([value])
        made.append(value)
        made.insert(0, value)
        made.extend([value])
        for use in (copy.copy, copy.deepcopy, pickle.dumps, repr, hash, tvm_ffi.structural_hash):
            try:
                use(made)
            except (TypeError, ValueError, RuntimeError):
                pass
        _ = value in made
    classes = (objects.PyNode, objects.PyNodeDict, objects.PyNodeSlots, objects.PyNodeDel)
    classes += (objects.BaseDict, objects.BaseSlots, objects.BaseDel, objects.Key)
    alike = [cls(1) for cls in classes]
    alike += [
        objects.ListDict([1]),
        objects.DictDict({1: 1}),
        tvm_ffi.Array([1]),
        tvm_ffi.Map({1: 1}),
    ]
    alike += [plain.Base(1), plain.Holder(plain.Base(1)), plain.make_edges(1)]
    for value in alike:
        for use in (copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))):
            try:
                use(value)
            except (TypeError, ValueError, RuntimeError, AttributeError, pickle.PicklingError):
                pass
    table = tvm_ffi.Dict({objects.Key(1): 2})
    table.get(objects.Key(2))
    table.pop(objects.Key(2), None)


def main() -> int:
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    options.out = Path(tempfile.mkdtemp(prefix="run-", dir=options.out))
    faulthandler.enable()
    client = load_client(build_client(options.out) if "native" in options.groups else None)
    if client is None:
        options.groups.discard("native")
    gc.disable()
    warm_up()
    gc.collect()
    gc.freeze()
    if options.self_test:
        missed = self_test(options.groups, client)
        print(f"{len(FAULTS) - missed} passed, {missed} failed")
        return 1 if missed else 0
    if options.replay:
        programs, groups = load(options.replay)
        run(programs, groups, client)
        print("nothing found")
        return 0
    version = sys.version.split()[0] + (" free-threaded" if FREE_THREADED else "")
    left_out = sorted(set(GROUPS) - options.groups)
    print(
        f"soak: Python {version}, seed {options.seed}"
        + (f", without {left_out}" if left_out else "")
    )
    failed = regressions(client, options.hang_seconds) if options.regressions else 0
    soak = Soak(options, client)
    soak.run()
    soak.report()
    failed += soak.failed
    if soak.unclear > max(3, MAX_UNCLEAR * soak.programs):
        print("too many programs ended early")
        failed += 1
    if options.junit:
        result = f"<failure message='{failed} programs failed'/>" if failed else ""
        name = f"{options.name}: {soak.programs} programs, {soak.steps} steps"
        options.junit.parent.mkdir(parents=True, exist_ok=True)
        options.junit.write_text(
            f'<testsuite><testcase name="{name}">{result}</testcase></testsuite>\n'
        )
    if not failed:
        shutil.rmtree(options.out)
    print(f"{soak.steps} steps; {soak.unclear} programs ended early, because the model was unclear")
    print(f"{soak.programs} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        status = main()
    except ChildEnds:
        status = 0
    sys.exit(status)
