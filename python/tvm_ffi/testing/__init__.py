# SPDX-License-Identifier: Apache-2.0
"""Objects and functions that tests of any frontend use.

>>> from tvm_ffi import testing
>>> pair = testing.TestIntPair(3, 4)
>>> pair.a, pair.sum(), testing.echo(pair) is pair
(3, 7, True)
"""

from ._ffi_api import *  # noqa: F403
from .testing import (  # noqa: F401
    TestCompare,
    TestCustomCompare,
    TestCustomHash,
    TestEqWithoutHash,
    TestFrozenCxx,
    TestHash,
    TestIntPair,
    TestNonCopyable,
    TestObjectBase,
    TestObjectDerived,
    TestObjectPtrHolder,
    _SchemaAllTypes,
    _TestCxxAutoInit,
    _TestCxxAutoInitAllInitOff,
    _TestCxxAutoInitChild,
    _TestCxxAutoInitKwOnlyDefaults,
    _TestCxxAutoInitParent,
    _TestCxxAutoInitSimple,
    _TestCxxClassBase,
    _TestCxxClassDerived,
    _TestCxxClassDerivedDerived,
    _TestCxxEnumHolder,
    _TestCxxInitSubset,
    _TestCxxIntEnum,
    _TestCxxKwOnly,
    _TestCxxNoAutoInit,
    _TestCxxStrEnum,
    add_one,
    create_object,
    make_unregistered_object,
    run_with_gpu_lock,
)
