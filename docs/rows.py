"""Reads and writes rows of numbers as safetensors, for the lesson."""

import json
import struct


def write(path, rows):
    data = struct.pack(f"<{len(rows) * len(rows[0])}f", *[x for row in rows for x in row])
    shape = [1, len(rows), len(rows[0])]
    entry = {"dtype": "F32", "shape": shape, "data_offsets": [0, len(data)]}
    head = json.dumps({"hidden_states": entry}).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head + data)


def read(path, name):
    with open(path, "rb") as file:
        raw = file.read()
    size = struct.unpack("<Q", raw[:8])[0]
    entry = json.loads(raw[8 : 8 + size])[name]
    begin, end = (8 + size + offset for offset in entry["data_offsets"])
    values, width = struct.unpack(f"<{(end - begin) // 4}f", raw[begin:end]), entry["shape"][-1]
    return [values[i : i + width] for i in range(0, len(values), width)]


def distance(a, b):
    return max(abs(x - y) for p, q in zip(a, b) for x, y in zip(p, q))
