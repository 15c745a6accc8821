# SPDX-License-Identifier: Apache-2.0
"""Fail tests that leave objects behind.

Switch it on with `-p tvm_ffi.inspect.pytest_plugin`, or in a conftest.py::

    pytest_plugins = ["tvm_ffi.inspect.pytest_plugin"]

A test asks for it with the fixture `no_leaks` or with `@pytest.mark.no_leaks`; the option
`--no-leaks` asks for all tests, and `@pytest.mark.may_leak` excuses one. What is compared is what
there is before the test function is called, fixtures included, and after it has returned.

>>> from tvm_ffi.inspect.pytest_plugin import no_leaks
>>> callable(no_leaks)
True
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ._snapshot import check, recording, snapshot

__all__ = ["pytest_configure"]  # the rest is for pytest alone


def pytest_addoption(parser: Any) -> None:
    """Add the option."""
    parser.addoption("--no-leaks", action="store_true", help="fail tests that leave C++ objects")


def pytest_configure(config: Any) -> None:
    """Describe the marks."""
    config.addinivalue_line("markers", "no_leaks: fail the test if it leaves C++ objects")
    config.addinivalue_line("markers", "may_leak: do not check this test for what it leaves")


@pytest.fixture
def no_leaks() -> None:
    """Fail the test if objects that it made stay."""


def _is_asked_for(item: Any) -> bool:
    if item.get_closest_marker("may_leak") is not None:
        return False
    asked = item.config.getoption("--no-leaks", default=False)
    has_mark = item.get_closest_marker("no_leaks") is not None
    return asked or has_mark or "no_leaks" in getattr(item, "fixturenames", ())


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Iterator[None]:
    """Check around the call of a test."""
    if not _is_asked_for(pyfuncitem):
        yield
        return
    with recording():
        before = snapshot()
        outcome: Any = yield
        if outcome.excinfo is None:
            try:
                check(before)
            except AssertionError as error:
                pyfuncitem.leak_error = error
                outcome.force_exception(error.with_traceback(None))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Iterator[None]:
    """Show what stayed, without the calls in pytest that lead to the check."""
    outcome: Any = yield
    error = getattr(item, "leak_error", None)
    if error is None or call.excinfo is None or call.excinfo.value is not error:
        return
    item.leak_error = None
    shown = getattr(outcome.get_result().longrepr, "reprtraceback", None)
    entries = getattr(shown, "reprentries", [])
    if not entries or not hasattr(entries[-1], "reprfuncargs"):
        return  # another style of tracebacks
    del entries[:-1]
    (entry,) = entries
    entry.lines = [line for line in entry.lines if line.startswith("E")]
    entry.reprfuncargs = entry.reprlocals = None
    if entry.reprfileloc is not None:
        entry.reprfileloc.path, entry.reprfileloc.lineno = str(item.path), item.location[1] + 1
