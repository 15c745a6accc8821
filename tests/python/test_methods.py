# SPDX-License-Identifier: Apache-2.0
"""Methods and constructors of C++ classes behave as those of Python classes do."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import pydoc
import sys
import threading
import weakref
from typing import Any

import pytest
import tvm_ffi
from tvm_ffi import core, testing

# ---- calls --------------------------------------------------------------------------------------


def test_a_method_is_a_descriptor_of_its_class(shapes: Any) -> None:
    method = shapes.Shape.__dict__["get_count"]
    assert type(method) is core.MethodDescriptor
    assert shapes.Shape.get_count is method
    assert method.__objclass__ is shapes.Shape
    assert repr(method) == "<method 'get_count' of 'Shape' objects>"
    with pytest.raises(TypeError):
        core.MethodDescriptor()


def test_methods_are_called_bound_unbound_and_inherited(shapes: Any) -> None:
    circle = shapes.Circle(2.0)
    assert circle.add(3) == 3
    assert shapes.Shape.add(circle, 1) == 4
    assert circle.get_count() == 4
    assert circle.area() == 12.0
    bound = circle.area
    assert bound(2.0) == 24.0
    assert bound.__self__ is circle
    assert circle.me() is circle


def test_bound_methods_compare_and_hash_as_those_of_python(shapes: Any) -> None:
    one, two = shapes.Circle(1.0), shapes.Circle(1.0)
    assert one.area == one.area
    assert one.area != two.area
    assert hash(one.area) == hash(one.area)
    assert len({one.area, one.area, two.area}) == 2
    assert weakref.WeakMethod(one.area)() == one.area
    assert weakref.ref(shapes.Circle.area)() is shapes.Circle.area


def test_methods_can_be_overridden_and_called_by_super(shapes: Any) -> None:
    class Loud(shapes.Circle):
        def area(self, scale: float = 1.0) -> Any:
            return ("loud", super().area(scale))

        def get_count(self) -> int:
            return super().get_count() + 100

    loud = Loud.__new__(Loud)
    loud.__move_handle_from__(shapes.Circle(2.0))
    assert loud.area() == ("loud", 12.0)
    assert loud.get_count() == 100
    assert shapes.Circle.area(loud) == 12.0


@pytest.mark.parametrize("wrong", [3, None, "x", [1]])
def test_a_method_refuses_what_is_not_an_instance(shapes: Any, wrong: Any) -> None:
    name = type(wrong).__name__
    text = rf"^Shape\.get_count\(\) must be called on an instance of 'Shape', not '{name}'$"
    with pytest.raises(TypeError, match=text):
        shapes.Shape.get_count(wrong)


def test_a_method_refuses_objects_of_other_types(shapes: Any) -> None:
    with pytest.raises(TypeError, match="must be called on an instance of 'Circle', not 'Shape'"):
        shapes.Circle.area(shapes.Shape())
    with pytest.raises(TypeError, match="must be called on an instance of 'Shape', not 'Bare'"):
        shapes.Shape.get_count(shapes.Bare(1))
    with pytest.raises(TypeError, match=r"unbound method Shape\.get_count\(\) needs an argument"):
        shapes.Shape.get_count()
    empty = shapes.Shape.__new__(shapes.Shape)
    with pytest.raises(Exception, match=r"."):
        empty.get_count()


def test_methods_take_keywords_and_defaults(shapes: Any) -> None:
    shape = shapes.Shape()
    assert shape.add(n=2, times=3) == 6
    assert shape.add(1, times=2) == 8
    assert shape.add(times=1, n=1) == 9
    assert shape.add(1) == 10
    with pytest.raises(
        TypeError, match=r"^methods_client.Shape.add\(\) got an unexpected keyword argument 'm'$"
    ):
        shape.add(1, m=2)
    with pytest.raises(
        TypeError, match=r"^methods_client.Shape.add\(\) got multiple values for argument 'n'$"
    ):
        shape.add(1, n=2)
    with pytest.raises(
        TypeError, match=r"^methods_client.Shape.add\(\) got multiple values for argument 'self'$"
    ):
        shape.add(1, self=2)
    with pytest.raises(
        TypeError, match=r"^methods_client.Shape.add\(\) missing required argument: 'n'$"
    ):
        shape.add(times=2)
    with pytest.raises(TypeError, match="Mismatched number of arguments"):
        shape.add(1, 2, 3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        shape.get_count(x=1)


def test_functions_take_keywords_and_defaults(shapes: Any) -> None:
    join = tvm_ffi.get_global_func("methods_client.join")
    assert join("a") == "ax"
    assert join(a="a", b="b") == "ab"
    assert join("a", upper=True) == "ax!"
    assert join("a", n=3) == "ax?"
    with pytest.raises(
        TypeError, match=r"^methods_client.join\(\) missing required argument: 'a'$"
    ):
        join()
    plain = tvm_ffi.get_global_func("methods_client.plain")
    assert plain(1, 2.0) == 3.0
    with pytest.raises(TypeError, match="unexpected keyword argument 'a'"):
        plain(a=1, b=2.0)


def test_static_methods(shapes: Any) -> None:
    assert shapes.Shape.twice(4) == 8
    assert shapes.Circle.twice(n=4) == 8
    assert shapes.Shape().twice(5) == 10


def test_class_methods_take_the_class(shapes: Any) -> None:
    first, second = shapes.Shape.many()
    assert type(first) is type(second) is shapes.Shape
    assert len(shapes.Shape().many(n=3)) == 3  # through an object
    assert isinstance(shapes.Shape.__dict__["many"], classmethod)

    class Mine(shapes.Shape):
        __slots__ = ("__dict__",)

        def __init__(self) -> None:
            super().__init__()
            self.note = "made in C++"

        @classmethod
        def many(cls, n: int = 1) -> Any:
            return [*super().many(n), cls]

    one, two, cls = Mine.many(2)
    assert (type(one), two.note, cls) == (Mine, "made in C++", Mine)
    with pytest.raises(
        TypeError, match=r"^methods_client.Shape.many\(\) got an unexpected keyword argument 'm'$"
    ):
        shapes.Shape.many(m=1)


def test_signature_and_doc_of_class_methods(shapes: Any) -> None:
    assert str(inspect.signature(shapes.Shape.many)) == "(n: 'int' = 2) -> 'List[Any]'"
    assert shapes.Shape.many.__doc__ == "Make `n` of them."
    assert shapes.Shape.many.__qualname__.endswith("Shape.many")
    assert "many(" in pydoc.render_doc(shapes.Shape, renderer=pydoc.plaintext)


def test_a_method_of_a_derived_type_overrides_that_of_its_parent(shapes: Any) -> None:
    assert shapes.Shape().kind() == "any shape"
    assert shapes.Circle(1.0).kind() == "a circle"
    assert shapes.Shape.kind(shapes.Circle(1.0)) == "any shape"
    assert (shapes.Shape.family(), shapes.Circle.family()) == ("shapes", "round shapes")


def test_errors_of_methods_are_those_of_functions(shapes: Any) -> None:
    with pytest.raises(ValueError, match="out of shape"):
        shapes.Shape().fail("out of shape")


def test_release_gil_of_the_registration_holds_for_the_method(shapes: Any) -> None:
    assert shapes.Shape.get_count.func.release_gil is False
    assert shapes.Shape.add.func.release_gil is True


def test_methods_pickle_and_copy_by_name(shapes: Any) -> None:
    method = shapes.Shape.get_count
    assert pickle.loads(pickle.dumps(method)) is method
    assert copy.copy(method) is method
    assert copy.deepcopy(method) is method


# ---- fields beside methods ----------------------------------------------------------------------


def test_fields_work_before_and_after_methods_are_used(shapes: Any) -> None:
    shape = shapes.Shape()
    for i in range(100):
        shape.count = i
        assert shape.count == i
        assert shape.get_count() == i
    with pytest.raises(AttributeError):
        shape.nothing  # noqa: B018


# ---- constructors -------------------------------------------------------------------------------


def test_constructors_take_keywords_and_defaults(shapes: Any) -> None:
    assert (shapes.Circle(2.0).radius, shapes.Circle(2.0).label) == (2.0, "circle")
    assert shapes.Circle(radius=3.0).radius == 3.0
    assert shapes.Circle(3.0, name="c").label == "c"
    assert shapes.Circle(name="c", radius=3.0).label == "c"
    with pytest.raises(TypeError, match="missing required argument: 'radius'"):
        shapes.Circle(name="c")
    with pytest.raises(TypeError, match="unexpected keyword argument 'tags'"):
        shapes.Circle(2.0, tags=1)
    with pytest.raises(TypeError, match="multiple values for argument 'radius'"):
        shapes.Circle(2.0, radius=1.0)


def test_a_constructor_without_names_takes_no_keywords(shapes: Any) -> None:
    assert shapes.Bare(3).b == 3
    with pytest.raises(TypeError, match="takes no keyword arguments: its parameters have no names"):
        shapes.Bare(a=3)


def test_keywords_of_a_generated_constructor() -> None:
    pair = testing._TestCxxClassDerivedDerived
    full = pair(v_i64=1, v_i32=2, v_f64=3.0, v_str="s", v_bool=True)
    assert (full.v_i64, full.v_i32, full.v_f64, full.v_str, full.v_bool) == (1, 2, 3.0, "s", True)
    mixed = pair(1, 2, v_bool=False, v_f64=3.0)
    assert (mixed.v_i64, mixed.v_i32, mixed.v_f64, mixed.v_bool) == (1, 2, 3.0, False)
    names = ["".join(["v_", "i64"]), "".join(["v_", "i32"])]  # not interned
    by_text = pair(**{names[0]: 1, names[1]: 2, "v_f64": 3.0, "v_bool": False})
    assert (by_text.v_i64, by_text.v_i32) == (1, 2)
    with pytest.raises(TypeError):
        pair(1, v_i64=2, v_i32=3, v_f64=1.0, v_bool=True)


# ---- references ---------------------------------------------------------------------------------


def test_calls_leave_reference_counts_as_they_were(shapes: Any) -> None:
    circle, value, text = shapes.Circle(1.0), 12345678901, "a text of some length"
    method = shapes.Circle.area
    before = [sys.getrefcount(x) for x in (circle, value, text, method, method.func)]
    for _ in range(500):
        circle.add(value)
        circle.add(n=value)
        shapes.Circle(1.0, name=text)
        bound = circle.area
        bound(2)
        for bad in (lambda: circle.add(m=value), lambda: shapes.Circle.area(text)):
            with pytest.raises(TypeError):
                bad()
    del bound, bad
    gc.collect()
    after = [sys.getrefcount(x) for x in (circle, value, text, method, method.func)]
    assert after == before


def test_methods_in_threads(shapes: Any) -> None:
    made = [shapes.Circle(1.0) for _ in range(4)]

    def work(shape: Any) -> None:
        for _ in range(2000):
            shape.add(1)
            shape.get_count()
            shape.area(scale=2.0)

    threads = [threading.Thread(target=work, args=(shape,)) for shape in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [shape.get_count() for shape in made] == [2000] * 4
