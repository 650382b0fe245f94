"""Every function of every operator through `kiln run`, against NumPy in float64.

    numpy_test.py KILN FOLDER     prints TAP; FOLDER is for its files

Inputs are random (the seed is printed), in three dimensions, with an odd number of columns."""

import json
import math
import random
import re
import subprocess
import sys

import numpy as np

SHAPE = (3, 5, 129)
# Of the result's own rounding, and of the arithmetic in float32 before it: (relative, absolute).
TOLERANCES = {"f32": (4e-6, 2e-6), "f16": (2.0**-10, 1e-6), "bf16": (2.0**-7, 1e-6)}
erf = np.vectorize(math.erf)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x, approx):
    if approx == "erf":
        return 0.5 * x * (1 + erf(x / math.sqrt(2)))
    if approx == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x * sigmoid(1.702 * x)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# (operator, shapes of its inputs, options, definition)
CASES = [("softmax", {"x": SHAPE}, {}, lambda x: softmax(x))]
CASES += [("softmax", {"x": (2, 9001)}, {}, lambda x: softmax(x))]
CASES += [("mul_add", {"a": SHAPE, "b": SHAPE, "c": SHAPE}, {}, lambda a, b, c: a * b + c)]
for approx in ("erf", "tanh", "quick"):
    CASES.append(
        ("add_gelu", {"x": SHAPE, "bias": SHAPE[-1:]}, {"approx": approx},
         lambda x, bias, approx=approx: gelu(x + bias, approx)))
CASES.append(("add_gelu", {"x": SHAPE}, {}, lambda x: gelu(x, "erf")))
CASES.append(("silu_mul", {"gate": SHAPE, "up": SHAPE}, {}, lambda gate, up: gate * sigmoid(gate) * up))
CASES.append(
    ("silu_mul", {"gate": SHAPE, "up": SHAPE}, {"activation": "gelu_tanh"},
     lambda gate, up: gelu(gate, "tanh") * up))
HALF = SHAPE[:-1] + (2 * 64,)
CASES.append(("silu_mul", {"gate": HALF}, {}, lambda gate: gate[..., :64] * sigmoid(gate[..., :64]) * gate[..., 64:]))



