#!/usr/bin/env python3
"""Writes a tiny language model of random weights as a GGUF file: model.py FILE

What it says is noise; its tokens, its window and its protocol are real. Needs nothing but Python. The vocabulary is
trained (byte-level pair merges) on this project's own texts, so that a prompt takes about as many tokens as with a
real model. Which way the noise goes is up to the requests: `logit_bias` on the token that ends an answer or begins a
call, `ignore_eos` for an answer that never ends.
"""

import collections
import pathlib
import random
import re
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXTS = ["README.md", "prompts/**/*.md", "docs/*.md", "skills/**/*.md", "src/tools/*.rs"]
MERGES = 8192
WINDOW, WIDTH, HEADS, INNER = 32768, 64, 2, 128
# Tokens that no text is cut into: the marks of the template, numbered from 0. The last two are part of what is shown.
HIDDEN, SHOWN = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], ["<tool_call>", "</tool_call>"]

TEMPLATE = """\
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
{{- '<tools>' }}
{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}
{{- '\\n</tools>\\nA call: <tool_call>{"name": NAME, "arguments": OBJECT}</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' }}
{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}
{{- '}</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"""


def letters():
    """Bytes as the printable characters that stand for them in such vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in plain]
    return {**{byte: chr(byte) for byte in plain}, **{byte: chr(256 + at) for at, byte in enumerate(rest)}}


def trained(texts):
    """The pairs that are merged, most frequent first."""
    spelled = letters()
    words = collections.Counter()
    for text in texts:
        words.update(re.findall(r" ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+", text))
    words = [([spelled[byte] for byte in word.encode()], count) for word, count in sorted(words.items())]
    counts, places = collections.Counter(), collections.defaultdict(set)
    for at, (word, count) in enumerate(words):
        for pair in zip(word, word[1:]):
            counts[pair] += count
            places[pair].add(at)
    merges = []
    while len(merges) < MERGES and counts:
        best = max(counts, key=lambda pair: (counts[pair], pair))
        if counts[best] < 2:
            break
        merges.append(best)
        for at in places.pop(best):
            word, count = words[at]
            for pair in zip(word, word[1:]):
                counts[pair] -= count
            merged, index = [], 0
            while index < len(word):
                step = 2 if tuple(word[index : index + 2]) == best else 1
                merged.append("".join(word[index : index + step]))
                index += step
            words[at] = (merged, count)
            for pair in zip(merged, merged[1:]):
                counts[pair] += count
                places[pair].add(at)
        del counts[best]
    return merges


def packed(kind, value):
    """A value as GGUF writes it."""
    if kind == "string":
        data = value.encode()
        return struct.pack("<Q", len(data)) + data
    return struct.pack({"u32": "<I", "i32": "<i", "f32": "<f", "bool": "<?"}[kind], value)


KINDS = {"u32": 4, "i32": 5, "f32": 6, "bool": 7, "string": 8}


def entry(key, kind, value):
    """A key with its value, or with a list of values."""
    head = packed("string", key)
    if isinstance(value, list):
        return head + struct.pack("<IIQ", 9, KINDS[kind], len(value)) + b"".join(packed(kind, one) for one in value)
    return head + struct.pack("<I", KINDS[kind]) + packed(kind, value)


def write(path):
    texts = [file.read_text() for glob in TEXTS for file in sorted(ROOT.glob(glob))]
    merges = trained(texts)
    plain = [*letters().values(), *("".join(pair) for pair in merges)]
    plain = list(dict.fromkeys(plain))
    tokens = HIDDEN + SHOWN + plain
    kinds = [3] * len(HIDDEN) + [4] * len(SHOWN) + [1] * len(plain)
    end_of_text, end_of_answer = tokens.index("<|endoftext|>"), tokens.index("<|im_end|>")
    entries = [
        entry("general.architecture", "string", "llama"),
        entry("general.name", "string", "noise"),
        entry("llama.context_length", "u32", WINDOW),
        entry("llama.embedding_length", "u32", WIDTH),
        entry("llama.block_count", "u32", 1),
        entry("llama.feed_forward_length", "u32", INNER),
        entry("llama.attention.head_count", "u32", HEADS),
        entry("llama.attention.head_count_kv", "u32", HEADS),
        entry("llama.attention.layer_norm_rms_epsilon", "f32", 1e-5),
        entry("llama.rope.dimension_count", "u32", WIDTH // HEADS),
        entry("llama.vocab_size", "u32", len(tokens)),
        entry("tokenizer.ggml.model", "string", "gpt2"),
        entry("tokenizer.ggml.pre", "string", "gpt-2"),
        entry("tokenizer.ggml.tokens", "string", tokens),
        entry("tokenizer.ggml.token_type", "i32", kinds),
        entry("tokenizer.ggml.merges", "string", [" ".join(pair) for pair in merges]),
        entry("tokenizer.ggml.bos_token_id", "u32", end_of_text),
        entry("tokenizer.ggml.eos_token_id", "u32", end_of_answer),
        entry("tokenizer.ggml.padding_token_id", "u32", end_of_text),
        entry("tokenizer.ggml.add_bos_token", "bool", False),
        entry("tokenizer.chat_template", "string", TEMPLATE),
    ]
    square, up, down = (WIDTH, WIDTH), (WIDTH, INNER), (INNER, WIDTH)
    tensors = {
        "token_embd.weight": (WIDTH, len(tokens)),
        "output_norm.weight": (WIDTH,),
        "output.weight": (WIDTH, len(tokens)),
        "blk.0.attn_norm.weight": (WIDTH,),
        "blk.0.attn_q.weight": square,
        "blk.0.attn_k.weight": square,
        "blk.0.attn_v.weight": square,
        "blk.0.attn_output.weight": square,
        "blk.0.ffn_norm.weight": (WIDTH,),
        "blk.0.ffn_gate.weight": up,
        "blk.0.ffn_up.weight": up,
        "blk.0.ffn_down.weight": down,
    }
    infos, data, noise = b"", b"", random.Random(1)
    for name, shape in tensors.items():
        infos += packed("string", name) + struct.pack("<I", len(shape))
        infos += b"".join(struct.pack("<Q", size) for size in shape) + struct.pack("<IQ", 0, len(data))
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        values = [1.0] * count if len(shape) == 1 else [noise.gauss(0, 0.05) for _ in range(count)]
        data += struct.pack(f"<{count}f", *values)
        data += bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries) + infos
    pathlib.Path(path).write_bytes(head + bytes(-len(head) % 32) + data)
    print(f"{path}: {len(tokens)} tokens, {(len(head) + len(data)) // 1024} KiB")


if __name__ == "__main__":
    write(sys.argv[1])
