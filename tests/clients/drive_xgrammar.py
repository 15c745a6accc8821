# SPDX-License-Identifier: Apache-2.0
"""Use a prebuilt binding library of xgrammar through tvm_ffi alone, without its Python package.

    python drive_xgrammar.py libxgrammar_bindings.so

A program of its own, because two releases of xgrammar register the same types and cannot share a
process. Prints the figures of the memory watch; a failed assertion ends it.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import tvm_ffi
from tvm_ffi import tying

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    }
)
GOOD = '{"name": "x", "age": 7}'
BAD = '{"name": "x", "age": "seven"}'
# Every printable character is a token, and one more ends the text.
VOCABULARY = [chr(code) for code in range(32, 127)] + ["<end>"]
WORDS = (len(VOCABULARY) + 31) // 32
ROUNDS = 400


def bind(name: str) -> Any:
    """Make a Python class with state for a class of the client."""
    cls = type(name, (tvm_ffi.Object,), {"__slots__": ("__dict__",)})
    return tvm_ffi.register_object(f"xgrammar.tvm_ffi_binding.{name}")(cls)


tvm_ffi.load_module(sys.argv[1])
Grammar, CompiledGrammar, GrammarCompiler, GrammarMatcher, TokenizerInfo = map(
    bind, ("Grammar", "CompiledGrammar", "GrammarCompiler", "GrammarMatcher", "TokenizerInfo")
)
MATCHER_ARGUMENTS = json.loads(
    next(
        method.metadata["type_schema"]
        for method in GrammarMatcher.__tvm_ffi_type_info__.methods
        if method.name == "__ffi_init__"
    )
)["args"][1:]


def make_compiler() -> Any:
    tokenizer = TokenizerInfo(VOCABULARY, 0, None, [len(VOCABULARY) - 1], False)
    return GrammarCompiler(tokenizer, 1, True, -1)


def make_matcher(compiled: Any) -> Any:
    # Newer releases have a temperature at the end.
    return GrammarMatcher(*[compiled, None, False, -1, None][: len(MATCHER_ARGUMENTS)])


def compile_schema(compiler: Any) -> Any:
    return compiler.compile_json_schema(SCHEMA, True, None, None, True, None, False)


def allowed_tokens(matcher: Any) -> set[str]:
    """Ask for the bitmask of the next token, through a numpy array."""
    mask = np.full((1, WORDS), -1, dtype=np.int32)
    if not matcher.fill_next_token_bitmask(tvm_ffi.from_dlpack(mask), 0, False):
        return set(VOCABULARY)
    bits = mask.view(np.uint32)[0]
    return {t for i, t in enumerate(VOCABULARY) if bits[i // 32] >> np.uint32(i % 32) & 1}


def check_grammars() -> None:
    grammar = Grammar.from_json_schema(SCHEMA, True, None, None, True, None, False, False)
    assert isinstance(grammar, Grammar) and "root ::=" in grammar.to_string()
    compiled = compile_schema(make_compiler())
    matcher = make_matcher(compiled)
    assert allowed_tokens(matcher) == {"{"}
    assert matcher.accept_string(GOOD, False) is True
    assert matcher.is_completed()
    assert allowed_tokens(matcher) >= {"<end>"}
    matcher.reset()
    assert matcher.accept_string(BAD, False) is False
    matcher.reset()
    assert matcher.accept_string('{"name": "x", "age": ', False)
    assert allowed_tokens(matcher) >= set("0123456789-") and '"' not in allowed_tokens(matcher)
    assert [matcher.accept_token(VOCABULARY.index(c), False) for c in "4}"] == [True, True]
    union = Grammar.union([grammar, Grammar.from_ebnf("root ::= [a-z]+", "root")])
    assert make_matcher(make_compiler().compile_grammar_ebnf(union)).accept_string("abc", False)
    assert Grammar.deserialize_json(grammar.serialize_json()).to_string() == grammar.to_string()


def check_errors() -> None:
    for wrong in (
        lambda: Grammar.from_ebnf("root ::= (", "root"),
        lambda: Grammar.deserialize_json("{"),
        lambda: Grammar.from_json_schema("[", True, None, None, True, None, False, False),
    ):
        try:
            wrong()
        except RuntimeError:
            continue
        raise AssertionError("a broken grammar was accepted")
    try:
        Grammar.from_ebnf(1, 2)
    except TypeError:
        return
    raise AssertionError("a number was accepted as text")


def check_tying() -> None:
    """One wrapper, with its state, for objects of a library that never heard of tying."""
    grammar = Grammar.from_ebnf("root ::= [a-z]+", "root")
    assert tvm_ffi.get_global_func("testing.echo")(grammar) is grammar
    grammar.note = note = object()
    fired: list[Any] = []
    watcher = weakref.ref(grammar, fired.append)
    number = id(grammar)
    box = tvm_ffi.Array([grammar])
    assert box[0] is grammar and box[0] is box[0]
    del grammar
    gc.collect()
    assert id(box[0]) == number and box[0].note is note and watcher() is box[0]
    del box
    assert watcher() is None and len(fired) == 1


def work(rounds: int) -> None:
    for _ in range(rounds):
        compiler = make_compiler()
        matcher = make_matcher(compile_schema(compiler))
        assert matcher.accept_string(GOOD, False)
        allowed_tokens(matcher)
        fork = matcher.fork() if hasattr(matcher, "fork") else matcher
        box = tvm_ffi.Array([compiler, matcher, fork])
        assert box[1] is matcher


def resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def check_memory() -> None:
    """Use it in a loop, on two threads: neither objects nor memory stay behind."""
    work(ROUNDS // 4)
    gc.collect()
    adopted, before = tying.stats()["adopted"], resident_kib()
    growth = []
    for _ in range(4):
        threads = [threading.Thread(target=work, args=(ROUNDS // 8,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
        growth.append(resident_kib() - before)
        before = resident_kib()
    assert tying.stats()["adopted"] == adopted, "objects of the client were kept"
    print(f"memory over {ROUNDS} rounds, KiB per quarter: {growth}")
    assert min(growth) < 512, f"every quarter grew: {growth}"


check_grammars()
check_errors()
check_tying()
check_memory()
print("ok")
