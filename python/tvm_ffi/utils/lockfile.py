# SPDX-License-Identifier: Apache-2.0
"""A lock between processes.

>>> import os, tempfile
>>> from tvm_ffi.utils import FileLock
>>> path = os.path.join(tempfile.mkdtemp(), "lock")
>>> first, second = FileLock(path), FileLock(path)
>>> first.acquire(), second.acquire()
(True, False)
>>> first.release(); second.acquire()
True
>>> second.release()
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["FileLock"]

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _unlock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class FileLock:
    """An exclusive lock on a file, which is created if needed and never removed.

    One holder at a time among all processes and all instances. As a context manager it waits.
    """

    def __init__(self, lock_file_path: str) -> None:
        self.lock_file_path = lock_file_path
        self._file_descriptor: int | None = None

    def acquire(self) -> bool:
        """Take the lock if it is free; False if it is not, or if the file cannot be opened."""
        if self._file_descriptor is not None:
            return False
        try:
            descriptor = os.open(self.lock_file_path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError:
            return False
        except Exception as error:
            raise RuntimeError(f"An unexpected error occurred: {error}") from error
        try:
            _lock(descriptor)
        except OSError:
            os.close(descriptor)
            return False
        except Exception as error:
            os.close(descriptor)
            raise RuntimeError(f"An unexpected error occurred: {error}") from error
        self._file_descriptor = descriptor
        return True

    def blocking_acquire(self, timeout: float | None = None, poll_interval: float = 0.1) -> bool:
        """Take the lock, waiting for it up to `timeout` seconds."""
        if self._file_descriptor is not None:
            raise RuntimeError("Lock is already held by this instance.")
        # Waiting helps against another holder, not against a file that cannot exist.
        os.close(os.open(self.lock_file_path, os.O_RDWR | os.O_CREAT, 0o666))
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.acquire():
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(
                    f"Failed to acquire lock on '{self.lock_file_path}' after {timeout} seconds."
                )
            time.sleep(poll_interval)
        return True

    def release(self) -> None:
        """Give the lock back; nothing happens if it is not held."""
        descriptor, self._file_descriptor = self._file_descriptor, None
        if descriptor is None:
            return
        try:
            _unlock(descriptor)
        finally:
            os.close(descriptor)

    def __enter__(self) -> FileLock:
        self.blocking_acquire()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.release()
