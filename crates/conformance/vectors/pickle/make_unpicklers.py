"""Writes unpicklers.txt: random streams, and what CPython's two unpicklers make of them.

Nothing from a stream is resolved: `find_class` returns a class without behaviour, `persistent_load` an instance of it.
Columns: stream in hex; results of the C unpickler from memory, of the C unpickler from a file that cannot be read ahead, of the Python
unpickler. A result is a dump of the value or `!`,
followed by the names that were resolved, each after a space, as hex of `module NUL name`.

Run as `python3 make_unpicklers.py COUNT SEED > unpicklers.txt` (CPython 3.11).
"""

import _pickle
import io
import pickle
import random
import resource
import struct
import sys
import warnings

warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


class Inert:
    def __new__(cls, *args, **kwargs):
        return object.__new__(cls)

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return Inert()

    def __setstate__(self, state):
        pass

    def __setitem__(self, key, value):
        pass

    def append(self, item):
        pass

    def add(self, item):
        pass


class Peekable(io.BytesIO):
    """The C unpickler treats what `peek` returns as `pickle.loads` treats its argument."""

    def peek(self, size):
        return self.getvalue()[self.tell() :]


def unpickler(base, file):
    class Unpickler(base):
        def __init__(self, stream):
            super().__init__(file(stream), encoding="latin1", buffers=iter([b"x"] * 99))
            self.names = []

        def find_class(self, module, name):
            self.names.append((module, name))
            return "string" if name == "text" else Inert

        def persistent_load(self, pid):
            return Inert()

    return Unpickler


MEMORY, FILE = unpickler(_pickle.Unpickler, Peekable), unpickler(_pickle.Unpickler, io.BytesIO)
PYTHON = unpickler(pickle._Unpickler, io.BytesIO)


def dump(value, depth=0):
    if depth > 12:
        return "#"
    kind = type(value)
    if value is None:
        return "N"
    if kind is bool:
        return "T" if value else "F"
    if kind is int:
        return f"i{value:x}"
    if kind is float:
        return "f" + struct.pack(">d", value).hex()
    if kind is str:
        return "s" + value.encode("utf-8", "surrogatepass").hex()
    if kind in (bytes, memoryview):
        return "b" + bytes(value).hex()
    if kind is bytearray:
        return "a"
    if kind in (list, tuple):
        opening, closing = "[]" if kind is list else "()"
        return opening + ",".join(dump(item, depth + 1) for item in value[:20]) + closing
    return {dict: "D", set: "S", frozenset: "S"}.get(kind, "X")


def run(kind, stream):
    loader = kind(stream)
    try:
        result = dump(loader.load())
    except RecursionError:
        return None
    except Exception:
        result = "!"
    names = [f"{module}\0{name}".encode("utf-8", "surrogatepass").hex() for module, name in loader.names]
    return " ".join([result, *names])


TEXTS = [b"os", b"system", b"text", b"a.b", b"", b"\\u006fs", b"x\\", "é".encode(), b"\xed\xa0\x80", b"\xff", b"\r"]
NUMBERS = [b"0", b"1", b"00", b"01", b"7", b"-3", b"010", b"0x1f", b"0o17", b"1_0", b" 5 ", b"5\0x", b"9" * 30, b"-" + b"8" * 25, b"1e3", b"inf", b"", b"12L", b"L"]


