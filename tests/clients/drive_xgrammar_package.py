# SPDX-License-Identifier: Apache-2.0
"""Use xgrammar as its users do: schema, compiler, matcher, bitmask of torch tensors, errors."""

from __future__ import annotations

import json

import torch
import tvm_ffi
import xgrammar as xgr

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
VOCABULARY = [chr(code) for code in range(32, 127)] + ["<end>"]


def main() -> None:
    tokenizer = xgr.TokenizerInfo(VOCABULARY, stop_token_ids=[len(VOCABULARY) - 1])
    compiler = xgr.GrammarCompiler(tokenizer)
    matcher = xgr.GrammarMatcher(compiler.compile_json_schema(json.dumps(SCHEMA)))
    bitmask = xgr.allocate_token_bitmask(1, tokenizer.vocab_size)
    assert matcher.fill_next_token_bitmask(bitmask)
    logits = torch.zeros(1, tokenizer.vocab_size)
    xgr.apply_token_bitmask_inplace(logits, bitmask)
    allowed = (logits[0] == 0).nonzero().flatten().tolist()
    assert [VOCABULARY[i] for i in allowed] == ["{"]
    assert matcher.accept_string('{"a": 12}') and matcher.is_completed()
    matcher.reset()
    assert not matcher.accept_string('{"b": 12}')
    grammar = xgr.Grammar.from_json_schema(json.dumps(SCHEMA))
    assert tvm_ffi.Array([grammar._handle])[0] is grammar._handle
    try:
        xgr.Grammar.deserialize_json("{")
    except xgr.exception.InvalidJSONError:
        print("ok")


main()
