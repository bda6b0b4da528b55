"""Lets ggml's reference quantize and dequantize what apr-quant did, and compares the bytes.

usage: judge_blocks.py LIBRARY PROGRAM BLOCKS [FORMAT...]

LIBRARY is libggml-base, PROGRAM the example `blocks` of apr-quant: its documentation says what it writes. BLOCKS are judged of
each kind: numbers, numbers with importance where the reference takes one, and random bytes as blocks. Fails if any byte of
a block, or any bit of a decoded number that is a number, is not the same.
"""

import array
import concurrent.futures
import ctypes
import os
import subprocess
import sys
import time

ROWS, COLUMNS = 64, 1024
ELEMENTS = ROWS * COLUMNS
# Every kind of instructions gets its turn.
PIECES = 8

# Name, number, elements and bytes of a block, whether the reference quantizes it here, whether with importance.
FORMATS = [
    ("F16", 1, 1, 2, True, False),
    ("BF16", 30, 1, 2, True, False),
    ("Q4_0", 2, 32, 18, True, True),
    ("Q4_1", 3, 32, 20, True, True),
    ("Q5_0", 6, 32, 22, True, True),
    ("Q5_1", 7, 32, 24, True, True),
    ("Q8_0", 8, 32, 34, True, False),
    ("Q8_1", 9, 32, 36, True, False),
    ("Q2_K", 10, 256, 84, True, True),
    ("Q3_K", 11, 256, 110, True, True),
    ("Q4_K", 12, 256, 144, True, True),
    ("Q5_K", 13, 256, 176, True, True),
    ("Q6_K", 14, 256, 210, True, True),
    ("Q8_K", 15, 256, 292, True, False),
    ("IQ4_NL", 20, 32, 18, True, True),
    ("IQ4_XS", 23, 256, 136, True, True),
    ("TQ1_0", 34, 256, 54, True, False),
    ("TQ2_0", 35, 256, 66, True, False),
    ("MXFP4", 39, 32, 17, True, False),
    ("NVFP4", 40, 64, 36, True, False),
    ("Q1_0", 41, 128, 18, True, False),
    ("IQ1_S", 19, 256, 50, False, False),
    ("IQ1_M", 29, 256, 56, False, False),
    ("IQ2_XXS", 16, 256, 66, False, False),
    ("IQ2_XS", 17, 256, 74, False, False),
    ("IQ2_S", 22, 256, 82, False, False),
    ("IQ3_XXS", 18, 256, 98, False, False),
    ("IQ3_S", 21, 256, 110, False, False),
]

LIBRARY, PROGRAM, BLOCKS, WANTED = ctypes.CDLL(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]


def pointer(buffer):
    return ctypes.byref((ctypes.c_char * len(buffer)).from_buffer(buffer))


def quantizer(name, number, importance):
    """A function that lets the reference fill one buffer of blocks from one of numbers."""
    if name in ("Q8_1", "Q8_K"):
        row = getattr(LIBRARY, f"quantize_row_{name.replace('Q', 'q')}_ref")
        return lambda values, blocks: row(pointer(values), pointer(blocks), ctypes.c_int64(ELEMENTS))
    chunk = LIBRARY.ggml_quantize_chunk
    chunk.restype = ctypes.c_size_t
    sizes = [ctypes.c_int64(size) for size in (0, ROWS, COLUMNS)]

    def quantize(values, blocks):
        weights = pointer(importance) if importance else None
        chunk(ctypes.c_int(number), pointer(values), pointer(blocks), *sizes, weights)

    return quantize


def dequantizer(name):
    """A function that lets the reference fill one buffer of numbers from one of blocks; none for Q8_1."""
    if name == "Q8_1":
        return None
    plain = {"F16": "ggml_fp16_to_fp32_row", "BF16": "ggml_bf16_to_fp32_row"}
    letters = name if name.endswith("_K") else name.lower()
    row = getattr(LIBRARY, plain.get(name, f"dequantize_row_{letters.replace('Q', 'q')}"))
    return lambda blocks, values: row(pointer(blocks), pointer(values), ctypes.c_int64(ELEMENTS))


