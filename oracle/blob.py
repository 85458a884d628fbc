"""Small blobs by coremltools' own writer: the bytes that crates/mil/src/blob/tests.rs expects.

    python oracle/blob.py
"""
import os
import struct
import tempfile

import numpy as np
from coremltools.libmilstoragepython import _BlobStorageWriter

NUMBERS = [
    ("int4", np.int8, [-8, 7, -1, 3, 2]),
    ("uint1", np.uint8, [1, 0, 1, 1, 0, 0, 0, 1, 1]),
    ("uint2", np.uint8, [0, 1, 2, 3, 3]),
    ("uint3", np.uint8, [1, 2, 3, 4, 5, 6, 7, 0, 5]),
    ("uint4", np.uint8, [1, 15, 8]),
    ("uint6", np.uint8, [1, 2, 3, 63, 40]),
    ("int32", np.int32, [1, -2]),
    ("uint32", np.uint32, [1, 4_000_000_000]),
]
path = os.path.join(tempfile.mkdtemp(), "w.bin")
writer = _BlobStorageWriter(path)
offsets = [getattr(writer, f"write_{name}_data")(np.array(values, dtype=dtype)) for name, dtype, values in NUMBERS]
del writer
data = open(path, "rb").read()
print(len(data), "bytes; header", data[:8].hex())
for (name, _, values), at in zip(NUMBERS, offsets):
    _, code, size, start, padding = struct.unpack("<IIQQQ", data[at : at + 32])
    print(f"{name}: code {code}, metadata at {at}, padding {padding} bits, {values} -> {data[start : start + size].hex()}")
