"""The shapes of docs/examples/llama/bench_shapes.def."""
import pathlib
import re

FIELDS = ("size", "hidden", "layers", "heads", "kv_heads", "head_dim", "vocabulary")
DEFINITIONS = pathlib.Path(__file__).resolve().parent.parent / "docs/examples/llama/bench_shapes.def"


def shapes():
    """{name: {size, hidden, layers, heads, kv_heads, head_dim, vocabulary, tied}}"""
    found = {}
    for name, numbers, tied in re.findall(r'^BENCH_SHAPE\("([^"]+)", ([\d, ]+), (true|false)\)', DEFINITIONS.read_text(),
                                          re.MULTILINE):
        found[name] = dict(zip(FIELDS, map(int, numbers.split(","))), tied=tied == "true")
    return found


def weights(shape):
    """The elements of the matrices that a step reads."""
    heads = (shape["heads"] + 2 * shape["kv_heads"]) * shape["head_dim"]
    layer = shape["size"] * (heads + shape["heads"] * shape["head_dim"] + 3 * shape["hidden"])
    return shape["layers"] * layer + shape["vocabulary"] * shape["size"]