def fill(stream, buffer):
    view = memoryview(buffer)
    while view:
        count = stream.readinto(view)
        if not count:
            sys.exit(f"{PROGRAM} ended early")
        view = view[count:]


def is_number(bits):
    return bits & 0x7FFFFFFF <= 0x7F800000


def first_other(ours, theirs, size):
    """The first place at which pieces of this size are not the same, and how many such places there are."""
    pieces = range(0, len(ours), size)
    other = [at for at in pieces if ours[at : at + size] != theirs[at : at + size]]
    return other[0], len(other)


def judge(name, number, length, size, kind):
    """Compares the blocks of one format: how many, how many differ, and a line about the first of these."""
    wanted = max(BLOCKS, PIECES * ELEMENTS // length)
    command = [PROGRAM, name, kind, str(wanted), "20261121"]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=1 << 20)
    values, ours, decoded = bytearray(4 * ELEMENTS), bytearray(ELEMENTS // length * size), bytearray(4 * ELEMENTS)
    importance = bytearray(4 * COLUMNS) if kind == "weighted" else None
    theirs, numbers = bytearray(len(ours)), bytearray(len(decoded))
    quantize = None if kind == "bytes" else quantizer(name, number, importance)
    dequantize = dequantizer(name)
    count, differ, example = 0, 0, ""
    while count < wanted:
        if importance:
            fill(program.stdout, importance)
        if quantize:
            fill(program.stdout, values)
        fill(program.stdout, ours)
        fill(program.stdout, decoded)
        if quantize:
            quantize(values, theirs)
            if ours != theirs:
                at, others = first_other(ours, theirs, size)
                differ += others
                place = slice(at // size * length * 4, (at // size + 1) * length * 4)
                example = example or (
                    f"block {count + at // size}: ours {ours[at:at + size].hex()}, theirs {theirs[at:at + size].hex()}, "
                    f"numbers {values[place].hex()}"
                )
        if dequantize:
            dequantize(ours, numbers)
            if decoded != numbers:
                pairs = zip(array.array("I", decoded), array.array("I", numbers))
                others = [at for at, (a, b) in enumerate(pairs) if a != b and (is_number(a) or is_number(b))]
                differ += len({at // length for at in others})
                if others:
                    at = others[0] // length
                    example = example or f"block {count + at} decodes otherwise: {ours[at * size:(at + 1) * size].hex()}"
        count += ELEMENTS // length
    program.stdout.close()
    if program.wait() != 0:
        sys.exit(f"{' '.join(command)}: exit {program.returncode}")
    return count, differ, example


def main():
    known = [name for name, *_ in FORMATS]
    unknown = [name for name in WANTED if name not in known]
    if unknown:
        sys.exit(f"{unknown[0]} is none of {' '.join(known)}")
    jobs = []
    for name, number, length, size, is_quantized, is_weighted in FORMATS:
        if not WANTED or name in WANTED:
            kinds = ["plain"] * is_quantized + ["weighted"] * is_weighted + ["bytes"]
            jobs += [(name, number, length, size, kind) for kind in kinds]
    began, failed = time.monotonic(), 0
    # The reference does not hold Python's lock while it works.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for job, (count, differ, example) in zip(jobs, pool.map(lambda job: judge(*job), jobs)):
            name, kind = job[0], job[-1]
            if differ:
                failed += 1
                print(f"ggml: {name} {kind}: {differ} of {count} blocks differ\n  {example}", flush=True)
            else:
                print(f"ggml: {name} {kind}: {count} blocks, all the same", flush=True)
    print(f"ggml: {len(jobs)} kinds of blocks in {time.monotonic() - began:.0f} s", flush=True)
    sys.exit(f"{failed} kinds of blocks are not the reference's" if failed else 0)


main()
