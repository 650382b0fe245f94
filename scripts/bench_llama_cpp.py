#!/usr/bin/env python3
"""`llama --bench` on the CPU beside llama.cpp's llama-bench: the same shape with random weights of the same precision, in
turns, the best of each. The model's file is written first and removed afterwards. With --weights the layers' matrices have
fewer bits: w4a16 beside Q4_0, int8 beside Q8_0, and --precision is that of the embedding, which is the output as well.

    scripts/bench_llama_cpp.py --llama build/examples/llama --llama-bench PATH [--shape llama3.2-1b] [--precision bf16]
                               [--weights w4a16] [--prompt 128] [--steps 32] [--threads N] [--rounds 3] [--folder /tmp]
                               [--out FILE.json]

`make check-ggml` builds llama.cpp for any x86-64. To compare speeds build its sources, in GGML_DIR/source, for this machine:
cmake -B native -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON && cmake --build native --target llama-bench"""
import argparse
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # beside the sources
from llama_shapes import shapes

ALIGNMENT, PATTERN = 32, 8 << 20
BLOCK = 32  # elements, which a block of Q4_0 or Q8_0 has beside its scale in f16
# tensor type, bytes of 32 elements, the file's type
TYPES = {"f32": (0, 128, 0), "f16": (1, 64, 1), "bf16": (30, 64, 32), "q4_0": (2, 18, 2), "q8_0": (8, 34, 7)}
FEWER_BITS = {"w4a16": "q4_0", "int8": "q8_0"}


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def key_of(name, value):
    """A key of a GGUF file's header: an unsigned number, a real or a string."""
    kinds = {int: (4, "<I"), float: (6, "<f")}
    if isinstance(value, str):
        return string(name) + struct.pack("<I", 8) + string(value)
    kind, form = kinds[type(value)]
    return string(name) + struct.pack("<I", kind) + struct.pack(form, value)


def tensors_of(shape, outer, kind):
    """(name, dimensions with the innermost first, precision) in the file's order."""
    size, hidden, head_dim = shape["size"], shape["hidden"], shape["head_dim"]
    query, key = shape["heads"] * head_dim, shape["kv_heads"] * head_dim
    yield "token_embd.weight", (size, shape["vocabulary"]), outer
    if not shape["tied"]:
        yield "output.weight", (size, shape["vocabulary"]), outer
    yield "output_norm.weight", (size,), "f32"
    for i in range(shape["layers"]):
        for name, dimensions in (("attn_q", (size, query)), ("attn_k", (size, key)), ("attn_v", (size, key)),
                                 ("attn_output", (query, size)), ("ffn_gate", (size, hidden)), ("ffn_up", (size, hidden)),
                                 ("ffn_down", (hidden, size))):
            yield f"blk.{i}.{name}.weight", dimensions, kind
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{i}.{name}.weight", (size,), "f32"