def rms(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def attention(q, k, v):
    """Causal, with as many heads of keys as of queries: [tokens, heads, size]."""
    scores = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(q.shape[-1])
    later = np.arange(k.shape[0])[None, :] > np.arange(q.shape[0])[:, None] + k.shape[0] - q.shape[0]
    return np.einsum("hij,jhd->ihd", softmax(np.where(later, -np.inf, scores)), v)


def ids(count, below):
    """An input of integers, instead of a shape."""
    return np.random.default_rng(1).integers(0, below, count, dtype=np.int32)


CASES.append(("add", {"a": SHAPE, "b": SHAPE}, {}, lambda a, b: a + b))
CASES.append(("rmsnorm", {"x": SHAPE, "weight": SHAPE[-1:]}, {}, lambda x, weight: rms(x) * weight))
CASES.append(("add_rmsnorm", {"x": SHAPE, "residual": SHAPE}, {}, lambda x, residual: {
    "y": rms(x + residual), "sum": x + residual}))
CASES.append(("embedding", {"table": (50, 129), "ids": ids(7, 50)}, {}, lambda table, ids: table[ids.astype(int)]))
CASES.append(("amax", {"x": (15, 129)}, {"scale_rows": "1", "scale_cols": "2"}, lambda x: np.array(
    [[np.abs(x[:, :128]).max(), np.abs(x[:, 128:]).max()]])))
CASES.append(("argmax", {"x": (7, 129)}, {}, lambda x: x.argmax(-1)))
CASES.append(("log_softmax", {"x": SHAPE}, {}, lambda x: {
    "y": np.log(softmax(x)), "lse": np.log(np.exp(x).sum(-1))}))
CASES.append(("softmax_update", {"x": SHAPE}, {}, lambda x: {"states": np.concatenate(
    (x.max(-1).ravel(), np.exp(x - x.max(-1, keepdims=True)).sum(-1).ravel(), np.zeros(15)))}))
CASES.append(("tree_verify_sampled", {"target": (4, 2, 1), "tokens": np.full((4, 2), -1, np.int32),
                                      "parents": np.array(((-1, 0),), np.int32)}, {"depth": "2"},
              lambda target, tokens, parents: {"path": np.array(((0, -1),) * 4), "accepted": np.ones(4),
                                               "next": np.where(target[:, 0, 0] > 0, 0, -1)}))
LSES = np.random.default_rng(6).standard_normal((2, 3, 5)).astype(np.float32)
CASES.append(("merge_attention_states", {"x": (2, 5, 3, 40), "x_lse": LSES}, {}, lambda x, x_lse: {
    "out": (softmax(x_lse.T).transpose(2, 0, 1)[..., None] * x).sum(0), "lse": np.log(np.exp(x_lse).sum(0))}))
CASES.append(("top_k", {"x": (7, 129)}, {"k": "5"}, lambda x: {
    "values": -np.sort(-x, kind="stable")[:, :5], "indices": np.argsort(-x, kind="stable")[:, :5]}))
CASES.append(("gemm", {"a": (2, 9, 129), "b": (2, 33, 129), "bias": (33,)}, {}, lambda a, b, bias: {
    "d": np.einsum("bmk,bnk->bmn", a, b) + bias}))


def gated_norm(a, b, bias, weight):
    normed = a / np.sqrt(np.mean(a * a, -1, keepdims=True) + 1e-6) * weight
    gate, up = np.split(np.einsum("bmk,bnk->bmn", normed, b) + bias, 2, -1)
    return {"d": gate * sigmoid(gate) * up}


CASES.append(("gemm", {"a": (2, 5, 129), "b": (2, 66, 129), "bias": (66,), "norm_weight": (129,)},
              {"gated": "yes", "activation": "silu"}, gated_norm))
CASES.append(("mha", {"q": (5, 3, 40), "k": (11, 3, 40), "v": (11, 3, 40)}, {"causal": "yes", "batch": "1"},
              lambda q, k, v: {"out": attention(q, k, v)}))


def stored(key_cache, value_cache, key, value, slots):
    caches = {"key_cache": key_cache.copy(), "value_cache": value_cache.copy()}
    for token, slot in enumerate(slots.astype(int)):
        if 0 <= slot < len(key_cache):
            caches["key_cache"][slot], caches["value_cache"][slot] = key[token], value[token]
    return caches


def copied(key_cache, value_cache, pairs):
    caches = {"key_cache": key_cache.copy(), "value_cache": value_cache.copy()}
    for source, target in pairs.astype(int).reshape(-1, 2):
        if 0 <= source < len(key_cache):
            caches["key_cache"][target], caches["value_cache"][target] = key_cache[source], value_cache[source]
    return caches


def paged(q, k_cache, v_cache, block_table, seqlens_k):
    """A query for each sequence."""
    results = []
    for query, blocks, count in zip(q, block_table.astype(int), seqlens_k.astype(int)):
        k, v = (cache[blocks].reshape(-1, *cache.shape[2:])[:count] for cache in (k_cache, v_cache))
        results.append(attention(query[None], k, v))
    return np.concatenate(results)


def turned(x, angles):
    """Pairs of neighbours, [..., heads, 2 * pairs], by angles [..., pairs]."""
    cos, sin = np.cos(angles)[..., None, :], np.sin(angles)[..., None, :]
    first, second = x[..., 0::2], x[..., 1::2]
    return np.stack((first * cos - second * sin, first * sin + second * cos), -1).reshape(x.shape)


def angle(positions, frequencies):
    return positions * (frequencies * (2 * math.pi / 2.0**64))


def turned_in_grids(x, grids, frequencies):
    """A third of the pairs, rounded down, for rows and columns each."""
    pairs = len(frequencies)
    axis = np.repeat((0, 1, 2), (pairs - pairs // 3 * 2, pairs // 3, pairs // 3))
    places = np.array([list(np.ndindex(*grid)) for grid in grids.astype(int).reshape(-1, 3)])
    return turned(x, angle(places[..., axis], frequencies))


def compacted(key_cache, value_cache, slots, path, accepted):
    caches = {"key_cache": key_cache.copy(), "value_cache": value_cache.copy()}
    for sequence, count in enumerate(accepted):
        for i, node in enumerate(path[sequence, :count]):
            for cache in caches.values():
                cache[slots[sequence, i]] = cache[slots[sequence, node]]
    return caches


def followed(tokens, parents, targets):
    """The nodes of one tree for all whose tokens are their parents' targets, the first of each parent's."""
    results = {"path": np.full((len(tokens), 3), -1), "accepted": np.zeros(len(tokens)), "next": np.zeros(len(tokens))}
    for sequence, chosen in enumerate(targets.astype(int)):
        path = [0]
        while found := [i for i, parent in enumerate(parents[0].astype(int))
                        if i and parent == path[-1] and tokens[sequence, i] == chosen[parent]]:
            path.append(found[0])
        results["path"][sequence, :len(path)] = path
        results["accepted"][sequence], results["next"][sequence] = len(path), chosen[path[-1]]
    return results


def likeliest(logits, tokens, parents):
    """The longest paths and, of these, the likeliest."""
    chances = np.log(softmax(logits))
    results = {"path": [], "accepted": [], "next": []}
    for sequence, ancestors in enumerate(parents.astype(int)):
        paths, scores = [[0]], [0]
        for i in range(1, len(ancestors)):
            paths.append([*paths[ancestors[i]], i])
            scores.append(scores[ancestors[i]] + chances[sequence, ancestors[i], int(tokens[sequence, i])])
        best = max(range(len(paths)), key=lambda i: (len(paths[i]), scores[i]))
        results["path"].append(paths[best] + [-1] * (4 - len(paths[best])))
        results["accepted"].append(len(paths[best]))
        results["next"].append(logits[sequence, paths[best][-1]].argmax())
    return {name: np.array(values) for name, values in results.items()}


def embedded(x, code_type, smax):
    """Bits, the first the highest of a byte, or int4 with 8 added, two to a byte, with normalised scales."""
    if code_type == "binary":
        return {"codes": np.packbits(x > 0, axis=-1), "scales": np.ones(len(x))}
    scales = (np.abs(x).max(-1, keepdims=True) / np.float32(smax)).astype(np.float32)
    numbers = x * (1 / scales)
    codes = np.rint(numbers.astype(np.float32)).astype(int) & 255
    if code_type == "int4":
        codes = np.pad(codes + 8 & 15, ((0, 0), (0, 1)), constant_values=8)
        codes = codes[:, ::2] | codes[:, 1::2] << 4
    return {"codes": codes, "scales": (numbers**2).sum(-1)**-0.5}


for code_type, code_cols, smax in (("binary", 17, 1), ("int8", 129, 127), ("int4", 65, 7)):
    CASES.append(("quantize_embedding", {"x": (5, 129)}, {
        "code_type": code_type, "code_cols": str(code_cols), "normalize": "yes"},
                  lambda x, code_type=code_type, smax=smax: embedded(x, code_type, smax)))


def nearest(scores, found):
    """The rows with the greatest scores, the lower of equal ones first; found: the scores to give."""
    rows = np.argsort(-scores, kind="stable")[:, :7]
    return {"scores": np.take_along_axis(found, rows, -1), "indices": rows}


def hamming(queries, table):
    bits = np.unpackbits(queries.astype(np.uint8)[:, None] ^ table.astype(np.uint8)[None], axis=-1)
    return nearest(-bits.sum(-1).astype(float), bits.sum(-1))


def products(queries, table, table_scales, numbers):
    scores = numbers(queries) @ numbers(table).T * table_scales
    return nearest(scores, scores)


TABLE = {"query_codes": np.random.default_rng(8).integers(0, 256, (3, 24), np.uint8),
         "table_codes": np.random.default_rng(9).integers(0, 256, (300, 24), np.uint8)}
TABLE_SCALES = {"table_scales": np.random.default_rng(10).random(300, np.float32) / 128}
CASES.append(("vector_search", TABLE, {"k": "7"}, hamming))
CASES.append(("vector_search", TABLE | TABLE_SCALES, {"k": "7", "code_type": "int8"}, lambda *inputs: products(
    *inputs, lambda codes: codes.astype(np.uint8).astype(np.int8).astype(float))))
CASES.append(("vector_search", TABLE | TABLE_SCALES, {"k": "7", "code_type": "int4"}, lambda *inputs: products(
    *inputs, lambda codes: np.stack((codes % 16, codes // 16), -1).reshape(len(codes), -1) - 8)))
TREE = np.array(((-1, 0, 0, 1, 2),), np.int32)
TREES = np.array(((-1, 0, 0, 1, 1, 2), (-1, 0, 1, 0, 3, 4)), np.int32)
CASES.append(("tree_accept", {"tokens": np.array(((9, 4, 5, 6, 7), (9, 5, 4, 6, 7), (9, 5, 5, 6, 7)), np.int32),
                              "parents": TREE,
                              "targets": np.array(((5, 1, 7, 3, 8), (2, 1, 7, 3, 8), (5, 6, 7, 3, 8)), np.int32)},
              {"depth": "3"}, lambda *inputs: followed(*inputs)))
CASES.append(("tree_accept", {"logits": (2, 6, 129), "tokens": np.array((range(6), range(6, 12)), np.int32),
                              "parents": TREES}, {"depth": "4", "rule": "typical", "epsilon": "1e-9"},
              lambda *inputs: likeliest(*inputs)))


def hashed(tokens, multipliers, primes, offsets, lookup, history):
    """Engram's rows of [batch, length] tokens, with NumPy's own integers of 64 bits."""
    tokens, history = tokens.astype(np.int64), history.astype(np.int64)
    known = lookup.astype(np.int64)[np.concatenate((history, tokens), 1)]
    orders, length = history.shape[1], tokens.shape[1]
    rows = np.empty((len(MULTIPLIERS), *tokens.shape, *primes.shape[1:]), np.int64)
    for layer, factors in enumerate(MULTIPLIERS):
        mix = known[:, orders:] * factors[0]
        for order in range(orders):
            before = orders - 1 - order
            mix = np.bitwise_xor(mix, known[:, before:before + length] * factors[order + 1])
            rows[layer, ..., order, :] = mix[..., None] % PRIMES[layer, order] + OFFSETS[layer, order]
    return {"rows": rows.reshape(len(MULTIPLIERS), -1, *primes.shape[1:])}


# As Engram's own: odd, and small enough for no product with one of 700 ids to overflow.
MULTIPLIERS = np.random.default_rng(10007).integers(0, 2**62 // 700, (2, 3), np.int64) * 2 + 1
PRIMES = np.array((((646403, 646411), (646421, 646423)), ((646433, 646453), (646519, 646523))), np.int64)
OFFSETS = np.cumsum(PRIMES.reshape(2, -1), 1).reshape(PRIMES.shape) - PRIMES
for wide in (np.int32, np.int64):
    CASES.append(("engram_hash", {"ids": ids((3, 7), 900).astype(wide), "multipliers": MULTIPLIERS, "primes": PRIMES,
                                  "offsets": OFFSETS, "lookup": ids(900, 700),
                                  "history": ids((3, 2), 900).astype(wide)}, {}, hashed))


def gated(key, query, value):
    g = (rms(key) * rms(query)).sum(-1, keepdims=True) / math.sqrt(key.shape[-1])
    y = sigmoid(np.sign(g) * np.sqrt(np.maximum(np.abs(g), 1e-6))) * value[:, None, :]
    return {"y": y, "normed": y / np.sqrt((y * y).mean(-1, keepdims=True) + 1e-5)}


def convolved(x, weight, initial_states):
    """Of width 4 and dilation 3, [batch, length, channels]."""
    padded, length = np.concatenate((initial_states, x), 1), x.shape[1]
    y = sum(weight[tap] * padded[:, 3 * tap:3 * tap + length] for tap in range(4))
    return {"y": y * sigmoid(y), "final_states": padded[:, length:]}


CASES.append(("engram_gate", {"key": (5, 2, 129), "query": (5, 2, 129), "value": (5, 129)}, {}, gated))
CASES.append(("causal_conv1d", {"x": (2, 11, 129), "weight": (4, 129), "initial_states": (2, 9, 129)},
              {"dilation": "3", "activation": "silu"}, convolved))
PAIRS = 32
FREQUENCIES = (10000.0 ** (-np.arange(PAIRS) / PAIRS) / (2 * math.pi) * 2.0**64).astype(np.int64)
CASES.append(("embedding", {"table": (50, 129), "ids": ids(7, 50).astype(np.int64)}, {},
              lambda table, ids: table[ids.astype(int)]))


def turned_and_stored(key_cache, value_cache, query, key, value, slots, positions, frequencies):
    """Six elements of each head stay."""
    angles = angle(positions[:, None], frequencies)
    query, key = (np.concatenate((turned(x[..., :2 * PAIRS], angles), x[..., 2 * PAIRS:]), -1) for x in (query, key))
    return {"query_out": query, **stored(key_cache, value_cache, key, value, slots)}


for wide in (np.int32, np.int64):
    CASES.append(("kv_store", {"key_cache": (9, 129), "value_cache": (9, 129), "key": (5, 129), "value": (5, 129),
                               "slot_mapping": np.array((8, -1, 0, 9, 3), wide)}, {}, stored))
    CASES.append(("kv_compact", {"key_cache": (9, 129), "value_cache": (9, 129),
                                 "slot_mapping": np.array(((8, 1, 4, 2), (0, 6, 7, 5)), wide),
                                 "path": np.array(((0, 2, 3), (0, 3, 3)), np.int32),
                                 "accepted": np.array((3, 2), np.int32)}, {}, lambda *inputs: compacted(
                                     *inputs[:2], *(values.astype(int) for values in inputs[2:]))))
    CASES.append(("kv_copy_blocks", {"key_cache": (9, 129), "value_cache": (9, 129),
                                     "pairs": np.array((0, 4, -1, 5, 3, 8), wide)}, {}, copied))
    CASES.append(("rope", {"x": (5, 3, 2 * PAIRS), "positions": np.array((0, 1, 7, 100, 4000), wide),
                           "frequencies": FREQUENCIES}, {},
                  lambda x, positions, frequencies: turned(x, angle(positions[:, None], frequencies))))
    CASES.append(("rope_kv_store", {"key_cache": (9, 2, 70), "value_cache": (9, 2, 70), "query": (5, 3, 70),
                                    "key": (5, 2, 70), "value": (5, 2, 70),
                                    "slot_mapping": np.array((8, -1, 0, 9, 3), wide),
                                    "positions": np.array((0, 1, 7, 100, 4000), np.int64),
                                    "frequencies": FREQUENCIES}, {}, turned_and_stored))
CASES.append(("mha_paged", {"q": (2, 3, 40), "k_cache": (6, 16, 3, 40), "v_cache": (6, 16, 3, 40),
                            "block_table": np.array(((4, 1, 0), (5, 2, 3)), np.int32),
                            "seqlens_k": np.array((20, 33), np.int32)}, {}, lambda *inputs: {"out": paged(*inputs)}))
CASES.append(("rope3d", {"x": (2, 12, 3, 2 * PAIRS), "grids": np.array((2, 2, 3, 1, 3, 4), np.int32),
                         "frequencies": FREQUENCIES}, {}, turned_in_grids))
E4M3 = np.array([(8 + code % 8 if code >= 8 else code) * 2.0 ** (max(code // 8, 1) - 10) for code in range(127)])


def e4m3(values):
    """The codes of the nearest numbers; of two as near the even one."""
    distances = np.abs(np.minimum(np.abs(values), 448)[..., None] - E4M3)
    nearest = distances.argmin(-1)  # the lower of two
    tie = (distances == distances.min(-1, keepdims=True)).sum(-1) == 2
    return nearest + (tie & (nearest % 2 == 1)) + 128 * np.signbit(values)


def cached(codes, scales):
    """The numbers of a cache of codes, with a scale for each head."""
    codes = codes.astype(int)
    return np.where(codes < 128, 1, -1) * E4M3[codes & 127] * scales[:, None]


CODES = np.random.default_rng(5).integers(0, 0x48, (2, 6, 16, 3, 40), np.uint8)
HEAD_SCALES = {"k_scale": np.array((0.5, 2, 0.25), np.float32), "v_scale": np.array((1, 0.125, 4), np.float32)}
CASES.append(("kv_store", {"key_cache": CODES[0, 0, :9].reshape(9, 120), "value_cache": CODES[1, 0, :9].reshape(9, 120),
                           "key": (5, 120), "value": (5, 120), "slot_mapping": np.array((8, -1, 0, 9, 3), np.int32),
                           **HEAD_SCALES}, {}, lambda key_cache, value_cache, key, value, slots, k_scale, v_scale: stored(
                               key_cache, value_cache, e4m3(key / np.repeat(k_scale, 40)),
                               e4m3(value / np.repeat(v_scale, 40)), slots)))
CASES.append(("mha_paged", {"q": (2, 3, 40), "k_cache": CODES[0], "v_cache": CODES[1] | CODES[0] << 7,
                            "block_table": np.array(((4, 1, 0), (5, 2, 3)), np.int32),
                            "seqlens_k": np.array((20, 33), np.int32), **HEAD_SCALES}, {},
              lambda q, k, v, table, lengths, k_scale, v_scale: {
                  "out": paged(q, cached(k, k_scale), cached(v, v_scale), table, lengths)}))


def int8(values):
    return np.clip(np.rint(values), -127, 127)


def quantized(x, code, greatest):
    """With a computed scale for every 128 columns of a row."""
    scales = np.stack([np.abs(x[:, at:at + 128]).max(-1) for at in range(0, x.shape[-1], 128)], -1)
    scales = np.where(scales == 0, np.float32(1), scales.astype(np.float32) / np.float32(greatest))
    factors = np.repeat(np.float32(1) / scales, 128, -1)[:, :x.shape[-1]]
    return {"codes": code((x.astype(np.float32) * factors).astype(np.float64)), "scales": scales}


SCALE = np.full((1, 1), 0.0625, np.float32)
for operator, code, greatest in (("quantize_fp8", e4m3, 448), ("quantize_int8", int8, 127)):
    CASES.append((operator, {"x": (15, 129)}, {"scale_rows": "15", "scale_cols": "2"},
                  lambda x, code=code, greatest=greatest: quantized(x, code, greatest)))
    CASES.append((operator, {"x": (15, 129), "given": SCALE}, {}, lambda x, given, code=code: {"codes": code(x / given)}))


def unpacked(weights):
    """Integers of 4 bits, two in a byte, the first in its low half."""
    pairs = np.stack((weights.astype(int) & 15, weights.astype(int) >> 4), -1).reshape(len(weights), -1)
    return np.where(pairs < 8, pairs, pairs - 16)


BYTES = np.random.default_rng(4).integers(0, 256, (33, 64), np.uint8)
CASES.append(("gemm_w4a16", {"a": (9, 128), "weights": BYTES, "scales": (33, 4), "zeros": (33, 4), "bias": (33,)},
              {"group": "32"}, lambda a, w, scales, zeros, bias: {
                  "d": a @ (unpacked(w) * np.repeat(scales, 32, -1) + np.repeat(zeros, 32, -1)).T + bias}))
CASES.append(("dequantize_w4a16", {"weights": BYTES, "scales": (4, 33), "zeros": (4, 33)},
              {"group": "32", "scale_layout": "k_n"}, lambda w, scales, zeros: {
                  "y": (unpacked(w).T * np.repeat(scales, 32, 0) + np.repeat(zeros, 32, 0)).T}))
CASES.append(("gemm_w4a16", {"a": (3, 128), "weights": BYTES, "scales": (2, 33), "pre_scale": (128,)},
              {"group": "64", "scale_layout": "k_n"}, lambda a, w, scales, factors: {
                  "d": (a * factors) @ (unpacked(w).T * np.repeat(scales, 64, 0))}))
PAIRED = np.random.default_rng(5).integers(0, 256, (34, 64), np.uint8)


def gated_w4a16(a, w, scales, bias, norm_weight):
    normed = a / np.sqrt(np.mean(a * a, -1, keepdims=True) + 1e-6) * norm_weight
    gate, up = np.split(0.0625 * normed @ (unpacked(w).T * np.repeat(scales, 64, 0)) + bias, 2, -1)
    return {"d": gate / (1 + np.exp(-gate)) * up}


for count in (3, 12):
    CASES.append(("gemm_w4a16", {"a": (count, 128), "weights": PAIRED, "scales": (2, 34), "bias": (34,),
                                 "norm_weight": (128,)},
                  {"group": "64", "scale_layout": "k_n", "gated": "yes", "activation": "silu", "scale": "0.0625"},
                  gated_w4a16))
    CASES.append(("gemm_w4a16", {"a": (count, 128), "weights": BYTES, "scales": (33, 2), "c": (count, 33)},
                  {"group": "64"}, lambda a, w, scales, c: {"d": a @ (unpacked(w) * np.repeat(scales, 64, -1)).T + c}))
E2M1 = np.array((0, 0.5, 1, 1.5, 2, 3, 4, 6))


def pairs(values):
    """The nearest E2M1, two to a byte."""
    distances = np.abs(np.minimum(np.abs(values), 6)[..., None] - E2M1)
    nearest = distances.argmin(-1)
    tie = (distances == distances.min(-1, keepdims=True)).sum(-1) == 2
    codes = nearest + (tie & (nearest % 2 == 1)) + 8 * np.signbit(values)
    return codes[..., 0::2] + 16 * codes[..., 1::2]


def nvfp4(x, scale):
    """With scales of E4M3 for every 16 columns, and codes of zeros where one is 0; scale is that of the tensor."""
    rows, blocks = len(x), -(-x.shape[-1] // 16)
    x = np.pad(x.astype(np.float32), ((0, 0), (0, 16 * blocks - x.shape[-1]))).reshape(rows, blocks, 16)
    encode = np.float32(1) / scale
    scales = e4m3((np.abs(x).max(-1) / np.float32(6) * encode).astype(np.float64))
    factors = np.where(scales == 0, np.float32(0), encode / np.where(scales == 0, 1, E4M3[scales]).astype(np.float32))
    return {"codes": pairs((x * factors[..., None]).astype(np.float64)).reshape(rows, 8 * blocks), "scales": scales}


def swizzled(x, amax):
    found = nvfp4(x, np.float32(amax[0]) / np.float32(2688))
    tiles = np.pad(found["scales"], ((0, 128 - len(x)), (0, 12 - found["scales"].shape[1]))).reshape(4, 32, 3, 4)
    return {"codes": np.pad(found["codes"], ((0, 0), (0, 96 - found["codes"].shape[1]))),
            "scales": tiles.transpose(2, 1, 0, 3).reshape(128, 12),
            "global_scale": np.array((np.float32(amax[0]) / np.float32(2688),))}


CASES.append(("quantize_nvfp4", {"x": (15, 129), "given": np.full(1, 0.004, np.float32)},
              {"scale_rows": "15", "scale_cols": "9"}, lambda x, given: nvfp4(x, np.float32(given[0]))))
CASES.append(("quantize_nvfp4", {"x": (15, 129), "amax": np.full(1, 11, np.float32)},
              {"scale_rows": "128", "scale_cols": "12", "scale_layout": "128x4"}, swizzled))
FUSED = []
for operator, code, greatest in (("fp8", e4m3, 448), ("int8", int8, 127)):
    FUSED.append((f"rmsnorm_{operator}", {"x": (15, 129), "residual": (15, 129), "weight": (129,)}, {"scale_cols": "2"},
                  lambda x, residual, weight, code=code, greatest=greatest: {
                      **quantized(rms(x + residual) * weight, code, greatest), "sum": x + residual}))
    FUSED.append((f"silu_mul_{operator}", {"gate": (15, 129), "up": (15, 129)}, {"scale_cols": "2"},
                  lambda gate, up, code=code, greatest=greatest: quantized(gate * sigmoid(gate) * up, code, greatest)))
STATIC = {"scale_rows": "15", "scale_cols": "9", "static_scale": "0.00390625"}
FUSED.append(("rmsnorm_nvfp4", {"x": (15, 129)}, STATIC, lambda x: nvfp4(rms(x), np.float32(2**-8))))
FUSED.append(("silu_mul_nvfp4", {"gate": (15, 258)}, STATIC, lambda gate: nvfp4(
    gate[:, :129] * sigmoid(gate[:, :129]) * gate[:, 129:], np.float32(2**-8))))
CASES.extend(FUSED)
SCALES = np.random.default_rng(2).uniform(0.01, 0.02, (15, 2)).astype(np.float32)
CODES = np.random.default_rng(3).integers(0, 127, (15, 129), np.uint8)
FOURS = np.random.default_rng(4).integers(0, 256, (15, 72), np.uint8)
CASES.append(("dequantize_fp8", {"codes": CODES, "scales": SCALES}, {}, lambda codes, scales: E4M3[codes.astype(int)] *
              np.repeat(scales, 128, -1)[:, :129]))
CASES.append(("dequantize_int8", {"codes": CODES.astype(np.int8), "scales": SCALES}, {},
              lambda codes, scales: codes * np.repeat(scales, 128, -1)[:, :129]))
CASES.append(("dequantize_nvfp4", {"codes": FOURS, "scales": CODES[:, :9].copy(), "global_scale": SCALES[0, :1].copy()},
              {"cols": "129"}, lambda codes, scales, global_scale: np.concatenate((E2M1, -E2M1))[
                  np.stack((codes % 16, codes // 16), -1).astype(int)].reshape(15, 144)[:, :129] *
              np.repeat(E4M3[scales.astype(int)], 16, -1)[:, :129] * global_scale))


def of_pairs(codes):
    """The numbers of E2M1 codes, two to a byte, one behind the other."""
    return np.concatenate((E2M1, -E2M1))[np.stack((codes % 16, codes // 16), -1).astype(int)].reshape(len(codes), -1)


def of_nvfp4(codes, scales):
    """The numbers of NVFP4 codes with the scales of 16 each, in whatever order these were."""
    return of_pairs(codes) * np.repeat(E4M3[scales.astype(int)], 16, -1)


for rows in (3, 15):
    CASES.append(("gemm_nvfp4", {"a": FOURS[:rows].copy(), "b": FOURS, "a_scales": CODES[:rows, :9].copy(),
                                 "b_scales": CODES[:, 100:109].copy(), "a_global_scale": SCALES[:rows, 0].copy(),
                                 "b_global_scale": SCALES[0, :1].copy()}, {"k": "140"},
                  lambda a, b, a_scales, b_scales, a_global, b_global: {
                      "d": of_nvfp4(a, a_scales)[:, :140] @ of_nvfp4(b, b_scales)[:, :140].T *
                      a_global[:, None] * b_global}))


def codes(count, kind):
    """An input of codes: finite numbers of E4M3 as uint8, or int8."""
    generator = np.random.default_rng(count[0])
    return generator.integers(0, 0x7F, count, np.uint8) | generator.integers(0, 2, count, np.uint8) << 7 if kind == "fp8" \
        else generator.integers(-128, 128, count, np.int8)


def values_of(codes, kind):
    return np.where(codes < 128, 1, -1) * E4M3[codes.astype(int) % 128] if kind == "fp8" else codes


def product_of_codes(a, b, a_scales, b_scales, kind):
    """A scale for every 128 columns of a row of a and of 128 rows of b."""
    left = values_of(a, kind) * np.repeat(a_scales, 128, -1)[:, :a.shape[-1]]
    right = values_of(b, kind) * np.repeat(np.repeat(b_scales, 128, -1), 128, 0)[:b.shape[0], :b.shape[-1]]
    return {"d": left @ right.T}


for kind in ("fp8", "int8"):
    for rows in (5, 20):
        CASES.append((f"gemm_{kind}",
                      {"a": codes((rows, 160), kind), "b": codes((130, 160), kind),
                       "a_scales": np.linspace(0.001, 0.002, 2 * rows, dtype=np.float32).reshape(rows, 2),
                       "b_scales": np.linspace(0.003, 0.001, 4, dtype=np.float32).reshape(2, 2)}, {},
                      lambda *inputs, kind=kind: product_of_codes(*inputs, kind)))


def attention_on_codes(kind, q, k, v, q_scales, k_scales, v_scales, v_means):
    """Of one sequence, with weights rounded to E4M3 from the next power of two."""
    q, k = (values_of(codes, kind) * scales.T[..., None] for codes, scales in ((q, q_scales), (k, k_scales)))
    scores = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(q.shape[-1])
    origins = np.ceil(scores.max(-1, keepdims=True) / math.log(2))
    weights = E4M3[e4m3(256 * np.exp(scores - origins * math.log(2))).astype(int)]
    sums = np.einsum("hij,jhd->ihd", weights, values_of(v, "fp8")) / weights.sum(-1).T[..., None]
    return {"out": sums * v_scales[0] + v_means[0]}


def tokens_coded(x, kind):
    """With a scale for each token of each head."""
    scales = (np.abs(x.astype(np.float32)).max(-1) / np.float32(448 if kind == "fp8" else 127)).astype(np.float32)
    product = x.astype(np.float32) * (np.float32(1) / scales)[..., None]
    return (e4m3 if kind == "fp8" else int8)(product.astype(np.float64)), scales.T


def attention_coded(q, k, v, kind):
    """k is the same for all tokens: less its mean it is 0, and its scales are 1."""
    q_codes, q_scales = tokens_coded(q, kind)
    v_scales = np.abs(v).max(0).astype(np.float32) / np.float32(448)
    v_codes = e4m3((v.astype(np.float32) * (np.float32(1) / v_scales)).astype(np.float64))
    return {"q_codes": q_codes, "q_scales": q_scales, "v_codes": v_codes, "v_scales": v_scales[None],
            "k_codes": np.zeros(k.shape), "k_scales": np.ones(k.shape[1::-1]), "k_means": k[:1]}



for kind, operator in (("int8", "mha_int8_x_fp8_fwd"), ("fp8", "mha_fp8_fwd")):
    CASES.append((operator, {"q": codes((5, 3, 40), kind), "k": codes((11, 3, 40), kind), "v": codes((11, 3, 40), "fp8"),
                             "q_scales": np.linspace(0.004, 0.006, 15, dtype=np.float32).reshape(3, 5),
                             "k_scales": np.linspace(0.006, 0.004, 33, dtype=np.float32).reshape(3, 11),
                             "v_scales": np.linspace(0.01, 0.02, 120, dtype=np.float32).reshape(1, 3, 40),
                             "v_means": np.linspace(-1, 1, 120, dtype=np.float32).reshape(1, 3, 40)}, {},
                  lambda *inputs, kind=kind: attention_on_codes(kind, *inputs)))
    CASES.append(("mha_quantize", {"q": (5, 3, 40), "k": (1, 2, 40), "v": (1, 2, 40)},
                  {"code_type": "i8" if kind == "int8" else "u8", "q_scale_rows": "5", "k_scale_rows": "1"},
                  lambda q, k, v, kind=kind: attention_coded(q, k, v, kind)))
def nvfp4_blocks(weights):
    """Weights, of 16 keys at a time, as codes with a scale have them."""
    blocks = np.pad(weights, ((0, 0), (0, 0), (0, -weights.shape[-1] % 16)))
    blocks = blocks.reshape(*weights.shape[:2], -1, 16)
    scales = E4M3[e4m3(448 * blocks.max(-1)).astype(int)][..., None]
    found = of_pairs(pairs(blocks * 2688 / np.where(scales == 0, 1, scales))).reshape(blocks.shape) * scales
    return found.reshape(*weights.shape[:2], -1)[..., :weights.shape[-1]]


def heads_of_nvfp4(codes, blocks, size):
    """[a, b, bytes] with scales of their blocks as [a, b, size]."""
    numbers = of_nvfp4(codes.reshape(-1, codes.shape[-1]), blocks.reshape(-1, blocks.shape[-1]))
    return numbers.reshape(*codes.shape[:2], -1)[..., :size]


def attention_on_nvfp4(q, k, v, q_blocks, k_blocks, v_blocks, q_scales, k_scales, v_scales, v_means):
    """Of one sequence."""
    size = v.shape[1]
    q = heads_of_nvfp4(q, q_blocks, size) * q_scales.T[..., None]
    k = heads_of_nvfp4(k, k_blocks, size) * k_scales.T[..., None]
    v = heads_of_nvfp4(v, v_blocks, len(k))
    scores = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(size)
    origins = np.ceil(scores.max(-1, keepdims=True) / math.log(2))
    weights = nvfp4_blocks(np.exp(scores - origins * math.log(2)))
    sums = np.einsum("hij,hdj->ihd", weights, v) / weights.sum(-1).T[..., None]
    return {"out": sums * v_scales[0] + v_means[0]}


def nvfp4_rows(x):
    """Each row of the last dimension, of at most 64 elements, with a scale of its own."""
    rows = np.pad(x.astype(np.float32), [(0, 0)] * (x.ndim - 1) + [(0, 64 - x.shape[-1])]).reshape(-1, 64)
    scales = np.abs(rows).max(-1) / np.float32(2688)
    with np.errstate(divide="ignore", invalid="ignore"):  # blocks of zeros
        found = [nvfp4(row[None], scale) for row, scale in zip(rows, scales)]
    codes, blocks = (np.stack([part[name][0] for part in found]).reshape(*x.shape[:-1], -1)
                     for name in ("codes", "scales"))
    zeros = np.repeat(blocks == 0, 8, -1)
    return np.where(zeros, 0, codes), blocks, scales.reshape(x.shape[:-1])


def attention_coded_nvfp4(q, k, v):
    """k is the same for all tokens: less its mean it is 0, and its scales are 1."""
    codes, blocks, scales = nvfp4_rows(q)
    v_codes, v_blocks, v_scales = nvfp4_rows(v.transpose(1, 2, 0))
    return {"q_codes": codes, "q_block_scales": blocks, "q_scales": scales.T,
            "v_codes": v_codes, "v_block_scales": v_blocks, "v_scales": v_scales[None],
            "k_codes": np.zeros((*k.shape[:2], 32)), "k_block_scales": np.zeros((*k.shape[:2], 4)),
            "k_scales": np.ones(k.shape[1::-1]), "k_means": k[:1]}


def fours(*shape):
    return np.random.default_rng(shape[0]).integers(0, 256, shape, np.uint8)


def block_scales(*shape):
    return np.random.default_rng(shape[0]).integers(0x30, 0x40, shape, np.uint8)


CASES.append(("mha_nvfp4_fwd", {"q": fours(5, 3, 32), "k": fours(11, 3, 32), "v": fours(3, 40, 32),
                                "q_block_scales": block_scales(5, 3, 4), "k_block_scales": block_scales(11, 3, 4),
                                "v_block_scales": block_scales(3, 40, 4),
                                "q_scales": np.linspace(0.1, 0.2, 15, dtype=np.float32).reshape(3, 5),
                                "k_scales": np.linspace(0.2, 0.1, 33, dtype=np.float32).reshape(3, 11),
                                "v_scales": np.linspace(0.1, 0.2, 120, dtype=np.float32).reshape(1, 3, 40),
                                "v_means": np.linspace(-1, 1, 120, dtype=np.float32).reshape(1, 3, 40)}, {},
              attention_on_nvfp4))
CASES.append(("mha_quantize_nvfp4", {"q": (5, 3, 40), "k": (1, 2, 40), "v": (1, 2, 40)},
              {"head_blocks": "4", "v_blocks": "4"}, attention_coded_nvfp4))
CASES.append(("sample", {"x": (7, 129)}, {}, lambda x: x.argmax(-1)))  # without a temperature the greatest


def encode(values, part):
    """The array to write and the float64 values that it holds."""
    if part == "bf16":
        bits = values.astype(np.float32).view(np.uint32)
        bits = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return bits, decode(bits, part)
    array = values.astype(np.float32 if part == "f32" else np.float16)
    return array, array.astype(np.float64)


def decode(array, part):
    if part == "bf16":
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64)


def run(kiln, folder, case, part, generator):
    operator, shapes, options, definition = case
    inputs = []
    command = [kiln, "run", f"{operator}_{part}", "--device", "cpu"]
    for name, shape in shapes.items():
        array, values = (shape, shape.astype(np.float64)) if isinstance(shape, np.ndarray) else encode(
            generator.standard_normal(shape) * 3, part)
        np.save(f"{folder}/{name}.npy", array)
        inputs.append(values)
        command += ["--in", f"{name}={folder}/{name}.npy"]
    for option in options.items():
        command += ["--set", "=".join(option)]
    expected = definition(*inputs)
    outputs = expected if isinstance(expected, dict) else {"y": expected}
    for name in outputs:
        command += ["--out", f"{name}={folder}/{name}.npy"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if ran.returncode != 0:
        return ran.stderr.strip()
    for name, wanted in outputs.items():
        wrong = differs(operator, inputs, np.load(f"{folder}/{name}.npy"), wanted, part)
        if wrong:
            return f"{name} {wrong}"
    return None


def differs(operator, inputs, found, expected, part):
    if found.shape != expected.shape:
        return f"has shape {found.shape}, expected {expected.shape}"
    if operator in {case[0] for case in FUSED} and found.itemsize == 1:  # a result beside a tie may be its neighbour
        others = (found.astype(int) != expected).sum()
        return f"has {others} other codes of {found.size}" if 100 * others > found.size else None
    if found.dtype == np.int64:  # of more bits than float64 has
        others = (found != expected).sum()
        return f"has {others} other integers of {found.size}" if others else None
    as_it_is = found.dtype in (np.float32, np.int32, np.uint8, np.int8)
    result = found.astype(np.float64) if as_it_is else decode(found, part)
    relative, absolute = TOLERANCES[part]
    scale = np.abs(expected)
    if operator == "mul_add":  # cancellation: the product's rounding counts
        scale = scale + np.abs(inputs[0] * inputs[1])
    if operator in ("add", "add_rmsnorm"):
        scale = scale + np.abs(inputs[0])
    if operator in ("rope", "rope3d", "rope_kv_store"):
        scale = scale + max(np.abs(x).max() for x in inputs[:5] if x.dtype.kind == "f")
    if operator in ("mha", "mha_paged"):  # scores of some 50 lose as many parts in 2^24
        scale = scale + 5 * np.abs(inputs[2]).max()
    if operator in ("mha_fp8_fwd", "mha_int8_x_fp8_fwd"):  # so do these
        scale = scale + 5 * 448 * 0.02
    if operator == "mha_nvfp4_fwd":
        scale = scale + 5 * 6 * 0.2
    if operator == "dequantize_w4a16":  # cancellation: an f32 product's rounding counts
        scale = scale + 8 * np.abs(inputs[1]).max()
    if operator == "gemm_w4a16":  # each weight and each sum is rounded
        factors = len(inputs[1]) // found.shape[-1]  # two where the result is gated
        scale = scale + (200 * np.abs(inputs[0]).max() * np.abs(inputs[2]).max()) ** factors
    if operator in ("gemm_fp8", "gemm_int8"):
        kind = operator[5:]
        magnitudes = [np.abs(values_of(codes, kind)) for codes in inputs[:2]]
        scale = scale + magnitudes[0] @ magnitudes[1].T * 6e-6
    if operator == "gemm_nvfp4":
        magnitudes = [np.abs(of_nvfp4(codes, scales)) for codes, scales in zip(inputs[:2], inputs[2:4])]
        scale = scale + magnitudes[0] @ magnitudes[1].T * 0.02 ** 2
    if operator == "gemm":
        products = np.einsum("bmk,bnk->bmn", np.abs(inputs[0]), np.abs(inputs[1]))
        halves = np.split(products, products.shape[-1] // found.shape[-1], -1)
        scale = scale + np.prod(halves, 0)
    if part == "f16":  # what rounds beyond its greatest number is infinite
        beyond = np.isinf(result) & (np.sign(result) == np.sign(expected)) & (np.abs(expected) > 65000)
        result = np.where(beyond, expected, result)
    error = np.abs(result - expected) - (relative * scale + absolute)
    worst = np.unravel_index(np.argmax(error), error.shape)
    if not error[worst] <= 0:
        return f"at {tuple(map(int, worst))}: {result[worst]}, expected {expected[worst]}"
    return None


def all_are_compared():
    """Names the operators that have no case here."""
    with open("kernels/ops.def", encoding="utf-8") as file:
        operators = re.findall(r"^KILN_OPERATOR\((\w+)\)", file.read(), re.MULTILINE)
    lacking = sorted(set(operators) ^ {case[0] for case in CASES})
    return f"not of both kernels/ops.def and CASES: {' '.join(lacking)}" if lacking or not operators else None


def json_is_valid(kiln, folder):
    """Every listing's JSON parses, and verify agrees with images."""
    listings = {}
    for command in ("info", "images", "verify", "explain"):
        ran = subprocess.run([kiln, command, "--json"], capture_output=True, text=True, timeout=60)
        try:
            listings[command] = json.loads(ran.stdout)
        except ValueError as error:
            return f"{command}: {error}"
    images, verified = listings["images"]["images"], listings["verify"]["images"]
    if [image["target"] for image in images] != [image["target"] for image in verified]:
        return "images and verify list different images"
    return None


def trace_is_valid(kiln, folder):
    np.save(f"{folder}/x.npy", np.zeros(SHAPE, np.float32))
    command = [kiln, "trace", "--out", f"{folder}/trace.json", "softmax_f32", "--device", "cpu"]
    command += ["--in", f"x={folder}/x.npy", "--out", f"y={folder}/y.npy"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if ran.returncode != 0:
        return ran.stderr.strip()
    with open(f"{folder}/trace.json") as file:
        events = json.load(file)["traceEvents"]
    launches = [event for event in events if event.get("cat") == "launch"]
    return None if launches and all(event["dur"] >= 0 for event in launches) else "no launch in the trace"


def bench_is_consistent(kiln, *arguments):
    command = [kiln, "bench", "--json", "--device", "cpu", "--time", "1", *(arguments or ("--size", "1"))]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if ran.returncode != 0:
        return ran.stderr.strip()
    bench = json.loads(ran.stdout)
    if len(bench["functions"]) < (1 if arguments else 12) or not bench["copy_bytes_per_second"] > 0:
        return f"{len(bench['functions'])} functions, copies at {bench['copy_bytes_per_second']}"
    for row in bench["functions"]:
        bandwidth = row["moved_bytes"] / row["median_ns"] * 1e9
        if not 0 < row["low_ns"] <= row["median_ns"] <= row["high_ns"] or row["runs"] < 10:
            return f"times of {row}"
        if not math.isclose(row["bytes_per_second"], bandwidth, rel_tol=1e-6):
            return f"bandwidth of {row}"
        if not row["device_bytes"] >= row["moved_bytes"] >= 2**20:
            return f"bytes of {row}"
    return None


def main():
    kiln, folder = sys.argv[1:]
    seed = random.randrange(2**32)
    generator = np.random.default_rng(seed)
    print(f"# seed {seed}")
    tests = []
    for case in CASES:
        for part in TOLERANCES:
            name = f"{case[0]}_{part} {' '.join(case[1])} {' '.join('='.join(o) for o in case[2].items())}".strip()
            tests.append((name, lambda case=case, part=part: run(kiln, folder, case, part, generator)))
    tests.append(("every operator of kernels/ops.def has a case", all_are_compared))
    tests.append(("every listing writes JSON", lambda: json_is_valid(kiln, folder)))
    tests.append(("a trace is Chrome's JSON", lambda: trace_is_valid(kiln, folder)))
    tests.append(("kiln bench is consistent", lambda: bench_is_consistent(kiln)))
    tests.append(("sizes of optional tensors follow --size", lambda: bench_is_consistent(kiln, "--size", "16", "mha_f16")))
    print(f"1..{len(tests)}")
    failures = 0
    for number, (name, test) in enumerate(tests, 1):
        problem = test()
        failures += problem is not None
        print(f"{'ok' if problem is None else 'not ok'} {number} - {name}")
        if problem is not None:
            print(f"# {problem}")
    return failures != 0


sys.exit(main())
