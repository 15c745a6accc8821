# SPDX-License-Identifier: Apache-2.0
"""Memory of tensors that several processes map: see `tvm_ffi.travel.share`.

A block is a file in memory. Every process that uses it holds a shared lock on it, which the system
takes back when the process ends, however it ends. Whoever lets go last finds that it can have the
lock alone, and removes the file. If that process is killed, the next that makes a block does it.

Pickles that are on their way count too. Each has a ticket, a number in the head of the file. The
first time it is read, the ticket is taken out. A ticket is also taken out if pickling fails, and
it is void when nobody has used the block for a day.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
import time
import weakref
from functools import partial

from .. import core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Bytes before the elements: numbers of 8 bytes. The first counts the pickles on their way for whose
# tickets there was no room; the others are tickets, or 0.
HEAD = 4096
# Seconds for which a pickle keeps a block that nobody uses.
PATIENCE = 24 * 3600

# Blocks of this process, by the address of their elements.
_blocks: weakref.WeakValueDictionary[int, Block] = weakref.WeakValueDictionary()
# Around everything that opens or closes a block or reads its head: the lock of the head does not
# keep out threads of the same process.
_lock = threading.RLock()


class Block(mmap.mmap):
    """The mapped file, held until nothing uses the mapping any more."""

    fd: int
    path: str


# Names of blocks do not go through pathlib: it interns them, and free-threaded CPython 3.13 keeps
# such text for ever.
def _folder() -> str:
    memory = "/dev/shm"
    return memory if os.path.isdir(memory) else tempfile.gettempdir()


def _change_head(fd: int, change: Callable[[memoryview], Any]) -> Any:
    """Apply a function to the numbers of the head, which may change them."""
    import fcntl

    fcntl.lockf(fd, fcntl.LOCK_EX, HEAD, 0)
    try:
        before = os.pread(fd, HEAD, 0)
        head = bytearray(before)
        result = change(memoryview(head).cast("Q"))
        if head != before:
            os.pwrite(fd, head, 0)
        return result
    finally:
        fcntl.lockf(fd, fcntl.LOCK_UN, HEAD, 0)


def _is_on_the_way(fd: int) -> bool:
    return _change_head(fd, any)


def _add_ticket(fd: int) -> int:
    """Note that a pickle is on its way, and return its ticket."""
    ticket = int.from_bytes(os.urandom(8), "little") | 1

    def add(head: memoryview) -> int:
        for i in range(1, len(head)):
            if head[i] == 0:
                head[i] = ticket
                return ticket
        head[0] += 1
        return 0

    return _change_head(fd, add)


def _remove_ticket(fd: int, ticket: int) -> None:
    """Note that a pickle has arrived. The second time nothing happens."""

    def remove(head: memoryview) -> None:
        if ticket == 0:
            head[0] = max(0, head[0] - 1)
            return
        for i in range(1, len(head)):
            if head[i] == ticket:
                head[i] = 0

    _change_head(fd, remove)


def _map(fd: int, path: str, access: int) -> Block:
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
        block = Block(fd, 0, access=access)
    except BaseException:
        os.close(fd)
        raise
    block.fd, block.path = fd, path
    weakref.finalize(block, _let_go, fd, path, os.getpid())
    return block


def _let_go(fd: int, path: str, pid: int) -> None:
    if os.getpid() != pid:  # a forked child: the lock is its parent's
        os.close(fd)
        return
    import fcntl

    with _lock:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_on_the_way(fd):
                os.unlink(path)
        except OSError:  # others use it, or it was removed
            pass
        finally:
            os.close(fd)


def sweep() -> None:
    """Remove blocks that nobody uses: whoever had to do it was killed."""
    import fcntl

    folder = _folder()
    for name in os.listdir(folder):
        if not name.startswith("tvm_ffi-"):
            continue
        path = os.path.join(folder, name)
        try:
            fd = os.open(path, os.O_RDWR)
        except OSError:  # it is gone, or another user's
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.fstat(fd)
            # One without a size is being made.
            if status.st_size > HEAD and (
                not _is_on_the_way(fd) or time.time() - status.st_mtime > PATIENCE
            ):
                os.unlink(path)
        except OSError:  # it is in use
            continue
        finally:
            os.close(fd)


def create(size: int) -> Block:
    """Make a block for so many bytes."""
    import fcntl

    with _lock:
        sweep()
        fd, path = tempfile.mkstemp(prefix="tvm_ffi-", dir=_folder())
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)  # before it has a size: see sweep
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(fd, 0, HEAD + max(size, 1))  # now, not when it is written
            else:
                os.ftruncate(fd, HEAD + max(size, 1))
        except OSError as error:
            os.close(fd)
            os.unlink(path)
            raise MemoryError(f"no shared memory for {size} bytes: {error}") from error
        return _map(fd, path, mmap.ACCESS_WRITE)


def elements(block: Block, size: int) -> memoryview:
    """Return the memory of the elements in a block."""
    return memoryview(block)[HEAD : HEAD + size]


def remember(address: int, block: Block) -> None:
    """Note that the elements of a block are at an address."""
    _blocks[address] = block


def is_shared(address: int) -> bool:
    """Whether the elements of a block are at an address."""
    return address in _blocks


class Reference:
    """Stands for the memory of a block in a pickle."""

    __slots__ = ("block", "size", "watches")

    def __init__(self, block: Block, size: int) -> None:
        self.block = block
        self.size = size
        self.watches: list[Any] = []

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        fd = self.block.fd
        with _lock:
            ticket = _add_ticket(fd)
        # The pickler holds this object. If pickling fails, it drops it with the error set.
        self.watches.append(core._when_dropped_by_error(partial(_take_back, self.block, ticket)))
        return (attach, (os.path.basename(self.block.path), self.size, ticket))


def _take_back(block: Block, ticket: int) -> None:
    with _lock:
        _remove_ticket(block.fd, ticket)


def find(address: int, size: int) -> Reference | None:
    """Return what stands for the memory at an address, if it is that of a whole block."""
    block = _blocks.get(address)
    if block is None or not HEAD + size <= len(block) <= HEAD + max(size, 1):
        return None
    return Reference(block, size)


def attach(name: str, size: int, ticket: int | None = None) -> memoryview:
    """Map a block of another process, to be read. `ticket` is that of the pickle."""
    if not isinstance(name, str) or not name.startswith("tvm_ffi-") or os.sep in name:
        raise ValueError(f"{name!r} is not the name of shared memory")
    path = os.path.join(_folder(), name)
    with _lock:
        try:
            fd = os.open(path, os.O_RDWR)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"the shared memory `{name}` of a tensor is gone: the process that shared it has "
                f"let go of it, or it is on another machine"
            ) from None
        block = _map(fd, path, mmap.ACCESS_READ)
        if isinstance(ticket, int):
            _remove_ticket(fd, ticket)
        if not isinstance(size, int) or size < 0 or HEAD + size > len(block):
            raise ValueError(f"the shared memory `{name}` does not have {size} bytes")
        return elements(block, size)