def write_model(path, shape, precision, weights, room):
    """A GGUF file, version 3, of random weights from -0.03 to 0.03 and norms of 1."""
    layers = FEWER_BITS.get(weights, precision)
    keys = {"general.architecture": "llama", "general.file_type": TYPES[layers][2], "llama.block_count": shape["layers"],
            "llama.context_length": room, "llama.embedding_length": shape["size"],
            "llama.feed_forward_length": shape["hidden"], "llama.attention.head_count": shape["heads"],
            "llama.attention.head_count_kv": shape["kv_heads"], "llama.attention.key_length": shape["head_dim"],
            "llama.attention.value_length": shape["head_dim"], "llama.rope.dimension_count": shape["head_dim"],
            "llama.attention.layer_norm_rms_epsilon": 1e-5, "llama.rope.freq_base": 500000.0,
            "llama.vocab_size": shape["vocabulary"], "tokenizer.ggml.model": "no_vocab"}
    tensors = list(tensors_of(shape, precision, layers))
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    header += b"".join(key_of(name, value) for name, value in keys.items())
    offset, sizes = 0, []
    for name, dimensions, kind in tensors:
        tensor_type, block_bytes, _ = TYPES[kind]
        header += string(name) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions), *dimensions, tensor_type, offset)
        sizes.append(math.prod(dimensions) // BLOCK * block_bytes)
        offset += -(-sizes[-1] // ALIGNMENT) * ALIGNMENT
    patterns = {kind: random_pattern(kind) for kind in {precision, layers}}
    with open(path, "wb") as file:
        file.write(header + bytes(-len(header) % ALIGNMENT))
        for (_, dimensions, kind), size in zip(tensors, sizes):
            data = struct.pack("<f", 1.0) * (size // 4) if len(dimensions) == 1 else patterns[kind]
            for begin in range(0, size, len(data)):
                file.write(data[:min(len(data), size - begin)])
            file.write(bytes(-size % ALIGNMENT))


def random_pattern(kind):
    source = random.Random(1)
    if kind in FEWER_BITS.values():
        scale = struct.pack("<e", 0.03 / (8 if kind == "q4_0" else 127))
        some = b"".join(scale + source.randbytes(TYPES[kind][1] - 2) for _ in range(1 << 14))
    else:
        one = {"f32": lambda x: struct.pack("<f", x), "f16": lambda x: struct.pack("<e", x),
               "bf16": lambda x: struct.pack("<f", x)[2:]}[kind]
        some = b"".join(one(source.uniform(-0.03, 0.03)) for _ in range(1 << 16))
    return some * (PATTERN // len(some) + 1)


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[0]}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


def measure_kiln(arguments):
    weights = ["--weights", arguments.weights] if arguments.weights else []
    done = run_json([arguments.llama, "--bench", "--json", "--device", "cpu", "--threads", str(arguments.threads), "--shape",
                     arguments.shape, "--precision", arguments.precision, *weights, "--prompt", str(arguments.prompt),
                     "--steps", str(arguments.steps), "--batch", "1"])
    return {"prompt": done["prefill"]["tokens_per_second"], "step": done["decode"][0]["tokens_per_second"],
            "share_of_reading": done["decode"][0]["share_of_reading"]}


def measure_llama_cpp(arguments, model):
    """Steps at the depth of the prompt, as kiln's are."""
    common = [arguments.llama_bench, "-m", model, "-t", str(arguments.threads), "-r", "2", "-o", "json"]
    prompt = run_json(common + ["-p", str(arguments.prompt), "-n", "0"])
    step = run_json(common + ["-p", "0", "-n", str(arguments.steps), "-d", str(arguments.prompt)])
    return {"prompt": max(prompt[0]["samples_ts"]), "step": max(step[0]["samples_ts"]),
            "version": prompt[0]["build_commit"]}


def best(results, name):
    return max(result[name] for result in results)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama", required=True)
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--shape", default="llama3.2-1b", choices=sorted(shapes()))
    parser.add_argument("--precision", default="bf16", choices=("f32", "f16", "bf16"))
    parser.add_argument("--weights", choices=sorted(FEWER_BITS))
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    ours, theirs = [], []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        model = os.path.join(folder, "model.gguf")
        write_model(model, shapes()[arguments.shape], arguments.precision, arguments.weights,
                    arguments.prompt + arguments.steps)
        for _ in range(arguments.rounds):
            ours.append(measure_kiln(arguments))
            theirs.append(measure_llama_cpp(arguments, model))
    weights = f", weights {arguments.weights}" if arguments.weights else ""
    print(f"{arguments.shape} {arguments.precision}{weights}, {arguments.threads} threads, prompt of {arguments.prompt}, "
          f"{arguments.steps} steps; tokens/s, the best of {arguments.rounds} rounds\n")
    print("| | kiln | llama.cpp | ratio | of a round |\n|---|---|---|---|---|")
    for name in ("prompt", "step"):
        rounds = ", ".join(f"{one[name] / other[name]:.2f}" for one, other in zip(ours, theirs))
        print(f"| {name} | {best(ours, name):.1f} | {best(theirs, name):.1f} | {best(ours, name) / best(theirs, name):.2f} "
              f"| {rounds} |")
    print(f"\nkiln's steps: {100 * best(ours, 'share_of_reading'):.0f} % of reading the weights")
    if arguments.out:
        with open(arguments.out, "w", encoding="utf-8") as file:
            json.dump({"shape": arguments.shape, "precision": arguments.precision, "weights": arguments.weights,
                       "kiln": ours, "llama_cpp": theirs}, file, indent=1)


if __name__ == "__main__":
    main()
