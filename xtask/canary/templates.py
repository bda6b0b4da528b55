"""Chat templates that try to reach more than their data, and configurations that name code."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable

from pickles import CANARY

STARTS = [
    "lipsum", "cycler", "joiner", "namespace", "range", "dict", "raise_exception", "strftime_now", "messages.append", "''.join",
    "loop", "self", "m", "messages|map('upper')", "messages|select", "messages|batch(1)", "''", "messages", "caller", "undefined_name",
    "messages|items", "bos_token.format", "messages[0].items", "varargs", "kwargs", "tools|tojson",
]  # fmt: skip
HIDDEN = ["__globals__", "__init__", "__class__", "__func__", "__self__", "__subclasses__", "__mro__", "__builtins__", "__dict__"]
INTERNAL = [
    "gi_frame", "gi_code", "mro", "f_globals", "_environment", "_func", "_iterable", "_fail_with_undefined_error", "_undefined_obj",
    "cr_frame", "ag_frame", "func_globals", "im_self", "next", "reset", "environment", "filters", "name", "arguments", "catch_kwargs",
]  # fmt: skip


def hidden(rng: random.Random, word: str) -> str:
    """An expression whose value is the word."""
    bare = word.strip("_")
    ways = [
        f"'{word}'",
        f"'_'~'_{bare}_'~'_'",
        f"('_'*2~'{bare}'~'_'*2)",
        f"'%c%c{bare}%c%c'%(95,95,95,95)",
        f"'XX{bare}XX'|replace('X','_')",
        f"'__{bare.upper()}__'|lower",
        f"'&#95;&#95;{bare}&#95;&#95;'|striptags",
        f"['_','_{bare}_','_']|join",
        f"('_'*2~'{bare[::-1]}'~'_'*2)[::-1]",
        f"(lipsum|string)[18]*2~'{bare}'~(lipsum|string)[18]*2",
        f"'_'.join(['','','{bare}','',''])",
        f"dict(a='_')['a']*2~'{bare}'~'__'",
        f"'{bare}'.center({len(bare) + 4},'_')",
        f"'_-_{bare}_-_'|replace('-','')",
        f"'\\x5f\\x5f{bare}\\x5f\\x5f'",
        f"('a__b'.split('a')[1].split('b')[0])~'{bare}'~'_'*2",
    ]
    return rng.choice(ways)


def make(rng: random.Random) -> tuple[str, bytes]:
    start, word = rng.choice(STARTS), rng.choice(HIDDEN)
    paths: list[Callable[[], str]] = [
        lambda: f"({start})[{hidden(rng, word)}]",
        lambda: f"([{start}]|map(attribute={hidden(rng, word)})|first)",
        lambda: f"([{start}]|map('attr',{hidden(rng, word)})|first)",
        lambda: f"({start})|attr({hidden(rng, word)})",
        lambda: f"({start}).{rng.choice(INTERNAL)}",
        lambda: f"([{start}]|sort(attribute={hidden(rng, word)}))",
        lambda: f"([{start}]|groupby({hidden(rng, word)}))",
        lambda: f"([{start}]|selectattr({hidden(rng, word)})|list)",
        lambda: f"('{{0.{word}}}'|format({start}))",
        lambda: f"(('{{0.'~{hidden(rng, word)}~'}}').format({start}))",
        lambda: f"([{start}]|sum(attribute={hidden(rng, word)},start=''))",
        lambda: f"([{start}]|unique(attribute={hidden(rng, word)})|list)",
        lambda: f"([{start}]|max(attribute={hidden(rng, word)}))",
    ]
    uses = [
        "{{ %s }}",
        "{%% set x = %s %%}{{ x }}",
        "{%% if %s %%}y{%% endif %%}",
        "{%% for x in [%s] %%}{{ x }}{%% endfor %%}",
        "{%% set ns = namespace(k=%s) %%}{{ ns.k }}",
        "{%% filter upper %%}{{ %s }}{%% endfilter %%}",
        "{%%- set f = [%s]|first -%%}{{ f }}",
    ]
    use = rng.choice(uses) % rng.choice(paths)()
    if start == "m" or rng.random() < 0.1:
        use = "{% macro m(a) %}{{ a }}{% endmacro %}" + use
    if start == "loop":
        use = "{% for q in messages %}" + use + "{% endfor %}"
    honest = "{% for message in messages %}{{ message['content'] | trim }}{% endfor %}"
    template = rng.choice(["", honest]) + use
    if rng.random() < 0.5:
        return "t.tokenizer_config.json", json.dumps({"chat_template": template}).encode()
    value = template.encode()
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 23) + b"tokenizer.chat_template"
    return "t.gguf", head + struct.pack("<IQ", 8, len(value)) + value


def make_yaml(rng: random.Random) -> tuple[str, bytes]:
    tags = [
        "!!python/object/apply:os.system",
        "!!python/object/new:os.system",
        "!<tag:yaml.org,2002:python/object/apply:os.system>",
        "!p!os.system",
        "!!python/name:os.system",
        "!!python/module:antigravity",
        "!!python/object/apply:builtins.eval",
        "!%70ython",
    ]
    shapes = ["x: %s ['%s']\n", '- %s ["%s"]\n', "%s ['%s']\n", "a: {b: %s ['%s']}\n", "? %s ['%s']\n: 1\n", "x: &a %s\n  - '%s'\ny: *a\n"]
    tag = rng.choice(tags)
    head = "%TAG !p! tag:yaml.org,2002:python/object/apply:\n---\n" if tag.startswith("!p!") else ""
    body = head + rng.choice(shapes) % (tag, f"touch {CANARY}")
    return rng.choice(["config.yaml", "hparams.yml", "MLmodel"]), body.encode()