def generate(rng):
    out = bytearray()
    if rng.random() < 0.7:
        out += b"\x80" + bytes([rng.choice([0, 1, 2, 3, 4, 5, 5, 4, 6])])
    depth = 0
    line = lambda pool: rng.choice(pool) + b"\n"
    counted = lambda pack, body: struct.pack(pack, len(body)) + body
    for _ in range(rng.randrange(1, 24)):
        text, kind = rng.choice(TEXTS), rng.randrange(34)
        if depth < 1 and kind > 13:
            kind = rng.randrange(14)
        if kind == 0: out += rng.choice([b"N", b"\x88", b"\x89", b"]", b"}", b")", b"\x8f"])
        elif kind == 1: out += b"K" + bytes([rng.randrange(256)])
        elif kind == 2: out += b"\x8c" + counted("<B", text)
        elif kind == 3: out += b"X" + counted("<I", text)
        elif kind == 4: out += b"\x8d" + counted("<Q", text)
        elif kind == 5: out += rng.choice([b"V", b"P"]) + line(TEXTS)
        elif kind == 6: out += b"S" + rng.choice([b"'os'", b'"a\\x41\\101"', b"'", b"'a\"", b"'\\q'", b"'\\x4'"]) + b"\n"
        elif kind == 7: out += rng.choice([b"I", b"L", b"F"]) + line(NUMBERS)
        elif kind == 8: out += b"c" + line(TEXTS) + line(TEXTS)
        elif kind == 9: out += rng.choice([b"U", b"C"]) + counted("<B", text)
        elif kind == 10: out += rng.choice([b"J", b"M\1"]) + struct.pack("<i", rng.choice([0, -1, 1 << 30]))[: rng.choice([4, 4, 1])]
        elif kind == 11: out += b"\x8a" + counted("<B", rng.choice([b"", b"\1", b"\xff", b"\0" * 7 + b"\x80", b"\xff" * 12]))
        elif kind == 12: out += rng.choice([b"(", b"(", b"\x97", b"\x96" + counted("<Q", text), b"\x8e" + counted("<Q", text)])
        elif kind == 13: out += b"G" + struct.pack(">d", rng.choice([0.5, -2.0])) if rng.random() < 0.5 else b"B" + counted("<I", text)
        elif kind == 14: out += rng.choice([b"q", b"h"]) + bytes([rng.randrange(4)])
        elif kind == 15: out += rng.choice([b"p", b"g"]) + line([b"0", b"1", b"2", b"+1", b"-1", b"x", b"0\0x", b" 1"])
        elif kind == 16: out += rng.choice([b"r", b"j"]) + struct.pack("<I", rng.choice([0, 1, 2, 300]))
        elif kind in (17, 18): out += b"\x94"
        elif kind == 19: out += rng.choice([b"0", b"1", b"2", b"2", b"0"])
        elif kind == 20: out += rng.choice([b"\x85", b"\x86", b"\x87", b"t", b"l", b"d", b"\x91"])
        elif kind == 21: out += rng.choice([b"a", b"e", b"s", b"u", b"\x90"])
        elif kind == 22: out += rng.choice([b"(NNe", b"(NKu", b"(KKu", b"(N\x90", b"(e", b"(u", b"(\x90", b"Na", b"K\1Ks", b"K\0Ns"])
        elif kind == 23: out += b"\x8c\x02os\x8c\x06system\x93"
        elif kind == 24: out += rng.choice([b"\x93", b"h\0h\1\x93", b"\x8c\1m\x8c\1n\x93"])
        elif kind == 25: out += rng.choice([b")R", b"R", b")\x81", b"\x81", b")}\x92", b"(NtR", b"]R", b"]\x81"])
        elif kind == 26: out += rng.choice([b"b", b"Nb", b"}b", b"}}\x86b"])
        elif kind == 27: out += b"(" + b"i" + line(TEXTS) + line(TEXTS)
        elif kind == 28: out += rng.choice([b"(cm\nn\no", b"(o", b"o", b"im\nn\n"])
        elif kind == 29: out += rng.choice([b"Q", b"\x98"])
        elif kind == 30: out += b"\x95" + struct.pack("<Q", rng.choice([0, 3, 8, 20]))
        elif kind == 31: out += b"\x80" + bytes([rng.randrange(6)])
        elif kind == 32: out += rng.choice([b"(", b"(K\1K\2t", b"(\x8c\1al", b"]K\1a", b"}K\1Ns"])
        elif kind == 33: out += rng.choice([b"\x82\1", b"\x83\1\0", b"\x84\1\0\0\0", b"\x84\0\0\0\x80", b"T\2\0\0\0os"])
        depth += 1
    out += b"." if rng.random() < 0.95 else b""
    if rng.random() < 0.25:
        at = rng.randrange(len(out))
        choice = rng.random()
        if choice < 0.4: out[at] = rng.randrange(256)
        elif choice < 0.6: del out[at]
        elif choice < 0.8: out.insert(at, rng.choice(b"(t.0a1R\x93\x94"))
        else: del out[at:]
    return bytes(out)


def main(count, seed):
    rng = random.Random(seed)
    while count:
        stream = generate(rng)
        results = [run(kind, stream) for kind in (MEMORY, FILE, PYTHON)]
        # Streams that neither accepts say little: few of them.
        if None in results or (all(result[0] == "!" for result in results) and rng.random() < 0.85):
            continue
        print(stream.hex() or "-", *results, sep="\t")
        count -= 1


main(int(sys.argv[1]), int(sys.argv[2]))
