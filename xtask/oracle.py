"""Prints what a safetensors file holds, one tensor a line in file order, with nothing but the standard library.

Name, dtype, shape, offset from the start of the file, bytes, SHA-256 of the bytes; tabs between.
"""

import hashlib
import json
import struct
import sys


def main():
    with open(sys.argv[1], "rb") as file:
        (header_len,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(header_len))
        header.pop("__metadata__", None)
        for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            begin, end = tensor["data_offsets"]
            file.seek(8 + header_len + begin)
            data = file.read(end - begin)
            assert len(data) == end - begin, name
            shape = "[" + ",".join(str(dim) for dim in tensor["shape"]) + "]"
            fields = [name, tensor["dtype"], shape, 8 + header_len + begin, len(data), hashlib.sha256(data).hexdigest()]
            print(*fields, sep="\t")


main()
